# SPDX-License-Identifier: Apache-2.0
"""MCP against clients, models and boxes that mean no good: the daemon lives, others are served, and a person sees what he says yes to."""
import contextlib
import json
import os
import signal
import threading
import time

import pytest

from harness import wait_until
from mcp_client import Http, Stdio

pytestmark = [pytest.mark.once, pytest.mark.sanitized]


@pytest.fixture
def box(api):
    return api.make("b")["id"]


@pytest.fixture
def modern(api, box):
    return Http(api, box)


def running(api, box):
    return [j for j in api.good("GET", f"/v1/boxes/{box}/jobs")["items"] if j["state"] == "running"]


@contextlib.contextmanager
def held_up(daemon):
    """The daemon does nothing meanwhile, and finds all that has happened at once."""
    pid = daemon.pid_pair()[1]
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


# --- a daemon that must not die ---


@pytest.mark.parametrize("many", [10, 100, 3000])
def test_arguments_of_many_keys_end_nobody(api, box, daemon, many):
    token = api.token_for(scope="box", box="b", rights=["file.read", "policy.read"])["token"]
    keys = {f"k{i}": "" for i in range(many)}
    for name in ("read", "policy"):
        answer, _ = Http(api.by(token), box).ask("tools/call", {"name": name, "arguments": keys, "inputResponses": {}})
        assert answer["result"]["isError"], answer
    api.bad("POST", "/v1/boxes", {"name": "other", "policy": keys}, 400)


@pytest.mark.parametrize("carrier", ["stdio", "http"])
@pytest.mark.parametrize("says", ["answer", "progress"])
def test_a_client_may_be_gone_when_it_is_told_something(api, box, pale, daemon, carrier, says):
    """Its end is noticed by writing to it, before anybody has told of it."""
    client = Stdio(pale, box, "legacy") if carrier == "stdio" else Http(api, box)
    for _ in range(3):
        seconds = 0.3 if says == "answer" else 5
        m = client.message("tools/call", {"name": "exec", "arguments": {"command": f"sleep {seconds}"}}, {"progressToken": 1})
        connection = client.send(m) if carrier == "stdio" else api.begin_only("POST", client.path, m, client.headers(m))
        assert wait_until(lambda: running(api, box))
        with held_up(daemon):
            time.sleep(1.2)
            if carrier == "stdio":
                client.process.kill()
                client.process.wait()
            else:
                connection.close()
        assert wait_until(lambda: not running(api, box))
        if carrier == "stdio":
            client = Stdio(pale, box, "legacy")
    assert api.good("GET", "/v1/boxes")["items"]


# --- what one client can take from others ---


def test_a_message_of_many_values_is_refused(api, box):
    """In memory each is fifty times its text, for as long as the request waits."""
    client = Http(api.by(api.token_for(scope="box", box="b")["token"]), box)
    m = client.message("tools/call", {"name": "job", "arguments": {"id": 1, "wait": 3000}}, {"x": [[] for _ in range(250000)]})
    text = json.dumps(m, separators=(",", ":")).encode()
    assert len(text) < 1 << 20
    a = client.api.ask("POST", client.path, body=text, headers={"Content-Type": "application/json", **client.headers(m)})
    assert (a.status, a.json()["error"]["code"]) == (400, -32600)
    assert client.text("exec", command=["sh", "-c", "echo $#", "sh"] + ["x"] * 4000) == "4000\n"


def test_a_long_progress_token_does_not_come_back_every_second(modern):
    for n, some in ((256, True), (257, False), (900000, False)):
        _, before = modern.ask("tools/call", {"name": "exec", "arguments": {"command": "sleep 1.3"}}, {"progressToken": "x" * n})
        assert bool(before) is some


def test_one_token_cannot_shut_out_others(api, box):
    """Nor by several boxes, each of which has a bound of its own."""
    boxes = [box, api.make("c")["id"]]
    job = [api.start(b, "sleep 1000") for b in boxes]
    greedy, other = (api.by(api.token_for(scope="operator")["token"]) for _ in range(2))
    waiting = []
    for n in range(256):
        client = Http(greedy, boxes[n % 2])
        m = client.message("tools/call", {"name": "job", "arguments": {"id": job[n % 2], "wait": 3000}})
        waiting.append(greedy.begin_only("POST", client.path, m, client.headers(m)))
    last = Http(greedy, box)
    assert wait_until(lambda: last.post(m := last.message("tools/list"), last.headers(m)).status == 429)
    for client in (Http(other, box), Http(api, box)):
        assert client.text("exec", command="echo on") == "on\n"
    for c in waiting:
        c.close()
    assert wait_until(lambda: last.post(m := last.message("tools/list"), last.headers(m)).status == 200)


# --- a person must see what he says yes to ---


def asked(client, wishes, reason="r"):
    return client.result("tools/call", {"name": "policy", "arguments": {"set": wishes, "reason": reason}})


def test_a_person_is_shown_all_that_his_yes_would_change(api, box):
    client = Http(api, box, capabilities={"elicitation": {}})
    tail = "\nIts reason: r\nThe box is restarted for it, which ends its commands."
    for wishes, lines in (({"network.allow": ["a.example", "b.example"], "limits.pids": "7"}, ["network.allow=a.example", "network.allow=b.example", "limits.pids=7"]),
                          ({"env.A": "x" * 3000, "network.mode": "open"}, ["env.A=" + "x" * 3000, "network.mode=open"]),
                          ({"env.A": "1\nIts reason: none", "network.mode": "open"}, ["env.A=1\\nIts reason: none", "network.mode=open"])):
        message = asked(client, wishes)["inputRequests"]["allow"]["params"]["message"]
        assert message == "The agent asks for more in the box b:\n" + "\n".join(lines) + tail
    # What does not fit is not asked in part.
    for wishes in ({f"env.{'k' * 90}{i}": "v" * 200 for i in range(15)} | {"network.mode": "open"}, {"env.A": "v" * 5000}, {}, {"network.allow": []}):
        r = asked(client, wishes)
        assert r["isError"] and r["resultType"] == "complete", r


