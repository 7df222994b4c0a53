# SPDX-License-Identifier: Apache-2.0
"""A connection that a rule asks about waits for the operator; his answer is for that question and for no other."""
import concurrent.futures
import json
import os
import pathlib
import shutil
import socket
import stat
import struct
import subprocess
import time

import mcp_client
import pytest
import rest
import wire
from harness import wait_until
from internet import internet

RULES = ["good.test=ask", "other.test", "*.ok.test=ask", "echo.test:9999=ask", "evil.test=deny", "private-10.ok.test=ask", "10.0.0.0/8=ask", "slow.test"]
GET = ["curl", "-sS", "-m", "25"]


@pytest.fixture(scope="module")
def net():
    with internet() as n:
        yield n


@pytest.fixture
def world(net, pale):
    pale.wrap = net.wrap
    pale.net = net
    policy = pale.root / "policy.json"
    policy.write_text(json.dumps({"network": {"mode": "filtered", "egress": RULES}}))
    pale.policy = policy
    pale.create("b", "--policy", policy)
    return pale


def questions(pale):
    return pale.json("approvals", "--json")


def asked(pale, host=None, count=1):
    """The questions that are open, once there are so many."""
    found = wait_until(lambda: [q for q in questions(pale) if host in (None, q["host"])] if len(questions(pale)) >= count else None, 8)
    assert found and len(found) >= count, f"{host}: {questions(pale)}"
    return found


def fetch(pale, url, box="b", *more):
    return pale.start("exec", "-q", box, "--", *GET, *more, url)


def ended(process, seconds=20):
    out, err = process.communicate(timeout=seconds)
    return process.returncode, out.decode(), err.decode()


def audit(pale, event, box="b"):
    lines = (json.loads(x) for x in pale.ok("audit", "--json", box).text.splitlines())
    return [x for x in lines if x["event"] == event]


def cite(question, **other):
    """An answer as the keeper's protocol has it."""
    q = {**question, "allow": 1, "scope": 0, "until": 0, **other}
    return wire.record(q["id"], q["box"], q["host"], q["port"], q["allow"], q["scope"], q["until"])


def keeper(pale, box="b"):
    return wire.Keeper(pale.root / "run" / "pale" / f"{pale.box_id(box)}.sock")


def tell(pale, payload, *before):
    """What the keeper answers: the name of the frame, and the record's fields."""
    k = keeper(pale)
    for kind in before:
        k.ask(kind)
    k.ask("ASK_VERDICT", payload)
    name, data = k.next()
    return name, wire.texts_and_numbers(data) if name == "TELL_ERROR" else None


def test_a_connection_waits_until_it_is_allowed_and_others_go_on(world):
    mark = world.net.mark()
    waiting = fetch(world, "http://good.test/x")
    [q] = asked(world, "good.test")
    assert (q["box"], q["box_name"], q["port"], q["rule"]) == (world.box_id("b"), "b", 80, "network.egress good.test=ask") and q["job"] == 1
    assert world.net.canary in world.exec("b", *GET, "http://other.test/y", flags=["-q"], expect=0).text
    assert waiting.poll() is None and not [e for e in world.net.events(mark) if e.get("host", "").startswith("good.test") or e.get("name") == "good.test"]
    world.ok("approvals", "allow", q["id"])
    code, out, _ = ended(waiting)
    assert code == 0 and world.net.canary in out
    [answered] = audit(world, "net.answered")
    assert (answered["question"], answered["answer"], answered["scope"], answered["host"], answered["port"], answered["caller"]) == (q["id"], "allow", "once", "good.test", 80, "local")
    allowed = next(a for a in audit(world, "net.allow") if a["host"] == "good.test")
    assert answered["seq"] < allowed["seq"] and audit(world, "net.ask")[0]["question"] == q["id"]
    assert questions(world) == []
    # Once is once.
    again = fetch(world, "http://good.test/x")
    assert asked(world, "good.test")[0]["id"] != q["id"]
    world.ok("approvals", "deny", asked(world)[0]["id"])
    ended(again)


def test_a_no_is_readable(world):
    waiting = fetch(world, "http://good.test/x")
    world.ok("approvals", "deny", asked(world)[0]["id"])
    code, out, _ = ended(waiting)
    assert "the operator said no" in out and world.net.canary not in out
    tls = fetch(world, "https://good.test/x")
    world.ok("approvals", "deny", asked(world)[0]["id"])
    code, out, err = ended(tls)
    assert code != 0 and world.net.canary not in out
    assert [a["answer"] for a in audit(world, "net.answered")] == ["deny", "deny"]
    assert any(d.get("reason") == "the operator said no" for d in audit(world, "net.deny"))


