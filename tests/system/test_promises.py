# SPDX-License-Identifier: Apache-2.0
"""Limits, endings, what we print, the audit, policies, the keeper, the receipt."""
import os
import re
import select
import signal
import socket
import subprocess
import time

import pytest

from harness import REAL_ROOT, processes_of, wait_until


def status(pale, *args):
    done = pale.run(*args, "--", "cat", "/proc/self/status")
    return dict(line.split(":\t", 1) for line in done.text.splitlines() if ":\t" in line), done


def asked_memory_is_held(pale):
    return pale.run("run", "--memory", "64M", "--", "true").code == 0


ESCAPEE = """import os, signal, sys, time
for s in range(1, 65):
    try: signal.signal(s, signal.SIG_IGN)
    except (OSError, ValueError): pass
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        while True: time.sleep(0.1)
    os._exit(0)
print('up', flush=True)
time.sleep(60)"""


NASTY = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e\u200b\r\n\t\x7f"


@pytest.mark.basic
def test_what_cannot_be_held_is_refused(pale):
    if asked_memory_is_held(pale):
        done = pale.run("create", "d", "--disk", "1G")
        if done.code == 0:
            pytest.skip("here a limit on disk is held")
        assert done.code == 125 and "limits.disk" in done.errors and "scratch: memory" in done.errors, done
    else:
        done = pale.run("run", "--memory", "64M", "--", "true")
        assert done.code == 125 and "memory" in done.errors and "doctor" in done.errors


def test_wall_time(pale):
    began = time.monotonic()
    assert pale.run("run", "--wall", "1s", "--", "sleep", "60").code == 124 and time.monotonic() - began < 5


def test_a_fork_chain_that_runs_away_is_caught(pale, box):
    """Each process forks the next and ends: there is never one to point at."""
    done = pale.py(box, "import os, time\nt = time.time()\nwhile True:\n  if os.fork(): os._exit(0)\n  os.setsid()", flags=["--timeout", "1s"], timeout=20)
    assert done.code in (0, 124)
    pale.ok("kill", box, "1") if done.code == 0 and pale.json("ps", "--json", box) else None
    pale.ok("stop", box, timeout=10)
    assert not processes_of(pale.root)


@pytest.mark.basic
@pytest.mark.parametrize("sig, code", [("KILL", 137), ("STOP", 3)])
def test_whoever_harms_its_runner_gets_an_answer(pale, box, sig, code):
    """As pale-init's own id, where there is another: else the kernel refuses."""
    root = ["--user", "root"] if pale.exec(box, "true", flags=["--user", "root"]).code == 0 else []
    done = pale.sh(box, f"setsid sleep 71 & kill -{sig} $PPID; sleep 0.2; exit 3", flags=root, timeout=15)
    assert done.code == code, done
    assert pale.sh(box, "echo next").text == "next\n"
    if sig == "KILL":
        assert wait_until(lambda: "sleep" not in pale.sh(box, "cat /proc/[0-9]*/comm").text)


@pytest.mark.basic
@pytest.mark.parametrize("who", ["keeper_pid", "init_pid"])
def test_a_box_ends_with_its_keeper_and_init(pale, box, who):
    p = pale.start("exec", box, "--", "python3", "-c", ESCAPEE)
    assert p.stdout.readline() == b"up\n"
    os.kill(pale.info(box)[who], signal.SIGKILL)
    p.wait(10)
    assert wait_until(lambda: not processes_of(pale.root)), processes_of(pale.root)


@pytest.mark.basic
def test_a_box_ends_with_its_keeper_even_if_its_init_stands_still(pale, box):
    info = pale.info(box)
    gone = select.poll()
    init = os.pidfd_open(info["init_pid"])
    gone.register(init)
    os.kill(info["init_pid"], signal.SIGSTOP)  # it could not see that its wire is gone
    os.kill(info["keeper_pid"], signal.SIGKILL)
    ended = gone.poll(10000)
    if not ended:
        signal.pidfd_send_signal(init, signal.SIGKILL)
    os.close(init)
    assert ended


def test_a_one_shot_box_ends_with_its_client(pale):
    p = pale.start("run", "--", "python3", "-c", ESCAPEE)
    assert p.stdout.readline() == b"up\n"
    p.kill()
    p.wait()
    assert wait_until(lambda: not processes_of(pale.root))


