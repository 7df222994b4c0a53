# SPDX-License-Identifier: Apache-2.0
"""Where systemd hands out cgroup v2: every box has a scope of its own, limits are held in it, and it goes with the box."""
import json
import os
import pathlib
import pwd
import re
import shlex
import shutil
import signal
import subprocess
import time

import pytest

from harness import REAL_ROOT, kill_quietly, scopes, wait_until

UNIFIED = os.path.exists("/run/systemd/system") and "cgroup2" in next(
    (line for line in open("/proc/self/mountinfo") if line.split()[4] == "/sys/fs/cgroup"), "")
pytestmark = pytest.mark.skipif(not UNIFIED, reason="systemd does not hand out cgroup v2 here")

UID = os.geteuid()
RUNTIME = f"/run/user/{UID}"
MANAGED = REAL_ROOT or (UID != 0 and os.path.exists(f"{RUNTIME}/systemd/private"))
needs_manager = pytest.mark.skipif(not MANAGED, reason="this user has no manager of systemd's")
# Root of somebody's user namespace is not root to the system's manager.
WHY_NOT = "does not let us in" if UID == 0 else "loginctl enable-linger"
EAT = "x = []\nwhile True: x.append(bytearray(b'x' * (8 << 20)))"


def scope_of(pale, box):
    info = pale.info(box)
    found = [s for s in scopes() if info["id"] in s]
    assert len(found) == 1, (found, info)
    return pathlib.Path(found[0])


def text(path):
    return path.read_text().strip()


@needs_manager
def test_box_has_a_scope_with_the_keeper_in_its_leaf_and_the_box_beside_it(pale):
    box = pale.create("b", "--memory", "64M", "--processes", "50", "--cpus", "0.5")
    assert pale.exec(box, "true").code == 0
    info, scope = pale.info(box), scope_of(pale, box)
    assert re.fullmatch(rf"pale-{info['id']}-{info['keeper_pid']}\.scope", scope.name)
    assert text(scope / "keeper" / "cgroup.procs").split() == [str(info["keeper_pid"])]
    group = scope / info["id"]
    assert str(info["init_pid"]) in text(group / "cgroup.procs").split()
    assert text(group / "memory.max") == str(64 << 20) and text(group / "memory.oom.group") == "0"
    assert text(group / "pids.max") == "104" and text(group / "cpu.max") == "50000 100000"
    assert info["memory_limit_held_by"] == "cgroup v2"


@needs_manager
def test_default_limit_is_held_by_the_kernel(pale, box):
    assert pale.exec(box, "true").code == 0
    assert pale.info(box)["memory_limit_held_by"] == "cgroup v2"
    assert int(text(scope_of(pale, box) / pale.info(box)["id"] / "memory.max")) == 4 << 30


@needs_manager
@pytest.mark.parametrize("runtime", [RUNTIME, None, "/nowhere"])
def test_manager_is_found_whatever_the_environment_says(pale, runtime):
    if runtime == RUNTIME and not os.path.isdir(RUNTIME):
        pytest.skip("this user has no runtime folder")
    if runtime is None:
        del pale.env["XDG_RUNTIME_DIR"]
    elif runtime == RUNTIME:
        pale.env["XDG_RUNTIME_DIR"] = runtime
    done = pale.run("run", "--memory", "64M", "--", "python3", "-c", EAT)
    assert done.code == 137 and "out of memory: the box's limit is 64MiB" in done.errors, done


@needs_manager
def test_oom_ends_the_command_and_not_the_scope(pale):
    box = pale.create("b", "--memory", "64M")
    before = pale.info(box) if pale.exec(box, "true").code == 0 else None
    for _ in range(2):
        assert pale.py(box, EAT).code == 137
    assert pale.info(box)["keeper_pid"] == before["keeper_pid"] and pale.info(box)["init_pid"] == before["init_pid"]


