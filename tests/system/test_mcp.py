# SPDX-License-Identifier: Apache-2.0
"""The tools of a box over MCP: both eras, both carriers, and clients that mean no good."""
import concurrent.futures
import json
import os
import signal
import threading
import time

import pytest

from harness import wait_until
from mcp_client import ACCEPT, LEGACY, META, MODERN, Http, Stdio, events_of, hello, modern_meta

pytestmark = [pytest.mark.once, pytest.mark.sanitized]
TOOLS = ["exec", "job", "read", "write", "edit", "list", "glob", "grep", "apply_patch", "policy", "diff", "snapshot", "restore"]


@pytest.fixture
def box(api):
    return api.make("b")["id"]


@pytest.fixture(params=["modern http", "legacy http", "modern stdio", "legacy stdio"])
def client(request, api, pale, box):
    era, carrier = request.param.split()
    return Http(api, box, era) if carrier == "http" else Stdio(pale, box, era)


@pytest.fixture
def modern(api, box):
    return Http(api, box)


@pytest.fixture
def legacy(api, box):
    return Http(api, box, "legacy")


def jobs(api, box):
    return api.good("GET", f"/v1/boxes/{box}/jobs")["items"]


def running(api, box):
    return [j for j in jobs(api, box) if j["state"] == "running"]


# --- the tools ---


@pytest.mark.basic
def test_the_tools_are_those_and_each_says_what_it_is(client):
    tools = client.result("tools/list")["tools"]
    assert [t["name"] for t in tools] == TOOLS
    for t in tools:
        assert t["description"] and len(t["description"]) < 300 and t["inputSchema"]["type"] == "object"
        assert t["inputSchema"]["additionalProperties"] is False
        assert set(t["annotations"]) == {"title", "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"}
        assert all(p["description"] for p in t["inputSchema"]["properties"].values())
    assert {t["name"] for t in tools if t["annotations"]["readOnlyHint"]} == {"read", "list", "glob", "grep", "diff"}
    # What restore overwrites is kept; but who is asked before something is overwritten shall be asked for this too.
    assert {t["name"] for t in tools if t["annotations"]["destructiveHint"]} == {"exec", "job", "write", "edit", "apply_patch", "restore"}


@pytest.mark.basic
def test_a_command_runs_and_its_output_comes_as_text(client):
    assert client.text("exec", command="echo out; echo err >&2; echo more") == "out\nerr\nmore\n"
    assert client.text("exec", command=["printf", "%s", "a b; c"]) == "a b; c"
    assert client.text("exec", command="exit 3") == "[exit 3]"
    assert client.text("exec", command="true") == "[no output]"
    assert client.text("exec", command="pwd", cwd="/tmp") == "/tmp\n"


def test_a_file_is_written_read_edited_and_listed(client):
    assert client.text("write", path="sub/dir/a.txt", content="one\ntwo\nthree\n") == "Wrote 14 bytes to sub/dir/a.txt."
    assert client.text("read", path="sub/dir/a.txt") == "one\ntwo\nthree\n"
    assert client.text("read", path="sub/dir/a.txt", first=2, count=1) == "two\n[lines 2-2; read on with first: 3]"
    assert client.text("edit", path="sub/dir/a.txt", old="two", new="2") == "Replaced 1 occurrence in sub/dir/a.txt, line 2."
    assert client.text("exec", command="cat sub/dir/a.txt") == "one\n2\nthree\n"
    assert client.text("list", path="sub") == "dir/\n"
    assert client.text("list", path="sub/dir") == "a.txt  12\n"
    assert client.text("glob", pattern="**/*.txt") == "sub/dir/a.txt\n"
    assert client.text("grep", pattern="th?ree") == "sub/dir/a.txt:3:three\n"
    assert client.text("grep", pattern="nowhere") == "[nothing found]"
    patch = "--- a/sub/dir/a.txt\n+++ b/sub/dir/a.txt\n@@ -1,3 +1,3 @@\n-one\n+uno\n 2\n three\n"
    assert client.text("apply_patch", patch=patch) == "changed sub/dir/a.txt\n"
    assert client.text("read", path="sub/dir/a.txt") == "uno\n2\nthree\n"


