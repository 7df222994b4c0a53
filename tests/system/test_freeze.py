# SPDX-License-Identifier: Apache-2.0
"""freeze and thaw: by a cgroup of version 1 or 2 where the box has one, else by signals. Each is tried in whichever of them are here."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import time

import pytest

import harness
import wire
from harness import REAL_ROOT, Terminal, processes_of, wait_until

COUNT = "i=0; while :; do echo $i; i=$((i+1)); sleep 0.02; done"


def detach(pale, box, *command, flags=()):
    return pale.ok("exec", "--detach", *flags, box, "--", *command).text.strip()


def keeper(pale, box):
    return wire.Keeper(pathlib.Path(pale.env["XDG_RUNTIME_DIR"]) / "pale" / f"{pale.info(box)['id']}.sock")


def state(pale, box):
    (found,) = [b["state"] for b in pale.json("ls", "--json") if b["name"] == box]
    assert found == pale.info(box)["state"]
    return found


def printed(pale, box, job):
    return pale.ok("logs", box, job).out


def stands_still(pale, box, job):
    """Nothing more comes, although much would."""
    time.sleep(0.1)  # what was under way has come
    before = printed(pale, box, job)
    time.sleep(0.3)
    return printed(pale, box, job) == before


def events(pale, box):
    return [r["event"] for r in map(json.loads, pale.ok("audit", "--json", box).out.splitlines())]


@pytest.fixture(params=["as it comes", "signals", "version 2"])
def means(request, pale, root):
    """The pale whose boxes are frozen so."""
    if request.param == "as it comes":
        yield pale
    elif request.param == "signals":
        if not os.access(harness.WEAK / "pale", os.X_OK):
            pytest.skip(f"{harness.WEAK}/pale, which can leave cgroups out, is not built")
        twin = pale.weakened("limits")
        yield twin
        assert not twin.end()
    else:
        if not REAL_ROOT:
            pytest.skip("only root can mount cgroup version 2 where the host has version 1")
        program = root / "pale-v2"
        # The programs must stand beside the one that is called, so this calls that.
        script = 'mount --make-rprivate / && umount -l /sys/fs/cgroup && mount -t cgroup2 none /sys/fs/cgroup && exec "$0" "$@"'
        program.write_text(f"#!/bin/sh\nexec unshare -m sh -c '{script}' {pale.program} \"$@\"\n")
        program.chmod(0o755)
        if subprocess.run(["unshare", "-m", "sh", "-c", script.replace('"$0"', "true")], capture_output=True).returncode:
            pytest.skip("cgroup version 2 cannot be mounted here")
        plain, pale.program = pale.program, str(program)
        yield pale
        pale.end()
        pale.program = plain
        for folder in ("pale/0", "pale"):
            for top in ("/sys/fs/cgroup/unified", "/sys/fs/cgroup"):
                if os.path.exists(f"{top}/cgroup.procs") and os.path.isdir(f"{top}/{folder}"):
                    try:
                        os.rmdir(f"{top}/{folder}")
                    except OSError:
                        pass


def test_frozen_box_stands_still_and_goes_on_where_it_was(means):
    box = means.create("b")
    job = detach(means, box, "sh", "-c", COUNT)
    assert wait_until(lambda: b"3\n" in printed(means, box, job))
    means.ok("freeze", box)
    assert state(means, box) == "frozen" and stands_still(means, box, job)
    means.ok("freeze", box)  # once more is no harm
    assert state(means, box) == "frozen" and stands_still(means, box, job)
    means.ok("thaw", box)
    had = printed(means, box, job)
    assert state(means, box) == "running" and wait_until(lambda: len(printed(means, box, job)) > len(had) + 10)
    means.ok("thaw", box)
    numbers = printed(means, box, job).split()
    assert numbers == [str(i).encode() for i in range(len(numbers))], "a number is missing or came twice"
    assert events(means, box).count("box.freeze") == events(means, box).count("box.thaw") == 1
    assert means.exec(box, "echo", "on").text == "on\n"


def test_what_a_frozen_box_refuses_and_what_works(means):
    box = means.create("b")
    job = detach(means, box, "sh", "-c", "echo here; " + COUNT)
    assert wait_until(lambda: printed(means, box, job).startswith(b"here"))
    means.ok("freeze", box)
    for words in (["exec", box, "--", "true"], ["cat", box, "x"], ["prove", box]):
        done = means.run(*words)
        assert done.code == 125 and "frozen" in done.errors and "pale thaw" in done.errors, done
    refused = means.run("exec", "--json", box, "--", "true").json()
    assert refused["error"]["code"] == "busy"
    assert [r["event"] for r in map(json.loads, means.ok("audit", "--json", box).out.splitlines()) if "frozen" in r.get("reason", "")]
    assert means.json("ps", "--json", box)[0]["state"] == "running"
    means.ok("audit", "--verify", box)


def test_one_command_is_killed_and_the_others_stay_frozen(means):
    box = means.create("b")
    doomed = detach(means, box, "sh", "-c", "sleep 600 & setsid sleep 600 & wait")
    other = detach(means, box, "sh", "-c", COUNT)
    assert wait_until(lambda: printed(means, box, other))
    means.ok("freeze", box)
    means.ok("kill", box, doomed)
    assert means.run("wait", box, doomed).code == 137
    assert state(means, box) == "frozen" and wait_until(lambda: stands_still(means, box, other))
    means.ok("thaw", box)
    assert means.sh(box, "pgrep -c '^sleep$'").text in ("0\n", "1\n"), "the killed one's processes live on"
    had = printed(means, box, other)
    assert wait_until(lambda: len(printed(means, box, other)) > len(had))


def test_wall_time_goes_on_counting(means):
    box = means.create("b")
    job = detach(means, box, "sleep", "60", flags=["--timeout", "600ms"])
    means.ok("freeze", box)
    assert means.run("wait", box, job).code == 124
    assert state(means, box) == "frozen"


@pytest.mark.parametrize("verb", ["stop", "rm"])
def test_frozen_box_can_be_ended(means, verb, root):
    box = means.create("b")
    detach(means, box, "sh", "-c", "sleep 600 & sleep 600")
    waiting = means.start("exec", box, "--", "sleep", "600")
    assert wait_until(lambda: len(means.json("ps", "--json", box)) == 2)
    means.ok("freeze", box)
    began = time.monotonic()
    means.ok(verb, box)
    assert time.monotonic() - began < 3 and not processes_of(root)
    assert waiting.wait(5) == 137


@pytest.mark.parametrize("then", ["ls", "thaw", "stop", "exec"])
def test_killed_keeper_leaves_nothing_frozen(means, root, then):
    """In version 1 a frozen process does not die of any signal: whoever looks at the box next must see to it."""
    box = means.create("b")
    detach(means, box, "sh", "-c", "sleep 600 & sleep 600")
    assert means.sh(box, "sleep 0.1").code == 0
    means.ok("freeze", box)
    info = means.info(box)
    below = {pid for pid in processes_of(root) if pid != info["keeper_pid"]}
    assert len(below) >= 4
    os.kill(info["keeper_pid"], signal.SIGKILL)
    # Until it is gone it may still be connected to, and whoever is learns only that nobody answered.
    assert wait_until(lambda: (harness.stat_of(info["keeper_pid"]) or "Z" * 3)[1] == "Z")
    if then == "exec":
        assert means.exec(box, "echo", "new").text == "new\n"
    else:
        means.ok(then, *([] if then == "ls" else [box]))
        assert state(means, box) == "stopped"
    assert wait_until(lambda: all((harness.stat_of(p) or "Z" * 3)[1] == "Z" for p in below)), "frozen processes are left"


def test_who_was_stopped_before_stays_stopped(means):
    box = means.create("b")
    job = detach(means, box, "sh", "-c", "sleep 0.2; echo $$; kill -STOP $$; echo woken")
    assert wait_until(lambda: printed(means, box, job).count(b"\n") == 1)
    pid = printed(means, box, job).decode().strip()
    assert wait_until(lambda: "T" in means.sh(box, f"grep State: /proc/{pid}/status").text)
    for _ in range(3):
        means.ok("freeze", box)
        means.ok("thaw", box)
    time.sleep(0.2)
    assert b"woken" not in printed(means, box, job), "a thaw has woken a process that had stopped itself"
    assert means.sh(box, f"kill -CONT {pid}").code == 0
    assert wait_until(lambda: b"woken" in printed(means, box, job))


def test_fork_bomb_is_frozen_too(means):
    box = means.create("b", "--processes", "120")
    job = detach(means, box, "sh", "-c", "f() { while :; do (:) & (sleep 0.001; echo x) & wait; done; }; for i in 1 2 3 4 5 6; do f & done; wait")
    assert wait_until(lambda: len(printed(means, box, job)) > 50)
    for _ in range(10):
        means.ok("freeze", box)
        assert stands_still(means, box, job)
        means.ok("thaw", box)
        had = len(printed(means, box, job))
        assert wait_until(lambda: len(printed(means, box, job)) > had)
    means.ok("freeze", box)
    means.ok("kill", box, job)
    assert means.run("wait", box, job).code == 137


def test_shell_on_a_terminal_goes_on(means):
    """Frozen by a cgroup it notices nothing. By signals it may see that its child was stopped, as after ^Z; nothing is lost either way."""
    box = means.create("b")
    t = Terminal([means.program, "shell", box], means.env, cwd=means.home)
    try:
        t.line("PS1='go> '; (sleep 1; echo slept-$((40+2)))")
        time.sleep(0.3)
        for _ in range(3):
            means.ok("freeze", box)
            means.ok("thaw", box)
        t.expect("slept-42")
        t.line("jobs; echo jobs-$((1+1))")
        t.expect("jobs-2")
        by = [r["by"] for r in map(json.loads, means.ok("audit", "--json", box).out.splitlines()) if r["event"] == "box.freeze"]
        assert b"Stopped" not in t.seen and b"Done" not in t.seen or by == ["signals"] * 3, t.seen
        t.line("exit 3")
        assert t.wait() == 3
    finally:
        t.close()


def test_programs_that_wait_in_the_kernel_go_on(means):
    box = means.create("b")
    script = ("import subprocess, threading, time, select, os\n"
              "r, w = os.pipe()\n"
              "done = []\n"
              "ts = [threading.Thread(target=lambda: (time.sleep(1.2), done.append(1))) for _ in range(4)]\n"
              "[t.start() for t in ts]\n"
              "p = subprocess.Popen(['sh', '-c', 'sleep 1; exit 5'])\n"
              "print('up', flush=True)\n"
              "got = select.select([r], [], [], 1.1)\n"
              "[t.join() for t in ts]\n"
              "print(p.wait(), got, len(done))\n")
    job = detach(means, box, "python3", "-c", script)
    assert wait_until(lambda: printed(means, box, job) == b"up\n", 20)
    for _ in range(4):
        means.ok("freeze", box)
        time.sleep(0.1)
        means.ok("thaw", box)
    assert means.run("wait", box, job).code == 0
    assert printed(means, box, job) == b"up\n5 ([], [], []) 4\n"


def test_watcher_hears_of_the_state(means):
    box = means.create("b")
    w = keeper(means, box).ask("ASK_WATCH")
    frames = [w.next()]
    for verb in ("freeze", "thaw"):
        means.ok(verb, box)
        frames.append(w.next())
    assert [(n, b"frozen\0" in d, b"running\0" in d) for n, d in frames] == [("TELL_INFO", on, not on) for on in (False, True, False)]
    w.close()


def test_many_freeze_and_thaw_at_once(means):
    box = means.create("b")
    job = detach(means, box, "sh", "-c", COUNT)
    for _ in range(5):
        ps = [means.start("freeze" if i % 2 else "thaw", box) for i in range(10)]
        assert all(p.wait(20) in (0, 125) for p in ps)
        for p, i in zip(ps, range(10)):
            told = p.stderr.read()
            assert p.returncode == 0 or b"has thawed box b meanwhile" in told, told
    means.ok("freeze", box)
    assert stands_still(means, box, job)
    means.ok("thaw", box)
    had = printed(means, box, job)
    assert wait_until(lambda: len(printed(means, box, job)) > len(had))
    means.ok("audit", "--verify", box)


def test_queued_commands_wait_for_the_thaw(means):
    box = means.create("b", "--processes", "2000")
    connections = [keeper(means, box).exec("sleep", "600", flags=()) for _ in range(256)]
    assert wait_until(lambda: len(means.json("ps", "--json", box)) == 256, 30)
    late = detach(means, box, "echo", "late")
    assert [j["state"] for j in means.json("ps", "--json", box) if str(j["job"]) == late] == ["queued"]
    means.ok("freeze", box)
    connections.pop().close()  # its command is killed, and its place is free
    time.sleep(0.5)
    assert [j["state"] for j in means.json("ps", "--json", box) if str(j["job"]) == late] == ["queued"]
    means.ok("thaw", box)
    assert means.run("wait", box, late).code == 0 and printed(means, box, late) == b"late\n"
    for c in connections:
        c.close()


@pytest.mark.basic
def test_freeze_and_thaw_of_boxes_by_name(pale):
    pale.ok("create", "b", "c")
    assert pale.json("freeze", "--json", "b", "c") == {"frozen": 2}
    assert {state(pale, "b"), state(pale, "c")} == {"frozen"}
    assert pale.json("thaw", "--json", "b", "c") == {"thawed": 2}
    assert {state(pale, "b"), state(pale, "c")} == {"ready"}
    pale.ok("stop", "b")
    done = pale.run("freeze", "b")
    assert done.code == 125 and "not running" in done.errors
    pale.ok("thaw", "b")  # nothing of it is frozen
    assert pale.run("freeze", "nosuch").code == 125
    assert pale.run("freeze").code == 125


def test_timer_that_wakes_its_process_does_not_help_it_for_long(pale):
    """By signals alone the kernel wakes whoever has a timer that sends SIGCONT; it is stopped again."""
    if not os.access(harness.WEAK / "pale", os.X_OK):
        pytest.skip("the weakened build, which can leave cgroups out, is not built")
    if not shutil.which("python3"):
        pytest.skip("needs python3")
    twin = pale.weakened("limits")
    box = twin.create("b")
    script = ("import ctypes, signal, time, os\n"
              "c = ctypes.CDLL(None, use_errno=True)\n"
              "class E(ctypes.Structure): _fields_ = [('v', ctypes.c_long), ('s', ctypes.c_int), ('n', ctypes.c_int), ('pad', ctypes.c_char * 48)]\n"
              "class S(ctypes.Structure): _fields_ = [('is_', ctypes.c_long), ('in_', ctypes.c_long), ('vs', ctypes.c_long), ('vn', ctypes.c_long)]\n"
              "t = ctypes.c_void_p()\n"
              "assert c.timer_create(1, ctypes.byref(E(0, signal.SIGCONT, 0)), ctypes.byref(t)) == 0\n"
              "assert c.timer_settime(t, 0, ctypes.byref(S(0, 300000000, 0, 300000000)), None) == 0\n"
              "while True:\n"
              "    print('x', flush=True)\n"
              "    time.sleep(0.01)\n")
    job = detach(twin, box, "python3", "-c", script)
    assert wait_until(lambda: len(printed(twin, box, job)) > 10, 20)
    twin.ok("freeze", box)
    time.sleep(3)
    info = twin.info(box)
    still = sum((harness.stat_of(p) or ("", "T"))[1] == "T" for _ in range(30) for p in processes_of(twin.root)
                if p not in (info["keeper_pid"], info["init_pid"]) and b"timer_create" in b" ".join(harness.cmdline(p)) and not time.sleep(0.02))
    assert still > 0, "it was never stopped again"
    twin.ok("thaw", box)
    assert not twin.end()
