# SPDX-License-Identifier: Apache-2.0
"""Snapshots, going back and forks over REST: what they do, who may, and that nobody else is disturbed by them."""
import threading
import time

import pytest

from harness import wait_until
from rest import Rest, data_of, output_of

pytestmark = pytest.mark.once


def take(api, box, name=None, **more):
    return api.good("POST", f"/v1/boxes/{box}/snapshots", {"name": name} if name else {}, 201, **more)


def listed(api, box):
    return {s["name"]: s for s in api.good("GET", f"/v1/boxes/{box}/snapshots", status=200)["items"]}


def restore(api, box, snapshot, **more):
    return api.good("POST", f"/v1/boxes/{box}/restore", {"snapshot": snapshot, **more}, 200)


def heard(api, begun):
    """Events since then, of all boxes."""
    s = api.stream("GET", f"/v1/events?since={begun}", accept="text/event-stream")
    last = api.make(f"mark-{time.monotonic_ns()}", start=False)["id"]
    found = []
    for _, _, data in s.events():
        if data.get("box") == last:
            break
        found.append(data)
    s.close()
    api.delete(f"/v1/boxes/{last}")
    return found


def now(api):
    """The number of the newest event."""
    s = api.stream("GET", "/v1/events", accept="text/event-stream")
    box = api.make(f"mark-{time.monotonic_ns()}", start=False)["id"]
    for number, _, data in s.events():
        if data.get("box") == box:
            break
    s.close()
    api.delete(f"/v1/boxes/{box}")
    return number


@pytest.mark.basic
def test_back_and_forth(api, pale):
    api.make("b")
    api.out("b", "echo one > ~/f")
    taken = take(api, "b", "one")
    assert taken["snapshot"] == "one" and taken["changed"] and 0 < taken["pause_us"] < 5_000_000
    api.out("b", "echo two > ~/f")
    assert take(api, "b")["snapshot"] == "snap-1"
    api.out("b", "echo three > ~/f")
    back = restore(api, "b", "one")
    assert back["restored"] == "one" and back["kept"].startswith("auto-") and api.out("b", "cat ~/f") == "one\n"
    assert list(listed(api, "b").values()) == pale.json("snapshots", "--json", "b")
    assert [n for n, s in listed(api, "b").items() if s["current"]] == ["one"]
    restore(api, "b", back["kept"])
    assert api.out("b", "cat ~/f") == "three\n"
    api.good("DELETE", "/v1/boxes/b/snapshots/snap-1", status=204)
    assert set(listed(api, "b")) >= {"one", back["kept"]} and "snap-1" not in listed(api, "b")
    records = api.get("/v1/boxes/b/audit").lines()
    assert [r["caller"] for r in records if r["event"] in ("box.snapshot", "box.restore", "snapshot.remove")] == ["operator"] * 5


def test_what_cannot_be_done_is_told(api):
    api.make("b")
    api.out("b", "echo one > ~/f")
    take(api, "b", "one")
    api.bad("POST", "/v1/boxes/b/snapshots", {"name": "one"}, 409, "exists")
    for name in ("-x", "a b", "..", "x" * 64, "a/b", "ä"):
        api.bad("POST", "/v1/boxes/b/snapshots", {"name": name}, 400, "bad-input")
    for name in ("two", "", "../one", "x" * 63):
        assert api.post("/v1/boxes/b/restore", {"snapshot": name}).status in (400, 404)
        assert api.delete(f"/v1/boxes/b/snapshots/{name.replace('/', '%2f')}").status in (404, 405, 400)
    api.bad("DELETE", "/v1/boxes/b/snapshots/" + "x" * 200, None, 404, "not-found")
    job = api.start("b", ["sleep", "1000"])
    api.out("b", "echo two > ~/f")
    api.bad("POST", "/v1/boxes/b/restore", {"snapshot": "one"}, 429, "busy")
    assert api.good("GET", f"/v1/boxes/b/jobs/{job}")["state"] == "running" and api.out("b", "cat ~/f") == "two\n"
    restore(api, "b", "one", force=True)
    assert api.out("b", "cat ~/f") == "one\n"
    api.make("m", set={"scratch": "memory"})
    api.bad("POST", "/v1/boxes/m/snapshots", {}, 501, "unsupported")
    assert listed(api, "m") == {} and api.out("m", "echo still there") == "still there\n"


