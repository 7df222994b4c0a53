# SPDX-License-Identifier: Apache-2.0
"""The MCP inspector's command line against a box, over both transports and in every era it knows."""
import json

import pytest

INSPECTOR = "@modelcontextprotocol/inspector/clients/launcher/build/index.js"
TOOLS = {"exec", "job", "read", "write", "edit", "list", "glob", "grep", "apply_patch", "policy", "diff", "snapshot", "restore"}


def inspect(node, box, transport, era, method, *more):
    target = [box.stdio] if transport == "stdio" else [box.url, "--transport", "http", "--header", f"Authorization: Bearer {box.token}"]
    return node.run(INSPECTOR, "--cli", *target, "--protocol-era", era, "--format", "json", "--method", method, *more)


each = [pytest.mark.parametrize("transport", ["http", "stdio"]), pytest.mark.parametrize("era", ["legacy", "auto", "modern"])]


def everywhere(test):
    for mark in each:
        test = mark(test)
    return test


@everywhere
def test_the_tools_have_schemas_that_every_client_takes(node, box, transport, era):
    done = inspect(node, box, transport, era, "tools/list", "--strict")
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert {t["name"] for t in json.loads(done.stdout)["result"]["tools"]} >= TOOLS, done.stdout


@everywhere
def test_a_tool_is_called(node, box, transport, era):
    done = inspect(node, box, transport, era, "tools/call", "--tool-name", "exec", "--tool-args-json",
                   json.dumps({"command": f"echo from {transport} in {era}"}))
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert f"from {transport} in {era}" in done.stdout, done.stdout
