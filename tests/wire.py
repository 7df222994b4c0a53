# SPDX-License-Identifier: Apache-2.0
"""Speaks a keeper's protocol (src/wire): for tests of what no verb of ours asks for."""
import pathlib
import re
import socket
import struct

SOURCE = (pathlib.Path(__file__).resolve().parent.parent / "src" / "wire" / "message.h").read_text()


def numbers(enum):
    """An enum of the header: {name: number}."""
    body = re.sub(r"/\*.*?\*/", "", re.search(rf"enum {enum} \{{(.*?)\}};", SOURCE, re.S)[1], flags=re.S)
    found, n = {}, 0
    for item in filter(None, (x.strip() for x in body.split(","))):
        name, _, value = item.partition("=")
        n = int(value, 0) if value.strip() else n
        found[name.strip()] = n
        n += 1
    return found


VERSION = re.search(r'#define WIRE_VERSION_TEXT "(\d+)"', SOURCE)[1]
TYPES = numbers("wire_type")
NAMES = {v: k for k, v in TYPES.items()}
FLAGS = numbers("exec_flag")


def field(tag, value):
    data = value.encode() + b"\0" if isinstance(value, str) else struct.pack("<Q", value)
    return struct.pack("<BI", tag, len(data)) + data


def record(*values, lists=()):
    return b"".join(field(i + 1, v) for i, v in enumerate(values)) + b"".join(field(tag, v) for tag, v in lists)


def texts_and_numbers(data):
    """A record's fields in order: numbers for those of eight bytes that do not end like a text."""
    found, at = [], 0
    while at < len(data):
        _, n = struct.unpack_from("<BI", data, at)
        value = data[at + 5:at + 5 + n]
        found.append(struct.unpack("<Q", value)[0] if n == 8 else value.rstrip(b"\0").decode("utf-8", "replace"))
        at += 5 + n
    return found


def piece(data):
    """Content for the file request `write`: a length and so many bytes; of length 0 it is the end."""
    return struct.pack("<I", len(data)) + data


class Keeper:
    """One connection."""

    def __init__(self, path):
        self.s = socket.socket(socket.AF_UNIX)
        self.s.settimeout(20)
        self.s.connect(str(path))
        self.rest = b""
        if box := re.fullmatch(r"([0-9a-f]{32})\.sock", pathlib.Path(path).name):
            self.ask("ASK_HELLO", box[1].encode())

    def ask(self, name, data=b""):
        self.s.sendall(struct.pack("<IBBH", len(data), TYPES[name], 0, 0) + data)
        return self

    def exec(self, *argv, flags=("EXEC_LAST",), key="", timeout_ms=0, cwd=""):
        bits = sum(FLAGS[f] for f in flags)
        return self.ask("ASK_EXEC", record(bits, 24, 80, "", 0, 0, timeout_ms, 0, cwd, "", key, lists=[(100, a) for a in argv]))

    def attach(self, job, offset=0):
        return self.ask("ASK_ATTACH", record(job, offset))

    def next(self):
        """(name, payload); None at the end."""
        while True:
            if len(self.rest) >= 8:
                n, kind = struct.unpack_from("<IB", self.rest)
                if len(self.rest) >= 8 + n:
                    data, self.rest = self.rest[8:8 + n], self.rest[8 + n:]
                    return NAMES[kind], data
            more = self.s.recv(1 << 18)
            if not more:
                return None
            self.rest += more

    def until(self, *names):
        """Frames up to and with the first of that name."""
        found = []
        while (f := self.next()):
            found.append(f)
            if f[0] in names:
                break
        return found

    def all(self):
        """What the command printed, its job number, and how it ended: (out, err, job, status)."""
        out, err, job = [], [], None
        while (f := self.next()):
            name, data = f
            if name == "TELL_STDOUT":
                out.append(data)
            elif name == "TELL_STDERR":
                err.append(data)
            elif name == "TELL_STARTED":
                job = struct.unpack("<Q", data)[0]
            elif name == "TELL_RESULT":
                return b"".join(out), b"".join(err), job, texts_and_numbers(data)[1]
            elif name == "TELL_ERROR":
                return b"".join(out), b"".join(err), job, texts_and_numbers(data)[1]
        return b"".join(out), b"".join(err), job, None

    def close(self):
        self.s.close()