def test_asking_twice_takes_one(api):
    api.make("b")
    api.out("b", "echo one > ~/f")
    first = take(api, "b", headers={"Idempotency-Key": "k1"})
    api.out("b", "echo two > ~/f")
    assert take(api, "b", headers={"Idempotency-Key": "k1"})["snapshot"] == first["snapshot"] and len(listed(api, "b")) == 1
    restore(api, "b", first["snapshot"])
    assert api.out("b", "cat ~/f") == "one\n"
    assert take(api, "b", headers={"Idempotency-Key": "k2"})["snapshot"] != first["snapshot"]


def test_a_stopped_box_stays_stopped(api):
    api.make("b")
    api.out("b", "echo one > ~/f")
    api.good("POST", "/v1/boxes/b/stop")
    assert [s["kind"] for s in listed(api, "b").values()] == ["automatic"]
    taken = take(api, "b", "one")
    assert taken["pause_us"] == 0
    restore(api, "b", "one")
    assert api.good("GET", "/v1/boxes/b")["state"] == "stopped" and api.out("b", "cat ~/f") == "one\n"


def test_autosave_can_be_left_out(api):
    api.make("b", autosave=False)
    api.out("b", "echo one > ~/f")
    api.good("POST", "/v1/boxes/b/stop")
    assert listed(api, "b") == {}
    api.bad("POST", "/v1/boxes", {"name": "b", "ensure": True}, 409, "exists")  # not what was asked for
    api.good("POST", "/v1/boxes", {"name": "b", "ensure": True, "autosave": False}, 201)


def test_forks(api, pale):
    api.make("b", ttl="2h")
    api.out("b", "echo one > ~/f")
    take(api, "b", "one")
    api.out("b", "echo two > ~/f")
    one = api.good("POST", "/v1/boxes/b/fork", {"name": "one", "at": "one"}, 201)["items"]
    many = api.good("POST", "/v1/boxes/b/fork", {"name": "many", "count": 5}, 201)["items"]
    assert [f["name"] for f in one] == ["one"] and [f["name"] for f in many] == [f"many-{i}" for i in range(1, 6)]
    assert all(f["state"] == "stopped" and f["scope"] == "user" and "expires" not in f for f in one + many)
    assert api.out("one", "cat ~/f") == "one\n" and api.out("many-3", "cat ~/f; hostname") == "two\nmany-3\n"
    assert len({f["id"] for f in one + many} | {api.good("GET", "/v1/boxes/b")["id"]}) == 7
    api.bad("POST", "/v1/boxes/b/fork", {"name": "many", "count": 6}, 409, "exists")
    assert "many-6" not in [b["name"] for b in api.good("GET", "/v1/boxes")["items"]]
    for body, code in (({"name": "X"}, "bad-input"), ({"name": "n", "count": 0}, "bad-input"), ({"name": "n", "count": 1001}, "bad-input"), ({}, "bad-input"),
                       ({"name": "x" * 63, "count": 2}, "bad-input"), ({"name": "n", "at": "none"}, "not-found")):
        api.bad("POST", "/v1/boxes/b/fork", body, code=code)
    api.good("DELETE", "/v1/boxes/b", status=204)
    assert api.out("many-1", "cat ~/f") == "two\n"
    assert api.good("POST", "/v1/gc", status=200)["boxes"] == 6
    assert api.out("one", "cat ~/f") == "one\n"


