# SPDX-License-Identifier: Apache-2.0
"""A fake internet: a network and a mount namespace of our own in which every address there is belongs to servers of ours.

`with Internet() as net` makes one. Nothing leaves it: it has a loopback interface alone, to which all routes lead. Commands enter it with the
words in net.wrap before them. Every server writes down what arrives; and since there is one interface only, its own counter says whether
anything at all was sent, to a server or to nobody.

Root makes the namespaces as they are. An ordinary user makes a user namespace first, in which he is root and `newuidmap` does not work. To
run as an ordinary user with all his ids, root makes the namespaces and runs the tests in them (`tests/internet/enter`); then PALE_INTERNET is
set, and Internet() finds itself inside.
"""
import contextlib
import fnmatch
import functools
import json
import os
import pathlib
import re
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.parse

from internet import places
from internet.certificates import Authority

TESTS = pathlib.Path(__file__).resolve().parent.parent
BUNDLE = "/etc/ssl/certs/ca-certificates.crt"
# Run by whoever owns the network namespace. A port below 1024 is as good as any other there, and everybody may ping.
PREPARE = """set -e
ip link set lo up
ip addr add {own4}/32 dev lo
ip addr add {own6}/128 dev lo nodad
ip route add local default dev lo src {own4}
ip -6 route add local default dev lo src {own6}
echo 0 >/proc/sys/net/ipv4/ip_unprivileged_port_start
echo 0 2147483647 >/proc/sys/net/ipv4/ping_group_range 2>/dev/null || echo 0 0 >/proc/sys/net/ipv4/ping_group_range
mount --bind {folder}/resolv.conf /etc/resolv.conf
mount --bind {folder}/hosts /etc/hosts
mount --bind {folder}/bundle.pem {bundle}
echo ready
"""


class Missing(Exception):
    """What this host lacks."""


@functools.lru_cache
def trouble():
    """Why there can be no fake internet here, or None."""
    lacking = [t for t in ("ip", "unshare", "nsenter", "openssl") if not shutil.which(t, path="/usr/sbin:/usr/bin:/sbin:/bin")]
    if lacking:
        return f"there is no {lacking[0]} here"
    if not os.path.exists(BUNDLE):
        return f"there is no {BUNDLE} here"
    if "PALE_INTERNET" in os.environ:
        return None
    done = subprocess.run([*unshare(), "true"], capture_output=True, text=True)
    return None if done.returncode == 0 else f"no network namespace can be made here: {done.stderr.strip()}"


