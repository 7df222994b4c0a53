# SPDX-License-Identifier: Apache-2.0
"""image: roots for boxes, from every source; what strangers pack does no harm, and whoever is killed over a build leaves nothing."""
import fcntl
import gzip
import hashlib
import http.server
import io
import json
import os
import pathlib
import platform
import random
import signal
import stat
import subprocess
import tarfile
import threading
import time
import zlib

import pytest

import harness

ARCH = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
OCI = "application/vnd.oci.image."
LAYER = OCI + "layer.v1.tar"


# --- archives ---

def entry(name, data=b"", mode=0o644, kind=tarfile.REGTYPE, link="", **more):
    """A member as a stranger would write it; nothing is checked."""
    t = tarfile.TarInfo(name)
    t.type, t.mode, t.linkname, t.size = kind, mode, link, len(data)
    for key, value in more.items():
        setattr(t, key, value)
    return t, data


def folder(name, mode=0o755):
    return entry(name, mode=mode, kind=tarfile.DIRTYPE)


def symlink(name, target):
    return entry(name, kind=tarfile.SYMTYPE, link=target)


def hard(name, target):
    return entry(name, kind=tarfile.LNKTYPE, link=target)


def device(name):
    return entry(name, kind=tarfile.CHRTYPE, devmajor=1, devminor=3)


def tar(*entries, form=tarfile.PAX_FORMAT):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as t:
        for info, data in entries:
            t.addfile(info, io.BytesIO(data))
    return out.getvalue()


def raw_tar(*entries):
    """Like tar, but a name goes into the header as it is."""
    blocks = b""
    for info, data in entries:
        info.size = len(data)
        blocks += info.tobuf(tarfile.USTAR_FORMAT) + data + bytes(-len(data) % 512)
    return blocks + bytes(1024)


def pack(data, how):
    if how == "gzip":
        return gzip.compress(data)
    return data if how == "plain" else subprocess.run([how, "-c"], input=data, stdout=subprocess.PIPE, check=True).stdout


# --- layouts ---

def sha(data):
    return hashlib.sha256(data).hexdigest()


class Layout:
    """An OCI image layout, made by hand."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        (self.path / "blobs" / "sha256").mkdir(parents=True)
        (self.path / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')

    def blob(self, data, kind, **more):
        (self.path / "blobs" / "sha256" / sha(data)).write_bytes(data)
        return {"mediaType": kind, "digest": "sha256:" + sha(data), "size": len(data), **more}

    def json(self, value, kind, **more):
        return self.blob(json.dumps(value).encode(), kind, **more)

    def image(self, *layers, config=None, how="gzip", arch=ARCH, **more):
        """The descriptor of a manifest with these layers."""
        kinds = {"plain": LAYER, "gzip": LAYER + "+gzip", "zstd": LAYER + "+zstd"}
        made = self.json({"architecture": arch, "os": "linux", "config": config or {},
                          "rootfs": {"type": "layers", "diff_ids": ["sha256:" + sha(data) for data in layers]}}, OCI + "config.v1+json")
        listed = [self.blob(pack(data, how), kinds[how]) for data in layers]
        return self.json({"schemaVersion": 2, "mediaType": OCI + "manifest.v1+json", "config": made, "layers": listed},
                         OCI + "manifest.v1+json", **more)

    def index(self, *descriptors):
        (self.path / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": descriptors}))
        return self.path

    def simple(self, *layers, **more):
        return self.index(self.image(*layers, **more))


# --- what there is ---

def staging(pale):
    path = pale.root / "data" / "pale-staging"
    return sorted(p.name for p in path.iterdir()) if path.is_dir() else []


def digests(pale):
    path = pale.root / "data" / "pale" / "images" / "by-digest"
    return sorted(p.name for p in path.iterdir()) if path.is_dir() else []


def tree_of(pale, name):
    """{path: (kind, mode, content or target)} of an image."""
    found, root = {}, pale.json("image", "inspect", name, "--json")["root"]
    for path, dirs, files in os.walk(root):
        for each in dirs + files:
            p = os.path.join(path, each)
            st = os.lstat(p)
            kind = "l" if stat.S_ISLNK(st.st_mode) else "d" if stat.S_ISDIR(st.st_mode) else "f" if stat.S_ISREG(st.st_mode) else "?"
            content = os.readlink(p) if kind == "l" else open(p, "rb").read() if kind == "f" else None
            assert st.st_uid == os.geteuid() and kind != "?" and not stat.S_IMODE(st.st_mode) & 0o7000, (p, oct(st.st_mode))
            found[os.path.relpath(p, root)] = (kind, 0 if kind == "l" else stat.S_IMODE(st.st_mode), content)
    return found


def files_of(pale, name):
    return {p: c for p, (k, _, c) in tree_of(pale, name).items() if k == "f"}


@pytest.fixture
def build(pale, root):
    """Builds an image of a tar's bytes."""
    def run(data, name="i", *flags, source="tar", expect=0, **more):
        (root / "a.tar").write_bytes(data)
        done = pale.run("image", "build", name, "--from", source, "--file", root / "a.tar", *flags, **more)
        assert expect is None or done.code == expect, done
        if expect:
            assert staging(pale) == [] and digests(pale) == [], "a build that failed left something"
        return done
    return run


