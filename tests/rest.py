# SPDX-License-Identifier: Apache-2.0
"""Speaks with paled: plain requests, streams, bytes as they are, WebSockets; and a daemon of one's own."""
import base64
import contextlib
import hashlib
import http.client
import json
import os
import re
import secrets
import socket
import struct
import time
import urllib.parse

from harness import TIMEOUT, kill_quietly, processes_of, wait_until

CODES = {"bad-input", "not-found", "exists", "denied", "busy", "limit", "timeout", "unsupported", "corrupt", "protocol", "gone", "os",
         "no-memory", "internal", "conflict", "no-space"}


def quote(text):
    return urllib.parse.quote(text if isinstance(text, bytes) else str(text), safe="")


def query(where, **fields):
    pairs = [f"{k}={quote('true' if v is True else v)}" for k, v in fields.items() if v is not None and v is not False]
    return where + ("?" + "&".join(pairs) if pairs else "")


class Answer:
    def __init__(self, status, headers, body, asked=""):
        self.status, self.headers, self.body, self.asked = status, headers, body, asked

    def header(self, name):
        found = [v for k, v in self.headers if k.lower() == name.lower()]
        assert len(found) <= 1, f"{name} comes twice: {self}"
        return found[0] if found else None

    def json(self):
        return json.loads(self.body, object_pairs_hook=no_doubles)

    def lines(self):
        return [json.loads(line) for line in self.body.splitlines()]

    def __repr__(self):
        return f"<{self.asked}: {self.status} {self.headers} {self.body[:1500]!r}>"


def no_doubles(pairs):
    assert len({k for k, _ in pairs}) == len(pairs), f"a key comes twice: {pairs}"
    return dict(pairs)


def check_problem(a, status=None, code=None):
    """A refusal has the form that all have, and a code of the closed list."""
    assert a.header("content-type") == "application/problem+json", a
    p = a.json()
    assert set(p) == {"type", "title", "status", "code", "detail"} and p["status"] == a.status, a
    assert p["code"] in CODES and p["detail"] and p["title"], a
    assert status is None or a.status == status, a
    assert code is None or p["code"] == code, a
    return p


# --- plain requests ---


class Connection(http.client.HTTPConnection):
    def __init__(self, where, timeout):
        super().__init__("localhost" if isinstance(where, str) else f"127.0.0.1:{where}", timeout=timeout)
        self.where = where

    def connect(self):
        self.sock = dial(self.where, self.timeout)


def dial(where, timeout):
    """where: the path of a socket, or a port of the loopback interface."""
    if isinstance(where, int):
        return socket.create_connection(("127.0.0.1", where), timeout)
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(timeout)
    s.connect(str(where))
    return s


class Stream:
    """An answer that goes on. Read line by line; closing it is leaving."""

    def __init__(self, connection, response, asked):
        self.connection, self.response = connection, response
        self.status, self.headers, self.asked = response.status, response.getheaders(), asked

    def header(self, name):
        return self.response.getheader(name)

    def lines(self):
        for line in self.response:
            if line.strip():
                yield json.loads(line)

    def events(self):
        """Of text/event-stream: (id, event, data)."""
        found = {}
        for line in self.response:
            line = line.decode().rstrip("\n")
            if not line and found:
                yield found.get("id"), found.get("event"), json.loads(found["data"])
                found = {}
            elif line and not line.startswith(":"):
                key, _, value = line.partition(": ")
                assert key in ("id", "event", "data") and key not in found, line
                found[key] = value

    def until(self, name):
        """Events up to and with the first of that name, of either form."""
        events = (data for _, _, data in self.events()) if "event-stream" in self.header("content-type") else self.lines()
        found = []
        for e in events:
            found.append(e)
            if e["event"] == name:
                return found
        raise AssertionError(f"{name} did not come: {found}")

    def close(self):
        # The response holds the socket too; without this the other side would not notice.
        try:
            self.connection.sock and self.connection.sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.response.close()
        self.connection.close()


