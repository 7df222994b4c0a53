# SPDX-License-Identifier: Apache-2.0
"""Our parsers of flows beside other implementations: what passes means to them what it means to us."""
import itertools
import random
import shutil
import ssl
import subprocess
import sys

import flow_peers
import pytest

pytestmark = [pytest.mark.once, pytest.mark.filterwarnings("ignore:ssl.TLSVersion")]  # old versions are meant

V = ssl.TLSVersion
BITS = {V.TLSv1: 1, V.TLSv1_1: 2, V.TLSv1_2: 4, V.TLSv1_3: 8}
NAMES = [None, "a", "Example.ORG", "xn--bcher-kva.example", "a-b.c_d.example", ".".join(["x" * 50] * 4)]
OFFERS = [(), ("h2", "http/1.1"), ("http/1.1",), ("acme-tls/1",)]
SPANS = [(low, high) for low, high in itertools.combinations_with_replacement(BITS, 2)]


def bits(low, high):
    """OpenSSL sends a list of versions only where 1.3 is among them; without it only the highest is known."""
    if high is not V.TLSv1_3:
        return BITS[high]
    return sum(b for v, b in BITS.items() if low <= v <= high)


def test_openssl_asks_for_what_we_read():
    """Every name with every list of protocols and every span of versions."""
    rows = list(itertools.product(NAMES, OFFERS, SPANS))
    hellos = [flow_peers.Client(name, offer, *span).step() for name, offer, span in rows]
    told = flow_peers.read("hello", hellos)
    for (name, offer, span), hello, is_told in zip(rows, hellos, told):
        assert (is_told["verdict"], is_told["used"]) == (1, len(hello)), is_told
        assert bytes.fromhex(is_told["name"]).decode() == (name or "")
        assert [bytes.fromhex(p).decode() for p in is_told["protocols"]] == list(offer)
        assert is_told["versions"] == bits(*span)
        assert not is_told["ech"] and not is_told["early_data"] and not is_told["shared_key"]


def test_records_of_any_size_mean_the_same_to_openssl():
    hello = flow_peers.Client("example.org", ("h2",)).step()
    cases = [flow_peers.in_records(hello, most) for most in (20, 33, 100, 255, 400)]
    for case, told in zip(cases, flow_peers.read("hello", cases)):
        server = flow_peers.Server()
        server.step(case)
        assert told["verdict"] == 1 and server.names == ["example.org"] and bytes.fromhex(told["name"]) == b"example.org"


def changed(data, chance):
    """One to three small changes: a byte, a length one off, a piece doubled or left out."""
    data = bytearray(data)
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(len(data))
        kind = chance.randrange(5)
        if kind == 0:
            data[at] = chance.randrange(256)
        elif kind == 1:
            data[at] = (data[at] + chance.choice([1, 255])) % 256
        elif kind == 2:
            data[at] = chance.choice(b"\0\r\n :;,a0")
        elif kind == 3:
            data[at:at] = data[at:at + chance.randint(1, 12)]
        elif len(data) > 20:
            del data[at:at + chance.randint(1, 4)]
    return bytes(data)


def test_a_name_that_we_read_is_the_one_openssl_reads(monkeypatch):
    """Hellos with something changed: what we accept OpenSSL reads as we do, or refuses."""
    chance = random.Random(7)
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)  # names that are not ASCII
    base = [flow_peers.Client(name, offer, *span).step() for name, offer, span in
            itertools.product(["example.org"], OFFERS[:2], [(V.TLSv1_2, V.TLSv1_3), (V.TLSv1, V.TLSv1_2)])]
    cases = [changed(chance.choice(base), chance) for _ in range(1500)]
    # A changed length seldom leaves the rest whole: these change only what the name's extension says.
    for hello in base:
        at = hello.index(b"example.org")
        cases += [hello[:k] + bytes([b]) + hello[k + 1:] for k in range(at - 9, at + 11) for b in (0, 1, 9, 10, 12, 14, 46, 65, 255)]
    accepted = agreed = 0
    for case, told in zip(cases, flow_peers.read("hello", cases)):
        if told["verdict"] != 1:
            continue
        accepted += 1
        server = flow_peers.Server()
        server.step(case[:told["used"]])
        name = bytes.fromhex(told["name"])
        if server.names and name.isascii():
            agreed += 1
            assert server.names == [name.decode() or None], case.hex()
    assert accepted > 400 and agreed > 300, (accepted, agreed)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    if not shutil.which("openssl"):
        pytest.skip("openssl is not installed")
    path = tmp_path_factory.mktemp("certificate") / "both.pem"
    done = subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
                           "/CN=a", "-keyout", path, "-out", f"{path}.crt"], capture_output=True, timeout=30, check=False)
    assert done.returncode == 0, done.stderr
    path.write_bytes(path.read_bytes() + path.with_suffix(".pem.crt").read_bytes())
    return path


