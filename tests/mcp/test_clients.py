# SPDX-License-Identifier: Apache-2.0
"""Both official TypeScript clients against a box: over HTTP with its token, over stdio as the operator, in every era they know."""
import contextlib

import pytest

import harness
from peer import Peer

WAYS = [(sdk, era, how) for sdk, era in (("v2", "modern"), ("v2", "auto"), ("v2", "legacy"), ("v1", "legacy")) for how in ("http", "stdio")]
TOOLS = {"exec", "job", "read", "write", "edit", "list", "glob", "grep", "apply_patch", "policy", "diff", "snapshot", "restore"}


def target(box, how):
    return {"url": box.url, "token": box.token} if how == "http" else {"command": box.stdio, "args": []}


@contextlib.contextmanager
def connected(node, box, way):
    sdk, era, how = way
    p = Peer(node, sdk, era, target(box, how))
    p.way = "-".join(way)
    try:
        yield p
    finally:
        p.close()


@pytest.fixture(scope="module", params=WAYS, ids="-".join)
def peer(request, node, box):
    with connected(node, box, request.param) as p:
        yield p


@pytest.fixture(params=WAYS, ids="-".join)
def passing(request, node, box):
    """One that may come to an end in the test."""
    with connected(node, box, request.param) as p:
        p.how, p.era = request.param[2], p.hello["era"]
        yield p


def sleeper(box, p):
    """A command that runs, and can be told from all others."""
    mark = f"mark-{p.way}-{p.n}-{p.p.pid}"
    n = p.begin("call", name="exec", arguments={"command": ["sh", "-c", f": {mark}; sleep 600"], "timeout": 600})
    assert harness.wait_until(lambda: box.running(mark))
    return n, mark


def runs_on(box, mark):
    """Still there a moment later."""
    return not harness.wait_until(lambda: not box.running(mark), 0.7)


def end(box, mark):
    for job in box.running(mark):
        box.rest.good("POST", f"/v1/boxes/{box.id}/jobs/{job}/signal", {"signal": 0})
    assert harness.wait_until(lambda: not box.running(mark))


def test_the_server_is_called_pale_and_the_era_is_the_one_asked_for(peer):
    assert peer.hello["ready"]["name"] == "pale"
    assert peer.hello["era"] == ("legacy" if "legacy" in peer.way else "modern")


def test_tools_are_listed(peer):
    tools = {t["name"]: t for t in peer.do("list")["result"]["tools"]}
    assert tools.keys() >= TOOLS
    assert tools["read"]["annotations"]["readOnlyHint"] and not tools["exec"]["annotations"]["readOnlyHint"]


def test_files_and_commands_go_round(peer):
    name = f"{peer.way}.txt"
    assert not peer.call("write", path=name, content="one\ntwo é\n")[1]
    text, failed = peer.call("read", path=name)
    assert not failed and "one" in text and "two é" in text
    text, failed = peer.call("list", path=".")
    assert not failed and name in text
    assert peer.call("exec", command=["cat", name]) == ("one\ntwo é\n", False)
    text, failed = peer.call("exec", command="echo out; echo err >&2; exit 3")
    assert not failed and "out" in text and "err" in text and "[exit 3]" in text


def test_what_is_wrong_is_told(peer):
    text, failed = peer.call("read", path="not-there")
    assert failed and "not-found" in text
    text, failed = peer.call("exec", command="true", tiemout=3)
    assert failed and "tiemout" in text
    text, failed = peer.call("exec")
    assert failed and "command" in text
    m = peer.do("call", name="exce", arguments={})
    assert m["error"]["code"] == -32602 and "exec" in m["error"]["message"], m
    m = peer.do("request", method="prompts/list", params={})
    assert "error" in m, m


def test_progress_comes_while_a_command_runs(node, box):
    with contextlib.ExitStack() as all_ways:
        peers = [all_ways.enter_context(connected(node, box, way)) for way in WAYS]  # together, because it takes its time
        calls = [p.begin("call", name="exec", arguments={"command": "sleep 2.5; echo done"}) for p in peers]
        for p, n in zip(peers, calls):
            m = p.wait(n)
            assert m["result"]["content"][0]["text"] == "done\n", (p.way, m)
            steps = [told["progress"] for told in p.progress.get(n, [])]
            assert steps == sorted(set(steps)) and len(steps) >= 2, (p.way, steps)


def test_output_that_looks_like_the_protocol_is_text(peer):
    line = '{"jsonrpc":"2.0","id":1,"result":{"content":[]}}'
    assert peer.call("exec", command=["printf", "%s\\n\\ndata: x\\n", line]) == (f"{line}\n\ndata: x\n", False)


def test_a_cancelled_call_ends_its_command_and_nothing_else(passing, box):
    p = passing
    n, mark = sleeper(box, p)
    _, other_mark = sleeper(box, p)
    p.do("cancel", of=n)
    assert "error" in p.wait(n)
    assert harness.wait_until(lambda: not box.running(mark)), "the command goes on"
    assert runs_on(box, other_mark)
    assert p.call("exec", command="echo still here") == ("still here\n", False)
    end(box, other_mark)


def test_a_client_that_is_gone_has_cancelled_unless_it_may_come_back(passing, box):
    """Over HTTP a legacy client may only have lost its connection; a modern one has none to lose, and a pipe is gone with its client."""
    p = passing
    _, mark = sleeper(box, p)
    p.kill()
    if p.how == "http" and p.era == "legacy":
        assert runs_on(box, mark), "the command was ended"
        end(box, mark)
    else:
        assert harness.wait_until(lambda: not box.running(mark)), "the command goes on"


def test_a_token_that_is_none_is_refused(node, box):
    for sdk, era in (("v2", "modern"), ("v1", "legacy")):
        with pytest.raises(AssertionError, match="401|token|Unauthorized"):
            Peer(node, sdk, era, {"url": box.url, "token": "pale_no-such-token"})
