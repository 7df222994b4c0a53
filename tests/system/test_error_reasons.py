# SPDX-License-Identifier: Apache-2.0
"""What goes wrong is named as what it is: a full disk, a missing program, too few files, a folder that is too open, a policy with another letter."""
import os
import pathlib
import resource
import shutil
import subprocess

import pytest

import harness
from harness import Pale, wait_until


@pytest.fixture
def small_data(pale):
    if not harness.REAL_ROOT or not os.path.exists("/dev/loop-control") or not shutil.which("mkfs.ext4"):
        pytest.skip("a file system of its own needs root, loop devices and mkfs.ext4")
    image, data = pale.root / "data.img", pale.root / "data"
    with open(image, "wb") as f:
        f.truncate(4 << 20)
    subprocess.run(["mkfs.ext4", "-q", "-F", "-b", "1024", "-m", "0", image], check=True)
    subprocess.run(["mount", "-o", "loop", image, data], check=True)
    os.chmod(data, 0o700)
    yield data
    (data / "filler").unlink(missing_ok=True)
    trouble = pale.end()
    wait_until(lambda: not harness.processes_of(pale.root))
    subprocess.run(["umount", data], check=True)
    assert not trouble


def fill(path, leave):
    with open(path, "wb", 0) as f:
        try:
            while True:
                f.write(bytes(1024))
        except OSError:
            pass
        f.truncate(max(f.tell() - leave * 1024, 0))


def test_a_full_data_folder_is_said_to_be_full(pale, small_data):
    """However far the making of a box comes: never "no such file"."""
    pale.create("first")
    codes = set()
    for leave in range(0, 14):
        fill(small_data / "filler", leave)
        done = pale.run("create", "--json", "b")
        if done.code:
            told = done.json()["error"]
            codes.add(told["code"])
            assert "No space left" in told["message"] or "disk is full" in told["message"], (leave, told)
            assert pale.boxes() == ["first"]
        else:
            pale.ok("rm", "b")
        (small_data / "filler").unlink()
    assert codes == {"no-space"}, codes


def test_a_full_disk_is_507_over_rest(pale, small_data):
    from rest import serving
    with serving(pale) as d:
        d.serve()
        fill(small_data / "filler", 0)
        told = d.rest.bad("POST", "/v1/boxes", {"name": "x"}, status=507)
        assert told["code"] == "no-space"


@pytest.mark.parametrize("program", ["pale-keeper", "pale-init", "pale-policy", "pale-steward"])
def test_a_missing_program_is_no_missing_box(root, pale, program):
    """It is pale's own fault, with what to do: not "not found"."""
    build = root / "half"
    build.mkdir()
    for p in harness.BUILD.iterdir():
        if p.is_file() and p.name.startswith("pale") and "." not in p.name and p.name != program and not p.name.endswith("_test"):
            shutil.copy2(p, build / p.name)
    half = Pale(pale.root, build)
    policy = root / "p.yaml"
    policy.write_text("tier: native\n")
    ask = {"pale-steward": ["token", "ls"], "pale-policy": ["create", "b", "--policy", policy]}.get(program, ["create", "b"])
    done = half.run(*ask, "--json")
    told = done.json()["error"]
    assert done.code == 125 and told["code"] == "internal" and "not installed whole" in told["message"] and program in told["message"], told


@pytest.mark.parametrize("files", [12, 16, 18, 24, 40, 100])
def test_too_few_files_are_named(pale, files):
    """With a soft limit a keeper helps itself; with a hard one it says what is missing."""
    def limit(soft, hard):
        return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    p = pale.start("create", "b", preexec_fn=limit(files, 4096))
    out, err = p.communicate(timeout=30)
    pale.names.add("b")
    assert p.returncode == 0, err
    assert pale.exec("b", "true").code == 0
    p = pale.start("create", "c", preexec_fn=limit(files, files))
    out, err = p.communicate(timeout=30)
    assert p.returncode == 125 and b"ulimit -n" in err, err
    assert pale.boxes() == ["b"]


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o722])
def test_a_state_folder_that_others_write_to_is_refused(pale, mode):
    """… though the folder above lets nobody in: what holds must not hang on that."""
    pale.create("b")
    pale.ok("stop", "b")
    state = pathlib.Path(pale.info("b")["state_dir"])
    state.chmod(mode)
    done = pale.exec("b", "true")
    assert done.code == 125 and str(state) in done.errors and "chmod 700" in done.errors, done
    state.chmod(0o700)
    assert pale.exec("b", "true").code == 0


def test_a_policy_with_another_letter_does_not_hold(pale):
    """512 processes become 112, or the network another: it still reads as a policy."""
    for name in ("b", "c"):
        pale.create(name, "--processes", "512")
        pale.ok("stop", name)
    path = pathlib.Path(pale.info("b")["state_dir"]) / "policy"
    text = path.read_bytes()
    assert b"512" in text
    path.write_bytes(text.replace(b"512", b"112", 1))
    done = pale.exec("b", "true")
    assert done.code == 125 and "not what was written" in done.errors and "policy show b" in done.errors, done
    assert pale.exec("c", "true").code == 0
    path.write_bytes(text)
    assert pale.exec("b", "true").code == 0
    pale.ok("stop", "b")
    pale.ok("policy", "set", "b", "limits.processes=40")
    assert pale.exec("b", "true").code == 0


def test_with_the_digest_left_out_the_other_letter_holds(pale):
    weak = pale.weakened("policy-check")
    weak.create("b", "--processes", "512")
    weak.ok("stop", "b")
    path = pathlib.Path(weak.info("b")["state_dir"]) / "policy"
    path.write_bytes(path.read_bytes().replace(b"512", b"112", 1))
    assert weak.exec("b", "true").code == 0
