# SPDX-License-Identifier: Apache-2.0
"""What a test run must not leave behind: of all there is on the machine, what bears the mark of that run.

A run has a tag of its own. Its users, folders and files have it in their names; its processes have it in their environment, in their words or
belong to its users; what has neither, as the groups and sockets of boxes, has the id of a box that the run has made. Whatever else comes or goes is
somebody else's, and so are other runs."""
import glob
import os
import pathlib
import pwd
import socket
import time


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


def names_of(tag):
    """How what a run has made is called."""
    return [f"{word}{tag}".encode() for word in ("plt-", "paletest", "pale-doctor-", "disk-")]


def is_marked(pid, name, tag, ids):
    told = read(f"/proc/{pid}/environ")
    if f"PALE_TEST_TAG={tag}\0".encode() in told or any(n in told + read(f"/proc/{pid}/cmdline") for n in names_of(tag)):
        return True
    if not name.startswith("pale"):
        return False
    groups = read(f"/proc/{pid}/cgroup")  # an init has an empty environment, and its keeper may be gone
    return any(i.encode() in groups for i in ids) or f"/plt-{tag}-".encode() in read(f"/proc/{pid}/mountinfo")


def processes(tag, uids, ids):
    """Of the run's users; and those of others that have its mark. Not this very process, nor what it stands in."""
    found, above, pid = {}, set(), os.getpid()
    while pid > 1 and (st := stat_of(pid)):
        above.add(str(pid))
        pid = st["parent"]
    for n in filter(str.isdigit, os.listdir("/proc")):
        st = stat_of(n)
        if not st or st["state"] == "Z" or n in above:
            continue
        if st["uid"] in uids or is_marked(n, st["name"], tag, ids):
            found[(n, st["start"])] = f"{n} {st['name']}"
    return found


def mounts(tag, ids):
    marks = [n.decode() for n in names_of(tag)] + sorted(ids)
    return {line.split(" ", 2)[2]: line for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines() if any(m in line for m in marks)}


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
    ours = tuple(n.decode() for n in names_of(tag))
    found = {u.pw_name: u.pw_name for u in pwd.getpwall() if u.pw_name.startswith(ours)}
    found |= {f"{f}:{line}": f"{f}: {line}" for f in ("/etc/subuid", "/etc/subgid") for line in read(f).decode().splitlines() if line.startswith(ours)}
    return found


def nobody_listens(path):
    with socket.socket(socket.AF_UNIX) as c:
        try:
            c.connect(str(path))
        except OSError:
            return True
    return False


def files(tag, ids, places=("/tmp", "/var/tmp", "/dev/shm", "/home", "/opt", "/srv", "~")):
    """By their names; and by the id of a box what pale itself keeps where the host's own users have it: no test has anything to do there."""
    found = {}
    for place in {os.path.expanduser(p) for p in places}:
        for name in os.listdir(place) if os.path.isdir(place) else ():
            if name.startswith((f"plt-{tag}", f".plt-{tag}", f"pale-demo.{tag}")):
                found[f"{place}/{name}"] = f"{place}/{name}"
    for base in [pathlib.Path("/run/pale"), *pathlib.Path("/run/user").glob("*/pale")]:
        for s in base.glob("*.sock"):
            if s.stem in ids and nobody_listens(s):
                found[str(s)] = f"{s} (nobody listens)"
    state = pathlib.Path(os.path.expanduser("~")) / ".local/state/pale/boxes"
    found |= {str(state / i): str(state / i) for i in ids if (state / i).exists()}
    return found


CHECKS = {"processes": processes, "mounts": lambda tag, _, ids: mounts(tag, ids), "cgroups": lambda _, __, ids: cgroups(ids),
          "users": lambda tag, *_: users(tag), "files": lambda tag, _, ids: files(tag, ids)}


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
