# SPDX-License-Identifier: Apache-2.0
"""Folders that belong to another group of the user's: in a lasting box, whose ids are its own, they work or are refused with words."""
import os
import pathlib
import shutil
import subprocess

import pytest

import harness
from harness import Pale


@pytest.fixture
def team(hostdir):
    """A folder 2770 of the user and of another group. An ordinary user must be in two groups for that."""
    if harness.REAL_ROOT:
        pytest.skip("root's boxes write to what is root's and root's group's alone")
    groups = [g for g in os.getgroups() if g != os.getegid()]
    group = next(iter(groups), None)
    if group is None:
        pytest.skip("this user is in one group alone")
    folder = hostdir / "team"
    folder.mkdir()
    os.chown(folder, -1, group)
    folder.chmod(0o2770)
    return folder


WAYS = {"write": lambda t: ["--write", t], "volume": lambda t: ["-v", f"{t}:/mnt/t"], "read": lambda t: ["--read", t]}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("below", [False, True])
def test_a_folder_of_another_group_works_in_a_lasting_box(pale, team, way, below):
    place = team / "sub" if below else team
    place.mkdir(exist_ok=True)
    (place / "f").write_text("there\n")
    pale.create("b", *WAYS[way](place))
    seen = "/mnt/t" if way == "volume" else place
    assert pale.sh("b", f"cat {seen}/f").text == "there\n"
    if way != "read":
        assert pale.sh("b", f"echo made > {seen}/g").code == 0
        assert (place / "g").read_text() == "made\n"


@pytest.mark.parametrize("mode", ["live", "review"])
def test_a_project_below_a_folder_of_another_group_works(pale, team, mode):
    project = team / "proj"
    project.mkdir()
    (project / "f").write_text("there\n")
    pale.create("b", "--project", mode, cwd=project)
    assert pale.sh("b", "cat f; echo made > g", cwd=project).text == "there\n"
    assert (project / "g").exists() == (mode == "live")


@pytest.mark.parametrize("which", ["HOME", "XDG_RUNTIME_DIR", "both"])
def test_a_home_or_runtime_folder_of_another_group_works(root, team, which):
    """What pale makes in them has the user's own group, whatever the folder gives to what is made in it."""
    p = Pale(root)
    run = pathlib.Path("/tmp" if not os.access("/dev/shm", os.W_OK) else "/dev/shm") / f"plt-{os.environ.get('PALE_TEST_TAG', 'x')}-{os.getpid()}"
    run.mkdir(mode=0o700)
    os.chown(run, -1, team.stat().st_gid)
    run.chmod(0o2770)
    if which != "XDG_RUNTIME_DIR":
        (team / "h").mkdir()
        p.env["HOME"] = str(team / "h")
        for name in ("XDG_DATA_HOME", "XDG_STATE_HOME"):
            del p.env[name]
    if which != "HOME":
        p.env["XDG_RUNTIME_DIR"] = str(run)
    try:
        for name in ("a", "b"):
            p.create(name)
            assert p.sh(name, "echo kept > f && cat f").text == "kept\n"
        p.ok("snapshot", "a")
        p.ok("fork", "a", "c")
        assert p.sh("c", "cat f").text == "kept\n"
        for name in ("a", "b", "c"):
            p.ok("rm", name)
    finally:
        p.end()
        for pid in harness.all_gone(root):
            harness.kill_quietly(pid)
        shutil.rmtree(run, ignore_errors=True)


def test_what_is_open_by_a_group_alone_is_refused_with_the_reason(pale, team):
    """Only where the ids of a box come from the user's range: else the kernel keeps the groups, or root's folders are mapped."""
    kept = subprocess.run(["grep", "-c", f"^{os.environ.get('USER', '?')}:", "/etc/subgid"], capture_output=True, text=True).stdout.strip()
    if harness.REAL_ROOT or kept in ("", "0"):
        pytest.skip("this user has no subordinate range")
    sticky = pathlib.Path(os.environ.get("PALE_TEST_GROUP_FOLDER", "/nonexistent"))
    if not sticky.is_dir():
        pytest.skip("root has to make a folder that is the user's by a group alone (PALE_TEST_GROUP_FOLDER)")
    done = pale.run("create", "b", "--write", sticky)
    assert done.code == 125 and str(sticky) in done.errors and "group" in done.errors and "pale run" in done.errors, done
    assert pale.run("run", "-q", "--write", sticky, "--", "touch", sticky / "x").code == 0
    (sticky / "x").unlink()
