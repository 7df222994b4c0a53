# SPDX-License-Identifier: Apache-2.0
"""What a box may write: that its limit holds, in memory and on the disk, and that whoever reaches it is told so."""
import contextlib
import json
import os
import pathlib
import shutil
import struct
import subprocess
import time

import harness
import pytest
import rest

MIB = 1 << 20
REAL_ROOT = os.geteuid() == 0 and open("/proc/self/uid_map").read().split() == ["0", "0", "4294967295"]
FILL = "import sys\ntry:\n  f = open(sys.argv[1], 'wb', 0)\n  while 1: f.write(b'x' * 65536)\nexcept OSError as e: print(e.errno); sys.exit(3)"
USE_UP = {"bytes": FILL,
          "files": "import sys\nfor n in range(9999):\n  try: open('%s%d' % (sys.argv[1], n), 'x').close()\n  except OSError: sys.exit(3)"}


def fill(pale, box, path, **more):
    return pale.exec(box, "python3", "-c", FILL, path, flags=["-q"], **more)


# --- in memory ---

@pytest.fixture(scope="module")
def full(session_root, pale_at):
    """A box with a scratch of 8 MiB that is full."""
    root = session_root / "full"
    root.mkdir()
    try:
        with pale_at(root) as p:
            p.create("b", "--scratch", "memory", "--disk", "8M")
            assert fill(p, "b", "f").code == 3
            yield p
    finally:
        harness.remove_root(root)


@pytest.mark.basic
def test_a_command_that_fails_in_a_full_box_is_told_why(full):
    done = full.sh("b", "echo much > g && exec cat g", flags=["-q"])
    assert done.code != 0
    assert "disk limit: the box's home is full (8MiB); remove files, or raise limits.disk" in done.errors
    result = full.run("exec", "--json", "b", "--", "cp", "/usr/bin/env", "g").json()
    assert result["disk_full"] and result["exit"] == 1 and result["message"].startswith("disk limit: ") and not result["out_of_memory"]


@pytest.mark.parametrize("command", (["dd", "if=/dev/zero", "of=g", "bs=1M", "count=1"], ["cp", "/usr/bin/env", "g"],
                                     ["python3", "-c", "open('g', 'wb').write(bytes(99999))"]), ids=["dd", "cp", "python"])
def test_programs_see_a_full_disk_as_such(full, command):
    done = full.exec("b", *command, flags=["-q"])
    assert done.code == 1 and "No space left on device" in done.errors and "disk limit: " in done.errors, done


def test_who_succeeds_or_fails_with_room_left_is_told_nothing(full, pale):
    assert full.sh("b", "true", flags=["-q"]).errors == ""
    pale.create("b", "--scratch", "memory", "--disk", "8M")
    done = pale.run("exec", "--json", "b", "--", "false").json()
    assert not done["disk_full"] and done["message"] == ""


def test_a_full_box_is_told_to_audit_and_jobs(full):
    job = full.ok("exec", "-d", "b", "--", "sh", "-c", "echo x > g").text.strip()
    assert full.run("wait", "b", job).code != 0
    records = [json.loads(line) for line in full.ok("audit", "--json", "b").text.splitlines()]
    last = [r for r in records if r["event"] == "exec.end"][-1]
    assert last["disk_full"] is True


def test_the_end_of_files_is_told_too(pale):
    pale.create("b", "--scratch", "memory", "--disk", "1M")
    done = pale.sh("b", "i=0; while : > f$i; do i=$((i+1)); done", flags=["-q"])
    assert "disk limit: the box's home has no room for more files (1MiB)" in done.errors


def test_a_run_without_a_name_is_held_in_memory(pale):
    done = pale.run("run", "-q", "--disk", "4M", "--", "python3", "-c", FILL, "f")
    assert done.code == 3 and done.text == "28\n" and "disk limit: the box's home is full (4MiB)" in done.errors


