# SPDX-License-Identifier: Apache-2.0
"""The peers: where each is found, the command line that is fair to it, and whether it runs here.

Fair means: as close to a box of pale as the peer can be told to go. Same read-only /usr and /etc, own /proc with the same covers,
own /dev, tmpfs elsewhere, no network, no new privileges, no capabilities, where it has a word for it. What a peer cannot do is
left out, never made up for by a slower trick, and its note says so. A peer that is not installed or does not run is listed with
the reason."""
import json
import os
import pathlib
import shutil
import time

from host import HERE, ROOT, Failed, end

FOLDER = pathlib.Path(os.environ.get("PALE_PEERS", ROOT / "build-peers"))
SLOW_US = 30000  # from here on a peer takes its turns in a round of its own, with fewer runs
TMPFS = ("/tmp", "/run", "/var/tmp", "/home/agent", "/dev/shm")


class Stage:
    """What peers need of one identity's part of the work folder: the box's /etc, the covers of its /proc, an empty root."""

    def __init__(self, who, bin_folder):
        self.who, self.bin = who, bin_folder
        self.folder = who.folder("s")
        self.etc, self.empty, self.root = (self.folder / n for n in ("etc", "empty", "root"))
        for d in (self.etc, self.empty, self.root):
            d.mkdir()
        tar = self.folder / "etc.tar"
        who.run("sh", "-c", '"$1" run -q -- tar -C /etc -cf - . >"$2"; tar -C "$3" --no-same-owner -xf "$2"; rm "$2"', "sh", who.pale, tar,
                self.etc)
        lines = [line.split() for line in who.run(who.pale, "run", "-q", "--", "cat", "/proc/self/mountinfo").splitlines()]
        self.targets = sorted({f[4] for f in lines})
        self.links = {n: os.readlink(f"/{n}") for n in ("bin", "sbin", "lib", "lib32", "lib64", "libx32") if os.path.islink(f"/{n}")}
        for d in ("usr", "etc", "proc", "dev", "sys", "tmp", "run", "home/agent", "var/tmp", "var/lib", str(self.folder.parent)[1:]):
            (self.root / d).mkdir(parents=True, exist_ok=True)
        for name, target in self.links.items():
            (self.root / name).symlink_to(target)
        for d in (self.folder, self.etc, self.empty, self.root):
            os.chmod(d, 0o755)

    def covers(self):
        return [t for t in self.targets if t.startswith("/proc/") and t != "/proc/sys"]


class Peer:
    """run(argv): the command line of a whole life: create, execute, destroy. box: (start, exec, stop) of a living one."""
    name = ""
    program = None        # looked for in PATH
    note = ""
    box = False           # has a living box that commands can be sent into
    holds = False         # its start command stays in the foreground for as long as the box lives
    creates = False       # can make a box without executing anything of the user's in it

    def __init__(self, stage):
        self.stage, self.who = stage, stage.who
        self.path = self.find()

    def find(self):
        return shutil.which(self.program) if self.program else None

    def start_all(self, count):
        """One command that starts boxes 0 … count-1; None if it has none."""
        return None

    def missing(self):
        """Why it cannot run, before anything is tried; None if it may."""
        return None if self.path else f"{self.program} is not installed"

    def run(self, argv, read=(), write=()):
        raise NotImplementedError

    def probe(self):
        """Runs something real in it. Returns (microseconds or None, reason)."""
        reason = self.missing()
        if reason:
            return None, reason
        try:
            words = self.run([str(self.stage.bin / "calls"), "say"], read=[self.stage.bin])
            for _ in range(2):  # the second time counts
                start = time.monotonic()
                out = self.who.run(*words, timeout=20)
            took = (time.monotonic() - start) * 1e6
        except (Failed, OSError) as e:
            text = str(e).strip().splitlines() or ["it failed"]
            return None, text[-1].split(": ", 1)[-1][-160:]
        return (took, "") if "ran" in out else (None, f"what ran in it did not answer: {out.strip()[:80]!r}")


class Pale(Peer):
    name, box, creates = "pale", True, True
    note = "audit, seccomp, Landlock, two user namespaces, limits; as root a cgroup"

    def find(self):
        return self.who.pale

    def run(self, argv, read=(), write=()):
        words = [self.path, "run", "-q"]
        for p in read:
            words += ["--read", str(p)]
        for p in write:
            words += ["--write", str(p)]
        return [*words, *(["--cwd", str(write[0])] if write else []), "--", *map(str, argv)]

    def start(self, number, read=(), write=()):
        words = [self.path, "create", f"b{number}"]
        for p in read:
            words += ["--read", str(p)]
        for p in write:
            words += ["--write", str(p)]
        return words

    def start_all(self, count):
        return [self.path, "create", *(f"b{n}" for n in range(count))]

    def exec(self, number, argv):
        return [self.path, "exec", "-q", f"b{number}", "--", *map(str, argv)]

    def stop(self, number):
        return [self.path, "rm", "-f", f"b{number}"]


