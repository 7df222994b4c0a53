# SPDX-License-Identifier: Apache-2.0
"""Landing while others swap what stands on its way. The long run is `build/tests/race/landing-race 1000000`."""
import os
import subprocess

import harness
import pytest


def race(build, swaps, where, **env):
    tool = build.parent / "tests" / "race" / "landing-race"
    if not tool.exists():
        pytest.skip(f"{tool} is not built")
    done = subprocess.run([tool, str(swaps), str(where)], capture_output=True, text=True, timeout=120, env={**os.environ, **env}, check=False)
    assert not list(where.iterdir()), "it left something behind"
    return done


def test_nothing_outside_is_touched(tmp_path):
    done = race(harness.BUILD, 40_000, tmp_path)
    assert done.returncode == 0 and " 0 leaks;" in done.stdout, done.stdout + done.stderr


def test_the_race_is_lost_where_links_are_followed(tmp_path):
    done = race(harness.WEAK, 2_000_000, tmp_path, PALE_WEAKEN="beneath")
    assert done.returncode == 1, done.stdout + done.stderr
