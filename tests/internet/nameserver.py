# SPDX-License-Identifier: Apache-2.0
"""The name server of the fake internet, honest and otherwise. It writes down every question before it answers."""
import ipaddress
import struct
import time

from internet import places

TYPES = {"A": 1, "NS": 2, "CNAME": 5, "SOA": 6, "NULL": 10, "PTR": 12, "MX": 15, "TXT": 16, "AAAA": 28, "SRV": 33, "OPT": 41, "SVCB": 64, "HTTPS": 65, "ANY": 255}
NAMES = {n: t for t, n in TYPES.items()}
LATE_SECONDS = 1.5


def labels(name):
    return b"".join(bytes([len(x)]) + x.encode() for x in name.rstrip(".").split(".") if x) + b"\0"


def question(p):
    """(id, name, type, the question's bytes) of a query, or None."""
    if len(p) < 17 or p[2] & 0x80:
        return None
    at, parts = 12, []
    while at < len(p) and p[at]:
        n = p[at]
        if n > 63 or at + 1 + n >= len(p):
            return None
        parts.append(p[at + 1:at + 1 + n].decode("latin-1"))
        at += 1 + n
    if at + 5 > len(p):
        return None
    return p[:2], ".".join(parts), struct.unpack(">H", p[at + 1:at + 3])[0], p[12:at + 5]


def record(kind, value, owner=b"\xc0\x0c", ttl=60):
    data = {"A": lambda: ipaddress.IPv4Address(value).packed, "AAAA": lambda: ipaddress.IPv6Address(value).packed, "CNAME": lambda: labels(value),
            "TXT": lambda: bytes([len(value)]) + value.encode()}[kind]()
    return owner + struct.pack(">HHIH", TYPES[kind], 1, ttl, len(data)) + data


def message(ident, asked, records=(), code=0, flags=0x8180):
    return ident + struct.pack(">HHHHH", flags | code, 1 if asked else 0, len(records), 0, 0) + asked + b"".join(records)


class NameServer:
    """answer() of a query gives a list of (seconds to wait, message)."""

    def __init__(self, tell):
        self.tell = tell
        self.asked = {}

    def records_of(self, name):
        name = name.lower()
        if name in places.ZONE:
            return places.ZONE[name]
        return next((r for zone, r in places.WILD.items() if name.endswith("." + zone)), None)

    def follow(self, name, kind):
        """The chain of aliases and what stands at its end, each record with the name it belongs to."""
        found = []
        for _ in range(12):
            here = self.records_of(name)
            if here is None or isinstance(here, str):
                return found
            alias = next((v for t, v in here if t == "CNAME"), None)
            owner = b"\xc0\x0c" if not found else labels(name)
            if alias is None:
                return found + [record(t, v, owner) for t, v in here if t == kind]
            found.append(record("CNAME", alias, owner))
            name = alias
        return found

    def answer(self, p, stream, **where):
        q = question(p)
        if not q:
            self.tell("ask", name=None, data=p[:200].decode("latin-1"), **where)
            return []
        ident, name, number, asked = q
        kind = NAMES.get(number, str(number))
        self.tell("ask", name=name, type=kind, stream=stream, **where)
        what = self.records_of(name)
        if isinstance(what, str):
            return getattr(self, "do_" + what.replace("-", "_"))(name, kind, ident, asked, stream)
        if what is None:
            return [(0, message(ident, asked, code=3))]
        return [(0, message(ident, asked, self.follow(name, kind)))]

    def turn(self, name, kind):
        key = (name.lower(), kind)
        self.asked[key] = self.asked.get(key, 0) + 1
        return self.asked[key]

    def rebound(self, name, kind, ident, asked, near):
        """Somewhere harmless the first time, and near the host from then on. It asks not to be remembered."""
        if kind != "A":
            return [(0, message(ident, asked))]
        place = places.v4(places.GOOD) if self.turn(name, kind) % 2 else near
        return [(0, message(ident, asked, [record("A", place, ttl=0)]))]

    def do_rebind(self, name, kind, ident, asked, stream):
        return self.rebound(name, kind, ident, asked, "127.0.0.1")

    def do_rebind_metadata(self, name, kind, ident, asked, stream):
        return self.rebound(name, kind, ident, asked, "169.254.169.254")

    def good(self, kind, ident, asked, **more):
        value = {"A": places.v4(places.GOOD), "AAAA": places.v6(places.GOOD)}.get(kind)
        return message(ident, asked, [record(kind, value)] if value else [], **more)

    def do_many(self, name, kind, ident, asked, stream):
        """More addresses than anybody needs, and no more than fit on a stream."""
        if kind != "A":
            return [(0, message(ident, asked))]
        records = [record("A", places.v4(n)) for n in [places.GOOD] * 60]
        return [(0, message(ident, asked, records) if stream else message(ident, asked, flags=0x8380))]

    def do_huge(self, name, kind, ident, asked, stream):
        records = [record("TXT", "x" * 250)] * 200
        return [(0, message(ident, asked, records) if stream else message(ident, asked, flags=0x8380))]

    def do_truncated(self, name, kind, ident, asked, stream):
        return [(0, self.good(kind, ident, asked) if stream else message(ident, asked, flags=0x8380))]

    def do_silent(self, name, kind, ident, asked, stream):
        return []

    def do_late(self, name, kind, ident, asked, stream):
        return [(LATE_SECONDS, self.good(kind, ident, asked))]

    def do_wrong_id(self, name, kind, ident, asked, stream):
        return [(0, self.good(kind, bytes([ident[0] ^ 0x55, ident[1]]), asked))]

    def do_wrong_name(self, name, kind, ident, asked, stream):
        return [(0, self.good(kind, ident, labels("evil.test") + asked[-4:]))]

    def do_wrong_type(self, name, kind, ident, asked, stream):
        return [(0, self.good(kind, ident, asked[:-4] + struct.pack(">HH", 16, 1)))]

    def do_garbage(self, name, kind, ident, asked, stream):
        return [(0, ident + b"\x81\x80" + b"\xff" * 60)]

    def do_servfail(self, name, kind, ident, asked, stream):
        return [(0, message(ident, asked, code=2))]

    def do_refused(self, name, kind, ident, asked, stream):
        return [(0, message(ident, asked, code=5))]

    def do_extra(self, name, kind, ident, asked, stream):
        """The right answer, and an address of another name along with it."""
        if kind != "A":
            return [(0, message(ident, asked))]
        return [(0, message(ident, asked, [record("A", places.v4(places.GOOD)), record("A", "169.254.169.254", labels("metadata.ok.test"))]))]

    def do_pointer_loop(self, name, kind, ident, asked, stream):
        at = 12 + len(asked)
        owner = struct.pack(">H", 0xc000 | at)
        return [(0, message(ident, asked, [record("A", places.v4(places.GOOD), owner)]))]


def wait(seconds):
    if seconds:
        time.sleep(seconds)
