# SPDX-License-Identifier: Apache-2.0
"""What paled does over its socket: boxes, commands, policies, records, events, metrics, tokens."""
import hashlib
import json
import os
import re
import struct
import subprocess
import time

import pytest

import wire
from harness import wait_until
from rest import Wire, check_problem, data_of, output_of, query, request_bytes

pytestmark = pytest.mark.once


def later(condition, seconds=10):
    value = wait_until(condition, seconds)
    assert value, "it did not come to pass"
    return value


def names(api):
    return sorted(b["name"] for b in api.good("GET", "/v1/boxes")["items"])


def state(api, box):
    return api.good("GET", f"/v1/boxes/{box}")["state"]


# --- boxes ---


@pytest.mark.basic
def test_a_box_from_its_making_to_its_end(api, pale):
    b = api.make("b")
    assert b["state"] == "ready" and b["scope"] == "user" and re.fullmatch("[0-9a-f]{32}", b["id"]) and b["jobs"] == 0
    assert api.out("b", ["echo", "hello"]) == "hello\n"
    assert names(api) == ["b"] == pale.boxes()
    stopped = api.good("POST", "/v1/boxes/b/stop")
    assert stopped["state"] == "stopped" and "started" not in stopped
    started = api.good("POST", "/v1/boxes/b/start")
    assert started["state"] == "ready" and "started" in started
    assert api.delete("/v1/boxes/b").status == 204
    api.bad("GET", "/v1/boxes/b", status=404, code="not-found")
    assert names(api) == [] == pale.boxes()


def test_a_box_is_reached_by_its_name_and_by_its_id(api):
    b = api.make("b")
    assert api.good("GET", f"/v1/boxes/{b['id']}") == api.good("GET", "/v1/boxes/b")


def test_the_command_and_the_daemon_see_the_same_boxes(api, pale):
    pale.create("by-hand")
    later(lambda: names(api) == ["by-hand"])
    later(lambda: state(api, "by-hand") == "ready")
    assert api.out("by-hand", "echo daemon") == "daemon\n"
    api.make("by-daemon")
    assert pale.exec("by-daemon", "echo", "hand").text == "hand\n"
    pale.ok("stop", "by-hand")
    later(lambda: state(api, "by-hand") == "stopped")
    pale.ok("rm", "by-hand")
    later(lambda: names(api) == ["by-daemon"])


def test_a_box_that_is_not_started_starts_with_its_first_command(api):
    assert api.make("b", start=False)["state"] == "stopped"
    assert api.out("b", "echo up") == "up\n"
    assert state(api, "b") == "ready"


def test_names_are_made_up_and_unlike(api):
    made = [api.make(start=False)["name"] for _ in range(5)]
    assert len(set(made)) == 5 and all(re.fullmatch("box-[0-9a-f]{12}", n) for n in made)


def test_a_name_is_taken_once(api):
    api.make("b", start=False)
    api.bad("POST", "/v1/boxes", {"name": "b", "start": False}, 409, "exists")


@pytest.mark.parametrize("name", ["", "A", "-a", "a/b", "..", "a" * 64, "a b", "ä"])
def test_a_name_that_is_none(api, name):
    api.bad("POST", "/v1/boxes", {"name": name}, 400, "bad-input")
    assert names(api) == []


def test_the_same_key_and_request_make_one_box(api):
    ask = {"set": {"limits.memory": "256M"}, "start": False}
    first, again = [api.good("POST", "/v1/boxes", ask, 201, headers={"Idempotency-Key": "k1"}) for _ in range(2)]
    assert first["id"] == again["id"] and names(api) == [first["name"]]


def test_the_same_key_with_another_request_is_refused(api):
    api.good("POST", "/v1/boxes", {"name": "b", "start": False}, headers={"Idempotency-Key": "k1"})
    for other in ({"name": "c", "start": False}, {"name": "b", "start": False, "idle": "1h"}, {"name": "b", "start": False, "ttl": "1h"},
                  {"name": "b", "start": False, "set": {"limits.memory": "64M"}}):
        api.bad("POST", "/v1/boxes", other, 400, "bad-input", headers={"Idempotency-Key": "k1"})
    assert names(api) == ["b"]


def test_the_key_of_a_box_that_is_gone_makes_no_other(api):
    ask = {"name": "b", "start": False}
    api.good("POST", "/v1/boxes", ask, headers={"Idempotency-Key": "k1"})
    api.delete("/v1/boxes/b")
    api.bad("POST", "/v1/boxes", ask, 410, "gone", headers={"Idempotency-Key": "k1"})
    assert names(api) == []


def test_ensure_makes_a_box_once(api):
    first, again = [api.good("PUT", "/v1/boxes/b", {"set": {"limits.memory": "256M"}, "start": False}, 200) for _ in range(2)]
    assert first["id"] == again["id"] and names(api) == ["b"]
    api.bad("PUT", "/v1/boxes/b", {"set": {"limits.memory": "64M"}, "start": False}, 409, "exists")
    assert api.good("POST", "/v1/boxes", {"name": "b", "set": {"limits.memory": "256M"}, "start": False, "ensure": True})["id"] == first["id"]


def test_a_box_that_cannot_be_made_leaves_nothing(api, pale):
    p = api.bad("POST", "/v1/boxes", {"name": "b", "set": {"limits.memory": "much"}}, 400, "bad-input")
    assert "limits.memory" in p["detail"]
    api.bad("POST", "/v1/boxes", {"name": "b", "policy": {"limits": {"memry": "1G"}}}, 400, "bad-input")
    assert names(api) == [] == pale.boxes()
    api.make("b", policy={"limits": {"memory": "512M"}}, start=False)


