# SPDX-License-Identifier: Apache-2.0
"""Every verb through a daemon elsewhere: over its socket, over loopback with a token, over TLS; and daemons that are none."""
import contextlib
import json
import os
import pathlib
import pwd
import re
import select
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import time

import pytest

import harness
from harness import Terminal, wait_until
from operations import small_tar

pytestmark = pytest.mark.once

WAYS = ["unix", "tcp", "https"]


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


# --- a proxy that ends TLS, as people put one before a daemon ---


class TlsProxy:
    """Ends TLS on a port of its own and speaks to the daemon as 127.0.0.1:PORT."""

    def __init__(self, cert, key, port):
        self.target = port
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(cert, key)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.seen = b""
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                plain, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.carry, args=(plain,), daemon=True).start()

    def carry(self, plain):
        try:
            plain.settimeout(30)
            with self.context.wrap_socket(plain, server_side=True) as near, socket.create_connection(("127.0.0.1", self.target)) as far:
                near.settimeout(30)
                self.copy(near, far)
        except OSError:
            pass

    def copy(self, near, far):
        open_near = True
        while True:
            if near.pending():
                ready = [near]
            else:
                ready, _, _ = select.select([far] + [near] * open_near, [], [], 60)
            if near in ready:
                data = near.recv(65536)
                self.seen += data[:4096]
                if not data:
                    open_near = False
                    far.shutdown(socket.SHUT_WR)
                    continue
                # What a proxy before paled must do: the daemon knows itself by its own address alone.
                for name in (b"localhost", b"127.0.0.1"):
                    data = data.replace(b"Host: %s:%d\r\n" % (name, self.port), b"Host: 127.0.0.1:%d\r\n" % self.target)
                far.sendall(data)
            if far in ready:
                data = far.recv(65536)
                if not data:
                    near.unwrap()
                    return
                near.sendall(data)

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)  # else who waits in accept goes on listening
        self.listener.close()


