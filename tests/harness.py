# SPDX-License-Identifier: Apache-2.0
"""The built command line in a home of its own, a terminal to drive it with, and a look at what it leaves behind."""
import contextlib
import fcntl
import glob
import hashlib
import json
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import tempfile
import termios
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("PALE_BUILD", ROOT / "build" / "src")).resolve()
WEAK = pathlib.Path(os.environ.get("PALE_BUILD_WEAK", ROOT / "build-weak" / "src")).resolve()
TMP = os.environ.get("PALE_TEST_TMP", "/tmp")  # for all that a test has for itself
TIMEOUT = 30
# Root of the machine, not of a user namespace that calls one id so.
REAL_ROOT = os.geteuid() == 0 and open("/proc/self/uid_map").read().split()[:2] == ["0", "0"]


class Result:
    def __init__(self, args, code, out, err):
        self.args, self.code, self.out, self.err = args, code, out, err

    @property
    def text(self):
        return self.out.decode("utf-8", "replace")

    @property
    def errors(self):
        return self.err.decode("utf-8", "replace")

    def json(self):
        return json.loads(self.out)

    def __repr__(self):
        return f"<{self.args!r} ended with {self.code}\nstdout: {self.out[-2000:]!r}\nstderr: {self.err[-2000:]!r}>"


def make_runtime_dir(path):
    """In memory, as a user's real one is: pale keeps hundreds of small files there, which a disk takes a second for."""
    if path.exists():
        return
    if os.access("/dev/shm", os.W_OK) and shutil.disk_usage("/dev/shm").free > 64 << 20:
        path.symlink_to(tempfile.mkdtemp(prefix=f"plt-{os.environ.get('PALE_TEST_TAG', 'x')}-", dir="/dev/shm"))
    else:
        path.mkdir(mode=0o700)


def remove_root(root):
    runtime = pathlib.Path(root) / "run"
    if runtime.is_symlink():
        shutil.rmtree(os.readlink(runtime), ignore_errors=True)
    shutil.rmtree(root, ignore_errors=True)


ID = re.compile("[0-9a-f]{32}")


