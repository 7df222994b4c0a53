# SPDX-License-Identifier: Apache-2.0
"""The engine of the leak battery: a case, the two sides it is tried on, and what becomes of it.

A case is one attempt from inside a box (or with what a box left) and a judge outside. It is tried on the wall, where it must be
held, and on its weakened twin, a box with the named defences off, where the same attempt must get through: a case that cannot see
a leak proves nothing.
"""
import dataclasses
import os
import pathlib
import pwd
import secrets
import shutil
import subprocess
import tempfile
import threading
import time

import harness

ROOT, USER, PLAIN, NESTED = "root", "user", "plain", "nested"
EVERYONE = (ROOT, USER, PLAIN, NESTED)
ATTACK = pathlib.Path(os.environ.get("PALE_ATTACK", harness.BUILD.parent / "tests" / "leak" / "attack" / "attack"))
SECONDS = 30


class Broken(Exception):
    """The attempt neither got through nor was refused: the case itself is at fault."""


class Skip(Exception):
    """The case cannot be tried here."""


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    threat: str                  # class of threat it belongs to
    claim: int                   # of docs/threat-model.md
    attack: tuple = ()           # words for the attack program
    twin: frozenset = frozenset()  # defences that are off in the twin
    off: frozenset = frozenset()   # defences that are off already when the others must hold
    flags: tuple = ()            # of pale run
    judge: str = "word"
    needs: tuple = ()            # functions that say why this host cannot try it, or None
    who: tuple = EVERYONE
    door: bool = False           # a refusal outside any box too means that the kernel has no such door
    scene: object = None         # a function of its own, for what one command cannot show
    peer: bool = True            # makes sense for other sandboxes
    defences: tuple = ()         # what holds it, if that is not what the twin lacks

    def held_by(self):
        return self.defences or tuple(sorted(self.twin - self.off))


def switches(*words):
    return frozenset(w for word in words for w in word.split(",") if w)


def identity():
    if harness.REAL_ROOT:
        return ROOT
    if os.geteuid() == 0:
        return NESTED
    name = pwd.getpwuid(os.geteuid()).pw_name
    try:
        lines = open("/etc/subuid").read().splitlines()
    except OSError:
        lines = []
    return USER if any(line.split(":")[0] in (name, str(os.geteuid())) for line in lines) else PLAIN


def home_for_tests(who):
    """Where every user of a box may look, should the wall let it: root's home is closed by its mode alone."""
    if who == ROOT:
        return "/opt" if os.path.isdir("/opt") else "/srv"
    return next(h for h in (os.path.expanduser("~"), pwd.getpwuid(os.geteuid()).pw_dir) if os.access(h, os.W_OK))


class World:
    """What all cases of a run share: the identity, the attack program in a folder of the host, a pale of each build."""

    def __init__(self):
        self.who = identity()
        self.tag = os.environ.get("PALE_TEST_TAG", "x")
        self.host = pathlib.Path(tempfile.mkdtemp(prefix=f".plt-{self.tag}-", dir=home_for_tests(self.who)))
        self.host.chmod(0o755)
        self.tools = self.host / "a"
        self.tools.mkdir()
        self.attack = self.tools / "attack"
        shutil.copy2(ATTACK, self.attack)
        self.attack.chmod(0o755)
        self.short = pathlib.Path(tempfile.mkdtemp(prefix=f"plt-{self.tag}-", dir="/tmp"))
        self.count = 0
        self.lock = threading.Lock()
        self.homes = threading.local()
        self.pales = []

    def pale(self, weak):
        """One per thread and build: making the shared part of /etc for each case would cost more than the cases."""
        key = "weak" if weak else "strong"
        if not hasattr(self.homes, key):
            with self.lock:
                self.count += 1
                root = self.short / str(self.count)
            root.mkdir(mode=0o755)
            p = harness.Pale(root, harness.WEAK if weak else harness.BUILD)
            with self.lock:
                self.pales.append(p)
            setattr(self.homes, key, p)
        return getattr(self.homes, key)

    def number(self):
        with self.lock:
            self.count += 1
            return self.count

    def end(self):
        trouble = []
        for p in self.pales:
            trouble += p.end()
            if "PALE_TEST_IDS" in os.environ:
                with open(os.environ["PALE_TEST_IDS"], "a") as f:
                    f.writelines(i + "\n" for i in sorted(p.ids()))
        for p in self.pales:
            harness.wait_until(lambda p=p: not harness.processes_of(p.root))
            trouble += [f"left behind: {v}" for v in harness.processes_of(p.root).values()]
            if p.build == harness.WEAK:
                trouble += sweep_groups(p.ids())
            harness.remove_root(p.root)
        shutil.rmtree(self.host, ignore_errors=True)
        shutil.rmtree(self.short, ignore_errors=True)
        return trouble