def test_one_question_for_all_who_want_the_same_and_its_end_with_the_last(world):
    many = [fetch(world, f"http://good.test/{i}") for i in range(4)]
    other = fetch(world, "https://good.test/")
    assert sorted(q["port"] for q in asked(world, count=2)) == [80, 443]
    time.sleep(0.5)
    assert len(questions(world)) == 2
    many.pop().terminate()
    time.sleep(0.5)
    assert len(questions(world)) == 2, "one of those who wait has gone, and the question with it"
    world.ok("approvals", "allow", next(q["id"] for q in questions(world) if q["port"] == 80))
    assert all(world.net.canary in ended(p)[1] for p in many)
    other.terminate()
    assert wait_until(lambda: questions(world) == [])


def test_an_answer_cites_its_question_whole(world):
    waiting = fetch(world, "http://good.test/x")
    [q] = asked(world)
    wrong = [({"id": "00000000"}, "not open"), ({"host": "other.test"}, "is about good.test port 80"), ({"port": 443}, "is about good.test port 80"),
             ({"box": "0" * 16}, "another box")]
    for change, why in wrong:
        name, error = tell(world, cite(q, **change))
        assert name == "TELL_ERROR" and why in error[1], (change, error)
    for payload in (cite(q, scope=4), cite(q, scope=0, until=99999999999), cite(q)[:-1], b""):
        assert tell(world, payload)[0] == "TELL_ERROR"
    assert waiting.poll() is None and audit(world, "net.answered") == [] and len(questions(world)) == 1
    assert tell(world, cite(q))[0] == "TELL_DONE"
    assert world.net.canary in ended(waiting)[1]
    # The same words a second time are about nothing.
    name, error = tell(world, cite(q))
    assert name == "TELL_ERROR" and "not open" in error[1]


def test_an_address_is_asked_about_by_itself(world):
    """A yes to one address is none to another, and a yes to a name is none to a private address that it leads to."""
    one, two = fetch(world, "http://10.0.0.5/"), fetch(world, "http://10.0.0.6/")
    found = asked(world, count=2)
    assert sorted(q["host"] for q in found) == ["10.0.0.5", "10.0.0.6"]
    world.ok("approvals", "allow", next(q["id"] for q in found if q["host"] == "10.0.0.5"))
    assert world.net.canary in ended(one)[1] and two.poll() is None
    world.ok("approvals", "deny", asked(world)[0]["id"])
    assert world.net.canary not in ended(two)[1]
    named = fetch(world, "http://private-10.ok.test/")
    [q] = asked(world)
    assert q["host"] == "private-10.ok.test"
    world.ok("approvals", "allow", q["id"])
    [q] = asked(world, "10.0.0.5")
    assert q["via"] == "private-10.ok.test" and named.poll() is None
    world.ok("approvals", "allow", q["id"])
    assert world.net.canary in ended(named)[1]


def test_what_a_policy_denies_is_not_asked_about_and_no_answer_opens_it(world):
    waiting = fetch(world, "http://good.test/")
    world.ok("approvals", "allow", asked(world)[0]["id"], "--always")
    ended(waiting)
    narrow = world.root / "narrow.json"
    narrow.write_text(json.dumps({"network": {"mode": "filtered", "egress": ["other.test"]}}))
    world.create("c", "--policy", narrow)
    assert world.net.canary not in world.exec("c", *GET, "http://good.test/", flags=["-q"]).text
    assert audit(world, "net.ask", "c") == []
    assert world.net.canary not in world.exec("b", *GET, "http://evil.test/", flags=["-q"]).text


@pytest.mark.parametrize("scope", ["--box", "--always"])
def test_an_answer_that_stands_outlives_the_box_s_keeper(world, scope):
    world.create("c", "--policy", world.policy)
    waiting = fetch(world, "http://good.test/x")
    world.ok("approvals", "allow", asked(world)[0]["id"], scope)
    ended(waiting)
    world.ok("stop", "b")
    assert world.net.canary in world.exec("b", *GET, "http://good.test/z", flags=["-q"], expect=0).text
    other = fetch(world, "http://good.test/z", "c")
    if scope == "--always":
        assert world.net.canary in ended(other)[1]
    else:
        world.ok("approvals", "deny", asked(world)[0]["id"])
        ended(other)
    # Another port is another question.
    tls = fetch(world, "https://good.test/x")
    assert asked(world)[0]["port"] == 443
    tls.terminate()
    lists = [p for p in world.root.rglob("approvals*") if p.is_file()] + [p for p in world.root.rglob("always")]
    assert lists and all(stat.S_IMODE(p.stat().st_mode) == 0o600 for p in lists)


def test_an_answer_for_a_project_is_for_its_boxes_alone(world):
    for name in ("one", "two"):
        (world.home / name).mkdir()
        policy = {"network": {"mode": "filtered", "egress": RULES}, "project": {"mode": "ro", "path": str(world.home / name)}}
        (world.root / f"{name}.json").write_text(json.dumps(policy))
    for folder, box in (("one", "p"), ("one", "q"), ("two", "r")):
        world.create(box, "--policy", world.root / f"{folder}.json")
    waiting = fetch(world, "http://good.test/x", "p")
    world.ok("approvals", "allow", asked(world)[0]["id"], "--project", "--for", "1h")
    assert world.net.canary in ended(waiting)[1]
    assert world.net.canary in world.exec("q", *GET, "http://good.test/x", flags=["-q"]).text
    stranger = fetch(world, "http://good.test/x", "r")
    [q] = asked(world)
    assert q["box_name"] == "r"
    stranger.terminate()
    assert wait_until(lambda: questions(world) == [])
    # A box of the user's own has no project.
    own = fetch(world, "http://good.test/x", "b")
    done = world.run("approvals", "allow", asked(world)[0]["id"], "--project", expect=125)
    assert "belongs to no project" in done.errors and own.poll() is None
    own.terminate()


