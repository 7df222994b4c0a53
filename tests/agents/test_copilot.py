# SPDX-License-Identifier: Apache-2.0
"""GitHub Copilot CLI, as npm has it, through `pale copilot` and without."""
import pytest
from rigs import bang, check_round_trip, round_trip, tools_of

PREFIX = "pale-"


def native_calls(scene):
    mark, touch = str(scene.markers / "copilot-native"), scene.touch("copilot-native")
    return [
        ("bash", {"command": touch, "description": "x", "mode": "sync"}), ("write_bash", {"shellId": "1", "input": "x"}), ("read_bash", {"shellId": "1"}),
        ("create", {"path": mark, "file_text": "x"}), ("view", {"path": str(scene.secret)}),
        ("edit", {"path": f"{scene.repo}/hello.py", "old_str": "hello", "new_str": "edited on the host"}), ("apply_patch", {"patch": "x"}),
        ("str_replace_editor", {"command": "create", "path": mark, "file_text": "x"}), ("grep", {"pattern": "secret", "path": str(scene.base)}),
        ("glob", {"pattern": "**", "path": str(scene.base)}), ("web_fetch", {"url": "http://127.0.0.1:9/"}), ("sql", {"query": "select 1"}),
        ("task", {"agent_type": "general-purpose", "description": "x", "prompt": touch}), ("skill", {"skill": "x"}), ("report_intent", {"intent": "x"}),
        ("own-x", {}), ("stdio-x", {}),
    ]


@pytest.fixture
def rig(rig_for):
    r = rig_for("copilot").install()
    r.login = lambda m: {"COPILOT_PROVIDER_BASE_URL": m.url, "COPILOT_PROVIDER_API_KEY": "none", "COPILOT_MODEL": "gpt-4.1", "COPILOT_OFFLINE": "true"}
    return r


def test_only_the_box_can_act(rig, scene, say):
    scene.plant()
    natives = native_calls(scene)
    m = say([natives, *round_trip(PREFIX, scene.repo), "all done"])
    done = rig.through_pale(m, "-p", f"Look at @{scene.secret} and @AGENTS.md", **rig.login(m))
    assert "all done" in done.text, (done, m.requests)
    assert m.offered() == tools_of(PREFIX), m.offered()
    results = m.results()
    for (name, _), text in zip(natives, results):
        assert "does not exist" in text, (name, text)
    check_round_trip(scene, results[len(natives):])
    assert scene.tripped() == []
    assert scene.canary not in m.said()


def test_twin_without_wiring_trips_the_markers(rig, scene, say):
    scene.plant()
    m = say([native_calls(scene)[:1], "all done"])
    done = rig.plain(m, "-p", "hello", "--allow-all", "--trust-folder", **rig.login(m))
    tripped = set(scene.tripped())
    assert {"copilot-native", "copilot-project-hook", "copilot-user-hook", "copilot-user-mcp", "mcp-stdio"} <= tripped, (tripped, done)
    assert any(t.startswith("claude-project-hook") for t in tripped), tripped


def test_instructions_are_passed_on(rig, scene, say):
    scene.commit()
    scene.instruct(f"Always greet the badger.\n@{scene.secret}\n")
    scene.write(scene.home / ".copilot/copilot-instructions.md", "The user likes newts.")
    m = say(["ok"])
    rig.through_pale(m, "-p", "hello", **rig.login(m))
    assert m.said().count("Always greet the badger.") == 1 and "The user likes newts." in m.said()
    assert f"The project is the folder {scene.repo}" in m.said() and scene.canary not in m.said()


def test_who_is_logged_in_is_taken_over_and_nothing_else(rig, scene, say):
    scene.plant()
    scene.write(scene.home / ".copilot/config.json", {"loggedInUsers": [{"host": "h", "login": "me"}], "lastLoggedInUser": {"login": "me"}, "copilotTokens": {"h": "t"},
                                                      "hooks": {"sessionStart": []}, "theme": "x", "trustedFolders": [str(scene.repo)]})
    told = rig.through_pale(say(), flags=["--dry-run", "--json"]).json()
    text = next(f["text"] for f in told["files"] if f["path"].endswith("copilot/config.json"))
    assert '"loggedInUsers":[{' in text and '"copilotTokens":{"h"' in text and "hooks" not in text and str(scene.repo) not in text


READY = rb"Check for mistakes"


def test_shell_mode_goes_into_the_box(rig, scene, say):
    scene.plant()
    m = say(["ok"])
    t = rig.terminal([rig.pale.program, "copilot"], m, **rig.login(m))
    shown = bang(t, READY, f"id -un | sed s/^/I-am-/; {scene.touch('copilot-bang')}; echo in-the-box > proof.txt",
                 lambda _: (scene.repo / "proof.txt").exists() or scene.tripped())
    assert scene.tripped() == [], shown[-3000:]
    assert (scene.repo / "proof.txt").read_text() == "in-the-box\n", shown[-3000:]


def test_twin_runs_shell_mode_on_the_host(rig, scene, say):
    scene.commit()
    scene.write(scene.home / ".copilot/config.json", {"trusted_folders": [str(scene.repo)], "trustedFolders": [str(scene.repo)]})
    m = say(["ok"])
    t = rig.terminal([str(rig.bins[0] / "copilot")], m, **rig.login(m))
    shown = bang(t, READY, scene.touch("copilot-bang"), lambda _: scene.tripped(), polite=False)
    assert "copilot-bang" in scene.tripped(), shown[-3000:]
