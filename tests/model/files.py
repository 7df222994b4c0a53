# SPDX-License-Identifier: Apache-2.0
"""Writes of every kind: what they make of the model, and the words by which the box does the same. A step names lines and files and not
content, so that it still means something when steps before it are left out."""
from model.tree import FILE, FOLDER, GONE, LINK, Node, Review, Tree, is_below

HOLE = 1 << 17


def raw(path):
    return path.encode("latin-1")


def lines(token, path, count):
    return b"".join(b"%s%s %d\n" % (token, path[-8:], i) for i in range(count))


def edited(data, line, token):
    """One line is another."""
    rows = data.splitlines(keepends=True) or [b""]
    rows[line % len(rows)] = token + b"edit\n"
    return b"".join(rows)


def parent_is_folder(view, path):
    above = path.rpartition(b"/")[0]
    return not above or (above in view and view[above].kind == FOLDER)


def own(fs, view, path):
    """The node of a file that is about to be written in place: over a project, a copy of what lies below."""
    if isinstance(fs, Review) and path not in fs.upper:
        fs.put(path, view[path].copy())
        return fs.upper[path]
    return view[path]


def write_data(fs, view, path, data):
    if path in view and view[path].kind == FILE:
        own(fs, view, path).data = data
    else:
        if path in view:
            fs.drop(path)
        fs.put(path, Node(FILE, 0o644, data))


def do_create(fs, view, path, data):
    if path in view and view[path].kind == FOLDER:
        return None
    write_data(fs, view, path, data)
    return ("create", data)


def op_create(fs, view, path, token, count):
    return do_create(fs, view, path, lines(token, path, count))


def op_edit(fs, view, path, token, line):
    if path not in view or view[path].kind != FILE:
        return None
    return do_create(fs, view, path, edited(view[path].data, line, token))


def op_append(fs, view, path, token):
    if path not in view or view[path].kind != FILE:
        return None
    data = token + b"more\n"
    node = own(fs, view, path)
    node.data += data
    return ("append", data)


def op_replace(fs, view, path, token, line):
    """As editors do: another file under the old name."""
    if path not in view or view[path].kind != FILE or path + b".new~" in view:
        return None
    data = edited(view[path].data, line, token)
    fs.drop(path)
    fs.put(path, Node(FILE, 0o644, data))
    return ("replace", data)


def op_cut(fs, view, path, size):
    if path not in view or view[path].kind != FILE:
        return None
    node = own(fs, view, path)
    node.data = node.data[:size] + b"\0" * (size - len(node.data))
    return ("cut", size)


def op_hole(fs, view, path, token):
    if path in view and view[path].kind != FILE:
        return None
    write_data(fs, view, path, b"\0" * HOLE + token)
    return ("hole", HOLE, token)


def op_del(fs, view, path):
    if path not in view:
        return None
    fs.drop(path)
    return ("del",)


def op_mkdir(fs, view, path):
    if path in view:
        return None
    fs.put(path, Node(FOLDER, 0o755))
    return ("mkdir",)


def op_rmdir(fs, view, path):
    if path not in view or view[path].kind != FOLDER or any(is_below(p, path) for p in view):
        return None
    fs.drop(path)
    return ("rmdir",)


def op_mv(fs, view, path, to):
    to = raw(to)
    node, there = view.get(path), view.get(to)
    if not node or to == path or is_below(to, path) or is_below(path, to) or not parent_is_folder(view, to) or node is there:
        return None
    if there and (there.kind == FOLDER or node.kind == FOLDER):
        return None
    moved = {p: n for p, n in view.items() if p == path or is_below(p, path)}
    if node.kind == FOLDER and any(n.names > 1 for n in moved.values()):
        return None
    if there:
        fs.drop(to)
    # what the project itself has stays as it is; the box's own nodes go along
    own_nodes = {p: n.copy() if isinstance(fs, Review) and p not in fs.upper else n for p, n in moved.items()}
    names = {p: n.names for p, n in own_nodes.items()}
    fs.drop(path)
    for p in sorted(own_nodes):
        own_nodes[p].names = names[p]
        fs.put(to + p[len(path):], own_nodes[p])
    return ("mv", to)


def op_symlink(fs, view, path, token):
    if path in view:
        return None
    fs.put(path, Node(LINK, 0o777, token + b"nowhere"))
    return ("symlink", token + b"nowhere")


def op_link(fs, view, path, to):
    to = raw(to)
    if path not in view or view[path].kind != FILE or to in view or not parent_is_folder(view, to):
        return None
    node = own(fs, view, path)
    fs.put(to, node)
    node.names += 1
    return ("link", to)


def op_chmod(fs, view, path, mode):
    if path not in view or view[path].kind == LINK:
        return None
    if view[path].kind == FOLDER:
        if isinstance(fs, Review):
            return None
        mode = 0o755 if mode & 0o11 else 0o700
    own(fs, view, path).mode = mode
    return ("chmod", mode)


OPS = {name[3:]: f for name, f in globals().items() if name.startswith("op_")}
TARGETS = {"mv", "link"}  # their next word is a path too
TOKENS = {"create", "edit", "append", "replace", "hole", "symlink"}


def near(path, others):
    return any(path == o or is_below(path, o) or is_below(o, path) for o in others)


def may(box, place, fs, paths):
    """In a project that the host changed under a running box it is open what the box sees there: that is left alone until it starts again."""
    if isinstance(fs, Review):
        nodes = box.project.tree.nodes
        open_still = [p for p in box.landed if p in fs.upper and not (p in nodes and nodes[p].same(fs.upper[p], False)) and not (p not in nodes and fs.upper[p].kind == GONE)]
        return not box.stale and not any(near(p, open_still) for p in paths)
    return fs is not None and (place != "project" or box.mode == "live")


def play(world, box, ops):
    """Each op [what, place, path, word …] that is possible now, on the model; what the box is to be told."""
    said = []
    tops = {"home": b"/home/agent/", "tmp": b"/tmp/", "project": str(box.project.path).encode() + b"/" if box.project else b""}
    for what, place, path, *args in ops:
        fs, path = box.fs(place), raw(path)
        paths = [path, raw(args[0])] if what in TARGETS else [path]
        if not may(box, place, fs, paths):
            continue
        view = fs.view()
        if not parent_is_folder(view, path):
            continue
        if isinstance(fs, Review):
            for p in paths:
                world.see(box, p)
        shared = place == "project" and box.mode == "live"
        before = dict(view) if shared else None
        if what in TOKENS:
            world.clock += 1
            args = [b"b%d_%d." % (box.serial, world.clock), *args]
        old = {p: n.copy() for p, n in before.items()} if shared else None
        done = OPS[what](fs, view, path, *args)
        if not done:
            continue
        if shared:
            world.live_wrote(box.project, old)
        if isinstance(fs, Review):
            for p in paths:
                world.see(box, p)
        word, *more = done
        top = tops[place]
        if word in TARGETS:
            more = [top + more[0]]
        said.append((word, top + path, *more))
    return said


__all__ = ["OPS", "TARGETS", "Tree", "play", "raw"]
