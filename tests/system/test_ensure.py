# SPDX-License-Identifier: Apache-2.0
"""Making sure that a box is there: by the command line, by the daemon, and by both."""
import subprocess

import pytest


@pytest.fixture(params=["here", "far"])
def where(request, pale):
    if request.param == "here":
        return []
    request.getfixturevalue("daemon")
    return ["--host", f"unix://{pale.root}/run/pale/paled.sock"]


def test_it_is_made_found_or_told_apart(pale, where):
    made = pale.json(*where, "create", "--json", "--ensure", "b", "--processes", "64")
    again = pale.json(*where, "create", "--json", "--ensure", "b", "--processes", "64")
    assert made["id"] == again["id"] and pale.boxes() == ["b"]
    pale.ok("exec", "b", "--", "sh", "-c", "echo kept > note")
    done = pale.run(*where, "create", "--ensure", "b", "--processes", "128", "--env", "A=1", expect=125)
    assert "limits.processes: 64 -> 128" in done.errors and "env.set: + A=1" in done.errors and "pale policy set b" in done.errors
    assert pale.exec("b", "cat", "note").text == "kept\n"
    pale.run(*where, "create", "b", "--processes", "64", expect=125)


def test_two_boxes_and_a_stopped_one(pale, where):
    pale.ok(*where, "create", "--ensure", "one", "two")
    pale.ok("stop", "one")
    pale.ok(*where, "create", "--ensure", "one", "two", "three")
    assert pale.boxes() == ["one", "three", "two"]
    assert {b["state"] for b in pale.json("ls", "--json")} == {"ready"}
    pale.ok(*where, "create", "--ensure", "--no-start", "four")
    pale.ok(*where, "create", "--ensure", "--no-start", "four")


def test_snapshots_by_hand_are_part_of_it(pale, where):
    pale.ok(*where, "create", "--ensure", "b", "--no-autosave")
    done = pale.run(*where, "create", "--ensure", "b", expect=125)
    assert "automatic snapshots: not kept -> kept" in done.errors
    pale.ok(*where, "create", "--ensure", "b", "--no-autosave")


def test_many_at_once_make_one(pale, where):
    racers = [pale.start(*where, "create", "--json", "--ensure", "b", "--processes", "64") for _ in range(6)]
    ends = [p.communicate(timeout=60) for p in racers]
    assert [p.returncode for p in racers] == [0] * 6, ends
    assert len({out for out, _ in ends}) == 1 and pale.boxes() == ["b"]
    other = [pale.start(*where, "create", "--ensure", "c", "--processes", m) for m in (64, 128)]
    for p in other:
        p.communicate(timeout=60)
    assert sorted(p.returncode for p in other) == [0, 125]


def test_a_project_has_its_own(pale, hostdir):
    for n in ("p", "q"):
        (hostdir / n).mkdir()
    ids = [pale.json("create", "--json", "--ensure", "--in-project", "b", cwd=hostdir / n)["id"] for n in ("p", "q", "p", "q")]
    mine = pale.json("create", "--json", "--ensure", "b")["id"]
    assert ids[:2] == ids[2:] and len({*ids, mine}) == 3
    for n in ("p", "q"):
        subprocess.run([pale.program, "rm", "b"], env=pale.env, cwd=hostdir / n, check=True)
    pale.more_ids |= set(ids)


def test_put_takes_what_the_command_line_has_made(pale, api):
    made = pale.json("create", "--json", "b", "--processes", "64")
    ask = {"set": {"limits.processes": "64"}}
    assert api.good("PUT", "/v1/boxes/b", ask, 200)["id"] == made["id"]
    assert api.good("PUT", "/v1/boxes/b", {"policy": {"limits": {"processes": 64}}}, 200)["id"] == made["id"]
    told = api.bad("PUT", "/v1/boxes/b", {"set": {"limits.processes": "32"}}, 409, "exists")
    assert "64 -> 32" in told["detail"]
    api.bad("POST", "/v1/boxes", {"name": "b", **ask}, 409, "exists")
    pale.ok("stop", "b")
    assert api.good("PUT", "/v1/boxes/b", {**ask, "start": False}, 200)["state"] == "stopped"
    assert api.good("PUT", "/v1/boxes/b", {**ask, "ttl": "1h"}, 200)["state"] in ("ready", "running")
    assert api.good("GET", "/v1/boxes/b")["expires"]


def test_the_command_line_takes_what_put_has_made(pale, api):
    made = api.good("PUT", "/v1/boxes/b", {"set": {"limits.processes": "64"}}, 200)
    assert pale.json("create", "--json", "--ensure", "b", "--processes", "64")["id"] == made["id"]
    assert "64 -> 512" in pale.run("create", "--ensure", "b", expect=125).errors


def test_two_tenants_have_each_their_own(pale, api):
    mine = pale.json("create", "--json", "b")["id"]
    ids = [api.good("PUT", "/v1/boxes/b", {"tenant": t, **more}, 200)["id"] for more in ({}, {"policy": {}}) for t in ("one", "two")]
    assert ids[:2] == ids[2:] and len({*ids, mine}) == 3
    for t in ("one", "two"):
        assert api.bad("PUT", "/v1/boxes/b", {"tenant": t, "set": {"limits.processes": "32"}}, 409, "exists")