def test_a_tenants_forks_are_his(api, shared_daemon):
    daemon, port = shared_daemon
    operator = daemon.rest
    me = Rest(port, operator.token_for(scope="tenant", tenant="one")["token"], seen=operator.seen)
    other = Rest(port, operator.token_for(scope="tenant", tenant="two")["token"], seen=operator.seen)
    box = me.make("b")["id"]
    me.out("b", "echo one > ~/f")
    fork = me.good("POST", "/v1/boxes/b/fork", {"name": "f"}, 201)["items"][0]
    assert fork["scope"] == "tenant" and me.out("f", "cat ~/f") == "one\n"
    assert operator.good("GET", f"/v1/boxes/{fork['id']}")["tenant"] == "one"
    for path, body in ((f"/v1/boxes/{box}/fork", {"name": "mine"}), (f"/v1/boxes/{box}/snapshots", {}), (f"/v1/boxes/{box}/restore", {"snapshot": "x"})):
        other.bad("POST", path, body, 404, "not-found")
    other.bad("GET", f"/v1/boxes/{box}/snapshots", None, 404, "not-found")
    for m, path in (("POST", "/v1/gc"), ):
        me.bad(m, path, None, 403, "denied")
    inside = Rest(port, operator.token_for(scope="box", tenant="one", box="b")["token"], seen=operator.seen)
    inside.bad("POST", f"/v1/boxes/{box}/fork", {"name": "g"}, 403, "denied")
    me.out("b", "echo two > ~/f")
    assert inside.good("POST", f"/v1/boxes/{box}/snapshots", {"name": "s"}, 201)["snapshot"] == "s"
    inside.bad("DELETE", f"/v1/boxes/{box}/snapshots/s", None, 403, "denied")  # the past is not for who is inside to take away
    me.good("DELETE", f"/v1/boxes/{box}/snapshots/s", status=204)


def test_events(api):
    api.make("b")
    api.out("b", "echo one > ~/f")
    begun = now(api)
    take(api, "b", "one")
    api.out("b", "echo two > ~/f")
    restore(api, "b", "one")
    api.good("POST", "/v1/boxes/b/fork", {"name": "f", "count": 2}, 201)
    api.good("DELETE", "/v1/boxes/b/snapshots/one", status=204)
    api.out("b", "true")
    box = api.good("GET", "/v1/boxes/b")["id"]
    found = [e for e in heard(api, begun) if e["box"] == box and not e["event"].startswith("job.")]
    # The keeper was exchanged two times, and nobody heard of it.
    assert [e["event"] for e in found] == ["snapshot.taken", "box.restored", "box.forked", "snapshot.removed"], found
    assert all(e["name"] == "b" and e["caller"] == "operator" for e in found)
    assert [e.get("snapshot") for e in found] == ["one", "one", None, "one"] and found[2]["to"] == "f" and found[2]["count"] == 2


def test_a_box_that_does_not_come_back_is_told_to_be_down(api, pale):
    """What was not told while it was changed is told once it is known."""
    b = api.make("b")
    api.out("b", "echo one > ~/f")
    take(api, "b", "one")
    api.good("POST", "/v1/boxes/b/stop")
    begun = now(api)
    take(api, "b", "two")
    api.out("b", "true")
    found = [e["event"] for e in heard(api, begun) if e["box"] == b["id"]]
    assert [e for e in found if not e.startswith("job.")] == ["snapshot.taken", "box.up"]


