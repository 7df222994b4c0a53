# SPDX-License-Identifier: Apache-2.0
"""Two of everything: each box has its own files and no other's, whatever becomes of its folders, and nothing serves one box for another."""
import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import time

import pytest

from harness import Pale, wait_until
import wire


def put(pale, box, text, **more):
    assert pale.run("exec", "-q", box, "--", "sh", "-c", f"echo {text} > ~/mine; echo {text} > ~/only-{text}", **more).code == 0


def has(pale, box, **more):
    """The word in the box's file, and the names of the others, which must be of that word alone."""
    done = pale.run("exec", "-q", box, "--", "sh", "-c", "cat ~/mine; ls ~", **more)
    assert done.code == 0, done
    word, *names = done.text.split()
    assert sorted(names) == ["mine", f"only-{word}"], (word, names)
    return word


def listed(pale, **more):
    return pale.json("ls", "--json", **more)


def ids(pale, **more):
    return {b["id"] for b in listed(pale, **more)}


@pytest.fixture
def project(hostdir):
    """A repository with one commit."""
    make_project(hostdir)
    return hostdir


def make_project(path):
    path.mkdir(exist_ok=True)
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main", "-C", str(path)]
    (path / "file").write_text("one\n")
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "one"]):
        subprocess.run([*git, *words], check=True, capture_output=True)


def clean(path):
    subprocess.run(["git", "-C", str(path), "clean", "-fdxq"], check=True, capture_output=True)


def clear_away(pale, *folders):
    """What the harness, which looks from the home of the test, would not find by name."""
    for b in listed(pale):
        pale.run("stop", b["id"])
        pale.run("forget", "-f", b["id"]) if b.get("lost") else pale.run("rm", b["id"])
    for f in folders:
        shutil.rmtree(f / ".pale", ignore_errors=True)


# --- forks (X1) ---

SHARING = {
    "now": ([], lambda p, a: []),
    "snapshot": ([], lambda p, a: ["--at", (p.ok("snapshot", a, "s"), "s")[1]]),
    "several": (["-n", "2"], lambda p, a: []),
}


@pytest.mark.basic
@pytest.mark.parametrize("how", SHARING)
def test_forks_of_two_parents_have_their_own_files(pale, how):
    flags, more = SHARING[how]
    for box in ("one", "two"):
        pale.create(box)
        put(pale, box, box)
    forks = {}
    for box in ("one", "two"):
        pale.ok("fork", *flags, *more(pale, box), box, f"{box}-f")
        forks[box] = [f"{box}-f-1", f"{box}-f-2"] if "-n" in flags else [f"{box}-f"]
    for box, names in forks.items():
        for name in [box, *names]:
            assert has(pale, name) == box
        pale.ok("fork", names[0], f"{box}-ff")  # a fork of a fork
        assert has(pale, f"{box}-ff") == box
    pale.ok("rm", "one", *forks["one"], "one-ff")
    pale.ok("gc")
    assert has(pale, "two-ff") == "two" == has(pale, forks["two"][0])
    pale.create("one")  # made again under the name, and forked: nothing of the first is there
    assert pale.run("exec", "one", "--", "cat", "mine").code != 0
    pale.ok("fork", "one", "again")
    assert pale.run("exec", "again", "--", "cat", "mine").code != 0


def test_twin_layers_of_one_name_are_mixed(pale):
    """The names of layers are what keeps them apart."""
    twin = pale.weakened("layer-names")
    for box in ("one", "two"):
        twin.create(box)
        put(twin, box, box)
    for box in ("one", "two"):
        twin.ok("fork", box, f"{box}-f")
    assert twin.sh("two-f", "cat ~/mine").text.split() != ["two"]


def test_forks_in_two_projects_and_of_a_user(pale, hostdir):
    homes = {"a": hostdir / "a", "b": hostdir / "b"}
    for word, home in homes.items():
        make_project(home)
        pale.ok("create", "--in-project", "agent", cwd=home)
        put(pale, "agent", word, cwd=home)
    pale.create("agent")
    put(pale, "agent", "user")
    for word, home in homes.items():
        pale.ok("fork", "agent", "f", cwd=home)
    pale.ok("fork", "--global", "agent", "f")
    for word, home in homes.items():
        assert has(pale, "f", cwd=home) == word == has(pale, "agent", cwd=home)
    assert has(pale, "f") == "user"
    for home in homes.values():
        pale.ok("rm", "agent", cwd=home)
    pale.ok("gc")
    for word, home in homes.items():
        assert has(pale, "f", cwd=home) == word
    clear_away(pale, *homes.values())


