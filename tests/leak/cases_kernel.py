# SPDX-License-Identifier: Apache-2.0
"""Cases against the kernel's own surface: system calls, sockets, terminals, mounts, namespaces, capabilities."""
import dataclasses

import needs
from battery import ROOT, Case, switches

SECCOMP = switches("seccomp")
# Whoever has these off is root of the namespace that owns the box's mounts and network.
OWNER = switches("seccomp,inner-userns,caps,landlock")
FREE = OWNER | switches("user-max")  # a mount without a place counts as a namespace


def layers(case, *alone):
    """The case itself, and one more for each defence that must hold when all the others are off."""
    yield case
    for name in alone:
        yield dataclasses.replace(case, name=f"{case.name}-by-{name}", off=case.twin - switches(name), peer=False)


def door(name, threat, claim=14, case=None, twin=SECCOMP, **more):
    return Case(case or name, threat, claim, ("door", name), twin, door=True, **more)


DOORS = [
    *[door(n, "B3") for n in ("io-uring-setup", "io-uring-enter", "io-uring-register")],
    *[door(n, "B10", 13) for n in ("fsconfig", "open-tree", "open-tree-attr", "mount-setattr", "statmount", "listmount")],
    # For these the kernel looks at rights first: the twin has them.
    *[door(n, "B10", 13, twin=OWNER) for n in ("fsopen", "fsmount", "fspick", "move-mount")],
    door("mount", "B10", 13, "mount-call"), door("umount2", "C14", 13, "umount-call"), door("chroot", "A2", 13, "chroot-call"),
    door("unshare-door", "B13", 13, "unshare-call"), door("setns", "B13", 13), door("clone3", "B13", 13),
    *[door(n, "B19") for n in ("bpf-map-create", "bpf-prog-load", "userfaultfd", "perf-event-open", "modify-ldt", "fanotify-init", "fanotify-mark",
                               "memfd-secret", "remap-file-pages", "mbind", "set-mempolicy", "set-mempolicy-home-node", "migrate-pages", "move-pages",
                               "personality-read-implies-exec", "personality-no-randomize", "prctl-set-mm", "prctl-sched-core")],
    *[door(n, "B6") for n in ("splice", "tee", "vmsplice")],
    *[door(n, "B19") for n in ("futex-wait-requeue-pi", "futex-cmp-requeue-pi")],
    *[door(n, "B15") for n in ("futex-cmp-requeue-pi-private", "futex-wait-requeue-pi-realtime", "futex-requeue-pi-high-bits", "personality-high-bits",
                               "prctl-set-mm-high-bits", "mknod-high-bits")],
    *[door(n, "D9", 15) for n in ("keyctl", "add-key", "request-key")],
    door("ptrace-door", "B12", 8, "ptrace-call"), *[door(n, "B12", 8) for n in ("process-vm-writev", "process-madvise", "kcmp")],
    door("pidfd-getfd", "B12", 8, "pidfd-getfd-call"), door("process-vm-readv", "B12", 8, "process-vm-readv-call"),
    door("name-to-handle-at", "B18"), door("open-by-handle-at", "B18"),
    *[door(n, "F2", 16) for n in ("io-setup", "io-destroy", "io-submit", "io-getevents", "io-pgetevents", "io-cancel")],
    door("openat2", "C8", 11),
    *[door(n, "F12") for n in ("adjtimex", "clock-adjtime", "clock-settime", "settimeofday")],
    *[door(n, "B19") for n in ("quotactl", "quotactl-fd", "ioperm", "iopl", "sysfs", "ustat")],
    *[door(n, "B16") for n in ("lsm-list-modules", "lsm-get-self-attr", "lsm-set-self-attr", "file-getattr", "file-setattr", "listns")],
    door("prlimit-other", "D16", 13), door("mknod-char", "C9", 10), door("mknod-block", "C9", 10),
    Case("seccomp-new-syscalls", "B16", 14, ("new-syscalls",), SECCOMP),
    Case("int80", "B14", 14, ("int80",), SECCOMP, door=True, needs=(needs.x86,)),
    Case("x32", "B14", 14, ("x32",), SECCOMP, door=True, needs=(needs.x86,)),
    Case("key-rxrpc", "B6", 15, ("add-key", "rxrpc"), SECCOMP, door=True),
    Case("key-user", "D9", 15, ("add-key", "user"), SECCOMP, door=True),
    Case("key-big", "F4", 15, ("add-key", "big_key"), SECCOMP, door=True),
    Case("key-find", "D9", 15, ("find-key", "plt-none"), SECCOMP, door=True),
    Case("key-ring-user", "D9", 15, ("key-ring", "-4"), SECCOMP, door=True),
    Case("key-ring-session", "D9", 15, ("key-ring", "-3"), SECCOMP, door=True),
    Case("trace-me", "B12", 8, ("trace-me",), SECCOMP, door=True),
]