def test_what_has_changed_is_shown(client):
    assert client.text("diff") == "[nothing has changed]"
    client.text("write", path="/home/agent/a", content="one\ntwo\n")
    client.text("exec", command="printf 'x\\033[2Jy\\n' > ~/\"$(printf 'e\\033[2Jx')\"")
    lines = client.text("diff").splitlines()
    assert lines[0] == "added    a  +2 -0" and lines[1].startswith("added    e\\x1b[2Jx  +1 -0  ! name: ") and lines[2] == "2 files, 3 lines added, 0 removed"
    assert client.text("diff", path="/home/agent/a", patch=True).splitlines()[-2:] == ["+one", "+two"]
    assert "\x1b" not in client.text("diff", patch=True)
    client.text("snapshot", name="one")
    client.text("write", path="/tmp/t", content="t")
    assert client.text("diff", **{"from": "one"}) == "[nothing has changed]" and client.text("diff", path="/tmp", **{"from": "one"}).startswith("added    t  +1")
    client.text("exec", command="seq 200000 > ~/big")
    long = client.text("diff", patch=True)
    assert "bytes left out" in long and "+1\n" in long and len(long) < 40000
    client.text("exec", command="for i in 1 2 3; do yes 0123456789 | head -c 5000000 > ~/huge$i; done")
    assert client.text("diff", patch=True).endswith("[… there are more than 8 MiB; name a path]")
    for arguments in ({"path": "/usr"}, {"from": "none"}):
        r = client.call("diff", **arguments)
        assert r["isError"] and len(r["content"][0]["text"].splitlines()) == 1, r


def test_a_box_is_kept_and_brought_back(client):
    assert client.text("snapshot", list=True) == "[no snapshots]"
    client.text("write", path="/tmp/a", content="one")
    assert client.text("snapshot", name="one") == 'Kept as one. Go back to it with restore {"snapshot": "one"}.'
    assert client.text("snapshot") == 'Kept as snap-1 (nothing has changed since the last snapshot). Go back to it with restore {"snapshot": "snap-1"}.'
    client.text("write", path="/tmp/a", content="two")
    back = client.text("restore", snapshot="one")
    undo = json.loads(back[back.index("{"):back.index("}") + 1])
    assert back.startswith("The box is as it was at one. What it was until now is kept as auto-") and client.text("read", path="/tmp/a") == "one"
    lines = client.text("snapshot", list=True).splitlines()
    assert [line.split()[0] for line in lines] == ["one", "snap-1", undo["snapshot"]]
    assert [line.endswith("the box stands on it") for line in lines] == [True, True, False]
    client.text("restore", **undo)
    assert client.text("read", path="/tmp/a") == "two"
    for tool, arguments in (("snapshot", {"name": "one"}), ("snapshot", {"name": "a b"}), ("snapshot", {"name": "x", "list": True}), ("restore", {"snapshot": "none"})):
        r = client.call(tool, **arguments)
        assert r["isError"] and len(r["content"][0]["text"].splitlines()) == 1, r
    client.text("exec", command="sleep 1000", background=True)
    client.text("write", path="/tmp/a", content="three")
    assert "Kept as busy" in client.text("snapshot", name="busy")
    r = client.call("restore", snapshot="one")
    assert r["isError"] and r["content"][0]["text"].startswith("busy: ") and "job" in r["content"][0]["text"], r
    client.text("restore", snapshot="one", force=True)
    assert client.text("read", path="/tmp/a") == "one"


def test_a_box_in_memory_is_offered_nothing_to_keep_it_by(api):
    m = Http(api, api.make("m", set={"scratch": "memory"})["id"])
    assert [t["name"] for t in m.result("tools/list")["tools"]] == TOOLS[:-3]
    answer, _ = m.ask("tools/call", {"name": "snapshot", "arguments": {}})
    assert "there is no tool snapshot" in answer["error"]["message"]


