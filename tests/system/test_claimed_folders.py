# SPDX-License-Identifier: Apache-2.0
"""No two boxes share a writable folder, by whatever name, runtime folder, state folder or user; what is pale's own is given to nobody."""
import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

import pytest

import harness
from harness import REAL_ROOT, wait_until

SHARED = "no two boxes share a writable folder"


def elsewhere(pale, *which):
    """The same user with other XDG folders."""
    other = harness.Pale(pale.root, pale.build, pale.wrap)
    for name in which:
        path = pale.root / f"other-{name.lower()}"
        path.mkdir(mode=0o700, exist_ok=True)
        other.env[f"XDG_{name}"] = str(path)
    return other


@contextlib.contextmanager
def held(pale, folder, kind="once", name="holder"):
    """A living box that may write the folder."""
    if kind == "once":
        p = pale.start("run", "-q", "--cwd", "/", "--write", folder, "--", "sh", "-c", "echo up; sleep 100")
        try:
            line = p.stdout.readline()
            assert line == b"up\n", p.stderr.read()
            yield
        finally:
            p.kill()
            p.wait()
            assert free(pale, folder) or not folder.exists()
        return
    pale.ok("create", name, *{"write": ("--write", folder), "volume": ("--volume", f"{folder}:/mnt/v"),
                              "project": ("--project", "live", "--project-path", folder)}[kind])
    try:
        pale.ok("exec", name, "--", "true")
        yield
    finally:
        pale.ok("rm", name)


def asked(pale, folder):
    return pale.run("run", "-q", "--cwd", "/", "--volume", f"{folder}:/mnt/v", "--", "true")


def free(pale, folder):
    """A one-shot box takes a moment to end when its client was killed."""
    return wait_until(lambda: asked(pale, folder).code == 0)


def judge(wall, done, word=SHARED):
    wall.judge(done.code == 0, repr(done))
    if done.code:
        assert done.code == 125 and word in done.errors, done


def mv(a, b):
    os.rename(a, b)


@pytest.fixture
def tree(hostdir):
    """top/mid/low, and an empty folder beside it on the same file system."""
    (hostdir / "top/mid/low").mkdir(parents=True)
    (hostdir / "beside").mkdir()
    return hostdir


WANTED = {"same": "top/mid", "below": "top/mid/low", "above": "top"}
KINDS = ("once", "write", "volume", "project")


@pytest.mark.weaken("claims")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("how", WANTED)
def test_one_folder_has_one_writer(wall, tree, kind, how):
    with held(wall.pale, tree / "top/mid", kind):
        judge(wall, asked(wall.pale, tree / WANTED[how]))
    assert free(wall.pale, tree / WANTED[how])


@pytest.mark.weaken("claims")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("moved", ("itself", "parent"))
@pytest.mark.parametrize("how", ("same", "below", "above"))
def test_a_folder_that_moves_stays_claimed(wall, tree, kind, moved, how):
    with held(wall.pale, tree / "top/mid", kind):
        if moved == "itself":
            mv(tree / "top/mid", tree / "beside/new")
            now = tree / "beside/new"
        else:
            mv(tree / "top", tree / "beside/new")
            now = tree / "beside/new/mid"
        judge(wall, asked(wall.pale, {"same": now, "below": now / "low", "above": tree / "beside"}[how]))
        assert asked(wall.pale, tree / "beside").code == (0 if wall.weakened else 125)
    assert free(wall.pale, now)