def test_requests_for_files_in_a_full_box_leave_it_as_it_was(full, root):
    (root / "big").write_bytes(os.urandom(3 * MIB))
    full.ok("write", "b", "small", input=b"")
    before = full.sh("b", "find . -type f -exec md5sum {} +").text
    for done in (full.run("cp", root / "big", "b:big"), full.run("cp", root / "big", "b:small"),
                 full.run("write", "b", "small", input=bytes(MIB)), full.run("write", "b", "new", input=bytes(MIB))):
        assert done.code == 125 and "No space left on device; the box has no room left: remove files, or raise limits.disk" in done.errors, done
        assert done.errors.count("\n") == 1, "one complaint and no other"
    assert full.sh("b", "find . -type f -exec md5sum {} +").text == before


def test_the_daemon_tells_of_a_full_box(api):
    box = api.make("b", set={"scratch": "memory", "limits.disk": "4M"})["id"]
    stream = api.stream("GET", "/v1/events")
    done = api.exec(box, ["python3", "-c", FILL, "f"])
    assert done["disk_full"] and done["exit"] == 3 and done["message"].startswith("disk limit: ")
    assert stream.until("job.ended")[-1]["disk_full"] is True
    stream.close()
    where = rest.query(f"/v1/boxes/{box}/files", path="/home/agent/g")
    problem = api.bad("PUT", where, body=bytes(MIB), code="limit")
    assert "No space left on device" in problem["detail"] and "raise limits.disk" in problem["detail"]
    api.bad("GET", where, code="not-found")


# --- trees that are made to be a burden ---

BURDEN = """import os
os.makedirs('wide'); os.makedirs('marked')
for i in range(3000): os.close(os.open('wide/%d' % i, os.O_CREAT))
for i in range(100):
    open('marked/%d' % i, 'w').close()
    try:
        for k in range(1000): os.setxattr('marked/%d' % i, 'user.%d' % k, b'x')
    except OSError: pass
os.truncate(os.open('huge', os.O_CREAT | os.O_RDWR), 1 << 43)
"""
DEEP = "import os\nfor i in range(250):\n  os.mkdir('n' * 200)\n  os.chdir('n' * 200)\nopen('bottom', 'w').close()"


def test_trees_that_are_a_burden_cost_the_host_little(pale):
    """Three thousand names in a folder, files with all the attributes they can have, a file of 8 TiB."""
    box = pale.create("b", "--memory", "none")
    done = pale.py(box, BURDEN, flags=["-q"])
    if "File too large" in done.errors:
        pytest.skip("the file system has no files as large as that")
    assert done.code == 0, done
    began = time.monotonic()
    pale.ok("snapshot", box, "one")
    pale.ok("gc")
    assert "verified" in pale.ok("snapshots", box).text
    assert len(pale.ok("diff", "--stat", box, "/home/agent").text.splitlines()) > 3000
    pale.ok("fork", "--at", "one", box, "c")
    pale.ok("rm", "c")
    pale.ok("rm", box)
    assert time.monotonic() - began < 30 and pale.boxes() == []


def test_a_path_that_no_call_takes_is_refused_and_harms_no_other_box(pale):
    """Twelve times PATH_MAX: it can be kept and removed; what reads it whole says that it cannot, and goes on with other boxes."""
    for name in ("a", "b", "c"):
        pale.create(name, "--memory", "none")
    pale.sh("a", "echo x > f")
    pale.sh("c", "echo x > f")
    assert pale.py("b", DEEP, flags=["-q"]).code == 0
    for name in ("a", "b", "c"):
        pale.ok("snapshot", name, "one")
    done = pale.run("gc")
    assert done.code == 125 and "longer than 4095 bytes" in done.errors
    assert all("verified" in pale.ok("snapshots", name).text for name in ("a", "c"))
    pale.ok("restore", "b", "one")
    assert pale.sh("b", "ls -d n*", flags=["-q"]).code == 0
    pale.ok("rm", "b")


# --- on the disk, where it cannot be held ---

@pytest.fixture
def unheld(pale):
    """A pale whose boxes cannot be held to a limit on disk."""
    if REAL_ROOT and "prjquota" in subprocess.run(["findmnt", "-no", "OPTIONS", "-T", pale.root], capture_output=True, text=True).stdout:
        pytest.skip("there are project quotas where the tests are")
    return pale


