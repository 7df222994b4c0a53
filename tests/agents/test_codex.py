# SPDX-License-Identifier: Apache-2.0
"""Codex, as npm has it, through `pale codex` and without."""
import pytest
from rigs import bang, check_round_trip, round_trip, tools_of

HARMLESS = {"apply_patch", "update_plan", "tool_search", "request_user_input", "create_goal", "get_goal", "update_goal", "list_mcp_resources",
            "list_mcp_resource_templates", "read_mcp_resource"}


def native_calls(scene):
    mark, touch = scene.markers / "codex-native", scene.touch("codex-native")
    patch = f"*** Begin Patch\n*** Add File: {mark}\n+x\n*** End Patch"
    edit = f"*** Begin Patch\n*** Update File: {scene.repo}/hello.py\n@@\n-print('hello')\n+print('edited on the host')\n*** End Patch"
    return [
        ("exec_command", {"cmd": touch}), ("exec_command", {"cmd": touch, "environment_id": "local"}), ("shell", {"command": ["sh", "-c", touch]}),
        ("shell_command", {"command": touch}), ("local_shell", {"command": ["sh", "-c", touch]}), ("write_stdin", {"session_id": 1, "chars": "x"}),
        ("apply_patch", patch), ("apply_patch", edit), ("apply_patch", patch.replace("Patch\n", "Patch\n*** Environment ID: local\n", 1)),
        ("view_image", {"path": str(scene.secret)}), ("read_file", {"file_path": str(scene.secret)}), ("list_dir", {"dir_path": str(scene.base)}),
        ("grep_files", {"pattern": "secret", "path": str(scene.base)}), ("spawn_agent", {"message": touch}), ("js_repl", touch), ("web_search", {"query": "x"}),
    ]


REFUSALS = ("unsupported", "No usable execution environment", "unavailable", "not found", "rejected", "unknown")


@pytest.fixture
def rig(rig_for):
    r = rig_for("codex").install()

    r.provider = lambda m: ["-c", 'model_provider="scripted"', "-c", 'model_providers.scripted.name="x"', "-c", 'model_providers.scripted.wire_api="responses"',
                            "-c", f'model_providers.scripted.base_url="{m.url}"', "-c", 'model_providers.scripted.env_key="SCRIPTED_KEY"']
    r.login = {"SCRIPTED_KEY": "none"}
    return r


def test_only_the_box_can_act(rig, scene, say):
    scene.plant()
    natives = native_calls(scene)
    m = say([natives, [("tool_search", {"query": "exec"})], *round_trip("mcp__pale/", scene.repo), "all done"])
    done = rig.through_pale(m, *rig.provider(m), "exec", "-m", "gpt-5.5", f"Look at @{scene.secret}", **rig.login)
    assert "all done" in done.text, (done, m.requests)
    assert m.offered() <= HARMLESS, m.offered()
    results = m.results()
    for (name, _), text in zip(natives, results):
        assert any(r in text for r in REFUSALS), (name, text)
    found, *at_work = results[len(natives):]
    assert "exec" in found and "mcp__pale" in found
    check_round_trip(scene, at_work)
    assert scene.tripped() == []
    assert scene.canary not in m.said()


def script(scene):
    """For models that get one tool which runs JavaScript: the others are called from it."""
    mark, repo = scene.markers / "codex-script", scene.repo
    return [("functions/exec", f"""
        const tried = [];
        for (const t of ["exec_command", "shell", "apply_patch", "view_image", "write_stdin"]) for (const a of [{{cmd: "touch {mark}"}},
            "*** Begin Patch\\n*** Add File: {mark}\\n+x\\n*** End Patch", {{path: "{scene.secret}"}}])
            try {{ text("WORKED " + t + " " + JSON.stringify(await tools[t](a))) }} catch (e) {{ tried.push(t + ": " + e) }}
        text(tried.join("\\n"));
        text(typeof require + typeof process + typeof fetch);
        text("names " + ALL_TOOLS.map(t => t.name).filter(n => n.startsWith("mcp__")).join(" "));
        text(JSON.stringify(await tools.mcp__pale__exec({{command: "id -un; git log --oneline"}})));
        await tools.mcp__pale__edit({{path: "{repo}/hello.py", old: "hello", new: "goodbye"}});
        text(JSON.stringify(await tools.mcp__pale__read({{path: "{repo}/hello.py"}})));
        """)]


