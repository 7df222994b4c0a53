# SPDX-License-Identifier: Apache-2.0
"""What is the same for every launcher, with programs of our own in a harness's place: words, variables, the trial, the site's settings."""
import json
import os
import subprocess
import textwrap

import pytest

BOX_TOOLS = ["mcp__pale__exec", "mcp__pale__read"]


@pytest.fixture
def fake(rig_for, scene):
    """fake(tools, code): a program called claude that offers these tools when it is tried, and runs code when it is started."""
    rig = rig_for("claude")
    scene.commit()
    bin_dir = scene.base / "bin"
    rig.bins.append(bin_dir)
    rig.log = scene.base / "starts"

    def make(tools=BOX_TOOLS, code="", version="2.1.325", trial=""):
        scene.write(bin_dir / "claude", "#!/usr/bin/python3\n" + textwrap.dedent(f"""\
            import json, os, sys, urllib.error, urllib.request
            with open({str(rig.log)!r}, "a") as f:
                f.write(json.dumps({{"argv": sys.argv[1:], "cwd": os.getcwd(), "env": dict(os.environ), "files": os.listdir("..")}}) + "\\n")
            if "--version" in sys.argv:
                print({version!r} + " (Fake)")
                sys.exit()
            url = os.environ.get("ANTHROPIC_BASE_URL", "")
            if "PALE_TEST_MODEL" not in os.environ:
                exec({trial!r})
                body = json.dumps({{"stream": True, "tools": [{{"name": t}} for t in {list(tools)!r}]}}).encode()
                urllib.request.urlopen(urllib.request.Request(url + "/v1/messages", body)).read()
                sys.exit()
            """) + code + "\n", 0o755)
        return rig

    return make


def starts(rig):
    return [json.loads(line) for line in rig.log.read_text().splitlines()] if rig.log.exists() else []


def launch(rig, say, *words, **more):
    return rig.through_pale(say(), *words, **more)


def test_the_trial_comes_first_and_is_remembered(fake, say):
    rig = fake(code="print('hello')\nsys.exit(7)")
    assert launch(rig, say, "-p", "x", expect=7).text == "hello\n"
    assert [s["argv"][-1] for s in starts(rig)] == ["--version", "Say ok.", "x "]
    launch(rig, say, "-p", "x", expect=7)
    assert len(starts(rig)) == 4, "the trial was not remembered"
    launch(rig, say, "-p", "x", flags=["--check"], expect=7)
    assert len(starts(rig)) == 7, "--check did not force it"
    os.utime(rig.bins[0] / "claude")
    launch(rig, say, "-p", "x", expect=7)
    assert len(starts(rig)) == 10, "a program that has changed was not tried"


def test_a_tool_that_is_not_expected_is_named(fake, say):
    rig = fake(tools=[*BOX_TOOLS, "TimeMachine"], code="open('started', 'w')")
    done = launch(rig, say, "-p", "x", expect=125)
    assert "TimeMachine" in done.errors and "not started" in done.errors
    assert launch(rig, say, "-p", "x", expect=125).errors == done.errors, "a bad trial was remembered as a good one"
    assert not any("PALE_TEST_MODEL" in s["env"] for s in starts(rig)), "it was started"


@pytest.mark.parametrize("tools", [["mcp__pale__read"], ["Agent"], []])
def test_missing_exec_is_an_error(fake, say, tools):
    assert "mcp__pale__exec" in launch(fake(tools=tools), say, expect=125).errors


def test_other_servers_tools_are_not_expected(fake, say):
    assert "mcp__palete__exec" in launch(fake(tools=[*BOX_TOOLS, "mcp__palete__exec"]), say, expect=125).errors


@pytest.mark.parametrize("trial,says", [("sys.exit(3)", "did not ask the model anything"), ("print('no such flag'); sys.exit(1)", "it said: no such flag"),
                                        ("urllib.request.urlopen(urllib.request.Request(url + '/v1/messages', b'{\"tools\":'))", "cannot be read")])
def test_a_trial_that_fails_says_why(fake, say, trial, says):
    assert says in launch(fake(trial=trial), say, expect=125).errors