class Pale:
    """Runs pale with private HOME and XDG folders below `root`, which must be a short path: sockets go there."""

    def __init__(self, root, build=BUILD, wrap=(), **env):
        self.wrap = list(wrap)  # a command that enters another namespace first
        self.root = pathlib.Path(root)
        self.build = pathlib.Path(build)
        self.program = str(self.build / "pale")
        self.home = self.root / "home"
        for name in ("home", "data", "state"):
            (self.root / name).mkdir(mode=0o700, exist_ok=True)
        make_runtime_dir(self.root / "run")
        self.env = {
            "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME": str(self.home),
            "XDG_DATA_HOME": str(self.root / "data"),
            "XDG_STATE_HOME": str(self.root / "state"),
            "XDG_RUNTIME_DIR": str(self.root / "run"),
            "LANG": "C.UTF-8",
            "TERM": "xterm",
            **({"PALE_TEST_TAG": os.environ["PALE_TEST_TAG"]} if "PALE_TEST_TAG" in os.environ else {}),  # whose it is, told by every process of ours
            **env,
        }
        self.children = []
        self.names = set()
        self.more_ids = set()  # of boxes that were not made by our own hand

    def run(self, *args, input=None, timeout=TIMEOUT, env=None, cwd=None, expect=None):
        args = [a if isinstance(a, bytes) else str(a) for a in args]
        if args and args[0] in ("create", "run"):
            self.names |= {a for a in args if isinstance(a, str) and re.fullmatch("[a-z0-9-]{1,63}", a)}
        p = subprocess.Popen([*self.wrap, self.program, *args], stdin=subprocess.DEVNULL if input is None else subprocess.PIPE,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**self.env, **(env or {})}, cwd=cwd or self.home)
        try:
            out, err = p.communicate(input, timeout=timeout)
        except subprocess.TimeoutExpired:
            p.kill()
            out, err = p.communicate()
            raise AssertionError(f"pale {args} still ran after {timeout} s\nstdout: {out[-1000:]!r}\nstderr: {err[-1000:]!r}") from None
        self.see_ids()
        done = Result(args, p.returncode, out, err)
        if expect is not None:
            assert done.code == expect, done
        return done

    def ok(self, *args, **more):
        return self.run(*args, expect=0, **more)

    def json(self, *args, expect=0, **more):
        return self.run(*args, expect=expect, **more).json()

    def create(self, name="b", *flags, **more):
        self.ok("create", name, *flags, **more)
        return name

    def exec(self, box, *command, flags=(), **more):
        return self.run("exec", *flags, box, "--", *command, **more)

    def sh(self, box, script, flags=(), **more):
        return self.exec(box, "sh", "-c", script, flags=flags, **more)

    def py(self, box, script, flags=(), **more):
        return self.exec(box, "python3", "-c", script, flags=flags, **more)

    def start(self, *args, **more):
        """A pale that runs beside the test; ended with it."""
        options = dict(stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.env, cwd=self.home)
        p = subprocess.Popen([*self.wrap, self.program, *map(str, args)], **{**options, **more})
        self.children.append(p)
        return p

    def weakened(self, switches):
        other = Pale(self.root, WEAK, self.wrap)
        other.env["PALE_WEAKEN"] = switches + ",receipt"  # else the prober would end the twin before the attack is tried
        return other

    def box_id(self, name):
        """What stands in the folder of a user's box."""
        return os.readlink(self.root / "data" / "pale" / "boxes" / name / "id")

    def state_of(self, name):
        """The folder of what is trusted about a user's box."""
        return self.root / "state" / "pale" / "boxes" / self.box_id(name)

    def see_ids(self):
        with contextlib.suppress(OSError):
            self.more_ids |= {n for n in os.listdir(self.root / "state" / "pale" / "boxes") if ID.fullmatch(n)}

    def ids(self):
        """Ids of every box this home has had, as far as we have seen them, and of its one-shot boxes."""
        self.see_ids()
        found = set(self.more_ids)
        runs = self.root / "state" / "pale" / "runs.audit"
        return found | set(re.findall(r'"id":"([0-9a-f]{32})"', runs.read_text(errors="replace"))) if runs.exists() else found

    def boxes(self):
        folder = self.root / "data" / "pale" / "boxes"
        return sorted(p.name for p in folder.iterdir()) if folder.is_dir() else []

    def open_layer(self, box):
        """The folder that takes the writes of a box that never had a snapshot."""
        info = self.info(box)
        home = info["state_dir"] if info["scope"] == "project" else info["data"]
        return pathlib.Path(home) / "layers" / info["id"]

    def info(self, box):
        return self.json("inspect", "--json", box)

    def end(self):
        """Ends what the test left running and removes its boxes. Returns what would not go."""
        for p in self.children:
            if p.poll() is None:
                p.kill()
            p.wait()
            for f in (p.stdin, p.stdout, p.stderr):
                with contextlib.suppress(BrokenPipeError):  # what it did not take any more
                    if f:
                        f.close()
        listed = self.run("ls", "--json")
        trouble = [] if listed.code == 0 else [f"pale ls: {listed}"]
        for b in listed.json() if listed.code == 0 else []:
            verbs = [("stop", b["id"]), ("forget", "-f", b["id"])] if b.get("lost") else [("rm", "-f", "--global", b["name"])]
            for verb in verbs:
                done = self.run(*verb)
                if done.code:
                    trouble.append(f"pale {verb}: {done}")
        return trouble


# --- what is left behind ---


