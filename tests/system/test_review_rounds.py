# SPDX-License-Identifier: Apache-2.0
"""Random rounds of review, apply, discard, snapshot, restore, fork, export and import, while the host edits, commits, merges, pulls and rebases.

A file is twenty lines that are far enough from each other to be merged one by one. A model knows of each file what the user has, what each
box has and what each box began with. After each apply: nothing of the user's is overwritten unless the box's version was made from it, no conflict
is told where the two changes go together, and rows, counts, JSON and exit status agree.

PALE_ROUNDS=N plays N rounds, PALE_SEED=S those of one seed; the last steps are told when something is wrong."""
import copy
import os
import random
import shutil
import stat
import subprocess
import time

import pytest

ROUNDS = int(os.environ.get("PALE_ROUNDS", "0"))
SECONDS = float(os.environ.get("PALE_ROUNDS_SECONDS", "15"))
LINES, GAP = 6, 4  # lines that are changed, and those between them that are not
GIT = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_AUTHOR_NAME": "n", "GIT_AUTHOR_EMAIL": "e@example.org", "GIT_COMMITTER_NAME": "n",
       "GIT_COMMITTER_EMAIL": "e@example.org", "PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/"}
NAMES = ["a", "sub/b", "sub/deep/c", "odd name", "crlf", "bin", "empty", "link", "new1", "sub/new2", "script"]


def text_of(values, end="\n"):
    return "".join(f"{v}{end}" + "".join(f"between {i} {j}{end}" for j in range(GAP)) for i, v in enumerate(values)).encode()


class Thing:
    """What stands at a path: a file with its bytes and mode, a link; None for nothing."""

    def __init__(self, kind, data, mode=0o644):
        self.kind, self.data, self.mode = kind, data, mode if kind == "file" else 0

    def __eq__(self, other):
        return isinstance(other, Thing) and (self.kind, self.data, self.mode) == (other.kind, other.data, other.mode)

    def __repr__(self):
        return f"<{self.kind} {self.mode:o} {self.data[:60]!r}>"


def look(path):
    try:
        st = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    if stat.S_ISLNK(st.st_mode):
        return Thing("link", os.readlink(path).encode())
    if stat.S_ISDIR(st.st_mode):
        return Thing("folder", b"")
    with open(path, "rb") as f:
        return Thing("file", f.read(), st.st_mode & 0o777)


def merge_lines(base, ours, theirs):
    """The model's own merge: line by line, of texts of one length. None: a conflict, or not to be told."""
    b, o, t = base.splitlines(True), ours.splitlines(True), theirs.splitlines(True)
    if not len(b) == len(o) == len(t) or any(b"\0" in x for x in (base, ours, theirs)):
        return None
    out = []
    for x, y, z in zip(b, o, t):
        if y != x and z != x and y != z:
            return None
        out.append(z if y == x else y)
    return b"".join(out)


def merge(base, ours, theirs):
    """("same", _), ("land", thing), ("merge", thing) or ("conflict", _), as it must be where the base is known."""
    if ours == theirs or theirs == base:
        return "same", ours
    if ours == base:
        return "land", theirs
    if None in (base, ours, theirs) or {base.kind, ours.kind, theirs.kind} != {"file"}:
        return "conflict", ours
    if ours.mode != base.mode and theirs.mode != base.mode and ours.mode != theirs.mode:
        return "conflict", ours
    mode = theirs.mode if ours.mode == base.mode else ours.mode
    data = theirs.data if ours.data == base.data else ours.data if theirs.data in (base.data, ours.data) else merge_lines(base.data, ours.data, theirs.data)
    return ("conflict", ours) if data is None else ("merge", Thing("file", data, mode))


class Version:
    """What a box has at a path, what it began with, and when the layer that holds it was begun. landed: both agreed on the base once."""

    def __init__(self, now, base, since):
        self.now, self.base, self.since, self.landed = now, base, since, False
        self.others = []  # other bases that are right: of the box that it came from, or what landed of the same version later
        self.foreign = None  # it came with an export, which says what it began with (True) or not


class State:
    """Of a box at one time. start: what the project held when the review began, as far as git can tell later; since: when the open layer began."""

    def __init__(self, start, since):
        self.files, self.starts, self.since = {}, [start], since
        self.imported = False
        self.wrote = False  # in the open layer: an empty one is not closed by a snapshot


