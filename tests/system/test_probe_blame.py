# SPDX-License-Identifier: Apache-2.0
"""What pale's own prober tries in a box with a network is nobody's deed: the receipt tells of it, the audit and the meters do not."""
import pytest

from harness import wait_until

NOBODY = "192.0.2.1"
DIAL = f"""
import socket
s = socket.socket(); s.settimeout(20)
try:
    s.connect(("{NOBODY}", 9)); s.sendall(b"?\\n\\n"); s.recv(1)
except OSError:
    pass
"""


def denials(pale, box):
    return [e for e in map(__import__("json").loads, pale.ok("audit", "--json", box).text.splitlines()) if e["event"].startswith("net.")]


@pytest.mark.parametrize("mode", ["filtered", "open"])
def test_a_quiet_box_has_refused_nothing(pale, mode):
    for box in ("one", "two"):
        pale.ok("create", box, "--network", mode)
        pale.exec(box, "true")
        pale.ok("prove", "--full", box)
        pale.ok("prove", box)
        pale.exec(box, "true")
        net = pale.info(box)["network"]
        assert net["refused"] == 0 and net["hosts"] == [] and denials(pale, box) == []


def test_one_that_dials_the_same_address_is_told_of(pale):
    for box in ("one", "two"):
        pale.ok("create", box, "--network", "filtered")
    pale.ok("prove", "--full", "one")
    pale.py("one", DIAL + DIAL)
    assert wait_until(lambda: len(denials(pale, "one")) == 2)
    for d in denials(pale, "one"):
        assert (d["address"], d["port"], d.get("job", 2)) == (NOBODY, 9, d.get("job", 2))
    assert wait_until(lambda: pale.info("one")["network"]["refused"] == 2)
    assert [(h["refused"]) for h in pale.info("one")["network"]["hosts"]] == [2]
    assert pale.info("two")["network"]["refused"] == 0 and denials(pale, "two") == []


def test_a_running_command_is_not_blamed_for_a_proof(pale, api):
    pale.ok("create", "b", "--network", "filtered")
    pale.ok("exec", "--detach", "b", "--", "sleep", "60")
    pale.ok("prove", "--full", "b")
    assert denials(pale, "b") == []
    assert wait_until(lambda: api.good("GET", "/v1/boxes/b/network")["refused"] == 0)
