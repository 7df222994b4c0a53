# SPDX-License-Identifier: Apache-2.0
"""Judges of the battery. Each plants what it needs, yields the words an attack may use, is sent the result, and returns whether
the wall leaked, with a detail. What an attack says of itself counts only where nobody outside could see it."""
import ctypes
import io
import os
import pathlib
import random
import socket
import stat
import subprocess
import tarfile
import threading

from battery import Broken


def last_word(done):
    for line in reversed(done.text.splitlines()):
        if line.split(" ")[0] in ("LEAK", "HELD", "TRIED", "BROKEN"):
            return line
    return ""


def word(at):
    done = yield
    line = last_word(done)
    if line.startswith(("LEAK", "HELD")) and done.code == 0:
        return line.startswith("LEAK"), line
    raise Broken(repr(done)[-600:])


def ended(at):
    """For limits: to be killed is to be held."""
    done = yield
    line = last_word(done)
    if line.startswith(("LEAK", "HELD")):
        return line.startswith("LEAK"), line
    if done.code in (124, 137, 152):
        return False, f"ended with {done.code}"
    raise Broken(repr(done)[-600:])


def refused(at):
    """For what must not start: the attack prints LEAK if it runs at all."""
    done = yield
    if "LEAK" in done.text:
        return True, last_word(done)
    if done.code == 125:
        return False, done.errors.strip()[:200]
    raise Broken(repr(done)[-600:])


def seen(at, done, extra=""):
    if "TRIED" not in done.text and "HELD" not in done.text:
        raise Broken(repr(done)[-600:])
    return at.canary in done.text + extra, f"the canary was {'' if at.canary in done.text + extra else 'not '}seen"


def host_file(at):
    """A file of the host beside everything that was given."""
    path = at.dir / "secret"
    path.write_text(at.canary)
    path.chmod(0o644)
    done = yield {"secret": str(path)}
    return seen(at, done)


def planted(place):
    def judge(at):
        path = f"{place}/.plt-{at.world.tag}-{at.canary[-8:]}"
        with open(path, "w") as f:
            f.write(at.canary)
        os.chmod(path, 0o644)
        try:
            done = yield {"secret": path}
        finally:
            os.unlink(path)
        return seen(at, done)
    return judge


def environment(at):
    at.env["PALE_TEST_SECRET"] = at.env["AWS_SECRET_ACCESS_KEY"] = at.canary
    done = yield
    return seen(at, done)


def host_process(at):
    """A process of the host with the canary among its words: is it seen, or no longer there?"""
    victim = subprocess.Popen(["sh", "-c", "read x", at.canary], stdin=subprocess.PIPE)
    try:
        done = yield {"victim": str(victim.pid)}
        leaked = at.canary in done.text or "LEAK" in done.text
        dead = victim.poll() is not None
        if not leaked and not dead and not last_word(done):
            raise Broken(repr(done)[-600:])
        return leaked or dead, "it was ended" if dead else last_word(done)
    finally:
        victim.kill()
        victim.wait()
        victim.stdin.close()


def listener(family, kind, address):
    """A socket of the host that hands out the canary, or takes it."""
    def judge(at):
        where = address(at)
        s = socket.socket(family, kind)
        s.settimeout(10)
        s.bind(where)
        if isinstance(where, str) and where[0] != "\0":
            os.chmod(where, 0o777)
        got = []
        if kind == socket.SOCK_STREAM:
            s.listen()

        def serve():
            try:
                if kind == socket.SOCK_STREAM:
                    c, _ = s.accept()
                    c.sendall(at.canary.encode())
                    c.close()
                else:
                    got.append(s.recv(1000))
            except OSError:
                pass

        t = threading.Thread(target=serve, daemon=True)
        t.start()
        name = s.getsockname()
        port = str(name[1]) if isinstance(name, tuple) else "0"
        try:
            done = yield {"port": port, "socket": where.lstrip("\0") if isinstance(where, str) else ""}
            if kind == socket.SOCK_DGRAM:
                t.join(0.05 if not at.off else 1)
        finally:
            s.close()
            if isinstance(where, str) and where[0] != "\0" and os.path.exists(where):
                os.unlink(where)
        return seen(at, done, b"".join(got).decode("utf-8", "replace"))
    return judge


def abstract_name(at):
    return "\0plt-" + at.canary[-12:]


