# SPDX-License-Identifier: Apache-2.0
"""Files of a box over paled's socket: bytes, ranges, names, whole trees, watches."""
import io
import json
import os
import tarfile

import pytest

from harness import wait_until
from rest import Wire, check_problem, query, request_bytes

pytestmark = pytest.mark.once

HOME = "/home/agent"
ODD = ["plain", "with space", "tab\tand\nline", "-dash", "ümläut", "quote\"s'", "100%", "a+b&c=d", "back\\slash", "x" * 255]


@pytest.fixture
def b(api):
    api.make("b")
    return "b"


def files(**fields):
    return query("/v1/boxes/b/files", **fields)


def at(what, **fields):
    return query(f"/v1/boxes/b/files/{what}", **fields)


@pytest.mark.basic
def test_a_file_is_written_and_read_back(api, b):
    data = bytes(range(256)) * 5000
    api.write(b, f"{HOME}/f", data)
    a = api.get(files(path=f"{HOME}/f"))
    assert a.body == data and a.header("content-length") == str(len(data)) and a.header("content-type") == "application/octet-stream"
    assert a.header("content-disposition") == "attachment" and a.header("x-content-type-options") == "nosniff"
    assert api.out(b, f"stat -c %s-%a {HOME}/f") == f"{len(data)}-644\n"
    api.write(b, f"{HOME}/empty", b"")
    assert api.read(b, f"{HOME}/empty") == b""


@pytest.mark.parametrize("name", ODD)
def test_names_of_all_kinds(api, b, name):
    api.write(b, f"{HOME}/{name}", name.encode())
    assert api.read(b, f"{HOME}/{name}") == name.encode()
    assert name in [e["name"] for e in api.good("GET", at("list", path=HOME))["items"]]
    assert api.good("GET", at("stat", path=f"{HOME}/{name}"))["size"] == len(name.encode())
    assert api.delete(files(path=f"{HOME}/{name}")).status == 204


def test_ranges(api, b):
    api.write(b, f"{HOME}/f", b"0123456789")
    f = f"{HOME}/f"
    for header, want, told in (("bytes=0-3", b"0123", "bytes 0-3/10"), ("bytes=4-", b"456789", "bytes 4-9/10"),
                               ("bytes=8-100", b"89", "bytes 8-9/10"), ("bytes=9-9", b"9", "bytes 9-9/10")):
        a = api.get(files(path=f), headers={"Range": header})
        assert (a.status, a.body, a.header("content-range")) == (206, want, told), a
        assert a.header("content-length") == str(len(want))
    for header in ("bytes=-3", "bytes=a-b", "bytes=5-2", "lines=1-2", "bytes=0-1,3-4", "bytes=", "-"):
        a = api.get(files(path=f), headers={"Range": header})
        assert (a.status, a.body) == (200, b"0123456789"), a
    for tag in ('"another"', "Wed, 21 Oct 2015 07:28:00 GMT"):
        a = api.get(files(path=f), headers={"Range": "bytes=0-3", "If-Range": tag})
        assert (a.status, a.body) == (200, b"0123456789"), a
    a = api.get(files(path=f), headers={"Range": "bytes=0-"})
    assert (a.status, a.body, a.header("content-range")) == (206, b"0123456789", "bytes 0-9/10"), a


def test_a_range_beyond_the_end_is_told_the_size(api, b):
    api.write(b, f"{HOME}/f", b"0123456789")
    api.write(b, f"{HOME}/empty", b"")
    for name, header, size in (("f", "bytes=10-", 10), ("f", "bytes=10-20", 10), ("f", f"bytes={10 ** 12}-", 10), ("empty", "bytes=1-", 0),
                               ("empty", "bytes=0-5", 0)):
        a = api.get(files(path=f"{HOME}/{name}"), headers={"Range": header})
        check_problem(a, 416, "bad-input")
        assert a.header("content-range") == f"bytes */{size}", a
    a = api.get(files(path=f"{HOME}/empty"), headers={"Range": "bytes=0-"})
    assert (a.status, a.body) == (200, b""), a


def test_offset_and_length_make_a_whole_answer(api, b):
    api.write(b, f"{HOME}/f", b"0123456789")
    f = f"{HOME}/f"
    for fields, want in (({"offset": 3, "length": 4}, b"3456"), ({"offset": 7}, b"789"), ({"length": 2}, b"01"), ({"offset": 10}, b""),
                         ({"offset": 10 ** 12}, b"")):
        for headers in ({}, {"Range": "bytes=1-2"}):
            a = api.get(files(path=f, **fields), headers=headers)
            assert (a.status, a.body, a.header("content-range")) == (200, want, None), a
            assert a.header("content-length") == str(len(want))


