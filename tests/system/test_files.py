# SPDX-License-Identifier: Apache-2.0
"""cp, cat, write, files: bytes and trees in and out, and nothing beyond them."""
import hashlib
import os
import pathlib
import stat

import pytest


def snapshot(folder):
    """{relative name: (kind, mode, content)} of a tree, in bytes."""
    found = {}
    base = os.fsencode(folder)
    for path, dirs, files in os.walk(base):
        for name in dirs + files:
            p = os.path.join(path, name)
            st = os.lstat(p)
            kind = stat.S_IFMT(st.st_mode)
            content = os.readlink(p) if stat.S_ISLNK(st.st_mode) else open(p, "rb").read() if stat.S_ISREG(st.st_mode) else b""
            found[os.path.relpath(p, base)] = (kind, 0 if stat.S_ISLNK(st.st_mode) else stat.S_IMODE(st.st_mode), content)
    return found


def make_tree(folder):
    folder.mkdir()
    (folder / "plain").write_bytes(bytes(range(256)) * 100)
    (folder / "empty").write_bytes(b"")
    (folder / "run").write_text("#!/bin/sh\necho ran\n")
    (folder / "run").chmod(0o755)
    (folder / "private").write_text("x")
    (folder / "private").chmod(0o600)
    (folder / "deep" / "er" / "still").mkdir(parents=True)
    (folder / "deep" / "er" / "f").write_text("deep")
    (folder / "hollow").mkdir()
    (folder / "link").symlink_to("plain")
    (folder / "deep" / "up").symlink_to("../plain")
    for name in (b"new\nline", b"esc\x1b[31m", b"bad\xff\xfe", b" space ", b"-rf", b"'quote\"", "ünï".encode()):
        with open(os.path.join(os.fsencode(folder), name), "wb") as f:
            f.write(name)


@pytest.mark.basic
def test_file_in_and_out(pale, box, root):
    (root / "f").write_bytes(b"content\0\xff")
    pale.ok("cp", root / "f", f"{box}:g")
    assert pale.ok("cat", box, "g").out == b"content\0\xff"
    pale.ok("cp", f"{box}:/home/agent/g", root / "h")
    assert (root / "h").read_bytes() == b"content\0\xff"


def test_into_an_existing_folder_as_cp_does(pale, box, root):
    (root / "f").write_text("x")
    (root / "d").mkdir()
    pale.ok("cp", root / "f", f"{box}:/tmp")
    assert pale.ok("cat", box, "/tmp/f").text == "x"
    pale.ok("cp", f"{box}:/tmp/f", root / "d")
    assert (root / "d" / "f").read_text() == "x"


def test_tree_in_and_out_is_the_same(pale, box, root):
    make_tree(root / "t")
    pale.ok("cp", root / "t", f"{box}:t")
    assert pale.exec(box, "./t/run").text == "ran\n"
    pale.ok("cp", f"{box}:t", root / "back")
    assert snapshot(root / "back") == snapshot(root / "t")


def test_big_file_both_ways(pale, box, root):
    data = os.urandom(1 << 20) * 64
    (root / "big").write_bytes(data)
    pale.ok("cp", root / "big", f"{box}:big", timeout=60)
    assert pale.exec(box, "sha256sum", "big").text.split()[0] == hashlib.sha256(data).hexdigest()
    pale.ok("cp", f"{box}:big", root / "big2", timeout=60)
    assert (root / "big2").read_bytes() == data


def test_many_files(pale, box, root):
    (root / "m").mkdir()
    for i in range(2000):
        (root / "m" / f"f{i}").write_text(str(i))
    pale.ok("cp", root / "m", f"{box}:m", timeout=60)
    assert pale.sh(box, "ls m | wc -l").text == "2000\n"
    pale.ok("cp", f"{box}:m", root / "n", timeout=60)
    assert len(os.listdir(root / "n")) == 2000


