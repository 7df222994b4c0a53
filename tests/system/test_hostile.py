# SPDX-License-Identifier: Apache-2.0
"""Clear answers, no hang, no orphan: floods, bombs, killed clients, keepers and inits, a full disk, garbage on the socket."""
import fcntl
import os
import re
import resource
import signal
import socket
import subprocess
import threading
import time

import pytest

from harness import REAL_ROOT, processes_of, wait_until


# --- floods ---

@pytest.mark.once
@pytest.mark.limit(100)
def test_more_output_than_32_bits_count_to_a_fast_reader(pale):
    box = pale.create("b", "--output", "64M")
    began = time.monotonic()
    done = pale.exec(box, "head", "-c", str(5 << 30), "/dev/zero", timeout=90)
    assert done.code == 0 and len(done.out) == 64 << 20
    assert re.search(r"output cut at 64MiB; (4\.9|5)\S* ?GiB more were dropped", done.errors), done.errors[-300:]
    assert time.monotonic() - began < 60


def test_endless_output_to_a_slow_reader_blocks_nobody_else(pale):
    box = pale.create("b", "--output", "1G")
    p = pale.start("exec", box, "--", "yes")
    time.sleep(0.5)
    p.stdout.read(4096)
    worst = 0
    for _ in range(20):
        began = time.monotonic()
        assert pale.exec(box, "echo", "hi").text == "hi\n"
        worst = max(worst, time.monotonic() - began)
        p.stdout.read(4096)
    assert worst < 2, worst
    keeper = pale.info(box)["keeper_pid"]
    rss = int(re.search(r"VmRSS:\s+(\d+)", open(f"/proc/{keeper}/status").read())[1])
    assert rss < 20000, f"the keeper holds {rss} KiB"
    p.kill()
    p.wait()
    assert wait_until(lambda: pale.sh(box, "pgrep -x yes").code == 1)


def test_reader_that_never_reads_does_not_stop_a_time_out(pale, box):
    p = pale.start("exec", "--timeout", "1s", box, "--", "yes")
    assert wait_until(lambda: pale.sh(box, "pgrep -x yes").code == 1, 10)
    p.stdout.close()
    p.stdout = None
    p.wait(10)


def test_command_that_reads_no_input_blocks_nobody(pale, box):
    p = pale.start("exec", "-i", box, "--", "sleep", "60", stdin=subprocess.PIPE)
    def feed():
        try:
            while True:
                p.stdin.write(b"x" * 65536)
        except (OSError, ValueError):
            pass
    t = threading.Thread(target=feed, daemon=True)
    t.start()
    time.sleep(0.5)
    assert pale.exec(box, "echo", "hi").text == "hi\n"
    p.kill()
    p.wait()
    t.join(5)


def all_at_once(pale, count, *args):
    """Starts `count` commands that each say their number, into files: pipes of ten thousand would be too many descriptors."""
    ps = []
    for i in range(count):
        with open(pale.root / f"said-{i}", "wb") as said:
            ps.append(subprocess.Popen([pale.program, *args, "--", "echo", str(i)], stdin=subprocess.DEVNULL, stdout=said, stderr=said, env=pale.env))
    codes = [p.wait(300) for p in ps]
    said = [(pale.root / f"said-{i}").read_bytes() for i in range(count)]
    wrong = [(i, code, text) for i, (code, text) in enumerate(zip(codes, said)) if code or text != b"%d\n" % i]
    assert not wrong, (len(wrong), wrong[:5])


