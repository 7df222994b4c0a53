# SPDX-License-Identifier: Apache-2.0
"""What was lost of an audit log stays told: by --verify, by inspect, through the daemon, after any number of records that came later."""
import json
import os
import shutil
import signal

import pytest

from harness import processes_of, wait_until


def state_of(pale, box):
    return pale.root / "state" / "pale" / "boxes" / pale.info(box)["id"]


def records(pale, box):
    return [json.loads(line) for line in pale.ok("audit", "--json", box).out.splitlines()]


def verify(pale, *which):
    done = pale.run("audit", "--verify", "--json", *which)
    assert done.code in (0, 1), done
    told = done.json()
    assert told["good"] == (done.code == 0)
    return told


def box_with_a_past(pale, name="b"):
    pale.create(name)
    for word in ("one", "two", "three"):
        assert pale.exec(name, "echo", word).code == 0
    pale.ok("stop", name)
    return state_of(pale, name)


def flip(path, at):
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def cut_lines(path, n):
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-n]))


DAMAGE = {
    "last record cut": lambda log, head, other: cut_lines(log, 1),
    "three records cut": lambda log, head, other: cut_lines(log, 3),
    "cut in a record": lambda log, head, other: os.truncate(log, log.stat().st_size - 100),
    "all but the first": lambda log, head, other: log.write_bytes(log.read_bytes().splitlines(keepends=True)[0]),
    "emptied": lambda log, head, other: log.write_bytes(b""),
    "deleted": lambda log, head, other: log.unlink(),
    "both deleted": lambda log, head, other: (log.unlink(), head.unlink()),
    "both emptied": lambda log, head, other: (log.write_bytes(b""), head.write_bytes(b"")),
    "head deleted": lambda log, head, other: head.unlink(),
    "head emptied": lambda log, head, other: head.write_bytes(b""),
    "head cut": lambda log, head, other: os.truncate(head, 30),
    "head longer": lambda log, head, other: head.write_bytes(head.read_bytes() * 2),
    "head flipped": lambda log, head, other: flip(head, 3),
    "head's digest flipped": lambda log, head, other: flip(head, 50),
    "end flipped": lambda log, head, other: flip(log, log.stat().st_size - 100),
    "last newline flipped": lambda log, head, other: flip(log, log.read_bytes().rindex(b"\n", 0, -1)),
    "garbage": lambda log, head, other: log.write_bytes(b"garbage\n" * 9000),
    "log of another": lambda log, head, other: shutil.copy(other / "audit", log),
    "head of another": lambda log, head, other: shutil.copy(other / "audit.head", head),
    "both of another": lambda log, head, other: (shutil.copy(other / "audit", log), shutil.copy(other / "audit.head", head)),
}


# The damaged line itself is found first.
IN_PLACE = ("end flipped", "last newline flipped", "garbage")


@pytest.mark.parametrize("how", DAMAGE)
def test_what_is_lost_stays_told(pale, how):
    """… by each of two boxes only of itself."""
    state, other = box_with_a_past(pale), box_with_a_past(pale, "other")
    DAMAGE[how](state / "audit", state / "audit.head", other)
    assert not verify(pale, "b")["good"]
    for _ in range(2):
        assert pale.exec("b", "true").code == 0
        pale.ok("stop", "b")
        told = verify(pale, "b")
        assert not told["good"] and (told["gaps"] == 1 or how in IN_PLACE), told
        assert pale.json("inspect", "--json", "b")["audit_gaps"] == 1
    assert "audit --verify b" in pale.ok("inspect", "b").text
    done = pale.run("audit", "--verify", "b")
    assert done.code == 1 and done.text.startswith("BAD"), done
    assert verify(pale, "other")["good"] and "audit_gaps" not in pale.info("other")


def test_missing_records_are_named_by_number(pale):
    state = box_with_a_past(pale)
    last = records(pale, "b")[-1]["seq"]
    cut_lines(state / "audit", 3)
    assert pale.exec("b", "true").code == 0
    told = verify(pale, "b")
    assert told["missing"] == 3 and f"records {last - 2} to {last} are missing" in told["problem"], told
    gap = next(r for r in records(pale, "b") if r["event"] == "audit.gap")
    assert gap["seq"] == last + 1 and gap["kept"] == last - 3
    # A second time is a second gap.
    pale.ok("stop", "b")
    cut_lines(state / "audit", 1)
    assert pale.exec("b", "true").code == 0
    assert verify(pale, "b")["gaps"] == 2 and pale.info("b")["audit_gaps"] == 2


