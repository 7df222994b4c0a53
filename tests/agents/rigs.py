# SPDX-License-Identifier: Apache-2.0
"""A rig: one harness, through pale or plainly, in a scene, with a model on loopback."""
import re
import subprocess
import time

import pytest

import harness
import harnesses
import npm

SECONDS = 60
BOX_TOOLS = ("exec", "job", "read", "write", "edit", "list", "glob", "grep", "apply_patch", "policy", "diff", "snapshot", "restore")


def tools_of(prefix):
    """The box's tools, as a model is offered them."""
    return {prefix + t for t in BOX_TOOLS}


class Rig:
    """Runs a harness through pale, or plainly, with the scene's home and a model on loopback; nothing else can be reached."""

    def __init__(self, pale, scene, name):
        self.pale, self.scene, self.name = pale, scene, name
        self.bins = []
        pale.env["HOME"] = str(scene.home)
        pale.env["XDG_CACHE_HOME"] = str(pale.root / "cache")

    def install(self):
        """The real one. Trials of it are remembered for all tests."""
        self.pale.env["XDG_CACHE_HOME"] = str(self.pale.root.parent / "cache")
        try:
            self.bins = harnesses.fetch(self.name)
        except npm.Missing as e:
            pytest.skip(str(e))
        return self

    def env(self, model, **more):
        path = ":".join([*map(str, self.bins), "/usr/local/bin:/usr/bin:/bin"])
        dead = {n: model.url for n in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY")}
        dead |= {"npm_config_registry": "http://127.0.0.1:9/", "npm_config_fetch_retries": "0"}  # some install packages as they start
        return {**self.pale.env, **dead, "no_proxy": "127.0.0.1,localhost", "NO_PROXY": "127.0.0.1,localhost", "PATH": path, "SHELL": "/bin/bash",
                "TERM": "xterm-256color", "PALE_TEST_MODEL": model.url, **more}

    def through_pale(self, model, *words, flags=(), expect=0, **more):
        done = self.pale.run(self.name, *flags, "--", *words, env=self.env(model, **more), cwd=self.scene.repo, timeout=SECONDS)
        assert expect is None or done.code == expect, (done, model.requests)
        return done

    def plain(self, model, *words, **more):
        """The same program with no wiring of ours."""
        try:
            return subprocess.run([str(self.bins[0] / self.name), *words], env=self.env(model, **more), cwd=self.scene.repo, timeout=SECONDS,
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True)
        except subprocess.TimeoutExpired as e:
            return e

    def terminal(self, args, model, cwd=None, **more):
        return harness.Terminal(args, self.env(model, **more), rows=40, cols=120, cwd=cwd or self.scene.repo)

    def box(self, *command):
        return self.pale.run("exec", "-q", "agent", "--", *command, cwd=self.scene.repo)

    def end(self):
        listed = self.pale.run("ls", "--json", cwd=self.scene.repo)
        for b in listed.json() if listed.code == 0 else []:
            self.pale.more_ids.add(b["id"])
            self.pale.run("rm", b["name"], cwd=self.scene.repo)
        left = list((self.pale.root / "run" / "pale" / "agents").glob("*"))
        assert not left, f"shadow folders left behind: {left}"


def bare(shown):
    """What a terminal shows, without its escapes."""
    return re.sub(rb"\x1b\[[0-9;?]*[a-zA-Z]", b"", shown)


def bang(t, ready, command, is_done, confirm=None, polite=True):
    """Types a command after '!' once ready stands there, and waits until is_done(what is shown). confirm: (what asks first, the keys)."""
    confirmed = False
    try:
        until = time.monotonic() + 30
        while not re.search(ready, bare(t.seen)) and time.monotonic() < until:
            t.pump(0.2)
            if confirm and not confirmed and re.search(confirm[0], bare(t.seen)):
                confirmed = True
                for keys in confirm[1]:
                    time.sleep(0.4)
                    t.send(keys)
        assert re.search(ready, bare(t.seen)), bare(t.seen)[-3000:]
        settle(t, 0.7)
        for keys in ("!", command, "\r"):
            t.send(keys)
            settle(t, 0.3)
        until, again = time.monotonic() + 15, time.monotonic() + 3
        while not is_done(bare(t.seen)) and time.monotonic() < until:
            t.pump(0.2)
            if time.monotonic() > again:  # the first may have come while it was still busy
                t.send("\r")
                again += 3
        return bare(t.seen)
    finally:
        leave(t) if polite else t.close()


def settle(t, seconds):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        t.pump(0.05)


def leave(t):
    """As a person does: twice Ctrl-C, and again."""
    for _ in range(4):
        for _ in range(2):
            if t.process.poll() is None:
                t.send("\x03")
                t.pump(0.2)
        until = time.monotonic() + 2
        while t.process.poll() is None and time.monotonic() < until:
            t.pump(0.1)
    t.close()


def round_trip(prefix, repo):
    """A model's work with the box's tools, turn by turn."""
    return [
        [(prefix + "exec", {"command": "id -un; git log --oneline; cat hello.py"})],
        [(prefix + "edit", {"path": f"{repo}/hello.py", "old": "hello", "new": "goodbye"})],
        [(prefix + "read", {"path": f"{repo}/hello.py"})],
        [(prefix + "exec", {"command": "python3 hello.py > out.txt; cat out.txt"})],
    ]


def check_round_trip(scene, results):
    """It was done in the box, and is in the real files."""
    assert len(results) == 4 and "agent\n" in results[0] and "the first commit" in results[0], results
    assert "goodbye" in results[2] and "goodbye" in results[3], results
    assert (scene.repo / "hello.py").read_text() == "print('goodbye')\n" and (scene.repo / "out.txt").read_text() == "goodbye\n"
