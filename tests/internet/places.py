# SPDX-License-Identifier: Apache-2.0
"""Who is where in the fake internet: addresses, names, ports and what each server does. Data alone.

Addresses must be of the public kind, else the gateway refuses them for what they are; those of documentation are not. They are taken from
the ranges of AS112, which exist to swallow what nobody should have sent, though nothing ever leaves the namespace.
"""
NET4 = "192.175.48."
NET6 = "2620:4f:8000::"


def v4(n):
    return f"{NET4}{n}"


def v6(n):
    return f"{NET6}{n}"


RESOLVER = v4(53)
HOST_OWN = v4(1)       # a public address of the host's own interface
HOST_OWN6 = v6(1)
GOOD, OTHER, PLAIN, TLS, SSH, ECHO, SLOW, EVIL = 10, 11, 12, 13, 14, 15, 16, 66
STALL, DRIP, RESET, ENDLESS, MUTE, CLOSED = 20, 21, 22, 23, 24, 25

# What a server there does with a connection on a port of the web; others serve files.
MANNERS = {STALL: "stall", DRIP: "drip", RESET: "reset", ENDLESS: "endless", MUTE: "mute"}
# Where a box that has the rules below may be seen, and on which ports, if not on all.
LEGITIMATE = {GOOD, OTHER, PLAIN, TLS, SSH, ECHO, SLOW, STALL, DRIP, RESET, ENDLESS, MUTE, CLOSED}
PORTS = {PLAIN: {80}, TLS: {443}, SSH: {22}, ECHO: {9999}, SLOW: {80}}

HTTP_PORTS = (80, 8080)
CARELESS_PORTS = (8000, 8001)  # the first goes by Content-Length, the second by chunks
TLS_PORTS = (443, 853, 8443)
ECHO_PORTS = (7, 9999)
SSH_PORTS = (22,)
OTHER_TCP_PORTS = (21, 23, 25, 53, 110, 139, 445, 587, 1080, 2375, 3128, 3306, 5432, 6379, 6667, 9050, 9418, 11211, 27017)
UDP_PORTS = (7, 67, 69, 123, 137, 161, 443, 500, 514, 853, 1194, 1900, 3478, 4500, 5353, 5355, 9999, 51820)

RULES = [
    "good.test", "other.test", "*.ok.test", "plain.test:80", "tls.test:443", "ssh.test:22", "echo.test:9999", "xn--bcher-kva.test",
    "slow.test:80@3", "*.ok-zone.test", "blocked.ok.test=deny", "good.test:6667=deny",
]


def addresses(*numbers):
    return [("A", v4(n)) for n in numbers] + [("AAAA", v6(n)) for n in numbers]


# Places near the host that no name may lead to, by what they are called here.
NEAR = {
    "loopback": "127.0.0.1", "loopback-other": "127.8.8.8", "unspecified": "0.0.0.0", "this-network": "0.1.2.3", "private-10": "10.0.0.5",
    "private-172": "172.16.0.5", "private-172-end": "172.31.255.254", "private-192": "192.168.0.5", "shared": "100.64.0.1", "link-local": "169.254.0.5",
    "metadata": "169.254.169.254", "metadata-ecs": "169.254.170.2", "metadata-alibaba": "100.100.100.200", "metadata-azure": "168.63.129.16",
    "metadata-oracle": "192.0.0.192", "metadata-tencent": "169.254.0.23", "metadata-scaleway": "169.254.42.42", "documentation-1": "192.0.2.5",
    "documentation-2": "198.51.100.5", "documentation-3": "203.0.113.5", "benchmark": "198.18.0.5", "sixtofour-relay": "192.88.99.1", "multicast": "224.0.0.251",
    "reserved": "240.0.0.1", "broadcast": "255.255.255.255",
}
NEAR6 = {
    "loopback6": "::1", "unspecified6": "::", "mapped-loopback": "::ffff:127.0.0.1", "mapped-metadata": "::ffff:169.254.169.254",
    "mapped-public": "::ffff:" + v4(EVIL), "compatible-loopback": "::127.0.0.1", "compatible-metadata": "::169.254.169.254",
    "translated-metadata": "::ffff:0:169.254.169.254", "nat64-metadata": "64:ff9b::169.254.169.254", "nat64-loopback": "64:ff9b::127.0.0.1",
    "nat64-private": "64:ff9b::10.0.0.5", "nat64-own": "64:ff9b:1::a9fe:a9fe", "sixtofour-metadata": "2002:a9fe:a9fe::1", "sixtofour-loopback": "2002:7f00:1::1",
    "teredo": "2001:0:a9fe:a9fe::1", "ula": "fd12:3456::5", "metadata-aws6": "fd00:ec2::254", "metadata-google6": "fd20:ce::254",
    "metadata-oracle6": "fd00:c1::a9fe:a9fe",
    "metadata-scaleway6": "fd00:42::42", "metadata-alibaba6": "fd00:100::100:200", "linklocal6": "fe80::5", "site-local6": "fec0::5",
    "documentation6": "2001:db8::5",
    "documentation6-new": "3fff::5", "benchmark6": "2001:2::5", "orchid6": "2001:20::5", "discard6": "100::5", "multicast6": "ff02::fb", "unassigned6": "4000::5",
}

