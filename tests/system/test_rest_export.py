# SPDX-License-Identifier: Apache-2.0
"""Boxes as archives over REST and through --host: there and back, who may, what strangers pack, and that whoever leaves leaves nothing."""
import hashlib
import json
import os
import signal
import subprocess
import threading
import time

import pytest

import harness
from harness import wait_until
from rest import Rest, Wire, query, quote
from test_export import POISON, bill_of, global_header, look, members_of, packed, state_of
from test_rest_snapshot import heard, now

pytestmark = pytest.mark.once


def export(api, box, **fields):
    a = api.get(query(f"/v1/boxes/{box}/export", **fields))
    assert a.status == 200, a
    return a.body


def arrive(api, name, data, status=201, headers=None, **fields):
    """Sends an archive; what is answered."""
    fields = {k: json.dumps(v) if isinstance(v, dict) else v for k, v in fields.items()}
    return api.good("POST", query(f"/v1/boxes/{quote(name)}/import", **fields), body=data, status=status, headers=headers)


def refused(api, name, data, status, code, **fields):
    return api.bad("POST", query(f"/v1/boxes/{quote(name)}/import", **fields), None, status, code, body=data)["detail"]


def staged(pale):
    path = pale.root / "data" / "pale-staging"
    return os.listdir(path) if path.exists() else []


def is_behind(pid):
    """It looks after layers when nobody waits, and has only the words of the one that left it behind."""
    try:
        return os.sched_getscheduler(pid) == os.SCHED_IDLE
    except ProcessLookupError:
        return True


def verbs(pale, verb):
    """Processes of ours that do this verb below this root."""
    return [p for p in harness.processes_of(pale.root) if harness.cmdline(p)[1:2] == [verb] and not is_behind(p)]


def is_quiet(pale):
    return not staged(pale) and not verbs(pale, b"export") and not verbs(pale, b"import")


def clean_state(api, pale, data):
    """What there is when an import has come and gone."""
    arrive(api, "gone", data)
    api.good("DELETE", "/v1/boxes/gone", status=204)
    pale.ok("gc")
    return state_of(pale)


def memory_of(api):
    with open(f"/proc/{api.good('GET', '/v1/health')['pid']}/status") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmHWM"))


def audit(pale, box):
    return [json.loads(line) for line in pale.ok("audit", "--json", box).text.splitlines()]


@pytest.mark.basic
def test_there_and_back(api, pale, root):
    api.make("b", set={"limits.output": "300M", "env": "SECRET_WORD=hush"})
    api.out("b", "mkdir -p ~/d/e; echo deep > ~/d/e/f; ln -s nowhere ~/link; touch -h -d '2001-02-03' ~/link; echo t > /tmp/t; head -c 100000 /dev/urandom > ~/r")
    begun, was = now(api), look(pale, "b", "/home/agent", "/tmp")
    a = api.get("/v1/boxes/b/export")
    assert a.status == 200 and a.header("content-type") == "application/zstd" and a.body[:4] == b"\x28\xb5\x2f\xfd"
    plain = api.get("/v1/boxes/b/export?plain=true")
    assert plain.header("content-type") == "application/x-tar" and members_of(plain.body)[0][0].name == "pale-export.json" and b"hush" not in plain.body
    made = arrive(api, "n", a.body)
    assert made["from"] == "b" and made["digest"] == hashlib.sha256(a.body).hexdigest() and made["left_out"] == ["env.set SECRET_WORD"] and made["scope"] == "user"
    assert api.good("GET", "/v1/boxes/n")["id"] == made["id"] and api.good("GET", "/v1/boxes/n")["state"] == "stopped"
    assert look(pale, "n", "/home/agent", "/tmp") == was and api.out("n", "cat ~/d/e/f") == "deep\n"
    assert pale.info("n")["policy"]["limits"]["output"]["value"] == 300 << 20
    told = [(e["event"], e["name"], e["caller"]) for e in heard(api, begun) if e["event"] in ("box.exported", "box.imported")]
    assert told == [("box.exported", "b", "operator"), ("box.exported", "b", "operator"), ("box.imported", "n", "operator")]
    assert [r["caller"] for r in audit(pale, "b") if r["event"] == "box.export"] == ["operator"] * 2
    assert audit(pale, "n")[0]["event"] == "box.imported" and audit(pale, "n")[0]["caller"] == "operator"
    assert wait_until(lambda: is_quiet(pale))


