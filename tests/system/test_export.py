# SPDX-License-Identifier: Apache-2.0
"""Exports of boxes and what becomes of them elsewhere: the same files, nothing of the other host, and nothing of what a stranger put in."""
import hashlib
import io
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import tarfile
import time

import pytest

import harness
from fault.scene import TOOLS

INJECT = TOOLS / "fault-inject"
BILL = "pale-export.json"
LOOK = r"""import hashlib, os, stat, sys
for top in sys.argv[1:]:
    for path, folders, files in os.walk(os.fsencode(top)):
        for name in sorted(folders + files):
            p = os.path.join(path, name); s = os.lstat(p); k = stat.S_IFMT(s.st_mode)
            what = os.readlink(p) if k == stat.S_IFLNK else hashlib.sha256(open(p, "rb").read()).digest() if k == stat.S_IFREG else b""
            size = s.st_size if k == stat.S_IFREG else 0
            more = sorted((n, os.getxattr(p, n)) for n in os.listxattr(p)) if k in (stat.S_IFREG, stat.S_IFDIR) else []
            print(sorted([(p, oct(s.st_mode), more, size, what.hex(), int(s.st_mtime), s.st_nlink if k == stat.S_IFREG else 0)]))
"""
WRITES = r"""set -e
cd ~; mkdir -p deep/a/b/c empty; echo hello > deep/a/b/c/f; chmod 640 deep/a/b/c/f; echo x > x; ln x deep/y; ln -s ../nowhere deep/link; ln -s /etc/passwd abs; touch -h -d '2001-02-03 04:05:06' abs deep/link deep/a
mkdir ro; echo r > ro/r; chmod 444 ro/r; chmod 555 ro; mkdir -m 1777 sticky; truncate -s 50M sparse; printf end >> sparse; head -c 3000000 /dev/urandom > big
: > none; printf '\0' > zero; touch "$(printf 'a\nb\033[31m')" "$(printf '\377\376')" 'sp ace' -- -dash 'quote"' '*'; mkdir "$L"; echo long > "$L/$L"
mkfifo pipe; echo t > /tmp/t; mkdir /tmp/d
python3 -c "import os; os.setxattr('x', 'user.one', bytes(range(256))); os.setxattr('x', 'user.two', b''); os.setxattr('deep', 'user.' + 'n' * 250, b'v' * 3000); os.setxattr('deep/a', 'user.d', b'x')"
cd "$P"; echo new > changed; rm gone; rm -r tree; mkdir tree; echo n > tree/n; rm -r old; echo file > old; chmod 700 kept; ln -s kept link; touch -h -d '2002-03-04' link; rm "$L"
mkdir shut; echo s > shut/s; rm part/inner; chmod 555 part; rm deep/er/f
"""


@pytest.fixture
def review(pale, hostdir):
    long = "l" * 255
    for name in ("changed", "gone", "kept", long):
        (hostdir / name).write_text(f"{name[:9]}\n")
    for name in ("tree/a", "tree/b/c", "old/x", "part/inner", "part/outer", "deep/er/f", "deep/er/g"):
        (hostdir / name).parent.mkdir(parents=True, exist_ok=True)
        (hostdir / name).write_text("base\n")
    box = pale.create("r", "--project", "review", "--output", "300M", "--env", "SECRET_WORD=hush", "--read", "/etc/hostname", cwd=hostdir)
    done = pale.sh(box, f"P={hostdir} L={long}\n{WRITES}")
    assert done.code == 0, done
    return box


def look(pale, box, *tops):
    done = pale.py(box, LOOK.replace("sys.argv[1:]", repr([str(t) for t in tops])))
    assert done.code == 0, done
    return done.text


def state_of(pale):
    """Every name below data and state that a box or an image could leave; the logs of removed boxes are kept."""
    found = set()
    for top in ("data", "state"):
        for path, folders, files in os.walk(pale.root / top):
            found |= {os.path.relpath(os.path.join(path, n), pale.root) for n in folders + files}
    return {f for f in found if not f.startswith(("state/pale/proved", "state/pale/host.", "state/pale/runs.audit", "state/pale/removed"))}