@pytest.fixture(scope="session")
def certificates(tmp_path_factory):
    """A CA, a certificate of it for localhost, and one for another name."""
    folder = tmp_path_factory.mktemp("tls")

    def openssl(*args):
        subprocess.run(["openssl", *map(str, args)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder)

    if not harness.has_tool("openssl"):
        pytest.skip("openssl is not installed")
    new_key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2")
    openssl("req", "-x509", *new_key, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=pale test CA")
    for name, names in (("good", "DNS:localhost,IP:127.0.0.1"), ("other", "DNS:other.example")):
        openssl("req", *new_key, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
        (folder / "ext").write_text(f"subjectAltName={names}\nbasicConstraints=CA:FALSE\n")
        openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
                "-extfile", "ext", "-out", f"{name}.pem")
    return folder


class Far:
    """A daemon of one's own and pale as somebody elsewhere would use it: with nothing of the home the daemon lives in."""

    def __init__(self, pale, certificates):
        self.pale, self.certificates = pale, certificates
        self.port = free_port()
        pale.ok("serve", "--port", self.port)
        self.socket = f"unix://{pale.root}/run/pale/paled.sock"
        self.proxies = []
        self.away = pale.root / "away"
        self.away.mkdir()

    def token(self, *flags):
        return self.pale.ok("token", "create", *flags).text.strip()

    def proxy(self, name="good"):
        p = TlsProxy(self.certificates / f"{name}.pem", self.certificates / f"{name}.key", self.port)
        self.proxies.append(p)
        return p

    def env(self, way, token=None):
        """The environment of somebody elsewhere; his home is empty."""
        env = {**self.pale.env, "HOME": str(self.away), "XDG_DATA_HOME": str(self.away / "d"), "XDG_STATE_HOME": str(self.away / "s"),
               "XDG_RUNTIME_DIR": str(self.away / "r")}
        if way == "unix":
            env["PALE_HOST"] = self.socket
        elif way == "tcp":
            env |= {"PALE_HOST": f"http://127.0.0.1:{self.port}", "PALE_TOKEN": token or self.token()}
        else:
            env |= {"PALE_HOST": f"https://localhost:{self.proxy().port}", "PALE_TOKEN": token or self.token(),
                    "PALE_CA_FILE": str(self.certificates / "ca.pem")}
        if token:
            env["PALE_TOKEN"] = token
        return env

    def user(self, way, token=None):
        return Away(self.pale, self.env(way, token), self.away)

    def end(self):
        for p in self.proxies:
            p.close()
        # Boxes of tenants are known to nobody but the daemon.
        here = Away(self.pale, self.env("unix"), self.away)
        for box in here.json("ls", "--json"):
            here.ok("rm", box["id"])
        self.pale.ok("serve", "--stop")


class Away:
    def __init__(self, pale, env, cwd):
        self.pale, self.env, self.cwd = pale, env, cwd

    def run(self, *args, env=None, **more):
        return self.pale.run(*args, env={**self.env, **(env or {})}, cwd=more.pop("cwd", self.cwd), **more)

    def ok(self, *args, **more):
        return self.run(*args, expect=0, **more)

    def json(self, *args, expect=0, **more):
        return self.run(*args, expect=expect, **more).json()

    def start(self, *args, **more):
        return self.pale.start(*args, env=self.env, cwd=self.cwd, **more)

    def create(self, name, *flags):
        """Makes a box and waits until the daemon has heard from its keeper."""
        self.ok("create", *flags, name)
        assert wait_until(lambda: "memory_limit_held_by" in self.json("inspect", "--json", name))

    def terminal(self, *args, **more):
        return Terminal([self.pale.program, *args], self.env, cwd=str(self.cwd), **more)


@pytest.fixture
def far(pale, certificates):
    f = Far(pale, certificates)
    yield f
    f.end()


@pytest.fixture(params=WAYS)
def user(far, request):
    return far.user(request.param)


@pytest.fixture
def near(far):
    """Over the socket, for what does not depend on the way."""
    return far.user("unix")


# --- every verb, with what it must do ---


def do_run(u, b):
    r = u.run("run", "--", "sh", "-c", "echo out; echo err >&2; exit 7")
    assert (r.code, r.out) == (7, b"out\n") and b"err\n" in r.err and b"exit=7" in r.err
    assert u.ok("run", "-i", "-q", "--", "cat", input=b"in").out == b"in"
    assert u.run("run", "--timeout", "300ms", "--", "sleep", "60").code == 124
    assert u.run("run", "--", "nothing-of-that-name").code == 127
    assert u.ok("run", "-q", "--env", "FROM_HERE", "--", "sh", "-c", "echo $FROM_HERE", env={"FROM_HERE": "yes"}).out == b"yes\n"
    assert u.json("run", "--json", "--", "echo", "x")["stdout"] == {"data": "x\n"}
    assert [x["name"] for x in u.json("ls", "--json")] == [b]
    u.ok("run", "-q", "--name", "kept", "--", "true")
    u.ok("run", "-q", "--name", "gone", "--rm", "--", "true")
    assert sorted(x["name"] for x in u.json("ls", "--json")) == [b, "kept"]
    assert u.run("run", "-q", "--name", "kept", "--rm", "--", "true").code == 125
    assert sorted(x["name"] for x in u.json("ls", "--json")) == [b, "kept"], "somebody else's box was removed"


def do_exec(u, b):
    r = u.run("exec", b, "--", "sh", "-c", "echo out; echo err >&2; exit 3")
    assert (r.code, r.out) == (3, b"out\n") and r.err.startswith(b"err\n") and b"exit=3" in r.err
    big = os.urandom(3 << 20)
    assert u.ok("exec", "-i", "-q", b, "--", "cat", input=big, timeout=60).out == big
    assert u.ok("exec", "-q", "-e", "A=1", b, "--", "sh", "-c", "echo $A").out == b"1\n"
    assert u.json("exec", "--json", b, "--", "echo", "x")["exit"] == 0
    assert u.run("exec", "nobody", "--", "true").code == 125


def do_shell(u, b):
    t = u.terminal("shell", b)
    try:
        t.expect(r"\$ ")
        t.line("echo $((6*7))x; exit 5")
        t.expect("42x")
        assert t.wait() == 5
    finally:
        t.close()


def do_create(u, b):
    assert "box c1 [user] id=" in u.ok("create", "c1", "c2").text
    made = u.json("create", "--json", "--no-start", "--memory", "256M", "--read", "/usr/share", "c3")
    assert made["name"] == "c3" and made["state"] == "stopped" and made["scope"] == "user"
    shown = u.ok("policy", "show", "c3").text
    assert "256MiB" in shown and "/usr/share" in shown
    assert u.run("create", "c1").code == 125
    r = u.run("create", "--in-project", "c4")
    assert r.code == 125 and "project" in r.errors
    r = u.run("create", "--read", "relative", "c4")
    assert r.code == 125 and "daemon's host" in r.errors
    u.ok("rm", "c1", "c2", "c3")


def do_ls(u, b):
    assert u.ok("ls").text.split("\n")[0].split() == ["NAME", "SCOPE", "STATE", "JOBS", "ID"]
    (one,) = u.json("ls", "--json")
    assert one["name"] == b and one["state"] == "ready" and one["jobs"] == 0


def do_inspect(u, b):
    info = u.json("inspect", "--json", b)
    here = u.pale.info(b)
    assert {k: info[k] for k in here if k != "receipt"} == {k: here[k] for k in here if k != "receipt"}
    assert info["receipt"]["good"] is True
    text = u.ok("inspect", b).text
    assert text == u.pale.ok("inspect", b).text
    assert u.run("inspect", "nobody").code == 125


def do_stop(u, b):
    assert u.json("stop", "--json", b) == {"stopped": 1}
    assert u.json("ls", "--json")[0]["state"] == "stopped"
    assert u.run("stop", "nobody").code == 125


def do_rm(u, b):
    u.ok("create", "r1")
    assert u.json("rm", "--json", "r1") == {"removed": 1}
    assert u.run("rm", "r1").code == 125
    u.ok("rm", "--force", "r1")
    r = u.run("rm", "--keep-data", b)
    assert r.code == 125 and "--keep-data" in r.errors


def detach(u, b, script):
    return u.ok("exec", "--detach", b, "--", "sh", "-c", script).text.strip()


def do_freeze(u, b):
    assert u.json("freeze", "--json", b) == {"frozen": 1}
    assert wait_until(lambda: u.json("ls", "--json")[0]["state"] == "frozen")
    assert u.run("exec", b, "--", "true").code == 125
    u.ok("thaw", b)


def do_thaw(u, b):
    u.ok("freeze", b)
    assert u.json("thaw", "--json", b) == {"thawed": 1}
    assert u.ok("exec", "-q", b, "--", "echo", "on").out == b"on\n"


def do_rename(u, b):
    u.ok("create", "--no-start", "old")
    new = u.json("rename", "--json", "old", "new")
    assert new["name"] == "new" and new["was"] == "old"
    assert "box newer [user] id=" in u.ok("rename", "new", "newer").text
    assert u.run("rename", "newer", "No").code == 125 and u.run("rename", "nobody", "x").code == 125
    u.pale.names |= {"new", "newer"}


def do_adopt(u, b):
    r = u.run("adopt", b)
    assert r.code == 125 and "where the folders are" in r.errors


def do_forget(u, b):
    r = u.run("forget", b)
    assert r.code == 125 and "where the folders are" in r.errors


def do_snapshot(u, b):
    u.ok("exec", "-q", b, "--", "sh", "-c", "echo one > ~/f")
    assert re.fullmatch(r"one \(paused for [0-9]+\.[0-9] ms\)\n", u.ok("snapshot", b, "one").text)
    assert u.json("snapshot", "--json", b) == {"snapshot": "snap-1", "changed": False, "copied": False, "pause_us": 0}
    assert u.run("snapshot", b, "one").code == u.run("snapshot", b, "a b").code == u.run("snapshot", "nobody").code == 125
    job = u.ok("exec", "-d", "-q", b, "--", "sleep", "1000").text
    u.ok("exec", "-q", b, "--", "sh", "-c", "echo two > ~/f")
    assert u.json("snapshot", "--json", b, "two")["copied"] and job
    u.ok("create", "--no-autosave", "by-hand")
    u.ok("exec", "-q", "by-hand", "--", "sh", "-c", "echo one > ~/f")
    u.ok("stop", "by-hand")
    assert u.json("snapshots", "--json", "by-hand") == []


def do_snapshots(u, b):
    for name in ("one", "two"):
        u.ok("exec", "-q", b, "--", "sh", "-c", f"echo {name} > ~/f")
        u.ok("snapshot", b, name)
    assert wait_until(lambda: all(s["state"] == "verified" for s in u.pale.json("snapshots", "--json", b)))
    there, here = u.json("snapshots", "--json", b), u.pale.json("snapshots", "--json", b)
    assert there == here and [s["name"] for s in there] == ["one", "two"] and [s["current"] for s in there] == [False, True]
    assert u.ok("snapshots", b).text == u.pale.ok("snapshots", b).text
    r = u.run("snapshots", "--verify", b)
    assert r.code == 125 and "this host alone" in r.errors
    assert u.json("snapshots", "--json", "--rm", "one", b) == {"removed": 1}
    for name in ("one", "../one", "", ".", "a?b", "a/../two", "x" * 100):
        assert u.run("snapshots", "--rm", name, b).code == 125
    assert [s["name"] for s in u.json("snapshots", "--json", b)] == ["two"]


def do_restore(u, b):
    u.ok("exec", "-q", b, "--", "sh", "-c", "echo one > ~/f")
    u.ok("snapshot", b, "one")
    u.ok("exec", "-q", b, "--", "sh", "-c", "echo two > ~/f")
    assert re.fullmatch(rf"{b} is as it was at one \(paused for .* ms\); what it was until now is kept as auto-1\n", u.ok("restore", b, "one").text)
    assert u.ok("exec", "-q", b, "--", "sh", "-c", "cat ~/f").text == "one\n"
    u.ok("exec", "-d", "-q", b, "--", "sleep", "1000")
    assert u.run("restore", b, "auto-1").code == 125 and u.run("restore", b, "three").code == 125
    back = u.json("restore", "-f", "--json", b, "auto-1")
    assert back["restored"] == "auto-1" and set(back) == {"restored", "kept", "pause_us"}
    assert u.ok("exec", "-q", b, "--", "sh", "-c", "cat ~/f").text == "two\n"


def do_fork(u, b):
    u.ok("exec", "-q", b, "--", "sh", "-c", "echo one > ~/f")
    u.ok("snapshot", b, "one")
    u.ok("exec", "-q", b, "--", "sh", "-c", "echo two > ~/f")
    u.pale.names |= {"f", "n-1", "n-2"}
    assert [(f["name"], f["scope"]) for f in u.json("fork", "--json", "--at", "one", b, "f")] == [("f", "user")]
    assert u.ok("fork", "-n", "2", b, "n").text.split()[:3] == ["NAME", "ID", "SCOPE"]
    assert [u.ok("exec", "-q", n, "--", "sh", "-c", "cat ~/f").text for n in ("f", "n-1", "n-2")] == ["one\n", "two\n", "two\n"]
    for flags in (("-n", "0"), ("-n", "1001"), ("-n", "x"), ("--at", "none")):
        assert u.run("fork", *flags, b, "m").code == 125
    assert u.run("fork", b, "f").code == u.run("fork", b, "No").code == 125


def do_gc(u, b):
    u.ok("exec", "-q", b, "--", "sh", "-c", "echo one > ~/f")
    u.ok("snapshot", b, "one")
    u.ok("exec", "-q", b, "--", "sh", "-c", "echo two > ~/f")
    kept = u.json("restore", "--json", b, "one")["kept"]
    u.ok("snapshots", "--rm", kept, b)
    would = u.json("gc", "--json", "--dry-run")
    assert would == {"images": [], "boxes": 1, "layers": 1, "orphans": 0, "files": 0, "staging": 0, "quarantines": 0, "logs": 0} == u.json("gc", "--json")
    assert u.ok("gc").text == "0 layers of 1 boxes removed, and what was left of 0 boxes whose folder is gone\n"


def do_ps(u, b):
    job = detach(u, b, "sleep 30")
    (one,) = u.json("ps", "--json", b)
    assert str(one["job"]) == job and one["state"] == "running"
    assert "sleep 30" in u.ok("ps", b).text
    u.ok("stop", b)
    assert u.json("ps", "--json", b) == []


def do_attach(u, b):
    job = detach(u, b, "echo one; sleep 0.5; echo two; exit 4")
    r = u.run("attach", "--no-stdin", b, job)
    assert (r.code, r.out) == (4, b"one\ntwo\n")
    r = u.run("attach", "--no-stdin", "--offset", "4", "-q", b, job)
    assert (r.code, r.out) == (4, b"two\n")


def do_kill(u, b):
    job = detach(u, b, "sleep 30")
    u.ok("kill", b, job)
    assert u.run("wait", b, job).code == 137
    assert u.run("kill", b, "999").code == 125


def do_wait(u, b):
    job = detach(u, b, "sleep 0.3; exit 9")
    assert u.run("wait", b, job).code == 9


def do_logs(u, b):
    job = detach(u, b, "echo one; sleep 0.5; echo two")
    assert u.ok("logs", "-f", b, job).out == b"one\ntwo\n"
    assert u.ok("logs", "--offset", "4", b, job).out == b"two\n"


def do_cp(u, b):
    tree = u.cwd / "tree"
    (tree / "sub").mkdir(parents=True)
    (tree / "big").write_bytes(os.urandom(2 << 20))
    (tree / "sub" / "x").write_text("x")
    os.symlink("sub/x", tree / "link")
    u.ok("cp", "tree", f"{b}:in", timeout=60)
    assert u.ok("exec", "-q", b, "--", "cat", "in/link").out == b"x"
    u.ok("cp", f"{b}:in", "back", timeout=60)
    back = u.cwd / "back"
    assert (back / "big").read_bytes() == (tree / "big").read_bytes() and os.readlink(back / "link") == "sub/x"
    assert u.run("cp", f"{b}:nothing", "here").code == 125


def do_cat(u, b):
    u.ok("exec", "-q", b, "--", "sh", "-c", "printf 0123456789 > f")
    assert u.ok("cat", b, "f").out == b"0123456789"
    assert u.ok("cat", "--offset", "3", "--length", "2", b, "f").out == b"34"
    assert u.run("cat", b, "nothing").code == 125


def do_write(u, b):
    u.ok("write", "--mode", "600", b, "w", input=b"text")
    assert u.ok("exec", "-q", b, "--", "sh", "-c", "stat -c %a w; cat w").out == b"600\ntext"


def do_files(u, b):
    u.ok("exec", "-q", b, "--", "touch", "a\x1bb")
    assert "a\\x1bb" in u.ok("files", b).text
    assert u.json("files", "--json", b)[0]["name"] == "a\x1bb"


def do_mkdir(u, b):
    u.ok("mkdir", "-p", b, "d/e")
    assert u.run("mkdir", b, "d/e").code == 125


def do_mv(u, b):
    u.ok("write", b, "m", input=b"m")
    u.ok("mkdir", b, "into")
    u.ok("mv", b, "m", "into")
    assert u.ok("cat", b, "into/m").out == b"m"


def do_del(u, b):
    u.ok("mkdir", "-p", b, "x/y")
    assert u.run("del", b, "x").code == 125
    u.ok("del", "--tree", b, "x")


def do_watch(u, b):
    p = u.start("watch", "--json", b)
    assert json.loads(p.stdout.readline())["event"] == "ready"
    u.ok("exec", "-q", b, "--", "touch", "seen")
    assert json.loads(p.stdout.readline())["name"] == "seen"
    p.send_signal(signal.SIGINT)
    assert p.wait(10) == 130


def do_validate(u, b):
    (u.cwd / "p.yaml").write_text("limits: {memory: 64M}\n")
    assert u.ok("validate", "./p.yaml").text.startswith("VALID")
    (u.cwd / "p.yaml").write_text("limit: {memory: 64M}\n")
    assert u.run("validate", "./p.yaml").code == 1


def do_policy(u, b):
    assert u.ok("policy", "show", b).text == u.pale.ok("policy", "show", b).text
    assert u.json("policy", "show", "--json", b) == u.pale.json("policy", "show", "--json", b)
    assert u.run("policy", "ask", b, "write", "/etc/hosts").code == 1
    (u.cwd / "p.yaml").write_text("limits: {memory: 64M}\n")
    assert "limits.memory" in u.ok("policy", "diff", b, "./p.yaml").text
    assert u.run("policy", "set", b, "limits.memory=1G").code == 125
    u.ok("stop", b)
    assert "limits.memory" in u.ok("policy", "set", b, "limits.memory=1G", "env.set=A=1", "env.set=B=2").text
    assert u.pale.json("policy", "show", "--json", b)["limits"]["memory"]["value"] == 1 << 30 and "B=2" in u.pale.ok("policy", "show", b).text
    assert u.json("policy", "set", "--json", "--policy", "./p.yaml", b)["changes"] and u.ok("policy", "set", "--policy", "./p.yaml", b).text == "nothing changed\n"


def do_presets(u, b):
    assert u.ok("presets").text == u.pale.ok("presets").text
    assert u.json("presets", "--json", "none")["rules"] == []
    for flags, says in ((["--net", "host"], "--yes-host-network"), (["--preset", "nonesuch"], "no preset"), (["--allow", "*"], "network: open"),
                        (["--net", "none", "--allow", "x.org"], "do nothing with network none")):
        r = u.run("create", "netted", *flags)
        assert r.code == 125 and says in r.errors, (flags, r.errors)


def do_audit(u, b):
    u.ok("exec", "-q", b, "--", "true")
    assert u.ok("audit", b).text == u.pale.ok("audit", b).text
    assert u.ok("audit", "--json", b).out == u.pale.ok("audit", "--json", b).out
    assert u.json("audit", "--verify", "--json", b) == u.pale.json("audit", "--verify", "--json", b)
    r = u.run("audit", "--runs")
    assert r.code == 125 and "this host alone" in r.errors
    p = u.start("audit", "--follow", "--json", b)
    first = p.stdout.readline()
    u.ok("exec", "-q", b, "--", "echo", "followed")
    assert any(b"followed" in p.stdout.readline() for _ in range(40)), first


def do_prove(u, b):
    assert "as they must be, 0 not" in u.ok("prove", b).text
    r = u.ok("prove", "--full", "--json", b)
    assert r.json()["receipt"]["good"] is True and r.json()["signature"] is None and "not signed" in r.errors


def do_doctor(u, b):
    r = u.run("doctor", "--json", timeout=60)
    assert r.code in (0, 1) and r.json()["boxes_can_start"] is (r.code == 0)
    assert "can start there" in u.run("doctor", timeout=60).text
    r = u.run("doctor", "--fix", "root")
    assert r.code == 125 and "this host alone" in r.errors


def project_folder():
    home = next(h for h in (pwd.getpwuid(os.geteuid()).pw_dir, os.path.expanduser("~")) if os.access(h, os.W_OK))
    return tempfile.TemporaryDirectory(prefix=".plt-far-", dir=home)


@contextlib.contextmanager
def reviewed(u):
    """A box whose project is for review, with changes in it, and the project."""
    with project_folder() as folder:
        project = pathlib.Path(folder)
        (project / "a").write_text("one\n")
        time.sleep(0.1)
        u.ok("create", "--project", "review", "--project-path", folder, "rev")
        u.ok("exec", "-q", "rev", "--", "sh", "-c", f"cd {folder}; echo two > a; mkdir d; echo new > 'd/n %&?'; mkdir .vscode; echo x > .vscode/tasks.json")
        try:
            yield "rev", project
        finally:
            u.ok("rm", "-f", "rev")


def do_diff(u, b):
    with reviewed(u) as (box, project):
        for flags in ((), ("--stat",), ("--name-only",)):
            there, here = u.ok("diff", *flags, box), u.pale.ok("diff", *flags, box)
            assert there.out == here.out and there.out
        assert u.json("diff", "--json", box) == u.pale.json("diff", "--json", box)
        assert u.ok("diff", "--name-only", box, "d/n %&?").text == "d/n %&?\n" == u.ok("diff", "--name-only", box, project / "d").text
        u.ok("snapshot", box, "one")
        assert u.ok("diff", "--from", "one", box).out == b"" and u.json("diff", "--json", "--from", "one", box) == []
        for words in (("--stat", "--json", box), ("--from", "none", box), (box, "/usr"), ("nobody",)):
            assert u.run("diff", *words).code == 125


def do_apply(u, b):
    with reviewed(u) as (box, project):
        dry = u.run("apply", "--dry-run", box)
        assert dry.code == 1 and "would land" in dry.text and (project / "a").read_text() == "one\n"
        assert dry.text == u.pale.run("apply", "--dry-run", box).text
        r = u.run("apply", "--json", box, "a")
        assert r.code == 0 and [(i["path"], i["result"]) for i in r.json()] == [("a", "landed")] and (project / "a").read_text() == "two\n"
        r = u.run("apply", box)
        assert r.code == 1 and "held" in r.text and (project / "d" / "n %&?").exists() and not (project / ".vscode" / "tasks.json").exists()
        u.ok("apply", "--include-guarded", box)
        assert (project / ".vscode" / "tasks.json").exists()
        for words in (("-i", box), (box, "/etc"), ("nobody",), (b,)):
            assert u.run("apply", *words).code == 125


def do_discard(u, b):
    with reviewed(u) as (box, project):
        assert "they are in your project" in u.ok("discard", box, "a").text and u.ok("diff", "--name-only", box, "a").out == b""
        assert u.ok("diff", "--name-only", box).out and u.run("discard", box, "a").code == 125
        kept = u.json("discard", "--json", box)["kept"]
        assert kept.startswith("auto-") and u.ok("diff", box).out == b"" and (project / "a").read_text() == "one\n"
        assert u.ok("discard", box).text == "there was nothing to throw away\n" and u.run("discard", b).code == 125


def do_guard(u, b):
    assert u.json("guard", "--json", b) == []
    with project_folder() as folder:
        project = pathlib.Path(folder)
        u.create("live", "--project", "live", "--project-path", project)
        u.ok("exec", "-q", "live", "--", "sh", "-c", f"cd {project}; echo 1 > .envrc; mkdir d; echo 2 > d/.envrc")
        assert wait_until(lambda: len(u.json("guard", "--json", "live")) == 2) and u.json("guard", "--json", "live") == u.pale.json("guard", "--json", "live")
        assert u.ok("guard", "live").text == u.pale.ok("guard", "live").text
        taken = {i["path"]: str(i["number"]) for i in u.json("guard", "--json", "live")}
        assert u.run("guard", "live", "--release", taken[".envrc"]).code == 125, "it runs"
        u.ok("stop", "live")
        u.ok("guard", "live", "--release", taken[".envrc"])
        assert (project / ".envrc").read_text() == "1\n" and [i["path"] for i in u.json("guard", "--json", "live")] == ["d/.envrc"]
        for flags in (("--release", taken["d/.envrc"], "--to", "/tmp"), ("--release", "7"), ("--drop", "0"), ("--drop", "x")):
            assert u.run("guard", "live", *flags).code == 125
        u.ok("guard", "live", "--drop", taken["d/.envrc"])
        assert u.json("guard", "--json", "live") == []
        u.ok("rm", "-f", "live")


def do_net(u, b):
    assert u.ok("net", "learn", b).text == u.pale.ok("net", "learn", b).text and "network: none" in u.ok("net", "learn", b).text
    assert u.json("net", "learn", "--json", b) == {"rules": [], "left_out": [], "not_counted": 0}
    p = u.start("net", "watch", "--all", "--json", b)
    u.ok("quarantine", b)
    line = json.loads(p.stdout.readline())
    p.kill()
    assert line["event"] == "net.cut" and line["by"] == "quarantine" and u.run("net", "watch", "nobody").code == 125


def do_quarantine(u, b):
    assert u.json("quarantine", "--json", b) == {"quarantined": 1} and u.pale.json("inspect", "--json", b)["cut"] == "quarantine"
    assert u.json("inspect", "--json", b)["cut"] == "quarantine" and "by quarantine" in u.ok("inspect", b).text and "(quarantine)" in u.ok("ls").text
    u.ok("quarantine", "--lift", b)
    assert "cut" not in u.json("inspect", "--json", b) and u.run("quarantine", "nobody").code == 125


def do_panic(u, b):
    told = u.json("panic", "--json")
    assert told == {"cut": True, "live": 1, "stopped": 0, "once": 0, "failed": 0} and u.json("ls", "--json")[0]["cut"] == "panic"
    assert "hold again" in u.ok("panic", "--lift").text and "cut" not in u.pale.json("ls", "--json")[0]


def do_approvals(u, b):
    assert u.json("approvals", "--json") == [] and u.ok("approvals", "list").text.startswith("ID")
    policy = u.pale.root / "asks.json"
    policy.write_text(json.dumps({"network": {"mode": "filtered", "egress": ["ask.test=ask"]}}))
    u.create("asks", "--policy", policy)
    watch = u.start("approvals", "watch", "--json")
    for verdict in ("allow", "deny"):
        asker = u.start("exec", "-q", "asks", "--", "python3", "-c", ASKER)
        assert wait_until(lambda: u.json("approvals", "--json"))
        [q] = u.json("approvals", "--json")
        assert (q["host"], q["port"], q["box_name"]) == ("ask.test", 80, "asks") and u.pale.json("approvals", "--json") == [q]
        assert json.loads(watch.stdout.readline())["id"] == q["id"]
        u.ok("approvals", verdict, q["id"], *(["--box", "--for", "1h"] if verdict == "deny" else []))
        asker.wait(20)
        assert json.loads(watch.stdout.readline())["state"] == "closed" and u.run("approvals", verdict, q["id"]).code == 125
    watch.terminate()
    u.ok("rm", "-f", "asks")


ASKER = r"import socket; s = socket.create_connection(('ask.test', 80)); s.send(b'GET / HTTP/1.1\r\nHost: ask.test\r\n\r\n'); s.recv(9)"


def do_serve(u, b):
    status = u.json("serve", "--status", "--json")
    assert status["running"] is True and status["host"] == u.env["PALE_HOST"] and status["boxes"] == 1
    assert "serves on" in u.ok("serve", "--status").text
    for flags in ((), ("--stop",), ("--foreground",)):
        r = u.run("serve", *flags)
        assert r.code == 125 and "own host" in r.errors


def do_token(u, b):
    made = u.json("token", "create", "--json", "--name", "t")
    assert "wire" in made["rights"]
    assert made["id"] in u.ok("token", "ls").text
    u.ok("token", "revoke", made["id"])
    assert next(t for t in u.json("token", "ls", "--json") if t["id"] == made["id"])["revoked"]


def do_mcp(u, b):
    asked = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "exec", "arguments": {"command": "echo far"}}})
    r = u.run("mcp", b, input=asked.encode() + b"\n")
    assert r.code == 0 and r.json()["result"]["content"][0]["text"] == "far\n"


