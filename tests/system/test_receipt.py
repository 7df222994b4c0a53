# SPDX-License-Identifier: Apache-2.0
"""Receipts: every box is proved before its first command, and one that does not hold is destroyed."""
import json
import os
import shutil
import signal
import subprocess
import time

import pytest

import harness
from harness import REAL_ROOT, wait_until

# The defence that is off, and the words of the message that must name it.
SABOTAGE = {
    "seccomp": "the system call filter (seccomp)",
    "landlock": "the Landlock domain",
    "inner-userns": "the inner user namespace",
    "netns": "the network namespace",
    "limits": "the limit on memory (cgroup)",
    "caps": "the giving up of capabilities",
    "ipcns": "the ipc namespace",
    "root": "the read-only root",
    "readonly": "the read-only root",
    "proc-mask": "the masks over /proc",
    "fds": "the closing of descriptors",
}


def sabotaged(pale, switches):
    if not os.access(harness.WEAK / "pale", os.X_OK):
        pytest.skip("the weakened build is not built")
    other = pale.weakened(switches)
    other.env["PALE_WEAKEN"] = switches  # without the word that lets it pass
    return other


def records(path, event):
    return [r for r in map(json.loads, path.read_text().splitlines()) if r["event"] == event]


def runs(pale):
    return pale.root / "state" / "pale" / "runs.audit"


@pytest.mark.basic
@pytest.mark.parametrize("defence", SABOTAGE)
def test_a_sabotaged_box_is_destroyed_before_a_command_runs(pale, hostdir, defence):
    twin = sabotaged(pale, defence)
    given = ["--write", hostdir] if defence != "root" else []  # there it would not be found
    for how in (["run", "-q", *given, "--"], ["create", *given, "b"]):
        done = twin.run(*how, *(["touch", f"{hostdir}/ran"] if how[0] == "run" else []))
        assert done.code == 125, done
        assert f"missing: {SABOTAGE[defence]}" in done.errors or f"; {SABOTAGE[defence]}" in done.errors, done
        assert not (hostdir / "ran").exists()
    assert wait_until(lambda: not harness.processes_of(pale.root)), "the destroyed box lives on"
    refused = records(runs(pale), "box.receipt")[-1]
    assert not refused["good"] and SABOTAGE[defence] in refused["reason"]
    assert not records(runs(pale), "exec"), "a command was let in"
    assert pale.run("audit", "--verify", "--runs").code == 0


@pytest.mark.basic
@pytest.mark.parametrize("defence", [*SABOTAGE, "profile"])
def test_the_short_probe_finds_it_too(pale, defence):
    """The kind of box is proved by a good one first, so that the sabotaged one gets the short probe alone."""
    twin = sabotaged(pale, defence)
    assert twin.run("run", "-q", "--", "true", env={"PALE_WEAKEN": ""}).code == 0
    assert twin.run("run", "-q", "--", "true").code == 125
    seen = records(runs(pale), "box.receipt")
    limits_differ = defence == "limits"  # who holds the limits is part of what a kind is
    assert [(r["probe"], r["good"]) for r in seen] == [("full", True), ("full" if limits_differ else "short", False)]
    assert SABOTAGE.get(defence, "the system call filter (seccomp)") in seen[1]["reason"]


def test_a_first_request_that_the_prober_cannot_take_gets_all_the_processes(pale):
    done = pale.run("run", "-q", "--processes", "3", "--", "sh", "-c", "sleep 0.01 & wait; echo forked", "sh", "x" * 62000)
    assert done.text == "forked\n", done


def test_a_box_cannot_make_what_looks_like_the_planted_file(pale):
    """Below a place of its own it could: there the file is not asked for."""
    box = pale.create()
    top = "/" + str(pale.root).split("/")[1]
    if top not in ("/tmp", "/run", "/home"):
        pytest.skip("the state folder lies below none of a box's own places")
    first = str(pale.root).split("/")[2]
    assert pale.sh(box, f"touch /tmp/{first}").code == 0
    assert pale.run("prove", box).code == 0
    pale.ok("stop", box)
    assert pale.exec(box, "true").code == 0


