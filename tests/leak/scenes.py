# SPDX-License-Identifier: Apache-2.0
"""Scenes of the battery: cases that take more than one command. Each returns whether the wall leaked, with a detail."""
import os
import pathlib
import re
import signal
import subprocess

from battery import Broken
from harness import Terminal, kill_quietly, processes_of, wait_until
from judges import last_word

NASTY = "\x1b]0;owned\x07\x1b[2J\u202e\u200b\r\x7f"
BAD = (b"\x1b", b"\x07", b"\r", b"\x7f", "\u202e".encode(), "\u200b".encode())


def script(at, box, text, **more):
    return at.run("exec", "-q", "--cwd", "/", box, "--", "sh", "-c", text, **more)


def secret(at):
    path = at.dir / "secret"
    path.write_text(at.canary)
    path.chmod(0o644)
    return path


# --- links that a box made, and the verbs of the host ---

def by_link(verb):
    """The box leaves a link to a file of the host; the host's own verb must not follow it there."""
    def scene(at):
        path = secret(at)
        (at.dir / "p").mkdir()
        box = at.box("--project", "ro", "--project-path", str(at.dir / "p"))  # a working folder that is there also without a root of its own
        place = f"/var/tmp/.plt-{at.world.tag}-{at.canary[-8:]}"  # writable also where a twin shows the host's root
        at.undo.append(lambda: script(at, box, f"rm -rf {place}"))
        done = script(at, box, f"mkdir {place} && cd {place} && ln -s {path} link && ln -s {path.parent} folder")
        if done.code:
            raise Broken(f"no link could be made: {done.errors[-200:]}")
        out = at.dir / "out"
        if verb == "write":
            at.run("write", box, f"{place}/folder/written", input=b"x")
            return (at.dir / "written").exists(), "written" if (at.dir / "written").exists() else "not written"
        words = {"cat": ["cat", box, f"{place}/link"], "cat-folder": ["cat", box, f"{place}/folder/secret"], "cp": ["cp", f"{box}:{place}/folder/secret", out],
                 "files": ["files", box, f"{place}/folder"]}[verb]
        done = at.run(*words)
        text = done.text + (out.read_text() if out.is_file() and not out.is_symlink() else "")
        leaked = "secret" in done.text if verb == "files" else at.canary in text
        return leaked, done.errors.strip()[:100]
    return scene


def fifo(verb):
    """A FIFO where the host expects a file: whoever opens it waits for ever."""
    def scene(at):
        box = at.box()
        script(at, box, "mkfifo /tmp/README")
        words = ["cat", box, "/tmp/README"] if verb == "cat" else ["cp", f"{box}:/tmp", at.dir / "out"]
        p = at.start(*words)
        try:
            p.wait(2 if not at.off else 0.5)
            return False, f"ended with {p.returncode}"
        except subprocess.TimeoutExpired:
            p.kill()
            return True, "it hangs"
    return scene


def volume_swapped(at):
    """The folder of a volume becomes a link to another folder of the host after the policy was made."""
    path = secret(at)
    (at.dir / "vol").mkdir()
    (at.dir / "other").mkdir()
    path.rename(at.dir / "other" / "secret")
    box = at.box("--volume", f"{at.dir}/vol:/mnt/v")
    at.run("stop", box)
    (at.dir / "vol").rmdir()
    (at.dir / "vol").symlink_to(at.dir / "other")
    done = at.run("exec", "-q", "--cwd", "/", box, "--", "cat", "/mnt/v/secret")
    return at.canary in done.text, done.errors.strip()[:150]