# --- tar ---

GOOD = [folder("./"), folder("./usr"), folder("./usr/bin"), entry("./usr/bin/tool", b"tool", 0o755), symlink("./bin", "usr/bin"),
        hard("./usr/bin/again", "./usr/bin/tool"), entry("./etc/deep/er/file", b"x"), entry("./secret", b"s", 0o600)]


@pytest.mark.basic
@pytest.mark.parametrize("how", ["plain", "gzip", "xz", "zstd"])
def test_a_tar_becomes_an_image(pale, build, how):
    if how in ("xz", "zstd") and not harness.has_tool(how):
        pytest.skip(f"{how} is not installed")
    done = build(pack(tar(*GOOD), how))
    assert "built image i from tar" in done.text
    tree = tree_of(pale, "i")
    assert tree["usr/bin/tool"] == ("f", 0o755, b"tool") and tree["bin"] == ("l", 0, "usr/bin") and tree["usr/bin/again"][2] == b"tool"
    assert tree["etc/deep/er/file"][2] == b"x" and tree["secret"][1] == 0o600
    facts = pale.json("image", "inspect", "i", "--json")
    assert facts["from"] == "tar" and facts["file"] == "a.tar" and facts["files"] == 4 and facts["left_out"] == {}
    assert facts["source_sha256"] == sha(pack(tar(*GOOD), how)) if how == "plain" else facts["source_bytes"] > 0
    assert staging(pale) == []


def test_the_digest_is_of_the_tree_alone(pale, build):
    build(tar(*GOOD), "a")
    build(pack(tar(*(GOOD[:1] + GOOD[:0:-1][-1:] + GOOD[1:])), "gzip"), "b")
    build(tar(*GOOD, entry("more", b"")), "c")
    build(tar(*[(e if e[0].name != "./secret" else entry("./secret", b"s", 0o640)) for e in GOOD]), "d")
    d = {i["name"]: i["digest"] for i in pale.json("image", "ls", "--json")}
    assert d["a"] == d["b"] and len({d["a"], d["c"], d["d"]}) == 3
    assert len(digests(pale)) == 3


def test_what_is_left_out_is_told(pale, build):
    done = build(tar(device("dev/null"), device("dev/zero"), entry("fifo", kind=tarfile.FIFOTYPE), entry("su", b"su", 0o4755),
                     entry("cap", b"c", 0o755, pax_headers={"SCHILY.xattr.security.capability": "x"}), folder("closed", 0o000), entry("none", b"n", 0)))
    left = pale.json("image", "inspect", "i", "--json")["left_out"]
    assert left["device"] == {"count": 2, "names": ["dev/null", "dev/zero"]} and left["fifo"]["count"] == 1
    assert left["set-bits"]["names"] == ["su"] and left["attributes"]["names"] == ["cap"] and left["mode"]["names"] == ["none"]
    tree = tree_of(pale, "i")
    assert tree["su"][1] == 0o755 and tree["closed"][1] == 0o700 and tree["none"][1] == 0o400 and "dev/null" not in tree and "fifo" not in tree
    assert "2 device" in done.errors


def test_later_entries_replace_earlier_ones(pale, build):
    build(tar(entry("a", b"1"), entry("a", b"2"), folder("d"), entry("d/x", b"x"), entry("d", b"file now"), symlink("s", "/etc"), folder("s"),
              entry("s/passwd", b"mine"), entry("h", b"old"), hard("h2", "h"), entry("h", b"new")))
    assert files_of(pale, "i") == {"a": b"2", "d": b"file now", "s/passwd": b"mine", "h": b"new", "h2": b"old"}