@pytest.mark.basic
def test_a_limit_on_disk_that_cannot_be_held_is_refused(unheld):
    done = unheld.run("create", "b", "--disk", "8M")
    assert done.code == 125 and "limits.disk cannot be held: " in done.errors
    assert "scratch: memory" in done.errors and "tune2fs -O project,quota" in done.errors and "XFS: `mount -o prjquota`" in done.errors
    assert unheld.boxes() == [] and not list((unheld.root / "state" / "pale" / "boxes").glob("*"))


def test_doctor_says_whether_a_disk_can_be_held(unheld):
    doctor = unheld.run("doctor", "--json").json()
    row = next(c for c in doctor["mechanisms"] if (c["group"], c["name"]) == ("Limits", "disk"))
    assert row["state"] == "degraded" and "quota" in row["detail"] and "tune2fs" in row["remedy"]


# --- on the disk, where it can ---

def quota_disk(kind, folder, image):
    """A disk with project quotas at folder, or a skip that says why there is none."""
    if not REAL_ROOT:
        pytest.skip("only the host's root can set quotas")
    make = {"ext4": ["mke2fs", "-q", "-F", "-t", "ext4", "-O", "project,quota", "-E", "quotatype=prjquota", image],
            "xfs": ["mkfs.xfs", "-q", image]}[kind]
    if not shutil.which(make[0]):
        pytest.skip(f"no {make[0]}")
    with open(image, "wb") as f:
        f.truncate(512 * MIB)
    subprocess.run(make, check=True, capture_output=True)
    done = subprocess.run(["mount", "-o", "loop,prjquota", image, folder], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"this kernel mounts no {kind} with project quotas: {done.stderr.strip()[:200]}")


@pytest.fixture(scope="module", params=["ext4", "xfs"])
def held(request, session_root, pale_at):
    """A pale whose boxes are on a disk with project quotas."""
    root = session_root / request.param
    (root / "data").mkdir(parents=True)
    try:
        quota_disk(request.param, root / "data", root / "image")
        try:
            with pale_at(root) as p:
                yield p
        finally:
            subprocess.run(["umount", root / "data"], check=True)
    finally:
        harness.remove_root(root)


@contextlib.contextmanager
def box_of(pale, name, *flags):
    pale.create(name, *flags)
    try:
        yield name
    finally:
        pale.ok("rm", name)


def sizes(pale, box):
    """Bytes that can be had, and files, as the box sees it."""
    return [int(n) for n in pale.sh(box, "stat -fc '%b %S %c' .", flags=["-q"]).text.split()]


def projects(pale):
    """{project: (bytes used, files used, bytes at most, files at most)} of ours on the disk."""
    import ctypes
    libc, found, at = ctypes.CDLL(None, use_errno=True), {}, 0x50000000
    fd = os.open(pale.root / "data", os.O_RDONLY)
    try:
        while True:
            b = ctypes.create_string_buffer(72)
            if libc.syscall(443, fd, ctypes.c_uint(0x800009 << 8 | 2), ctypes.c_uint(at), b) < 0:
                return found
            hard, _, used, files_hard, _, files = struct.unpack_from("=6Q", b.raw)
            at = struct.unpack_from("=I", b.raw, 68)[0]
            if at >= 0x51000000:
                return found
            found[at] = (used, files, hard * 1024, files_hard)
            at += 1
    finally:
        os.close(fd)


def mark_of(path):
    import fcntl
    fd = os.open(path, os.O_RDONLY)
    try:
        flags, _, _, project = struct.unpack_from("=4I", fcntl.ioctl(fd, 0x801c581f, bytes(28)))
        return project if flags & 0x200 else 0
    finally:
        os.close(fd)