# Of a name: records as (type, value), or the name of a manner of the name server's.
ZONE = {
    "good.test": addresses(GOOD), "other.test": addresses(OTHER), "plain.test": addresses(PLAIN), "tls.test": addresses(TLS), "ssh.test": addresses(SSH),
    "echo.test": addresses(ECHO), "slow.test": addresses(SLOW), "xn--bcher-kva.test": addresses(GOOD), "evil.test": addresses(EVIL),
    "www.evil.test": addresses(EVIL),
    "evilgood.test": addresses(EVIL), "good.test.evil.test": addresses(EVIL), "ok.test": addresses(EVIL), "notok.test": addresses(EVIL), "good.tes": addresses(EVIL),
    "evil-ok.test": addresses(EVIL), "xn--evl-0ma.test": addresses(EVIL),
    "blocked.ok.test": addresses(GOOD), "four.ok.test": [("A", v4(GOOD))], "six.ok.test": [("AAAA", v6(GOOD))],
    "alias.ok.test": [("CNAME", "alias2.ok.test")], "alias2.ok.test": [("CNAME", "good.test")],
    "alias-evil.ok.test": [("CNAME", "inward.evil.test")], "inward.evil.test": [("A", "169.254.169.254")],
    "alias-near.ok.test": [("CNAME", "metadata.ok.test")], "alias-loop.ok.test": [("CNAME", "alias-loop2.ok.test")],
    "alias-loop2.ok.test": [("CNAME", "alias-loop.ok.test")],
    "mixed.ok.test": [("A", v4(GOOD)), ("A", "127.0.0.1"), ("A", "169.254.169.254")], "own.ok.test": [("A", HOST_OWN), ("AAAA", HOST_OWN6)],
    "stall.ok.test": addresses(STALL), "drip.ok.test": addresses(DRIP), "reset.ok.test": addresses(RESET), "endless.ok.test": addresses(ENDLESS),
    "mute.ok.test": addresses(MUTE), "closed.ok.test": addresses(CLOSED),
    "rebind.ok.test": "rebind", "rebind-metadata.ok.test": "rebind-metadata", "many.ok.test": "many", "huge.ok.test": "huge", "truncated.ok.test": "truncated",
    "silent.ok.test": "silent", "late.ok.test": "late", "wrong-id.ok.test": "wrong-id", "wrong-name.ok.test": "wrong-name", "wrong-type.ok.test": "wrong-type",
    "garbage.ok.test": "garbage", "servfail.ok.test": "servfail", "refused.ok.test": "refused", "extra.ok.test": "extra", "pointer-loop.ok.test": "pointer-loop",
    "txt.ok.test": [("TXT", "a canary in a text")], "txt.evil.test": [("TXT", "a canary in a text")],
    **{f"{name}.ok.test": [("A", a)] for name, a in NEAR.items()}, **{f"{name}.ok.test": [("AAAA", a)] for name, a in NEAR6.items()},
}
# Under these every name there can be has an address, as tunnels of names need it; each is its own way out.
WILD = {"tunnel.evil.test": addresses(EVIL), "ok-zone.test": addresses(GOOD)}

HOSTS = f"127.0.0.1 localhost\n::1 localhost\n{v4(GOOD)} byfile.ok.test\n10.0.0.7 nearbyfile.ok.test\n"