class Game:
    def __init__(self, pale, root, seed, git, scope):
        self.pale, self.random, self.git, self.flags, self.seed = pale, random.Random(seed), git, scope, seed
        self.root, self.project = root, root / "p"
        self.steps, self.boxes, self.number, self.clock = [], {}, 0, 0
        self.applied = self.conflicts = self.landed = 0
        self.seen, self.touch = {}, {}
        self.setup()

    # --- the host ---

    def do_git(self, *words, check=True):
        return subprocess.run(["git", "-c", "init.defaultBranch=main", "-c", "protocol.file.allow=always", *words], cwd=self.project, env=GIT, capture_output=True,
                              check=check)

    def write(self, name, thing):
        path = self.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if os.path.lexists(path) and (thing is None or thing.kind == "link" or path.is_symlink() or self.random.random() < 0.5):
            path.unlink()
        if thing is None:
            return
        if thing.kind == "link":
            path.symlink_to(thing.data.decode())
        else:
            path.write_bytes(thing.data)
            path.chmod(thing.mode)

    def fresh(self, name):
        self.number += 1
        if name == "link":
            return Thing("link", b"to-%d" % self.number)
        if name == "empty":
            return Thing("file", b"" if self.random.random() < 0.5 else b"%d\n" % self.number)
        if name == "bin":
            return Thing("file", bytes(range(256)) + b"%d" % self.number)
        return Thing("file", text_of([f"{name} {self.number} {i}" for i in range(LINES)], "\r\n" if name == "crlf" else "\n"), 0o755 if name == "script" else 0o644)

    def vary(self, name, thing):
        """Another version of it."""
        chance = self.random.random()
        self.number += 1
        if thing is None:
            return self.fresh(name)
        if chance < 0.08:
            return None
        if thing.kind != "file" or name in ("bin", "empty"):
            return self.fresh(name)
        if chance < 0.16:
            return Thing("file", thing.data, thing.mode ^ 0o040)
        lines = thing.data.splitlines(True)
        at = self.random.randrange(LINES) * (GAP + 1)
        if at < len(lines):
            lines[at] = b"changed %d" % self.number + (b"\r\n" if name == "crlf" else b"\n")
        return Thing("file", b"".join(lines), thing.mode)

    def setup(self):
        self.project.mkdir()
        for name in NAMES[:8] + NAMES[10:]:
            self.write(name, self.fresh(name))
        if self.git:
            self.do_git("init", "-q")
            (self.project / ".gitignore").write_text("*.o\n.pale\n")
            self.do_git("add", "-A")
            self.do_git("commit", "-qm", "first")
            subprocess.run(["git", "clone", "-q", str(self.project), str(self.root / "other")], env=GIT, check=True, capture_output=True)

    def host_edit(self):
        for name in self.random.sample(NAMES, self.random.randrange(1, 4)):
            new = self.vary(name, look(self.project / name))
            self.steps.append(f"host {name} {new}")
            self.write(name, new)

    def host_touch(self):
        name = self.random.choice(NAMES)
        self.steps.append(f"host touches {name}")
        self.write(name, look(self.project / name))

    def host_commit(self):
        self.do_git("add", "-A")
        done = self.do_git("commit", "-qm", f"c{self.number}", check=False)
        self.steps.append(f"host commits {done.returncode}")

    def host_revert(self):
        """Back to what is committed."""
        self.steps.append("host resets")
        self.do_git("reset", "-q", "--hard", self.random.choice(["HEAD", "HEAD", "HEAD~1"]), check=False)

    def host_away_and_back(self):
        self.steps.append("host stashes and checks out another commit, and back")
        self.host_commit()
        if self.do_git("checkout", "-q", "HEAD~1", check=False).returncode == 0:
            self.do_git("checkout", "-q", "main")

    def upstream(self):
        """Somebody else commits a change; false where the file is none there."""
        other = self.root / "other"

        def run(*words):
            return subprocess.run(["git", *words], cwd=other, env=GIT, capture_output=True, check=False)
        run("pull", "-q", "--ff-only")
        name = self.random.choice(NAMES[:4])
        path = other / name
        if not path.is_file():
            return False
        new = None
        while new is None:
            new = self.vary(name, Thing("file", path.read_bytes(), path.stat().st_mode & 0o777))
        path.write_bytes(new.data)
        return run("commit", "-qam", f"u{self.number}").returncode == 0

    def host_pull(self):
        self.host_commit()
        if not self.upstream():
            return
        how = self.random.choice(["--no-rebase", "--rebase"])
        done = self.do_git("pull", "-q", how, "--no-edit", str(self.root / "other"), "main", check=False)
        if done.returncode:
            self.do_git("merge", "--abort", check=False)
            self.do_git("rebase", "--abort", check=False)
        self.steps.append(f"host pulls {how} {done.returncode}")

    # --- boxes ---

    def run(self, *args, expect=0):
        done = self.pale.run(*args, timeout=60, cwd=self.project)
        assert done.code == expect, done
        return done

    def start_now(self):
        """Of each file: what it holds, and whether git has that too."""
        found = {}
        for name in NAMES if self.git else []:
            thing, blob = look(self.project / name), self.do_git("cat-file", "blob", f":{name}", check=False)
            if thing and thing.kind in ("file", "link") and blob.returncode == 0:
                found[name] = (thing, blob.stdout == thing.data)
        return found

    def touched(self, name):
        """Has the user written it, by the clock of the model?"""
        now = look(self.project / name), os.lstat(self.project / name).st_ctime_ns if os.path.lexists(self.project / name) else None
        if self.seen.get(name) != now:
            self.seen[name], self.touch[name] = now, self.clock
        return self.touch[name]

    def look_all(self):
        for name in NAMES:
            self.touched(name)
        self.clock += 1

    def new_box(self):
        self.number += 1
        name = f"b{self.number}"
        self.look_all()
        self.steps.append(f"create {name}")
        self.pale.create(name, "--project", "review", *self.flags, cwd=self.project)
        self.boxes[name] = (State(self.start_now(), self.clock), {})
        self.clock += 1

    def box_edit(self, name):
        """A box that runs may go on seeing a file of the host's that was replaced: it is stopped first, so that it sees what the user has."""
        state = self.boxes[name][0]
        self.look_all()
        self.run("stop", name)
        script = [f"cd '{self.project}'"]
        for path in self.random.sample(NAMES, self.random.randrange(1, 4)):
            version = state.files.get(path)
            old = version.now if version else look(self.project / path)
            new = version.base if version and self.random.random() < 0.25 else self.vary(path, old)
            if new == old:
                continue
            if not version:
                version = state.files[path] = Version(new, old, state.since)
            version.now, state.wrote = new, True
            self.steps.append(f"{name}: {path} {new}")
            quoted = f"'{path}'"
            if new is None or new.kind == "link" or (old and old.kind == "link") or self.random.random() < 0.5:
                script.append(f"rm -f {quoted}")
            if new is None:
                continue
            script.append(f'mkdir -p "$(dirname {quoted})"')
            if new.kind == "link":
                script.append(f"ln -s {new.data.decode()} {quoted}")
                continue
            script.append(f"printf '{''.join(f'{chr(92)}{b:03o}' for b in new.data)}' > {quoted}; chmod {new.mode:o} {quoted}")
        done = self.pale.sh(name, "set -e\n" + "\n".join(script), cwd=self.project)
        assert done.code == 0, done

    def snapshot(self, name):
        state, kept = self.boxes[name]
        self.number += 1
        self.run("snapshot", name, f"s{self.number}")
        self.steps.append(f"snapshot {name} s{self.number}")
        if state.wrote:
            self.look_all()
            state.since, state.wrote = self.clock, False
        kept[f"s{self.number}"] = copy.deepcopy(state)
        self.clock += 1

    def restore(self, name):
        kept = self.boxes[name][1]
        if not kept:
            return
        point = self.random.choice(sorted(kept))
        self.look_all()
        self.run("restore", name, point)
        self.steps.append(f"restore {name} {point}")
        state = copy.deepcopy(kept[point])
        state.since, state.wrote = self.clock, False
        self.boxes[name] = (state, kept)
        self.clock += 1

    def fork(self, name):
        state, kept = self.boxes[name]
        point = self.random.choice(sorted(kept)) if kept and self.random.random() < 0.4 else None
        self.number += 1
        child = f"f{self.number}"
        self.look_all()
        self.run("fork", *(["--at", point] if point else []), name, child)
        self.steps.append(f"fork {name} at {point}: {child}")
        state = copy.deepcopy(kept[point] if point else state)
        state.since, state.wrote = self.clock, False
        if not state.files:  # it may have begun with the fork
            state.starts.append(self.start_now())
        self.boxes[child] = (state, {})
        self.clock += 1

    def export(self, name):
        if self.flags:
            return
        self.number += 1
        child, archive = f"i{self.number}", self.root / f"{self.number}.tar"
        self.look_all()
        self.run("export", "--plain", "-o", archive, name)
        self.run("import", "--project-path", self.project, archive, child)
        archive.unlink()
        self.steps.append(f"export {name}, import {child}")
        state = copy.deepcopy(self.boxes[name][0])
        for path, version in state.files.items():
            version.others += [s[path][0] for s in state.starts if path in s]
            version.foreign, version.landed = self.is_known(state, path, version, look(self.project / path)), False
        state.since, state.wrote, state.starts, state.imported = self.clock, False, [self.start_now()], True
        self.boxes[child] = (state, {})
        self.clock += 1

    def discard(self, name):
        state, _ = self.boxes[name]
        self.look_all()
        if self.random.random() < 0.4 or not state.files:
            done = self.run("discard", "-f", name)
            self.steps.append(f"discard {name}: {done.text.strip()}")
            if "nothing" not in done.text:  # else it is as it was
                state.files, state.starts, state.since, state.wrote = {}, [self.start_now()], self.clock, False
        else:
            path = self.random.choice(sorted(state.files))
            done = self.pale.run("discard", "-f", name, path, cwd=self.project)
            self.steps.append(f"discard {name} {path} -> {done.code}")
            if done.code == 0:
                del state.files[path]
                state.wrote = False
                for version in state.files.values():
                    version.since = -1  # what is left is one layer now, as old as the first of them
                    if state.imported and not version.landed and not version.foreign:
                        version.foreign = False  # … and nobody knows how old that is
                state.since = self.clock
        self.clock += 1

    def remove(self, name):
        self.run("rm", "-f", name)
        del self.boxes[name]
        self.steps.append(f"rm {name}")

    # --- what is judged ---

    def read_rows(self, done, as_json):
        if as_json:
            rows = [(r["path"], r["result"]) for r in done.json()]
        else:
            lines = done.text.splitlines()
            end = next(i for i, x in enumerate(lines) if x[:1].isdigit())
            rows, total = [(x[9:].split("  (")[0].strip('"'), x[:8].strip()) for x in lines[:end]], lines[end]
            counts = {w.split()[1]: int(w.split()[0]) for w in total.split(", ")}
            for word in WORDS[2:]:
                assert counts.get(word, 0) == sum(r == word for _, r in rows), ("the sum is that of the rows", done)
            assert counts["landed"] == sum(r in WORDS[:2] for _, r in rows), done
        results = dict(rows)
        assert len(results) == len(rows), ("one row for each path", done)
        left = [p for p, r in rows if r in ("conflict", "held", "refused", "failed")]
        assert done.code == (1 if left else 0), done
        assert all(results[p] == "conflict" for p in left), done
        return results

    def apply(self, name):
        self.applied += 1
        paths = self.random.sample(NAMES, 2) if self.random.random() < 0.2 else []
        flags = self.random.choice([[], [], [], [], ["--theirs"], ["--ours"]])
        self.look_all()
        before = {n: look(self.project / n) for n in NAMES}
        # The text has no rows of what both have the same, which become bases too: then it is not enough.
        same = any(before[p] == v.now != v.base for p, v in self.boxes[name][0].files.items())
        as_json = self.random.random() < 0.5 or same or bool(flags)
        done = self.pale.run("apply", *(["--json"] if as_json else []), "--include-guarded", *flags, name, *paths, cwd=self.project, timeout=60)
        results = self.read_rows(done, as_json)
        why = {r["path"]: r["reason"] for r in done.json() if "reason" in r} if as_json else done.text
        self.steps.append(f"apply {flags} {name} {paths} -> {done.code} {results} {why}")
        for path in NAMES:
            self.judge(name, path, before[path], look(self.project / path), results.get(path), not paths or path in paths, flags)

    def is_known(self, state, path, version, ours):
        if version.foreign is not None:
            return version.foreign and ours == version.base
        if version.landed:
            return True
        if self.touch[path] < version.since:
            return True
        found = [s.get(path, (None, False)) for s in state.starts]
        return all(thing is not None and thing == version.base and (has_blob or ours == version.base) for thing, has_blob in found)

    def judge(self, name, path, ours, now, result, wanted, flags):
        state = self.boxes[name][0]
        version = state.files.get(path)
        if not version or not wanted:
            assert now == ours, ("nobody asked for this", name, path, result, ours, now)
            return
        theirs = version.now
        bases = [version.base]
        bases += version.others
        if version.foreign is None and not version.landed:
            bases += [s[path][0] for s in state.starts if path in s]  # what the project began with, where the user has written the file since
        verdicts = [merge(b, ours, theirs) for b in bases]
        what = (name, path, result, f"base {version.base} ours {ours} theirs {theirs} now {now} landed {version.landed} start {[s.get(path) for s in state.starts]}")
        if result == "conflict":
            self.conflicts += 1
            assert now == ours, ("a conflict leaves the user's file", what)
            assert not flags, ("it was told what becomes of conflicts", what)
            # An import may know less than the model thinks (what it does know has cases of its own); it never knows too much.
            known = self.is_known(state, path, version, ours) and not state.imported
            assert any(v == "conflict" for v, _ in verdicts) or not known, ("a false conflict", what)
            return
        allowed = [right for verdict, right in verdicts if verdict != "conflict"]
        if ours is None and not self.is_known(state, path, version, ours):
            allowed.append(theirs)  # nothing stands there, and a new name replaces nothing
        if flags:
            allowed.append(theirs if flags == ["--theirs"] else ours)
        assert any(now == a for a in allowed), ("the user's work is lost, or the box's", what)
        self.landed += now != ours
        if theirs != version.base and result:  # where both have the same already there is no row, and nothing is written down
            version.base, version.landed, version.foreign = theirs, True, None
            for kept in self.boxes[name][1].values():
                if path in kept.files and kept.files[path].now == theirs:
                    kept.files[path].others.append(theirs)

    def step(self):
        if not self.boxes:
            self.new_box()
        name = self.random.choice(sorted(self.boxes))
        host = [self.host_edit] * 6 + [self.host_touch] + ([self.host_commit] * 3 + [self.host_revert, self.host_away_and_back, self.host_pull, self.host_pull] if self.git else [])
        box = [self.box_edit] * 8 + [self.apply] * 8 + [self.discard, self.snapshot, self.restore, self.fork, self.export]
        if self.random.random() < 0.4:
            self.random.choice(host)()
        else:
            self.random.choice(box)(name)
        if len(self.boxes) < 3 and self.random.random() < 0.05:
            self.new_box()
        if len(self.boxes) > 4:
            self.remove(self.random.choice(sorted(self.boxes)))


