# SPDX-License-Identifier: Apache-2.0
"""Boxes on images: a root of their own, an installer's work in it, and nothing of the image changed."""
import os
import pathlib
import shutil
import subprocess
import tarfile
import zipfile

import pytest


def text(pale, box, command):
    done = pale.sh(box, command)
    assert done.code == 0, done
    return done.text


@pytest.fixture
def image(pale):
    if not shutil.which("busybox"):
        pytest.skip("busybox is not installed")
    done = pale.run("image", "build", "tiny", "--from", "minimal")
    if done.code and "busybox-static" in done.errors:
        pytest.skip("busybox-static is not installed")
    assert done.code == 0, done
    return "tiny"


@pytest.mark.basic
def test_the_root_is_the_boxs_own(pale, image):
    box = pale.create("i", "--image", image)
    assert text(pale, box, "id -u; echo $USER; cat /etc/hostname").split() == ["0", "root", "i"]
    assert text(pale, box, "grep -c '^Cap.*:.0000000000000000' /proc/self/status").strip() == "5", "no capability, in no set"
    text(pale, box, "echo x > /etc/made; rm /bin/vi; mkdir -p /opt/d; echo t > /tmp/t; echo h > ~/h")
    pale.ok("stop", box)
    assert text(pale, box, "cat /etc/made /tmp/t ~/h; ls /bin/vi 2>/dev/null; ls -d /opt/d").split() == ["x", "t", "h", "/opt/d"]
    assert "good" in pale.ok("image", "verify", image).text
    other = pale.create("j", "--image", image)
    assert text(pale, other, "ls /bin/vi; ls /etc/made 2>/dev/null || true").split() == ["/bin/vi"]
    done = pale.run("image", "rm", image)
    assert done.code == 125 and ("i" in done.errors or "j" in done.errors)


def test_what_only_root_could_do_is_pretended(pale, image):
    box = pale.create("i", "--image", image)
    out = text(pale, box, "touch /f; chown 12:34 /f && echo chown; ls -ln /f; mknod /dev0 c 1 3 && echo mknod; ls /dev0 2>/dev/null || true")
    assert "chown" in out and " 0 " in out and "mknod" in out and "/dev0" not in out.splitlines()
    for no in ("mount -t tmpfs x /mnt", "chroot / true", "umount /proc", "chmod 4755 /f", "hostname other"):
        assert pale.sh(box, no).code != 0, no


def test_snapshots_diff_and_forks_of_a_root(pale, image):
    box = pale.create("i", "--image", image)
    text(pale, box, "echo 1 > /etc/one; rm /etc/group")
    pale.ok("snapshot", box, "s")
    text(pale, box, "echo 2 > /etc/two")
    changes = {c["path"]: c["change"] for c in pale.json("diff", "--json", box, "/etc")}
    assert changes.get("etc/one") == "added" and changes.get("etc/two") == "added"
    assert {c["path"]: c["change"] for c in pale.json("diff", "--json", box, "/etc/group")} == {"etc/group": "deleted"}
    pale.ok("restore", box, "s")
    assert text(pale, box, "ls /etc/one /etc/two 2>/dev/null || true").split() == ["/etc/one"]
    pale.ok("fork", box, "f")
    text(pale, "f", "echo x > /etc/f")
    assert text(pale, box, "ls /etc/f 2>/dev/null || true") == ""


def test_a_project_and_volumes_in_an_image(pale, image, hostdir):
    (hostdir / "f").write_text("old\n")
    box = pale.create("i", "--image", image, "--project", "review", "--volume", f"{hostdir}:/mnt/deep/er:ro", cwd=hostdir)
    assert text(pale, box, f"echo new > {hostdir}/f; cat {hostdir}/f /mnt/deep/er/f").split() == ["new", "old"]
    assert (hostdir / "f").read_text() == "old\n"


def test_a_name_that_moves_on_moves_no_box(pale, image, root):
    box = pale.create("i", "--image", image)
    was = pale.info(box)["policy"]["image"]
    assert was.startswith("tiny@sha256:")
    tree = root / "tree"
    (tree / "bin").mkdir(parents=True)
    shutil.copy(shutil.which("busybox"), tree / "bin" / "sh")
    with tarfile.open(root / "t.tar", "w") as t:
        t.add(tree, ".")
    pale.ok("image", "build", "tiny", "--from", "tar", "--file", root / "t.tar")
    pale.ok("stop", box)
    assert text(pale, box, "ls /bin/vi").strip() == "/bin/vi" and pale.info(box)["policy"]["image"] == was