def test_strangers_requests_are_not_heard(fake, say):
    """Without the secret in its path a request says nothing about tools."""
    rude = textwrap.dedent("""\
        base = url.rsplit("/", 1)[0]
        for path in ("", "/" + "0" * 32, "/..", "/x/" + url.rsplit("/", 1)[1]):
            try:
                urllib.request.urlopen(urllib.request.Request(base + path + "/v1/messages", b'{"tools":[{"name":"Evil"}]}'))
                os._exit(9)
            except urllib.error.HTTPError as e:
                assert e.code == 404
        """)
    launch(fake(trial=rude), say, "x")


@pytest.mark.parametrize("version", ["2.1.197", "2.1.324", "1.999.999", "0.2.0"])
def test_one_that_is_too_old_is_not_started(fake, say, version):
    """An old one prints its version, and fails on an option that it does not know."""
    rig = fake(version=version, trial="sys.exit('error: unknown option --restricted')")
    done = launch(rig, say, "x", expect=125)
    assert f"Claude Code {version}, which is too old" in done.errors and "pale needs 2.1.325 or newer" in done.errors
    assert "npm install -g @anthropic-ai/claude-code@latest" in done.errors and "unknown option" not in done.errors
    assert [s["argv"] for s in starts(rig)] == [["--version"]], "it was started for more than its version"


def test_one_that_is_new_enough_fails_in_its_own_words(fake, say):
    done = launch(fake(version="2.1.325", trial="sys.exit('error: no room')"), say, "x", expect=125)
    assert "no room" in done.errors and "too old" not in done.errors


def test_an_unknown_version_is_told_of(fake, say):
    done = launch(fake(version="2.2.0"), say, "x")
    assert "claude 2.2.0 is not among the versions that were verified" in done.errors


def test_working_folder_and_variables(fake, say, scene):
    rig = fake()
    launch(rig, say, "x", CLAUDE_CODE_ENABLE_EVERYTHING="1", CLAUDE_CODE_USE_BEDROCK="1", MCP_TOOL_TIMEOUT="9", KEPT="yes")
    s = starts(rig)[-1]
    assert s["cwd"].startswith(str((rig.pale.root / "run").resolve())) or s["cwd"].startswith(str(rig.pale.root / "run")), s["cwd"]
    assert "CLAUDE_CODE_ENABLE_EVERYTHING" not in s["env"] and s["env"]["CLAUDE_CODE_USE_BEDROCK"] == "1" and s["env"]["KEPT"] == "yes"
    assert s["env"]["CLAUDE_CODE_DISABLE_FILE_MENTIONS"] == "1"
    trial = next(t for t in starts(rig) if t["argv"][-1] == "Say ok.")
    assert "KEPT" not in trial["env"] and trial["env"]["HOME"] != str(scene.home), "the trial has the user's home or variables"
    assert not os.path.exists(s["cwd"]), "the shadow folder is still there"
    assert subprocess.run(["git", "status", "--porcelain"], cwd=scene.repo, capture_output=True).stdout == b""


def test_path_does_not_lead_into_the_project(fake, say, scene):
    rig = fake()
    inside = scene.repo / "node_modules/.bin"
    scene.write(inside / "claude", "#!/bin/sh\n" + scene.touch("project-program") + "\n", 0o755)
    launch(rig, say, "x", PATH=f"{inside}:.:node_modules/.bin:{rig.bins[0]}:/usr/bin:/bin")
    assert starts(rig)[-1]["env"]["PATH"] == f"{rig.bins[0]}:/usr/bin:/bin"
    done = launch(rig, say, "x", PATH=f"{inside}:/usr/bin:/bin", expect=125)
    assert "no claude in PATH" in done.errors
    link = scene.base / "links"
    link.mkdir()
    (link / "claude").symlink_to(inside / "claude")
    assert "lies in the project" in launch(rig, say, "x", PATH=f"{link}:/usr/bin:/bin", expect=125).errors
    assert scene.tripped() == []


GOOD = [["-p", "do it"], ["-p", "--model", "opus", "x y"], ["--model=opus"], ["--resume", "0d2e8a3c-1111"], ["--resume"], ["-c", "-p", "x"],
        ["--permission-mode", "plan"], ["--output-format", "json", "-p", "a b"], ["--verbose"], ["--system-prompt=--tools"]]
