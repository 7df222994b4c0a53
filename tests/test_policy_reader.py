# SPDX-License-Identifier: Apache-2.0
"""pale-policy as its callers see it: canonical text on stdout, errors with their places on stderr, exit 0, 1 or 125."""
import json
import os
import pathlib
import re
import subprocess
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = pathlib.Path(os.environ.get("PALE_BUILD", ROOT / "build" / "src")).resolve() / "pale-policy"

# Every key with a good value, as a file has it.
PALE = {
    "tier": "native",
    "image": "debian:12",
    "project": {"path": "/w/p", "mode": "live"},
    "read": ["/data/r"],
    "write": ["/data/w"],
    "volumes": ["/srv/a:/a", "/srv/b:/b:ro"],
    "volume_root": "/srv",
    "network": {
        "mode": "filtered",
        "presets": ["dev"],
        "egress": [
            {"domain": "*.x.org", "ports": [80, 443], "rate_limit_per_min": 60, "verdict": "ask"},
            {"domain": "y.org", "ports": [80], "bytes_out": "10M", "bytes_in": 1025, "connections": 8, "time": "mon-fri 08:00-18:00",
             "methods": ["GET", "HEAD"], "paths": ["/a", "/b/*"]},
            {"cidr": "10.0.0.0/8", "ports": [5432]},
            {"cidr": "fd00::1", "verdict": "deny"},
            {"host_port": 5432},
            {"host_port": 6379, "domain": "redis.host.pale", "verdict": "ask"},
        ],
        "publish": ["8080:80", 9090],
    },
    "limits": {
        "memory": "512M", "processes": 64, "cpu_seconds": 30, "cpu_share": "1.5", "disk": "1G", "wall": "5m",
        "output": "1M", "tokens": 1000, "cost_usd": 0.1,
    },
    "env": {"set": {"A": "x y", "B": 5, "C": True}, "pass": ["LANG", "LC_*"]},
    "scratch": "memory",
    "seccomp": "debug",
    "guard": ["x/y"],
}
PALE_LINES = [
    "tier native", "image debian:12", "project.mode live", "project.path /w/p", "read /data/r", "write /data/w",
    "volumes /srv/a:/a:rw", "volumes /srv/b:/b:ro", "volume_root /srv", "network.mode filtered",
    "network.presets dev", "network.egress *.x.org:80,443=ask@60", "network.egress host.pale:5432", "network.egress redis.host.pale:6379=ask",
    "network.egress y.org:80+out=10M+in=1025+conns=8+time=mon-fri/08:00-18:00+methods=GET,HEAD+paths=/a,/b/*",
    "network.egress 10.0.0.0/8:5432", "network.egress [fd00::1/128]=deny", "network.publish 8080:80", "network.publish 9090:9090", "limits.memory 536870912 asked", "limits.processes 64 asked",
    "limits.cpu_seconds 30000ms asked", "limits.cpu_share 1.500 asked", "limits.disk 1073741824 asked",
    "limits.wall 300000ms asked", "limits.output 1048576 asked", "limits.tokens 1000 asked",
    "limits.cost_usd 0.100000 asked", "env.set A=x%20y", "env.set B=5", "env.set C=true", "env.pass LANG",
    "env.pass LC_*", "scratch memory", "seccomp debug", "guard x/y",
]
CAPABILITY = {
    "sandbox_tier": "gvisor",
    "network_egress_rules": [{"domain": "api.x.org", "ports": [443], "rate_limit_per_min": 5}],
    "filesystem_config": {"mode": "read_write", "writable_paths": ["/data/w"]},
    "resource_limits": {"max_memory_mb": 256, "max_cpu_seconds": 1.5, "max_cost_usd": 0.25, "max_tokens": 7},
    "permissions": ["read_env", "spawn_subprocess"],
    "env_allowlist": ["LANG"],
}


def run(text, *args):
    data = text if isinstance(text, bytes) else text.encode()
    return subprocess.run([PROGRAM, *args, "-"], input=data, capture_output=True, timeout=20)


