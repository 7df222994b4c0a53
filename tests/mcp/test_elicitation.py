# SPDX-License-Identifier: Apache-2.0
"""A box asks for more: the official clients ask their user, and only the operator's yes counts."""
import contextlib

import pytest

from peer import Peer

CLIENTS = [("v2", "modern"), ("v2", "legacy"), ("v1", "legacy")]
YES = {"action": "accept", "content": {"allow": True}}
NOES = [{"action": "decline"}, {"action": "cancel"}, {"action": "accept", "content": {"allow": False}}]
WISH = {"set": {"limits.processes": "77"}, "reason": "a build with many jobs"}


@contextlib.contextmanager
def connected(node, client, target):
    p = Peer(node, *client, target)
    try:
        yield p
    finally:
        p.close()


def policy_of(box):
    return box.rest.good("GET", f"/v1/boxes/{box.id}/policy")["canonical"]


def ask(p, wish=WISH, **user):
    p.do("user", answer=user)
    return p.call("policy", **wish)


@pytest.mark.parametrize("client", CLIENTS, ids="-".join)
def test_the_operator_is_asked_and_his_yes_changes_the_box(node, client, make_box):
    box = make_box("wide-" + "-".join(client))
    with connected(node, client, {"command": box.stdio, "args": []}) as p:
        before = policy_of(box)
        assert "77" not in before
        for no in NOES:
            text, failed = ask(p, **no)
            assert failed and "denied" in text, (no, text)
            assert policy_of(box) == before
        assert len(p.asked) == len(NOES)
        assert "limits.processes=77" in p.asked[0]["message"] and "a build with many jobs" in p.asked[0]["message"]
        text, failed = ask(p, **YES)
        assert not failed and "restarted" in text, text
        assert policy_of(box) != before and "77" in policy_of(box)
        assert p.call("exec", command="echo it works") == ("it works\n", False)


@pytest.mark.parametrize("client", CLIENTS, ids="-".join)
def test_the_token_of_a_box_widens_nothing_whatever_its_client_says(node, client, box):
    with connected(node, client, {"url": box.url, "token": box.token}) as p:
        before = policy_of(box)
        text, failed = ask(p, **YES)
        assert failed and "only the operator" in text and "pale policy" in text, text
        assert not p.asked and policy_of(box) == before