def test_an_image_with_tricks(pale, root):
    """A /dev and an /etc that lead elsewhere are no places to mount on."""
    busybox = shutil.which("busybox")
    if not busybox or b"/ld-" in pathlib.Path(busybox).read_bytes():
        pytest.skip("no static busybox here")
    for link in ("dev", "etc", "proc", "tmp"):
        with tarfile.open(root / "t.tar", "w") as t:
            t.add(busybox, "bin/sh")
            info = tarfile.TarInfo(link)
            info.type, info.linkname = tarfile.SYMTYPE, str(root)
            t.addfile(info)
        pale.ok("image", "build", f"evil-{link}", "--from", "tar", "--file", root / "t.tar")
        before = sorted(p.name for p in root.iterdir())
        done = pale.run("create", "--image", f"evil-{link}", f"e-{link}")
        assert done.code == 125 and f"/{link} is no folder" in done.errors, done
        assert sorted(p.name for p in root.iterdir()) == before


def test_no_such_image(pale):
    done = pale.run("create", "--image", "nothing", "b")
    assert done.code == 125 and "pale image build" in done.errors


@pytest.mark.slow
@pytest.mark.limit(300)
def test_installers_work(pale, root, hostdir):
    """dpkg, apt and pip, from files: a box has no network."""
    if not os.environ.get("PALE_SLOW"):
        pytest.skip("takes a minute or two; PALE_SLOW=1 runs it")
    if not shutil.which("mmdebstrap"):
        pytest.skip("mmdebstrap is not installed")
    done = pale.run("image", "build", "deb", "--from", "mmdebstrap", "--variant", "apt", "--include", "python3-pip", timeout=280)
    if done.code:
        pytest.skip("mmdebstrap cannot work here: " + done.errors.strip().splitlines()[-1][:200])
    wheel = hostdir / "tiny_thing-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as z:
        z.writestr("tiny_thing.py", "def say(): return 'installed'\n")
        z.writestr("tiny_thing-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny-thing\nVersion: 1.0\n")
        z.writestr("tiny_thing-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        z.writestr("tiny_thing-1.0.dist-info/RECORD", "tiny_thing.py,,\ntiny_thing-1.0.dist-info/METADATA,,\ntiny_thing-1.0.dist-info/WHEEL,,\ntiny_thing-1.0.dist-info/RECORD,,\n")
    deb = hostdir / "d"
    (deb / "DEBIAN").mkdir(parents=True)
    (deb / "usr" / "bin").mkdir(parents=True)
    (deb / "DEBIAN" / "control").write_text("Package: tiny\nVersion: 1\nArchitecture: all\nMaintainer: x <x@example.org>\nDescription: x\n")
    (deb / "DEBIAN" / "postinst").write_text("#!/bin/sh\nchown daemon:daemon /usr/bin/tiny\ninstall -d -o mail -g mail /var/lib/tiny\n")
    (deb / "DEBIAN" / "postinst").chmod(0o755)
    (deb / "usr" / "bin" / "tiny").write_text("#!/bin/sh\necho tiny runs\n")
    (deb / "usr" / "bin" / "tiny").chmod(0o755)
    subprocess.run(["dpkg-deb", "--root-owner-group", "-b", deb, hostdir / "tiny.deb"], check=True, capture_output=True)
    box = pale.create("i", "--image", "deb", "--volume", f"{hostdir}:/in:ro")
    assert "tiny runs" in text(pale, box, "dpkg -i /in/tiny.deb >&2; tiny")
    assert "tiny runs" in text(pale, box, "apt-get -q -y -o APT::Sandbox::User=root install --reinstall /in/tiny.deb >&2; tiny")
    assert "installed" in text(pale, box, "pip install -q --break-system-packages --no-index /in/*.whl >&2; python3 -c 'import tiny_thing; print(tiny_thing.say())'")
    pale.ok("stop", box)
    assert text(pale, box, "tiny; python3 -c 'import tiny_thing; print(tiny_thing.say())'").split() == ["tiny", "runs", "installed"]
    data = pathlib.Path(pale.info(box)["data"])
    pale.ok("stop", box)
    assert all(p.lstat().st_uid == data.stat().st_uid for p in data.rglob("*")), "all of it is the user's"
