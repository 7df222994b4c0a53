# SPDX-License-Identifier: Apache-2.0
"""Snapshots, going back, forks, and what they leave on the disk."""
import fcntl
import json
import os
import pathlib
import shutil
import signal
import subprocess
import time

import pytest

from harness import has_tool, wait_until


def text(pale, box, command):
    done = pale.sh(box, command)
    assert done.code == 0, done
    return done.text


def layers(pale, box):
    return sorted(p.name for p in (pathlib.Path(pale.info(box)["data"]) / "layers").iterdir())


@pytest.fixture
def review(pale, hostdir):
    (hostdir / "kept").write_text("kept\n")
    (hostdir / "changed").write_text("old\n")
    (hostdir / "gone").mkdir()
    (hostdir / "gone" / "f").write_text("f\n")
    return pale.create("r", "--project", "review", cwd=hostdir)


@pytest.mark.basic
def test_what_a_box_in_review_writes_is_not_in_the_project(pale, review, hostdir):
    text(pale, review, f"cd {hostdir}; echo new > changed; rm -r gone; mkdir gone; echo g > gone/g; echo more > added; chmod 755 kept; ln -s kept link")
    assert text(pale, review, f"cd {hostdir}; ls; cat changed; ls gone").split() == ["added", "changed", "gone", "kept", "link", "new", "g"]
    assert sorted(os.listdir(hostdir)) == ["changed", "gone", "kept"] and (hostdir / "changed").read_text() == "old\n"
    assert os.listdir(hostdir / "gone") == ["f"] and not (hostdir / "kept").stat().st_mode & 0o111
    pale.ok("stop", review)
    assert text(pale, review, f"cat {hostdir}/changed") == "new\n"


def test_a_one_shot_review_is_in_memory(pale, hostdir):
    (hostdir / "a").write_text("old\n")
    done = pale.ok("run", "-q", "--project", "review", "--", "sh", "-c", "echo new > a; rm -f b; mkdir d; cat a; ls", cwd=hostdir)
    assert done.text == "new\na\nd\n" and (hostdir / "a").read_text() == "old\n" and os.listdir(hostdir) == ["a"]


@pytest.mark.basic
def test_back_and_forth(pale, review, hostdir):
    text(pale, review, f"echo one > ~/f; echo t > /tmp/t; echo one > {hostdir}/changed; mkdir ~/dir; echo x > ~/dir/x")
    assert pale.ok("snapshot", review, "one").text.startswith("one (paused for ")
    text(pale, review, f"echo two > ~/f; rm /tmp/t; rm {hostdir}/changed; rm -r ~/dir; mkdir ~/dir; echo y > ~/dir/y")
    assert pale.json("snapshot", "--json", review)["snapshot"] == "snap-1"
    text(pale, review, "echo three > ~/f")
    kept = pale.json("restore", "--json", review, "one")["kept"]
    assert kept.startswith("auto-")
    assert text(pale, review, f"cat ~/f /tmp/t {hostdir}/changed; ls ~/dir").split() == ["one", "t", "one", "x"]
    assert pale.json("restore", "--json", review, "snap-1")["kept"] == ""
    assert text(pale, review, f"cat ~/f; ls ~/dir; ls /tmp | grep -v plt; ls {hostdir}").split() == ["two", "y", "gone", "kept"]
    pale.ok("restore", review, kept)
    assert text(pale, review, "cat ~/f") == "three\n"
    pale.ok("stop", review)
    assert text(pale, review, "cat ~/f") == "three\n"


def test_a_project_that_was_thrown_away_stays_so(pale, review, hostdir):
    """… though nothing was written since: in a snapshot, in a fork; and not in what the box goes back to."""
    text(pale, review, f"echo one > {hostdir}/changed")
    pale.ok("snapshot", review, "one")
    pale.ok("discard", review)
    pale.ok("snapshot", review, "thrown")
    pale.ok("fork", review, "f")
    assert text(pale, "f", f"cat {hostdir}/changed") == "old\n"
    pale.ok("restore", review, "one")
    assert text(pale, review, f"cat {hostdir}/changed") == "one\n"
    pale.ok("restore", review, "thrown")
    assert text(pale, review, f"cat {hostdir}/changed") == "old\n"
    pale.ok("discard", review)
    pale.ok("restore", review, "one")
    assert text(pale, review, f"cat {hostdir}/changed") == "one\n"