def good(text, *args):
    r = run(text, *args)
    assert r.returncode == 0, r.stderr.decode()
    assert r.stderr == b""
    return r.stdout.decode().splitlines()


def bad(text, *args):
    """The errors as (line, column, key, message); the text form must say the same."""
    r = run(text, *args, "--errors", "json")
    assert r.returncode == 1, (r.returncode, r.stdout, r.stderr)
    assert r.stdout == b""
    answer = json.loads(r.stderr)
    assert answer["valid"] is False and answer["errors"]
    shown = run(text, *args).stderr.decode()
    for e in answer["errors"]:
        assert e["file"] == "-"
        assert f"-:{e['line']}:{e['column']}: " in shown and e["message"] in shown
    return [(e["line"], e["column"], e["key"], e["message"]) for e in answer["errors"]]


def to_yaml(value, depth=0):
    """Block style, one key on each line, so that a key's place is easy to know."""
    pad = "  " * depth
    if isinstance(value, dict):
        out = ""
        for k, v in value.items():
            simple = not isinstance(v, (dict, list))
            out += f"{pad}{k}:" + (f" {json.dumps(v)}\n" if simple else "\n" + to_yaml(v, depth + 1))
        return out
    return "".join(
        f"{pad}- {json.dumps(v)}\n" if not isinstance(v, dict) else f"{pad}-\n" + to_yaml(v, depth + 1) for v in value)


def keys_of(value, path=()):
    """Every key path but the names of variables, which are free."""
    if isinstance(value, dict):
        for k, v in value.items():
            if path[-2:] != ("env", "set"):
                yield path + (k,)
                yield from keys_of(v, path + (k,))
    elif isinstance(value, list):
        for v in value:
            yield from keys_of(v, path)


def swapped(word):
    """A typo: two neighbours swapped where that changes the word."""
    for i in range(len(word) - 2, -1, -1):
        if word[i] != word[i + 1]:
            return word[:i] + word[i + 1] + word[i] + word[i + 2:]
    raise AssertionError(word)


def without_guard(lines):
    return [x for x in lines if not x.startswith("guard ") or x == "guard x/y"][1:-1]


@pytest.mark.parametrize("write", [to_yaml, json.dumps, lambda v: json.dumps(v, indent="\t")], ids=["yaml", "json", "tabs"])
def test_every_key_is_read_from_yaml_and_json_alike(write):
    assert without_guard(good(write(PALE))) == PALE_LINES


def test_an_empty_file_is_the_defaults():
    empty = good("")
    assert empty == good("# nothing\n") == good("{}") == good("---\n...\n") == good("guard: []\nread: []\n")
    assert "network.mode none" in empty and "limits.memory 4294967296 default" in empty


@pytest.mark.parametrize("shape,path", [(s, p) for s in ("pale", "capability")
                                        for p in dict.fromkeys(keys_of(PALE if s == "pale" else CAPABILITY))],
                         ids=lambda v: v if isinstance(v, str) else ".".join(v))
def test_a_typo_in_each_key_is_caught_with_the_right_name_and_place(shape, path):
    def mistype(value, rest):
        if isinstance(value, list):
            return [mistype(v, rest) if isinstance(v, dict) else v for v in value]
        if not rest:
            return value
        return {(swapped(k) if k == rest[0] and len(rest) == 1 else k): (mistype(v, rest[1:]) if k == rest[0] else v)
                for k, v in value.items()}

    text = to_yaml(mistype(PALE if shape == "pale" else CAPABILITY, path))
    wrong = swapped(path[-1])
    lines = text.splitlines()
    where = [(i + 1, line.index(wrong) + 1) for i, line in enumerate(lines) if line.strip().startswith(wrong + ":")]
    found = [e for e in bad(text) if e[2].endswith(wrong)]
    assert where and [(line, column) for line, column, _, _ in found] == where
    assert all(f'did you mean "{path[-1]}"?' in message for _, _, _, message in found)


