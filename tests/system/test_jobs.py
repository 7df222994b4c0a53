# SPDX-License-Identifier: Apache-2.0
"""Detached commands, ps, kill, wait, logs; the audit log; starting, stopping and removing boxes."""
import hashlib
import json
import os
import pathlib
import re
import signal
import struct
import subprocess
import time

import pytest

import wire
from harness import Terminal, processes_of, wait_until


def detach(pale, box, *command, flags=()):
    done = pale.ok("exec", "--detach", *flags, box, "--", *command)
    assert re.fullmatch(r"\d+\n", done.text) and done.err == b"", done
    return done.text.strip()


@pytest.mark.basic
def test_detach_prints_the_job_alone_and_logs_come_back_apart(pale, box):
    job = detach(pale, box, "sh", "-c", "echo out; echo err >&2; exit 5")
    done = pale.run("wait", box, job)
    assert done.code == 5 and "exit=5" in done.errors
    logs = pale.ok("logs", box, job)
    assert logs.text == "out\n" and logs.errors == "err\n"


def test_logs_are_byte_for_byte(pale, box):
    job = detach(pale, box, "python3", "-c", "import os; os.write(1, bytes(range(256)) * 999)")
    pale.run("wait", box, job)
    assert pale.ok("logs", box, job).out == bytes(range(256)) * 999


def test_logs_follow_until_the_end(pale, box):
    job = detach(pale, box, "sh", "-c", "for i in 1 2 3; do echo $i; sleep 0.2; done")
    began = time.monotonic()
    assert pale.ok("logs", "--follow", box, job).text == "1\n2\n3\n"
    assert 0.3 < time.monotonic() - began < 5


def test_detached_command_outlives_its_client(pale, box):
    job = detach(pale, box, "sh", "-c", "sleep 0.5; echo done")
    assert pale.run("wait", box, job).code == 0
    assert pale.ok("logs", box, job).text == "done\n"


def test_kill_ends_the_whole_tree(pale, box):
    job = detach(pale, box, "sh", "-c", "sleep 600 & setsid sleep 600 & wait")
    assert wait_until(lambda: pale.sh(box, "pgrep -c sleep").text == "2\n")
    pale.ok("kill", box, job)
    assert pale.run("wait", box, job).code == 137
    assert pale.sh(box, "pgrep sleep").code == 1


def test_kill_of_one_command_spares_the_others(pale, box):
    """One that is busy in the kernel takes its time to die; that is no reason to end everything in the box."""
    bystander = detach(pale, box, "sleep", "1000")
    busy = "import os\nwhile 1:\n  open('/tmp/x', 'w').write('a' * 10000); os.listdir('/usr/bin'); os.unlink('/tmp/x')"
    for _ in range(20):
        job = detach(pale, box, "python3", "-c", busy)
        time.sleep(0.1)
        pale.run("kill", box, job)
        pale.run("wait", box, job)
        rows = {str(row["job"]): row for row in json.loads(pale.ok("ps", "--json", box).text)}
        assert rows[bystander]["state"] == "running", rows[bystander]


def test_kill_of_one_leaves_the_others_however_busy_the_host_is(pale, box):
    """What is killed needs a processor to die on; until it has had one it must not be taken for a bomb, which takes all with it."""
    others = [detach(pale, box, "sh", "-c", "while :; do :; done") for _ in range(2 * os.cpu_count())]
    for _ in range(10):
        job = detach(pale, box, "sh", "-c", "sleep 600 & setsid sleep 600 & wait")
        time.sleep(0.05)
        pale.ok("kill", box, job)
        assert pale.run("wait", box, job).code == 137
        assert [j["state"] for j in pale.json("ps", "--json", box) if str(j["job"]) in others] == ["running"] * len(others)


def test_kill_with_a_signal_is_only_that_signal(pale, box):
    job = detach(pale, box, "sh", "-c", "trap 'echo got; exit 9' USR1; echo ready; while :; do sleep 0.05; done")
    assert wait_until(lambda: pale.ok("logs", box, job).text == "ready\n")
    pale.ok("kill", "--signal", "USR1", box, job)
    assert pale.run("wait", box, job).code == 9
    assert pale.ok("logs", box, job).text == "ready\ngot\n"


