# SPDX-License-Identifier: Apache-2.0
"""Cases against the host's files, processes and objects, and against its own kernel files."""
import needs
import scenes
from battery import NESTED, PLAIN, ROOT, USER, Case, switches
from cases_kernel import layers

ROOTFS = switches("root")
SECRETS = [
    Case("host-file", "A2", 1, ("roads", "{secret}"), ROOTFS, judge="host-file"),
    Case("cwd-outside", "A2", 1, ("cwd", "{secret}"), ROOTFS, judge="host-file", flags=("--cwd", "/proc/self/fd")),
    Case("cwd-fd", "A2", 1, ("cwd", "{secret}"), ROOTFS, judge="host-file", flags=("--cwd", "/proc/self/fd/../cwd")),
    Case("climb", "A2", 1, ("climb", "{secret}"), ROOTFS, judge="host-file"),
    *[Case(f"host-file{p.replace('/', '-')}", "A2", 1, ("roads", "{secret}"), ROOTFS, judge=f"planted:{p}", who=(ROOT,))
      for p in ("/home", "/var/lib", "/opt", "/srv", "/etc", "/run")],
    *[Case(f"host-file{p.replace('/', '-')}", "A2", 1, ("roads", "{secret}"), ROOTFS, judge=f"planted:{p}") for p in ("/var/tmp", "/dev/shm")],
    Case("host-etc-shadow", "A2", 1, ("exists", "/etc/shadow"), ROOTFS, needs=(needs.exists("/etc/shadow"),)),
    Case("host-etc-fstab", "A2", 1, ("exists", "/etc/fstab"), ROOTFS, needs=(needs.exists("/etc/fstab"),)),
    Case("host-etc-subuid", "A2", 1, ("exists", "/etc/subuid"), ROOTFS, needs=(needs.exists("/etc/subuid"),)),
    Case("host-sys", "D10", 9, ("lists", "/sys"), ROOTFS),
    Case("host-boot", "A2", 1, ("exists", "/boot/."), ROOTFS, needs=(needs.exists("/boot"),)),
    Case("host-var-lib", "A2", 1, ("lists", "/var/lib"), ROOTFS),
    Case("environment", "D14", 7, ("environment",), switches("env"), judge="environment"),
    Case("environment-of-processes", "D14", 7, ("cmdlines",), switches("env"), judge="environment"),
    Case("fd-leak", "A2", 4, (), switches("fds"), scene=scenes.inherited_fd("open-fds"), peer=False),
]

LOCKS = switches("readonly,landlock")
READONLY = [
    *layers(Case("read-folder-write", "C14", 2, ("write", "{dir}/evil"), LOCKS, flags=("--read", "{dir}"), judge="unwritten"), "readonly", "landlock"),
    *layers(Case("read-folder-overwrite", "C14", 2, ("write", "{file}"), LOCKS, flags=("--read", "{dir}"), judge="unwritten"), "readonly", "landlock"),
    Case("read-folder-make", "C14", 2, ("make", "{dir}"), LOCKS, flags=("--read", "{dir}"), judge="unwritten"),
    Case("read-file-reopen", "C14", 2, ("reopen", "{file}"), LOCKS, flags=("--read", "{dir}"), judge="unwritten"),
    *layers(Case("volume-ro-write", "C14", 2, ("write", "/mnt/v/evil"), LOCKS, flags=("--volume", "{dir}:/mnt/v:ro"), judge="unwritten"), "readonly", "landlock"),
    Case("project-ro-write", "C14", 2, ("write", "{dir}/evil"), LOCKS, flags=("--project", "ro", "--project-path", "{dir}"), judge="unwritten"),
    *[Case(f"write{'-root' if p == '/' else p.replace('/', '-')}", "C14", 2, ("make", p), LOCKS, flags=("{asroot}",)) for p in ("/", "/dev", "/var", "/home")],
    Case("mount-ro-usr", "C14", 2, ("mount-is-ro", "/usr"), switches("readonly"), peer=False),
    Case("mount-ro-root", "C14", 2, ("mount-is-ro", "/"), switches("readonly"), peer=False),
    Case("mount-ro-etc", "C14", 2, ("mount-is-ro", "/etc"), switches("readonly"), peer=False),
]

