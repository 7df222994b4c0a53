# SPDX-License-Identifier: Apache-2.0
"""Cases about limits, endings, what the host prints and keeps, and what a policy may say."""
import needs
import scenes
from battery import NESTED, PLAIN, ROOT, USER, Case, switches

LIMITS = switches("limits")
SMALL = ("--memory", "64M", "--processes", "100")
MEMORY = [
    Case(n, "F2", 16, attack, LIMITS, flags=SMALL + extra, judge="ended", needs=(needs.memory_cgroup,), peer=False) for n, attack, extra in (
        ("memory-anonymous", ("anon", "200"), ()), ("memory-memfd", ("fill", "memfd", "200"), ()), ("memory-shm", ("fill", "/dev/shm/x", "200"), ("--scratch", "memory")),
        ("memory-sockets", ("socket-buffers", "100"), ()), ("memory-pipes", ("pipes", "100"), ()))
]
SHARES = [
    Case("processes", "F1", 16, ("forks", "30"), LIMITS, flags=("--processes", "20"), judge="ended", peer=False),
    Case("fork-bomb", "F1", 16, ("bomb", "40"), LIMITS, flags=("--processes", "20"), judge="ended", peer=False),
    Case("threads", "F1", 16, ("threads", "30"), LIMITS, flags=("--processes", "20"), judge="ended", peer=False),
    Case("zombies", "D4", 16, ("zombies", "30"), LIMITS, flags=("--processes", "20"), judge="ended", peer=False),
    Case("inotify-instances", "F3", 16, ("inotify", "64"), switches("user-max"), peer=False),
    Case("timers", "F2", 16, ("timers", "4096"), LIMITS, peer=False),
    Case("terminals", "F9", 16, ("terminals", "256"), LIMITS, peer=False),
    Case("limit-message-queues", "F2", 16, ("limit", "msgqueue", "98304"), LIMITS, peer=False),
    Case("limit-locked-memory", "F2", 16, ("limit", "memlock", "1048576"), LIMITS, peer=False),
    Case("limit-signals", "F2", 16, ("limit", "sigpending", "4096"), LIMITS, peer=False),
    Case("disk-in-memory", "F8", 16, ("fill", "/tmp/x", "64"), LIMITS, flags=("--scratch", "memory", "--disk", "16M"), judge="ended", peer=False),
    Case("output-flood", "D13", 16, ("flood", "1000000"), switches("output"), flags=("--output", "64K"), judge="flood", peer=False),
    Case("cpu-time", "F1", 16, ("burn", "1500"), LIMITS, flags=("--cpu", "1"), judge="ended", peer=False),
    Case("core-limit", "D15", 1, ("limit", "core", "0"), switches("core"), peer=False),
    Case("core-file", "D15", 1, ("crash", "{dir}"), switches("core"), flags=("--write", "{dir}"), judge="core", needs=(needs.core_pattern,)),
]
ENDINGS = [
    Case("survive-timeout", "D3", 17, (), switches("tree-kill"), scene=scenes.after_timeout, peer=False),
    Case("survive-kill", "D3", 17, (), switches("tree-kill"), scene=scenes.after_kill, peer=False),
    Case("survive-client", "D3", 17, (), switches("tree-kill"), scene=scenes.after_client, peer=False),
    Case("survive-keeper", "D3", 18, (), switches("death"), scene=scenes.after_death("keeper_pid"), peer=False),
]
LINKS = [
    Case(f"symlink-{v}", "A8", 3, (), switches("root,landlock"), scene=scenes.by_link(v), peer=False) for v in ("cat", "cat-folder", "cp", "files")
] + [
    Case("symlink-write", "A8", 3, (), switches("root,landlock"), scene=scenes.by_link("write"), peer=False, who=(USER, PLAIN, NESTED)),
    Case("fifo-cat", "C10", 3, (), switches("plain-open"), scene=scenes.fifo("cat"), peer=False),
    Case("volume-symlink-race", "A7", 3, (), switches("nofollow"), scene=scenes.volume_swapped, peer=False),
    Case("mask-source-symlink", "A3", 3, (), switches("nofollow"), scene=scenes.mount_point_link, peer=False, needs=(needs.busybox,)),
]
PRINTED = [Case(f"escapes-{v}", "C11" if v.startswith("files") else "D12", 19, (), switches("quote"), scene=scenes.printed(v), peer=False)
           for v in ("files", "files-json", "ps", "audit", "audit-json", "error", "cat", "name")]
