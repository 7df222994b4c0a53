# SPDX-License-Identifier: Apache-2.0
"""First messages of TLS, well formed and not. Each word changes one thing:

sni=NAME (twice: two names in one extension), sni2=NAME (a second extension), kind=N of the name, no words: no extension at all,
ech, esni, early, alpn=NAME, grease, pad=BYTES, old (no versions list), tail (bytes behind the message), alert (an alert first),
empty (an empty record first), twice (the message two times), ssl2, version=HEX of the record, length=N more than is there,
=N segments of so many bytes, :N records of so many.
"""
import os
import struct


def block(size, data):
    return len(data).to_bytes(size, "big") + data


def unescape(text):
    return text.encode("latin-1", "backslashreplace").decode("unicode_escape").encode("latin-1")


def names(given, kind):
    return block(2, b"".join(bytes([kind]) + block(2, n) for n in given))


def extension(number, data):
    return struct.pack(">H", number) + block(2, data)


def extensions(words):
    get = {}
    for key, _, value in (w.partition("=") for w in words):
        get.setdefault(key, []).append(unescape(value))
    out = []
    if "grease" in get:
        out.append(extension(0x2a2a, b""))
    if "sni" in get:
        out.append(extension(0, names(get["sni"], int(get.get("kind", [b"0"])[0]))))
    out.append(extension(10, block(2, struct.pack(">H", 29))))
    out.append(extension(11, block(1, b"\0")))
    out.append(extension(13, block(2, bytes.fromhex("040308040401050308050501"))))
    if "old" not in get:
        out.append(extension(43, block(1, bytes.fromhex("03040303"))))
        out.append(extension(51, block(2, struct.pack(">H", 29) + block(2, os.urandom(32)))))
        out.append(extension(45, block(1, b"\1")))
    for protocol in get.get("alpn", []):
        out.append(extension(16, block(2, block(1, protocol))))
    if "ech" in get:
        out.append(extension(0xfe0d, b"\0" + struct.pack(">HHB", 1, 1, 7) + block(2, os.urandom(32)) + block(2, os.urandom(144))))
    if "esni" in get:
        out.append(extension(0xffce, os.urandom(300)))
    if "pad" in get:
        out.append(extension(21, bytes(int(get["pad"][0]))))
    if "sni2" in get:
        out.append(extension(0, names(get["sni2"], 0)))
    if "early" in get:
        out.append(extension(42, b""))
    return b"".join(out)


def ssl2(words):
    """The hello of a protocol that has no names, as servers took it for twenty years."""
    body = b"\1\3\1" + struct.pack(">HHH", 6, 0, 16) + bytes.fromhex("000035 00000a") + os.urandom(16)
    return struct.pack(">H", 0x8000 | len(body)) + body


def build(words):
    """(bytes, length of segments or 0)."""
    plain = [w for w in words if w[0] not in "=:"]
    segment = next((int(w[1:]) for w in words if w[0] == "="), 0)
    record = next((int(w[1:]) for w in words if w[0] == ":"), 16384)
    flags = dict(w.partition("=")[::2] for w in plain)
    if "ssl2" in flags:
        return ssl2(plain), segment
    more = extensions(plain) if any(w != "bare" for w in plain) else b""
    suites = bytes.fromhex("130113021303c02bc02fc02cc030")
    body = b"\3\3" + os.urandom(32) + block(1, os.urandom(32)) + block(2, suites) + b"\1\0" + block(2, more)
    message = b"\1" + (len(body) + int(flags.get("length", 0))).to_bytes(3, "big") + body
    message = message * (2 if "twice" in flags else 1) + (b"\0\0\0\0" if "tail" in flags else b"")
    version = bytes.fromhex(flags.get("version", "0301"))
    out = b"".join(b"\x16" + version + block(2, message[n:n + record]) for n in range(0, len(message), record))
    if "alert" in flags:
        out = b"\x15\3\1" + block(2, b"\1\0") + out
    if "empty" in flags:
        out = b"\x16\3\1\0\0" + out
    return out, segment