@pytest.mark.limit(600)
def test_quota_of_bytes_holds_exactly(held):
    host = shutil.disk_usage(held.root / "data").total
    with box_of(held, "b", "--disk", "32M") as box:
        done = fill(held, box, "f")
        assert done.code == 3 and done.text in ("122\n", "28\n"), done
        assert "disk limit: the box's home is full (32MiB); remove files, or raise limits.disk" in done.errors
        size = int(held.sh(box, "stat -c %s f").text)
        assert 31 * MIB <= size <= 32 * MIB
        assert fill(held, box, "/tmp/f").code == 3, "all that it writes counts together"
        assert int(held.sh(box, "stat -c %s /tmp/f 2>/dev/null || echo 0").text) < MIB
        assert shutil.disk_usage(held.root / "data").total == host, "the host's disk looks as it did"
        assert held.run("prove", box).code == 0
        receipt = held.run("prove", "--json", box).text
        assert "disk-limit" in receipt
        (used, _, most, files), = [projects(held)[mark_of(held.open_layer(box))]]
        assert most == 32 * MIB and files == 4096 and used <= most


@pytest.mark.limit(600)
def test_quota_of_files_holds(held):
    with box_of(held, "b", "--disk", "80M") as box:
        script = ("import os, sys\nn = 0\nos.mkdir('d')\ntry:\n  for n in range(100000): os.close(os.open('d/%d' % n, os.O_CREAT))\n"
                  "except OSError as e: print(e.errno, n); sys.exit(3)")
        done = held.py(box, script, flags=["-q"], timeout=300)
        errno, made = done.text.split()
        assert errno in ("122", "28") and 80 * 64 - 64 <= int(made) < 80 * 64, done
        assert "has no room for more files (80MiB)" in done.errors


@pytest.mark.limit(600)
def test_quota_counts_closed_layers_and_forks_count_alone(held):
    write = "head -c {}M /dev/zero > {}"
    with box_of(held, "b", "--disk", "32M") as box:
        held.ok("exec", "-q", box, "--", "sh", "-c", write.format(20, "f"))
        held.ok("snapshot", box, "one")
        done = fill(held, box, "g")
        assert done.code == 3 and 11 * MIB <= int(held.sh(box, "stat -c %s g").text) <= 12 * MIB
        assert held.sh(box, "rm f; echo x > h", flags=["-q"]).code != 0, "what a snapshot keeps is not free when it is removed"
        held.ok("fork", "--at", "one", box, "c")
        try:
            assert fill(held, "c", "g").code == 3
            assert 31 * MIB <= int(held.sh("c", "stat -c %s g").text) <= 32 * MIB
            assert held.sh("c", "stat -c %s f").text == f"{20 * MIB}\n"
        finally:
            held.ok("rm", "c")


@pytest.mark.limit(600)
def test_quota_holds_for_the_copy_of_a_box_that_works(held):
    with box_of(held, "b", "--disk", "32M") as box:
        held.ok("exec", "-q", box, "--", "sh", "-c", "head -c 20M /dev/zero > f; sync f")
        held.ok("exec", "-d", box, "--", "sleep", "600")
        done = held.run("snapshot", box, "one")
        assert done.code != 0 and "no room for a copy" in done.errors, done
        (used, _, most, _), = [projects(held)[mark_of(held.open_layer(box))]]
        assert used <= most
        assert held.sh(box, "head -c 5M /dev/zero > g", flags=["-q"]).code == 0, "what was copied so far is given back"


@pytest.mark.limit(600)
def test_quota_welds_layers_of_others(held):
    with box_of(held, "b", "--disk", "32M") as box:
        for i in range(8):
            held.ok("exec", "-q", box, "--", "sh", "-c", f"mkdir -p d; echo {i} > d/{i}")
            held.ok("snapshot", box, f"s{i}")
        held.ok("fork", box, "c")
        try:
            for i in range(8, 17):
                held.ok("exec", "-q", "c", "--", "sh", "-c", f"echo {i} > d/{i}")
                held.ok("snapshot", "c", f"s{i}")
            held.ok("gc")
            stack = next((held.root / "state/pale/boxes").glob(f"{held.info('c')['id']}/stack")).read_text()
            assert "\njoin " in stack, stack
            assert held.sh("c", "cat d/* | wc -l").text == "17\n"
        finally:
            held.ok("rm", "c")