ESCAPES = {
    "up": (raw_tar(entry("../out", b"x")), "step .."),
    "up inside": (raw_tar(entry("a/../../out", b"x")), "step .."),
    "absolute": (raw_tar(entry("/tmp/out", b"x")), "absolute"),
    "empty step": (raw_tar(entry("a//b", b"x")), "empty step"),
    "no name": (raw_tar(entry("./", b"x")), "no name"),
    "symlink then write": (tar(symlink("x", "/etc"), entry("x/passwd", b"evil")), "no folder"),
    "symlink up then write": (tar(symlink("x", "../.."), entry("x/out", b"evil")), "no folder"),
    "symlink then folder below": (tar(symlink("x", "/etc"), folder("x/y")), "no folder"),
    "file then below": (tar(entry("x", b""), entry("x/y", b"")), "no folder"),
    "hard link out": (tar(hard("shadow", "/etc/shadow")), "absolute"),
    "hard link up": (tar(hard("shadow", "../../../../etc/shadow")), "step .."),
    "hard link through a symlink": (tar(symlink("e", "/etc"), hard("p", "e/passwd")), "no folder"),
    "hard link to nothing": (tar(hard("p", "q")), "not there"),
    "hard link to a folder": (tar(folder("q"), hard("p", "q")), "no file"),
    "pax path out": (tar(entry("good", b"x", pax_headers={"path": "../evil"})), "step .."),
    "pax path absolute": (tar(entry("good", b"x", pax_headers={"path": "/etc/evil"})), "absolute"),
    "pax link out": (tar(entry("good", kind=tarfile.LNKTYPE, link="x", pax_headers={"linkpath": "/etc/shadow"})), "absolute"),
    "sparse": (tar(entry("s", b"1\n0\n1\n" + bytes(506), pax_headers={"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.realsize": str(1 << 50)})), "sparse"),
    "old sparse": (raw_tar(entry("s", b"", kind=b"S")), "sparse"),
    "unknown type": (raw_tar(entry("s", b"", kind=b"Z")), "type 0x5a"),
    "folder with content": (raw_tar(entry("d", b"x", kind=tarfile.DIRTYPE)), "content"),
    "deep": (tar(entry("d/" * 140 + "f", b"")), "deeper"),
    "cut": (tar(*GOOD)[:1000], "ended early"),
    "empty": (b"", "ended early"),
    "no tar": (b"x" * 2048, "no tar header"),
    "no end": (tar(entry("a", b"1"))[:1024], "ended early"),
    "something behind": (tar(entry("a", b"1")) + b"more" + bytes(508), "not zero"),
    "cut gzip": (gzip.compress(tar(*GOOD) + os.urandom(1 << 20))[:5000], None),
    "wrong sum": (gzip.compress(tar(*GOOD))[:-8] + bytes(4) + gzip.compress(tar(*GOOD))[-4:], "could not uncompress"),
    "bad gzip": (b"\x1f\x8b" + os.urandom(4000), None),
    "two paths": (raw_tar(entry("x", b"11 path=aa\n11 path=bb\n", kind=b"x"), entry("good", b"x")), "more than one path"),
}


@pytest.mark.parametrize("name", ESCAPES)
def test_tricks_are_refused(pale, build, root, name):
    data, said = ESCAPES[name]
    before = sorted(os.listdir("/etc")), (os.stat("/etc/passwd").st_mtime_ns)
    done = build(data, expect=125)
    assert said is None or said in done.errors, done
    assert (sorted(os.listdir("/etc")), os.stat("/etc/passwd").st_mtime_ns) == before and not (root / "out").exists() and not os.path.exists("/tmp/out")
    assert pale.json("image", "ls", "--json") == []
    build(tar(*GOOD))  # and the next is built as ever


def test_a_long_size_is_not_believed(pale, build):
    """An entry that claims half a terabyte."""
    info, _ = entry("big")
    info.size = 1 << 39
    assert "larger than" in build(info.tobuf(tarfile.GNU_FORMAT) + bytes(4096), expect=125).errors


@pytest.mark.once
@pytest.mark.limit(300)
def test_a_hundred_thousand_entries(pale, root):
    """They are taken, in a time and with memory that do not grow beyond them."""
    path = root / "many.tar"
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as t:
        for i in range(100_000):
            t.addfile(tarfile.TarInfo(f"d{i % 100}/f{i}"))
    begun = time.monotonic()
    pale.ok("image", "build", "many", "--from", "tar", "--file", path, timeout=280)
    assert pale.json("image", "inspect", "many", "--json")["files"] == 100_000
    assert time.monotonic() - begun < 240
    pale.ok("image", "rm", "many", timeout=60)


@pytest.mark.once
@pytest.mark.limit(300)
def test_entries_have_a_maximum(pale, root):
    """A few megabytes that say two million names; in the pass that makes nothing, so that the disk is spared."""
    made, squeeze = Layout(root / "l"), zlib.compressobj(1, wbits=31)
    head, _ = entry("d/f")
    some = head.tobuf(tarfile.USTAR_FORMAT) * 10_000
    data = b"".join(squeeze.compress(some) for _ in range(200)) + squeeze.compress(some + bytes(1024)) + squeeze.flush()
    d = made.image(BASE, BASE)
    text = json.loads((made.path / "blobs" / "sha256" / d["digest"][7:]).read_bytes())
    text["layers"][1] = made.blob(data, LAYER + "+gzip")
    assert len(data) < 32 << 20
    assert "at most 2000000 entries" in oci(pale, made.index(made.json(text, OCI + "manifest.v1+json")), expect=125, timeout=200).errors


def test_from_a_url(pale, root):
    if not harness.has_tool("curl"):
        pytest.skip("curl is not installed")
    (root / "www").mkdir()
    (root / "www" / "a.tar").write_bytes(tar(*GOOD))

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args):
            super().__init__(*args, directory=str(root / "www"))

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        base = f"http://127.0.0.1:{server.server_address[1]}"
        pale.ok("image", "build", "u", "--from", "tar", "--url", f"{base}/a.tar", env={"no_proxy": "*"})
        assert files_of(pale, "u")["usr/bin/tool"] == b"tool"
        assert "127.0.0.1" not in json.dumps(pale.json("image", "inspect", "u", "--json"))
        pale.ok("image", "build", "v", "--from", "download", "--url", f"{base}/a.tar", env={"no_proxy": "*"})
        done = pale.run("image", "build", "w", "--from", "tar", "--url", f"{base}/none", env={"no_proxy": "*"})
        assert done.code == 125 and "curl failed" in done.errors and staging(pale) == []
        server.shutdown()
    done = pale.run("image", "build", "w", "--from", "tar", "--url", f"{base}/a.tar", env={"PATH": "/nowhere"})
    assert done.code == 125 and "no curl on this host" in done.errors
    done = pale.run("image", "build", "w", "--from", "tar", "--url", "file:///etc/passwd")
    assert done.code == 125 and "https://" in done.errors