@pytest.mark.basic
def test_there_and_back(pale, review, hostdir, root):
    tops = ["/home/agent", "/tmp", hostdir]
    before = look(pale, review, *tops)
    told = pale.json("export", "--json", "-o", root / "x", review)
    assert told["box"] == review and told["entries"] > 30 and (root / "x").stat().st_mode & 0o777 == 0o600
    assert look(pale, review, *tops) == before
    made = pale.json("import", "--json", "--project-path", hostdir, root / "x", "new")
    assert f"project.path {hostdir}" in made["left_out"] and "env.set SECRET_WORD" in made["left_out"]
    assert made["from"] == review and made["digest"] == hashlib.sha256((root / "x").read_bytes()).hexdigest()
    after = look(pale, "new", *tops)
    gone = [line for line in before.splitlines() if line not in after.splitlines()]
    assert [line for line in gone if "pipe" not in line] == [] and len(after.splitlines()) == len(before.splitlines()) - 1, gone
    assert int(pale.sh("new", "du -k ~/sparse | cut -f1").text) < 1000, "holes are holes"
    assert pale.sh("new", "hostname; cat /etc/machine-id").text != pale.sh(review, "hostname; cat /etc/machine-id").text
    assert pale.info("new")["id"] != pale.info(review)["id"]
    # Of the policy what is of no host; nothing else.
    policy = pale.info("new")["policy"]
    assert policy["limits"]["output"] == pale.info(review)["policy"]["limits"]["output"] and policy["limits"]["output"]["value"] == 300 << 20 and "hush" not in json.dumps(policy)
    assert not policy.get("read") and b"hush" not in subprocess.run(["zstd", "-dc", root / "x"], check=True, capture_output=True).stdout
    first = json.loads(pale.ok("audit", "--json", "new").out.splitlines()[0])
    assert first["event"] == "box.imported" and first["from"] == review and first["export_digest"] == made["digest"]
    assert "box.export" in [json.loads(line)["event"] for line in pale.ok("audit", "--json", review).out.splitlines()]
    # What was deleted is deleted there too, and shows in a review.
    assert pale.ok("diff", "--stat", review).text == pale.ok("diff", "--stat", "new").text
    assert pale.json("snapshots", "--json", "new")[0]["name"] == "imported"
    # The export of an import is the same.
    pale.ok("export", "-o", root / "y", "new")
    assert bill_of(root / "x")["parts"] == bill_of(root / "y")["parts"]


def test_of_snapshots_one_on_another(pale, review, hostdir, root):
    """What several layers say of one name is what the topmost says."""
    pale.ok("snapshot", review, "one")
    one = look(pale, review, "/home/agent", hostdir)
    assert pale.sh(review, f"rm -r ~/deep; mkdir ~/deep; echo 2 > ~/deep/z; echo 2 > ~/x; cd {hostdir}; rm -r tree; echo 2 > changed; rm link").code == 0
    pale.ok("snapshot", review, "two")
    assert pale.sh(review, f"echo 3 > ~/three; cd {hostdir}; mkdir tree; echo 3 > tree/three; rm changed").code == 0
    three = look(pale, review, "/home/agent", hostdir)
    layers = sorted((pathlib.Path(pale.info(review)["data"]) / "layers").iterdir())
    for name, flags, was in (("n1", ["--at", "one"], one), ("n3", [], three)):
        pale.ok("export", *flags, "-f", "-o", root / "x", review)
        pale.ok("import", "--project-path", hostdir, root / "x", name)
        now = look(pale, name, "/home/agent", hostdir)
        assert [line for line in was.splitlines() if line not in now.splitlines() and "pipe" not in line] == []
    assert bill_of(root / "x")["snapshot"] == "" and len(list((pathlib.Path(pale.info(review)["data"]) / "layers").iterdir())) == len(layers) + 1
    done = pale.run("export", "--at", "never", "-o", root / "z", review)
    assert done.code == 125 and f"pale snapshots {review}" in done.errors and not (root / "z").exists()