def test_ttl_really_removes(api, pale):
    b = api.make("b", ttl=1)
    assert "expires" in b
    later(lambda: names(api) == [])
    assert pale.boxes() == []


@pytest.mark.basic
@pytest.mark.parametrize("how", ["ttl", "delete", "stop", "quarantine"])
def test_a_box_whose_folder_is_away_still_ends_when_told(api, pale, how):
    b = api.make("b", **({"ttl": 2} if how == "ttl" else {}))
    keeper = pale.json("inspect", "--json", "b")["keeper_pid"]
    boxes = pale.root / "data" / "pale" / "boxes"
    (boxes / "b").rename(pale.root / "away")
    if how == "delete":
        assert api.delete(f"/v1/boxes/{b['id']}").status == 204
    elif how == "stop":
        assert api.good("POST", f"/v1/boxes/{b['id']}/stop")["state"] == "stopped"
    elif how == "quarantine":
        assert api.good("PUT", f"/v1/boxes/{b['id']}/quarantine")["cut"] == "quarantine"
        pale.ok("stop", b["id"])
    later(lambda: not os.path.exists(f"/proc/{keeper}"))
    later(lambda: how in ("stop", "quarantine") or pale.json("ls", "--json") == [])
    assert (pale.root / "away" / "id").is_symlink()  # what is elsewhere is nobody's to remove
    if how in ("stop", "quarantine"):
        (pale.root / "away").rename(boxes / "b")
        pale.ok("rm", "-f", "b")


@pytest.mark.basic
@pytest.mark.parametrize("when", ["beside", "between"])
def test_a_box_that_the_command_renames_keeps_its_terms(daemon, api, pale, when):
    body = {"name": "a", "ttl": 3600}
    b = api.good("POST", "/v1/boxes", body, headers={"Idempotency-Key": "k"}, status=201)
    pale.ok("stop", "a")
    if when == "between":
        pale.ok("serve", "--stop")
    pale.ok("rename", "a", "z")
    pale.create("a")  # another box has its name at once
    if when == "between":
        pale.ok("serve")
    later(lambda: names(api) == ["a", "z"])
    assert api.good("GET", "/v1/boxes/z")["expires"] == b["expires"] and "expires" not in api.good("GET", "/v1/boxes/a")
    again = api.good("POST", "/v1/boxes", body, headers={"Idempotency-Key": "k"}, status=201)
    assert again["id"] == b["id"] and again["name"] == "z"
    for box in ("a", "z"):
        assert api.delete(f"/v1/boxes/{box}").status == 204


def test_terms_can_be_changed_and_taken_back(api):
    b = api.make("b", ttl="1h", idle="2h", start=False)
    assert b["idle_seconds"] == 7200
    b = api.good("PATCH", "/v1/boxes/b", {"ttl": 0})
    assert "expires" not in b and b["idle_seconds"] == 7200
    b = api.good("PATCH", "/v1/boxes/b", {"idle": "0", "ttl": "500ms"})
    assert "idle_seconds" not in b and "expires" in b
    later(lambda: names(api) == [])


def test_idle_really_stops_but_not_while_a_command_runs(api):
    api.make("b", idle="600ms")
    job = api.start("b", "sleep 2; echo done")
    later(lambda: state(api, "b") == "running")
    time.sleep(1.2)
    assert state(api, "b") == "running"
    assert api.wait("b", job)["result"]["exit"] == 0
    later(lambda: state(api, "b") == "stopped")
    assert api.out("b", "echo again") == "again\n"


def test_terms_outlive_the_daemon(daemon, api):
    api.make("b", ttl="3s", start=False)
    daemon.stop()
    daemon.serve()
    assert names(api) == ["b"]
    later(lambda: names(api) == [])


def test_stop_ends_commands_and_keeps_files(api):
    api.make("b")
    api.write("b", "/home/agent/kept", b"kept")
    api.start("b", "sleep 1000")
    api.good("POST", "/v1/boxes/b/stop")
    assert api.good("GET", "/v1/boxes/b/jobs")["items"] == []
    assert api.read("b", "/home/agent/kept") == b"kept"


def test_a_box_gets_another_name(api):
    api.make("b")
    api.write("b", "/home/agent/kept", b"kept")
    api.bad("POST", "/v1/boxes/b/rename", {"name": "c"}, 409, "conflict")
    api.good("POST", "/v1/boxes/b/stop")
    api.make("taken", start=False)
    api.bad("POST", "/v1/boxes/b/rename", {"name": "taken"}, 409, "exists")
    api.bad("POST", "/v1/boxes/b/rename", {"name": "../x"}, 400, "bad-input")
    api.bad("POST", "/v1/boxes/nobody/rename", {"name": "c"}, 404, "not-found")
    renamed = api.good("POST", "/v1/boxes/b/rename", {"name": "c"})
    assert renamed["name"] == "c" and names(api) == ["c", "taken"]
    assert api.read("c", "/home/agent/kept") == b"kept"


def test_a_box_is_frozen_and_goes_on(api):
    api.make("b")
    a = api.post("/v1/boxes/b/freeze")
    if a.status == 501:
        pytest.skip("nothing on this host can freeze a box")
    assert a.json()["state"] == "frozen" == state(api, "b")
    assert api.good("POST", "/v1/boxes/b/thaw")["state"] in ("ready", "running")
    assert api.out("b", "echo on") == "on\n"


