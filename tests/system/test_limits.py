# SPDX-License-Identifier: Apache-2.0
"""A limit that was asked for holds, or the box does not start; the box outlives the command that ran into it."""
import json
import os
import re
import time

import pytest

from harness import REAL_ROOT, cgroups, wait_until

EAT = "x = []\nwhile True: x.append(bytearray(b'x' * (8 << 20)))"
SPIN = "while True: pass"


def has_cgroup(pale):
    done = pale.run("run", "--memory", "64M", "--", "true")
    if done.code == 0:
        return True
    assert done.code == 125 and "memory" in done.errors and "pale doctor" in done.errors, done
    return False


def box_with(pale, *flags):
    if not has_cgroup(pale):
        pytest.skip("no cgroup may be written here")
    return pale.create("b", *flags)


# --- memory ---

@pytest.mark.basic
def test_memory_asked_for_holds_or_is_refused_with_the_remedy(pale):
    if has_cgroup(pale):
        r = pale.json("run", "--json", "--memory", "64M", "--", "python3", "-c", EAT, expect=137)
        assert r["out_of_memory"] is True and "out of memory: the box's limit is 64MiB" in r["message"]
    else:
        done = pale.run("create", "b", "--memory", "64M")
        assert done.code == 125 and "cannot be held here" in done.errors and "pale doctor" in done.errors
        assert pale.boxes() == []


def test_oom_kills_the_command_not_the_box(pale):
    box = box_with(pale, "--memory", "64M")
    before = pale.info(box)["init_pid"]
    done = pale.py(box, EAT)
    assert done.code == 137 and "out of memory: the box's limit is 64MiB" in done.errors, done
    assert pale.exec(box, "echo", "alive").text == "alive\n" and pale.info(box)["init_pid"] == before
    assert "oom" in pale.ok("audit", "--json", box).text


def test_oom_of_a_grandchild_is_told(pale):
    box = box_with(pale, "--memory", "64M")
    r = pale.json("exec", "--json", box, "--", "sh", "-c", 'python3 -c "$0"; echo after', EAT, expect=0)
    assert r["out_of_memory"] is True and "after" in r["stdout"]["data"]


def test_inspect_says_who_holds_the_memory(pale, box):
    by = pale.info(box)["memory_limit_held_by"]
    assert by in ("cgroup v1", "cgroup v2", "the keeper's watchdog")


def test_default_memory_limit_of_a_one_shot_box_is_watched(pale):
    """4 GiB by default: more than a test may take, so only that a smaller one by policy file with a default is not weaker."""
    assert "watchdog" not in pale.ok("run", "--", "true").errors


# --- processes ---

@pytest.mark.basic
def test_fork_bomb_meets_the_limit_and_the_box_lives(pale):
    box = pale.create("b", "--processes", "40")
    script = """import os, time
n = 0
try:
    while True:
        if os.fork() == 0: time.sleep(30)
        n += 1
except OSError as e: print(n, e.errno, flush=True)
os.killpg(0, 9)"""
    done = pale.py(box, script, timeout=20)
    count, error = done.text.split()
    assert 30 <= int(count) <= 44 and error == "11", done
    assert pale.exec(box, "echo", "alive").text == "alive\n"


def test_classic_fork_bomb_times_out_and_leaves_nothing(pale):
    box = pale.create("b", "--processes", "60")
    done = pale.exec(box, "bash", "-c", "f() { f | f & }; f; sleep 60", flags=["--timeout", "2s"], timeout=30)
    assert done.code == 124
    assert wait_until(lambda: pale.sh(box, "ps ax --no-headers -o comm | grep -c '^bash'").text == "0\n", 5)


def test_threads_count_as_processes(pale):
    box = pale.create("b", "--processes", "30")
    script = """import threading, time
n = 0
try:
    for i in range(100):
        threading.Thread(target=time.sleep, args=(3,), daemon=True).start(); n += 1
except RuntimeError: pass
print(n)"""
    assert 15 <= int(pale.py(box, script).text) <= 34


# --- CPU ---

def test_cpu_seconds_of_one_process(pale):
    box = pale.create("b", "--cpu", "1")
    began = time.monotonic()
    done = pale.py(box, SPIN, timeout=30)
    assert done.code in (137, 152) and re.search(r"killed: it used its 1(\.00)?s of CPU time", done.errors), done
    assert time.monotonic() - began < 10
    assert pale.exec(box, "echo", "alive").text == "alive\n"