def test_a_box_that_works_goes_on(pale, box, root):
    job = pale.ok("exec", "-d", box, "--", "sh", "-c", "i=0; while :; do i=$((i+1)); echo $i > ~/next; mv ~/next ~/count; sleep 0.01; done").text.strip()
    assert harness.wait_until(lambda: pale.sh(box, "cat ~/count").code == 0)
    pale.ok("export", "-o", root / "x", box)
    pale.ok("import", root / "x", "new")
    assert int(pale.sh("new", "cat ~/count").text) > 0
    assert [j["state"] for j in pale.json("ps", "--json", box) if str(j.get("job", j.get("id"))) == job] == ["running"], pale.ok("ps", "--json", box)
    pale.ok("kill", box, job)


def test_streams(pale, box, root):
    assert pale.sh(box, "echo 1 > ~/f").code == 0
    plain = pale.ok("export", "--plain", "-o", "-", box).out
    packed = pale.ok("export", "-o", "-", box).out
    assert packed[:4] == b"\x28\xb5\x2f\xfd" and tarfile.open(fileobj=io.BytesIO(plain)).getnames()[:2] == [BILL, "home/f"]
    pale.ok("import", "-", "a", input=plain)
    pale.ok("import", "-", "b2", input=packed)
    assert pale.sh("a", "cat ~/f").text == pale.sh("b2", "cat ~/f").text == "1\n"
    done = pale.run("import", "-", "a", input=plain)
    assert done.code == 125 and "already a box a" in done.errors


def test_the_file(pale, box, root, hostdir):
    done = pale.run("export", box, cwd=hostdir)
    assert done.code == 0 and os.listdir(hostdir) == [f"{box}.tar.zst"]
    was = (hostdir / f"{box}.tar.zst").stat().st_ino
    done = pale.run("export", box, cwd=hostdir)
    assert done.code == 125 and "-f" in done.errors and (hostdir / f"{box}.tar.zst").stat().st_ino == was
    pale.ok("export", "-f", box, cwd=hostdir)
    assert (hostdir / f"{box}.tar.zst").stat().st_ino != was
    pale.ok("export", "--plain", "-o", hostdir / "p", box)
    os.mkfifo(hostdir / "fifo")
    for bad in (hostdir, hostdir / "fifo", hostdir / "none" / "x", "/dev/null", str(hostdir) + "/"):
        assert pale.run("export", "-f", "-o", bad, box, timeout=10).code == 125, bad
    for bad in (hostdir / "fifo", hostdir, hostdir / "none", "/dev/zero"):
        assert pale.run("import", bad, "new", timeout=10).code == 125, bad
    assert sorted(os.listdir(hostdir)) == [f"{box}.tar.zst", "fifo", "p"] and pale.boxes() == [box]


def test_what_has_no_form_in_an_archive_is_told(pale, box, root):
    assert pale.sh(box, "mkdir ~/d; touch ~/d/.wh.name").code == 0
    done = pale.run("export", "-o", root / "x", box)
    assert done.code == 125 and ".wh.name" in done.errors and "rename" in done.errors and not (root / "x").exists()
    assert pale.sh(box, "rm ~/d/.wh.name; truncate -s 8E ~/huge 2> /dev/null || truncate -s 15T ~/huge").code == 0
    done = pale.run("export", "-o", root / "x", box)
    assert done.code == 125 and "huge" in done.errors and "larger than" in done.errors and not (root / "x").exists()
    assert pale.sh(box, "rm ~/huge; mkdir ~/shut; touch ~/shut/f; chmod 0 ~/shut").code == 0
    done = pale.run("export", "-o", root / "x", box)
    if harness.REAL_ROOT:
        assert done.code == 0 and pale.run("import", root / "x", "n").code == 0 and pale.sh("n", "chmod 700 ~/shut && ls ~/shut").text == "f\n"
    else:
        assert done.code == 125 and "shut" in done.errors and "chmod" in done.errors and not (root / "x").exists()
    pale.create("m", "--scratch", "memory")
    done = pale.run("export", "-f", "-o", root / "x", "m")
    assert done.code == 125 and "memory" in done.errors
    assert not list(root.glob("*.new")) and not list(root.glob(".x*"))