class Rest:
    """A caller."""

    def __init__(self, where, token=None, timeout=TIMEOUT, seen=None):
        self.where, self.token, self.timeout = where, token, timeout
        self.seen = seen if seen is not None else set()  # ids of boxes

    def by(self, token):
        return Rest(self.where, token, self.timeout, self.seen)

    def begin(self, method, path, json_body=None, body=None, headers=None, timeout=None):
        headers = dict(headers or {})
        if json_body is not None:
            body = json.dumps(json_body).encode()
            headers.setdefault("Content-Type", "application/json")
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        c = Connection(self.where, timeout or self.timeout)
        try:
            c.request(method, path, body=body, headers=headers)
        except (BrokenPipeError, ConnectionResetError):
            pass  # it may answer before it has read everything
        return c, c.getresponse()

    def send_only(self, method, path, json_body):
        """A request whose answer is not waited for."""
        c = Connection(self.where, self.timeout)
        c.request(method, path, body=json.dumps(json_body).encode(), headers={"Content-Type": "application/json"})
        return c

    def begin_only(self, method, path, json_body, headers):
        """A request that is under way."""
        c = Connection(self.where, self.timeout)
        token = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        c.request(method, path, body=json.dumps(json_body).encode(), headers={"Content-Type": "application/json", **token, **headers})
        return c

    def ask(self, method, path, json_body=None, **more):
        c, r = self.begin(method, path, json_body, **more)
        with contextlib.closing(c), r:
            a = Answer(r.status, r.getheaders(), r.read(), f"{method} {path}")
        if a.header("content-type") == "application/json":
            self.note(a.json())
        return a

    def note(self, value):
        for v in value.get("items", [value]) if isinstance(value, dict) else []:
            if isinstance(v, dict) and "jobs" in v and "scope" in v:
                self.seen.add(v["id"])

    def stream(self, method, path, json_body=None, accept="application/x-ndjson", headers=None, **more):
        c, r = self.begin(method, path, json_body, headers={"Accept": accept, **(headers or {})}, **more)
        return Stream(c, r, f"{method} {path}")

    def get(self, path, **more):
        return self.ask("GET", path, **more)

    def post(self, path, json_body=None, **more):
        return self.ask("POST", path, json_body, **more)

    def put(self, path, json_body=None, **more):
        return self.ask("PUT", path, json_body, **more)

    def patch(self, path, json_body=None, **more):
        return self.ask("PATCH", path, json_body, **more)

    def delete(self, path, **more):
        return self.ask("DELETE", path, **more)

    def good(self, method, path, json_body=None, status=None, **more):
        """What it answers, if it went well."""
        a = self.ask(method, path, json_body, **more)
        assert a.status == status if status else a.status < 300, a
        return a.json() if a.header("content-type") == "application/json" else a.body

    def bad(self, method, path, json_body=None, status=None, code=None, **more):
        return check_problem(self.ask(method, path, json_body, **more), status, code)

    # What tests do most.

    def make(self, name=None, **fields):
        return self.good("POST", "/v1/boxes", {**({"name": name} if name else {}), **fields}, 201)

    def exec(self, box, command, key=None, **fields):
        headers = {"Idempotency-Key": key} if key else {}
        return self.good("POST", f"/v1/boxes/{box}/exec", {"command": command, **fields}, 200, headers=headers)

    def out(self, box, command, **fields):
        done = self.exec(box, command, **fields)
        assert done["exit"] == 0, done
        return data_of(done["stdout"]).decode()

    def start(self, box, command, key=None, **fields):
        headers = {"Idempotency-Key": key} if key else {}
        return self.good("POST", f"/v1/boxes/{box}/jobs", {"command": command, **fields}, 202, headers=headers)["job"]

    def wait(self, box, job, **fields):
        return self.good("GET", query(f"/v1/boxes/{box}/jobs/{job}/wait", **fields))

    def logs(self, box, job, **fields):
        return self.ask("GET", query(f"/v1/boxes/{box}/jobs/{job}/logs", **fields)).lines()

    def read(self, box, path, **fields):
        return self.good("GET", query(f"/v1/boxes/{box}/files", path=path, **fields))

    def write(self, box, path, data, **fields):
        return self.good("PUT", query(f"/v1/boxes/{box}/files", path=path, **fields), body=data, status=204)

    def token_for(self, **fields):
        return self.good("POST", "/v1/tokens", fields, 201)