WORDS = ["landed", "merged", "conflict", "held", "refused", "skipped", "failed"]


def play(pale, root, seed, most):
    """Rounds of one game, each with an apply at its end; all that it made goes again."""
    chance = random.Random(seed)
    game = Game(pale, root, seed, git=chance.random() < 0.6, scope=["--in-project"] if chance.random() < 0.2 else [])
    try:
        while game.applied < most:
            game.step()
        for name in sorted(game.boxes):
            game.remove(name)
    except AssertionError as e:
        if os.environ.get("PALE_HISTORY"):
            with open(os.environ["PALE_HISTORY"], "w") as f:
                f.write("\n".join(game.steps))
        told = "\n".join(game.steps[-25:])
        raise AssertionError(f"PALE_SEED={seed} after {game.applied} rounds (git: {game.git}, {game.flags})\n{told}\n{e}") from e
    return game


@pytest.mark.limit(24 * 3600)
def test_rounds(pale, hostdir):
    first = int(os.environ.get("PALE_SEED", random.randrange(1 << 30)))
    end, rounds, landed, conflicts, seed = time.monotonic() + SECONDS, 0, 0, 0, first
    print(f"PALE_SEED={first}")
    while rounds < ROUNDS if ROUNDS else time.monotonic() < end:
        root = hostdir / str(seed)
        root.mkdir()
        game = play(pale, root, seed, min(20, ROUNDS - rounds) if ROUNDS else 20)
        shutil.rmtree(root)
        rounds, landed, conflicts, seed = rounds + game.applied, landed + game.landed, conflicts + game.conflicts, seed + 1
        if rounds % 500 < 20 and ROUNDS:
            print(f"{rounds} rounds, {landed} landed, {conflicts} conflicts", flush=True)
    print(f"{rounds} rounds from PALE_SEED={first}: {landed} files landed, {conflicts} conflicts")
    assert rounds > 0
