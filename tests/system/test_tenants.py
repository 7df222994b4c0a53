# SPDX-License-Identifier: Apache-2.0
"""Who may do what to whose box: every operation of the OpenAPI file, by every kind of caller, on his own box, a foreign one and one that is
not there. What is expected is computed from the file (x-pale-right, x-pale-operators-only); a foreign box and an unknown one must not be
told apart."""
import http.client
import re
import statistics
import time

import pytest

from harness import wait_until
from operations import ENDLESS, GOOD, MAKES, Scene, operations
from rest import Rest, Wire, check_problem, query

UNKNOWN = "0123456789abcdef"
pytestmark = [pytest.mark.limit(240), pytest.mark.once]


class World:
    def __init__(self, daemon, port, project):
        self.api, self.port = daemon.rest, port
        config = daemon.pale.home / ".config" / "pale"
        config.mkdir(parents=True)
        # Where a tenant may land, and whom his boxes may ask about.
        (config / "tenant.yaml").write_text(f"project: {{mode: live, path: {project}}}\nnetwork: {{mode: filtered, egress: [\"ask.test=ask\"]}}\n")
        self.ops = {o.name: o for o in operations(self.api.good("GET", "/openapi.json"))}
        self.rights = {o.right for o in self.ops.values()} - {"none"}
        self.operator_rights = {o.right for o in self.ops.values() if o.operators_only}
        self.mine = Scene(self.api, "scene", tenant="one", project=project)      # of tenant one
        self.theirs = Scene(self.api, "scene", tenant="two", project=project)    # of tenant two, by the same name
        self.tokens = {
            "operator": self.token(),
            "owner": self.token(scope="tenant", tenant="one"),
            "other": self.token(scope="tenant", tenant="two"),
            "other box": self.token(scope="box", box=self.theirs.box),
        }
        gone, old = self.api.token_for(), self.api.token_for(ttl="50ms")
        self.tokens |= {"revoked": gone["token"], "expired": old["token"], "garbage": "x" * len(gone["token"]), "none": None}
        self.api.delete(f"/v1/tokens/{gone['id']}")
        time.sleep(0.1)

    def token(self, **fields):
        return self.api.token_for(**fields)["token"]

    def token_of(self, caller, op, r):
        """Most are good for all; some are made for the request."""
        if caller == "box":
            return self.token(scope="box", box=r.params.get("box", self.mine.box) if op.name not in MAKES else self.mine.box)
        if caller == "lacks":
            if op.operators_only:
                return self.token(rights=sorted(self.rights - {op.right}))
            return self.token(scope="tenant", tenant="one", rights=sorted(self.rights - self.operator_rights - {op.right}))
        return self.tokens[caller]

    def may(self, caller, op):
        """None, or the status of the refusal that has nothing to do with which box it is."""
        if caller in ("none", "garbage", "expired", "revoked"):
            return 401
        if op.operators_only and caller not in ("operator", "lacks"):
            return 403
        if caller == "lacks" and op.right != "none":
            return 403
        if caller in ("box", "other box") and op.right in ("box.make", "box.remove", "wire", "review", "image.read"):
            return 403
        return None

    def ask(self, token, r):
        headers = [("Authorization", f"Bearer {token}")] if token is not None else []
        with Wire(self.port, 40) as w:
            w.send(r.bytes(host=f"127.0.0.1:{self.port}", headers=headers))
            if r.op.name in ENDLESS:
                while b"\r\n\r\n" not in w.rest and w.more():
                    pass
                if w.rest.startswith(f"HTTP/1.1 {r.op.status} ".encode()):
                    return r.op.status, None, None
            a = w.answer()
        assert a, r
        if a.status >= 400:
            check_problem(a)
        return a.status, a.headers, a.body


@pytest.fixture(scope="module")
def world(shared_daemon, project_dir):
    return World(*shared_daemon, project_dir)


CALLERS = ["none", "garbage", "expired", "revoked", "operator", "owner", "other", "box", "other box", "lacks"]
SEES = {"operator", "owner", "box", "lacks"}  # the box of tenant one


@pytest.mark.parametrize("name", sorted(GOOD))
def test_every_caller_on_every_box(world, name):
    op = world.ops[name]
    for caller in CALLERS:
        good = GOOD[name](op, world.mine)
        token, refusal = world.token_of(caller, op, good), world.may(caller, op)
        told = world.ask(token, good)
        has_box = "box" in op.params and name not in MAKES
        want = refusal or (404 if has_box and caller not in SEES else op.status)
        if name in ("box.freeze", "box.thaw") and want == 200 and told[0] == 501:
            want = 501  # nothing on this host can freeze a box
        if name == "image.inspect" and caller in ("owner", "other"):
            want = 404  # not the one that a tenant's boxes may be on
        assert told[0] == want, (caller, good, want, told)
        if not has_box or caller == "operator":
            continue
        # A box of somebody else, and none at all.
        foreign = world.mine.box if caller in ("other", "other box") else world.theirs.box
        answers = [world.ask(token, good.but(params={**good.params, "box": box})) for box in (foreign, UNKNOWN, "no-such-name")]
        assert answers[0] == answers[1] == answers[2], (caller, answers)
        assert answers[0][0] == (refusal or 404), (caller, answers[0])