def data_of(piece):
    """Bytes, in whichever of the two forms they came."""
    assert ("data" in piece) != ("base64" in piece), piece
    return piece["data"].encode() if "data" in piece else base64.b64decode(piece["base64"], validate=True)


def output_of(events, *streams):
    return b"".join(data_of(e) for e in events if e["event"] in (streams or ("stdout", "stderr")))


# --- bytes as they are ---

STATUS_LINE = re.compile(rb"HTTP/1\.1 ([1-5][0-9][0-9]) [A-Z][A-Za-z ]*")
HEADER_LINE = re.compile(rb"([A-Za-z0-9-]+): ([\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?)")


class Cut(AssertionError):
    """An answer ended before its end."""


class Wire:
    """A connection on which anything may be sent; answers are read strictly."""

    def __init__(self, where, timeout=TIMEOUT):
        self.s = dial(where, timeout)
        self.rest = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.s.close()

    def send(self, data):
        """False if the other side takes no more."""
        try:
            self.s.sendall(data)
            return True
        except (BrokenPipeError, ConnectionResetError):
            return False

    def more(self):
        try:
            data = self.s.recv(1 << 16)
        except ConnectionResetError:
            data = b""
        self.rest += data
        return data

    def line(self):
        while b"\r\n" not in self.rest:
            assert len(self.rest) < 65536, f"a line without end: {self.rest[:300]!r}"
            if not self.more():
                raise Cut(f"the answer is cut: {self.rest[:300]!r}")
        line, _, self.rest = self.rest.partition(b"\r\n")
        return line

    def exactly(self, n):
        while len(self.rest) < n:
            if not self.more():
                raise Cut(f"the body is cut: {len(self.rest)} of {n} bytes")
        data, self.rest = self.rest[:n], self.rest[n:]
        return data

    def chunks(self):
        body = b""
        while True:
            size = self.line()
            assert re.fullmatch(rb"[0-9a-f]{1,8}", size), size
            body += self.exactly(int(size, 16))
            assert self.exactly(2) == b"\r\n"
            if int(size, 16) == 0:
                return body

    def answer(self, method="GET", has_left=False):
        """The next answer; None if the connection ended instead. Whoever has said that he sends no more has left: a stream may end for him."""
        while not self.rest:
            if not self.more():
                return None
        m = STATUS_LINE.fullmatch(self.line())
        assert m, "no status line"
        status, headers = int(m[1]), []
        while (line := self.line()):
            h = HEADER_LINE.fullmatch(line)
            assert h, line
            headers.append((h[1].decode(), h[2].decode()))
        a = Answer(status, headers, b"")
        length, coding = a.header("content-length"), a.header("transfer-encoding")
        assert not (length and coding), a
        if status < 200 or status == 204 or method == "HEAD":
            assert method == "HEAD" or not (length or coding), a
            return a
        assert length is not None or coding == "chunked", a
        try:
            a.body = self.chunks() if coding else self.exactly(int(length))
        except Cut:
            if not (has_left and coding):
                raise
        return a

    def ended(self):
        """True once the other side has closed, with nothing more to read."""
        return not self.rest and self.more() == b""


def exchange(where, data, method="GET", timeout=TIMEOUT):
    """One message and its answer, on a connection of its own."""
    with Wire(where, timeout) as w:
        w.send(data)
        return w.answer(method)


