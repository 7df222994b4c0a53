# SPDX-License-Identifier: Apache-2.0
"""Other implementations beside our parsers of flows: OpenSSL for hellos; for requests Python's server, node, nginx and HAProxy."""
import http.client
import http.server
import io
import itertools
import json
import os
import shutil
import socket
import ssl
import struct
import subprocess
import tempfile
import threading

import harness
import pytest

READER = harness.BUILD.parent / "tests" / "flow" / "flow-reader"


def read(kind, cases):
    """What our parser makes of each case."""
    if not READER.exists():
        pytest.skip(f"{READER} is not built")
    given = b"".join(struct.pack("<I", len(c)) + c for c in cases)
    done = subprocess.run([READER, kind], input=given, capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr.decode()
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(told) == len(cases)
    return told


# --- TLS ---

class Client:
    """OpenSSL's end that connects."""

    def __init__(self, name, protocols=(), lowest=None, highest=None, **settings):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        context.set_ciphers(settings.get("ciphers", "ALL:@SECLEVEL=0"))
        if lowest:
            context.minimum_version = lowest
        if highest:
            context.maximum_version = highest
        if protocols:
            context.set_alpn_protocols(list(protocols))
        context.options |= settings.get("options", 0)
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.end = context.wrap_bio(self.incoming, self.outgoing, server_hostname=name)

    def step(self, received=b""):
        self.incoming.write(received)
        try:
            self.end.do_handshake()
        except ssl.SSLError:
            pass
        return self.outgoing.read()


class Server:
    """OpenSSL's end that accepts; the names that clients asked for are in names."""

    def __init__(self, certificate=None, curve=None):
        self.names = []
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1
        context.set_ciphers("ALL:@SECLEVEL=0")
        if certificate:
            context.load_cert_chain(certificate)
        if curve:
            context.set_ecdh_curve(curve)
        context.sni_callback = lambda end, name, context: self.names.append(name)
        self.context = context
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.end = context.wrap_bio(self.incoming, self.outgoing, server_side=True)

    step = Client.step


def in_records(hello, most):
    """The same message in records of at most so many bytes."""
    message, out = hello[5:], b""
    for at in range(0, len(message), most):
        part = message[at:at + most]
        out += hello[:3] + struct.pack(">H", len(part)) + part
    return out


# --- HTTP ---

class Seen(http.server.BaseHTTPRequestHandler):
    """Python's server: every request it sees, as (method, target, host, body)."""
    protocol_version = "HTTP/1.1"

    def __getattr__(self, name):
        if name.startswith("do_"):
            return self.answer
        raise AttributeError(name)

    def exactly(self, n):
        data = self.rfile.read(n)
        if len(data) < n:
            raise ValueError("the body has no end")
        return data

    def body(self):
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.exactly(int(self.headers.get("Content-Length", 0)))
        data = b""
        while size := int(self.rfile.readline(), 16):
            data += self.exactly(size)
            self.exactly(2)
        self.exactly(2)
        return data

    def answer(self):
        try:
            body = self.body()
        except ValueError as e:
            self.send_error(400, str(e))
            return
        target = self.requestline.split(" ")[1]
        self.server.seen.append((self.command, target, self.headers["Host"], body.decode("latin-1")))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass

    def send_error(self, code, message=None, explain=None):
        self.server.seen.append(("refused", code))
        self.close_connection = True


class PythonPeer:
    name, tells_bodies = "python", True

    def __init__(self):
        self.server = http.server.HTTPServer(("127.0.0.1", 0), Seen)
        self.server.seen = []
        self.port = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()

    def seen(self):
        seen, self.server.seen = self.server.seen, []
        return seen

    def close(self):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


NODE = """
const server = require('http').createServer((q, a) => {
  let body = '';
  q.setEncoding('latin1');
  q.on('data', d => body += d);
  q.on('end', () => { console.log(JSON.stringify([q.method, q.url, q.headers.host, body])); a.writeHead(204); a.end(); });
});
server.on('clientError', (e, s) => { console.log(JSON.stringify(['refused', e.code])); s.destroy(); });
server.on('connection', s => s.on('close', () => console.log('"closed"')));
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
process.stdin.on('end', () => process.exit(0)).resume();
"""


class NodePeer:
    name, tells_bodies = "node", True

    def __init__(self):
        if not shutil.which("node"):
            pytest.skip("node is not installed")
        self.process = subprocess.Popen(["node", "-e", NODE], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.port = int(self.process.stdout.readline())

    def seen(self):
        lines = iter(lambda: json.loads(self.process.stdout.readline()), "closed")
        return [tuple(line) for line in lines]

    def close(self):
        self.process.stdin.close()
        self.process.wait(10)
        self.process.stdout.close()


class Wire(io.BytesIO):
    """A socket that http.client reads a response from; it says how far it has read."""

    def makefile(self, *_):
        return self

    def close(self):
        pass


def response_ends(data, to_head):
    """Where Python's client sees a response end. None if it cannot read it, or is known to read it wrongly: of interim responses it knows
    only 100, and it looks for chunks where there can be no body."""
    wire = Wire(data)
    response = http.client.HTTPResponse(wire, method="HEAD" if to_head else "GET")
    try:
        response.begin()
        response.read()
    except (http.client.HTTPException, ValueError):
        return None
    is_misread = response.status < 200 or (response.status in (204, 304) and response.headers["Transfer-Encoding"])
    return None if is_misread else wire.tell()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class LoggedPeer:
    """A server whose log tells what it saw, a line of JSON each: method, target, host, status. A request of our own ends the log."""
    tells_bodies = False

    def __init__(self):
        path = os.environ.get("PATH", "") + ":/usr/sbin"
        if not shutil.which(self.name, path=path):
            pytest.skip(f"{self.name} is not installed")
        self.folder, self.port, self.marks = tempfile.mkdtemp(prefix="plt-peer-"), free_port(), itertools.count()
        config = os.path.join(self.folder, "config")
        with open(config, "w", encoding="ascii") as f:
            f.write(self.config.replace("@PORT@", str(self.port)).replace("@FOLDER@", self.folder))
        self.process = subprocess.Popen([shutil.which(self.name, path=path), *self.flags, config], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        assert harness.wait_until(self.is_up), f"{self.name} does not start"
        self.seen()

    def is_up(self):
        with socket.socket() as s:
            return s.connect_ex(("127.0.0.1", self.port)) == 0

    def seen(self):
        mark = f"/mark-{next(self.marks)}"
        with socket.create_connection(("127.0.0.1", self.port), 10) as s:
            s.sendall(f"GET {mark} HTTP/1.1\r\nHost: m\r\nConnection: close\r\n\r\n".encode())
            while s.recv(65536):
                pass
        seen = []
        while line := self.process.stdout.readline():
            method, target, host, status = json.loads(line)
            if target == mark:
                return seen
            seen.append((method, target, host, "") if int(status) == 204 else ("refused", status))
        raise AssertionError(f"{self.name} has ended")

    def close(self):
        self.process.terminate()
        self.process.wait(10)
        self.process.stdout.close()
        shutil.rmtree(self.folder)


class NginxPeer(LoggedPeer):
    name, flags = "nginx", ["-e", "/dev/null", "-c"]
    config = """
daemon off; master_process off; pid @FOLDER@/pid; error_log /dev/null;
events {}
http {
  log_format seen escape=json '["$request_method", "$request_uri", "$http_host", "$status"]';
  access_log /dev/stdout seen;
  client_body_temp_path @FOLDER@; proxy_temp_path @FOLDER@; fastcgi_temp_path @FOLDER@; uwsgi_temp_path @FOLDER@; scgi_temp_path @FOLDER@;
  server { listen 127.0.0.1:@PORT@; merge_slashes off; location / { return 204; } error_page 404 405 =204 /; }
}
"""


class HaproxyPeer(LoggedPeer):
    name, flags = "haproxy", ["-db", "-f"]
    config = """
global
  log stdout format raw local0
  nbthread 1
defaults
  mode http
  timeout client 5s
  timeout server 5s
  timeout connect 5s
frontend seen
  bind 127.0.0.1:@PORT@
  log global
  option http-buffer-request
  http-request capture req.hdr(host) len 300
  log-format '["%HM", "%HU", "%[capture.req.hdr(0)]", "%ST"]'
  http-request return status 204
"""


def seen_by(peer, sent, answers):
    """What the server makes of these bytes, which are all that come on one connection. Some servers give up when the client says that
    nothing more will come: first there is time for so many answers."""
    got = b""
    with socket.create_connection(("127.0.0.1", peer.port), 10) as s:
        s.sendall(sent)
        while got.count(b"HTTP/1.1 ") < answers and (more := s.recv(65536)):
            got += more
        s.shutdown(socket.SHUT_WR)
        while s.recv(65536):
            pass
    return peer.seen()
