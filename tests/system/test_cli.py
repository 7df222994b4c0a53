# SPDX-License-Identifier: Apache-2.0
"""The command line as its users meet it: exit statuses, streams, JSON, help, mistakes."""
import fcntl
import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

import pytest

from harness import wait_until

VERBS = ["run", "exec", "shell", "create", "ls", "inspect", "stop", "freeze", "thaw", "rename", "adopt", "forget", "rm", "diff", "apply", "discard", "snapshot", "snapshots", "restore", "fork", "export", "import", "gc", "ps", "attach", "kill", "wait", "logs", "cp", "cat", "write", "files",
         "mkdir", "mv", "del", "watch", "net", "quarantine", "panic", "validate", "policy", "presets", "audit", "guard", "approvals", "prove", "image", "serve", "token", "claude", "codex", "gemini", "qwen", "opencode", "copilot", "agent", "agents", "mcp", "completion", "version"]
SUMMARY = re.compile(r"^exit=(\d+) time=(\d+(\.\d+)?(ms|s)|\d+m\S*) cpu=\d+\.\d\ds peak=\d+(\.\d)?(B|KiB|MiB|GiB)$", re.M)


# --- exit statuses ---

@pytest.mark.basic
@pytest.mark.parametrize("script,status", [("exit 0", 0), ("exit 1", 1), ("exit 7", 7), ("exit 255", 255), ("kill -TERM $$", 143),
                                           ("kill -KILL $$", 137), ("kill -SEGV $$", 139)])
def test_exit_status_is_the_commands_own(pale, script, status):
    assert pale.run("run", "--", "sh", "-c", script).code == status


@pytest.mark.basic
def test_program_that_is_not_there_is_127(pale, box):
    done = pale.exec(box, "no-such-program")
    assert done.code == 127 and "no-such-program: not found in the box" in done.errors


def test_path_that_is_not_there_is_127(pale, box):
    assert pale.exec(box, "/no/such/program").code == 127


@pytest.mark.basic
def test_file_that_cannot_be_run_is_126(pale, box):
    done = pale.exec(box, "/etc/passwd")
    assert done.code == 126 and "cannot be run" in done.errors and "Permission denied" in done.errors


def test_folder_is_126(pale, box):
    assert pale.exec(box, "/tmp").code == 126


def test_working_folder_that_is_not_there_is_126(pale, box):
    done = pale.exec(box, "true", flags=["--cwd", "/no/such"])
    assert done.code == 126 and "working folder" in done.errors


@pytest.mark.basic
def test_time_out_is_124(pale, box):
    done = pale.exec(box, "sleep", "60", flags=["--timeout", "300ms"], timeout=10)
    assert done.code == 124 and "killed: it took longer than 300ms" in done.errors


def test_trouble_of_ours_is_125(pale):
    done = pale.run("exec", "nobox", "--", "true")
    assert done.code == 125 and "nobox" in done.errors


def test_script_without_interpreter_line_runs_in_the_shell(pale, box):
    pale.ok("write", "--mode", "755", box, "s", input=b"echo shell $1\n")
    assert pale.exec(box, "./s", "one").text == "shell one\n"


# --- the summary line ---

@pytest.mark.basic
def test_summary_line(pale):
    done = pale.ok("run", "--", "true")
    assert done.out == b"" and SUMMARY.fullmatch(done.errors.strip()), done


def test_summary_tells_the_time(pale, box):
    done = pale.exec(box, "sleep", "0.3")
    ms = re.search(r"time=(\d+)ms", done.errors)
    assert ms and 290 <= int(ms[1]) < 2000, done


def test_summary_counts_the_cpu_of_the_whole_tree(pale, box):
    done = pale.sh(box, "for i in 1 2; do python3 -c 'import time; e=time.process_time()+.3\nwhile time.process_time()<e: pass' & done; wait")
    cpu = float(re.search(r"cpu=([\d.]+)s", done.errors)[1])
    assert 0.55 <= cpu < 3, done


def test_summary_tells_the_peak(pale, box):
    done = pale.py(box, "x = bytearray(100 << 20)")
    peak = float(re.search(r"peak=([\d.]+)MiB", done.errors)[1])
    assert 100 <= peak < 150, done


