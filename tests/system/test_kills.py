# SPDX-License-Identifier: Apache-2.0
"""A short run of tests/kills.py: the daemon dies again and again while clients work, and nothing is lost. `make kills` is the long one."""
import os
import pathlib
import shutil
import tempfile
import time

import kills
from harness import BUILD, WEAK, Pale, remove_root


def test_daemon_may_be_killed_at_any_instant():
    root = tempfile.mkdtemp(prefix="plk-")
    try:
        found = kills.run(int(os.environ.get("PALE_KILLS", "25")), 8, 5, int(time.time()), root)
    finally:
        remove_root(root)
        shutil.rmtree(root, ignore_errors=True)
    assert not found["troubles"], found
    assert found["kills"] >= 25 and all(found["done"].values()), found


def lock_of(build, **env):
    """What the kernel says of paled: the rights it gave up."""
    root = tempfile.mkdtemp(prefix="plk-")
    pale = Pale(root, build=build, **env)
    try:
        pale.ok("serve")
        pid = pale.json("serve", "--status", "--json")["pid"]
        rows = dict(line.split(":", 1) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines())
        return rows["NoNewPrivs"].strip(), rows["Seccomp"].strip()
    finally:
        pale.run("serve", "--stop")
        remove_root(root)
        shutil.rmtree(root, ignore_errors=True)


def test_paled_is_locked_up():
    assert lock_of(BUILD) == ("1", "2")


def test_twin_of_the_lock_is_open():
    """So that the case above would notice."""
    if not (WEAK / "paled").exists():
        import pytest
        pytest.skip("there is no weakened build")
    assert lock_of(WEAK, PALE_WEAKEN="daemon-lock") == ("0", "0")
