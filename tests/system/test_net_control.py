# SPDX-License-Identifier: Apache-2.0
"""What an operator sees of the network of boxes, and his hand on it: meters, net watch, net learn, quarantine, panic, policies that change live."""
import json
import os
import pathlib
import signal
import struct
import subprocess
import tempfile
import time

import harness
import pytest
import wire
from harness import wait_until
from internet import internet, places

POLICY = {"network": {"mode": "filtered", "egress": places.RULES}}
# Holds a connection, says so, and tells what became of it when a line comes.
HOLD = """
import socket, sys
s = socket.create_connection(("echo.test", 9999), timeout=20)
s.sendall(b"one\\n")
assert s.recv(100) == b"one\\n"
print("held", flush=True)
sys.stdin.readline()
try:
    s.sendall(b"two\\n")
    print("alive" if s.recv(100) == b"two\\n" else "ended", flush=True)
except OSError as e:
    print("cut", e, flush=True)
"""


class Field:
    def __init__(self, net, pale):
        self.net, self.pale, self.count = net, pale, 0
        self.policy = pale.root / "policy.json"
        self.policy.write_text(json.dumps(POLICY))
        pale.wrap = net.wrap

    def make(self, *flags, pale=None):
        self.count += 1
        (pale or self.pale).ok("create", f"n{self.count}", "--policy", self.policy, *flags)
        return f"n{self.count}"

    def get(self, box, url, pale=None):
        """Whether the box reaches it."""
        return (pale or self.pale).run("exec", "-q", box, "--", "curl", "-sS", "-m", "5", "-o", "/dev/null", url).code == 0

    def hold(self, box, pale=None):
        """A connection that is open."""
        p = (pale or self.pale).start("exec", "-q", "-i", box, "--", "python3", "-c", HOLD, stdin=subprocess.PIPE)
        assert p.stdout.readline() == b"held\n", p.stderr.read()
        return p

    def fate(self, p):
        p.stdin.write(b"go\n")
        p.stdin.flush()
        out, _ = p.communicate(timeout=20)
        return out.split()[0].decode()

    def records(self, box, *events):
        return [r for r in map(json.loads, self.pale.ok("audit", "--json", box).text.splitlines()) if not events or r["event"] in events]


@pytest.fixture(scope="module")
def field(session_root, pale_at):
    root = pathlib.Path(tempfile.mkdtemp(dir=session_root, prefix=""))
    try:
        with internet() as net, pale_at(root) as p:
            yield Field(net, p)
    finally:
        harness.remove_root(root)


@pytest.fixture
def box(field):
    b = field.make()
    yield b
    field.pale.run("panic", "--lift")
    field.pale.ok("rm", "-f", b)


# --- meters ---

def test_meters_count_connections_and_refusals_by_host(field, box):
    for _ in range(2):
        assert field.get(box, "http://good.test/")
    assert not field.get(box, "http://evil.test/")
    net = field.pale.json("inspect", "--json", box)["network"]
    hosts = {(h["host"], h["port"]): h for h in net["hosts"]}
    good = hosts["good.test", 80]
    assert good["connections"] == 2 and good["refused"] == 0 and good["bytes_in"] > 100 and good["bytes_out"] > 50
    assert hosts["evil.test", 53]["refused"] >= 1 and hosts["evil.test", 53]["connections"] == 0
    assert net["connections"] == 2 and net["refused"] >= 1 and net["bytes_in"] == sum(h["bytes_in"] for h in net["hosts"])
    text = field.pale.ok("inspect", box).text
    assert f"network   {net['open']} open, 2 in all" in text and "good.test" in text


def test_a_box_without_network_has_no_meters(field):
    field.pale.ok("create", "none")
    assert "network" not in field.pale.json("inspect", "--json", "none") and "\nnetwork   " not in field.pale.ok("inspect", "none").text.replace("network.", "")
    field.pale.ok("rm", "none")


