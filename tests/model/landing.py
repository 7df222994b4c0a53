# SPDX-License-Identifier: Apache-2.0
"""Apply and discard, judged: nothing of the user's may go without being told as a conflict, and nothing of another box may come."""
import re

from model import bases
from model.tree import FILE, FOLDER, GONE, LINK, Tree, is_below, read_tree
from model.world import HIDDEN, Difference, NotNow, State

LEFT = {"conflict", "held", "refused", "skipped", "failed"}


def review(box):
    if not box.up or box.memory:
        raise NotNow("it has nothing to land")
    return box


def plain(path):
    return path.isascii() and path.decode().isprintable()


def is_text(path):
    try:
        return bool(path.decode())
    except UnicodeDecodeError:
        return False


def changed_by_box(box, path):
    """Whether it has said anything about that path, or about a folder above it."""
    return path in box.up.upper or box.up.hidden(path)


def judge_path(box, path, before, after, view, row):
    """One path that apply has changed."""
    where = f"apply of {box.key} changed {path!r} from {before or 'nothing'} to {after or 'nothing'} (told as {row or 'nothing'})"
    if not changed_by_box(box, path) and not (after and after.kind == FOLDER and not before):
        raise Difference(f"{where}, of which the box has changed nothing")
    lost = (before.tokens() if before else set()) - (after.tokens() if after else set()) - box.seen.get(path, set())
    if lost:
        raise Difference(f"lines that the box had never seen are lost, {sorted(lost)}: {where}")
    mine = view[path].tokens() if path in view else set()
    foreign = (after.tokens() if after else set()) - (before.tokens() if before else set()) - mine
    if foreign:
        raise Difference(f"lines that are not the box's have come, {sorted(foreign)}: {where}")
    if row in LEFT or row == "same" and not (after and after.kind == FOLDER):
        raise Difference(f"{where}, and yet something was done")


def landed_as_told(box, after, rows, judged):
    """Exit 0 says that all of the box's work is now in the project."""
    for path, node in box.up.upper.items():
        is_now = after.get(path)
        if node.kind == GONE:
            good = path not in after
        elif node.kind == FOLDER:
            good = is_now is None or is_now.kind == FOLDER or path in box.landed or box.known.vague or path in box.known.first
        else:
            good = is_now is not None and (is_now.same(node) or rows.get(path) == "merged" and is_now.kind == FILE)
        if not good and "nothing" not in (judged[path] if path in judged else bases.allowed(box, path, is_now, node if node.kind != GONE else None)):
            raise Difference(f"apply of {box.key} said that nothing was left, and {path!r} is {is_now or 'not there'}, in the box {node}")


def judge_results(box, judged, rows, paths):
    """What is known of the start decides; a conflict where it is known is as wrong as something that landed where it is not."""
    for path, right in judged.items():
        if not is_text(path) or paths and not any(path == p or is_below(path, p) for p in paths):
            continue  # bytes that are no text are told as a sign that stands for all of them
        result = rows.get(path, "nothing").replace("same", "nothing")
        if result in ("nothing", "landed", "merged", "conflict") and result not in right:
            began = bases.candidates(box.known, box.project, box.up.upper, path)
            raise Difference(f"apply of {box.key}: {path!r} is told as {result}, and should be {' or '.join(sorted(right))}; the user has "
                             f"{box.project.tree.nodes.get(path) or 'nothing'}, the box {box.up.upper.get(path) or 'nothing'}, began with "
                             f"{[b if b is bases.UNKNOWN else (b.node or 'nothing', b.content) for b in began]}")