def test_ps_shows_running_and_ended(pale, box):
    long = detach(pale, box, "sleep", "60")
    short = detach(pale, box, "false")
    pale.run("wait", box, short)
    rows = {line.split()[0]: line.split() for line in pale.ok("ps", box).text.splitlines()[1:]}
    assert rows[long][1] == "running" and rows[short][1] == "ended" and rows[short][3] == "1"


def test_ps_of_a_stopped_box_is_empty(pale):
    pale.ok("create", "--no-start", "b")
    assert pale.json("ps", "--json", "b") == []


@pytest.mark.parametrize("verb", ["wait", "logs", "kill", "attach"])
def test_job_that_is_not_there(pale, box, verb):
    done = pale.run(verb, box, "4711")
    assert done.code == 125 and "4711" in done.errors


def test_timeout_of_a_detached_command(pale, box):
    job = detach(pale, box, "sleep", "60", flags=["--timeout", "300ms"])
    assert pale.run("wait", box, job).code == 124


def test_many_detached_commands_are_all_remembered(pale, box):
    jobs = [detach(pale, box, "sh", "-c", f"exit {i}") for i in range(40)]
    assert [pale.run("wait", box, j).code for j in jobs] == list(range(40))


# --- the life of a box ---

@pytest.mark.basic
def test_stop_ends_everything_at_once(pale, box, root):
    detach(pale, box, "sleep", "600")
    began = time.monotonic()
    pale.ok("stop", box)
    assert time.monotonic() - began < 2 and not processes_of(root)
    assert pale.exec(box, "true").code == 0


def test_stop_of_a_stopped_box_is_fine(pale, box):
    pale.ok("stop", box)
    pale.ok("stop", box)


def test_waiter_learns_that_the_box_was_stopped(pale, box):
    p = pale.start("exec", box, "--", "sleep", "600")
    wait_until(lambda: pale.json("ps", "--json", box))
    pale.ok("stop", box)
    assert p.wait(5) == 137 and b"the box was stopped" in p.stderr.read()


def test_rm_keep_data_keeps_the_files(pale, box):
    pale.ok("write", box, "precious", input=b"gold")
    data, layer = pale.info(box)["data"], pale.open_layer(box)
    pale.ok("rm", "--keep-data", box)
    assert [b["state"] for b in pale.json("ls", "--json")] == ["kept"] and os.path.exists(data)
    assert (layer / "home" / "precious").read_bytes() == b"gold"
    import shutil
    shutil.rmtree(data)


@pytest.mark.basic
def test_rm_takes_away_what_the_box_made(pale, box):
    pale.sh(box, "mkdir -p a/b; touch a/b/c; chmod 0 a/b a; mkdir /tmp/x; chmod 555 /tmp/x; ln -s / l; mkfifo p")
    data = pale.info(box)["data"]
    state = pale.info(box)["state_dir"]
    pale.ok("rm", box)
    assert not os.path.exists(data) and not os.path.exists(state)


def test_rm_does_not_follow_links_out(pale, box, root):
    outside = root / "outside"
    outside.mkdir()
    (outside / "keep").write_text("x")
    pale.sh(box, f"ln -s {outside} link; ln -s {outside}/keep file")
    pale.ok("rm", box)
    assert (outside / "keep").read_text() == "x"


def test_rm_of_many_and_force(pale):
    for n in "abc":
        pale.create(n)
    pale.ok("rm", "a", "b", "c")
    assert pale.run("rm", "a").code == 125
    pale.ok("rm", "--force", "a")


def test_two_clients_start_one_keeper(pale):
    pale.ok("create", "--no-start", "b")
    ps = [pale.start("exec", "b", "--", "sh", "-c", "sleep 0.3; hostname") for _ in range(12)]
    assert [p.wait(20) for p in ps] == [0] * 12
    assert len([1 for name, words in processes_of(pale.root).values() if name == "pale-keeper"]) == 1


# --- the audit log ---

def records(pale, box):
    return [json.loads(line) for line in pale.ok("audit", "--json", box).out.splitlines()]


@pytest.mark.basic
def test_audit_has_deeds_and_refusals(pale, box):
    pale.exec(box, "echo", "hello world")
    pale.exec(box, "true", flags=["--cwd", "relative"])
    pale.exec(box, "sleep", "9", flags=["--timeout", "100ms"])
    rows = records(pale, box)
    by = [(r["event"], r.get("argv"), r.get("status")) for r in rows]
    assert ("exec", ["echo", "hello world"], None) in by and ("exec.end", None, 0) in by and ("exec.end", None, 124) in by
    refused = [r for r in rows if r["event"] == "exec.refused"]
    assert refused and "absolute" in refused[0]["reason"]
    assert "hello world" in pale.ok("audit", box).text
    assert re.match(r"good: \d+ records", pale.ok("audit", "--verify", box).text)


