# SPDX-License-Identifier: Apache-2.0
"""What a test run must not leave behind: a picture before, a picture after, and the difference that is ours."""
import glob
import os
import pathlib
import pwd
import re
import socket
import time

# Names our tests give to what they make; other things on the machine come and go without us, other runs of the tests too.
OTHER_RUNS = re.compile(r"(plt-|\.plt-|paletest)(?!TAG)[0-9a-f]{4}")


def stat_of(pid):
    try:
        text = pathlib.Path(f"/proc/{pid}/stat").read_text(errors="replace")
        uid = os.stat(f"/proc/{pid}").st_uid
    except OSError:
        return None
    head, _, tail = text.rpartition(")")
    fields = tail.split()
    return {"name": head.partition("(")[2], "state": fields[0], "parent": int(fields[1]), "start": fields[19], "uid": uid}


def read(path):
    try:
        return pathlib.Path(path).read_bytes()
    except OSError:
        return b""


def processes(tag, uids):
    """Processes of the temporary users, keepers of homes of ours, and inits without a keeper."""
    found = {}
    for n in filter(str.isdigit, os.listdir("/proc")):
        st = stat_of(n)
        if not st or st["state"] == "Z":
            continue
        ours = st["uid"] in uids
        if st["name"].startswith("pale"):
            ours = ours or f"/plt-{tag}-".encode() in read(f"/proc/{n}/cmdline") + read(f"/proc/{n}/environ")
            above = stat_of(st["parent"])
            ours = ours or (st["name"] == "pale-init" and (not above or not above["name"].startswith("pale")))
        if ours:
            found[(n, st["start"])] = f"{n} {st['name']}"
    return found


def mounts(tag):
    other = re.compile(OTHER_RUNS.pattern.replace("TAG", tag))
    return {line.split(" ", 2)[2]: line for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines() if not other.search(line)}


def cgroups(ids):
    """Folders of boxes that the tests have made."""
    found = {}
    for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines():
        left, _, right = line.partition(" - ")
        if right.split()[0] in ("cgroup", "cgroup2"):
            mount = glob.escape(left.split()[4])  # and not pathlib, which stumbles over a group that goes away meanwhile
            groups = [*glob.glob(f"{mount}/pale/*/*"), *glob.glob(f"{mount}/**/pale-*.scope", recursive=True)]
            found |= {g: g for g in groups if any(i in os.path.basename(g) for i in ids)}
    return found


def users(tag):
    other = re.compile(OTHER_RUNS.pattern.replace("TAG", tag))
    found = {u.pw_name: u.pw_name for u in pwd.getpwall()}
    found |= {f"{f}:{line}": f"{f}: {line}" for f in ("/etc/subuid", "/etc/subgid") for line in read(f).decode().splitlines()}
    return {k: v for k, v in found.items() if not other.search(k)}


def files(tag):
    found = {}
    for place in ("/tmp", "/var/tmp", "/dev/shm", "/home", os.path.expanduser("~")):
        for name in os.listdir(place):
            if name.startswith((f"plt-{tag}", f".plt-{tag}", "pale-demo.")):
                found[f"{place}/{name}"] = f"{place}/{name}"
    for base in [pathlib.Path("/run/pale"), *pathlib.Path("/run/user").glob("*/pale")]:
        for s in base.glob("*.sock"):
            with socket.socket(socket.AF_UNIX) as c:
                try:
                    c.connect(str(s))
                except OSError:
                    found[str(s)] = f"{s} (nobody listens)"
    home = pathlib.Path(os.path.expanduser("~"))
    for folder in (home / ".local/share/pale", home / ".local/state/pale", home / ".pytest_cache"):
        if folder.exists():
            found[str(folder)] = str(folder)
    return found


CHECKS = {"processes": lambda tag, uids, _: processes(tag, uids), "mounts": lambda tag, *_: mounts(tag), "cgroups": lambda _, __, ids: cgroups(ids),
          "users": lambda tag, *_: users(tag), "files": lambda tag, *_: files(tag)}


def picture(tag, uids=(), ids=(), kinds=tuple(CHECKS)):
    return {name: CHECKS[name](tag, set(uids), set(ids)) for name in kinds}


def difference(before, tag, uids=(), ids=(), kinds=tuple(CHECKS), seconds=5):
    """{kind: [what is new]} after giving what is on its way out some time."""
    until = time.monotonic() + seconds
    while True:
        after = picture(tag, uids, ids, kinds)
        new = {kind: sorted(after[kind][k] for k in after[kind].keys() - before[kind].keys()) for kind in after}
        if not any(new.values()) or time.monotonic() > until:
            return new
        time.sleep(0.1)