def test_many_boxes_at_once_from_many_clients(api):
    procs = []
    for i in range(8):
        code = f"import sys; sys.path.insert(0, {os.path.dirname(os.path.dirname(__file__))!r}); import rest;" \
               f"a = rest.Rest({api.where!r}); a.make('b{i}'); print(a.out('b{i}', 'echo {i}'), end='')"
        procs.append(subprocess.Popen(["python3", "-c", code], stdout=subprocess.PIPE))
    assert [p.communicate(timeout=60)[0] for p in procs] == [f"{i}\n".encode() for i in range(8)]
    assert names(api) == [f"b{i}" for i in range(8)]


# --- commands, answered as a whole ---


@pytest.fixture
def b(api):
    api.make("b")
    return "b"


@pytest.mark.basic
def test_exec_answers_with_both_streams_and_the_status(api, b):
    done = api.exec(b, "echo out; echo err >&2; exit 5")
    assert (done["exit"], data_of(done["stdout"]), data_of(done["stderr"])) == (5, b"out\n", b"err\n")
    assert done["output_bytes"] == 8 and not done["timed_out"] and done["signal"] == 0


def test_exec_of_words_is_not_read_by_a_shell(api, b):
    assert api.out(b, ["printf", "%s.", "a b", "$HOME", "*", ""]) == "a b.$HOME.*.."


def test_exec_input_as_text_and_as_bytes(api, b):
    assert api.out(b, "cat", stdin="grüße\n") == "grüße\n"
    done = api.exec(b, "sha256sum", stdin_base64="/wD+/Q==")
    assert data_of(done["stdout"]).split()[0].decode() == hashlib.sha256(b"\xff\x00\xfe\xfd").hexdigest()
    assert api.out(b, "cat; echo end", stdin="") == "end\n"
    api.bad("POST", "/v1/boxes/b/exec", {"command": "cat", "stdin": "a", "stdin_base64": "YQ=="}, 400)
    api.bad("POST", "/v1/boxes/b/exec", {"command": "cat", "stdin_base64": "no base64!"}, 400)


def test_exec_of_a_large_input(api, b):
    text = "0123456789abcdef" * 50000
    assert api.out(b, "sha256sum", stdin=text).split()[0] == hashlib.sha256(text.encode()).hexdigest()


def test_exec_output_that_is_no_text(api, b):
    done = api.exec(b, ["python3", "-c", "import os; os.write(1, bytes(range(256))); os.write(2, b'\\xff')"])
    assert "base64" in done["stdout"] and data_of(done["stdout"]) == bytes(range(256)) and data_of(done["stderr"]) == b"\xff"


def test_exec_cwd_env_user(api, b):
    assert api.out(b, "pwd; echo $COLOR-$EMPTY-; id -un", cwd="/usr/lib", env={"COLOR": "blue sky", "EMPTY": ""}) == "/usr/lib\nblue sky--\nagent\n"
    assert api.out(b, "id -u", user="root") == "0\n"
    api.bad("POST", "/v1/boxes/b/exec", {"command": "id", "user": "no-such-user"}, 400, "bad-input")
    done = api.exec(b, "true", cwd="/no/such/folder")
    assert not done["started"] and done["exit"] != 0


def test_exec_that_cannot_start(api, b):
    done = api.exec(b, ["/no/such/program"])
    assert done["exit"] == 127 and not done["started"]


def test_exec_timeout_ends_the_command_with_all_it_started(api, b):
    done = api.exec(b, "sleep 1000 & setsid sleep 1000 & wait", timeout="400ms")
    assert done["timed_out"] and done["exit"] == 124
    assert api.exec(b, "pgrep sleep")["exit"] == 1


def test_exec_of_more_output_than_an_answer_holds(api, b):
    done = api.exec(b, "head -c 3000000 /dev/zero | tr '\\0' x")
    assert len(data_of(done["stdout"])) == 1 << 20 and done["cut_bytes"] == 3000000 - (1 << 20)
    assert output_of(api.logs(b, done["job"])) == b"x" * 3000000


def test_exec_key_gives_the_same_command_and_its_output(api, b):
    first = api.exec(b, "echo $$; date +%N", key="k")
    again = api.exec(b, "echo $$; date +%N", key="k")
    assert first["job"] == again["job"] and first["stdout"] == again["stdout"]
    assert api.exec(b, "echo $$; date +%N", key="other")["job"] != first["job"]


def test_exec_key_with_another_request_is_refused(api, b):
    api.exec(b, "echo one", key="k")
    a = api.post("/v1/boxes/b/exec", {"command": "echo two"}, headers={"Idempotency-Key": "k"})
    assert a.status in (400, 409)
    check_problem(a)


def test_exec_key_with_another_input_is_refused(api, b):
    first = api.exec(b, "cat", key="k", stdin="one")
    api.bad("POST", "/v1/boxes/b/exec", {"command": "cat", "stdin": "two"}, 409, "exists", headers={"Idempotency-Key": "k"})
    api.bad("POST", "/v1/boxes/b/jobs", {"command": "cat", "stdin": "on"}, 409, "exists", headers={"Idempotency-Key": "k"})
    api.bad("POST", "/v1/boxes/b/exec", {"command": "cat", "stdin": ""}, 409, "exists", headers={"Idempotency-Key": "k"})
    again = api.exec(b, "cat", key="k", stdin_base64="b25l")
    assert again["job"] == first["job"] and data_of(again["stdout"]) == b"one"
    given = api.start(b, "cat", key="by number", input=True)
    assert api.start(b, "cat", key="by number", input=True) == given
    api.good("POST", f"/v1/boxes/b/jobs/{given}/signal", {})