# --- oci ---

BASE = tar(folder("etc"), entry("etc/a", b"a1"), entry("etc/b", b"b1"), folder("opt"), entry("opt/x", b"x1"), folder("opt/sub"), entry("opt/sub/y", b"y1"),
           entry("su", b"s", 0o4755), device("dev/null"))
UPPER = tar(entry("etc/a", b"a2"), entry("etc/.wh.b"), entry("opt/new", b"n2"), entry("opt/.wh..wh..opq"), entry("opt/after", b"f2"))


def oci(pale, path, name="i", expect=0, **more):
    done = pale.run("image", "build", name, "--from", "oci", "--file", path, **more)
    assert done.code == expect, done
    if expect:
        assert staging(pale) == [] and pale.json("image", "ls", "--json") == []
    return done


@pytest.mark.basic
@pytest.mark.parametrize("how", ["plain", "gzip", "zstd"])
def test_layers_and_whiteouts(pale, root, how):
    if how == "zstd" and not harness.has_tool("zstd"):
        pytest.skip("zstd is not installed")
    config = {"Env": ["PATH=/bin", "A=b \u00e9"], "WorkingDir": "/opt", "User": "1:2", "Cmd": ["sh"], "Entrypoint": None}
    oci(pale, Layout(root / "l").simple(BASE, UPPER, how=how, config=config))
    assert files_of(pale, "i") == {"etc/a": b"a2", "opt/new": b"n2", "opt/after": b"f2", "su": b"s"}
    facts = pale.json("image", "inspect", "i", "--json")
    assert facts["config"] == {"env": config["Env"], "cmd": ["sh"], "cwd": "/opt", "user": "1:2"}
    assert facts["left_out"]["device"]["names"] == ["dev/null"] and facts["left_out"]["set-bits"]["count"] == 1
    pale.ok("image", "verify", "i")


def test_whiteouts_hide_lower_layers_only(pale, root):
    third = tar(entry(".wh.etc"), entry("etc/c", b"c3"), entry("opt/.wh.new"), entry("opt/new", b"n3"), entry("none/.wh.such"), symlink("l", "etc"))
    fourth = tar(entry("l/.wh.c"), entry(".wh.su"), entry(".wh..wh.aufs"), entry("opt/.wh.l"))
    oci(pale, Layout(root / "l").simple(BASE, UPPER, third, fourth))
    assert files_of(pale, "i") == {"etc/c": b"c3", "opt/new": b"n3", "opt/after": b"f2"}


def test_a_plain_tar_knows_no_whiteouts(pale, build):
    build(tar(entry("a", b"1"), entry(".wh.a", b"")))
    assert files_of(pale, "i") == {"a": b"1", ".wh.a": b""}


def test_two_configurations_are_two_images(pale, root):
    oci(pale, Layout(root / "l").simple(BASE), "a")
    oci(pale, Layout(root / "m").simple(BASE, config={"Env": ["A=1"]}), "b")
    oci(pale, Layout(root / "n").simple(BASE), "c")
    d = {i["name"]: i["digest"] for i in pale.json("image", "ls", "--json")}
    assert d["a"] == d["c"] != d["b"]
    pale.ok("image", "verify", "a", "b", "c")


def archive(path, folder, how="w"):
    with tarfile.open(path, how) as t:
        for p in sorted(folder.rglob("*")):
            t.add(p, p.relative_to(folder), recursive=False)
    return path


def test_an_archive_of_a_layout(pale, root):
    made = Layout(root / "l").simple(BASE, UPPER)
    oci(pale, archive(root / "l.tar", made), "a")
    oci(pale, archive(root / "l.tar.gz", made, "w:gz"), "b")
    assert files_of(pale, "a") == {"etc/a": b"a2", "opt/new": b"n2", "opt/after": b"f2", "su": b"s"}
    assert pale.json("image", "inspect", "a", "--json")["digest"] == pale.json("image", "inspect", "b", "--json")["digest"]


def docker(path, *layers, **change):
    """What `docker save` of older versions writes."""
    path.mkdir()
    config = json.dumps({"architecture": ARCH, "os": "linux", "config": {"Env": ["D=1"]},
                         "rootfs": {"type": "layers", "diff_ids": ["sha256:" + sha(data) for data in layers]}}).encode()
    names = []
    for i, data in enumerate(layers):
        (path / f"{i:064x}").mkdir()
        (path / f"{i:064x}" / "layer.tar").write_bytes(data)
        names.append(f"{i:064x}/layer.tar")
    (path / f"{sha(config)}.json").write_bytes(config)
    (path / "manifest.json").write_text(json.dumps([{"Config": f"{sha(config)}.json", "RepoTags": ["x:1"], "Layers": names, **change}]))
    return path


def test_an_archive_of_docker(pale, root):
    oci(pale, archive(root / "d.tar", docker(root / "d", BASE, UPPER)))
    assert files_of(pale, "i")["etc/a"] == b"a2"
    assert pale.json("image", "inspect", "i", "--json")["config"] == {"env": ["D=1"]}