def test_quiet_leaves_the_summary_out(pale):
    assert pale.ok("run", "-q", "--", "true").err == b""


def test_summary_goes_to_stderr_only(pale, box):
    assert pale.sh(box, "echo out; echo err >&2").out == b"out\n"


# --- streams ---

ALL_BYTES = bytes(range(256))


@pytest.mark.basic
@pytest.mark.parametrize("stream", [1, 2])
def test_every_byte_value_comes_through(pale, box, stream):
    done = pale.py(box, f"import os; os.write({stream}, bytes(range(256)) * 16)", flags=["-q"])
    assert (done.out, done.err)[stream - 1] == ALL_BYTES * 16 and (done.err, done.out)[stream - 1] == b""


def test_64_mib_come_out_whole(pale, box):
    script = """import sys, hashlib, random
r = random.Random(7); h = hashlib.sha256()
for i in range(64):
    b = r.randbytes(1 << 20); h.update(b); sys.stdout.buffer.write(b)
sys.stderr.write(h.hexdigest())"""
    done = pale.py(box, script, flags=["-q"], timeout=60)
    assert done.code == 0 and len(done.out) == 64 << 20 and hashlib.sha256(done.out).hexdigest() == done.errors


def test_64_mib_go_in_whole(pale, box):
    data = os.urandom(1 << 20) * 64
    done = pale.exec(box, "sha256sum", flags=["-i"], input=data, timeout=60)
    assert done.code == 0 and done.text.split()[0] == hashlib.sha256(data).hexdigest()


def test_64_mib_go_through_both_ways(pale, box):
    data = os.urandom(1 << 20) * 64
    done = pale.exec(box, "cat", flags=["-i"], input=data, timeout=60)
    assert done.code == 0 and done.out == data


@pytest.mark.basic
def test_input_of_a_one_shot_box(pale):
    assert pale.ok("run", "-i", "--", "tr", "a-z", "A-Z", input=b"hello\0world").out == b"HELLO\0WORLD"


def test_without_i_the_input_is_empty(pale, box):
    assert pale.exec(box, "cat", input=b"not for you").out == b""


def test_command_that_ends_before_its_input_does(pale, box):
    done = pale.exec(box, "head", "-c", "1", flags=["-i"], input=b"x" * (8 << 20))
    assert done.code == 0 and done.out == b"x"


def test_streams_keep_apart(pale, box):
    done = pale.sh(box, "for i in 1 2 3; do echo o$i; echo e$i >&2; done", flags=["-q"])
    assert done.text == "o1\no2\no3\n" and done.errors == "e1\ne2\ne3\n"


def test_reader_that_goes_away_ends_the_command(pale, box):
    p = pale.start("exec", box, "--", "yes")
    p.stdout.read(10)
    p.stdout.close()
    p.stdout = None
    assert p.wait(10) == 125
    assert b"nobody reads" in p.stderr.read()
    assert wait_until(lambda: pale.sh(box, "pgrep -x yes").code == 1)


def test_output_limit_leaves_a_mark(pale):
    box = pale.create("b", "--output", "64K")
    done = pale.exec(box, "head", "-c", "1000000", "/dev/zero")
    assert done.code == 0 and len(done.out) == 65536
    assert re.search(r"\[pale: output cut at 64KiB; 912(\.\d)?KiB more were dropped\]", done.errors), done.errors
    result = pale.json("exec", "--json", box, "--", "head", "-c", "1000000", "/dev/zero")
    assert result["truncated"] is True and result["output_bytes"] == 65536 and result["dropped_bytes"] == 1000000 - 65536


# --- JSON ---

RESULT_FIELDS = {"exit", "signal", "timed_out", "out_of_memory", "cpu_limit", "disk_full", "killed", "started", "truncated", "output_bytes", "dropped_bytes",
                 "duration_ms", "cpu_ms", "peak_bytes", "message"}


@pytest.mark.basic
def test_json_of_run(pale):
    r = pale.json("run", "--json", "--", "sh", "-c", "echo out; echo err >&2; exit 3", expect=3)
    assert set(r) == RESULT_FIELDS | {"stdout", "stderr"}
    assert r["exit"] == 3 and r["signal"] == 0 and r["started"] is True and r["stdout"] == {"data": "out\n"} and r["stderr"] == {"data": "err\n"}