@pytest.mark.weaken("claim-moved")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("trick", ("none", "symlink", "anew", "other-runtime"))
def test_the_folder_that_holds_it_now_is_refused(wall, tree, kind, trick):
    """Marks were set where it was: who has it is asked where it is."""
    starter = elsewhere(wall.pale, "RUNTIME_DIR") if trick == "other-runtime" else wall.pale
    starter.env.update({k: v for k, v in wall.pale.env.items() if k == "PALE_WEAKEN"})
    if trick == "other-runtime" and kind == "once":
        pytest.skip("a one-shot box is asked by those of its runtime folder alone")
    with held(wall.pale, tree / "top/mid", kind):
        mv(tree / "top", tree / "beside/new")
        want = tree / "beside"
        if trick == "symlink":
            os.symlink(tree / "beside/new", tree / "top")
        elif trick == "anew":  # its path leads to it again, but what is above is another folder
            (tree / "top").mkdir()
            mv(tree / "beside/new/mid", tree / "top/mid")
            want = tree / "top"
        judge(wall, asked(starter, want))


@pytest.mark.parametrize("kind", KINDS)
def test_a_deleted_folder_blocks_nobody(pale, tree, kind):
    with held(pale, tree / "top/mid", kind):
        shutil.rmtree(tree / "top/mid")
        for path in ("top", "beside"):
            assert asked(pale, tree / path).code == 0
        (tree / "top/mid/low").mkdir(parents=True)
        for path in WANTED.values():
            assert asked(pale, tree / path).code == 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_moved_folder_blocks_only_those_that_hold_it(pale, tree, kind):
    with held(pale, tree / "top/mid", kind):
        mv(tree / "top/mid", tree / "beside/new")
        assert asked(pale, tree / "top").code == 0
        done = asked(pale, tree / "beside")
        assert done.code == 125 and ("holder" in done.errors or kind == "once") and "pale stop" in done.errors, done


@pytest.mark.weaken("claim-marks")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("which", (("RUNTIME_DIR",), ("RUNTIME_DIR", "STATE_HOME", "DATA_HOME"), ("STATE_HOME", "DATA_HOME")), ids="-".join)
@pytest.mark.parametrize("how", WANTED)
def test_other_xdg_folders_make_no_difference(wall, tree, kind, which, how):
    other = elsewhere(wall.pale, *which)
    other.env.update({k: v for k, v in wall.pale.env.items() if k == "PALE_WEAKEN"})
    if which[0] != "RUNTIME_DIR" and wall.weakened:
        pytest.skip("of one runtime folder the records tell too")
    with held(wall.pale, tree / "top/mid", kind):
        done = asked(other, tree / WANTED[how])
        judge(wall, done)
        if not wall.weakened and kind != "once":
            assert "holder" in done.errors, done
    assert free(other, tree / WANTED[how])


def test_two_at_once_never_both_have_it(pale, tree):
    other = elsewhere(pale, "RUNTIME_DIR")
    for i in range(8):
        words = "run", "-q", "--cwd", "/", "--write", tree / "top" / ("mid" if i % 2 else "."), "--", "sh", "-c", "echo up; sleep 100"
        both = [p.start(*words) for p in (pale, other)]
        said = [p.stdout.readline() for p in both]
        for p in both:
            p.kill()
            p.wait()
        assert said != [b"up\n", b"up\n"]
        assert free(pale, tree / "top/mid") and free(other, tree / "top/mid")


@pytest.mark.weaken("claims")
def test_a_file_has_one_writer(wall, tree):
    (tree / "top/f").write_text("x")
    os.link(tree / "top/f", tree / "top/mid/g")
    with held(wall.pale, tree / "top/f"):
        for path in ("top/f", "top", "top/mid/g"):
            judge(wall, asked(wall.pale, tree / path))


@pytest.mark.weaken("claim-marks")
def test_a_file_of_another_runtime_folder(wall, tree):
    (tree / "top/f").write_text("x")
    other = elsewhere(wall.pale, "RUNTIME_DIR")
    other.env.update({k: v for k, v in wall.pale.env.items() if k == "PALE_WEAKEN"})
    with held(wall.pale, tree / "top/f"):
        for path in ("top/f", "top"):
            judge(wall, asked(other, tree / path))
        assert asked(other, tree / "top/mid").code == 0


