# SPDX-License-Identifier: Apache-2.0
"""The state folder's file system is full: the daemon lives, says so, and goes on once there is room."""
import os
import shutil
import signal
import subprocess

import pytest

import harness
from harness import wait_until


@pytest.fixture
def small(pale):
    """The state folder on a file system of 6 MiB with blocks of 1 KiB; a function that leaves so many free, and one that makes room."""
    if not harness.REAL_ROOT or not os.path.exists("/dev/loop-control") or not shutil.which("mkfs.ext4"):
        pytest.skip("a file system of its own needs root, loop devices and mkfs.ext4")
    image, state = pale.root / "state.img", pale.root / "state"
    with open(image, "wb") as f:
        f.truncate(6 << 20)
    subprocess.run(["mkfs.ext4", "-q", "-F", "-b", "1024", "-m", "0", image], check=True)
    subprocess.run(["mount", "-o", "loop", image, state], check=True)
    os.chmod(state, 0o700)

    def fill():
        with open(state / "filler", "wb", 0) as f:
            for size in (65536, 1024):
                while True:
                    try:
                        if f.write(bytes(size)) < size:
                            break
                        os.fsync(f.fileno())
                    except OSError:
                        break

    def free():
        (state / "filler").unlink(missing_ok=True)

    yield fill, free
    free()
    pale.run("serve", "--stop")
    trouble = pale.end()
    wait_until(lambda: not harness.processes_of(pale.root))
    subprocess.run(["umount", state], check=True)
    assert not trouble


def test_the_daemon_outlives_a_full_disk(small, pale):
    """Nine times in five seconds it died of a signal, and was given up for good."""
    fill, free = small
    pale.ok("serve")
    pale.create("b")
    before = pale.json("serve", "--status", "--json")
    fill()
    refused = 0
    for n in range(60):
        done = pale.run("token", "create", "--name", f"t{n}")
        assert done.code in (0, 125), done
        refused += done.code == 125
        assert pale.json("serve", "--status", "--json")["pid"] == before["pid"], "another paled serves"
    assert refused > 0, "the disk was never full"
    assert "full" in done.errors or "No space" in done.errors, done
    free()
    pale.ok("token", "create", "--name", "after")
    assert pale.exec("b", "echo", "fine").text == "fine\n"
    assert pale.json("serve", "--status", "--json")["pid"] == before["pid"]
    assert not (pale.root / "state" / "pale" / "registry.db-shm").exists()


def test_a_daemon_that_cannot_start_again_comes_back_when_there_is_room(small, pale):
    fill, free = small
    pale.ok("serve")
    told = pale.json("serve", "--status", "--json")
    fill()
    for _ in range(12):
        now = pale.run("serve", "--status", "--json")
        if now.code == 0:
            os.kill(now.json()["pid"], signal.SIGKILL)
    free()
    again = pale.json("serve", "--status", "--json")
    assert again["steward_pid"] == told["steward_pid"] and again["running"]
    pale.ok("token", "create", "--name", "after")


def test_what_there_is_no_room_for_is_refused_as_that(small, pale):
    """… and not as something that is too large or not there."""
    fill, free = small
    pale.ok("serve")
    fill()
    import json
    codes = set()
    for n in range(200):
        done = pale.run("token", "create", "--name", "x" * 60, "--json")
        if done.code:
            codes.add(json.loads(done.text)["error"]["code"])
    assert codes == {"no-space"}, codes
    done = pale.run("create", "b")
    assert done.code == 125 and "No space left" in done.errors, done
    free()
    pale.create("b")
    assert pale.exec("b", "true").code == 0


def test_keepers_outlive_a_full_disk(small, pale):
    """What cannot be recorded is not done; what was lost of the log for want of room is counted in it."""
    fill, free = small
    pale.create("b")
    pid = pale.info("b")["keeper_pid"]
    fill()
    refused = 0
    for _ in range(40):
        done = pale.exec("b", "true")
        refused += done.code == 125
        assert pale.info("b")["keeper_pid"] == pid
    assert refused > 0
    free()
    assert pale.exec("b", "echo", "fine").text == "fine\n"
    assert pale.ok("audit", "--verify", "b").text.startswith("good")
    pale.ok("stop", "b")
    assert pale.exec("b", "true").code == 0
    assert pale.ok("audit", "--verify", "b").text.startswith("good")
