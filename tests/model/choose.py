# SPDX-License-Identifier: Apache-2.0
"""Which step comes next: by chance, but so that most make sense where things stand."""
from model.files import TARGETS
from model.tree import FILE, FOLDER

NAMES = ("one", "two", "three", "four")
HOME = ("f", "g", "d", "d/f", "d/e", "d/e/f", "k\xff\xfe", "a b\n'\"%41\\", "-n", "\u00e9".encode().decode("latin-1"))
PROJECT = ("a", "c", "d/e", "d", "d/f", "n", "n/f", "n/g", "k\xff\xfe")
GUARDED = ".envrc"
# How often each kind comes, and how the kinds are told apart on the command line.
WEIGHTS = {"create": 7, "write": 40, "snapshot": 6, "restore": 5, "fork": 7, "rename": 2, "rm": 4, "stop": 3, "kill": 3, "freeze": 1, "gc": 2, "export": 2,
           "import": 2, "diff": 2, "copy-in": 1, "copy-out": 1, "file": 2, "host": 12, "commit": 3, "side": 1, "merge": 3, "apply": 8, "discard": 3, "moved": 1, "wiped": 1, "copied": 1, "kept": 1}
MOST = 9  # boxes at once
KINDS = {"create": 8, "edit": 10, "append": 5, "replace": 4, "cut": 1, "hole": 1, "del": 4, "mkdir": 3, "rmdir": 1, "mv": 3, "symlink": 2, "link": 2, "chmod": 2}