def stays_here(*words):
    def check(u, _):
        r = u.run(*words)
        assert r.code == 125 and "this host alone" in r.errors
    return check


do_claude, do_codex, do_gemini, do_qwen, do_opencode, do_copilot = map(stays_here, ("claude", "codex", "gemini", "qwen", "opencode", "copilot"))
do_agent = stays_here("agent", "--", "true")


def do_export(u, b):
    archive = pathlib.Path(u.pale.home) / "b.tar.zst"
    r = u.ok("export", "-o", archive, b)
    assert r.text.startswith(f"exported box {b} to {archive}: an archive of ") and archive.stat().st_size > 100
    assert u.json("export", "--json", "-f", "-o", archive, b)["archive_bytes"] == archive.stat().st_size
    assert u.ok("export", "--plain", "-o", "-", b).out[:16] == b"pale-export.json"
    for words, says in (((b,), "-f"), (("--at", "none", "-o", "-", b), "no snapshot"), (("-o", "-", "nobody"), "nobody"), (("-o", "-", "../x"), "name")):
        r = u.run("export", *words, cwd=u.pale.home)
        assert r.code == 125 and says in r.errors and r.out == b"", r


def do_import(u, b):
    archive = pathlib.Path(u.pale.home) / "i.tar.zst"
    u.ok("export", "-o", archive, b)
    assert u.ok("import", archive, "i1").text.startswith("box i1 [user] id=")
    made = u.json("import", "--json", "--memory", "200M", "-", "i2", input=archive.read_bytes())
    assert made["from"] == b and u.json("inspect", "--json", "i2")["policy"]["limits"]["memory"]["value"] == 200 << 20
    for words, says in (((archive, "i1"), "already"), (("/none", "x"), "/none"), (("/dev/zero", "x"), "no file"), ((archive, "-x"), ""), (("--read", "etc", archive, "x"), "write all of it")):
        r = u.run("import", *words)
        assert r.code == 125 and says in r.errors, r
    u.ok("rm", "i1", "i2")