def test_names_that_a_box_makes_up_are_shown_and_not_obeyed(field, box):
    """A name with an escape in it, asked for as it is."""
    evil = "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); n = b'\\x1b[31mred'; s.sendto(b'\\x12\\x34\\x01\\0\\0\\x01\\0\\0\\0\\0\\0\\0' + bytes([len(n)]) + n + b'\\x04test\\0\\0\\x01\\0\\x01', ('10.0.0.1', 53))"
    field.pale.ok("exec", "-q", box, "--", "python3", "-c", evil)
    for words in (["inspect", box], ["audit", box], ["net", "learn", box], ["inspect", "--json", box], ["net", "learn", "--json", box]):
        assert b"\x1b" not in field.pale.ok(*words).out, words


def test_a_gateway_that_was_taken_over_writes_what_it_likes_into_the_meters(field, box):
    """The page as it comes, from a process that is not ours any more: too many hosts, names without an end, escapes."""
    if not harness.REAL_ROOT:
        pytest.skip("only root writes into the gateway's memory")
    keeper = field.pale.json("inspect", "--json", box)["keeper_pid"]
    gateway = next(p for p in children(keeper) if b"pale-gateway" in cmdline(p))
    at = next(int(x.split("-")[0], 16) for x in open(f"/proc/{gateway}/maps") if "memfd:pale-meters" in x)
    row = (b"\x1b[31m" + b"e" * 249) + struct.pack("<H4Q", 443, *[2**64 - 1] * 4)
    with open(f"/proc/{gateway}/mem", "r+b", buffering=0) as mem:
        mem.seek(at)
        mem.write(struct.pack("<6QI4x", *[2**64 - 1] * 6, 0xffffffff) + row * 512)
    net = field.pale.json("inspect", "--json", box)["network"]
    assert len(net["hosts"]) == 512 and {h["host"] for h in net["hosts"]} == {"\\x1b[31m" + "e" * 249} and net["connections"] == 2**64 - 1
    for words in (["inspect", box], ["net", "learn", box]):
        assert b"\x1b" not in field.pale.ok(*words).out
    assert field.pale.json("inspect", "--json", box)["keeper_pid"] == keeper


# --- audit ---

def test_audit_shows_host_port_and_bytes(field, box):
    assert field.get(box, "http://good.test/") and not field.get(box, "http://evil.test/")
    assert wait_until(lambda: field.records(box, "net.end"))
    lines = field.pale.ok("audit", box).text.splitlines()
    allow = next(x for x in lines if "net.allow" in x)
    assert "good.test:80 at " in allow and "job 1" in allow and "network.egress good.test" in allow
    end = next(x for x in lines if "net.end" in x)
    assert "good.test:80" in end and "B in, " in end and "B out" in end
    deny = next(x for x in lines if "net.deny" in x and "evil.test" in x)
    assert "by name" in deny and "no rule allows" in deny


# --- net watch ---

def test_watch_tells_what_happens_in_lines(field, box):
    p = field.pale.start("net", "watch", box)
    q = field.pale.start("net", "watch", "--json", box)
    time.sleep(0.5)
    assert field.get(box, "http://good.test/") and not field.get(box, "http://evil.test/")
    assert wait_until(lambda: field.records(box, "net.end"))
    time.sleep(0.5)
    for w in (p, q):
        w.send_signal(signal.SIGTERM)
    text, told = p.communicate()[0].decode(), [json.loads(x) for x in q.communicate()[0].splitlines()]
    assert "net.allow" in text and "good.test:80" in text and "net.deny" in text and "net.end" in text
    assert told == [r for r in field.records(box) if r["event"].startswith("net.") and r["seq"] >= told[0]["seq"]] and told[0]["event"] == "net.allow"


def test_watch_paints_a_table_on_a_terminal(field, box):
    t = harness.Terminal([*field.pale.wrap, field.pale.program, "net", "watch", box], field.pale.env, rows=40, cols=120)
    assert field.get(box, "http://good.test/")
    t.expect(rb"HOST.*PORT.*REFUSED")
    t.expect(rb"good\.test +80 +1 ")
    t.expect(rb"net\.end +good\.test:80")
    t.send(b"\x03")
    t.wait()


# --- net learn ---

