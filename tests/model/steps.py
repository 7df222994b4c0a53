# SPDX-License-Identifier: Apache-2.0
"""What a step does to the boxes and to the model of them. Each is a function of the world and of the words of the step; one that makes no
sense where the sequence has come to raises NotNow, so that others can be left out before it."""
import os
import shutil

from model import files, places
from model.bases import Knowledge, exported, imported
from model.landing import apply_and_judge, do_discard
from model.tree import FILE, FOLDER, LINK, Node, Review, Tree, above
from model.world import Box, Difference, NotNow, State


def free(world, key):
    if key in world.boxes:
        raise NotNow(f"{key} is there")


def new_box(world, key, **more):
    world.serial += 1
    box = world.boxes[key] = Box(key, serial=world.serial, **more)
    world.begins_anew(box)
    return box


def live_in(world, project):
    return [b for b in world.boxes.values() if b.mode == "live" and b.project is project]


def do_create(world, key, mode, project, autosave=True, memory=False):
    """One that is there already is refused, and with --ensure is as it was."""
    scope, name = key.split("/")
    p = world.projects[project] if mode != "none" else None
    flags = [] if autosave else ["--no-autosave"]
    flags += ["--scratch", "memory"] if memory else []
    flags += ["--in-project"] if scope != "u" else []
    flags += ["--project", mode, "--project-path", p.path] if p else ["--project", "none"]
    if key in world.boxes:
        done = world.run(scope, "create", *flags, name, expect=None)
        if done.code == 0:
            raise Difference(f"create of {key}, which is there, said that it was made")
        return [key]
    if mode == "live" and live_in(world, p):
        raise NotNow("one live box in a project")
    if scope != "u" and not os.path.exists(world.projects[int(scope)].path / ".pale"):
        quiet_guards(world, world.projects[int(scope)])
    world.run(scope, "create", *flags, name)
    new_box(world, key, project=p, mode=mode, autosave=autosave, memory=memory)
    return [key]


def quiet_guards(world, project):
    """The guard of a live box that is busy takes what the host would obey for the box's own, and away: such is made beside no box that is up."""
    for b in live_in(world, project):
        if b.running:
            do_stop(world, b.key)


def do_write(world, key, ops):
    box = world.box(key)
    said = files.play(world, box, ops)
    world.exec(box, said)
    return [b.key for b in live_in(world, box.project)] if box.project else []


def durable(world, key):
    box = world.box(key)
    if box.memory:
        raise NotNow("nothing is kept of it")
    return box


def do_snapshot(world, key, name):
    box = durable(world, key)
    if name in box.snaps:
        raise NotNow("that snapshot is there")
    world.verb(box, "snapshot", box.name, name)
    box.close_layer(world.tick())
    box.snaps[name] = State(box)
    return [key]


def do_restore(world, key, name):
    box = durable(world, key)
    if name not in box.snaps:
        raise NotNow("no such snapshot")
    state, now = box.snaps[name], State(box)
    world.verb(box, "restore", "-f", box.name, name)
    world.automatic(box, now)
    box.take(state)
    box.known.opened = world.tick()
    box.restarted()
    return [key]


def do_fork(world, key, name, number=1, at=None):
    box = durable(world, key)
    keys = [f"{box.scope}/{name}"] if number == 1 else [f"{box.scope}/{name}-{i + 1}" for i in range(number)]
    if any(k in world.boxes for k in keys):
        return do_fork_refused(world, box, name, number, keys)
    if at and at not in box.snaps:
        raise NotNow("no such snapshot")
    state = box.snaps[at] if at else State(box)
    world.verb(box, "fork", *(["--at", at] if at else []), *(["-n", number] if number > 1 else []), box.name, name)
    if not at:
        box.close_layer(world.tick())
    for k in keys:
        f = new_box(world, k, project=box.project, mode="review" if box.mode == "live" else box.mode, autosave=box.autosave)
        f.take(state)
        f.running = False
        f.landed = set(box.landed)
        f.known.opened = world.tick()
        if f.mode == "review" and not f.up:
            f.up = Review(box.project)
            world.begins_anew(f)
    return [key, *keys]