def test_an_operator_finds_a_box_that_is_not_there_no_more_than_others(world):
    for name in sorted(n for n, op in world.ops.items() if "box" in op.params and n not in MAKES):
        r = GOOD[name](world.ops[name], world.mine)
        assert world.ask(world.tokens["operator"], r.but(params={**r.params, "box": UNKNOWN}))[0] == 404, name


def test_lists_and_counts_show_what_the_caller_sees(world):
    def seen(caller, **fields):
        token = world.tokens.get(caller) or world.token(scope="box", box=world.mine.box)
        return {b["id"] for b in Rest(world.port, token).good("GET", query("/v1/boxes", **fields))["items"]}
    assert world.mine.box in seen("owner") and world.theirs.box not in seen("owner")
    assert world.theirs.box in seen("other") and world.mine.box not in seen("other")
    assert seen("box") == {world.mine.box} and seen("other box") == {world.theirs.box}
    assert {world.mine.box, world.theirs.box} <= seen("operator")
    assert world.theirs.box in seen("operator", tenant="two")
    assert seen("owner", tenant="one") == seen("owner")
    for caller in ("owner", "other", "other box"):
        told = Rest(world.port, world.tokens[caller]).good("GET", "/v1/health")
        assert told["boxes"] == len(seen(caller)) and "pid" not in told and "live" not in told
    for b in Rest(world.port, world.tokens["owner"]).good("GET", "/v1/boxes")["items"]:
        assert "tenant" not in b


def test_a_tenant_names_no_tenant_but_himself(world):
    me = Rest(world.port, world.tokens["owner"])
    for other in ("two", "nobody", ""):
        for method, path, body in (("GET", query("/v1/boxes", tenant=other), None), ("POST", "/v1/boxes", {"name": "t", "tenant": other}),
                                   ("PUT", "/v1/boxes/t", {"tenant": other}), ("POST", query("/v1/boxes/t/import", tenant=other), None)):
            p = me.bad(method, path, body, 403, "denied")
            assert "one" in p["detail"] and "operator" in p["detail"], p
    me.bad("GET", "/v1/boxes/t", status=404)
    made = me.good("PUT", "/v1/boxes/t", {"tenant": "one", "start": False}, 200)
    assert me.delete(f"/v1/boxes/{made['id']}").status == 204
    token = world.token(scope="box", box=world.mine.box)
    Rest(world.port, token).bad("GET", query("/v1/boxes", tenant="two"), None, 403, "denied")


def test_a_name_is_the_callers_own(world):
    """Both tenants have a box named scene."""
    for caller, scene in (("owner", world.mine), ("other", world.theirs)):
        assert Rest(world.port, world.tokens[caller]).good("GET", "/v1/boxes/scene")["id"] == scene.box
    assert Rest(world.port, world.tokens["operator"]).get("/v1/boxes/scene").status == 404, "an operator's own boxes have no such name"


def test_a_tenant_makes_boxes_for_himself_alone(world):
    one, two = (Rest(world.port, world.tokens[c], seen=world.api.seen) for c in ("owner", "other"))
    a = one.post("/v1/boxes", {"name": "gift", "tenant": "two", "start": False})
    assert a.status in (201, 400, 403), a
    assert two.get("/v1/boxes/gift").status == 404
    made = one.good("POST", "/v1/boxes", {"name": "keyed", "start": False}, headers={"Idempotency-Key": "same"})
    other = two.good("POST", "/v1/boxes", {"name": "other", "start": False}, headers={"Idempotency-Key": "same"})
    assert made["id"] != other["id"]
    made = [t.good("PUT", "/v1/boxes/ensured", {"start": False})["id"] for t in (one, two)]
    assert made[0] != made[1]


def test_events_of_a_foreign_box_do_not_come(world):
    s = Rest(world.port, world.tokens["owner"]).stream("GET", query("/v1/events", box=world.theirs.box))
    t = Rest(world.port, world.tokens["owner"]).stream("GET", "/v1/events")
    world.api.out(world.theirs.box, "true")
    world.api.out(world.mine.box, "true")
    assert {e["box"] for e in t.until("job.ended")} == {world.mine.box}
    s.connection.sock.settimeout(0.3)
    with pytest.raises(TimeoutError):
        print(s.response.read1(100))
    s.close()
    t.close()


def test_a_token_dies_with_its_box(world):
    box = world.mine.spare()
    token = world.token(scope="box", box=box)
    assert Rest(world.port, token).get(f"/v1/boxes/{box}").status == 200
    world.api.delete(f"/v1/boxes/{box}")
    assert Rest(world.port, token).get(f"/v1/boxes/{box}").status in (401, 404)


def test_a_token_does_not_reach_the_next_box_of_the_name(world):
    first = world.api.make("again", start=False)["id"]
    token = world.token(scope="box", box=first)
    world.api.delete(f"/v1/boxes/{first}")
    second = world.api.make("again", start=False)["id"]
    assert second != first
    for box in (first, second, "again"):
        assert Rest(world.port, token).get(f"/v1/boxes/{box}").status in (401, 404)