def test_an_answer_expires_and_cuts_what_it_had_opened(world):
    slow = world.start("exec", "-q", "b", "--", "python3", "-c",
                       "import socket\ns=socket.create_connection(('echo.test',9999)); s.send(b'a'); print(s.recv(9), flush=True)\ntry: print(s.recv(9))\nexcept OSError as e: print(e)")
    world.ok("approvals", "allow", asked(world, "echo.test")[0]["id"], "--box", "--for", "3s")
    began = time.monotonic()
    state = next((world.root / "state").rglob("approvals"))
    assert state.read_text().startswith("allow echo.test 9999 ")
    code, out, _ = ended(slow)
    # The one that waited was granted for itself; it is another that the end of the answer asks about.
    assert "b'a'" in out or code == 0
    time.sleep(max(0, 4.2 - (time.monotonic() - began)))
    again = fetch(world, "telnet://echo.test:9999")
    assert asked(world, "echo.test")
    again.terminate()
    assert [a["standing"] for a in audit(world, "net.answers")] == [1, 0]


def test_a_keeper_lives_when_an_answer_expires_that_it_cannot_read_again(world):
    waiting = fetch(world, "http://good.test/x")
    world.ok("approvals", "allow", asked(world)[0]["id"], "--box", "--for", "2s")
    ended(waiting)
    before = world.info("b")["keeper_pid"]
    state, away = world.root / "state", world.root / "away"
    state.rename(away)
    time.sleep(3.5)
    away.rename(state)
    assert world.info("b")["keeper_pid"] == before
    again = fetch(world, "http://good.test/x")
    assert asked(world)
    again.terminate()


def test_deny_that_stands_is_not_asked_again(world):
    waiting = fetch(world, "http://good.test/x")
    world.ok("approvals", "deny", asked(world)[0]["id"], "--box")
    ended(waiting)
    out = world.exec("b", *GET, "http://good.test/x", flags=["-q"]).text
    assert "the operator has said no to it" in out and questions(world) == [] and len(audit(world, "net.ask")) == 1


def standing(pale, box="b"):
    return [(s["verdict"], s["host"], s["port"], s["scope"], "until_unix_ms" in s) for s in pale.json("approvals", "standing", "--json", box)]


def test_answers_that_stand_are_listed_and_taken_back(world):
    world.create("c", "--policy", world.policy)
    assert standing(world) == []
    waiting = fetch(world, "http://good.test/x")
    world.ok("approvals", "allow", asked(world)[0]["id"], "--box", "--for", "1h")
    ended(waiting)
    waiting = fetch(world, "https://good.test/x")
    world.ok("approvals", "deny", asked(world)[0]["id"], "--always")
    ended(waiting)
    assert standing(world) == [("allow", "good.test", 80, "box", True), ("deny", "good.test", 443, "always", False)]
    assert standing(world, "c") == [("deny", "good.test", 443, "always", False)]
    shown = world.ok("approvals", "standing", "b").text
    assert "ANSWER" in shown and "good.test" in shown and "always" in shown
    assert world.net.canary in world.exec("b", *GET, "http://good.test/z", flags=["-q"], expect=0).text

    # Not by another scope, and not what does not stand.
    done = world.run("approvals", "forget", "b", "good.test", "443", expect=125)
    assert "one stands with --always" in done.errors, done
    assert "no answer about good.test port 81" in world.run("approvals", "forget", "b", "good.test", "81", expect=125).errors
    for words in (("good.test", "0"), ("good.test", "x"), ("GOOD.test", "80"), ("good.test", "80", "--once"), ("good.test", "80", "--box", "--always"), ("good.test", "80", "--for", "1h")):
        world.run("approvals", "forget", "b", *words, expect=125)
    assert len(standing(world)) == 2

    world.ok("approvals", "forget", "b", "good.test", "80")
    assert standing(world) == [("deny", "good.test", 443, "always", False)]
    again = fetch(world, "http://good.test/x")
    assert asked(world)[0]["port"] == 80  # without a restart
    again.terminate()
    assert wait_until(lambda: questions(world) == [])
    world.ok("approvals", "forget", "c", "good.test", "443", "--always")
    assert standing(world) == standing(world, "c") == []
    again = fetch(world, "https://good.test/x")
    assert asked(world)[0]["port"] == 443
    again.terminate()
    assert [a["standing"] for a in audit(world, "net.answers")] == [1, 2, 1, 0]


