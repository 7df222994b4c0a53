# SPDX-License-Identifier: Apache-2.0
"""Capability files as users of aumai have them: with rules for a network, and with secrets among the variables they list."""
import json

import pytest

NAMED = {"OPENAI_API_KEY": "canary-1", "github_token": "canary-2", "MY_SECRET": "canary-3", "DB_PASSWORD": "canary-4", "AWS_REGION": "canary-5",
         "Session_Id": "canary-6", "AZURE_DEVOPS_EXT_PAT": "canary-7", "ROOT_PWD": "canary-8"}
VALUED = {"FOO": "ghp_abcdefghijklmnopqrst0123", "URL": "postgres://user:hunter2@db/x", "BAR": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"}
PLAIN = {"LANG": "de_DE.UTF-8", "COLOUR": "green", "EMPTY": ""}
ALL = {**NAMED, **VALUED, **PLAIN}


@pytest.fixture
def capability(pale):
    def write(text, name="cap.yaml"):
        path = pale.home / name
        path.write_text(text)
        return path
    return write


def listed(names, more=""):
    return f"sandbox_tier: seccomp\nfilesystem_config: {{mode: none}}\nenv_allowlist: [{', '.join(names)}]\n{more}"


def env_of(text):
    return dict(line.split("=", 1) for line in text.splitlines())


def judge(done, seen, held, passed):
    for name in held:
        assert name not in seen, (name, done)
        assert name in done.errors
        assert ALL[name] not in done.errors
    for name in passed:
        assert seen.get(name) == ALL[name], (name, done)


@pytest.mark.parametrize("kept", [False, True])
def test_secrets_of_an_allowlist_are_held_back_and_told(pale, capability, kept):
    cap = capability(listed(ALL))
    if kept:
        pale.create("b", "--policy", cap)
        done = pale.exec("b", "env", env=ALL)
    else:
        done = pale.ok("run", "--policy", cap, "--", "env", env=ALL)
    judge(done, env_of(done.text), [*NAMED, *VALUED], PLAIN)
    log = pale.ok("audit", "--json", "b").text if kept else (pale.root / "state/pale/runs.audit").read_text()
    events = [e for e in map(json.loads, log.splitlines()) if e["event"] == "exec"]
    assert set(events[-1]["env_held_back"]) == {*NAMED, *VALUED}
    assert not any(v in log for v in (*NAMED.values(), *VALUED.values()))


def test_json_names_what_was_held_back(pale, capability):
    cap = capability(listed(ALL))
    told = pale.json("run", "--json", "--policy", cap, "--", "env", env=ALL)
    assert set(told["env_held_back"]) == {*NAMED, *VALUED}
    assert "env_held_back" not in pale.json("run", "--json", "--policy", cap, "--", "env", env=PLAIN)
    pale.create("b", "--policy", cap)
    env = pale.info("b")["policy"]["env"]
    assert set(env["held_back"]) == set(NAMED) and set(env["allow"]) == set(ALL) and env["pass"] == []
    assert "held back" in pale.ok("inspect", "b").text


def test_the_operator_says_otherwise_by_a_flag_or_by_the_policy(pale, capability):
    cap = capability(listed(ALL))
    done = pale.ok("run", "--policy", cap, "--env", "OPENAI_API_KEY", "--env", "FOO", "--", "env", env=ALL)
    judge(done, env_of(done.text), (set(NAMED) | set(VALUED)) - {"OPENAI_API_KEY", "FOO"}, {"OPENAI_API_KEY", "FOO", *PLAIN})
    ours = capability("env: {pass: [OPENAI_API_KEY], allow: [MY_SECRET, LANG]}\n", "ours.yaml")
    done = pale.ok("run", "--policy", ours, "--", "env", env=ALL)
    judge(done, env_of(done.text), {"MY_SECRET"}, {"OPENAI_API_KEY", "LANG"})


def test_two_boxes_hold_back_each_its_own(pale, capability):
    pale.create("one", "--policy", capability(listed(["OPENAI_API_KEY", "LANG"])))
    pale.create("two", "--policy", capability(listed(["MY_SECRET"], ), "two.yaml"), "--env", "OPENAI_API_KEY")
    one, two = pale.exec("one", "env", env=ALL), pale.exec("two", "env", env=ALL)
    judge(one, env_of(one.text), {"OPENAI_API_KEY"}, {"LANG"})
    judge(two, env_of(two.text), {"MY_SECRET"}, {"OPENAI_API_KEY"})
    assert "LANG" not in env_of(two.text) or env_of(two.text)["LANG"] != ALL["LANG"]


@pytest.mark.weaken("env")
def test_a_secret_of_an_allowlist_stays_out(wall, capability):
    done = wall.pale.run("run", "--policy", capability(listed(["OPENAI_API_KEY"])), "--", "env", env=ALL)
    assert done.code == 0, done
    wall.judge("OPENAI_API_KEY" in env_of(done.text), done)


def test_through_the_daemon_too(pale, daemon, capability):
    socket = f"unix://{pale.root}/run/pale/paled.sock"
    cap = capability(listed(ALL))
    pale.ok("--host", socket, "create", "--policy", cap, "far")
    done = pale.ok("--host", socket, "exec", "far", "--", "env", env=ALL)
    judge(done, env_of(done.text), [*NAMED, *VALUED], PLAIN)


RULES = "network_egress_rules:\n  - {domain: example.org, ports: [443]}\n"


@pytest.mark.parametrize("far", [False, True])
def test_a_file_with_rules_starts_and_tells_what_is_not_held(pale, idle_daemon, capability, far):
    where = ["--host", f"unix://{pale.root}/run/pale/paled.sock"] if far else []
    if far:
        idle_daemon.serve()
    cap = capability(f"sandbox_tier: seccomp\nfilesystem_config: {{mode: none}}\n{RULES}")
    pale.ok(*where, "run", "--policy", cap, "--", "true")
    pale.ok(*where, "create", "--policy", cap, "b")
    limits = pale.info("b")["policy"]["limits"]
    for key in ("tokens", "cost_usd"):
        assert limits[key]["asked"] is False and limits[key]["held"] is False
    assert limits["memory"]["asked"] is False and limits["memory"]["value"] == 512 << 20 and "held" not in limits["memory"]
    rows = {r["name"]: r for r in pale.json("prove", "--json", "--full", "b")["receipt"]["attempts"]}
    assert rows["token-limit"]["observed"] == rows["cost-limit"]["observed"] == "not held"
    assert pale.ok("inspect", "b").text.count("not held") == 2


@pytest.mark.parametrize("line", ["max_tokens: 100000", "max_cost_usd: 0.10"])
def test_a_budget_that_is_written_is_refused_with_rules(pale, capability, line):
    cap = capability(f"filesystem_config: {{mode: none}}\nresource_limits: {{{line}}}\n{RULES}")
    done = pale.run("run", "--policy", cap, "--", "true", expect=125)
    assert "does not meter model APIs" in done.errors
    cap = capability(f"filesystem_config: {{mode: none}}\nresource_limits: {{{line}}}\n")
    pale.ok("run", "--policy", cap, "--", "true")


def test_without_rules_no_default_is_told_as_not_held(pale, capability):
    pale.create("b", "--policy", capability("sandbox_tier: seccomp\nfilesystem_config: {mode: none}\n"))
    assert "not held" not in pale.ok("inspect", "b").text
