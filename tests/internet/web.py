# SPDX-License-Identifier: Apache-2.0
"""What servers of the fake internet say: files, git, an echo, redirects, and what hostile ones do."""
import contextlib
import http.server
import os
import pathlib
import re
import socket
import struct
import subprocess
import time
import urllib.parse

STALL_SECONDS = 15


class Site(http.server.BaseHTTPRequestHandler):
    """One connection of HTTP/1.1; each request is told before it is answered."""
    protocol_version = "HTTP/1.1"
    server_version = "fake"

    def __init__(self, conn, site, tell, canary, **where):
        self.site, self.tell, self.canary, self.where = pathlib.Path(site), tell, canary, where
        super().__init__(conn, (where["to"], where["port"]), None)

    def __getattr__(self, name):
        if name.startswith("do_"):
            return self.serve
        raise AttributeError(name)

    def log_message(self, *_):
        pass

    def body(self):
        if "chunked" in self.headers.get("Transfer-Encoding", "").lower():
            data = b""
            while size := int(self.rfile.readline(100).split(b";")[0], 16):
                data += self.rfile.read(size)
                self.rfile.readline(100)
            while self.rfile.readline(1000).strip():
                pass
            return data
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def serve(self):
        self.tell("request", method=self.command, target=self.path, host=self.headers.get("Host", ""), **self.where)
        if self.headers.get("Expect", "").lower() == "100-continue":
            self.send_response_only(100)
            self.end_headers()
        data = self.body()
        self.tell("body", bytes=len(data), data=data[:300].decode("latin-1"), **self.where)
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        if self.command == "CONNECT":
            self.say(200, b"")
        elif url.path == "/redirect":
            self.say(302, b"", {"Location": query["to"]})
        elif url.path == "/big":
            self.say(200, b"0123456789abcdef" * (int(query["n"]) // 16))
        elif url.path == "/echo":
            self.say(200, f"{self.command} {self.path}\n{self.headers}\n".encode() + data)
        elif url.path.startswith("/git/"):
            self.git(url, data)
        else:
            self.file(url.path)

    def say(self, status, data, headers=None):
        self.send_response(status)
        for k, v in {"Content-Length": len(data), **(headers or {})}.items():
            self.send_header(k, v)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def file(self, path):
        """What the site has below its folder; else a word that names the server, and the canary."""
        at = (self.site / urllib.parse.unquote(path).lstrip("/")).resolve()
        if at.is_relative_to(self.site) and at.is_file():
            kind = {".json": "application/json", ".html": "text/html"}.get(at.suffix, "application/octet-stream")
            self.say(200, at.read_bytes(), {"Content-Type": kind})
        elif at.is_relative_to(self.site) and (at / "index.html").is_file():
            self.say(200, (at / "index.html").read_bytes(), {"Content-Type": "text/html"})
        elif at.parent.is_relative_to(self.site) and at.parent != self.site and at.parent.is_dir():
            self.say(404, b"no such file\n")
        else:
            self.say(200, f"this is {self.where['to']} port {self.where['port']}: {self.canary}\n".encode())

    def git(self, url, data):
        env = {"PATH": "/usr/bin:/bin", "GIT_PROJECT_ROOT": str(self.site / "git"), "GIT_HTTP_EXPORT_ALL": "1", "REQUEST_METHOD": self.command,
               "PATH_INFO": url.path.removeprefix("/git"), "QUERY_STRING": url.query, "CONTENT_TYPE": self.headers.get("Content-Type", ""),
               "CONTENT_LENGTH": str(len(data)), "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""), "REMOTE_USER": "somebody", "HOME": "/nowhere",
               "HTTP_GIT_PROTOCOL": self.headers.get("Git-Protocol", ""), "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*"}
        done = subprocess.run(["git", "http-backend"], input=data, env=env, capture_output=True, timeout=60)
        head, _, rest = done.stdout.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode("latin-1").split("\r\n") if ": " in line)
        self.say(int(headers.pop("Status", "200").split()[0]), rest, headers)


class Careless:
    """A server as they are in the world: it takes what looks like a request for one, and knows where a body ends from the first header that
    it likes. `length_first`: from Content-Length even where there are chunks."""

    def __init__(self, conn, tell, length_first, **where):
        self.conn, self.tell, self.length_first, self.where = conn, tell, length_first, where
        self.held = b""
        while self.request():
            pass

    def more(self):
        data = self.conn.recv(65536)
        self.held += data
        return bool(data)

    def until(self, pattern):
        """What comes before the pattern, which goes too; None: the connection ended."""
        while not (m := re.search(pattern, self.held)):
            if not self.more():
                return None
        found, self.held = self.held[:m.start()], self.held[m.end():]
        return found

    def skip(self, n):
        while len(self.held) < n and self.more():
            pass
        self.held = self.held[n:]

    def chunks(self):
        while (line := self.until(rb"\r?\n")) is not None and (size := int(re.match(rb"\s*(?:0x)?([0-9a-fA-F]*)", line)[1] or b"0", 16)):
            self.skip(size)
            self.until(rb"\r?\n")
        while self.until(rb"\r?\n"):
            pass

    def request(self):
        head = self.until(rb"\r?\n\r?\n")
        if head is None:
            return False
        words = head.split(b"\n")[0].decode("latin-1").split()
        host = re.search(rb"(?i)^host[ \t]*:\s*([^\r\n]*)", head, re.M)
        self.tell("request", method=words[0] if words else "", target=words[1] if len(words) > 1 else "", host=host[1].decode("latin-1") if host else "",
                  **self.where)
        length = re.search(rb"(?i)^content-length[ \t]*:\s*\+?(\d+)", head, re.M)
        chunked = re.search(rb"(?i)^transfer-encoding[ \t]*:\s*[^\r\n]*chunked", head, re.M)
        if chunked and not (self.length_first and length):
            self.chunks()
        elif length:
            self.skip(int(length[1]))
        self.conn.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        return True


# --- manners ---

def stall(conn):
    """Takes what comes and never says a word."""
    conn.settimeout(STALL_SECONDS)
    with contextlib.suppress(OSError):
        while conn.recv(65536):
            pass


def mute(conn):
    """Does not even read."""
    time.sleep(STALL_SECONDS)


def reset(conn):
    conn.recv(1)
    conn.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def trickle(conn, head, rest, pause, seconds):
    until = time.monotonic() + seconds
    conn.recv(65536)
    conn.sendall(head)
    while time.monotonic() < until:
        conn.sendall(rest)
        time.sleep(pause)


def drip(conn):
    trickle(conn, b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", b"x", 0.2, STALL_SECONDS)


def endless(conn):
    """A head that has no end."""
    trickle(conn, b"HTTP/1.1 200 OK\r\n", b"X-More: " + b"y" * 1000 + b"\r\n", 0, STALL_SECONDS)


MANNERS = {f.__name__: f for f in (stall, mute, reset, drip, endless)}


def echo(conn, tell, **where):
    conn.settimeout(STALL_SECONDS)
    while data := conn.recv(65536):
        tell("data", data=data[:300].decode("latin-1"), bytes=len(data), **where)
        conn.sendall(data)


def take(conn, tell, **where):
    """Every port has somebody who listens: what comes is told, nothing is answered."""
    conn.settimeout(STALL_SECONDS)
    while data := conn.recv(65536):
        tell("data", data=data[:300].decode("latin-1"), bytes=len(data), **where)


def ssh(conn, config):
    """sshd itself speaks, as if inetd had started it."""
    done = subprocess.Popen(["/usr/sbin/sshd", "-i", "-f", str(config)], stdin=conn.fileno(), stdout=conn.fileno(), stderr=subprocess.DEVNULL,
                            env={"PATH": os.defpath}, start_new_session=True)
    done.wait()