def mount_point_link(at):
    """The box puts a link where a mount point is made at its next start; it leads to a folder of the host. On an image: there these places are
    made while the host is still in view, else the root has been entered by then."""
    victim = at.dir / "victim"
    victim.mkdir()
    victim.chmod(0o777)
    (at.dir / "given").mkdir()
    name = f"i{at.number}"
    done = at.run("image", "build", name, "--from", "minimal")
    if done.code:
        raise Broken(f"image build: {done.errors.strip()[-300:]}")
    at.undo.append(lambda: at.run("image", "rm", name))
    box = at.box("--image", name, "--volume", f"{at.dir}/given:/tmp/x/evil")
    done = script(at, box, f"mv /tmp/x /tmp/y && ln -s {victim} /tmp/x && echo left")
    if done.text != "left\n":
        raise Broken(repr(done)[-400:])
    at.run("stop", box)
    done = script(at, box, "true")
    made = os.listdir(victim)
    return bool(made), f"made {made}; {done.errors.strip()[:100]}"


# --- what we print ---

def printed(verb):
    """Names, words and links that hold terminal sequences, in every listing of ours."""
    def scene(at):
        box = at.box()
        at.run("exec", "-q", box, "--", "python3", "-c", f"import os; open({'f' + NASTY!r}, 'w').close(); os.symlink({NASTY!r}, 'link')")
        if verb == "ps":
            job = at.run("exec", "-d", box, "--", "sh", "-c", "sleep 5", NASTY).text.strip()
            at.undo.append(lambda: at.run("kill", box, job))
        else:
            at.run("exec", "-q", box, "--", "sh", "-c", ":", NASTY)
        words = {"files": ["files", box], "files-json": ["files", "--json", box], "ps": ["ps", box], "audit": ["audit", box],
                 "audit-json": ["audit", "--json", box], "error": ["exec", "-q", box, "--", NASTY], "cat": ["cat", box, NASTY],
                 "name": ["inspect", NASTY]}[verb]
        done = at.run(*words)
        found = [b for b in BAD if b in done.out + done.err]
        return bool(found), f"{found} in {(done.out + done.err)[:80]!r}"
    return scene


# --- the audit ---

def tampered(how):
    def scene(at):
        box = at.box()
        for word in ("one", "two"):
            at.run("exec", "-q", box, "--", "echo", word)
        at.run("stop", box)
        path = pathlib.Path(at.run("inspect", "--json", box).json()["state_dir"]) / "audit"
        good = path.read_bytes()
        lines = good.splitlines(keepends=True)
        if at.run("audit", "--verify", box).code:
            raise Broken("a good log does not verify")
        path.write_bytes({"edited": good.replace(b'"one"', b'"uno"'), "removed": b"".join(lines[:2] + lines[3:]), "cut": b"".join(lines[:-1]),
                          "swapped": b"".join(lines[:1] + lines[2:3] + lines[1:2] + lines[3:]), "doubled": good + lines[-1], "emptied": b"",
                          "torn": good[:-3]}[how])
        done = at.run("audit", "--verify", box)
        return done.code == 0, done.errors.strip()[:100] or done.text.strip()[:100]
    return scene


# --- policy ---

def box_name(name):
    def scene(at):
        before = set(at.pale.root.rglob("*"))
        done = at.run("create", name)
        new = [p for p in set(at.pale.root.rglob("*")) - before if "audit" not in p.name]
        if done.code == 0:
            at.undo.append(lambda: at.run("rm", "-f", "--global", name))
        return done.code == 0, f"made {len(new)} names" if done.code == 0 else done.errors.strip()[:100]
    return scene


def own_place(which):
    """pale's own folders, which hold the policies, logs and sockets of every box."""
    def scene(at):
        at.run("run", "-q", "--", "true")
        path = {"state": at.pale.root / "state" / "pale", "above": at.pale.root / "state", "runtime": (at.pale.root / "run").resolve() / "pale",
                "boxes": at.pale.root / "data" / "pale" / "boxes"}[which]
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
        done = at.attack(flags=("--write", str(path)), words=("say", "it runs"))
        return "LEAK" in done.text, last_word(done) or done.errors.strip()[:150]
    return scene