@pytest.mark.parametrize("text,line,column,key,says", [
    ("limits:\n  memory: 0\n", 2, 11, "limits.memory", "nothing run"),
    ("limits:\n  memory: lots\n", 2, 11, "limits.memory", "512M"),
    ("limits: {memory: [1]}\n", 1, 18, "limits.memory", "a list"),
    ("limits: 5\n", 1, 9, "limits", "a map"),
    ("limits:\n", 1, 8, "limits", "no value"),
    ("tier: ~\n", 1, 7, "tier", "no value"),
    ("read: /a\n", 1, 7, "read", "a list"),
    ("read: [[/a]]\n", 1, 8, "read", "a list"),
    ("read: [/a/../b]\n", 1, 8, "read", ".."),
    ("read: [/]\n", 1, 8, "read", "whole system"),
    ("memory: 1G\n", 1, 1, "memory", 'limits: {memory: …}'),
    ("limits.memory: 1G\n", 1, 1, "limits.memory", 'limits: {memory: …}'),
    ("env: {set: {A: [1]}}\n", 1, 16, "env.set.A", "a value"),
    ("env: {set: {A: }}\n", 1, 16, "env.set.A", "no value"),
    ("env: {set: {'A=B': c}}\n", 1, 13, "env.set.A=B", "no ="),
    ("env: {pass: ['*']}\n", 1, 14, "env.pass", "whole environment"),
    ("network: {mode: filtered, egress: [{ports: [1]}]}\n", 1, 36, "network.egress", "without a domain"),
    ("network: {mode: filtered, egress: [{domain: 'x.org=ask'}]}\n", 1, 45, "network.egress.domain", "host name"),
    ("network: {mode: filtered, egress: [{domain: x.org, verdict: 'ask@5'}]}\n", 1, 61, "network.egress.verdict", "allow, ask or deny"),
    ("network: {mode: filtered, egress: [{domain: x.org, ports: 80}]}\n", 1, 59, "network.egress.ports", "[80, 443]"),
    ("network: {mode: filtered, egress: [{domain: x.org, verdict: 'deny+time=00:00-01:00'}]}\n", 1, 61, "network.egress.verdict", "cannot stand here"),
    ("network: {mode: filtered, egress: [{domain: x.org, ports: [80], methods: []}]}\n", 1, 74, "network.egress.methods", "empty"),
    ("network: {mode: filtered, egress: [{domain: x.org, ports: [80], methods: ['GET,POST']}]}\n", 1, 75, "network.egress.methods", "cannot stand here"),
    ("network: {mode: filtered, egress: [{domain: x.org, ports: ['80']}]}\n", 1, 60, "network.egress.ports", "without quotes"),
    ("network: {mode: filtered, egress: [{domain: x.org, methods: [GET]}]}\n", 1, 36, "network.egress", "list the plain-HTTP ports"),
    ("network: {mode: filtered, egress: [{domain: x.org, ports: [443], paths: [/a]}]}\n", 1, 36, "network.egress", "list the plain-HTTP ports"),
    ("network: {mode: filtered, egress: [{domain: x.org, ports: [80], paths: ['/a+methods=GET']}]}\n", 1, 73, "network.egress.paths", "cannot stand here"),
    ("network: {mode: filtered, egress: [{domain: x.org, cidr: 10.0.0.0/8}]}\n", 1, 36, "network.egress", "names or about addresses"),
    ("network: {mode: filtered, egress: [{cidr: 10.0.0.1/8}]}\n", 1, 43, "network.egress.cidr", "range of addresses"),
    ("network: {mode: filtered, egress: [{cidr: 0.0.0.0/0}]}\n", 1, 36, "network.egress", "too wide"),
    ("network: {mode: filtered, egress: [{host_port: 5432, ports: [80]}]}\n", 1, 36, "network.egress", "take ports out"),
    ("network: {mode: filtered, egress: [{host_port: 5432, domain: x.org}]}\n", 1, 36, "network.egress", "host.pale"),
    ("network: {mode: filtered, egress: [{host_port: 0}]}\n", 1, 48, "network.egress.host_port", "no port"),
    ("network: {mode: filtered, egress: [{domain: x.org, time: 22:00-06:00}]}\n", 1, 58, "network.egress.time", "two rules"),
    ("network: {mode: filtered, egress: [{domain: x.org, bytes_out: lots}]}\n", 1, 63, "network.egress.bytes_out", "number of bytes"),
    ("network: {mode: filtered, egress: [{domain: x.org, bytes: 5}]}\n", 1, 52, "network.egress.bytes", "unknown key"),
    ("network: {presets: [dev]}\n", 1, 21, "network.presets", "do nothing with network none"),
    ("network: {mode: filtered, presets: [Dev]}\n", 1, 37, "network.presets", "no name of a preset"),
    ("network: {publish: [80]}\n", 1, 21, "network.publish", "mode filtered"),
    ("network: {mode: filtered, egress: [{domain: x.org, rate_limit_per_min: 0}]}\n", 1, 72, "network.egress.rate_limit_per_min", "1 to"),
    ("a: &x 1\n", 1, 4, "a", "anchors"),
    ("read: *x\n", 1, 7, "read", "aliases"),
    ("tier: !!str auto\n", 1, 7, "tier", "tags"),
    ("limits: !x {memory: 1G}\n", 1, 9, "limits", "tags"),
    ("<<: {tier: auto}\n", 1, 1, "<<", "merge"),
    ("tier: auto\ntier: auto\n", 2, 1, "tier", "twice"),
    ("tier: auto\n---\ntier: auto\n", 2, 1, "", "second document"),
    ("%YAML 1.1\n---\ntier: auto\n", 1, 1, "", "directives"),
    ("? [a]\n: b\n", 1, 3, "", "plain name"),
    ("- tier\n", 1, 1, "", "a list"),
    ("tier\n", 1, 1, "", "a single value"),
    ("tier: [auto\n", 2, 1, "", "not valid YAML"),
    ("tier: \"a\\0\"\n", 1, 7, "tier", "NUL"),
    ("tier: a\x07\n", 1, 8, "", "U+0007"),
    ("tier: a\u2028b\n", 1, 8, "", "U+2028"),
    ("a: " + "[" * 20 + "]" * 20 + "\n", 1, 11, "", "deep"),
    ("read: [" + "/a, " * 600 + "]\n", 1, 2056, "read", "512"),
    ("{\"tier\": \"auto\",\n\"tier\": \"auto\"}", 2, 6, "", "duplicate"),
    ("{\"tier\": \"auto\",}", 1, 17, "", "not valid JSON"),
    ("{tier: auto}", 1, 5, "", "begins with {"),
    ("{\"teir\":\n\"auto\"}", 1, 2, "teir", '"tier"'),
    ("{\"tier\": \"a\\u0000\"}", 1, 18, "", "not valid JSON"),
    ("volumes: [/a:/x, /b:/x]\n", 1, 11, "volumes", "/x is also named"),
    ("tier: auto\nnetwork: {egress: [x.org]}\n", 2, 20, "network.egress", "rules do nothing"),
])
def test_each_mistake_has_its_place_key_and_remedy(text, line, column, key, says):
    found = bad(text)
    assert [e for e in found if e[:3] == (line, column, key) and says in e[3]], found