def do_image(u, b):
    archive = pathlib.Path(u.pale.home) / "a.tar"
    archive.write_bytes(small_tar())
    assert u.json("image", "ls", "--json") == [] and u.ok("image", "ls").text.startswith("NAME")
    r = u.ok("image", "build", "i", "--from", "tar", "--file", archive)
    assert r.text.startswith("built image i from tar: sha256:") and u.json("image", "ls", "--json") == u.pale.json("image", "ls", "--json")
    made = u.json("image", "build", "j", "--from", "tar", "--file", "-", "--json", input=archive.read_bytes())
    assert made["files"] == 1 and u.json("image", "inspect", "j", "--json") == u.pale.json("image", "inspect", "j", "--json")
    assert u.ok("image", "verify", "i", "j").text == u.pale.ok("image", "verify", "i", "j").text and "digest" in u.ok("image", "inspect", "i").text
    for words, says in ((("build", "x", "--from", "tar", "--url", "http://127.0.0.1:1/x"), "nothing is fetched there"), (("build", "x", "--from", "tar"), "--file"),
                        (("build", "x", "--from", "oci", "--file", u.pale.home), "not a folder"), (("build", "-x", "--from", "minimal"), ""), (("inspect", "none"), "no image"),
                        (("build", "x", "--from", "tar", "--file", "/dev/zero"), "no file"), (("build", "x", "--from", "oci", "--file", archive), "no OCI"),
                        (("build", "x", "--from", "minimal", "--file", archive), "no meaning"), (("build", "x", "--from", "minimal", "--suite", "s"), "no meaning")):
        r = u.run("image", *words)
        assert r.code == 125 and says in r.errors, r
    assert u.ok("gc", "--images", "-n").text.startswith("image i,j, sha256:")
    u.ok("image", "rm", "i", "j")
    assert u.pale.json("image", "ls", "--json") == []