def do_fork_refused(world, box, name, number, keys):
    """Over a box that is there: an error, and nothing is another."""
    done = world.verb(box, "fork", *(["-n", number] if number > 1 else []), box.name, name, expect=None)
    box.close_layer(world.tick())
    if done.code == 0:
        raise Difference(f"fork of {box.key} made {keys}, of which one was there")
    return [box.key, *[k for k in keys if k in world.boxes]]


def do_rename(world, key, name):
    box = world.box(key)
    free(world, f"{box.scope}/{name}")
    do_stop(world, key)
    world.verb(box, "rename", box.name, name)
    del world.boxes[key]
    box.key, box.name = f"{box.scope}/{name}", name
    world.boxes[box.key] = box
    return [box.key]


def do_rm(world, key):
    box = world.box(key)
    world.verb(box, "rm", "-f", box.name)
    del world.boxes[key]
    return []


def do_stop(world, key):
    box = world.box(key)
    now = State(box)
    world.verb(box, "stop", box.name)
    if box.memory:
        box.home, box.tmp, box.seen = Tree(), Tree(), {}
        box.up = Review(box.project) if box.up else None
    else:
        world.automatic(box, now)
    box.running = False
    box.restarted()
    return [key]


def do_kill(world, key):
    box = world.box(key)
    if box.memory:
        raise NotNow("nothing is kept of it")
    world.kill_keeper(box)
    box.restarted()
    return [key]


def do_freeze(world, key):
    box = world.box(key)
    world.exec(box)
    world.verb(box, "freeze", box.name)
    done = world.verb(box, "exec", "-q", box.name, "--", "true", expect=None)
    if done.code == 0:
        raise Difference(f"{key} is frozen, and a command ran in it")
    world.verb(box, "thaw", box.name)
    return [key]


def do_gc(world):
    world.run("u", "gc")
    return list(world.boxes)


def do_export(world, key, name, at=None):
    box = durable(world, key)
    if at and at not in box.snaps:
        raise NotNow("no such snapshot")
    state = box.snaps[at] if at else State(box)
    path = world.pale.root / f"{name}.tar"
    world.verb(box, "export", "--plain", "-f", *(["--at", at] if at else []), "-o", path, box.name)
    if not at:
        box.close_layer(world.tick())
    kept = state if at else State(box)
    world.exports[name] = (path, box.mode, box.project, trimmed(kept))
    return [key]


class Kept:
    """State without the world's own: of what an export carries."""


def trimmed(state):
    """What hides nothing is not told by an export: deletions of what the project has not."""
    k = Kept()
    k.home, k.tmp = state.home.copy(), state.tmp.copy()
    k.up = state.up.copy() if state.up else None
    k.seen = {p: set(t) for p, t in state.seen.items()}
    k.known = exported(state.known, k.up.project, k.up.upper) if k.up else Knowledge()
    if k.up:
        nodes = k.up.project.tree.nodes
        for p in [p for p, n in k.up.upper.items() if n.kind == "w" and p not in nodes]:
            del k.up.upper[p]
    return k


def do_import(world, name, key, project):
    if name not in world.exports:
        raise NotNow("no such export")
    free(world, key)
    path, mode, of, state = world.exports[name]
    scope, new = key.split("/")
    p = world.projects[project] if mode != "none" else None
    if mode == "live":
        mode = "review"
    world.run(scope, "import", *(["--project-path", p.path] if p else []), path, new)
    box = new_box(world, key, project=p, mode=mode)
    box.take(state)
    box.running = False
    if mode == "review":
        box.up = Review(p, fitting(p, box.up.upper) if box.up else {}, box.up.ghosts if box.up else ())
        box.known = imported(state.known, p, world.tick())
        if p is not of:
            box.seen = {}
    box.snaps["imported"] = State(box)
    return [key]


def fitting(project, upper):
    """Folders that the project has not are the box's own there."""
    return {p: n.copy() for p, n in upper.items()}


def do_diff(world, key):
    box = durable(world, key)
    done = world.verb(box, "diff", "--json", box.name)
    if not box.up or box.stale or box.landed:
        return []
    low, view = box.project.tree.nodes, box.up.view()
    wanted = sorted(p.decode() for p in {*low, *view} if not (p in low and p in view and low[p].same(view[p])) and plain(p) and
                    FOLDER not in (low[p].kind if p in low else "", view[p].kind if p in view else ""))
    told = sorted(r["path"] for r in done.json() if "path" in r and "folder" not in (r.get("is", {}).get("kind"), r.get("was", {}).get("kind")))
    told = [t for t in told if plain(t.encode())]
    if told != wanted:
        raise Difference(f"pale diff {key} tells {told}, and should {wanted}")
    return []


