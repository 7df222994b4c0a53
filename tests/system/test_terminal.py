# SPDX-License-Identifier: Apache-2.0
"""exec -it on a real terminal: size, signals, job control, full-screen programs, and the terminal put back afterwards."""
import os
import shutil
import signal
import subprocess
import time

import pytest

from harness import wait_until


def shell(terminal, box, **more):
    t = terminal("exec", "-it", box, "--", "bash", "--norc", "-i", **more)
    t.expect(r"\$ ")
    t.line("PS1='ready> '")
    t.expect(r"\n[^\n]*ready> ")
    return t


@pytest.mark.basic
def test_command_sees_a_terminal(pale, box, terminal):
    t = terminal("exec", "-it", box, "--", "python3", "-c", "import os; print([os.isatty(i) for i in range(3)], os.ttyname(0))")
    t.expect(r"\[True, True, True\] /dev/pts/\d+")
    assert t.wait() == 0


def test_size_is_the_terminals(pale, box, terminal):
    t = terminal("exec", "-it", box, "--", "stty", "size", rows=37, cols=131)
    t.expect("37 131")


def test_resize_reaches_the_command(pale, box, terminal):
    t = shell(terminal, box)
    t.line("trap 'stty size' WINCH; echo set")
    # Only at the prompt: while readline prepares it, it reads the size and writes it back, and a change in between is lost.
    t.expect(r"[\r\n]set[\s\S]*ready> ")
    t.resize(50, 111)
    os.kill(t.process.pid, signal.SIGWINCH)
    t.line("stty size")
    t.expect("50 111")
    t.line("exit")
    assert t.wait() == 0


def test_exit_status_and_no_summary(pale, box, terminal):
    t = terminal("exec", "-it", box, "--", "sh", "-c", "exit 42")
    assert t.wait() == 42 and b"exit=" not in t.seen


def test_ctrl_c_interrupts_the_command_not_us(pale, box, terminal):
    t = shell(terminal, box)
    t.line("sleep 600")
    time.sleep(0.3)
    t.send(b"\x03")
    t.expect("ready> ")
    t.line("echo status $?")
    t.expect("status 130")
    t.line("exit 0")
    assert t.wait() == 0


def test_ctrl_c_ends_a_lone_command(pale, box, terminal):
    t = terminal("exec", "-it", box, "--", "sleep", "600")
    time.sleep(0.3)
    t.send(b"\x03")
    assert t.wait(5) == 130


def test_job_control(pale, box, terminal):
    t = shell(terminal, box)
    t.line("sleep 600")
    time.sleep(0.3)
    t.send(b"\x1a")
    t.expect(r"Stopped\s+sleep 600.*ready> ")
    t.line("jobs")
    t.expect(r"\[1\]\+\s+Stopped")
    t.line("fg")
    t.expect("sleep 600")
    time.sleep(0.2)
    t.send(b"\x03")
    t.expect("ready> ")
    t.line("jobs; echo none left")
    t.expect(r"[\r\n]none left")
    t.line("exit 0")
    assert t.wait() == 0


def test_ctrl_d_is_the_end_of_input(pale, box, terminal):
    t = terminal("exec", "-it", box, "--", "cat")
    t.line("line")
    t.expect("line\r\nline\r\n")
    t.send(b"\x04")
    assert t.wait() == 0


@pytest.mark.basic
def test_terminal_is_put_back_after_a_normal_end(pale, box, terminal):
    t = terminal("exec", "-it", box, "--", "sh", "-c", "stty raw -echo; sleep 0.3")
    assert wait_until(t.is_raw)
    t.wait()
    assert t.settings() == t.before


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_terminal_is_put_back_when_we_are_killed(pale, box, terminal, sig):
    t = terminal("exec", "-it", box, "--", "sleep", "600")
    assert wait_until(t.is_raw)
    os.kill(t.process.pid, sig)
    t.wait()
    assert wait_until(lambda: not t.is_raw()) and t.settings() == t.before