def test_json_of_exec_killed_by_a_signal(pale, box):
    r = pale.json("exec", "--json", box, "--", "sh", "-c", "kill -USR1 $$", expect=138)
    assert r["exit"] == 138 and r["signal"] == 10 and r["killed"] is False


def test_json_of_exec_not_found(pale, box):
    r = pale.json("exec", "--json", box, "--", "no-such", expect=127)
    assert r["started"] is False and r["exit"] == 127 and "not found" in r["message"]


def test_json_of_exec_timeout(pale, box):
    r = pale.json("exec", "--json", "--timeout", "200ms", box, "--", "sleep", "9", expect=124)
    assert r["timed_out"] is True and r["exit"] == 124 and r["duration_ms"] >= 200


def test_json_output_that_is_no_text_is_base64(pale, box):
    import base64
    r = pale.json("exec", "--json", box, "--", "printf", r"\377\376x")
    assert base64.b64decode(r["stdout"]["base64"]) == b"\xff\xfex" and r["stderr"] == {"data": ""}


def test_several_boxes_by_one_command(pale):
    names = [f"m{i}" for i in range(12)]
    r = pale.ok("create", "--processes", "50", *names)
    assert [line.split()[1] for line in r.text.splitlines()] == names
    pale.create("one")
    look = "cat /proc/self/uid_map /proc/self/gid_map /proc/self/setgroups; id; stat -c '%u %g' / /tmp /home/agent"
    alone = pale.ok("exec", "-q", "one", "--", "sh", "-c", look).text
    for name in ("m0", "m11"):
        assert pale.ok("exec", "-q", name, "--", "sh", "-c", look).text == alone
        assert "0 not" in pale.ok("prove", "--full", name).text
    assert {b["state"] for b in pale.json("ls", "--json")} == {"ready"}
    again = pale.run("create", "fresh", "m3", "never")
    assert again.code == 125 and "already a box m3" in again.errors
    assert pale.run("inspect", "fresh").code == 0 and pale.run("inspect", "never").code != 0
    made = [json.loads(line) for line in pale.ok("create", "--json", "j1", "j2", "--no-start").text.splitlines()]
    assert [b["name"] for b in made] == ["j1", "j2"] and {b["state"] for b in made} == {"stopped"}
    made = [json.loads(line) for line in pale.run("create", "--json", "j3", "j1").text.splitlines()]
    assert made[0]["name"] == "j3" and made[1]["error"]["code"] == "exists"
    pale.ok("rm", "one", "fresh", "j1", "j2", "j3", *names)
    assert pale.json("ls", "--json") == []


def test_of_several_boxes_those_under_way_are_seen_through(pale):
    """The keeper of one is refused its policy; the others are there or were never begun, and nothing is half made."""
    shared = pale.home / "shared"
    shared.mkdir()
    r = pale.run("create", "a", "b", "c", "--write", shared)
    assert r.code == 125 and "no two boxes share a writable folder" in r.errors
    there = [b["name"] for b in pale.json("ls", "--json")]
    assert len(there) == 1 and sorted(p.name for p in (pale.home.parent / "data" / "pale" / "boxes").iterdir()) == there
    pale.ok("exec", "-q", there[0], "--", "true")