def test_of_a_snapshot(api, pale, root):
    api.make("b")
    api.out("b", "echo one > ~/f")
    api.good("POST", "/v1/boxes/b/snapshots", {"name": "one"}, 201)
    api.out("b", "echo two > ~/f")
    arrive(api, "n1", export(api, "b", at="one"))
    arrive(api, "n2", export(api, "b"))
    assert api.out("n1", "cat ~/f") == "one\n" and api.out("n2", "cat ~/f") == "two\n" and api.out("b", "cat ~/f") == "two\n"
    for at in ("never", "-o", "--plain", "../x"):
        api.bad("GET", query("/v1/boxes/b/export", at=at), None, 404, "not-found")
    api.bad("GET", "/v1/boxes/nobody/export", None, 404, "not-found")
    api.make("m", set={"scratch": "memory"})
    assert "memory" in api.bad("GET", "/v1/boxes/m/export", None, 501, "unsupported")["detail"]
    api.out("b", "touch ~/.wh.x")
    assert ".wh.x" in api.bad("GET", "/v1/boxes/b/export")["detail"]


def test_what_is_asked_of_the_policy(api, pale, hostdir):
    (hostdir / "f").write_text("mine\n")
    api.make("b", set={"project.mode": "review", "project.path": str(hostdir), "limits.output": "300M"})
    api.out("b", f"echo theirs > {hostdir}/f; echo h > ~/h")
    data = export(api, "b")
    assert "project.path" in refused(api, "n", data, 400, "bad-input")
    assert "project.mode" in refused(api, "n", data, 400, "bad-input", policy="{}")
    arrive(api, "n", data, set={"project.mode": "none", "limits.output": ["100M"]})
    assert pale.info("n")["policy"]["limits"]["output"]["value"] == 100 << 20 and api.out("n", "cat ~/h") == "h\n"
    arrive(api, "m", data, set={"project.path": str(hostdir)})
    assert api.out("m", f"cat {hostdir}/f") == "theirs\n" and (hostdir / "f").read_text() == "mine\n"
    arrive(api, "k", data, policy={"limits": {"output": "50M"}}, set={"project": "none"})
    assert pale.info("k")["policy"]["limits"]["output"]["value"] == 50 << 20
    for fields in ({"set": "x"}, {"set": "[]"}, {"set": '{"limits.memory": 1}'}, {"set": '{"nothing": "x"}'}, {"set": '{"env": "a\\nb"}'}, {"set": '{"a": "b", "a": "c"}'},
                   {"policy": "1"}, {"policy": '{"nothing": 1}'}, {"policy": "{"}, {"tenant": "-x"}, {"file": "/etc/passwd"}):
        refused(api, "x", data, 400, "bad-input", **fields)
    for name in ("-x", "../x", "A", "x" * 70):
        refused(api, name, data, 400, "bad-input")
    assert "already" in refused(api, "n", data, 409, "exists")
    assert sorted(b["name"] for b in api.good("GET", "/v1/boxes")["items"]) == ["b", "k", "m", "n"] and wait_until(lambda: is_quiet(pale))


def test_how_far_it_is(api):
    api.make("b")
    data = export(api, "b")
    lines = list(api.stream("POST", "/v1/boxes/n/import", body=data).lines())
    assert lines[-1]["event"] == "imported" and lines[-1]["name"] == "n" and lines[-1]["from"] == "b"
    events = [(kind, d) for _, kind, d in api.stream("POST", "/v1/boxes/m/import", accept="text/event-stream", body=data).events()]
    assert events[-1][0] == "imported" and events[-1][1]["name"] == "m"
    # Nothing was told before it failed, so that the status tells.
    s = api.stream("POST", "/v1/boxes/k/import", body=data[:-5])
    assert s.status == 400 and json.loads(s.response.read())["code"] == "bad-input"