def plain(path):
    return path.isascii() and path.decode().isprintable()


def do_copy_in(world, key, path, tree):
    """A file or a small tree of the host, into the box's home."""
    box = world.box(key)
    name = files.raw(path)
    if name in box.home.nodes or not files.parent_is_folder(box.home.nodes, name):
        raise NotNow("something is there")
    world.clock += 1
    data = b"u9_%d.copied\n" % world.clock
    src = world.pale.root / f"copy{world.clock}"
    if tree:
        src.mkdir(0o755)
        (src / "in").mkdir(0o755)
        (src / "in" / "f").write_bytes(data)
        os.chmod(src / "in" / "f", 0o640)
        os.symlink("in/f", src / "l")
        made = {b"": Node(FOLDER, 0o755), b"/in": Node(FOLDER, 0o755), b"/in/f": Node(FILE, 0o640, data), b"/l": Node(LINK, 0o777, b"in/f")}
    else:
        src.write_bytes(data)
        os.chmod(src, 0o600)
        made = {b"": Node(FILE, 0o600, data)}
    world.verb(box, "cp", src, os.fsencode(box.name) + b":/home/agent/" + name)
    for p, node in made.items():
        box.home.put(name + p, node)
    shutil.rmtree(src) if tree else src.unlink()
    return [key]


def do_copy_out(world, key, path):
    box = world.box(key)
    node = box.home.nodes.get(files.raw(path))
    if not node or node.kind != FILE:
        raise NotNow("no such file")
    dst = world.pale.root / f"out{world.clock}"
    dst.unlink(missing_ok=True)
    world.verb(box, "cp", os.fsencode(box.name) + b":/home/agent/" + files.raw(path), dst)
    data = dst.read_bytes()
    dst.unlink()
    if data != node.data:
        raise Difference(f"cp of {path!r} out of {key} is {data[:200]!r}, and should be {node.data[:200]!r}")
    return [key]


def do_file(world, key, what, path, to=None):
    """The verbs that change files without a command in the box."""
    box = world.box(key)
    name, view = files.raw(path), box.home.nodes
    full = b"/home/agent/" + name
    if not files.parent_is_folder(view, name):
        raise NotNow("no folder")
    if what == "write" and not (name in view and view[name].kind == FOLDER):
        world.clock += 1
        data = b"u8_%d.written\n" % world.clock
        mode = view[name].mode if name in view and view[name].kind == FILE else 0o644
        world.verb(box, "write", box.name, full, input=data)
        if name in view:
            box.home.drop(name)
        box.home.put(name, Node(FILE, mode, data))
    elif what == "mkdir" and name not in view:
        world.verb(box, "mkdir", box.name, full)
        box.home.put(name, Node(FOLDER, 0o755))
    elif what == "del" and name in view:
        world.verb(box, "del", "--tree", box.name, full)
        box.home.drop(name)
    else:
        raise NotNow("not here")
    return [key]


# --- the user's own hand ---

def do_host(world, project, what, path, line=0, to=None):
    p, name = world.projects[project], files.raw(path)
    view = p.tree.nodes
    if not files.parent_is_folder(view, name):
        raise NotNow("no folder")
    if b".envrc" in (name, files.raw(to or "")):
        quiet_guards(world, p)
    world.clock += 1
    token = b"u%d_%d." % (project, world.clock)
    node = view.get(name)
    if what == "edit" and node and node.kind == FILE:
        world.on_host(p, name, Node(FILE, node.mode, files.edited(node.data, line, token)))
    elif what == "rewrite" and node and node.kind == FILE:
        with open(p.full(name), "r+b") as f:  # in place: the same inode
            f.truncate(0)
            f.write(files.edited(node.data, line, token))
        made = Node(FILE, node.mode, files.edited(node.data, line, token))
        world.project_now(p, {q: made for q, n in view.items() if n is node}, [])
    elif what == "make" and not (node and node.kind == FOLDER):
        world.on_host(p, name, Node(FILE, 0o644, files.lines(token, name, 3)))
    elif what == "folder" and not node:
        world.on_host(p, name, Node(FOLDER, 0o755))
    elif what == "link" and not node:
        world.on_host(p, name, Node(LINK, 0o777, token + b"x"))
    elif what == "del" and node:
        world.on_host(p, name, None)
    elif what == "mv" and node and node.kind == FILE and files.parent_is_folder(view, files.raw(to)) and files.raw(to) not in view:
        os.rename(p.full(name), p.full(files.raw(to)))
        world.project_now(p, {files.raw(to): node.copy()}, [name])
    else:
        raise NotNow("not here")
    return [b.key for b in live_in(world, p)]


