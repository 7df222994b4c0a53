# SPDX-License-Identifier: Apache-2.0
"""A box with a past, something that is done to it and spoilt, and the judge of what became of it: the box as it was or as it was to be,
its snapshots, its forks, the user's tree, litter, the audit log."""
import json
import os
import random
import re
import shutil
import subprocess
import time

import harness
from fault import scene

INJECT = scene.TOOLS / "fault-inject"
LAYERS = 16  # so many are welded into one

WRITES = (
    "echo one > ~/f; echo 1 > ~/first; mkdir ~/d /tmp/w; echo x > ~/d/x; echo one > /tmp/w/t; cd $P; echo one > changed; echo a > added; rm gone",
    "echo two > ~/f; rm ~/first; rm -r ~/d; mkdir ~/d; echo y > ~/d/y; rm /tmp/w/t; cd $P; rm -r dir; mkdir dir; echo n > dir/new; rm added",
    "echo three > ~/f; echo three > /tmp/w/t; cd $P; echo three > changed; ln -s changed link; mkdir more; echo m > more/m",
)
LOOK = r"""for d in ~ /tmp/w $P; do cd $d 2> /dev/null && { find . -name .pale-landing -prune -o -printf '%p %y %l\n'; grep -r --exclude-dir=.pale-landing '' .; } | sort; done"""


class Op:
    """living: the box runs when it is done to; busy: a command runs in it; deep: on many layers; litter: some of no use."""

    def __init__(self, words, living=False, busy=False, deep=False, litter=False):
        self.words, self.living, self.busy, self.deep, self.litter = words.split(), living, busy, deep, litter


OPS = {
    "snapshot": Op("snapshot r new"),
    "snapshot-living": Op("snapshot r new", living=True),
    "snapshot-busy": Op("snapshot r new", living=True, busy=True),
    "restore": Op("restore r one"),
    "restore-living": Op("restore r one", living=True),
    "fork": Op("fork -n 2 r f"),
    "fork-living": Op("fork r f", living=True),
    "fork-at": Op("fork --at one r f"),
    "discard": Op("discard r"),
    "discard-some": Op("discard r changed dir/old more/m"),
    "discard-some-living": Op("discard r gone dir", living=True),
    "apply": Op("apply r"),
    "remove": Op("snapshots --rm one r"),
    "gc": Op("gc", litter=True),
    "weld": Op("gc", deep=True),
}


