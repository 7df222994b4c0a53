# SPDX-License-Identifier: Apache-2.0
"""One daemon per state folder: whoever shares a runtime folder with another HOME is told whose daemon it has, and whoever has another runtime
folder finds the daemon of his own state folder."""
import os

import pytest

import harness
from harness import Pale


@pytest.fixture
def pair(pale, root):
    """Two homes, and one runtime folder."""
    other_root = root / "o"
    other_root.mkdir(mode=0o700)
    other = Pale(other_root)
    own_run = other.env["XDG_RUNTIME_DIR"]
    other.env["XDG_RUNTIME_DIR"] = pale.env["XDG_RUNTIME_DIR"]
    yield pale, other
    pale.run("serve", "--stop")
    other.run("serve", "--stop")
    other.env["XDG_RUNTIME_DIR"] = own_run
    other.run("serve", "--stop")
    other.env["XDG_RUNTIME_DIR"] = pale.env["XDG_RUNTIME_DIR"]
    trouble = other.end()
    for pid in harness.all_gone(other_root):
        harness.kill_quietly(pid)
    harness.remove_root(other_root)
    assert not trouble


def state(pale):
    return str(pale.root / "state" / "pale")


def names_both(done, one, other):
    return done.code == 125 and state(one) in done.errors and state(other) in done.errors and "XDG_RUNTIME_DIR" in done.errors


ASKS = [["serve"], ["serve", "--status"], ["serve", "--stop"], ["token", "create", "--name", "t"], ["token", "ls"], ["mcp", "b"]]


@pytest.mark.parametrize("ask", ASKS, ids=lambda a: " ".join(a))
def test_another_homes_daemon_is_told_and_not_used(pair, ask):
    one, other = pair
    one.ok("serve")
    before = one.json("serve", "--status", "--json")
    other.create("b")
    done = other.run(*ask, input=b"")
    assert names_both(done, one, other), done
    after = one.json("serve", "--status", "--json")
    assert (after["steward_pid"], after["pid"]) == (before["steward_pid"], before["pid"])
    assert one.json("token", "ls", "--json") == []


def test_each_goes_on_with_its_own_boxes(pair):
    """Verbs that need no daemon do not ask whose it is."""
    one, other = pair
    one.ok("serve")
    for p, word in ((one, "mine"), (other, "other")):
        p.create("b")
        assert p.exec("b", "echo", word).text == word + "\n"
        assert [b["name"] for b in p.json("ls", "--json")] == ["b"]
    one.ok("serve", "--stop")
    other.ok("serve")
    done = one.run("serve")
    assert names_both(done, one, other), done


def test_the_daemon_says_whose_it_is_and_refuses_who_means_another(api, pale):
    """The first word of the command line is which state folder it means; the daemon says no to every request that means another."""
    at = os.stat(state(pale))
    assert api.good("GET", "/v1/health")["state_dir"] == state(pale)
    for path in ("/v1/health", "/v1/boxes", "/v1/tokens"):
        assert api.ask("GET", path, headers={"Pale-State": f"{at.st_dev}:{at.st_ino}"}).status == 200
        for other in (f"{at.st_dev}:{at.st_ino + 1}", "", "0:0", "x" * 300):
            told = api.bad("GET", path, status=421, headers={"Pale-State": other})
            assert told["code"] == "conflict" and state(pale) in told["detail"]


def test_whoever_has_another_runtime_folder_finds_the_daemon(pale, root):
    """As cron, su and ssh have it: there is one for the state folder, wherever it listens."""
    pale.ok("serve")
    first = pale.json("serve", "--status", "--json")
    run = root / "r2"
    run.mkdir(mode=0o700)
    env = {"XDG_RUNTIME_DIR": str(run)}
    assert pale.run("serve", env=env).code == 0
    assert pale.run("serve", "--status", "--json", env=env).json()["steward_pid"] == first["steward_pid"]
    assert not (run / "pale" / "paled.sock").exists()
    pale.ok("token", "create", "--name", "t", env=env)
    assert len(pale.json("token", "ls", "--json")) == 1
    assert pale.run("serve", "--stop", env=env).code == 0
    assert pale.json("serve", "--status", "--json", expect=1)["running"] is False
    # And the other way round.
    assert pale.run("serve", env=env).code == 0
    assert pale.json("serve", "--status", "--json")["running"] is True
    pale.ok("serve", "--stop")
    assert pale.run("serve", "--status", env=env).code == 1


def test_two_who_start_at_once_have_one_daemon(pale, root):
    run = root / "r2"
    run.mkdir(mode=0o700)
    for _ in range(4):
        ps = [pale.start("serve", env={**pale.env, "XDG_RUNTIME_DIR": r}) for r in (pale.env["XDG_RUNTIME_DIR"], str(run)) * 3]
        assert [p.wait(30) for p in ps] == [0] * 6
        pids = {pale.run("serve", "--status", "--json", env={"XDG_RUNTIME_DIR": r}).json()["steward_pid"] for r in (pale.env["XDG_RUNTIME_DIR"], str(run))}
        assert len(pids) == 1
        pale.ok("serve", "--stop")


@pytest.mark.parametrize("how", ["open", "foreign", "file", "link", "fifo"])
def test_a_runtime_folder_that_is_not_private_is_an_error(pale, root, how):
    """… not another folder, where another daemon may be."""
    run = root / "r3"
    run.mkdir(mode=0o700)
    taken = run / "pale"
    if how == "open":
        taken.mkdir()
        taken.chmod(0o777)
    elif how == "foreign":
        if not harness.REAL_ROOT:
            pytest.skip("only root can give a folder away")
        taken.mkdir(mode=0o700)
        os.chown(taken, 65534, 65534)
    elif how == "file":
        taken.touch()
    elif how == "fifo":
        os.mkfifo(taken)
    else:
        (root / "elsewhere").mkdir(mode=0o700)
        taken.symlink_to(root / "elsewhere")
    pale.ok("serve")
    try:
        for ask in (["run", "--", "true"], ["serve"], ["serve", "--stop"], ["token", "create", "--name", "t"], ["create", "zz"]):
            done = pale.run(*ask, env={"XDG_RUNTIME_DIR": str(run)})
            assert done.code == 125 and str(taken) in done.errors and "0700" in done.errors, done
        assert pale.json("token", "ls", "--json") == []
    finally:
        pale.ok("serve", "--stop")
    taken.unlink() if not taken.is_dir() or taken.is_symlink() else taken.rmdir()
