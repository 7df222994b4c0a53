# SPDX-License-Identifier: Apache-2.0
"""What a host must have so that a case can be tried. Each function says what is missing, or nothing."""
import functools
import os
import subprocess
import tempfile

import harness


def file_shown(path):
    """A kernel that has no such file, or shows it to nobody, has nothing to hide."""
    @functools.lru_cache
    def need():
        try:
            mode = os.stat(path).st_mode
        except OSError:
            return f"there is no {path} here"
        if not mode & 0o004:
            return f"{path} is closed to everyone but root"
        try:
            if os.path.isdir(path):
                return None if os.listdir(path) else f"{path} is empty"
            with open(path, "rb", buffering=0) as f:
                return None if f.read(1) else f"{path} is empty"
        except OSError as e:
            return f"{path} cannot be read here: {e.strerror}"
    return need


def exists(path):
    return lambda: None if os.path.exists(path) else f"there is no {path} here"


def x86():
    return None if os.uname().machine == "x86_64" else "a matter of x86"


@functools.lru_cache
def memory_cgroup():
    root = tempfile.mkdtemp(prefix=f"plt-{os.environ.get('PALE_TEST_TAG', 'x')}-", dir="/tmp")
    try:
        good = harness.Pale(root).run("run", "-q", "--memory", "64M", "--", "true").code == 0
    finally:
        harness.remove_root(root)
    return None if good else "no memory cgroup may be written here, so a limit is refused"


@functools.lru_cache
def core_pattern():
    text = open("/proc/sys/kernel/core_pattern").read().strip()
    if text != "core":
        return f"core files go to {text}"
    hard = subprocess.run(["sh", "-c", "ulimit -Hc"], capture_output=True, text=True).stdout.strip()
    return None if hard != "0" else "no core file may be written by anybody here"


@functools.lru_cache
def signal_scope():
    """Landlock keeps signals and abstract sockets in since its ABI 6."""
    import ctypes
    abi = ctypes.CDLL(None).syscall(444, None, 0, 1)
    return None if abi >= 6 else f"Landlock is of ABI {abi}, without scopes"


def many_processes():
    return None if len(harness.pids()) > 20 else "the host has too few processes to tell"


@functools.lru_cache
def strace():
    done = subprocess.run(["strace", "-o", "/dev/null", "true"], capture_output=True) if harness.has_tool("strace") else None
    return None if done and done.returncode == 0 else "strace does not work here"


def busybox():
    return None if harness.has_tool("busybox") else "busybox-static, of which a small image is made, is not installed"


def ipcrm():
    return None if harness.has_tool("ipcrm") else "there is no ipcrm"


def where_boxes_are(trial, missing):
    """Asks the file system that the boxes of a run stand on."""
    @functools.lru_cache
    def need():
        with tempfile.NamedTemporaryFile(dir="/tmp") as f:
            try:
                trial(f)
            except OSError as e:
                return f"{missing}: {e.strerror}"
        return None
    return need


user_attributes = where_boxes_are(lambda f: os.setxattr(f.name, "user.pale", b"x"), "the file system of /tmp has no attributes")
huge_files = where_boxes_are(lambda f: f.truncate(8 << 40), "the file system of /tmp takes no files of eight terabytes")
