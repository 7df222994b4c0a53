# SPDX-License-Identifier: Apache-2.0
"""What removing a box must not take along silently: work that has not landed, and the log of what it did."""
import json
import os
import time

import pytest

import harness


@pytest.fixture(params=["plain", "git"])
def project(request, hostdir):
    (hostdir / "a").write_text("one\n")
    if request.param == "git":
        harness.subprocess.run("git init -q && git add a && git -c user.name=t -c user.email=t@x commit -qm one", shell=True, cwd=hostdir, check=True,
                               env={"PATH": os.environ["PATH"], "HOME": str(hostdir)})
    time.sleep(0.05)  # a file of the same instant as the box is one that may have changed since
    return hostdir


def work(pale, name, project):
    pale.ok("create", name, "--project", "review", cwd=project)
    pale.sh(name, "echo box > a")


def test_work_that_has_not_landed_is_not_removed(pale, project):
    work(pale, "one", project)
    pale.ok("create", "two", "--project", "review", cwd=project)
    done = pale.run("rm", "one", expect=125)
    assert "1 file of its project" in done.errors and "pale apply one" in done.errors and "pale rm -f one" in done.errors
    assert pale.exec("one", "cat", "a").text == "box\n" and pale.boxes() == ["one", "two"]
    pale.ok("rm", "two")
    pale.ok("stop", "one")
    pale.run("rm", "one", expect=125)
    assert pale.json("rm", "--json", "one", expect=125)["error"]["code"] == "conflict"
    pale.ok("apply", "one", cwd=project)
    assert (project / "a").read_text() == "box\n"
    pale.ok("rm", "one")
    assert pale.boxes() == []


def test_force_and_other_boxes_ask_nothing(pale, project):
    work(pale, "one", project)
    pale.ok("rm", "-f", "one")
    for mode in ("ro", "none"):
        pale.ok("create", "two", "--project", mode, cwd=project)
        pale.sh("two", "echo x > ~/f")
        pale.ok("rm", "two")
    assert pale.boxes() == [] and (project / "a").read_text() == "one\n"


def test_what_cannot_be_compared_stays(pale, project):
    work(pale, "one", project)
    os.rename(project, f"{project}-away")
    try:
        assert "may have work" in pale.run("rm", "one", expect=125).errors
        pale.ok("rm", "-f", "one")
    finally:
        os.rename(f"{project}-away", project)


@pytest.mark.parametrize("answer,gone", [("n", False), ("y", True), ("\x04", False)])
def test_on_a_terminal_it_asks(pale, terminal, project, answer, gone):
    work(pale, "one", project)
    t = terminal("rm", "one")
    t.expect("Remove it anyway")
    t.line(answer) if answer != "\x04" else t.send(answer)
    assert (t.wait() == 0) == gone
    assert pale.boxes() == ([] if gone else ["one"])


def test_rest_has_force(pale, api, project):
    work(pale, "one", project)
    told = api.bad("DELETE", "/v1/boxes/one", None, 409, "conflict")
    assert "has not landed" in told["detail"]
    assert pale.boxes() == ["one"]
    assert api.delete("/v1/boxes/one?force=true").status == 204
    assert pale.boxes() == []
    socket = f"unix://{pale.root}/run/pale/paled.sock"
    work(pale, "one", project)
    assert "has not landed" in pale.run("--host", socket, "rm", "one", expect=125).errors
    pale.ok("--host", socket, "rm", "-f", "one")


@pytest.mark.parametrize("by", ["here", "far"])
def test_the_log_of_a_removed_box_is_kept(pale, request, by):
    where = []
    if by == "far":
        request.getfixturevalue("daemon")
        where = ["--host", f"unix://{pale.root}/run/pale/paled.sock"]
    ids = {}
    for name in ("one", "two"):
        ids[name] = pale.json(*where, "create", "--json", name)["id"]
        pale.exec(name, "echo", f"canary-{name}")
    pale.ok(*where, "rm", "one")
    pale.ok(*where, "rm", "two")
    for name, other in (("one", "two"), ("two", "one")):
        log = pale.ok("audit", "--json", ids[name]).text
        assert f"canary-{name}" in log and f"canary-{other}" not in log
        assert json.loads(log.splitlines()[-1])["event"] == "box.remove"
        assert "good" in pale.ok("audit", "--verify", ids[name]).text
        assert f"canary-{name}" in pale.ok("audit", ids[name]).text
    listed = pale.json("audit", "--removed", "--json")
    assert {(k["id"], k["name"]) for k in listed} == {(ids[n], n) for n in ids}
    assert "no box" in pale.run("audit", "0123456789abcdef", expect=125).errors
    with open(next((pale.root / "state/pale/removed").glob(ids["one"] + "-*")) / "audit", "r+b") as f:
        text = f.read().replace(b"canary-one", b"canary-oNe")
        f.seek(0)
        f.write(text)
    assert pale.run("audit", "--verify", ids["one"]).code == 1


def test_again_under_the_same_name(pale):
    for word in ("first", "second"):
        made = pale.json("create", "--json", "b")["id"]
        pale.exec("b", "echo", word)
        pale.ok("rm", "b")
        assert word in pale.ok("audit", made).text
    assert len(pale.json("audit", "--removed", "--json")) == 2
    pale.ok("create", "b")
    assert "second" not in pale.ok("audit", "b").text


def test_the_log_of_a_forgotten_box_is_kept(pale, hostdir):
    made = pale.json("create", "--json", "--in-project", "b", cwd=hostdir)["id"]
    pale.ok("exec", "b", "--", "echo", "canary-gone", cwd=hostdir)
    pale.ok("stop", "b", cwd=hostdir)
    harness.shutil.rmtree(hostdir / ".pale")
    pale.ok("forget", "-f", made)
    assert "canary-gone" in pale.ok("audit", made).text and "good" in pale.ok("audit", "--verify", made).text
    pale.more_ids.add(made)


def test_gc_drops_old_ones_and_says_so(pale):
    pale.create("b")
    pale.ok("rm", "b")
    folder = pale.root / "state/pale/removed"
    (kept,) = folder.iterdir()
    box, _, name = kept.name.split("-", 2)
    old = folder / f"{box}-{int(time.time() * 1000) - 31 * 86400000}-{name}"
    old.mkdir()
    (old / "audit").write_text("old\n")
    (folder / "not ours").mkdir()
    assert "1 logs of removed boxes would go" in pale.ok("gc", "--dry-run").text and old.exists()
    assert pale.json("gc", "--json")["logs"] == 1
    assert not old.exists() and kept.exists() and (folder / "not ours").exists()
    assert pale.json("gc", "--json")["logs"] == 0


@pytest.mark.limit(240)
def test_their_number_is_bounded(pale):
    folder = pale.root / "state/pale/removed"
    pale.create("b")
    folder.mkdir(exist_ok=True)
    for i in range(1005):
        (folder / f"{i:016x}-{int(time.time() * 1000) - i * 1000}-x").mkdir()
    pale.ok("rm", "b")
    assert len(list(folder.iterdir())) == 1000
    assert pale.json("audit", "--removed", "--json")[0]["name"] == "b"
