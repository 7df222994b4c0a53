# SPDX-License-Identifier: Apache-2.0
"""The battery's attempts behind another sandbox: no twins, and only what makes sense without pale."""
import concurrent.futures
import subprocess
import time

import battery
import judges
from harness import Result

# Judges that look at the host's own things. What the others find (kernel code that was reached, files of the kernel that speak, the
# sandbox's own first process within reach) is surface: such a row is open, not leaked.
HOST = {"host-file", "planted", "environment", "host-process", "tcp", "tcp6", "udp", "abstract", "abstract-dgram", "socket-file", "shm", "sem", "msg", "queue", "rights",
        "guarded", "unwritten"}

# A door tells our own filter from the kernel by the answer. Another filter may answer otherwise: what reads like a refusal is one.
REFUSALS = ("Operation not permitted", "Permission denied", "Function not implemented", "Not supported", "Address family not supported by protocol",
            "Address family not supported")


def verdict(case, leaked, detail):
    if not leaked or (case.door and detail.endswith(REFUSALS)):
        return "held"
    return "leaked" if case.judge.split(":")[0] in HOST else "open"


class PeerAttempt(battery.Attempt):
    def __init__(self, world, case, peer):
        self.peer, self.why = peer, None
        super().__init__(world, case, frozenset())

    def shares(self):
        """The case's flags as folders, or None where a flag has no counterpart."""
        found, cwd, left = [(str(self.world.tools), str(self.world.tools), False)], "/", self.words(self.case.flags)
        project = None
        while left:
            flag, left = left[0], left[1:]
            if flag in ("--read", "--write"):
                found.append((left[0], left[0], flag == "--write"))
            elif flag == "--volume":
                host, target, *mode = left[0].split(":")
                found.append((host, target, mode != ["ro"]))
            elif flag == "--project":
                project = left[0]
            elif flag == "--project-path":
                found.append((left[0], left[0], project == "live"))
                cwd = left[0]
            elif flag == "--cwd":
                cwd = left[0]
            else:
                return None, None
            left = left[1:]
        return found, cwd

    def attack(self, **_):
        shares, cwd = self.shares()
        words = [str(self.world.attack), *self.words(self.case.attack)]
        argv = self.peer.argv(words, shares, cwd) if shares is not None else None
        if argv is None:
            raise battery.Skip("what the case gives to the box cannot be said to this peer")
        try:
            done = subprocess.run(argv, env={**self.peer.env, **self.env}, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, cwd=self.dir)
        except subprocess.TimeoutExpired:
            raise battery.Broken("it hangs") from None
        return Result(argv, done.returncode, done.stdout, done.stderr)


def run_row(world, case, peer):
    row = {"name": case.name, "threat": case.threat, "claim": case.claim, "verdict": "", "detail": ""}
    began = time.monotonic()
    at = None
    try:
        reason = peer.not_for(case) or next((r for r in (n() for n in case.needs) if r), None)
        if reason:
            raise battery.Skip(reason)
        at = PeerAttempt(world, case, peer)
        judge = judges.JUDGES[case.judge](at)
        at.fields.update(next(judge) or {})
        try:
            judge.send(at.attack())
        except StopIteration as end:
            leaked, row["detail"] = end.value
            row["verdict"] = verdict(case, leaked, row["detail"])
    except battery.Skip as e:
        row["verdict"], row["detail"] = "not applicable", str(e)
    except (battery.Broken, OSError, AssertionError, ValueError) as e:
        row["verdict"], row["detail"] = "not run", str(e)[-300:]
    finally:
        if at:
            at.end()
    row["ms"] = int((time.monotonic() - began) * 1000)
    return row


def run(world, chosen, peer, jobs):
    rows = [c for c in chosen if c.peer and not c.scene and not c.off and world.who in c.who]
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(lambda c: run_row(world, c, peer), rows))
