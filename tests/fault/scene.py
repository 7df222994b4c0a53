# SPDX-License-Identifier: Apache-2.0
"""A home in which operations are spoilt, and the judge of what became of it: crash, hang, confinement, leftovers, audit, answer."""
import glob
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import harness  # noqa: E402

TOOLS = pathlib.Path(os.environ.get("PALE_FAULT_TOOLS", harness.ROOT / "build" / "tests" / "fault"))
TAG = os.environ.get("PALE_TEST_TAG", "x")
NAMESPACES = ("user", "pid", "net", "mnt", "ipc", "uts", "cgroup")
PROCESSES = 32
LIMIT_MS = 6000
GONE_SECONDS = 4
OURS = ("pale", "pale-keeper", "pale-init", "pale-policy", "pale-seal", "pale-warden")


def call_names():
    """Numbers of system calls, by the names the compiler's headers give them; the numbers themselves where there is no compiler."""
    try:
        text = subprocess.run(["cc", "-E", "-dM", "-include", "sys/syscall.h", "-x", "c", "/dev/null"], capture_output=True, text=True, timeout=20).stdout
    except OSError:
        return {}
    return {int(m[2]): m[1] for m in re.finditer(r"#define __NR_(\w+) (\d+)$", text, re.M)}


NAMES = call_names()
NUMBERS = {name: nr for nr, name in NAMES.items()}


class Outcome:
    """What an operation did: the injector's report, output, and what the judge holds against it."""

    def __init__(self, report, out, err):
        self.report, self.out, self.err, self.bad = report, out, err, []

    @property
    def hit(self):
        return self.report.get("hit")

    @property
    def exit(self):
        return self.report["exit"]


