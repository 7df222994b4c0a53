# SPDX-License-Identifier: Apache-2.0
"""The operations of paled as its OpenAPI file has them, and for each how to ask for it well."""
import io
import itertools
import json
import tarfile
import urllib.parse

import wire
from harness import wait_until

WS_HEADERS = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA=="}
WIRE_HEADERS = {"Upgrade": "pale-wire", "Connection": "Upgrade", "Pale-Wire-Version": wire.VERSION}
METHODS = ["GET", "PUT", "POST", "PATCH", "DELETE"]


class Operation:
    def __init__(self, method, path, spec):
        self.name, self.method, self.path, self.spec = spec["operationId"], method.upper(), path, spec
        self.right, self.operators_only = spec["x-pale-right"], spec["x-pale-operators-only"]
        self.params = [p["name"] for p in spec["parameters"] if p["in"] == "path"]
        self.query = {p["name"]: p for p in spec["parameters"] if p["in"] == "query"}
        content = spec.get("requestBody", {}).get("content", {})
        self.takes_json, self.takes_bytes = "application/json" in content, "application/octet-stream" in content
        self.takes_message = self.takes_json and "properties" not in content["application/json"]["schema"]  # which the operation reads itself
        self.takes_json = self.takes_json and not self.takes_message
        self.fields = content["application/json"]["schema"]["properties"] if self.takes_json else {}
        self.required = content["application/json"]["schema"].get("required", []) if self.takes_json else []
        self.status = next(int(s) for s in spec["responses"] if s != "default")
        answer = spec["responses"][str(self.status)].get("content", {})
        self.type, self.schema = next(((t, c["schema"]) for t, c in answer.items()), (None, None))

    def __repr__(self):
        return self.name


def operations(openapi):
    return [Operation(m, path, spec) for path, methods in openapi["paths"].items() for m, spec in methods.items()]


class Request:
    def __init__(self, op, params=None, query=None, body=None, json_body=None, headers=None):
        self.op, self.params, self.query, self.body, self.headers = op, params or {}, query or {}, body, dict(headers or {})
        self.json = json_body

    def but(self, **changes):
        fields = dict(params=self.params, query=self.query, body=self.body, json_body=self.json, headers=self.headers)
        return Request(self.op, **{**fields, **changes})

    def path(self):
        path = self.op.path
        for k, v in self.params.items():
            path = path.replace("{%s}" % k, urllib.parse.quote(str(v), safe=""))
        pairs = [f"{k}={urllib.parse.quote(str(v), safe='')}" for k, v in self.query.items()]
        return path + ("?" + "&".join(pairs) if pairs else "")

    def bytes(self, host="localhost", headers=(), method=None, path=None):
        """As it goes over the wire."""
        body = json.dumps(self.json).encode() if self.json is not None else self.body
        lines = [f"{method or self.op.method} {path or self.path()} HTTP/1.1", f"Host: {host}"]
        if self.json is not None:
            lines.append("Content-Type: application/json")
        if body is not None:
            lines.append(f"Content-Length: {len(body)}")
        lines += [f"{k}: {v}" for k, v in [*self.headers.items(), *headers]]
        return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + (body or b"")

    def __repr__(self):
        return f"<{self.op.name} {self.op.method} {self.path()[:200]} {str(self.json or self.body)[:200]}>"


def small_tar():
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as t:
        i = tarfile.TarInfo("from-a-tar")
        i.size = 3
        t.addfile(i, io.BytesIO(b"tar"))
    return out.getvalue()


numbers = itertools.count(1)


class Scene:
    """What requests are about: a box that runs, with a file, a command that runs and one that has ended.

    `api` is an operator. With a tenant the box is his; boxes that a request uses up are made as they are needed."""

    def __init__(self, api, name="scene", tenant=None, project=None):
        self.api, self.tenant, self.project = api, tenant, project
        self.box = api.make(name, **({"tenant": tenant} if tenant else {}))["id"]
        self.file = "/home/agent/file"
        api.write(self.box, self.file, b"0123456789")
        self.ended = api.start(self.box, "echo ended")
        api.wait(self.box, self.ended)
        self.running = api.start(self.box, ["cat"], input=True)
        self.terminal = api.start(self.box, ["cat"], tty=True)

    def spare(self, start=False, **more):
        """A box that may be used up."""
        return self.api.make(f"spare-{next(numbers)}", start=start, **({"tenant": self.tenant} if self.tenant else {}), **more)["id"]

    def connected(self):
        """One with a network, to which nothing leads."""
        return self.spare(start=True, set={"network": "filtered"})

    def reviewed(self):
        """One whose project is for review."""
        return self.spare(set={"project": "review", "project.path": str(self.project)})

    def guarded(self):
        """(a stopped box, the number of what was taken out of its live project)"""
        box, folder = self.spare(start=True, set={"project": "live", "project.path": str(self.project)}), f"{self.project}/{new_name()}"
        self.api.out(box, f"mkdir {folder}; echo x > {folder}/.envrc")
        assert wait_until(lambda: self.api.good("GET", f"/v1/boxes/{box}/guard")["items"])
        self.api.good("POST", f"/v1/boxes/{box}/stop")
        return box, self.api.good("GET", f"/v1/boxes/{box}/guard")["items"][0]["number"]

    def asking(self):
        """A question that is open."""
        box = self.spare(start=True, set={"network": "filtered", "network.egress": "ask.test=ask"})
        self.api.start(box, ["python3", "-c", "import socket; s = socket.create_connection(('ask.test', 80)); s.send(b'GET / HTTP/1.1\\r\\nHost: ask.test\\r\\n\\r\\n'); s.recv(9)"])
        return wait_until(lambda: next((q for q in self.api.good("GET", "/v1/approvals")["items"] if q["box"] == box), None), 20)

    def snapshot(self, box):
        return self.api.good("POST", f"/v1/boxes/{box}/snapshots", {}, 201)["snapshot"]

    def archive(self):
        """An export."""
        return self.api.get(f"/v1/boxes/{self.spare()}/export").body

    def image(self):
        """One that may be used up."""
        name = new_name()
        self.api.good("PUT", f"/v1/images/{name}", body=small_tar(), status=201)
        return name

    def fresh_job(self):
        return self.api.start(self.box, ["sleep", "1000"])

    def fresh_file(self):
        path = f"/home/agent/fresh-{next(numbers)}"
        self.api.write(self.box, path, b"fresh")
        return path


