# SPDX-License-Identifier: Apache-2.0
"""What every measure needs of the host: an identity to run as, the stop-watch, memory figures, and quantiles."""
import os
import pathlib
import pwd
import shutil
import signal
import subprocess
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
BUILD = pathlib.Path(os.environ.get("PALE_BUILD", ROOT / "build" / "src")).resolve()
PROGRAMS = ("pale", "pale-keeper", "pale-init", "pale-policy", "pale-seal", "pale-gateway", "pale-steward", "paled")
BASE_ENV = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}


class Failed(Exception):
    """A command did not do what it should; the text says which and why."""


def compile_c(source, target, compilers):
    """Static, with the first compiler that can; None if none can."""
    for cc in compilers:
        if shutil.which(cc) and subprocess.run([cc, "-O2", "-static", "-D_GNU_SOURCE", "-o", str(target), str(source)],
                                               capture_output=True, timeout=60).returncode == 0:
            return target
    return None


class Who:
    """Runs things as one user, with a home on disk and a runtime folder in memory, as real ones are."""

    def __init__(self, name, work):
        self.name, self.work = name, work
        self.home = pathlib.Path(pwd.getpwnam(name).pw_dir if name else tempfile.mkdtemp(prefix="h", dir=work))
        self.home.mkdir(mode=0o700, exist_ok=True)
        self.runtime = pathlib.Path(tempfile.mkdtemp(prefix="pb", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else work))
        self.uid, self.gid = os.geteuid(), os.getegid()
        self.prefix = []
        if name:
            entry = pwd.getpwnam(name)
            self.uid, self.gid = entry.pw_uid, entry.pw_gid
            self.prefix = ["setpriv", f"--reuid={name}", f"--regid={name}", "--init-groups"]
            for folder in (self.home, self.runtime):
                os.chown(folder, self.uid, self.gid)
        self.env = {**BASE_ENV, "HOME": str(self.home), "XDG_RUNTIME_DIR": str(self.runtime)}
        self.pale = str(work / "bin" / "pale")
        self.spawn_program = str(work / "spawn")

    @property
    def is_root(self):
        return self.uid == 0

    @property
    def title(self):
        return f"as {self.name}, an ordinary user" if self.name else "as root" if self.is_root else "as this user"

    def folder(self, name):
        """A fresh folder of this user's, on disk."""
        path = pathlib.Path(tempfile.mkdtemp(prefix=name, dir=self.work))
        path.chmod(0o755)
        os.chown(path, self.uid, self.gid)
        return path

    def start(self, *argv, **more):
        """In a session of its own: Ctrl-C is for us, and we end what we started."""
        options = dict(env=self.env, cwd=self.home, stdin=subprocess.DEVNULL, start_new_session=True)
        return subprocess.Popen([*self.prefix, *map(str, argv)], **{**options, **more})

    def run(self, *argv, stdin=subprocess.DEVNULL, timeout=900, check=True):
        """Standard output as text. Output goes to files, not pipes: what a peer leaves running may hold them open."""
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            p = self.start(*argv, stdin=stdin, stdout=out, stderr=err)
            try:
                p.wait(timeout)
            except subprocess.TimeoutExpired:
                end(p)
                raise Failed(f"{' '.join(map(str, argv))}: did not end within {timeout} s") from None
            except BaseException:
                end(p)
                raise
            out.seek(0)
            err.seek(0)
            answer, said = (f.read().decode("utf-8", "replace") for f in (out, err))
            said = said.strip()
        if check and p.returncode:
            words = " ".join(map(str, argv))
            short = words if len(words) < 200 else f"{words[:80]} … {words[-110:]}"
            raise Failed(f"{short}: {said[-400:] or f'exit status {p.returncode}'}")
        return answer

    def spawn(self, commands, runs, warmup, options=()):
        """Runs the commands in turns; a list of microseconds for each."""
        words = []
        for c in commands:
            words += ["---", *c] if words else c
        out = self.run(self.spawn_program, *options, "-n", runs, "-w", warmup, "--", *words)
        return [[float(x) for x in line.split()] for line in out.splitlines()]

    def spawn_parallel(self, command, runs, jobs, check=True):
        """Seconds for all, and a list of microseconds each."""
        out = self.run(self.spawn_program, "-k", "-j", jobs, "-n", runs, "--", *command, check=check).splitlines()
        each = [float(x) for x in out[0].split()]
        failed = sum(x < 0 for x in each)
        if check and failed:
            raise Failed(f"{' '.join(map(str, command))[:120]}: {failed} of {runs} failed")
        return float(out[1]) / 1e6, each

    def left(self):
        """Processes with one of our folders in their command line: nobody else's can have it."""
        return processes_naming(str(self.work) + "/") + processes_naming(str(self.runtime))

    def sweep(self):
        """Ends whatever of ours still runs, first kindly."""
        for sign, patience in ((signal.SIGTERM, 5), (signal.SIGKILL, 5)):
            for pid in self.left():
                try:
                    os.kill(pid, sign)
                except OSError:
                    pass
            until = time.monotonic() + patience
            while time.monotonic() < until and self.left():
                time.sleep(0.1)

    def done(self):
        self.sweep()
        shutil.rmtree(self.runtime, ignore_errors=True)


