# SPDX-License-Identifier: Apache-2.0
"""snapshot, restore, fork, discard, apply and gc with every system call spoilt in turn: the box as it was or as it was to be, all of it.

A sample in the test run; PALE_SNAPSHOT_POINTS=all tries every call of every role. PALE_SNAPSHOT_POINTS=N: every N-th."""
import os
import random
import subprocess

import pytest

import harness
from fault.scene import NUMBERS
from past_play import INJECT, OPS, Play

pytestmark = pytest.mark.once

ERRORS = {"ENOSPC": 28, "EIO": 5, "ENOMEM": 12, "EINTR": 4, "EMFILE": 24}
POINTS = os.environ.get("PALE_SNAPSHOT_POINTS", "")
STEP = 1 if POINTS == "all" else int(POINTS or 0)
DEEP = 5  # of so many points, one whose snapshots are gone back to and forked


def roles_of(play):
    """{role: {fault's kind: number of calls}} of a run in which nothing is spoilt."""
    _, told = play.spoil(["count"])
    play.end_all()
    play.put_back()
    return told["counts"]


def points_of(counts, fault, chance):
    """(role, k) of one series."""
    kind = "fail" if fault in ERRORS else "short" if fault == "short" else "all"
    every = [(role, k) for role, c in sorted(counts.items()) for k in range(1, c[kind] + 1)]
    if STEP:
        return every[chance.randrange(STEP)::STEP]
    # How many calls whoever works behind the scenes makes depends on how long he waits: a point may not be met, and then another is taken.
    return [chance.choice([p for p in every if p[0] in ("cli", "errand")]) for _ in range(8)]


@pytest.fixture
def quick(pale):
    """Many points are not to wait for a disk that others write to as well."""
    places = [pale.root / "data", pale.root / "state"] if STEP and harness.REAL_ROOT else []
    for path in places:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=700", "tmpfs", path], check=True)
    yield pale
    for path in places:
        for box in pale.json("ls", "--json"):
            pale.ok("rm", box["name"])
        subprocess.run(["umount", "-l", path], check=True)


@pytest.mark.limit(7200 if STEP else 300)
@pytest.mark.parametrize("name", OPS)
def test_any_call_may_fail(quick, hostdir, name):
    if not INJECT.exists():
        pytest.skip("the fault injector is not built")
    play, chance, bad, tried = Play(quick, hostdir, OPS[name], DEEP if STEP == 1 else 1), random.Random(), [], {}
    counts = roles_of(play)
    for fault in ("kill", "killexit", "short", *ERRORS) if STEP else ("kill", "killexit", chance.choice(list(ERRORS))):
        for role, k in points_of(counts, fault, chance):
            try:
                met = play.judge(["fail", role, k, ERRORS[fault]] if fault in ERRORS else [fault, role, k])
                tried[fault] = tried.get(fault, 0) + met
                if met and not STEP:
                    break
            except AssertionError as e:
                bad.append(f"{fault} {e}")
                print(f"VIOLATION {name} {bad[-1][:1500]}", flush=True)
                play.end_all()
                play.put_back()
    print(f"{name}: {sum(tried.values())} points {tried}, {len(bad)} violations", flush=True)
    assert tried.get("kill", 0) > 0 and not bad, bad[:3]


def test_a_layer_that_cannot_be_looked_at_is_not_left_out(quick, hostdir):
    """It was: the box then began as another."""
    if not INJECT.exists():
        pytest.skip("the fault injector is not built")
    play = Play(quick, hostdir, OPS["fork-living"])
    calls = roles_of(play)["builder"]["calls"]
    points = [f"{nr}:{n}" for name in ("faccessat", "faccessat2") if (nr := NUMBERS.get(name)) for n in range(1, calls.get(str(nr), 0) + 1)]
    assert points
    for point in points:
        assert play.judge(["fail", "builder", point, ERRORS["EIO"]])