def shared_folder(relation):
    """A folder that is writable in a running box, asked for by another under the same or another name."""
    def scene(at):
        (at.dir / "d" / "sub").mkdir(parents=True)
        (at.dir / "alias").symlink_to(at.dir / "d")
        p = at.start("run", "-q", "--cwd", "/", "--write", str(at.dir / "d"), "--", "sh", "-c", "echo up; sleep 20", stdout=subprocess.PIPE)
        try:
            if p.stdout.readline() != b"up\n":
                raise Broken("the first box did not start")
            path = {"same": at.dir / "d", "below": at.dir / "d" / "sub", "above": at.dir, "alias": at.dir / "alias", "runtime": at.dir / "d" / "sub",
                    "moved": at.dir / "e"}[relation]
            env = {}
            if relation == "moved":
                path.mkdir()
                (at.dir / "d").rename(path / "d")
            elif relation == "runtime":
                env = {"XDG_RUNTIME_DIR": str(at.pale.root / f"r{at.number}")}
                os.mkdir(env["XDG_RUNTIME_DIR"], 0o700)
            done = at.attack(flags=("--volume", f"{path}:/mnt/v"), words=("say", "it runs"), env=env)
            if "LEAK" not in done.text and done.code != 125:
                raise Broken(repr(done)[-400:])
            return "LEAK" in done.text, last_word(done) or done.errors.strip()[:150]
        finally:
            p.kill()
            p.wait()
    return scene


def other_project(how):
    """What stands in the .pale of a project within a folder that the box is shown."""
    def scene(at):
        inner = at.dir / "outer" / "inner"
        inner.mkdir(parents=True)
        done = at.run("create", "--in-project", f"p{at.number}", cwd=inner)
        if done.code:
            raise Broken(done.errors.strip()[:200])
        at.undo.append(lambda: at.run("rm", f"p{at.number}", cwd=inner))
        told = inner / ".pale" / f"p{at.number}" / "told"
        told.write_text(at.canary)
        at.undo.append(lambda: told.unlink())
        top = str(at.dir / "outer")
        flags = {"read": ("--read", top), "write": ("--write", top), "volume": ("--volume", f"{top}:{top}"), "live": ("--project", "live", "--project-path", top),
                 "review": ("--project", "review", "--project-path", top)}[how]
        done = at.run("run", "-q", "--cwd", "/", *flags, "--", "sh", "-c", f"ls {inner} >/dev/null && echo up; cat {told}")
        if "up" not in done.text:
            raise Broken(repr(done)[-400:])
        return at.canary in done.text, done.errors.strip()[-100:]
    return scene


def release_ignores_switches(at):
    done = at.run("run", "-q", "--cwd", "/", "--", "grep", "Seccomp:", "/proc/self/status", env={"PALE_WEAKEN": "seccomp,receipt"})
    value = done.text.split()[-1:]
    return value == ["0"], f"Seccomp: {value}"


def reader_locked(at):
    """Which system calls pale-policy makes before it reads: one of them must take most of the others away."""
    f, log = at.dir / "p.yaml", at.dir / "log"
    f.write_text("tier: native\n")
    done = subprocess.run(["strace", "-o", str(log), "-e", "trace=seccomp", str(at.pale.build / "pale-policy"), "--", str(f)], env={**at.pale.env, **at.env},
                          capture_output=True, timeout=20)
    if done.returncode or not log.exists():
        raise Broken(done.stderr.decode()[-300:])
    locked = "SECCOMP_SET_MODE_FILTER" in log.read_text()
    return not locked, "locked" if locked else "not locked"


# --- folders of sockets ---

def runtime_dir(how):
    def scene(at):
        base = at.pale.root / f"r{at.number}"
        base.mkdir(mode=0o700)
        taken = base / "pale"
        if how == "open":
            taken.mkdir()
            taken.chmod(0o777)
        elif how == "link":
            (at.dir / "victim").mkdir(mode=0o700)
            taken.symlink_to(at.dir / "victim")
        else:
            taken.mkdir(mode=0o700)
            os.chown(taken, 65534, 65534)
        at.run("run", "-q", "--cwd", "/", "--", "true", env={"XDG_RUNTIME_DIR": str(base)})
        used = os.listdir(taken)
        return bool(used), f"holds {used[:3]}"
    return scene


