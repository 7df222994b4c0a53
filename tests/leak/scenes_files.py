# SPDX-License-Identifier: Apache-2.0
"""Scenes of the battery about layers, review, snapshots, forks and images. Each returns whether the wall leaked, with a detail."""
import os
import pathlib
import subprocess
import time

from battery import Broken
from harness import cmdline, kill_quietly, processes_of, wait_until
from judges import image, last_word
from scenes import BAD, NASTY, script

REST = 0.1  # longer than the clock of a file system ticks: what is older than the box is known to be
HUGE = 8 << 40


def project(at, *flags):
    """A folder of the host, and a box that changes it for review."""
    path = at.dir / "p"
    path.mkdir(exist_ok=True)
    time.sleep(REST)
    return path, at.box("--project", "review", "--project-path", str(path), *flags)


def inside(at, box, text):
    done = script(at, box, text)
    if done.code:
        raise Broken(f"{text}: {done.errors.strip()[-300:]}")
    return done.text


def told(at, *words):
    """What a verb that must work says."""
    done = at.run(*words)
    if done.code not in (0, 1):
        raise Broken(f"{words[0]}: {done.errors.strip()[-300:]}")
    return done


def data_of(at, box):
    return pathlib.Path(told(at, "inspect", "--json", box).json()["data"])


# --- review and apply ---

def held_back(name, make):
    """What the host would obey is not in the project after an apply without the person's yes."""
    def scene(at):
        path, box = project(at)
        folder = os.path.dirname(name)
        inside(at, box, f"cd {path} && mkdir -p ./{folder} && " + make.format(name=name) + " && echo fine > fine")
        told(at, "apply", box)
        if not (path / "fine").exists():
            raise Broken("nothing landed at all")
        there = os.path.lexists(path / name)
        return there, f"{name} {'landed' if there else 'was held'}"
    return scene


def not_taken(name, take):
    """What the host obeys is still there after an apply of a box that took it away: a whiteout in a layer is a change like any other."""
    def scene(at):
        own = at.dir / "p" / name
        own.parent.mkdir(parents=True)
        own.write_text(at.canary)
        path, box = project(at)
        inside(at, box, f"cd {path} && {take} && echo fine > fine")
        told(at, "apply", box)
        if not (path / "fine").exists():
            raise Broken("nothing landed at all")
        there = own.is_file() and own.read_text() == at.canary
        return not there, f"{name} is {'' if there else 'not '}there"
    return scene


def landing_of_bits(at):
    """With the person's yes, and of a box that could set them."""
    path, box = project(at)
    inside(at, box, f"cd {path} && echo x > s && chmod 6755 s")
    told(at, "apply", "--include-guarded", box)
    mode = (path / "s").stat().st_mode
    return bool(mode & 0o6000), f"{mode:o}"


def landing_on_hard_link(at):
    """A file of the project has a second name outside of it."""
    outside = at.dir / "outside"
    outside.write_text(at.canary)
    (at.dir / "p").mkdir()
    os.link(outside, at.dir / "p" / "in")
    path, box = project(at)
    inside(at, box, f"echo evil > {path}/in")
    told(at, "apply", "--include-guarded", box)
    if (path / "in").read_text() != "evil\n":
        raise Broken("it did not land")
    return outside.read_text() != at.canary, outside.read_text()[:40]


def landing_through_link(at):
    """A folder of the project has become a link that leads out, since the box began."""
    (at.dir / "outside").mkdir()
    (at.dir / "p" / "d").mkdir(parents=True)
    path, box = project(at)
    inside(at, box, f"echo evil > {path}/d/new")
    (path / "d").rmdir()
    (path / "d").symlink_to(at.dir / "outside")
    told(at, "apply", "--include-guarded", box)
    found = os.listdir(at.dir / "outside")
    return bool(found), f"outside are {found}"