def learn(field, box):
    said = field.pale.json("net", "learn", "--json", box)
    return {r["domain"]: r for r in said["rules"]}, {x["what"]: x["why"] for x in said["left_out"]}


def test_learn_proposes_names_with_their_ports(field, box):
    assert field.get(box, "http://good.test/") and field.get(box, "http://other.test/")
    assert not field.get(box, "http://evil.test/")
    field.pale.run("exec", "-q", box, "--", "curl", "-s", "-m", "3", "http://203.0.113.77:8080/")
    field.pale.run("exec", "-q", box, "--", "curl", "-s", "-m", "3", "http://10.0.0.5/")
    rules, left = learn(field, box)
    assert set(rules) == {"good.test", "other.test", "evil.test"} and rules["good.test"]["ports"] == [80] and rules["good.test"]["rule"] == "good.test:80"
    assert rules["evil.test"]["port_is_a_guess"] and rules["evil.test"]["ports"] == [443] and rules["evil.test"]["refused"] and not rules["good.test"]["refused"]
    assert "203.0.113.77 port 8080" in left and "10.0.0.5 port 80" in left and "address" in left["10.0.0.5 port 80"]


def test_what_is_learned_is_a_policy(field, box):
    assert field.get(box, "http://good.test/") and not field.get(box, "http://evil.test/")
    (field.pale.root / "learned.yaml").write_bytes(field.pale.ok("net", "learn", box).out)
    assert "VALID" in field.pale.ok("validate", field.pale.root / "learned.yaml").text
    field.pale.ok("policy", "set", "--policy", field.pale.root / "learned.yaml", box)
    assert field.get(box, "http://good.test/") and not field.get(box, "http://other.test/")


def test_learn_makes_a_pattern_of_more_than_three_siblings_alone(field, box):
    for n in range(3):
        field.pale.run("exec", "-q", box, "--", "getent", "hosts", f"a{n}.few.test")
    for n in range(4):
        field.pale.run("exec", "-q", box, "--", "getent", "hosts", f"a{n}.many.test")
    rules, _ = learn(field, box)
    assert set(rules) == {"a0.few.test", "a1.few.test", "a2.few.test", "*.many.test"} and rules["*.many.test"]["stands_for"] == 4


def test_learn_leaves_out_what_a_rule_denies(field, box):
    assert not field.get(box, "http://blocked.ok.test/")
    field.pale.run("exec", "-q", box, "--", "curl", "-s", "-m", "3", "http://good.test:6667/")
    rules, left = learn(field, box)
    assert "good.test" not in rules and "a rule denies" in left["good.test port 6667"]


# --- quarantine ---

@pytest.mark.parametrize("side", ["held", "weak"])
def test_quarantine_cuts_what_is_open_and_refuses_the_rest(field, side):
    pale = field.pale
    if side == "weak":
        if not os.access(harness.WEAK / "pale", os.X_OK):
            pytest.skip(f"{harness.WEAK}/pale, the weakened build, is not built")
        pale = field.pale.weakened("gate-cut")
    b = field.make(pale=pale)
    p = field.hold(b, pale)
    pale.ok("quarantine", b)
    fate, reached = field.fate(p), field.get(b, "http://good.test/", pale)
    pale.ok("rm", b)
    assert (fate, reached) == (("cut", False) if side == "held" else ("alive", True))


def test_quarantine_lasts_until_it_is_lifted(field, box):
    mark = field.net.mark()
    field.pale.ok("quarantine", box)
    field.pale.ok("quarantine", box)
    for _ in range(2):
        assert not field.get(box, "http://good.test/")
        assert field.pale.json("inspect", "--json", box)["cut"] == "quarantine" and "quarantine" in field.pale.ok("inspect", box).text
        assert next(x for x in field.pale.json("ls", "--json") if x["name"] == box)["cut"] == "quarantine" and "(quarantine)" in field.pale.ok("ls").text
        field.pale.ok("stop", box)
    field.pale.ok("fork", box, "forked")
    assert not field.get("forked", "http://good.test/")
    field.pale.ok("rename", box, "renamed") and field.pale.ok("rename", "renamed", box)
    assert not field.get(box, "http://good.test/") and field.net.is_silent(mark)
    field.pale.ok("quarantine", "--lift", box)
    assert field.get(box, "http://good.test/") and not field.get("forked", "http://good.test/") and "cut" not in field.pale.json("inspect", "--json", box)
    field.pale.ok("rm", "forked")
    assert [(r["event"], r["by"], r["caller"]) for r in field.records(box, "net.cut", "net.lift")] == [("net.cut", "quarantine", "local"), ("net.lift", "quarantine", "local")]
    assert field.pale.ok("audit", "--verify", box)