def at_box(**more):
    return lambda op, s: Request(op, {"box": s.box}, **{k: v(s) if callable(v) else v for k, v in more.items()})


def at_job(job, **more):
    return lambda op, s: Request(op, {"box": s.box, "job": job(s)}, **more)


def new_name():
    return f"new-{next(numbers)}"


# How to ask well. A row gets the operation and a scene. A row may make what it uses up.
GOOD = {
    "health": lambda op, s: Request(op),
    "openapi": lambda op, s: Request(op),
    "box.list": lambda op, s: Request(op),
    "box.create": lambda op, s: Request(op, json_body={"name": new_name(), "start": False}),
    "box.ensure": lambda op, s: Request(op, {"box": new_name()}, json_body={"start": False}),
    "box.inspect": at_box(),
    # Ever shorter: a box's own token may not make its time longer.
    "box.terms": at_box(json_body=lambda s: (lambda n: {"ttl": f"{2000000 - 100 * n}s", "idle": 2000000 - n})(next(numbers))),
    "box.remove": lambda op, s: Request(op, {"box": s.spare()}),
    "box.start": at_box(),
    "box.stop": lambda op, s: Request(op, {"box": s.spare()}),
    "box.freeze": lambda op, s: Request(op, {"box": s.spare(start=True)}),
    "box.thaw": lambda op, s: Request(op, {"box": s.spare(start=True)}),
    "box.rename": lambda op, s: Request(op, {"box": s.spare()}, json_body={"name": new_name()}),
    "snapshot.take": lambda op, s: Request(op, {"box": s.spare()}, json_body={"name": new_name()}),
    "snapshot.list": at_box(),
    "snapshot.remove": lambda op, s: (lambda b: Request(op, {"box": b, "snapshot": s.snapshot(b)}))(s.spare()),
    "box.restore": lambda op, s: (lambda b: Request(op, {"box": b}, json_body={"snapshot": s.snapshot(b), "force": True}))(s.spare()),
    "box.fork": lambda op, s: (lambda b: Request(op, {"box": b}, json_body={"name": new_name(), "at": s.snapshot(b), "count": 2}))(s.spare()),
    "box.export": lambda op, s: Request(op, {"box": s.box}, {"at": s.snapshot(s.box)}),
    "box.import": lambda op, s: Request(op, {"box": new_name()}, {"set": json.dumps({"limits.memory": "256M"})}, body=s.archive()),
    "box.diff": at_box(query={"path": "/home/agent", "form": "stat"}),
    "review.apply": lambda op, s: Request(op, {"box": s.reviewed()}, json_body={"paths": ["file"], "dry_run": True}),
    "review.discard": lambda op, s: Request(op, {"box": s.reviewed()}, json_body={"force": True}),
    "guard.list": at_box(),
    "guard.release": lambda op, s: Request(op, dict(zip(("box", "number"), s.guarded()))),
    "guard.drop": lambda op, s: Request(op, dict(zip(("box", "number"), s.guarded()))),
    "approval.list": lambda op, s: Request(op),
    "approval.answer": lambda op, s: (lambda q: Request(op, {"question": q["id"]}, json_body={k: q[k] for k in ("box", "host", "port")} | {"verdict": "deny", "scope": "box", "for": "1h"}))(s.asking()),
    "box.wire": at_box(headers=WIRE_HEADERS, query={"start": "true"}),
    "mcp": at_box(json_body={"jsonrpc": "2.0", "id": 1, "method": "tools/list"}),
    "mcp.lines": at_box(headers=WIRE_HEADERS),
    "exec": at_box(json_body={"command": ["echo", "hello"], "cwd": "/tmp", "env": {"A": "b"}, "timeout": "20s", "stdin": "x"}),
    "job.start": at_box(json_body={"command": "true", "timeout": 20}),
    "job.list": at_box(),
    "job.inspect": at_job(lambda s: s.running),
    "job.wait": at_job(lambda s: s.ended, query={"timeout": "20s"}),
    "job.logs": at_job(lambda s: s.ended, query={"offset": "1"}),
    "job.input": at_job(lambda s: s.running, body=b"bytes", query={"end": "false"}),
    "job.signal": at_job(lambda s: s.fresh_job(), json_body={"signal": 15}),
    "job.attach": at_job(lambda s: s.terminal, headers=WS_HEADERS, query={"offset": "0"}),
    "file.read": lambda op, s: Request(op, {"box": s.box}, {"path": s.file, "offset": "2", "length": "5"}),
    "file.write": lambda op, s: Request(op, {"box": s.box}, {"path": f"/home/agent/{new_name()}", "mode": "600", "new": "true"}, body=b"data"),
    "file.remove": lambda op, s: Request(op, {"box": s.box}, {"path": s.fresh_file(), "tree": "false"}),
    "file.list": lambda op, s: Request(op, {"box": s.box}, {"path": "/home/agent"}),
    "file.stat": lambda op, s: Request(op, {"box": s.box}, {"path": s.file, "follow": "true"}),
    "file.watch": lambda op, s: Request(op, {"box": s.box}, {"path": "/home/agent"}),
    "file.move": lambda op, s: Request(op, {"box": s.box}, json_body={"from": s.fresh_file(), "to": f"/home/agent/{new_name()}", "new": True}),
    "file.mkdir": lambda op, s: Request(op, {"box": s.box}, json_body={"path": f"/home/agent/{new_name()}", "parents": True}),
    "file.lines": lambda op, s: Request(op, {"box": s.box}, {"path": s.file, "first": "1", "count": "10", "bytes": "5"}),
    "file.glob": lambda op, s: Request(op, {"box": s.box}, {"pattern": "**/f*", "path": "/home", "limit": "10", "hidden": "true"}),
    "file.grep": lambda op, s: Request(op, {"box": s.box}, {"pattern": "[0-9]+", "path": "/home/agent", "glob": "f*", "ignore_case": "true", "fixed": "false",
                                                            "before": "1", "after": "1", "mode": "content", "limit": "10", "hidden": "false"}),
    "file.edit": lambda op, s: Request(op, {"box": s.box}, json_body={"path": s.fresh_file(), "old": "res", "new": "fles", "all": True}),
    "file.patch": lambda op, s: Request(op, {"box": s.box}, json_body={"patch": f"*** Begin Patch\n*** Add File: {new_name()}\n+text\n*** End Patch\n",
                                                                      "path": "/home/agent", "check": False}),
    "tree.download": lambda op, s: Request(op, {"box": s.box}, {"path": "/home/agent"}),
    "tree.upload": lambda op, s: Request(op, {"box": s.box}, {"path": "/home/agent"}, body=small_tar()),
    "box.network": lambda op, s: Request(op, {"box": s.connected()}),
    "box.quarantine": lambda op, s: Request(op, {"box": s.spare()}),
    "box.lift": lambda op, s: Request(op, {"box": s.spare()}),
    "panic": lambda op, s: Request(op),
    "panic.lift": lambda op, s: Request(op),
    "policy.show": at_box(),
    "policy.narrow": lambda op, s: Request(op, {"box": s.spare()}, json_body={"set": {"limits.memory": "256M"}}),
    "policy.change": lambda op, s: Request(op, {"box": s.spare()}, json_body={"set": {"limits.memory": "300M"}}),
    "audit": at_box(query={"offset": "0"}),
    "receipt": at_box(),
    "prove": at_box(json_body={"full": False}),
    "events": lambda op, s: Request(op),
    "metrics": lambda op, s: Request(op),
    "doctor": lambda op, s: Request(op),
    "image.list": lambda op, s: Request(op),
    "image.build": lambda op, s: Request(op, json_body={"name": new_name(), "from": "minimal"}),
    "image.import": lambda op, s: Request(op, {"image": new_name()}, {"from": "tar"}, body=small_tar()),
    "image.inspect": lambda op, s: Request(op, {"image": s.image()}),
    "image.verify": lambda op, s: Request(op, {"image": s.image()}),
    "image.remove": lambda op, s: Request(op, {"image": s.image()}),
    "gc": lambda op, s: Request(op),
    "token.create": lambda op, s: Request(op, json_body={"name": "n", "scope": "tenant", "tenant": "x", "rights": ["box.read"], "ttl": "1h"}),
    "token.list": lambda op, s: Request(op),
    "token.revoke": lambda op, s: Request(op, {"token": s.api.token_for()["id"]}),
    "token.self": lambda op, s: Request(op),
}

# Their path names a box that is to be made.
MAKES = {"box.ensure", "box.import"}

# Answers that go on until the client leaves.
ENDLESS = {"events", "file.watch", "job.attach", "box.wire", "mcp.lines"}