def test_the_switch_for_twins_lets_the_same_box_pass(pale):
    if not os.access(harness.WEAK / "pale", os.X_OK):
        pytest.skip("the weakened build is not built")
    assert pale.weakened("seccomp").run("run", "-q", "--", "true").code == 0
    assert not records(runs(pale), "box.receipt")


def test_the_first_box_of_a_kind_is_proved_in_full_the_next_ones_shortly(pale):
    for _ in range(3):
        pale.ok("run", "-q", "--", "true")
    pale.ok("run", "-q", "--processes", "77", "--", "true")  # another policy
    pale.ok("run", "-q", "--processes", "77", "--", "true")
    seen = records(runs(pale), "box.receipt")
    assert [r["probe"] for r in seen] == ["full", "short", "short", "full", "short"]
    assert all(r["good"] for r in seen)
    assert seen[1]["proved_by"] == seen[0]["receipt"] == seen[2]["proved_by"] != seen[3]["receipt"]
    assert seen[0]["attempts"] > seen[1]["attempts"] > 30
    assert "process-limit=77" in seen[4]["observed"]


def test_a_program_that_changed_is_another_build(pale, root):
    pale.ok("run", "-q", "--", "true")
    copy = root / "copy"
    shutil.copytree(pale.build, copy, ignore=lambda d, names: [n for n in names if n not in ("pale", "pale-keeper", "pale-init", "pale-policy", "pale-seal")])
    other = harness.Pale(pale.root, copy)
    other.ok("run", "-q", "--", "true")
    assert [r["probe"] for r in records(runs(pale), "box.receipt")] == ["full", "full"]


def test_the_receipt_stands_before_the_first_command_in_the_log(pale):
    pale.ok("run", "-q", "--", "true")
    events = [json.loads(line)["event"] for line in runs(pale).read_text().splitlines()]
    assert events[:3] == ["box.start", "box.receipt", "exec"], events


def test_a_full_receipt_is_signed_and_a_changed_one_is_found(pale, root):
    box = pale.create()
    text = pale.ok("prove", "--full", "--json", box).text
    good, bad = root / "good.json", root / "bad.json"
    good.write_text(text)
    assert pale.json("prove", "--json", "--verify", good)["good"] is True
    key = (pale.root / "state" / "pale" / "host.pub").read_text().strip()
    assert json.loads(text)["key"] == key and len(key) == 64
    for old, new in (('"good":true', '"good":false'), ("EPERM", "EACCES"), (box, box + "x"), (key[:8], "00000000")):
        assert old in text
        bad.write_text(text.replace(old, new, 1))
        assert pale.run("prove", "--verify", bad).code == 1, (old, new)
    forged = [text.rstrip() + ',"receipt":{"box":"prod","good":true}}', text + text, text.rstrip() + "\0garbage", text.rstrip()[:-1] + ',"x":1}', text + " "]
    for more in forged:
        bad.write_text(more)
        assert pale.run("prove", "--verify", bad).code not in (0, 139), more[-60:]
    other = pale.root / "other"
    other.mkdir(mode=0o700)
    receipt = json.dumps({"box": "prod", "good": True})
    seal = subprocess.run([str(pale.build / "pale-seal"), "sign", str(other)], input=receipt.encode(), capture_output=True, check=True).stdout.decode().split()
    bad.write_text(f'{{"receipt":{receipt},"key":"{seal[0]}","signature":"{seal[1]}"}}\n')
    done = pale.json("prove", "--json", "--verify", bad, expect=1)
    assert done == {"good": False, "key": seal[0], "known": False}, "anybody can make a key"
    assert pale.run("prove", "--verify", bad, "--key", seal[0]).code == 0
    for junk in ("", "{}", text[:200], text.replace(',"key":', ',"kex":'), "x" * 100000):
        bad.write_text(junk)
        assert pale.run("prove", "--verify", bad).code not in (0, 139), junk[:40]