FAMILIES = {"ax25": (3, "B7"), "ipx": (4, "B7"), "appletalk": (5, "B7"), "netrom": (6, "B7"), "atmpvc": (8, "B7"), "x25": (9, "B7"), "rose": (11, "B7"),
            "key": (15, "B6"), "packet": (17, "B7"), "atmsvc": (20, "B7"), "rds": (21, "B7"), "pppox": (24, "B7"), "llc": (26, "B7"), "ib": (27, "B7"),
            "mpls": (28, "B7"), "can": (29, "B7"), "tipc": (30, "B7"), "bluetooth": (31, "B7"), "rxrpc": (33, "B6"), "isdn": (34, "B7"), "phonet": (35, "B7"),
            "ieee802154": (36, "B7"), "caif": (37, "B7"), "alg": (38, "B5"), "nfc": (39, "B7"), "vsock": (40, "B8"), "kcm": (41, "B4"), "qipcrtr": (42, "B7"),
            "smc": (43, "B7"), "xdp": (44, "B7"), "mctp": (45, "B7")}
NETLINK = {"usersock": (2, "B1"), "sock-diag": (4, "B1"), "nflog": (5, "B1"), "xfrm": (6, "B6"), "selinux": (7, "B1"), "iscsi": (8, "B1"), "audit": (9, "B1"),
           "fib-lookup": (10, "B1"), "connector": (11, "B1"), "netfilter": (12, "B1"), "kobject-uevent": (15, "B1"), "generic": (16, "B1"),
           "scsitransport": (18, "B1"), "rdma": (20, "B1"), "crypto": (21, "B5")}
PROTOCOLS = {"sctp": (2, 1, 132), "mptcp": (2, 1, 262), "dccp": (2, 6, 33), "udplite": (2, 2, 136), "raw": (2, 3, 255), "raw-icmp": (2, 3, 1), "raw-tcp": (2, 3, 6),
             "raw6": (10, 3, 255), "l2tp": (2, 2, 115), "esp": (2, 3, 50), "smc-tcp": (2, 1, 256), "sctp6": (10, 1, 132), "mptcp6": (10, 1, 262),
             "udplite6": (10, 2, 136), "packet-type": (2, 10, 0), "seqpacket": (2, 5, 132)}

