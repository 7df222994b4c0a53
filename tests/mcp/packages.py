# SPDX-License-Identifier: Apache-2.0
"""The programs of others that speak MCP, at pinned versions. Run as a program it fetches them; 77 and a reason if they cannot be had."""
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import npm  # noqa: E402

FOLDER = pathlib.Path(os.environ.get("PALE_NPM_MCP", pathlib.Path(__file__).resolve().parents[2] / "build" / "npm-mcp"))
PACKAGES = {
    "@modelcontextprotocol/conformance": "0.2.0-alpha.12",
    "@modelcontextprotocol/inspector": "2.12.0",
    "@modelcontextprotocol/client": "2.4.0",  # v2
    "@modelcontextprotocol/sdk": "1.32.2",  # v1
}


def install():
    """Their node_modules."""
    return npm.install(FOLDER, {**PACKAGES, **npm.node_packages()})


if __name__ == "__main__":
    try:
        print(install())
    except npm.Missing as e:
        print(e)
        sys.exit(77)