def test_the_signature_in_the_log_is_of_the_receipt_that_is_kept(pale, root):
    pale.ok("run", "-q", "--", "true")
    record = records(runs(pale), "box.receipt")[0]
    folder = pale.root / "state" / "pale" / "proved"
    digest, key, signature, text = next(iter(folder.iterdir())).read_text().split("\n", 3)
    assert (digest, key, signature) == (record["receipt"], record["key"], record["signature"])
    again = root / "r.json"
    again.write_text(f'{{"receipt":{text},"key":"{key}","signature":"{signature}"}}\n')
    assert pale.run("prove", "--verify", again).code == 0
    receipt = json.loads(text)
    assert receipt["good"] and receipt["probe"] == "full" and receipt["kernel"] == os.uname().release
    assert {"tier", "policy_digest", "build", "boot"} <= set(receipt)
    for row in receipt["attempts"]:
        assert row["good"] and set(row) == {"name", "expected", "observed", "good"}


def test_inspect_shows_the_receipt(pale):
    box = pale.create()
    receipt = pale.json("inspect", "--json", box)["receipt"]
    assert receipt["good"] and receipt["box"] == box
    assert "receipt   good: " in pale.ok("inspect", box).text


def test_prove_works_while_commands_run_and_at_the_limit_of_processes(pale):
    box = pale.create("b", "--processes", "6")
    job = pale.ok("exec", "-d", box, "--", "sleep", "60").text.strip()
    assert pale.run("prove", box).code == 0
    assert pale.json("prove", "--json", "--full", box)["receipt"]["good"]
    pale.run("exec", "-d", box, "--", "sh", "-c", "sleep 60 & sleep 60 & sleep 60 & sleep 60 & sleep 60 & sleep 60 & wait")
    done = pale.run("prove", box)
    assert done.code == 0 or "limit of processes" in done.errors, done
    pale.ok("kill", box, job)
    assert pale.exec(box, "true").code == 0


def test_many_ask_for_a_proof_at_once(pale):
    box = pale.create()
    asking = [pale.start("prove", "--full", box) for _ in range(12)]
    for p in asking:
        out, err = p.communicate(timeout=60)
        assert p.returncode == 0 or b"under way" in err, (out, err)
    assert pale.run("prove", box).code == 0


@pytest.mark.basic
@pytest.mark.parametrize("flags", [["--processes", "1"], ["--processes", "2"], ["--processes", "3"], ["--seccomp", "debug"], ["--output", "1K"],
                                   ["--project", "ro"], ["--scratch", "memory", "--disk", "8M"]], ids=lambda f: " ".join(f))
def test_unusual_boxes_are_proved_too(pale, hostdir, flags):
    for _ in range(2):
        done = pale.run("run", "-q", *flags, "--", "/bin/true", cwd=hostdir)
        assert done.code == 0, done
    assert [r["probe"] for r in records(runs(pale), "box.receipt")] == ["full", "short"]


def test_without_its_key_no_box_starts_and_nothing_is_lost(pale):
    pale.ok("run", "-q", "--", "true")
    key = pale.root / "state" / "pale" / "host.key"
    whole = key.read_text()
    key.write_text(whole[:20])
    done = pale.run("run", "-q", "--processes", "99", "--", "true")
    assert done.code == 125 and "host.key" in done.errors, done
    assert key.read_text() == whole[:20], "a damaged key must be left for its owner to look at"
    key.write_text(whole)
    pale.ok("run", "-q", "--processes", "99", "--", "true")


def test_the_key_is_nobody_elses(pale):
    pale.ok("run", "-q", "--", "true")
    key = pale.root / "state" / "pale" / "host.key"
    assert key.stat().st_mode & 0o777 == 0o600
    key.chmod(0o644)
    done = pale.run("run", "-q", "--processes", "98", "--", "true")
    assert done.code == 125, done