def test_marks_are_in_nobodys_way(pale, tree):
    """Programs that lock files and folders as they always did."""
    (tree / "top/mid/f").write_text("x")
    script = ("import fcntl, os; d = os.open('.', os.O_RDONLY); fcntl.flock(d, fcntl.LOCK_EX | fcntl.LOCK_NB); f = open('f', 'r+');"
              "fcntl.lockf(f, fcntl.LOCK_EX | fcntl.LOCK_NB); fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB); print('all')")
    with held(pale, tree / "top/mid"):
        done = subprocess.run(["python3", "-c", script], cwd=tree / "top/mid", capture_output=True, text=True)
        assert done.stdout == "all\n", done
    with held(pale, tree / "top/mid/f"):
        done = subprocess.run(["python3", "-c", script], cwd=tree / "top/mid", capture_output=True, text=True)
        assert done.stdout == "all\n", done
    done = pale.run("run", "-q", "--write", tree / "top/mid", "--cwd", tree / "top/mid", "--", "python3", "-c", script, expect=0)
    assert done.text == "all\n"


def test_who_has_locked_a_folder_is_named(pale, tree):
    """A program that locks what it can read keeps boxes out as long as it lives; the message says which."""
    script = "import fcntl, os, sys; d = os.open('.', os.O_RDONLY); fcntl.lockf(d, fcntl.LOCK_SH | fcntl.LOCK_NB); print('up', flush=True); sys.stdin.read()"
    p = subprocess.Popen(["python3", "-c", script], cwd=tree / "top/mid", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert p.stdout.readline() == b"up\n"
        done = asked(pale, tree / "top/mid")
        assert done.code == 125 and f"process {p.pid} " in done.errors, done
    finally:
        p.communicate()
    assert free(pale, tree / "top/mid")


def test_a_killed_keeper_claims_nothing(pale, tree):
    other = elsewhere(pale, "RUNTIME_DIR")
    pale.create("b", "--write", tree / "top/mid")
    pale.ok("exec", "b", "--", "true")
    keeper = next(pid for pid, (name, _) in harness.processes_of(pale.root).items() if name == "pale-keeper")
    os.kill(keeper, signal.SIGKILL)
    assert wait_until(lambda: asked(other, tree / "top").code == 0)
    assert wait_until(lambda: asked(pale, tree / "top/mid/low").code == 0)
    pale.ok("exec", "b", "--", "true")


# --- bind mounts ---

MOUNTER = """
import ctypes, sys
mount = ctypes.CDLL(None, use_errno=True).mount
mount.argtypes = [ctypes.c_char_p] * 3 + [ctypes.c_ulong, ctypes.c_char_p]
print("up", flush=True)
for line in sys.stdin:
    a, b, flags = line.rstrip("\\n").split("\\t")
    print(mount(a.encode(), b.encode(), None, int(flags), None) and ctypes.get_errno(), flush=True)
"""


class Mounts:
    """Bind mounts: of root on the host, of a user in a mount namespace of his own."""

    def __init__(self, pale):
        self.made, self.holder, self.pale, self.wrap = [], None, pale, pale.wrap
        if REAL_ROOT:
            return
        self.holder = subprocess.Popen(["unshare", "--user", "--map-current-user", "--keep-caps", "--mount", "/usr/bin/python3", "-c", MOUNTER],
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if self.holder.stdout.readline() != "up\n":
            pytest.skip(f"no user namespace with mounts here: {self.holder.stderr.read()!r}")
        self.pale.wrap = ["nsenter", "--user", "--mount", "--preserve-credentials", "--wd=.", f"--target={self.holder.pid}", *pale.wrap]

    def bind(self, a, b, recursive=False):
        if self.holder:
            self.holder.stdin.write(f"{a}\t{b}\t{4096 | (16384 if recursive else 0)}\n")
            self.holder.stdin.flush()
            said = self.holder.stdout.readline()
            assert said == "0\n", said
        else:
            subprocess.run(["mount", "--rbind" if recursive else "--bind", str(a), str(b)], check=True)
        self.made.insert(0, b)

    def end(self):
        for path in self.made if not self.holder else []:
            subprocess.run(["umount", "-l", str(path)], check=True)
        if self.holder:
            self.holder.kill()
            self.holder.communicate()
        self.pale.wrap = self.wrap


@pytest.fixture
def mounts(wall):
    m = Mounts(wall.pale)
    yield m
    trouble = wall.pale.end()
    m.end()
    assert not trouble, trouble


def lay(mounts, tree, way):
    """Makes an alias; returns {wanted: path} of names that are the same, below and above top/mid."""
    other, third = tree / "other", tree / "third"
    for p in (other, third, tree / "beside/in"):
        p.mkdir(exist_ok=True)
    if way == "of-parent":
        mounts.bind(tree / "top", other)
        return {"same": other / "mid", "below": other / "mid/low", "above": other}
    if way == "of-itself":
        mounts.bind(tree / "top/mid", other)
        return {"same": other, "below": other / "low", "above": tree / "top"}
    if way == "of-child":
        mounts.bind(tree / "top/mid/low", other)
        return {"below": other}
    if way == "below-another":  # a folder in which the alias is mounted
        mounts.bind(tree / "top/mid", tree / "beside/in")
        return {"same": tree / "beside/in", "above": tree / "beside"}
    if way == "twice":
        mounts.bind(tree / "top", other)
        mounts.bind(other / "mid", third)
        return {"same": third, "below": third / "low", "above": other}
    mounts.bind(tree, other, recursive=True)
    return {"same": other / "top/mid", "below": other / "top/mid/low", "above": other / "top"}


WAYS = ("of-parent", "of-itself", "of-child", "below-another", "twice", "recursive")


@pytest.mark.weaken("claims")
@pytest.mark.parametrize("first", ("plain", "alias"))
@pytest.mark.parametrize("where", ("here", "other-runtime"))
@pytest.mark.parametrize("way", WAYS)
def test_bind_mounts_are_seen_through(wall, mounts, tree, way, where, first):
    """Whichever of the two names the first box has."""
    names = lay(mounts, tree, way)
    other = wall.pale if where == "here" else elsewhere(wall.pale, "RUNTIME_DIR")
    other.env.update({k: v for k, v in wall.pale.env.items() if k == "PALE_WEAKEN"})
    for path in names.values():
        a, b = (tree / "top/mid", path) if first == "plain" else (path, tree / "top/mid")
        with held(wall.pale, a):
            judge(wall, asked(other, b))


@pytest.mark.skipif(not REAL_ROOT, reason="needs root to mount")
def test_a_file_system_in_memory(pale, tree):
    """It is mounted in a folder of the other, which is refused with it."""
    spot = tree / "fs"
    spot.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "none", str(spot)], check=True)
    try:
        (spot / "top/mid/low").mkdir(parents=True)
        for starter in (pale, elsewhere(pale, "RUNTIME_DIR")):
            with held(pale, spot / "top/mid"):
                for path in WANTED.values():
                    done = asked(starter, spot / path)
                    assert done.code == 125 and SHARED in done.errors, done
                assert asked(starter, tree / "beside").code == 0
                assert asked(starter, tree).code == 125
    finally:
        subprocess.run(["umount", "-l", str(spot)], check=True)


