# SPDX-License-Identifier: Apache-2.0
"""image build with every system call spoilt in turn: the old image or the new under its name, whole, and nothing else.

A sample in the test run; PALE_IMAGE_POINTS=all tries every call of every role."""
import io
import json
import os
import random
import subprocess
import tarfile

import pytest

import harness

pytestmark = pytest.mark.once

INJECT = harness.ROOT / "build" / "tests" / "fault" / "fault-inject"
ERRORS = {"ENOSPC": 28, "EIO": 5, "ENOMEM": 12, "EINTR": 4, "EMFILE": 24}
ALL = os.environ.get("PALE_IMAGE_POINTS") == "all"
ROLES = ("cli", "spawn", "errand", "keeper", "builder", "init", "child", "runner") if ALL else ("cli", "init")
SAMPLE = 24  # calls between two points; another beginning in each run


def write_tar(path, **files):
    with tarfile.open(path, "w") as t:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            t.addfile(info, io.BytesIO(data))
    return path


class Play:
    def __init__(self, pale, root):
        self.pale, self.report = pale, root / "report"
        self.old, self.new = write_tar(root / "old.tar", which=b"old"), write_tar(root / "new.tar", which=b"new", more=b"x" * 100)
        self.build("y", self.new)
        self.new_digest = self.digests()["y"]
        pale.ok("image", "rm", "y")
        self.reset()
        self.old_digest = self.digests()["x"]

    def build(self, name, path):
        self.pale.ok("image", "build", name, "--from", "tar", "--file", path)

    def digests(self):
        return {i["name"]: i["digest"] for i in self.pale.json("image", "ls", "--json")}

    def reset(self):
        self.build("x", self.old)
        if "" in self.digests():
            self.pale.ok("image", "rm", "sha256:" + self.digests()[""])

    def spoil(self, *mode):
        self.report.unlink(missing_ok=True)
        words = [INJECT, "--limit", "10000", "--report", self.report, *mode, "--", self.pale.program, "image", "build", "x", "--from", "tar", "--file", self.new]
        done = subprocess.run(list(map(str, words)), env=self.pale.env, cwd=self.pale.home, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False)
        return done, json.loads(self.report.read_text())

    def judge(self, mode):
        """False if there is no such call any more."""
        done, told = self.spoil(*mode)
        if not told.get("hit"):
            return False
        assert not told["hangs"] and not told["crashes"], (mode, told)
        harness.wait_until(lambda: not harness.processes_of(self.pale.root))
        now = self.digests()
        assert set(now) <= {"x", ""} and now["x"] in (self.old_digest, self.new_digest), (mode, now)
        assert told["exit"] != 0 or now["x"] == self.new_digest, (mode, "it said it was built", told)
        assert told["exit"] != 125 or done.stderr, (mode, "it failed and did not say why")
        self.pale.ok("image", "verify", "x")
        assert not list((self.pale.root / "data" / "pale-staging").iterdir()), (mode, "staging was not swept")
        if now["x"] == self.new_digest:
            self.reset()
        return True


@pytest.mark.limit(3600 if ALL else 300)
@pytest.mark.parametrize("fault", ["kill", "killexit", "short", *ERRORS])
def test_any_call_may_fail(pale, root, fault):
    if not INJECT.exists():
        pytest.skip("the fault injector is not built")
    play, points = Play(pale, root), 0
    for role in ROLES:
        step = 1 if ALL else SAMPLE
        k = 1 + random.randrange(step)
        while play.judge(["fail", role, k, ERRORS[fault]] if fault in ERRORS else [fault, role, k]):
            points += 1
            k += step
    print(f"{points} points")
    assert points > 0 or fault == "short"