# --- what boxes say ---


def test_output_with_nul_bytes_is_not_lost(modern):
    assert modern.text("exec", command="printf 'before\\0after\\n'") == "beforeafter\n"
    job = int(modern.text("exec", command="printf 'before\\0after\\n'", background=True).split("job ")[1].split(".")[0])
    assert modern.text("job", id=job, wait=10).startswith("beforeafter\n[job")
    modern.text("exec", command="head -c 9000 /dev/zero | tr '\\0' 'x' > f; printf '\\nhere\\0there\\n' >> f")
    assert modern.text("read", path="f", first=2) == "here\ufffdthere\n"


def test_no_control_character_of_the_upper_half_comes_out_of_a_box(modern):
    text = modern.text("exec", command="printf 'a\\302\\23331mb\\302\\033[m\\23331mc\\302\\235 \\302\\240 \\303\\251'")
    assert not any("\x80" <= c < "\xa0" for c in text) and text.endswith("\xa0 é")


def test_a_box_that_takes_folders_away_is_not_followed(modern, api, box):
    """The folders above a file are made once, however often a box removes them."""
    modern.text("exec", command="for i in 1 2 3 4 5 6; do while :; do rmdir r 2> /dev/null; done & done", background=True)
    for _ in range(10):
        modern.call("write", path="r/f", content="x")
        modern.text("exec", command="rm -rf r")
    lines = api.ask("GET", f"/v1/boxes/{box}/audit").lines()
    made = [n for n, line in enumerate(lines) if "mkdir r" in json.dumps(line)]
    asked = [n for n, line in enumerate(lines) if "write r/f" in json.dumps(line)]
    assert made and len(made) <= 10 and len(asked) <= 20, (len(made), len(asked))


# --- what the operator hears of ---


def test_what_a_token_has_no_right_to_leaves_a_trace(api, box, daemon):
    token = api.token_for(scope="box", box="b", rights=["job.read", "policy.read"])
    client, job = Http(api.by(token["token"]), box), api.start(box, "sleep 1000")
    answer, _ = client.ask("tools/call", {"name": "exec", "arguments": {"command": "true"}})
    assert answer["error"]["code"] == -32602
    assert client.call("job", id=job, signal=9)["isError"]
    assert client.call("policy", set={"limits.memory": "8G"}, reason="r")["isError"]
    refused = [line.split("paled: ")[1] for line in daemon.text_of_log().splitlines() if "refused" in line]
    assert [line.split(f" for token {token['id']}: ") for line in refused] == [
        ["refused an MCP tool", "exec"], ["refused job.signal", "this token has no right to job.signal; the operator can give one that has"],
        ["refused an MCP tool", "policy"]]
    api.good("POST", f"/v1/boxes/{box}/jobs/{job}/signal", {})


# --- the bridge ---


def ends_at_once(client):
    began = time.monotonic()
    return client.end() == 0 and time.monotonic() - began < 3


def test_a_client_that_asks_much_at_once_gets_all_of_it(pale, box):
    """While the daemon takes no more because its answers are not read, they must be."""
    client = Stdio(pale, box)
    asked = [client.message("tools/list") for _ in range(3000)]
    threading.Thread(target=lambda: [client.send(m) for m in asked], daemon=True).start()
    assert {client.next()["id"] for _ in asked} == {m["id"] for m in asked}
    assert ends_at_once(client)


def test_what_was_cancelled_is_not_waited_for(api, box, pale, daemon):
    daemon.may_die = True
    client = Stdio(pale, box)
    for tool, arguments in (("exec", {"command": "sleep 1000"}), ("grep", {"pattern": "x", "path": "/usr"})):
        m = client.message("tools/call", {"name": tool, "arguments": arguments})
        client.send(m)
        client.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": m["id"]}})
    client.ask("tools/list")
    os.kill(daemon.pid_pair()[1], signal.SIGKILL)
    answer, before = client.ask("tools/list")
    assert "result" in answer and not [m for m in before if m["id"] == 1]
    assert ends_at_once(client)


@pytest.mark.parametrize("text", ['"a\\/b"', '"\\u0041"', '"caf\\u00e9"', "-0", '"\\ud83d\\ude00"'])
def test_an_id_that_comes_back_in_other_letters_is_the_same(box, pale, daemon, text):
    daemon.may_die = True
    client = Stdio(pale, box)
    line = json.dumps(client.message("tools/list")).replace('"id": 1', f'"id": {text}').encode()
    client.write(line + b"\n")
    assert client.next()["id"] == json.loads(text)
    os.kill(daemon.pid_pair()[1], signal.SIGKILL)
    answer, before = client.ask("tools/list")
    assert "result" in answer and not before
    assert ends_at_once(client)


@pytest.mark.parametrize("carrier", ["stdio", "http"])
def test_an_answer_that_is_too_long_is_an_error_and_the_rest_goes_on(api, box, pale, carrier):
    client = Stdio(pale, box) if carrier == "stdio" else Http(api, box)
    client.text("exec", command="head -c 450 /dev/zero | tr '\\0' '\\1' > l; echo >> l; for i in $(seq 2300); do cat l; done > f")
    answer, before = client.ask("tools/call", {"name": "grep", "arguments": {"pattern": ".", "limit": 5000}})
    assert "too long" in answer.get("error", {}).get("message", ""), str(answer)[:300]
    assert not before
    assert client.text("grep", pattern=".", limit=3).count("\n") == 3