def do_agents(u, b):
    assert "claude" in u.ok("agents").text  # of this host, where they run


def do_completion(u, b):
    assert "--host" in u.ok("completion", "bash").text


def do_version(u, b):
    assert u.ok("version").text.startswith("pale ")


VERBS = {name[3:]: f for name, f in globals().items() if name.startswith("do_")}


def test_every_verb_has_a_row(pale):
    told = {line.split()[0] for line in pale.run(expect=125).text.splitlines() if line.startswith("  ")}
    assert told == set(VERBS), "a verb must say here what it does through --host"


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("verb", VERBS)
def test_verb(far, verb, way):
    u = far.user(way)
    u.create("b")
    VERBS[verb](u, "b")
    assert not (far.away / "d").exists(), "a box was made on this side"


# --- commands and terminals ---


def test_a_terminal_follows_its_window_and_its_keys(user):
    user.ok("create", "b")
    t = user.terminal("exec", "-it", "b", "--", "sh", rows=31, cols=97)
    try:
        t.expect(r"\$ ")
        t.line("stty size")
        t.expect("31 97")
        t.resize(40, 100)
        t.expect(r"\$ ")
        t.line("until stty size | grep '^40'; do sleep 0.1; done")  # keys may overtake the news of the window
        t.expect("40 100")
        t.line("trap 'echo caug''ht' INT; sleep 30")
        time.sleep(0.3)
        t.send(b"\x03")
        t.expect("caught")
        t.line("exit 6")
        assert t.wait() == 6
        assert not t.is_raw()
    finally:
        t.close()


