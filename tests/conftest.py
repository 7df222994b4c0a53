# SPDX-License-Identifier: Apache-2.0
"""Every test gets a pale with folders of its own, a time it must end within, and a look at what it left."""
import contextlib
import os
import pathlib
import pwd
import secrets
import shutil
import signal
import sys
import tempfile

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import harness  # noqa: E402
import rest  # noqa: E402
from rest import serving  # noqa: E402

USUAL_SECONDS = 120


def pytest_generate_tests(metafunc):
    if "wall" not in metafunc.fixturenames:
        return
    mark = metafunc.definition.get_closest_marker("weaken")
    sides = ["held"] + (list(mark.args) if mark else [])
    metafunc.parametrize("wall", sides, indirect=True, ids=["held"] + ["weak-" + s.replace(",", "-") for s in sides[1:]])


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    mark = item.get_closest_marker("limit")
    seconds = mark.args[0] if mark else USUAL_SECONDS

    def too_long(*_):
        raise AssertionError(f"the test did not end within {seconds} s")

    old = signal.signal(signal.SIGALRM, too_long)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, old)


@pytest.fixture(scope="session")
def session_root():
    root = tempfile.mkdtemp(prefix=f"plt-{os.environ.get('PALE_TEST_TAG', 'x')}-", dir=harness.TMP)
    yield pathlib.Path(root)
    left = harness.all_gone(root)
    shutil.rmtree(root, ignore_errors=True)
    assert not left, f"left at the end of the session: {left}"
    assert not os.path.exists(root), "the session's folder could not be removed"


@pytest.fixture
def root(session_root, request):
    """A short folder for one test."""
    path = pathlib.Path(tempfile.mkdtemp(dir=session_root, prefix=""))
    yield path
    harness.remove_root(path)
    assert not path.exists(), f"{path} could not be removed"


@pytest.fixture
def canary():
    """A word that exists nowhere else."""
    return "canary-" + secrets.token_hex(12)


@contextlib.contextmanager
def folder_at_home():
    homes = [pwd.getpwuid(os.geteuid()).pw_dir, os.path.expanduser("~")]
    if "PALE_TEST_TMP" in os.environ:  # there are the homes that were made for the tests; root's is another
        homes = homes[::-1]
    home = next(h for h in homes if os.access(h, os.W_OK))
    path = pathlib.Path(tempfile.mkdtemp(prefix=f".plt-{os.environ.get('PALE_TEST_TAG', 'x')}-", dir=home))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def hostdir():
    """A folder of the host below the user's own home, as projects are."""
    with folder_at_home() as path:
        yield path


@pytest.fixture(scope="module")
def project_dir():
    """The same for all tests of a file."""
    with folder_at_home() as path:
        yield path


@pytest.fixture(scope="session")
def pale_at():
    """For a pale in a root of its own."""
    return pale_in


@contextlib.contextmanager
def pale_in(root):
    """The built pale; whatever it started must be gone once its boxes are removed."""
    if not os.access(harness.BUILD / "pale", os.X_OK):
        pytest.skip(f"{harness.BUILD}/pale is not built")
    p = harness.Pale(root)
    try:
        yield p
    finally:
        trouble = p.end()
        left = harness.all_gone(root)
        for pid in left:
            harness.kill_quietly(pid)
        ids = p.ids()
        if "PALE_TEST_IDS" in os.environ:
            with open(os.environ["PALE_TEST_IDS"], "a") as f:
                f.writelines(i + "\n" for i in sorted(ids))
        groups = harness.wait_until(lambda: not left_groups(ids)) or left_groups(ids)
        assert not trouble, trouble
        assert not left, f"processes left behind: {left}"
        assert groups is True, f"cgroups left behind: {groups}"
        assert not p.boxes(), "data folders left behind"
        assert not list((root / "run").glob("pale/*.sock")), "sockets left behind"


@pytest.fixture
def pale(root):
    with pale_in(root) as p:
        yield p


@pytest.fixture
def daemon_of():
    """For a pale that is not the usual one."""
    return serving


@pytest.fixture
def daemon(pale):
    """A daemon that serves, and is ended with all its boxes."""
    with serving(pale) as d:
        yield d.serve()


@pytest.fixture
def idle_daemon(pale):
    """One that does not run yet."""
    with serving(pale) as d:
        yield d


@pytest.fixture(scope="module")
def shared_daemon(session_root):
    """One for all tests of a file, served on a port too: (daemon, port)."""
    root = pathlib.Path(tempfile.mkdtemp(dir=session_root, prefix=""))
    try:
        with pale_in(root) as p, serving(p) as d:
            yield d, d.on_port()
    finally:
        harness.remove_root(root)


@pytest.fixture
def api(daemon):
    """The user, over the socket."""
    return daemon.rest


def left_groups(ids):
    return [g for g in harness.cgroups() if any(i in os.path.basename(g) for i in ids)]


class Wall:
    """One side of a leak case: the real wall, or its weakened twin in which the same attack must succeed."""

    def __init__(self, pale, weakened):
        self.pale, self.weakened = pale, weakened

    def judge(self, leaked, what=""):
        if self.weakened:
            assert leaked, f"weakened by {self.weakened}, yet no leak was seen: this case proves nothing ({what})"
        else:
            assert not leaked, f"leak: {what}"


@pytest.fixture
def wall(pale, request):
    if request.param == "held":
        yield Wall(pale, None)
        return
    if not os.access(harness.WEAK / "pale", os.X_OK):
        pytest.skip(f"{harness.WEAK}/pale, the weakened build, is not built")
    twin = pale.weakened(request.param)
    yield Wall(twin, request.param)
    trouble = twin.end()
    assert not trouble, trouble


@pytest.fixture
def terminal(pale):
    """terminal(*args): pale on a terminal of its own."""
    opened = []

    def start(*args, **more):
        t = harness.Terminal([pale.program, *map(str, args)], {**pale.env, **more.pop("env", {})}, cwd=pale.home, **more)
        opened.append(t)
        return t

    yield start
    for t in opened:
        t.close()


@pytest.fixture
def box(pale):
    return pale.create("b")
