# SPDX-License-Identifier: Apache-2.0
"""rename: what goes with a box, what is refused, and one of its two names whatever happens in between."""
import json
import os
import pathlib
import random
import signal
import subprocess
import time

import pytest

from harness import REAL_ROOT, wait_until


def made(pale, name="b", *flags):
    pale.create(name, *flags)
    pale.ok("write", name, "precious", input=b"gold")
    pale.ok("stop", name)
    pale.names |= {"c", "d"}  # what it will be called: the harness looks for what those leave
    return pale.info(name)


def records(pale, box):
    return [json.loads(line) for line in pale.ok("audit", "--json", box).out.splitlines()]


def names(pale, **more):
    return sorted(b["name"] for b in pale.json("ls", "--json", **more))


def state_dir(pale):
    return pathlib.Path(pale.env["XDG_STATE_HOME"]) / "pale"


@pytest.mark.basic
def test_all_of_a_box_goes_with_its_name(pale):
    old = made(pale, "b", "--env", "X=kept")
    told = pale.json("rename", "--json", "b", "c")
    new = pale.info("c")
    assert (told["name"], told["was"], told["id"]) == ("c", "b", old["id"]) and new["id"] == old["id"] and new["data"] == told["data"]
    assert new["policy"] == old["policy"] and new["policy_digest"] == old["policy_digest"]
    assert not os.path.exists(old["data"]) and new["state_dir"] == old["state_dir"] and names(pale) == ["c"]
    assert os.readlink(os.path.join(new["state_dir"], "data")) == new["data"]
    assert pale.run("inspect", "b").code == 125
    assert pale.info(new["id"])["name"] == "c"
    assert pale.ok("cat", "c", "precious").text == "gold"
    assert pale.sh("c", "echo $X; hostname").text == "kept\nc\n"
    assert not os.path.lexists(os.path.join(new["state_dir"], "moving"))


def test_audit_chain_goes_on(pale):
    old = made(pale)
    before = records(pale, "b")
    assert pale.ok("rename", "b", "c").text.startswith("box c [user] id=")
    pale.exec("c", "true")
    rows = records(pale, "c")
    assert rows[:len(before)] == before
    (row,) = [r for r in rows if r["event"] == "box.rename"]
    new = pale.info("c")
    assert (row["box"], row["id"], row["to"]) == ("b", old["id"], "c") and new["id"] == old["id"]
    assert {(r["box"], r["id"]) for r in rows[rows.index(row) + 1:]} == {("c", new["id"])}
    pale.ok("audit", "--verify", "c")


def test_there_and_back_and_never_started(pale):
    pale.ok("create", "--no-start", "b")
    pale.names |= {"c"}
    old = pale.info("b")
    pale.ok("rename", "b", "c")
    pale.ok("rename", "c", "b")
    assert pale.info("b")["id"] == old["id"] and pale.exec("b", "true").code == 0
    assert [r["event"] for r in records(pale, "b")][:3] == ["box.made", "box.rename", "box.rename"]


def test_what_is_refused_changes_nothing(pale):
    old = made(pale)
    pale.create("c")
    for words, say in ((["b", "c"], "there is already"), (["c", "x"], "`pale stop c`"), (["b", "b"], "has that name already"), (["b", "-x"], None),
                       (["b", "../x"], "a box name is"), (["b", "X"], "a box name is"), (["nosuch", "x"], "no box nosuch"), (["b"], None)):
        done = pale.run("rename", *words)
        assert done.code != 0 and (say or "") in done.errors, done
    assert pale.run("rename", "--json", "c", "x").json()["error"]["code"] == "busy"
    assert pale.run("rename", "--json", "b", "c").json()["error"]["code"] == "exists"
    pale.ok("freeze", "c")
    assert pale.run("rename", "c", "x").code == 125
    assert names(pale) == ["b", "c"] and pale.info("b") == old