def test_the_image_for_this_host_is_taken(pale, root):
    made = Layout(root / "l")
    other = made.image(tar(entry("other", b"")), arch="mips", platform={"os": "linux", "architecture": "mips"})
    windows = made.image(tar(entry("other", b"")), platform={"os": "windows", "architecture": ARCH})
    mine = made.image(BASE, platform={"os": "linux", "architecture": ARCH})
    inner = made.json({"schemaVersion": 2, "manifests": [other, windows, mine]}, OCI + "index.v1+json")
    oci(pale, made.index(inner))
    assert "etc/a" in files_of(pale, "i")
    pale.ok("image", "rm", "i")
    assert "no image for linux" in oci(pale, made.index(other, windows), expect=125).errors


def spoil(path, change):
    """Changes a file's bytes, and nothing that tells of them."""
    path.chmod(0o644)
    path.write_bytes(change(path.read_bytes()))


def blob_of(made, data):
    return made.path / "blobs" / "sha256" / sha(data)


def evil_layouts():
    def wrong_layer(m):
        m.simple(BASE, UPPER, how="plain")
        spoil(blob_of(m, UPPER), lambda b: b.replace(b"n2", b"n9"))

    def wrong_first_layer(m):
        m.simple(BASE, how="plain")
        spoil(blob_of(m, BASE), lambda b: b.replace(b"x1", b"x9"))

    def wrong_size(m):
        m.simple(BASE, how="plain")
        spoil(blob_of(m, BASE), lambda b: b + bytes(512))

    def wrong_manifest(m):
        d = m.image(BASE)
        m.index(d)
        spoil(m.path / "blobs" / "sha256" / d["digest"][7:], lambda b: b.replace(b"schemaVersion", b"schemaversion"))

    def wrong_config(m):
        d = m.image(BASE)
        m.index(d)
        config = json.loads((m.path / "blobs" / "sha256" / d["digest"][7:]).read_bytes())["config"]["digest"][7:]
        spoil(m.path / "blobs" / "sha256" / config, lambda b: b.replace(b"linux", b"Linux"))

    def missing(m):
        m.simple(BASE, how="plain")
        blob_of(m, BASE).unlink()

    def linked_blob(m):
        m.simple(BASE, how="plain")
        blob_of(m, BASE).rename(m.path / "x")
        blob_of(m, BASE).symlink_to(m.path / "x")

    def fifo_blob(m):
        m.simple(BASE, how="plain")
        blob_of(m, BASE).unlink()
        os.mkfifo(blob_of(m, BASE))

    def linked_index(m):
        m.simple(BASE)
        (m.path / "index.json").unlink()
        (m.path / "index.json").symlink_to("/etc/passwd")

    def traversal_digest(m):
        d = m.image(BASE)
        m.index({**d, "digest": "sha256:../../../../etc/passwd"})

    def other_hash(m):
        d = m.image(BASE)
        m.index({**d, "digest": "sha512:" + "0" * 128})

    def many_layers(m):
        m.simple(*[tar(entry("f", b"")) for _ in range(129)])

    def no_layers(m):
        m.simple()

    def doubled(m):
        m.simple(BASE)
        text = (m.path / "index.json").read_text()
        (m.path / "index.json").write_text(text.replace('"manifests"', '"manifests": [], "manifests"'))

    def not_json(m):
        m.simple(BASE)
        (m.path / "index.json").write_text("{" * 10_000)

    def huge_json(m):
        m.simple(BASE)
        (m.path / "index.json").write_text(" " * (5 << 20) + "{}")

    def loop(m):
        # An index that names itself cannot be made; one in one in one can.
        d = m.image(BASE)
        for _ in range(6):
            d = m.json({"schemaVersion": 2, "manifests": [d]}, OCI + "index.v1+json")
        m.index(d)

    def foreign_layer(m):
        d = m.image(BASE)
        text = json.loads((m.path / "blobs" / "sha256" / d["digest"][7:]).read_bytes())
        text["layers"][0]["mediaType"] = "application/x-sh"
        m.index(m.json(text, OCI + "manifest.v1+json"))

    def fewer_diffs(m):
        d = m.image(BASE, UPPER)
        text = json.loads((m.path / "blobs" / "sha256" / d["digest"][7:]).read_bytes())
        del text["layers"][1]
        m.index(m.json(text, OCI + "manifest.v1+json"))

    def other_host(m):
        m.simple(BASE, arch="mips")

    def env_no_text(m):
        m.simple(BASE, config={"Env": [1]})

    return {
        "wrong layer": (wrong_layer, "not what its digest says"), "wrong first layer": (wrong_first_layer, "not what its digest says"),
        "wrong size": (wrong_size, "bytes and not the"), "wrong manifest": (wrong_manifest, "not what its digest says"),
        "wrong config": (wrong_config, "not what its digest says"), "missing blob": (missing, "No such file"),
        "linked blob": (linked_blob, "symlink"), "fifo blob": (fifo_blob, "no file"), "linked index": (linked_index, "symlink"),
        "traversal digest": (traversal_digest, "is none"), "other hash": (other_hash, "sha256"), "many layers": (many_layers, "more than 128"),
        "no layers": (no_layers, "no layers"), "doubled key": (doubled, "twice"), "not json": (not_json, "JSON"), "huge json": (huge_json, "index.json"),
        "indexes": (loop, "deep"), "foreign layer": (foreign_layer, "not taken"), "fewer layers": (fewer_diffs, "layers"),
        "other host": (other_host, "mips"), "env that is no text": (env_no_text, "no text"),
        "traversal": (lambda m: m.simple(BASE, raw_tar(entry("../out", b"x"))), "step .."),
        "symlink then write": (lambda m: m.simple(tar(symlink("x", "/etc")), tar(entry("x/passwd", b"evil"))), "no folder"),
        "hard link out": (lambda m: m.simple(tar(hard("shadow", "/etc/shadow"))), "absolute"),
        "hard link through a lower symlink": (lambda m: m.simple(tar(symlink("e", "/etc")), tar(hard("p", "e/passwd"))), "no folder"),
        "whiteout up": (lambda m: m.simple(BASE, raw_tar(entry("../.wh.x"))), "step .."),
        "whiteout of the folder above": (lambda m: m.simple(BASE, tar(entry("etc/.wh..."))), "hides no name"),
        "whiteout of the folder itself": (lambda m: m.simple(BASE, tar(entry("etc/.wh.."))), "hides no name"),
        "whiteout of nothing": (lambda m: m.simple(BASE, tar(entry("etc/.wh."))), "hides no name"),
    }


