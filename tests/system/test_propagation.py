# SPDX-License-Identifier: Apache-2.0
"""What is mounted in a box stays there, on hosts whose mounts are shared (as systemd makes them) too."""
import subprocess

import pytest

from harness import REAL_ROOT

pytestmark = pytest.mark.skipif(not REAL_ROOT, reason="only root can make a mount namespace whose mounts are shared")

SCRIPT = """
grep -q ' shared:' /proc/self/mountinfo || exit 9
sed 's/ [a-z]*:[0-9]* - / - /' /proc/self/mountinfo > "$1/before"
"$0" run -q --project live --project-path "$2" -- true || exit 8
"$0" create b --project live --project-path "$2" || exit 7
"$0" exec -q b -- sh -c 'echo x > f' || exit 6
"$0" rm b || exit 5
sed 's/ [a-z]*:[0-9]* - / - /' /proc/self/mountinfo > "$1/after"
"""


def test_nothing_is_mounted_on_the_host(pale, hostdir):
    (hostdir / ".git").mkdir()
    (hostdir / ".git" / "config").write_text("")
    pale.names.add("b")
    done = subprocess.run(["unshare", "--mount", "--propagation", "shared", "sh", "-c", SCRIPT, pale.program, str(pale.root), str(hostdir)],
                          env=pale.env, capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done
    assert (pale.root / "after").read_text() == (pale.root / "before").read_text()