def sweep_groups(ids):
    """A twin without its pid namespace leaves processes behind, and they keep its cgroup: that is what is shown, and we clear it away."""
    def gone(path):
        try:
            for pid in path.joinpath("cgroup.procs").read_text().split():
                harness.kill_quietly(int(pid))
            path.rmdir()
        except OSError:
            pass
        return not path.exists()
    found = [p for i in ids for p in pathlib.Path("/sys/fs/cgroup").glob(f"*/pale/{os.geteuid()}/{i}")]
    return [f"left behind: cgroup {p}" for p in found if not harness.wait_until(lambda p=p: gone(p))]


class Attempt:
    """One side of a case: the wall, or its twin."""

    def __init__(self, world, case, off):
        self.world, self.case, self.off = world, case, off
        self.pale = world.pale(bool(off))
        self.number = world.number()
        self.canary = "canary-" + secrets.token_hex(12)
        self.dir = world.host / str(self.number)  # a folder of the host, of this attempt alone
        self.dir.mkdir()
        self.env = {"PALE_WEAKEN": ",".join(sorted(off | {"receipt"}))} if off else {}
        self.fields = {"A": str(world.attack), "dir": str(self.dir), "canary": self.canary, "uid": str(os.geteuid()), "n": str(self.number)}
        self.undo = []

    def words(self, words):
        out = []
        for w in words:
            if w == "{asroot}":  # the box's own root, where it has one
                out += ["--user", "root"] if self.world.who == ROOT else []
            else:
                out.append(w.format_map(self.fields) if isinstance(w, str) else w)
        return out

    def run(self, *args, **more):
        return self.pale.run(*args, env={**self.env, **more.pop("env", {})}, **{"timeout": SECONDS, **more})

    def start(self, *args, **more):
        return self.pale.start(*args, env={**self.pale.env, **self.env}, **more)

    def attack(self, flags=None, words=None, **more):
        flags = self.words(self.case.flags if flags is None else flags)
        if not {"--cwd", "--project"} & set(flags):
            flags = ["--cwd", "/", *flags]
        words = self.words(self.case.attack if words is None else words)
        return self.run("run", "-q", "--read", self.world.tools, *flags, "--", self.world.attack, *words, **more)

    def box(self, *flags):
        """A named box of this attempt."""
        name = f"b{self.number}"
        done = self.run("create", name, "--read", self.world.tools, *flags)
        if done.code:
            raise Broken(f"create: {done.errors.strip()}")
        self.undo.append(lambda: self.run("rm", "-f", "--global", name))
        return name

    def end(self):
        for step in reversed(self.undo):
            try:
                step()
            except (OSError, AssertionError):
                pass
        subprocess.run(["chmod", "-R", "u+rwX", str(self.dir)], stderr=subprocess.DEVNULL)
        shutil.rmtree(self.dir, ignore_errors=True)


def try_side(world, case, off, judges):
    """(leaked, detail) of one side."""
    at = Attempt(world, case, off)
    try:
        if case.scene:
            return case.scene(at)
        judge = judges[case.judge](at)
        at.fields.update(next(judge) or {})
        done = at.attack()
        try:
            judge.send(done)
        except StopIteration as end:
            return end.value
        raise Broken("the judge did not judge")
    except (AssertionError, OSError, KeyError, ValueError) as e:
        raise Broken(f"{type(e).__name__}: {str(e)[:500]}") from None
    finally:
        at.end()


def outside(world, case):
    """Does the attempt get through where there is no wall at all? For doors alone, which do no harm."""
    done = subprocess.run([world.attack, *case.attack], capture_output=True, text=True, timeout=SECONDS, stdin=subprocess.DEVNULL)
    return "LEAK" in done.stdout


def weak_build():
    return os.access(harness.WEAK / "pale", os.X_OK)


def run_case(world, case, judges):
    """A row of the report."""
    row = {"name": case.name, "threat": case.threat, "claim": case.claim, "held_by": list(case.held_by()), "off": sorted(case.off),
           "twin_off": sorted(case.twin), "wall": "", "twin": "", "detail": ""}
    began = time.monotonic()
    try:
        reason = f"not for {world.who}" if world.who not in case.who else next((r for r in (n() for n in case.needs) if r), None)
        if not reason and not weak_build():
            reason = "the weakened build is not built"
        if reason:
            raise Skip(reason)
        leaked, detail = try_side(world, case, case.off, judges)
        row["wall"] = "leaked" if leaked else "held"
        if leaked:
            row["detail"] = detail
        leaked, twin_detail = try_side(world, case, case.twin, judges)
        row["twin"] = "caught" if leaked else "missed"
        if not leaked and case.door and not outside(world, case):
            row["twin"] = ""
            raise Skip("this kernel lets nobody so far: there is nothing to hold")
        if not leaked:
            row["detail"] = f"the twin saw no leak: {twin_detail}"
    except Skip as e:
        if row["wall"] != "leaked":
            row["wall"], row["detail"] = "skipped", str(e)
    except Broken as e:
        row["twin" if row["wall"] else "wall"] = "broken"
        row["detail"] = str(e)
    row["ms"] = int((time.monotonic() - began) * 1000)
    return row


def is_good(row):
    return row["wall"] == "skipped" or (row["wall"] == "held" and row["twin"] == "caught")
