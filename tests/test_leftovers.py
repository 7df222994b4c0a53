# SPDX-License-Identifier: Apache-2.0
"""The judge of what a run leaves: what bears the run's mark is told, and what is somebody else's is not."""
import contextlib
import os
import pathlib
import pwd
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import types

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tools"))
import leftovers  # noqa: E402
from harness import wait_until  # noqa: E402

CLEAN = {"PATH": os.environ["PATH"]}


@pytest.fixture
def tag():
    return secrets.token_hex(4)


@contextlib.contextmanager
def process(*words, env=None, name=None):
    """Something that runs and has begun to be what it is."""
    p = subprocess.Popen(["python3", "-c", f"import sys\nif {name!r}: open('/proc/self/comm', 'w').write({name!r})\nprint(flush=True); sys.stdin.read()", *words],
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**CLEAN, **(env or {})})
    try:
        assert p.stdout.read(1) == b"\n"
        yield str(p.pid)
    finally:
        p.stdin.close()
        p.stdout.close()
        p.wait()


def told(tag, uids=(), ids=()):
    return {text.split()[0] for text in leftovers.processes(tag, set(uids), set(ids)).values()}


def test_a_process_is_known_by_the_runs_mark(tag):
    with process(env={"PALE_TEST_TAG": tag}) as a, process(env={"HOME": f"/tmp/plt-{tag}-x/home"}) as b, process(f"/tmp/plt-{tag}-y") as c:
        assert {a, b, c} <= told(tag)


def test_a_process_of_another_run_or_of_nobody_is_not_told(tag):
    other = secrets.token_hex(4)
    with process(env={"PALE_TEST_TAG": other}) as a, process() as b, process(name="pale-init") as c, process(name="pale-keeper", env={"HOME": "/home/me"}) as d:
        assert not {a, b, c, d} & told(tag)
        assert a in told(other)


def test_a_process_of_a_user_of_the_run_is_told(tag):
    with process() as a:
        assert a in told(tag, uids=[os.geteuid()]) and a not in told(tag)


def test_those_who_look_are_not_told(tag):
    assert not {str(os.getpid()), str(os.getppid())} & told(tag, uids=[os.geteuid()])


def test_a_file_is_known_by_its_name(tag):
    places = ("/tmp", "/dev/shm")
    made = [pathlib.Path(tempfile.mkdtemp(prefix=prefix, dir=place)) for place in places for prefix in (f"plt-{tag}-", f".plt-{tag}-", "plt-0000-", "else-")]
    try:
        assert sorted(leftovers.files(tag, set(), places)) == sorted(str(p) for p in made if tag in p.name)
    finally:
        for p in made:
            p.rmdir()


def test_a_box_in_the_users_own_home_is_told_only_if_the_run_has_made_it(tag, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    for box in ("a" * 32, "b" * 32):
        (tmp_path / ".local/state/pale/boxes" / box).mkdir(parents=True)
    assert list(leftovers.files(tag, {"a" * 32}, ())) == [str(tmp_path / ".local/state/pale/boxes" / ("a" * 32))]
    assert not leftovers.files(tag, set(), ())


def test_a_socket_that_nobody_listens_at(tmp_path):
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(str(path))
        s.listen()
        assert not leftovers.nobody_listens(path)
    assert leftovers.nobody_listens(path)


def test_a_user_is_known_by_its_name(tag, monkeypatch):
    names = [f"paletest{tag}r", "paletest0000r", "somebody", f"pale-doctor-{tag}"]
    monkeypatch.setattr(pwd, "getpwall", lambda: [types.SimpleNamespace(pw_name=n) for n in names])
    assert set(leftovers.users(tag)) == {f"paletest{tag}r", f"pale-doctor-{tag}"}


def test_a_mount_is_known_by_the_runs_mark(tag):
    """In a mount namespace of this test's own, as it may be made by whoever runs it."""
    script = ("import sys; sys.path.insert(0, sys.argv[1]); import leftovers, subprocess\n"
              "for p in sys.argv[3:]: subprocess.run(['mount', '-t', 'tmpfs', 'x', p], check=True)\n"
              "print('\\n'.join(v.split()[4] for v in leftovers.mounts(sys.argv[2], set()).values()))")
    places = [tempfile.mkdtemp(prefix=prefix) for prefix in (f"plt-{tag}-", "plt-0000-", "else-")]
    try:
        done = subprocess.run(["unshare", "-Urm" if os.geteuid() else "-m", sys.executable, "-c", script, str(pathlib.Path(leftovers.__file__).parent), tag, *places],
                              capture_output=True, text=True, timeout=60, check=False)
        if done.returncode:
            pytest.skip("no mount namespace can be made here: " + done.stderr.strip()[-200:])
        assert done.stdout.split() == [places[0]]
    finally:
        for p in places:
            os.rmdir(p)


def test_what_is_marked_and_new_is_a_difference_until_it_is_gone(tag):
    before = leftovers.picture(tag)
    path = tempfile.mkdtemp(prefix=f"plt-{tag}-", dir="/tmp")
    with process(env={"PALE_TEST_TAG": tag}) as pid:
        new = leftovers.difference(before, tag, seconds=0)
        assert new["files"] == [path] and [p.split()[0] for p in new["processes"]] == [pid]
    shutil.rmtree(path)
    assert wait_until(lambda: not any(leftovers.difference(before, tag, seconds=0).values()))