class Scene:
    def __init__(self, build=harness.BUILD, weaken=None):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix=f"plt-{TAG}-f", dir=harness.TMP))
        self.pale = harness.Pale(self.root, build)
        self.pale.env["PLANTED"] = "canary"
        if weaken:
            self.pale.env["PALE_WEAKEN"] = weaken + ",receipt"
        self.runtime = self.root / "run" / "pale"
        self.state = self.root / "state" / "pale"
        self.boxes = self.root / "data" / "pale" / "boxes"
        os.chmod(self.root, 0o711)
        self.secret = self.root / "secret"
        self.secret.write_text("canary\n")
        self.shown = self.root / "w"
        self.shared = self.root / "v"
        self.shown.mkdir()
        self.shared.mkdir()
        self.verdict = self.shared / "verdict"
        witness = self.shown / "witness"
        shutil.copy2(TOOLS / "fault-witness", witness)
        layers = subprocess.run([str(witness), "layers"], capture_output=True, text=True, timeout=10).stdout.strip()
        inodes = [f"{n}={os.stat('/proc/self/ns/' + n).st_ino}" for n in NAMESPACES]
        self.witness = [str(witness), str(self.verdict), str(self.secret), str(PROCESSES), layers, *inodes]
        self.policy = self.root / "policy.yaml"
        self.policy.write_text(f"limits: {{processes: {PROCESSES}}}\n")
        shows = ["--read", str(self.shown), "--write", str(self.shared)]
        if harness.REAL_ROOT:
            shows += ["--memory", "64M"]
        create = ["create", *shows, "--processes", str(PROCESSES), "b"]
        run = ["exec", "-q", "b", "--", *self.witness]
        # name: what is done before, what sets the stage under the injector's eyes, the operation itself
        self.ops = {
            "run": ([], [], ["run", "-q", "-P", str(self.policy), *shows, "--", *self.witness]),
            "first": ([], [], ["run", "-q", *shows, "--processes", str(PROCESSES), "--", *self.witness]),
            "create": ([], [], create),
            "several": ([], [], ["create", "--read", str(self.shown), "--processes", str(PROCESSES), "c", "d"]),
            "exec": ([], [create], run),
            "start": ([[create[0], "--no-start", *create[1:]]], [], run),
            "stop": ([], [create], ["stop", "b"]),
            "rm": ([], [create], ["rm", "b"]),
            "rename": ([[create[0], "--no-start", *create[1:]]], [], ["rename", "b", "c"]),
        }
        self.cgroups = None  # controllers whose group a good payload is in
        self.box_id = None
        self.warm()

    def warm(self):
        """The first box of a home makes the shared /etc; and what a good payload's cgroups look like is learnt here."""
        for _ in range(3):
            done = self.spoil("run", ["count"])
            if done.exit == 0 and done.report["payloads"]:
                break
        else:
            if "PALE_WEAKEN" not in self.pale.env:
                raise RuntimeError(f"no box can be made here: {done.report} {done.err!r}")
        self.cgroups = (self.groups(done) or [frozenset()])[0]

    # --- running ---

    def command(self, *args):
        try:
            return self.pale.run(*args, timeout=12)
        except AssertionError as e:
            return harness.Result(args, -1, b"", str(e).encode())

    def spoil(self, op, mode, env=None, only=None):
        """env: for all of it; only: for the operation itself and not its stage."""
        before, stage, command = self.ops[op]
        self.verdict.unlink(missing_ok=True)
        if op == "first":  # of a home: the part of /etc that boxes share is not made yet
            for part in self.runtime.glob("*etc-*"):
                shutil.rmtree(part, ignore_errors=True)
        for args in before:
            done = self.command(*args)
            if done.code:  # somebody else may have filled the disk for a moment
                time.sleep(0.5)
                done = self.command(*args)
            if done.code:
                raise RuntimeError(f"the stage of {op} cannot be set: {done}")
        words = [str(TOOLS / "fault-inject"), "--limit", str(LIMIT_MS), "--report", str(self.root / "report"), *map(str, mode), "--"]
        for args in stage:
            words += [self.pale.program, *args, "::"]
        words += [*(["/usr/bin/env", *(f"{k}={v}" for k, v in only.items())] if only else []), self.pale.program, *command]
        (self.root / "report").unlink(missing_ok=True)
        with open(self.root / "out", "w+b") as out, open(self.root / "err", "w+b") as err:
            injector = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env={**self.pale.env, **(env or {})}, cwd=self.root / "home",
                           timeout=3 * LIMIT_MS / 1000 + 10)
            out.seek(0)
            err.seek(0)
            told = (self.root / "report").read_text()
            if not told:
                raise RuntimeError(f"the injector ended with {injector.returncode} and told nothing; it said {err.read()[-400:]!r}")
            report = json.loads(told)
            if report.get("hit"):
                report["hit"]["name"] = NAMES.get(report["hit"]["call"], str(report["hit"]["call"]))
            text = out.read()
            for _ in stage:
                text = text[text.find(b"\n") + 1:]
            return Outcome(report, text, err.read())

    def groups(self, done):
        """Per payload the controllers whose cgroup is one of ours."""
        return [frozenset(re.findall(r"\d+:([\w,=]*):\S*pale\S*", p["where"])) for p in done.report["payloads"]]

    def verdicts(self):
        return self.verdict.read_text().splitlines() if self.verdict.exists() else []

    # --- judging ---

    def judge(self, op, mode, env=None, only=None):
        """Spoils op once and holds everything against it that should not be. Leaves the home empty."""
        done = self.spoil(op, mode, env, only)
        self.late = bool(env)  # the fault of a keeper that lives on may come only now
        bad = done.bad
        r = done.report
        if not r["staged"]:
            if not env:
                bad.append("the stage could not be set")
            self.remove_box([], ("rm",))
            self.judge_leftovers(done)
            return done
        kind = str(mode[0])
        for c in r["crashes"]:
            bad.append(f"crash: {c['role']} died of signal {c['signal']}")
        for h in r["hangs"]:
            bad.append(f"hang: {h['role']} in {h['where'][:60]}")
        self.judge_confinement(done)
        if not r["hangs"]:
            self.judge_answer(op, kind, done)
            {"run": self.after_run, "first": self.after_run, "several": self.after_several, "rename": self.after_rename}.get(op, self.after_box)(
                op, kind, done)
        self.judge_leftovers(done)
        return done

    def judge_confinement(self, done):
        said = done.out.decode("utf-8", "replace").splitlines()
        for line in {*self.verdicts(), *(x for x in said if x.startswith("LESS"))}:
            if line != "CONFINED":
                done.bad.append(f"confinement: {line}")
        for g in self.groups(done):
            if not g >= self.cgroups:
                done.bad.append(f"confinement: LESS cgroup ({', '.join(self.cgroups - g)})")

    def judge_answer(self, op, kind, done):
        hit, bad = done.hit or {}, done.bad
        killed_cli = kind.startswith("kill") and hit.get("role") == "cli"
        if done.exit is None:
            if not killed_cli:
                bad.append(f"answer: the command died of signal {done.report.get('signal')}")
        elif done.exit == 0:
            if op in ("run", "first", "exec", "start") and (done.out != b"CONFINED\n" or self.verdicts()[:1] != ["CONFINED"]):
                bad.append(f"answer: success with the output {done.out[:80]!r}")
            if op in ("create", "several", "rename") and not re.fullmatch(rb"(box [bcd] \[user\] id=[0-9a-f]{32}\n)+", done.out):
                bad.append(f"answer: success with the output {done.out[:80]!r}")
        else:
            # The text itself may be what could not be written; a killed command ends as one that was killed.
            own_write = hit.get("role") == "cli" and (hit.get("name") in ("write", "writev") and hit["args"][0] == 2)
            if not re.search(rb"pale: .{8,}", done.err) and not own_write and not (kind.startswith("kill") and done.exit == 137):
                bad.append(f"answer: failed with status {done.exit} and no reason: {done.err[:120]!r}")

    def records(self, log):
        try:
            return [json.loads(line) for line in log.read_text(errors="replace").splitlines() if line.startswith("{") and line.endswith("}")]
        except (OSError, ValueError):
            return []

    def judge_audit(self, done, log, since=0):
        """What ran is in the log."""
        if not log.exists():
            if self.verdicts():
                done.bad.append("audit: a command ran and there is no log")
            return
        events = [r["event"] for r in self.records(log)[since:]]
        if len(self.verdicts()) > events.count("exec"):
            done.bad.append(f"audit: {len(self.verdicts())} commands ran, {events.count('exec')} are in the log")
        return events

    def after_run(self, op, kind, done):
        log = self.state / "runs.audit"
        since = self.seen_runs if hasattr(self, "seen_runs") else 0
        events = self.judge_audit(done, log, since) or []
        if done.exit == 0 and "exec.end" not in events:
            done.bad.append("audit: the end of the command is not in the log")
        self.wait_gone(done, GONE_SECONDS)  # it may still hold its claim
        again = self.command("run", "-q", "--write", self.shared, "--", "/bin/true")
        if again.code:
            done.bad.append(f"afterwards: pale run: {again.errors.strip()}")
        verified = self.command("audit", "--verify", "--runs")
        if verified.code:
            done.bad.append(f"audit: {verified.text.strip() or verified.errors.strip()}")
        self.seen_runs = len(self.records(log))

    def after_several(self, op, kind, done):
        """Each box is whole or not there, and after a success all are."""
        bad, killed = done.bad, kind.startswith("kill")
        listed = self.command("ls", "--json")
        names = [b["name"] for b in json.loads(listed.out)] if listed.code == 0 else []
        if listed.code or (done.exit == 0 and sorted(names) != ["c", "d"]):
            bad.append(f"answer: {done.exit}, and pale ls says {listed}")
        for name in ("c", "d"):
            if name not in names and (self.boxes / name).exists():
                if not killed:
                    bad.append(f"leftovers: folders of {name}, which is not there")
                again = self.command("create", name)  # what is half made can be made
                if again.code:
                    bad.append(f"afterwards: pale create {name}: {again.errors.strip()}")
                names.append(name)
            if name in names:
                for words in (["exec", "-q", name, "--", "/bin/true"], ["audit", "--verify", name], ["rm", name]):
                    again = self.command(*words)
                    if again.code and self.late:
                        again = self.command(*words)
                    if again.code:
                        bad.append(f"afterwards: pale {' '.join(words)}: {again.text.strip()} {again.errors.strip()}")
        if killed and (self.state_of_box() or list(self.boxes.glob(".*"))):
            self.collect(bad)

    def after_rename(self, op, kind, done):
        """The box has one of its two names, and is whole."""
        listed = self.command("ls", "--json")
        names = [b["name"] for b in json.loads(listed.out)] if listed.code == 0 else []
        if names not in (["b"], ["c"]) or (done.exit == 0 and names != ["c"]):
            done.bad.append(f"answer: {done.exit}, and pale ls says {listed}")
        if (self.boxes / "b").exists() + (self.boxes / "c").exists() != 1 or len(list((self.state / "boxes").glob("*"))) != 1:
            done.bad.append("leftovers: folders of both names, or of none")
        if names == ["c"]:
            if "box.rename" not in [r["event"] for r in self.records(self.state_of_box() / "audit")]:
                done.bad.append("audit: renamed, and no box.rename in the log")
            again = self.command("rename", "c", "b")
            if again.code:
                done.bad.append(f"afterwards: pale rename: {again.errors.strip()}")
        self.use_box(op, kind, done)

    def after_box(self, op, kind, done):
        bad = done.bad
        killed = kind.startswith("kill")
        listed = self.command("ls", "--json")
        try:
            names = [b["name"] for b in json.loads(listed.out)] if listed.code == 0 else None
        except ValueError:
            names = None
        if names is None:
            bad.append(f"afterwards: pale ls: {listed}")
            names = []
        there = "b" in names
        if op in ("exec", "start", "stop") and not there:
            bad.append("afterwards: the box is gone")
        if op == "create" and done.exit == 0 and not there:
            bad.append("answer: success, and there is no box")
        hit = done.hit or {}
        untold = hit.get("role") == "cli" and hit.get("name") in ("write", "writev") and hit["args"][0] == 1  # made, but not to be told of
        if op == "create" and done.exit not in (0, None) and not killed and not untold and there:
            bad.append("leftovers: a box whose making failed is still listed")
        if op == "rm" and done.exit == 0 and there:
            bad.append("answer: success, and the box is still there")
        if op == "stop" and done.exit == 0 and not self.wait_gone(done, 0.5):
            bad.append("answer: success, and the box still runs")
        if there:
            self.use_box(op, kind, done)
        elif (self.boxes / "b").exists() or (self.state_of_box() or self.root / "none").exists():
            if op in ("create", "rm") and (killed or op == "rm"):
                again = self.command(*self.ops["create"][2])  # what is half made or half removed can be made again
                if again.code:
                    bad.append(f"afterwards: pale create: {again.errors.strip()}")
                self.remove_box(bad)
                self.collect(bad)
            else:
                bad.append("leftovers: folders of a box that is not there")

    def collect(self, bad):
        """What somebody was killed over is taken away by gc, once it is sure that nobody is at it any more."""
        for folder in (self.state / "boxes").glob("*"):
            os.utime(folder, (1, 1))
        swept = self.command("gc")
        if swept.code:
            bad.append(f"afterwards: pale gc: {swept.errors.strip()}")

    def state_of_box(self):
        found = list((self.state / "boxes").glob("*")) if (self.state / "boxes").is_dir() else []
        return found[0] if found else None

    def use_box(self, op, kind, done):
        """A box is there: its log is good, it runs a command as well confined as ever, it stops, it goes."""
        bad = done.bad
        state = self.state_of_box()
        if not state:
            bad.append("afterwards: a box without a state folder")
            return
        events = self.judge_audit(done, state / "audit") or []
        if done.exit == 0:
            wanted = {"create": "box.start", "exec": "exec.end", "start": "exec.end", "stop": "box.stop"}.get(op)
            # A keeper that was killed when it should have stopped can write no more; a box that died first has no need to be stopped.
            excused = op == "stop" and ("box.died" in events or (kind.startswith("kill") and (done.hit or {}).get("role") == "keeper"))
            if wanted and wanted not in events and not excused:
                bad.append(f"audit: success, and no {wanted} in the log")
        self.verdict.unlink(missing_ok=True)
        again = self.command("exec", "-q", "b", "--", *self.witness)
        if again.code and self.late:
            again = self.command("exec", "-q", "b", "--", *self.witness)
        half_gone = op == "rm" and again.code == 125 and again.err.startswith(b"pale: ")  # to be removed once more, and good for nothing else
        if (again.code or again.out != b"CONFINED\n") and not half_gone:
            bad.append(f"afterwards: pale exec ended with {again.code}: {again.out[:100]!r} {again.errors.strip()}")
        verified = self.command("audit", "--verify", "b")
        if verified.code:
            bad.append(f"audit: {verified.text.strip() or verified.errors.strip()}")
        self.remove_box(bad, ("stop", "rm") if kind.startswith("kill") else ("rm",))

    def remove_box(self, bad, verbs=("rm",)):
        for verb in verbs:
            done = self.command(verb, "b")
            if done.code:
                bad.append(f"afterwards: pale {verb}: {done.errors.strip()}")

    # --- leftovers ---

    def alive(self, done):
        found = []
        for t in done.report["left"]:
            st = harness.stat_of(t["pid"])
            if st and st[1] != "Z" and (st[0].startswith("pale") or t["role"] != "cli"):
                found.append(f"{t['role']} {t['pid']} in {t['where'][:40]}")
        return found

    def wait_gone(self, done, seconds):
        return harness.wait_until(lambda: not self.alive(done), seconds, 0.005)

    def cgroups_left(self):
        ids = {r.get("id") for r in self.records(self.state / "runs.audit")[-40:]} | ({self.box_id} if self.box_id else set())
        found = []
        for base in ("/sys/fs/cgroup/*/pale", "/sys/fs/cgroup/pale"):
            for i in filter(None, ids):
                found += glob.glob(f"{base}/{os.geteuid()}/{i}")
        return found + [g for g in glob.glob("/sys/fs/cgroup/**/pale-*.scope", recursive=True) if any(i and i in g for i in ids)] if os.path.exists(
            "/sys/fs/cgroup/cgroup.procs") else found

    def leftovers(self):
        found = []
        runtime = sorted(p.name for p in self.runtime.iterdir()) if self.runtime.is_dir() else []
        shared = [n for n in runtime if n.startswith("etc-")]
        found += [f"runtime file {n}" for n in runtime if n not in ("claims.lock", "claims.wide") and n not in shared]
        found += [f"claim {p.name}" for p in (self.runtime / "claims.wide").glob("*")]
        found += [f"runtime file {n}" for n in shared[1:]]
        found += [f"box folder {p.name}" for p in self.boxes.glob("*")] + [f"state folder {p.name}" for p in (self.state / "boxes").glob("*")]
        found += [f"state file {p.name}" for p in self.state.glob("*") if p.name not in ("boxes", "runs.audit", "runs.audit.head", "runs.audit.begun", "host.key", "host.pub", "proved", "removed")]
        found += [f"half a proof {p.name}" for p in (self.state / "proved").glob(".*")]
        found += [f"cgroup {g}" for g in self.cgroups_left()]
        with open("/proc/self/mountinfo") as f:
            found += [f"mount {line.split()[4]}" for line in f if str(self.root) in line]
        return found

    def judge_leftovers(self, done):
        if self.state_of_box():
            self.box_id = self.state_of_box().name
        if not self.wait_gone(done, GONE_SECONDS):
            done.bad += [f"leftovers: process {p}" for p in self.alive(done)]
        left = harness.wait_until(lambda: not self.leftovers(), 0.3, 0.01) or None
        if left is None:
            done.bad += [f"leftovers: {x}" for x in self.leftovers()]

    def processes(self):
        return harness.processes_of(self.root)

    def close(self):
        """Ends what is left; returns what that was."""
        self.pale.end()
        found = harness.wait_until(lambda: not self.processes(), 1) or None
        left = [] if found else [f"{pid} {name}" for pid, (name, _) in self.processes().items()]
        for pid in self.processes():
            harness.kill_quietly(pid)
        for g in self.cgroups_left():
            try:
                os.rmdir(g)
            except OSError:
                pass
        harness.remove_root(self.root)
        return left