def test_poisoned_archives_are_refused_with_their_reason(api, pale, hostdir):
    (hostdir / "gone").write_text("x\n")
    (hostdir / "d").mkdir()
    api.make("s", set={"project.mode": "review", "project.path": str(hostdir)})
    api.out("s", f"rm -rf /tmp/*; echo a > ~/a; mkdir ~/d; echo x > ~/d/x; cd {hostdir}; rm gone; rm -r d; mkdir d; echo n > d/n")
    good = export(api, "s", plain=True)
    api.good("DELETE", "/v1/boxes/s?force=true", status=204)
    project, members, bad = json.dumps({"project.path": str(hostdir)}), members_of(good), []
    api.good("POST", query("/v1/boxes/n/import", set=project), body=good, status=201)
    api.good("DELETE", "/v1/boxes/n?force=true", status=204)
    pale.ok("gc")
    clean = state_of(pale)
    for name in ("device", "setuid", "overlay attribute", "way out", "hard link out", "twice", "no bill", "another content", "one deletion more", "another digest",
                 "bill that is none", "policy that is none", "global header"):
        spoil, what, why = POISON[name]
        spoilt = spoil(members)
        a = api.post(query("/v1/boxes/n/import", set=project), body=packed(spoilt) if isinstance(spoilt, list) else global_header() + good)
        told = a.json()
        if a.status not in (400, 413) or told["code"] not in ("bad-input", "corrupt", "limit") or (what != "digest" and what not in told["detail"]) or why not in told["detail"]:
            bad.append((name, a))
    assert not bad, bad
    for data in (b"", b"x", good[:700], good[: len(good.rstrip(b"\0")) - 1], good + b"x", b"\x28\xb5\x2f\xfd" + b"x" * 100):
        refused(api, "n", data, 400, "bad-input", set=project)
    pale.ok("gc")
    assert api.good("GET", "/v1/boxes")["items"] == [] and wait_until(lambda: is_quiet(pale)) and state_of(pale) == clean, sorted(state_of(pale) ^ clean)


def test_a_long_box_is_never_in_memory(api, pale, daemon):
    api.make("b")
    api.out("b", "head -c 200M /dev/urandom > ~/r", timeout="60s")
    with open(pale.root / "x", "wb") as f:
        s = api.stream("GET", "/v1/boxes/b/export", accept="*/*", timeout=120)
        while (piece := s.response.read(1 << 20)):
            f.write(piece)
        s.close()
    assert (pale.root / "x").stat().st_size > 200 << 20
    with open(pale.root / "x", "rb") as f:
        api.good("POST", "/v1/boxes/n/import", body=f, status=201, headers={"Content-Length": str((pale.root / "x").stat().st_size)}, timeout=120)
    assert (memory := memory_of(api)) < 60_000, f"the daemon held {memory} KiB"
    assert api.out("n", "sha256sum < ~/r") == api.out("b", "sha256sum < ~/r")