EVIL = evil_layouts()


@pytest.mark.parametrize("name", EVIL)
def test_evil_layouts_are_refused(pale, root, name):
    make, said = EVIL[name]
    made = Layout(root / "l")
    make(made)
    victim = root / "out"
    done = oci(pale, made.path, expect=125)
    assert said in done.errors, done
    assert not victim.exists() and not (root / "data" / "out").exists()
    if name != "fifo blob":
        oci(pale, archive(root / "l.tar", made.path), expect=125)


def test_evil_archives_of_docker_are_refused(pale, root):
    for i, (change, said) in enumerate([({"Layers": ["../../../../../../etc/passwd"]}, "layout"), ({"Layers": ["/etc/passwd"]}, "layout"),
                                        ({"Config": "/etc/passwd"}, "not named by its digest"), ({"Layers": []}, "no layers"), ({"Config": 1}, "Config")]):
        done = oci(pale, docker(root / f"d{i}", BASE, **change), expect=125)
        assert said in done.errors, done
    made = docker(root / "d", BASE)
    spoil(made / f"{0:064x}" / "layer.tar", lambda b: b.replace(b"x1", b"x9"))
    assert "digest" in oci(pale, made, expect=125).errors
    (root / "nothing").mkdir()
    assert "neither" in oci(pale, root / "nothing", expect=125).errors


# --- the store ---

@pytest.mark.basic
def test_verify_finds_a_changed_byte(pale, build):
    build(tar(*GOOD))
    root = pathlib.Path(pale.json("image", "inspect", "i", "--json")["root"])
    assert pale.ok("image", "verify", "i").text.startswith("good: i, sha256:")

    def found(said):
        done = pale.run("image", "verify", "i")
        assert done.code == 125 and said in done.errors, done
        assert pale.json("image", "verify", "i", "--json", expect=125)["error"]["code"] == "corrupt"

    tool = root / "usr/bin/tool"
    keep = tool.read_bytes()
    tool.write_bytes(b"Tool")
    found("usr/bin/again is not what it was when the image was built: its content")
    tool.write_bytes(keep)
    tool.chmod(0o4755)
    found("its mode")
    tool.chmod(0o755)
    (root / "usr/bin/extra").touch()
    found("usr/bin/extra is in the image and was not")
    (root / "usr/bin/extra").unlink()
    (root / "secret").rename(root / "other")
    found("other is in the image and was not")
    (root / "other").rename(root / "secret")
    (root / "bin").unlink()
    found("bin is missing")
    (root / "bin").symlink_to("usr/sbin")
    found("bin is not what it was when the image was built: its target")
    (root / "bin").unlink()
    (root / "bin").symlink_to("usr/bin")
    os.mkfifo(root / "fifo")
    found("no file, folder or symlink")
    (root / "fifo").unlink()
    os.setxattr(tool, "user.overlay.opaque", b"y")
    found("extended attributes")
    os.removexattr(tool, "user.overlay.opaque")
    inventory = root.parent / "inventory"
    inventory.write_text(inventory.read_text().replace("\tsecret", "\tsecreT"))
    found("secre")
    inventory.write_text(inventory.read_text().replace("\tsecreT", "\tsecret"))
    pale.ok("image", "verify", "i")


