# SPDX-License-Identifier: Apache-2.0
"""Two small MCP clients of our own: over HTTP and over the standard input and output of `pale mcp`. They check nothing by themselves."""
import itertools
import json
import queue
import subprocess
import threading

META = "io.modelcontextprotocol/"
MODERN = "2026-07-28"
LEGACY = "2025-11-25"
ACCEPT = "application/json, text/event-stream"


def modern_meta(capabilities=None, **more):
    return {META + "protocolVersion": MODERN, META + "clientCapabilities": capabilities or {}, META + "clientInfo": {"name": "t", "version": "1"}, **more}


def hello(version=LEGACY, capabilities=None):
    return {"protocolVersion": version, "capabilities": capabilities or {}, "clientInfo": {"name": "t", "version": "1"}}


def events_of(body):
    """The messages of a stream."""
    return [json.loads(line[6:]) for line in body.decode().split("\n") if line.startswith("data: ")]


class Http:
    """A caller of POST /mcp/BOX, of either era."""

    def __init__(self, api, box, era="modern", capabilities=None):
        self.api, self.path, self.era, self.capabilities = api, f"/mcp/{box}", era, capabilities
        self.ids = itertools.count(1)

    def message(self, method, params=None, meta=None):
        params = dict(params or {})
        if self.era == "modern":
            params["_meta"] = modern_meta(self.capabilities, **(meta or {}))
        elif meta:
            params["_meta"] = meta
        return {"jsonrpc": "2.0", "id": next(self.ids), "method": method, "params": params}

    def headers(self, message):
        if self.era != "modern":
            return {"Accept": ACCEPT, "MCP-Protocol-Version": LEGACY}
        named = {"tools/call": "name"}.get(message.get("method"))
        name = {"Mcp-Name": message["params"][named]} if named and isinstance(message.get("params", {}).get(named), str) else {}
        return {"Accept": ACCEPT, "MCP-Protocol-Version": MODERN, "Mcp-Method": message.get("method", ""), **name}

    def post(self, message, headers=None, **more):
        return self.api.ask("POST", self.path, message, headers=headers if headers is not None else self.headers(message), **more)

    def ask(self, method, params=None, meta=None):
        """The answer's message, and those before it."""
        m = self.message(method, params, meta)
        a = self.post(m)
        messages = events_of(a.body) if a.header("content-type") == "text/event-stream" else [a.json()]
        assert messages[-1]["id"] == m["id"], messages
        return messages[-1], messages[:-1]

    def result(self, method, params=None):
        answer, _ = self.ask(method, params)
        assert "result" in answer, answer
        return answer["result"]

    def call(self, tool, **arguments):
        return self.result("tools/call", {"name": tool, "arguments": arguments})

    def text(self, tool, **arguments):
        r = self.call(tool, **arguments)
        assert not r.get("isError"), r
        return r["content"][0]["text"]


class Stdio(Http):
    """`pale mcp BOX`."""

    def __init__(self, pale, box, era="modern", capabilities=None, command=None):
        super().__init__(None, box, era, capabilities)
        self.process = pale.start(*(command or ("mcp", box)), stdin=subprocess.PIPE)
        self.came, self.early = queue.Queue(), []
        threading.Thread(target=self.read, daemon=True).start()
        if era == "legacy":
            self.send(self.message("initialize", hello(capabilities=capabilities)))
            self.hello = self.next()
            self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def read(self):
        for line in self.process.stdout:
            self.came.put(line)
        self.came.put(None)

    def send(self, message):
        self.write(json.dumps(message).encode() + b"\n")

    def write(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def next(self, timeout=20):
        line = self.came.get(timeout=timeout)
        return None if line is None else json.loads(line)

    def ask(self, method, params=None, meta=None):
        m = self.message(method, params, meta)
        self.send(m)
        return self.answer_to(m["id"])

    def answer_to(self, wanted):
        before = []
        while True:
            got = self.next()
            assert got is not None, f"it ended: {self.process.stderr.read()}"
            if got.get("id") == wanted and "method" not in got:
                return got, before
            before.append(got)

    def end(self):
        self.process.stdin.close()
        return self.process.wait(20)
