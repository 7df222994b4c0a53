# SPDX-License-Identifier: Apache-2.0
"""`make install` over a version that is in use: there is no moment without one of the programs."""
import json
import os
import pathlib
import shutil
import subprocess

import pytest

import harness
from harness import Pale

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


@pytest.mark.limit(300)
def test_no_program_is_missing_while_it_is_installed_again(root):
    if not (ROOT / "build" / "build.ninja").exists() or not shutil.which("meson") or os.stat(ROOT / "build").st_uid != os.geteuid():
        pytest.skip("the build folder is not here, or another user's")
    prefix = subprocess.run(["meson", "introspect", "--buildoptions", str(ROOT / "build")], capture_output=True, text=True, check=True).stdout
    at = next(o["value"] for o in json.loads(prefix) if o["name"] == "prefix")
    dest = root / "dest"
    env = {**os.environ, "DESTDIR": str(dest)}
    install = [str(ROOT / "tools" / "install"), "build"]
    subprocess.run(install, cwd=ROOT, env=env, check=True, capture_output=True)
    p = Pale(root, pathlib.Path(f"{dest}{at}") / "bin")
    assert p.run("run", "-q", "--", "echo", "fine").text == "fine\n"
    inode = os.stat(f"{dest}{at}/libexec/pale/pale-keeper").st_ino
    for _ in range(3):
        again = subprocess.Popen(install, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        runs = 0
        while again.poll() is None or runs < 5:
            done = p.run("run", "-q", "--", "true")
            assert done.code == 0, done
            runs += 1
        assert again.returncode == 0, again.stdout.read()
        again.stdout.close()
    assert os.stat(f"{dest}{at}/libexec/pale/pale-keeper").st_ino != inode
    assert not list(dest.rglob(".*.new.*"))
    p.end()
    left = harness.all_gone(root)
    for pid in left:
        harness.kill_quietly(pid)