def test_folders_of_the_host_are_given_anew_or_not_at_all(pale, review, hostdir, root):
    pale.ok("export", "-o", root / "x", review)
    done = pale.run("import", root / "x", "n")
    assert done.code == 125 and "--project-path" in done.errors
    assert f"not taken over from the other host: project.path {hostdir}" in done.errors and "env.set SECRET_WORD" in done.errors and "hush" not in done.errors
    done = pale.ok("import", "--project", "none", root / "x", "n")
    assert "left out" in done.errors and pale.info("n")["policy"]["project"]["mode"] == "none" and pale.sh("n", "cat ~/x").text == "x\n"
    (root / "p.yaml").write_text("limits: {output: 200M}\n")
    done = pale.run("import", "--policy", root / "p.yaml", root / "x", "m")
    assert done.code == 125 and "--project review" in done.errors
    pale.ok("import", "--policy", root / "p.yaml", "--project", "none", "--output", "100M", root / "x", "m")
    assert pale.info("m")["policy"]["limits"]["output"]["value"] == 100 << 20
    done = pale.run("import", "--project-path", hostdir, "--scratch", "memory", root / "x", "k")
    assert done.code == 125 and "memory" in done.errors
    assert pale.run("--host", "unix:///none", "import", root / "x", "k").code == 125
    # What was kept of a box is not mixed with another's.
    pale.ok("rm", "--keep-data", "n")
    done = pale.run("import", "--project", "none", root / "x", "n")
    assert done.code == 125 and "of no box" in done.errors and "boxes/n" in done.errors
    pale.ok("gc")
    assert (pale.root / "data/pale/boxes/n/layers").is_dir()
    subprocess.run(f"chmod -R u+rwx {pale.root}/data/pale/boxes/n && rm -r {pale.root}/data/pale/boxes/n", shell=True, check=True)


def test_a_live_project_is_for_review(pale, hostdir, root):
    (hostdir / "f").write_text("mine\n")
    pale.create("l", "--project", "live", cwd=hostdir)
    pale.ok("export", "-o", root / "x", "l")
    pale.ok("import", "--project-path", hostdir, root / "x", "n")
    assert pale.sh("n", f"echo theirs > {hostdir}/f").code == 0 and (hostdir / "f").read_text() == "mine\n"


@pytest.mark.once
def test_a_box_on_an_image(pale, root):
    if not shutil.which("busybox") or pale.run("image", "build", "tiny", "--from", "minimal").code:
        pytest.skip("busybox-static is not installed")
    pale.create("i", "--image", "tiny")
    assert pale.sh("i", "echo made > /etc/made; rm /bin/vi; rm -r /etc/passwd; mkdir -p /opt/d; echo h > ~/h").code == 0
    pale.ok("export", "-o", root / "x", "i")
    pale.ok("import", root / "x", "j")
    assert pale.sh("j", "cat /etc/made ~/h; ls -d /opt/d; ls /bin/vi 2> /dev/null || true").text.split() == ["made", "h", "/opt/d"]
    pale.ok("rm", "i", "j")
    pale.ok("image", "rm", "tiny")
    done = pale.run("import", root / "x", "j")
    assert done.code == 125 and "image" in done.errors and pale.boxes() == []


# --- what strangers pack ---

def bill_of(path):
    plain = subprocess.run(["zstd", "-dcf", path], check=True, capture_output=True).stdout
    return json.loads(tarfile.open(fileobj=io.BytesIO(plain)).extractfile(BILL).read())


def members_of(data):
    with tarfile.open(fileobj=io.BytesIO(data)) as t:
        return [(m, t.extractfile(m).read() if m.isreg() else b"") for m in t.getmembers()]


def member(name, kind=tarfile.REGTYPE, content=b"", mode=0o644, link="", **pax):
    m = tarfile.TarInfo(name)
    m.type, m.size, m.mode, m.linkname, m.pax_headers = kind, len(content), mode, link, {k.replace("__", "."): v for k, v in pax.items()}
    return m, content


def packed(members):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as t:
        for m, content in members:
            t.addfile(m, io.BytesIO(content))
    return out.getvalue()


def after(members, name, *new):
    at = [m.name for m, _ in members].index(name) + 1
    return [*members[:at], *new, *members[at:]]