class Play:
    """A box that has been one, two and now three things, kept aside as it is, and put back before every point."""

    def __init__(self, pale, project, op, deep=1):
        """deep: of so many points, one whose snapshots are gone back to and forked."""
        self.pale, self.project, self.op, self.deep = pale, project, op, deep
        self.report, self.count = pale.root / "report", 0
        self.places = {"data": pale.root / "data", "state": pale.root / "state", "project": project}
        self.set_up()
        self.old = self.state()
        self.end_all()
        self.put_back()
        self.new = self.expected()
        self.put_back()

    def text(self, box, script):
        done = self.pale.sh(box, f"P={self.project}; {script}")
        assert done.code == 0, done
        return done.text

    def set_up(self):
        for name in ("changed", "gone"):
            (self.project / name).write_text("base\n")
        (self.project / "dir").mkdir()
        (self.project / "dir" / "old").write_text("base\n")
        self.pale.create("r", "--no-autosave", "--project", "review", cwd=self.project)
        self.content = {"base": self.text("r", LOOK)}
        for name, writes in zip(("one", "two", "three"), WRITES):
            self.text("r", writes)
            self.content[name] = self.text("r", LOOK)
            if name != "three":
                self.pale.ok("snapshot", "r", name)
        for i in range(LAYERS if self.op.deep else 0):
            self.text("r", f"echo {i} > ~/deep{i}; echo {i} > ~/f; rm -f ~/deep{i - 1}")
            self.content["three"] = self.text("r", LOOK)
            self.pale.ok("snapshot", "r", f"deep{i}")
            self.content[f"deep{i}"] = self.content["three"]
        if self.op.litter:
            self.pale.ok("snapshots", "--rm", "two", "r")
            self.pale.ok("restore", "r", "one")
            self.pale.ok("snapshots", "--rm", "auto-1", "r")
            self.content["three"] = self.content["one"]
        self.pale.ok("stop", "r")
        self.wait_quiet()
        self.keep()

    def keep(self):
        for name, path in self.places.items():
            subprocess.run(["cp", "-a", path, self.pale.root / f"kept-{name}"], check=True)

    def wait_quiet(self):
        assert harness.wait_until(lambda: not harness.processes_of(self.pale.root)), harness.processes_of(self.pale.root)

    def put_back(self):
        """As it was before: every file of boxes and of the project."""
        for name, path in self.places.items():
            for part in path.iterdir():
                shutil.rmtree(part) if part.is_dir() and not part.is_symlink() else part.unlink()
            subprocess.run(["cp", "-a", f"{self.pale.root}/kept-{name}/.", path], check=True)
        self.make_younger()

    def make_younger(self):
        """The box, and every layer of it, comes after the files that have just been put back: by what the list of its layers says, or the link."""
        now = time.time_ns() + 10**9
        for state in self.places["state"].glob("pale/boxes/*"):
            if not (state / "born").is_symlink():
                continue
            os.utime(state / "born", ns=(now, now), follow_symlinks=False)
            for stack in (s for s in (state / "stack", self.places["data"] / "pale" / "boxes" / "r" / "stack") if s.exists()):
                stack.write_text(re.sub(r"(?m)^((?:layer|open) .* )[0-9]+$", lambda m: m[1] + str(now), stack.read_text()))

    # --- what is there ---

    def snapshots(self, box="r"):
        return tuple(s["name"] for s in self.pale.json("snapshots", "--json", box))

    def boxes(self):
        return sorted(b["name"] for b in self.pale.json("ls", "--json"))

    def tree(self):
        """The user's own project: {path: what it is}."""
        found = {}
        for path in sorted(self.project.rglob("*")):
            name = str(path.relative_to(self.project))
            if not name.startswith(".pale-landing"):
                found[name] = "link " + os.readlink(path) if path.is_symlink() else "folder" if path.is_dir() else path.read_text()
        return found

    def state(self):
        return {"content": self.text("r", LOOK), "snapshots": self.snapshots(), "boxes": self.boxes(), "tree": self.tree()}

    def expected(self):
        """What it is to be when all goes well, found by doing it; what the content must be then is known beforehand."""
        done = self.pale.run(*self.op.words)
        assert done.code == 0, done
        new = self.state()
        word, self.content["new"] = self.op.words[0], self.content["three"]
        for name in set(new["snapshots"]) - set(self.old["snapshots"]):
            self.content[name] = self.content["three"]
        if word == "restore":
            assert new["content"] == self.content["one"] and len(new["snapshots"]) == 3, new
        elif word == "discard":
            assert new["content"] != self.old["content"] and len(new["snapshots"]) == 3, new
            assert new["content"].partition("./t")[0] == self.old["content"].partition("./t")[0]
        else:
            assert new["content"] == self.old["content"] == self.content["three"], new
        assert (new["tree"] != self.old["tree"]) == (word == "apply") and (len(new["boxes"]) > 1) == (word == "fork"), new
        self.end_all()
        return new

    def end_all(self):
        for box in self.boxes():
            self.pale.ok("stop", box)
        self.wait_quiet()

    # --- one point ---

    def spoil(self, mode):
        self.report.unlink(missing_ok=True)
        words = [INJECT, "--limit", "10000", "--report", self.report, *mode, "--"]
        if self.op.living:
            words += [self.pale.program, "exec", *(["-d", "r", "--", "sleep", "60"] if self.op.busy else ["-q", "r", "--", "true"]), "::"]
        done = subprocess.run(list(map(str, [*words, self.pale.program, *self.op.words])), env=self.pale.env, cwd=self.pale.home, stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=60, check=False)
        return done, json.loads(self.report.read_text())

    def judge(self, mode):
        """False if there is no such call any more."""
        done, told = self.spoil(mode)
        assert told["staged"], (mode, told, done.stderr)
        if not told.get("hit"):
            self.end_all()
            self.put_back()
            return False
        try:
            self.judge_point(mode, done, told)
        except AssertionError as e:
            raise AssertionError(f"{' '.join(map(str, mode))}: {told['hit']}, exit {told['exit']}, {done.stderr[-300:]!r}: {e}") from e
        self.count += 1
        self.end_all()
        self.put_back()
        return True

    def judge_point(self, mode, done, told):
        assert not told["hangs"] and not told["crashes"], told
        killed = mode[0].startswith("kill")
        told_why = done.stderr or b"failed" in done.stdout or b"conflict" in done.stdout  # apply tells it of each file
        assert told["exit"] in (0, None) or told_why or killed, "it failed and did not say why"
        now = self.state()
        self.judge_state(now, told["exit"], killed)
        for box in now["boxes"]:
            assert self.pale.run("audit", "--verify", box).code == 0, self.pale.run("audit", "--verify", box)
        self.judge_litter(now)
        self.use_again(now)

    def judge_state(self, now, code, killed):
        either = [(s["content"], s["snapshots"]) for s in (self.old, self.new)]
        if code == 0:
            either = either[1:]
        assert (now["content"], now["snapshots"]) in either, f"neither the old nor the new: {now}"
        forks = [b for b in now["boxes"] if b != "r"]
        assert "r" in now["boxes"] and set(forks) <= set(self.new["boxes"]), now["boxes"]
        assert code != 0 or now["boxes"] == self.new["boxes"], now["boxes"]
        for f in forks:
            assert self.text(f, LOOK) == self.content["one" if "--at" in self.op.words else "three"], f"the fork {f} is neither"
            first = json.loads(self.pale.ok("audit", "--json", f).text.splitlines()[0])
            assert first["event"] == "box.forked", f"{f} does not say where it comes from: {first}"
        for path in {*now["tree"], *self.old["tree"], *self.new["tree"]}:
            ours = now["tree"].get(path)
            assert ours in ((self.old["tree"].get(path), self.new["tree"].get(path)) if code != 0 else (self.new["tree"].get(path),)), (path, ours)

    def layers_of(self, state):
        """By its list; a box that has none has one layer, of the name of its id."""
        stack = state / "stack"
        return set(re.findall(r"^(?:layer|join|open) ([0-9a-f]{32})", stack.read_text(), re.M)) if stack.exists() else {state.name}

    def judge_litter(self, now):
        """After a gc nothing is left but what some box stands on."""
        self.pale.ok("gc")
        states = [p.parent for p in (self.pale.root / "state" / "pale" / "boxes").glob("*/policy")]
        wanted = set().union(*(self.layers_of(s) for s in states))
        data = self.pale.root / "data" / "pale" / "boxes"
        there = {p.name for p in [*data.glob("*/layers/*"), *data.glob(".layers/*")]}
        assert there <= wanted, f"layers that nothing stands on: {there - wanted}"
        hidden = [str(p) for s in states for p in s.iterdir() if p.name.startswith(".") and p.name.endswith(".new")]
        assert not hidden, hidden
        assert len(states) == len(now["boxes"]), (states, now["boxes"])
        assert self.text("r", LOOK) == now["content"] and self.snapshots() == now["snapshots"], "gc has changed the box"

    def use_again(self, now):
        """What did not happen can be made to happen; and every snapshot that is listed is one."""
        if self.op.words[0] == "apply":
            self.pale.ok("apply", "r")
            assert self.tree() == self.new["tree"] and not (self.project / ".pale-landing").exists(), self.tree()
        if self.op.words[0] == "fork":
            for f in now["boxes"]:
                if f != "r":
                    self.pale.ok("rm", "-f", f)
            self.pale.ok(*self.op.words)
            assert self.boxes() == self.new["boxes"]
        names = list(now["snapshots"]) if self.op.words[0] != "apply" else []  # these lie on the project, which is another now
        if self.count % self.deep:
            names = []
        for name in random.sample(names, min(3, len(names))):
            self.pale.ok("restore", "-f", "r", name)
            assert self.text("r", LOOK) == self.content[name], f"snapshot {name} is not what it was"
            self.pale.ok("fork", "--at", name, "r", "spare")
            assert self.text("spare", LOOK) == self.content[name], f"a fork of {name} is not what that was"
            self.pale.ok("rm", "-f", "spare")
