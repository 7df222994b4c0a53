# SPDX-License-Identifier: Apache-2.0
"""What a box has changed, over REST: seen, landed in the project, thrown away; who may, and that a slow client holds up nobody."""
import os
import shutil
import subprocess
import time

import pytest

from harness import wait_until
from rest import Rest, query
from test_rest_snapshot import heard, now

pytestmark = pytest.mark.once


@pytest.fixture
def project(hostdir):
    """Older than the box by more than the file system's clock can be wrong."""
    (hostdir / "a").write_text("one\ntwo\nthree\n")
    (hostdir / "gone").write_text("gone\n")
    (hostdir / "bin").write_bytes(bytes(range(256)))
    time.sleep(0.1)
    return hostdir


@pytest.fixture
def box(api, project):
    return api.make("r", set={"project": "review", "project.path": str(project)})["name"]


def diff(api, box, form="names", **more):
    a = api.get(query(f"/v1/boxes/{box}/diff", form=form, **more))
    assert a.status == 200, a
    return a.lines() if form == "json" else a.body.decode()


def work(api, box, project):
    api.out(box, f"cd {project}; sed -i s/two/TWO/ a; rm gone; mkdir dir; echo new > dir/new; ln -s a link; chmod 755 bin")


@pytest.mark.basic
def test_diff_is_that_of_the_command_line(api, pale, box, project, root):
    assert [diff(api, box, f) for f in ("patch", "stat", "names", "json")] == ["", "", "", []]
    work(api, box, project)
    assert diff(api, box).splitlines() == ["a", "bin", "dir/new", "gone", "link"] == pale.ok("diff", "--name-only", box).text.splitlines()
    assert diff(api, box, "json") == pale.json("diff", "--json", box)
    assert diff(api, box, "stat") == pale.ok("diff", "--stat", box).text and "5 files, 3 lines added, 2 removed" in diff(api, box, "stat")
    a = api.get(f"/v1/boxes/{box}/diff")
    assert a.header("content-type").startswith("text/plain") and a.body == pale.ok("diff", box).out
    copy = root / "copy"
    shutil.copytree(project, copy)
    assert subprocess.run(["git", "apply", "-p1"], input=a.body, cwd=copy).returncode == 0
    assert (copy / "a").read_text() == "one\nTWO\nthree\n" and os.readlink(copy / "link") == "a"
    assert diff(api, box, path="dir") == diff(api, box, path=str(project / "dir")) == diff(api, box, path="x/../dir/.") == "dir/new\n"
    api.out(box, "echo 1 > ~/f")
    assert diff(api, box, path="/home/agent") == "f\n"


def test_diff_between_snapshots(api, box, project):
    for n in ("one", "two"):
        api.out(box, f"echo {n} > {project}/a; touch {project}/{n}")
        api.good("POST", f"/v1/boxes/{box}/snapshots", {"name": n}, 201)
    api.out(box, f"rm {project}/gone")
    assert diff(api, box, **{"from": "one", "to": "two"}) == "a\ntwo\n" and diff(api, box, **{"from": "two"}) == "gone\n"
    assert diff(api, box, to="one") == "a\none\n"


def test_what_cannot_be_told_says_why(api, box):
    where = f"/v1/boxes/{box}/diff"
    api.bad("GET", f"{where}?form=xml", None, 400, "bad-input")
    api.bad("GET", f"{where}?from=never", None, 404, "not-found")
    api.bad("GET", f"{where}?path=/usr", None, 400, "bad-input")
    api.bad("GET", f"{where}?path=" + 100 * "../" + "x", None, 400, "bad-input")
    api.make("m", set={"scratch": "memory"})
    api.bad("GET", "/v1/boxes/m/diff", None, 501, "unsupported")


def test_hostile_names_and_contents_are_payload(api, box, project):
    api.out(box, f"cd {project} && printf '\\033[2J\\377\\n' > \"$(printf 'e\\033[2J\\nx')\"; mkfifo pipe; ln -s /etc/shadow a2")
    text = diff(api, box, "stat")
    assert "\x1b" not in text and "e\\x1b[2J\\nx" in text
    assert {c["path"] for c in diff(api, box, "json")} >= {"e\x1b[2J\nx", "a2"}
    assert b"\x1b[2J\xff" in api.get(f"/v1/boxes/{box}/diff").body  # as git has it
    assert all(not line.startswith("root:") for line in api.get(f"/v1/boxes/{box}/diff").body.decode("latin-1").splitlines())


