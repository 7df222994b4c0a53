# SPDX-License-Identifier: Apache-2.0
"""Whoever reads what a box wrote has given up the rest before. A build for tests tries, at that moment, what somebody who took over the reader would;
its twin, which gives up nothing, shows that each attempt would have worked."""
import ctypes
import os
import pathlib
import re
import signal
import time

import harness
import pytest
from rest import query

ABI = ctypes.CDLL(None).syscall(444, None, 0, 1)  # of Landlock
pytestmark = [pytest.mark.skipif(not os.access(harness.WEAK / "pale", os.X_OK), reason="the weakened build is not built"),
              pytest.mark.skipif(ABI < 2, reason=f"Landlock is of ABI {ABI}, and does not hold files here")]
DEEDS = ("read", "write", "exec", "socket")


@pytest.fixture(params=["held", "open"])
def twin(pale, request):
    """Both are of the build for tests: one as it is, one without the lock."""
    other = pale.weakened("tree-lock" if request.param == "open" else "")
    other.env["PALE_WEAKEN"] = "tree-lock,receipt" if request.param == "open" else "receipt"
    other.open = request.param == "open"
    yield other
    trouble = other.end()
    assert not trouble, trouble


class Attempt:
    """One deed, and whether it was done: by its effect, or where it has none by what the hook says."""

    def __init__(self, root, deed):
        self.deed, self.mark = deed, root / f"mark-{deed}"
        self.script = root / "script"
        self.script.write_text(f"#!/bin/sh\n: > {self.mark}\n")
        self.script.chmod(0o700)
        secret = root / "secret"
        secret.write_text("s\n")
        self.env = {"PALE_SECLUDED_TRY": deed + ":" + str({"read": secret, "write": self.mark, "exec": self.script, "socket": "-"}[deed])}

    def was_done(self, told):
        done = self.mark.exists() if self.deed in ("write", "exec") else "secluded: done" in told
        assert done or self.deed not in ("read", "write") or "secluded: refused" in told, told
        self.mark.unlink(missing_ok=True)
        return done


@pytest.fixture
def project(hostdir):
    (hostdir / "a").write_text("one\n")
    time.sleep(0.1)
    return hostdir


def make(twin, project):
    box = twin.create("r", "--project", "review", cwd=project)
    assert twin.sh(box, f"echo more >> {project}/a").code == 0
    return box


@pytest.mark.parametrize("words", [("diff", "--name-only"), ("apply", "--dry-run"), ("apply",)], ids=" ".join)
def test_who_reads_or_lands_what_a_box_changed(twin, project, root, words):
    """A system call that is not on the list ends the process; a file that is not its business cannot be opened, and it goes on."""
    box = make(twin, project)
    for deed in DEEDS:
        attempt = Attempt(root, deed)
        done = twin.run(*words, box, env=attempt.env)
        assert attempt.was_done(done.errors) == twin.open, (deed, done)
        assert done.code == (-signal.SIGSYS if deed in ("exec", "socket") and not twin.open else 0), (deed, done)


def test_who_works_on_layers(twin, project, root):
    """Digests, removal, the copy of a layer that is in use: each by a child, whose end before its time is an error, and nothing is lost by it."""
    box = make(twin, project)
    twin.ok("snapshot", box, "one")
    assert harness.wait_until(lambda: twin.json("snapshots", "--json", box)[0]["state"] == "verified")
    twin.start("exec", box, "--", "sh", "-c", ": > /tmp/up; sleep 60")
    assert harness.wait_until(lambda: twin.sh(box, "test -e /tmp/up").code == 0)
    for words in (("snapshots", "--verify", box), ("snapshot", box)):
        for deed in DEEDS:
            assert twin.sh(box, f"echo {deed} >> ~/f").code == 0
            attempt = Attempt(root, deed)
            done = twin.run(*words, env=attempt.env)
            assert attempt.was_done(done.errors) == twin.open, (words, deed, done)
            lost = deed == "exec" or (deed == "socket" and not twin.open)
            assert done.code == (125 if lost else 0) and ("ended early" in done.errors) == lost, (words, deed, done)
    assert twin.sh(box, "cat ~/f").text.split() == [*DEEDS, *DEEDS]
    litter = next((root / "data" / "pale" / "boxes" / box / "layers").iterdir()).parent / "123456789abc00000000000000000000"
    for deed in ("write", "exec"):
        (litter / "home").mkdir(parents=True, exist_ok=True)
        attempt = Attempt(root, deed)
        done = twin.run("gc", env=attempt.env)
        assert attempt.was_done(done.errors) == twin.open, (deed, done)
        assert litter.exists() == (deed == "exec"), done
    twin.ok("gc")
    assert not litter.exists()


def test_who_carries_a_box_away_and_who_takes_one_in(twin, project, root):
    box = make(twin, project)
    file = root / "x.tar"
    for words in (("export", "--plain", "-f", "-o", file, box), ("import", "--project-path", project, file, "new")):
        for deed in DEEDS:
            twin.ok("export", "--plain", "-f", "-o", file, box)
            attempt = Attempt(root, deed)
            done = twin.run(*words, env=attempt.env)
            assert attempt.was_done(done.errors) == twin.open, (words, deed, done)
            lost = deed == "exec" or (deed == "socket" and not twin.open)
            assert done.code == (125 if lost else 0) and ("ended early" in done.errors) == lost, (words, deed, done)
            if words[0] == "import" and not lost:
                twin.ok("rm", "-f", "new")


def test_who_reads_for_the_daemon(twin, project, root, daemon_of):
    box = make(twin, project)
    attempt = Attempt(root, "write")
    twin.env |= attempt.env
    with daemon_of(twin) as daemon:
        daemon.serve()
        assert daemon.rest.get(query(f"/v1/boxes/{box}/diff", form="names")).body == b"a\n"
        assert attempt.mark.exists() == twin.open
        attempt.mark.unlink(missing_ok=True)
        assert daemon.rest.post(f"/v1/boxes/{box}/apply", {}).status == 200
        assert attempt.mark.exists() == twin.open and (project / "a").read_text() == "one\nmore\n"


def test_what_is_shipped_has_no_such_hook(pale, project, root):
    box = make(pale, project)
    attempt = Attempt(root, "read")
    assert "secluded" not in pale.ok("diff", box, env=attempt.env).errors


def caps_of(pid):
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return {k: int(v, 16) for k, v in re.findall(r"^(Cap\w+):\s*(\w+)$", text, re.M)}


@pytest.mark.basic
def test_a_keeper_that_serves_can_end_processes_and_no_more(pale):
    """Root's kept nearly all capabilities behind its lists."""
    for name in ("a", "b"):
        pale.create(name)
        assert pale.exec(name, "true").code == 0
    for name in ("a", "b"):
        caps = caps_of(pale.info(name)["keeper_pid"])
        most = 1 << 5 if os.geteuid() == 0 else 0  # CAP_KILL
        assert caps["CapEff"] | caps["CapPrm"] in (0, most) and caps["CapInh"] == caps["CapAmb"] == 0, caps
        assert os.geteuid() != 0 or caps["CapBnd"] == 0, caps
        assert pale.exec(name, "sleep", "60", flags=["--timeout", "100ms"]).code == 124