def test_bytes_that_are_not_utf8_are_refused_with_their_place():
    assert bad(b"tier: auto\nread: [/\xff]\n")[0][:2] == (2, 9)
    assert bad("tier: auto".encode("utf-16"))
    assert bad(b"tier: auto\0\n")[0][:2] == (1, 11)


def test_a_file_that_is_too_long_is_refused():
    assert "longer than 262144" in bad("#" * 262145)[0][3]
    good("#" * 262144)


def test_every_prefix_of_a_good_file_is_taken_or_refused():
    text = to_yaml(PALE)
    for n in range(len(text)):
        assert run(text[:n]).returncode in (0, 1), n
    text = json.dumps(PALE)
    for n in range(1, len(text)):
        assert run(text[:n]).returncode == 1, n


def test_at_most_twenty_errors_are_told():
    assert len(bad("".join(f"key{i}: 1\n" for i in range(50)))) == 20


def test_json_strings_mean_what_json_says():
    text = json.dumps({"env": {"set": {"A": "\U0001f600 \u00e9 \\ud83d \"/\b\f\n\t", "B": "null", "C": "yes", "D": ""}}})
    for form in (text, json.dumps(json.loads(text), ensure_ascii=False), text.replace("/", "\\/")):
        lines = good(form)
        assert "env.set A=%F0%9F%98%80%20%C3%A9%20\\ud83d%20\"/%08%0C%0A%09" in lines
        assert {"env.set B=null", "env.set C=yes", "env.set D="} <= set(lines)