def test_an_answer_that_is_taken_back_cuts_what_it_had_opened(world):
    first = fetch(world, "telnet://echo.test:9999")
    world.ok("approvals", "allow", asked(world, "echo.test")[0]["id"], "--box")
    first.terminate()
    lasts = world.start("exec", "-q", "b", "--", "python3", "-c",
                        "import socket\ns=socket.create_connection(('echo.test',9999)); s.send(b'a'); print(s.recv(9), flush=True)\ntry: print(s.recv(9))\nexcept OSError as e: print(e)",
                        stdout=subprocess.PIPE)
    assert lasts.stdout.readline() == b"b'a'\n"
    world.ok("approvals", "forget", "b", "echo.test", "9999")
    assert lasts.wait(20) == 0


def test_a_standing_answer_reaches_connections_that_wait_in_other_boxes(world):
    world.create("c", "--policy", world.policy)
    here, there = fetch(world, "http://good.test/x"), fetch(world, "http://good.test/x", "c")
    found = asked(world, count=2)
    world.ok("approvals", "allow", found[0]["id"], "--always")
    assert world.net.canary in ended(here)[1] and world.net.canary in ended(there)[1]
    assert wait_until(lambda: questions(world) == [])


def test_a_thousand_questions_are_bounded(world):
    script = """import socket, time
socks = []
for i in range(1000):
    s = socket.socket(); s.setblocking(False)
    try: s.connect((socket.gethostbyname(f'n{i}.ok.test'), 80))
    except (BlockingIOError, OSError): pass
    socks.append(s)
    try: s.send(f'GET / HTTP/1.1\\r\\nHost: n{i}.ok.test\\r\\n\\r\\n'.encode())
    except OSError: time.sleep(0.001)
for i, s in enumerate(socks):
    s.setblocking(False)
    try: s.send(f'GET / HTTP/1.1\\r\\nHost: n{i}.ok.test\\r\\n\\r\\n'.encode())
    except OSError: pass
print('sent', flush=True)
time.sleep(30)
"""
    flood = world.start("exec", "-q", "b", "--", "python3", "-c", script)
    assert wait_until(lambda: len(questions(world)) == 64, 20)
    assert world.net.canary in world.exec("b", *GET, "http://other.test/y", flags=["-q"], expect=0).text
    world.ok("approvals", "deny", *[q["id"] for q in questions(world)[:10]])
    time.sleep(1)
    assert len(questions(world)) <= 64 and len(audit(world, "net.ask")) <= 240
    assert any("too many questions" in d.get("reason", "") for d in audit(world, "net.deny"))
    flood.kill()
    assert wait_until(lambda: questions(world) == [], 20)


def test_questions_one_after_the_other_are_bounded_too(world):
    script = """import socket
for i in range(300):
    s = socket.create_connection((socket.gethostbyname(f'n{i % 40}.ok.test'), 80))
    s.send(f'GET / HTTP/1.1\\r\\nHost: n{i % 40}.ok.test\\r\\n\\r\\n'.encode())
    s.settimeout(0.01)
    try: s.recv(9)
    except OSError: pass
    s.close()
"""
    world.py("b", script, flags=["-q"], expect=0)
    assert 100 <= len(audit(world, "net.ask")) <= 240, "as many as two minutes may have"
    assert any("too many questions" in d.get("reason", "") for d in audit(world, "net.deny"))


def test_of_a_yes_and_a_no_the_no_counts(world):
    waiting = fetch(world, "http://good.test/x")
    world.ok("approvals", "allow", asked(world)[0]["id"], "--box")
    ended(waiting)
    folder = world.home / ".config" / "pale" / "approvals"
    folder.mkdir(parents=True, mode=0o700)
    os.chmod(folder, 0o700)
    own = next((world.root / "state").rglob("approvals"))
    yes, no = "allow good.test 80 0\n", "deny good.test 80 0\n"
    for one, other, good in ((yes, no, False), (no, yes, False), (yes, "deny good.test 443 0\n", True), (yes, "deny good.test 80 1\n", True)):
        own.write_text(one)
        (folder / "always").write_text(other)
        world.ok("stop", "b")
        assert (world.net.canary in world.exec("b", *GET, "http://good.test/x", flags=["-q"]).text) == good, (one, other)


def test_a_box_that_runs_once_asks_nobody(world):
    done = world.run("run", "-q", "--policy", world.policy, "--", *GET, "http://good.test/x")
    assert "nobody can be asked" in done.text
    waiting = fetch(world, "http://good.test/x")
    world.ok("approvals", "allow", asked(world)[0]["id"], "--always")
    ended(waiting)
    assert world.net.canary in world.run("run", "-q", "--policy", world.policy, "--", *GET, "http://good.test/x").text


def test_watch_shows_questions_as_they_come(world):
    watch = world.start("approvals", "watch", "--json")
    waiting = fetch(world, "http://good.test/x")
    first = json.loads(watch.stdout.readline())
    assert first["state"] == "open" and first["host"] == "good.test"
    world.ok("approvals", "deny", first["id"])
    second = json.loads(watch.stdout.readline())
    assert second["state"] == "closed" and second["id"] == first["id"]
    ended(waiting)
    watch.terminate()
    assert watch.wait(5) == 0