def change_bill(members, change):
    bill = json.loads(members[0][1])
    change(bill)
    return [member(BILL, content=json.dumps(bill, separators=(",", ":")).encode()), *members[1:]]


def with_mode(members, name, mode):
    return [(*member(m.name, m.type, c, mode, m.linkname),) if m.name == name else (m, c) for m, c in members]


# What is done to a good archive (home/a, home/d/x, home/d, project/d/n, project/d, project/.wh.gone), and what is said of it.
DIR, SYM, LNK, CHR, BLK, FIFO = tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE
POISON = {
    "device": (lambda m: after(m, "home/a", member("home/b", CHR)), "home/b", "device"),
    "whiteout as a device": (lambda m: after(m, "project/d", member("project/e", CHR)), "project/e", "device"),
    "block device": (lambda m: after(m, "home/a", member("home/b", BLK)), "home/b", "device"),
    "pipe": (lambda m: after(m, "home/a", member("home/b", FIFO)), "home/b", "no file, folder or link"),
    "setuid": (lambda m: after(m, "home/a", member("home/b", mode=0o4755)), "home/b", "setuid"),
    "setgid": (lambda m: after(m, "home/a", member("home/b", mode=0o2755)), "home/b", "setgid"),
    "setgid folder": (lambda m: after(m, "home/a", member("home/b", DIR, mode=0o2755)), "home/b", "setgid"),
    "overlay attribute": (lambda m: after(m, "home/a", member("home/b", SCHILY__xattr__user__overlay__opaque="y")), "home/b", "steer an overlay"),
    "trusted overlay attribute": (lambda m: after(m, "home/a", member("home/b", DIR, SCHILY__xattr__trusted__overlay__redirect="/etc")), "home/b", "steer an overlay"),
    "escaped overlay attribute": (lambda m: after(m, "home/a", member("home/b", SCHILY__xattr__user__overlay__overlay__opaque="y")), "home/b", "steer an overlay"),
    "capability": (lambda m: after(m, "home/a", member("home/b", SCHILY__xattr__security__capability="x")), "home/b", "steer an overlay"),
    "attribute of a link": (lambda m: after(m, "home/a", member("home/b", SYM, link="a", SCHILY__xattr__user__x="y")), "home/b", "no file or folder"),
    "attribute of a deletion": (lambda m: after(m, "project/d", member("project/.wh.e", SCHILY__xattr__user__x="y")), "project/.wh.e", "stands for no file"),
    "attribute of a part": (lambda m: [(*member("home", DIR, mode=0o700, SCHILY__xattr__user__x="y"),) if i.name == "home" else (i, c) for i, c in m], "home", "stands for no file"),
    "attribute with no name": (lambda m: after(m, "home/a", member("home/b", SCHILY__xattr__user__="y")), "home/b", "steer an overlay"),
    "one attribute more": (lambda m: [(*member("home/a", content=c, mode=i.mode, SCHILY__xattr__user__x="y"),) if i.name == "home/a" else (i, c) for i, c in m], "digest", "is not what it says"),
    "long attributes": (lambda m: after(m, "home/a", member("home/b", SCHILY__xattr__user__x="y" * 140_000)), "home/b", "more extended attributes"),
    "attribute of another tar": (lambda m: after(m, "home/a", member("home/b", LIBARCHIVE__xattr__user__overlay__opaque="eQ==")), "home/b", "additions"),
    "absolute": (lambda m: after(m, "home/a", member("/etc/passwd")), "/etc/passwd", "absolute"),
    "way out": (lambda m: after(m, "home/a", member("home/../../x")), "home/../../x", ".."),
    "through a link": (lambda m: after(m, "home/a", member("home/b", SYM, link="/etc"), member("home/b/passwd")), "home/b/passwd", "out of order"),
    "through a link that sorts": (lambda m: after(m, "home/a", member("home/b", SYM, link="/etc"), member("home/c/passwd"), member("home/c", DIR, mode=0o755)), "digest", "is not what it says"),
    "hard link out": (lambda m: after(m, "home/a", member("home/b", LNK, link="/etc/passwd")), "home/b", "absolute"),
    "hard link up": (lambda m: after(m, "home/a", member("home/b", LNK, link="../../x")), "home/b", ".."),
    "hard link to the bill": (lambda m: after(m, "home/a", member("home/b", LNK, link=BILL)), "home/b", "another part"),
    "hard link to another part": (lambda m: after(m, "project/d", member("project/e", LNK, link="home/a")), "project/e", "another part"),
    "hard link to nothing": (lambda m: after(m, "home/a", member("home/b", LNK, link="home/none")), "home/b", "not there"),
    "hard link to a folder": (lambda m: after(m, "home/d", member("home/e", LNK, link="home/d")), "home/e", "no file"),
    "twice": (lambda m: after(m, "home/a", member("home/a")), "home/a", "twice"),
    "twice as a link": (lambda m: after(m, "home/a", member("home/a", SYM, link="/etc")), "home/a", "twice"),
    "folder twice": (lambda m: after(m, "home/d", member("home/d", DIR)), "home/d", "twice"),
    "into a folder that is done": (lambda m: after(m, "home/d", member("home/d/y")), "home/d/y", "out of order"),
    "another part": (lambda m: after(m, BILL, member("etc/passwd")), "etc/passwd", "nothing but"),
    "work": (lambda m: after(m, BILL, member("work", DIR)), "work", "nothing but"),
    "marks": (lambda m: after(m, BILL, member("marks", content=b"wproject/x\0")), "marks", "nothing but"),
    "before the bill": (lambda m: [member("home/0"), *m], "home/0", "begins with"),
    "no bill": (lambda m: m[1:], "home", "begins with"),
    "bill twice": (lambda m: [m[0], *m], BILL, "nothing but"),
    "long bill": (lambda m: [member(BILL, content=b" " * (3 << 20)), *m[1:]], BILL, "longer than"),
    "after the end": (lambda m: [*m, member("zzz")], "zzz", "nothing but"),
    "deletion at home": (lambda m: after(m, "home/a", member("home/.wh.b")), "home/.wh.b", "nothing to delete"),
    "hides at home": (lambda m: after(m, "home/d/x", member("home/d/.wh..wh..opq")), ".wh..wh..opq", "nothing to delete"),
    "deletion with content": (lambda m: after(m, "project/d", member("project/.wh.e", content=b"x")), "project/.wh.e", "no empty file"),
    "deletion of what is there": (lambda m: after(m, "project/d", member("project/.wh.d")), "project/.wh.d", "twice"),
    "folder named as a deletion": (lambda m: after(m, "project/d", member("project/.wh.e", DIR)), "project/.wh.e", "named as a deletion"),
    "deletion of nothing": (lambda m: after(m, "project/d", member("project/.wh.")), "project/.wh.", ""),
    "deletion of ..": (lambda m: after(m, "project/d", member("project/.wh...")), "project/.wh...", ".."),
    "part as a link": (lambda m: [m[0], member("home", SYM, link="/etc")], "home", "must stand"),
    "global header": (lambda m: b"g", "", "no file, folder or link"),
    "another file": (lambda m: after(m, "home/a", member("home/b", content=b"more")), "digest", "is not what it says"),
    "another content": (lambda m: [(i, b"A\n") if i.name == "home/a" else (i, c) for i, c in m], "digest", "is not what it says"),
    "another mode": (lambda m: with_mode(m, "home/a", 0o777), "digest", "is not what it says"),
    "one deletion less": (lambda m: [x for x in m if x[0].name != "project/.wh.gone"], "digest", "is not what it says"),
    "one deletion more": (lambda m: after(m, "project/d", member("project/.wh.e")), "digest", "is not what it says"),
    "hides no more": (lambda m: [x for x in m if not x[0].name.endswith("opq")], "digest", "is not what it says"),
    "without a part": (lambda m: [x for x in m if not x[0].name.startswith("home")], "", "home"),
    "a part that was not told": (lambda m: change_bill(m, lambda b: b["parts"].pop("home")), "home", "does not say so"),
    "another digest": (lambda m: change_bill(m, lambda b: b["parts"]["home"].update(digest="sha256:" + "0" * 64)), "home", "is not what it says"),
    "another count": (lambda m: change_bill(m, lambda b: b["parts"]["home"].update(entries=99)), "home", "is not what it says"),
    "another version": (lambda m: change_bill(m, lambda b: b.update(version=3)), "version 3", "newer"),
    "bases that are none": (lambda m: change_bill(m, lambda b: b.update(bases=["file 420 - ../a"])), "project's files", "damaged"),
    "bases of a pipe": (lambda m: change_bill(m, lambda b: b.update(bases=["fifo 0 - a"])), "project's files", "damaged"),
    "bill that is none": (lambda m: [member(BILL, content=b"{"), *m[1:]], "", "no JSON"),
    "bill with more": (lambda m: change_bill(m, lambda b: b.update(more=1)), "", "not what an export says"),
    "policy that is none": (lambda m: change_bill(m, lambda b: b.update(policy={"nothing": 1})), "policy", "--policy"),
    "policy that cannot be held": (lambda m: change_bill(m, lambda b: b.update(policy={"limits": {"memory": "-1"}})), "policy", "--policy"),
}


