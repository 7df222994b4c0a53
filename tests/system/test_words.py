# SPDX-License-Identifier: Apache-2.0
"""What users of other sandboxes type, and what is said to who mistypes: it works where the meaning is plain, else the right word is named."""
import re

import pytest


def policy_of(pale, *flags):
    pale.ok("create", "--no-start", "b", *flags)
    found = pale.info("b")["policy"]
    pale.ok("rm", "b")
    return found


@pytest.mark.parametrize("said,ours", [
    (["--no-net"], ["--network", "none"]),
    (["--no-network"], ["--network", "none"]),
    (["--filtered"], ["--network", "filtered"]),
    (["--filtered", "--allow-host", "example.org:443"], ["--network", "filtered", "--allow", "example.org:443"]),
    (["--allow-host=example.org", "--allow-host", "*.x.org"], ["--allow", "example.org", "--allow", "*.x.org"]),
    (["--ephemeral-fs"], ["--scratch", "memory"]),
    (["--global"], []),
])
def test_plain_words_mean_what_they_say(pale, said, ours):
    assert policy_of(pale, *said) == policy_of(pale, *ours)


def test_a_config_is_a_policy(pale):
    (pale.home / "cap.yaml").write_text("sandbox_tier: seccomp\nfilesystem_config: {mode: none}\n")
    assert policy_of(pale, "--config", "cap.yaml") == policy_of(pale, "--policy", "cap.yaml")
    pale.ok("run", "--config=cap.yaml", "--timeout", "20", "--", "true")


@pytest.mark.parametrize("verb,said,named", [
    ("create", ["--ephemeral"], "--project ro"),
    ("claude", ["--ephemeral"], "--scratch memory"),
    ("run", ["--memory", "512"], "write 512M"),
    ("run", ["-m512"], "write 512M"),
    ("create", ["--memory=512"], "write 512M"),
    ("run", ["--disk", "500"], "write 500M"),
    ("run", ["--memory", "4g"], "write 4G"),
    ("run", ["--memory", "512mb"], "write 512M"),
    ("run", ["--memory", "512 MiB"], "write 512M"),
    ("run", ["--net", "box"], "none, filtered, open or host"),
    ("run", ["--force-memory"], "--scratch memory"),
    ("run", ["--no-net=yes"], "takes no value"),
    ("run", ["--filtered=x"], "takes no value"),
    ("validate", ["--config", "x"], "pale validate FILE"),
    ("validate", ["--output", "json"], "--json"),
    ("inspect", ["--sandbox-id", "x"], "pale inspect BOX"),
    ("exec", ["--no-net", "b"], "unknown option"),
    ("ls", ["--no-net"], "unknown option"),
])
def test_other_words_name_ours(pale, verb, said, named):
    done = pale.run(verb, *said, *(["--", "true"] if verb in ("run", "exec") else []), expect=125)
    assert named in done.errors and done.errors.count("\n") == 1, done


def test_a_policy_file_has_the_same_hint(pale):
    (pale.home / "p.yaml").write_text("limits: {memory: 512}\n")
    assert "write 512M" in pale.run("validate", "p.yaml", expect=1).errors


def test_contradictions_are_told(pale):
    assert "network" in pale.run("run", "--no-net", "--allow-host", "example.org", "--", "true", expect=125).errors


def test_listings_are_in_order(pale, hostdir):
    for name in ("zz", "m", "aa"):
        pale.ok("create", "--no-start", name)
    pale.ok("create", "--no-start", "--in-project", "p", cwd=hostdir)
    try:
        names = [b["name"] for b in pale.json("ls", "--json", cwd=hostdir)]
        assert names == ["p", "aa", "m", "zz"]
        assert [b["name"] for b in pale.json("ls", "--json", "--global", cwd=hostdir)] == ["aa", "m", "zz"]
        lines = pale.ok("ls", "--all", cwd=hostdir).text.splitlines()[1:]
        assert [x.split()[0] for x in lines] == names
    finally:
        pale.more_ids.add(pale.json("ls", "--json", cwd=hostdir)[0]["id"])
        pale.ok("rm", "p", cwd=hostdir)
    pale.sh("m", "touch c a B é b; mkdir d")
    assert [f["name"] for f in pale.json("files", "--json", "m")] == ["B", "a", "b", "c", "d", "é"]
    assert [x.split()[-1] for x in pale.ok("files", "m").text.splitlines()] == ["B", "a", "b", "c", "d/", "é"]


def test_validate_always_says_why(pale):
    for text, why in (("network: {mode: filtered, presets: [nosuch]}\n", "nosuch"), ("network: {egress: [x.org]}\n", "network.egress"),
                      ("limits: {memroy: 1G}\n", "memory")):
        (pale.home / "p.yaml").write_text(text)
        done = pale.run("validate", "p.yaml", expect=1)
        assert done.text == "INVALID\n" and why in done.errors and "p.yaml" in done.errors, done
        told = pale.json("validate", "--json", "p.yaml", expect=1)
        assert told["valid"] is False and why in str(told["errors"])
    assert "No such file" in pale.run("validate", "none.yaml", expect=125).errors
    assert "no box" in pale.run("validate", "nobox", expect=125).errors


def test_cp_of_nothing_says_so_once(pale, box):
    for path in ("nosuch", "/nosuch/deep"):
        done = pale.run("cp", f"{box}:{path}", "x", expect=125)
        assert done.errors == f"pale: in the box: {path}: No such file or directory\n"
    assert not (pale.home / "x").exists()
    assert pale.run("cp", "nosuch", f"{box}:x", expect=125).errors == "pale: nosuch: No such file or directory\n"


def test_the_overview_has_each_heading_once(pale):
    heads = re.findall(r"^([A-Z]\w+)$", pale.ok("help").text, re.M)
    assert len(heads) == len(set(heads)) and {"Run", "Boxes", "Trust"} <= set(heads)