def audit_file(pale, box):
    return os.path.join(pale.info(box)["state_dir"], "audit")


def edit(lines, how):
    if how == "change":
        at = next(i for i, line in enumerate(lines) if b"true" in line)
        lines[at] = lines[at].replace(b"true", b"TRUE")
    elif how == "remove":
        del lines[2]
    elif how == "swap":
        lines[2], lines[4] = lines[4], lines[2]
    elif how == "insert":
        lines.insert(2, lines[2])
    elif how == "cut the end":
        del lines[-2:]
    elif how == "cut the head":
        del lines[0]
    elif how == "add":
        lines.append(lines[-1])


@pytest.mark.parametrize("how", ["change", "remove", "swap", "insert", "cut the end", "cut the head", "add"])
def test_audit_verify_sees_every_edit(pale, box, how):
    for _ in range(3):
        pale.exec(box, "true")
    pale.ok("stop", box)
    path = audit_file(pale, box)
    lines = open(path, "rb").read().splitlines(keepends=True)
    edit(lines, how)
    open(path, "wb").write(b"".join(lines))
    done = pale.run("audit", "--verify", box)
    assert done.code == 1 and done.text.startswith("BAD"), done
    assert pale.run("audit", "--verify", "--json", box).json()["good"] is False


def test_audit_that_was_rewritten_with_its_head_is_betrayed_by_a_checkpoint(pale, box):
    """And a new box of the same name is not held to what the old one had."""
    pale.ok("serve")
    try:
        pale.sh(box, "true")
        pale.ok("stop", box)
        checkpoints = pale.root / "state" / "pale" / "checkpoints"
        assert wait_until(lambda: checkpoints.exists() and f'"box":"{box}"' in checkpoints.read_text())
        assert pale.json("audit", "--verify", "--json", box)["checkpoint"] > 0
        log = pathlib.Path(pale.json("inspect", "--json", box)["state_dir"]) / "audit"
        lines = log.read_bytes().splitlines()[:2]
        log.write_bytes(b"\n".join(lines) + b"\n")
        log.with_name("audit.head").write_text(f"{2:020} {hashlib.sha256(lines[-1]).hexdigest()}\n")
        done = pale.run("audit", "--verify", box)
        assert done.code == 1 and "checkpoint" in done.text, done
        pale.ok("rm", box)
        pale.create(box)
        assert pale.ok("audit", "--verify", box).text.startswith("good")
    finally:
        pale.ok("serve", "--stop")


def test_audit_follow_shows_what_happens(pale, box):
    p = pale.start("audit", "--follow", box)
    os.set_blocking(p.stdout.fileno(), False)
    pale.exec(box, "echo", "marker-77")
    seen = b""

    def came():
        nonlocal seen
        seen += p.stdout.read() or b""
        return b"marker-77" in seen and b"exit 0" in seen

    assert wait_until(came), seen


def test_audit_of_one_shot_runs(pale):
    pale.ok("run", "--", "echo", "one-shot-marker")
    assert "one-shot-marker" in pale.ok("audit", "--runs").text
    pale.ok("audit", "--runs", "--verify")


def test_audit_of_parallel_one_shot_runs_is_one_chain(pale):
    ps = [pale.start("run", "-q", "--", "true") for _ in range(20)]
    assert [p.wait(30) for p in ps] == [0] * 20
    assert re.match(r"good: (\d+) records", pale.ok("audit", "--runs", "--verify").text)


def test_audit_survives_a_killed_keeper(pale, box):
    pale.exec(box, "true")
    os.kill(pale.info(box)["keeper_pid"], signal.SIGKILL)
    assert wait_until(lambda: not processes_of(pale.root))
    assert pale.exec(box, "echo", "again").code == 0
    pale.ok("audit", "--verify", box)
    assert [r["event"] for r in records(pale, box)].count("box.start") == 2


