# SPDX-License-Identifier: Apache-2.0
"""Every case of the battery belongs to a claim of the threat model by its name: test_c07_… to C7."""
import os
import pathlib
import secrets
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from harness import REAL_ROOT  # noqa: E402


@pytest.fixture
def canary():
    """A word that exists nowhere else."""
    return "canary-" + secrets.token_hex(12)


@pytest.fixture
def planted(canary, hostdir):
    """Files of the host with the canary in them, wherever this user may plant one."""
    files = []
    places = [str(hostdir), "/tmp", "/var/tmp", "/dev/shm"]
    if REAL_ROOT:
        places += ["/root", "/home", "/var/lib", "/opt", "/srv", "/mnt", "/etc", "/run"]
    for place in places:
        if os.path.isdir(place) and os.access(place, os.W_OK):
            path = os.path.join(place, f".plt-{os.environ.get('PALE_TEST_TAG', 'x')}-" + canary[-8:])
            with open(path, "w") as f:
                f.write(canary)
            os.chmod(path, 0o644)
            files.append(path)
    yield files
    for path in files:
        os.unlink(path)