BAD = [["--tools", "Bash"], ["--tools=default"], ["--mcp-config", "x"], ["--settings", "{}"], ["--setting-sources", "project"], ["--add-dir", "/"],
       ["--dangerously-skip-permissions"], ["--allowedTools", "Bash"], ["--allowed-tools=Bash"], ["--plugin-dir", "x"], ["--agents", "{}"], ["--ide"],
       ["--permission-mode", "bypassPermissions"], ["--permission-mode=bypassPermissions"], ["--brand-new-flag"], ["-px"], ["-w"], ["--bg"], ["--", "x"],
       ["--model", "--tools"], ["--restricted=false"], ["--print=x"], ["-p", "--", "--tools", "Bash"], ["--too"], ["--worktree"]]


def dry(fake, say, words, flags=(), **more):
    return launch(fake(), say, *words, flags=["--dry-run", "--json", *flags], **more)


@pytest.mark.parametrize("words", GOOD, ids=" ".join)
def test_harmless_words_pass(fake, say, words):
    argv = dry(fake, say, words).json()["argv"]
    assert [w.rstrip() for w in argv[-len(words):]] == words


@pytest.mark.parametrize("words", BAD, ids=" ".join)
def test_other_words_are_refused(fake, say, words):
    done = dry(fake, say, words, expect=125)
    text = done.json()["error"]["message"]
    assert words[0].split("=")[0] in text or words[1] in text, done
    assert not starts_any(done)


def starts_any(done):
    return "argv" in done.text


@pytest.mark.parametrize("word", ["mcp", "plugin", "update", "doctor", "brandnew"])
def test_a_single_word_is_a_prompt_and_no_command(fake, say, word):
    assert dry(fake, say, [word]).json()["argv"][-1] == word + " "


def test_dry_run_does_nothing(fake, say, scene):
    rig = fake()
    before = sorted(scene.repo.iterdir())
    told = launch(rig, say, "-p", "x", flags=["--dry-run", "--json"]).json()
    assert told["box"] == "agent" and told["box_is_there"] is False and told["project"] == str(scene.repo)
    assert {os.path.basename(f["path"]) for f in told["files"]} == {"mcp.json", "settings.json", "instructions.md", "shell"}
    text = launch(rig, say, "-p", "x", flags=["--dry-run"]).text
    assert "would be made" in text and "--strict-mcp-config" in text and "CLAUDE_CODE_SHELL_PREFIX" in text
    assert sorted(scene.repo.iterdir()) == before and starts(rig) == []
    assert not (rig.pale.root / "run/pale/agents").exists()


def test_the_box_is_the_flags(fake, say, scene):
    rig = fake()
    launch(rig, say, "x", flags=["--output", "300M", "--project", "ro"])
    info = rig.pale.json("inspect", "--json", "agent", cwd=scene.repo)
    assert info["scope"] == "project" and "314572800" in json.dumps(info["policy"]).replace("300MiB", "314572800"), info
    assert rig.box("touch", "x").code != 0
    launch(rig, say, "x")
    launch(rig, say, "x", flags=["--output", "300M", "--project", "ro"])
    done = launch(rig, say, "x", flags=["--output", "1M"], expect=125)
    assert "another policy" in done.errors


def test_a_box_that_does_not_show_the_folder_is_refused(fake, say, scene):
    rig = fake()
    rig.pale.ok("create", "bare")
    done = launch(rig, say, "x", flags=["--box", "bare"], expect=125)
    assert f"bare does not show {scene.repo}" in done.errors


def test_two_at_once_have_folders_of_their_own(fake, say, scene):
    rig = fake(code="import time\nopen('../../../ready', 'a').write(os.getcwd() + '\\n')\ntime.sleep(1.5)")
    m = say()
    launch(rig, say, "x", flags=["--dry-run"])
    rig.through_pale(m, "x")
    runs = [rig.pale.start("claude", "--", "x", env=rig.env(m), cwd=scene.repo) for _ in range(2)]
    assert [p.wait(30) for p in runs] == [0, 0]
    dirs = [s["cwd"] for s in starts(rig) if s["argv"][-1] == "x "][-2:]
    assert len(set(dirs)) == 2, dirs