@pytest.mark.basic
def test_listings_are_inert(pale, box):
    name = "f" + NASTY.replace("\n", "")
    pale.py(box, f"import os; d = {name!r}; open(d, 'w').close(); os.symlink({NASTY!r}, 'link'); open(b'bad\\xff\\x1b[1m', 'w').close()")
    pale.exec(box, "echo", NASTY)
    pale.exec(box, NASTY)
    job = pale.ok("exec", "-d", box, "--", "sh", "-c", "sleep 0", NASTY).text.strip()
    pale.run("wait", box, job)
    outputs = [pale.run(*args) for args in (["files", box], ["files", "--json", box], ["ps", box], ["ps", "--json", box], ["audit", box], ["audit", "--json", box], ["ls"],
                                            ["inspect", box], ["cat", box, NASTY], ["files", box, NASTY], ["exec", "-q", box, "--", NASTY], ["cp", f"{box}:{NASTY}", "/tmp/x"],
                                            ["exec", "-q", "--cwd", "/" + NASTY, box, "--", "true"], ["kill", box, NASTY], ["exec", "--user", NASTY, box, "--", "true"],
                                            [NASTY], ["exec", "--" + NASTY, box], ["create", NASTY], ["inspect", NASTY])]
    for done in outputs:
        text = done.out + done.err
        for bad in (b"\x1b", b"\x07", b"\x9b3", b"\r", b"\x7f", "\u202e".encode(), "\u200b".encode()):
            assert bad not in text, (bad, done)
        text.decode("utf-8")


def test_prove_cannot_be_lied_to_in_escapes(pale, box):
    done = pale.run("prove", box)
    assert b"\x1b" not in done.out


@pytest.mark.basic
def test_the_audit_sees_every_edit(pale, box):
    pale.exec(box, "echo", "one")
    pale.exec(box, "true", flags=["--cwd", "relative"])
    pale.ok("stop", box)
    path = os.path.join(pale.info(box)["state_dir"], "audit")
    good = open(path, "rb").read()
    assert b"exec.refused" in good
    pale.ok("audit", "--verify", box)
    lines = good.splitlines(keepends=True)
    edits = [b"".join(lines[:i] + lines[i + 1:]) for i in range(len(lines))]
    edits += [good.replace(b'"one"', b'"two"'), good[:-2], good + lines[-1], b"", b"".join(reversed(lines))]
    for bad in edits:
        open(path, "wb").write(bad)
        assert pale.run("audit", "--verify", box).code != 0, bad[-200:]
    open(path, "wb").write(good)
    pale.ok("audit", "--verify", box)


def test_the_deed_is_on_record_before_it_takes_effect(pale, box):
    """A command that kills its keeper the moment it starts is still in the log."""
    p = pale.start("exec", box, "--", "sh", "-c", "echo up; sleep 60; : marker-before")
    p.stdout.readline()
    os.kill(pale.info(box)["keeper_pid"], signal.SIGKILL)
    p.wait(10)
    assert "marker-before" in pale.ok("audit", box).text


@pytest.mark.basic
@pytest.mark.parametrize("flags", [["--network", "host"], ["--network", "open", "--yes-host-network"], ["--network", "none", "--allow", "x.org"], ["--network", "none", "-p", "8080:80"], ["--image", "x"], ["--tier", "gvisor"],
                                   ["--tier", "microvm"], ["--volume", "/proc:/x"], ["--volume", "/:/x"], ["--read", "/run"], ["--read", "/proc"], ["--write", "/dev"],
                                   ["--write", "/usr"], ["--write", "/"], ["--volume", "/tmp:/usr"], ["--volume", "/tmp:/etc/x"], ["--volume", "/tmp:/proc/x"]])
def test_a_policy_that_cannot_be_held_is_refused(pale, flags):
    done = pale.run("run", *flags, "--", "true")
    assert done.code == 125 and done.errors.startswith("pale: "), done


def test_a_pale_folder_that_came_with_a_repository_is_no_policy(pale, hostdir):
    project = hostdir / "p"
    (project / ".pale" / "b" / "layers").mkdir(parents=True)
    (project / ".pale" / "b" / "policy").write_text("write /\n")
    done = pale.run("exec", "b", "--", "true", cwd=project)
    assert done.code == 125, done


def test_narrowing_is_what_diff_says(pale, root):
    wide, narrow = root / "w.yaml", root / "n.yaml"
    wide.write_text("limits: {memory: 1G}\nread: [/srv]\n")
    narrow.write_text("limits: {memory: 64M}\n")
    assert "read" in pale.ok("policy", "diff", narrow, wide).text