def test_signals_reach_the_command(user):
    user.ok("create", "b")
    p = user.start("exec", "-q", "b", "--", "sh", "-c", "trap 'echo got; exit 33' TERM; echo up; while :; do sleep 0.1; done")
    assert p.stdout.readline() == b"up\n"
    p.send_signal(signal.SIGTERM)
    assert p.stdout.readline() == b"got\n"
    assert p.wait(10) == 33


def running(user, box):
    return [j for j in user.json("ps", "--json", box) if j["state"] == "running"]


def test_a_command_ends_with_its_client(user):
    """Also one that does not read its input, so that nothing moves on the connection."""
    user.ok("create", "b")
    for command in (("sleep", "60"), ("sh", "-c", "echo up; sleep 60")):
        p = user.start("exec", "-i", "-q", "b", "--", *command, stdin=subprocess.PIPE)
        try:
            p.stdin.write(bytes(100000))
        except BrokenPipeError:
            pass
        assert wait_until(lambda: running(user, "b"))
        p.kill()
        p.wait()
        assert wait_until(lambda: not running(user, "b"), 10)


def test_a_kept_command_goes_on_and_is_come_back_to(user):
    user.ok("create", "b")
    p = user.start("exec", "--keep", "b", "--", "sh", "-c", "echo one; sleep 60")
    assert p.stdout.readline() == b"one\n"
    p.kill()
    p.wait()
    (job,) = running(user, "b")
    p = user.start("attach", "-q", "b", job["job"], stdin=subprocess.PIPE)
    assert p.stdout.readline() == b"one\n"
    user.ok("kill", "b", job["job"])
    assert p.wait(10) == 137


def test_a_slow_reader_holds_up_its_own_command_alone(user):
    near = user
    near.ok("create", "b")
    p = near.start("exec", "-q", "b", "--", "sh", "-c", "head -c 20000000 /dev/zero; echo done >&2")
    time.sleep(0.5)
    assert near.ok("exec", "-q", "b", "--", "echo", "other").out == b"other\n"
    out, err = p.communicate(timeout=60)
    assert len(out) == 20000000 and err == b"done\n"


def test_a_box_that_is_down_is_started(user):
    user.ok("create", "--no-start", "b")
    assert user.ok("exec", "-q", "b", "--", "echo", "up").out == b"up\n"
    user.ok("stop", "b")
    user.ok("write", "b", "f", input=b"x")
    assert user.ok("cat", "b", "f").out == b"x"


@pytest.mark.parametrize("sig", [signal.SIGINT, signal.SIGKILL])
def test_a_box_for_one_command_goes_however_we_end(user, sig):
    # Not a child of the shell: dash forgets an interrupt that comes while it starts one.
    p = user.start("run", "-q", "--", "sh", "-c", "echo up; exec sleep 60")
    assert p.stdout.readline() == b"up\n"
    (box,) = user.json("ls", "--json")
    assert box["name"].startswith("run-")
    p.send_signal(sig)
    p.wait(15)
    assert wait_until(lambda: user.json("ls", "--json") == [], 15)


def test_variables_that_the_policy_lets_pass_are_ours(near):
    near.ok("create", "--env", "MINE", "b")
    assert near.ok("exec", "-q", "b", "--", "sh", "-c", "echo $MINE$OTHER", env={"MINE": "a", "OTHER": "b"}).out == b"a\n"


def test_a_policy_file_of_ours_becomes_the_same_policy_there(near, far):
    (near.cwd / "p.yaml").write_text("""
limits: {memory: 300M, processes: none, output: 1G}
env: {set: {A: "b c", M: "l1\\nl2"}, pass: [LANG, "LC_*"]}
read: [/usr/share]
volumes: ["/usr/lib:/mnt/lib:ro"]
guard: ["-.vscode", extra]
seccomp: debug
""")
    near.ok("create", "--policy", "p.yaml", "--wall", "5m", "--no-start", "b")
    far.pale.ok("create", "--policy", near.cwd / "p.yaml", "--wall", "5m", "--no-start", "c")
    assert near.json("inspect", "--json", "b")["policy_digest"] == far.pale.json("inspect", "--json", "c")["policy_digest"]
    (near.cwd / "p.yaml").write_text("limit: 5\n")
    r = near.run("create", "--policy", "p.yaml", "d")
    assert r.code == 125 and "p.yaml:1:" in r.errors


def test_where_host_may_stand(far, near):
    env = {**near.env, "PALE_HOST": ""}
    near.ok("create", "b")
    for words in (["--host", far.socket, "ls"], [f"--host={far.socket}", "ls"], ["ls", "--host", far.socket],
                  ["--host", "unix:///nowhere", "ls", f"--host={far.socket}"]):
        assert " ready " in near.ok(*words, env=env).text, words
    assert near.ok("exec", "-q", "--host", far.socket, "b", "--", "echo", "--host", env=env).out == b"--host\n"
    # An empty one means here, where there is nothing.
    assert near.json("ls", "--json", "--host", "") == []
    r = near.run("--host", env=env)
    assert r.code == 125 and "needs a value" in r.errors


# --- who may ---


def test_tokens_decide(far):
    assert "needs a token" in far.user("tcp", " ").run("ls", env={"PALE_TOKEN": ""}).errors
    r = far.user("tcp", "pale_wrong").run("ls")
    assert r.code == 125 and "unknown, expired or revoked" in r.errors
    made = far.pale.json("token", "create", "--json")
    u = far.user("tcp", made["token"])
    u.ok("create", "b")
    p = u.start("exec", "-q", "b", "--", "sh", "-c", "echo up; sleep 60")
    assert p.stdout.readline() == b"up\n"
    far.pale.ok("token", "revoke", made["id"])
    for verb in (["ls"], ["exec", "b", "--", "true"], ["cp", "b:/tmp", "x"], ["run", "--", "true"]):
        r = u.run(*verb)
        assert r.code == 125 and "revoked" in r.errors, r
    p.kill()