def test_cpu_seconds_of_a_tree(pale):
    box = pale.create("b", "--cpu", "1")
    done = pale.sh(box, "for i in 1 2 3 4; do setsid python3 -c 'while True: pass' & done; wait", timeout=30)
    assert done.code == 137 and "CPU time" in done.errors, done
    cpu = float(re.search(r"cpu=([\d.]+)s", done.errors)[1])
    assert 0.8 <= cpu < 4, done
    assert pale.sh(box, "pgrep python3").code == 1


def test_cpu_seconds_of_short_lived_children(pale):
    """A tree of children that each end long before the limit; their time is counted all the same."""
    box = pale.create("b", "--cpu", "1")
    began = time.monotonic()
    done = pale.sh(box, "while :; do python3 -c 'for i in range(1000000): pass'; done", timeout=30)
    assert done.code == 137 and "CPU time" in done.errors and time.monotonic() - began < 15, done


DISOWN = """import os, signal, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
while True:
    if os.fork() == 0:
        end = time.monotonic() + 0.004
        while time.monotonic() < end: pass
        os._exit(0)
    time.sleep(0.005)"""


def test_cpu_seconds_of_children_nobody_waits_for(pale):
    """The kernel adds their time to no process; only a control group has it."""
    box = box_with(pale, "--cpu", "1")
    began = time.monotonic()
    done = pale.py(box, DISOWN, flags=["--timeout", "20s"])
    assert done.code == 137 and "CPU time" in done.errors and time.monotonic() - began < 15, done
    assert pale.exec(box, "echo", "alive").text == "alive\n"


def test_cpu_seconds_of_what_a_command_leaves_running(pale):
    box = pale.create("b", "--cpu", "1")
    assert pale.exec(box, "sh", "-c", 'python3 -c "$0" & echo left', SPIN).text == "left\n"
    assert wait_until(lambda: pale.exec(box, "pgrep", "-c", "python3").text == "0\n", 10)


def test_time_of_what_a_command_leaves_running(pale, box):
    assert pale.ok("exec", "-T", "4s", box, "--", "sh", "-c", "sleep 777 & until pgrep -x sleep > /dev/null; do :; done; echo left").text == "left\n"
    assert pale.exec(box, "pgrep", "-c", "sleep").text == "1\n"
    assert wait_until(lambda: pale.exec(box, "pgrep", "-c", "sleep").text == "0\n", 20)


def test_cpu_share(pale):
    if not has_cgroup(pale):
        assert pale.run("run", "--cpus", "0.5", "--", "true").code == 125
        return
    box = pale.create("b", "--cpus", "0.2")
    r = pale.json("exec", "--json", "--timeout", "2s", box, "--", "python3", "-c", SPIN, expect=124)
    assert r["cpu_ms"] < 900, r


# --- time ---

HARD_TO_KILL = """import os, signal, time
for s in range(1, 65):
    try: signal.signal(s, signal.SIG_IGN)
    except (OSError, ValueError): pass
for i in range(3):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.setsid()
            while True: time.sleep(1)
        os._exit(0)
print('started', flush=True)
time.sleep({})"""


@pytest.mark.basic
def test_timeout_kills_every_descendant(pale, box):
    began = time.monotonic()
    done = pale.py(box, HARD_TO_KILL.format(60), flags=["--timeout", "1s"])
    assert done.code == 124 and done.text == "started\n" and time.monotonic() - began < 6
    assert pale.sh(box, "pgrep python3").code == 1


def test_descendants_do_not_outlive_the_client(pale, box):
    p = pale.start("exec", box, "--", "python3", "-c", HARD_TO_KILL.format(60))
    assert p.stdout.readline() == b"started\n"
    p.kill()
    p.wait()
    assert wait_until(lambda: pale.sh(box, "pgrep python3").code == 1, 6)


def test_daemon_of_a_command_that_ended_may_stay_until_its_box_ends(pale, box):
    """What a finished command left running belongs to the box and ends with it."""
    done = pale.py(box, HARD_TO_KILL.format(0))
    assert done.code == 0
    pale.ok("stop", box)
    assert pale.sh(box, "pgrep python3").code == 1


def test_wall_limit_of_the_policy_binds_longer_wishes(pale):
    box = pale.create("b", "--wall", "500ms")
    assert pale.exec(box, "sleep", "60", timeout=10).code == 124
    assert pale.exec(box, "sleep", "60", flags=["--timeout", "1h"], timeout=10).code == 124
    assert pale.exec(box, "true").code == 0


