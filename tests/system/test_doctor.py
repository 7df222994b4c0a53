# SPDX-License-Identifier: Apache-2.0
"""pale doctor: what it says, how it ends, and that --undo takes back exactly what --fix did."""

import contextlib
import fcntl
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import harness
import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("PALE_BUILD", ROOT / "build" / "src"))
PALE = str(BUILD / "pale")
STATES = {"ok", "degraded", "missing"}
FILES = ["/etc/subuid", "/etc/subgid"]
LEDGER = pathlib.Path("/var/lib/pale/doctor-fix.json")
USER = f"pale-doctor-{os.environ.get('PALE_TEST_TAG', 't')}"
PROGRAMS = ["pale", "pale-keeper", "pale-init", "pale-policy", "pale-seal"]

needs_root = pytest.mark.skipif(os.geteuid() != 0 or not os.access("/etc/passwd", os.W_OK), reason="only root may change the host")


HOME = tempfile.TemporaryDirectory(prefix=f"plt-{os.environ.get('PALE_TEST_TAG', 'x')}-doctor-")


def pale(*words, user=None, check=False):
    argv = [f"/home/{user}/bin/pale" if user else PALE, *words]
    env = {"PATH": os.environ["PATH"], "HOME": HOME.name, "XDG_RUNTIME_DIR": HOME.name}
    if user:
        argv = ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups", *argv]
        env = {"PATH": os.environ["PATH"], "HOME": f"/home/{user}"}
    cwd = f"/home/{user}" if user else None
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, env=env, cwd=cwd, check=False)
    if check:
        assert done.returncode == 0, done.stderr
    return done


def snapshot():
    """As the files are, but for lines that other runs of the tests add and remove meanwhile."""
    return {f: b"".join(line for line in pathlib.Path(f).read_bytes().splitlines(keepends=True) if not line.startswith((b"paletest", b"pale-doctor-")) or
                        line.startswith(USER.encode() + b":")) if os.path.exists(f) else None for f in FILES}