def test_a_file_without_a_size_is_read_to_its_end(api, b):
    a = api.get(files(path="/proc/version"))
    assert a.status == 200 and a.body.startswith(b"Linux") and a.header("transfer-encoding") == "chunked"


def test_the_tag_changes_with_the_file(api, b):
    api.write(b, f"{HOME}/f", b"one")
    tags = [api.get(files(path=f"{HOME}/f")).header("etag") for _ in range(2)]
    api.write(b, f"{HOME}/f", b"two")
    tags.append(api.get(files(path=f"{HOME}/f")).header("etag"))
    assert tags[0] == tags[1] != tags[2] and all(t.startswith('"') and t.endswith('"') for t in tags)


def test_a_write_is_whole_or_not_at_all(daemon, api, b):
    api.write(b, f"{HOME}/f", b"old")
    with Wire(api.where) as w:
        w.send(request_bytes("PUT", files(path=f"{HOME}/f"), headers=[("Content-Length", str(10 << 20))]) + b"x" * 100000)
        assert api.read(b, f"{HOME}/f") == b"old"
    wait_until(lambda: api.good("GET", "/v1/boxes/b")["jobs"] == 0)
    assert api.read(b, f"{HOME}/f") == b"old"
    assert [e["name"] for e in api.good("GET", at("list", path=HOME))["items"] if "f" in e["name"] and not e["name"].startswith(".b")] == ["f"]


def test_new_and_mode(api, b):
    assert api.put(files(path=f"{HOME}/f", new=True, mode="600"), body=b"1").status == 204
    api.bad("PUT", files(path=f"{HOME}/f", new=True), body=b"2", status=409, code="exists")
    assert api.read(b, f"{HOME}/f") == b"1"
    api.write(b, f"{HOME}/f", b"3")
    assert api.good("GET", at("stat", path=f"{HOME}/f"))["mode"] == "0600"
    api.write(b, f"{HOME}/f", b"4", mode="0755")
    assert api.good("GET", at("stat", path=f"{HOME}/f"))["mode"] == "0755"
    for mode in ("8", "77777", "rwx", ""):
        check_problem(api.put(files(path=f"{HOME}/g", mode=mode), body=b""), 400)


def test_list_and_stat(api, b):
    api.exec(b, "mkdir d; echo hello > d/f; ln -s f d/l; mkfifo d/p; ln -s nowhere d/dead")
    entries = {e["name"]: e for e in api.good("GET", at("list", path=f"{HOME}/d"))["items"]}
    assert {n: e["type"] for n, e in entries.items()} == {"f": "file", "l": "symlink", "p": "fifo", "dead": "symlink"}
    assert entries["l"]["target"] == "f" and entries["f"]["size"] == 6
    assert api.good("GET", at("stat", path=f"{HOME}/d/l"))["type"] == "symlink"
    assert api.good("GET", at("stat", path=f"{HOME}/d/l", follow=True))["type"] == "file"
    assert api.good("GET", at("stat", path=f"{HOME}/d"))["type"] == "folder"
    api.bad("GET", at("stat", path=f"{HOME}/d/dead", follow=True), status=404, code="not-found")
    assert [(e["name"], e["type"]) for e in api.good("GET", at("list", path=f"{HOME}/d/f"))["items"]] == [("", "file")]


def test_names_that_are_no_text_still_make_json(api, b):
    api.exec(b, ["python3", "-c", "open(b'/home/agent/\\xff\\xfe', 'w')"])
    a = api.get(at("list", path=HOME))
    assert a.status == 200
    json.loads(a.body.decode("utf-8"))


def test_move_mkdir_remove(api, b):
    assert api.post(at("mkdir"), {"path": f"{HOME}/a/b/c", "parents": True}).status == 204
    api.bad("POST", at("mkdir"), {"path": f"{HOME}/a"}, 409, "exists")
    api.bad("POST", at("mkdir"), {"path": f"{HOME}/no/such"}, 404, "not-found")
    api.write(b, f"{HOME}/a/f", b"moved")
    assert api.post(at("move"), {"from": f"{HOME}/a/f", "to": f"{HOME}/a/b/g"}).status == 204
    assert api.read(b, f"{HOME}/a/b/g") == b"moved"
    api.write(b, f"{HOME}/h", b"there")
    api.bad("POST", at("move"), {"from": f"{HOME}/a/b/g", "to": f"{HOME}/h", "new": True}, 409, "exists")
    assert api.read(b, f"{HOME}/h") == b"there"
    check_problem(api.delete(files(path=f"{HOME}/a")))
    assert api.delete(files(path=f"{HOME}/a", tree=True)).status == 204
    api.bad("GET", at("stat", path=f"{HOME}/a"), status=404)
    api.bad("DELETE", files(path=f"{HOME}/a"), status=404)