def test_quota_gives_its_project_back(held):
    before = projects(held)
    held.create("b", "--disk", "8M")
    held.ok("exec", "-q", "b", "--", "sh", "-c", "echo x > f")
    mine = mark_of(held.open_layer("b"))
    assert 0x50000000 <= mine < 0x51000000 and mine not in before and projects(held)[mine][2] == 8 * MIB
    assert mark_of(held.open_layer("b").parent) == mark_of(held.open_layer("b") / "home") == mine
    held.ok("rm", "b")

    def is_free():
        held.ok("gc")
        return projects(held).get(mine, (0, 0, 0, 0)) == (0, 0, 0, 0)
    assert harness.wait_until(is_free, seconds=60, every=1), projects(held)


def test_quota_cannot_be_left_from_inside(held):
    script = """import fcntl, os, struct
open('f', 'w').close()
for path in ('f', '.'):
    fd = os.open(path, os.O_RDONLY)
    try: old = bytearray(fcntl.ioctl(fd, 0x801c581f, bytes(28)))
    except OSError as e: print('get', e.errno); continue
    for flags, project in ((0, 0), (0x200, 0), (0, 77), (0x200, 77)):
        new = bytearray(old)
        struct.pack_into('=I', new, 0, flags)
        struct.pack_into('=I', new, 12, project)
        try: fcntl.ioctl(fd, 0x401c5820, bytes(new)); print('set', path, flags, project)
        except OSError: pass
    for flags in (0, 0x20000000):
        try: fcntl.ioctl(fd, 0x40086602, struct.pack('=q', flags)); print('flags', path, flags)
        except OSError: pass
"""
    with box_of(held, "b", "--disk", "8M") as box:
        home = held.open_layer(box) / "home"
        mine = mark_of(home)
        held.py(box, script, flags=["-q"])
        held.sh(box, "mkdir -p d/e && mv d e && ln f g && echo > e/f", flags=["-q"])
        assert mark_of(home) == mark_of(home / "e") == mark_of(home / "e/e") == mine
        assert fill(held, box, "x").code == 3
        assert int(held.sh(box, "stat -c %s x").text) <= 8 * MIB


def test_quota_follows_the_policy(held):
    with box_of(held, "b", "--disk", "8M") as box:
        policy = held.root / "state/pale/boxes" / held.info(box)["id"] / "policy"
        text = policy.read_text()
        for value, fits in (("limits.disk 16777216 asked", True), ("limits.disk none default", True), ("limits.disk 8388608 asked", False)):
            held.ok("stop", box)
            policy.write_text(text.replace("limits.disk 8388608 asked", value))
            done = held.sh(box, "head -c 12M /dev/zero > f", flags=["-q"])
            assert done.code == 0 if fits else "disk limit: " in done.errors, (value, done)


@pytest.mark.parametrize("what", ("bytes", "files"))
@pytest.mark.limit(600)
def test_quota_that_is_used_up_leaves_a_box_that_can_be_used(held, what):
    """It starts, is kept, forked and gone back from, and its files can be removed."""
    with box_of(held, "b", "--disk", "16M") as box:
        assert held.exec(box, "python3", "-c", USE_UP[what], "f", flags=["-q"]).code == 3
        for _ in range(3):
            held.ok("stop", box)
            assert held.sh(box, "echo x > more", flags=["-q"]).code != 0
        held.ok("snapshot", box, "one")
        held.ok("snapshot", box, "two")
        held.ok("restore", box, "one")
        used, files, most, files_most = projects(held)[mark_of(held.open_layer(box).parent)]
        assert most == 16 * MIB and files_most == 4096 and used <= most + MIB and files <= files_most + 64
        held.ok("fork", "--at", "one", box, "c")
        assert held.sh("c", "rm -f f*; echo x > more", flags=["-q"]).code == 0
        held.ok("rm", "c")


def test_quota_refuses_files_that_were_never_counted(held):
    with box_of(held, "b", "--disk", "8M") as box:
        held.ok("stop", box)
        layers = held.open_layer(box).parent
        copy = layers.with_name("copy")
        subprocess.run(["cp", "-a", layers, copy], check=True)
        shutil.rmtree(layers)
        copy.rename(layers)
        done = held.sh(box, "true")
        assert done.code == 125 and "never counted" in done.errors


def used_by(pale, box):
    """What counts to a box: (bytes used, files used, bytes at most, files at most)."""
    return projects(pale)[mark_of(pathlib.Path(pale.info(box)["data"]) / "layers")]