def test_a_token_in_a_file(far):
    u = far.user("tcp")
    path = far.away / "token"
    path.write_text(u.env.pop("PALE_TOKEN") + "\n")
    path.chmod(0o600)
    r = u.ok("ls", env={"PALE_TOKEN_FILE": str(path)})
    assert not r.err
    path.chmod(0o644)
    assert "others may read" in u.ok("ls", env={"PALE_TOKEN_FILE": str(path)}).errors
    path.write_text("a\r\nX: y")
    assert "no token has" in u.run("ls", env={"PALE_TOKEN_FILE": str(path)}).errors
    assert u.run("ls", env={"PALE_TOKEN_FILE": str(far.away / "none")}).code == 125
    assert u.run("ls", env={"PALE_TOKEN": "x" * 4000}).code == 125


def test_tenants_see_their_own(far):
    one, two = (far.user("tcp", far.token("--tenant", name)) for name in ("one", "two"))
    one.ok("create", "b")
    two.ok("create", "b")
    one.ok("write", "b", "f", input=b"one")
    two.ok("write", "b", "f", input=b"two")
    assert one.ok("cat", "b", "f").out == b"one" and two.ok("cat", "b", "f").out == b"two"
    (box,) = one.json("ls", "--json")
    (other,) = two.json("ls", "--json")
    assert "tenant" not in box and box["id"] != other["id"]
    for verb in (["exec", other["id"], "--", "true"], ["cat", other["id"], "f"], ["inspect", other["id"]], ["stop", other["id"]],
                 ["rm", other["id"]], ["audit", other["id"]], ["policy", "show", other["id"]], ["ps", other["id"]]):
        r = one.run(*verb)
        assert r.code == 125 and "no such box" in r.errors, r
    info = one.json("inspect", "--json", "b")
    assert not {"data", "state_dir", "keeper_pid", "init_pid"} & set(info)
    assert one.run("token", "ls").code == 125 and one.run("doctor").code == 125
    operator = far.user("unix")
    assert {(b["name"], b["tenant"]) for b in operator.json("ls", "--json")} == {("b", "one"), ("b", "two")}
    assert operator.ok("cat", other["id"], "f").out == b"two"


def test_the_right_to_the_wire_is_one_of_its_own(far):
    far.user("unix").ok("create", "b")
    u = far.user("tcp", far.token("--right", "exec", "--right", "box.read", "--right", "file.read"))
    r = u.run("exec", "b", "--", "true")
    assert r.code == 125 and "no right to box.wire" in r.errors
    r = far.pale.run("token", "create", "--box", "b", "--right", "wire")
    assert r.code == 125 and "cannot have wire" in r.errors
    # With that right alone commands run; what passes from our environment is not known then.
    u = far.user("tcp", far.token("--right", "wire"))
    assert u.ok("exec", "-q", "b", "--", "echo", "x").out == b"x\n"


# --- the wire itself ---


def upgrade(far, headers, rest=b""):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(10)
    s.connect(far.socket[len("unix://"):])
    s.sendall(b"GET /v1/boxes/b/wire HTTP/1.1\r\nHost: x\r\n" + headers + b"\r\n" + rest)
    data = b""
    while b"\r\n\r\n" not in data:
        more = s.recv(65536)
        assert more, data
        data += more
    return s, data


GOOD = b"Connection: Upgrade\r\nUpgrade: pale-wire\r\nPale-Wire-Version: 2\r\n"
ASK_INFO = b"\0\0\0\0\x85\0\0\0"
TELL_INFO = 197


def test_another_version_is_told_to_be_one(far, near):
    near.ok("create", "b")
    _, answer = upgrade(far, GOOD.replace(b": 2", b": 1"))
    assert answer.startswith(b"HTTP/1.1 426 ") and b"same version of pale on both sides" in answer and b"Pale-Wire-Version: 2" in answer
    for headers in (b"", GOOD.replace(b"pale-wire\r\n", b"websocket\r\n"), GOOD.replace(b"Connection: Upgrade\r\n", b"")):
        assert upgrade(far, headers)[1].startswith(b"HTTP/1.1 426 ")


def test_bytes_pass_and_a_half_close_is_passed_on(far, near):
    near.ok("create", "b")
    s, answer = upgrade(far, GOOD, ASK_INFO)  # what is sent ahead of the answer is not lost
    assert answer.startswith(b"HTTP/1.1 101 ")
    body = answer.split(b"\r\n\r\n", 1)[1]
    while more := s.recv(65536):
        body += more
    assert body[4] == TELL_INFO
    # One that says its last before anything else is let go by the keeper.
    s, answer = upgrade(far, GOOD)
    s.shutdown(socket.SHUT_WR)
    assert s.recv(65536) == b""
    # What is no frame is the keeper's to refuse.
    s, answer = upgrade(far, GOOD, b"\xff" * 64)
    data = answer.split(b"\r\n\r\n", 1)[1]
    while more := s.recv(65536):
        data += more
    assert b"not pale's protocol" in data
    assert near.ok("exec", "-q", "b", "--", "echo", "x").out == b"x\n"


# --- TLS ---


def test_only_who_is_proved_is_spoken_to(far):
    u = far.user("https")
    u.ok("ls")
    seen = far.proxies[-1].seen
    assert b"Authorization: Bearer " in seen
    r = u.run("ls", env={"PALE_CA_FILE": ""})
    assert r.code == 125 and "does not hold" in r.errors and "PALE_CA_FILE" in r.errors
    other = far.proxy("other")
    r = u.run("ls", env={"PALE_HOST": f"https://localhost:{other.port}"})
    assert r.code == 125 and "does not hold" in r.errors and "mismatch" in r.errors
    assert other.seen == b"", "something was said to a host that was not proved"
    good = far.proxy()
    u.ok("ls", env={"PALE_HOST": f"https://127.0.0.1:{good.port}"})
    r = u.run("ls", env={"PALE_HOST": f"https://localhost:{far.port}"})
    assert r.code == 125 and "TLS" in r.errors
    r = u.run("ls", env={"PALE_HOST": f"https://localhost:{free_port()}"})
    assert r.code == 125 and "refused" in r.errors
    r = u.run("ls", env={"PALE_CA_FILE": "/nowhere"})
    assert r.code == 125 and "PALE_CA_FILE" in r.errors


def test_the_dialler_knows_no_token_and_ends_with_us(far):
    u = far.user("https")
    u.ok("create", "b")
    p = u.start("exec", "-q", "b", "--", "sh", "-c", "echo up; sleep 60")
    assert p.stdout.readline() == b"up\n"
    dial = [pid for pid in harness.pids() if harness.cmdline(pid)[:2] == [b"pale-dial", b"localhost"] and
            harness.cmdline(pid)[2] == str(far.proxies[-1].port).encode()]
    assert len(dial) == 1
    status = open(f"/proc/{dial[0]}/status").read()
    assert "NoNewPrivs:\t1" in status and "Seccomp:\t2" in status
    if os.geteuid() == 0:
        assert b"PALE_TOKEN" not in open(f"/proc/{dial[0]}/environ", "rb").read()
    p.kill()
    assert wait_until(lambda: not harness.cmdline(dial[0]), 10)


# --- daemons that are none ---