def request_bytes(method, path, body=b"", headers=()):
    head = [f"{method} {path} HTTP/1.1", "Host: localhost", *(f"{k}: {v}" for k, v in headers)]
    return "\r\n".join(head).encode("latin-1") + b"\r\n\r\n" + body


# --- WebSockets ---

CONTINUE, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


def frame(op, data=b"", fin=True, masked=True, reserved=0):
    n = len(data)
    head = bytes([(0x80 if fin else 0) | reserved << 4 | op])
    bit = 0x80 if masked else 0
    head += bytes([bit | n]) if n < 126 else bytes([bit | 126]) + struct.pack(">H", n) if n < 65536 else bytes([bit | 127]) + struct.pack(">Q", n)
    if not masked:
        return head + data
    key = secrets.token_bytes(4)
    whole = (int.from_bytes(data, "big") ^ int.from_bytes((key * (n // 4 + 1))[:n], "big")).to_bytes(n, "big")
    return head + key + whole


class Socket:
    """A client of a WebSocket. Bytes of output are gathered in `out`, counted from the offset that was asked for."""

    def __init__(self, where, path, token=None, timeout=TIMEOUT, buffer=None):
        self.w = Wire(where, timeout)
        if buffer:
            self.w.s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        key = base64.b64encode(secrets.token_bytes(16)).decode()
        headers = [("Upgrade", "websocket"), ("Connection", "Upgrade"), ("Sec-WebSocket-Version", "13"), ("Sec-WebSocket-Key", key)]
        if token:
            headers.append(("Authorization", f"Bearer {token}"))
        self.w.send(request_bytes("GET", path, headers=headers))
        self.answer = self.w.answer()
        self.is_open = self.answer is not None and self.answer.status == 101
        if self.is_open:
            want = base64.b64encode(hashlib.sha1(key.encode() + GUID).digest()).decode()
            assert self.answer.header("sec-websocket-accept") == want and self.answer.header("upgrade") == "websocket"
        self.out = bytearray()
        self.events = []
        self.closed = None  # (code, reason)

    def send(self, data):
        return self.w.send(frame(BINARY, data if isinstance(data, bytes) else data.encode()))

    def say(self, **message):
        return self.w.send(frame(TEXT, json.dumps(message).encode()))

    def receive(self):
        """One frame as (op, data); None at the end. Servers mask nothing, and ours sends whole messages."""
        if not self.w.rest and not self.w.more():
            return None
        b0, b1 = self.w.exactly(2)
        assert b0 & 0x70 == 0 and b0 & 0x80 and not b1 & 0x80, (b0, b1)
        n = b1
        if n == 126:
            n = struct.unpack(">H", self.w.exactly(2))[0]
            assert n >= 126
        elif n == 127:
            n = struct.unpack(">Q", self.w.exactly(8))[0]
            assert n >= 65536
        return b0 & 15, self.w.exactly(n)

    def pump(self):
        """Takes one frame in; False at the end."""
        f = self.receive()
        if f is None:
            return False
        op, data = f
        if op == BINARY:
            self.out += data
        elif op == TEXT:
            self.events.append(json.loads(data, object_pairs_hook=no_doubles))
        elif op == CLOSE:
            self.closed = struct.unpack(">H", data[:2])[0], data[2:].decode()
            return False
        return True

    def expect(self, pattern, at=0, timeout=15):
        """Waits until the output from `at` on has the pattern; where it ends."""
        regex = re.compile(pattern if isinstance(pattern, bytes) else pattern.encode(), re.S)
        until = time.monotonic() + timeout
        while not (m := regex.search(self.out, at)):
            left = until - time.monotonic()
            assert left > 0, f"{pattern!r} did not come; the output is {bytes(self.out[-1500:])!r}, events {self.events}"
            if not self.w.rest:
                self.w.s.settimeout(left)
            try:
                assert self.pump(), f"{pattern!r} did not come; closed with {self.closed} after {bytes(self.out[-1500:])!r}"
            except TimeoutError:
                pass
        self.w.s.settimeout(TIMEOUT)
        return m.end()

    def event(self, name, timeout=15):
        until = time.monotonic() + timeout
        while not (found := [e for e in self.events if e["event"] == name]):
            assert time.monotonic() < until and self.pump(), f"{name} did not come: {self.events} {self.closed}"
        return found[0]

    def to_the_end(self):
        while self.pump():
            pass
        return self

    def cut(self):
        self.w.s.close()


# --- a daemon of one's own ---

TROUBLE = re.compile(r".*(?:Sanitizer|runtime error|Assertion|assert).*")


class Daemon:
    """The daemon of a home; ended, with all its boxes, by end()."""

    def __init__(self, pale):
        self.pale = pale
        self.folder = pale.root / "run" / "pale"
        self.socket = str(self.folder / "paled.sock")
        self.log = pale.root / "state" / "pale" / "paled.log"
        self.registry = pale.root / "state" / "pale" / "registry.db"
        self.rest = Rest(self.socket)
        self.may_die = False  # a test that kills it says so
        self.pids = set()

    def serve(self, *flags):
        self.pale.ok("serve", *flags)
        self.pids |= set(self.pid_pair())
        return self

    def status(self):
        return self.pale.json("serve", "--status", "--json")

    def pid_pair(self):
        """Of the steward and of paled."""
        s = self.status()
        return s["steward_pid"], s["pid"]

    def on_port(self):
        """Served on a free port too; returns that."""
        for _ in range(20):
            with socket.socket() as s:
                s.bind(("127.0.0.1", 0))
                port = s.getsockname()[1]
            done = self.pale.run("serve", "--port", port)
            if done.code == 0:
                self.pids |= set(self.pid_pair())
                return port
        raise AssertionError(done)

    def stop(self):
        self.pale.ok("serve", "--stop")

    def kill(self, pid):
        self.may_die = True
        kill_quietly(pid)

    def is_there(self):
        return self.pale.run("serve", "--status").code == 0

    def text_of_log(self):
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def remove_boxes(self):
        if not self.is_there():
            self.pale.ok("serve")
        self.pids |= set(self.pid_pair())
        answers = [self.rest.delete(f"/v1/boxes/{b['id']}?force=true") for b in self.rest.good("GET", "/v1/boxes")["items"]]
        return [repr(a) for a in answers if a.status not in (204, 404)]

    def end(self):
        """Returns what was not as it should be."""
        trouble = []
        for step in (self.remove_boxes, self.stop):
            try:
                trouble += step() or []
            except Exception as e:  # whatever it was, the rest must still be tidied
                trouble.append(f"{type(e).__name__}: {e}")
        if not wait_until(lambda: not any(map(alive, self.pids))):
            trouble.append(f"still there: {[p for p in self.pids if alive(p)]}")
            for p in self.pids & processes_of(self.pale.root).keys():
                kill_quietly(p)
        log = self.text_of_log()
        trouble += TROUBLE.findall(log)
        if not self.may_die and "paled ended" in log:
            trouble.append(log[-3000:])
        self.pale.more_ids |= self.rest.seen
        if os.path.exists(self.socket):
            trouble.append(f"{self.socket} is left")
            os.unlink(self.socket)
        trouble += [f"{p} is left" for p in (self.pale.root / "data" / "pale" / "tenants").glob("*/*")]
        return trouble


def alive(pid):
    try:
        text = open(f"/proc/{pid}/stat").read()
    except OSError:
        return False
    return text.rpartition(")")[2].split()[0] not in "ZX"


@contextlib.contextmanager
def serving(pale):
    d = Daemon(pale)
    try:
        yield d
    finally:
        trouble = d.end()
        assert not trouble, trouble
