# SPDX-License-Identifier: Apache-2.0
"""A keeper that is started while its predecessor still ends: it touches nothing of the box before it is let go, and believes nothing that it
read before. And what somebody who takes a snapshot does not wait for."""
import pathlib
import shutil
import socket
import subprocess
import time

import pytest

import harness

ASK_GO, TELL_ERROR, TELL_DONE = 149, 196, 199
GET_READY_S = 0.5  # it needs some milliseconds


class Next:
    """The next keeper of a box that is stopped: all it lacks is the word that lets it go."""

    def __init__(self, pale, box):
        info = pale.info(box)
        self.state, self.data = pathlib.Path(info["state_dir"]), pathlib.Path(info["data"])
        self.before = self.looks()
        self.ours, theirs = socket.socketpair()
        self.ours.settimeout(20)
        words = [pale.build / "pale-keeper", "next", box, info["id"], self.data, self.state, pale.root / "run" / "pale" / f"{info['id']}.sock", "local"]
        self.process = subprocess.Popen(["/bin/sh", "-c", 'exec "$0" "$@" 3<&0 < /dev/null', *map(str, words)], stdin=theirs, env=pale.env, cwd="/")
        theirs.close()
        time.sleep(GET_READY_S)

    def let_go(self):
        """… and its answer: (type, text)."""
        self.ours.sendall(bytes([0, 0, 0, 0, ASK_GO, 0, 0, 0]))
        head = self.ours.recv(8, socket.MSG_WAITALL)
        assert len(head) == 8, head
        n = int.from_bytes(head[:4], "little")
        return head[4], self.ours.recv(n, socket.MSG_WAITALL).decode(errors="replace") if n else ""

    def looks(self):
        """What of the box a keeper changes."""
        files = {p.name: p.read_bytes() for p in self.state.iterdir() if p.is_file()}
        return files, sorted(str(p) for p in self.data.rglob("*"))


@pytest.fixture
def stopped(pale):
    pale.create("b", "--no-autosave")
    pale.ok("stop", "b")
    return pale


def test_one_that_waits_has_touched_nothing_and_keeps_nobody_out(stopped):
    nobody = Next(stopped, "b")
    assert nobody.process.poll() is None
    assert nobody.looks() == nobody.before
    done = stopped.sh("b", "echo here")  # the box is anybody's to start
    assert done.text.strip() == "here", done
    kind, text = nobody.let_go()
    assert kind == TELL_ERROR and "another keeper has this box" in text, text
    assert nobody.process.wait(10) == 125
    assert stopped.sh("b", "true").code == 0


def test_one_that_is_not_needed_ends_and_leaves_nothing(stopped):
    nobody = Next(stopped, "b")
    nobody.ours.close()
    assert nobody.process.wait(10) == 125
    assert nobody.looks() == nobody.before
    assert not list((stopped.root / "run" / "pale").glob("claim-*"))


def test_one_that_is_let_go_is_the_keeper_of_the_box(stopped):
    next_one = Next(stopped, "b")
    assert next_one.let_go() == (TELL_DONE, "")
    assert stopped.info("b")["keeper_pid"] == next_one.process.pid
    stopped.ok("stop", "b")
    assert next_one.process.wait(10) == 0


def test_a_policy_that_has_changed_meanwhile_is_not_that_of_before(stopped):
    next_one = Next(stopped, "b")
    policy = next_one.state / "policy"
    shutil.copy(policy, policy.with_name("policy.new"))
    policy.with_name("policy.new").rename(policy)
    kind, text = next_one.let_go()
    assert kind == TELL_ERROR and "has changed while it was started" in text, text
    assert next_one.process.wait(10) == 125
    assert stopped.sh("b", "true").code == 0


@pytest.mark.parametrize("words", [("snapshot", "b", "two"), ("restore", "b", "one")])
def test_a_box_goes_on_with_the_keeper_that_was_started_early(pale, words):
    pale.create("b", "--no-autosave")
    pale.sh("b", "echo 1 > ~/f")
    pale.ok("snapshot", "b", "one")
    pale.sh("b", "echo 2 > ~/f")
    old = pale.info("b")["keeper_pid"]
    pale.ok(*words)
    keepers = [pid for pid, (name, _) in harness.processes_of(pale.root).items() if name == "pale-keeper"]
    assert keepers == [pale.info("b")["keeper_pid"]] and keepers != [old]
    assert b"next" in harness.cmdline(keepers[0])
    assert pale.sh("b", "cat ~/f").text.strip() == ("2" if words[0] == "snapshot" else "1")


def test_what_only_the_kernel_needed_goes_with_the_next_tidying(pale):
    pale.create("b", "--no-autosave")
    pale.sh("b", "echo 1 > ~/f")
    pale.ok("snapshot", "b", "one")
    layers = pathlib.Path(pale.info("b")["data"]) / "layers"
    pale.ok("gc")
    open_one = [p for p in layers.iterdir() if (p / "work").exists()]
    assert len(open_one) == 1 and len(list(layers.iterdir())) == 2, list(layers.rglob("*"))
    assert not (open_one[0] / "home" / "f").exists()
