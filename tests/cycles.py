# SPDX-License-Identifier: Apache-2.0
"""Boxes made and removed many times leave nothing: processes, mounts, namespaces, cgroups, descriptors, files."""
import os
import pathlib
import subprocess
import time

import pytest

import harness

CYCLES = int(os.environ.get("PALE_CYCLES", "200"))


def tree(root):
    """But for the logs of removed boxes, which are kept, a thousand of them at most."""
    return sorted(name for p in pathlib.Path(root).rglob("*") if not (name := str(p.relative_to(root))).startswith("pale/removed/"))


def namespaces(pale):
    found = set()
    for pid in harness.processes_of(pale.root):
        for kind in ("mnt", "net", "pid", "user", "ipc", "uts", "cgroup"):
            try:
                found.add(os.readlink(f"/proc/{pid}/ns/{kind}"))
            except OSError:
                pass
    return found


def picture(pale):
    ids = pale.ids()
    return {"mounts": [line for line in harness.mounts().splitlines() if str(pale.root) in line or any(i in line for i in ids)],
            "cgroups": [g for g in harness.cgroups() if any(i in os.path.basename(g) for i in ids)],
            "processes": harness.processes_of(pale.root), "boxes": pale.boxes(), "sockets": tree(pale.root / "run")}


def left(before, after):
    """What is new. An empty cgroup of somebody else's that went away meanwhile is not ours to explain."""
    found = {k: v for k, v in after.items() if k != "cgroups" and v != before[k]}
    new = [g for g in after["cgroups"] if g not in before["cgroups"]]
    return found | ({"cgroups": new} if new else {})


def kernel_slabs():
    """Memory namespaces of any kind that nobody shows would still hold."""
    try:
        rows = {line.split()[0]: int(line.split()[1]) for line in open("/proc/slabinfo").readlines()[2:]}
    except (OSError, ValueError, IndexError):
        return {}
    return {k: rows.get(k, 0) for k in ("mnt_namespace", "net_namespace", "pid_namespace", "user_namespace", "uts_namespace")}


@pytest.mark.limit(800 + CYCLES // 10)
def test_create_exec_destroy_cycles_leave_nothing(pale):
    pale.create("warm")
    pale.ok("rm", "warm")
    before, names = picture(pale), namespaces(pale)
    files = tree(pale.root / "state")
    for i in range(CYCLES):
        name = f"c{i}"
        pale.names.add(name)
        for args in (["create", name], ["exec", "-q", name, "--", "sh", "-c", "echo x > f; sleep 100 & true"], ["rm", name]):
            done = subprocess.run([pale.program, *args], env=pale.env, stdin=subprocess.DEVNULL, capture_output=True, timeout=30)
            assert done.returncode == 0, (i, args, done)
    assert harness.wait_until(lambda: left(before, picture(pale)) == {}, 10), left(before, picture(pale))
    assert set(tree(pale.root / "state")) - set(files) <= {"pale/removed"}
    assert harness.wait_until(lambda: not namespaces(pale) - names, 10), namespaces(pale) - names


@pytest.mark.limit(800 + CYCLES // 10)
def test_one_shot_cycles_leave_nothing(pale):
    pale.ok("run", "--", "true")
    before = picture(pale)
    files = tree(pale.root / "state")
    slabs = kernel_slabs()
    for i in range(CYCLES):
        done = subprocess.run([pale.program, "run", "-q", "--", "true"], env=pale.env, stdin=subprocess.DEVNULL, capture_output=True, timeout=30)
        assert done.returncode == 0, (i, done)
    assert harness.wait_until(lambda: left(before, picture(pale)) == {}, 10), left(before, picture(pale))
    assert set(tree(pale.root / "state")) - set(files) <= {"pale/removed"}
    if slabs:
        def grown():  # the kernel counts all of the machine: what others have for a while goes again
            return {k: n - slabs[k] for k, n in kernel_slabs().items() if n - slabs[k] > CYCLES // 2 + 50}

        assert harness.wait_until(lambda: not grown(), 60), grown()


@pytest.mark.limit(400 + CYCLES // 10)
def test_one_keeper_over_many_commands_keeps_its_descriptors_and_memory(pale):
    box = pale.create("b")
    keeper, init = pale.info(box)["keeper_pid"], pale.info(box)["init_pid"]
    if not harness.REAL_ROOT:
        pytest.skip("needs root to look at the keeper's descriptors")

    def fds(pid):
        return len(os.listdir(f"/proc/{pid}/fd"))

    def rss(pid):
        return int(next(line for line in open(f"/proc/{pid}/status") if line.startswith("VmRSS")).split()[1])

    for _ in range(20):
        pale.exec(box, "true")
    time.sleep(1.5)  # until the box keeps one spare again, as it does at rest
    before = fds(keeper), fds(init), rss(keeper)
    for _ in range(CYCLES):
        subprocess.run([pale.program, "exec", "-q", box, "--", "true"], env=pale.env, stdin=subprocess.DEVNULL, capture_output=True, timeout=30, check=True)
    assert harness.wait_until(lambda: (fds(keeper), fds(init)) == before[:2], 3), (fds(keeper), fds(init), before)
    assert rss(keeper) <= before[2] + 512