def test_a_token_of_the_box_keeps_and_goes_back_but_takes_nothing_away(shared_daemon):
    daemon, port = shared_daemon
    api = daemon.rest
    box = api.make("past")["id"]
    api.out(box, "echo one > ~/f")
    inside = api.__class__(port, api.token_for(scope="box", box=box)["token"], seen=api.seen)
    assert Http(inside, box).text("snapshot", name="one").startswith("Kept as one.")
    lacks = api.__class__(port, api.token_for(scope="box", box=box, rights=["exec", "box.read"])["token"], seen=api.seen)
    assert [t["name"] for t in Http(lacks, box).result("tools/list")["tools"]] == ["exec"]
    inside.bad("DELETE", f"/v1/boxes/{box}/snapshots/one", None, 403, "denied")


def test_a_large_folder_is_listed_in_order_and_cut(modern):
    modern.text("exec", command="mkdir many; cd many; seq 1 1500 | xargs touch")
    lines = modern.text("list", path="many").splitlines()
    assert lines[:-1] == [f"{n}  0" for n in sorted(map(str, range(1, 1501)))[:1000]] and lines[-1] == "[500 more; use glob with a pattern]"


def test_an_edit_that_fits_nowhere_or_twice_says_so(modern):
    modern.text("write", path="a", content="x x")
    for old in ("y", "x"):
        r = modern.call("edit", path="a", old=old, new="z")
        assert r["isError"] and len(r["content"][0]["text"].splitlines()) == 1, r
    assert modern.text("read", path="a") == "x x"
    assert modern.text("edit", path="a", old="x", new="z", all=True).startswith("Replaced 2 occurrences")


def test_what_is_no_text_is_not_read_as_such(modern):
    modern.text("exec", command="head -c 1000 /dev/zero > zeros; printf 'caf\\351' > latin; : > empty")
    r = modern.call("read", path="zeros")
    assert r["isError"] and "1000 bytes" in r["content"][0]["text"]
    assert modern.text("read", path="empty") == "[empty]"


def test_long_output_keeps_both_ends_and_the_rest_can_be_read(modern):
    text = modern.text("exec", command="seq 1 20000")
    lines = text.splitlines()
    assert lines[:3] == ["1", "2", "3"] and lines[-1] == "20000" and len(text) < 40000
    gap = next(line for line in lines if line.startswith("[…"))
    ask = json.loads(gap[gap.index("job ") + 4:gap.index("}") + 1])
    missing, asked = "", 0
    while True:
        more = modern.text("job", **ask)
        missing, asked = missing + more, asked + 1
        follow = [line for line in more.splitlines() if line.startswith("[there is more")]
        if not follow:
            break
        missing = missing[:missing.rindex("[there is more")]
        ask = json.loads(follow[0][follow[0].index("job ") + 4:follow[0].index("}") + 1])
    whole = "".join(f"{i}\n" for i in range(1, 20001))
    assert missing.startswith(whole[ask["since"]:][:10]) or asked > 1
    assert "20000\n[job" in missing and "has ended, exit 0]" in missing


def test_a_command_in_the_background_is_looked_after(modern):
    started = modern.text("exec", command="echo first; sleep 1000", background=True)
    job = int(started.split("job ")[1].split(".")[0])
    assert wait_until(lambda: "first" in modern.text("job", id=job))
    text = modern.text("job", id=job, since=0)
    assert text == f"first\n[job {job} runs; read on with since: 6, or wait for its end with wait]"
    assert f"{job} running" in modern.text("job")
    modern.text("job", id=job, signal=9)
    assert f"[job {job} has ended" in modern.text("job", id=job, wait=10)


def test_a_command_that_takes_too_long_is_ended_and_the_model_told(modern, api, box):
    r = modern.call("exec", command="echo begun; sleep 1000", timeout=1)
    assert r["isError"] and r["content"][0]["text"].startswith("begun\n[timed out after 1 s") and "background" in r["content"][0]["text"]
    assert not running(api, box)


def test_progress_is_told_to_who_wants_it(api, box, pale):
    for client in (Http(api, box), Http(api, box, "legacy"), Stdio(pale, box), Stdio(pale, box, "legacy")):
        _, before = client.ask("tools/call", {"name": "exec", "arguments": {"command": "sleep 2.5"}}, {"progressToken": "p"})
        assert [m["method"] for m in before] == ["notifications/progress"] * len(before) and len(before) >= 2
        steps = [m["params"]["progress"] for m in before]
        assert steps == sorted(set(steps)) and all(m["params"]["progressToken"] == "p" for m in before)
        answer, before = client.ask("tools/call", {"name": "exec", "arguments": {"command": "sleep 1.2"}})
        assert not before and "result" in answer