def test_exec_key_of_a_running_command_joins_it(api, b):
    s = api.stream("POST", "/v1/boxes/b/exec", {"command": "sleep 0.5; echo late", "stdin": ""}, headers={"Idempotency-Key": "k"})
    job = s.until("started")[0]["job"]
    s.close()
    done = api.exec(b, "sleep 0.5; echo late", key="k", stdin="")
    assert done["job"] == job and data_of(done["stdout"]) == b"late\n"


# --- commands, streamed ---


@pytest.mark.parametrize("accept", ["application/x-ndjson", "text/event-stream"])
def test_exec_streams_as_it_comes(api, b, accept):
    s = api.stream("POST", "/v1/boxes/b/exec", {"command": "echo one; read x; echo $x; echo err >&2; exit 3", "input": True}, accept)
    assert s.header("content-type") == accept
    head = s.until("stdout")
    assert head[0]["event"] == "started" and data_of(head[-1]) == b"one\n"
    api.good("POST", query(f"/v1/boxes/b/jobs/{head[0]['job']}/input", end=True), body=b"two\n")
    rest = s.until("exit")
    assert output_of(rest, "stdout") == b"two\n" and output_of(rest, "stderr") == b"err\n"
    assert rest[-1]["exit"] == 3 and rest[-1]["job"] == head[0]["job"]
    s.close()


def test_a_stream_is_whole_for_a_client_that_reads_slowly(api, b):
    s = api.stream("POST", "/v1/boxes/b/exec", {"command": "seq 1 1000000"})
    time.sleep(1)
    events = s.until("exit")
    assert output_of(events) == b"".join(b"%d\n" % i for i in range(1, 1000001))
    assert not [e for e in events if e["event"] == "missed"]


def test_a_client_that_leaves_ends_its_command_with_all_descendants(api, b):
    s = api.stream("POST", "/v1/boxes/b/exec", {"command": "sleep 1000 & setsid sleep 1000 & (setsid sleep 1000 &) ; echo up; wait"})
    s.until("stdout")
    later(lambda: api.exec(b, "pgrep -c sleep")["stdout"]["data"] == "3\n")
    s.close()
    later(lambda: api.exec(b, "pgrep sleep")["exit"] == 1)


def test_a_client_that_leaves_at_once_ends_its_command(api, b):
    for _ in range(5):
        api.send_only("POST", "/v1/boxes/b/exec", {"command": "sleep 1000"}).close()
    later(lambda: api.exec(b, "pgrep sleep")["exit"] == 1 and state(api, b) == "ready")


def test_a_client_with_a_key_may_leave(api, b):
    s = api.stream("POST", "/v1/boxes/b/exec", {"command": "echo up; sleep 1; echo done > /tmp/done"}, headers={"Idempotency-Key": "k"})
    s.until("stdout")
    s.close()
    later(lambda: api.exec(b, "cat /tmp/done")["exit"] == 0)


# --- commands that go on ---


@pytest.mark.basic
def test_a_job_is_started_listed_and_waited_for(api, b):
    job = api.start(b, "echo out; echo err >&2; sleep 0.5; exit 4")
    assert [j["id"] for j in api.good("GET", "/v1/boxes/b/jobs")["items"]] == [job]
    running = api.good("GET", f"/v1/boxes/b/jobs/{job}")
    assert running["state"] == "running" and running["lasts"] and not running["tty"]
    done = api.wait(b, job)
    assert done["state"] == "ended" and done["result"]["exit"] == 4
    assert output_of(api.logs(b, job), "stdout") == b"out\n" and output_of(api.logs(b, job), "stderr") == b"err\n"


def test_wait_with_a_time_answers_in_time(api, b):
    job = api.start(b, "sleep 1000")
    for timeout in ("300ms", "0", "0.2"):
        assert api.wait(b, job, timeout=timeout)["state"] == "running"
    assert api.good("POST", f"/v1/boxes/b/jobs/{job}/signal")["id"] == job
    assert api.wait(b, job, timeout="10s")["state"] == "ended"


def test_logs_by_offset(api, b):
    job = api.start(b, "printf 0123456789; printf abcdef >&2")
    api.wait(b, job)
    whole = api.logs(b, job)
    assert [e["event"] for e in whole][-1] == "job" and whole[-1]["job"]["id"] == job
    assert output_of(whole) == b"0123456789abcdef"
    for offset in (0, 1, 7, 10, 13, 15, 16):
        events = [e for e in api.logs(b, job, offset=offset) if e["event"] != "job"]
        assert output_of(events) == b"0123456789abcdef"[offset:], events
        assert not events or events[0]["offset"] == offset
    assert output_of(api.logs(b, job, offset=99999)) == b""


def test_logs_follow_until_the_end(api, b):
    job = api.start(b, "for i in 1 2 3; do echo $i; sleep 0.1; done")
    s = api.stream("GET", query(f"/v1/boxes/b/jobs/{job}/logs", follow=True))
    events = list(s.lines())
    assert output_of(events) == b"1\n2\n3\n"
    s.close()


def test_logs_are_byte_for_byte(api, b):
    job = api.start(b, ["python3", "-c", "import os; os.write(1, bytes(range(256)) * 999)"])
    api.wait(b, job)
    assert output_of(api.logs(b, job)) == bytes(range(256)) * 999