class Bwrap(Peer):
    """Every mount that a box of pale shows in its own mountinfo."""
    name, program, masks = "bwrap", "bwrap", True
    note = "same mounts; no seccomp filter, Landlock, second user namespace, audit or limits"

    def run(self, argv, read=(), write=()):
        s = self.stage
        words = [self.path, "--unshare-all", "--die-with-parent", "--ro-bind", "/usr", "/usr"]
        for name, target in s.links.items():
            words += ["--symlink", target, f"/{name}"]
        words += ["--ro-bind", str(s.etc), "/etc", "--proc", "/proc", "--dev", "/dev"]
        for target in s.targets:
            first = target.split("/")[1]
            inside = s.etc / target[5:]
            if target in ("/", "/usr", "/etc", "/proc") or first == "dev":
                continue
            if first == "etc":
                words += ["--ro-bind", str(inside), target] if self.masks and inside.exists() else []
            elif first == "proc":
                source = target if target == "/proc/sys" else str(s.empty) if os.path.isdir(target) else "/dev/null"
                words += ["--ro-bind", source, target] if self.masks else []
            else:
                words += ["--tmpfs", target]
        for p in read:
            words += ["--ro-bind", str(p), str(p)]
        for p in write:
            words += ["--bind", str(p), str(p), "--chdir", str(p)]
        return [*words, "--", *map(str, argv)]


class BwrapFew(Bwrap):
    name, masks = "bwrap, /proc open", False
    note = "without the covers in /proc and /etc: what people usually write"