def test_models_that_write_scripts(rig, scene, say):
    scene.plant()
    m = say([script(scene), native_calls(scene), "all done"])
    rig.through_pale(m, *rig.provider(m), "exec", "hello", **rig.login)
    out = m.results()[0]
    assert "functions/exec" in m.offered() and "WORKED" not in out and "undefinedundefinedundefined" in out, (m.offered(), out)
    names = next(line for line in out.splitlines() if line.startswith("names "))
    assert set(names.split()[1:]) == tools_of("mcp__pale__"), out
    assert "agent" in out and "the first commit" in out and "goodbye" in out
    assert (scene.repo / "hello.py").read_text() == "print('goodbye')\n"
    assert all(any(r in text for r in REFUSALS) for text in m.results()[1:]), m.results()
    assert scene.tripped() == [] and scene.canary not in m.said()


def test_other_agents_have_no_other_tools(rig, scene, say):
    scene.commit()
    threads = {}
    parts = [iter([[("collaboration/spawn_agent", {"task_name": "x", "message": "do it"})], *[[("collaboration/wait_agent", {"timeout_ms": 2000})]]]),
             iter([script(scene)])]

    def turn(body):
        who = threads.setdefault(body["client_metadata"]["thread_id"], len(threads))
        return next(parts[min(who, 1)], "done")

    m = say([turn] * 20)
    rig.through_pale(m, *rig.provider(m), "exec", "delegate", expect=None, **rig.login)
    outs = [r for r in m.results() if "apply_patch: " in r]
    assert len(threads) == 2 and len(outs) == 1, (threads, m.results())
    assert "WORKED" not in outs[0] and scene.tripped() == []


def test_twin_without_wiring_trips_the_markers(rig, scene, say):
    scene.plant()
    m = say([native_calls(scene)[:1] + native_calls(scene)[6:7], "all done"])
    done = rig.plain(m, *rig.provider(m), "exec", "--skip-git-repo-check", "-s", "danger-full-access", "-m", "gpt-5.5", "hello", **rig.login)
    tripped = set(scene.tripped())
    assert {"codex-native", "codex-user-mcp", "codex-project-mcp", "codex-user-notify"} <= tripped, (tripped, done)


def test_instructions_are_passed_on(rig, scene, say):
    scene.commit()
    scene.instruct("Always greet the badger.")
    scene.write(scene.home / ".codex/AGENTS.md", "The user likes newts.")
    m = say(["ok"])
    rig.through_pale(m, *rig.provider(m), "exec", "hello", **rig.login)
    assert m.said().count("Always greet the badger.") == 1 and "The user likes newts." in m.said()
    assert f"The project is the folder {scene.repo}" in m.said()


def test_sessions_are_the_users_and_nothing_else_is(rig, scene, say):
    scene.plant()
    before = (scene.home / ".codex/config.toml").read_text()
    m = say(["the first answer", "the second answer"])
    rig.through_pale(m, *rig.provider(m), "exec", "remember the otter", **rig.login)
    assert list((scene.home / ".codex/sessions").rglob("*.jsonl")), "no session was kept"
    rig.through_pale(m, *rig.provider(m), "exec", "resume", "--last", "and now", **rig.login)
    assert "remember the otter" in str(m.bodies[-1]) and "the first answer" in str(m.bodies[-1])
    assert (scene.home / ".codex/config.toml").read_text() == before and scene.tripped() == []


def type_bang(rig, m, args, command, is_done, polite=True):
    return bang(rig.terminal(args, m, **rig.login), rb"OpenAI Codex", command, is_done, polite=polite)


def test_shell_mode_has_nowhere_to_run(rig, scene, say):
    scene.plant()
    m = say(["ok"])
    shown = type_bang(rig, m, [rig.pale.program, "codex", "--", *rig.provider(m)], scene.touch("codex-bang"),
                 lambda seen: b"shell is unavailable" in seen)
    assert b"shell is unavailable" in shown, shown[-3000:]
    assert scene.tripped() == []


def test_twin_runs_shell_mode_on_the_host(rig, scene, say):
    scene.commit()
    m = say(["ok"])
    trust = f'projects={{"{scene.repo}"={{trust_level="trusted"}}}}'
    shown = type_bang(rig, m, [str(rig.bins[0] / "codex"), "--no-daemon", "-c", trust, *rig.provider(m)], scene.touch("codex-bang"),
                 lambda _: scene.tripped(), polite=False)
    assert "codex-bang" in scene.tripped(), (scene.tripped(), shown[-2500:])