def test_input_in_several_requests(api, b):
    job = api.start(b, "sha256sum", input=True)
    path = f"/v1/boxes/b/jobs/{job}/input"
    parts = [b"first\n", b"\x00\xff" * 60000, b"", b"last"]
    for i, part in enumerate(parts):
        told = api.good("POST", path + ("?end=true" if i == 3 else ""), body=part)
        assert told["input_bytes"] == sum(map(len, parts[:i + 1]))
    assert api.wait(b, job)["result"]["exit"] == 0
    assert output_of(api.logs(b, job)).split()[0].decode() == hashlib.sha256(b"".join(parts)).hexdigest()


def test_input_of_a_command_that_takes_none(api, b):
    job = api.start(b, "sleep 1000")
    check_problem(api.post(f"/v1/boxes/b/jobs/{job}/input", body=b"x"))
    ended = api.start(b, "true", input=True)
    api.wait(b, ended)
    a = api.post(f"/v1/boxes/b/jobs/{ended}/input", body=b"x")
    assert a.status < 500, a


def test_a_signal_is_not_lost_on_a_command_that_has_hardly_begun(api, b):
    for _ in range(40):
        job = api.start(b, "sleep 60")
        api.good("POST", f"/v1/boxes/b/jobs/{job}/signal", {"signal": 9})
        done = api.wait(b, job, timeout="5s")
        assert done["state"] == "ended" and done["result"]["signal"] == 9, done


def test_a_signal_is_only_that_signal(api, b):
    job = api.start(b, "trap 'echo got; exit 9' USR1; echo ready; while :; do sleep 0.05; done")
    later(lambda: output_of(api.logs(b, job)) == b"ready\n")
    api.good("POST", f"/v1/boxes/b/jobs/{job}/signal", {"signal": 10})
    assert api.wait(b, job, timeout="10s")["result"]["exit"] == 9


def test_ending_a_job_ends_its_whole_tree(api, b):
    job = api.start(b, "sleep 1000 & setsid sleep 1000 & wait")
    later(lambda: api.exec(b, "pgrep -c sleep")["stdout"]["data"] == "2\n")
    api.good("POST", f"/v1/boxes/b/jobs/{job}/signal")
    assert api.wait(b, job, timeout="10s")["result"]["killed"]
    assert api.exec(b, "pgrep sleep")["exit"] == 1


@pytest.mark.parametrize("what", ["", "/wait", "/logs"])
def test_a_job_that_is_not_there(api, b, what):
    for number in ("4711", "0", "x", "-1", "99999999999999999999"):
        api.bad("GET", f"/v1/boxes/b/jobs/{number}{what}", status=404, code="not-found")


def test_a_started_job_gets_its_input_and_key(api, b):
    job = api.start(b, "cat", key="k", stdin="given")
    assert api.start(b, "cat", key="k", stdin="given") == job
    assert api.wait(b, job)["key"] == "k"
    assert output_of(api.logs(b, job)) == b"given"


# --- policies ---


def test_policy_is_shown_narrowed_and_changed(api):
    api.make("b", set={"limits.memory": "512M"}, start=False)
    first = api.good("GET", "/v1/boxes/b/policy")
    assert re.fullmatch("[0-9a-f]{64}", first["digest"]) and first["policy"]["limits"]["memory"]["value"] == 512 << 20
    narrow = api.good("POST", "/v1/boxes/b/policy/narrow", {"set": {"limits.memory": "256M"}})
    assert narrow["digest"] != first["digest"] and narrow["policy"]["limits"]["memory"]["value"] == 256 << 20
    p = api.bad("POST", "/v1/boxes/b/policy/narrow", {"set": {"limits.memory": "1G"}})
    assert p["code"] in ("denied", "bad-input") and "memory" in p["detail"]
    assert api.good("GET", "/v1/boxes/b/policy") == narrow
    wide = api.good("PUT", "/v1/boxes/b/policy", {"set": {"limits.memory": "1G"}})
    assert wide["policy"]["limits"]["memory"]["value"] == 1 << 30
    whole = api.good("PUT", "/v1/boxes/b/policy", {"policy": {"limits": {"processes": 50}}})
    assert whole["policy"]["limits"]["processes"]["value"] == 50 and whole["policy"]["limits"]["memory"]["value"] != 1 << 30
    api.bad("PUT", "/v1/boxes/b/policy", {}, 400, "bad-input")


def test_policy_of_a_running_box_does_not_change(api, b):
    before = api.good("GET", "/v1/boxes/b/policy")
    api.bad("PUT", "/v1/boxes/b/policy", {"set": {"limits.memory": "1G"}}, 409, "conflict")
    api.bad("POST", "/v1/boxes/b/policy/narrow", {"set": {"limits.memory": "64M"}}, 409, "conflict")
    assert api.good("GET", "/v1/boxes/b/policy") == before


def test_a_tenant_cannot_widen(api):
    t = api.by(api.token_for(scope="tenant", tenant="t1")["token"])
    t.make("b", set={"limits.memory": "128M"}, start=False)
    t.bad("PUT", "/v1/boxes/b/policy", {"set": {"limits.memory": "256M"}}, 403, "denied")
    check_problem(t.post("/v1/boxes/b/policy/narrow", {"set": {"limits.memory": "256M"}}))
    assert t.good("POST", "/v1/boxes/b/policy/narrow", {"set": {"limits.memory": "64M"}})["policy"]["limits"]["memory"]["value"] == 64 << 20
    for wide in ({"limits": {"memory": "500G"}}, {"read": ["/srv"]}, {"volumes": ["/srv:/mnt:rw"]}, {"env": {"pass": ["HOME"]}}, {"seccomp": "debug"}):
        p = t.bad("POST", "/v1/boxes", {"policy": wide, "start": False}, 403, "denied")
        assert "tenant" in p["detail"], p
    assert names(t) == ["b"]