def test_a_base_is_what_the_file_changes(tmp_path):
    base = tmp_path / "base"
    base.write_bytes(run("read: [/a]\nlimits: {memory: 1G}\nguard: [-.vscode]\n").stdout)
    lines = good("read: [/b]\ntier: native\n", "--base", base)
    assert {"read /a", "read /b", "tier native", "limits.memory 1073741824 asked"} <= set(lines)
    assert "guard .vscode" not in lines
    base.write_text("tier auto\n")
    assert run("", "--base", base).returncode == 125


def test_what_it_prints_is_what_it_reads_as_a_base(tmp_path):
    base = tmp_path / "base"
    base.write_bytes(run(to_yaml(PALE)).stdout)
    assert good("", "--base", base) == base.read_text().splitlines()


def test_capability_files_are_known_by_their_keys():
    lines = good(to_yaml(CAPABILITY))
    assert lines == good(json.dumps(CAPABILITY)) == good(to_yaml(CAPABILITY), "--format", "capability")
    assert {"tier gvisor", "network.mode filtered", "network.egress api.x.org:443@5", "write /data/w", "project.mode ro",
            "limits.memory 268435456 asked", "limits.cpu_seconds 1500ms asked", "limits.cost_usd 0.250000 asked",
            "limits.tokens 7 asked", "limits.processes 512 default", "env.allow LANG"} <= set(lines)


def test_capability_defaults_are_kept_but_not_asked():
    lines = good("", "--format", "capability")
    assert lines == good("sandbox_tier: seccomp\n")
    assert {"tier native", "network.mode none", "project.mode ro", "limits.memory 536870912 default",
            "limits.cpu_seconds 30000ms default", "limits.cost_usd 0.100000 default", "limits.tokens 100000 default"} <= set(lines)
    assert not [x for x in lines if x.startswith(("write ", "env.", "network.egress"))]
    assert "network.egress x.org@60" in good("network_egress_rules: [{domain: x.org}]\n")
    assert "project.mode none" in good("filesystem_config: {mode: none}\n")
    good("env_allowlist: null\n")


def test_capability_permissions_are_held_or_refused():
    assert "limits.processes 1 asked" in good("permissions: []\n")
    assert "limits.processes 512 default" in good("permissions: [spawn_subprocess]\n")
    assert "env_allowlist" in bad("permissions: [read_env]\n")[0][3]
    assert "read_env" in bad("permissions: [spawn_subprocess]\nenv_allowlist: [A]\n")[0][3]
    good("permissions: [read_env]\nenv_allowlist: []\n")
    assert "env.allow A" in good("env_allowlist: [A]\n")


