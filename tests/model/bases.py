# SPDX-License-Identifier: Apache-2.0
"""What a box's version of a file began with, as far as pale can know it, and what apply must make of it (decision 46)."""
import difflib

from model.tree import FILE, FOLDER, GONE, LINK, above, is_below

UNKNOWN, LONG_AGO = "not known", 0
LONGEST_TEXT = 1 << 20


class Base:
    """One thing that a version may have begun with. Without its content nothing can be merged."""

    def __init__(self, node, content=True):
        self.node, self.content = node and node.copy(), content

    def told_elsewhere(self):
        return Base(self.node, content=False)


class Knowledge:
    """What a box's state knows of its project; it goes with snapshots, forks and exports."""

    def __init__(self, born=0, start=None):
        self.born = born          # since when the layers stand on the project
        self.opened = born        # the open layer is not younger than this
        self.first = {}           # path: when the layer was born that says something of it first; LONG_AGO: on another host
        self.agreed = {}          # path: [Base or UNKNOWN] that landed, or came with an import
        self.maybe = {}           # path: [Base] that both had the same of when something else landed
        self.start = start or {}  # path: Base, of git's index when the box began
        self.vague = False        # it lost its state folder, so anything may be known or not

    def copy(self):
        k = Knowledge(self.born, self.start)
        k.opened, k.first, k.agreed, k.maybe, k.vague = self.opened, dict(self.first), dict(self.agreed), dict(self.maybe), self.vague
        return k

    def close(self, upper, now):
        """The open layer becomes one of those below; what was said in it stays as old as it is."""
        for path in upper:
            self.first.setdefault(path, self.opened)
        self.opened = now

    def birth(self, path, upper):
        """Not younger than this is the layer that says something of the path first: of itself, or of a folder that hides it."""
        hiding = [f for f in above(path) if f in upper and (upper[f].kind != FOLDER or upper[f].opaque)]
        return min(self.first.get(p, self.opened) for p in [path, *hiding])


def start_of(project):
    """What git's index names, as it is in the project now; the content is to be had where both are the same."""
    if not project or not project.git:
        return {}
    found = {}
    for path, tracked in project.tracked.items():
        node = project.tree.nodes.get(path)
        if node and node.kind == tracked.kind and node.kind in (FILE, LINK):
            found[path] = Base(node.copy(), node.data == tracked.data)
    return found


def candidates(known, project, upper, path):
    """Every base that pale may have for this path now; [UNKNOWN] if it must tell that it has none."""
    return [*(known.agreed[path] if path in known.agreed else by_time(known, project, upper, path)), *known.maybe.get(path, ())]


def by_time(known, project, upper, path):
    """Of what never landed."""
    ours = project.tree.nodes.get(path)
    began = known.start.get(path)
    birth = known.birth(path, upper)
    if not ours:
        return [Base(None), *([began] if began and birth else [])]
    touched = project.touched.get(path, -1)
    if birth == LONG_AGO:
        return [UNKNOWN]
    mixed = [UNKNOWN] if LONG_AGO in known.first.values() else []  # layers that were made one are as old as the oldest
    if touched < known.born:
        return [Base(ours), *mixed]
    late = [began or UNKNOWN, *mixed]
    return late if touched >= birth else [Base(ours), *late]


def same(a, b):
    return (a is None) == (b is None) and (a is None or a.same(b))


def merges(base, ours, theirs):
    """Of three texts. Changes that touch may be told as a conflict or not: there are several ways to tell what a change is."""
    if any(b"\0" in t for t in (base, ours, theirs)):
        return {"conflict"}
    if max(map(len, (base, ours, theirs))) > LONGEST_TEXT:
        return {"conflict", "merged"}
    rows = base.splitlines(True)
    runs = [[(i, j) for what, i, j, _k, _l in difflib.SequenceMatcher(None, rows, t.splitlines(True), False).get_opcodes() if what != "equal"] for t in (ours, theirs)]
    apart = all(j < k or m < i for i, j in runs[0] for k, m in runs[1])
    return {"merged"} if apart else {"conflict", "merged"}