@contextlib.contextmanager
def host_alone():
    """The doctor's ledger is the host's, so of all runs of the tests one at a time has it. The lock goes with its holder, and is no file."""
    fd = os.open("/etc", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


@pytest.fixture
def host():
    with host_alone():
        yield


@pytest.fixture
def user(request):
    """An ordinary user without ranges of ids, gone afterwards."""
    if os.geteuid() != 0 or not os.access("/etc/passwd", os.W_OK) or not shutil.which("useradd") or not shutil.which("setpriv"):
        pytest.skip("needs the host's root, useradd and setpriv to make a user")
    request.getfixturevalue("host")
    if LEDGER.exists():
        pytest.skip(f"{LEDGER} is there: this host was fixed by somebody else")
    before = snapshot()
    subprocess.run(["userdel", "-rf", USER], capture_output=True, timeout=60, check=False)
    made = subprocess.run(["useradd", "-m", USER], capture_output=True, text=True, timeout=60, check=False)
    if made.returncode:
        pytest.skip("no user can be made here: " + made.stderr.strip())
    # The build may stand where only root gets.
    subprocess.run(["install", "-D", "-t", f"/home/{USER}/bin", *(BUILD / p for p in PROGRAMS)], timeout=60, check=True)
    for f in FILES:
        lines = pathlib.Path(f).read_bytes().splitlines(keepends=True)
        pathlib.Path(f).write_bytes(b"".join(x for x in lines if not x.startswith(USER.encode() + b":")))
    yield USER
    pale("doctor", "--undo", USER)
    subprocess.run(["userdel", "-rf", USER], capture_output=True, timeout=60, check=False)
    assert snapshot() == before


def claims():
    text = (ROOT / "docs" / "threat-model.md").read_text()
    return set(re.findall(r"^## (C\d+)\. ", text, re.M))


def check_shape(done):
    d = json.loads(done.stdout)
    known = claims()
    assert done.returncode == (0 if d["boxes_can_start"] else 1)
    assert set(d["claims_weakened"]) <= known
    names = [m["name"] for m in d["mechanisms"]]
    assert len(names) == len(set(names)) >= 30
    for m in d["mechanisms"]:
        assert m["state"] in STATES
        assert m["detail"] and "\n" not in m["detail"]
        assert set(m["claims"]) <= known
        if m["state"] != "ok":
            assert m["remedy"]
            assert set(m["claims"]) <= set(d["claims_weakened"])
        if m["required"] and m["state"] == "missing":
            assert not d["boxes_can_start"]
    return d


def test_json_has_every_mechanism_with_known_claims():
    check_shape(pale("doctor", "--json"))


def test_exit_status_agrees_with_a_real_box():
    ran = pale("run", "-q", "--", "true").returncode == 0
    assert (pale("doctor").returncode == 0) == ran


def test_ordinary_user_gets_the_same_shape(user):
    d = check_shape(pale("doctor", "--json", user=user))
    assert d["uid"] != 0
    row = {m["name"]: m for m in d["mechanisms"]}
    assert row["range of ids"]["state"] == "degraded"


def nested(script):
    """pale doctor --json in a user namespace of somebody else, after a script; None where none can be made."""
    probe = subprocess.run(["unshare", "-Urm", "true"], capture_output=True, timeout=20, check=False)
    if probe.returncode:
        return None
    env = {"PATH": os.environ["PATH"], "HOME": HOME.name, "XDG_RUNTIME_DIR": HOME.name}
    return subprocess.run(["unshare", "-Urm", "sh", "-c", f"{script}; exec {PALE} doctor --json"], capture_output=True, text=True,
                          timeout=60, env=env, check=False)


def test_without_user_namespaces_boxes_cannot_start():
    done = nested("echo 0 > /proc/sys/user/max_user_namespaces || exit 9")
    if done is None or done.returncode == 9:
        pytest.skip("user namespaces cannot be switched off in one here")
    d = check_shape(done)
    row = {m["name"]: m for m in d["mechanisms"]}
    assert done.returncode == 1
    assert row["user namespace"]["state"] == "missing" and row["a box"]["state"] == "missing"
    assert {"C1", "C13"} <= set(d["claims_weakened"])


def test_a_masked_proc_is_found():
    if os.geteuid() == 0:
        pytest.skip("as root another mechanism is missing first: ids of a namespace that maps root alone")
    done = nested("mount --bind /dev/null /proc/keys || exit 9")
    if done is None or done.returncode == 9:
        pytest.skip("nothing can be mounted in a user namespace here")
    d = check_shape(done)
    row = {m["name"]: m for m in d["mechanisms"]}
    assert row["procfs"]["state"] == "missing" and not d["boxes_can_start"]


def test_leaves_no_process_behind():
    def mine():
        return [pid for pid in harness.pids() if HOME.name.encode() in harness.read_proc(pid, "environ")]

    pale("doctor")
    assert harness.wait_until(lambda: not mine(), 10), mine()


def test_flags_that_make_no_sense_are_refused():
    for words in (["--fix", "--undo"], ["somebody"], ["--fxi"]):
        assert pale("doctor", *words).returncode == 125


def test_ordinary_user_may_not_change_the_host(user):
    for flag in ("--fix", "--undo"):
        done = pale("doctor", flag, user, user=user)
        assert done.returncode == 125 and "root" in done.stderr


@needs_root
def test_fix_of_a_user_who_is_not_there_changes_nothing(host):
    before = snapshot()
    assert pale("doctor", "--fix", "no-such-user-here").returncode == 125
    assert pale("doctor", "--fix", "root").returncode == 125
    assert snapshot() == before


def test_fix_and_undo_leave_the_host_byte_for_byte(user):
    before = snapshot()
    pale("doctor", "--fix", user, check=True)
    fixed = snapshot()
    for f in FILES:
        assert fixed[f].startswith(before[f])
        assert re.fullmatch(rb"%s:\d+:65536\n" % user.encode(), fixed[f][len(before[f]):])
    ledger = json.loads(LEDGER.read_text())
    assert {s["user"] for s in ledger["steps"]} == {user}
    again = pale("doctor", "--fix", user, check=True)
    assert "already" in again.stdout and json.loads(LEDGER.read_text()) == ledger
    pale("doctor", "--undo", check=True)
    assert snapshot() == before
    assert not LEDGER.exists()


def test_a_file_without_a_last_newline_comes_back_as_it_was(user):
    path = pathlib.Path(FILES[0])
    whole = path.read_bytes()
    try:
        path.write_bytes(whole + b"other-user:700000000:65536")  # nobody else writes there: whoever makes a user for a test asks for the same lock
        before = snapshot()
        pale("doctor", "--fix", user, check=True)
        assert b"65536\n" + user.encode() in path.read_bytes()
        pale("doctor", "--undo", check=True)
        assert snapshot() == before
    finally:
        path.write_bytes(whole)


def test_a_ledger_we_did_not_write_is_refused(user):
    LEDGER.parent.mkdir(exist_ok=True)
    LEDGER.write_text('{"version":1,"steps":[{"do":"rm"}]}\n')
    try:
        before = snapshot()
        assert pale("doctor", "--fix", user).returncode == 125
        assert pale("doctor", "--undo").returncode == 125
        assert snapshot() == before
    finally:
        LEDGER.unlink()


def test_a_memory_limit_of_an_ordinary_user_holds_after_fix(user):
    pale("doctor", "--fix", user, check=True)
    d = json.loads(pale("doctor", "--json", user=user).stdout)
    row = {m["name"]: m for m in d["mechanisms"]}
    if row["memory"]["state"] != "ok":
        pytest.skip("no memory controller can be given to a user here: " + row["memory"]["detail"])
    hungry = "x = bytearray(200 << 20)"
    done = pale("run", "--memory", "64M", "--", "python3", "-c", hungry, user=user)
    assert done.returncode == 137 and "out of memory" in done.stderr
    assert pale("run", "--memory", "64M", "-q", "--", "true", user=user).returncode == 0


def test_undo_waits_for_running_boxes(user):
    pale("doctor", "--fix", user, check=True)
    row = {m["name"]: m for m in json.loads(pale("doctor", "--json", user=user).stdout)["mechanisms"]}
    if row["memory"]["state"] != "ok":
        pytest.skip("no memory controller can be given to a user here: " + row["memory"]["detail"])
    pale("create", "busy", "--memory", "64M", user=user, check=True)
    try:
        done = pale("doctor", "--undo", user)
        assert done.returncode == 125 and "stop" in done.stderr
    finally:
        pale("rm", "busy", user=user, check=True)
    pale("doctor", "--undo", user, check=True)
    assert not LEDGER.exists()