# --- apply ---


def apply(api, box, **fields):
    a = api.good("POST", f"/v1/boxes/{box}/apply", fields, 200)
    return {i["path"]: i for i in a["items"]}, {k: v for k, v in a.items() if k != "items" and v}


@pytest.mark.basic
def test_apply_lands_what_the_host_would_not_obey(api, box, project):
    work(api, box, project)
    api.out(box, f"mkdir -p {project}/.git/hooks; echo evil > {project}/.git/hooks/pre-commit")
    items, numbers = apply(api, box, dry_run=True)
    assert numbers["landed"] == 5 and numbers["held"] == 4 and (project / "a").read_text() == "one\ntwo\nthree\n"  # folders too
    begun = now(api)
    items, again = apply(api, box)
    assert again == numbers and items["a"]["result"] == "landed" and items[".git/hooks/pre-commit"]["result"] == "held"
    assert (project / "a").read_text() == "one\nTWO\nthree\n" and not (project / "gone").exists() and not (project / ".git" / "hooks").exists()
    (told,) = [e for e in heard(api, begun) if e["event"] == "review.applied"]
    assert told["caller"] == "operator" and told["files"]["landed"] == numbers["landed"] and told["files"]["held"] == numbers["held"]
    assert [r["caller"] for r in api.get(f"/v1/boxes/{box}/audit").lines() if r["event"] == "review.apply"] == ["operator"]
    items, numbers = apply(api, box, include_guarded=True, paths=[".git"])
    assert (project / ".git" / "hooks" / "pre-commit").read_text() == "evil\n" and set(items) <= {".git", ".git/hooks", ".git/hooks/pre-commit"}


def test_apply_of_some_paths_and_of_conflicts(api, box, project):
    work(api, box, project)
    items, _ = apply(api, box, paths=["dir", str(project / "link")])
    assert set(items) == {"dir", "dir/new", "link"} and (project / "gone").exists() and os.readlink(project / "link") == "a"
    (project / "a").write_text("one\nmine\nthree\n")
    items, numbers = apply(api, box, paths=["a"])
    assert items["a"]["result"] == "conflict" and (project / "a").read_text() == "one\nmine\nthree\n" and numbers == {"conflict": 1}


def test_apply_refuses_what_is_no_path(api, box, project, hostdir):
    where = f"/v1/boxes/{box}/apply"
    for path in ("/etc", "../x", "", "a\0b", "x" * 4096):
        api.bad("POST", where, {"paths": [path]}, 400, "bad-input")
    api.bad("POST", where, {"paths": ["a"] * 257}, 400, "bad-input")
    api.bad("POST", where, {"paths": ["x" * 4000] * 200}, 413, "limit")
    api.make("plain")
    api.bad("POST", "/v1/boxes/plain/apply", {}, 400, "bad-input")


def test_apply_goes_on_without_its_client(api, box, project):
    api.out(box, f"cd {project}; for i in $(seq 3000); do echo $i > n$i; done")
    begun = now(api)
    c = api.send_only("POST", f"/v1/boxes/{box}/apply", {})
    assert wait_until(lambda: b"review.apply" in api.get(f"/v1/boxes/{box}/audit").body)
    c.close()
    assert wait_until(lambda: len(list(project.glob("n*"))) == 3000, 60)
    assert wait_until(lambda: "review.applied" in [e["event"] for e in heard(api, begun)], 20)


def test_who_may_land(api, pale, box, project):
    """A box's token never; a tenant where his boxes might have the project live, and never what the host would obey."""
    work(api, box, project)
    own = api.token_for(scope="box", box=box)
    assert "review" not in own["rights"]
    for op in ("apply", "discard"):
        api.by(own["token"]).bad("POST", f"/v1/boxes/{box}/{op}", {}, 403, "denied")
    api.bad("POST", "/v1/tokens", {"scope": "box", "box": box, "rights": ["review"]}, 400, "bad-input")
    ceiling = pale.home / ".config" / "pale" / "tenant.yaml"
    ceiling.parent.mkdir(parents=True)
    ceiling.write_text(f"project: {{mode: review, path: {project}}}\n")
    tenant = api.by(api.token_for(scope="tenant", tenant="t")["token"])
    tenant.make("theirs", set={"project": "review", "project.path": str(project)})
    tenant.out("theirs", f"echo theirs > {project}/theirs; mkdir {project}/.vscode; echo x > {project}/.vscode/tasks.json")
    assert "theirs\n" in diff(tenant, "theirs")
    tenant.bad("POST", "/v1/boxes/theirs/apply", {}, 403, "denied")
    tenant.bad("POST", "/v1/boxes/theirs/apply", {"dry_run": True}, 403, "denied")
    assert not (project / "theirs").exists()
    ceiling.write_text(f"project: {{mode: live, path: {project}}}\n")
    tenant.bad("POST", "/v1/boxes/theirs/apply", {"include_guarded": True}, 403, "denied")
    items, numbers = apply(tenant, "theirs")
    assert (project / "theirs").read_text() == "theirs\n" and numbers["held"] and not (project / ".vscode" / "tasks.json").exists()
    tenant.bad("POST", f"/v1/boxes/{box}/apply", {}, 404, "not-found")


