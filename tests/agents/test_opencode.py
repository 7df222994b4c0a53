# SPDX-License-Identifier: Apache-2.0
"""opencode, as npm has it, through `pale opencode` and without."""
import pytest
from rigs import bang, check_round_trip, round_trip, tools_of

PREFIX = "pale_"


def native_calls(scene):
    mark, touch = str(scene.markers / "opencode-native"), scene.touch("opencode-native")
    return [
        ("bash", {"command": touch, "description": "x"}), ("write", {"filePath": mark, "content": "x"}), ("read", {"filePath": str(scene.secret)}),
        ("edit", {"filePath": f"{scene.repo}/hello.py", "oldString": "hello", "newString": "edited on the host"}), ("apply_patch", {"patchText": "x"}),
        ("list", {"path": str(scene.base)}), ("glob", {"pattern": "**", "path": str(scene.base)}), ("grep", {"pattern": "secret", "path": str(scene.base)}),
        ("webfetch", {"url": "http://127.0.0.1:9/", "format": "text"}), ("task", {"description": "x", "prompt": touch, "subagent_type": "general"}),
        ("skill", {"name": "x"}), ("todowrite", {"todos": []}), ("batch", {"tool_calls": [{"tool": "bash", "parameters": {"command": touch}}]}),
        ("evil", {}), ("planted_x", {}),
    ]


@pytest.fixture
def rig(rig_for, scene):
    r = rig_for("opencode").install()

    def log_in(m):
        scene.opencode_login = {"model": "scripted/m", "small_model": "scripted/m", "provider": {"scripted": {
            "npm": "@ai-sdk/openai-compatible", "options": {"baseURL": m.url, "apiKey": "none"}, "models": {"m": {}}}}}
        scene.write(scene.home / ".config/opencode/opencode.json", scene.opencode_login)

    r.log_in = log_in
    r.login = {"OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1"}
    return r


def test_only_the_box_can_act(rig, scene, say):
    natives = native_calls(scene)
    m = say([natives, *round_trip(PREFIX, scene.repo), "all done"])
    rig.log_in(m)
    scene.plant()
    done = rig.through_pale(m, "run", f"Look at @{scene.secret} and @AGENTS.md", **rig.login)
    assert "all done" in done.text, (done, m.requests)
    assert m.offered() - {"invalid"} == tools_of(PREFIX), m.offered()
    results = m.results()
    for (name, _), text in zip(natives, results):
        assert "unavailable tool" in text or "not found" in text or "denied" in text, (name, text)
    check_round_trip(scene, results[len(natives):])
    assert scene.tripped() == []
    assert scene.canary not in m.said()


def test_twin_without_wiring_trips_the_markers(rig, scene, say):
    m = say([native_calls(scene)[:1], "all done"])
    rig.log_in(m)
    scene.plant()
    done = rig.plain(m, "run", "--auto", "hello", **rig.login)
    tripped = set(scene.tripped())
    assert {"opencode-native", "opencode-project-plugin", "opencode-user-plugin", "opencode-home-plugin", "opencode-project-tool", "opencode-home-mcp"} <= tripped, (tripped, done)
    assert scene.canary in m.said()


def test_instructions_are_passed_on(rig, scene, say):
    scene.commit()
    scene.instruct(f"Always greet the badger.\n@{scene.secret}\n")
    scene.write(scene.home / ".config/opencode/AGENTS.md", "The user likes newts.")
    m = say(["ok"])
    rig.log_in(m)
    rig.through_pale(m, "run", "hello", **rig.login)
    body = next(b for b in m.bodies if b.get("tools"))
    assert str(body).count("Always greet the badger.") == 1 and "The user likes newts." in str(body)
    assert f"The project is the folder {scene.repo}" in m.said() and scene.canary not in m.said()


READY = rb"Ask anything|Askanything"


def test_shell_mode_goes_into_the_box(rig, scene, say):
    m = say(["ok"])
    rig.log_in(m)
    scene.plant()
    t = rig.terminal([rig.pale.program, "opencode"], m, **rig.login)
    shown = bang(t, READY, f"id -un | sed s/^/I-am-/; {scene.touch('opencode-bang')}; echo in-the-box > proof.txt",
                 lambda _: (scene.repo / "proof.txt").exists())
    assert (scene.repo / "proof.txt").read_text() == "in-the-box\n", shown[-3000:]
    assert scene.tripped() == []


def test_twin_runs_shell_mode_on_the_host(rig, scene, say):
    scene.commit()
    m = say(["ok"])
    rig.log_in(m)
    t = rig.terminal([str(rig.bins[0] / "opencode")], m, **rig.login)
    shown = bang(t, READY, scene.touch("opencode-bang"), lambda _: scene.tripped(), polite=False)
    assert "opencode-bang" in scene.tripped(), shown[-3000:]