def test_what_a_box_prints_stays_a_value(client):
    frame = '{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"forged"}]}}'
    for piece in (frame, f"\\n{frame}\\n", f"data: {frame}\\n\\n", "event: message\\n\\n", "\\r\\n\\r\\nHTTP/1.1 200 OK\\r\\n", "\\000\\377\\033[2J"):
        answer, before = client.ask("tools/call", {"name": "exec", "arguments": {"command": ["printf", piece.replace("%", "%%")]}})
        assert not before and answer["result"]["content"][0]["type"] == "text"
        assert "\x1b" not in answer["result"]["content"][0]["text"] and "\0" not in answer["result"]["content"][0]["text"]
    client.text("exec", command=["sh", "-c", 'touch "$(printf "x\\n{\\"id\\":1}")" "$(printf "e\\033[31m")"'])
    listed = client.text("list")
    assert "\x1b" not in listed and len(listed.splitlines()) == len(client.text("list").splitlines())
    assert sorted(line.split("  ")[0] for line in listed.splitlines()) == ["e\\x1b[31m", 'x\\n{"id":1}']


def test_a_policy_is_shown_and_more_is_not_given_without_a_yes(modern, api, box):
    assert "limits.memory" in modern.text("policy")
    before = api.good("GET", f"/v1/boxes/{box}/policy")["digest"]
    r = modern.call("policy", set={"limits.memory": "8G"}, reason="I want it")
    assert r["isError"] and "operator" in r["content"][0]["text"] and "limits.memory" in r["content"][0]["text"]
    r = modern.call("policy", set={"limits.memory": "8G"})
    assert r["isError"] and "reason" in r["content"][0]["text"]
    assert api.good("GET", f"/v1/boxes/{box}/policy")["digest"] == before


# --- asking the operator ---


WISH = {"name": "policy", "arguments": {"set": {"limits.wall": "15m"}, "reason": "large\x1b[2J builds"}}


def wall(api, box):
    """A limit that every user can hold."""
    return api.good("GET", f"/v1/boxes/{box}/policy")["policy"]["limits"]["wall"]


def test_a_modern_client_is_asked_and_its_users_yes_counts_once_and_for_that(api, box, pale):
    for client in (Http(api, box, capabilities={"elicitation": {}}), Stdio(pale, box, capabilities={"elicitation": {}})):
        was = wall(api, box)
        r = client.result("tools/call", WISH)
        assert r["resultType"] == "input_required" and list(r["inputRequests"]) == ["allow"]
        q = r["inputRequests"]["allow"]
        assert q["method"] == "elicitation/create" and "limits.wall=15m" in q["params"]["message"] and "\x1b" not in q["params"]["message"]
        yes = {"allow": {"action": "accept", "content": {"allow": True}}}
        for no in ({"action": "decline"}, {"action": "cancel"}, {"action": "accept", "content": {"allow": False}}, {"action": "accept"}):
            denied = client.result("tools/call", {**WISH, "inputResponses": {"allow": no}, "requestState": r["requestState"]})
            assert denied["isError"] and wall(api, box) == was
        # A yes to another wish, a seal that was touched, a yes that nobody asked for.
        other = {"name": "policy", "arguments": {"set": {"limits.wall": "30h"}, "reason": "large\x1b[2J builds"}}
        for params in ({**other, "requestState": r["requestState"]}, {**WISH, "requestState": r["requestState"] + "x"}, {**WISH, "requestState": "x"}):
            answer, _ = client.ask("tools/call", {**params, "inputResponses": yes})
            assert answer["error"]["code"] == -32602 and wall(api, box) == was
        answer, _ = client.ask("tools/call", {**WISH, "inputResponses": yes})
        assert answer["result"]["resultType"] == "input_required" and wall(api, box) == was
        done = client.result("tools/call", {**WISH, "inputResponses": yes, "requestState": r["requestState"]})
        assert "said yes" in done["content"][0]["text"] and wall(api, box) != was
        assert client.text("exec", command="echo up") == "up\n"
        api.good("POST", f"/v1/boxes/{box}/stop")
        api.good("PUT", f"/v1/boxes/{box}/policy", {"set": {"limits.wall": "5m"}})