def test_a_client_that_is_passed_on_cannot_answer(world):
    waiting = fetch(world, "http://good.test/x")
    [q] = asked(world)
    name, error = tell(world, cite(q), "ASK_BOUND")
    assert name == "TELL_ERROR" and "only the operator" in error[1]
    assert waiting.poll() is None and audit(world, "net.answered") == []
    waiting.terminate()


def test_lists_that_make_no_sense_answer_nothing(world):
    waiting = fetch(world, "http://good.test/x")
    world.ok("approvals", "allow", asked(world)[0]["id"], "--box")
    ended(waiting)
    path = next((world.root / "state").rglob("approvals"))
    path.write_text(path.read_text() + "allow *.test 80 0\n")
    world.ok("stop", "b")
    waiting = fetch(world, "http://good.test/x")
    [q] = asked(world)
    assert any("is no list of answers" in a.get("reason", "") for a in audit(world, "net.answers"))
    done = world.run("approvals", "allow", q["id"], "--box")
    assert done.code != 0 and "answered, but for this once" in done.errors
    assert world.net.canary in ended(waiting)[1]


def test_lists_of_others_are_not_read(world):
    """A folder that others can write is not the operator's word."""
    folder = pathlib.Path(world.home) / ".config" / "pale" / "approvals"
    folder.mkdir(parents=True)
    (folder / "always").write_text("allow good.test 80 0\n")
    os.chmod(folder, 0o777)
    world.ok("stop", "b")
    waiting = fetch(world, "http://good.test/x")
    assert asked(world)
    waiting.terminate()
    os.chmod(folder, 0o700)
    world.ok("stop", "b")
    assert world.net.canary in world.exec("b", *GET, "http://good.test/x", flags=["-q"]).text


def test_no_box_is_given_the_folder_of_answers(world):
    folder = pathlib.Path(world.home) / ".config"
    (folder / "pale").mkdir(parents=True)
    done = world.run("create", "w", "--write", folder, expect=None)
    assert done.code != 0 and "pale's own" in done.errors


@pytest.mark.limit(200)
@pytest.mark.skipif(not os.environ.get("PALE_SLOW"), reason="takes two minutes; PALE_SLOW=1 runs it")
def test_a_question_that_nobody_answers_is_over_after_two_minutes(world):
    began = time.monotonic()
    waiting = world.start("exec", "-q", "b", "--", "curl", "-sS", "-m", "150", "http://good.test/x")
    asked(world)
    code, out, _ = ended(waiting, 150)
    assert "nobody answered the question in time" in out and 115 < time.monotonic() - began < 130
    assert questions(world) == []


# --- through the daemon ---

ASKER = "import socket; s = socket.create_connection(('ask.test', 80)); s.send(b'GET / HTTP/1.1\\r\\nHost: ask.test\\r\\n\\r\\n'); print(s.recv(4000).decode())"


@pytest.fixture
def api(pale):
    d = rest.Daemon(pale)
    try:
        yield d.serve().rest
    finally:
        trouble = d.end()
        assert not trouble, trouble


def open_question(api, name="b", **more):
    """(the question, the job that waits for it)"""
    box = api.make(name, set={"network": "filtered", "network.egress": "ask.test=ask"}, **more)["id"]
    job = api.start(box, ["python3", "-c", ASKER])
    found = wait_until(lambda: next((q for q in api.good("GET", "/v1/approvals")["items"] if q["box"] == box), None))
    assert found
    return found, job


def citation(q, verdict="deny", **more):
    return {"box": q["box"], "host": q["host"], "port": q["port"], "verdict": verdict, **more}


def test_the_api_lists_and_answers_and_tells(api):
    feed = api.stream("GET", "/v1/events")
    q, job = open_question(api)
    assert (q["host"], q["port"], q["box_name"], q["job"]) == ("ask.test", 80, "b", job)
    for wrong in ({"host": "other.test"}, {"port": 81}, {"box": "0" * 16}, {"verdict": "maybe"}, {"scope": "forever"}, {"for": "1h"}, {"scope": "project"}):
        a = api.ask("POST", f"/v1/approvals/{q['id']}", {**citation(q), **wrong})
        assert a.status in (400, 403, 404), (wrong, a)
    assert api.ask("POST", "/v1/approvals/00000000", citation(q)).status == 404
    assert api.good("GET", "/v1/approvals")["items"] == [q]
    assert api.ask("POST", f"/v1/approvals/{q['id']}", citation(q, scope="box", **{"for": "1h"})).status == 204
    assert wait_until(lambda: api.good("GET", "/v1/approvals")["items"] == [])
    assert api.ask("POST", f"/v1/approvals/{q['id']}", citation(q)).status == 404
    api.wait(q["box"], job)
    assert b"the operator said no" in rest.output_of(api.logs(q["box"], job))
    told = feed.until("net.answered")
    feed.close()
    [ask] = [e for e in told if e["event"] == "net.ask"]
    assert (ask["question"], ask["host"], ask["port"], ask["box"]) == (q["id"], "ask.test", 80, q["box"])
    assert (told[-1]["question"], told[-1]["answer"], told[-1]["scope"], told[-1]["by"]) == (q["id"], "deny", "box", "operator")