def test_folder_that_is_no_box_is_in_the_way(pale):
    made(pale)
    other = pathlib.Path(pale.info("b")["data"]).parent / "c"
    for make in (lambda: other.mkdir(), lambda: other.write_text("x"), lambda: other.symlink_to("/tmp")):
        make()
        done = pale.run("rename", "b", "c")
        assert done.code == 125 and "there is already" in done.errors
        other.rmdir() if other.is_dir() and not other.is_symlink() else other.unlink()
    assert names(pale) == ["b"] and pale.ok("cat", "b", "precious").text == "gold"


def test_project_box(pale, hostdir):
    pale.ok("create", "--in-project", "--project", "live", "b", cwd=hostdir)
    pale.ok("stop", "b", cwd=hostdir)
    try:
        assert pale.ok("rename", "b", "c", cwd=hostdir).text.startswith("box c [project] id=")
        assert names(pale, cwd=hostdir) == ["c"] and os.listdir(hostdir / ".pale" / "c") == ["id"]
        assert pale.run("exec", "c", "--", "pwd", cwd=hostdir).text == f"{hostdir}\n"
    finally:
        for name in ("b", "c"):
            pale.run("rm", "-f", name, cwd=hostdir)
    assert not (hostdir / ".pale").exists()


def test_files_of_every_id_stay_whose_they_were(pale):
    made(pale)
    script = "touch /tmp/mine; stat -c '%u %n' /tmp/mine precious"
    before = pale.sh("b", script).text
    root = pale.run("exec", "-u", "root", "b", "--", "sh", "-c", "touch /tmp/roots; stat -c %u /tmp/roots")
    pale.ok("stop", "b")
    pale.ok("rename", "b", "c")
    assert pale.sh("c", script).text == before
    if root.code == 0:
        assert pale.run("exec", "-u", "root", "c", "--", "stat", "-c", "%u", "/tmp/roots").text == root.text


def test_what_a_killed_keeper_left_under_the_old_id_is_taken_away(pale):
    made(pale)
    pale.exec("b", "true")
    info = pale.info("b")
    pale.ok("freeze", "b")
    os.kill(info["keeper_pid"], signal.SIGKILL)
    assert wait_until(lambda: pale.run("rename", "b", "c").code == 0)
    runtime = pathlib.Path(pale.env["XDG_RUNTIME_DIR"]) / "pale"
    assert not [p for p in runtime.rglob("*") if info["id"] in p.name]
    assert pale.exec("c", "true").code == 0  # and the harness looks for cgroups


# --- killed in between ---

def spoil(pale, old, new, stage):
    """As a kill leaves it: what is meant is written down, and, at the second stage, the folder has its new name."""
    data, state = pathlib.Path(old["data"]).parent, pathlib.Path(old["state_dir"])
    (state / "moving").symlink_to(data / new)
    if stage >= 1:
        (data / old["name"]).rename(data / new)


LOOKS = {"ls": ["ls"], "old": ["inspect", "b"], "new": ["inspect", "c"], "create": ["create", "--no-start", "c"], "rename": ["rename", "b", "d"],
         "exec-old": ["exec", "-q", "b", "--", "true"], "exec": ["exec", "-q", "c", "--", "true"], "gc": ["gc"]}


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("stage", range(2))
def test_whoever_looks_next_finds_one_name(pale, stage, look):
    """The name that its folder has is the name of the box, and nobody has to finish anything to find it."""
    old = made(pale)
    spoil(pale, old, "c", stage)
    done = pale.run(*LOOKS[look])
    good = {"ls", "gc"} | ({"new", "exec"} if stage else {"old", "exec-old", "create", "rename"})
    assert done.code == (0 if look in good else 125), done
    name = "d" if look == "rename" and not stage else "bc"[stage]
    assert name in names(pale) and pale.info(name)["id"] == old["id"] and pale.info(old["id"])["name"] == name
    assert pale.ok("cat", name, "precious").text == "gold"
    pale.ok("audit", "--verify", name)
    pale.ok("stop", name)
    pale.ok("rename", name, "e")  # which settles what was left
    pale.names |= {"e"}
    assert not os.path.lexists(os.path.join(old["state_dir"], "moving")) and pale.ok("cat", "e", "precious").text == "gold"
    assert set(names(pale)) == ({"e", "c"} if look == "create" and not stage else {"e"})