def socket_path(at):
    """In a folder of the host's where sockets stand, open to all."""
    return str(at.dir / "s")


libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p


def sysv_shm(at):
    key = random.randrange(1 << 20, 1 << 30)
    i = libc.shmget(key, 4096, 0o1666)
    if i < 0:
        raise Broken("shmget on the host")
    a = libc.shmat(i, None, 0)
    ctypes.memmove(a, at.canary.encode(), len(at.canary))
    libc.shmdt(ctypes.c_void_p(a))
    try:
        done = yield {"key": str(key)}
    finally:
        libc.shmctl(i, 0, None)
    if "LEAK" in done.text:
        return True, last_word(done)
    return seen(at, done)


def sysv_sem(at):
    key = random.randrange(1 << 20, 1 << 30)
    i = libc.semget(key, 1, 0o1666)
    try:
        done = yield {"key": str(key)}
    finally:
        libc.semctl(i, 0, 0)
    return last_word(done).startswith("LEAK"), last_word(done)


class Message(ctypes.Structure):
    _fields_ = [("type", ctypes.c_long), ("text", ctypes.c_char * 128)]


def sysv_msg(at):
    key = random.randrange(1 << 20, 1 << 30)
    i = libc.msgget(key, 0o1666)
    libc.msgsnd(i, ctypes.byref(Message(1, at.canary.encode())), 128, 0)
    try:
        done = yield {"key": str(key)}
    finally:
        libc.msgctl(i, 0, None)
    return seen(at, done)


def posix_queue(at):
    rt = ctypes.CDLL("librt.so.1", use_errno=True)
    name = "/plt-" + at.canary[-10:]
    old = os.umask(0)
    q = rt.mq_open(name.encode(), os.O_RDWR | os.O_CREAT, 0o666, None)
    os.umask(old)
    if q < 0:
        raise Broken("mq_open on the host")
    try:
        done = yield {"queue": name}
    finally:
        rt.mq_close(q)
        rt.mq_unlink(name.encode())
    return last_word(done).startswith("LEAK"), last_word(done)


def gives_rights(path):
    return bool(path.lstat().st_mode & (stat.S_ISUID | stat.S_ISGID)) or "security.capability" in os.listxattr(path)


def rights(at):
    """Would a file that was left in this folder give its owner's rights to whoever runs it on the host?"""
    at.dir.chmod(0o777)
    done = yield
    if "TRIED" not in done.text:
        raise Broken(repr(done)[-600:])
    found = [p.name for p in at.dir.iterdir() if gives_rights(p)]
    return bool(found), f"found {found}"


def core_file(at):
    at.dir.chmod(0o777)
    done = yield
    if "TRIED" not in done.text:
        raise Broken(repr(done)[-600:])
    found = [p.name for p in at.dir.iterdir() if p.name.startswith("core")]
    return bool(found), f"found {found}"


OWN = "the host's own\n"


def guarded(at):
    """A name that the host obeys, in a live project, as a plain file or as a folder with a file in it."""
    name = at.case.attack[1]
    path = at.dir / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(OWN)
    mode = path.stat().st_mode
    done = yield
    if "TRIED" not in done.text:
        raise Broken(repr(done)[-600:])
    same = not path.is_symlink() and path.is_file() and path.read_text() == OWN and path.stat().st_mode == mode
    return not same, "as it was" if same else "changed"


def unplanted(at):
    """A name that the host would obey, in a live project that had none."""
    path = at.dir / at.case.attack[2]
    done = yield
    if "TRIED" not in done.text:
        raise Broken(repr(done)[-600:])
    there = os.path.lexists(path)
    return there, f"{at.case.attack[2]} is {'' if there else 'not '}there"


def unwritten(at):
    """A folder that was given read-only, or was not given."""
    (at.dir / "f").write_text(OWN)
    done = yield {"file": str(at.dir / "f")}
    line = last_word(done)
    changed = sorted(os.listdir(at.dir)) != ["f"] or (at.dir / "f").read_text() != OWN
    if not line:
        raise Broken(repr(done)[-600:])
    return changed or line.startswith("LEAK"), "changed on the host" if changed else line