def test_a_question_that_was_open_before_the_daemon_is_listed(pale):
    policy = pale.root / "asks.json"
    policy.write_text(json.dumps({"network": {"mode": "filtered", "egress": ["ask.test=ask"]}}))
    pale.create("b", "--policy", policy)
    waiting = pale.start("exec", "-q", "b", "--", "python3", "-c", ASKER)
    [q] = asked(pale)
    d = rest.Daemon(pale)
    try:
        api = d.serve().rest
        assert wait_until(lambda: api.good("GET", "/v1/approvals")["items"] == [q])
        waiting.terminate()
        assert wait_until(lambda: api.good("GET", "/v1/approvals")["items"] == [])
    finally:
        assert not d.end()


def test_neither_a_box_s_token_nor_a_tenant_s_answers(api, pale):
    config = pale.home / ".config" / "pale"
    config.mkdir(parents=True)
    (config / "tenant.yaml").write_text("network: {mode: filtered, egress: ['ask.test=ask']}\n")
    q, _ = open_question(api, "mine", tenant="t")
    tokens = {"box": api.token_for(scope="box", box=q["box"])["token"], "tenant": api.token_for(scope="tenant", tenant="t")["token"]}
    for scope, token in tokens.items():
        by = api.by(token)
        assert by.ask("POST", f"/v1/approvals/{q['id']}", citation(q, "allow")).status == 403, scope
        assert by.good("GET", "/v1/approvals")["items"] == [q]
    other = api.by(api.token_for(scope="tenant", tenant="u")["token"])
    assert other.good("GET", "/v1/approvals")["items"] == []
    # Neither over the wire of the box, where a tenant may speak to its keeper.
    with rest.Wire(api.where) as w:
        w.send(rest.request_bytes("GET", f"/v1/boxes/{q['box']}/wire", headers=[("Connection", "Upgrade"), ("Upgrade", "pale-wire"), ("Pale-Wire-Version", wire.VERSION),
                                                                               ("Authorization", f"Bearer {tokens['tenant']}")]))
        got = b""
        while b"\r\n\r\n" not in got:
            got += w.s.recv(4096)
        said = cite(q)
        w.send(struct.pack("<IBBH", len(said), wire.TYPES["ASK_VERDICT"], 0, 0) + said)
        got = got.split(b"\r\n\r\n", 1)[1]
        while more := w.s.recv(4096):
            got += more
    assert got[4] == wire.TYPES["TELL_ERROR"] and b"only the operator" in got
    assert api.good("GET", "/v1/approvals")["items"] == [q]
    # What stands for a tenant's box stands for it alone.
    assert api.ask("POST", f"/v1/approvals/{q['id']}", citation(q, "allow", scope="always")).status == 400
    assert api.ask("POST", f"/v1/approvals/{q['id']}", citation(q, scope="box")).status == 204


# --- in the agent's own dialog ---

COMMAND = {"name": "exec", "arguments": {"command": ["python3", "-uc", "print('before'); " + ASKER + "; print('after')"]}}


def asking_box(api):
    return api.make("b", set={"network": "filtered", "network.egress": "ask.test=ask"})["id"]


@pytest.mark.parametrize("answer, verdict", [({"action": "accept", "content": {"allow": True}}, "allow"), ({"action": "accept", "content": {"allow": False}}, "deny"),
                                             ({"action": "decline"}, "deny"), ({"action": "cancel"}, "deny")])
def test_a_client_that_can_ask_its_user_is_asked_and_the_command_goes_on(api, pale, answer, verdict):
    box = asking_box(api)
    client = mcp_client.Http(api, box, capabilities={"elicitation": {}})
    first = client.result("tools/call", COMMAND)
    assert first["resultType"] == "input_required", first
    message = first["inputRequests"]["allow"]["params"]["message"]
    assert "ask.test port 80" in message and "box b" in message
    [q] = api.good("GET", "/v1/approvals")["items"]
    second = client.result("tools/call", {**COMMAND, "inputResponses": {"allow": answer}, "requestState": first["requestState"]})
    text = second["content"][0]["text"]
    assert second["resultType"] == "complete" and text.startswith("before\n") and text.rstrip().endswith("after") and text.count("before") == 1
    assert ("the operator said no" in text) == (verdict == "deny")
    assert [(a["question"], a["answer"], a["scope"]) for a in audit(pale, "net.answered")] == [(q["id"], verdict, "once")]
    assert len(api.good("GET", f"/v1/boxes/{box}/jobs")["items"]) == 1, "it was run twice"