@pytest.mark.skipif(not REAL_ROOT, reason="needs root to mount")
def test_the_hosts_root_by_another_name_is_refused(pale, tree):
    subprocess.run(["mount", "--bind", "/", str(tree / "beside")], check=True)
    try:
        for path in (tree / "beside", tree):
            assert asked(pale, path).code == 125
    finally:
        subprocess.run(["umount", "-l", str(tree / "beside")], check=True)


# --- two users ---

@pytest.fixture
def somebody():
    """pale as another user, and a folder that both may write."""
    if not REAL_ROOT or not shutil.which("setpriv"):
        pytest.skip("needs root to be two users")
    made, stack = [], contextlib.ExitStack()
    base = pathlib.Path(tempfile.mkdtemp(prefix="plt-two-", dir=harness.TMP))
    base.chmod(0o755)
    if subprocess.run(["setpriv", "--reuid=54321", "--regid=54321", "--clear-groups", "test", "-x", harness.BUILD / "pale"]).returncode:
        stack.callback(shutil.rmtree, base)
        stack.close()
        pytest.skip("another user does not reach the build")

    def user(uid, build=None):
        root = base / str(uid)
        root.mkdir(mode=0o700)
        p = harness.Pale(root, build or harness.BUILD, ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"] if uid else [])
        for path in (root, *root.iterdir(), (root / "run").resolve()):
            os.chown(path, uid, uid)
        made.append(p)
        return p

    shared = base / "shared"
    (shared / "top/mid/low").mkdir(parents=True)
    for path in (shared, *shared.rglob("*")):
        path.chmod(0o777)
    try:
        yield user, shared
        for p in made:
            trouble = p.end()
            assert not trouble, trouble
    finally:
        for p in made:
            harness.remove_root(p.root)
        shutil.rmtree(base, ignore_errors=True)


@pytest.mark.parametrize("uids", ((0, 54321), (54321, 0), (54321, 54322)), ids=str)
@pytest.mark.parametrize("how", WANTED)
@pytest.mark.parametrize("side", ("held", "weak"))
def test_boxes_of_two_users(somebody, uids, how, side):
    user, shared = somebody
    if side == "weak" and not os.access(harness.WEAK / "pale", os.X_OK):
        pytest.skip("the weakened build is not built")
    one, two = (user(uid, harness.WEAK if side == "weak" else None) for uid in uids)
    for p in (one, two) if side == "weak" else ():
        p.env["PALE_WEAKEN"] = "claim-marks,receipt"
    for kind in ("once", "write"):
        with held(one, shared / "top/mid", kind):
            done = asked(two, shared / WANTED[how])
            assert done.code == (0 if side == "weak" else 125), done
            assert side == "weak" or SHARED in done.errors, done
        assert free(two, shared / WANTED[how])


@pytest.mark.basic
@pytest.mark.parametrize("side", ("held", "weak"))
@pytest.mark.parametrize("trick", ("moved", "forged"))
def test_another_user_cannot_keep_us_from_our_folders(somebody, side, trick):
    """He moves the folder of his box while it runs, or writes a claim on a folder that he cannot even see."""
    user, shared = somebody
    if side == "weak" and not os.access(harness.WEAK / "pale", os.X_OK):
        pytest.skip("the weakened build is not built")
    one, two = user(54321), user(0)
    if side == "weak":
        two = two.weakened("claim-strangers")
    own = two.root / "own"
    own.mkdir(mode=0o700)
    one.create("n")
    data, claim = one.root / "data/pale/boxes/n", next((one.root / "run/pale").glob("claim-*"))
    if trick == "moved":
        data.rename(data.with_name("m"))
    else:
        st = own.stat()
        minor, major = os.minor(st.st_dev), os.major(st.st_dev)
        for dev in {(major << a) | minor for a in (8, 20, 32)} | {st.st_dev}:
            claim.write_bytes(claim.read_bytes() + f"+ {dev:x}:{st.st_ino:x}\n".encode())
    try:
        done = asked(two, own)
        assert done.code == (0 if side == "held" else 125), done
    finally:
        one.run("stop", "n")
        if trick == "moved":
            data.with_name("m").rename(data)


# --- .pale of other projects ---

SECRET = "of-another-box"


def project(pale, path, name="nest"):
    """A project with a box that has written something, and something of ours in its .pale."""
    path.mkdir(parents=True, exist_ok=True)
    pale.run("create", "--in-project", name, cwd=path, expect=0)
    pale.run("exec", name, "--", "sh", "-c", f"echo {SECRET} > ~/s", cwd=path, expect=0)
    (path / ".pale" / name / "told").write_text(SECRET)
    return path


@contextlib.contextmanager
def projects(pale, *paths):
    paths = sorted(paths, key=lambda p: -len(p.parts))  # or an inner one would be made in the .pale of the outer
    try:
        yield [project(pale, p, f"nest{i}") for i, p in enumerate(paths)]
    finally:
        for i, p in enumerate(paths):
            with contextlib.suppress(OSError):
                (p / ".pale" / f"nest{i}" / "told").unlink()
            pale.run("rm", f"nest{i}", cwd=p)


LOOK = "import os, sys\nfor top in sys.argv[1:]:\n for d, _, fs in os.walk(top):\n  for f in fs:\n   p = os.path.join(d, f)\n   try: t = open(p).read()\n   except OSError: continue\n" \
       "   if 'of-another-box' in t: print('SEEN', p)\n"


def shown(wall, folder, kind, slash=""):
    flags = {"read": ("--read", f"{folder}{slash}"), "write": ("--write", f"{folder}{slash}"), "volume": ("--volume", f"{folder}{slash}:/mnt/v"),
             "volume-ro": ("--volume", f"{folder}{slash}:/mnt/v:ro"), **{k: ("--project", k, "--project-path", f"{folder}") for k in ("live", "review", "ro")}}[kind]
    where = "/mnt/v" if kind.startswith("volume") else str(folder)
    return wall.pale.run("run", "-q", "--cwd", "/", *flags, "--", "python3", "-c", LOOK, where)


@pytest.mark.weaken("projects")
@pytest.mark.parametrize("kind", ("read", "write", "volume", "volume-ro", "live", "review", "ro"))
def test_the_pale_of_every_project_is_hidden(wall, tree, kind):
    """At any depth, several, nested in each other."""
    with projects(wall.pale, tree / "a", tree / "a/inner/deep", tree / "b"):
        done = shown(wall, tree, kind)
        assert done.code == 0, done
        wall.judge("SEEN" in done.text, repr(done))
        done = shown(wall, tree / "a/inner", kind)
        wall.judge("SEEN" in done.text, repr(done))


@pytest.mark.parametrize("kind", ("read", "write", "volume", "volume-ro", "live", "review", "ro"))
def test_the_pale_at_the_top_of_what_is_shown(pale, tree, kind):
    class Held:
        pass
    Held.pale = pale
    with projects(pale, tree / "a"):
        for folder in (tree / "a", tree / "link"):
            if folder.name == "link":
                folder.symlink_to(tree / "a")
            done = shown(Held, folder, kind)
            assert (done.code == 0 or folder.name == "link") and "SEEN" not in done.text, done


@pytest.mark.weaken("projects")
@pytest.mark.parametrize("kind", ("read", "write", "volume", "live", "review"))
def test_a_bind_mount_shows_no_pale(wall, mounts, tree, kind):
    outside = harness.Pale(wall.pale.root, wall.pale.build)  # who makes a project has it for his working folder
    outside.env = wall.pale.env
    with projects(outside, tree / "top/a"):
        (tree / "alias").mkdir()
        mounts.bind(tree / "top", tree / "alias")
        done = shown(wall, tree / "alias", kind)
        assert done.code == 0, done
        wall.judge("SEEN" in done.text, repr(done))
        if kind == "review" and not REAL_ROOT:
            return  # no overlay over mounts of a namespace of the user's own
        mounts.bind(tree / "top", tree / "beside")
        (tree / "above").mkdir()
        mounts.bind(tree, tree / "above", recursive=True)
        done = shown(wall, tree / "above", kind)
        assert done.code == 0, done
        wall.judge("SEEN" in done.text, repr(done))


@pytest.mark.weaken("projects")
def test_the_guard_hides_what_nobody_knows(wall, tree):
    """In a live project the .pale of a project that was moved there, or is another user's, is found by the guard."""
    (tree / "a/b/.pale/x").mkdir(parents=True)
    (tree / "a/b/.pale/x/told").write_text(SECRET)
    done = shown(wall, tree, "live")
    assert done.code == 0, done
    wall.judge("SEEN" in done.text, repr(done))


@pytest.mark.weaken("projects")
def test_the_guard_hides_a_project_that_is_made_meanwhile(wall, tree):
    wall.pale.create("b", "--project", "live", "--project-path", tree)
    wall.pale.ok("exec", "b", "--", "true")
    time.sleep(1)  # until nothing of the box can have made it: else it is taken away
    with projects(wall.pale, tree / "a/inner"):
        look = lambda: wall.pale.ok("exec", "b", "--", "python3", "-c", LOOK, str(tree)).text
        if wall.weakened:
            assert wait_until(lambda: "SEEN" in look())
        else:
            assert wait_until(lambda: "SEEN" not in look())
            assert "SEEN" not in look() and (tree / "a/inner/.pale/nest0/told").exists()


def test_a_box_still_works_in_a_hidden_project(pale, tree):
    """Hiding is for others: the box of the inner project is untouched by it."""
    with projects(pale, tree / "a/inner"):
        with held(pale, tree, "project", name="outer"):
            assert pale.run("exec", "nest0", "--", "sh", "-c", "cat ~/s", cwd=tree / "a/inner").text.strip() == SECRET


# --- pale's own folders ---

def own_folders(pale):
    cache = pale.root / "home/.cache/pale/agents"
    config = pale.root / "home/.config/pale/presets"
    for path in (cache, config, pale.root / "data/pale/images", pale.root / "data/pale/boxes", pale.root / "data/pale-staging"):
        path.mkdir(parents=True, exist_ok=True)
    return {"state": pale.root / "state/pale", "boxes": pale.root / "data/pale/boxes", "images": pale.root / "data/pale/images", "data": pale.root / "data/pale",
            "staging": pale.root / "data/pale-staging", "runtime": (pale.root / "run").resolve() / "pale", "config": config, "config-above": pale.root / "home/.config",
            "cache": cache, "cache-above": pale.root / "home/.cache", "above": pale.root / "data"}


OWN = ("state", "boxes", "images", "data", "staging", "config", "config-above", "cache", "cache-above", "above")


@pytest.mark.weaken("own-places")
@pytest.mark.parametrize("which", OWN)
def test_own_folders_are_given_to_nobody(wall, which):
    wall.pale.ok("run", "-q", "--", "true")
    path = own_folders(wall.pale)[which]
    for flags in (("--read", path), ("--volume", f"{path}:/mnt/v:ro"), ("--volume", f"{path}:/mnt/v")):
        judge(wall, wall.pale.run("run", "-q", "--cwd", "/", *flags, "--", "true"), "pale's own")


@pytest.mark.weaken("own-places")
@pytest.mark.parametrize("which", ("state", "boxes", "runtime", "config", "cache", "above", "staging"))
def test_own_folders_by_a_bind_mount(wall, mounts, tree, which):
    wall.pale.ok("run", "-q", "--", "true")
    mounts.bind(own_folders(wall.pale)[which], tree / "beside")
    for path in (tree / "beside", tree):
        for flags in (("--read", path), ("--volume", f"{path}:/mnt/v")):
            judge(wall, wall.pale.run("run", "-q", "--cwd", "/", *flags, "--", "true"), "pale's own")


@pytest.mark.weaken("own-places")
@pytest.mark.parametrize("name", ("STATE_HOME", "DATA_HOME", "CONFIG_HOME", "CACHE_HOME", "RUNTIME_DIR"))
def test_own_folders_behind_a_symlink(wall, tree, name):
    """The variable names a link; what is refused is where it leads."""
    real = tree / "real"
    real.mkdir(mode=0o700)
    (tree / "link").symlink_to(real)
    env = {f"XDG_{name}": str(tree / "link")}
    wall.pale.ok("run", "-q", "--", "true", env=env)
    (real / "pale").mkdir(exist_ok=True, mode=0o700)
    for path in (real, real / "pale"):
        judge(wall, wall.pale.run("run", "-q", "--cwd", "/", "--read", path, "--", "true", env=env), "pale's own")


def test_own_folders_that_are_not_there_yet(pale, tree):
    """A box must not be the one that makes them."""
    env = {"XDG_CONFIG_HOME": str(tree / "later/config")}
    done = pale.run("run", "-q", "--cwd", "/", "--write", tree, "--", "true", env=env)
    assert done.code == 125 and "pale's own" in done.errors, done
    assert pale.run("run", "-q", "--cwd", "/", "--write", tree / "top", "--", "true", env=env).code == 0


def test_inside_a_pale_nothing_is_shared(pale, tree):
    with projects(pale, tree / "a"):
        for path in (tree / "a/.pale", tree / "a/.pale/nest0"):
            for flag in ("--read", "--write"):
                done = pale.run("run", "-q", "--cwd", "/", flag, path, "--", "true")
                assert done.code == 125 and "pale's own" in done.errors, done


@pytest.mark.skipif(not REAL_ROOT, reason="is about what root may hand over")
def test_root_hands_over_no_other_users_folders(pale, hostdir):
    import pwd
    user = next((u for u in pwd.getpwall() if u.pw_uid >= 1000 and u.pw_uid != 65534 and os.path.isdir(u.pw_dir) and os.stat(u.pw_dir).st_uid == u.pw_uid), None)
    if not user:
        pytest.skip("there is no other user with a home here")
    base = pathlib.Path(user.pw_dir) / f".config/pale"
    fresh = not base.parent.exists(), not base.exists()
    base.mkdir(parents=True, exist_ok=True)
    try:
        for path in (base, base.parent):
            done = pale.run("run", "-q", "--cwd", "/", "--read", path, "--", "true")
            assert done.code == 125 and "pale's own" in done.errors, done
    finally:
        if fresh[1]:
            base.rmdir()
        if fresh[0]:
            base.parent.rmdir()


# --- images ---

@pytest.fixture
def images(pale):
    if not shutil.which("busybox"):
        pytest.skip("busybox is not installed")
    done = pale.run("image", "build", "one", "--from", "minimal")
    if done.code and "busybox-static" in done.errors:
        pytest.skip("busybox-static is not installed")
    assert done.code == 0, done
    top = pale.root / "img"
    (top / "bin").mkdir(parents=True)
    (top / "bin/sh").write_text("nothing runs in it")
    subprocess.run(["tar", "-cf", pale.root / "two.tar", "-C", top, "."], check=True)
    pale.ok("image", "build", "two", "--from", "tar", "--file", pale.root / "two.tar")


@pytest.mark.parametrize("away", ("project", "data"))
@pytest.mark.parametrize("verb", ("rm", "gc"))
def test_an_image_is_kept_for_a_box_whose_folder_is_away(pale, images, tree, away, verb):
    pale.run("create", "--in-project", "b", "--image", "one", cwd=tree / "top", expect=0)
    if away == "project":
        mv(tree / "top", tree / "beside/top")
    else:
        mv(tree / "top/.pale", tree / "beside/pale")
    if verb == "rm":
        done = pale.run("image", "rm", "one")
        assert done.code != 0 and "b is made on the image one" in done.errors, done
        pale.ok("image", "rm", "two")
    else:
        pale.run("gc", "--images")
    names = [i["name"] for i in pale.json("image", "ls", "--json")]
    assert names == ["one"]
    mv(*((tree / "beside/top", tree / "top") if away == "project" else (tree / "beside/pale", tree / "top/.pale")))
    pale.run("rm", "b", cwd=tree / "top", expect=0)
    pale.ok("image", "rm", "one")