def test_torn_last_line_of_the_audit_is_told_and_mended(pale, box):
    pale.exec(box, "true")
    pale.ok("stop", box)
    with open(audit_file(pale, box), "ab") as f:
        f.write(b'{"seq":99,"ti')
    assert pale.exec(box, "true").code == 0
    r = pale.run("audit", "--verify", "--json", box).json()
    assert r["good"] is True, r


def test_a_long_log_comes_whole(pale, box):
    job = pale.ok("exec", "-d", box, "--", "sh", "-c", "head -c 3000000 /dev/zero; echo end >&2").text.strip()
    pale.ok("wait", box, job)
    done = pale.ok("logs", box, job)
    assert len(done.out) == 3000000 and done.errors == "end\n"


def test_a_slow_follower_of_a_long_log_misses_nothing(pale, box):
    job = pale.ok("exec", "-d", box, "--", "sh", "-c", "sleep 0.3; head -c 3000000 /dev/zero").text.strip()
    p = pale.start("logs", "-f", box, job)
    time.sleep(1)
    assert pale.exec(box, "echo", "others").text == "others\n"
    out, err = p.communicate(timeout=20)
    assert len(out) == 3000000 and p.returncode == 0, err


def test_an_idle_box_keeps_no_spare_and_the_next_command_does_not_mind(pale, box):
    init = pale.json("inspect", "--json", box)["init_pid"]

    def children():
        return open(f"/proc/{init}/task/{init}/children").read().split() if os.path.exists(f"/proc/{init}/task/{init}/children") else []

    assert pale.exec(box, "true").code == 0
    assert wait_until(lambda: not children(), 20), "a box that does nothing still keeps processes ready"
    assert pale.exec(box, "cat", flags=["-i"], input=b"back").text == "back"


def test_a_signal_while_a_one_shot_box_is_made_ends_the_command(pale):
    """It may come before the command has begun, and must neither be lost nor start anything again."""
    for ms in (1, 2, 3, 4, 6, 8, 12):
        p = pale.start("run", "-q", "--", "sleep", "20")
        time.sleep(ms / 1000)
        p.send_signal(signal.SIGTERM)
        assert p.wait(10) in (143, -signal.SIGTERM), ms


# --- commands that last ---

def keeper(pale, box):
    return wire.Keeper(pathlib.Path(pale.env["XDG_RUNTIME_DIR"]) / "pale" / f"{pale.json('inspect', '--json', box)['id']}.sock")


