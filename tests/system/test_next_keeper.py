# SPDX-License-Identifier: Apache-2.0
"""A keeper that is started while its predecessor still ends: it touches nothing of the box before it is let go, builds its wall by a list of
layers that is still to be, and believes nothing that it read before. And what somebody who takes a snapshot does not wait for."""
import array
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import time

import pytest

import harness
from past_play import INJECT

ASK_GO, ASK_LIST, ASK_SAVED, ASK_KEPT, TELL_ERROR, TELL_DONE = 149, 156, 157, 158, 196, 199
GET_READY_S = 0.5  # it needs some milliseconds for what there is to do then


def frame(kind, data=b""):
    return len(data).to_bytes(4, "little") + bytes([kind, 0, 0, 0]) + data


class Next:
    """The next keeper of a box that is stopped: all it lacks is the words that let it go."""

    def __init__(self, pale, box, a_list=b""):
        info = pale.info(box)
        self.state, self.data = pathlib.Path(info["state_dir"]), pathlib.Path(info["data"])
        self.before = self.looks()
        self.ours, theirs = socket.socketpair()
        self.ours.settimeout(20)
        words = [pale.build / "pale-keeper", "next", box, info["id"], self.data, self.state, pale.root / "run" / "pale" / f"{info['id']}.sock", "local"]
        self.process = subprocess.Popen(["/bin/sh", "-c", 'exec "$0" "$@" 3<&0 < /dev/null', *map(str, words)], stdin=theirs, env=pale.env, cwd="/")
        theirs.close()
        if a_list is not None:
            self.ours.sendall(frame(ASK_LIST, a_list))
        if a_list:
            harness.wait_until(lambda: self.builder() or self.process.poll() is not None, 30)
        time.sleep(GET_READY_S)
        if not a_list:
            harness.wait_until(lambda: not self.builder(), 30)  # those that write the maps of ids are gone again

    def go(self, lock="lock"):
        with open(self.state / lock, "r+b") as held:
            self.ours.sendmsg([frame(ASK_GO)], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [held.fileno()]))])

    def saved(self, *words):
        """… and its answer: (type, text)."""
        for word in words or (ASK_SAVED, ASK_KEPT):
            try:
                self.ours.sendall(frame(word))
            except BrokenPipeError:
                pass  # it has ended, and told why
        head = self.ours.recv(8, socket.MSG_WAITALL)
        assert len(head) == 8, head
        n = int.from_bytes(head[:4], "little")
        return head[4], self.ours.recv(n, socket.MSG_WAITALL).decode(errors="replace") if n else ""

    def let_go(self):
        self.go()
        return self.saved()

    def looks(self):
        """What of the box a keeper changes."""
        files = {p.name: p.read_bytes() for p in self.state.iterdir() if p.is_file()}
        return files, sorted(str(p) for p in self.data.rglob("*"))

    def builder(self):
        """The process that builds the wall, if it has begun to."""
        task = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        try:
            return [int(pid) for pid in task.read_text().split()]
        except OSError:
            return []  # it has ended


@pytest.fixture
def stopped(pale):
    pale.create("b", "--no-autosave")
    pale.sh("b", "echo 1 > ~/f")
    pale.ok("snapshot", "b", "one")
    pale.sh("b", "echo 2 > ~/f")
    pale.ok("stop", "b")
    pale.ok("gc")
    return pale


def stack_of(pale):
    return (pathlib.Path(pale.info("b")["state_dir"]) / "stack").read_bytes()


@pytest.mark.parametrize("ahead", [False, True])
def test_one_that_waits_has_touched_nothing_and_keeps_nobody_out(stopped, ahead):
    nobody = Next(stopped, "b", stack_of(stopped) if ahead else b"")
    assert nobody.process.poll() is None
    assert bool(nobody.builder()) == ahead
    assert nobody.looks() == nobody.before
    done = stopped.sh("b", "cat ~/f")  # the box is anybody's to start
    assert done.text.strip() == "2", done
    kind, text = nobody.let_go()
    assert kind == TELL_ERROR and "another keeper has this box" in text, text
    assert nobody.process.wait(10) == 125
    assert stopped.sh("b", "true").code == 0