def test_stopped_processes_time_out_too(pale, box):
    done = pale.sh(box, "sleep 60 & kill -STOP $!; kill -STOP $$", flags=["--timeout", "500ms"], timeout=10)
    assert done.code == 124


# --- output and disk ---

def test_output_limit_counts_both_streams(pale):
    box = pale.create("b", "--output", "100K")
    done = pale.sh(box, "head -c 80000 /dev/zero; head -c 80000 /dev/zero >&2", flags=["-q"])
    mark = done.err.rfind(b"[pale: output cut")
    assert mark > 0 and len(done.out) + mark in range(100 * 1024, 100 * 1024 + 200)


def test_output_limit_of_a_detached_command(pale):
    box = pale.create("b", "--output", "10K")
    job = pale.ok("exec", "-d", box, "--", "head", "-c", "1000000", "/dev/zero").text.strip()
    pale.run("wait", box, job)
    assert len(pale.ok("logs", box, job).out) == 10240


@pytest.mark.basic
def test_disk_limit_with_scratch_in_memory(pale):
    box = pale.create("b", "--scratch", "memory", "--disk", "8M")
    done = pale.sh(box, "head -c 20000000 /dev/zero > f; wc -c < f")
    assert "No space left" in done.errors and int(done.text) <= 8 << 20
    done = pale.sh(box, "rm f; head -c 6000000 /dev/zero > f; head -c 6000000 /dev/zero > /tmp/f; cat f /tmp/f /dev/shm/* /run/* 2>/dev/null | wc -c")
    assert int(done.text.split()[-1]) <= 8 << 20, "home and /tmp share one limit"


def test_disk_limit_on_disk_holds_or_is_refused(pale):
    done = pale.run("create", "b", "--disk", "8M")
    if done.code == 0:
        assert "No space left" in pale.sh("b", "head -c 20000000 /dev/zero > f").errors
    else:
        assert done.code == 125 and "disk" in done.errors


@pytest.mark.skipif(not REAL_ROOT, reason="needs root to see every cgroup")
def test_cgroup_goes_with_the_box(pale):
    box = box_with(pale, "--memory", "64M")
    box_id = json.loads(pale.ok("inspect", "--json", box).out)["id"]
    assert [c for c in cgroups() if c.endswith(box_id)]
    pale.ok("stop", box)
    assert not [c for c in cgroups() if c.endswith(box_id)]


def test_limits_of_two_boxes_are_their_own(pale):
    a = pale.create("a", "--processes", "20")
    b = pale.create("c", "--processes", "20")
    p = pale.start("exec", a, "--", "sh", "-c", "for i in $(seq 16); do sleep 9 & done; echo full; wait")
    assert p.stdout.readline() == b"full\n"
    assert pale.sh(b, "for i in $(seq 12); do sleep 0.1 & done; wait; echo fine").text == "fine\n"


def test_files_without_bytes_are_limited_too(pale):
    """Empty files take memory of the kernel's."""
    script = "i=0; while : > /var/tmp/f$i; do i=$((i+1)); [ $i -lt 20000 ] || break; done; echo $i"
    done = pale.run("run", "-q", "--scratch", "memory", "--disk", "8M", "--", "bash", "-c", script)
    assert 500 < int(done.text.split()[-1]) < 4000, done
    script = "for i in $(seq 1 6); do (i=0; while [ $i -lt 5000 ]; do : > /tmp/f.$BASHPID.$i || exit 1; i=$((i+1)); done) & done; wait; ls /tmp | wc -l"
    assert pale.run("run", "-q", "--", "bash", "-c", script).text == "30000\n", "the usual box has room for many"


@pytest.mark.parametrize("way", ["run", "exec", "log"])
def test_much_output_leaves_room_for_the_reason(pale, way):
    """What stands on standard error comes, however full standard output was; each of the two is held to its bound."""
    script = "head -c 3000000 /dev/zero; echo the reason >&2; head -c 3000000 /dev/zero >&2"
    if way == "run":
        done = pale.run("run", "-q", "--output", "1M", "--", "sh", "-c", script)
    else:
        pale.create("b", "--output", "1M")
        done = pale.sh("b", script, flags=["-q"])
    if way == "log":
        job = pale.ok("exec", "-d", "b", "--", "sh", "-c", script).text.strip()
        pale.ok("wait", "b", job)
        done = pale.run("logs", "b", job)
    assert len(done.out) == 1 << 20
    assert b"the reason" in done.err and len(done.err) <= (1 << 20) // 16 + 4096, (len(done.err), done.err[-300:])