def apply_and_judge(world, box, guarded, dry, text, paths):
    review(box)
    before, view = {p: n.copy() for p, n in box.project.tree.nodes.items()}, dict(box.up.view())
    flags = [*(["--include-guarded"] if guarded else []), *(["--dry-run"] if dry else []), *([] if text else ["--json"])]
    done = world.verb(box, "apply", *flags, box.name, *(box.project.full(p) for p in paths), expect=(0, 1, 125) if paths else (0, 1))
    after = read_tree(box.project.path, HIDDEN)
    rows = {} if text or done.code == 125 else {r["path"].encode(): r["result"] for r in done.json() if "path" in r}
    counts_agree(world, box, done, rows, text, dry)
    if not text and done.code != 125 and any(r.get("guarded") == "git" for r in done.json()):
        raise Difference(f"apply of {box.key} takes something for a repository, and there is none: {done.text[-600:]}")
    for path in sorted({*before, *after}):
        b, a = before.get(path), after.get(path)
        if a and a.same(b, modes=a.kind == FILE):
            continue
        if dry or done.code == 125:
            raise Difference(f"apply of {box.key} {'--dry-run ' if dry else ''}changed {path!r}")
        judge_path(box, path, b, a, view, rows.get(path))
    judged = {path: bases.allowed(box, path, ours, theirs) for path, ours, theirs in bases.versions(box, before)}
    if not world.strict:
        for right in judged.values():
            right.add("conflict")
    if not text and done.code != 125:
        judge_results(box, judged, rows, paths)
    if done.code == 0 and not paths and not dry and not world.ignore_counts:
        landed_as_told(box, after, rows, judged)
    if not dry:
        bases.agree(box, before, after, paths, {p: r for p, r in rows.items() if is_text(p)}, judged)
    take_over(world, box, before, after)
    return [b.key for b in world.boxes.values() if b.project is box.project and b.mode != "none"]


def counts_agree(world, box, done, rows, text, dry):
    """Rows, counts and exit status are one sum."""
    if done.code == 125 or world.ignore_counts:
        return
    if text:
        said = done.text
        counts = {w: int(n) for n, w in re.findall(r"(\d+) (landed|merged|held|conflict|refused|failed|skipped)s?\b", said.splitlines()[-1] if "held:" not in said else
                                                    [r for r in said.splitlines() if re.match(r"\d+ ", r)][-1])} if re.search(r"^\d+ ", said, re.M) else {}
        told = {}
        for row in said.splitlines():
            m = re.match(r"(landed|merged|held|conflict|refused|failed|skipped) +\S", row)
            if m:
                told[m[1]] = told.get(m[1], 0) + 1
        left = {w: n for w, n in told.items() if w in LEFT}
        for w, n in left.items():
            if counts.get(w, 0) != n and w != "conflict" or (w == "conflict" and not any("conflict" in r and re.match(r"\d", r) for r in said.splitlines())):
                raise Difference(f"apply of {box.key} tells {n} {w}, and counts {counts}: {said[-600:]}")
    else:
        left = {p: r for p, r in rows.items() if r in LEFT}
    if not dry and bool(left) != (done.code == 1):
        raise Difference(f"apply of {box.key} ended with {done.code}, and left {left}")


def take_over(world, box, before, after):
    """The model of what has landed."""
    p = box.project
    world.clock += 1
    for path in {*before, *after}:
        b, a = before.get(path), after.get(path)
        if a and a.same(b):
            continue
        p.past.setdefault(path, []).append(b)
        p.touched[path] = world.clock
        box.seen.setdefault(path, set()).update(a.tokens() if a else ())
        box.landed.add(path)
        for other in world.boxes.values():
            if other.up and other.project is p and other is not box:
                other.stale.add(path)
    world.clock += 1
    p.tree.nodes = after
    # what the box has made is there now too, whether this apply has brought it or another
    for path, node in list(box.up.upper.items()):
        if node.kind == GONE and path not in after or path in after and after[path].same(node, False):
            box.landed.add(path)


def do_discard(world, key, path=None):
    box = review(world.box(key))
    if box.memory:
        raise NotNow("nothing is kept of it")
    state = State(box)
    if path is None:
        if not box.up.upper:
            raise NotNow("nothing to discard")
        world.verb(box, "discard", "-f", box.name)
        box.close_layer(world.tick())
        box.up.upper, box.up.ghosts, box.seen = {}, set(), {}
    else:
        name = path.encode("latin-1")
        if name not in box.up.upper or box.up.hidden(name) or box.up.upper[name].kind == FOLDER or any(s == name or is_below(s, name) for s in box.stale | box.landed):
            raise NotNow("nothing to discard there")
        low = box.project.tree.nodes.get(name)
        if low and low.same(box.up.upper[name]) or not low and box.up.upper[name].kind == GONE:
            raise NotNow("it is as the project has it")
        world.verb(box, "discard", "-f", box.name, box.project.full(name))
        box.close_layer(world.tick())
        box.up.upper.pop(name)
        box.seen.pop(name, None)
        bases.forget(box.known, name)
    world.automatic(box, state)
    world.clock += 1
    if path is None:
        world.begins_anew(box)
        box.landed = set()
    box.restarted()
    return [key]


__all__ = ["apply_and_judge", "do_discard", "FILE", "LINK", "FOLDER", "Tree"]