MASK = switches("proc-mask")
FILES = ("config.gz consoles crypto devices diskstats interrupts iomem ioports kallsyms latency_stats misc modules mtrr partitions "
         "sched_debug schedstat slabinfo softirqs swaps timer_list cmdline").split()
DIRS = "acpi asound bus driver fs irq scsi".split()
PROC = [
    *[Case(f"proc-{f.replace('_', '-').replace('.', '-')}", "D10", 9, ("shows", f"/proc/{f}"), MASK, needs=(needs.file_shown(f"/proc/{f}"),)) for f in FILES],
    *[Case(f"proc-{f}", "D10", 9, ("opens", f"/proc/{f}"), MASK, needs=(needs.exists(f"/proc/{f}"),)) for f in ("keys", "key-users", "locks")],
    *[Case(f"proc-{d}", "D10", 9, ("lists", f"/proc/{d}"), MASK, needs=(needs.file_shown(f"/proc/{d}"),)) for d in DIRS],
    Case("proc-boot-id", "D10", 9, ("print", "/proc/sys/kernel/random/boot_id"), MASK, judge="boot-id"),
    Case("proc-sys-read-only", "D11", 9, ("mount-is-ro", "/proc/sys"), MASK, peer=False),
    *layers(Case("proc-sys-any", "D11", 9, ("writable-below", "/proc/sys"), switches("proc-mask,landlock"), flags=("{asroot}",)), "proc-mask"),
    *[Case(f"sysctl-{n}", "D11", 9, ("writable", f"/proc/sys/{p}"), switches("proc-mask,landlock"), flags=("{asroot}",), who=(ROOT,))
      for n, p in (("shmmax", "kernel/shmmax"), ("msgmax", "kernel/msgmax"), ("pid-max", "kernel/pid_max"), ("mqueue", "fs/mqueue/msg_max"))],
    *[Case(f"sysctl-{n}", "D11", 9, ("writable", f"/proc/sys/{p}"), switches("proc-mask,landlock,inner-userns,caps"))
      for n, p in (("max-user-namespaces", "user/max_user_namespaces"), ("ip-forward", "net/ipv4/ip_forward"))],
]

LOOK = switches("dumpable,inner-userns,caps")
DEBUG = LOOK | switches("seccomp")
INIT = [
    *layers(Case("ptrace-init", "B12", 8, ("attach", "1"), DEBUG), "seccomp", "inner-userns"),
    Case("ptrace-init-seize", "B12", 8, ("seize", "1"), DEBUG),
    *layers(Case("process-vm-readv", "B12", 8, ("vm-read", "1"), DEBUG), "seccomp", "inner-userns"),
    *layers(Case("pidfd-getfd", "B12", 8, ("take-fd", "1", "3"), DEBUG), "seccomp", "inner-userns"),
    *[Case(f"init-{n}", "B12", 8, ("reads", f"/proc/1/{n}"), LOOK) for n in ("mem", "maps", "environ", "auxv", "syscall", "smaps", "pagemap")],
    *[Case(f"init-{n.replace('/', '-')}", t, 8, ("link-of", f"/proc/1/{n}"), LOOK)
      for n, t in (("exe", "A1"), ("cwd", "A2"), ("root", "A2"), ("fd/3", "A2"), ("fd/4", "A2"), ("ns/user", "B13"), ("ns/mnt", "B13"), ("ns/net", "B13"))],
    Case("proc-self-exe-overwrite", "A1", 8, ("runtime-exe",), LOOK),
    Case("init-limits", "D16", 13, ("limit-other", "1"), switches("seccomp,dumpable,inner-userns,caps")),
    Case("init-oom-score", "D16", 13, ("oom", "1", "1000"), LOOK),
]