def apart(at):
    """A project that is changed for review: what a command does there is nowhere on the host. One of its files has a second name outside."""
    for name in ("p", "q"):
        (at.dir / name).mkdir()
    (at.dir / "p" / "f").write_text(OWN)
    (at.dir / "q" / "same").write_text(OWN)
    os.link(at.dir / "q" / "same", at.dir / "p" / "linked")
    done = yield {"project": str(at.dir / "p")}
    if not last_word(done):
        raise Broken(repr(done)[-600:])
    same = sorted(os.listdir(at.dir / "p")) == ["f", "linked"] and all((at.dir / n).read_text() == OWN for n in ("p/f", "q/same"))
    return not same, "as it was" if same else f"changed: {sorted(os.listdir(at.dir / 'p'))}"


def linked(at):
    """Two folders of one file system: one that may be read, one that may be written."""
    for name in ("r", "w"):
        (at.dir / name).mkdir()
    (at.dir / "r" / "f").write_text(OWN)
    done = yield
    if not last_word(done):
        raise Broken(repr(done)[-600:])
    same = (at.dir / "r" / "f").read_text() == OWN and (at.dir / "r" / "f").stat().st_nlink == 1
    return not same, last_word(done)


def flooded(at):
    done = yield
    n = len(done.out)
    return n > 65536, f"{n} bytes arrived"


def boot_id(at):
    done = yield
    if "TRIED" not in done.text:
        raise Broken(repr(done)[-600:])
    leaked = open("/proc/sys/kernel/random/boot_id").read().strip() in done.text
    return leaked, "the host's" if leaked else "another"


def image(at, **links):
    """The name of an image of this attempt alone, and its root; with links in it, as {name: target}."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as t:
        for name in {"usr/bin", "etc", *links}:
            info = tarfile.TarInfo(name)
            info.type, info.mode, info.linkname = (tarfile.SYMTYPE, 0o777, links[name]) if name in links else (tarfile.DIRTYPE, 0o755, "")
            t.addfile(info)
        info = tarfile.TarInfo("canary")
        info.size, info.mode = len(at.canary), 0o644
        t.addfile(info, io.BytesIO(at.canary.encode()))
    path, name = at.dir / "image.tar", f"i{at.number}"
    path.write_bytes(out.getvalue())
    done = at.pale.run("image", "build", name, "--from", "tar", "--file", path)  # by a box that is whole, in the twin too
    path.unlink()
    if done.code:
        raise Broken(f"image build: {done.errors.strip()}")
    at.undo.append(lambda: at.pale.run("image", "rm", name))
    return name, pathlib.Path(at.pale.run("image", "inspect", name, "--json").json()["root"])


def on_image(judge):
    """A judge whose attack runs in a box on an image."""
    def on(at):
        name, _ = image(at)
        inner = judge(at)
        done = yield {**(next(inner) or {}), "image": name}
        try:
            inner.send(done)
        except StopIteration as end:
            return end.value
        raise Broken("the judge did not judge")
    return on


JUDGES = {
    "word": word, "ended": ended, "refused": refused, "host-file": host_file, "environment": environment, "host-process": host_process,
    "tcp": listener(socket.AF_INET, socket.SOCK_STREAM, lambda at: ("127.0.0.1", 0)),
    "tcp6": listener(socket.AF_INET6, socket.SOCK_STREAM, lambda at: ("::1", 0)),
    "udp": listener(socket.AF_INET, socket.SOCK_DGRAM, lambda at: ("127.0.0.1", 0)),
    "abstract": listener(socket.AF_UNIX, socket.SOCK_STREAM, abstract_name),
    "abstract-dgram": listener(socket.AF_UNIX, socket.SOCK_DGRAM, abstract_name),
    "socket-file": listener(socket.AF_UNIX, socket.SOCK_STREAM, socket_path),
    "shm": sysv_shm, "sem": sysv_sem, "msg": sysv_msg, "queue": posix_queue, "rights": rights, "core": core_file, "guarded": guarded, "unplanted": unplanted,
    "unwritten": unwritten, "apart": apart, "linked": linked, "flood": flooded, "boot-id": boot_id,
    **{f"planted:{p}": planted(p) for p in ("/root", "/home", "/var/lib", "/opt", "/srv", "/mnt", "/etc", "/run", "/var/tmp", "/dev/shm")},
    **{f"image:{n}": on_image(j) for n, j in (("word", word), ("host-file", host_file), ("rights", rights), ("environment", environment))},
}
