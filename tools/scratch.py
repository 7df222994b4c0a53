# SPDX-License-Identifier: Apache-2.0
"""A disk of the test run's own: a file system in a file, where /home and /tmp are meanwhile.

Tests make and remove files by the hundred thousand, and how long that takes on the host's disk depends on what was removed before: an
ext4 without a journal looks at every inode of the last minutes' removals before it gives one out, which was a third of a run. This one
is mounted in a mount namespace that only the run is in, from a file that has no name any more: whatever ends the run ends it too.
"""
import contextlib
import ctypes
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

BYTES = 16 << 30  # as seen; the file has holes
LEAST_FREE = 6 << 30
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
CLONE_NEWNS = 0x00020000


class Unavailable(Exception):
    pass


def do(*args):
    try:
        done = subprocess.run([str(a) for a in args], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False, env={"PATH": PATH})
    except (OSError, subprocess.TimeoutExpired) as e:
        raise Unavailable(f"{args[0]}: {e}") from None
    if done.returncode:
        raise Unavailable(f"{' '.join(map(str, args[:4]))}: {done.stderr.strip()}")


class Disk:
    """Once made, this process and its children have another /home and another /tmp. What they need of the old, `keep`, stays in its place.

    Everybody may make folders in /home: homes and what tests have for themselves are to be on one mount, as they mostly are on a host,
    for nothing can be renamed from one to another."""

    place = pathlib.Path("/home")

    def __init__(self, folder, tag, keep=()):
        if os.geteuid() != 0:
            raise Unavailable("only root can mount one")
        if shutil.disk_usage(folder).free < LEAST_FREE:
            raise Unavailable(f"less than {LEAST_FREE >> 30} GiB are free in {folder}")
        image = pathlib.Path(folder) / f"disk-{tag}"
        try:
            with open(image, "wb") as f:
                f.truncate(BYTES)
            do("mkfs.ext4", "-q", "-F", image)
            if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNS):
                raise Unavailable(f"unshare: {os.strerror(ctypes.get_errno())}")
            do("mount", "--make-rslave", "/")
            self.mount(image, tag, keep)
        finally:
            image.unlink(missing_ok=True)

    def mount(self, image, tag, keep):
        """First aside, as what is to be kept can be reached only until something else lies there."""
        old_tmp = os.open("/tmp", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        aside = pathlib.Path(tempfile.mkdtemp(prefix=f"plt-{tag}-", dir="/tmp"))
        try:
            do("mount", "-o", "loop", image, aside)
            shutil.rmtree(aside / "lost+found")
            new_tmp = aside / ".tmp"
            new_tmp.mkdir()
            for folder in (aside, new_tmp):
                os.chmod(folder, 0o1777)
            for old, new in (("/home", aside), ("/tmp", new_tmp)):
                for path in (p for p in keep if p.is_relative_to(old)):
                    there = new / path.relative_to(old)
                    there.mkdir(parents=True, exist_ok=True)
                    do("mount", "--rbind", path, there)
            do("mount", "--move", aside, self.place)
            do("mount", "--rbind", self.place / ".tmp", "/tmp")
        finally:
            with contextlib.suppress(OSError):  # only if it is still in use
                os.rmdir(aside.name, dir_fd=old_tmp)
            os.close(old_tmp)
        os.chdir("/")

    def show(self, folder, path):
        """The folder at another path too, whoever may go through those above it; to be read only, as somebody may clean up there."""
        path.mkdir()
        do("mount", "--bind", folder, path)
        do("mount", "-o", "remount,bind,ro", path)

    def hide(self, path):
        do("umount", "--lazy", path)


def disk(folder, tag, keep):
    """One, or None and why."""
    try:
        return Disk(folder, tag, [*keep, pathlib.Path(sys.prefix).resolve()]), ""
    except Unavailable as e:
        return None, str(e)