class Oci(Peer):
    """A bundle with the same mounts, in user, pid, mount, ipc, uts and network namespaces."""
    box = creates = True
    globals = ()
    bundle_word = "--bundle"
    more = ("--no-new-keyring",)  # an ordinary user may have 200 keys: too few for a thousand containers

    def config(self, argv, read, write):
        s, rootless = self.stage, not self.who.is_root
        flags = ["nosuid", "nodev"]
        mounts = [{"destination": "/proc", "type": "proc", "source": "proc"},
                  {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755"]},
                  {"destination": "/dev/pts", "type": "devpts", "source": "devpts", "options": ["nosuid", "noexec", "newinstance", "ptmxmode=0666"]}]
        mounts += [{"destination": d, "type": "tmpfs", "source": "tmpfs", "options": flags} for d in TMPFS]
        binds = [("/usr", "/usr", "ro"), (str(s.etc), "/etc", "ro")]
        binds += [(str(p), str(p), "ro") for p in read] + [(str(p), str(p), "rw") for p in write]
        mounts += [{"destination": to, "type": "bind", "source": of, "options": ["rbind", mode, *flags]} for of, to, mode in binds]
        ids = [{"containerID": 0, "hostID": self.who.uid, "size": 1}] if rootless else [{"containerID": 0, "hostID": 0x70000000, "size": 65536}]
        gids = [{**ids[0], "hostID": self.who.gid}] if rootless else ids
        user = 0 if rootless else 1000
        return {
            "ociVersion": "1.0.0", "hostname": "box", "root": {"path": str(s.root), "readonly": True}, "mounts": mounts,
            "process": {"terminal": False, "user": {"uid": user, "gid": user}, "args": [str(a) for a in argv],
                        "env": ["PATH=/usr/bin:/bin", "HOME=/home/agent"], "cwd": str(write[0]) if write else "/", "noNewPrivileges": True,
                        "capabilities": {k: [] for k in ("bounding", "effective", "inheritable", "permitted")}},
            "linux": {"namespaces": [{"type": t} for t in ("pid", "ipc", "uts", "mount", "network", "user")], "uidMappings": ids,
                      "gidMappings": gids, "maskedPaths": s.covers(), "readonlyPaths": ["/proc/sys"]},
        }

    def bundle(self, argv, read=(), write=()):
        folder = self.who.folder("o")
        (folder / "config.json").write_text(json.dumps(self.config(argv, read, write)))
        os.chmod(folder / "config.json", 0o644)
        for p in (*read, *write):  # runtimes make mount points only where the root is theirs to write
            (self.stage.root / str(p)[1:]).mkdir(parents=True, exist_ok=True)
        return folder

    def words(self, *rest):
        return [self.path, "--root", str(self.who.runtime / self.name), *self.globals, *rest]

    def run(self, argv, read=(), write=()):
        return self.words("run", *self.more, self.bundle_word, str(self.bundle(argv, read, write)), "cold")

    def start(self, number, read=(), write=()):
        folder = self.bundle([self.stage.bin / "calls", "pause"], [self.stage.bin, *read], write)
        return self.words("run", "--detach", *self.more, self.bundle_word, str(folder), f"b{number}")

    def create(self, number):
        folder = self.bundle([self.stage.bin / "calls", "pause"], [self.stage.bin])
        return self.words("create", *self.more, self.bundle_word, str(folder), f"n{number}")

    def destroy(self, number):
        return self.words("delete", "--force", f"n{number}")

    def exec(self, number, argv):
        return self.words("exec", f"b{number}", *map(str, argv))

    def stop(self, number):
        return self.words("delete", "--force", f"b{number}")


class Crun(Oci):
    name = program = "crun"
    note = "no seccomp filter, Landlock, audit; as root a cgroup, as a user none"

    @property
    def globals(self):
        return () if self.who.is_root else ("--cgroup-manager=disabled",)


class Runc(Oci):
    name = program = "runc"
    note = "no seccomp filter, Landlock, audit; as root a cgroup, as a user none"


class Runsc(Oci):
    """A kernel in user space, Debian's of 2022; ptrace is the platform that runs everywhere."""
    name = program = "runsc"
    note = "own kernel in user space (ptrace platform)"
    globals = ("--network=none", "--ignore-cgroups", "--platform=ptrace")
    bundle_word = "-bundle"
    more = ()

    def __init__(self, stage):
        super().__init__(stage)
        if not self.who.is_root:  # this version has no `run` for an ordinary user, only `do`, with the host's whole tree read-only
            self.box = self.creates = False
            self.note += "; `do` with the host's whole tree"

    def run(self, argv, read=(), write=()):
        if self.who.is_root:
            return super().run(argv, read, write)
        return self.words("--rootless", "do", *map(str, argv))

    def start(self, number, read=(), write=()):
        return ["-detach" if w == "--detach" else w for w in super().start(number, read, write)]

    def stop(self, number):
        return self.words("delete", "-force", f"b{number}")

    def destroy(self, number):
        return self.words("delete", "-force", f"n{number}")


class Firejail(Peer):
    name = program = "firejail"
    note = "setuid root; the host's tree stays visible; with its own seccomp list"
    box = holds = True
    words = ("--quiet", "--noprofile", "--net=none", "--private", "--private-dev", "--private-tmp", "--keep-var-tmp", "--nonewprivs", "--caps.drop=all",
             "--seccomp", "--noroot", "--ipc-namespace")

    def run(self, argv, read=(), write=()):
        words = [w for w in self.words if not (self.who.is_root and w == "--noroot")]
        return [self.path, *words, *map(str, argv)]

    def start(self, number, read=(), write=()):
        return [self.path, f"--name=pb{os.getpid()}-{number}", *self.run([self.stage.bin / "calls", "pause"])[1:]]

    def exec(self, number, argv):
        return [self.path, "--quiet", f"--join=pb{os.getpid()}-{number}", *map(str, argv)]


class Nspawn(Peer):
    name, program = "systemd-nspawn", "systemd-nspawn"
    note = "its own seccomp list; root only"

    def missing(self):
        return super().missing() or (None if self.who.is_root else "it needs root")

    def run(self, argv, read=(), write=()):
        s = self.stage
        words = [self.path, "-q", "-D", str(s.root), "--read-only", "--register=no", "--keep-unit", "--private-network",
                 "--private-users=1879048192:65536", "--private-users-ownership=off", "--timezone=off", "--resolv-conf=off",
                 "--link-journal=no", "--no-new-privileges=yes", "--bind-ro=/usr", f"--bind-ro={s.etc}:/etc", "--tmpfs=/home/agent",
                 "--as-pid2", "--console=pipe"]
        words += [f"--bind-ro={p}" for p in read] + [f"--bind={p}" for p in write]
        return [*words, *map(str, argv)]


class InFolder(Peer):
    """Installed by bench/peers into a folder of the tree."""
    inside = ""

    def find(self):
        found = sorted(FOLDER.glob(self.inside))
        return str(found[0]) if found else None

    def missing(self):
        if not self.path:
            return "not installed; see bench/peers"
        try:
            self.who.run("test", "-x", self.path)
        except Failed:
            return "this user cannot reach the folder it is installed in"
        return None


class Srt(InFolder):
    """bwrap, seccomp and proxies behind a command line in JavaScript, which it cannot be used without."""
    name, inside = "srt", "npm/node_modules/.bin/srt"
    note = "bwrap and seccomp; the start of node is in it"

    def run(self, argv, read=(), write=()):
        settings = self.stage.folder / "srt.json"
        settings.write_text(json.dumps({"network": {"allowedDomains": [], "deniedDomains": []}, "filesystem": {
            "denyRead": ["/root", "/home"], "allowWrite": ["/tmp", *map(str, write)], "denyWrite": []}}))
        os.chmod(settings, 0o644)
        return [self.path, "-s", str(settings), *map(str, argv)]


class Codex(InFolder):
    """Its native program without the wrapper in JavaScript."""
    name, inside = "codex", "npm/node_modules/@openai/codex-linux-*/vendor/*/bin/codex"
    note = "`codex sandbox`: bwrap and seccomp; the host's tree read-only"

    def run(self, argv, read=(), write=()):
        return [self.path, "sandbox", "--", *map(str, argv)]


class Sandlock(InFolder):
    name, inside = "sandlock", "cargo/bin/sandlock"
    note = "Landlock, seccomp and a supervisor; no namespaces"

    def run(self, argv, read=(), write=()):
        words = [self.path, "run", "--clean-env", "-m", "512M", "-P", "256"]
        for p in ("/usr", "/etc", "/proc", "/dev", *(f"/{n}" for n in self.stage.links), *read):
            words += ["-r", str(p)]
        for p in ("/tmp", "/dev/null", *write):
            words += ["-w", str(p)]
        return [*words, *(["--cwd", str(write[0])] if write else []), "--", *map(str, argv)]


class Temenos(InFolder):
    """Its Python library with a runsc; the probing of platforms that do not run here (30 s) is taken out by naming one."""
    name, inside = "temenos", "py/temenos/bin/python"
    note = "runsc from Python; the start of Python is in it"

    def missing(self):
        return super().missing() or (None if shutil.which("runsc") else "it needs runsc")

    def run(self, argv, read=(), write=()):
        folders = json.dumps([str(p) for p in read])
        return [self.path, str(HERE / "temenos-box"), folders, *map(str, argv)]


class Pctx(InFolder):
    name, inside = "pctx-sandbox", "py/pctx-sandbox/bin/python"

    def missing(self):
        return super().missing() or "it runs pickled functions in a podman container whose image is built from a registry's"


class Terok(InFolder):
    name, inside = "terok-sandbox", "py/terok-sandbox/bin/terok-sandbox"

    def missing(self):
        return super().missing() or "it drives podman (5.6 or newer) with an image from a registry and hooks set up beforehand"


class Aumai(InFolder):
    name, inside = "aumai-sandbox", "py/aumai-sandbox/bin/aumai-sandbox"

    def missing(self):
        return super().missing() if self.path else "pip finds no package of this name (see bench/peers)"

    def run(self, argv, read=(), write=()):
        return [self.path, "run", "--", *map(str, argv)]


ALL = (Pale, Bwrap, BwrapFew, Crun, Runc, Firejail, Runsc, Nspawn, Srt, Codex, Sandlock, Temenos, Aumai, Pctx, Terok)


def gather(stage, chosen):
    """Those that run here, with what their probe took, and the reasons of the others."""
    ready, not_run = [], {}
    for kind in ALL:
        if chosen and kind.name != "pale" and kind.name.split(",")[0] not in chosen:
            continue
        peer = kind(stage)
        took, reason = peer.probe()
        if took is None:
            not_run[kind.name] = reason
        else:
            peer.slow = took > SLOW_US
            ready.append(peer)
    return ready, not_run


class Held:
    """A living box of a peer whose start command stays in the foreground, or not; a context that ends it."""

    def __init__(self, peer, number, **more):
        self.peer, self.number, self.more, self.process = peer, number, more, None

    def __enter__(self):
        words = self.peer.start(self.number, **self.more)
        if self.peer.holds:
            self.process = self.peer.who.start(*words)
        else:
            self.peer.who.run(*words, timeout=60)
        return self

    def __exit__(self, *_):
        if self.process:
            end(self.process)
        else:
            self.peer.who.run(*self.peer.stop(self.number), timeout=60, check=False)
