# SPDX-License-Identifier: Apache-2.0
"""Qwen Code, as npm has it, through `pale qwen` and without."""
import pytest
from rigs import bang, check_round_trip, round_trip, tools_of

PREFIX = "mcp__pale__"


def native_calls(scene):
    mark, touch = str(scene.markers / "qwen-native"), scene.touch("qwen-native")
    return [
        ("run_shell_command", {"command": touch, "is_background": False}), ("write_file", {"file_path": mark, "content": "x"}),
        ("read_file", {"file_path": str(scene.secret)}), ("edit", {"file_path": f"{scene.repo}/hello.py", "old_string": "hello", "new_string": "edited on the host"}),
        ("notebook_edit", {"notebook_path": mark + ".ipynb", "new_source": "x"}), ("read_many_files", {"paths": [str(scene.secret)]}),
        ("list_directory", {"path": str(scene.base)}), ("glob", {"pattern": "**", "path": str(scene.base)}), ("grep_search", {"pattern": "secret"}),
        ("web_fetch", {"url": "http://127.0.0.1:9/", "prompt": "x"}), ("agent", {"description": "x", "prompt": touch, "subagent_type": "general-purpose"}),
        ("task", {"description": "x", "prompt": touch}), ("skill", {"skill": "x"}), ("save_memory", {"fact": "x"}), ("get_goal", {}),
        ("monitor", {"command": touch}), ("cron_create", {"cron": "* * * * *", "prompt": "x"}), ("tool_search", {"query": "shell"}),
        ("tool_call", {"name": "run_shell_command", "arguments": {"command": touch}}), ("mcp__planted__x", {}),
    ]


@pytest.fixture
def rig(rig_for):
    r = rig_for("qwen").install()
    r.login = lambda m: {"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": m.url, "OPENAI_MODEL": "scripted"}
    return r


def test_only_the_box_can_act(rig, scene, say):
    scene.plant()
    natives = native_calls(scene)
    m = say([natives, *round_trip(PREFIX, scene.repo), "all done"])
    done = rig.through_pale(m, "-p", f"Look at @{scene.secret} and @QWEN.md", **rig.login(m))
    assert "all done" in done.text, (done, m.requests)
    assert m.offered() == tools_of(PREFIX), m.offered()
    results = m.results()
    for (name, _), text in zip(natives, results):
        assert any(r in text for r in ("not found", "denied", "declined", "disabled", "refused", "not available", "does not exist")), (name, text)
    check_round_trip(scene, results[len(natives):])
    assert scene.tripped() == []
    assert scene.canary not in m.said()


def test_twin_without_wiring_trips_the_markers(rig, scene, say):
    scene.plant()
    m = say([native_calls(scene)[:1], "all done"])
    done = rig.plain(m, "-p", f"Look at @{scene.secret}", "--yolo", **rig.login(m))
    tripped = set(scene.tripped())
    assert {"qwen-native", "qwen-user-hook", "qwen-project-hook", "qwen-project-mcp", "mcp-stdio"} <= tripped, (tripped, done)


def test_planted_commands_do_not_run(rig, scene, say):
    scene.plant()
    m = say(["ok"])
    rig.through_pale(m, "-p", "/planted", expect=None, **rig.login(m))
    assert scene.tripped() == []


def test_instructions_are_passed_on_and_import_nothing(rig, scene, say):
    scene.commit()
    scene.instruct(f"Always greet the badger.\n@{scene.secret}\n@../../../../../../../../..{scene.secret}\n@./settings.json\n")
    scene.write(scene.home / ".qwen/QWEN.md", "The user likes newts.")
    scene.write(scene.home / ".qwen/settings.json", {"security": {"auth": {"selectedType": "openai"}}})
    m = say(["ok"])
    rig.through_pale(m, "-p", "hello", **rig.login(m))
    assert m.said().count("Always greet the badger.") == 1 and "The user likes newts." in m.said()
    assert f"The project is the folder {scene.repo}" in m.said() and scene.canary not in m.said()


READY = rb"Type your message|Typeyourmessage"


def test_shell_mode_goes_into_the_box(rig, scene, say):
    scene.plant()
    m = say(["ok"])
    t = rig.terminal([rig.pale.program, "qwen"], m, **rig.login(m))
    shown = bang(t, READY, f"id -un | sed s/^/I-am-/; {scene.touch('qwen-bang')}; echo in-the-box > proof.txt", lambda s: b"I-am-agent" in s)
    assert b"I-am-agent" in shown, shown[-3000:]
    assert (scene.repo / "proof.txt").read_text() == "in-the-box\n"
    assert scene.tripped() == []


def test_twin_runs_shell_mode_on_the_host(rig, scene, say):
    scene.commit()
    scene.write(scene.home / ".qwen/settings.json", {"security": {"auth": {"selectedType": "openai"}, "folderTrust": {"enabled": False}}})
    m = say(["ok"])
    t = rig.terminal([str(rig.bins[0] / "qwen")], m, **rig.login(m))
    shown = bang(t, READY, scene.touch("qwen-bang"), lambda _: scene.tripped(), polite=False)
    assert "qwen-bang" in scene.tripped(), shown[-3000:]