@pytest.mark.parametrize("text,key", [
    ("resource_limits: {max_memory_mb: 0}\n", "resource_limits.max_memory_mb"),
    ("resource_limits: {max_memory_mb: 1.5}\n", "resource_limits.max_memory_mb"),
    ("resource_limits: {max_memory_mb: '512'}\n", "resource_limits.max_memory_mb"),
    ("resource_limits: {max_cpu_seconds: -1}\n", "resource_limits.max_cpu_seconds"),
    ("resource_limits: {max_cpu_seconds: 5m}\n", "resource_limits.max_cpu_seconds"),
    ("resource_limits: {max_cost_usd: none}\n", "resource_limits.max_cost_usd"),
    ("resource_limits: {max_tokens: true}\n", "resource_limits.max_tokens"),
    ("resource_limits: []\n", "resource_limits"),
    ("sandbox_tier: native\n", "sandbox_tier"),
    ("sandbox_tier: [seccomp]\n", "sandbox_tier"),
    ("filesystem_config: {mode: rw}\n", "filesystem_config.mode"),
    ("filesystem_config: {writable_paths: [/data]}\n", "filesystem_config.writable_paths"),
    ("filesystem_config: {mode: read_write, writable_paths: [data]}\n", "filesystem_config.writable_paths"),
    ("network_egress_rules: [{domain: ' '}]\n", "network_egress_rules.domain"),
    ("network_egress_rules: [{domain: x.org, verdict: ask}]\n", "network_egress_rules.verdict"),
    ("network_egress_rules: [x.org]\n", "network_egress_rules"),
    ("permissions: [fly]\n", "permissions"),
    ("env_allowlist: A\n", "env_allowlist"),
    ("sandbox_tier: seccomp\nlimits: {memory: 1G}\n", "limits"),
])
def test_each_mistake_in_a_capability_file_names_its_key(text, key):
    assert key in [e[2] for e in bad(text)]


def test_trouble_of_its_own_is_125(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for args in (["nothere"], [], ["a", "b"], ["--frmat", "x", "a"], ["--format", "x", "a"], ["--errors"], [tmp_path],
                 [tmp_path / "pipe"], ["/dev/zero"]):
        r = subprocess.run([PROGRAM, *args], capture_output=True, stdin=subprocess.DEVNULL, timeout=20)
        assert r.returncode == 125 and r.stdout == b"" and r.stderr.startswith(b"pale-policy: "), args


def test_the_file_is_named_as_asked_and_harmlessly(tmp_path):
    r = subprocess.run([PROGRAM, "--name", "a\x1b[1mb", "-"], input=b"x: 1\n", capture_output=True)
    assert r.stderr.startswith(b"a\\x1b[1mb:1:1: x: ")
    file = tmp_path / "p.json"
    file.write_text("[1]")
    r = subprocess.run([PROGRAM, file], capture_output=True)
    assert r.returncode == 1 and r.stderr.decode().startswith(f"{file}:1:1: ")


def test_two_dashes_end_the_options(tmp_path):
    (tmp_path / "--base").write_text("tier: native\n")
    r = subprocess.run([PROGRAM, "--errors", "text", "--", "--base"], capture_output=True, cwd=tmp_path)
    assert r.returncode == 0 and b"tier native\n" in r.stdout
    assert subprocess.run([PROGRAM, "--", "-"], input=b"", capture_output=True).returncode == 0


def test_a_value_cannot_put_escapes_on_the_terminal():
    r = run("tier: \"\\e[31mred\\u202e\"\n")
    assert r.returncode == 1 and b"\x1b" not in r.stderr and "\u202e".encode() not in r.stderr


def test_it_is_locked_before_it_reads():
    with subprocess.Popen([PROGRAM, "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as p:
        status = pathlib.Path(f"/proc/{p.pid}/status")
        p.stdin.write(b"tier: auto\n")
        p.stdin.flush()
        deadline = time.monotonic() + 10
        while "NoNewPrivs:\t1" not in status.read_text() and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.05)
        limits = pathlib.Path(f"/proc/{p.pid}/limits").read_text()
        seen = status.read_text()
        out, _ = p.communicate(timeout=20)
    assert p.returncode == 0 and out.startswith(b"pale-policy 1\n")
    assert "NoNewPrivs:\t1" in seen
    assert re.search(r"^Max open files +0 +0 ", limits, re.M)