def test_a_fork_that_is_refused_has_touched_nothing(pale):
    pale.create("p")
    put(pale, "p", "p")
    pale.create("f-2")
    layers = pathlib.Path(pale.info("p")["data"]) / "layers"
    before = sorted(os.listdir(layers))
    assert "already" in pale.run("fork", "-n", "3", "p", "f").errors
    assert sorted(os.listdir(layers)) == before
    assert not (layers.parent.parent / ".layers").exists() and {b["name"] for b in listed(pale)} == {"p", "f-2"}


def test_a_layer_of_another_is_not_joined(pale):
    for box in ("one", "two"):
        pale.create(box)
        put(pale, box, box)
        pale.ok("snapshot", box, "s")
        pale.ok("stop", box)
    one, two = (pathlib.Path(pale.info(b)["data"]) / "layers" for b in ("one", "two"))
    (theirs,) = [n for n in os.listdir(two) if n == pale.box_id("two")]
    ours = one / pale.box_id("one")
    shutil.rmtree(ours)
    shutil.copytree(two / theirs, ours, symlinks=True)
    done = pale.run("exec", "one", "--", "cat", "mine")
    assert done.code == 125 and pale.box_id("two") in done.errors and "not joined" in done.errors
    assert pale.weakened("layer-makers").sh("one", "cat ~/mine").text == "two\n"
    assert has(pale, "two") == "two"
    # Its own name, in the folder of another: it has no such layer.
    pale.ok("stop", "two")
    shutil.rmtree(ours)
    (two / theirs).rename(one / theirs)
    assert pale.run("exec", "two", "--", "cat", "mine").code == 125
    (one / theirs).rename(two / theirs)
    assert has(pale, "two") == "two"


# --- a project's box whose folder goes (T1, T2, T4, T9) ---

@pytest.mark.basic
def test_after_git_clean_a_new_box_is_new(pale, project):
    pale.ok("create", "--in-project", "--env", "WHO=old", "agent", cwd=project)
    put(pale, "agent", "old", cwd=project)
    (old,) = ids(pale, cwd=project)
    clean(project)
    done = pale.run("exec", "agent", "--", "true", cwd=project)
    assert done.code == 125 and old in done.errors and "adopt" in done.errors and "forget" in done.errors
    (b,) = listed(pale, cwd=project)
    assert b["lost"] and b["state"] == "ready" and b["id"] == old
    pale.ok("create", "--in-project", "--env", "WHO=new", "agent", cwd=project)
    assert pale.run("exec", "-q", "agent", "--", "sh", "-c", "echo $WHO; ls", cwd=project).text == "new\n"
    new = pale.json("inspect", "--json", "agent", cwd=project)
    assert new["id"] != old and ids(pale, cwd=project) == {old, new["id"]}
    pale.ok("stop", old)
    pale.ok("rm", "agent", cwd=project)
    shutil.rmtree(project / ".pale", ignore_errors=True)
    assert "put-back" in pale.ok("adopt", old, cwd=project).text
    assert subprocess.run(["git", "-C", str(project), "status", "--porcelain"], capture_output=True, check=True).stdout == b""
    assert has(pale, "agent", cwd=project) == "old"
    clear_away(pale, project)


def test_twin_of_ids_made_of_paths_serves_the_old_box(pale, project):
    twin = pale.weakened("minted-ids")
    twin.ok("create", "--in-project", "--env", "WHO=old", "agent", cwd=project)
    keeper = twin.json("inspect", "--json", "agent", cwd=project)["keeper_pid"]
    clean(project)
    twin.run("create", "--in-project", "--env", "WHO=new", "agent", cwd=project)
    assert twin.run("exec", "-q", "agent", "--", "sh", "-c", "echo $WHO", cwd=project).text != "new\n"
    os.kill(keeper, signal.SIGTERM)
    assert wait_until(lambda: not os.path.exists(f"/proc/{keeper}"))
    clear_away(pale, project)


def test_a_live_project_is_not_shared_with_the_box_that_lost_its_folder(pale, project):
    pale.ok("create", "--in-project", "--project", "live", "agent", cwd=project)
    clean(project)
    done = pale.run("create", "--in-project", "--project", "live", "agent", cwd=project)
    assert done.code == 125 and "agent" in done.errors
    assert not (project / ".pale").exists() and len(listed(pale)) == 1
    clear_away(pale, project)


WAYS = {
    "git clean": clean,
    "rm": lambda p: shutil.rmtree(p / ".pale"),
    "rm of the box": lambda p: shutil.rmtree(p / ".pale" / "agent"),
    "mv": lambda p: p.rename(p.parent / (p.name + "-moved")),
    "rm of the project": shutil.rmtree,
}