SOCKETS = [
    *[Case(f"socket-{n}", t, 6, ("family", str(f)), SECCOMP, door=True) for n, (f, t) in FAMILIES.items()],
    *[Case(f"netlink-{n}", t, 6, ("socket", "16", "3", str(p)), SECCOMP, door=True) for n, (p, t) in NETLINK.items()],
    *[Case(f"socket-{n}", "B7", 6, ("socket", *map(str, w)), SECCOMP, door=True) for n, w in PROTOCOLS.items()],
    Case("socket-family-high-bits", "B15", 6, ("socket", str(40 | 1 << 32), "15", "0"), SECCOMP, door=True),
    Case("socketpair-inet", "B7", 6, ("socketpair", "2", "1"), SECCOMP, door=True),
    Case("tcp-ulp-tls", "B4", 14, ("option", "1", "6", "31", "tls"), SECCOMP, door=True),
    Case("tcp-ulp-espintcp", "B6", 14, ("option", "1", "6", "31", "espintcp"), SECCOMP, door=True),
    Case("tcp-ulp-smc", "B4", 14, ("option", "1", "6", "31", "smc"), SECCOMP, door=True),
    Case("tcp-ulp-high-bits", "B15", 14, ("option", "1", str(6 | 1 << 33), str(31 | 1 << 34), "tls"), SECCOMP, door=True),
    Case("tcp-repair", "B4", 14, ("option", "1", "6", "19", "x"), SECCOMP, door=True),
    Case("udp-encap", "B6", 14, ("option", "2", "17", "100", "\x02"), SECCOMP, door=True),
    Case("attach-filter", "B19", 14, ("option", "2", "1", "26"), SECCOMP, door=True),
    Case("attach-bpf", "B19", 14, ("option", "2", "1", "50", "none"), SECCOMP, door=True),
    Case("attach-reuseport-cbpf", "B19", 14, ("option", "2", "1", "51"), SECCOMP, door=True),
    Case("attach-reuseport-ebpf", "B19", 14, ("option", "2", "1", "52", "none"), SECCOMP, door=True),
    *[Case(f"fastopen-{how}", "E1", 6, ("fastopen", how), SECCOMP, door=True) for how in ("sendto", "sendmsg", "sendmmsg")],
]

TERMINALS = [
    Case("tiocsti", "B20", 5, ("ioctl", "0x5412"), SECCOMP, door=True),
    Case("tiocsti-high-bits", "B15", 5, ("ioctl", "0x100005412"), SECCOMP, door=True),
    Case("tioclinux", "B20", 5, ("ioctl", "0x541c"), SECCOMP, door=True),
    Case("tioclinux-high-bits", "B15", 5, ("ioctl", "0x10000541c"), SECCOMP, door=True),
    Case("tiocsetd", "B20", 5, ("ioctl", "0x5423"), SECCOMP, door=True),
    Case("tiocsetd-high-bits", "B15", 5, ("ioctl", "0xffffffff00005423"), SECCOMP, door=True),
]

