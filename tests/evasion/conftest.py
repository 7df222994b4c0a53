# SPDX-License-Identifier: Apache-2.0
"""One fake internet, one box that its rules hold, and a twin of that box for every set of defences that is off."""
import os
import pathlib
import re
import secrets
import shutil
import subprocess
import tempfile

import harness
import pytest
from internet import internet

INSIDE = pathlib.Path(__file__).resolve().parent / "inside"
SECONDS = 20
PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"


class Field:
    def __init__(self, net, pale):
        self.net, self.pale = net, pale
        self.tools = pale.root / "k"
        shutil.copytree(INSIDE, self.tools, ignore=shutil.ignore_patterns("__pycache__"))
        self.policy = net.policy(pale.root / "policy.json")
        self.twins = {}
        self.pale.wrap = net.wrap
        self.make(pale, "b")

    def make(self, pale, name):
        pale.ok("create", name, "--policy", self.policy, "--read", self.tools, "-e", f"PATH={PATH}")
        return name

    def side(self, off):
        """(pale, box) with those defences off; none: the wall as it is."""
        if not off:
            return self.pale, "b"
        if off not in self.twins:
            if not os.access(harness.WEAK / "pale", os.X_OK):
                pytest.skip(f"{harness.WEAK}/pale, the weakened build, is not built")
            twin = self.pale.weakened(off)
            self.twins[off] = twin, self.make(twin, f"t{len(self.twins)}")
        return self.twins[off]

    def words(self, case, canary):
        fields = {"K": f"python3 -IS {self.tools}/knock.py", "canary": canary, "abstract": self.net.canary}
        return case.command.format_map(fields)

    def attempt(self, case, off=""):
        return Attempt(self, case, *self.side(off))


class Attempt:
    """One run of a case's command, and what the world sees of it."""

    def __init__(self, field, case, pale, box):
        self.net, self.case, self.pale, self.box = field.net, case, pale, box
        self.canary = "c" + secrets.token_hex(6)
        self.refusals_before = self.refusals()
        self.mark = self.net.mark()
        self.process = subprocess.Popen([*pale.wrap, pale.program, "exec", "-q", box, "--", "sh", "-c", field.words(case, self.canary)], env=pale.env,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.said = b""

    def wait(self):
        try:
            self.said, _ = self.process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.said, _ = self.process.communicate()
            self.said += b" (did not end)"

    def end(self):
        """As soon as something was seen there is nothing to wait for: servers that never answer keep their clients for long."""
        if self.process.poll() is None:
            self.process.terminate()
        self.wait()

    def leak(self):
        """What is to be seen of a leak, or nothing."""
        return getattr(self, "by_" + self.case.judge)()

    def by_silent(self):
        return None if self.net.is_silent(self.mark) else self.net.events(self.mark)[:3] or "packets to nobody"

    def by_unconnected(self):
        return [e for e in self.net.events(self.mark) if e["kind"] != "ask"][:3] or self.net.strays(self.mark)[:3]

    def by_stray(self):
        return self.net.strays(self.mark)[:3]

    def by_smuggled(self):
        return [e for e in self.net.events(self.mark) if e["kind"] == "request" and self.canary in e["target"]] or self.net.strays(self.mark)[:3]

    def by_open(self):
        return self.said if b"OPEN" in self.said else None

    def by_counted(self):
        names = {e["name"].lower() for e in self.net.events(self.mark) if e["kind"] == "ask"}
        return len(names) if len(names) > self.case.count else None

    def refusals(self):
        """How many the box's audit tells of, one by one or, where there were many in a second, by their number."""
        audit = self.pale.root / "state" / "pale" / "boxes" / self.pale.box_id(self.box) / "audit"
        return len(re.findall(rb'"event":"net\.(?:deny|flood)"', audit.read_bytes()))

    def is_audited(self):
        return harness.wait_until(lambda: self.refusals() > self.refusals_before, seconds=2, every=0.005)

    def __repr__(self):
        return f"{self.process.args[-1]}\nsaid: {self.said[-1000:]!r}\nseen: {self.net.events(self.mark)[:10]}"


@pytest.fixture(scope="session")
def field(session_root, pale_at):
    root = pathlib.Path(tempfile.mkdtemp(dir=session_root, prefix=""))
    try:
        with internet() as net, pale_at(root) as p:
            yield Field(net, p)
    finally:
        harness.remove_root(root)