def test_whoever_opens_the_log_tells(pale):
    """Not only a keeper: a rename, a change of the policy."""
    for name, verb in (("a", ["rename", "a", "x"]), ("c", ["policy", "set", "c", "limits.processes=40"])):
        state = box_with_a_past(pale, name)
        cut_lines(state / "audit", 2)
        pale.ok(*verb)
        pale.names.add("x")
        told = verify(pale, verb[2] if verb[0] == "rename" else name)
        assert told["missing"] == 2 and told["gaps"] == 1, told


def test_through_the_daemon_it_is_told_the_same(api, pale):
    pale.create("b")
    pale.ok("stop", "b")
    cut_lines(state_of(pale, "b") / "audit", 1)
    assert pale.exec("b", "true").code == 0
    assert wait_until(lambda: api.good("GET", "/v1/boxes/b").get("audit_gaps") == 1)


@pytest.mark.parametrize("name", ["audit", "audit.head"])
@pytest.mark.parametrize("what", ["fifo", "symlink", "folder", "0666"])
def test_what_is_no_log_is_refused_with_a_reason(pale, name, what):
    """… and once it is out of the way the gap is told."""
    path = box_with_a_past(pale) / name
    kept = path.read_bytes()
    path.unlink()
    if what == "fifo":
        os.mkfifo(path, 0o600)
    elif what == "symlink":
        path.symlink_to("/dev/null")
    elif what == "folder":
        path.mkdir()
    else:
        path.write_bytes(kept)
        path.chmod(0o666)
    done = pale.exec("b", "true")
    assert done.code == 125 and str(path) in done.errors and ("chmod 600" if what == "0666" else "move it away") in done.errors, done
    if what != "0666":
        assert pale.run("audit", "--verify", "b").code != 0
    path.rmdir() if what == "folder" else path.unlink()
    assert pale.exec("b", "true").code == 0
    assert verify(pale, "b")["gaps"] == 1


RUNS = {k: DAMAGE[k] for k in ("last record cut", "cut in a record", "emptied", "deleted", "both deleted", "head deleted", "head emptied", "head flipped",
                               "end flipped", "garbage")}


@pytest.mark.parametrize("how", RUNS)
def test_the_log_of_single_runs_tells_too(pale, how):
    for _ in range(3):
        assert pale.run("run", "--", "true").code == 0
    log = pale.root / "state" / "pale" / "runs.audit"
    assert verify(pale, "--runs")["good"]
    RUNS[how](log, log.with_name("runs.audit.head"), None)
    assert not verify(pale, "--runs")["good"] or how == "both deleted"
    for _ in range(2):
        assert pale.run("run", "--", "true").code == 0
        told = verify(pale, "--runs")
        assert not told["good"] and (told["gaps"] == 1 or how in IN_PLACE), told


def test_killed_keepers_lose_nothing_and_leave_a_record(pale):
    """The next opening says that the last keeper ended without a word; one that was stopped is not told of."""
    pale.create("b")
    for n in range(1, 4):
        assert pale.exec("b", "true").code == 0
        os.kill(pale.info("b")["keeper_pid"], signal.SIGKILL)
        assert wait_until(lambda: not processes_of(pale.root))
        assert pale.exec("b", "true").code == 0
        events = [r["event"] for r in records(pale, "b")]
        assert events.count("box.lost") == n and events[events.index("box.lost") + 1] == "box.start"
        assert verify(pale, "b")["good"]
    for _ in range(2):
        pale.ok("stop", "b")
        assert pale.exec("b", "true").code == 0
    assert [r["event"] for r in records(pale, "b")].count("box.lost") == 3


def test_each_of_two_boxes_that_lost_its_keeper_says_so(pale):
    for name in ("a", "b"):
        pale.create(name)
    os.kill(pale.info("a")["keeper_pid"], signal.SIGKILL)
    assert wait_until(lambda: pale.info("a")["state"] != "running")
    pale.ok("stop", "b")
    for name in ("a", "b"):
        assert pale.exec(name, "true").code == 0
    assert [[r["event"] for r in records(pale, n)].count("box.lost") for n in ("a", "b")] == [1, 0]


def test_a_box_has_a_record_from_its_birth(pale):
    pale.create("b")
    first = records(pale, "b")[0]
    assert first["event"] == "box.made" and len(first["policy"]) == 64
    pale.ok("fork", "b", "c")
    pale.names.add("c")
    assert [r["event"] for r in records(pale, "c")][:2] == ["box.forked", "box.made"]


def test_with_the_comparison_left_out_a_cut_log_is_good_again(pale):
    weak = pale.weakened("audit-chain")
    state = box_with_a_past(weak)
    cut_lines(state / "audit", 3)
    assert weak.exec("b", "true").code == 0
    weak.ok("stop", "b")
    assert pale.ok("audit", "--verify", "b").text.startswith("good")