def test_a_second_hello_is_seen_when_the_server_asks_for_it(certificate):
    """The server takes a curve for which the client sent no key: the second message has a name too, and OpenSSL obeys it."""
    for curve, asks in (("secp384r1", 1), ("prime256v1", 1), (None, 0)):
        client, server = flow_peers.Client("first.example"), flow_peers.Server(certificate, curve)
        first = client.step()
        answer = server.step(first)
        assert [t["asks_again"] for t in flow_peers.read("server", [answer, answer[:9]])] == [asks, -1]
        if asks:
            second = client.step(answer)
            forged = second.replace(b"first.example", b"other.example")
            told = flow_peers.read("again", [second, forged])
            assert [(t["verdict"], bytes.fromhex(t["name"])) for t in told] == [(1, b"first.example"), (1, b"other.example")]
            server.step(forged)
            assert server.names[-1] == "other.example", "OpenSSL goes by the first name: hello_asks_again is needless"


def test_protocols_are_told_apart():
    hello = flow_peers.Client("a").step()
    cases = [hello, hello[:2], b"GET / HTTP/1.1\r\n", b"SSH-2.0-OpenSSH_9.2\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"EHLO a\r\n", b""]
    assert [t["is"] for t in flow_peers.read("sniff", cases)] == ["tls", "tls", "http", "ssh", "http2", "unknown", "more"]


# --- HTTP ---

H = b"Host: a.example\r\n"
SMUGGLED = b"GET /smuggled HTTP/1.1\r\nHost: evil.example\r\n\r\n"
GOOD = [
    b"GET /one HTTP/1.1\r\n" + H + b"\r\nGET http://A.example:80/two?x=1 HTTP/1.1\r\nHost: a.example\r\nX-A:b\r\n\r\nHEAD /three HTTP/1.1\r\n" + H + b"\r\n",
    b"DELETE /x HTTP/1.1\r\n" + H + b"Content-Length: 0\r\n\r\nGET /a/b//%2e%2e/x HTTP/1.1\r\n" + H + b"\r\nOPTIONS * HTTP/1.1\r\n" + H + b"\r\n",
    b"POST /p HTTP/1.1\r\n" + H + b"Content-Length: 00" + str(len(SMUGGLED)).encode() + b"\r\nExpect: 100-continue\r\n\r\n" + SMUGGLED,
    b"GET /g HTTP/1.1\r\n" + H + b"Content-Length: " + str(len(SMUGGLED)).encode() + b"\r\n\r\n" + SMUGGLED + SMUGGLED,
    b"POST /c HTTP/1.1\r\n" + H + b"Transfer-Encoding: CHUNKED\r\n\r\n%x\r\n%s\r\n0002\r\nab\r\n0\r\n\r\n" % (len(SMUGGLED), SMUGGLED) + SMUGGLED,
    b"GET /old HTTP/1.0\r\n" + H + b"Connection: keep-alive\r\n\r\n" + SMUGGLED,
    b"GET /h2c HTTP/1.1\r\n" + H + b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\nGET /next HTTP/1.1\r\n" + H + b"\r\n",
    b"GET /ws HTTP/1.1\r\n" + H + b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n" + SMUGGLED,
]
# Where a front and a server have been seen to differ. Before each stands a good request, which passes; behind each one that must not.
BAD = [
    b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n",
    b"Content-Length: 0\r\nContent-Length: 46\r\n\r\n",
    b"Content-Length: 0, 46\r\n\r\n",
    b"Content-Length: +0\r\n\r\n",
    b"Content-Length: -0\r\n\r\n",
    b"Content-Length: 0x0\r\n\r\n",
    b"Content-Length : 46\r\n\r\n",
    b"Content-Length\t: 46\r\n\r\n",
    b"Content_Length: 46\r\n\r\n",
    b"Content-Length: 4\r\n 6\r\n\r\n",
    b"\0Content-Length: 46\r\n\r\n",
    b"Content-Length: 46\0\r\n\r\n",
    b"X: a\nContent-Length: 46\r\n\r\n",
    b"X: a\rContent-Length: 46\r\n\r\n",
    b"X: a\r\n\nContent-Length: 46\r\n\r\n",
    b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
    b"Transfer-Encoding: identity, chunked\r\n\r\n0\r\n\r\n",
    b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    b"Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n",
    b"Transfer-Encoding: 'chunked'\r\n\r\n0\r\n\r\n",
    b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    b"Transfer_Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
    b"Transfer-Encoding: chunked\r\n\r\n0x0\r\n\r\n",
    b"Transfer-Encoding: chunked\r\n\r\n0;a=b\r\n\r\n",
    b"Transfer-Encoding: chunked\r\n\r\n1;\r\na\r\n0\r\n\r\n",
    b"Transfer-Encoding: chunked\r\n\r\n0 \r\n\r\n",
    b"Transfer-Encoding: chunked\r\n\r\n 0\r\n\r\n",
    b"Transfer-Encoding: chunked\r\n\r\n0\n\r\n",
    b"Transfer-Encoding: chunked\r\n\r\n0\r\nHost: evil.example\r\n\r\n",
    b"Transfer-Encoding: chunked\r\nTrailer: Host\r\n\r\n0\r\nHost: evil.example\r\n\r\n",
    b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffff1\r\n",
    b"Connection: Content-Length\r\nContent-Length: 46\r\n\r\n",
    b"Connection: close, Host\r\n\r\n",
    b"Host: evil.example\r\n\r\n",
    b"Host : evil.example\r\n\r\n",
    b" Host: evil.example\r\n\r\n",
    b"Expect: 100-continue, 200-ok\r\n\r\n",
    b"A: \x85Host: evil.example\r\n\r\n",
]
BAD_TARGETS = [
    b"GET http://evil.example/ HTTP/1.1\r\n" + H,
    b"GET http://a.example@evil.example/ HTTP/1.1\r\n" + H,
    b"GET http://a.example:81/ HTTP/1.1\r\n" + H,
    b"GET https://a.example/ HTTP/1.1\r\n" + H,
    b"GET //evil.example\\ HTTP/1.1\r\nHost: a.example@evil.example\r\n",
    b"GET /\tHTTP/1.1\r\n" + H,
    b"GET / HTTP/1.1 HTTP/1.1\r\n" + H,
    b"GET /x\r\n" + H,
    b"GET / http/1.1\r\n" + H,
    b"GET / HTTP/1.10\r\n" + H,
    b"GET / HTTP/2.0\r\n" + H,
    b" GET / HTTP/1.1\r\n" + H,
    b"\r\nGET / HTTP/1.1\r\n" + H,
    b"G\0T / HTTP/1.1\r\n" + H,
    b"GET * HTTP/1.1\r\n" + H,
    b"GET /#x HTTP/1.1\r\n" + H,
    b"GET / HTTP/1.1\r\nHost: a.example:80:81\r\n",
    b"GET / HTTP/1.1\r\nHost: a.example\0.evil.example\r\n",
    b"GET / HTTP/1.1\r\nHost: a.example, evil.example\r\n",
    b"GET / HTTP/1.1\r\n",
]
FIRST = b"GET /first HTTP/1.1\r\n" + H + b"\r\n"


@pytest.fixture(scope="module", params=[flow_peers.PythonPeer, flow_peers.NodePeer, flow_peers.NginxPeer, flow_peers.HaproxyPeer],
                ids=lambda kind: kind.name)
def peer(request):
    server = request.param()
    yield server
    server.close()


def told(requests):
    return [(r["method"], ("*" if not r["path"] else r["path"]) + r["query"], r["host"]) for r in requests if not r["connect"]]


def check(peer, case, is_told):
    """The server sees the requests that were told, no fewer and no more, up to one that it refuses. It may answer one whose body has no
    end, or not."""
    expected = told(is_told["requests"])
    least = len(expected) - (not is_told["whole"] or is_told["why"].startswith("the body"))
    all_seen = flow_peers.seen_by(peer, bytes.fromhex(is_told["out"]), least)
    seen = [s for s in all_seen if s[0] != "refused"]
    assert [s[:3] for s in seen] == expected[:len(seen)] and len(seen) >= (least if seen == all_seen else 0), case
    return seen


def test_a_server_sees_the_requests_that_were_judged(peer):
    bodies = {2: SMUGGLED, 3: SMUGGLED, 4: SMUGGLED + b"ab"}
    for i, (case, is_told) in enumerate(zip(GOOD, flow_peers.read("http", GOOD))):
        assert is_told["status"] in (0, 400) and is_told["whole"], (case, is_told)
        seen = check(peer, case, is_told)
        assert not any("smuggled" in s[1] for s in seen), case
        assert seen and (not peer.tells_bodies or seen[-1][3].encode() == bodies.get(i, b"")), case


def test_what_two_could_read_differently_never_reaches_a_server(peer):
    cases = [FIRST + b"POST /bad HTTP/1.1\r\n" + H + b + SMUGGLED for b in BAD] + [FIRST + t + b"\r\n" + SMUGGLED for t in BAD_TARGETS]
    for case, is_told in zip(cases, flow_peers.read("http", cases)):
        assert 400 <= is_told["status"] <= 505, (case, is_told)
        refusal = bytes.fromhex(is_told["refusal"])
        assert refusal.startswith(b"HTTP/1.1 %d " % is_told["status"]) and b"\r\nConnection: close\r\n" in refusal
        seen = check(peer, case, is_told)
        assert seen[0] == ("GET", "/first", "a.example", "") and not any("smuggled" in s[1] for s in seen), case


def test_changed_requests_mean_to_a_server_what_they_mean_to_us(peer):
    chance = random.Random(11)
    cases = [changed(chance.choice(GOOD), chance) for _ in range(400)]
    passed = 0
    for case, is_told in zip(cases, flow_peers.read("http", cases)):
        passed += len(check(peer, case, is_told))
    assert passed > 200, passed


REPLIES = [
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    b"HTTP/1.1 404 Not Found\r\nServer: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n1F\r\n" + b"x" * 31 + b"\r\n0\r\n\r\n",
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nab",
    b"HTTP/1.1 204 No Content\r\n\r\n",
    b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n",
    b"HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nabc",
    b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
]
NEXT = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx"


def test_a_response_ends_for_us_where_it_ends_for_a_client():
    """As they are, and with something changed: where we see an end a client sees the same, or nothing it can read."""
    chance = random.Random(13)
    rows = [(head, reply) for head in (0, 1) for reply in REPLIES]
    rows += [(chance.randrange(2), changed(chance.choice(REPLIES), chance)) for _ in range(3000)]
    ends = 0
    for i, ((head, reply), is_told) in enumerate(zip(rows, flow_peers.read("reply", [bytes([h]) + r + NEXT for h, r in rows]))):
        if is_told["end"]:
            theirs = flow_peers.response_ends(reply + NEXT, head)
            assert theirs in (None, is_told["passed"]), (head, reply)
            ends += theirs is not None
        else:
            assert i >= 2 * len(REPLIES) and is_told["passed"] <= len(reply + NEXT), reply
    assert ends > 500, ends