ALONE = ("seccomp", "landlock", "inner-userns")
MOUNTS = [
    *layers(Case("mount-tmpfs", "B10", 13, ("mount", "tmpfs"), OWNER), *ALONE),
    *layers(Case("mount-ramfs", "F6", 13, ("mount", "ramfs"), OWNER), *ALONE),
    *layers(Case("mount-proc", "C14", 13, ("mount", "proc"), OWNER), *ALONE),
    *layers(Case("mount-overlay", "B9", 13, ("mount", "overlay", "lowerdir=/tmp/lower,upperdir=/tmp/upper,workdir=/tmp/work"), OWNER), *ALONE),
    Case("mount-overlay-usr", "B9", 13, ("mount", "overlay", "lowerdir=/usr:/etc"), OWNER),
    Case("mount-cgroup-v1", "B11", 13, ("mount", "cgroup", "freezer"), OWNER, needs=(needs.exists("/sys/fs/cgroup/freezer"),)),
    Case("mount-cgroup-v2", "B11", 13, ("mount", "cgroup2"), OWNER),
    Case("mount-devpts", "B20", 13, ("mount", "devpts", "newinstance"), OWNER),
    Case("mount-mqueue", "D8", 13, ("mount", "mqueue"), OWNER),
    *layers(Case("mount-bind", "C14", 13, ("bind", "/usr", "/tmp/m"), OWNER), *ALONE),
    Case("mount-bind-over-etc", "A6", 13, ("bind", "/tmp", "/etc"), OWNER),
    Case("mount-bind-over-proc", "A5", 13, ("bind", "/tmp", "/proc"), OWNER),
    Case("mount-move", "C14", 13, ("move", "/home/agent"), OWNER),
    Case("mount-shared", "C14", 13, ("propagate", "/"), OWNER),
    *layers(Case("remount-usr", "C14", 13, ("remount", "/usr", "0"), OWNER), *ALONE),
    Case("remount-root", "C14", 13, ("remount", "/", "0"), OWNER),
    Case("remount-etc", "C14", 13, ("remount", "/etc", "0"), OWNER),
    Case("remount-proc-sys", "C14", 9, ("remount", "/proc/sys", "8"), OWNER),
    *layers(Case("umount-proc-sys", "C14", 9, ("umount", "/proc/sys"), OWNER), *ALONE),
    Case("umount-proc-keys", "C14", 9, ("umount", "/proc/keys"), OWNER, needs=(needs.file_shown("/proc/keys"),)),
    Case("umount-proc-kallsyms", "C14", 9, ("umount", "/proc/kallsyms"), OWNER, needs=(needs.file_shown("/proc/kallsyms"),)),
    Case("umount-proc-cmdline", "C14", 9, ("umount", "/proc/cmdline"), OWNER),
    Case("umount-boot-id", "C14", 9, ("umount", "/proc/sys/kernel/random/boot_id"), OWNER),
    Case("umount-proc", "C14", 9, ("umount", "/proc"), OWNER),
    Case("umount-home", "C14", 13, ("umount", "/home/agent"), OWNER),
    Case("umount-etc-hosts", "C14", 13, ("umount", "/etc/hosts"), OWNER),
    Case("umount-dev-null", "A3", 13, ("umount", "/dev/null"), OWNER),
    *layers(Case("pivot-root", "C14", 13, ("pivot",), OWNER), *ALONE),
    *layers(Case("fsmount-tmpfs", "B10", 13, ("by-context", "tmpfs"), FREE), "seccomp", "inner-userns", "user-max"),
    *layers(Case("open-tree-usr", "B10", 13, ("clone-tree", "/usr"), FREE), "seccomp", "inner-userns", "user-max"),
    *layers(Case("setattr-usr", "B10", 13, ("setattr", "/usr"), OWNER), "seccomp", "inner-userns"),
    Case("mounts-nosuid", "C8", 11, ("mount-flags", "nosuid"), switches("mount-flags"), peer=False),
    Case("mounts-nodev", "C9", 10, ("mount-flags", "nodev"), switches("mount-flags"), peer=False),
]

KINDS = {"user": 0x10000000, "mount": 0x20000, "pid": 0x20000000, "net": 0x40000000, "ipc": 0x8000000, "uts": 0x4000000, "cgroup": 0x2000000, "time": 0x80}
MAKER = switches("seccomp,user-max,caps")
NAMESPACES = [
    *layers(Case("unshare-user", "B13", 13, ("unshare", str(KINDS["user"])), switches("seccomp,user-max")), "seccomp", "user-max"),
    *[c for n, f in KINDS.items() if n != "user"
      for c in layers(Case(f"unshare-{n}", "B13", 13, ("unshare", str(f)), MAKER), "seccomp", "user-max", "caps")],
    *layers(Case("clone-user", "B13", 13, ("clone", str(KINDS["user"])), switches("seccomp,user-max")), "seccomp", "user-max"),
    *[Case(f"clone-{n}", "B13", 13, ("clone", str(KINDS[n])), MAKER) for n in ("mount", "pid", "net", "ipc", "uts", "cgroup")],
    Case("clone-user-high-bits", "B15", 13, ("clone", str(KINDS["user"] | 1 << 40)), switches("seccomp,user-max")),
    *layers(Case("clone3-user", "B13", 13, ("clone3", str(KINDS["user"])), switches("seccomp,user-max")), "seccomp", "user-max"),
    *layers(Case("setns-init-mount", "B13", 13, ("enter", "/proc/1/ns/mnt"), OWNER | switches("dumpable")), "seccomp", "inner-userns"),
    Case("setns-own-net", "B13", 13, ("enter", "/proc/self/ns/net"), OWNER),
    Case("setns-own-mount", "B13", 13, ("enter", "/proc/self/ns/mnt"), OWNER),
    Case("setns-own-ipc", "B13", 13, ("enter", "/proc/self/ns/ipc"), OWNER),
    Case("setns-own-uts", "B13", 13, ("enter", "/proc/self/ns/uts"), OWNER),
    Case("setns-own-pid", "B13", 13, ("enter", "/proc/self/ns/pid"), OWNER),
    *layers(Case("chroot", "A2", 13, ("chroot",), switches("seccomp,caps")), "seccomp", "caps"),
    *layers(Case("sethostname", "B19", 13, ("hostname",), OWNER), "seccomp", "inner-userns"),
    Case("setdomainname", "B19", 13, ("domainname",), OWNER),
    Case("reboot", "B19", 13, ("reboot",), OWNER),
    Case("cgroup-paths", "B11", 9, ("cgroup-paths",), switches("cgroupns"), peer=False, flags=("--processes", "500"), needs=(needs.memory_cgroup,)),
]

