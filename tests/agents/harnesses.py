# SPDX-License-Identifier: Apache-2.0
"""The harnesses that people use, at pinned versions from npm. Run as a program it fetches them all; 77 and a reason if one cannot be had."""
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import npm  # noqa: E402

FOLDER = pathlib.Path(os.environ.get("PALE_NPM_AGENTS", pathlib.Path(__file__).resolve().parents[2] / "build" / "npm-agents"))
PINS = {
    "claude": ("@anthropic-ai/claude-code", "2.1.325"),
    "codex": ("@openai/codex", "0.166.0"),
    "gemini": ("@google/gemini-cli", "0.61.0"),
    "qwen": ("@qwen-code/qwen-code", "0.24.4"),
    "opencode": ("opencode-ai", "1.18.33"),
    "copilot": ("@github/copilot", "1.0.102"),
}
SCRIPTS = {"claude", "opencode"}  # which put their program in its place by a script


def folder(name):
    return FOLDER / f"{name}-{PINS[name][1]}"


def fetch(name):
    """The folders for PATH: of the harness, and of a node that is new enough for it."""
    package, version = PINS[name]
    if "PALE_NPM_MISSING" in os.environ and not npm.has(folder(name), {package: version}):
        raise npm.Missing(os.environ["PALE_NPM_MISSING"])  # it was tried already
    bins = [npm.install(folder(name), {package: version}, scripts=name in SCRIPTS) / ".bin"]
    node = npm.node_packages()
    if node:
        bins.append(pathlib.Path(npm.node(npm.install(FOLDER / "node", node))).parent)
    return bins


if __name__ == "__main__":
    missing = []
    for each in PINS:
        try:
            print(f"{each}: {fetch(each)[0]}", flush=True)
        except npm.Missing as e:
            missing.append(str(e))
    if missing:
        print(missing[0])
        sys.exit(77)