def test_a_yes_to_what_cannot_be_had_leaves_the_box_as_it_was(api, box):
    client = Http(api, box, capabilities={"elicitation": {}})
    before = api.good("GET", f"/v1/boxes/{box}/policy")["digest"]
    wish = {"name": "policy", "arguments": {"set": {"limits.wal": "15m"}, "reason": "a slip"}}
    r = client.result("tools/call", wish)
    yes = {"allow": {"action": "accept", "content": {"allow": True}}}
    r = client.result("tools/call", {**wish, "inputResponses": yes, "requestState": r["requestState"]})
    assert r["isError"] and "limits.wal" in r["content"][0]["text"] and api.good("GET", f"/v1/boxes/{box}/policy")["digest"] == before
    assert client.text("exec", command="echo up") == "up\n"
    assert client.call("job", id=1, signal=0)["isError"]


def test_a_legacy_client_is_asked_by_a_request(api, box, pale):
    client = Stdio(pale, box, "legacy", {"elicitation": {}})
    was = wall(api, box)
    for action, changes in (("decline", False), ("accept", True)):
        m = client.message("tools/call", WISH)
        client.send(m)
        question = client.next()
        assert question["method"] == "elicitation/create" and question["id"].startswith("pale-")
        client.send({"jsonrpc": "2.0", "id": "pale-" + "0" * 24, "result": {"action": "accept", "content": {"allow": True}}})
        client.send({"jsonrpc": "2.0", "id": question["id"], "result": {"action": action, "content": {"allow": True}}})
        answer, _ = client.answer_to(m["id"])
        assert bool(answer["result"].get("isError")) is not changes and (wall(api, box) != was) is changes


def test_the_token_of_a_box_cannot_widen_whatever_its_client_says(api, box):
    token = api.token_for(scope="box", box="b")["token"]
    client = Http(api.by(token), box, capabilities={"elicitation": {}})
    was = wall(api, box)
    r = client.result("tools/call", WISH)
    assert r["isError"] and r["resultType"] == "complete"
    answer, _ = client.ask("tools/call", {**WISH, "inputResponses": {"allow": {"action": "accept", "content": {"allow": True}}}})
    assert answer["result"]["isError"] and wall(api, box) == was


# --- who may ---


def test_a_token_is_offered_what_it_has_the_right_to(api, box):
    token = api.token_for(scope="box", box="b", rights=["file.read"])["token"]
    client = Http(api.by(token), box)
    assert [t["name"] for t in client.result("tools/list")["tools"]] == ["read", "list", "glob", "grep", "diff"]
    for tool, arguments in (("exec", {"command": "true"}), ("write", {"path": "a", "content": ""}), ("policy", {})):
        answer, _ = client.ask("tools/call", {"name": tool, "arguments": arguments})
        assert answer["error"]["code"] == -32602, answer
    api.make("other")
    assert Http(api.by(token), "other").post(client.message("tools/list")).status == 404
    assert api.by("pale_" + "0" * 64).ask("POST", f"/mcp/{box}", client.message("tools/list"), headers=client.headers({})).status == 401


# --- the eras ---