ADMIN = switches("inner-userns,caps")
NETWORK = [
    *[c for n, t in (("link", "B2"), ("qdisc", "B2"), ("address", "E12"), ("route", "E12"))
      for c in layers(Case(f"netlink-route-{n}", t, 13, ("route", n), ADMIN), "inner-userns")],
    Case("interfaces", "E1", 6, ("interfaces",), switches("netns"), needs=(lambda: None if len(open("/proc/net/dev").readlines()) > 3 else "the host has none but lo",)),
    Case("host-tcp", "E16", 6, ("tcp", "127.0.0.1", "{port}"), switches("netns"), judge="tcp"),
    Case("host-tcp6", "E16", 6, ("tcp6", "::1", "{port}"), switches("netns"), judge="tcp6", needs=(needs.exists("/proc/net/if_inet6"),)),
    Case("host-udp", "E1", 6, ("udp", "127.0.0.1", "{port}", "{canary}"), switches("netns"), judge="udp"),
    *layers(Case("host-abstract", "D5", 6, ("unix", "abstract", "{socket}"), switches("netns,landlock"), judge="abstract", needs=(needs.signal_scope,)),
            "netns", "landlock"),
    *layers(Case("host-abstract-dgram", "D5", 6, ("unix", "abstract", "{socket}", "dgram", "{canary}"), switches("netns,landlock"), judge="abstract-dgram",
                 needs=(needs.signal_scope,)), "netns", "landlock"),
    Case("host-socket-file", "D6", 6, ("unix", "path", "{socket}"), switches("root,landlock"), judge="socket-file"),
]

CAPS = switches("caps")
PRIVILEGE = [
    *[Case(f"caps-{n}", "A12", 11, ("caps", k), CAPS, peer=False) for n, k in (("permitted", "CapPrm"), ("effective", "CapEff"), ("bounding", "CapBnd"))],
    Case("ambient-caps", "A12", 11, ("caps", "CapAmb"), CAPS, peer=False),
    Case("inheritable-caps", "A12", 11, ("caps", "CapInh"), CAPS, peer=False),
    Case("caps-of-root", "A12", 11, ("caps", "CapBnd"), CAPS, peer=False, flags=("{asroot}",)),
    Case("caps-raise", "A12", 11, ("raise-caps",), CAPS),
    Case("caps-raise-ambient", "A12", 11, ("ambient",), CAPS),
    Case("no-new-privs", "C8", 11, ("status", "NoNewPrivs", "1"), switches("nnp,seccomp"), peer=False),
    Case("seccomp-mode", "B16", 14, ("status", "Seccomp", "2"), SECCOMP, peer=False),
    *[Case(f"become-root-{how}", "C8", 11, ("become", "0", how), CAPS, who=(ROOT,)) for how in ("setuid", "setresuid", "setgid", "setgroups", "setfsuid")],
    *[Case(f"become-other-{how}", "C8", 11, ("become", "7", how), CAPS, who=(ROOT,), flags=("--user", "root")) for how in ("setuid", "setgid")],
]

CASES = [*DOORS, *SOCKETS, *TERMINALS, *MOUNTS, *NAMESPACES, *NETWORK, *PRIVILEGE]
