# SPDX-License-Identifier: Apache-2.0
"""The readers of names, addresses and DNS messages beside others: Python's ipaddress, and ldns. They must agree, but where ours is
stricter on purpose, which is listed here."""
import ctypes
import ctypes.util
import functools
import ipaddress
import random
import socket
import subprocess

import harness
import pytest

pytestmark = pytest.mark.once
A, CNAME, AAAA, TXT = 1, 5, 28, 16
NOERROR, FORMERR, SERVFAIL, NXDOMAIN, NOTIMP, REFUSED, BADVERS = 0, 1, 2, 3, 4, 5, 16


def ask(lines):
    """The fixture's line for each."""
    tool = harness.BUILD.parent / "tests" / "net" / "names"
    if not tool.exists():
        pytest.skip(f"{tool} is not built")
    done = subprocess.run([tool], input="\n".join(lines) + "\n", capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    answers = done.stdout.splitlines()
    assert len(answers) == len(lines)
    return answers


def hexed(data):
    return data.hex() or "-"


# --- addresses ---

# Global to Python's tables, by their age, and nothing that a box may dial by default.
NOT_PUBLIC = [ipaddress.ip_network(n) for n in (
    "168.63.129.16/32",  # a cloud's service on a public address
    "192.0.0.0/24",      # two of it are anycast services of protocols
    "192.88.99.0/24",    # relays of 6to4
    "224.0.0.0/4",       # multicast is global to them
    "2001::/23",         # protocols, some of which are global
    "2002::/16",         # 6to4
    "3fff::/20",         # documentation, since 2024
    "::/3", "4000::/2", "8000::/1",  # all that was never given out to hosts, and translators
)]
NEAR = ["0.0.0.0", "1.0.0.0", "10.0.0.0", "11.0.0.0", "100.64.0.0", "100.128.0.0", "100.100.100.200", "127.0.0.0", "128.0.0.0", "168.63.129.16",
        "169.254.0.0", "169.255.0.0", "169.254.169.254", "172.16.0.0", "172.32.0.0", "192.0.0.0", "192.0.1.0", "192.0.2.0", "192.0.3.0",
        "192.88.99.0", "192.88.100.0", "192.168.0.0", "192.169.0.0", "198.18.0.0", "198.20.0.0", "198.51.100.0", "203.0.113.0", "224.0.0.0",
        "240.0.0.0", "255.255.255.255", "::", "::1", "::1:0:0", "::ffff:0:0", "::ffff:0:0:0", "64:ff9b::", "64:ff9b::1:0:0", "64:ff9b:1::",
        "64:ff9b:2::", "100::", "100:0:0:1::", "2000::", "2001::", "2001:1::", "2001:2::", "2001:10::", "2001:20::", "2001:200::", "2001:db8::",
        "2001:db9::", "2002::", "2003::", "2620:4f:8000::", "3fff::", "3fff:1000::", "4000::", "5f00::", "fc00::", "fe00::", "fe80::", "fec0::",
        "ff00::", "fd00:ec2::254"]
CARRIERS = [("::", 0), ("::ffff:0:0", 0), ("::ffff:0:0:0", 0), ("64:ff9b::", 0), ("64:ff9b:1::", 0), ("2002::", 80), ("2001::", 64),
            ("2a00:1450::5efe:0:0", 0), ("fe80::200:5efe:0:0", 0)]


def addresses(rng):
    """Edges and their neighbours, IPv4 addresses in all their clothes, and any others: 200,000."""
    edges = [ipaddress.ip_address(n) for n in NEAR]
    for a in edges:
        most = 2 ** a.max_prefixlen
        for step in (-2, -1, 0, 1, 2, 255, 256, 65535, 65536):
            yield type(a)((int(a) + step) % most)
    fours = [int(a) for a in edges if a.version == 4]
    for base, shift in CARRIERS:
        for four in fours + [rng.getrandbits(32) for _ in range(3000)]:
            yield ipaddress.IPv6Address(int(ipaddress.IPv6Address(base)) | four << shift)
    for _ in range(87_000):
        yield ipaddress.IPv4Address(rng.getrandbits(32))
    for _ in range(43_000):
        yield ipaddress.IPv6Address(rng.getrandbits(128))
        # Most of what any bits make is far from everything; this is near to what is given out.
        yield ipaddress.IPv6Address(1 << 125 | rng.getrandbits(125 if rng.random() < 0.5 else 112))


def carried_global(a):
    """Of what a translator and ISATAP carry, the IPv4 address must be global too."""
    low = ipaddress.IPv4Address(int(a) & 0xffffffff)
    nat64 = int(a) >> 32 == 0x64ff9b << 64
    isatap = int(a) >> 32 & 0xfcffffff == 0x5efe
    return not (nat64 or isatap) or (low.is_global and not any(low in n for n in NOT_PUBLIC if n.version == 4))


@pytest.mark.limit(60)
def test_addresses_are_public_to_us_if_they_are_to_python():
    many = list(addresses(random.Random(1)))
    assert len(many) >= 200_000
    answers = ask(["raw " + a.packed.hex() for a in many])
    wrong, public = [], 0
    for a, line in zip(many, answers):
        text, kind = line.split()
        public += kind == "public"
        if socket.inet_pton(socket.AF_INET if a.version == 4 else socket.AF_INET6, text) != a.packed:
            wrong.append((a, "written as " + text))
        elif kind == "public":
            if not (a.is_global and carried_global(a)):
                wrong.append((a, "public to us alone"))
        elif a.is_global and not any(a in n for n in NOT_PUBLIC if n.version == a.version) and carried_global(a):
            wrong.append((a, kind))
    assert not wrong, f"{len(wrong)}: {wrong[:10]}"
    assert public > 50_000


def test_classes_have_the_names_that_python_has_for_them():
    rows = [(a, kind) for a, kind in zip(NEAR, (line.split()[1] for line in ask(["text " + hexed(a.encode()) for a in NEAR])))]
    for text, kind in rows:
        a = ipaddress.ip_address(text)
        if a.is_loopback:
            assert kind == "loopback", text
        elif a.is_unspecified:
            assert kind == "unspecified", text
        elif a.is_multicast:
            assert kind == "multicast", text
        elif a.is_link_local:
            assert kind in ("link-local", "metadata"), text


def test_texts_are_addresses_to_us_if_they_are_to_python():
    rng = random.Random(2)
    texts = []
    for _ in range(20_000):
        a = ipaddress.ip_address(rng.getrandbits(32)) if rng.random() < 0.4 else ipaddress.IPv6Address(
            sum((rng.getrandbits(16) if rng.random() < 0.5 else 0) << 16 * i for i in range(8)))
        text = rng.choice([str(a), a.exploded, str(a).upper()])
        if a.version == 6 and rng.random() < 0.3:
            text = ":".join(a.exploded.split(":")[:6]) + ":" + str(ipaddress.IPv4Address(int(a) & 0xffffffff))
        for _ in range(rng.choice([0, 0, 1, 2])):
            at = rng.randrange(len(text) + 1)
            text = text[:at] + rng.choice(["", ":", "::", ".", "0", "1", "f", "x", "-", "/", "256"]) + text[at + rng.randrange(2):]
        texts.append(text)
    taken = 0
    for text, line in zip(texts, ask(["text " + hexed(t.encode()) for t in texts])):
        try:
            theirs = ipaddress.ip_address(text)
        except ValueError:
            theirs = None
        assert (line != "no") == (theirs is not None), (text, line)
        if theirs:
            taken += 1
            ours = line.split()[0]
            mapped = theirs.version == 6 and theirs.ipv4_mapped
            # How they write a mapped address depends on their age.
            assert ours == (f"::ffff:{theirs.ipv4_mapped}" if mapped else str(theirs)), text
    assert 8_000 < taken < 16_000


def test_ranges_hold_what_they_hold_for_python():
    rng = random.Random(3)
    rows = []
    for _ in range(3000):
        kind, most = (ipaddress.IPv4Address, 32) if rng.random() < 0.5 else (ipaddress.IPv6Address, 128)
        a, bits = kind(rng.getrandbits(most)), rng.randrange(most + 1)
        network = ipaddress.ip_network((a, bits), strict=False)
        other = kind(int(a) ^ (1 << rng.randrange(most)))
        rows += [(f"in {network} {other}", "yes" if other in network else "no"),
                 (f"in {a}/{bits} {a}", "yes" if network.network_address == a else "none")]
    answers = ask([line for line, _ in rows])
    assert [(line, got) for (line, want), got in zip(rows, answers) if want != got] == []


# --- names ---

def canonical(data):
    """What the name of a host is, by a reader that has nothing in common with ours."""
    try:
        text = data.decode("ascii")
    except UnicodeDecodeError:
        return "no"
    labels = text.removesuffix(".").lower().split(".")
    good = all(0 < len(label) < 64 and label == label.strip("-") and all(c == "-" or c in "abcdefghijklmnopqrstuvwxyz0123456789" for c in label)
               for label in labels)
    if not good or len(".".join(labels)) > 253 or labels[-1].isdigit() or labels[-1].startswith("0x"):
        return "no"
    return ".".join(labels)


def test_names_have_one_form():
    rng = random.Random(4)
    pieces = [b"a", b"B", b"-", b".", b"0", b"x", b"xn--", b"com", b"GitHub", b"_", b"\0", b"%", b"@", b"0x7f", b"1", b"a" * 61, b"\xc3\xbc", b" ", b":"]
    weights = [9, 5, 4, 14, 5, 5, 2, 4, 4] + [1] * 10
    names = [b"".join(rng.choices(pieces, weights, k=rng.randrange(1, 14))) for _ in range(20_000)]
    answers = ask(["canon " + hexed(n) for n in names])
    assert [(n, canonical(n), got) for n, got in zip(names, answers) if canonical(n) != got] == []
    assert sum(got != "no" for got in answers) > 2000
    # What is a name is an address to nobody.
    for name in {got for got in answers if got != "no"}:
        with pytest.raises(OSError):
            socket.inet_aton(name)


# --- DNS ---

class Ldns:
    """As much of the library as is needed: messages to text, records to messages."""

    def __init__(self, path):
        self.lib = ctypes.CDLL(path)
        self.libc = ctypes.CDLL(None)
        for name in ("ldns_pkt2str", "ldns_pkt_new"):
            getattr(self.lib, name).restype = ctypes.c_void_p

    def text(self, message):
        """What it reads, or None if that is no message to it."""
        packet = ctypes.c_void_p()
        if self.lib.ldns_wire2pkt(ctypes.byref(packet), message, ctypes.c_size_t(len(message))) != 0:
            return None
        shown = ctypes.c_void_p(self.lib.ldns_pkt2str(packet))
        text = ctypes.string_at(shown).decode()
        self.libc.free(shown)
        self.lib.ldns_pkt_free(packet)
        return text

    def record(self, line, question=False):
        r = ctypes.c_void_p()
        make = self.lib.ldns_rr_new_question_frm_str if question else self.lib.ldns_rr_new_frm_str
        args = (None, None) if question else (0, None, None)
        assert make(ctypes.byref(r), line.encode(), *args) == 0, line
        return r

    def message(self, number, question, answers=(), extra=(), flags=("qr", "rd", "ra"), result=0, size=0):
        """The bytes of a message, with its names compressed."""
        packet = ctypes.c_void_p(self.lib.ldns_pkt_new())
        self.lib.ldns_pkt_set_id(packet, ctypes.c_uint16(number))
        self.lib.ldns_pkt_set_rcode(packet, ctypes.c_uint8(result))
        for flag in flags:
            getattr(self.lib, "ldns_pkt_set_" + flag)(packet, ctypes.c_bool(True))
        if size:
            self.lib.ldns_pkt_set_edns_udp_size(packet, ctypes.c_uint16(size))
        self.lib.ldns_pkt_push_rr(packet, 0, self.record(question, True))
        for section, lines in ((1, answers), (3, extra)):
            for line in lines:
                self.lib.ldns_pkt_push_rr(packet, section, self.record(line))
        data, n = ctypes.c_void_p(), ctypes.c_size_t()
        assert self.lib.ldns_pkt2wire(ctypes.byref(data), packet, ctypes.byref(n)) == 0
        message = ctypes.string_at(data, n.value)
        self.libc.free(data)
        self.lib.ldns_pkt_free(packet)
        return message


@functools.cache
def library():
    path = ctypes.util.find_library("ldns")
    return Ldns(path) if path else None


@pytest.fixture
def ldns():
    return library() or pytest.skip("ldns is not installed")


def records(text, section):
    """The lines of a section of what ldns shows."""
    lines = text.split(f";; {section} SECTION:\n")[1].splitlines()
    return [line.split() for line in lines[:lines.index("")]]


def host_names(rng, count):
    for _ in range(count):
        labels = ["".join(rng.choices("abcXYZ019", k=rng.choice([1, 3, 9, 63]))) for _ in range(rng.randrange(1, 4))]
        yield ".".join(labels + [rng.choice(["com", "Example", "org"])])


def test_queries_of_ldns_are_read(ldns):
    rng = random.Random(5)
    rows = []
    for name in host_names(rng, 400):
        number, kind, size = rng.getrandbits(16), rng.choice([("A", A), ("AAAA", AAAA), ("TXT", TXT)]), rng.choice([0, 512, 1232, 4096])
        flags = [f for f in ("rd", "cd", "ad") if rng.random() < 0.5]
        secure = size and rng.random() < 0.5
        message = ldns.message(number, f"{name}. IN {kind[0]}", flags=flags + (["edns_do"] if secure else []), size=size)
        words = [str(number), str(kind[1])] + [f for f in ("rd", "cd") if f in flags] + ["edns"] * bool(size) + ["do"] * bool(secure)
        rows.append((message, " ".join(words + [str(min(max(size, 512), 1232)), name.lower()])))
    answers = ask(["query " + hexed(m) for m, _ in rows])
    assert [(m, want, got) for (m, want), got in zip(rows, answers) if want != got] == []


def test_our_answers_are_read_by_ldns(ldns):
    rng = random.Random(6)
    lines, wants = [], []
    for name in host_names(rng, 400):
        number, size = rng.getrandbits(16), rng.choice([0, 1232])
        kind = rng.choice(["A", "AAAA"])
        bits, make = (32, ipaddress.IPv4Address) if kind == "A" else (128, ipaddress.IPv6Address)
        told = [str(make(rng.getrandbits(bits))) for _ in range(rng.randrange(0, 33))]
        result = rng.choice([NOERROR, NOERROR, NXDOMAIN, REFUSED, SERVFAIL])
        text, ttl = rng.choice(["", "no rule allows it; see pale net"]), rng.randrange(1, 600)
        query = ldns.message(number, f"{name}. IN {kind}", flags=["rd"], size=size)
        lines.append(f"answer {hexed(query)} {result} {ttl} 1 15 {hexed(text.encode())} {','.join(told) or '-'}")
        wants.append((number, name, kind, told if result == NOERROR else [], ttl, result, text if size else "", size))
    for want, line in zip(wants, ask(lines)):
        number, name, kind, told, ttl, result, text, size = want
        message = bytes.fromhex(line)
        assert int.from_bytes(message[:2], "big") == len(message) - 2
        shown = ldns.text(message[2:])
        assert shown, (want, line)
        word = {NOERROR: "NOERROR", NXDOMAIN: "NXDOMAIN", REFUSED: "REFUSED", SERVFAIL: "SERVFAIL"}[result]
        assert f"rcode: {word}, id: {number}\n" in shown and "flags: qr rd ra ;" in shown
        assert records(shown, "QUESTION") == [[";;", name + ".", "IN", kind]], "the case is kept"
        got = [[r[0], r[1], r[3], str(ipaddress.ip_address(r[4]))] for r in records(shown, "ANSWER")]
        assert got == [[name + ".", str(ttl), kind, a] for a in told]
        zone = [[name + ".", str(ttl), "IN", "SOA", ".", ".", "1"] + 4 * [str(ttl)]] if result in (NOERROR, NXDOMAIN) and not told else []
        assert records(shown, "AUTHORITY") == zone
        assert ("EDNS: version 0" in shown) == bool(size)
        assert ("EDE: 15 (Blocked)" in shown and f"({text})" in shown) == bool(text)


def test_faults_are_read_by_ldns(ldns):
    plain = ldns.message(7, "a.example. IN A", flags=["rd"], size=1232)
    class_at = plain.index(b"\0\1\0\1", 12) + 3
    for at, byte, word in ((2, 0x11, "NOTIMPL"), (5, 2, "FORMERR"), (class_at, 3, "REFUSED")):
        message = plain[:at] + bytes([byte]) + plain[at + 1:]
        answer = ask([f"answer {hexed(message)} 0 1 0 0 - -"])[0]
        assert f"rcode: {word}, id: 7\n" in ldns.text(bytes.fromhex(answer))
    assert ask([f"answer {hexed(plain[:11])} 0 1 0 0 - -"]) == ["-"], "what is no query gets no answer"


def test_our_questions_are_read_by_ldns(ldns):
    rng = random.Random(7)
    rows = [(rng.getrandbits(16), rng.choice([A, AAAA]), name.lower()) for name in host_names(rng, 200)]
    for (number, kind, name), line in zip(rows, ask([f"ask {n} {k} {h}" for n, k, h in rows])):
        shown = ldns.text(bytes.fromhex(line))
        assert f"id: {number}\n" in shown and "flags: rd ;" in shown and "udp: 1232" in shown
        assert records(shown, "QUESTION") == [[";;", name + ".", "IN", "A" if kind == A else "AAAA"]]


def test_answers_of_ldns_are_read(ldns):
    """Chains in any order, names compressed, other records between."""
    rng = random.Random(8)
    lines, wants = [], []
    for name in host_names(rng, 400):
        name = name.lower()
        number, kind = rng.getrandbits(16), rng.choice([A, AAAA])
        chain = [name] + [f"n{i}.{rng.choice(['cdn.example', name[-20:].strip('.-')])}" for i in range(rng.randrange(0, 10))]
        times = [rng.randrange(0, 1000) for _ in chain]
        answers = [f"{a}. {t} IN CNAME {b.upper()}." for a, b, t in zip(chain, chain[1:], times)]
        bits, make, word = (32, ipaddress.IPv4Address, "A") if kind == A else (128, ipaddress.IPv6Address, "AAAA")
        told = [str(make(rng.getrandbits(bits))) for _ in range(rng.randrange(1, 20))]
        answers += [f"{chain[-1]}. {times[-1]} IN {word} {a}" for a in told]
        mixed = answers[:len(chain) - 1] + [f"other.example. 0 IN {word} {make(1)}", f'{chain[-1]}. 0 IN TXT "x"']
        rng.shuffle(mixed)
        message = ldns.message(number, f"{name}. IN {word}", mixed + answers[len(chain) - 1:], [f"{chain[-1]}. 0 IN {word} {make(2)}"], size=4096)
        lines.append(f"reply {number} {kind} {name} {hexed(message)}")
        shown = [f"::ffff:{ipaddress.ip_address(a).ipv4_mapped}" if ":" in a and ipaddress.ip_address(a).ipv4_mapped else a for a in told]
        wants.append("bad the name server's answer has too long a chain of aliases, or one without an end" if len(chain) > 9 else
                     f"0 0 {min(times)} {' '.join(shown)}")
    answers = ask(lines)
    assert [(line, want, got) for line, want, got in zip(lines, wants, answers) if want != got] == []
    assert any(w.startswith("bad") for w in wants)


def test_what_is_an_answer_to_us_is_one_to_ldns(ldns):
    """Changed bytes: we may refuse more, and never less."""
    rng = random.Random(9)
    good = ldns.message(1, "a.example. IN A", ["a.example. 60 IN CNAME b.a.example.", "b.a.example. 60 IN A 192.0.2.1"], size=1232)
    messages = []
    for _ in range(4000):
        message = bytearray(good)
        for _ in range(rng.randrange(1, 4)):
            message[rng.randrange(len(message))] = rng.choice([0, 1, 2, 4, 5, 0xc0, 12, 0xff, rng.getrandbits(8)])
        messages.append(bytes(message[:len(message) - rng.choice([0, 0, 0, 1, 9])]))
    taken = 0
    for message, line in zip(messages, ask([f"reply 1 {A} a.example {hexed(m)}" for m in messages])):
        if line.startswith("0 0 ") and len(line.split()) > 3:
            taken += 1
            shown = ldns.text(message)
            assert shown and line.split()[3] in shown, (message, line)
    assert taken > 200