@pytest.mark.parametrize("ahead", [False, True])
def test_one_that_is_not_needed_ends_and_leaves_nothing(stopped, ahead):
    nobody = Next(stopped, "b", stack_of(stopped) if ahead else b"")
    builder = nobody.builder()
    assert bool(builder) == ahead
    nobody.ours.close()
    assert nobody.process.wait(10) == 125
    assert nobody.looks() == nobody.before
    assert not list((stopped.root / "run" / "pale").glob("claim-*"))
    assert not any(pathlib.Path(f"/proc/{pid}").exists() for pid in builder)


@pytest.mark.parametrize("ahead", [False, True])
def test_one_that_is_let_go_is_the_keeper_of_the_box(stopped, ahead):
    next_one = Next(stopped, "b", stack_of(stopped) if ahead else b"")
    assert next_one.let_go() == (TELL_DONE, "")
    assert stopped.info("b")["keeper_pid"] == next_one.process.pid
    assert stopped.sh("b", "cat ~/f").text.strip() == "2"
    stopped.ok("stop", "b")
    assert next_one.process.wait(10) == 0


@pytest.mark.parametrize("ahead", [False, True])
@pytest.mark.parametrize("words", [[], [ASK_SAVED]], ids=["saved", "kept"])
def test_one_whose_starter_is_lost_before_the_list_is_saved_and_kept_is_no_box(stopped, ahead, words):
    next_one = Next(stopped, "b", stack_of(stopped) if ahead else b"")
    next_one.go()
    for word in words:
        next_one.ours.sendall(frame(word))
    time.sleep(GET_READY_S)
    assert next_one.process.poll() is None
    assert not (stopped.root / "run" / "pale" / f"{stopped.info('b')['id']}.sock").exists()
    builder = next_one.builder()
    assert bool(builder) == (ahead or bool(words))
    next_one.ours.close()
    assert next_one.process.wait(10) == 125
    assert not any(pathlib.Path(f"/proc/{pid}").exists() for pid in builder)
    assert stopped.sh("b", "cat ~/f").text.strip() == "2"


def test_a_list_that_never_was_saved_makes_no_box(stopped):
    a_list = stack_of(stopped)
    other = a_list.replace(b" one", b" two")
    assert other != a_list
    next_one = Next(stopped, "b", other)
    kind, text = next_one.let_go()
    assert kind == TELL_ERROR and "have become others while it was started" in text, text
    assert next_one.process.wait(10) == 125
    assert stopped.sh("b", "cat ~/f").text.strip() == "2"


@pytest.mark.parametrize("a_list, says", [(b"pale stack 9\n", "no list of layers"), (None, "does not need it any more")])
def test_one_that_hears_nonsense_ends(stopped, a_list, says):
    nobody = Next(stopped, "b", a_list)
    try:
        nobody.go()
    except BrokenPipeError:
        pass
    kind, text = nobody.saved()
    assert kind == TELL_ERROR and says in text, text
    assert nobody.process.wait(10) == 125
    assert nobody.looks() == nobody.before


@pytest.mark.parametrize("ahead", [False, True])
def test_a_box_that_is_cut_off_while_its_next_keeper_waits_is_not_started_by_it(stopped, ahead):
    next_one = Next(stopped, "b", stack_of(stopped) if ahead else b"")
    next_one.go()
    next_one.ours.sendall(frame(ASK_SAVED))
    time.sleep(GET_READY_S)
    cutting = stopped.start("panic")  # it waits for somebody to tell
    assert harness.wait_until((stopped.root / "state" / "pale" / "panic").exists, 10), list(stopped.root.rglob("panic"))
    kind, text = next_one.saved(ASK_KEPT)
    assert kind == TELL_ERROR and "was cut off" in text, text
    assert next_one.process.wait(10) == 125
    assert cutting.wait(30) == 0
    stopped.sh("b", "true")
    assert stopped.info("b")["cut"] == "panic"


