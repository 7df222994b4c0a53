# SPDX-License-Identifier: Apache-2.0
"""Measures of the daemon: a command over REST beside `pale exec`, commands a second, what it costs when nothing happens, and a thousand
boxes under it: listing them, their metrics, and how long a daemon that was killed takes to serve again."""
import http.client
import json
import os
import signal
import socket
import time

from fleet import no_room
from host import Failed, quantile, smaps_kib

ROUNDS = 10
AT_ONCE = 16
RESTARTS = 30


class Wire(http.client.HTTPConnection):
    """A daemon speaks to its own user alone: root connects as that one."""

    def __init__(self, who, path):
        super().__init__("localhost", timeout=20)
        self.who, self.path = who, path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        own = os.geteuid()
        os.seteuid(self.who.uid)
        try:
            self.sock.connect(self.path)
        finally:
            os.seteuid(own)


def get(who, path, url):
    wire = Wire(who, path)
    wire.request("GET", url)
    return json.loads(wire.getresponse().read())


def asked(who, stage, path, words, connections=1, requests=200):
    """Microseconds of each, and requests a second."""
    out = who.run(stage.bin / "ask", "-c", connections, "-n", requests, path, *words).split()
    return [float(x) for x in out[:-2]], requests / float(out[-1])


def row(values):
    return {"p50_ms": round(quantile(values, 0.5) / 1000, 3), "p99_ms": round(quantile(values, 0.99) / 1000, 3), "runs": len(values)}


def exec_beside(who, args, stage, path):
    """By turns, so that a noisy moment meets both."""
    true = str(stage.bin / "true-glibc")
    who.run(who.pale, "create", "--read", stage.bin, "bench-rest")
    try:
        body = json.dumps({"command": [true]})
        words = ["POST", "/v1/boxes/bench-rest/exec", body]
        rest, straight = [], []
        for _ in range(ROUNDS):
            rest += asked(who, stage, path, words, requests=max(20, args.runs // ROUNDS))[0]
            straight += who.spawn([[who.pale, "exec", "-q", "bench-rest", "--", true]], max(20, args.runs // ROUNDS), 2)[0]
        _, rate = asked(who, stage, path, words, connections=AT_ONCE, requests=max(200, args.runs * 4))
    finally:
        who.run(who.pale, "rm", "-f", "bench-rest", check=False)
    return {"rest": row(rest), "pale_exec": row(straight), "ratio_p50": round(quantile(rest, 0.5) / quantile(straight, 0.5), 3),
            "execs_per_second": round(rate)}


def switches(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return sum(int(line.split()[1]) for line in f if "ctxt_switches" in line)


def at_rest(who, path):
    pid = get(who, path, "/v1/health")["pid"]
    time.sleep(1)
    before = switches(pid)
    time.sleep(5)
    woken = switches(pid) - before
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        rss = next(int(line.split()[1]) for line in f if line.startswith("VmRSS"))
    pss = smaps_kib(pid, "Pss:") if os.geteuid() == 0 else None
    return {"rss_kib": rss, "pss_kib": pss, "wake_ups_in_5_s": woken}


def restarts(who, path):
    took = []
    for _ in range(RESTARTS):
        pid = get(who, path, "/v1/health")["pid"]
        began = time.monotonic()
        os.kill(pid, signal.SIGKILL)
        while True:
            try:
                if get(who, path, "/v1/health")["pid"] != pid:
                    break
            except (OSError, http.client.HTTPException, ValueError):
                time.sleep(0.0005)
            if time.monotonic() - began > 20:
                raise Failed("no daemon 20 s after it was killed")
        took.append((time.monotonic() - began) * 1e6)
        time.sleep(0.2)
    return row(took)


def many(who, args, stage, path):
    reason = no_room(who, args.boxes)
    if reason:
        return {"skipped": reason}
    names = [f"bench-d{i}" for i in range(args.boxes)]
    try:
        who.run(who.pale, "create", *names)
        time.sleep(4)
        return {"boxes": args.boxes, "list": row(asked(who, stage, path, ["GET", "/v1/boxes"])[0]),
                "metrics": row(asked(who, stage, path, ["GET", "/v1/metrics"])[0]), "restart": restarts(who, path), "at_rest": at_rest(who, path)}
    finally:
        who.run(who.pale, "rm", "-f", *names, check=False)


def daemon(who, args, stage, _peers):
    path = str(who.runtime / "pale" / "paled.sock")
    who.run(who.pale, "serve")
    try:
        found = {"at_rest": at_rest(who, path), "exec": exec_beside(who, args, stage, path)}
        found["many"] = many(who, args, stage, path)
        return found
    finally:
        who.run(who.pale, "serve", "--stop", check=False)
