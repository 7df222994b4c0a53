# SPDX-License-Identifier: Apache-2.0
"""Boxes and projects as they should be, beside those that are: what they have in common with every step, and how they are compared."""
import json
import os
import pathlib
import re
import signal
import subprocess
import time

import harness
from model.bases import Knowledge, start_of
from model.tree import FILE, FOLDER, GONE, LINK, Node, Review, Tree, above, is_below, parse, read_tree, words

HIDDEN = (b".git", b".pale")
LINES = 12
PLACES = ("home", "tmp", "project")


class Difference(Exception):
    """What there is is not what there should be."""


class NotNow(Exception):
    """A step that makes no sense in the state that the sequence has come to; it is left out."""


def short(nodes):
    return {p: n.data[:60] for p, n in nodes.items()}


class Project:
    """A folder of the host, what is in it, and what has been."""

    def __init__(self, number, path, git):
        self.number, self.path, self.git = number, pathlib.Path(path), git
        self.tree, self.past, self.touched, self.side = Tree(), {}, {}, None
        self.tracked = {}  # what git's index has

    def full(self, path):
        return os.fsencode(self.path) + b"/" + path


class State:
    """What a snapshot holds."""

    def __init__(self, box):
        self.home, self.tmp, self.up = box.home.copy(), box.tmp.copy(), box.up.copy() if box.up else None
        self.seen = {p: set(t) for p, t in box.seen.items()}
        self.known = box.known.copy()
        self.known.close(self.up.upper if self.up else (), self.known.opened)


class Box:
    def __init__(self, key, project=None, mode="none", autosave=True, memory=False, serial=0):
        self.key, self.scope, self.name = key, key.split("/")[0], key.split("/")[1]
        self.project, self.mode, self.autosave, self.memory, self.serial = project, mode, autosave, memory, serial
        self.home, self.tmp = Tree(), Tree()
        self.up = Review(project) if mode == "review" else None
        self.seen = {}     # path: what stood there when the box changed it, which it may then have meant to go
        self.stale = set()  # paths that the host changed under it while it ran
        self.landed = set()
        self.snaps = {}
        self.running = True
        self.known = Knowledge()

    def fs(self, place):
        if place == "project":
            return {"none": None, "review": self.up}.get(self.mode, self.project.tree if self.project else None)
        return self.home if place == "home" else self.tmp

    def take(self, state):
        self.home, self.tmp, self.up = state.home.copy(), state.tmp.copy(), state.up.copy() if state.up else None
        self.seen = {p: set(t) for p, t in state.seen.items()}
        self.known = state.known.copy()

    def close_layer(self, now):
        """What are names of one file are so no longer."""
        self.known.close(self.up.upper if self.up else (), now)
        self.home.dissolve()
        self.tmp.dissolve()
        if self.up:
            self.up.dissolve()

    def restarted(self):
        self.stale = set()