def test_twenty_first_starts_at_once_end_with_one_key(pale):
    started = [pale.start("run", "-q", "--", "true") for _ in range(20)]
    for p in started:
        out, err = p.communicate(timeout=60)
        assert p.returncode == 0, err
    keys = {r["key"] for r in records(runs(pale), "box.receipt") if r["probe"] == "full"}
    assert len(keys) == 1


def test_nothing_of_a_probe_is_left_on_the_host(pale):
    box = pale.create()
    pale.ok("prove", "--full", box)
    runtime = pale.root / "run"
    left = [str(p) for p in runtime.resolve().rglob("secret-*")]
    assert not left
    assert not [p for p in (pale.root / "state" / "pale").iterdir() if ".new" in p.name]


def test_a_scratch_without_its_limit_is_found(pale):
    """The size that the box sees is held against the one that was asked for, not against itself."""
    seen = {}
    for name, program in (("held", pale), ("weak", sabotaged(pale, "limits"))):
        program.run("run", "-q", "--scratch", "memory", "--disk", "8M", "--", "true")
        seen[name] = records(runs(pale), "box.receipt")[-1]["observed"]
    assert "scratch-kib=8192 " in seen["held"] and "scratch-kib=8192 " not in seen["weak"]


def test_inspect_does_not_call_a_destroyed_box_good(pale):
    box = pale.create()
    assert pale.json("inspect", "--json", box)["receipt"]["good"]
    pale.ok("stop", box)
    twin = sabotaged(pale, "landlock")
    assert twin.run("exec", box, "--", "true").code == 125
    assert pale.json("inspect", "--json", box)["receipt"]["good"] is False
    assert "BAD" in pale.ok("inspect", box).text


@pytest.mark.once
def test_a_box_cannot_make_a_proof_hang(pale):
    """It can stop every process of its user, the prober among them."""
    box = pale.create()
    stopper = pale.start("exec", box, "--", "python3", "-c", """import os, signal
me = os.getpid()
while True:
    for p in os.listdir('/proc'):
        if p.isdigit() and int(p) not in (1, me):
            try: os.kill(int(p), signal.SIGSTOP)
            except OSError: pass""")
    time.sleep(0.5)
    began = time.monotonic()
    done = pale.run("prove", box, timeout=30)
    assert done.code == 0 or "in time" in done.errors, done
    assert time.monotonic() - began < 25
    stopper.send_signal(signal.SIGTERM)
    stopper.wait(20)
    assert wait_until(lambda: pale.run("prove", box, timeout=30).code == 0, 40), "one that hung must not be the end of proofs"


def test_a_domain_of_somebody_elses_does_not_pass_for_ours(pale, root):
    """pale may itself have been started in a Landlock domain: that is one more outside, and must not make up for one that is missing."""
    wrapper = root / "wrap.py"
    wrapper.write_text("""import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.prctl(38, 1, 0, 0, 0)
attr = (ctypes.c_uint64 * 3)(0, 0, 1)
fd = libc.syscall(444, attr, 24, 0)
if fd < 0 or libc.syscall(446, fd, 0) != 0: sys.exit(77)
os.execv(sys.argv[1], sys.argv[1:])""")

    def inside(program, env):
        return subprocess.run(["python3", str(wrapper), program.program, "run", "-q", "--", "echo", "ran"], env={**program.env, **env}, cwd=pale.home,
                              capture_output=True, text=True, timeout=60)
    done = inside(pale, {})
    if done.returncode == 77:
        pytest.skip("this kernel has no Landlock domain that only scopes")
    if "newuidmap" in done.stderr or "uid_map" in done.stderr:
        pytest.skip("a process that gains no privileges cannot use newuidmap")
    assert done.stdout == "ran\n", done.stderr
    twin = sabotaged(pale, "landlock")
    done = inside(twin, {})
    assert done.stdout == "" and "the Landlock domain" in done.stderr, done.stderr