def test_a_change_of_policy_is_in_the_audit(api, pale):
    api.make("b")
    api.good("POST", "/v1/boxes/b/stop")
    api.good("POST", "/v1/boxes/b/policy/narrow", {"set": {"limits.processes": "40"}})
    changes = [line for line in api.get("/v1/boxes/b/audit").lines() if line["event"] == "policy.narrow"]
    assert len(changes) == 1 and "processes" in json.dumps(changes[0]["changes"])
    assert api.out("b", "echo still") == "still\n"
    assert pale.run("audit", "--verify", "b").code == 0


# --- records ---


def whole_audit(api, box):
    at, found = 0, b""
    while True:
        a = api.get(query(f"/v1/boxes/{box}/audit", offset=at))
        assert a.status == 200 and a.header("content-type") == "application/x-ndjson", a
        assert int(a.header("x-next-offset")) == at + len(a.body)
        if not a.body:
            return found
        at, found = at + len(a.body), found + a.body


def test_audit_is_a_chain_that_verifies(api, pale, b):
    for i in range(3):
        api.out(b, f"echo {i}")
    text = whole_audit(api, b)
    records = [json.loads(line) for line in text.splitlines()]
    assert [r["seq"] for r in records] == list(range(len(records))) or [r["seq"] for r in records] == list(range(1, len(records) + 1))
    assert sum("echo 1" in json.dumps(r) for r in records) >= 1
    assert text == (pale.root / "state/pale/boxes" / api.good("GET", "/v1/boxes/b")["id"] / "audit").read_bytes()
    assert pale.run("audit", "--verify", "b").code == 0
    middle = text.index(b"\n", len(text) // 2) + 1
    assert api.get(query("/v1/boxes/b/audit", offset=middle)).body == text[middle:]
    api.bad("GET", query("/v1/boxes/b/audit", offset=len(text) + 10 ** 6), status=400)


def test_receipt_and_prove(api, b):
    receipt = api.good("GET", "/v1/boxes/b/receipt")
    proved = api.good("POST", "/v1/boxes/b/prove", {"full": False})
    full = api.good("POST", "/v1/boxes/b/prove")
    assert receipt["good"] and receipt["box"] == "b" and receipt["attempts"]
    assert proved["good"] and full["good"] and full["probe"] == "full" and proved["probe"] != "full"
    assert len(full["attempts"]) > len(proved["attempts"]) > 0
    api.make("cold", start=False)
    api.bad("GET", "/v1/boxes/cold/receipt", status=404, code="not-found")


def test_health_and_doctor(api, daemon):
    h = api.good("GET", "/v1/health")
    assert h["status"] == "ok" and h["boxes"] == 0 and h["pid"] == daemon.pid_pair()[1]
    assert isinstance(api.good("GET", "/v1/doctor", timeout=60), dict)


# --- metrics ---

SAMPLE = re.compile(r'([a-z_]+)(?:\{((?:[a-z]+="(?:[^"\\\n]|\\[\\"n])*",?)*)\})? (-?[0-9]+(?:\.[0-9]+)?)')


def metrics(api):
    """The text form of Prometheus, read strictly: every sample after the HELP and TYPE of its family, no family and no sample twice."""
    a = api.get("/v1/metrics")
    assert a.status == 200 and a.header("content-type") == "text/plain; version=0.0.4; charset=utf-8"
    text = a.body.decode("utf-8")
    assert text.endswith("\n") and "\n\n" not in text
    families, found, now = {}, {}, None
    for line in text[:-1].split("\n"):
        if (m := re.fullmatch(r"# HELP ([a-z_]+) (.+)", line)):
            assert m[1] not in families
            now, families[m[1]] = m[1], None
        elif (m := re.fullmatch(r"# TYPE ([a-z_]+) (counter|gauge)", line)):
            assert m[1] == now and families[now] is None
            families[now] = m[2]
            assert now.endswith("_total") == (m[2] == "counter")
        else:
            m = SAMPLE.fullmatch(line)
            assert m and m[1] == now and families[now], line
            labels = tuple(re.findall(r'([a-z]+)="((?:[^"\\]|\\.)*)"', m[2] or ""))
            assert (now, labels) not in found, line
            found[now, labels] = float(m[3])
    return found


def test_metrics_are_well_formed_and_count(api, b):
    before = metrics(api)
    api.out(b, "echo hello")
    job = api.start(b, "sleep 1000")
    later(lambda: api.good("GET", "/v1/boxes/b")["jobs"] == 1)
    after = metrics(api)
    box = {labels for (name, labels) in after if name == "pale_box_up"}
    assert len(box) == 1 and dict(*box)["name"] == "b"
    labels = box.pop()
    assert after["pale_box_up", labels] == 1 and after["pale_box_jobs", labels] == 1
    assert after["pale_execs_total", ()] == before["pale_execs_total", ()] + 2
    assert after["pale_boxes_live", ()] == 1
    assert after["pale_box_jobs_ended_total", labels] >= 1 and after["pale_box_output_bytes_total", labels] >= 6
    assert after["pale_http_requests_total", ()] > before["pale_http_requests_total", ()] > 0
    assert after["pale_http_connections", ()] >= 1
    api.good("POST", f"/v1/boxes/b/jobs/{job}/signal")


# --- events ---


def test_events_come_in_order_and_can_be_resumed(api):
    s = api.stream("GET", "/v1/events", accept="text/event-stream")
    api.make("b")
    api.out("b", "echo 'quote \" and ü'")
    api.good("POST", "/v1/boxes/b/stop")
    api.delete("/v1/boxes/b")
    seen = []
    for number, kind, data in s.events():
        assert data["event"] == kind and re.fullmatch(r"\d+-\d+", number)
        seen.append((number, kind))
        if kind == "box.removed":
            break
    s.close()
    counts = [int(n.split("-")[1]) for n, _ in seen]
    assert counts == sorted(set(counts)) and len({n.split("-")[0] for n, _ in seen}) == 1
    kinds = [k for _, k in seen]
    for first, then in zip(["box.made", "box.up", "job.started", "job.ended", "box.down"], ["box.up", "job.started", "job.ended", "box.down", "box.removed"]):
        assert first in kinds and then in kinds, kinds
    assert kinds.index("job.started") < kinds.index("job.ended") < kinds.index("box.down") < kinds.index("box.removed")
    # Who comes back gets what he has not seen, and nothing twice.
    middle = len(seen) // 2
    for how in ("header", "query"):
        path = "/v1/events" if how == "header" else query("/v1/events", since=seen[middle][0])
        s = api.stream("GET", path, accept="text/event-stream", headers={"Last-Event-ID": seen[middle][0]} if how == "header" else {})
        again = []
        for number, kind, _ in s.events():
            again.append((number, kind))
            if kind == "box.removed":
                break
        s.close()
        assert again == seen[middle + 1:]


def test_events_of_one_box_alone(api):
    a, b = api.make("a"), api.make("b")
    s = api.stream("GET", query("/v1/events", box=b["id"]))
    api.out("a", "true")
    api.out("b", "true")
    found = s.until("job.ended")
    assert {e["box"] for e in found} == {b["id"]} and a["id"] != b["id"]
    s.close()


def test_events_tell_of_the_gap_after_a_restart(daemon, api):
    s = api.stream("GET", "/v1/events", accept="text/event-stream")
    api.make("b")
    number = next(s.events())[0]
    s.close()
    daemon.stop()
    daemon.serve()
    s = api.stream("GET", "/v1/events", accept="text/event-stream", headers={"Last-Event-ID": number})
    assert next(s.events())[1] == "gap"
    api.out("b", "true")
    s.until("job.ended")
    s.close()


def test_events_of_a_tenant_are_his_alone(api):
    t = api.by(api.token_for(scope="tenant", tenant="t1")["token"])
    s = t.stream("GET", "/v1/events")
    api.make("ours")
    api.out("ours", "true")
    own = t.make("his")
    t.out("his", "true")
    assert {e["box"] for e in s.until("job.ended")} == {own["id"]}
    s.close()


# --- tokens ---


def test_a_token_is_told_once_and_kept_as_a_digest(daemon, api):
    made = api.token_for(name="for people", scope="tenant", tenant="t1", ttl="1h")
    secret = made.pop("token")
    assert re.fullmatch(r"[a-z_]+_?[0-9a-f]{64}", secret), secret
    listed = api.good("GET", "/v1/tokens")["items"]
    assert [t["id"] for t in listed] == [made["id"]] and "token" not in listed[0] and listed[0]["name"] == "for people"
    who = api.by(secret).good("GET", "/v1/token")
    assert (who["scope"], who["tenant"], who["id"]) == ("tenant", "t1", made["id"]) and "token" not in who
    daemon.stop()
    stored = b"".join(p.read_bytes() for p in daemon.registry.parent.glob("registry.db*"))
    digits = secret[-64:]
    assert secret.encode() not in stored and digits.encode() not in stored and bytes.fromhex(digits) not in stored
    assert hashlib.sha256(secret.encode()).digest() in stored or hashlib.sha256(secret.encode()).hexdigest().encode() in stored
    assert digits not in daemon.text_of_log()
    assert all(p.stat().st_mode & 0o077 == 0 for p in daemon.registry.parent.glob("registry.db*"))
    daemon.serve()
    assert api.by(secret).good("GET", "/v1/token")["id"] == made["id"]


def test_a_token_expires(api):
    t = api.by(api.token_for(ttl="1500ms")["token"])
    t.good("GET", "/v1/boxes")
    later(lambda: t.get("/v1/boxes").status == 401)
    t.bad("GET", "/v1/health", status=401, code="denied")


def test_a_token_is_revoked_at_once(api):
    made = api.token_for()
    t = api.by(made["token"])
    t.good("GET", "/v1/boxes")
    assert api.delete(f"/v1/tokens/{made['id']}").status == 204
    a = t.get("/v1/boxes")
    check_problem(a, 401, "denied")
    assert a.header("www-authenticate").startswith("Bearer")
    assert "revoked" in api.good("GET", "/v1/tokens")["items"][0]
    api.bad("DELETE", "/v1/tokens/0123456789abcdef", status=404)


def test_a_token_has_the_rights_it_was_given(api):
    t = api.by(api.token_for(scope="tenant", tenant="t1", rights=["box.read", "box.make"])["token"])
    t.make("b")
    assert names(t) == ["b"]
    t.bad("POST", "/v1/boxes/b/exec", {"command": "true"}, 403, "denied")
    t.bad("GET", "/v1/boxes/b/files?path=/etc/passwd", status=403, code="denied")
    t.bad("DELETE", "/v1/boxes/b", status=403, code="denied")


def test_a_token_that_cannot_be_made(api):
    for bad in ({"scope": "king"}, {"scope": "tenant"}, {"scope": "tenant", "tenant": "../x"}, {"scope": "box", "box": "nobody"},
                {"scope": "operator", "tenant": "t1"}, {"rights": ["all"]}, {"scope": "tenant", "tenant": "t1", "rights": ["tokens"]},
                {"scope": "tenant", "tenant": "t1", "rights": ["policy.widen"]}, {"ttl": "-1s"}, {"ttl": "soon"}):
        a = api.post("/v1/tokens", bad)
        assert a.status in (400, 404), a
        check_problem(a)
    assert api.good("GET", "/v1/tokens")["items"] == []


def test_a_box_token_reaches_that_box_alone(api):
    one, other = api.make("one"), api.make("other")
    t = api.by(api.token_for(scope="box", box="one")["token"])
    assert names(t) == ["one"]
    assert t.out(one["id"], "echo in") == "in\n"
    t.bad("POST", f"/v1/boxes/{other['id']}/exec", {"command": "true"}, 404, "not-found")
    t.bad("POST", "/v1/boxes", {}, 403, "denied")
    t.bad("DELETE", f"/v1/boxes/{one['id']}", status=403, code="denied")


def test_tokens_by_the_command(daemon, pale):
    secret = pale.ok("token", "create", "--name", "x", "--tenant", "t1", "--right", "box.read").text.strip()
    assert daemon.rest.by(secret).good("GET", "/v1/boxes")["items"] == []
    row = pale.json("token", "ls", "--json")[0]
    assert row["name"] == "x" and row["rights"] == ["box.read"] and secret not in json.dumps(row)
    pale.ok("token", "revoke", row["id"])
    daemon.rest.by(secret).bad("GET", "/v1/boxes", status=401)


# --- who ---


def test_records_name_who_asked(api, pale):
    t = api.token_for(name="ci")
    him, handle = api.by(t["token"]), t["id"]
    api.make("b", start=False)

    def last(event):
        found = [json.loads(line) for line in api.get("/v1/boxes/b/audit").body.splitlines()]
        return [r for r in found if r["event"] == event][-1]

    def who(event):
        return last(event).get("caller")

    him.good("POST", "/v1/boxes/b/start")
    assert who("box.start") == who("box.receipt") == handle
    him.exec("b", "true")
    assert who("exec") == handle and "caller" not in last("exec.end")
    him.write("b", "/tmp/f", b"x")
    assert who("exec") == handle and last("exec")["request"].startswith("write")
    him.bad("POST", "/v1/boxes/b/exec", {"command": "true", "user": "nobody at all"}, 400)
    assert who("exec.refused") == handle
    api.exec("b", "true")
    assert who("exec") == "operator"
    pale.ok("exec", "b", "--", "true")
    assert who("exec") == "local"
    for signal in (0, 9):
        job = api.start("b", "sleep 60")
        him.good("POST", f"/v1/boxes/b/jobs/{job}/signal", {"signal": signal})
        api.wait("b", job)
        assert last("exec.end")["job"] == job and who("exec.end") == handle and who("exec") == "operator"
    him.good("POST", "/v1/boxes/b/prove", {"full": False})
    assert who("box.receipt") == handle
    him.good("POST", "/v1/boxes/b/stop")
    assert who("box.stop") == handle
    him.good("POST", "/v1/boxes/b/policy/narrow", {"set": {"limits.output": "1M"}})
    assert who("policy.narrow") == handle
    pale.ok("exec", "b", "--", "true")
    assert who("box.start") == "local"
    pale.ok("stop", "b")
    assert who("box.stop") == "local"
    pale.ok("audit", "--verify", "b")
    him.good("POST", "/v1/boxes/b/rename", {"name": "c"})
    api.good("POST", "/v1/boxes/c/rename", {"name": "b"})
    names = [json.loads(line) for line in api.get("/v1/boxes/b/audit").body.splitlines()]
    assert [r["caller"] for r in names if r["event"] == "box.rename"] == [handle, "operator"]


def test_what_the_daemon_does_by_itself_is_its_own(api):
    api.make("b", idle="200ms")
    later(lambda: state(api, "b") == "stopped")
    records = [json.loads(line) for line in api.get("/v1/boxes/b/audit").body.splitlines()]
    assert [(r["event"], r["caller"]) for r in records if r["event"] in ("box.start", "box.stop")] == [("box.start", "operator"), ("box.stop", "paled")]


def test_a_client_cannot_say_that_it_is_somebody_else(api, pale):
    """Through box.wire the daemon has said it already; on the socket itself a client says it once, and first."""
    box = api.make("b")["id"]
    where = pale.root / "run" / "pale" / f"{box}.sock"
    for words in (("",), ("Upper",), ("a b",), ("a" * 33,), ("x\x1b",), ("one", "two")):
        k = wire.Keeper(where)
        for word in words:
            k.ask("ASK_PREFACE", wire.record(word, ""))
        assert k.until("TELL_ERROR")[-1][0] == "TELL_ERROR", words
    t = api.token_for()
    with Wire(api.where) as w:
        w.send(request_bytes("GET", "/v1/boxes/b/wire", headers=[("Connection", "Upgrade"), ("Upgrade", "pale-wire"),
               ("Pale-Wire-Version", wire.VERSION), ("Authorization", f"Bearer {t['token']}")]))
        got = b""
        while b"\r\n\r\n" not in got:
            got += w.s.recv(4096)
        lie = wire.record("somebody", "")
        w.send(struct.pack("<IBBH", len(lie), wire.TYPES["ASK_PREFACE"], 0, 0) + lie)
        got = got.split(b"\r\n\r\n", 1)[1]
        while more := w.s.recv(4096):
            got += more
    assert got[4] == wire.TYPES["TELL_ERROR"], got
