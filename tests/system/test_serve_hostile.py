# SPDX-License-Identifier: Apache-2.0
"""The daemon against clients and keepers that do not keep to the rules, and against accidents."""
import base64
import http.client
import json
import os
import signal
import socket
import struct
import subprocess
import threading
import time

import pytest

import harness
import wire

pytestmark = [pytest.mark.skipif(not os.access(harness.BUILD / "paled", os.X_OK), reason="paled is not in this build"), pytest.mark.once]


class Daemon:
    """A steward in the foreground, and raw requests over its unix socket."""

    def __init__(self, pale, port=0):
        self.pale, self.port = pale, port
        self.socket = pale.root / "run" / "pale" / "paled.sock"
        words = ["port", str(port)] if port else []
        self.steward = subprocess.Popen([str(pale.build / "pale-steward"), *words], env=pale.env, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
        pale.children.append(self.steward)
        assert harness.wait_until(self.serves), self.steward.stderr.read() if self.steward.poll() is not None else "it does not serve"
        self.pid = self.ask("GET", "/v1/health")[1]["pid"]

    def serves(self):
        try:
            return self.ask("GET", "/v1/health")[0] == 200
        except OSError:
            return False

    def connect(self):
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(20)
        s.connect(str(self.socket))
        return s

    def ask(self, method, path, body=None, on=None, token=None):
        c = http.client.HTTPConnection("localhost")
        c.sock = on or self.connect()
        headers = {"Content-Type": "application/json"} if body is not None else {}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        c.request(method, path, None if body is None else json.dumps(body), headers)
        r = c.getresponse()
        text, kind = r.read(), r.headers.get_content_type()
        if not on:
            c.close()
        return r.status, json.loads(text) if kind in ("application/json", "application/problem+json") else text

    def make(self, name, **more):
        status, box = self.ask("POST", "/v1/boxes", {"name": name, **more})
        assert status == 201, box
        self.pale.names.add(name)
        return box["id"]

    def end(self):
        for box in self.ask("GET", "/v1/boxes")[1]["items"]:
            self.ask("DELETE", f"/v1/boxes/{box['id']}")
        self.steward.terminate()
        self.steward.wait(20)


class FakeKeeper:
    """Answers in place of a box's keeper, by answer(keeper, connection, name of the request)."""

    def __init__(self, daemon, box, answer):
        self.path, self.box, self.answer = daemon.pale.root / "run" / "pale" / f"{box}.sock", box, answer
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(self.path) + ".new")
        os.chmod(str(self.path) + ".new", 0o700)
        self.listener.listen(16)
        os.rename(str(self.path) + ".new", self.path)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                s, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(s,), daemon=True).start()

    def serve(self, s):
        k = wire.Keeper.__new__(wire.Keeper)
        k.s, k.rest = s, b""
        try:
            while f := k.next():
                self.answer(self, s, f[0])
        except OSError:
            pass

    def tell(self, s, name, data=b""):
        s.sendall(struct.pack("<IBBH", len(data), wire.TYPES[name], 0, 0) + data)

    def tell_info(self, s):
        self.tell(s, "TELL_INFO", wire.record(2, 1, 2, 1000, 0, 1, 0, "b", self.box, "running", "0" * 64, "x", 0, 0, 0, 0, 0, 0, 0))

    def tell_result(self, s):
        self.tell(s, "TELL_RESULT", wire.record(0, 0, 0, 1, 1, 1, 1, 0, ""))

    def close(self):
        self.path.unlink(missing_ok=True)  # first: a listener that somebody waits on is closed a moment later
        self.listener.close()


@pytest.fixture
def daemon(pale):
    d = Daemon(pale)
    yield d
    d.end()


def fetch_all(s, seconds=1.0):
    got = b""
    s.settimeout(seconds)
    try:
        while piece := s.recv(1 << 16):
            got += piece
    except TimeoutError:
        pass
    return got


def test_daemon_starts_where_no_box_was_ever_made(daemon):
    assert daemon.ask("GET", "/v1/boxes") == (200, {"items": []})