def do_commit(world, project):
    p = world.projects[project]
    if not p.git:
        raise NotNow("no repository")
    world.commit(p)
    return []


def do_side(world, project):
    """Somebody else begins to work from here."""
    p = world.projects[project]
    if not p.git:
        raise NotNow("no repository")
    world.commit(p)
    world.git(p, "branch", "-f", "side")
    p.side = {n: t.copy() for n, t in p.tree.nodes.items()}
    return []


def do_merge(world, project, path, line):
    """What somebody else has done is pulled in: a line of a file that is as it was then, or a new file."""
    p, name = world.projects[project], files.raw(path)
    if not p.git or p.side is None:
        raise NotNow("no other branch")
    then, now = p.side.get(name), p.tree.nodes.get(name)
    if any(a not in p.side or p.side[a].kind != FOLDER or a not in p.tree.nodes or p.tree.nodes[a].kind != FOLDER for a in above(name)):
        raise NotNow("no such folder on both sides")
    world.clock += 1
    token = b"u%d_%d." % (project, world.clock)
    if then and now and then.kind == FILE and now.same(then):
        made = Node(FILE, then.mode, files.edited(then.data, line, token))
    elif not then and not now:
        made = Node(FILE, 0o644, files.lines(token, name, 3))
    else:
        raise NotNow("it would conflict")
    world.commit(p)
    index = os.fsencode(p.path / ".git" / "side-index")
    env = {**world.env, "GIT_INDEX_FILE": os.fsdecode(index)}
    git = lambda *args, data=None: __import__("subprocess").run(["git", *args], cwd=p.path, env=env, input=data, capture_output=True, check=True).stdout.strip()
    blob = git("hash-object", "-w", "--stdin", data=made.data)
    git("read-tree", "side")
    mode = b"100755" if made.mode & 0o100 else b"100644"
    git("update-index", "--add", "--cacheinfo", mode + b"," + blob + b"," + name)
    tree = git("write-tree")
    commit = git("commit-tree", tree, "-p", "side", "-m", "other")
    os.unlink(index)
    world.git(p, "merge", "-q", "-m", "merge", commit.decode())
    made.mode = os.stat(p.full(name)).st_mode & 0o777
    world.project_now(p, {name: made}, [])
    world.indexed(p)
    p.side = None
    return [b.key for b in live_in(world, p)]


def do_apply(world, key, guarded=False, dry=False, text=False, paths=()):
    if guarded and world.box(key).up:
        quiet_guards(world, world.box(key).project)
    return apply_and_judge(world, world.box(key), guarded, dry, text, [files.raw(p) for p in paths])


STEPS = {"create": do_create, "write": do_write, "snapshot": do_snapshot, "restore": do_restore, "fork": do_fork, "rename": do_rename, "rm": do_rm,
         "stop": do_stop, "kill": do_kill, "freeze": do_freeze, "gc": do_gc, "export": do_export, "import": do_import, "diff": do_diff,
         "copy-in": do_copy_in, "copy-out": do_copy_out, "file": do_file, "host": do_host, "commit": do_commit, "side": do_side, "merge": do_merge,
         "apply": do_apply, "discard": do_discard, **places.STEPS}


def perform(world, step):
    """Does one; False if it makes no sense now."""
    words = dict(step)
    try:
        touched = STEPS[words.pop("do")](world, **{k.replace("-", "_"): v for k, v in words.items()})
    except NotNow:
        return False
    world.check(touched)
    return True