@pytest.mark.parametrize("way", WAYS)
def test_panic_quarantine_stop_and_ls_miss_no_box_that_runs(pale, hostdir, way):
    project = hostdir / "p"
    make_project(project)
    pale.ok("create", "--in-project", "--network", "filtered", "agent", cwd=project)
    (one,) = listed(pale, cwd=project)
    assert not one.get("lost")
    WAYS[way](project)
    (b,) = listed(pale)
    assert b["id"] == one["id"] and b["lost"] and b["state"] == "ready"
    pale.ok("quarantine", b["id"])
    assert "quarantine" in listed(pale)[0]["cut"]
    pale.ok("quarantine", "--lift", b["id"])
    done = pale.json("panic", "--json")
    assert done["live"] == 1, done
    assert "panic" in listed(pale)[0]["cut"]
    pale.ok("panic", "--lift")
    pale.ok("stop", b["id"])
    (b,) = listed(pale)
    assert b["state"] == "lost"
    pale.ok("forget", "-f", b["id"])
    assert listed(pale) == []


def test_a_box_whose_state_folder_is_gone_too_is_listed_and_stopped(pale):
    pale.create("b")
    info = pale.info("b")
    shutil.rmtree(info["data"])
    shutil.rmtree(info["state_dir"])
    (b,) = listed(pale)
    assert b["id"] == info["id"] and b["lost"] and b["state"] == "ready"
    assert pale.json("panic", "--json")["live"] == 1
    pale.ok("panic", "--lift")
    pale.ok("stop", info["id"])
    assert listed(pale) == [] and wait_until(lambda: not os.path.exists(f"/proc/{info['keeper_pid']}"))


def test_a_box_that_has_lost_its_socket_too_is_listed_and_stopped(pale):
    pale.create("b")
    info = pale.info("b")
    shutil.rmtree(info["data"])
    shutil.rmtree(info["state_dir"])
    os.unlink(pale.root / "run" / "pale" / f"{info['id']}.sock")
    (b,) = listed(pale)
    assert b["id"] == info["id"] and b["lost"] and b["state"] == "running"
    pale.ok("stop", info["id"])
    assert listed(pale) == [] and wait_until(lambda: not os.path.exists(f"/proc/{info['keeper_pid']}"))


def test_a_process_of_a_box_that_calls_itself_a_keeper_is_none(pale):
    pale.create("b")
    name = "0" * 31 + "1"
    p = pale.start("exec", "-q", "b", "--", "bash", "-c", f"cp /usr/bin/sleep pale-keeper; exec -a pale-keeper ./pale-keeper 100 box fake {name} /d {pale.root}/state/pale/boxes/{name} /s local")
    q = pale.start("exec", "-q", "b", "--", "sh", "-c", "sleep 100")
    time.sleep(0.3)
    assert [b["name"] for b in listed(pale)] == ["b"] and pale.json("panic", "--json")["live"] == 1
    pale.ok("panic", "--lift")
    p.kill(), q.kill()


@pytest.mark.basic
def test_a_project_that_was_moved_takes_its_box_along_when_told(pale, hostdir):
    first, second = hostdir / "first", hostdir / "second"
    make_project(first)
    pale.ok("create", "--in-project", "--project", "live", "agent", cwd=first)
    put(pale, "agent", "work", cwd=first)
    first.rename(second)
    done = pale.run("exec", "agent", "--", "true", cwd=second)
    assert done.code == 125 and "was moved" in done.errors and str(first) in done.errors and "pale adopt agent" in done.errors
    for words in (["create", "--in-project", "agent"], ["snapshot", "agent"], ["cat", "agent", "mine"]):
        assert "was moved" in pale.run(*words, cwd=second).errors
    assert "running" in pale.run("adopt", "agent", cwd=second).errors
    pale.ok("stop", "agent", cwd=second)
    for flag in (["--env", "A=1"], ["--network", "none"]):  # it has a policy: to seem to give it another would be a lie
        assert "keeps" in pale.run("adopt", *flag, "agent", cwd=second, expect=125).errors
    assert "moved" in pale.ok("adopt", "agent", cwd=second).text
    assert has(pale, "agent", cwd=second) == "work"
    assert pale.run("exec", "-q", "agent", "--", "sh", "-c", "pwd; cat file", cwd=second).text == f"{second}\none\n"
    assert pale.run("adopt", "agent", cwd=second).code == 125  # there is nothing to do
    pale.ok("audit", "--verify", "agent", cwd=second)
    assert pale.weakened("identity").run("ls").code == 0
    clear_away(pale, second)


def test_twin_that_asks_no_state_folder_serves_a_copy(pale, hostdir):
    first, second = hostdir / "first", hostdir / "second"
    make_project(first)
    pale.ok("create", "--in-project", "agent", cwd=first)
    put(pale, "agent", "work", cwd=first)
    shutil.copytree(first, second, symlinks=True)
    assert "is a copy" in pale.run("exec", "agent", "--", "true", cwd=second).errors
    assert pale.weakened("identity").run("exec", "-q", "agent", "--", "sh", "-c", "cat ~/mine", cwd=second).text == "work\n"
    clear_away(pale, first, second)