def test_a_box_whose_folder_is_gone_stays_until_it_is_forgotten(pale):
    pale.ok("create", "--no-start", "n")
    shutil.rmtree(pale.info("n")["data"])
    pale.ok("gc")
    (b,) = pale.json("ls", "--json")
    assert b["state"] == "lost" and b["lost"] and b["id"] in pale.run("exec", "n", "--", "true").errors
    pale.ok("forget", "n")
    assert not list((pale.root / "state" / "pale" / "boxes").iterdir())


def test_a_folder_that_was_made_again_is_not_merged_with_the_old(pale, box):
    text(pale, box, "mkdir ~/d; echo 1 > ~/d/old")
    pale.ok("snapshot", box, "a")
    text(pale, box, "rm -r ~/d; mkdir ~/d; echo 2 > ~/d/new")
    pale.ok("snapshot", box, "b")
    pale.ok("snapshot", box, "c")
    assert text(pale, box, "ls ~/d") == "new\n"
    pale.ok("restore", box, "a")
    assert text(pale, box, "ls ~/d") == "old\n"


def test_many_snapshots_one_on_another(pale, box):
    for i in range(20):
        text(pale, box, f"echo {i} > ~/f{i}; echo {i} > ~/same")
        pale.ok("snapshot", box, f"s{i}")
    assert text(pale, box, "ls ~ | wc -l; cat ~/same").split() == ["21", "19"]
    pale.ok("restore", box, "s7")
    assert text(pale, box, "ls ~ | wc -l; cat ~/same").split() == ["9", "7"]


def test_names(pale, box):
    text(pale, box, "echo 1 > ~/f")
    pale.ok("snapshot", box, "good.name_1-x")
    for bad in ("-x", ".x", "a/b", "a b", "", "a" * 64, "é", "a\nb"):
        done = pale.run("snapshot", "--", box, bad)
        assert done.code == 125 or bad == "", (bad, done)
    done = pale.run("snapshot", box, "good.name_1-x")
    assert done.code == 125 and "already" in done.errors
    done = pale.run("restore", box, "nothing")
    assert done.code == 125 and f"pale snapshots {box}" in done.errors
    pale.ok("snapshots", "--rm", "good.name_1-x", box)
    assert [s["name"] for s in pale.json("snapshots", "--json", box) if s["kind"] == "asked"] == ["snap-1"]


def test_nothing_changed_costs_nothing(pale, box):
    text(pale, box, "echo 1 > ~/f")
    pale.ok("snapshot", box, "a")
    pid = pale.info(box)["keeper_pid"]
    taken = pale.json("snapshot", "--json", box, "b")
    assert taken == {"snapshot": "b", "changed": False, "copied": False, "pause_us": 0} and pale.info(box)["keeper_pid"] == pid
    assert [s["layers"] for s in pale.json("snapshots", "--json", box)] == [1, 1]


def test_what_runs_is_not_ended(pale, box):
    text(pale, box, "echo 1 > ~/f")
    pale.ok("snapshot", box, "a")
    job = pale.ok("exec", "-d", box, "--", "sleep", "60").text.strip()
    text(pale, box, "echo 2 > ~/f")
    done = pale.run("restore", box, "a")
    assert done.code == 125 and "runs in the box" in done.errors
    assert text(pale, box, "cat ~/f") == "2\n"
    assert [j["job"] for j in pale.json("ps", "--json", box) if j["state"] == "running"] == [int(job)]
    assert pale.ok("restore", "-f", box, "a") and text(pale, box, "cat ~/f") == "1\n"