LOOK = "md5sum g; (find . ! -type d -printf '%p %M %n %s %l\\n'; find . -type d -printf '%p %M\\n') | sort"


@pytest.mark.limit(600)
def test_quota_counts_what_is_imported(held):
    archive = held.root / "export"
    with box_of(held, "b") as box:
        held.ok("exec", "-q", box, "--", "sh", "-c", "mkdir d; head -c 20M /dev/urandom > d/f; ln d/f g; ln -s f d/l; chmod 500 d")
        held.ok("export", "--plain", "-f", "-o", archive, box)
        wanted = held.sh(box, LOOK).text
    before = projects(held)
    done = held.run("import", "--disk", "16M", archive, "c")
    assert done.code == 125 and "no room for a copy (raise limits.disk, or leave it out)" in done.errors, done
    assert held.boxes() == []

    def is_as_before():  # XFS frees behind the scenes
        held.ok("gc")
        return all(p in before or use == (0, 0, 0, 0) for p, use in projects(held).items())
    assert harness.wait_until(is_as_before, seconds=60, every=1), projects(held)
    held.ok("import", "--disk", "32M", archive, "c")
    try:
        assert held.sh("c", LOOK).text == wanted
        used, files, most, _ = used_by(held, "c")
        assert 20 * MIB <= used < 21 * MIB and files >= 8 and most == 32 * MIB
        assert fill(held, "c", "h").code == 3 and 11 * MIB <= int(held.sh("c", "stat -c %s h").text) <= 12 * MIB
    finally:
        held.ok("rm", "c")
        archive.unlink()


@pytest.mark.parametrize("what", ("bytes", "files"))
@pytest.mark.limit(600)
def test_quota_that_is_used_up_leaves_a_box_that_can_be_exported(held, what):
    """Its layers are welded for that, which counts to nobody."""
    archive = held.root / "export"
    with box_of(held, "b", "--disk", "16M") as box:
        held.ok("exec", "-q", box, "--", "sh", "-c", "echo x > first")
        held.ok("snapshot", box, "one")
        assert held.exec(box, "python3", "-c", USE_UP[what], "f", flags=["-q"]).code == 3
        held.ok("snapshot", box, "two")
        before = used_by(held, box)
        held.ok("export", "--plain", "-f", "-o", archive, box)
        after = used_by(held, box)
        assert after[2:] == before[2:] == (16 * MIB, 4096) and after[0] <= before[0] and after[1] <= before[1]
        names = subprocess.run(["tar", "-tf", archive], check=True, capture_output=True, text=True).stdout
        assert "home/first\n" in names and "home/f" in names
        archive.unlink()


@pytest.mark.limit(600)
def test_quota_that_is_used_up_lets_single_paths_be_thrown_away(held):
    project = held.root / "project"
    project.mkdir()
    (project / "a").write_text("one\n")
    try:
        held.create("b", "--disk", "16M", "--project", "review", cwd=project)
        try:
            assert held.sh("b", f"echo two > {project}/a; echo new > {project}/b", flags=["-q"]).code == 0
            assert fill(held, "b", "f").code == 3
            held.ok("discard", "b", "a", cwd=project)
            assert held.sh("b", f"cat {project}/a {project}/b", flags=["-q"]).text == "one\nnew\n"
            assert used_by(held, "b")[2:] == (16 * MIB, 4096)
            assert fill(held, "b", "g").code == 3, "it is held as before"
        finally:
            held.ok("rm", "-f", "b")
    finally:
        shutil.rmtree(project)


def test_quota_of_a_box_that_is_gone_stays_where_gc_only_tells(held):
    held.create("b", "--disk", "8M")
    layers = pathlib.Path(held.info("b")["data"]) / "layers"
    mine = mark_of(layers)
    held.ok("stop", "b")
    shutil.rmtree(layers.parent)
    held.ok("gc", "-n")
    assert projects(held)[mine][2] == 8 * MIB
    held.ok("gc")
    assert projects(held).get(mine, (0, 0, 0, 0)) == (0, 0, 0, 0)