@pytest.mark.basic
def test_a_copy_of_a_project_is_no_box_until_it_is_adopted_as_a_fork(pale, hostdir):
    first, second = hostdir / "first", hostdir / "second"
    make_project(first)
    pale.ok("create", "--in-project", "--project", "live", "agent", cwd=first)
    put(pale, "agent", "work", cwd=first)
    shutil.copytree(first, second, symlinks=True)
    done = pale.run("exec", "agent", "--", "true", cwd=second)
    assert done.code == 125 and "is a copy" in done.errors and str(first) in done.errors
    assert "is a copy" in pale.run("create", "--in-project", "agent", cwd=second).errors
    assert "is a copy" in pale.run("rm", "agent", cwd=second).errors and has(pale, "agent", cwd=first) == "work"
    pale.ok("adopt", "agent", cwd=second)
    a, b = (pale.json("inspect", "--json", "agent", cwd=d) for d in (first, second))
    assert a["id"] != b["id"] and has(pale, "agent", cwd=second) == "work"
    put(pale, "agent", "first", cwd=first)
    assert pale.run("exec", "-q", "agent", "--", "sh", "-c", "cat ~/mine", cwd=second).text == "work\n"
    assert pale.run("exec", "-q", "agent", "--", "pwd", cwd=second).text == f"{second}\n"
    clear_away(pale, first, second)


def test_what_came_with_a_repository_is_no_box(pale, hostdir):
    """.pale/agent of a clone: a plain folder, one with an id that nobody has, one with the id of another box, a symlink."""
    pale.create("own")
    put(pale, "own", "own")
    own = pale.box_id("own")
    for kind in ("plain", "unknown", "stolen", "link", "file"):
        p = hostdir / kind
        there = p / ".pale" / "agent"
        if kind in ("link", "file"):
            there.parent.mkdir(parents=True)
            (there.symlink_to(pale.root / "data" / "pale" / "boxes" / "own") if kind == "link" else there.write_text("x"))
        else:
            (there / "layers").mkdir(parents=True)
            (there / "layers" / "x").write_text("theirs")
            if kind != "plain":
                (there / "id").symlink_to("0" * 32 if kind == "unknown" else own)
        before = sorted(str(f) for f in p.rglob("*"))
        for words in (["exec", "agent", "--", "cat", "mine"], ["create", "--in-project", "agent"], ["rm", "agent"], ["stop", "agent"], ["forget", "agent"],
                      ["rename", "agent", "x"], ["fork", "agent", "y"]):
            done = pale.run(*words, cwd=p)
            assert done.code == 125, (kind, done)
            assert str(there) in done.errors or "no box agent" in done.errors, (kind, done)
        assert sorted(str(f) for f in p.rglob("*")) == before
    assert has(pale, "own") == "own"


def test_a_create_that_fails_takes_back_only_what_it_made(pale, hostdir):
    p = hostdir / "p"
    (p / ".pale").mkdir(parents=True)
    (p / ".pale" / ".gitignore").write_text("# mine\n*\n")
    (p / ".pale" / "agent").mkdir()
    (p / ".pale" / "agent" / "notes").write_text("precious")
    assert pale.run("create", "--in-project", "agent", cwd=p).code == 125
    assert pale.run("create", "--in-project", "--memory", "1", "other", cwd=p).code == 125
    assert (p / ".pale" / "agent" / "notes").read_text() == "precious" and (p / ".pale" / ".gitignore").read_text() == "# mine\n*\n"
    assert sorted(os.listdir(p / ".pale")) == [".gitignore", "agent"]
    assert not (pale.root / "state" / "pale" / "boxes").exists() or not list((pale.root / "state" / "pale" / "boxes").iterdir())
    (p / ".pale" / "empty").mkdir()  # nothing is lost where there is nothing
    pale.ok("create", "--in-project", "empty", cwd=p)
    clear_away(pale)


# --- a user's box whose folder goes ---

def test_the_folder_of_a_users_box(pale):
    boxes = pale.root / "data" / "pale" / "boxes"
    pale.create("b")
    put(pale, "b", "b")
    ident = pale.box_id("b")
    pale.ok("stop", "b")
    (boxes / "b").rename(boxes / "c")  # moved
    assert "was moved" in pale.run("exec", "c", "--", "true").errors and ident in pale.run("exec", "b", "--", "true").errors
    pale.ok("adopt", "c")
    assert has(pale, "c") == "b" and pale.box_id("c") == ident
    pale.ok("stop", "c")
    shutil.copytree(boxes / "c", boxes / "d", symlinks=True)  # copied, with its files
    assert "is a copy" in pale.run("exec", "d", "--", "true").errors
    done = pale.run("adopt", "d")
    assert done.code == 125 and "fork" in done.errors and (boxes / "d" / "id").is_symlink()
    shutil.rmtree(boxes / "d")
    shutil.rmtree(boxes / "c")  # gone
    (b,) = listed(pale)
    assert b["state"] == "lost" and b["id"] == ident
    assert "went with its folder" in pale.run("adopt", ident).errors
    pale.ok("forget", "c")
    assert listed(pale) == []