def test_a_process_that_a_command_left_behind_runs_on(pale, box):
    text(pale, box, "echo 1 > ~/f; setsid sleep 60 > /dev/null 2>&1 &")
    assert pale.run("restore", box, "nothing").code == 125
    pale.run("snapshot", box)
    assert "sleep 60" in text(pale, box, "ps ax")


@pytest.mark.basic
def test_a_box_that_works_is_copied_and_goes_on(pale, box):
    """Two files are written one after the other, over and over: at one instant they differ by one at most."""
    p = pale.start("exec", "-q", box, "--", "sh", "-c", "mkdir ~/d; i=0; while :; do i=$((i+1)); echo $i > ~/a; echo $i > ~/b; [ $((i % 50)) = 0 ] && { rm -rf ~/d; mkdir ~/d; }; "
                   "echo $i > ~/d/$i; done")
    assert wait_until(lambda: "b" in text(pale, box, "ls ~"))
    for i in range(5):
        taken = pale.json("snapshot", "--json", box, f"s{i}")
        assert taken["copied"] and taken["pause_us"] > 0
    pale.ok("fork", box, "now")
    assert p.poll() is None
    first = text(pale, box, "cat ~/a")
    assert wait_until(lambda: text(pale, box, "cat ~/a") not in (first, "")), "it goes on"
    p.kill()
    pale.ok("fork", "--at", "s2", box, "then")
    for fork in ("then", "now"):
        a, b = text(pale, fork, "cat ~/a"), text(pale, fork, "cat ~/b")
        # A shell writes a file by emptying it first: nothing in it is the instant between.
        assert not a.strip() or not b.strip() or int(a) - int(b) in (0, 1), (a, b)
        for line in text(pale, fork, "cd ~/d 2>/dev/null && for f in *; do [ -s $f ] && echo $f $(cat $f); done; true").splitlines():
            assert len(set(line.split())) == 1, line


def test_a_frozen_box_stays_frozen(pale, box):
    pale.ok("exec", "-d", box, "--", "sh", "-c", "echo 1 > ~/f; sleep 60")
    assert wait_until(lambda: "f" in text(pale, box, "ls ~"))
    pale.ok("freeze", box)
    assert pale.json("snapshot", "--json", box, "s")["copied"]
    assert pale.info(box)["state"] == "frozen"
    pale.ok("thaw", box)
    pale.ok("fork", "--at", "s", box, "f")
    assert text(pale, "f", "cat ~/f") == "1\n"


def test_commands_that_have_ended_are_known_afterwards(pale, box):
    job = pale.ok("exec", "-d", box, "--", "sh", "-c", "echo 1 > ~/f; echo printed; exit 3").text.strip()
    assert pale.run("wait", box, job).code == 3
    long = pale.ok("exec", "-d", box, "--", "sh", "-c", "head -c 100000 /dev/zero | tr '\\0' x").text.strip()
    pale.ok("wait", box, long)
    pale.ok("snapshot", box)
    assert pale.ok("logs", box, job).out == b"printed\n" and pale.run("wait", box, job).code == 3
    assert pale.ok("logs", box, long).out == b"x" * 100000
    assert int(pale.ok("exec", "-d", box, "--", "true").text) == int(long) + 1
    pale.ok("stop", box)
    assert pale.run("wait", box, job).code == 125, "a stop forgets them"


def test_autosave_at_stop(pale, box):
    text(pale, box, "echo 1 > ~/f")
    pale.ok("stop", box)
    assert [(s["name"], s["kind"]) for s in pale.json("snapshots", "--json", box)] == [("auto-1", "automatic")]
    assert text(pale, box, "cat ~/f") == "1\n"
    pale.ok("stop", box)
    assert len(pale.json("snapshots", "--json", box)) == 1, "nothing had changed"
    for i in range(12):
        text(pale, box, f"echo {i} > ~/f")
        pale.ok("stop", box)
    assert [s["name"] for s in pale.json("snapshots", "--json", box)] == [f"auto-{i}" for i in range(4, 14)]


