# SPDX-License-Identifier: Apache-2.0
"""The official conformance suite against the fixture: every scenario that a revision asks of a server, and nothing excused."""
import json
import re

import pytest

SUITE = "@modelcontextprotocol/conformance/dist/index.js"
# What a revision asks for may only grow with the suite: fewer scenarios than these would be a suite that looks at less.
SCENARIOS = {"2026-07-28": 37, "2025-11-25": 30}
CHECKS = {"2026-07-28": 110, "2025-11-25": 65}


@pytest.mark.parametrize("revision", SCENARIOS)
def test_all_that_a_revision_requires_of_a_server_passes(node, fixture_port, root, revision):
    done = node.run(SUITE, "server", "--url", f"http://127.0.0.1:{fixture_port}/mcp/fixture", "--requirements", revision, "-o", root)
    lists = (node.modules / f"@modelcontextprotocol/conformance/requirements/{revision}.yaml").read_text()
    required = re.search(r"^server:\n((?: *#.*\n| +- .*\n|\n)*)", lists, re.M)[1]
    required = re.findall(r"^ +- (\S+)", required, re.M)
    assert len(required) >= SCENARIOS[revision]
    passed, bad = 0, []
    for scenario in required:
        told = list(root.glob(f"server-{scenario}-20*/checks.json"))
        assert len(told) == 1, (scenario, told)
        checks = json.loads(told[0].read_text())
        assert checks, f"{scenario} has looked at nothing"
        passed += sum(c["status"] == "SUCCESS" for c in checks)
        bad += [(scenario, c["id"], c.get("errorMessage")) for c in checks if c["status"] == "FAILURE"]
    assert done.returncode == 0 and not bad, (bad, done.stdout[-3000:], done.stderr[-1000:])
    assert passed >= CHECKS[revision], f"only {passed} checks"
