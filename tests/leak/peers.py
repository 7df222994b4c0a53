# SPDX-License-Identifier: Apache-2.0
"""Other sandboxes, each run in the strictest way that its own documentation gives an ordinary user, without writing a filter or a
profile by hand. What a peer documents as given (a host it lets be read, an environment it passes on) is not applicable, not a leak."""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile


class Peer:
    """argv(words, shares, cwd): the command line that runs words behind the peer's wall; shares are (host, target, writable)."""

    note = ""   # what a reader of its rows should know
    given = {}  # name of a judge, attack or case -> why it is not applicable

    def __init__(self, world):
        self.world = world
        self.work = pathlib.Path(tempfile.mkdtemp(prefix=f"plt-{world.tag}-", dir="/tmp"))
        self.env = {"PATH": os.environ["PATH"], "HOME": os.path.expanduser("~"), "LANG": "C.UTF-8", "XDG_RUNTIME_DIR": str(self.work)}
        self.count = 0

    def end(self):
        shutil.rmtree(self.work, ignore_errors=True)

    def works(self):
        """Does an attempt that is allowed run at all behind it?"""
        try:
            argv = self.argv([str(self.world.attack), "limit", "core", "-1"], [(str(self.world.tools), str(self.world.tools), False)], "/")
            done = subprocess.run(argv, env=self.env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
        except (OSError, subprocess.TimeoutExpired) as e:
            self.trouble = str(e)
            return False
        self.trouble = (done.stdout + done.stderr)[-300:]
        return done.stdout.startswith("HELD")

    def version(self):
        done = subprocess.run(self.asks, capture_output=True, text=True, env=self.env)
        return (done.stdout or done.stderr).strip().splitlines()[0]

    def not_for(self, case):
        """Why the case does not apply, or None."""
        return self.given.get(case.name) or self.given.get(case.judge.split(":")[0]) or (case.attack and self.given.get(case.attack[0]))


GUARD = "what stands in a folder that is given writable is the user's matter"
READ_ALL = "it lets the whole host be read, as documented"


class Bwrap(Peer):
    """Nothing is shared but /usr and what the case gives; every namespace; no further user namespaces; no capabilities; empty
    environment; a session of its own, as its manual asks for against TIOCSTI. A system call filter it takes ready-made alone."""
    asks = ["bwrap", "--version"]
    note = "The variable was read from bwrap's own first process, which keeps what bwrap was started with; the command's own environment was empty."
    given = {"guarded": GUARD, "rights": "modes of files in a folder that is given writable are the user's matter"}

    def argv(self, words, shares, cwd):
        args = ["bwrap", "--unshare-all", "--unshare-user", "--disable-userns", "--cap-drop", "ALL", "--die-with-parent", "--new-session", "--clearenv",
                "--ro-bind", "/usr", "/usr"]
        for n in ("bin", "sbin", "lib", "lib64"):
            if os.path.islink(f"/{n}"):
                args += ["--symlink", f"usr/{n}", f"/{n}"]
        args += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--tmpfs", "/var/tmp"]
        for host, target, writable in shares:
            args += ["--bind" if writable else "--ro-bind", host, target]
        return [*args, "--remount-ro", "/", "--chdir", cwd, "--", *words]


class Firejail(Peer):
    """Every hardening option of its manual that needs no profile of one's own: no network, its lists of system calls and socket families, no capabilities,
    no new privileges, no further namespaces, private devices and temporary files; of the home only what the case gives."""
    asks = ["firejail", "--version"]
    given = {"guarded": GUARD, "rights": Bwrap.given["rights"], "environment": "it passes the environment on, as documented", "host-etc-fstab": "/etc is shown, as documented",
             "host-etc-subuid": "/etc is shown, as documented", "host-etc-shadow": "/etc is shown, as documented; the file stays closed by its mode",
             "host-boot": "it hides /boot with a profile", "host-var-lib": "/var is shown, as documented", "host-sys": "/sys is shown, as documented"}

    def argv(self, words, shares, cwd):
        args = ["firejail", "--quiet", "--noprofile", "--net=none", "--private-dev", "--private-tmp", "--ipc-namespace", "--caps.drop=all", "--nonewprivs", "--noroot",
                "--nogroups", "--seccomp", "--protocol=unix,inet,inet6,netlink", "--restrict-namespaces", "--disable-mnt", "--noinput", "--nodvd", "--nosound", "--notv", "--nou2f", "--novideo"]
        for host, target, writable in shares:
            if host != target:
                return None  # binding elsewhere is root's alone
            args += [f"--whitelist={host}"] + ([] if writable else [f"--read-only={host}"])
        return [*args, "--", "sh", "-c", 'cd "$0" && exec "$@"', cwd, *words]


class Srt(Peer):
    """No domain allowed; reading denied in every home, in /root, /srv, /opt and /var/lib, writing allowed in the folder that is given alone."""
    asks = ["srt", "--version"]
    note = "System V and POSIX objects of the host are in reach because it makes no IPC namespace; files and network held."
    given = {**{f"guard-{n}": "not on its documented list of protected names" for n in ("claude-settings-json", "envrc")},
             "environment": "it passes the environment on, as documented", "host-etc-fstab": "reading is open by default, as documented",
             "host-etc-subuid": "reading is open by default, as documented", "host-etc-shadow": "reading is open by default; the file stays closed by its mode",
             "host-boot": "reading is open by default, as documented", "host-sys": "reading is open by default, as documented", "host-file-var-tmp": "reading is open by default",
             "host-file-dev-shm": "reading is open by default", "rights": Bwrap.given["rights"], "host-var-lib": "reading is open by default"}

    def argv(self, words, shares, cwd):
        self.count += 1
        path = self.work / f"{self.count}.json"
        if any(host != target for host, target, _ in shares):
            return None
        path.write_text(json.dumps({"network": {"allowedDomains": [], "deniedDomains": []}, "filesystem": {
            "denyRead": ["/home", "/root", "/srv"], "allowRead": [h for h, _, _ in shares],
            "allowWrite": [h for h, _, w in shares if w], "denyWrite": []}}))
        return ["srt", "-s", str(path), "--", *words]


class Codex(Peer):
    """`codex sandbox` as it is; workspace-write where the case gives a writable folder. Reading the whole host is how it is meant."""
    asks = ["codex", "--version"]
    given = {**{f"guard-{n}": "a workspace is writable, as documented, but for .git and its own .codex" for n in ("claude-settings-json", "mcp-json", "vscode-tasks-json", "envrc")},
             "environment": "it passes the environment on, as documented", "host-file": READ_ALL, "planted": READ_ALL, "rights": Bwrap.given["rights"],
             **{f"host-{n}": READ_ALL for n in ("etc-fstab", "etc-subuid", "etc-shadow", "boot", "sys", "var-lib")}}

    def argv(self, words, shares, cwd):
        if any(host != target for host, target, _ in shares):
            return None
        mode = "workspace-write" if any(w for _, _, w in shares) else "read-only"
        return ["codex", "sandbox", "-c", f'sandbox_mode="{mode}"', "--", *words]


FIRST = "the command is the sandbox's first process itself"


def is_about_init(case):
    return case.name.startswith("init-") or any(w == "1" or w.startswith("/proc/1/") for w in case.attack[1:2]) and case.attack[0] in (
        "attach", "seize", "vm-read", "take-fd", "reads", "link-of", "enter", "limit-other", "oom")


class Podman(Peer):
    """Rootless, with its default filter; no network, read-only root, no capabilities, no new privileges. The root holds nothing but
    the attack. runc, because this host's mixed cgroups are none for crun."""
    asks = ["podman", "--version"]
    given = {"guarded": GUARD, "rights": Bwrap.given["rights"]}

    def __init__(self, world):
        super().__init__(world)
        self.root = self.work / "root"
        for n in ("tmp", "proc", "dev", "sys", "etc", "run", "var/tmp", "mnt/v"):
            (self.root / n).mkdir(parents=True)

    def not_for(self, case):
        return super().not_for(case) or (FIRST if is_about_init(case) else None)

    def argv(self, words, shares, cwd):
        args = ["podman", "--log-level=error", "--cgroup-manager=cgroupfs", "--runtime", "runc", "run", "--rm", "--network=none", "--read-only", "--cap-drop=all",
                "--security-opt=no-new-privileges", "--workdir", cwd]
        for host, target, writable in shares:
            args += ["-v", f"{host}:{target}:{'rw' if writable else 'ro'}"]
        return [*args, "--rootfs", str(self.root), *words]

    def end(self):
        subprocess.run(["podman", "unshare", "rm", "-rf", str(self.work)], env=self.env, capture_output=True)
        super().end()


class Runsc(Peer):
    """Rootless, no network, read-only root with nothing but the attack in it."""
    asks = ["runsc", "--version"]
    note = "Debian's version of 2022. Most rows ask about the host's kernel, which a command behind it does not meet."
    given = {"guarded": GUARD, "rights": Bwrap.given["rights"]}
    KERNEL = "answered by its own kernel, not by the host's"

    def not_for(self, case):
        own = case.door or case.threat[0] == "B" or case.threat in ("C9", "C14", "D10", "D11", "D16", "E12", "F6")
        return super().not_for(case) or (FIRST if is_about_init(case) else self.KERNEL if own else None)

    def argv(self, words, shares, cwd):
        self.count += 1
        bundle = self.work / str(self.count)
        (bundle / "root").mkdir(parents=True)
        mounts = [{"destination": "/proc", "type": "proc", "source": "proc"}, {"destination": "/tmp", "type": "tmpfs", "source": "tmpfs"},
                  {"destination": "/dev", "type": "tmpfs", "source": "tmpfs"}]
        mounts += [{"destination": t, "type": "bind", "source": h, "options": ["bind", "rw" if w else "ro"]} for h, t, w in shares]
        (bundle / "config.json").write_text(json.dumps({
            "ociVersion": "1.0.0", "root": {"path": "root", "readonly": True}, "hostname": "box", "mounts": mounts,
            "process": {"user": {"uid": 0, "gid": 0}, "args": words, "env": ["PATH=/usr/bin:/bin"], "cwd": cwd, "capabilities": {}, "noNewPrivileges": True},
            "linux": {"namespaces": [{"type": t} for t in ("pid", "network", "ipc", "uts", "mount")]}}))
        return ["runsc", "--rootless", "--network=none", "--platform=ptrace", "--ignore-cgroups", "--root", str(self.work / "state"), "run", "-bundle", str(bundle),
                f"plt{os.getpid()}-{self.count}"]


PEERS = {"bwrap": Bwrap, "firejail": Firejail, "srt": Srt, "codex": Codex, "podman": Podman, "runsc": Runsc}