def in_time(at, *words):
    """Does a verb end? What waits for ever is ended by us."""
    p = at.start(*words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        p.wait(10 if not at.off else 1.5)
        return False, f"ended with {p.returncode}"
    except subprocess.TimeoutExpired:
        p.kill()
        p.wait()
        return True, "it hangs"


def fifo_in_review(verb):
    """A FIFO where a file was, and one that is new."""
    def scene(at):
        (at.dir / "p").mkdir()
        (at.dir / "p" / "README").write_text("read me\n")
        path, box = project(at)
        inside(at, box, f"cd {path} && rm README && mkfifo README new")
        return in_time(at, *{"diff": ("diff", box), "apply": ("apply", "--include-guarded", box)}[verb])
    return scene


def huge_in_diff(at):
    """Two files of eight terabytes, of which nothing is written down but the last byte."""
    (at.dir / "p").mkdir()
    with open(at.dir / "p" / "huge", "wb") as f:
        f.truncate(HUGE)
    path, box = project(at)
    inside(at, box, f"printf x | dd of={path}/huge bs=1 seek={HUGE - 1} conv=notrunc 2>/dev/null")
    return in_time(at, "diff", "--name-only", box)


def huge_in_snapshot(at):
    """The digest of a layer is made behind the scenes, by the host's processor."""
    box = at.box("--no-autosave")
    inside(at, box, f"truncate -s {HUGE} ~/huge")
    told(at, "snapshot", box, "s")
    done = wait_until(lambda: told(at, "snapshots", "--json", box).json()[0]["state"] == "verified", 10 if not at.off else 1.5)
    for pid in processes_of(at.pale.root):
        if b"snapshot" in cmdline(pid) and box.encode() in cmdline(pid):
            kill_quietly(pid)
    return not done, "it has its digest" if done else "it has none yet"


def printed_changes(verb):
    """Names that hold terminal sequences, in what we say of a box's changes."""
    def scene(at):
        path, box = project(at)
        made = at.run("exec", "-q", "--cwd", str(path), box, "--", "python3", "-c", f"open({'f' + NASTY!r}, 'w').write('x\\n')")
        if made.code:
            raise Broken(made.errors)
        words = {"diff": ("diff", box), "stat": ("diff", "--stat", box), "names": ("diff", "--name-only", box), "diff-json": ("diff", "--json", box),
                 "apply": ("apply", box), "apply-json": ("apply", "--json", box)}[verb]
        done = told(at, *words)
        if b"f" not in done.out:
            raise Broken("the name is not there")
        found = [b for b in BAD if b in done.out + done.err]
        return bool(found), f"{found} in {(done.out + done.err)[:80]!r}"
    return scene


# --- layers ---

def steered(name, value):
    """A control attribute of the overlay, set from inside: does the layer hold it as one?"""
    def scene(at):
        box = at.box()
        done = at.run("exec", "-q", "--cwd", "/", box, "--", at.world.attack, "overlay-xattr", "/home/agent/f", f"user.overlay.{name}", value)
        if "TRIED" not in done.text:
            raise Broken(repr(done)[-400:])
        at.run("stop", box)
        files = list(data_of(at, box).glob("layers/*/home/f"))
        if not files:
            raise Broken("the layer has no such file")
        marks = [m for f in files for m in os.listxattr(f)]
        return f"user.overlay.{name}" in marks, f"{marks} {done.text.splitlines()[0]}"
    return scene


CHANGES = {"write": "echo {canary} > ~/f", "append": "echo {canary} >> ~/f", "add": "echo {canary} > ~/new", "replace": "echo {canary} > ~/g && mv ~/g ~/f",
           "delete": "rm ~/f", "mode": "chmod 751 ~/f", "folder": "rm -r ~/d && mkdir ~/d && echo {canary} > ~/d/new"}
BEFORE = "echo old > ~/f && mkdir ~/d && echo old > ~/d/old"
LOOK = "ls -R ~; cat ~/f ~/d/*; stat -c %a ~/f; echo seen"


def change(at, box, how):
    """May fail only where a defence is off and another holds."""
    done = script(at, box, CHANGES[how].format(canary=at.canary))
    if done.code and (done.code >= 125 or not at.off):
        raise Broken(repr(done)[-400:])


def fork_changes(how, seen_by):
    """What a fork does to what it shares, as its sibling, its parent or the next fork sees it."""
    def scene(at):
        box = at.box()
        names = [f"{box}{x}" for x in "xyz"]
        inside(at, box, BEFORE)
        told(at, "snapshot", box, "s")
        for name in names[:2]:
            told(at, "fork", "--at", "s", box, name)
            at.undo.append(lambda name=name: at.run("rm", "-f", "--global", name))
        other = {"sibling": names[1], "parent": box, "next": names[2]}[seen_by]
        first = inside(at, names[1], LOOK)
        change(at, names[0], how)
        if seen_by == "next":
            told(at, "fork", "--at", "s", box, other)
            at.undo.append(lambda: at.run("rm", "-f", "--global", other))
        after = inside(at, other, LOOK)
        return after != first, f"{after!r}"
    return scene


def kept_snapshot(how):
    """What a box does after a snapshot is not in the snapshot."""
    def scene(at):
        box = at.box()
        inside(at, box, BEFORE)
        told(at, "snapshot", box, "s")
        first = inside(at, box, LOOK)
        change(at, box, how)
        told(at, "restore", box, "s")
        after = inside(at, box, LOOK)
        return after != first, f"{after!r}"
    return scene


def poisoned(how):
    """An open layer got what no box can make, and was closed and inspected. Is a box started on it?"""
    def scene(at):
        box = at.box()
        inside(at, box, "echo old > ~/f && mkdir ~/d")
        home = next(p.parent for p in data_of(at, box).glob("layers/*/home/f"))
        {"redirect": lambda: os.setxattr(home / "d", "user.overlay.redirect", b"/etc"), "metacopy": lambda: os.setxattr(home / "f", "user.overlay.metacopy", b""),
         "unknown-mark": lambda: os.setxattr(home / "d", "user.overlay.whatever", b"y"), "setuid": lambda: (home / "f").chmod(0o4755),
         "setgid": lambda: (home / "f").chmod(0o2755), "device": lambda: os.mknod(home / "n", 0o020666, os.makedev(1, 3)),
         "capability": lambda: os.setxattr(home / "f", "security.capability", bytes.fromhex("0100000200200000000000000000000000000000"))}[how]()
        at.run("stop", box)  # with a snapshot, which is inspected behind the scenes
        if not wait_until(lambda: told(at, "snapshots", "--json", box).json()[0]["state"] in ("verified", "poisoned"), 10):
            raise Broken("nobody has inspected it")
        done = script(at, box, "echo it runs")
        if done.code not in (0, 125):
            raise Broken(repr(done)[-400:])
        return done.code == 0, done.errors.strip()[:150] or done.text
    return scene


# --- images ---

def image_written(path):
    """Does what a command writes in its root reach the image?"""
    def scene(at):
        name, root = image(at)
        target = root / path[1:]
        before = target.read_text() if target.exists() else None
        done = at.attack(flags=("--image", name), words=("write", path))
        if "LEAK" not in done.text:
            raise Broken(repr(done)[-400:])
        after = target.read_text() if target.exists() else None
        if before == after and not at.off and at.run("image", "verify", name).code:
            return True, "the image is not what its digest says"
        return before != after, f"{path}: {after}"
    return scene


def image_between_boxes(at):
    name, _ = image(at)
    wrote = at.attack(flags=("--image", name), words=("write", "/left", "left-" + at.canary))
    if "LEAK" not in wrote.text:
        raise Broken(repr(wrote)[-400:])
    done = at.attack(flags=("--image", name), words=("print", "/left"))
    if not last_word(done):
        raise Broken(repr(done)[-400:])
    return "left-" + at.canary in done.text, last_word(done)


def image_link(link):
    """An image has a link where a folder is made or mounted over; it leads to a folder of the host."""
    def scene(at):
        victim = at.dir / "victim"
        victim.mkdir()
        victim.chmod(0o777)
        name, _ = image(at, **{link: str(victim)})
        done = at.attack(flags=("--image", name), words=("say", "it runs"))
        made = os.listdir(victim)
        return bool(made) or "LEAK" in done.text, f"made {made}; {done.errors.strip()[:150]}"
    return scene