def test_keep_data_is_adopted_with_all_its_layers(pale):
    pale.create("b", "--env", "A=1")
    put(pale, "b", "b")
    pale.ok("snapshot", "b", "s")
    pale.sh("b", "echo later > ~/later")
    old = pale.box_id("b")
    pale.ok("rm", "--keep-data", "b")
    (kept,) = listed(pale)
    assert kept["state"] == "kept" and "kept of box" in pale.run("create", "b").errors
    pale.ok("gc")
    pale.ok("adopt", "--env", "A=2", "b")
    assert pale.box_id("b") != old and pale.sh("b", "cat ~/mine ~/later; echo $A").text == "b\nlater\n2\n"
    pale.ok("restore", "b", "s")
    assert has(pale, "b") == "b"
    pale.ok("gc")
    assert has(pale, "b") == "b"


@pytest.mark.parametrize("snapshots", [0, 1])
def test_a_folder_without_its_state(pale, snapshots):
    pale.create("b")
    put(pale, "b", "b")
    for i in range(snapshots):
        pale.ok("snapshot", "b", f"s{i}")
    pale.ok("stop", "b")
    shutil.rmtree(pale.info("b")["state_dir"])
    done = pale.run("exec", "b", "--", "true")
    assert done.code == 125 and "not made by you" in done.errors and "pale adopt b" in done.errors
    assert pale.run("create", "b").code == 125 and pale.run("rm", "b").code == 125
    pale.ok("gc")
    done = pale.run("adopt", "b")
    assert done.code == 0 and has(pale, "b") == "b"  # a copy of the list of its layers is in its folder
    for i in range(snapshots):
        pale.ok("restore", "b", f"s{i}")
        assert has(pale, "b") == "b"


def test_a_box_of_an_earlier_version_is_told_as_one(pale):
    import hashlib
    data = pale.root / "data" / "pale" / "boxes" / "old"
    (data / "layers" / ("0" * 12) / "home").mkdir(parents=True)
    (data / "layers" / ("0" * 12) / "home" / "work").write_text("precious")
    state = pale.root / "state" / "pale" / "boxes" / hashlib.sha256(str(data).encode()).hexdigest()[:16]
    state.mkdir(parents=True)
    (state / "policy").write_text("pale policy 1\n")
    (state / "data").symlink_to(data)
    for words in (["exec", "old", "--", "true"], ["create", "old"], ["rm", "old"], ["adopt", "old"]):
        done = pale.run(*words)
        assert done.code == 125 and "earlier version" in done.errors, done
    pale.ok("gc")
    pale.create("b")
    pale.ok("gc")
    assert (data / "layers" / ("0" * 12) / "home" / "work").read_text() == "precious" and (state / "policy").exists()
    shutil.rmtree(data), shutil.rmtree(state)


# --- who speaks to whom ---

def test_a_keeper_serves_nobody_who_means_another_box(pale):
    for box in ("one", "two"):
        pale.create(box)
        put(pale, box, box)
    run = pale.root / "run" / "pale"
    sockets = [run / f"{pale.box_id(b)}.sock" for b in ("one", "two")]
    sockets[0].rename(run / "x")
    sockets[1].rename(sockets[0])
    (run / "x").rename(sockets[1])
    for box in ("one", "two"):
        done = pale.run("exec", box, "--", "cat", "mine")
        assert done.code == 125 and "keeper of box" in done.errors, done
    sockets[0].rename(run / "x")
    sockets[1].rename(sockets[0])
    (run / "x").rename(sockets[1])
    assert has(pale, "one") == "one" and has(pale, "two") == "two"


def test_twin_of_a_keeper_that_asks_nobody(pale):
    twin = pale.weakened("hello")
    for box in ("one", "two"):
        twin.create(box)
        put(twin, box, box)
    run = pale.root / "run" / "pale"
    a, b = (run / f"{pale.box_id(x)}.sock" for x in ("one", "two"))
    a.rename(run / "x")
    b.rename(a)
    (run / "x").rename(b)
    assert twin.sh("one", "cat ~/mine").text == "two\n"
    a.rename(run / "x")
    b.rename(a)
    (run / "x").rename(b)