class World:
    """pale with a home of its own, two projects, and any number of boxes."""

    def __init__(self, pale, gits=(True, False)):
        self.pale, self.boxes, self.exports, self.clock, self.serial, self.turn, self.runs = pale, {}, {}, 0, 0, 0, 0
        self.ignore_counts = False
        self.strict = False  # a conflict told where the base is known is a difference too
        self.light = False  # only what a step could have changed is looked at
        self.env = {**pale.env, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1", "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.org",
                    "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.org"}
        self.projects = [self.make_project(i, git) for i, git in enumerate(gits)]
        self.verbs = set(re.findall(r"^  ([a-z]+) ", pale.ok("help").text, re.M))
        time.sleep(0.05)  # the projects are older than any box by more than a file system's clock can be wrong

    # --- projects ---

    def make_project(self, number, git):
        path = self.pale.home / f"p{number}"
        path.mkdir()
        p = Project(number, path, git)
        for name in (b"a", b"c", b"d", b"d/e"):
            node = Node(FOLDER, 0o755) if name == b"d" else Node(FILE, 0o644, b"".join(b"u%d_0.%s line %d\n" % (number, name, i) for i in range(LINES)))
            self.on_host(p, name, node)
        if git:
            self.git(p, "init", "-q", "-b", "main")
            (path / ".git/info/exclude").write_text(".pale\n")
            self.commit(p)
        return p

    def git(self, project, *args):
        done = subprocess.run(["git", *args], cwd=project.path, env=self.env, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False)
        if done.returncode:
            raise RuntimeError(f"git {args}: {done.stderr.decode()}")
        return done.stdout

    def commit(self, project):
        self.git(project, "add", "-A")
        self.git(project, "commit", "-q", "--allow-empty", "-m", "x")
        self.indexed(project)

    def indexed(self, project):
        """All that there is, git's index has."""
        project.tracked = {p: n.copy() for p, n in project.tree.nodes.items() if n.kind != FOLDER}

    def begins_anew(self, box):
        """Its review stands on the project as it is now."""
        box.known = Knowledge(self.tick(), start_of(box.project))

    def tick(self):
        self.clock += 1
        return self.clock

    def on_host(self, project, path, node):
        """The user's own hand: makes, replaces or (None) removes what is at a path."""
        full = project.full(path)
        if os.path.islink(full) or os.path.isfile(full):
            os.unlink(full)
        elif os.path.isdir(full) and (not node or node.kind != FOLDER):
            subprocess.run([b"rm", b"-rf", b"--", full], check=True)
        if node and node.kind == FILE:
            with open(full, "wb") as f:
                f.write(node.data)
            os.chmod(full, node.mode)
        elif node and node.kind == LINK:
            os.symlink(node.data, full)
        elif node and not os.path.isdir(full):
            os.mkdir(full, 0o755)
        self.project_now(project, {path: node} if node else {}, [path])

    def project_now(self, project, made, gone, by=None):
        """The model of a change that somebody made in the project, not by way of `by`, a box for review of it."""
        for path in gone:
            for p in [p for p in project.tree.nodes if p == path or is_below(p, path)]:
                self.remember(project, p, by)
            project.tree.drop(path)
        for path, node in made.items():
            self.remember(project, path, by)
            project.tree.nodes[path] = node

    def remember(self, project, path, by):
        project.past.setdefault(path, []).append(project.tree.nodes.get(path))
        project.touched[path] = self.clock
        for b in self.boxes.values():
            if b.up and b.project is project and b is not by:
                b.stale.add(path)

    def live_wrote(self, project, old):
        """A box has written in the project itself; old: what there was."""
        now = project.tree.nodes
        for path in {*old, *now}:
            if not (path in old and path in now and old[path].same(now[path])):
                project.past.setdefault(path, []).append(old.get(path))
                project.touched[path] = self.clock
                for b in self.boxes.values():
                    if b.up and b.project is project:
                        b.stale.add(path)

    # --- pale ---

    def where(self, scope):
        return self.pale.home if scope == "u" else self.projects[int(scope)].path

    def run(self, scope, *args, expect=(0,), **more):
        self.runs += 1
        done = self.pale.run(*args, cwd=self.where(scope), **more)
        if expect is not None and done.code not in expect:
            raise Difference(f"pale {' '.join(map(str, args[:8]))[:200]} ended with {done.code}: {done.errors[-600:]}{done.text[-300:] if len(done.out) < 5000 else ''}")
        return done

    def box(self, key, running=None):
        if key not in self.boxes:
            raise NotNow(f"no box {key}")
        return self.boxes[key]

    def verb(self, box, verb, *args, **more):
        return self.run(box.scope, verb, *args, **more)

    def keeper(self, box):
        return self.verb(box, "inspect", "--json", box.name).json().get("keeper_pid")

    # --- comparing ---

    def look_at(self, box):
        places = [("/home/agent", False), ("/tmp", False)]
        if box.mode != "none":
            places.append((str(box.project.path), True))
        return places

    def exec(self, box, ops=()):
        """Has the box do it, and compares all its files with what they should be."""
        places = self.look_at(box)
        done = self.verb(box, "exec", "-q", box.name, "--", *words(ops, places))
        box.running = True
        try:
            self.judge(box, done, places, ops)
        except Difference:
            if not box.stale:
                raise
            if box.memory:
                return  # it would have nothing after a start
            # what is below an overlay was changed while it was mounted: what counts is what the box has when it starts again
            self.kill_keeper(box)
            box.restarted()
            self.judge(box, self.verb(box, "exec", "-q", box.name, "--", *words((), places)), places, ())

    def judge(self, box, done, places, ops):
        try:
            trees, trouble = parse(done.out, len(places))
        except (ValueError, IndexError) as e:
            raise Difference(f"{box.key} does not tell its files: {e}; {done.errors[-300:]}") from None
        if trouble:
            raise Difference(f"{box.key} could not do what it should: {trouble} ({list(ops)!r})")
        trees[1] = {p: n for p, n in trees[1].items() if not p.startswith(b"plt-")}  # where a project below /tmp is shown
        for place, tree in zip(PLACES, trees):
            self.compare(box, place, tree)

    def compare(self, box, place, found):
        fs = box.fs(place)
        expected = dict(fs.view())
        for path in sorted({*found, *expected}):
            is_now, should = found.get(path), expected.get(path)
            if is_now and is_now.same(should, modes=not isinstance(fs, Review) or is_now.kind == FILE):
                if path in box.landed and place == "project" and not is_now.same(box.project.tree.nodes.get(path), False):
                    box.landed.discard(path)  # so it is the box's own again
                continue
            if not is_now and not should:
                continue
            if isinstance(fs, Review) and self.excused(box, path, is_now):
                continue
            raise Difference(f"{box.key}: {place} {path!r} is {is_now or 'not there'}, and should be {should or 'not there'}{self.whose(box, is_now)}")

    def excused(self, box, path, is_now):
        """A box that runs may see what the host had before it changed it; what has landed may be the box's or the host's from then on."""
        lower = box.project.tree.nodes.get(path)
        if is_now and is_now.kind == "?":
            return path not in box.up.view()  # it deleted what the project has no folder for: the name is listed, and nothing is there
        if path in box.landed and (is_now.same(lower, False) if is_now else lower is None):
            if not box.stale:  # else it may see after a start what it does not now
                box.up.upper.pop(path, None)
            return True
        if not is_now and lower and path not in box.up.upper and any(path == g or is_below(path, g) for g in box.up.ghosts):
            box.up.upper[path] = Node(GONE)
            return True
        if path in box.up.upper or not any(path == s or is_below(path, s) for s in box.stale):
            return False
        past = [lower, *box.project.past.get(path, [])]
        return any(is_now.same(n, False) if is_now and n else is_now is n for n in past)

    def whose(self, box, node):
        """Names the writer of what should not be there."""
        told = set()
        for token in node.tokens() if node else ():
            kind, number = token[:1], int(token[1:].split(b"_")[0])
            if kind == b"b" and number != box.serial:
                told |= {b.key for b in self.boxes.values() if b.serial == number} or {f"box {number}, which is gone"}
        return f" (written in {', '.join(sorted(told))})" if told else ""

    def check_host(self, project):
        found = read_tree(project.path, HIDDEN)
        for path in sorted({*found, *project.tree.nodes}):
            is_now, should = found.get(path), project.tree.nodes.get(path)
            if not (is_now and should and is_now.same(should, modes=is_now.kind == FILE)):
                raise Difference(f"the project {project.number} itself: {path!r} is {is_now or 'not there'}, and should be {should or 'not there'}")

    def check_list(self, scope):
        rows = self.run(scope, "ls", "--json").json()
        paths = {str(p.path / ".pale"): str(p.number) for p in self.projects}
        told = sorted(f"{'u' if r['scope'] == 'user' else paths.get(os.path.dirname(r['data']), '?')}/{r['name']}" for r in rows)
        wanted = sorted(b.key for b in self.boxes.values() if b.scope in ("u", scope))
        elsewhere = [k for k in told if k not in wanted]  # boxes of other projects are told while they run
        if [k for k in told if k in wanted] != wanted or any(k not in self.boxes for k in elsewhere):
            raise Difference(f"pale ls{'' if scope == 'u' else ' in project ' + scope} tells {told}, and should {wanted}")

    def check(self, touched=(), everything=False):
        """The boxes that a step could have changed, and one other in turn; of the host, too."""
        if self.light and not everything:
            for key in touched:
                if key in self.boxes:
                    self.exec(self.boxes[key])
            return
        keys = list(self.boxes)
        self.turn += 1
        chosen = keys if everything else [k for k in touched if k in self.boxes]
        if not everything and keys and keys[self.turn % len(keys)] not in chosen:
            chosen.append(keys[self.turn % len(keys)])
        for key in chosen:
            self.exec(self.boxes[key])
        for p in self.projects if everything else [self.projects[self.turn % len(self.projects)]]:
            self.check_host(p)
        for scope in ["u", *map(str, range(len(self.projects)))] if everything else [("u", "0", "1")[self.turn % 3]]:
            self.check_list(scope)

    # --- what is in a layer ---

    def see(self, box, path):
        """The box is about to change what stands there, and may mean what it sees to go."""
        view = box.up.view()
        for p, n in view.items():
            if p == path or is_below(p, path):
                box.seen.setdefault(p, set()).update(n.tokens())

    def automatic(self, box, state):
        """Snapshots that pale made by itself hold `state`; those that it has dropped are gone."""
        names = [s["name"] for s in self.verb(box, "snapshots", "--json", box.name).json()]
        if set(names) - set(box.snaps):
            box.close_layer(self.tick())
        for n in names:
            if n not in box.snaps:
                if not n.startswith("auto-"):
                    raise Difference(f"{box.key} has a snapshot {n} that nobody made")
                box.snaps[n] = state
        for n in list(box.snaps):
            if n not in names:
                if not n.startswith("auto-"):
                    raise Difference(f"{box.key} has lost its snapshot {n}")
                del box.snaps[n]

    def kill_keeper(self, box):
        pid = self.keeper(box)
        if pid:
            fd = os.pidfd_open(pid)
            signal.pidfd_send_signal(fd, signal.SIGKILL)
            harness.wait_until(lambda: not harness.stat_of(pid) or harness.stat_of(pid)[1] == "Z", 10, 0.002)
            os.close(fd)
        box.running = False

    def end(self):
        for box in list(self.boxes.values()):
            self.pale.run("rm", "-f", box.name, cwd=self.where(box.scope))


def dump(steps, seed=None, why=None):
    """A script that `tests/model/run --replay` takes."""
    head = [f"# seed {seed}"] if seed is not None else []
    head += [f"# {line}" for line in (why or "").splitlines()]
    return "\n".join(head + [json.dumps(s) for s in steps]) + "\n"


def load(text):
    return [json.loads(line) for line in text.splitlines() if line.strip() and not line.startswith("#")]


__all__ = ["Box", "Difference", "FILE", "FOLDER", "GONE", "LINK", "NotNow", "State", "World", "above", "dump", "is_below", "load"]