# --- discard ---


def test_discard_keeps_what_it_was(api, box, project):
    begun = now(api)
    assert api.good("POST", f"/v1/boxes/{box}/discard", {}, 200) == {"kept": ""}
    work(api, box, project)
    job = api.start(box, ["sleep", "1000"])
    api.bad("POST", f"/v1/boxes/{box}/discard", {}, 429, "busy")
    assert job and diff(api, box)
    kept = api.good("POST", f"/v1/boxes/{box}/discard", {"force": True}, 200)["kept"]
    assert diff(api, box) == "" and api.out(box, f"cat {project}/a") == "one\ntwo\nthree\n" and (project / "gone").exists()
    assert diff(api, box, to=kept).splitlines() == ["a", "bin", "dir/new", "gone", "link"]
    assert [(e["snapshot"], e["caller"]) for e in heard(api, begun) if e["event"] == "review.discarded"] == [(kept, "operator")]
    api.make("plain")
    api.bad("POST", "/v1/boxes/plain/discard", {}, 400, "bad-input")


def test_discard_of_some_paths(api, pale, box, project):
    work(api, box, project)
    begun, where = now(api), f"/v1/boxes/{box}/discard"
    for paths, status, code in ((["a", "nowhere"], 404, "not-found"), ([""], 400, "bad-input"), (["x\0y"], 400, "bad-input"), (["/usr"], 400, "bad-input"),
                                ("a", 400, "bad-input"), (257 * ["a"], 400, "bad-input")):
        api.bad("POST", where, {"paths": paths}, status, code)
    kept = api.good("POST", where, {"paths": ["a", str(project / "dir"), "./x/../link"]}, 200)["kept"]
    assert diff(api, box) == "bin\ngone\n" and api.out(box, f"cat {project}/a; ls {project}").split() == "one two three a bin".split()
    assert diff(api, box, to=kept).splitlines() == ["a", "bin", "dir/new", "gone", "link"]
    assert [(e["snapshot"], e["caller"]) for e in heard(api, begun) if e["event"] == "review.discarded"] == [(kept, "operator")]
    api.good("POST", f"/v1/boxes/{box}/apply", {"include_guarded": True}, 200)
    assert sorted(os.listdir(project)) == ["a", "bin"] and diff(api, box) == ""


# --- streams ---


def fill(api, box, project):
    """Changes of 80 megabytes, as their difference is told."""
    api.out(box, f"cd {project}; mkdir big; for i in $(seq 20); do yes $i-0123456789012345678901234567890123456789 | head -c 4000000 > big/$i; done")


def test_a_slow_client_holds_up_nobody(api, daemon, box, project):
    fill(api, box, project)
    slow = [api.stream("GET", f"/v1/boxes/{box}/diff") for _ in range(4)]
    begun = time.monotonic()
    assert api.out(box, "echo hello") == "hello\n" and time.monotonic() - begun < 5
    with open(f"/proc/{api.good('GET', '/v1/health')['pid']}/status") as f:
        memory = next(int(line.split()[1]) for line in f if line.startswith("VmRSS"))
    assert memory < 60_000, f"the daemon holds {memory} KiB"
    assert len(slow[0].response.read()) > 75_000_000
    for s in slow:
        s.close()
    assert wait_until(lambda: not [p for p in os.listdir("/proc") if p.isdigit() and is_deed(p, daemon)])


def is_deed(pid, daemon):
    """A child of the steward's that is not paled."""
    try:
        with open(f"/proc/{pid}/stat") as f:
            name, rest = f.read().rsplit(")", 1)
        return "pale-steward" in name and rest.split()[1] == str(daemon.pid_pair()[0])
    except OSError:
        return False