def test_initialize_agrees_on_a_version_and_mints_no_session(legacy, api, box):
    for wanted, got in ((LEGACY, LEGACY), ("2025-06-18", "2025-06-18"), ("2025-03-26", "2025-03-26"), ("1999-01-01", LEGACY), (MODERN, LEGACY)):
        a = api.ask("POST", f"/mcp/{box}", {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello(wanted)}, headers={"Accept": ACCEPT})
        r = a.json()["result"]
        assert r["protocolVersion"] == got and r["serverInfo"]["name"] == "pale" and r["capabilities"] == {"tools": {}} and r["instructions"]
        assert a.header("mcp-session-id") is None
    assert legacy.post({"jsonrpc": "2.0", "method": "notifications/initialized"}).status == 202
    assert legacy.result("ping") == {}
    # Without a version header it is the oldest, which is spoken too.
    assert "result" in api.ask("POST", f"/mcp/{box}", {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, headers={"Accept": ACCEPT}).json()


def test_get_and_delete_are_not_allowed(api, box):
    for method in ("GET", "DELETE", "PUT"):
        a = api.ask(method, f"/mcp/{box}")
        assert a.status == 405 and a.header("allow") == "POST"


def test_discover_tells_who_and_what(modern):
    r = modern.result("server/discover")
    assert r["supportedVersions"] == [MODERN] and r["resultType"] == "complete" and r["_meta"][META + "serverInfo"]["name"] == "pale"
    assert r["ttlMs"] >= 0 and r["cacheScope"] == "private"


def test_a_modern_request_must_say_what_its_era_asks_for(modern):
    m = modern.message("tools/call", {"name": "exec", "arguments": {"command": "touch ran"}})
    good = modern.headers(m)

    def refused(code, status=400, message=m, **headers):
        a = modern.post(message, {k: v for k, v in {**good, **headers}.items() if v is not None})
        assert (a.status, a.json()["error"]["code"], a.json()["id"]) == (status, code, message["id"]), a.body
        return a.json()["error"]

    refused(-32020, **{"MCP-Protocol-Version": LEGACY})
    refused(-32020, **{"MCP-Protocol-Version": None})
    refused(-32020, **{"Mcp-Method": "tools/list"})
    refused(-32020, **{"Mcp-Method": None})
    refused(-32020, **{"Mcp-Name": "read"})
    refused(-32020, **{"Mcp-Name": None})
    refused(-32020, **{"Mcp-Name": "=?base64?!!!?="})
    refused(-32020, **{"Mcp-Name": "=?base64?ZXhlYwByZWFk?="})  # "exec", NUL, "read"
    for gone in ("protocolVersion", "clientCapabilities"):
        meta = {k: v for k, v in m["params"]["_meta"].items() if k != META + gone}
        refused(-32602, message={**m, "params": {**m["params"], "_meta": meta}})
    refused(-32602, message={**m, "params": {k: v for k, v in m["params"].items() if k != "_meta"}})
    future = {**m, "params": {**m["params"], "_meta": {**m["params"]["_meta"], META + "protocolVersion": "2099-01-01"}}}
    assert refused(-32022, message=future, **{"MCP-Protocol-Version": "2099-01-01"})["data"] == {"supported": [MODERN], "requested": "2099-01-01"}
    refused(-32601, 404, message=modern.message("nope"), **{"Mcp-Method": "nope"})
    for older in ("initialize", "ping"):
        refused(-32601, 404, message=modern.message(older), **{"Mcp-Method": older})
    assert modern.text("list") == "[empty]"  # nothing of it ran
    a = modern.post(m, {**good, "Mcp-Name": "=?base64?ZXhlYw==?="})
    assert "result" in a.json() and modern.text("list").startswith("ran")


# --- cancelling ---


def begin(api, box, client, command="sleep 1000"):
    """A command under way, and the connection that waits for it."""
    m = client.message("tools/call", {"name": "exec", "arguments": {"command": command}})
    c, = [api.begin_only("POST", client.path, m, client.headers(m))]
    assert wait_until(lambda: running(api, box))
    return m, c


def test_a_modern_client_that_leaves_has_cancelled(api, box, modern):
    _, c = begin(api, box, modern)
    c.close()
    assert wait_until(lambda: not running(api, box))


def test_a_legacy_client_that_loses_its_connection_has_not(api, box, legacy):
    m, c = begin(api, box, legacy)
    c.close()
    time.sleep(0.5)
    assert len(running(api, box)) == 1
    api.good("POST", f"/v1/boxes/{box}/jobs/{running(api, box)[0]['id']}/signal", {})


def test_a_legacy_client_cancels_by_telling(api, box, legacy):
    m, c = begin(api, box, legacy)
    note = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": m["id"], "reason": "no need"}}
    assert legacy.post({**note, "params": {"requestId": 999}}).status == 202 and len(running(api, box)) == 1
    assert legacy.post({**note, "params": {"requestId": str(m["id"])}}).status == 202 and len(running(api, box)) == 1
    token = api.token_for(scope="box", box="b")["token"]
    assert Http(api.by(token), box, "legacy").post(note).status == 202 and len(running(api, box)) == 1  # it is not his
    assert legacy.post(note).status == 202
    assert wait_until(lambda: not running(api, box))
    c.close()


def test_two_legacy_clients_with_one_id_do_not_cancel_each_other(api, box):
    one, two = Http(api, box, "legacy"), Http(api, box, "legacy")
    m, c = begin(api, box, one)
    n, d = begin(api, box, two)
    assert m["id"] == n["id"] and wait_until(lambda: len(running(api, box)) == 2)
    one.post({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": m["id"]}})
    time.sleep(0.3)
    assert len(running(api, box)) == 2
    for j in running(api, box):
        api.good("POST", f"/v1/boxes/{box}/jobs/{j['id']}/signal", {})
    c.close()
    d.close()


@pytest.mark.parametrize("era", ["modern", "legacy"])
def test_over_stdio_a_request_is_cancelled_by_telling_and_nothing_follows(api, box, pale, era):
    client = Stdio(pale, box, era)
    m = client.message("tools/call", {"name": "exec", "arguments": {"command": "sleep 1000"}})
    client.send(m)
    assert wait_until(lambda: running(api, box))
    client.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": m["id"]}})
    assert wait_until(lambda: not running(api, box))
    answer, before = client.ask("tools/list")
    assert "result" in answer and not before  # not a word about the other


def test_what_a_stdio_client_began_ends_with_it(api, box, pale):
    client = Stdio(pale, box, "legacy")
    client.send(client.message("tools/call", {"name": "exec", "arguments": {"command": "sleep 1000"}}))
    assert wait_until(lambda: running(api, box))
    client.process.kill()
    client.process.wait()
    assert wait_until(lambda: not running(api, box))


def test_answers_that_are_on_their_way_come_before_the_end(pale, box):
    client = Stdio(pale, box, "legacy")
    m = client.message("tools/call", {"name": "exec", "arguments": {"command": "sleep 0.5; echo late"}})
    client.send(m)
    client.process.stdin.close()
    assert client.answer_to(m["id"])[0]["result"]["content"][0]["text"] == "late\n"
    assert client.process.wait(20) == 0


# --- a daemon that dies ---


def test_pale_mcp_outlives_the_daemon(api, box, pale, daemon):
    daemon.may_die = True
    client = Stdio(pale, box, "legacy")
    m = client.message("tools/call", {"name": "exec", "arguments": {"command": "sleep 5; echo went on > /tmp/it"}})
    client.send(m)
    assert wait_until(lambda: running(api, box))
    os.kill(daemon.pid_pair()[1], signal.SIGKILL)
    answer, before = client.answer_to(m["id"])
    assert answer["error"]["code"] == -32603 and "restarted" in answer["error"]["message"] and not before
    assert "running" in client.text("job")  # it goes on, and is found
    assert client.text("exec", command="echo again") == "again\n"
    assert wait_until(lambda: client.call("read", path="/tmp/it")["content"][0]["text"] == "went on\n")
    assert client.end() == 0


def test_a_daemon_that_is_stopped_under_a_client_is_stopped_and_the_next_serves_it(box, pale, daemon):
    daemon.may_die = True
    client = Stdio(pale, box, "legacy")
    for _ in range(3):
        before = daemon.pid_pair()
        pale.ok("serve", "--stop", timeout=10)
        assert client.text("exec", command="echo again") == "again\n" and daemon.pid_pair() != before
        daemon.pids |= set(daemon.pid_pair())


def test_what_only_looks_is_asked_again(box, pale, daemon):
    daemon.may_die = True
    client = Stdio(pale, box, "legacy")
    client.text("exec", command="mkfifo f; head -c 30000000 /dev/zero | tr '\\0' 'a' > big")
    for _ in range(5):
        m = client.message("tools/call", {"name": "grep", "arguments": {"pattern": "b+c"}})
        client.send(m)
        os.kill(daemon.pid_pair()[1], signal.SIGKILL)
        answer, before = client.answer_to(m["id"])
        assert answer["result"]["content"][0]["text"] == "[nothing found]" and not before


# --- clients that mean no good ---


BAD_MESSAGES = [
    (b"", -32700), (b"{", -32700), (b"nonsense", -32700), (b"\xff\xfe{}", -32700), (b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}', -32700),
    (b'{"a":' * 3000 + b"1" + b"}" * 3000, -32700), (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":' + b"[" * 40 + b"]" * 40 + b"}}", -32600),
    (b"[]", -32600), (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600), (b"1", -32600), (b"{}", -32600), (b"null", -32600),
    (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600), (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600),
    (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600), (b'{"jsonrpc":"2.0","id":[],"method":"ping"}', -32600),
    (b'{"jsonrpc":"2.0","id":"' + b"x" * 300 + b'","method":"ping"}', -32600), (b'{"jsonrpc":"2.0","id":1,"method":7}', -32600),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', -32600), (b'{"jsonrpc":"2.0","id":1,"result":1,"error":{}}', -32600),
    (b'{"jsonrpc":"2.0","id":1,"method":"' + b"x" * 200 + b'"}', -32600), (b'{"jsonrpc":"2.0","id":1e999,"method":"ping"}', -32700),
    (b'{"jsonrpc":"2.0","id":123456789012345678901234567890,"method":"ping"}', -32700),
]


def test_bad_messages_get_the_right_error_over_http(api, box):
    for text, code in BAD_MESSAGES:
        a = api.ask("POST", f"/mcp/{box}", body=text, headers={"Accept": ACCEPT, "Content-Type": "application/json"})
        assert (a.status, a.json()["error"]["code"]) == (400, code), (text[:80], a.body)


def test_bad_lines_get_the_right_error_and_the_connection_goes_on(pale, box):
    client = Stdio(pale, box, "legacy")
    for text, code in BAD_MESSAGES:
        if not text:
            continue
        client.write(text + b"\n")
        assert client.next()["error"]["code"] == code, text[:80]
    client.write(b"\n  \r\n\n")
    assert client.text("exec", command="echo on") == "on\n"


def test_bad_params_get_the_right_error(client):
    for method, params in (("tools/call", {}), ("tools/call", {"name": 7}), ("tools/call", {"name": "exec", "arguments": []}), ("tools/call", {"name": "nope"}),
                           ("tools/list", {"cursor": "x"})):
        if client.era == "modern" and client.api and not isinstance(params.get("name", ""), str):
            continue
        answer, _ = client.ask(method, params)
        assert answer["error"]["code"] in (-32602, -32020), answer
    for arguments in ({}, {"command": 7}, {"command": []}, {"command": [1]}, {"command": ""}, {"command": "true", "timeout": "x"}, {"command": "true", "timeout": -1},
                      {"command": "true", "timeout": 1.5}, {"command": "true", "timeout": 0}, {"command": "true", "unknown": 1}, {"command": "true", "cwd": "x" * 5000}, {"comand": "true"}):
        r = client.call("exec", **arguments)
        assert r["isError"] and r["content"][0]["text"].startswith("bad-input: "), r
    assert "did you mean command" in client.call("exec", comand="true")["content"][0]["text"]


def test_a_line_without_end_is_cut_off(pale, box):
    client = Stdio(pale, box, "legacy")
    try:
        for _ in range(80):
            client.write(b"x" * 65536)
    except BrokenPipeError:
        pass
    assert client.process.wait(20) != 0


def test_a_client_that_does_not_read_stops_itself_alone(api, box, pale):
    slow = Stdio(pale, box, "modern", command=("mcp", box))
    stopped = threading.Event()
    slow.read = lambda: stopped.wait()
    other = Stdio(pale, box)

    def flood():
        try:
            for _ in range(3000):
                slow.send(slow.message("tools/list"))
        except (BrokenPipeError, ValueError):
            pass

    threading.Thread(target=flood, daemon=True).start()
    for _ in range(20):
        assert other.text("exec", command="echo on") == "on\n"
    stopped.set()


def test_many_sessions_at_once(api, pale):
    boxes = [api.make(f"m{i}")["id"] for i in range(5)]

    def session(n):
        client = Http(api, boxes[n % 5], "modern" if n % 2 else "legacy")
        return all(client.text("exec", command=f"echo {n} {k}") == f"{n} {k}\n" for k in range(5))

    with concurrent.futures.ThreadPoolExecutor(40) as pool:
        assert all(pool.map(session, range(40)))
