# SPDX-License-Identifier: Apache-2.0
"""Folders of boxes that are moved, copied and removed by the user's own hand, and what pale makes of it. Each step leaves all in its place."""
import os
import shutil
import subprocess

from model.tree import FOLDER, Review, Tree, is_below
from model.world import Box, Difference, NotNow, Project, State


def can_adopt(world):
    if "adopt" not in world.verbs:
        raise NotNow("pale has no such verb")


def boxes_of(world, project):
    scope = str(project)
    found = [b for b in world.boxes.values() if b.scope == scope and not b.memory]
    if not found or any(b.memory for b in world.boxes.values() if b.scope == scope):
        raise NotNow("no boxes in that project, or such as keep nothing")
    return found


def ids_of(world, scope):
    there = str(world.projects[int(scope)].path / ".pale")
    return {r["name"]: r["id"] for r in world.run(scope, "ls", "--json").json() if os.path.dirname(r["data"]) == there}


def refused(world, box):
    done = world.verb(box, "exec", "-q", box.name, "--", "true", expect=None)
    if done.code != 125 or not done.errors.strip():
        raise Difference(f"{box.key} is not where it was, and exec ended with {done.code}: {done.errors[-300:]}")


def stop_all(world, boxes):
    for b in boxes:
        now = State(b)
        world.verb(b, "stop", b.name)
        world.automatic(b, now)
        b.restarted()


def do_moved(world, project):
    """The project is moved: its boxes are told as moved, can be adopted, and are what they were; then back."""
    can_adopt(world)
    p, boxes = world.projects[project], boxes_of(world, project)
    home = p.path
    stop_all(world, boxes)
    for path in (home.with_name(home.name + "-moved"), home):
        os.rename(p.path, path)
        p.path = path
        for b in boxes:
            refused(world, b)
            world.verb(b, "adopt", b.name)
            b.restarted()
            world.exec(b)
        if path != home:
            stop_all(world, boxes)
    return [b.key for b in boxes]


def wipe(world, p, how):
    if how == "clean" and p.git:
        world.commit(p)
        world.git(p, "clean", "-fdxq")
        nodes = p.tree.nodes
        for path in [q for q, n in nodes.items() if n.kind == FOLDER and not any(is_below(o, q) and nodes[o].kind != FOLDER for o in nodes)]:
            if path in nodes:
                world.project_now(p, {}, [path])
    else:
        shutil.rmtree(p.path / ".pale")


def do_wiped(world, project, how, then, running=False):
    """.pale is removed: the boxes are told as lost, and are put back, given up, or made again under the same name."""
    can_adopt(world)
    p, boxes = world.projects[project], boxes_of(world, project)
    ids = ids_of(world, str(project))
    if not running:
        stop_all(world, boxes)
    wipe(world, p, how)
    for b in boxes:
        if f"u/{b.name}" not in world.boxes:  # else that is who the name means now
            refused(world, b)
        if running:
            world.verb(b, "stop", ids[b.name])
        if then == "adopt":
            put_back(world, b, ids[b.name])
        elif then == "forget":
            world.verb(b, "forget", "-f", ids[b.name])
            del world.boxes[b.key]
        else:
            made_again(world, b, ids[b.name])
    return [b.key for b in boxes]


def put_back(world, box, number):
    now = State(box)
    world.verb(box, "adopt", number)
    world.automatic(box, now)
    box.restarted()


def made_again(world, old, number):
    """A new box of that name has nothing of the old one, and giving that up takes nothing of the new one."""
    world.verb(old, "create", "--in-project", "--project", "none", old.name)
    world.serial += 1
    box = world.boxes[old.key] = Box(old.key, serial=world.serial)
    world.exec(box)
    world.verb(old, "forget", "-f", number)
    world.exec(box)


def do_copied(world, project, at):
    """A copy of the project has no boxes of its own; one that is adopted there is a fork, and removing it takes nothing from the other."""
    can_adopt(world)
    p, boxes = world.projects[project], boxes_of(world, project)
    box = boxes[at % len(boxes)]
    home = p.path
    copy = Project(project, home.with_name(home.name + "-copy"), p.git)
    copy.tree = Tree({q: n.copy() for q, n in p.tree.nodes.items()})
    subprocess.run(["cp", "-a", home, copy.path], check=True)
    world.projects[project] = copy
    try:
        refused(world, box)
        world.verb(box, "adopt", box.name)
        box.close_layer()
        world.serial += 1
        fork = Box(box.key, project=copy if box.project else None, mode="review" if box.mode == "live" else box.mode, serial=world.serial)
        fork.take(State(box))
        if fork.mode == "review":
            fork.up = review_of(copy, box)
        world.exec(fork)
        world.verb(fork, "rm", "-f", fork.name)
    finally:
        world.projects[project] = p
        subprocess.run(["rm", "-rf", copy.path], check=True)
    return [b.key for b in boxes]


def review_of(project, box):
    return Review(project, {q: n.copy() for q, n in box.up.upper.items()}, box.up.ghosts) if box.up else Review(project)


def do_kept(world, key):
    """Removed but for its files, a box is not taken over by one that is made; adopted, it has them and its snapshots."""
    can_adopt(world)
    box = world.box(key)
    if box.memory or box.up and box.stale:
        raise NotNow("nothing is kept of it")
    flags = ["--project", box.mode, "--project-path", box.project.path] if box.project else ["--project", "none"]
    where = ["--in-project"] if box.scope != "u" else []
    stop_all(world, [box])
    world.verb(box, "rm", "--keep-data", box.name)
    done = world.verb(box, "create", *where, *flags, box.name, expect=None)
    if done.code == 0:
        raise Difference(f"create of {key} took over what was kept of another box")
    world.verb(box, "adopt", *flags, box.name)
    box.autosave, box.born = True, -1
    world.automatic(box, State(box))
    return [key]


STEPS = {"moved": do_moved, "wiped": do_wiped, "copied": do_copied, "kept": do_kept}