@pytest.mark.limit(400)
def test_many_execs_at_once(pale, box):
    """All channels are taken while they come, so that they really wait together."""
    count = int(os.environ.get("PALE_MANY", "300"))
    for _ in range(256):
        pale.ok("exec", "-d", box, "--", "sleep", str(1 + count // 400))
    all_at_once(pale, count, "exec", "-q", box)
    assert pale.exec(box, "true").code == 0


@pytest.mark.limit(110)
def test_many_one_shot_boxes_at_once(pale):
    all_at_once(pale, 100, "run", "-q")


def test_more_commands_than_channels_wait_their_turn(pale, box):
    count = 400
    ps = [subprocess.Popen([pale.program, "exec", "-q", box, "--", "sleep", "0.5"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           env=pale.env) for _ in range(count)]
    results = [(p.wait(60), p.communicate()[1]) for p in ps]
    bad = [r for r in results if r[0] != 0]
    assert not bad, (len(bad), bad[:3])


@pytest.mark.basic
@pytest.mark.skipif(os.geteuid() == 0, reason="the kernel gives root's pipes their full length always")
def test_long_arguments_when_the_user_has_many_pipes(pale):
    """Beyond a thousand pipes of one user the kernel makes short ones, which hold a part of a request only."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    pipes = []
    try:
        while len(pipes) < 1500 and (not pipes or fcntl.fcntl(pipes[-1][0], fcntl.F_GETPIPE_SZ) >= 65536):
            pipes.append(os.pipe())
        if fcntl.fcntl(pipes[-1][0], fcntl.F_GETPIPE_SZ) >= 65536:
            pytest.skip("this kernel makes no short pipes")
        box = pale.create("b")
        for _ in range(5):
            assert pale.exec(box, "sh", "-c", "echo ${#1}", "sh", "x" * 50000).text == "50000\n"
            assert pale.exec(box, "echo", "short").text == "short\n"
    finally:
        for pair in pipes:
            os.close(pair[0]), os.close(pair[1])
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.limit(60)
def test_killed_spares_take_nothing_with_them(pale, box):
    """The process that waits for the next command has the commands' user, so any of them can kill it."""
    for _ in range(270):
        pale.exec(box, "sh", "-c", "sleep 0.012; kill -9 -1")
    p = pale.start("exec", "-q", box, "--", "sleep", "1")
    time.sleep(0.2)
    assert pale.exec(box, "echo", "beside").text == "beside\n"
    assert p.wait(10) == 0


def test_a_command_that_kills_all_does_not_kill_the_next(pale, box):
    """Its spare may have the request already and die before it begins."""
    for _ in range(200):
        pale.exec(box, "sh", "-c", "kill -9 -1")
        assert pale.exec(box, "cat", flags=["-i"], input=b"still here").text == "still here"


def test_a_signal_after_the_end_loses_nothing(pale, box):
    p = pale.start("exec", "-q", box, "--", "sh", "-c", "head -c 180000 /dev/zero; exit 7")
    time.sleep(0.5)  # the command has ended; its output and its result are under way to a client that does not read
    p.send_signal(signal.SIGUSR1)
    time.sleep(0.1)
    out, err = p.communicate(timeout=20)
    assert (len(out), p.returncode) == (180000, 7), err


def test_arguments_up_to_the_limit_and_beyond(pale, box):
    assert pale.exec(box, "sh", "-c", "echo ${#1}", "sh", "x" * 60000).text == "60000\n"
    done = pale.exec(box, "echo", *["x" * 100000] * 5)
    assert done.code in (0, 125, 126), done
    assert done.code == 0 or "longer than" in done.errors or "too long" in done.errors
    assert pale.exec(box, "true").code == 0


# --- the killed ---

@pytest.mark.basic
def test_client_killed_leaves_no_orphan(pale, box):
    p = pale.start("exec", box, "--", "sh", "-c", "sleep 600 & setsid sleep 600 & echo on; wait")
    assert p.stdout.readline() == b"on\n"
    p.kill()
    p.wait(10)
    assert wait_until(lambda: pale.sh(box, "pgrep sleep").code == 1)


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1])
def test_signals_to_the_client_reach_the_command(pale, box, sig):
    p = pale.start("exec", "-q", box, "--", "sh", "-c", "echo on; exec sleep 600")
    assert p.stdout.readline() == b"on\n"
    time.sleep(0.1)
    p.send_signal(sig)
    assert p.wait(10) == 128 + sig


@pytest.mark.basic
def test_client_of_a_one_shot_box_killed(pale, root):
    p = pale.start("run", "--", "sh", "-c", "echo on; sleep 600")
    assert p.stdout.readline() == b"on\n"
    p.kill()
    p.wait()
    assert wait_until(lambda: not processes_of(root)), processes_of(root)


@pytest.mark.basic
def test_keeper_killed(pale, box, root):
    p = pale.start("exec", box, "--", "sh", "-c", "echo on; exec sleep 600")
    assert p.stdout.readline() == b"on\n"
    os.kill(pale.info(box)["keeper_pid"], signal.SIGKILL)
    assert p.wait(5) == 125 and b"keeper" in p.stderr.read()
    assert wait_until(lambda: not processes_of(root)), processes_of(root)
    assert pale.exec(box, "echo", "again").text == "again\n"


@pytest.mark.basic
def test_init_killed(pale, box, root):
    p = pale.start("exec", box, "--", "sh", "-c", "echo on; exec sleep 600")
    assert p.stdout.readline() == b"on\n"
    os.kill(pale.info(box)["init_pid"], signal.SIGKILL)
    assert p.wait(5) in (125, 137)
    said = p.stderr.read().decode()
    assert said.startswith("pale: ") and len(said) > 12, said
    assert pale.exec(box, "echo", "again").text == "again\n"
    assert "box.died" in pale.ok("audit", box).text


def test_keeper_told_to_end_ends_its_box(pale, box, root):
    keeper = pale.info(box)["keeper_pid"]
    os.kill(keeper, signal.SIGTERM)
    assert wait_until(lambda: not processes_of(root))
    assert pale.exec(box, "true").code == 0


@pytest.mark.basic
def test_everything_in_the_box_stopped(pale, box):
    """SIGSTOP of all that a command may signal; the box still answers and stop is quick."""
    p = pale.start("exec", box, "--", "sh", "-c", "sleep 600 & echo on; kill -STOP -1; kill -STOP $$; sleep 600")
    assert p.stdout.readline() == b"on\n"
    time.sleep(0.2)
    assert pale.exec(box, "echo", "hi", timeout=10).text == "hi\n"
    began = time.monotonic()
    pale.ok("stop", box, timeout=10)
    assert time.monotonic() - began < 3


def test_init_stopped_from_outside_does_not_keep_stop_waiting(pale, box, root):
    info = pale.info(box)
    os.kill(info["init_pid"], signal.SIGSTOP)
    began = time.monotonic()
    pale.ok("stop", box, timeout=15)
    assert time.monotonic() - began < 5 and not processes_of(root)


def test_commands_cannot_kill_what_runs_them(pale, box):
    before = pale.info(box)["init_pid"]
    pale.sh(box, "kill -9 -1; kill -9 1; pkill -9 pale; sleep 0.1", timeout=10)
    assert pale.exec(box, "echo", "hi", timeout=10).text == "hi\n"
    assert pale.info(box)["init_pid"] == before


# --- the full disk ---

@pytest.mark.skipif(not REAL_ROOT, reason="needs root to mount a small file system")
@pytest.mark.parametrize("size", ["128k", "1m"])
def test_disk_full(pale, root, size):
    small = root / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=700", "none", str(small)], check=True)
    env = {"XDG_DATA_HOME": str(small / "d"), "XDG_STATE_HOME": str(small / "s")}
    try:
        (small / "ballast").write_bytes(b"x" * 32768)
        done = pale.run("create", "b", env=env)
        if done.code == 0:
            fill = pale.run("exec", "b", "--", "sh", "-c", "cat /dev/zero > f", env=env)
            assert fill.code != 0 and "No space left" in fill.errors, fill
        for _ in range(30):
            done = pale.run("exec", "b", "--", "true", env=env, timeout=10)
            assert done.code in (0, 125), done
            if done.code == 125:
                assert "No space left" in done.errors or "disk full" in done.errors, done
                break
        else:
            done = None
        assert done is not None, "a deed that cannot be put on record must not be done"
        os.unlink(small / "ballast")
        done = pale.run("exec", "b", "--", "rm", "-f", "f", env=env)
        assert pale.run("exec", "b", "--", "echo", "again", env=env).text == "again\n"
        assert pale.run("audit", "--verify", "b", env=env).code == 0
    finally:
        pale.run("rm", "--force", "b", env=env)
        subprocess.run(["umount", "-l", str(small)], check=True)


# --- garbage on the keeper's socket ---

def sock_of(pale, box):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(5)
    s.connect(str(pale.root / "run" / "pale" / (pale.info(box)["id"] + ".sock")))
    return s



@pytest.mark.parametrize("garbage", [b"\0" * 64, b"\xff" * 64, os.urandom(4096), b"GET / HTTP/1.1\r\n\r\n", b"\x00\x00\x00", b"", b"\xff\xff\xff\x7f\x01" + b"A" * 70000,
                                     b"\x08\x00\x00\x00\x01\x00\x00\x00" + b"\xff" * 8])
def test_garbage_harms_only_its_sender(pale, box, garbage):
    before = pale.info(box)["keeper_pid"]
    with sock_of(pale, box) as s:
        try:
            s.sendall(garbage)
            s.shutdown(socket.SHUT_WR)
            while s.recv(65536):
                pass
        except OSError:
            pass
    assert pale.exec(box, "echo", "hi").text == "hi\n"
    assert pale.info(box)["keeper_pid"] == before


def test_every_first_byte_and_length(pale, box):
    path = str(pale.root / "run" / "pale" / (pale.info(box)["id"] + ".sock"))
    for kind in range(256):
        if not os.path.exists(path):  # one of them asks the box to stop
            assert pale.exec(box, "true").code == 0
        with socket.socket(socket.AF_UNIX) as s:
            try:
                s.connect(path)
                s.sendall(bytes([3, 0, 0, 0, kind, 0, 0, 0]) + b"abc" + bytes([kind]) * 16)
                s.settimeout(0.02)
                s.recv(4096)
            except OSError:
                pass
    assert pale.exec(box, "echo", "hi").text == "hi\n"


def test_many_silent_connections(pale, box):
    held = []
    try:
        for _ in range(200):
            held.append(sock_of(pale, box))
    except OSError:
        pass
    assert pale.exec(box, "echo", "hi", timeout=10).text == "hi\n"
    for s in held:
        s.close()


@pytest.mark.skipif(not REAL_ROOT, reason="needs root to become another user")
def test_other_users_do_not_reach_the_socket(pale, box):
    path = str(pale.root / "run" / "pale" / (pale.info(box)["id"] + ".sock"))
    script = f"import socket; s=socket.socket(socket.AF_UNIX); s.connect({path!r})"
    done = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "/usr/bin/python3", "-c", script], capture_output=True, text=True)
    assert done.returncode != 0 and "Permission" in done.stderr




@pytest.mark.basic
def test_rm_removes_whatever_a_box_has_made(pale, hostdir):
    """Deeper than descriptors reach, closed, of the box's other ids, and links that lead out."""
    (hostdir / "kept").write_text("kept")
    box = pale.create("b")
    dig = """import os, sys
for top in ('/home/agent/', '/tmp/'):
    os.mkdir(top + sys.argv[1]); os.chdir(top + sys.argv[1])
    for i in range(700):
        open('f', 'w').close(); os.mkdir('closed'); os.mkdir('closed/in', 0); os.chmod('closed', 0); os.mkdir('d'); os.symlink(sys.argv[2], 'link'); os.chdir('d')
    os.chmod(top + sys.argv[1], 0o500)"""
    assert pale.py(box, "import os; os.chmod('/home/agent', 0o777)").code == 0
    for user in ("agent", "root"):
        done = pale.exec(box, "python3", "-c", dig, user, str(hostdir), flags=["--user", user])
        assert done.code == 0 or user == "root" and done.code == (1 if REAL_ROOT else 125), done
    pale.ok("rm", box)
    assert not pale.boxes() and (hostdir / "kept").read_text() == "kept"
