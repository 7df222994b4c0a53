# SPDX-License-Identifier: Apache-2.0
"""Images over REST and through --host: what there is, built, sent, verified, removed; who may; and that whoever leaves leaves nothing."""
import io
import json
import os
import tarfile
import time

import pytest

import harness
from harness import wait_until
from operations import small_tar
from rest import Rest, Wire, query
from test_image import Layout, entry, folder, pack, tar
from test_rest_snapshot import heard, now

pytestmark = pytest.mark.once


def listed(api):
    return {i["name"]: i for i in api.good("GET", "/v1/images", status=200)["items"]}


def send(api, name, data, source="tar", **more):
    return api.good("PUT", query(f"/v1/images/{name}", **{"from": source}), body=data, status=201, **more)


def oci_archive(where, layers, spoilt=False):
    """The bytes of an archive of an OCI layout; spoilt: the last layer is not what its digest says."""
    path = Layout(where / f"layout-{time.monotonic_ns()}").simple(*(tar(entry(f"f{i}", b"x" * i)) for i in range(layers)))
    if spoilt:
        manifest = json.loads((path / "index.json").read_text())["manifests"][0]["digest"].removeprefix("sha256:")
        last = json.loads((path / "blobs" / "sha256" / manifest).read_text())["layers"][-1]["digest"].removeprefix("sha256:")
        blob = path / "blobs" / "sha256" / last
        blob.write_bytes(blob.read_bytes()[:-1] + b"!")
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as t:
        t.add(path, ".")
    return out.getvalue()


def staged(pale):
    path = pale.root / "data" / "pale-staging"
    return os.listdir(path) if path.exists() else []


def runs(pale):
    return [json.loads(line) for line in pale.ok("audit", "--runs", "--json").text.splitlines()]


@pytest.mark.basic
def test_an_archive_is_the_body(api, pale):
    begun = now(api)
    made = send(api, "sent", pack(tar(folder("bin"), entry("bin/x", b"hello", 0o755)), "gzip"))
    assert made["name"] == "sent" and made["files"] == 1 and made["from"] == "tar" and made["left_out"] == {}
    row = listed(api)["sent"]
    assert row["digest"] == made["digest"] and row == pale.json("image", "ls", "--json")[0] and os.path.exists(row["root"] + "/bin/x")
    whole = api.good("GET", "/v1/images/sent", status=200)
    assert whole == pale.json("image", "inspect", "--json", "sent") and whole["source_bytes"] and "file" not in whole
    assert api.good("GET", f"/v1/images/sha256:{made['digest'][:12]}", status=200)["digest"] == made["digest"]
    assert api.good("POST", "/v1/images/sent/verify", status=200) == {"good": True, "digest": made["digest"]}
    api.good("DELETE", "/v1/images/sent", status=204)
    assert listed(api) == {} and not staged(pale)
    told = [(e["event"], e["image"], e["caller"]) for e in heard(api, begun) if e["event"].startswith("image.")]
    assert told == [("image.built", "sent", "operator"), ("image.removed", "sent", "operator")]
    assert [(r["event"], r["image"], r["caller"]) for r in runs(pale) if r["event"].startswith("image.")] == [("image.build", "sent", "operator"),
                                                                                                          ("image.remove", "sent", "operator")]


def test_a_box_runs_on_what_was_built(api):
    if not harness.has_tool("busybox"):
        pytest.skip("busybox-static is not installed")
    made = api.good("POST", "/v1/images", {"name": "tiny", "from": "minimal"}, 201)
    api.make("b", set={"image": "tiny"})
    assert "BusyBox" in api.out("b", "busybox 2>&1 | head -1")
    api.bad("DELETE", "/v1/images/tiny", None, 409, "conflict")
    api.bad("DELETE", f"/v1/images/sha256:{made['digest']}", None, 409, "conflict")
    assert api.good("POST", "/v1/images", {"name": "again", "from": "minimal"}, 201)["digest"] == made["digest"]
    api.good("DELETE", "/v1/images/again", status=204)
    api.good("DELETE", "/v1/boxes/b", status=204)
    api.good("DELETE", "/v1/images/tiny", status=204)


def test_how_far_it_is(api, root):
    s = api.stream("PUT", "/v1/images/sent", body=small_tar())
    lines = list(s.lines())
    assert lines[-1]["event"] == "built" and lines[-1]["name"] == "sent" and lines[-1]["files"] == 1
    s = api.stream("PUT", "/v1/images/sent?from=oci", accept="text/event-stream", body=oci_archive(root, 3))
    events = [(kind, data) for _, kind, data in s.events()]
    assert events[-1][0] == "built" and [d["text"] for k, d in events if k == "note"] == [f"layer {i} of 3" for i in (1, 2, 3)]
    s = api.stream("PUT", "/v1/images/sent?from=oci", body=oci_archive(root, 2, spoilt=True))
    lines = list(s.lines())
    assert lines[0]["event"] == "note" and lines[-1]["event"] == "failed" and lines[-1]["code"] == "bad-input" and "layer 2" in lines[-1]["detail"]


