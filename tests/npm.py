# SPDX-License-Identifier: Apache-2.0
"""Packages of npm at pinned versions, for tests that meet the programs people use.

    npm.install(folder, {package: version}) -> the folder's node_modules

Nothing is fetched if the folder has them already. Scripts of packages are not run unless that is asked for. npm.Missing says why they
cannot be had; a test skips with that.
"""
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess

NODE = "22.23.3"
NODE_LEAST = 22
SECONDS = 300


class Missing(Exception):
    """They are not here and cannot be had; the text says why."""


def has(folder, packages):
    try:
        return packages.items() <= json.loads((pathlib.Path(folder) / "whole.json").read_text()).items()
    except (OSError, ValueError):
        return False


def install(folder, packages, scripts=False, seconds=SECONDS):
    folder = pathlib.Path(folder)
    if has(folder, packages):
        return folder / "node_modules"
    if not shutil.which("npm"):
        raise Missing("npm is not installed")
    fresh = folder.parent / f".{folder.name}.{os.getpid()}"
    shutil.rmtree(fresh, ignore_errors=True)
    try:
        fresh.mkdir(parents=True)
        fetch(fresh, packages, scripts, seconds)
        (fresh / "whole.json").write_text(json.dumps(packages) + "\n")
        subprocess.run(["chmod", "-R", "go+rX", str(fresh)], check=True)
        shutil.rmtree(folder, ignore_errors=True)
        fresh.rename(folder)
    except OSError as e:
        raise Missing(f"no folder for npm packages can be made: {e}") from None
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return folder / "node_modules"


def fetch(folder, packages, scripts, seconds):
    (folder / "package.json").write_text('{"private": true}\n')
    args = ["npm", "install", "--no-audit", "--no-fund", "--no-progress", "--fetch-retries=1", "--fetch-retry-mintimeout=1000",
            "--fetch-timeout=20000",
            *([] if scripts else ["--ignore-scripts"]), *(f"{name}@{version}" for name, version in packages.items())]
    try:
        done = subprocess.run(args, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        raise Missing(f"npm did not bring {', '.join(packages)} within {seconds} s") from None
    if done.returncode:
        why = [line for line in done.stderr.splitlines() if "error" in line.lower()] or ["no reason given"]
        raise Missing(f"npm could not bring {', '.join(packages)}: {why[0]}")


# --- node itself ---

def own_node():
    """The host's node, if it is new enough."""
    found = shutil.which("node")
    if not found:
        return None
    said = subprocess.run([found, "--version"], capture_output=True, text=True).stdout
    m = re.match(r"v(\d+)\.", said)
    return found if m and int(m[1]) >= NODE_LEAST else None


def node_packages():
    """What to install besides, for a node that is new enough."""
    if own_node():
        return {}
    kind = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine())
    if not kind:
        raise Missing(f"there is no node {NODE_LEAST} for {platform.machine()}")
    return {f"node-linux-{kind}": NODE}


def node(modules):
    """The program, as node_packages has brought it."""
    return own_node() or str(next(modules.glob("node-linux-*/bin/node")))