# --- two boxes ---

def pair(first, second):
    """What one box keeps, another looks for."""
    def scene(at):
        key = str(0x70000000 + int(at.canary[-5:], 16))
        fields = {"key": key, "canary": at.canary, "port": str(20000 + int(key) % 20000)}
        one = at.start("run", "-q", "--cwd", "/", "--read", str(at.world.tools), "--", "python3", "-c", first.format(**fields), stdout=subprocess.PIPE)
        try:
            if one.stdout.readline() != b"up\n":
                raise Broken("the first box did not start")
            done = at.attack(flags=(), words=[w.format(**fields) for w in second])
            if not last_word(done):
                raise Broken(repr(done)[-400:])
            leaked = at.canary in done.text or "LEAK" in done.text
            return leaked, last_word(done)
        finally:
            one.kill()
            one.wait()
            if at.off:  # what a twin puts among the host's own stays there
                subprocess.run(["ipcrm", "-M", key], stderr=subprocess.DEVNULL)
                for p in ("/var/tmp", "/dev/shm"):
                    pathlib.Path(f"{p}/.plt-{key}").unlink(missing_ok=True)
    return scene


SHM = """
import ctypes, time
l = ctypes.CDLL(None); l.shmat.restype = ctypes.c_void_p
i = l.shmget({key}, 4096, 0o1666); a = l.shmat(i, None, 0); ctypes.memmove(a, b'{canary}', 31)
print('up', flush=True); time.sleep(20)"""
ABSTRACT = """
import socket
s = socket.socket(socket.AF_UNIX); s.bind(chr(0) + 'plt-{key}'); s.listen(); print('up', flush=True)
c, _ = s.accept(); c.sendall(b'{canary}'); c.close(); s.accept()"""
TCP = """
import socket
s = socket.create_server(('127.0.0.1', 20000 + {key} % 20000)); print('up', flush=True)
c, _ = s.accept(); c.sendall(b'{canary}'); c.close(); s.accept()"""
PROCESS = """
import time
print('up', flush=True); time.sleep(20) # {canary}"""
FILES = """
import time
for p in ('/home/agent', '/tmp', '/var/tmp', '/dev/shm', '/run'):
    try: open(p + '/.plt-{key}', 'w').write('{canary}')
    except OSError: pass
print('up', flush=True); time.sleep(20)"""


# --- endings ---

def up(at, *args):
    p = at.start(*args, stdout=subprocess.PIPE)
    if p.stdout.readline() != b"up\n":
        p.kill()
        raise Broken("the box did not start")
    return p


def attacks_of(at):
    """Processes of this attempt's attack program, wherever they are."""
    found = []
    for n in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = pathlib.Path(f"/proc/{n}/cmdline").read_bytes()
        except OSError:
            continue
        if words.startswith(str(at.world.attack).encode()) and at.canary.encode() in words:
            found.append(int(n))
    return found


def survivors(at, seconds=1.5):
    """Of a wall nothing may be left; a twin is given less time to show that something is."""
    wait_until(lambda: not attacks_of(at), 3 if not at.off else seconds)
    left = attacks_of(at)
    for pid in left:
        kill_quietly(pid)
    return bool(left), f"{len(left)} processes left"


def after_timeout(at):
    box = at.box()
    done = at.run("exec", "-q", "--cwd", "/", "--timeout", "400ms", box, "--", at.world.attack, "escape", at.canary)
    if done.code != 124:
        raise Broken(repr(done)[-400:])
    return survivors(at, 0.5)


def after_kill(at):
    box = at.box()
    job = at.run("exec", "-d", "--cwd", "/", box, "--", at.world.attack, "escape", at.canary).text.strip()
    if not wait_until(lambda: len(attacks_of(at)) >= 2):
        raise Broken("the escapee did not start")
    at.run("kill", box, job)
    return survivors(at, 0.5)