@pytest.mark.basic
def test_kept_command_goes_on_when_its_client_is_killed(pale, box):
    script = "echo one; echo two >&2; read x; echo got $x; exit 7"
    p = subprocess.Popen([pale.program, "exec", "-i", "--keep", box, "--", "sh", "-c", script], env=pale.env, cwd=pale.home,
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert p.stdout.readline() == b"one\n"
    p.kill()
    p.communicate()
    (job,) = [j["job"] for j in pale.json("ps", "--json", box) if j["state"] == "running"]
    back = pale.run("attach", box, str(job), input=b"three\n")
    assert back.code == 7 and back.text == "one\ngot three\n" and back.errors.startswith("two\n") and "exit=7" in back.errors
    again = pale.run("attach", "-q", box, str(job))  # it has ended; what it printed is kept
    assert (again.code, again.text, again.errors) == (7, "one\ngot three\n", "two\n")
    told = json.loads(pale.run("attach", "--json", box, str(job)).text)
    assert (told["exit"], told["stdout"], told["stderr"]) == (7, {"data": "one\ngot three\n"}, {"data": "two\n"})
    for verb in (["attach", "-q"], ["logs"]):  # bytes of both streams count
        assert pale.run(*verb, "--offset", "10", box, str(job)).text == "t three\n"


def test_command_that_does_not_last_is_nobody_elses(pale, box):
    k = keeper(pale, box).exec("sleep", "60", flags=("EXEC_STDIN",))
    assert wait_until(lambda: [j for j in pale.json("ps", "--json", box) if j["state"] == "running"])
    (job,) = [j["job"] for j in pale.json("ps", "--json", box) if j["state"] == "running"]
    refused = pale.run("attach", box, str(job))
    assert refused.code == 125 and "belongs to the connection that started it" in refused.errors
    k.close()
    assert wait_until(lambda: pale.json("ps", "--json", box) == [])


def test_same_key_is_the_same_command(pale, box):
    script = ("sh", "-c", "echo x >> /tmp/ran; sleep 0.3; wc -l < /tmp/ran; exit 3")
    first = keeper(pale, box).exec(*script, key="k1")
    assert first.until("TELL_STARTED")
    second = keeper(pale, box).exec(*script, key="k1")  # while it runs: the first is let go
    told = second.all()
    assert told[0] == b"1\n" and told[3] == 3
    assert first.all()[3].startswith("somebody else has attached")
    assert keeper(pale, box).exec(*script, key="k1").all() == told  # and after its end
    assert keeper(pale, box).exec("true", key="k1").all()[3] == "that key was used for another command already"
    assert keeper(pale, box).exec(*script, key="k2").all()[0] == b"2\n"
    assert "longer than 128" in keeper(pale, box).exec("true", key="k" * 129).all()[3]
    assert "for commands that last" in keeper(pale, box).exec("true", key="k3", flags=()).all()[3]


def test_slow_reader_of_a_kept_command_holds_it_up_and_loses_nothing(pale, box):
    """Far more than is kept: with somebody attached the command waits, without it goes on and the newest stays."""
    k = keeper(pale, box).exec("sh", "-c", "head -c 90000000 /dev/zero; echo done >&2")
    time.sleep(0.5)
    held = [j for j in pale.json("ps", "--json", box) if j["state"] == "running"]
    assert held, "it did not wait for its reader"
    out, err, _, status = k.all()
    assert len(out) == 90000000 and err == b"done\n" and status == 0


def test_what_is_no_longer_kept_is_told(pale, box):
    box = pale.create("much", "--output", "200M")
    k = keeper(pale, box).exec("sh", "-c", "head -c 90000000 /dev/zero; echo done")
    job = struct.unpack("<Q", k.until("TELL_STARTED")[-1][1])[0]
    k.close()
    assert pale.run("wait", box, str(job)).code == 0
    frames = keeper(pale, box).attach(job).until("TELL_RESULT")
    missed = sum(struct.unpack("<Q", d)[0] for n, d in frames if n == "TELL_MISSED")
    begins = struct.unpack("<Q", next(d for n, d in frames if n == "TELL_OFFSET"))[0]
    got = b"".join(d for n, d in frames if n == "TELL_STDOUT")
    assert missed + begins > 20000000 and missed + begins + len(got) == 90000005 and got.endswith(b"done\n")
    shown = pale.ok("logs", box, str(job))
    assert shown.out.endswith(b"done\n") and len(shown.out) < 70 << 20


def test_terminal_survives_its_client(pale, box):
    t = Terminal([pale.program, "exec", "-it", "--keep", box, "--", "bash", "--norc"], pale.env, cwd=pale.home)
    t.line("X=kept; echo ready-$((40+2))")
    t.expect("ready-42")
    t.close()
    (job,) = [j["job"] for j in pale.json("ps", "--json", box) if j["state"] == "running"]
    t = Terminal([pale.program, "attach", box, str(job)], pale.env, rows=31, cols=97, cwd=pale.home)
    t.expect("ready-42")  # what was on the screen comes again
    t.line("stty size; echo var-$X")
    t.expect("31 97")
    t.expect("var-kept")
    t.resize(40, 100)
    t.line("sleep 0.2; stty size; exit 4")
    t.expect("40 100")
    assert t.wait() == 4
    t.close()


def test_watcher_hears_of_every_job(pale, box):
    w = keeper(pale, box).ask("ASK_WATCH")
    assert w.next()[0] == "TELL_INFO"
    pale.run("exec", "-q", box, "--", "sh", "-c", "exit 9")
    begun, ended = (wire.texts_and_numbers(w.next()[1]) for _ in range(2))
    assert begun[2] == 1 and ended[2] == 2 and ended[5] == 9 and begun[0] == ended[0]
    pale.ok("stop", box)
    assert w.next()[0] == "TELL_ERROR" and w.next() is None


def test_remembered_commands_are_bounded(pale, box):
    for i in range(300):
        keeper(pale, box).exec("head", "-c", "5000", "/dev/zero", key=f"n{i}").all()
    jobs = pale.json("ps", "--json", box)
    assert 200 <= len(jobs) <= 257
    state = pathlib.Path(pale.json("inspect", "--json", box)["state_dir"])
    assert wait_until(lambda: len(list(state.glob("job-*.log"))) <= 257)
    assert keeper(pale, box).exec("head", "-c", "5000", "/dev/zero", key="n0").all()[2] > 300  # forgotten: a new one
