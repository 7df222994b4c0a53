# SPDX-License-Identifier: Apache-2.0
"""Who a command may run as, and the true reason where it may not."""
import os

import pytest

import harness


def ids_there(pale):
    """Can a lasting box have several ids here?"""
    pale.ok("create", "probe")
    several = pale.exec("probe", "id", "-u", flags=["--user", "1234"]).code == 0
    pale.ok("rm", "probe")
    return several


def test_a_box_for_one_command_says_why_and_the_remedy_works(pale):
    done = pale.run("run", "-q", "--user", "root", "--", "id", "-u")
    if harness.REAL_ROOT:
        assert done.text == "0\n"
        return
    assert done.code == 125 and "a box for one command" in done.errors and "pale exec --user root NAME" in done.errors
    if not ids_there(pale):
        return
    pale.ok("create", "b")
    assert pale.exec("b", "id", "-u", flags=["-q", "--user", "root"]).text == "0\n"
    assert "pale exec --user 1234 NAME" in pale.run("run", "--user", "1234", "--", "true", expect=125).errors


def test_agent_is_always_there_without_an_image(pale):
    done = pale.ok("run", "-q", "--user", "agent", "--", "id", "-un")
    assert done.text == "agent\n"
    assert pale.run("run", "--user", "nobody", "--", "true", expect=125).errors.endswith("agent, root, UID or UID:GID\n")


@pytest.mark.limit(240)
def test_a_box_on_an_image_has_root_alone(pale):
    done = pale.run("image", "build", "tiny", "--from", "minimal")
    if done.code:
        pytest.skip(f"no image can be built here: {done.errors.strip()}")
    pale.ok("create", "b", "--image", "tiny")
    for words, uid in (([], "0\n"), (["--user", "root"], "0\n")):
        assert pale.exec("b", "id", "-u", flags=["-q", *words]).text == uid
        assert pale.ok("run", "-q", "--image", "tiny", *words, "--", "id", "-u").text == uid
    for user in ("agent", "1000", str(os.geteuid() or 65534)):
        for done in (pale.exec("b", "true", flags=["--user", user]), pale.run("run", "--image", "tiny", "--user", user, "--", "true")):
            assert done.code == 125 and f"no user {user}" in done.errors and "leave --user out" in done.errors, done
    pale.ok("rm", "b")