def test_a_slow_reader_is_waited_for_and_one_that_leaves_ends_it(api, pale, daemon):
    api.make("b")
    api.out("b", "head -c 60M /dev/urandom > ~/one")
    api.good("POST", "/v1/boxes/b/snapshots", {"name": "one"}, 201)
    api.out("b", "echo two > ~/two; rm ~/one; head -c 60M /dev/urandom > ~/three")
    layers = os.path.join(pale.info("b")["data"], "layers")
    before = memory_of(api)
    with Wire(api.where) as w:
        w.send(b"GET /v1/boxes/b/export HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert wait_until(lambda: w.more(), 20) and verbs(pale, b"export")
        time.sleep(1)  # nothing is read meanwhile
        assert memory_of(api) < before + 20_000 and verbs(pale, b"export"), "it waits"
        during = len(os.listdir(layers))
    assert wait_until(lambda: not verbs(pale, b"export"), 15), "the deed goes on without a client"
    assert wait_until(lambda: not [p for p in harness.processes_of(pale.root) if b"zstd" in b" ".join(harness.cmdline(p))])
    assert wait_until(lambda: len(os.listdir(layers)) == during - 1, 10), (during, os.listdir(layers))
    assert api.good("GET", "/v1/health")["status"] == "ok" and api.out("b", "cat ~/two") == "two\n"


def test_an_archive_that_is_cut_is_no_whole_one(api, pale, daemon):
    """Whatever ends the deed, nobody takes what came of it for an export."""
    api.make("b")
    api.out("b", "head -c 80M /dev/urandom > ~/r")
    with Wire(api.where) as w:
        w.send(b"GET /v1/boxes/b/export HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert wait_until(w.more, 20)
        for pid in verbs(pale, b"export"):
            harness.kill_quietly(pid)
        with pytest.raises(AssertionError, match="cut"):
            w.answer()
    p = run_far(pale, daemon, "export", "-o", "-", "b", start=True)
    assert p.stdout.read(100000) and (deeds := [v for v in verbs(pale, b"export") if v != p.pid])
    for pid in deeds:
        harness.kill_quietly(pid)
    err = p.communicate(timeout=20)[1]
    assert p.returncode == 125 and b"export box b: the daemon hung up" in err, err
    assert wait_until(lambda: is_quiet(pale), 15)


def test_who_leaves_in_the_middle_leaves_nothing(api, daemon, pale):
    """Wherever the archive is cut, and though it would be a whole one if it ended there."""
    api.make("b")
    api.out("b", "head -c 300000 /dev/urandom > ~/r")
    data = export(api, "b", plain=True)
    api.good("DELETE", "/v1/boxes/b?force=true", status=204)
    clean = clean_state(api, pale, data)
    for cut in (0, 10, 5000, 200_000, len(data)):
        head = f"POST /v1/boxes/half/import HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(data) + 1_000_000}\r\n\r\n".encode()
        with Wire(api.where) as w:
            w.send(head + data[:cut])
            assert wait_until(lambda: staged(pale) and verbs(pale, b"import"))
            if cut == len(data):  # all of it is there, but for the end of the body
                assert wait_until(lambda: [p for p in (pale.root / "data" / "pale-staging").rglob("home/r") if p.stat().st_size == 300_000])
                time.sleep(0.3)
        assert wait_until(lambda: is_quiet(pale), 15), (cut, staged(pale))
        assert api.good("GET", "/v1/boxes")["items"] == [] and state_of(pale) == clean, (cut, sorted(state_of(pale) ^ clean))
    assert api.good("GET", "/v1/health")["status"] == "ok"


def test_a_killed_daemon_ends_both(api, daemon, pale):
    api.make("b")
    api.out("b", "head -c 60M /dev/urandom > ~/r")
    w, x = Wire(api.where), Wire(api.where)
    w.send(b"POST /v1/boxes/w/import HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n" + bytes(512))
    x.send(b"GET /v1/boxes/b/export HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert wait_until(lambda: staged(pale) and verbs(pale, b"export"))
    daemon.kill(daemon.pid_pair()[1])
    assert wait_until(lambda: is_quiet(pale), 15)
    assert wait_until(lambda: api.get("/v1/health").status == 200, 15) and [b["name"] for b in api.good("GET", "/v1/boxes")["items"]] == ["b"]


def test_so_many_at_once(api, pale):
    api.make("b")
    data, waiting = export(api, "b"), []
    for i in range(4):
        w = Wire(api.where)
        w.send(f"POST /v1/boxes/w{i}/import HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n".encode() + bytes(100))
        waiting.append(w)
    assert wait_until(lambda: len(staged(pale)) == 4)
    refused(api, "more", data, 429, "busy")
    for w in waiting:
        w.__exit__()
    assert wait_until(lambda: api.post("/v1/boxes/more/import", body=data).status == 201, 15)


def test_two_of_one_name(api, pale):
    api.make("b")
    data, done = export(api, "b"), []
    threads = [threading.Thread(target=lambda: done.append(api.post("/v1/boxes/one/import", body=data).status)) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(done) == [201, 409, 409, 409] and wait_until(lambda: is_quiet(pale)) and api.out("one", "echo up") == "up\n"


def test_who_may(idle_daemon, pale, hostdir):
    api, port = idle_daemon.rest, idle_daemon.on_port()
    theirs, own = api.make("b", tenant="one", set={"limits.output": "10M"})["id"], api.make("mine", start=False)["id"]
    made = {k: api.token_for(**f) for k, f in {"tenant": {"scope": "tenant", "tenant": "one"}, "other": {"scope": "tenant", "tenant": "two"}, "inside": {"scope": "box", "box": theirs},
                                               "reader": {"rights": ["file.read"]}, "both": {"rights": ["file.read", "policy.read"]}, "maker": {"rights": ["box.make"]},
                                               "nobody": {"rights": ["box.read", "policy.read", "snapshot"]}}.items()}
    who = {k: Rest(port, t["token"]) for k, t in made.items()}
    data = export(who["tenant"], theirs)
    assert export(who["inside"], theirs) and export(who["both"], theirs)
    assert [r["caller"] for r in audit_of(api, theirs) if r["event"] == "box.export"] == [made[k]["id"] for k in ("tenant", "inside", "both")]
    for k, box, status in (("other", theirs, 404), ("tenant", own, 404), ("inside", own, 404), ("reader", theirs, 403), ("maker", theirs, 403), ("nobody", theirs, 403)):
        who[k].bad("GET", f"/v1/boxes/{box}/export", None, status)
    for k in ("inside", "reader", "both", "nobody"):
        refused(who[k], "x", data, 403, "denied")
    assert "tenant" in refused(who["tenant"], "x", data, 403, "denied", tenant="two")
    # A tenant's is within what his boxes may be, and his alone.
    assert "path" not in (told := refused(who["tenant"], "x", data, 403, "denied", set=json.dumps({"read": str(hostdir)}))) or str(hostdir) in told
    assert told.replace(str(hostdir), "/nowhere") == refused(who["tenant"], "x", data, 403, "denied", set=json.dumps({"read": "/nowhere"})), "which paths there are is not told"
    answer = arrive(who["tenant"], "mine", data)
    assert answer["scope"] == "tenant" and "data" not in answer and who["tenant"].out(answer["id"], "echo in") == "in\n"
    assert audit_of(api, answer["id"])[0]["caller"] == made["tenant"]["id"] and api.good("GET", f"/v1/boxes/{answer['id']}")["tenant"] == "one"
    who["other"].bad("GET", f"/v1/boxes/{answer['id']}", None, 404)
    assert "already" in (told := refused(who["tenant"], "mine", data, 409, "exists")) and str(pale.root) not in told
    arrive(who["other"], "mine", data)
    arrive(who["maker"], "made", data)
    assert arrive(api, "two", data, tenant="two")["scope"] == "tenant" and who["other"].out("two", "echo in") == "in\n"
    # Half of what can be done at once is never theirs.
    waiting = []
    for i in range(2):
        w = Wire(port)
        w.send(f"POST /v1/boxes/w{i}/import HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {made['tenant']['token']}\r\nContent-Length: 100000\r\n\r\n".encode() + bytes(100))
        waiting.append(w)
    assert wait_until(lambda: len(staged(pale)) == 2)
    refused(who["other"], "more", data, 429, "busy")
    arrive(api, "more", data)
    for w in waiting:
        w.__exit__()
    assert wait_until(lambda: is_quiet(pale), 15)


def audit_of(api, box):
    return api.get(f"/v1/boxes/{box}/audit").lines()


# --- through --host ---

def far(pale, daemon):
    return {**pale.env, "PALE_HOST": f"unix://{daemon.socket}", "HOME": str(pale.root / "away"), "XDG_DATA_HOME": str(pale.root / "away" / "d"),
            "XDG_STATE_HOME": str(pale.root / "away" / "s"), "XDG_RUNTIME_DIR": str(pale.root / "away" / "r")}


def run_far(pale, daemon, *words, start=False, **more):
    (pale.root / "away").mkdir(exist_ok=True)
    words, env = [pale.program, *map(str, words)], far(pale, daemon)
    if start:
        return subprocess.Popen(words, env=env, cwd=pale.root / "away", stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)
    return subprocess.run(words, env=env, cwd=pale.root / "away", capture_output=True, timeout=60, check=False, **more)


@pytest.mark.basic
def test_by_the_command(api, daemon, pale, root):
    api.make("b", set={"env": "SECRET_WORD=hush"})
    api.out("b", "echo far > ~/f")
    done = run_far(pale, daemon, "export", "b")
    assert done.returncode == 0 and b"exported box b to b.tar.zst" in done.stdout and os.listdir(pale.root / "away") == ["b.tar.zst"], done
    file = pale.root / "away" / "b.tar.zst"
    assert file.stat().st_mode & 0o777 == 0o600 and bill_of(file)["box"] == "b"
    assert run_far(pale, daemon, "export", "b").returncode == 125 and run_far(pale, daemon, "export", "-f", "--json", "b").returncode == 0
    done = run_far(pale, daemon, "import", "--output", "300M", file, "n")
    assert done.returncode == 0 and done.stdout.startswith(b"box n [user] id=") and b"env.set SECRET_WORD" in done.stderr, done
    assert pale.info("n")["policy"]["limits"]["output"]["value"] == 300 << 20 and api.out("n", "cat ~/f") == "far\n"
    streamed = run_far(pale, daemon, "export", "--plain", "-o", "-", "b")
    assert streamed.returncode == 0 and members_of(streamed.stdout)[1][0].name == "home/f"
    (pale.root / "p.yaml").write_text("limits: {output: 200M}\n")
    done = run_far(pale, daemon, "import", "--json", "--policy", pale.root / "p.yaml", "-", "m", input=streamed.stdout)
    assert done.returncode == 0 and json.loads(done.stdout)["from"] == "b" and pale.info("m")["policy"]["limits"]["output"]["value"] == 200 << 20, done
    for words, why in ((("export", "nobody"), b"nobody"), (("export", "-f", "--at", "never", "b"), b"no snapshot"), (("import", file, "n"), b"already"), (("import", "/none", "x"), b"/none"),
                       (("import", file, "-x"), b""), (("import", "--read", "etc", file, "x"), b"write all of it"), (("import", pale.root / "p.yaml", "x"), b"")):
        done = run_far(pale, daemon, *words)
        assert done.returncode == 125 and why in done.stderr, (words, done)
    done = run_far(pale, daemon, "export", "--json", "-o", "-", "nobody")
    assert done.returncode == 125 and done.stdout == b"" and json.loads(done.stderr)["error"]["code"] == "not-found", done
    assert os.listdir(pale.root / "away") == ["b.tar.zst"] and wait_until(lambda: is_quiet(pale))


def test_ctrl_c_cleans_up_on_both_sides(api, daemon, pale):
    api.make("b")
    api.out("b", "head -c 80M /dev/urandom > ~/s", timeout="60s")
    data = export(api, "b", plain=True)
    clean = clean_state(api, pale, data)
    for silent in (False, True):
        paled = daemon.pid_pair()[1]
        if silent:
            os.kill(paled, signal.SIGSTOP)
        try:
            p = run_far(pale, daemon, "export", "b", start=True)
            assert wait_until(lambda: len(verbs(pale, b"export")) >= (1 if silent else 2), 20), "the one that asks, and the one that does it"
            time.sleep(0.2)
            p.send_signal(signal.SIGINT)
            out, err = p.communicate(timeout=5)
        finally:
            os.kill(paled, signal.SIGCONT)
        assert p.returncode == 125 and b"interrupted" in err and os.listdir(pale.root / "away") == [], (out, err)
        assert wait_until(lambda: is_quiet(pale), 15)
    p = run_far(pale, daemon, "import", "-", "n", start=True, stdin=subprocess.PIPE)
    p.stdin.write(data[:3_000_000])
    p.stdin.flush()
    assert wait_until(lambda: staged(pale), 20)
    p.send_signal(signal.SIGINT)
    p.communicate(timeout=20)
    assert p.returncode != 0 and wait_until(lambda: is_quiet(pale), 15)
    assert [b["name"] for b in api.good("GET", "/v1/boxes")["items"]] == ["b"]
    pale.ok("gc")
    # The daemon keeps checkpoints of logs when it likes to.
    assert not [s for s in state_of(pale) ^ clean if "/layers/" not in s and "checkpoint" not in s], sorted(state_of(pale) ^ clean)


def test_who_leaves_before_anything_was_told_ends_it(api, pale):
    """While a long file is digested nobody reads and nobody writes."""
    api.make("b")
    api.out("b", "truncate -s 60G ~/holes")
    with Wire(api.where) as w:
        w.send(b"GET /v1/boxes/b/export HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert wait_until(lambda: len(verbs(pale, b"export")) >= 2), "it digests"
        time.sleep(0.2)
    assert wait_until(lambda: is_quiet(pale), 2.5), "all of it would take twice as long, at the least"


def test_one_that_is_stopped_while_it_is_copied(api, pale):
    """Because it works it must be copied; but then it does not."""
    api.make("b")
    api.out("b", "head -c 100M /dev/urandom > ~/r", timeout="60s")
    api.start("b", "sleep 1000")
    told = []
    asks = threading.Thread(target=lambda: told.append(api.get("/v1/boxes/b/export?plain=true", timeout=60)))
    stops = threading.Thread(target=lambda: api.post("/v1/boxes/b/stop"))
    asks.start()
    assert wait_until(lambda: len(verbs(pale, b"export")) >= 2, every=0.005)
    copier = max(verbs(pale, b"export"))
    os.kill(copier, signal.SIGSTOP)
    try:
        stops.start()
        assert wait_until(lambda: not [p for p in harness.processes_of(pale.root) if harness.cmdline(p)[:2] == [b"pale-keeper", b"box"]], 15)
    finally:
        os.kill(copier, signal.SIGCONT)
    asks.join()
    stops.join()
    assert told[0].status == 200, told
    assert [len(c) for m, c in members_of(told[0].body) if m.name == "home/r"] == [100 << 20]