def test_what_was_taken_back_is_not_found_under_the_name_that_another_has_now(pale):
    """Killed before the folder was moved; then somebody makes a box of the new name."""
    old = made(pale)
    spoil(pale, old, "c", 0)
    pale.create("c")
    assert pale.info("c")["id"] != old["id"] and pale.run("cat", "c", "precious").code != 0
    assert pale.ok("cat", "b", "precious").text == "gold" and names(pale) == ["b", "c"]


@pytest.mark.parametrize("way", ["empty", "file", "link"])
def test_what_is_in_the_way_is_told_and_stays(pale, way):
    made(pale)
    there = pathlib.Path(pale.info("b")["data"]).parent / "c"
    {"empty": lambda: there.mkdir(), "file": lambda: there.write_text("x"), "link": lambda: there.symlink_to("/nonexistent")}[way]()
    done = pale.run("rename", "b", "c")
    assert done.code == 125 and "there is already" in done.errors
    assert os.path.lexists(there) and names(pale) == ["b"] and pale.ok("cat", "b", "precious").text == "gold"
    there.rmdir() if way == "empty" else there.unlink()


def test_killed_at_random_instants_it_has_one_of_its_names(pale):
    made(pale)
    rng = random.Random(int.from_bytes(os.urandom(4), "little"))
    now, kills, moved = "b", 0, 0
    began = time.monotonic()
    pale.ok("rename", "b", "c")
    pale.ok("rename", "c", "b")
    usual = (time.monotonic() - began) / 2
    until = time.monotonic() + 15
    while time.monotonic() < until and kills < 150:
        other = "c" if now == "b" else "b"
        p = subprocess.Popen([pale.program, "rename", now, other], env=pale.env, cwd=pale.home, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        time.sleep(rng.random() * usual * 1.2)
        p.kill()
        kills += p.wait() == -signal.SIGKILL
        p.stderr.close()
        (found,) = names(pale)
        assert found in ("b", "c")
        moved += found != now
        now = found
        assert len(list((state_dir(pale) / "boxes").iterdir())) == 1
    assert kills > 10
    assert pale.ok("cat", now, "precious").text == "gold"
    pale.ok("audit", "--verify", now)
    print(f"{kills} kills, {moved} of them with the new name")


def test_many_at_once(pale):
    """Renames of one box and of several, makings and removals beside them: nobody loses a box or gets another's."""
    made(pale)
    pale.ok("create", "--no-start", "e")
    pale.names |= {"n1", "n2", "n3", "e", "f", "g"}
    for _ in range(6):
        ps = [pale.start("rename", "b", f"n{i}") for i in (1, 2, 3)] + [pale.start("create", "--no-start", n) for n in ("n1", "f", "g")] + [
            pale.start("rename", "e", "f"), pale.start("ls"), pale.start("rm", "-f", "g")]
        for p in ps:
            assert p.wait(30) in (0, 125), p.args
        here = names(pale)
        gold = [n for n in here if n.startswith("n") and pale.run("cat", n, "precious").text == "gold"]
        assert len(gold) == 1, here
        for n in here:
            pale.ok("audit", "--verify", n) if os.path.exists(os.path.join(pale.info(n)["state_dir"], "audit")) else None
            pale.ok("stop", n)
            if n not in gold + ["f"]:
                pale.ok("rm", n)
        pale.ok("rename", gold[0], "b")
        if "f" in here:
            pale.ok("rename", "f", "e")
        else:
            pale.ok("create", "--no-start", "e")
        assert names(pale) == ["b", "e"]