def test_a_restore_that_fails_has_not_touched_the_open_layer(pale, hostdir):
    """… although nothing was in it, and the wall is built for it: with a volume, for which a folder is made that the snapshot does not have."""
    if not INJECT.exists():
        pytest.skip("the fault injector is not built")
    pale.create("b", "--no-autosave")
    pale.sh("b", "echo 0 > ~/f")
    pale.ok("snapshot", "b", "one")
    pale.ok("stop", "b")
    pale.ok("policy", "set", "b", f"volumes={hostdir}:/home/agent/deep/vol:rw")
    pale.sh("b", "chmod 700 ~/deep")
    pale.ok("snapshot", "b", "two")
    rename = 264  # renameat, by which the list gets its name
    words = [INJECT, "--limit", "10000", "--report", pale.root / "report", "fail", "cli", f"{rename}:1", "28", "--", pale.program, "exec", "-q", "b", "--", "true", "::",
             pale.program, "restore", "b", "one"]
    done = subprocess.run(list(map(str, words)), env=pale.env, cwd=pale.home, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False)
    assert b"No space left" in done.stderr, done
    assert pale.sh("b", "stat -c %a ~/deep").text.strip() == "700"


def test_another_lock_is_not_the_boxs(stopped):
    nobody = Next(stopped, "b", stack_of(stopped))
    nobody.go("policy")
    kind, text = nobody.saved()
    assert kind == TELL_ERROR and "is not its lock" in text, text
    assert nobody.process.wait(10) == 125
    assert nobody.looks() == nobody.before


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


def test_what_is_written_between_the_plan_and_the_stop_is_not_lost(pale):
    """A restore of a box in which nothing has changed is planned so; then something has."""
    pale.create("b", "--no-autosave")
    pale.sh("b", "echo 1 > ~/f")
    pale.ok("snapshot", "b", "one")
    job = pale.run("exec", "-d", "b", "--", "sh", "-c", "while ! [ -e /run/now ]; do sleep 0.02; done; echo late > ~/f; sleep 1000")
    assert job.code == 0, job
    keeper = pale.info("b")["keeper_pid"]
    pale.sh("b", "sh -c 'sleep 0.5; touch /run/now' > /dev/null 2>&1 &")
    os.kill(keeper, signal.SIGSTOP)
    restore = pale.start("restore", "--force", "b", "one")
    time.sleep(1.2)
    os.kill(keeper, signal.SIGCONT)
    assert restore.wait(30) == 0
    assert pale.sh("b", "cat ~/f").text.strip() == "1"
    kept = [s["name"] for s in pale.json("snapshots", "--json", "b") if s["name"].startswith("auto-")]
    assert len(kept) == 1, kept
    pale.ok("restore", "b", kept[0])
    assert pale.sh("b", "cat ~/f").text.strip() == "late"


def test_whichever_place_was_written_to_is_whole_afterwards(pale):
    pale.create("b", "--no-autosave")
    look = "cd; grep -r '' . | sort; cd /tmp; grep -r '' . | sort"
    seen = {}
    for name, write in (("home", "echo h > ~/h"), ("tmp", "echo t > /tmp/t"), ("both", "echo 2 > ~/h; rm /tmp/t; mkdir /tmp/d; echo u > /tmp/d/u"),
                        ("less", "rm ~/h; rm -r /tmp/d"), ("more", "echo m > /tmp/m")):
        pale.sh("b", write)
        seen[name] = pale.sh("b", look).text
        pale.ok("snapshot", "b", name)
        assert pale.sh("b", look).text == seen[name], name
    for name in ("both", "home", "more", "less", "tmp"):
        pale.sh("b", f"echo {name} > ~/stray; echo {name} > /tmp/stray")
        pale.ok("restore", "b", name)
        assert pale.sh("b", look).text == seen[name], name


def test_a_word_that_cannot_be_sent_holds_nobody_up(pale):
    """Neither the next keeper, which waits for it, nor who waits for that one."""
    if not INJECT.exists():
        pytest.skip("the fault injector is not built")
    pale.create("b", "--no-autosave")
    sendmsg = 46
    for n in range(1, 9):
        pale.sh("b", f"echo {n} > ~/f")
        words = [INJECT, "--limit", "10000", "--report", pale.root / "report", "fail", "cli", f"{sendmsg}:{n}", "12", "--", pale.program, "exec", "-q", "b", "--", "true", "::",
                 pale.program, "snapshot", "b"]
        subprocess.run(list(map(str, words)), env=pale.env, cwd=pale.home, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False)
        told = json.loads((pale.root / "report").read_text())
        assert not told["hangs"], (n, told["hangs"])
        assert pale.sh("b", "cat ~/f").text.strip() == str(n)
        if not told.get("hit"):
            break
    assert n > 4  # to stop, of the layers, to go, of the list, of the disk
