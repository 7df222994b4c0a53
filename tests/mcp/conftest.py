# SPDX-License-Identifier: Apache-2.0
"""Programs from npm that speak MCP, and what they are let loose on."""
import contextlib
import json
import os
import pathlib
import shlex
import subprocess
import sys

import pytest

import harness
import npm

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import packages  # noqa: E402

SECONDS = 40


class Node:
    """Runs programs of the packages, with nothing of the user's around them."""

    def __init__(self, modules, home):
        self.modules, self.node = modules, npm.node(modules)
        self.env = {"PATH": f"{pathlib.Path(self.node).parent}:/usr/local/bin:/usr/bin:/bin", "HOME": str(home), "LANG": "C.UTF-8", "CI": "1"}

    def run(self, script, *args, env=None, timeout=SECONDS):
        return subprocess.run([self.node, str(self.modules / script), *map(str, args)], env={**self.env, **(env or {})}, cwd=self.env["HOME"],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout)

    def start(self, script, *args, env=None):
        return subprocess.Popen([self.node, str(script), *map(str, args)], env={**self.env, **(env or {})}, cwd=self.env["HOME"], text=True,
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@pytest.fixture(scope="session")
def node(session_root):
    try:
        modules = packages.install()
    except npm.Missing as e:
        pytest.skip(str(e))
    home = session_root / "node"
    home.mkdir()
    return Node(modules, home)


@contextlib.contextmanager
def served_fixture():
    program = os.environ.get("PALE_MCP_FIXTURE", harness.BUILD.parent / "tests" / "mcp" / "mcp-fixture")
    if not os.access(program, os.X_OK):
        pytest.skip(f"{program} is not built")
    p = subprocess.Popen([program, "--port", "0", HERE / "offer.json"], stdout=subprocess.PIPE, text=True)
    try:
        yield int(p.stdout.readline())
    finally:
        alive = p.poll() is None
        p.kill()
        p.wait()
        p.stdout.close()
        assert alive, f"the fixture ended with {p.returncode}"


@pytest.fixture
def fixture_port():
    with served_fixture() as port:
        yield port


# --- the product ---

class Box:
    """A box with what its clients need: over HTTP with a token of the box, over stdio as the operator."""

    def __init__(self, daemon, port, name):
        self.daemon, self.pale, self.rest = daemon, daemon.pale, daemon.rest
        self.name, self.info = name, daemon.rest.make(name)
        self.id = self.info["id"]
        self.token = self.pale.json("token", "create", "--box", name, "--json")["token"]
        self.url = f"http://127.0.0.1:{port}/mcp/{self.id}"
        self.stdio = self.script(name)

    def script(self, name):
        """A program that serves it: clients do not hand on the environment that says which home this is."""
        path = self.pale.root / f"mcp-{name}"
        words = [f"{k}={v}" for k, v in self.pale.env.items()] + [self.pale.program, "mcp", "--global", name]
        path.write_text("#!/bin/sh\nexec env -i " + shlex.join(words) + "\n")
        path.chmod(0o755)
        return str(path)

    def jobs(self):
        return self.rest.good("GET", f"/v1/boxes/{self.id}/jobs")["items"]

    def running(self, mark):
        return [j["id"] for j in self.jobs() if j["state"] == "running" and mark in json.dumps(j)]


@pytest.fixture(scope="module")
def make_box(shared_daemon):
    """make_box(name): a Box, which goes with its daemon."""
    return lambda name: Box(*shared_daemon, name)


@pytest.fixture(scope="module")
def box(make_box):
    return make_box("tools")