def test_no_autosave(pale):
    box = pale.create("q", "--no-autosave")
    text(pale, box, "echo 1 > ~/f")
    pale.ok("stop", box)
    assert pale.json("snapshots", "--json", box) == []
    pale.ok("snapshot", box)
    assert len(pale.json("snapshots", "--json", box)) == 1 and text(pale, box, "cat ~/f") == "1\n"


def test_a_box_in_memory_has_none(pale):
    box = pale.create("m", "--scratch", "memory")
    done = pale.run("snapshot", box)
    assert done.code == 125 and "memory" in done.errors
    pale.ok("stop", box)


@pytest.mark.basic
def test_forks(pale, review, hostdir):
    text(pale, review, f"echo one > ~/f; echo one > {hostdir}/changed")
    pale.ok("snapshot", review, "one")
    text(pale, review, "echo two > ~/f")
    assert [b["name"] for b in pale.json("fork", "--json", review, "now")] == ["now"]
    assert [b["name"] for b in pale.json("fork", "--json", "--at", "one", "-n", "3", review, "old")] == ["old-1", "old-2", "old-3"]
    assert text(pale, "now", "cat ~/f; hostname").split() == ["two", "now"]
    ids = {text(pale, b, "cat /etc/machine-id; hostname") for b in (review, "now", "old-1", "old-2")}
    assert len(ids) == 4
    text(pale, "old-1", "echo mine > ~/f")
    assert text(pale, "old-2", f"cat ~/f {hostdir}/changed").split() == ["one", "one"]
    assert text(pale, review, "cat ~/f") == "two\n"
    first = json.loads(pale.ok("audit", "--json", "old-1").text.splitlines()[0])
    assert first["event"] == "box.forked" and first["from"] == review and first["snapshot"] == "one"
    pale.ok("rm", "-f", review)
    assert text(pale, "old-3", "cat ~/f") == "one\n" and text(pale, "now", "cat ~/f") == "two\n"
    base = pathlib.Path(pale.info("now")["data"]).parent
    assert (base / ".layers").is_dir()
    pale.ok("rm", "-f", "now", "old-1", "old-2", "old-3")
    assert not (base / ".layers").exists()


def test_a_fork_of_a_live_project_is_for_review(pale, hostdir):
    (hostdir / "f").write_text("old\n")
    box = pale.create("live", "--project", "live", cwd=hostdir)
    pale.ok("fork", box, "copy")
    assert pale.info("copy")["policy"]["project"]["mode"] == "review"
    text(pale, "copy", f"echo new > {hostdir}/f")
    assert (hostdir / "f").read_text() == "old\n" and text(pale, box, f"cat {hostdir}/f") == "old\n"


def test_forks_that_cannot_all_be_made_are_not_made(pale, box):
    text(pale, box, "echo 1 > ~/f")
    pale.create("n-2")
    done = pale.run("fork", "-n", "3", box, "n")
    assert done.code == 125 and "n-2" in done.errors
    assert {b["name"] for b in pale.json("ls", "--json")} == {box, "n-2"}
    for bad in ("0", "-1", "1001", "x"):
        assert pale.run("fork", "-n", bad, box, "n").code == 125


def test_forks_of_a_project_go_with_it(pale, hostdir):
    pale.ok("create", "--in-project", "p", cwd=hostdir)
    pale.ok("exec", "p", "--", "sh", "-c", "echo 1 > ~/f", cwd=hostdir)
    pale.ok("fork", "p", "q", cwd=hostdir)
    assert (hostdir / ".pale" / "q").is_dir() and (hostdir / ".pale" / ".layers").is_dir()
    assert pale.ok("exec", "-q", "q", "--", "cat", "/home/agent/f", cwd=hostdir).text == "1\n"
    pale.ok("rm", "p", "q", cwd=hostdir)
    assert not (hostdir / ".pale").exists()