def test_signals_reach_it(fake, say, scene):
    rig = fake(code="import signal, time\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(42))\nprint('ready', flush=True)\ntime.sleep(20)")
    p = rig.pale.start("claude", "--", "x", env=rig.env(say()), cwd=scene.repo)
    assert p.stdout.readline() == b"ready\n"
    p.terminate()
    assert p.wait(10) == 42


# --- the site's settings ---

def with_etc(scene, files, args, **more):
    """pale in a mount namespace in which /etc has these files."""
    if subprocess.run(["unshare", "-rm", "true"], capture_output=True).returncode:
        pytest.skip("unshare -rm does not work here")
    upper = scene.base / "etc"
    for name, text in files.items():
        scene.write(upper / name, text)
    script = 'mount -t overlay overlay -o "lowerdir=$1:/etc" /etc || exit 99; shift; exec "$@"'
    done = subprocess.run(["unshare", "-rm", "sh", "-c", script, "sh", str(upper), *args], capture_output=True, text=True, timeout=60,
                          stdin=subprocess.DEVNULL, **more)
    if done.returncode == 99:
        pytest.skip("an overlay cannot be mounted in a user namespace here")
    return done


@pytest.mark.parametrize("files,says,defeated", [
    ({"claude-code/managed-mcp.json": {"mcpServers": {}}}, "only the site's MCP servers load", True),
    ({"claude-code/managed-settings.json": {"allowManagedMcpServersOnly": True}}, "only the site's MCP servers load", True),
    ({"claude-code/managed-settings.d/50-x.json": {"disableSideloadFlags": True}}, "forbids --mcp-config", True),
    ({"claude-code/managed-settings.json": "{not json"}, "no JSON", True),
    ({"claude-code/managed-settings.json": {"hooks": {"Stop": []}}}, "has hooks", False),
    ({"claude-code/managed-settings.json": {"allowManagedMcpServersOnly": False, "model": "opus"}}, "", False),
])
def test_site_settings_are_explained(fake, say, scene, files, says, defeated):
    rig = fake()
    done = with_etc(scene, files, [rig.pale.program, "claude", "--dry-run"], env=rig.env(say()), cwd=scene.repo)
    assert (done.returncode != 0) == defeated and says in done.stderr, done
    assert says or "site" not in done.stderr


# --- agent, agents, snippets ---

def test_agent_runs_inside(fake, say, scene):
    rig = fake()
    done = rig.pale.run("agent", "-q", "--", "sh", "-c", "id -un; pwd; cat hello.py; echo made > by-agent", cwd=scene.repo, env=rig.env(say()))
    assert done.code == 0 and done.text == f"agent\n{scene.repo}\nprint('hello')\n", done
    assert (scene.repo / "by-agent").read_text() == "made\n"


def test_agents_lists(fake, say, scene):
    rig = fake(version="2.1.0")
    rows = {r["name"]: r for r in rig.pale.run("agents", "--json", env=rig.env(say()), cwd=scene.repo).json()}
    assert rows["claude"]["installed"] == "2.1.0" and rows["claude"]["verified_newest"] == "2.1.325"
    assert "claude" in rig.pale.ok("agents", env=rig.env(say()), cwd=scene.repo).text


@pytest.mark.parametrize("name,place", [("claude", ".mcp.json"), ("codex", "config.toml"), ("gemini", "settings.json"), ("qwen", "settings.json"),
                                        ("opencode", "opencode.json"), ("copilot", "mcp-config.json")])
def test_snippets(pale, name, place):
    box = pale.create("b")
    done = pale.ok("mcp", "config", box, "--for", name)
    assert place in done.errors and pale.program in done.text and pale.info(box)["id"] in done.text
    if name != "codex":
        json.loads(done.text)


def test_snippets_for_nobody(pale):
    box = pale.create("b")
    assert "there is for claude, codex, gemini, qwen, opencode, copilot" in pale.run("mcp", "config", box, "--for", "emacs", expect=125).errors
    assert "which harness" in pale.run("mcp", "config", box, expect=125).errors
    assert "which box" in pale.run("mcp", "config", "--for", "claude", expect=125).errors
    assert "no box nobox" in pale.run("mcp", "config", "nobox", "--for", "claude", expect=125).errors