class Chooser:
    def __init__(self, world, chance, kinds=None):
        self.world, self.chance, self.count = world, chance, 0
        self.weights = {k: w for k, w in WEIGHTS.items() if (not kinds or k in kinds) and w}

    def box(self, want=lambda b: True):
        keys = sorted(k for k, b in self.world.boxes.items() if want(b))
        return self.chance.choice(keys) if keys else None

    def number(self):
        return self.chance.randrange(2)

    def next(self):
        while True:
            kinds = self.weights
            if len(self.world.boxes) < 3 and self.chance.random() < 0.6:
                kinds = {"create": 1}
            what = self.chance.choices(list(kinds), list(kinds.values()))[0]
            step = getattr(self, "next_" + what.replace("-", "_"))()
            if step and what == "write" and self.world.boxes[step["key"]].stale and self.chance.random() < 0.7:
                return {"do": self.chance.choice(["kill", "stop"]), "key": step["key"]}  # else it could change nothing in its project
            if step:
                return {"do": what, **step}

    def next_create(self):
        if len(self.world.boxes) >= MOST:
            return None
        c = self.chance
        scope = c.choice(["u", "u", "0", "1"])
        mode = c.choices(["none", "ro", "live", "review"], [4, 1, 2, 6])[0]
        project = int(scope) if scope != "u" else self.number()
        return {"key": f"{scope}/{c.choice(NAMES)}", "mode": mode, "project": project, "autosave": c.random() < 0.5, "memory": c.random() < 0.06}

    def path(self, place, box):
        c = self.chance
        names = HOME if place != "project" else PROJECT + ((GUARDED,) if box.mode == "review" else ())
        if c.random() < 0.5:
            there = [p for p in box.fs(place).view() if not p.endswith(b"~") and (box.mode == "review" or p != b".envrc")]
            if there:
                return c.choice(sorted(there)).decode("latin-1")
        return c.choice(names)

    def op(self, box):
        c = self.chance
        place = c.choices(["home", "tmp", "project"], [5, 2, 8 if box.mode in ("live", "review") else 0])[0]
        what, path = c.choices(list(KINDS), list(KINDS.values()))[0], self.path(place, box)
        there = box.fs(place).view().get(path.encode("latin-1"))
        if not there and what not in ("create", "hole", "mkdir", "symlink"):
            what = c.choice(["create", "create", "create", "hole", "mkdir", "symlink"])  # most that is asked of nothing does nothing
        elif there and what in ("mkdir", "symlink") or there and there.kind == FOLDER and what not in ("del", "mv", "rmdir"):
            what = c.choice(["mv", "del", "edit"]) if there.kind != FOLDER else c.choice(["mv", "chmod"])
        more = {"create": lambda: [c.randrange(1, 13)], "edit": lambda: [c.randrange(12)], "replace": lambda: [c.randrange(12)], "cut": lambda: [c.choice([0, 7, 100, 5000])],
                "chmod": lambda: [c.choice([0o644, 0o600, 0o755, 0o640])]}.get(what, list)()
        if what in TARGETS:
            more = [self.path(place, box)]
        if place == "project" and GUARDED in (path, *more) and what not in ("create", "append", "del"):
            what, path, more = "create", GUARDED, [2]
        return [what, place, path, *more]

    def next_write(self):
        key = self.box()
        return key and {"key": key, "ops": [self.op(self.world.boxes[key]) for _ in range(self.chance.randint(1, 5))]}

    def next_snapshot(self):
        self.count += 1
        key = self.box(lambda b: not b.memory)
        return key and {"key": key, "name": f"s{self.count}"}

    def snapshot_of(self, key):
        names = sorted(self.world.boxes[key].snaps)
        return self.chance.choice(names) if names else None

    def next_restore(self):
        key = self.box(lambda b: b.snaps)
        return key and {"key": key, "name": self.snapshot_of(key)}

    def next_fork(self):
        key = self.box(lambda b: not b.memory)
        if not key or len(self.world.boxes) >= MOST:
            return None
        c = self.chance
        more = {"at": self.snapshot_of(key)} if c.random() < 0.4 and self.world.boxes[key].snaps else {}
        self.count += 1
        name = c.choice(NAMES) if c.random() < 0.4 else f"f{self.count}"
        if name in NAMES and f"{key[0]}/{name}" in self.world.boxes:
            more = {} if c.random() < 0.5 else more
        return {"key": key, "name": name, "number": 2 if c.random() < 0.2 else 1, **more}

    def next_rename(self):
        key = self.box()
        return key and {"key": key, "name": self.chance.choice(NAMES + ("r1", "r2"))}

    def next_rm(self):
        key = self.box()
        return key if not key else {"key": key}

    def next_stop(self):
        return self.next_rm()

    next_freeze = next_stop

    def next_kill(self):
        key = self.box(lambda b: not b.memory)
        return key and {"key": key}

    def next_gc(self):
        return {}

    def next_gc_really(self):
        return {}

    def next_export(self):
        key = self.box(lambda b: not b.memory)
        more = {"at": self.snapshot_of(key)} if key and self.world.boxes[key].snaps and self.chance.random() < 0.3 else {}
        return key and {"key": key, "name": f"x{self.number()}", **more}

    def next_import(self):
        names = sorted(self.world.exports)
        if not names or len(self.world.boxes) >= MOST:
            return None
        self.count += 1
        c = self.chance
        name = c.choice(names)
        of = self.world.exports[name][2]
        return {"name": name, "key": f"u/i{self.count}", "project": of.number if of and c.random() < 0.7 else self.number()}

    def next_diff(self):
        key = self.box()
        return key and {"key": key}

    def next_copy_in(self):
        key = self.box()
        return key and {"key": key, "path": self.chance.choice(HOME), "tree": self.chance.random() < 0.5}

    def next_copy_out(self):
        key = self.box(lambda b: any(n.kind == FILE for n in b.home.nodes.values()))
        return key and {"key": key, "path": self.chance.choice(sorted(p for p, n in self.world.boxes[key].home.nodes.items() if n.kind == FILE)).decode("latin-1")}

    def next_file(self):
        key = self.box()
        return key and {"key": key, "what": self.chance.choice(["write", "write", "mkdir", "del"]), "path": self.chance.choice(HOME)}

    def next_host(self):
        c = self.chance
        project = self.number()
        there = sorted(p.decode("latin-1") for p, n in self.world.projects[project].tree.nodes.items() if n.kind != FOLDER)
        what = c.choices(["edit", "rewrite", "make", "folder", "link", "del", "mv"], [8, 3, 3, 1, 1, 2, 1])[0]
        path = c.choice(there) if there and c.random() < 0.6 else c.choice(PROJECT)
        boxes = sorted({p.decode("latin-1") for b in self.world.boxes.values() if b.up and b.project.number == project for p, n in b.up.upper.items() if n.kind == FILE})
        if boxes and c.random() < 0.5:  # what a box works on too
            what, path = c.choice(["edit", "edit", "rewrite", "del"]), c.choice(boxes)
        return {"project": project, "what": what, "path": path, "line": c.randrange(12), **({"to": c.choice(PROJECT)} if what == "mv" else {})}

    def next_commit(self):
        return {"project": 0}

    next_side = next_commit

    def next_merge(self):
        return {"project": 0, "path": self.chance.choice(("a", "c", "d/e", "m")), "line": self.chance.randrange(12)}

    def next_moved(self):
        return {"project": self.number()} if "adopt" in self.world.verbs else None

    def next_wiped(self):
        c = self.chance
        return {**self.next_moved(), "how": c.choice(["rm", "clean"]), "then": c.choice(["adopt", "forget", "again"]), "running": c.random() < 0.5} \
            if "adopt" in self.world.verbs else None

    def next_copied(self):
        return {**self.next_moved(), "at": self.chance.randrange(9)} if "adopt" in self.world.verbs else None

    def next_kept(self):
        return self.next_rm() if "adopt" in self.world.verbs else None

    def next_apply(self):
        key = self.box(lambda b: b.up)
        c = self.chance
        if not key:
            return None
        upper = sorted(p.decode("latin-1") for p in self.world.boxes[key].up.upper)
        paths = [c.choice(upper)] if upper and c.random() < 0.15 else []
        return {"key": key, "guarded": c.random() < 0.15, "dry": c.random() < 0.08, "text": c.random() < 0.25, "paths": paths}

    def next_discard(self):
        key = self.box(lambda b: b.up and not b.memory)
        if not key:
            return None
        upper = sorted(p.decode("latin-1") for p in self.world.boxes[key].up.upper)
        return {"key": key, **({"path": self.chance.choice(upper)} if upper and self.chance.random() < 0.6 else {})}
