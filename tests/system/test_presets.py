# SPDX-License-Identifier: Apache-2.0
"""Presets, and what a policy says about the network: by the verbs that need no box."""
import re

import pytest

RULE = re.compile(r"^[a-z0-9.-]+(:\d+(,\d+)*)?(\+methods=GET,HEAD)?$")


def write_preset(pale, name, text):
    folder = pale.home / ".config/pale/presets"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)
    return folder / name


def test_presets_of_pale_are_listed_and_shown(pale):
    rows = {r["name"]: r for r in pale.json("presets", "--json")}
    assert set(rows) == {"none", "package-registries", "git-hosts", "model-apis", "dev"}
    assert all(r["from"] == "pale" and r["version"] == "1" for r in rows.values())
    assert rows["none"]["rules"] == []
    assert sorted(rows["dev"]["rules"]) == sorted(r for n in ("package-registries", "git-hosts", "model-apis") for r in rows[n]["rules"])
    assert rows["dev"]["presets"] == ["dev@1", "git-hosts@1", "model-apis@1", "package-registries@1"]
    for name, row in rows.items():
        lines = pale.ok("presets", name).text.splitlines()
        assert [line for line in lines if not line.startswith("#")] == row["rules"] and f"# {name}@1" in lines
        assert all(RULE.match(r) for r in row["rules"]), row


def test_what_pale_presets_prints_is_a_preset(pale):
    text = pale.ok("presets", "dev").text
    write_preset(pale, "mine", "version 1\n" + text)
    assert pale.json("presets", "--json", "mine")["rules"] == pale.json("presets", "--json", "dev")["rules"]


def test_a_preset_of_the_user_includes_those_of_pale(pale):
    write_preset(pale, "mine", "version 1\ninclude dev\nx.org\n")
    mine, dev = pale.json("presets", "--json", "mine"), pale.json("presets", "--json", "dev")
    assert mine["presets"] == sorted(["mine@1", *dev["presets"]]) and set(mine["rules"]) == {"x.org", *dev["rules"]}


def test_presets_of_the_user(pale):
    file = write_preset(pale, "mine", "# ours\nversion 12\nx.org:443\n10.0.0.0/8:5432=ask\n")
    row = pale.json("presets", "--json", "mine")
    assert row == {"name": "mine", "version": "12", "from": str(file), "presets": ["mine@12"], "rules": ["x.org:443", "10.0.0.0/8:5432=ask"]}
    assert "mine" in pale.ok("presets").text
    (pale.home / "p.yaml").write_text("network: {mode: filtered, presets: [mine]}\n")
    shown = pale.json("policy", "show", "--json", "./p.yaml")["network"]
    assert shown["presets"] == ["mine@12"] and len(shown["egress"]) == 2


@pytest.mark.parametrize("text,says", [("x.org\n", "version"), ("version 1\nx_y\n", "line 2"), ("version 1\ninclude mine\n", "cannot be included"),
                                       ("version 1\n" + "x" * 5000, "too long"), ("version 1\n\0\n", "no text")])
def test_a_bad_preset_names_its_line(pale, text, says):
    write_preset(pale, "mine", text)
    (pale.home / "p.yaml").write_text("network: {mode: filtered, presets: [mine]}\n")
    for args in (["presets", "mine"], ["presets"], ["policy", "show", "./p.yaml"]):
        done = pale.run(*args)
        assert done.code == 125 and "preset mine" in done.errors and says in done.errors, done


def test_a_preset_that_is_no_file_or_has_a_name_of_pale_is_refused(pale):
    folder = write_preset(pale, "dev", "version 1\nevil.org\n").parent
    done = pale.run("presets", "dev")
    assert done.code == 125 and "pale has a preset of this name" in done.errors
    (folder / "dev").unlink()
    (folder / "mine").mkdir()
    done = pale.run("presets", "mine")
    assert done.code == 125 and "not a regular file" in done.errors


def test_a_policy_keeps_the_version_it_was_made_with(pale):
    write_preset(pale, "mine", "version 1\nx.org\n")
    (pale.home / "p.yaml").write_text("network: {mode: filtered, presets: [mine@2]}\n")
    done = pale.run("policy", "show", "./p.yaml")
    assert done.code == 125 and "mine@2 is mine@1 here" in done.errors


POLICY = """
network:
  mode: filtered
  publish: [8080:80]
  egress:
    - {domain: x.org, ports: [80], methods: [GET, HEAD], paths: [/a/*], bytes_out: 10M, connections: 4}
    - {cidr: "fd00::/8", ports: [443], verdict: ask}
    - {cidr: 10.1.0.0/16}
    - {cidr: 10.1.9.0/24, verdict: deny}
    - {domain: night.org, time: "00:00-24:00"}
    - {host_port: 5432, domain: db.host.pale}
    - "y.org:443@5+out=1M+in=1G"
"""


@pytest.mark.parametrize("what,verdict,rule,reason", [
    ("x.org:80", "allow", "network.egress x.org:80+out=10M+conns=4+methods=GET,HEAD+paths=/a/*", "method and path of each request"),
    ("x.org", "deny", "network.mode filtered", "x.org:443 would"),
    ("10.1.2.3:22", "allow", "network.egress 10.1.0.0/16", "allows 10.1.2.3 port 22"),
    ("10.1.9.3:22", "deny", "network.egress 10.1.9.0/24=deny", "refuses"),
    ("10.2.2.3", "deny", "address private", "cidr"),
    ("169.254.169.254:80", "deny", "address metadata", "not public"),
    ("127.0.0.1:80", "deny", "address loopback", "host.pale"),
    ("[::1]:80", "deny", "address loopback", "host.pale"),
    ("[fd00::1]:443", "ask", "network.egress [fd00::/8]:443=ask", "operator"),
    ("8.8.8.8", "deny", "network.mode filtered", "cidr"),
    ("night.org", "allow", "network.egress night.org+time=00:00-24:00", "UTC"),
    ("db.host.pale:5432", "allow", "network.egress db.host.pale:5432", "allows"),
    ("db.host.pale:5433", "deny", "network.mode filtered", "No egress rule"),
    ("y.org", "allow", "network.egress y.org:443@5+out=1M+in=1G", "5 times a minute, 1MiB sent in all, 1GiB received in all"),
])
def test_policy_ask_reach_knows_every_kind_of_rule(pale, what, verdict, rule, reason):
    (pale.home / "p.yaml").write_text(POLICY)
    answer = pale.json("policy", "ask", "--json", "./p.yaml", "reach", what, expect=0 if verdict == "allow" else 1)
    assert (answer["verdict"], answer["rule"]) == (verdict, rule) and reason in answer["reason"], answer


def test_policy_diff_tells_what_a_rule_does(pale):
    (pale.home / "a.yaml").write_text("network: {mode: filtered, egress: [x.org]}\n")
    (pale.home / "b.yaml").write_text("network: {mode: filtered, egress: ['x.org+out=1M', '10.0.0.0/8=deny'], publish: ['80']}\n")
    text = pale.ok("policy", "diff", "./a.yaml", "./b.yaml").text
    assert "network.egress: - x.org (narrower)" in text and "network.egress: + 10.0.0.0/8=deny (narrower)" in text
    assert "network.publish: + 80:80 (wider)" in text