def test_who_says_nothing_of_a_box_is_not_served(pale):
    pale.create("b")
    path = pale.root / "run" / "pale" / f"{pale.box_id('b')}.sock"
    k = wire.Keeper.__new__(wire.Keeper)
    import socket
    for first in ("ASK_INFO", "ASK_EXEC", "ASK_STOP", "ASK_PREFACE"):
        k.s, k.rest = socket.socket(socket.AF_UNIX), b""
        k.s.settimeout(20)
        k.s.connect(str(path))
        k.ask(first)
        name, data = k.next()
        assert name == "TELL_ERROR" and b"which box" in data
        k.close()
    for wrong in (b"", b"0" * 31, b"0" * 32, pale.box_id("b").encode()[:-1] + b"x", pale.box_id("b").encode() + b"0"):
        k.s, k.rest = socket.socket(socket.AF_UNIX), b""
        k.s.settimeout(20)
        k.s.connect(str(path))
        k.ask("ASK_HELLO", wrong)
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it may have hung up already
            k.ask("ASK_INFO")
        assert k.next()[0] == "TELL_ERROR"
        k.close()
    assert pale.exec("b", "true").code == 0


@pytest.mark.basic
def test_another_runtime_folder_finds_the_box_that_runs(pale):
    """As by cron, su or ssh."""
    pale.create("b")
    put(pale, "b", "b")
    other = pale.root / "other"
    other.mkdir(mode=0o700)
    env = {"XDG_RUNTIME_DIR": str(other)}
    (b,) = listed(pale, env=env)
    assert b["state"] == "ready"
    assert has(pale, "b", env=env) == "b"
    pale.ok("stop", "b", env=env)
    (b,) = listed(pale)
    assert b["state"] == "stopped"
    pale.ok("rm", "b", env=env)


# --- two state folders ---

@pytest.fixture
def other_state(pale):
    """The same user with the same data and sockets, and another state folder."""
    p = Pale(pale.root)
    (pale.root / "state2").mkdir(mode=0o700)
    p.env["XDG_STATE_HOME"] = str(pale.root / "state2")
    return p


def test_a_box_of_another_state_folder_is_not_taken_over(pale, other_state):
    pale.create("b")
    put(pale, "b", "b")
    pid = pale.info("b")["keeper_pid"]
    for words in (["exec", "b", "--", "true"], ["stop", "b"], ["rm", "b"], ["create", "b"], ["snapshot", "b"], ["fork", "b", "c"], ["forget", "b"]):
        done = other_state.run(*words)
        assert done.code == 125 and "not made by you" in done.errors, done
    done = other_state.run("adopt", "b")
    assert done.code == 125 and "running" in done.errors
    other_state.ok("gc")
    assert listed(other_state) == [] and os.path.exists(f"/proc/{pid}") and has(pale, "b") == "b"


def test_gc_leaves_layers_that_boxes_of_another_state_folder_stand_on(pale, other_state):
    pale.create("p")
    put(pale, "p", "p")
    pale.ok("fork", "p", "f")
    pale.ok("rm", "p")
    other_state.create("x")
    done = other_state.run("gc")
    assert done.code == 125 and "does not know" in done.errors
    other_state.ok("rm", "x")
    assert has(pale, "f") == "p"
    other_state.create("x")
    twin = other_state.weakened("strangers")
    twin.env["XDG_STATE_HOME"] = other_state.env["XDG_STATE_HOME"]
    pale.ok("stop", "f")
    twin.run("gc")
    assert pale.run("exec", "f", "--", "cat", "mine").code != 0
    other_state.ok("rm", "x")


def test_a_copy_of_the_state_folder_harms_nobody(pale, other_state):
    pale.create("b")
    put(pale, "b", "b")
    p = pale.start("exec", "-q", "b", "--", "sleep", "100")
    assert wait_until(lambda: pale.json("ps", "--json", "b"))
    shutil.rmtree(pale.root / "state2")
    shutil.copytree(pale.root / "state", pale.root / "state2", symlinks=True)
    run2 = pale.root / "run2"
    run2.mkdir(mode=0o700)
    other_state.env["XDG_RUNTIME_DIR"] = str(run2)
    os.unlink(pale.root / "state2" / "pale" / "boxes" / pale.box_id("b") / "socket")
    done = other_state.run("exec", "b", "--", "true")
    assert done.code == 125 and "another state folder" in done.errors, done
    listed(other_state)
    other_state.ok("gc")
    assert p.poll() is None and pale.json("ps", "--json", "b")
    p.kill()


# --- lists that are lost ---

def test_a_lost_list_is_an_error_and_nothing_is_removed(pale):
    pale.create("b")
    put(pale, "b", "b")
    pale.ok("snapshot", "b", "s")
    pale.sh("b", "echo newer > ~/mine")
    pale.ok("stop", "b")
    info = pale.info("b")
    stack = pathlib.Path(info["state_dir"]) / "stack"
    text = stack.read_bytes()
    stack.unlink()
    before = sorted(os.listdir(pathlib.Path(info["data"]) / "layers"))
    done = pale.run("exec", "b", "--", "cat", "mine")
    assert done.code == 125 and "is missing" in done.errors and "stack" in done.errors
    assert pale.run("gc").code == 125 and pale.run("snapshot", "b").code == 125 and pale.run("fork", "b", "c").code == 125
    assert sorted(os.listdir(pathlib.Path(info["data"]) / "layers")) == before
    twin = pale.weakened("lost-list")
    assert twin.sh("b", "cat ~/mine").text != "newer\n"
    twin.ok("stop", "b")
    stack.write_bytes(text)
    assert pale.sh("b", "cat ~/mine").text == "newer\n"