def test_fifo_and_device_are_left_out_with_a_word(pale, box, root):
    pale.sh(box, "mkdir t; echo x > t/f; mkfifo t/p")
    done = pale.run("cp", f"{box}:t", root / "t", timeout=10)
    assert done.code == 0 and "left out" in done.errors
    assert sorted(os.listdir(root / "t")) == ["f"]
    os.mkfifo(root / "t" / "q")
    done = pale.run("cp", root / "t", f"{box}:u", timeout=10)
    assert done.code == 0 and "left out" in done.errors and pale.sh(box, "ls u").text == "f\n"


@pytest.mark.parametrize("target", ["/etc/passwd", "../../../../etc/passwd", "../outside"])
def test_links_that_lead_out_stay_out_of_the_host(pale, box, root, target):
    pale.sh(box, f"mkdir -p t/d; ln -s {target} t/evil; echo x > t/f")
    done = pale.run("cp", f"{box}:t", root / "t")
    assert not os.path.lexists(root / "t" / "evil") and (root / "t" / "f").read_text() == "x\n"
    assert "left out" in done.errors


def test_setuid_bits_are_dropped(pale, box, root):
    """A box cannot set them; the host can, on what the box holds."""
    pale.sh(box, "mkdir -p t/d; cp /bin/true t/s")
    tree = pale.open_layer(box) / "home" / "t"
    for path, mode in ((tree / "s", 0o6755), (tree / "d", 0o7777), (tree, 0o2755)):
        path.chmod(mode)
    pale.ok("cp", f"{box}:t", root / "t")
    for p in (root / "t", root / "t" / "s", root / "t" / "d"):
        assert not p.stat().st_mode & 0o6000, p


def test_overwriting_a_link_of_the_host_does_not_follow_it(pale, box, root):
    (root / "victim").write_text("precious")
    (root / "d").mkdir()
    (root / "d" / "f").symlink_to(root / "victim")
    pale.ok("write", box, "f", input=b"evil")
    pale.run("cp", f"{box}:f", root / "d")
    pale.run("cp", f"{box}:f", root / "d" / "f")
    assert (root / "victim").read_text() == "precious"


def test_overwriting_below_a_link_of_the_host_does_not_follow_it(pale, box, root):
    (root / "victim").mkdir()
    (root / "d" / "t").mkdir(parents=True)
    (root / "d" / "t" / "sub").symlink_to(root / "victim")
    pale.sh(box, "mkdir -p t/sub; echo evil > t/sub/f")
    pale.run("cp", f"{box}:t", root / "d")
    assert os.listdir(root / "victim") == []


def test_link_in_the_box_cannot_aim_a_copy_at_the_host(pale, box, root):
    """The path is the box's: a link to a host path is resolved in the box, where the host is not."""
    (root / "secret").write_text("host secret")
    pale.sh(box, f"ln -s {root}/secret s")
    done = pale.run("cp", f"{box}:s", root / "out")
    assert not (root / "out").exists() or (root / "out").read_text() != "host secret" or os.path.islink(root / "out")
    assert pale.run("cat", box, "s").code == 125, done


def test_copy_in_over_a_link_of_the_box(pale, box, root):
    (root / "f").write_text("new")
    pale.sh(box, "echo old > target; ln -s target l")
    pale.run("cp", root / "f", f"{box}:l")
    assert pale.ok("cat", box, "target").text == "old\n" and pale.ok("cat", box, "l").text == "new"


def test_copy_of_what_is_not_there(pale, box, root):
    assert pale.run("cp", f"{box}:/none", root / "x").code == 125
    assert pale.run("cp", root / "none", f"{box}:x").code == 125
    assert not (root / "x").exists()
    assert pale.run("cp", f"{box}:/etc/passwd", root / "no" / "such" / "x").code == 125


def test_copy_into_a_read_only_place_is_refused(pale, box, root):
    (root / "f").write_text("x")
    done = pale.run("cp", root / "f", f"{box}:/usr/bin/f")
    assert done.code == 125 and "in the box" in done.errors