NOPID = switches("pidns,landlock,tree-kill")
OWN_ID = (USER, PLAIN, NESTED)  # root's boxes have ids that own nothing outside
PROCESSES = [
    Case("host-process-seen", "D1", 8, ("cmdlines",), NOPID, judge="host-process", needs=(needs.signal_scope,)),
    Case("host-process-count", "D1", 8, ("count-processes",), NOPID, peer=False, needs=(needs.many_processes,)),
    Case("host-process-answers", "D1", 8, ("signal-all",), NOPID, needs=(needs.many_processes,)),
    *layers(Case("host-process-kill", "D1", 8, ("signal", "{victim}", "9"), NOPID, judge="host-process", who=OWN_ID, needs=(needs.signal_scope,)), "pidns", "landlock"),
    *layers(Case("host-process-pidfd", "D1", 8, ("signal-pidfd", "{victim}", "15"), NOPID, judge="host-process", who=OWN_ID, needs=(needs.signal_scope,)),
            "pidns", "landlock"),
]

IPC = switches("ipcns")
OBJECTS = [
    Case("ipc-shm", "D8", 15, ("shm", "{key}"), IPC, judge="shm"),
    Case("ipc-shm-scan", "D8", 15, ("shm-scan",), IPC, judge="shm"),
    Case("ipc-sem", "D8", 15, ("sem", "{key}"), IPC, judge="sem"),
    Case("ipc-msg", "D8", 15, ("msg", "{key}"), IPC, judge="msg"),
    *layers(Case("ipc-queue", "D8", 15, ("mq", "{queue}"), switches("ipcns,landlock"), judge="queue", needs=(needs.exists("/proc/sys/fs/mqueue"),)), "ipcns", "landlock"),
    Case("ipc-shm-between-boxes", "D8", 15, (), IPC, scene=scenes.pair(scenes.SHM, ("shm", "{key}")), needs=(needs.ipcrm,), peer=False),
    *layers(Case("abstract-between-boxes", "D5", 15, (), switches("netns,landlock"), scene=scenes.pair(scenes.ABSTRACT, ("unix", "abstract", "plt-{key}")), peer=False,
                 needs=(needs.signal_scope,)), "netns", "landlock"),
    Case("process-between-boxes", "D1", 15, (), NOPID, scene=scenes.pair(scenes.PROCESS, ("cmdlines",)), peer=False),
    Case("files-between-boxes", "D8", 15, (), switches("root,landlock"), peer=False, scene=scenes.pair(
        scenes.FILES, ("print", *(f"{p}/.plt-{{key}}" for p in ("/home/agent", "/tmp", "/var/tmp", "/dev/shm", "/run"))))),
    Case("tcp-between-boxes", "E17", 15, (), switches("netns"), peer=False,
         scene=scenes.pair(scenes.TCP, ("tcp", "127.0.0.1", "{port}"))),
]

DEVICES = [
    *[Case(f"device-{n}", t, 10, ("device", p), ROOTFS, needs=(needs.exists(p),))
      for n, p, t in (("kvm", "/dev/kvm", "C9"), ("mem", "/dev/mem", "C9"), ("fuse", "/dev/fuse", "C9"), ("tun", "/dev/net/tun", "C9"), ("loop", "/dev/loop-control", "C9"),
                      ("kmsg", "/dev/kmsg", "C9"), ("vsock", "/dev/vsock", "B8"), ("vda", "/dev/vda", "C9"), ("port", "/dev/port", "C9"), ("console", "/dev/ttyS0", "A4"),
                      ("ptmx-of-the-host", "/dev/ttyprintk", "A4"), ("rtc", "/dev/rtc0", "C9"), ("hwrng", "/dev/hwrng", "C9"))],
    Case("gpu-device", "A11", 10, ("devices",), ROOTFS, peer=False),
    Case("whiteout", "C9", 10, ("whiteout", "/tmp/w"), switches("seccomp"), door=False),
    Case("handle-usr", "B18", 14, ("handle", "/usr"), switches("seccomp")),
    Case("handle-namespace", "B17", 14, ("handle", "/proc/self/ns/net"), switches("seccomp"), door=True),
]