@pytest.mark.limit(180)
def test_commands_go_on_while_snapshots_are_taken(api, daemon):
    """Eight clients run commands, others look at commands that have ended; no request of theirs fails, and none is done twice."""
    api.make("b")
    begun, until, trouble, done, looks, taken = now(api), time.monotonic() + 30, [], [], [], []

    def guarded(fn):
        def run():
            try:
                while time.monotonic() < until and (sum(taken) < 45 or len(done) <= 200 or len(looks) <= 20):
                    fn()
            except Exception as e:  # told at the end
                trouble.append(e)
        return run

    def work():
        n = len(done)
        done.append(n)
        a = api.exec("b", f"echo {n}; echo x >> ~/log-{n % 8}")
        assert a["exit"] == 0 and data_of(a["stdout"]) == b"%d\n" % n, a
        time.sleep(0.02 * (n % 5))

    def look():
        ended = api.exec("b", "echo ended")["job"]
        assert api.good("GET", f"/v1/boxes/b/jobs/{ended}")["state"] == "ended"
        assert output_of(api.logs("b", ended, follow=True)) == b"ended\n"
        assert api.wait("b", ended)["result"]["exit"] == 0
        looks.append(api.good("GET", "/v1/boxes/b")["state"])
        assert looks[-1] in ("ready", "running"), looks[-1]

    def keep():
        a = api.post("/v1/boxes/b/snapshots", {})
        assert a.status in (201, 429), a
        taken.append(a.status == 201 and a.json()["pause_us"] > 0)
    threads = [threading.Thread(target=guarded(f)) for f in [work] * 8 + [look] * 2 + [keep] * 2]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not trouble, trouble[:5]
    assert sum(taken) >= 20 and len(done) > 200 and len(looks) > 20, (sum(taken), len(done), len(looks))
    assert int(api.out("b", "cat ~/log-* | wc -l")) == len(done)
    assert not [e for e in heard(api, begun) if e["event"] in ("box.down", "box.up")]


@pytest.mark.limit(120)
def test_an_idle_box_is_kept_once(idle_daemon, pale):
    pale.env["PALE_AUTOSAVE_AFTER"] = "700ms"
    api = idle_daemon.serve().rest
    api.make("b")
    api.make("c", autosave=False)
    api.make("m", set={"scratch": "memory"})
    begun = now(api)
    for box in ("b", "c", "m"):
        api.out(box, "echo one > ~/f")
    assert wait_until(lambda: listed(api, "b"), 10)
    time.sleep(2)
    assert [s["kind"] for s in listed(api, "b").values()] == ["automatic"] and listed(api, "c") == {}
    assert api.good("GET", "/v1/boxes/b")["state"] == "ready"
    api.out("b", "true")  # used again, but nothing has changed
    time.sleep(2)
    assert len(listed(api, "b")) == 1
    api.start("b", "echo two > ~/f; sleep 2")
    time.sleep(1.5)
    assert len(listed(api, "b")) == 1  # never while something runs
    assert wait_until(lambda: len(listed(api, "b")) == 2, 10)
    time.sleep(0.5)  # what is on the disk already is told a moment later
    events = [(e["event"], e.get("caller")) for e in heard(api, begun) if e["event"] in ("snapshot.taken", "box.down", "box.up")]
    assert events == [("snapshot.taken", "paled")] * 2


def test_an_idle_box_is_still_stopped_in_time(idle_daemon, pale):
    """A checkpoint is no use of the box."""
    pale.env["PALE_AUTOSAVE_AFTER"] = "500ms"
    api = idle_daemon.serve().rest
    api.make("b", idle="2s")
    api.out("b", "echo one > ~/f")
    begun = time.monotonic()
    assert wait_until(lambda: api.good("GET", "/v1/boxes/b")["state"] == "stopped", 10) and time.monotonic() - begun < 4
    assert len(listed(api, "b")) == 1


@pytest.mark.limit(120)
def test_the_command_line_may_take_them_too(api, pale):
    """The daemon is not asked, and requests for it do not fail: not even those that start no box."""
    api.make("b")
    trouble, taken, looks = [], [], []

    def look():
        try:
            while len(taken) < 30 and not trouble:
                job = api.exec("b", f"echo {len(looks)} > ~/f; echo ended")["job"]
                assert output_of(api.logs("b", job, follow=True)) == b"ended\n"
                assert api.wait("b", job)["result"]["exit"] == 0
                looks.append(job)
                time.sleep(0.01)
        except Exception as e:  # told at the end
            trouble.append(e)
    threads = [threading.Thread(target=look) for _ in range(2)]
    for t in threads:
        t.start()
    until = time.monotonic() + 60
    while len(taken) < 30 and not trouble and time.monotonic() < until:
        if pale.run("snapshot", "b").code == 0:
            taken.append(1)
    taken += [1] * 30
    for t in threads:
        t.join()
    assert not trouble and len(looks) > 5, (trouble, len(looks))