def test_rights_in_the_box_count(api, b):
    for path in ("/etc/shadow", "/usr/bin/new"):
        a = api.put(files(path=path), body=b"x")
        assert a.status in (403, 404, 400, 409) or a.json()["code"] in ("denied", "os", "not-found"), a
        check_problem(a)
    api.bad("GET", files(path="relative/path"))
    api.bad("GET", files(path="/no/such/file"), status=404, code="not-found")
    api.bad("GET", files(path=HOME))
    api.exec(b, f"echo mine > {HOME}/f; chmod 600 {HOME}/f")
    assert api.read(b, f"{HOME}/f", user="agent") == b"mine\n"
    api.bad("GET", files(path=f"{HOME}/f", user="1234"), status=403, code="denied")
    api.bad("GET", files(path=f"{HOME}/f", user="nobody-at-all"), status=400, code="bad-input")


def test_the_host_is_not_reached_by_any_path(api, b, pale, canary):
    secret = pale.root / "secret"
    secret.write_text(canary)
    api.exec(b, f"ln -s {secret} link; ln -s /proc/1/root/{secret} link2")
    for path in (str(secret), f"{HOME}/link", f"{HOME}/link2", f"/proc/1/root{secret}", f"{HOME}/../../../../..{secret}", f"/../..{secret}"):
        assert canary.encode() not in api.get(files(path=path)).body
        assert canary.encode() not in api.get(query("/v1/boxes/b/tree", path=path)).body


# --- trees ---