def test_quarantine_of_a_stopped_box_is_in_its_audit(field):
    b = field.make("--no-start")
    field.pale.ok("quarantine", b)
    field.pale.ok("quarantine", "--lift", b)
    field.pale.ok("quarantine", b)
    assert [r["event"] for r in field.records(b, "net.cut", "net.lift")] == ["net.cut", "net.lift", "net.cut"]
    assert not field.get(b, "http://good.test/") and field.records(b, "box.start")[-1]["cut"] == "quarantine"
    field.pale.ok("rm", b)
    b2 = field.pale.ok("create", "--policy", field.policy, b)
    assert b2 and field.get(b, "http://good.test/"), "a new box of that name is another"
    field.pale.ok("rm", b)


def test_a_gateway_that_is_born_again_is_cut_off_too(field, box):
    field.pale.ok("quarantine", box)
    keeper = field.pale.json("inspect", "--json", box)["keeper_pid"]
    first = next(int(p) for p in children(keeper) if b"pale-gateway" in cmdline(p))
    os.kill(int(children(first)[0]), signal.SIGKILL)
    assert wait_until(lambda: field.records(box, "net.restarted"))
    time.sleep(0.5)
    mark = field.net.mark()
    assert not field.get(box, "http://good.test/") and field.net.is_silent(mark)


def children(pid):
    return open(f"/proc/{pid}/task/{pid}/children").read().split()


def cmdline(pid):
    return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()


def test_quarantine_says_what_it_cannot_do(field):
    r = field.pale.run("quarantine", "nobody")
    assert r.code == 125 and "nobody" in r.errors
    assert field.pale.run("quarantine").code == 125


# --- panic ---

def test_panic_cuts_every_box_there_is_and_will_be(field, box):
    stopped, kept = field.make("--no-start"), field.make()
    field.pale.ok("quarantine", kept)
    held = field.hold(box)
    once = field.pale.start("run", "-q", "-i", "--policy", field.policy, "--", "python3", "-c", HOLD, stdin=subprocess.PIPE)
    assert once.stdout.readline() == b"held\n"
    told = field.pale.json("panic", "--json")
    assert told["cut"] and told["once"] >= 1 and told["live"] >= 2 and told["stopped"] >= 1 and told["failed"] == 0
    assert field.fate(held) == "cut" and field.fate(once) == "cut"
    new = field.make()
    mark = field.net.mark()
    for b in (box, stopped, kept, new):
        assert not field.get(b, "http://good.test/")
    assert field.pale.run("run", "-q", "--policy", field.policy, "--", "curl", "-sS", "-m", "3", "http://good.test/").code != 0
    assert field.net.is_silent(mark)
    assert all("panic" in x["cut"] for x in field.pale.json("ls", "--json"))
    again = field.pale.ok("panic").text
    assert "cut off from every network" in again
    assert "hold again" in field.pale.ok("panic", "--lift").text
    assert field.get(box, "http://good.test/") and field.get(stopped, "http://good.test/") and not field.get(kept, "http://good.test/")
    for b in (box, stopped):
        assert [(r["event"], r["by"]) for r in field.records(b, "net.cut", "net.lift")] in ([("net.cut", "panic"), ("net.lift", "panic")],)
    assert field.records(kept, "net.lift")[-1]["still"] == "quarantine"
    for b in (stopped, kept, new):
        field.pale.ok("rm", b)


# --- a policy that changes ---

