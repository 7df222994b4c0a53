# SPDX-License-Identifier: Apache-2.0
"""The power goes while a box is kept, gone back, forked, thrown away, landed or collected: what the disk holds at that instant is the box
as it was or as it was to be.

How it works: data and state lie on file systems of their own, each in a file, which write nothing they were not asked to. The command is
killed at a call that changes something; then the files are copied as they are, and what they hold is mounted in place of the old. Two file
systems, for what is on one may be on the disk long before what is on the other. A sample in the test run; PALE_SNAPSHOT_POINTS=all."""
import os
import random
import shutil
import subprocess

import pytest

import harness
from fault.scene import NUMBERS
from past_play import INJECT, OPS, Play

POINTS = os.environ.get("PALE_SNAPSHOT_POINTS", "")
STEP = 1 if POINTS == "all" else int(POINTS or 0)
CALLS = ("fsync", "fdatasync", "syncfs", "rename", "renameat", "renameat2", "mkdir", "mkdirat", "unlink", "unlinkat", "rmdir", "write", "symlinkat", "linkat",
         "fchmod", "fchownat", "flock", "openat", "exit_group")
DISKS = ("data", "state")


class PowerPlay(Play):
    def __init__(self, pale, op):
        for name in DISKS:
            image = self.image(pale, "now", name)
            with open(image, "wb") as f:
                f.truncate(32 << 20)
            subprocess.run(["mkfs.ext4", "-q", "-F", image], check=True)
        self.mounted, self.pale = [], pale
        self.mount()
        project = pale.root / "data" / "project"
        project.mkdir()
        super().__init__(pale, project, op)

    @staticmethod
    def image(pale, when, name):
        return pale.root / f"{when}-{name}.img"

    def mount(self):
        """Nothing goes to the disk by itself for ten minutes."""
        for name in DISKS:
            subprocess.run(["mount", "-o", "loop,commit=600", self.image(self.pale, "now", name), self.pale.root / name], check=True)
            self.mounted.append(name)
            os.chmod(self.pale.root / name, 0o700)

    def umount(self):
        while self.mounted:
            subprocess.run(["umount", self.pale.root / self.mounted.pop()], check=True)

    def copy(self, old, new):
        for name in DISKS:
            self.image(self.pale, new, name).unlink(missing_ok=True)
            subprocess.run(["cp", "--sparse=always", self.image(self.pale, old, name), self.image(self.pale, new, name)], check=True)

    def keep(self):
        self.umount()
        self.copy("now", "kept")
        self.mount()

    def put_back(self):
        self.umount()
        self.copy("kept", "now")
        self.mount()
        self.make_younger()
        os.sync()

    def spoil(self, mode):
        """… and the power goes."""
        done, told = super().spoil(mode)
        if mode[0] != "count":
            self.lose_power()
        return done, told

    def lose_power(self):
        """What runs is gone, and so is what was in memory."""
        self.copy("now", "lost")
        for pid in harness.processes_of(self.pale.root):
            harness.kill_quietly(pid)
        self.wait_quiet()
        for part in (self.pale.root / "run").iterdir():
            shutil.rmtree(part)
        self.umount()
        self.copy("lost", "now")
        self.mount()


@pytest.fixture
def play(pale):
    if not harness.REAL_ROOT or not os.path.exists("/dev/loop-control") or not shutil.which("mkfs.ext4"):
        pytest.skip("file systems of its own need root, loop devices and mkfs.ext4")
    if not INJECT.exists():
        pytest.skip("the fault injector is not built")
    made = []

    def make(op):
        made.append(PowerPlay(pale, op))
        return made[0]

    yield make
    for p in made:
        p.end_all()
        for box in p.boxes():
            pale.ok("rm", "-f", box)
        p.umount()


@pytest.mark.parametrize("name, synced", [("snapshot", True), *((n, s) for n in ("restore", "discard", "discard-some", "fork", "apply") for s in (True, False))])
def test_what_is_said_to_be_done_is_on_the_disk(play, name, synced):
    """… and where nothing is written to it, that is seen."""
    p = play(OPS[name])
    done, told = p.spoil(["count"] if synced else ["nosync", "cli", 1])
    assert told["exit"] == 0, done
    if synced:
        p.lose_power()
    if synced:
        p.judge_point(["count"], done, told)
        return
    with pytest.raises(AssertionError):
        p.judge_point(["count"], done, told)


def test_who_uses_a_box_that_went_back_finds_it_so_after_the_power_went(play):
    """… even if whoever took it back was killed before he had written that to the disk: the keeper does it before the box is used."""
    p = play(OPS["restore-living"])
    fsync = NUMBERS["fsync"]
    count = p.spoil(["count"])[1]["counts"]["cli"]["calls"][str(fsync)]
    p.end_all()
    p.put_back()
    _, told = Play.spoil(p, ["kill", "cli", f"{fsync}:{count}"])
    assert told.get("hit"), told
    p.text("r", "echo after > ~/after; sync ~/after")  # not all that the kernel has, as sync alone would
    p.lose_power()
    assert p.text("r", "cat ~/after ~/f") == "after\none\n"


@pytest.mark.limit(7200 if STEP else 300)
@pytest.mark.parametrize("name", sorted(n for n in OPS if not OPS[n].busy) if STEP else sorted(random.sample([n for n in OPS if not OPS[n].busy], 6)))
def test_the_power_may_go_at_any_call(play, name):
    p, tried, bad = play(OPS[name]), 0, []
    counts = p.spoil(["count"])[1]["counts"]
    p.end_all()
    p.put_back()
    points = [(mode, role, f"{NUMBERS[c]}:{n}") for mode in ("kill", "killexit") for role in ("cli", "errand") if role in counts for c in CALLS if c in NUMBERS
              for n in range(1, counts[role]["calls"].get(str(NUMBERS[c]), 0) + 1) if mode == "kill" or c != "exit_group"]
    assert len(points) > 20
    for point in points[random.randrange(STEP)::STEP] if STEP else random.sample(points, 12):
        if not STEP and tried + len(bad) == 2:  # how often it waits, and so the last calls of a kind, differ from run to run
            break
        try:
            tried += p.judge(list(point))
        except AssertionError as e:
            bad.append(str(e))
            print(f"VIOLATION power {name} {bad[-1][:1500]}", flush=True)
            p.end_all()
            p.put_back()
    print(f"power {name}: {tried} of {len(points)} points, {len(bad)} violations", flush=True)
    assert (tried or STEP) and not bad, bad[:3]
