# SPDX-License-Identifier: Apache-2.0
"""Runs in a box and sends what no honest program would. It says what came back; whether it got anywhere is judged outside.

knock.py tcp HOST PORT PIECE…          pieces are sent one by one, with a pause between; \\r, \\n, \\x00 are what they are in Python
knock.py tls HOST PORT WORD…           a ClientHello, as the words say (see hello.py); =SEGMENT cuts it, :RECORD spreads it over records
knock.py udp HOST PORT PIECE           one datagram
knock.py dns HOST udp|tcp WORD…        a question: name=…, type=…, and what is wrong with it
knock.py open FAMILY TYPE PROTOCOL     only makes a socket, and says OPEN if there is one
"""
import contextlib
import socket
import struct
import sys
import time

sys.path.insert(0, __file__.rpartition("/")[0])
SECONDS = 2


def unescape(text):
    return text.encode("latin-1", "backslashreplace").decode("unicode_escape").encode("latin-1")


def connect(host, port, **more):
    """The first address that takes us, as every client does it."""
    trouble = None
    for family, kind, proto, _, to in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        s = socket.socket(family, kind, more.get("proto", proto))
        s.settimeout(SECONDS)
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            s.connect(to)
            return s
        except OSError as e:
            trouble = e
            s.close()
    raise trouble


def listen(s, seconds=1.0):
    """What the other side says until it ends, or is silent for a while."""
    s.settimeout(seconds)
    got = b""
    with contextlib.suppress(OSError):
        while data := s.recv(65536):
            got += data
    return got


def send(s, pieces, pause):
    for n, piece in enumerate(pieces):
        if n:
            time.sleep(pause)
        s.sendall(piece)


def do_tcp(host, port, *pieces):
    with connect(host, int(port)) as s:
        send(s, [unescape(p) for p in pieces], 0.05)
        print(listen(s, 0.6).decode("latin-1"))


def do_then(host, port, *pieces):
    """The same, but each piece waits for an answer to the one before."""
    with connect(host, int(port)) as s:
        for piece in pieces:
            s.sendall(unescape(piece))
            print(listen(s, 0.3).decode("latin-1"))


def do_tls(host, port, *words):
    import hello
    flight, segment = hello.build(words)
    pieces = [flight[n:n + segment] for n in range(0, len(flight), segment)] if segment else [flight]
    with connect(host, int(port)) as s:
        send(s, pieces, 0.0005)
        print(listen(s, 0.4)[:5])


def do_udp(host, port, text):
    family, kind, proto, _, to = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, kind, proto) as s:
        s.settimeout(0.2)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        s.sendto(unescape(text), to)
        print(s.recv(1000))


def do_udp_connected(host, port, text):
    family, kind, proto, _, to = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, kind, proto) as s:
        s.settimeout(0.2)
        s.connect(to)
        s.send(unescape(text))
        print(s.recv(1000))


def labels(name):
    return b"".join(bytes([len(x)]) + x for x in unescape(name).split(b".") if x) + b"\0"


def do_dns(host, how, *words):
    w = dict(x.partition("=")[::2] for x in words)
    kind, klass, flags = int(w.get("type", 1)), int(w.get("class", 1)), int(w.get("flags", "0x100"), 16)
    one = labels(w["name"]) + struct.pack(">HH", kind, klass)
    count = int(w.get("count", 1))
    p = struct.pack(">HHHHHH", 0x1234, flags, count, 0, 0, int(w.get("more", 0))) + one * count + unescape(w.get("tail", ""))
    if how == "udp":
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.settimeout(0.5)
            s.sendto(p, (host, 53))
            print(s.recv(4096))
    else:
        with connect(host, 53) as s:
            s.sendall((struct.pack(">H", int(w.get("length", len(p)))) + p) * int(w.get("times", 1)))
            print(listen(s, 0.5))


def do_open(family, kind, proto):
    with socket.socket(int(family), int(kind), int(proto)):
        print("OPEN")


def do_protocol(host, port, kind, proto, text):
    """A connection of another kind than TCP's, or in another way."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, int(kind), int(proto)) as s:
        s.settimeout(SECONDS)
        s.connect((host, int(port)))
        s.send(unescape(text))
        print(listen(s, 0.3))


def do_option(host, port, level, name, value, text):
    """An option of the socket first, which may be refused; then as usual."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM) as s:
        s.settimeout(SECONDS)
        try:
            s.setsockopt(int(level), int(name), unescape(value) if not value.lstrip("-").isdigit() else int(value))
        except OSError as e:
            print("the option:", e)
        s.connect((host, int(port)))
        s.sendall(unescape(text))
        print(listen(s, 0.3))


def do_bound(source, host, port, text):
    """From an address and a port that the caller chooses."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM) as s:
        s.settimeout(SECONDS)
        s.bind((source, 0))
        s.connect((host, int(port)))
        s.sendall(unescape(text))
        print(listen(s, 0.3))


def do_unix(name):
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
        s.connect(unescape(name))
        s.sendall(b"hello")
        print("OPEN")


def do_ask_many(template, count):
    """As many questions as there are names; {n} in it counts."""
    for n in range(int(count)):
        with contextlib.suppress(OSError):
            socket.getaddrinfo(template.replace("{n}", str(n)), 80, family=socket.AF_INET)


def main():
    try:
        globals()["do_" + sys.argv[1].replace("-", "_")](*sys.argv[2:])
    except OSError as e:
        print("refused:", e)


if __name__ == "__main__":
    main()