@pytest.fixture
def good(pale, hostdir):
    """A small export, plain, and the box it was made of is gone."""
    (hostdir / "gone").write_text("x\n")
    (hostdir / "d").mkdir()
    pale.create("s", "--project", "review", cwd=hostdir)
    assert pale.sh("s", f"rm -r /tmp/*; echo a > ~/a; mkdir ~/d; echo x > ~/d/x; cd {hostdir}; rm gone; rm -r d; mkdir d; echo n > d/n").code == 0
    data = pale.ok("export", "--plain", "-o", "-", "s").out
    pale.ok("rm", "-f", "s")
    return data


def refuse(pale, hostdir, data, clean):
    done = pale.run("import", "--project-path", hostdir, "-", "new", input=data)
    assert done.code == 125, done
    pale.ok("gc")
    assert state_of(pale) == clean, sorted(state_of(pale) ^ clean)
    return done.errors


def clean_state(pale, hostdir, data):
    pale.ok("import", "--project-path", hostdir, "-", "new", input=data)
    pale.ok("rm", "-f", "new")
    pale.ok("gc")
    return state_of(pale)


def test_poisoned_archives_are_refused_and_leave_nothing(pale, good, hostdir):
    clean, bad = clean_state(pale, hostdir, good), []
    members = members_of(good)
    assert packed(members)[:512] and [m.name for m, _ in members][:4] == [BILL, "home/a", "home/d/x", "home/d"]
    (hostdir / "again").write_bytes(packed(members))
    pale.ok("import", "--project-path", hostdir, hostdir / "again", "again")
    pale.ok("rm", "-f", "again")
    for name, (spoil, what, why) in POISON.items():
        spoilt = spoil(members)
        data = packed(spoilt) if isinstance(spoilt, list) else global_header() + good
        errors = refuse(pale, hostdir, data, clean)
        if (what != "digest" and what not in errors) or why not in errors:
            bad.append((name, errors))
    assert not bad, bad