AUDIT = [Case(f"audit-{how}", "G8", 20, (), switches("audit-chain"), scene=scenes.tampered(how), peer=False)
         for how in ("edited", "removed", "cut", "swapped", "doubled", "emptied", "torn")]
CHECK = switches("policy-check")
POLICY = [
    *[Case(f"refuse-{n}", "G3", 21, ("say", "it runs"), CHECK | switches("claims,claim-marks") | (switches("own-places") if n == "write-home" else set()), flags=flags, judge="refused", peer=False) for n, flags in {
        "tier-gvisor": ("--tier", "gvisor"), "tier-microvm": ("--tier", "microvm"),
        "read-run": ("--read", "/run"),
        "write-usr": ("--write", "/usr"), "volume-over-etc": ("--volume", "{dir}:/etc/skel"), "volume-over-usr": ("--volume", "{dir}:/usr/share"),
        "write-home": ("--write", "/home")}.items()],
    *[Case(f"refuse-{n}", "G3", 21, ("say", "it runs"), CHECK | switches("own-places"), flags=flags, judge="refused", peer=False, who=(USER, PLAIN, NESTED))
      for n, flags in {"read-proc": ("--read", "/proc"), "read-root": ("--volume", "/:/mnt/x:ro"), "read-sys": ("--read", "/sys")}.items()],
    *[Case(f"user-{n}", "A9", 21, ("say", "it runs"), switches("users"), flags=("--user", u), judge="refused", peer=False) for n, u in {
        "hex": "0x0", "colon": "1000:", "overflow": "4294967296", "negative": "-1", "space": " 1000", "newline": "1000\n0", "word": "nobody2",
        "plus": "+0", "long": "0" * 40, "two-colons": "0:0:0"}.items()],
    *[Case(f"name-{n}", "A10", 21, (), switches("names"), scene=scenes.box_name(v), peer=False) for n, v in {
        "slash": "a/b", "upper": "UPPER", "escape": "a\x1b[1m", "percent": "%2e%2e", "lookalike": "b\u043ex", "space": "a b"}.items()],
    *[Case(f"own-place-{w}", "G3", 21, (), CHECK | switches("own-places"), off=CHECK, scene=scenes.own_place(w), peer=False) for w in ("state", "above", "runtime", "boxes")],
    *[Case(f"shared-folder-{r}", "C7", 15, (), switches("claims"), scene=scenes.shared_folder(r), peer=False) for r in ("same", "below", "above", "alias")],
    Case("shared-folder-moved", "C7", 15, (), switches("claim-moved"), scene=scenes.shared_folder("moved"), peer=False),
    Case("shared-folder-runtime", "C7", 15, (), switches("claim-marks"), scene=scenes.shared_folder("runtime"), peer=False),
    *[Case(f"other-project-{h}", "C7", 24, (), switches("projects"), scene=scenes.other_project(h), peer=False) for h in ("read", "write", "volume", "live", "review")],
    Case("release-ignores-switches", "A12", 25, (), switches("seccomp"), scene=scenes.release_ignores_switches, peer=False),
    Case("policy-reader-locked", "G4", 22, (), switches("reader-lock"), scene=scenes.reader_locked, peer=False, needs=(needs.strace,)),
]
SOCKETS = [Case(f"runtime-dir-{how}", "G9", 23, (), switches("private-dir"), scene=scenes.runtime_dir(how), peer=False,
                who=(ROOT,) if how == "foreign" else (ROOT, USER, PLAIN, NESTED)) for how in ("open", "foreign")]
IDS = [Case("host-ids", "C8", 12, (), switches("ids"), scene=scenes.host_ids, who=(ROOT,), peer=False)]
TERMINAL = [Case("terminal-tiocsti", "B20", 5, (), switches("seccomp"), scene=scenes.typed(0x5412), peer=False),
            Case("terminal-tiocsetd", "B20", 5, (), switches("seccomp"), scene=scenes.typed(0x5423), peer=False)]

CASES = [*MEMORY, *SHARES, *ENDINGS, *LINKS, *PRINTED, *AUDIT, *POLICY, *SOCKETS, *IDS, *TERMINAL]