# --- cat and write ---

@pytest.mark.basic
def test_write_and_cat(pale, box):
    data = bytes(range(256)) * 4096
    pale.ok("write", box, "sub-less", input=data)
    assert pale.ok("cat", box, "sub-less").out == data
    assert pale.ok("cat", box, "sub-less", "/etc/hostname").out == data + pale.ok("cat", box, "/etc/hostname").out


def test_write_mode_and_replacement(pale, box):
    pale.ok("write", "--mode", "600", box, "f", input=b"one")
    assert pale.exec(box, "stat", "-c", "%a", "f").text == "600\n"
    pale.ok("write", "--mode", "755", box, "f", input=b"two")
    assert pale.exec(box, "stat", "-c", "%a", "f").text == "755\n" and pale.ok("cat", box, "f").text == "two"
    assert pale.sh(box, "ls -A | grep -v '^f$' | grep -v '^\\.'").text == ""


def test_write_of_nothing_makes_an_empty_file(pale, box):
    pale.ok("write", box, "e", input=b"")
    assert pale.ok("cat", box, "e").out == b""


def test_write_where_it_may_not(pale, box):
    for path in ("/etc/x", "/usr/x", "/no/such/folder/x", "/proc/sys/kernel/hostname"):
        done = pale.run("write", box, path, input=b"x")
        assert done.code == 125 and "in the box" in done.errors, path


def test_cat_of_a_folder_is_an_error(pale, box):
    assert pale.run("cat", box, "/tmp").code == 125


def test_cat_of_an_endless_file_meets_the_output_limit(pale):
    box = pale.create("b", "--output", "1M")
    done = pale.run("cat", box, "/dev/zero", timeout=20)
    assert done.code == 125 and len(done.out) <= 1 << 20


# --- files ---

def test_listing(pale, box):
    pale.sh(box, "mkdir d; echo hello > f; ln -s f l; mkfifo p; chmod 640 f")
    rows = {r["name"]: r for r in pale.json("files", "--json", box)}
    moving = {"mtime": 0, "mtime_ns": 0, "inode": 0}
    assert rows["f"] | moving == {"name": "f", "type": "f", "size": 6, "mode": "0640", **moving}
    assert rows["f"]["inode"] == int(pale.exec(box, "stat", "-c", "%i", "f").text)
    assert f'{rows["f"]["mtime"]}.{rows["f"]["mtime_ns"]:09}' == pale.exec(box, "stat", "-c", "%.9Y", "f").text.strip()
    assert rows["d"]["type"] == "d" and rows["l"]["type"] == "l" and rows["l"]["target"] == "f" and rows["p"]["type"] == "p"
    text = pale.ok("files", box).text
    assert "d/" in text and "l -> f" in text


@pytest.mark.basic
def test_times_before_1970(pale, box, root):
    pale.ok("exec", box, "--", "touch", "-d", "1901-12-14 00:00:00 UTC", "/tmp/old")
    entry, = [f for f in pale.json("files", "--json", box, "/tmp") if f["name"] == "old"]
    assert entry["mtime"] == -2147472000
    pale.ok("files", box, "/tmp")
    pale.ok("cp", f"{box}:/tmp/old", root / "old")
    assert int((root / "old").stat().st_mtime) == -2147472000


def test_listing_of_nothing(pale, box):
    pale.sh(box, "mkdir empty")
    assert pale.json("files", "--json", box, "empty") == [] and pale.ok("files", box, "empty").out == b""
    assert pale.run("files", box, "none").code == 125


def test_listing_of_what_is_no_folder(pale, box):
    pale.sh(box, "echo x > f; ln -s nowhere l")
    assert [(r["name"], r["type"]) for r in pale.json("files", "--json", box, "/home/agent/f")] == [("/home/agent/f", "f")]
    assert pale.json("files", "--json", box, "l", expect=125)["error"]["code"] == "not-found"