@pytest.mark.parametrize("text", ["a: &x 1\nb: *x\n", "? [a]\n: b\n", "!!python/object:os.system x\n", "<<: {a: b}\n", "[" * 10000, "a: " + "x" * 3000000,
                                  "\x00\x01\x02", "limits: {memory: 1e999}\n", '{"tier":"native","tier":"native"}', "read: [../etc]\n", "- " * 5000])
def test_hostile_policy_files_are_refused_quickly(pale, root, text):
    f = root / "p.yaml"
    f.write_text(text)
    began = time.monotonic()
    done = pale.run("validate", f, timeout=10)
    assert done.code in (1, 125) and time.monotonic() - began < 5, done
    assert b"\x1b" not in done.out + done.err


def test_a_fifo_or_device_is_no_policy(pale, root):
    os.mkfifo(root / "p.yaml")
    for path in (root / "p.yaml", "/dev/zero", "/", "/proc/self/mem"):
        done = pale.run("validate", path, timeout=10)
        assert done.code in (1, 125), (path, done)


@pytest.mark.basic
def test_a_client_that_does_not_read_stops_itself_alone(pale, box):
    p = pale.start("exec", box, "--", "yes")
    time.sleep(0.3)
    began = time.monotonic()
    assert pale.exec(box, "echo", "hi").text == "hi\n" and time.monotonic() - began < 3
    p.kill()


def test_garbage_on_the_socket_ends_its_sender_alone(pale, box):
    info = pale.info(box)
    for junk in (b"\xff" * 4096, b"\0" * 4096, os.urandom(100000)):
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(str(pale.root / "run" / "pale" / (info["id"] + ".sock")))
            try:
                s.sendall(junk)
            except OSError:
                pass
    assert pale.info(box)["keeper_pid"] == info["keeper_pid"] and pale.exec(box, "true").code == 0


def test_the_socket_is_its_users_alone(pale, box):
    folder = pale.root / "run" / "pale"
    assert folder.stat().st_mode & 0o777 == 0o700
    if REAL_ROOT:
        os.chmod(pale.root, 0o755)
        path = folder / (pale.info(box)["id"] + ".sock")
        done = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "/usr/bin/python3", "-c",
                               f"import socket; socket.socket(socket.AF_UNIX).connect({str(path)!r})"], capture_output=True)
        assert done.returncode != 0


@pytest.mark.basic
def test_no_name_in_tmp_can_be_taken_from_us(pale):
    """Without a runtime folder of the user's: somebody else has made whatever names in /tmp can be guessed."""
    if os.geteuid() == 0 or os.path.exists(f"/run/user/{os.geteuid()}"):
        pytest.skip("this user has a folder for sockets whatever is set")
    taken = f"/tmp/pale-{os.geteuid()}"
    if os.path.exists(taken):
        pytest.skip(f"{taken} is there already")
    os.mkdir(taken, 0o777)
    try:
        done = pale.run("run", "-q", "--", "echo", "fine", env={"XDG_RUNTIME_DIR": ""})
        assert done.text == "fine\n" and os.listdir(taken) == [], done
        folder = pale.root / "state" / "pale" / "run"
        assert folder.stat().st_mode & 0o777 == 0o700
        folder.chmod(0o755)
        done = pale.run("run", "-q", "--", "true", env={"XDG_RUNTIME_DIR": ""})
        assert done.code == 125 and "XDG_RUNTIME_DIR" in done.errors, done
    finally:
        os.rmdir(taken)


def test_a_wall_that_cannot_be_built_runs_nothing(pale, hostdir):
    """A volume that lies inside another and is not there: the last step but one fails."""
    done = pale.run("run", "--volume", f"{hostdir}:/mnt/a", "--volume", f"{hostdir}:/mnt/a/none", "--", "sh", "-c", f"echo ran > {hostdir}/ran; echo ran")
    assert done.code == 125 and "ran" not in done.text
    assert wait_until(lambda: not processes_of(pale.root))


def test_a_release_does_not_read_the_switches(pale):
    done = pale.run("run", "-q", "--", "grep", "Seccomp:", "/proc/self/status", env={"PALE_WEAKEN": "seccomp,caps,root,nonsense"})
    assert done.code == 0 and done.text.split() == ["Seccomp:", "2"]


def test_the_receipt_of_a_good_box(pale, box):
    text = pale.ok("prove", box).text
    assert re.search(r"(\d+) attempts, \1 as they must be, 0 not", text)