def test_a_quota_counts_what_is_open_when_other_rules_come(field):
    box = field.make()
    field.pale.ok("policy", "set", box, "network.egress=echo.test:9999+conns=1")
    held = field.hold(box)
    field.pale.ok("policy", "set", box, "network.egress=aaa.test=deny")  # before it in the list
    second = field.pale.start("exec", "-q", "-i", box, "--", "python3", "-c", HOLD, stdin=subprocess.PIPE)
    assert second.stdout.readline() != b"held\n", "one too many"
    second.wait(20)
    assert field.fate(held) == "alive"
    assert field.fate(field.hold(box)) == "alive", "the first counts although it has ended"
    field.pale.ok("rm", "-f", box)


def test_a_deny_cuts_what_is_open_and_nothing_else(field, box):
    p, other = field.hold(box), field.pale.start("exec", "-q", "-i", box, "--", "python3", "-c", HOLD, stdin=subprocess.PIPE)
    assert other.stdout.readline() == b"held\n"
    said = field.pale.ok("policy", "set", box, "network.egress=good.test=deny").text
    assert "network.egress: + good.test=deny (narrower)" in said
    assert not field.get(box, "http://good.test/") and field.fate(other) == "alive"
    field.pale.ok("policy", "set", box, "network.egress=echo.test=deny")
    assert field.fate(p) == "cut"
    records = field.records(box, "policy.narrow", "policy.change")
    assert [r["event"] for r in records] == ["policy.narrow"] * 2 and records[0]["policy_digest"] == records[1]["was"]
    assert records[1]["changes"] == [{"key": "network.egress", "to": "echo.test=deny", "effect": "narrower"}] and records[1]["caller"] == "local"
    first = next(r["seq"] for r in field.records(box, "net.deny") if r.get("host") == "echo.test")
    assert records[1]["seq"] < first, "the record stands before the effect"


def test_an_allow_holds_at_once_and_after_a_restart(field, box):
    assert not field.get(box, "http://evil.test/")
    told = field.pale.json("policy", "set", "--json", box, "network.egress=evil.test:80")
    assert told["changes"] == [{"key": "network.egress", "to": "evil.test:80", "effect": "wider"}]
    assert field.get(box, "http://evil.test/") and field.records(box, "policy.change")
    assert field.pale.json("inspect", "--json", box)["policy_digest"] == told["policy_digest"]
    field.pale.ok("stop", box)
    assert field.get(box, "http://evil.test/")


def test_the_network_can_be_shut_and_opened(field, box):
    (field.pale.root / "none.yaml").write_text("network: none\n")
    field.pale.ok("policy", "set", box, "--policy", field.pale.root / "none.yaml")
    mark = field.net.mark()
    assert not field.get(box, "http://good.test/") and field.net.is_silent(mark)
    field.pale.ok("policy", "set", box, "--policy", field.policy)
    assert field.get(box, "http://good.test/")


def test_what_a_wall_was_built_with_needs_a_stopped_box(field, box):
    before = field.pale.ok("policy", "show", box).text
    for words in (["limits.memory=1G"], ["network.egress=x.test", "read=/usr/share/doc"], ["env.set=A=b"], ["network=host"]):
        r = field.pale.run("policy", "set", box, *words)
        assert r.code == 125, (words, r)
    assert "limits.memory" in field.pale.run("policy", "set", box, "limits.memory=1G").errors and "pale stop" in field.pale.run("policy", "set", box, "limits.memory=1G").errors
    assert field.pale.ok("policy", "show", box).text == before and not list((field.pale.root / "state").rglob("policy.next"))
    field.pale.ok("stop", box)
    assert "limits.memory" in field.pale.ok("policy", "set", box, "limits.memory=1G").text
    assert field.pale.json("policy", "show", "--json", box)["limits"]["memory"]["value"] == 1 << 30 and field.records(box)[-1]["event"] == "policy.narrow"