def read_proc(pid, name):
    """Plainly: this is read of every process on the machine, after every test."""
    try:
        fd = os.open(f"/proc/{pid}/{name}", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        found = b""
        while more := os.read(fd, 1 << 16):
            found += more
        return found
    except OSError:
        return b""
    finally:
        os.close(fd)


def cmdline(pid):
    return read_proc(pid, "cmdline").split(b"\0")[:-1]


def stat_of(pid):
    """(name, state, parent) or None."""
    head, _, tail = read_proc(pid, "stat").rpartition(b")")
    fields = tail.split()
    return (head.partition(b"(")[2].decode("utf-8", "replace"), fields[0].decode(), int(fields[1])) if fields else None


def pids():
    return [int(n) for n in os.listdir("/proc") if n.isdigit()]


def processes_of(root):
    """Our keepers (and what hangs below them) that serve a home below root: found by their words or their environment."""
    mark = str(root).encode()
    mine = set()
    table = {}
    kernel = 2 if (stat_of(2) or ("",))[0] == "kthreadd" else None
    for pid in pids():
        st = stat_of(pid)
        if not st or st[1] == "Z" or st[2] == kernel:
            continue
        table[pid] = st
        words = cmdline(pid)
        if not st[0].startswith("pale") and not (words and b"pale" in os.path.basename(words[0])):
            continue
        if any(mark in w for w in words) or mark in read_proc(pid, "environ"):
            mine.add(pid)
    grown = True
    while grown:
        more = {pid for pid, st in table.items() if st[2] in mine} - mine
        grown = bool(more)
        mine |= more
    return {pid: (table[pid][0], b" ".join(cmdline(pid))[:80]) for pid in mine}


def wait_until(condition, seconds=5, every=0.02):
    until = time.monotonic() + seconds
    while True:
        value = condition()
        if value or time.monotonic() > until:
            return value
        time.sleep(every)


def all_gone(root, seconds=5):
    """Waits until no process serves a home below root. Returns those that still do."""
    until = time.monotonic() + seconds
    while (left := processes_of(root)) and time.monotonic() < until:
        time.sleep(0.02)
    return left


def mounts():
    return pathlib.Path("/proc/self/mountinfo").read_text()


def scopes():
    """Scopes that systemd has made for pale, of any user."""
    base = pathlib.Path("/sys/fs/cgroup")
    return sorted(str(base / p) for p in glob.glob("**/pale-*.scope", root_dir=base, recursive=True))


def cgroups():
    """Folders of boxes below any cgroup mount, of this user; in a scope, those of all, and the scope itself."""
    found = scopes()
    found += [str(p) for s in found for p in pathlib.Path(s).glob("*/")]
    for line in mounts().splitlines():
        left, _, right = line.partition(" - ")
        if right.split()[0] in ("cgroup", "cgroup2"):
            base = pathlib.Path(left.split()[4]) / "pale" / str(os.geteuid())
            if base.is_dir():
                found += [str(p) for p in base.iterdir() if p.is_dir()]
    return sorted(found)


# --- a terminal ---


class Terminal:
    """A program on a terminal of ours, driven by what it prints."""

    def __init__(self, args, env, rows=24, cols=80, cwd="/"):
        self.master, slave = pty.openpty()
        self.resize(rows, cols)
        self.before = termios.tcgetattr(slave)
        self.slave = slave

        def settle():
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        self.process = subprocess.Popen(args, stdin=slave, stdout=slave, stderr=slave, env=env, cwd=cwd, preexec_fn=settle, close_fds=True)
        self.seen = b""
        self.at = 0

    def resize(self, rows, cols):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

    def send(self, data):
        os.write(self.master, data if isinstance(data, bytes) else data.encode())

    def pump(self, seconds):
        ready, _, _ = select.select([self.master], [], [], seconds)
        if not ready:
            return False
        try:
            data = os.read(self.master, 65536)
        except OSError:
            return False
        self.seen += data
        return bool(data)

    def expect(self, pattern, timeout=10):
        """Waits until pattern comes after what was expected before; returns the match."""
        until = time.monotonic() + timeout
        regex = re.compile(pattern if isinstance(pattern, bytes) else pattern.encode(), re.S)
        while True:
            m = regex.search(self.seen, self.at)
            if m:
                self.at = m.end()
                return m
            left = until - time.monotonic()
            assert left > 0, f"{pattern!r} did not come; the terminal shows {self.seen[-1500:]!r}"
            self.pump(min(left, 0.2))

    def line(self, command):
        self.send(command + "\n")

    def wait(self, timeout=10):
        until = time.monotonic() + timeout
        while self.process.poll() is None and time.monotonic() < until:
            self.pump(0.05)
        assert self.process.poll() is not None, f"still runs; the terminal shows {self.seen[-1500:]!r}"
        while self.pump(0.05):
            pass
        return self.process.returncode

    def is_raw(self):
        return not termios.tcgetattr(self.slave)[3] & termios.ICANON

    def settings(self):
        return termios.tcgetattr(self.slave)

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.master)
        os.close(self.slave)


def has_tool(*names):
    return all(shutil.which(n, path="/usr/local/bin:/usr/bin:/bin:/usr/local/go/bin") for n in names)


def kill_quietly(pid, sig=signal.SIGKILL):
    try:
        os.kill(pid, sig)
    except ProcessLookupError:
        pass