@pytest.mark.parametrize("which", ["empty", "cut", "flipped", "of another box", "folder", "link"])
def test_a_damaged_list_is_an_error(pale, which):
    for box in ("b", "c"):
        pale.create(box)
        put(pale, box, box)
        pale.ok("snapshot", box, "s")
        pale.ok("stop", box)
    stack = pale.state_of("b") / "stack"
    other = (pale.state_of("c") / "stack").read_bytes()
    text = stack.read_bytes()
    stack.unlink()
    {"empty": lambda: stack.write_bytes(b""), "cut": lambda: stack.write_bytes(text[:-10]), "flipped": lambda: stack.write_bytes(text[:40] + b"g" + text[41:]),
     "of another box": lambda: stack.write_bytes(other), "folder": stack.mkdir, "link": lambda: stack.symlink_to("/dev/null")}[which]()
    done = pale.run("exec", "b", "--", "cat", "mine")
    assert done.code == 125 and b"c" != done.out.strip(), done
    pale.run("gc")
    stack.rmdir() if which == "folder" else stack.unlink()
    stack.write_bytes(text)
    assert has(pale, "b") == "b" and has(pale, "c") == "c"


# --- killed in between ---

@pytest.mark.basic
@pytest.mark.parametrize("what", ["home", "state and data"])
def test_folders_behind_a_symlink(pale, hostdir, what):
    """A home folder that is a symlink, and folders that were put elsewhere with a symlink where they were."""
    make_project(hostdir / "p")
    if what == "home":
        (pale.root / "real").mkdir()
        pale.home.rename(pale.root / "real" / "home")
        pale.home.symlink_to(pale.root / "real" / "home")
        for name in ("XDG_DATA_HOME", "XDG_STATE_HOME"):
            del pale.env[name]
    pale.create("own")
    pale.ok("create", "--in-project", "agent", cwd=hostdir / "p")
    if what != "home":
        pale.ok("stop", "own")
        pale.ok("stop", "agent", cwd=hostdir / "p")
        for name in ("state", "data"):
            (pale.root / name).rename(pale.root / f"other-{name}")
            (pale.root / name).symlink_to(f"other-{name}")
    for name, cwd in (("own", None), ("agent", hostdir / "p")):
        put(pale, name, "w", cwd=cwd)
        pale.ok("fork", name, "f", cwd=cwd)
        assert has(pale, "f", cwd=cwd) == "w"
        pale.ok("stop", pale.json("inspect", "--json", name, cwd=cwd)["id"])
        pale.ok("gc")
        assert has(pale, name, cwd=cwd) == "w"
    assert {b["state"] for b in listed(pale)} == {"ready"}
    clear_away(pale, hostdir / "p")


def test_twin_that_takes_a_path_through_a_symlink_as_it_is(pale, hostdir):
    make_project(hostdir / "p")
    (pale.root / "state").rename(pale.root / "other-state")
    (pale.root / "state").symlink_to("other-state")
    assert pale.weakened("real-paths").run("create", "--in-project", "agent", cwd=hostdir / "p").code != 0
    pale.ok("create", "--in-project", "agent", cwd=hostdir / "p")
    clear_away(pale, hostdir / "p")


def cut_before_the_last_link(pale, box, **more):
    """As if whoever made it had been killed between the rename that makes a box and the link that says where it is."""
    state = pathlib.Path(pale.json("inspect", "--json", box, **more)["state_dir"])
    (state / "data").rename(state / "moving")


@pytest.mark.basic
@pytest.mark.parametrize("used", [True, False])
def test_a_box_whose_maker_was_killed_at_the_last_step_is_a_box(pale, hostdir, used):
    first, second = hostdir / "first", hostdir / "second"
    make_project(first)
    pale.ok("create", "--in-project", "agent", cwd=first)
    put(pale, "agent", "work", cwd=first)
    pale.ok("stop", "agent", cwd=first)
    cut_before_the_last_link(pale, "agent", cwd=first)
    if used:
        assert has(pale, "agent", cwd=first) == "work"
        pale.ok("stop", "agent", cwd=first)
    first.rename(second)
    pale.ok("gc")
    assert [b["state"] for b in listed(pale)] == ["lost"]
    pale.ok("adopt", "agent", cwd=second)
    assert has(pale, "agent", cwd=second) == "work"
    clear_away(pale, second)