def test_gc(pale, box):
    for name in ("a", "b", "c"):
        text(pale, box, f"echo {name} > ~/f")
        pale.ok("snapshot", box, name)
    assert len(layers(pale, box)) == 4
    pale.ok("restore", box, "a")
    text(pale, box, "echo d > ~/f")
    pale.ok("snapshot", box, "d")
    assert pale.json("gc", "--json")["layers"] == 0
    pale.ok("snapshots", "--rm", "c", box)
    assert "1 layers of 1 boxes would go" in pale.ok("gc", "-n").text and pale.json("gc", "--dry-run", "--json")["layers"] == 1
    assert pale.json("gc", "--json")["layers"] == 1 and pale.json("gc", "-n", "--json")["layers"] == 0
    pale.ok("snapshots", "--rm", "b", box)
    pale.ok("snapshots", "--rm", "a", box)
    assert pale.json("gc", "--json")["layers"] == 1, "a is still under d"
    assert text(pale, box, "cat ~/f") == "d\n"
    assert (pathlib.Path(pale.info(box)["data"]) / "layers").is_dir()


def test_rm_rf_of_the_folder_works(pale, hostdir):
    """Whoever owns the box owns every file in it, also what the kernel makes for itself."""
    pale.ok("create", "--in-project", "--project", "review", "p", cwd=hostdir)
    (hostdir / "f").write_text("x")
    pale.ok("exec", "p", "--", "sh", "-c", f"rm {hostdir}/f; mkdir -p ~/a/b; chmod 0 ~/a/b; mkfifo ~/fifo", cwd=hostdir)
    pale.ok("stop", "p", cwd=hostdir)
    pale.ok("exec", "p", "--", "sh", "-c", "echo 2 > ~/two", cwd=hostdir)
    os.kill(pale.json("inspect", "--json", "p", cwd=hostdir)["keeper_pid"], signal.SIGKILL)
    time.sleep(0.2)
    done = subprocess.run(["rm", "-rf", hostdir / ".pale" / "p"], capture_output=True, text=True)
    assert done.returncode == 0 and not (hostdir / ".pale" / "p").exists(), done.stderr
    assert pale.json("gc", "--json", "-n")["orphans"] == 0
    (b,) = pale.json("ls", "--json")
    assert b["state"] == "lost"
    assert "are still there" in pale.run("forget", b["id"]).errors
    pale.ok("forget", "-f", b["id"])


