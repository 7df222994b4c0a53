# SPDX-License-Identifier: Apache-2.0
"""Gemini CLI, as npm has it, through `pale gemini` and without."""
import pytest
from rigs import bang, check_round_trip, round_trip, tools_of

PREFIX = "mcp_pale_"


def native_calls(scene):
    mark, touch = str(scene.markers / "gemini-native"), scene.touch("gemini-native")
    return [
        ("run_shell_command", {"command": touch}), ("write_file", {"file_path": mark, "content": "x"}), ("read_file", {"file_path": str(scene.secret)}),
        ("replace", {"file_path": f"{scene.repo}/hello.py", "old_string": "hello", "new_string": "edited on the host"}),
        ("read_many_files", {"include": [str(scene.secret)]}), ("list_directory", {"dir_path": str(scene.base)}), ("glob", {"pattern": "**"}),
        ("grep_search", {"pattern": "secret"}), ("search_file_content", {"pattern": "secret"}), ("web_fetch", {"prompt": "http://127.0.0.1:9/"}),
        ("google_web_search", {"query": "x"}), ("save_memory", {"fact": "x"}), ("activate_skill", {"name": "x"}), ("codebase_investigator", {"objective": "x"}),
        ("cli_help", {"question": "x"}), ("mcp_planted_x", {}), ("discovered_tool_x", {}),
    ]


@pytest.fixture
def rig(rig_for):
    r = rig_for("gemini").install()
    r.login = lambda m: {"GEMINI_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": m.url, "GEMINI_MODEL": "gemini-2.5-pro"}
    return r


def test_only_the_box_can_act(rig, scene, say):
    scene.plant()
    natives = native_calls(scene)
    m = say([natives, *round_trip(PREFIX, scene.repo), "all done"])
    done = rig.through_pale(m, "-p", f"Look at @{scene.secret} and @GEMINI.md", **rig.login(m))
    assert "all done" in done.text, (done, m.requests)
    assert m.offered() == tools_of(PREFIX), m.offered()
    results = m.results()
    for (name, _), text in zip(natives, results):
        assert "not found" in text or "denied" in text, (name, text)
    check_round_trip(scene, results[len(natives):])
    assert scene.tripped() == []
    assert scene.canary not in m.said()


def test_twin_without_wiring_trips_the_markers(rig, scene, say):
    scene.plant()
    m = say([native_calls(scene)[:1], "all done"])
    done = rig.plain(m, "-p", "Look at @hello.py", "--yolo", GEMINI_CLI_TRUST_WORKSPACE="true", **rig.login(m))
    tripped = set(scene.tripped())
    assert {"gemini-native", "gemini-project-discoveryCommand", "gemini-project-mcp"} <= tripped, (tripped, done)
    assert any("hook" in t for t in tripped), tripped


def test_planted_commands_do_not_run(rig, scene, say):
    scene.plant()
    m = say(["ok"])
    rig.through_pale(m, "-p", "/planted", expect=None, **rig.login(m))
    assert scene.tripped() == []


def test_instructions_are_passed_on_and_import_nothing(rig, scene, say):
    scene.commit()
    scene.instruct(f"Always greet the badger.\n@{scene.secret}\n@../../../../../../../../..{scene.secret}\n@./settings.json\n")
    scene.write(scene.home / ".gemini/GEMINI.md", "The user likes newts.")
    scene.write(scene.home / ".gemini/settings.json", {"security": {"auth": {"selectedType": "gemini-api-key"}}})
    m = say(["ok"])
    rig.through_pale(m, "-p", "hello", **rig.login(m))
    assert m.said().count("Always greet the badger.") == 1 and "The user likes newts." in m.said()
    assert f"The project is the folder {scene.repo}" in m.said() and scene.canary not in m.said()


READY = rb"Type your message|Typeyourmessage"


def test_shell_mode_goes_into_the_box(rig, scene, say):
    scene.plant()
    m = say(["ok"])
    t = rig.terminal([rig.pale.program, "gemini"], m, **rig.login(m))
    shown = bang(t, READY, f"id -un | sed s/^/I-am-/; {scene.touch('gemini-bang')}; echo in-the-box > proof.txt", lambda s: b"I-am-agent" in s)
    assert b"I-am-agent" in shown, shown[-3000:]
    assert (scene.repo / "proof.txt").read_text() == "in-the-box\n"
    assert scene.tripped() == []


def test_twin_runs_shell_mode_on_the_host(rig, scene, say):
    scene.commit()
    scene.write(scene.home / ".gemini/settings.json", {"security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}}})
    m = say(["ok"])
    t = rig.terminal([str(rig.bins[0] / "gemini")], m, **rig.login(m))
    shown = bang(t, READY, scene.touch("gemini-bang"), lambda _: scene.tripped(), polite=False)
    assert "gemini-bang" in scene.tripped(), shown[-3000:]
