# SPDX-License-Identifier: Apache-2.0
"""Files and folders of the host's /etc that the policy names, though a box's own /etc has no place for them."""
import os
import pathlib

import pytest


def readable(paths):
    return [p for p in paths if os.access(p, os.R_OK) and os.path.realpath(p) == str(p)]


ETC = pathlib.Path("/etc")
BARE = {"passwd", "group", "hosts", "hostname", "machine-id", "nsswitch.conf", "resolv.conf", "skel", "ssl"}


@pytest.fixture
def unseen(pale):
    """What the host's /etc has and a box's has not: (files, folders with a file in them)."""
    seen = set(pale.ok("run", "-q", "--", "ls", "-A", "/etc").text.split()) | BARE
    rest = sorted(p for p in ETC.iterdir() if p.name not in seen and not p.is_symlink())
    files = readable(p for p in rest if p.is_file() and p.stat().st_mode & 0o004)
    folders = [p for p in readable(q for q in rest if q.is_dir()) if os.access(p, os.X_OK) and readable(c for c in p.iterdir() if c.is_file())]
    if len(files) < 2 or not folders:
        pytest.skip("this host's /etc has too little besides what boxes have anyway")
    return files, folders


def test_files_folders_and_what_is_in_them(pale, unseen):
    files, folders = unseen
    inner = next(c for f in folders for c in sorted(f.iterdir()) if c.is_file() and os.access(c, os.R_OK) and os.path.realpath(c) == str(c))
    assert pale.ok("run", "-q", "--read", files[0], "--", "cat", files[0]).out == files[0].read_bytes()
    listed = pale.ok("run", "-q", "--read", folders[0], "--", "ls", "-A", folders[0]).text.split("\n")[:-1]
    assert sorted(listed) == sorted(p.name for p in folders[0].iterdir())
    done = pale.ok("run", "-q", "--read", inner, "--", "sh", "-c", f"ls -A {inner.parent}; cat {inner}")
    assert done.out == inner.name.encode() + b"\n" + inner.read_bytes()
    both = pale.ok("run", "-q", "--read", files[0], "--read", files[1], "--read", inner, "--read", inner.parent, "--", "cat", files[1], inner)
    assert both.out == files[1].read_bytes() + inner.read_bytes()


def test_two_boxes_have_each_its_own(pale, unseen):
    files, _ = unseen
    pale.ok("create", "one", "--read", files[0])
    pale.ok("create", "two", "--read", files[1])
    pale.ok("create", "three")
    for box, seen in (("one", [files[0]]), ("two", [files[1]]), ("three", [])):
        for f in files[:2]:
            assert (pale.exec(box, "test", "-e", f).code == 0) == (f in seen), (box, f)
        pale.ok("stop", box)
        for f in seen:
            assert pale.exec(box, "cat", f).out == f.read_bytes()


def test_nothing_else_comes_in_and_nothing_is_written(pale, unseen):
    files, folders = unseen
    done = pale.run("run", "-q", "--read", files[0], "--", "sh", "-c", f"ls -A /etc; echo x >> {files[0]}; echo x > /etc/made; cat /etc/shadow")
    plain = set(pale.ok("run", "-q", "--", "ls", "-A", "/etc").text.split())
    assert set(done.text.split()) == plain | {files[0].name}
    assert done.errors.count("cannot create") == 2 and "No such file" in done.errors
    for refused in ("/etc", "/etc/../etc"):
        assert pale.run("run", "--read", refused, "--", "true").code == 125
    for flag in ("--write", "--volume"):
        value = f"{files[0]}:/etc/x" if flag == "--volume" else files[0]
        assert pale.run("run", flag, value, "--", "true").code == 125


def test_a_sensitive_file_comes_in_by_its_name_alone(pale, unseen):
    """Naming it is the operator's word; of what only root may read, an ordinary user has nothing to give."""
    shadow = pathlib.Path("/etc/shadow")
    if not shadow.exists() or shadow.stat().st_mode & 0o004:
        pytest.skip("no /etc/shadow that only some may read")
    done = pale.run("run", "-q", "--read", shadow, "--", "cat", shadow)
    assert (done.out == shadow.read_bytes()) if os.geteuid() == 0 else (done.code != 0 and not done.out)
    assert pale.run("run", "-q", "--read", unseen[0][0], "--", "cat", shadow).out == b""