def test_gc_of_what_the_dead_have_left(pale, box):
    """Unfinished files, staging folders, old quarantines; never those of the living."""
    state, staging, quarantine = pale.root / "state" / "pale" / "boxes" / pale.info(box)["id"], pale.root / "data" / "pale-staging", pale.root / "state" / "pale" / "quarantine"
    gone = subprocess.Popen(["true"])
    gone.wait()
    for name in (f".handover.{gone.pid}.new", f".policy.{gone.pid}.new", f".handover.{os.getpid()}.new", ".handover.x.new", ".handover.new"):
        (state / name).write_text("x")
        os.utime(state / name, (time.time() - 100,) * 2)
    (state / f".young.{gone.pid}.new").write_text("x")
    for folder in (staging / "0" / "made", quarantine / "a" / "sub", quarantine / "b"):
        folder.mkdir(parents=True)
    for folder in (quarantine, staging):
        folder.chmod(0o700)
    held = os.open(quarantine / "b", os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(held, fcntl.LOCK_SH)
    (quarantine / "young").mkdir()
    (quarantine / "link").symlink_to("/")
    for name in ("a", "b"):
        os.utime(quarantine / name, (time.time() - 31 * 86400,) * 2)
    told = {"files": 2, "staging": 1, "quarantines": 1}
    for flags in (("-n",), ()):
        assert told.items() <= pale.json("gc", "--json", *flags).items()
    assert sorted(p for p in os.listdir(state) if p.endswith(".new")) == sorted([f".handover.{os.getpid()}.new", ".handover.x.new", ".handover.new", f".young.{gone.pid}.new"])
    assert sorted(os.listdir(quarantine)) == ["b", "link", "young"] and not os.listdir(staging)
    os.close(held)
    assert pale.json("gc", "--json")["quarantines"] == 1
    assert "quarantine" not in pale.ok("gc").text


def test_gc_of_images(pale, root):
    """Only with the flag, only those that no box is made on, each told."""
    if not has_tool("busybox"):
        pytest.skip("busybox-static is not installed")
    (root / "r").mkdir()
    for i in (1, 2):
        (root / "r" / "f").write_text(f"{i}")
        subprocess.run(["tar", "-C", root / "r", "-cf", root / f"{i}.tar", "."], check=True)
    pale.ok("image", "build", "used", "--from", "minimal")
    pale.ok("image", "build", "idle", "--from", "tar", "--file", root / "1.tar")
    pale.ok("image", "build", "also-idle", "--from", "tar", "--file", root / "1.tar")
    pale.ok("image", "build", "idle-too", "--from", "tar", "--file", root / "2.tar")
    pale.ok("image", "build", "idle-too", "--from", "minimal")
    pale.ok("create", "--image", "used", "on")
    def there():
        return sorted((i["name"], i["digest"][:6]) for i in pale.json("image", "ls", "--json"))
    before = there()
    assert pale.json("gc", "--json")["images"] == [] and there() == before and len(before) == 5
    would = pale.json("gc", "--json", "--images", "--dry-run")["images"]
    assert sorted(i["names"] for i in would) == [[], ["also-idle", "idle"]] and there() == before
    assert "image also-idle,idle, sha256:" in pale.ok("gc", "--images", "-n").text
    assert pale.json("gc", "--json", "--images")["images"] == would and [n for n, _ in there()] == ["idle-too", "used"]
    pale.ok("rm", "on")
    assert pale.ok("gc", "--images").text.startswith("image idle-too,used, sha256:") and there() == []


def test_many_at_once(pale, box):
    """Snapshots and commands get in each other's way, and all that is said to have been done is done."""
    text(pale, box, "echo 1 > ~/f")
    work = [pale.start("exec", "-q", box, "--", "sh", "-c", f"echo {i} > ~/w{i}") for i in range(8)]
    snaps = [pale.start("snapshot", box, f"s{i}") for i in range(8)]
    assert [p.wait(30) for p in work] == [0] * 8
    good = [p.wait(30) for p in snaps].count(0)
    assert len([s for s in pale.json("snapshots", "--json", box) if s["kind"] == "asked"]) == good
    assert text(pale, box, "ls ~ | wc -l").strip() == "9"


def test_a_list_of_layers_that_cannot_be_read_stops_everything(pale, box, root):
    text(pale, box, "echo 1 > ~/f")
    pale.ok("snapshot", box, "a")
    pale.ok("stop", box)
    assert wait_until(lambda: {s["state"] for s in pale.json("snapshots", "--json", box)} == {"verified"}), "else the list is written once more meanwhile"
    stack = root / "state" / "pale" / "boxes" / pale.info(box)["id"] / "stack"
    good = stack.read_text()
    for bad in ("", "pale stack 2\n", good[:-5], good + "x\n", good.replace("layer ", "layer ../", 1)):
        stack.write_text(bad)
        for verb in (["exec", box, "--", "true"], ["snapshot", box], ["snapshots", box], ["gc"], ["fork", box, "x"]):
            done = pale.run(*verb)
            assert done.code == 125 and "stack" in done.errors, (bad, done)
    stack.write_text(good)
    assert text(pale, box, "cat ~/f") == "1\n"


def stack_of(pale, box, root):
    return (root / "state" / "pale" / "boxes" / pale.info(box)["id"] / "stack").read_text().splitlines()


@pytest.mark.basic
def test_layers_get_their_digest_behind_the_scenes(pale, box):
    text(pale, box, "echo 1 > ~/f")
    pale.ok("snapshot", box, "a")
    assert wait_until(lambda: [s["state"] for s in pale.json("snapshots", "--json", box)] == ["verified"])


def test_a_long_chain_is_short_to_open(pale, box, root):
    for i in range(40):
        text(pale, box, f"echo {i} > ~/f{i}; echo {i} > ~/same; mkdir -p ~/d; echo {i} > ~/d/{i}; [ {i} -lt 5 ] || rm ~/f{i - 5}; [ {i} != 20 ] || {{ rm -r ~/d; mkdir ~/d; }}")
        pale.ok("snapshot", box, f"s{i}")
    pale.ok("gc")
    joins = [line for line in stack_of(pale, box, root) if line.startswith("join ")]
    assert len(joins) == 2, joins
    before = text(pale, box, "cd ~; ls -R; cat same d/* f*")
    pale.ok("stop", box)
    assert text(pale, box, "cd ~; ls -R; cat same d/* f*") == before
    assert "overlay" in text(pale, box, "mount | grep home") and text(pale, box, "mount | grep '/home/agent'").count(":") <= 14
    for i in (3, 15, 16, 17, 33):
        pale.ok("restore", box, f"s{i}")
        assert text(pale, box, "cat ~/same; ls ~/d | sort -n | tail -1; ls ~ | wc -l").split() == [str(i), str(i), str(min(i + 1, 5) + 2)], i
    pale.ok("fork", "--at", "s39", box, "f")
    assert text(pale, "f", "cd ~; ls -R; cat same d/* f*") == before


@pytest.mark.once
def test_snapshots_faster_than_anybody_looks_after_them(pale, box):
    """Their layers are joined before there are too many to start on."""
    for i in range(80):
        assert pale.sh(box, f"echo {i} > ~/f{i}").code == 0
        pale.ok("snapshot", box, f"s{i}")
    pale.ok("stop", box)
    assert text(pale, box, "ls ~ | wc -l; cat ~/f0 ~/f79").split() == ["80", "0", "79"]


def test_what_no_box_can_make_is_not_used(pale, box, root):
    """Somebody wrote in a layer: it is found when its digest is made, and the box does not start on it."""
    text(pale, box, "echo 1 > ~/f; mkdir ~/d")
    layer = next(p for p in (pathlib.Path(pale.info(box)["data"]) / "layers").iterdir() if (p / "home" / "d").is_dir())
    os.setxattr(layer / "home" / "d", "user.overlay.redirect", b"/etc")
    pale.ok("stop", box)
    assert wait_until(lambda: [s["state"] for s in pale.json("snapshots", "--json", box)] == ["poisoned"])
    done = pale.run("exec", box, "--", "true")
    assert done.code == 125 and "no box can make" in done.errors


def test_a_closed_layer_that_was_changed_is_found(pale, box):
    """A byte of a file that a snapshot stands for is another: it is named, and nothing starts on it any more; what is older is used."""
    for i in range(2):
        text(pale, box, f"echo {i} > ~/f{i}")
        pale.ok("snapshot", box, f"s{i}")
    text(pale, box, "echo 2 > ~/f2")
    assert wait_until(lambda: all(s["state"] == "verified" for s in pale.json("snapshots", "--json", box)))
    assert pale.run("snapshots", "--verify", box).code == 0
    file = next(pathlib.Path(pale.info(box)["data"]).glob("layers/*/home/f1"))
    file.write_text("x\n")
    done = pale.run("snapshots", "--verify", "--json", box)
    assert done.code == 1 and file.parent.parent.name in done.errors, done
    assert {s["name"]: s["state"] for s in done.json()} == {"s0": "verified", "s1": "poisoned"}
    assert "not what it was" in pale.run("snapshots", "--verify", box).errors  # and stays so
    for words in (("restore", "-f", box, "s1"), ("fork", "--at", "s1", box, "other")):
        refused = pale.run(*words)
        assert refused.code == 125 and "not what it was" in refused.errors, refused
    pale.ok("restore", "-f", box, "s0")
    assert text(pale, box, "cat ~/f0; ls ~").split() == ["0", "f0"]
