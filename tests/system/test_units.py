# SPDX-License-Identifier: Apache-2.0
"""The units of systemd: the daemon by its socket, its restarts, and boxes that go on. Only where a whole machine is ours to try them on."""
import json
import os
import pathlib
import subprocess

import pytest

from harness import BUILD, ROOT, wait_until

RUNTIME = f"/run/user/{os.getuid()}"
UNITS = pathlib.Path.home() / ".config/systemd/user"

pytestmark = [pytest.mark.once, pytest.mark.skipif(not os.environ.get("PALE_TEST_UNITS"), reason="only in a guest: it changes the user's own units")]


def systemctl(*words, check=True):
    env = {**os.environ, "XDG_RUNTIME_DIR": RUNTIME, "DBUS_SESSION_BUS_ADDRESS": f"unix:path={RUNTIME}/bus"}
    r = subprocess.run(["systemctl", "--user", *words], env=env, capture_output=True, text=True, timeout=60)
    assert not check or r.returncode == 0, (words, r)
    return r.stdout.strip()


def run(*words, check=True):
    env = {"HOME": str(pathlib.Path.home()), "PATH": os.environ["PATH"], "XDG_RUNTIME_DIR": RUNTIME}
    r = subprocess.run([str(BUILD / "pale"), *words], env=env, capture_output=True, text=True, timeout=120)
    assert not check or r.returncode == 0, (words, r)
    return r.stdout


def status():
    return json.loads(run("serve", "--status", "--json", check=False) or "{}")


@pytest.fixture
def units():
    if not os.path.exists(f"{RUNTIME}/systemd/private"):
        pytest.skip("this user has no manager of systemd's")
    UNITS.mkdir(parents=True, exist_ok=True)
    service = (ROOT / "packaging/systemd/paled.service.in").read_text().replace("@libexecdir@/pale/", f"{BUILD}/")
    (UNITS / "paled.service").write_text(service)
    (UNITS / "paled.socket").write_text((ROOT / "packaging/systemd/paled.socket").read_text())
    systemctl("daemon-reload")
    yield
    run("rm", "-f", "by-unit", check=False)
    systemctl("stop", "paled.socket", "paled.service", check=False)
    for name in ("paled.service", "paled.socket"):
        (UNITS / name).unlink()
    systemctl("daemon-reload")


@pytest.mark.limit(300)
def test_the_socket_starts_the_daemon_and_boxes_outlive_it(units):
    systemctl("start", "paled.socket")
    assert systemctl("is-active", "paled.service", check=False) == "inactive"
    assert json.loads(run("--host", f"unix://{RUNTIME}/pale/paled.sock", "ls", "--json")) == []
    assert wait_until(lambda: systemctl("is-active", "paled.service", check=False) == "active", 30)
    main = int(systemctl("show", "--property=MainPID", "--value", "paled.service"))
    assert status()["steward_pid"] == main
    run("create", "by-unit")
    job = run("exec", "--detach", "by-unit", "--", "sh", "-c", "sleep 20; echo went on").strip()
    keeper = json.loads(run("inspect", "--json", "by-unit"))["keeper_pid"]

    systemctl("restart", "paled.service")
    assert wait_until(lambda: status().get("steward_pid") not in (None, main), 30)
    assert json.loads(run("inspect", "--json", "by-unit"))["keeper_pid"] == keeper

    now = status()["steward_pid"]
    systemctl("kill", "--kill-who=main", "--signal=KILL", "paled.service")
    assert wait_until(lambda: status().get("steward_pid") not in (None, now), 30)
    assert json.loads(run("inspect", "--json", "by-unit"))["keeper_pid"] == keeper

    systemctl("stop", "paled.service")
    assert json.loads(run("inspect", "--json", "by-unit"))["keeper_pid"] == keeper
    assert "by-unit" in run("--host", f"unix://{RUNTIME}/pale/paled.sock", "ls")  # the socket starts it once more
    run("wait", "by-unit", job)
    assert run("logs", "by-unit", job) == "went on\n"