def test_names_and_digests(pale, build):
    build(tar(entry("a", b"1")), "one")
    build(tar(entry("a", b"1")), "uno:1.0")
    build(tar(entry("a", b"2")), "two")
    d = {i["name"]: i["digest"] for i in pale.json("image", "ls", "--json")}
    assert list(d) == ["one", "two", "uno:1.0"] and d["one"] == d["uno:1.0"]
    for ref in (f"sha256:{d['two']}", f"sha256:{d['two'][:12]}", f"two@sha256:{d['two']}"):
        assert pale.json("image", "inspect", ref, "--json")["digest"] == d["two"]
    build(tar(entry("a", b"2")), "one")  # the name goes to another image
    assert {i["name"]: i["digest"] for i in pale.json("image", "ls", "--json")}["one"] == d["two"]
    pale.ok("image", "rm", "one")
    assert pale.json("image", "inspect", "two", "--json")["digest"] == d["two"]
    pale.ok("image", "rm", "uno:1.0")
    assert digests(pale) == [d["two"]]
    pale.ok("image", "rm", f"sha256:{d['two'][:16]}")
    assert pale.json("image", "ls", "--json") == [] and digests(pale) == [] and staging(pale) == []
    for bad in ("none", "sha256:0123", "sha256:" + "0" * 64, "../x", "a/b", "", "x@y"):
        for act in ("inspect", "verify", "rm"):
            done = pale.run("image", act, bad)
            assert done.code == 125 and done.errors, (act, bad)


def test_an_image_in_use_is_not_removed(pale, build):
    build(tar(entry("a", b"1")))
    lock = pathlib.Path(pale.json("image", "inspect", "i", "--json")["root"]).parent / "lock"
    with open(lock) as held:
        fcntl.flock(held, fcntl.LOCK_SH)
        done = pale.run("image", "rm", "i")
        assert done.code == 125 and "in use by a box" in done.errors
        pale.ok("image", "verify", "i")
    pale.ok("image", "rm", "i")


@pytest.mark.parametrize("place", ["dev", "proc", "run", "tmp", "etc", "root", "home"])
def test_a_link_of_an_image_is_not_taken_for_a_place(pale, build, hostdir, place):
    """What a box mounts or makes at the start would be on the host, where a builder followed it."""
    hostdir.chmod(0o777)
    build(tar(*[e for e in GOOD if not e[0].name.startswith(f"./{place}")], symlink(place, str(hostdir))))
    done = pale.run("run", "-q", "--image", "i", "--", "/usr/bin/tool")
    assert done.code == 125 and f"/{place}" in done.errors and "no folder" in done.errors, done
    assert os.listdir(hostdir) == []


def test_an_image_that_a_box_is_made_on_is_not_removed(pale, build):
    build(tar(*GOOD))
    first = pale.json("image", "inspect", "i", "--json")["digest"]
    pale.create("b", "--no-start", "--image", "i")
    done = pale.run("image", "rm", "i")
    assert done.code == 125 and "the box b is made on the image i" in done.errors
    build(tar(entry("another", b"")))  # the name moves on, what the box has stays
    done = pale.run("image", "rm", f"sha256:{first}")
    assert done.code == 125 and "the box b" in done.errors
    pale.ok("image", "rm", "i")
    pale.ok("rm", "b")
    pale.ok("image", "rm", f"sha256:{first}")
    assert digests(pale) == []


@pytest.mark.parametrize("words,said", [
    (["build", "a/b", "--from", "minimal"], "no name"), (["build", ".x", "--from", "minimal"], "no name"), (["build", "sha256:abc"], "no name"),
    (["build", "x", "--from", "thin-air"], "--from"), (["build", "x", "--from", "tar"], "--file"), (["build", "x", "--from", "minimal", "--suite", "y"], "no meaning"),
    (["build", "x", "--from", "tar", "--file", "a", "--url", "http://b"], "one of them"), (["build", "x", "--from", "tar", "--file", "/nonexistent"], "/nonexistent"),
    (["build", "x", "--from", "tar", "--file", "/dev/zero"], "no file"), (["build"], "image:"), (["fly"], "image:"), (["ls", "--suite", "x"], "image build"),
    (["build", "x", "--suite", "-o"], "--suite"), (["build", "x", "--suite", "a;b"], "--suite"), (["build", "x", "--include", "--hook"], "--include"),
])
def test_mistakes_are_told(pale, words, said):
    done = pale.run("image", *words)
    assert done.code == 125 and said in done.errors, done
    assert staging(pale) == []


@pytest.mark.basic
def test_minimal(pale):
    if not harness.has_tool("busybox"):
        done = pale.run("image", "build", "m", "--from", "minimal")
        assert done.code == 125 and "busybox-static" in done.errors
        pytest.skip("busybox-static is not installed")
    pale.ok("image", "build", "m", "--from", "minimal")
    root = pale.json("image", "inspect", "m", "--json")["root"]
    assert os.readlink(f"{root}/usr/bin/sh") == "busybox" and os.access(f"{root}/usr/bin/busybox", os.X_OK)
    assert "root:x:0:0" in open(f"{root}/etc/passwd").read()
    done = pale.run("image", "build", "n", "--from", "minimal", env={"PATH": "/nowhere"})
    assert done.code == 125 and "busybox-static" in done.errors
    pale.ok("image", "verify", "m")


def test_host_copy_asks_before_it_takes_much(pale):
    done = pale.run("image", "build", "h", "--from", "host-copy", timeout=110)
    if done.code == 0:
        tree = pale.json("image", "inspect", "h", "--json")
        assert tree["files"] > 100 and os.path.isdir(tree["root"] + "/usr/bin") and not os.path.exists(tree["root"] + "/etc/shadow")
    else:
        assert "--force-copy" in done.errors and staging(pale) == []