def test_terminal_is_put_back_when_the_box_dies(pale, box, terminal):
    t = terminal("exec", "-it", box, "--", "sleep", "600")
    assert wait_until(t.is_raw)
    os.kill(pale.info(box)["keeper_pid"], signal.SIGKILL)
    assert t.wait() == 125
    assert t.settings() == t.before and b"keeper" in t.seen


def test_bytes_go_through_raw(pale, box, terminal):
    t = terminal("exec", "-it", box, "--", "python3", "-c",
                 "import os,tty; tty.setraw(0); os.write(1,b'go'); d=b''\nwhile len(d)<256: d+=os.read(0,999)\nos.write(1, b'same' if d==bytes(range(256)) else repr(d).encode())")
    t.expect("go")
    t.send(bytes(range(256)))
    t.expect("same")


def test_a_lot_of_output_on_a_terminal(pale, box, terminal):
    t = terminal("exec", "-it", box, "--", "sh", "-c", "seq 1 100000; echo the end")
    t.expect("99999\r\n100000\r\nthe end", timeout=30)
    assert t.wait() == 0


def test_shell_verb_opens_a_login_shell(pale, box, terminal):
    t = terminal("shell", box)
    t.expect(r"[$#] ")
    t.line("echo $0; shopt -q login_shell && echo login; pwd")
    t.expect("bash")
    t.expect("login")
    t.expect("/home/agent")
    t.line("exit 3")
    assert t.wait() == 3


def test_run_with_a_terminal(terminal):
    t = terminal("run", "-it", "--", "sh", "-c", "read x; echo got $x")
    time.sleep(0.2)
    t.line("word")
    t.expect("got word")
    assert t.wait() == 0


@pytest.mark.skipif(not any(shutil.which(v) for v in ("vim", "vi", "vim.tiny")), reason="no vi is installed")
def test_full_screen_editor(pale, box, terminal):
    vi = next(v for v in ("vim", "vim.tiny", "vi") if shutil.which(v))
    t = terminal("exec", "-it", box, "--", vi, "-u", "NONE", "-n", "f.txt")
    t.expect(r"f\.txt")
    t.send("ihello from the box\x1b")
    time.sleep(0.2)
    t.resize(30, 100)
    os.kill(t.process.pid, signal.SIGWINCH)
    time.sleep(0.2)
    t.send(":wq\r")
    assert t.wait() == 0
    assert pale.ok("cat", box, "f.txt").text == "hello from the box\n"
    assert t.settings() == t.before


def test_full_screen_top(pale, box, terminal):
    if not shutil.which("top"):
        pytest.skip("top is not installed")
    t = terminal("exec", "-it", box, "--", "top", "-d", "0.2")
    t.expect("COMMAND")
    t.send("q")
    assert t.wait() == 0 and t.settings() == t.before


def test_inside_tmux(pale, box, root):
    """A terminal that a program other than Python's pty drives: pale in a tmux window of the host, typed at by send-keys."""
    if not shutil.which("tmux"):
        pytest.skip("tmux is not installed")
    sock = str(root / "tmux")

    def tmux(*args):
        return subprocess.run(["tmux", "-S", sock, "-f", "/dev/null", *args], env=pale.env, capture_output=True, text=True, timeout=20)

    done = tmux("new-session", "-d", "-x", "100", "-y", "30", f"{pale.program} exec -it {box} -- bash --norc -i; sleep 30")
    assert done.returncode == 0, done
    try:
        screen = lambda: tmux("capture-pane", "-p").stdout
        assert wait_until(lambda: "$" in screen(), 10)
        tmux("send-keys", "stty size; echo in-$((40+2))", "Enter")
        assert wait_until(lambda: "in-42" in screen() and "100" in screen(), 10), screen()
        tmux("resize-window", "-x", "90", "-y", "25")
        tmux("send-keys", "clear; stty size", "Enter")
        assert wait_until(lambda: "25 90" in screen(), 10), screen()
    finally:
        tmux("kill-server")