def test_of_two_who_make_one_box_one_is_refused(pale):
    """… and what the other was told stays true."""
    for i in range(25):
        both = [subprocess.Popen([pale.program, "create", f"r{i}", f"s{i}"], env=pale.env, cwd=pale.home, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                for _ in range(2)]
        told = [p.communicate(timeout=30) for p in both]
        lines = [line.split()[1].decode() for out, _ in told for line in out.splitlines()]
        there = [b["name"] for b in pale.json("ls", "--json")]
        assert len(lines) == len(set(lines)) and sorted(lines) == sorted(there), (told, there)
        assert all(err.startswith(b"pale: ") for p, (_, err) in zip(both, told) if p.returncode)
        for name in there:
            pale.ok("exec", "-q", name, "--", "true")
        pale.ok("rm", *there)


def test_interrupted_create_tells_of_every_box_it_made(pale):
    for sign in (signal.SIGINT, signal.SIGTERM):
        names = [f"i{n}" for n in range(200)]
        p = subprocess.Popen([pale.program, "create", *names], env=pale.env, cwd=pale.home, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        time.sleep(0.15)
        p.send_signal(sign)
        out, err = p.communicate(timeout=30)
        told = [line.split()[1].decode() for line in out.splitlines()]
        assert p.returncode == -sign and b"interrupted before box" in err and 0 < len(told) < 200
        assert sorted(told) == sorted(b["name"] for b in pale.json("ls", "--json"))
        assert sorted(told) == sorted(p.name for p in (pale.home.parent / "data" / "pale" / "boxes").iterdir())
        pale.ok("rm", *told)
    first = subprocess.run(f"'{pale.program}' create {' '.join(names[:40])} | head -1", shell=True, env=pale.env, cwd=pale.home, capture_output=True, timeout=60)
    assert first.stdout.startswith(b"box i0 ")
    there = pale.json("ls", "--json")
    assert 1 <= len(there) < 40 and {b["state"] for b in there} == {"ready"}


def test_the_shared_etc_goes_when_no_keeper_holds_it(pale):
    """Parts of earlier versions of the host's files: one that a keeper still has locked, one that nobody has."""
    runtime = pathlib.Path(pale.env["XDG_RUNTIME_DIR"]) / "pale"
    pale.create("first")
    pale.ok("rm", "first")
    for part in runtime.glob("etc-*"):
        shutil.rmtree(part)
    for name in ("etc-held", "etc-free"):
        (runtime / name / "shown").mkdir(parents=True)
        for i in range(16):
            (runtime / name / f"lock-{i:x}").touch()
    with open(runtime / "etc-held" / "lock-b") as f:
        fcntl.flock(f, fcntl.LOCK_SH)
        pale.create("second")
        assert (runtime / "etc-held").exists() and not (runtime / "etc-free").exists()
    (own,) = {p.name for p in runtime.glob("etc-*")} - {"etc-held"}
    assert not (runtime / own / "shown" / "lock-0").exists() and "lock" not in pale.ok("exec", "-q", "second", "--", "ls", "/etc").text


def test_json_of_create(pale):
    r = pale.json("create", "--json", "c1")
    assert set(r) == {"name", "id", "scope", "data", "state"} and r["name"] == "c1" and r["scope"] == "user" and r["state"] == "ready"
    assert re.fullmatch("[0-9a-f]{32}", r["id"]) and os.readlink(f"{r['data']}/id") == r["id"]


def test_json_of_ls(pale, box):
    pale.ok("create", "--no-start", "other")
    rows = {r["name"]: r for r in pale.json("ls", "--json")}
    assert set(rows) == {"b", "other"} and all(set(r) == {"name", "id", "scope", "state", "jobs", "data"} for r in rows.values())
    assert rows["b"]["state"] == "ready" and rows["other"]["state"] == "stopped"


def test_json_of_inspect(pale, box):
    r = pale.info(box)
    assert {"name", "id", "scope", "state", "data", "state_dir", "keeper_pid", "init_pid", "jobs", "ended", "memory_limit_held_by",
            "policy_digest", "policy"} <= set(r)
    assert os.path.exists(f"/proc/{r['keeper_pid']}") and r["policy"]["seccomp"] == "strict"
    pale.ok("stop", box)
    assert pale.info(box)["state"] == "stopped"


def test_json_of_ps_kill_wait(pale, box):
    job = pale.json("exec", "--json", "--detach", box, "--", "sleep", "60")["job"]
    rows = pale.json("ps", "--json", box)
    assert [r["job"] for r in rows] == [job]
    assert {"job", "state", "pid", "command", "detached", "started_unix_ms", "time_ms"} <= set(rows[0])
    assert rows[0]["state"] == "running" and rows[0]["command"] == "sleep 60" and rows[0]["detached"] is True
    assert pale.json("kill", "--json", box, job)["job"] == job
    w = pale.json("wait", "--json", box, job, expect=137)
    assert w["state"] == "ended" and set(w["result"]) == RESULT_FIELDS and w["result"]["exit"] == 137


@pytest.mark.parametrize("args,fields", [(["stop", "--json", "b"], {"stopped"}), (["rm", "--json", "b"], {"removed"}),
                                         (["version", "--json"], {"version", "wire"}),
                                         (["prove", "--json", "b"], None), (["policy", "show", "--json", "b"], None),
                                         (["policy", "ask", "--json", "b", "read", "/usr/bin/ls"], {"allowed", "verdict", "rule", "reason"}),
                                         (["audit", "--verify", "--json", "b"], {"good", "records", "torn", "gaps", "missing", "head", "checkpoint"}),
                                         (["files", "--json", "b", "/"], None)])
def test_json_of_the_rest(pale, box, args, fields):
    r = pale.json(*args)
    assert fields is None or set(r) == fields


def test_json_of_audit_is_one_record_per_line(pale, box):
    pale.exec(box, "true")
    rows = [json.loads(line) for line in pale.ok("audit", "--json", box).out.splitlines()]
    assert [r["event"] for r in rows][:5] == ["box.made", "box.start", "box.receipt", "exec", "exec.end"]


@pytest.mark.parametrize("args", [["exec", "--json", "none", "--", "true"], ["inspect", "--json", "none"], ["ps", "--json", "none"],
                                  ["create", "--json", "Bad_Name"], ["kill", "--json", "b", "x"], ["wait", "--json", "b", "99"],
                                  ["logs", "--json", "b", "99"], ["cat", "--json", "b", "/none"], ["run", "--json", "--memory", "x", "--", "true"],
                                  ["validate", "--json", "/none"], ["policy", "show", "--json", "none"], ["rm", "--json", "none"],
                                  ["freeze", "--json", "none"], ["thaw", "--json", "none"], ["rename", "--json", "none", "x"],
                                  ["snapshot", "--json", "none"], ["diff", "--json", "none"], ["apply", "--json", "none"], ["discard", "--json", "none"], ["snapshots", "--json", "none"], ["restore", "--json", "none", "x"], ["fork", "--json", "none", "x"], ["export", "--json", "none"], ["import", "--json", "/none", "x"],
                                  ["write", "--json", "--mode", "9", "b", "f"], ["cp", "--json", "a", "b"], ["completion", "--json", "tcsh"]])
def test_errors_in_json(pale, box, args):
    done = pale.run(*args)
    r = done.json()
    assert done.code != 0 and (set(r) == {"error"} and set(r["error"]) == {"code", "message"} and r["error"]["message"] or args[0] == "validate"), done


@pytest.mark.parametrize("args", [["ls", "--json", "--bogus"], ["inspect", "--json"], ["ls", "--json", "word"], ["bogus", "--json"]])
def test_usage_errors_in_json(pale, args):
    done = pale.run(*args)
    assert done.code == 125 and set(done.json()["error"]) == {"code", "message"}, done


# --- help and mistakes ---

@pytest.mark.basic
def test_overview_lists_every_verb(pale):
    text = pale.ok("help").text
    assert pale.ok("--help").text == text
    for verb in VERBS:
        assert re.search(rf"^  {verb} +\S", text, re.M), verb


def test_nothing_at_all_is_an_error_with_the_overview(pale):
    done = pale.run()
    assert done.code == 125 and "pale VERB" in done.text + done.errors


def test_overview_names_no_verb_this_test_does_not_know(pale):
    named = set(re.findall(r"^  (\w+) ", pale.ok("help").text, re.M))
    assert named - {"doctor"} == set(VERBS)


@pytest.mark.parametrize("verb", VERBS)
def test_help_of_each_verb(pale, verb):
    text = pale.ok(verb, "--help").text
    assert text == pale.ok("help", verb).text
    assert text.startswith(f"pale {verb}") and "--json" in text and "--help" in text and len(text.splitlines()) >= 5
    assert max(map(len, text.splitlines())) <= 120


@pytest.mark.parametrize("typed,meant", [("exce", "exec"), ("creat", "create"), ("inspct", "inspect"), ("valdate", "validate"), ("logz", "logs")])
def test_did_you_mean_a_verb(pale, typed, meant):
    done = pale.run(typed)
    assert done.code == 125 and f"did you mean {meant}?" in done.errors


@pytest.mark.parametrize("args,meant", [(["run", "--memry", "1G", "--", "true"], "--memory"), (["exec", "--timout", "1s", "b", "--", "x"], "--timeout"),
                                        (["rm", "--keepdata", "x"], "--keep-data"), (["audit", "--verfy", "x"], "--verify")])
def test_did_you_mean_an_option(pale, args, meant):
    done = pale.run(*args)
    assert done.code == 125 and f"did you mean {meant}?" in done.errors


def test_unknown_verb_far_from_any(pale):
    done = pale.run("zzzzzzzzzz")
    assert done.code == 125 and "pale help" in done.errors and "did you mean" not in done.errors


@pytest.mark.parametrize("args,says", [
    (["exec"], "something is missing"), (["exec", "b"], "no command"), (["run"], "something is missing"), (["run", "--"], ""),
    (["exec", "--timeout", "soon", "b", "--", "true"], "--timeout soon"), (["exec", "--timeout", "0", "b", "--", "true"], "--timeout 0"),
    (["exec", "--timeout"], "needs a value"), (["exec", "--tty=yes", "b", "--", "x"], "takes no value"), (["ls", "extra"], "one word too many"),
    (["create", "UPPER"], "UPPER"), (["create", "../x"], "../x"), (["create", "-x"], ""), (["exec", "--env", "NOVALUE", "b", "--", "true"], "NAME=VALUE"),
    (["kill", "b", "notanumber"], "notanumber"), (["kill", "--signal", "NOPE", "b", "1"], "--signal NOPE"),
    (["cp", "a", "c"], "BOX:PATH"), (["cp", "b:/x", "b:/y"], "BOX:PATH"), (["exec", "-t", "b", "--", "true"], "-t needs a terminal"),
    (["exec", "--user", "nobody-here", "b", "--", "true"], "user must be"), (["exec", "--cwd", "relative", "b", "--", "true"], "absolute"),
    (["create", "b"], "already a box b"), (["run", "--memory", "0", "--", "true"], "memory"), (["run", "--memory", "-5", "--", "true"], "memory"),
    (["run", "--read", "/no/such/path", "--", "true"], "/no/such/path"), (["run", "--volume", "nocolon", "--", "true"], "HOST:TARGET"),
    (["run", "--net", "host", "--", "true"], "--yes-host-network"),
    (["run", "--net", "open", "--yes-host-network", "--", "true"], "the network is open"), (["run", "--allow", "x_y", "--", "true"], "--allow"),
    (["run", "--net", "none", "--allow", "x.org", "--", "true"], "network none"),
    (["run", "--allow", "x.org", "--net", "none", "--", "true"], "network none"), (["run", "--deny", "x.org", "--", "true"], "network none"),
    (["run", "--deny", "x.org=allow", "--", "true"], "the flag says deny"), (["run", "--ask", "1.2.3.4", "--", "true"], "address"),
    (["run", "--preset", "dve", "--", "true"], 'did you mean "dev"'), (["run", "--preset", "../x", "--", "true"], "no name of a preset"),
    (["run", "-p", "80:x", "--", "true"], "HOSTPORT"), (["run", "-p", "0.0.0.0:80:80", "--", "true"], "loopback"), (["presets", "nonesuch"], "no preset"), (["run", "--tier", "microvm", "--", "true"], "tier"),
    (["run", "--seccomp", "none", "--", "true"], "seccomp"), (["run", "--image", "debian:12", "--", "true"], "image"),
    (["policy", "bogus"], "pale policy"), (["policy", "ask", "b", "eat", "/etc"], "eat"), (["completion", "tcsh"], "bash"),
])
def test_usage_errors_name_the_thing(pale, box, args, says):
    done = pale.run(*args)
    assert done.code == 125, done
    assert done.out == b"" and done.errors.startswith("pale: ") and says in done.errors, done
    assert len(done.errors.splitlines()) == 1


def test_nothing_is_half_made_by_a_refused_create(pale):
    assert pale.run("create", "x", "--network", "host").code == 125
    assert pale.run("create", "x", "--tier", "microvm").code == 125
    assert pale.json("ls", "--json") == [] and pale.boxes() == []


# --- colour ---

def test_no_colour_into_a_pipe(pale, box):
    for args in (["ls"], ["help"], ["prove", box], ["zzz"]):
        done = pale.run(*args)
        assert b"\033" not in done.out + done.err


def test_colour_on_a_terminal_unless_no_color(terminal):
    t = terminal("help")
    t.wait()
    assert b"\033[1m" in t.seen
    t = terminal("help", env={"NO_COLOR": "1"})
    t.wait()
    assert b"\033" not in t.seen and b"pale" in t.seen
    t = terminal("help", env={"TERM": "dumb"})
    t.wait()
    assert b"\033" not in t.seen


# --- environment and place of a command ---

def test_environment_of_a_command(pale, box):
    done = pale.exec(box, "env", flags=["--env", "A=1", "--env", "EMPTY="], env={"HOST_ONLY": "secret"})
    got = dict(line.split("=", 1) for line in done.text.splitlines())
    assert got["A"] == "1" and got["EMPTY"] == "" and "HOST_ONLY" not in got
    assert got["HOME"] == "/home/agent" and got["USER"] == "agent" and got["PALE_BOX"] == "1"


def test_env_flag_of_a_box_sets_and_passes(pale):
    box = pale.create("b", "--env", "SET=here", "--env", "PASSED", env={"PASSED": "from host"})
    got = pale.exec(box, "env", env={"PASSED": "from host"}).text
    assert "SET=here\n" in got and "PASSED=from host\n" in got


def test_working_folder(pale, box):
    assert pale.exec(box, "pwd").text == "/home/agent\n"
    assert pale.exec(box, "pwd", flags=["--cwd", "/tmp"]).text == "/tmp\n"


def test_user_of_a_command(pale, box):
    assert pale.exec(box, "whoami").text == "agent\n"
    done = pale.exec(box, "id", "-u", flags=["--user", "root"])
    assert done.text == "0\n" or (done.code == 125 and "/etc/subuid" in done.errors), done


def test_files_stay_between_commands_and_a_restart(pale, box):
    pale.sh(box, "echo kept > f; echo tmp > /tmp/t")
    pale.ok("stop", box)
    assert pale.sh(box, "cat f /tmp/t").text == "kept\ntmp\n"


def test_one_shot_leaves_no_box(pale):
    pale.ok("run", "--", "sh", "-c", "echo x > ~/f")
    assert pale.json("ls", "--json") == [] and pale.boxes() == []


@pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed")
def test_two_first_commands_agree_on_the_folder_of_sockets(pale):
    """Both find no folder and make it. The one that lost went elsewhere, and nobody found its box again."""
    folder = pale.root / "run" / "pale"
    shutil.rmtree(folder, ignore_errors=True)
    late = subprocess.Popen(["strace", "-o", "/dev/null", "-P", os.path.realpath(folder), "-P", folder, "-e", "trace=mkdir",
                             "-e", "inject=mkdir:delay_enter=700000", pale.program, "create", "late"], env=pale.env, cwd=pale.home)
    pale.names.add("late")
    time.sleep(0.3)
    pale.create("early")
    assert late.poll() is None and folder.is_dir()
    assert late.wait(30) == 0
    try:
        assert {b["name"]: b["state"] for b in pale.json("ls", "--json")} == {"early": "ready", "late": "ready"}
    finally:
        pale.run("rm", "early", "late")


def test_run_with_a_name_keeps_the_box(pale):
    pale.ok("run", "--name", "kept", "--", "sh", "-c", "echo x > f")
    assert pale.ok("cat", "kept", "f").text == "x\n"
    pale.ok("run", "--name", "gone", "--rm", "--", "true")
    assert pale.boxes() == ["kept"]


def test_project_box_shadows_the_users(pale, root):
    project = root / "project"
    (project / "deep" / "er").mkdir(parents=True)
    pale.ok("create", "b")
    pale.ok("create", "--in-project", "b", cwd=project)
    done = pale.run("exec", "b", "--", "true", cwd=project / "deep" / "er")
    assert done.code == 0 and "hides your own" in done.errors
    assert "hides" not in pale.run("exec", "--global", "b", "--", "true", cwd=project).errors
    assert {r["scope"] for r in pale.json("ls", "--json", cwd=project)} == {"project", "user"}
    pale.ok("rm", "b", cwd=project)
    assert pale.boxes() == ["b"] and not (project / ".pale" / "b").exists()


# --- policy verbs ---

def test_validate(pale, root):
    good = root / "p.yaml"
    good.write_text("limits:\n  memory: 64M\n")
    assert pale.ok("validate", good).text.startswith("VALID")
    bad = root / "q.yaml"
    bad.write_text("limits:\n  memroy: 64M\n")
    done = pale.run("validate", bad)
    assert done.code == 1 and re.search(r"q\.yaml:2:3.*memroy.*memory", done.text + done.errors, re.S), done
    r = pale.run("validate", "--json", bad)
    assert r.code == 1 and "memroy" in json.dumps(r.json())


def test_policy_show_and_diff(pale, root):
    a, b = root / "a.yaml", root / "b.yaml"
    a.write_text("limits:\n  memory: 64M\n")
    b.write_text("limits:\n  memory: 128M\nread: [/srv]\n")
    assert "64MiB" in pale.ok("policy", "show", a).text
    text = pale.ok("policy", "diff", a, b).text
    assert "limits.memory" in text and "read" in text
    assert pale.ok("policy", "diff", a, a).text == ""
    assert isinstance(pale.json("policy", "diff", "--json", a, b), list)


@pytest.mark.parametrize("verb,what,allowed", [("write", "/etc/hosts", False), ("read", "/usr/bin/ls", True),
                                               ("read", "/home/somebody/.ssh/id", False), ("reach", "api.x.com:443", False), ("env", "AWS_SECRET_KEY", False)])
def test_policy_ask(pale, box, verb, what, allowed):
    done = pale.run("policy", "ask", box, verb, what)
    assert done.code == (0 if allowed else 1) and done.text.startswith("yes" if allowed else "no") and "rule: " in done.text
    assert pale.run("policy", "ask", "--json", box, verb, what).json()["allowed"] is allowed


def test_policy_file_makes_the_box(pale, root):
    f = root / "p.json"
    f.write_text(json.dumps({"env": {"set": {"FROM": "file"}}, "limits": {"output": "1K"}}))
    box = pale.create("b", "--policy", f)
    assert pale.exec(box, "printenv", "FROM").text == "file\n"
    assert len(pale.exec(box, "head", "-c", "5000", "/dev/zero").out) == 1024


# --- completion ---

@pytest.mark.parametrize("shell,check", [("bash", ["bash", "-n"]), ("zsh", ["zsh", "-n"]), ("fish", ["fish", "-n"])])
def test_completion_loads(pale, root, shell, check):
    script = root / "c"
    script.write_bytes(pale.ok("completion", shell).out)
    assert all(v in script.read_text() for v in VERBS)
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")
    done = subprocess.run([*check, str(script)], capture_output=True, timeout=20)
    assert done.returncode == 0, done


def test_completion_of_bash_offers_verbs_options_and_boxes(pale, root, box):
    script = root / "c"
    script.write_bytes(pale.ok("completion", "bash").out)
    program = f"""PATH={pale.build}:$PATH; . {script}
ask() {{ COMP_WORDS=("$@"); COMP_CWORD=$(($#-1)); COMPREPLY=(); _pale; echo "${{COMPREPLY[*]}}"; }}
ask pale exe; ask pale run --mem; ask pale exec ''"""
    done = subprocess.run(["bash", "-c", program], capture_output=True, text=True, timeout=20, env=pale.env, cwd=root / "home")
    assert done.stdout.split("\n")[:2] == ["exec", "--memory"] and "b" in done.stdout.split("\n")[2].split(), done


def test_version(pale):
    assert re.fullmatch(r"pale \d+\.\d+\.\d+\n", pale.ok("version").text) and pale.ok("--version").text == pale.ok("version").text