def test_what_cannot_be_built_says_why_and_leaves_nothing(api, pale):
    for body in ({"name": "-x", "from": "minimal"}, {"name": "../x", "from": "minimal"}, {"name": "x", "from": "tar"}, {"name": "x", "from": "thin-air"},
                 {"name": "x", "from": "minimal", "suite": "sid"}, {"name": "x", "suite": "a\tb"}, {"name": "x", "suite": "--help"}, {"name": "x", "include": ["a b"]},
                 {"name": "x", "from": "tar", "file": "/etc/passwd"}, {"name": "x", "from": "tar", "url": "http://127.0.0.1/"}, {"from": "minimal"}):
        api.bad("POST", "/v1/images", body, 400, "bad-input")
    for name, source, body in (("x", "tar", b"no archive at all" * 100), ("x", "oci", small_tar()), ("x", "minimal", b""), ("-x", "tar", small_tar()),
                               ("x", "tar", b""), ("x", "tar", tar(entry("../out", b"x")))):
        api.bad("PUT", query(f"/v1/images/{name}", **{"from": source}), None, 400, "bad-input", body=body)
    for method, where in (("GET", ""), ("POST", "/verify"), ("DELETE", "")):
        api.bad(method, f"/v1/images/nowhere{where}", None, 404, "not-found")
    assert listed(api) == {} and not staged(pale)


def test_what_was_changed_is_found(api):
    send(api, "sent", tar(entry("file", b"as it was")))
    with open(listed(api)["sent"]["root"] + "/file", "wb") as f:
        f.write(b"it is now")
    told = api.bad("POST", "/v1/images/sent/verify", None, 500, "corrupt")
    assert "file" in told["detail"]


class Zeros(io.RawIOBase):
    """A tar of one long file, never whole in memory."""

    def __init__(self, size):
        info = tarfile.TarInfo("long")
        info.size = size
        self.head, self.left = info.tobuf(), size + 512 * 20
        self.size = len(self.head) + self.left

    def readable(self):
        return True

    def read(self, n=-1):
        if self.head:
            piece, self.head = self.head, b""
            return piece
        piece = bytes(min(n if n > 0 else 65536, self.left))
        self.left -= len(piece)
        return piece


def test_a_long_archive_is_never_in_memory(api, daemon):
    body = Zeros(150 << 20)
    made = api.good("PUT", "/v1/images/long", body=body, status=201, headers={"Content-Length": str(body.size)}, timeout=120)
    assert made["bytes"] == 150 << 20
    with open(f"/proc/{api.good('GET', '/v1/health')['pid']}/status") as f:
        memory = next(int(line.split()[1]) for line in f if line.startswith("VmHWM"))
    assert memory < 60_000, f"the daemon held {memory} KiB"


def test_who_leaves_leaves_nothing(api, daemon, pale):
    """In the middle of an archive that would be a whole one if it ended here."""
    data = tar(entry("a", b"x" * 100000), entry("b", b"y"))
    head = f"PUT /v1/images/half HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(data) + 1000000}\r\n\r\n".encode()
    with Wire(api.where) as w:
        w.send(head + data)
        assert wait_until(lambda: staged(pale))
    assert wait_until(lambda: not staged(pale), 15), staged(pale)
    assert listed(api) == {} and api.good("GET", "/v1/health")["status"] == "ok"


def test_so_many_at_once(api, pale):
    waiting = []
    for i in range(4):
        w = Wire(api.where)
        w.send(f"PUT /v1/images/w{i} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n".encode() + bytes(512))
        waiting.append(w)
    assert wait_until(lambda: len(staged(pale)) == 4)
    api.bad("PUT", "/v1/images/more", None, 429, "busy", body=small_tar())
    for w in waiting:
        w.__exit__()
    assert wait_until(lambda: api.put("/v1/images/more", body=small_tar()).status == 201, 15)


def test_a_killed_daemon_ends_it(api, daemon, pale):
    w = Wire(api.where)
    w.send(b"PUT /v1/images/w HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n" + bytes(512))
    assert wait_until(lambda: staged(pale))
    daemon.kill(daemon.pid_pair()[1])
    assert wait_until(lambda: not staged(pale), 15)
    assert wait_until(lambda: api.get("/v1/health").status == 200, 15) and listed(api) == {}


def test_tenants_see_what_their_boxes_may_be_on(idle_daemon, pale):
    api, port = idle_daemon.rest, idle_daemon.on_port()
    made = send(api, "shown", tar(folder("bin"), entry("bin/x", b"x")))
    send(api, "hidden", tar(folder("bin"), entry("bin/y", b"y")))
    tenant, inside, reader = (Rest(port, api.token_for(**f)["token"])
                              for f in ({"scope": "tenant", "tenant": "one"}, {"scope": "box", "box": api.make("b")["id"]}, {"rights": ["image.read"]}))
    assert tenant.good("GET", "/v1/images", status=200) == {"items": []}
    (pale.home / ".config" / "pale").mkdir(parents=True, exist_ok=True)
    (pale.home / ".config" / "pale" / "tenant.yaml").write_text(f"image: shown@sha256:{made['digest']}\n")
    rows = tenant.good("GET", "/v1/images", status=200)["items"]
    assert [r["name"] for r in rows] == ["shown"] and "root" not in rows[0]
    assert "root" not in tenant.good("GET", "/v1/images/shown", status=200)
    assert tenant.bad("GET", "/v1/images/hidden", None, 404)["detail"].replace("hidden", "never") == tenant.bad("GET", "/v1/images/never", None, 404)["detail"]
    assert set(listed(reader)) == {"shown", "hidden"}
    for who in (tenant, inside, reader):
        for method, where, body in (("POST", "/v1/images/shown/verify", None), ("DELETE", "/v1/images/shown", None), ("POST", "/v1/images", {"name": "x"})):
            who.bad(method, where, body, 403, "denied")
        who.bad("PUT", "/v1/images/x", None, 403, "denied", body=small_tar())
    inside.bad("GET", "/v1/images", None, 403, "denied")
    assert pale.json("gc", "--images", "--dry-run", "--json")["images"][0]["names"] == ["hidden"], "what a tenant's boxes may be on is needed"