def test_what_a_revoked_token_has_open_ends(world):
    made = world.api.token_for(scope="operator")
    stream = Rest(world.port, made["token"]).stream("GET", "/v1/events", accept="text/event-stream")
    world.api.delete(f"/v1/tokens/{made['id']}")
    with pytest.raises((OSError, http.client.HTTPException)):
        for _ in stream.lines():
            pass
        raise http.client.HTTPException("it ended")


def test_a_token_ends_by_itself_and_none_that_it_makes_outlives_it(world):
    now = time.time()
    assert 6 * 86400 < world.api.token_for(scope="operator")["expires"] - now < 8 * 86400
    short = world.api.token_for(scope="operator", ttl="1h")
    child = Rest(world.port, short["token"]).token_for(scope="operator", ttl="10h")
    assert child["expires"] <= short["expires"]
    world.api.bad("POST", "/v1/tokens", {"scope": "operator", "ttl": "400d"}, status=400)
    world.api.bad("POST", "/v1/tokens", {"scope": "operator", "ttl": 0}, status=400)


def test_a_revoked_token_is_good_for_nothing(world):
    made = world.api.token_for(scope="tenant", tenant="one")
    one = Rest(world.port, made["token"])
    assert one.get("/v1/boxes").status == 200
    world.api.delete(f"/v1/tokens/{made['id']}")
    assert one.get("/v1/boxes").status == 401


@pytest.mark.parametrize("name", ["box.inspect", "exec", "file.read", "policy.show", "job.list"])
def test_a_foreign_box_answers_in_the_time_of_none(world, name):
    """A ratio of medians in one run; only gross differences fail."""
    r = GOOD[name](world.ops[name], world.mine)
    token = world.tokens["owner"]
    times = {world.theirs.box: [], UNKNOWN: []}
    for _ in range(150):
        for box, found in times.items():
            began = time.perf_counter()
            assert world.ask(token, r.but(params={**r.params, "box": box}))[0] == 404
            found.append(time.perf_counter() - began)
    foreign, unknown = map(statistics.median, times.values())
    print(f"{name}: foreign {foreign * 1e6:.0f} us, unknown {unknown * 1e6:.0f} us, ratio {foreign / unknown:.2f}")
    assert 1 / 5 < foreign / unknown < 5


# --- what is left of a refusal ---


def test_refusals_stand_in_the_log(idle_daemon):
    daemon = idle_daemon
    port = daemon.on_port()
    api = daemon.rest
    box = api.make("b", start=False)["id"]

    def lines(*words):
        return [line for line in daemon.text_of_log().splitlines() if " refused " in line and all(w in line for w in words)]

    def token(**fields):
        t = api.good("POST", "/v1/tokens", fields, 201)
        return t["id"], t["token"]

    Rest(port).bad("GET", "/v1/boxes", status=401)
    assert len(lines("box.list", "without a token", "this needs a token")) == 1
    Rest(port, "pale_" + "0" * 64).bad("GET", "/v1/no/such/path", status=401)
    assert len(lines("a path that is none", "without a token", "unknown")) == 1
    handle, text = token(rights=["box.read"])
    Rest(port, text).bad("POST", f"/v1/boxes/{box}/exec", {"command": "true"}, 403)
    assert len(lines(f"exec for token {handle}", "no right")) == 1
    assert api.delete(f"/v1/tokens/{handle}").status == 204
    Rest(port, text).bad("GET", "/v1/boxes", status=401)
    assert len(lines(f"box.list for token {handle}", "revoked")) == 1
    handle, text = token(scope="tenant", tenant="one")
    Rest(port, text).bad("GET", f"/v1/boxes/{box}", status=404)
    assert len(lines(f"box.inspect for token {handle}", "no such box")) == 1
    Rest(port, text).bad("GET", "/v1/boxes?tenant=two", status=403)
    assert len(lines(f"box.list for token {handle}", "only an operator")) == 1
    assert text not in daemon.text_of_log()
    # The operator's own mistakes are no refusals, nor is what a box says of its files.
    before = len(lines())
    api.bad("GET", "/v1/boxes/none", status=404)
    api.bad("PUT", f"/v1/boxes/{box}/files?path=/usr/x", body=b"", status=403)
    assert len(lines()) == before


def test_refusals_do_not_fill_the_log(idle_daemon):
    daemon = idle_daemon
    port = daemon.on_port()
    size = len(daemon.text_of_log())
    for _ in range(300):
        Rest(port).bad("GET", "/v1/boxes", status=401)
    written = daemon.text_of_log()[size:]
    assert 0 < written.count(" refused ") < 60, written
    wait_until(lambda: "more were refused" in daemon.text_of_log(), 15)
    more = sum(int(n) for n in re.findall(r"(\d+) more were refused", daemon.text_of_log()))
    assert daemon.text_of_log().count(" refused box.list") + more == 300