def test_malformed_chunk_ends_the_request_alone(daemon):
    daemon.make("b")
    s = daemon.connect()
    s.sendall(b"PUT /v1/boxes/b/files?path=/tmp/x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
    time.sleep(0.3)
    s.sendall(b"ZZ\r\n")
    assert fetch_all(s).startswith(b"HTTP/1.1 400 ")
    assert daemon.ask("POST", "/v1/boxes/b/stop")[0] == 200  # the keeper's last words find nobody
    assert daemon.ask("GET", "/v1/health")[1]["pid"] == daemon.pid


def test_body_after_a_long_one_is_taken(daemon):
    daemon.make("b")
    s = daemon.connect()
    assert daemon.ask("POST", "/v1/boxes/b/exec", {"command": ["true"], "env": {"A": "x" * 70000}}, on=s)[0] == 200
    assert daemon.ask("POST", "/v1/boxes/b/exec", {"command": ["true"]}, on=s)[0] == 200


def test_head_gets_no_body(daemon):
    s = daemon.connect()
    s.sendall(b"HEAD /v1/health HTTP/1.1\r\nHost: x\r\n\r\nGET /v1/health HTTP/1.1\r\nHost: x\r\n\r\n")
    first, second = fetch_all(s).split(b"\r\n\r\n", 1)
    assert first.startswith(b"HTTP/1.1 405 ") and second.startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("size", [1, 400000])
def test_detached_command_gets_all_its_input_at_once(daemon, size):
    daemon.make("b")
    began = time.monotonic()
    status, told = daemon.ask("POST", "/v1/boxes/b/jobs", {"command": "wc -c; sleep 8", "stdin": "x" * size})
    assert status == 202 and time.monotonic() - began < 6
    logs = f"/v1/boxes/b/jobs/{told['job']}/logs"
    assert harness.wait_until(lambda: f'"data":"{size}\\n"'.encode() in daemon.ask("GET", logs)[1])


def test_refused_upload_is_answered_while_it_is_sent(daemon):
    daemon.make("b")
    c = http.client.HTTPConnection("localhost")
    c.sock = daemon.connect()
    c.request("PUT", "/v1/boxes/b/files?path=/none/x", b"z" * 8000000)
    assert c.getresponse().status == 404
    c.close()


@pytest.mark.parametrize("content", [b"hello" + b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", b"hel"])
def test_answer_keeps_to_its_length_whatever_the_box_sends(daemon, content):
    def answer(k, s, name):
        if name == "ASK_WATCH":
            k.tell_info(s)
        elif name == "ASK_EXEC":
            k.tell(s, "TELL_STDOUT", b"f 644 5 0 0 1 \0\0" + content)
            k.tell_result(s)
    keeper = FakeKeeper(daemon, daemon.make("b", start=False), answer)
    assert harness.wait_until(lambda: daemon.ask("GET", "/v1/boxes/b")[1]["state"] == "ready")
    s = daemon.connect()
    s.sendall(b"GET /v1/boxes/b/files?path=/x HTTP/1.1\r\nHost: x\r\n\r\n")
    head, body = fetch_all(s).split(b"\r\n\r\n", 1)
    assert b"Content-Length: 5\r\n" in head and body == content[:5]
    if len(content) < 5:
        assert s.recv(1) == b""  # what is missing shows by the connection's end
    keeper.close()


def test_keeper_that_ends_as_it_comes_up_is_replaced(daemon):
    seen = []

    def answer(k, s, name):
        seen.append(name)
        if name == "ASK_EXEC":
            k.close()
            s.close()
    FakeKeeper(daemon, daemon.make("b", start=False), answer)
    assert harness.wait_until(lambda: seen)
    status, told = daemon.ask("POST", "/v1/boxes/b/exec", {"command": ["echo", "hi"]})
    assert status == 200 and told["stdout"] == {"data": "hi\n"}
    assert daemon.ask("GET", "/v1/health")[1]["pid"] == daemon.pid


@pytest.mark.parametrize("frames", [110, 112, 114, 116, 118])
def test_attached_client_that_speaks_as_it_reads_on_gets_the_rest(daemon, frames):
    def answer(k, s, name):
        if name == "ASK_WATCH":
            k.tell_info(s)
        elif name == "ASK_ATTACH":
            k.tell(s, "TELL_STARTED", struct.pack("<Q", 1))
            for _ in range(frames):
                k.tell(s, "TELL_STDOUT", b"x" * 4000)
            k.tell_result(s)
    keeper = FakeKeeper(daemon, daemon.make("b", start=False), answer)
    assert harness.wait_until(lambda: daemon.ask("GET", "/v1/boxes/b")[1]["state"] == "ready")
    s = daemon.connect()
    s.sendall(b"GET /v1/boxes/b/jobs/1/attach HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
              b"Sec-WebSocket-Key: " + base64.b64encode(b"0" * 16) + b"\r\n\r\n")
    time.sleep(0.5)
    os.kill(daemon.pid, signal.SIGSTOP)
    text = b'{"resize":[10,10]}'
    s.sendall(bytes([0x81, 0x80 | len(text)]) + bytes(4) + text)
    got = fetch_all(s, 0.1)
    os.kill(daemon.pid, signal.SIGCONT)
    got += fetch_all(s, 3)
    assert b'"event":"exit"' in got
    keeper.close()


def test_daemon_whose_steward_was_killed_makes_room_for_the_next(daemon):
    s = daemon.connect()
    s.sendall(b"GET /v1/events HTTP/1.1\r\nHost: x\r\n\r\n")
    assert s.recv(100).startswith(b"HTTP/1.1 200 ")
    daemon.steward.kill()
    daemon.steward.wait()
    assert harness.wait_until(lambda: not os.path.exists(f"/proc/{daemon.pid}"), 15)
    daemon.__init__(daemon.pale)


def test_token_gives_no_rights_that_it_does_not_have(daemon):
    _, small = daemon.ask("POST", "/v1/tokens", {"rights": ["tokens"]})
    assert daemon.ask("POST", "/v1/tokens", {}, token=small["token"])[1]["rights"] == ["tokens"]
    assert daemon.ask("POST", "/v1/tokens", {"rights": ["exec"]}, token=small["token"])[0] == 400


def test_box_token_only_shortens_the_time_of_its_box(daemon):
    daemon.make("b", start=False, ttl="1h")
    _, own = daemon.ask("POST", "/v1/tokens", {"scope": "box", "box": "b"})
    for ttl, status in ((0, 403), ("2h", 403), ("30m", 200)):
        assert daemon.ask("PATCH", "/v1/boxes/b", {"ttl": ttl}, token=own["token"])[0] == status


def test_tenant_learns_nothing_of_the_hosts_files(daemon):
    _, t = daemon.ask("POST", "/v1/tokens", {"scope": "tenant", "tenant": "t"})
    there, absent = daemon.pale.home / "there", daemon.pale.home / "absent"
    there.symlink_to("/var/tmp")
    told = [daemon.ask("POST", "/v1/boxes", {"name": "x", "start": False, "set": {"read": str(p)}}, token=t["token"]) for p in (there, absent)]
    assert [status for status, _ in told] == [403, 403]
    assert told[0][1]["detail"].replace("there", "absent") == told[1][1]["detail"] and "/var/tmp" not in told[0][1]["detail"]


def test_tenants_box_stays_his_behind_a_symlink(pale):
    (pale.root / "elsewhere").mkdir(mode=0o700)
    (pale.root / "data" / "pale").symlink_to(pale.root / "elsewhere")
    daemon = Daemon(pale)
    _, t = daemon.ask("POST", "/v1/tokens", {"scope": "tenant", "tenant": "t"})
    assert daemon.ask("POST", "/v1/boxes", {"name": "x", "start": False}, token=t["token"])[0] == 201
    os.kill(daemon.pid, signal.SIGKILL)
    assert harness.wait_until(daemon.serves)
    assert [b["name"] for b in daemon.ask("GET", "/v1/boxes", token=t["token"])[1]["items"]] == ["x"]
    daemon.end()