class Fake:
    """Takes connections and does with each what it is told to."""

    def __init__(self, act):
        self.act = act
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.held = []
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                s, _ = self.listener.accept()
            except OSError:
                return
            self.held.append(s)
            threading.Thread(target=self.one, args=(s,), daemon=True).start()

    def one(self, s):
        try:
            s.settimeout(30)
            self.act(s)
        except OSError:
            pass

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for s in self.held:
            s.close()


def answers(*parts):
    def act(s):
        s.recv(65536)
        for part in parts:
            s.sendall(part)
        s.shutdown(socket.SHUT_RDWR)
    return act


def hangs(*parts):
    def act(s):
        s.recv(65536)
        for part in parts:
            s.sendall(part)
        s.recv(65536)
        time.sleep(60)
    return act


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: "
SWITCH = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: pale-wire\r\nConnection: Upgrade\r\n\r\n"
FAKES = {
    "nothing": (answers(), "hung up"),
    "garbage": (answers(os.urandom(4096)), "does not speak HTTP"),
    "smtp": (answers(b"220 mail ESMTP\r\n"), "does not speak HTTP"),
    "half a head": (answers(b"HTTP/1.1 200 OK\r\nContent-"), "hung up"),
    "half a body": (answers(HEAD + b"100\r\n\r\n{\"items\":["), "hung up"),
    "too much": (answers(HEAD + b"99999999999\r\n\r\n{"), "longer than it may be"),
    "endless head": (answers(b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 9000), "does not speak HTTP"),
    "no json": (answers(HEAD + b"4\r\n\r\n{'a}"), "cannot be read"),
    "another shape": (answers(HEAD + b"2\r\n\r\n{}"), "no items"),
    "depth": (answers(HEAD + b"20000\r\n\r\n" + b"[" * 20000), "cannot be read"),
    "bad chunk": (answers(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"), "cannot be read"),
    "two lengths": (answers(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}x"), "does not speak HTTP"),
    "a page": (answers(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 6\r\n\r\n<html>"), "status 502"),
    "escapes": (answers(b"HTTP/1.1 403 F\r\nContent-Length: 64\r\n\r\n"
                        b'{"code":"denied","detail":"\\u001b[31mred \\u202e backwards now."}'), "\\x1b[31mred"),
    "switched": (answers(SWITCH + b"x" * 100), "status 101"),
    "silence": (hangs(), "did not answer within"),
    "slow": (hangs(HEAD + b"100\r\n\r\n"), "did not answer within"),
}


@pytest.mark.parametrize("kind", FAKES)
def test_a_daemon_that_is_none_is_told_of(pale, kind):
    act, said = FAKES[kind]
    fake = Fake(act)
    try:
        r = pale.run("ls", env={"PALE_HOST": fake.url, "PALE_TOKEN": "t", "PALE_HOST_WAIT": "1s"}, timeout=15)
        assert r.code in (124, 125) and said in r.errors and b"\x1b" not in r.err and "\u202e" not in r.errors, r
    finally:
        fake.close()


WIRE_FAKES = {
    "refused": (answers(HEAD + b"2\r\n\r\n{}"), ("answered with status 200",)),
    "hangs up": (answers(SWITCH), ("the keeper ended",)),
    "garbage": (answers(SWITCH + b"\xff" * 100), ("does not speak our language",)),
    "half a frame": (answers(SWITCH + b"\x10\0\0\0\xc1\0\0\0half"), ("the keeper ended",)),
    "another upgrade": (answers(SWITCH.replace(b"pale-wire", b"websocket")), ("status 101",)),
    "silence": (hangs(), ("did not answer within",)),
}


@pytest.mark.parametrize("kind", WIRE_FAKES)
@pytest.mark.parametrize("verb", [("exec", "b", "--", "true"), ("ps", "b"), ("cat", "b", "f"), ("logs", "b", "1"), ("prove", "b")],
                         ids=lambda v: v[0])
def test_a_keeper_that_is_none_is_told_of(pale, kind, verb):
    act, said = WIRE_FAKES[kind]

    def after_policy(s):
        request = s.recv(65536, socket.MSG_PEEK)
        if b"/policy" in request:  # exec asks what passes first
            s.recv(65536)
            body = b'{"code":"denied","detail":"no"}'
            s.sendall(b"HTTP/1.1 403 Forbidden\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        act(s)

    fake = Fake(after_policy)
    try:
        r = pale.run(*verb, env={"PALE_HOST": fake.url, "PALE_TOKEN": "t", "PALE_HOST_WAIT": "1s"}, timeout=15)
        assert r.code in (124, 125) and any(w in r.errors for w in said), r
    finally:
        fake.close()


def test_questions_that_are_not_answered_end(pale):
    fake = Fake(hangs(SWITCH))
    try:
        for verb in (("ps", "b"), ("kill", "b", "1")):
            r = pale.run(*verb, env={"PALE_HOST": fake.url, "PALE_TOKEN": "t", "PALE_HOST_WAIT": "500ms"}, timeout=15)
            assert r.code == 124 and "in time" in r.errors
    finally:
        fake.close()


def test_a_daemon_that_dies_in_the_middle(far, near):
    near.ok("create", "b")
    p = near.start("exec", "b", "--", "sh", "-c", "echo up; sleep 60")
    assert p.stdout.readline() == b"up\n"
    pid = near.json("serve", "--status", "--json")["pid"]
    os.kill(pid, signal.SIGKILL)
    assert p.wait(10) == 125
    assert b"the keeper ended before the command did" in p.stderr.read()
    assert wait_until(lambda: near.run("ls").code == 0), "the steward starts another"
    assert near.ok("exec", "-q", "b", "--", "echo", "again").out == b"again\n"


def test_a_daemon_that_is_stopped_lets_its_clients_know(far, near):
    near.ok("create", "b")
    p = near.start("exec", "--keep", "b", "--", "sh", "-c", "echo up; sleep 60; echo down")
    assert p.stdout.readline() == b"up\n"
    far.pale.ok("serve", "--stop")
    assert p.wait(10) == 125
    far.pale.ok("serve", "--port", far.port)
    (job,) = wait_until(lambda: running(near, "b"))
    near.ok("kill", "b", job["job"])


def test_a_daemon_asked_about_its_host_asks_no_other(far, near):
    far.pale.ok("serve", "--stop")
    far.pale.ok("serve", "--host", "", "--port", far.port, env={"PALE_HOST": far.socket})
    assert near.run("doctor", "--json", timeout=60).code in (0, 1)


def test_where_no_daemon_is(pale):
    for host, said in ((f"unix://{pale.root}/none", "no daemon listens"), (f"http://127.0.0.1:{free_port()}", "refused"),
                       ("http://192.0.2.1:8839", "in the clear"), ("http://boxes.example.org", "https://"), ("127.0.0.1:8839", "write unix://"),
                       ("unix://relative", "whole path"), ("https://a/b", "no host and port"), ("https://x\ny", "no host and port")):
        for verb in (["ls"], ["exec", "b", "--", "true"], ["run", "--", "true"], ["cat", "b", "f"], ["token", "ls"]):
            r = pale.run(*verb, env={"PALE_HOST": host, "PALE_TOKEN": "t"})
            assert r.code == 125 and said in r.errors, r
    assert pale.run("exec", "../x", "--", "true", env={"PALE_HOST": f"unix://{pale.root}/none"}).code == 125