def end(*processes, patience=10):
    """Ends processes that we started: all are told first, then waited for."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        alive = [p for p in processes if p.poll() is None]
        for p in alive:
            p.send_signal(sign)
        until = time.monotonic() + patience
        for p in alive:
            try:
                p.wait(max(0.01, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                pass


def processes_naming(text):
    """Processes whose command line has text in it; with a folder of ours as text, they are ours."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) != os.getpid():
            try:
                with open(f"/proc/{entry}/cmdline", "rb") as f:
                    if text.encode() in f.read():
                        found.append(int(entry))
            except OSError:
                pass
    return found


def meminfo():
    """KiB by name."""
    with open("/proc/meminfo", encoding="ascii") as f:
        return {line.split(":")[0]: int(line.split()[1]) for line in f}


def settle(most_seconds=20, quiet_kib=1024):
    """Waits until free memory stops moving: the kernel takes namespaces down long after their last process. Returns meminfo."""
    last, until = meminfo(), time.monotonic() + most_seconds
    still = 0
    while time.monotonic() < until and still < 3:
        time.sleep(0.3)
        now = meminfo()
        still = still + 1 if abs(now["MemAvailable"] - last["MemAvailable"]) < quiet_kib else 0
        last = now
    return last


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
        return [int(x) for x in f.read().split()]


def descendants(pid):
    found = [pid]
    for at in found:
        try:
            found += children(at)
        except OSError:
            pass
    return found


def smaps_kib(pid, start):
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as f:
        return sum(int(line.split()[1]) for line in f if line.startswith(start))


def quantile(values, q):
    values = sorted(values)
    return values[min(len(values) - 1, int(q * len(values)))]


def row(name, values):
    """Runs that failed are -1: they are counted, and too many leave nothing to tell."""
    good = [v for v in values if v >= 0]
    failed = len(values) - len(good)
    if failed > len(values) // 10:
        return {"name": name, "skipped": f"{failed} of {len(values)} runs failed"}
    return {"name": name, "p50_us": round(quantile(good, 0.5), 1), "p99_us": round(quantile(good, 0.99), 1), "runs": len(good),
            **({"failed": failed} if failed else {})}


def compare(rows, base):
    """Adds to each row its ratio to the base, which was measured in the same turns."""
    for r in rows:
        if r is not base and base and base.get("p50_us") and "p50_us" in r:
            r["ratio_p50"] = round(r["p50_us"] / base["p50_us"], 3)
            r["ratio_p99"] = round(r["p99_us"] / base["p99_us"], 3)
            r["baseline"] = base["name"]
    return rows