def test_a_legacy_client_is_asked_while_the_command_runs(api, pale):
    box = asking_box(api)
    client = mcp_client.Stdio(pale, box, "legacy", {"elicitation": {}})
    m = client.message("tools/call", COMMAND)
    client.send(m)
    q = client.next()
    assert q["method"] == "elicitation/create" and "ask.test port 80" in q["params"]["message"]
    client.send({"jsonrpc": "2.0", "id": q["id"], "result": {"action": "decline"}})
    text = client.answer_to(m["id"])[0]["result"]["content"][0]["text"]
    assert text.startswith("before\n") and "the operator said no" in text
    assert [a["answer"] for a in audit(pale, "net.answered")] == ["deny"]
    client.end()


def test_the_operator_may_be_faster_than_the_client(api):
    box = asking_box(api)
    client = mcp_client.Http(api, box, capabilities={"elicitation": {}})
    first = client.result("tools/call", COMMAND)
    [q] = api.good("GET", "/v1/approvals")["items"]
    assert api.ask("POST", f"/v1/approvals/{q['id']}", citation(q)).status == 204
    second = client.result("tools/call", {**COMMAND, "inputResponses": {"allow": {"action": "accept", "content": {"allow": True}}}, "requestState": first["requestState"]})
    assert "the operator said no" in second["content"][0]["text"]


@pytest.mark.parametrize("who", ["cannot ask", "box", "tenant"])
def test_for_other_clients_nothing_changes(api, pale, who):
    config = pale.home / ".config" / "pale"
    config.mkdir(parents=True)
    (config / "tenant.yaml").write_text("network: {mode: filtered, egress: ['ask.test=ask']}\n")
    box = api.make("b", set={"network": "filtered", "network.egress": "ask.test=ask"}, **({"tenant": "t"} if who == "tenant" else {}))["id"]
    token = {"box": {"scope": "box", "box": box}, "tenant": {"scope": "tenant", "tenant": "t"}}.get(who)
    by = api.by(api.token_for(**token)["token"]) if token else api
    client = mcp_client.Http(by, box, capabilities={"elicitation": {}} if token else {})
    with concurrent.futures.ThreadPoolExecutor() as pool:
        waiting = pool.submit(client.result, "tools/call", COMMAND)
        assert wait_until(lambda: api.good("GET", "/v1/approvals")["items"])
        time.sleep(0.5)
        assert not waiting.done()
        [q] = api.good("GET", "/v1/approvals")["items"]
        assert api.ask("POST", f"/v1/approvals/{q['id']}", citation(q)).status == 204
        assert "the operator said no" in waiting.result(20)["content"][0]["text"]


def test_a_state_of_another_tool_runs_nothing(api):
    box = asking_box(api)
    client = mcp_client.Http(api, box, capabilities={"elicitation": {}})
    wish = {"name": "policy", "arguments": {"set": {"limits.wall": "15m"}, "reason": "x"}}
    state = client.result("tools/call", wish)["requestState"]
    answer, _ = client.ask("tools/call", {**COMMAND, "inputResponses": {}, "requestState": state})
    assert answer["error"]["code"] == -32602
    assert api.good("GET", f"/v1/boxes/{box}/jobs")["items"] == []


# --- the desktop ---