# --- at once, and killed ---

def test_two_builds_of_one_name_at_once(pale, root):
    tars = []
    for i in range(4):
        tars.append(root / f"{i}.tar")
        tars[-1].write_bytes(tar(*[entry(f"f{k}", os.urandom(100)) for k in range(200)], entry("which", str(i).encode())))
    running = [pale.start("image", "build", "x", "--from", "tar", "--file", t) for t in tars]
    assert [p.wait(60) for p in running] == [0] * 4
    assert files_of(pale, "x")["which"] in (b"0", b"1", b"2", b"3")
    pale.ok("image", "verify", "x")
    assert len(digests(pale)) == 4 and staging(pale) == []
    same = [pale.start("image", "build", f"s{i}", "--from", "tar", "--file", tars[0]) for i in range(3)]
    assert [p.wait(60) for p in same] == [0] * 3 and len(digests(pale)) == 4


@pytest.mark.once
@pytest.mark.limit(300)
def test_killed_at_any_instant(pale, root):
    """What counts is the old state or the new; the rest goes with the next build."""
    old, new = root / "old.tar", root / "new.tar"
    old.write_bytes(tar(entry("which", b"old")))
    made = Layout(root / "l").simple(BASE, UPPER, tar(*[entry(f"f{i}", os.urandom(500)) for i in range(500)], entry("which", b"new")))
    archive(new, made)
    pale.ok("image", "build", "x", "--from", "tar", "--file", old)
    before = pale.json("image", "ls", "--json")[0]["digest"]
    begun = time.monotonic()
    pale.ok("image", "build", "y", "--from", "oci", "--file", new)
    took = time.monotonic() - begun
    after = pale.json("image", "inspect", "y", "--json")["digest"]
    pale.ok("image", "rm", "y")
    seen = set()
    rng = random.Random(7)
    for i in range(40):
        p = pale.start("image", "build", "x", "--from", "oci", "--file", new)
        time.sleep(rng.uniform(0, took * 1.1))
        p.send_signal(signal.SIGKILL)
        p.wait()
        listed = {e["name"]: e["digest"] for e in pale.json("image", "ls", "--json") if e["name"]}
        assert set(listed) == {"x"} and listed["x"] in (before, after), (i, listed)
        seen.add(listed["x"] == after)
        pale.ok("image", "verify", "x")
        assert set(digests(pale)) <= {before, after}
        if listed["x"] == after:
            pale.ok("image", "build", "x", "--from", "tar", "--file", old)
            pale.ok("image", "rm", f"sha256:{after}")
    assert False in seen, "no kill came before the end"
    harness.wait_until(lambda: not harness.processes_of(pale.root))
    pale.ok("image", "build", "x", "--from", "oci", "--file", new)
    assert staging(pale) == []
    pale.ok("image", "verify", "x")


@pytest.mark.parametrize("sig", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_it_cleans_up(pale, root, sig):
    fifo_like = root / "slow.tar"
    with tarfile.open(fifo_like, "w") as t:
        for i in range(60_000):
            t.addfile(tarfile.TarInfo(f"d/f{i}"))
    p = pale.start("image", "build", "x", "--from", "tar", "--file", fifo_like)
    assert harness.wait_until(lambda: staging(pale) and next((pale.root / "data/pale-staging").glob("*/made/root/d/f1000"), None), 20)
    p.send_signal(sig)
    assert p.wait(30) == 125
    assert staging(pale) == [] and pale.json("image", "ls", "--json") == []


# --- mmdebstrap ---

def reaches_the_archive():
    return harness.has_tool("mmdebstrap", "apt-get") and subprocess.run(
        ["apt-get", "--print-uris", "-o", "Acquire::Retries=0", "-o", "Acquire::http::Timeout=5", "-y", "download", "base-files"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=30, check=False).returncode == 0


@pytest.mark.limit(400)
def test_mmdebstrap_of_this_hosts_suite(pale):
    if not os.environ.get("PALE_SLOW"):
        pytest.skip("takes half a minute; PALE_SLOW=1 runs it")
    if not reaches_the_archive():
        pytest.skip("mmdebstrap is not installed, or apt knows no archive")
    done = pale.run("image", "build", "deb", "--variant", "essential", timeout=380)
    if done.code and any(w in done.errors for w in ("Could not", "Failed to fetch", "Unable to", "subordinate ids")):
        pytest.skip("mmdebstrap cannot work here: " + done.errors.strip().splitlines()[-1][:200])
    assert done.code == 0, done
    facts = pale.json("image", "inspect", "deb", "--json")
    assert facts["from"] == "mmdebstrap" and facts["variant"] == "essential" and facts["files"] > 500
    assert os.path.exists(facts["root"] + "/usr/bin/dpkg") and "I: " in done.errors
    tree_of(pale, "deb")


def test_mmdebstrap_that_is_not_there_is_told(pale):
    done = pale.run("image", "build", "deb", env={"PATH": "/nowhere"})
    assert done.code == 125 and "no mmdebstrap on this host" in done.errors and staging(pale) == []