def global_header():
    return tarfile.TarInfo.create_pax_global_header({"comment": "x"})


@pytest.mark.once
def test_every_cut_and_every_kind_of_damage_is_refused(pale, good, hostdir):
    clean, chance = clean_state(pale, hostdir, good), random.Random(7)
    squeezed = subprocess.run(["zstd", "-qc"], input=good, check=True, capture_output=True).stdout
    whole = good.rstrip(b"\0")
    for data in [good[:n] for n in (0, 1, 511, 512, 700, 2048, len(whole) - 1)] + [squeezed[:n] for n in (3, 4, len(squeezed) // 2, len(squeezed) - 1)]:
        refuse(pale, hostdir, data, clean)
    for _ in range(6):
        spoilt = bytearray(good)
        spoilt[chance.randrange(len(whole))] ^= 1 << chance.randrange(8)
        done = pale.run("import", "--project-path", hostdir, "-", "new", input=bytes(spoilt))
        if done.code == 0:  # a bit of a time, or of what is said of the other host
            pale.ok("rm", "-f", "new")
    refuse(pale, hostdir, good + b"x", clean)
    refuse(pale, hostdir, squeezed + b"x" * 100, clean)


@pytest.mark.once
def test_a_bomb_is_refused(pale, good, hostdir):
    clean, members = clean_state(pale, hostdir, good), members_of(good)
    head = packed(members[:1]).rstrip(b"\0")
    head += b"\0" * (-len(head) % 512)
    big = member("home/b")[0]
    big.size = 300 << 20
    front = head + big.tobuf(tarfile.PAX_FORMAT)
    press = subprocess.Popen(["zstd", "-qc"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    feeder = subprocess.Popen(["sh", "-c", "cat; yes | head -c 314572800"], stdin=subprocess.PIPE, stdout=press.stdin)
    press.stdin.close()
    feeder.stdin.write(front)
    feeder.stdin.close()
    data = press.stdout.read()
    assert feeder.wait() == press.wait() == 0 and len(data) < 100_000
    assert "bombs" in refuse(pale, hostdir, data, clean)
    big.size = 65 << 30
    assert "larger than" in refuse(pale, hostdir, head + big.tobuf(tarfile.PAX_FORMAT), clean)


# --- interrupted ---

def inject(pale, words, *mode):
    report = pale.root / "report"
    report.unlink(missing_ok=True)
    done = subprocess.run(list(map(str, [INJECT, "--limit", "20000", "--report", report, *mode, "--", pale.program, *words])), env=pale.env, cwd=pale.home,
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False)
    return done, json.loads(report.read_text())


def points(pale, words, count, undo):
    told = inject(pale, words, "count")[1]
    undo()
    calls = told["counts"]["cli"]["all"]
    chance = random.Random()
    # The last third is where the box is made.
    return sorted(chance.sample(range(1, calls * 2 // 3), count // 2) + chance.sample(range(calls * 2 // 3, calls), count - count // 2))


@pytest.mark.once
def test_killed_over_it(pale, good, hostdir):
    """The box is there whole, or gc leaves nothing of it; an export is whole or not there."""
    if not INJECT.exists():
        pytest.skip("the fault injector is not built")
    clean = clean_state(pale, hostdir, good)
    file = pale.root / "x"
    file.write_bytes(good)
    words = ["import", "--project-path", hostdir, file, "new"]
    count = int(os.environ.get("PALE_EXPORT_POINTS", "8"))
    for k in points(pale, words, count, lambda: pale.ok("rm", "-f", "new")):
        inject(pale, words, "kill", "cli", k)
        assert harness.wait_until(lambda: not harness.processes_of(pale.root)), k
        if pale.boxes() and pale.run("inspect", "new").code == 0:
            assert pale.sh("new", "cat ~/d/x").text == "x\n", k
            pale.ok("rm", "-f", "new")
        for folder in (pale.root / "state" / "pale" / "boxes").iterdir():  # so that it is sure that nobody makes it any more
            os.utime(folder, (1, 1))
        pale.ok("gc")
        assert state_of(pale) == clean, (k, sorted(state_of(pale) ^ clean))
    pale.ok("import", *words[1:])
    assert pale.sh("new", "echo 1 > ~/more").code == 0
    pale.ok("snapshot", "new", "more")
    pale.ok("stop", "new")
    harness.wait_until(lambda: not harness.processes_of(pale.root))
    before, out = state_of(pale), pale.root / "out"
    words = ["export", "-o", out, "new"]
    for k in points(pale, words, count, out.unlink):
        inject(pale, words, "kill", "cli", k)
        assert not out.exists() or subprocess.run(["zstd", "-tq", out], check=False).returncode == 0, k
        out.unlink(missing_ok=True)
        pale.ok("gc")
        assert {p for p in state_of(pale) if "/layers/" in p} == {p for p in before if "/layers/" in p}, k
        assert not [p for p in pale.root.iterdir() if p.name.startswith(".out")], k


def test_ctrl_c_takes_it_back(pale, good, hostdir):
    clean = clean_state(pale, hostdir, good)
    p = pale.start("import", "--project-path", hostdir, "-", "new", stdin=subprocess.PIPE)
    p.stdin.write(good[:700])
    p.stdin.flush()
    time.sleep(0.3)
    p.send_signal(signal.SIGINT)
    assert p.wait(10) != 0
    assert state_of(pale) == clean, sorted(state_of(pale) ^ clean)