HOW = ("chmod fchmod fchmodat fchmodat2 fchmodat2-empty new-creat new-open new-openat new-openat2 new-mknod new-mknodat new-tmpfile").split()
LIVE = ("--project", "live", "--project-path", "{dir}")
SETID = [
    *[Case("setuid-file" if how == "chmod" else f"setuid-{how.replace('new-', '')}", "C8", 11, ("setid", how, "0o4755".replace("0o", "0"), "s"), switches("seccomp"),
           flags=LIVE, judge="rights") for how in HOW],
    Case("setgid-file", "C8", 11, ("setid", "chmod", "02755", "s"), switches("seccomp"), flags=LIVE, judge="rights"),
    Case("setuid-file-high-bits", "B15", 11, ("setid", "chmod", str(0o4755 | 1 << 32), "s"), switches("seccomp"), flags=LIVE, judge="rights"),
    Case("setuid-file-written", "C8", 11, ("setid", "fchmodat", "06755", "{dir}/s"), switches("seccomp"), flags=("--write", "{dir}"), judge="rights"),
    Case("capability-file", "C8", 11, ("file-capability", "/tmp/c"), switches("caps"), who=(ROOT,)),
]

GUARDED = """.git/hooks/pre-commit .git/config .git/config.worktree .git/commondir .git/info/attributes .git/modules/m/config .git/worktrees/w/gitdir .gitmodules
.claude/settings.json .mcp.json .codex/config.toml .gemini/settings.json .qwen/settings.json .opencode/x opencode.json opencode.jsonc .cursor/mcp.json
.copilot/x .github/hooks/x .windsurf/x .continue/x .kiro/x .amazonq/x .aider.conf.yml .vscode/tasks.json .idea/workspace.xml .zed/settings.json .fleet/run.json
.devcontainer/devcontainer.json .devcontainer.json .exrc .nvimrc .nvim.lua .vimrc .dir-locals.el .dir-locals-2.el .cargo/config .cargo/config.toml .envrc
.direnv/x .mise/x .mise.toml mise.toml .tool-versions .autoenv .autoenv.zsh .gdbinit .lldbinit .husky/pre-commit""".split()


def slug(name):
    return name.lstrip(".").replace("/.", "-").replace("/", "-").replace(".", "-").replace("_", "-").lower()


GUARD = [Case(f"guard-{'dot-' if n == '.mise.toml' else ''}{slug(n)}", "C1" if n.startswith(".git") else "C5", 24, ("obey", n), switches("guard"), flags=LIVE, judge="guarded", peer=n in (
    ".git/config", ".git/hooks/pre-commit", ".claude/settings.json", ".mcp.json", ".vscode/tasks.json", ".envrc")) for n in GUARDED]

DEEP = "a/b/c/d/e/"


def threat(name):
    return "C2" if "hooks" in name and ".git" in name else "C1" if ".git/" in name else "C4" if ".git" in name else "C5"


def planted(label, how, name, threat_class=None):
    return Case(f"guard-{label}-{'dot-' if name.endswith('.mise.toml') else ''}{slug(name.removeprefix(DEEP))}", threat_class or threat(name), 24,
                ("plant", how, name), switches("guard"), flags=LIVE, judge="unplanted", peer=False)


GUARD_LATER = [
    *[planted("later", "create", n) for n in GUARDED],
    *[planted("later-deep", "create", DEEP + n) for n in GUARDED],
    *[planted(f"later-{how}", how, DEEP + n) for how in ("rename", "link", "symlink", "exchange", "arrive")
      for n in (".envrc", ".mcp.json", ".git/config", ".git/hooks", ".claude")],
    *[planted("later-case", "create", DEEP + n) for n in (".ENVRC", ".Git/Config", ".GIT/hooks", ".Claude/settings.json", "OpenCode.json")],
    planted("later-through-link", "through-link", ".envrc", "C6"), planted("later-through-link", "through-link", ".mcp.json", "C6"),
    *[planted("later-symlink-above", "symlink", n, "C6") for n in (".git", "sub/.github", "sub/.cargo", ".git/info")],
    *[planted("later-file", "create", n, "C4") for n in (".git", "sub/.git")],
    *[planted("later-bare", "bare", n, "C3") for n in ("store/config", DEEP + "store/hooks", DEEP + "x/config.worktree", "y/commondir")],
    *[Case(f"guard-deep-{'dot-' if n == '.mise.toml' else ''}{slug(n)}", threat(n), 24, ("obey", DEEP + n), switches("guard"), flags=LIVE, judge="guarded", peer=False)
      for n in GUARDED],
]

CASES = [*SECRETS, *READONLY, *PROC, *INIT, *PROCESSES, *OBJECTS, *DEVICES, *SETID, *GUARD, *GUARD_LATER]