@needs_manager
def test_scope_goes_with_its_box(pale):
    box = pale.create("b", "--memory", "64M")
    pale.exec(box, "true")
    scope = scope_of(pale, box)
    pale.ok("stop", box)
    assert wait_until(lambda: not scope.exists())


@needs_manager
def test_scope_of_a_killed_keeper_goes_and_the_box_starts_again(pale):
    box = pale.create("b", "--memory", "64M")
    for _ in range(5):
        assert pale.exec(box, "echo", "up").text == "up\n"
        keeper, old = pale.info(box)["keeper_pid"], scope_of(pale, box)
        kill_quietly(keeper, signal.SIGKILL)
        done = pale.exec(box, "echo", "again")
        if done.code:
            done = pale.exec(box, "echo", "again")
        assert done.text == "again\n", done
        assert wait_until(lambda: not old.exists())
        scope_of(pale, box)


@needs_manager
def test_one_shot_boxes_leave_no_scope(pale):
    for _ in range(20):
        pale.ok("run", "-q", "--memory", "64M", "--", "true")
    ids = pale.ids()
    assert len(ids) >= 20
    left = [s for s in scopes() if any(i in s for i in ids)]
    assert wait_until(lambda: not [s for s in scopes() if any(i in s for i in ids)], 30), left


@needs_manager
def test_boxes_at_once_have_a_scope_each(pale):
    running = [pale.start("run", "-q", "--memory", "64M", "--", "sh", "-c", "echo up; sleep 20") for _ in range(8)]
    for p in running:
        assert p.stdout.readline() == b"up\n", p.stderr.read()
    ids = pale.ids()
    assert len([s for s in scopes() if any(i in s for i in ids)]) == 8


@needs_manager
def test_doctor_says_over_what_the_limits_are_held(pale):
    rows = {m["name"]: m for m in pale.json("doctor", "--json")["mechanisms"]}
    for name in ("memory", "processes", "CPU share"):
        assert rows[name]["state"] == "ok" and "scope that systemd makes, asked over /run/" in rows[name]["detail"], rows[name]
    assert wait_until(lambda: not [s for s in scopes() if "pale-doctor" in s])


@pytest.mark.skipif(MANAGED, reason="this user has a manager of systemd's")
def test_without_a_manager_what_is_asked_for_is_refused_and_the_default_is_watched(pale):
    for flags in (["--memory", "64M"], ["--cpus", "0.5"]):
        done = pale.run("run", *flags, "--", "true")
        assert done.code == 125 and WHY_NOT in done.errors and "pale doctor" in done.errors, done
    box = pale.create("b")
    assert pale.exec(box, "true").code == 0
    assert pale.info(box)["memory_limit_held_by"] == "the keeper's watchdog"
    rows = {m["name"]: m for m in pale.json("doctor", "--json", expect=None)["mechanisms"]}
    assert rows["memory"]["state"] == "degraded" and WHY_NOT in rows["memory"]["detail"]


# --- a bus that is not there, or is no bus ---

def hidden(pale, prepare, *words):
    """pale in a mount namespace where /run/dbus is an empty folder, after some shell."""
    script = f'mount -t tmpfs none /run/dbus && {{ {prepare}; }} && "$0" "$@"; status=$?; kill $! 2>/dev/null; exit $status'
    return subprocess.run(["unshare", "--mount", "sh", "-c", script, pale.program, *words], env=pale.env, capture_output=True, text=True,
                          timeout=60, check=False)


PEER = """import signal, socket, sys
signal.alarm(40)
s = socket.socket(socket.AF_UNIX)
s.bind('/run/dbus/system_bus_socket')
s.listen(8)
taken = []
while True:
    c, _ = s.accept()
    taken.append(c)
    if sys.argv[1]:
        c.recv(4096)
        c.sendall(sys.argv[1].encode('latin-1').decode('unicode_escape').encode('latin-1'))
"""