def test_twin_that_takes_such_a_box_for_half_made_loses_its_files(pale, hostdir):
    first, second = hostdir / "first", hostdir / "second"
    make_project(first)
    pale.ok("create", "--in-project", "agent", cwd=first)
    put(pale, "agent", "work", cwd=first)
    pale.ok("stop", "agent", cwd=first)
    cut_before_the_last_link(pale, "agent", cwd=first)
    first.rename(second)
    pale.weakened("half-made").ok("gc")
    assert listed(pale) == []
    clear_away(pale, second)


@pytest.mark.basic
def test_no_box_has_a_name_in_the_form_of_an_id(pale):
    one, two = pale.create("one"), pale.create("two")
    for name in (pale.box_id(one), "0" * 32):
        for words in (["create", name], ["fork", two, name], ["create", "--in-project", name]):
            done = pale.run(*words)
            assert done.code == 125 and "form of an id" in done.errors, done
        pale.ok("stop", two)
        assert "form of an id" in pale.run("rename", two, name).errors
    assert pale.boxes() == [one, two]


def test_boxes_are_made_whole_or_not_at_all(pale):
    """Whoever is killed over a create leaves a box, or nothing that `pale gc` does not take away."""
    began = time.monotonic()
    pale.ok("create", "--no-start", "x")
    usual = time.monotonic() - began
    pale.ok("rm", "x")
    for i in range(25):
        p = subprocess.Popen([pale.program, "create", "--no-start", "x"], env=pale.env, cwd=pale.home, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(usual * i / 20)
        p.kill()
        p.wait()
        names = [b["name"] for b in listed(pale)]
        assert names in ([], ["x"])
        if names:
            assert pale.exec("x", "true").code == 0
            pale.ok("rm", "x")
        else:
            pale.ok("create", "x")
            assert pale.exec("x", "true").code == 0
            pale.ok("rm", "x")
    boxes = pale.root / "state" / "pale" / "boxes"
    for b in boxes.iterdir():  # what was half made is taken away when it is sure that nobody makes it any more
        os.utime(b, (1, 1))
    pale.ok("gc")
    assert not [b for b in boxes.iterdir() if b.name != ".layers"] and not list((pale.root / "data" / "pale" / "boxes").iterdir())


def test_removed_whole_or_not_at_all(pale):
    began = time.monotonic()
    pale.create("x")
    pale.ok("stop", "x")
    pale.ok("rm", "x")
    usual = (time.monotonic() - began) / 2
    for i in range(15):
        pale.ok("create", "--no-start", "x")
        p = subprocess.Popen([pale.program, "rm", "x"], env=pale.env, cwd=pale.home, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(usual * i / 15)
        p.kill()
        p.wait()
        if [b["name"] for b in listed(pale)] == ["x"]:
            pale.ok("rm", "x")
        pale.ok("create", "--no-start", "x")  # the name is free, whatever is left
        pale.ok("rm", "x")
    pale.ok("gc")
    assert not [b for b in (pale.root / "state" / "pale" / "boxes").iterdir() if b.name != ".layers"]


def test_a_box_whose_policy_is_gone_gets_another_and_stays_itself(pale):
    pale.create("b")
    put(pale, "b", "b")
    pale.ok("stop", "b")
    info = pale.info("b")
    os.unlink(os.path.join(info["state_dir"], "policy"))
    done = pale.run("exec", "b", "--", "true")
    assert done.code == 125 and "pale adopt b" in done.errors
    pale.ok("adopt", "--env", "A=2", "b")
    assert pale.box_id("b") == info["id"] and has(pale, "b") == "b" and pale.sh("b", "echo $A").text == "2\n"
    pale.ok("audit", "--verify", "b")


def test_logs_of_adopted_boxes_are_good(pale, hostdir):
    first, second, third = hostdir / "first", hostdir / "second", hostdir / "third"
    make_project(first)
    pale.ok("create", "--in-project", "--project", "live", "agent", cwd=first)
    put(pale, "agent", "work", cwd=first)
    pale.ok("stop", "agent", cwd=first)
    first.rename(second)
    pale.ok("adopt", "agent", cwd=second)
    shutil.copytree(second, third, symlinks=True)
    pale.ok("adopt", "agent", cwd=third)
    clean(second)
    (lost,) = [b["id"] for b in listed(pale) if b.get("lost")]
    pale.ok("adopt", lost, cwd=second)
    pale.ok("rm", "-f", "--keep-data", "agent", cwd=third)
    pale.ok("adopt", "--project", "ro", "agent", cwd=third)
    for d in (second, third):
        assert has(pale, "agent", cwd=d) == "work"
        pale.ok("audit", "--verify", "agent", cwd=d)
        assert not pale.json("inspect", "--json", "agent", cwd=d).get("audit_gaps")
    clear_away(pale, second, third)