def unshare():
    return ["unshare", "--net", "--mount"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--net", "--mount"]


def furnish(folder):
    """What the servers and the namespaces need to be there."""
    folder = pathlib.Path(folder)
    (folder / "authority").mkdir()
    (folder / "site").mkdir()
    Authority(folder / "authority").make()
    ours = (folder / "authority" / "root.pem").read_text()
    (folder / "bundle.pem").write_text(pathlib.Path(BUNDLE).read_text() + ours)
    (folder / "resolv.conf").write_text(f"nameserver {places.RESOLVER}\noptions timeout:1 attempts:2\n")
    (folder / "hosts").write_text(places.HOSTS)
    (folder / "canary").write_text("canary-" + secrets.token_hex(12))
    (folder / "log").touch()


def preparation(folder):
    return PREPARE.format(folder=folder, bundle=BUNDLE, own4=places.HOST_OWN, own6=places.HOST_OWN6)


def is_allowed(name, port=None):
    """By the rules that boxes of the tests have; without a port: on any of them."""
    verdicts = set()
    for rule in places.RULES:
        rest, _, verdict = rule.partition("@")[0].partition("=")
        domain, _, ports = rest.partition(":")
        if fnmatch.fnmatchcase(name.lower().removesuffix("."), domain) and (port is None or not ports or str(port) in ports.split(",")):
            if verdict != "deny" or port is not None or not ports:
                verdicts.add(verdict)
    return "" in verdicts and "deny" not in verdicts


def is_ours(address, port):
    """One of the servers that the rules lead to."""
    n = next((n for n in places.LEGITIMATE if address in (places.v4(n), places.v6(n))), None)
    return n is not None and port in places.PORTS.get(n, {port})


def is_stray(event):
    """Did something arrive where a box that keeps its rules is never seen, or in the name of somebody it may not reach?"""
    to, port = event["to"], event["port"]
    if event["kind"] == "ask":
        return to != places.RESOLVER or not event["name"] or not is_allowed(event["name"]) or event["type"] not in ("A", "AAAA")
    if not is_ours(to, port):
        return (to, port) != (places.RESOLVER, 53)
    named = [event["sni"]] if event["kind"] == "hello" else []
    if event["kind"] == "request":
        named = [re.sub(r":\d+$", "", event["host"])]
        if not event["target"].startswith(("/", "*")) or event["method"] == "CONNECT":
            named.append(urllib.parse.urlsplit(event["target"] if "://" in event["target"] else "//" + event["target"]).hostname)
    return any(not n or not is_allowed(n, port) for n in named)


class Mark:
    """A moment: what the log and the interface had seen."""

    def __init__(self, log_bytes, packets):
        self.log_bytes, self.packets = log_bytes, packets


class Internet:
    def __init__(self):
        if trouble():
            raise Missing(trouble())
        self.inside = "PALE_INTERNET" in os.environ
        self.holder, self.servers = None, {}

    def __enter__(self):
        try:
            if self.inside:
                self.folder = pathlib.Path(os.environ["PALE_INTERNET"])
                self.wrap = []
            else:
                self.folder = pathlib.Path(tempfile.mkdtemp(prefix=f"plt-{os.environ.get('PALE_TEST_TAG', 'x')}-", dir="/tmp"))
                self.folder.chmod(0o755)
                furnish(self.folder)
                self.make_namespaces()
            for kind in ("names", "servers"):
                self.start(kind)
        except BaseException:
            self.__exit__()
            raise
        return self

    def make_namespaces(self):
        self.holder = subprocess.Popen([*unshare(), "sh", "-c", preparation(self.folder) + "exec sleep 100000"], stdin=subprocess.DEVNULL,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if self.holder.stdout.readline() != "ready\n":
            self.holder.kill()
            raise Missing(f"the namespaces cannot be prepared: {self.holder.stderr.read().strip()}")
        user = [] if os.geteuid() == 0 else ["--user", "--preserve-credentials"]
        self.wrap = ["nsenter", "--target", str(self.holder.pid), *user, "--net", "--mount", "--"]

    def __exit__(self, *_):
        for kind in list(self.servers):
            self.stop(kind)
        if self.holder:
            self.holder.kill()
            self.holder.communicate()
        if not self.inside and hasattr(self, "folder"):
            shutil.rmtree(self.folder, ignore_errors=True)

    def start(self, kind):
        p = subprocess.Popen([*self.wrap, sys.executable, "-W", "ignore", "-m", "internet.serve", kind, str(self.folder)], stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE,
                             env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "PYTHONPATH": str(TESTS), "PYTHONDONTWRITEBYTECODE": "1",
                                  "LANG": "C.UTF-8"}, start_new_session=True)
        if p.stdout.readline() != b"ready\n":
            p.kill()
            raise Missing(f"the {kind} of the fake internet do not start")
        self.servers[kind] = p

    def stop(self, kind):
        p = self.servers.pop(kind)
        p.kill()
        p.communicate()

    def run(self, *words, **more):
        """A command in this world and in no box."""
        return subprocess.run([*self.wrap, *map(str, words)], **{"capture_output": True, "text": True, "timeout": 30, "stdin": subprocess.DEVNULL, **more})

    @property
    def canary(self):
        return (self.folder / "canary").read_text()

    # --- what happened ---

    def packets(self):
        """That ever went through the only interface."""
        task = "self" if self.inside else self.holder.pid
        line = next(x for x in open(f"/proc/{task}/net/dev") if x.strip().startswith("lo:"))
        return int(line.split(":")[1].split()[1])

    def mark(self):
        return Mark((self.folder / "log").stat().st_size, self.packets())

    def settle(self, seconds=2):
        """Waits until nothing has been sent for a moment, so that what ends late is not taken for what comes next."""
        until = time.monotonic() + seconds
        before = -1
        while before != (before := self.packets()) and time.monotonic() < until:
            time.sleep(0.012)

    def is_silent(self, mark):
        """Nothing was sent, to anybody, since then."""
        return self.packets() == mark.packets

    def events(self, mark):
        with open(self.folder / "log", "rb") as f:
            f.seek(mark.log_bytes)
            return [json.loads(line) for line in f.read().splitlines(keepends=True) if line.endswith(b"\n")]

    def strays(self, mark):
        return [e for e in self.events(mark) if is_stray(e)]

    def wait_for(self, mark, wanted, seconds=3):
        """The first event since then that is wanted, or None."""
        until = time.monotonic() + seconds
        while True:
            found = next((e for e in self.events(mark) if wanted(e)), None)
            if found or time.monotonic() > until:
                return found
            time.sleep(0.005)

    def policy(self, path, rules=tuple(places.RULES)):
        """A file for --policy, with a network that these rules hold."""
        pathlib.Path(path).write_text(json.dumps({"network": {"mode": "filtered", "egress": list(rules)}}))
        return path

    def write(self, name, text):
        """Changes the host's own hosts or resolv.conf where it stands."""
        (self.folder / name).write_text(text)


shared = []  # the one of this process, once for each who uses it


@contextlib.contextmanager
def internet():
    """As a fixture has it: skips where there can be none. Whoever is inside one already shares it: there is a port 80 only once."""
    import pytest
    if trouble():
        pytest.skip(trouble())
    shared.append(shared[-1] if shared else Internet().__enter__())
    try:
        yield shared[-1]
    finally:
        last = shared.pop()
        if not shared:
            last.__exit__()