def peer(answer):
    """A process that listens where the bus should, and gives everybody this answer or none."""
    return (f"python3 -c {shlex.quote(PEER)} {shlex.quote(answer)} >/dev/null 2>&1 & "
            "for i in $(seq 100); do test -S /run/dbus/system_bus_socket && break; sleep 0.1; done; sleep 0.3")


needs_root = pytest.mark.skipif(not REAL_ROOT, reason="only root can hide the bus")


@needs_root
def test_without_a_bus_the_manager_is_asked_itself(pale):
    done = hidden(pale, "true", "run", "--memory", "64M", "--", "python3", "-c", EAT)
    assert done.returncode == 137 and "out of memory" in done.stderr, done
    rows = {m["name"]: m for m in json.loads(hidden(pale, "true", "doctor", "--json").stdout)["mechanisms"]}
    assert "asked over /run/systemd/private" in rows["memory"]["detail"]


@needs_root
@pytest.mark.parametrize("answer, why", [("", "does not answer in time"), ("REJECTED EXTERNAL\\r\\n", "does not let us in"),
                                         ("OK 00\\r\\nHTTP/1.1 200", "cannot be read")])
def test_a_peer_that_is_no_bus_is_refused_in_time(pale, answer, why):
    began = time.monotonic()
    done = hidden(pale, peer(answer), "run", "--memory", "64M", "--", "true")
    assert done.returncode == 125 and why in done.stderr and "pale doctor" in done.stderr, done
    assert time.monotonic() - began < 20
    assert hidden(pale, peer(answer), "run", "-q", "--", "true").returncode == 0, "a default may be watched"


# --- doctor --fix ---

DROP_INS = pathlib.Path("/etc/systemd/system/user@.service.d")


@pytest.fixture
def managed_user():
    """Somebody with a manager of systemd's, as root finds them."""
    if not REAL_ROOT:
        pytest.skip("only root may change the host")
    user = next((u for u in pwd.getpwall() if u.pw_uid >= 1000 and os.path.exists(f"/run/user/{u.pw_uid}/systemd/private")), None)
    if not user:
        pytest.skip("no user with a manager of systemd's")
    if DROP_INS.exists():
        pytest.skip(f"{DROP_INS} is there: this host was set up by somebody else")
    return user


def systemctl(*words):
    subprocess.run(["systemctl", *words], check=True, timeout=60, capture_output=True)


def controllers(user):
    u = user.pw_uid
    return text(pathlib.Path(f"/sys/fs/cgroup/user.slice/user-{u}.slice/user@{u}.service/cgroup.controllers")).split()


def test_fix_has_nothing_to_do_for_controllers_that_are_delegated(pale, managed_user):
    done = pale.ok("doctor", "--fix", managed_user.pw_name)
    assert "nothing to set up" in done.text and not DROP_INS.exists(), done
    pale.ok("doctor", "--undo", managed_user.pw_name)


@pytest.mark.slow
def test_fix_delegates_a_controller_that_is_missing_and_undo_takes_it_back(pale, managed_user):
    """Older releases hand no CPU controller to users."""
    unit = f"user@{managed_user.pw_uid}.service"
    older = pathlib.Path("/run/systemd/system/user@.service.d/00-older.conf")
    older.parent.mkdir(parents=True)
    older.write_text("[Service]\nDelegate=\nDelegate=memory pids\n")
    try:
        systemctl("daemon-reload")
        systemctl("restart", unit)
        assert "cpu" not in controllers(managed_user)
        done = pale.ok("doctor", "--fix", managed_user.pw_name)
        assert (DROP_INS / "pale-delegate.conf").exists(), done
        systemctl("restart", unit)
        assert "cpu" in controllers(managed_user)
        pale.ok("doctor", "--undo", managed_user.pw_name)
        assert not DROP_INS.exists()
    finally:
        shutil.rmtree(older.parent)
        systemctl("daemon-reload")
        systemctl("restart", unit)