def decide(base, ours, theirs):
    """The results that are right for three versions of a file or a link; None: nothing is there."""
    if same(ours, theirs):
        return {"nothing"}
    if base is UNKNOWN:
        return {"conflict"}
    was = base.node
    if same(theirs, was):
        return {"nothing"}
    if same(ours, was):
        return {"landed"}
    if not (was and ours and theirs and was.kind == ours.kind == theirs.kind == FILE):
        return {"conflict"}
    if len({was.mode, ours.mode, theirs.mode}) == 3:
        return {"conflict"}
    if ours.data == was.data:
        return {"landed"}
    if theirs.data in (was.data, ours.data):
        return {"merged"}
    return merges(was.data, ours.data, theirs.data) if base.content else {"conflict"}


def versions(box, before, folders=False):
    """(path, what the user has, what the box has) of each path that can be judged: no folder on either side, and a way to it."""
    upper = box.up.upper
    for path in sorted({*upper, *(p for p in before if box.up.hidden(p))}):
        ours, theirs = before.get(path), upper.get(path)
        if theirs is not None and theirs.kind == GONE:
            theirs = None
        if folders and not (theirs and theirs.kind == FOLDER):
            yield path, ours, theirs
            continue
        if any(n and n.kind == FOLDER for n in (ours, theirs)) or any(f in before and before[f].kind != FOLDER for f in above(path)):
            continue
        if ours or theirs:
            yield path, ours, theirs


def allowed(box, path, ours, theirs):
    if box.known.vague:
        return {"nothing", "landed", "merged", "conflict"}
    found = candidates(box.known, box.project, box.up.upper, path)
    if any(b is not UNKNOWN and b.node and b.node.kind == FOLDER for b in found):
        return {"nothing", "landed", "merged", "conflict"}
    return set().union(*(decide(b, ours, theirs) for b in found))


def agree(box, before, after, chosen, rows, judged):
    """What both have after an apply is what the box's next version begins with."""
    for path, ours, theirs in versions(box, before, folders=True):
        now = after.get(path)
        if chosen and not any(path == c or is_below(path, c) for c in chosen):
            continue
        if not same(now, ours) or rows.get(path) == "merged":
            box.known.agreed[path] = [Base(theirs)]
            box.known.maybe.pop(path, None)
            for state in box.snaps.values():  # the very version of a snapshot may count as that, if nothing was written since
                if state.up and path in state.up.upper and same(theirs, None if state.up.upper[path].kind == GONE else state.up.upper[path]):
                    perhaps(state.known, path, theirs)
        elif same(now, theirs) or "merged" in judged.get(path, ()):  # whether that was told as well is open
            perhaps(box.known, path, theirs)


def perhaps(known, path, node):
    known.maybe[path] = [*(b for b in known.maybe.get(path, ()) if not same(b.node, node)), Base(node)]


def forget(known, path):
    for told in (known.agreed, known.maybe, known.first):
        for p in [p for p in told if p == path or is_below(p, path)]:
            del told[p]


def exported(known, project, upper):
    """What an import knows: the kind, mode and digest of each base."""
    k = Knowledge()
    k.vague = known.vague
    told = {p: c for p, c in known.agreed.items()}
    for path in upper:
        told[path] = candidates(known, project, upper, path)
    k.agreed = {p: [b if b is UNKNOWN else b.told_elsewhere() for b in c] for p, c in told.items()}
    k.first = {p: LONG_AGO for p in upper}
    return k


def imported(known, project, now):
    """At an import, into a project that may be another one."""
    k = known.copy()
    k.born = k.opened = now
    k.start = start_of(project)
    return k


__all__ = ["Base", "Knowledge", "UNKNOWN", "agree", "allowed", "candidates", "decide", "exported", "forget", "imported", "start_of", "versions"]