def tar_of(entries):
    """[(name, kind, what)] as an archive."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as t:
        for name, kind, what in entries:
            i = tarfile.TarInfo(name)
            i.mode, i.mtime = 0o750, 1000000000
            if kind == "file":
                i.size = len(what)
                t.addfile(i, io.BytesIO(what))
            else:
                i.type = {"folder": tarfile.DIRTYPE, "symlink": tarfile.SYMTYPE, "link": tarfile.LNKTYPE, "device": tarfile.CHRTYPE,
                          "fifo": tarfile.FIFOTYPE}[kind]
                i.linkname = what or ""
                t.addfile(i)
    return out.getvalue()


def test_a_real_tree_goes_in_and_comes_out(api, b):
    entries = [("t/", "folder", None), ("t/deep", "folder", None)]
    entries += [(f"t/{n}", "file", n.encode() * 9) for n in ODD]
    entries += [("t/deep/" + "/".join(["d" * 50] * i), "folder", None) for i in range(1, 8)]
    entries += [("t/deep/big", "file", os.urandom(3 << 20)), ("t/link", "symlink", "deep/big"), ("t/dead", "symlink", "/nowhere"), ("t/empty", "file", b"")]
    api.good("POST", at("mkdir"), {"path": f"{HOME}/in"})
    assert api.put(query("/v1/boxes/b/tree", path=f"{HOME}/in"), body=tar_of(entries)).status == 204
    assert api.out(b, f"readlink {HOME}/in/t/link; stat -c %a {HOME}/in/t/empty") == "deep/big\n750\n"
    a = api.get(query("/v1/boxes/b/tree", path=f"{HOME}/in"))
    assert a.status == 200 and a.header("content-type") == "application/x-tar"
    with tarfile.open(fileobj=io.BytesIO(a.body)) as t:
        found = {m.name.removeprefix("./"): (m.type, m.linkname if m.issym() else t.extractfile(m).read() if m.isfile() else None) for m in t.getmembers()}
    for name, kind, what in entries:
        got = found[name.rstrip("/")]
        assert got == ({"file": tarfile.REGTYPE, "folder": tarfile.DIRTYPE, "symlink": tarfile.SYMTYPE}[kind], what if kind != "folder" else None), name


def test_a_tree_too_large_for_memory_streams(api, b):
    """More than any buffer between: the archive passes as it comes."""
    data = os.urandom(1 << 20) * 40
    assert api.put(query("/v1/boxes/b/tree", path=HOME), body=tar_of([("big", "file", data)])).status == 204
    assert api.read(b, f"{HOME}/big") == data
    a = api.get(query("/v1/boxes/b/tree", path=f"{HOME}/big"))
    with tarfile.open(fileobj=io.BytesIO(a.body)) as t:
        assert t.extractfile(t.getmembers()[0]).read() == data


HOSTILE = {
    "climbs": [("../escaped", "file", b"x")],
    "climbs-inside": [("a/../../escaped", "file", b"x")],
    "absolute": [("/tmp/escaped", "file", b"x")],
    "hard-link-out": [("l", "link", "/etc/passwd")],
    "device": [("d", "device", None)],
    "fifo": [("p", "fifo", None)],
}


@pytest.mark.parametrize("shape", sorted(HOSTILE))
def test_hostile_archives_are_refused(api, b, shape):
    a = api.put(query("/v1/boxes/b/tree", path=f"{HOME}"), body=tar_of(HOSTILE[shape]))
    check_problem(a, 400, "bad-input")
    assert api.exec(b, "ls /tmp/escaped /home/escaped /home/agent/../escaped")["exit"] != 0


def test_an_archive_does_not_write_through_its_own_symlink(api, b):
    a = api.put(query("/v1/boxes/b/tree", path=HOME), body=tar_of([("l", "symlink", "/tmp"), ("l/escaped", "file", b"x")]))
    assert a.status == 204 or check_problem(a)["code"] in ("bad-input", "denied"), a
    assert api.exec(b, "ls /tmp/escaped")["exit"] != 0


@pytest.mark.parametrize("body", [b"", b"\0" * 100, b"not a tar" * 200, b"\xff" * 1024, tar_of([("f", "file", b"x" * 5000)])[:2000]])
def test_archives_that_are_none(api, b, body):
    check_problem(api.put(query("/v1/boxes/b/tree", path=HOME), body=body), 400, "bad-input")
    assert api.good("GET", "/v1/health")["status"] == "ok"


# --- watching ---


@pytest.mark.parametrize("accept", ["application/x-ndjson", "text/event-stream"])
def test_a_watch_tells_what_happens(api, b, accept):
    api.good("POST", at("mkdir"), {"path": f"{HOME}/w"})
    s = api.stream("GET", at("watch", path=f"{HOME}/w", tree=True), accept=accept)
    s.until("ready")
    api.exec(b, "cd w; echo 1 > f; mv f g; mkdir d; sleep 0.1; echo 2 > d/h; rm g")
    found = [(e["event"], e["path"]) for e in s.until("removed")]
    for want in (("created", "f"), ("moved-from", "f"), ("moved-to", "g"), ("created", "d"), ("created", "d/h"), ("removed", "g")):
        assert want in found, found
    s.close()
    assert wait_until(lambda: api.good("GET", "/v1/boxes/b")["state"] == "ready"), "the watch goes on without a client"


def test_a_watch_of_nothing(api, b):
    check_problem(api.get(at("watch", path="/no/such")), 404, "not-found")


def test_what_the_client_got_wrong_is_no_failure_of_the_server(api, b):
    for kind in (tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE, tarfile.LNKTYPE, tarfile.GNUTYPE_SPARSE, b"Z"):
        made = io.BytesIO()
        with tarfile.open(fileobj=made, mode="w") as t:
            entry = tarfile.TarInfo("x")
            entry.type, entry.linkname = kind, "y"
            t.addfile(entry)
        check_problem(api.put(query("/v1/boxes/b/tree", path=f"{HOME}/up"), body=made.getvalue()), 400, "bad-input")
    api.write(b, f"{HOME}/f", b"x")
    api.bad("POST", at("move"), {"from": f"{HOME}/f", "to": "/tmp/f"}, 400, "bad-input")
    api.bad("POST", at("move"), {"from": f"{HOME}/none", "to": "/tmp/f"}, 404, "not-found")


@pytest.mark.skipif(os.geteuid() != 0, reason="only in boxes of root the mounts know one id")
def test_where_only_the_boxs_user_can_own_files_others_are_refused(api, b):
    for user in ("root", "7"):
        p = check_problem(api.put(files(path="/tmp/f", user=user), body=b"x"), 403, "denied")
        assert "box's user" in p["detail"], p
    assert api.put(files(path="/dev/shm/f", user="7"), body=b"x").status == 204