class Desktop:
    """A bus of its own, and on it somebody who shows notifications and whose buttons a test can press. It speaks D-Bus itself: little-endian, what is needed here."""

    def __init__(self, folder):
        self.socket = f"{folder}/bus"
        config = folder / "bus.conf"
        config.write_text(f"""<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN" "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>session</type><listen>unix:path={self.socket}</listen><auth>EXTERNAL</auth>
<policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy></busconfig>""")
        self.bus = subprocess.Popen(["dbus-daemon", "--nofork", f"--config-file={config}"], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
        assert wait_until(lambda: os.path.exists(self.socket))
        self.s = socket.socket(socket.AF_UNIX)
        self.s.settimeout(10)
        assert wait_until(lambda: self.s.connect_ex(self.socket) == 0)
        self.s.sendall(b"\0AUTH EXTERNAL " + str(os.geteuid()).encode().hex().encode() + b"\r\nBEGIN\r\n")
        self.rest, self.serial = b"", 0
        while b"\r\n" not in self.rest:
            self.rest += self.s.recv(4096)
        self.rest = self.rest.split(b"\r\n", 1)[1]
        self.send(1, {1: "/org/freedesktop/DBus", 2: "org.freedesktop.DBus", 3: "Hello", 6: "org.freedesktop.DBus"})
        self.send(1, {1: "/org/freedesktop/DBus", 2: "org.freedesktop.DBus", 3: "RequestName", 6: "org.freedesktop.DBus", 8: "su"},
                  self.text("org.freedesktop.Notifications") + b"\0\0" + struct.pack("<I", 4))

    @staticmethod
    def text(s):
        return struct.pack("<I", len(s)) + s.encode() + b"\0"

    def send(self, kind, fields, body=b""):
        self.serial += 1
        head = b""
        for code, value in fields.items():
            head += b"\0" * (-len(head) % 8) + bytes([code, 1, ord({1: "o", 5: "u", 8: "g"}.get(code, "s")), 0])
            head += struct.pack("<I", value) if code == 5 else bytes([len(value)]) + value.encode() + b"\0" if code == 8 else self.text(value)
        message = struct.pack("<cBBBIII", b"l", kind, 0, 1, len(body), self.serial, len(head)) + head
        self.s.sendall(message + b"\0" * (-len(message) % 8) + body)

    def call(self, member):
        """Waits for a call of that name: (its serial, its sender, its body)."""
        while True:
            while len(self.rest) < 16 or len(self.rest) < self.length():
                self.rest += self.s.recv(4096)
            message, self.rest = self.rest[:self.length()], self.rest[self.length():]
            body_len, serial, fields_len = struct.unpack_from("<III", message, 4)
            found, at = {}, 16
            while at < 16 + fields_len:
                at += -at % 8
                code, kind = message[at], chr(message[at + 2])
                at += 4
                if kind == "u":
                    at += 4
                    continue
                n = message[at] if kind == "g" else struct.unpack_from("<I", message, at)[0]
                at += 1 if kind == "g" else 4
                found[code] = message[at:at + n].decode()
                at += n + 1
            if message[1] == 1 and found.get(3) == member:
                return serial, found[7], message[len(message) - body_len:]

    def length(self):
        body, _, fields = struct.unpack_from("<III", self.rest, 4)
        return (16 + fields + 7) // 8 * 8 + body

    def shown(self, number):
        """Waits for a notification and gives it that number."""
        serial, sender, body = self.call("Notify")
        self.send(2, {5: serial, 6: sender, 8: "u"}, struct.pack("<I", number))
        return body

    def press(self, number, key, path="/org/freedesktop/Notifications"):
        self.send(4, {1: path, 2: "org.freedesktop.Notifications", 3: "ActionInvoked", 8: "us"}, struct.pack("<I", number) + self.text(key))

    def end(self):
        self.s.close()
        self.bus.terminate()
        self.bus.communicate()


@pytest.fixture
def desktop(pale):
    if not shutil.which("dbus-daemon"):
        pytest.skip("there is no dbus-daemon here")
    if os.geteuid() != 0 and "PALE_INTERNET" not in os.environ:
        pytest.skip("pale runs in a user namespace of its own here, whose ids the bus outside does not take for the user's")
    d = Desktop(pale.root)
    yield d
    d.end()


def test_buttons_on_the_desktop_answer(world, desktop):
    watch = world.start("approvals", "watch", "--json", "--notify", env={**world.env, "DBUS_SESSION_BUS_ADDRESS": f"unix:path={desktop.socket},guid=0"})
    for number, key, good in ((7, "once", True), (8, "deny", False), (9, "box", True)):
        waiting = fetch(world, "http://good.test/x")
        body = desktop.shown(number)
        assert b"Box b asks\0" in body and b"good.test port 80\0" in body and b"Allow once\0" in body and b"Deny\0" in body
        desktop.press(number + 100, "once")  # another's
        desktop.press(number, "sudo")        # no button of ours
        time.sleep(0.6)
        assert waiting.poll() is None and len(questions(world)) == 1
        desktop.press(number, key)
        assert (world.net.canary in ended(waiting)[1]) == good
        assert struct.unpack("<I", desktop.call("CloseNotification")[2])[0] == number
    assert [(a["answer"], a["scope"]) for a in audit(world, "net.answered")] == [("allow", "once"), ("deny", "once"), ("allow", "box")]
    watch.terminate()
    assert watch.wait(5) == 0


def test_a_signal_of_somebody_else_on_the_bus_presses_no_button(world, desktop):
    watch = world.start("approvals", "watch", "--json", "--notify", env={**world.env, "DBUS_SESSION_BUS_ADDRESS": f"unix:path={desktop.socket}"})
    waiting = fetch(world, "http://good.test/x")
    desktop.shown(7)
    for _ in range(3):
        subprocess.run(["dbus-send", f"--bus=unix:path={desktop.socket}", "--type=signal", "/org/freedesktop/Notifications",
                        "org.freedesktop.Notifications.ActionInvoked", "uint32:7", "string:once"], check=True)
    time.sleep(1)
    assert waiting.poll() is None and len(questions(world)) == 1
    waiting.terminate()
    watch.terminate()


@pytest.mark.parametrize("address", ["", "unix:path=/nowhere/bus", "tcp:host=localhost,port=1", "nonsense"])
def test_without_a_bus_nothing_is_shown_and_nothing_said(world, address):
    watch = world.start("approvals", "watch", "--json", "--notify", env={**world.env, "DBUS_SESSION_BUS_ADDRESS": address})
    waiting = fetch(world, "http://good.test/x")
    first = json.loads(watch.stdout.readline())
    world.ok("approvals", "deny", first["id"])
    ended(waiting)
    watch.terminate()
    assert watch.wait(5) == 0 and watch.stderr.read() == b""