def after_client(at):
    box = at.box()
    p = up(at, "exec", "-q", "--cwd", "/", box, "--", at.world.attack, "escape", at.canary)
    p.kill()
    p.wait()
    return survivors(at, 1)


def after_death(who):
    """Keeper or init are killed outright."""
    def scene(at):
        box = at.box()
        p = up(at, "exec", "-q", "--cwd", "/", box, "--", at.world.attack, "escape", at.canary)
        info = at.run("inspect", "--json", box).json()
        init = info["init_pid"]
        try:
            os.kill(info[who], signal.SIGKILL)
            p.wait(10)
            return survivors(at, 0.5)
        finally:
            if at.off:
                kill_quietly(init)
            p.kill()
            p.wait()
    return scene


def after_once(at):
    """The client of a one-shot box."""
    p = up(at, "run", "-q", "--cwd", "/", "--read", str(at.world.tools), "--", at.world.attack, "escape", at.canary)
    inits = [pid for pid, (name, _) in processes_of(at.pale.root).items() if name == "pale-init"]
    p.kill()
    p.wait()
    answer = survivors(at, 0.5)
    if at.off:
        for pid in inits:
            kill_quietly(pid)
    return answer


# --- ids ---

def host_ids(at):
    p = up(at, "run", "-q", "--cwd", "/", "--read", str(at.world.tools), *at.words(("{asroot}",)), "--", at.world.attack, "escape", at.canary)
    try:
        ids = set()
        for pid in attacks_of(at):
            try:
                text = pathlib.Path(f"/proc/{pid}/status").read_text()
            except OSError:
                continue
            ids |= {int(x) for k in ("Uid", "Gid") for x in re.search(rf"^{k}:\t(.*)$", text, re.M)[1].split()}
        if not ids:
            raise Broken("the attack is not to be found on the host")
        return min(ids) < 0x40000000, f"ids {sorted(ids)}"
    finally:
        p.kill()
        p.wait()


# --- descriptors and terminals ---

def inherited_fd(kind):
    """Descriptors that the user's shell left open, and files that its output goes to."""
    def scene(at):
        held = open(at.dir / "held", "w+")
        os.set_inheritable(held.fileno(), True)
        out = open(at.dir / "out", "w+b")
        try:
            words = ["open-fds"] if kind == "open-fds" else ["stdio-path"]
            box = ["exec", "-q", "--cwd", "/", at.box()] if kind == "open-fds" else ["run", "-q", "--cwd", "/", "--read", str(at.world.tools)]
            p = subprocess.run([at.pale.program, *box, "--", str(at.world.attack), *words], env={**at.pale.env, **at.env}, stdin=subprocess.DEVNULL,
                               stdout=out if kind != "open-fds" else subprocess.PIPE, stderr=subprocess.PIPE, pass_fds=[held.fileno()], timeout=20, cwd=at.pale.home)
            text = p.stdout.decode() if p.stdout else (at.dir / "out").read_text()
            if not text.startswith(("LEAK", "HELD")):
                raise Broken(text + p.stderr.decode()[:300])
            return text.startswith("LEAK"), text.strip()
        finally:
            held.close()
            out.close()
    return scene


def typed(request):
    """Bytes typed into the terminal that a command got with -t."""
    def scene(at):
        t = Terminal([at.pale.program, "run", "-it", "--cwd", "/", "--", "python3", "-c",
                      f"import fcntl\ntry: fcntl.ioctl(0, {request}, b'x'); print('LEAK typed')\nexcept OSError as e: print('HELD' if e.errno == 1 else 'LEAK', e)"],
                     {**at.pale.env, **at.env}, cwd=at.pale.home)
        t.wait()
        text = t.seen.decode("utf-8", "replace")
        t.close()
        m = re.search(r"(LEAK|HELD)[^\r\n]*", text)
        if not m:
            raise Broken(text[-300:])
        return m[1] == "LEAK", m[0]
    return scene