def test_the_hosts_network_is_asked_for_twice(field):
    b = field.make("--no-start")
    (field.pale.root / "host.yaml").write_text("network: host\n")
    r = field.pale.run("policy", "set", b, "--policy", field.pale.root / "host.yaml")
    assert r.code == 125 and "--yes-host-network" in r.errors
    field.pale.ok("policy", "set", b, "--policy", field.pale.root / "host.yaml", "--yes-host-network")
    field.pale.ok("policy", "set", b, "limits.wall=1h")
    field.pale.ok("exec", "-q", b, "--", "true")
    r = field.pale.run("quarantine", b)
    assert r.code == 125 and "pale stop" in r.errors, "what cannot be cut is said"
    field.pale.ok("stop", b)
    r = field.pale.run("exec", "-q", b, "--", "true")
    assert r.code == 125 and "cut off" in r.errors
    field.pale.ok("quarantine", "--lift", b)
    field.pale.ok("exec", "-q", b, "--", "true")
    field.pale.ok("rm", b)


def test_a_box_without_network_gets_one_between_two_starts(field):
    field.pale.ok("create", "dry")
    r = field.pale.run("policy", "set", "dry", "--policy", field.policy)
    assert r.code == 125 and "network." in r.errors and "stop" in r.errors
    field.pale.ok("stop", "dry")
    field.pale.ok("policy", "set", "dry", "--policy", field.policy)
    assert field.get("dry", "http://good.test/")
    field.pale.ok("rm", "dry")


@pytest.mark.parametrize("words,says", [(["b", "limits.memry=1G"], "did you mean"), (["b", "novalue"], "KEY=VALUE"), (["b"], "KEY=VALUE"), (["nobody", "network=none"], "nobody"),
                                        (["b", "network.egress=a b"], "network.egress"), (["b", "--policy", "/none.yaml"], "/none.yaml")])
def test_policy_set_refuses_what_it_cannot_read(field, words, says):
    field.pale.run("create", "--no-start", "b")
    r = field.pale.run("policy", "set", *words)
    assert r.code == 125 and says in r.errors, r
    field.pale.ok("rm", "b")


# --- through the daemon ---

@pytest.fixture
def api(field, daemon_of):
    with daemon_of(field.pale) as d:
        yield d.serve().rest


def test_the_daemon_shows_and_cuts(field, box, api):
    assert field.get(box, "http://good.test/")
    hosts = {(h["host"], h["port"]): h for h in api.good("GET", f"/v1/boxes/{box}/network")["hosts"]}
    assert hosts["good.test", 80]["connections"] == 1
    assert wait_until(lambda: api.good("GET", f"/v1/boxes/{box}")["network"]["connections"] == 1, seconds=10)
    ident = field.pale.box_id(box)
    metrics = api.get("/v1/metrics").body.decode()
    assert f'pale_box_connections_total{{box="{ident}",name="{box}",tenant=""}} 1\n' in metrics and "pale_box_network_in_bytes_total{" in metrics
    p = field.hold(box)
    assert api.good("PUT", f"/v1/boxes/{box}/quarantine")["cut"] == "quarantine"
    assert field.fate(p) == "cut" and next(x for x in api.good("GET", "/v1/boxes")["items"] if x["name"] == box)["cut"] == "quarantine"
    assert field.records(box, "net.cut")[-1]["caller"] == "operator"
    assert "cut" not in api.good("DELETE", f"/v1/boxes/{box}/quarantine")
    told = api.good("PUT", "/v1/panic")
    assert told["cut"] and told["live"] >= 1 and not field.get(box, "http://good.test/")
    assert not api.good("DELETE", "/v1/panic")["cut"] and field.get(box, "http://good.test/")
    api.good("PUT", f"/v1/boxes/{box}/policy", {"set": {"network.egress": "good.test=deny"}})
    assert not field.get(box, "http://good.test/")
    api.bad("PUT", f"/v1/boxes/{box}/policy", {"set": {"limits.memory": "1G"}}, 409, "conflict")


def test_who_may_only_speak_to_a_keeper_cannot_lift(field, box):
    """The wire leads to the keeper itself: what it takes from there is no order."""
    field.pale.ok("quarantine", box)
    link = wire.Keeper(field.pale.root / "run" / "pale" / f"{field.pale.box_id(box)}.sock")
    assert link.ask("ASK_RELOAD", b"\0").next()[0] == "TELL_DONE"
    link.close()
    assert not field.get(box, "http://good.test/")
