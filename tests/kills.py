#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills the daemon at random instants while clients work, and holds it to its promises: what was acknowledged is there, what was asked
for with a key was done once, every command's output and end reach who asks again, no box dies, nothing is left over.

    tests/kills.py [--kills 2000] [--clients 50] [--boxes 0] [--seed N]

--boxes: so many idle boxes live besides. Prints one JSON object with what was done and how long a daemon took to serve again."""
import argparse
import http.client
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from harness import Pale, remove_root  # noqa: E402

PATIENCE = 60  # seconds a client goes on asking


class Wire(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=20)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Client:
    """Asks until it is answered: a connection that breaks is no answer, and 429 and 503 are to be asked again."""

    def __init__(self, path):
        self.path, self.wire, self.again = path, None, 0

    def ask(self, method, url, body=None, key=None, raw=False):
        until = time.monotonic() + PATIENCE
        headers = {}
        if key:
            headers["Idempotency-Key"] = key
        if body is not None and not raw:
            body, headers["Content-Type"] = json.dumps(body), "application/json"
        while True:
            try:
                if not self.wire:
                    self.wire = Wire(self.path)
                self.wire.request(method, url, body, headers)
                answer = self.wire.getresponse()
                data = answer.read()
                if answer.status not in (429, 503, 410, 502):
                    return answer.status, data
            except (OSError, http.client.HTTPException):
                self.wire = None
            if time.monotonic() > until:
                raise AssertionError(f"{method} {url} got no answer in {PATIENCE} s")
            self.again += 1
            time.sleep(random.uniform(0.002, 0.02))

    def json(self, *args, expect=(200, 201, 202), **more):
        status, data = self.ask(*args, **more)
        assert status in expect, (args, status, data)
        return json.loads(data) if data else None


class Worker(threading.Thread):
    """Has boxes of its own and believes nothing."""

    def __init__(self, number, path, stop, seed):
        super().__init__(daemon=True)
        self.number, self.stop, self.chance, self.client = number, stop, random.Random(seed), Client(path)
        self.boxes, self.turn, self.trouble = {}, 0, None
        self.count = {"create": 0, "exec": 0, "job": 0, "file": 0, "remove": 0}

    def run(self):
        try:
            while not self.stop.is_set():
                self.step()
            for box in list(self.boxes):
                self.remove(box)
        except Exception as e:  # pylint: disable=broad-except
            self.trouble = f"client {self.number}: {type(e).__name__}: {e}"

    def step(self):
        self.turn += 1
        if not self.boxes:
            return self.create()
        box = self.chance.choice(list(self.boxes))
        what = self.chance.choices([self.create, self.exec, self.job, self.file, self.remove], [1 if len(self.boxes) < 3 else 0, 8, 3, 3, 1])[0]
        return what() if what == self.create else what(box)

    def create(self):
        name = f"w{self.number}-{self.turn}"
        made = self.client.json("POST", "/v1/boxes", {"name": name}, key=f"make-{name}")
        assert made["name"] == name, made
        self.boxes[name] = 0
        self.count["create"] += 1

    def exec(self, box):
        """Run twice it would print two lines."""
        key = f"exec-{self.number}-{self.turn}"
        done = self.client.json("POST", f"/v1/boxes/{box}/exec", {"command": f"echo x >> ~/{key}; cat ~/{key}; echo e >&2; exit 3"}, key=key)
        assert (done["exit"], done["stdout"], done["stderr"]) == (3, {"data": "x\n"}, {"data": "e\n"}), done
        self.boxes[box] += 1
        self.count["exec"] += 1

    def job(self, box):
        key = f"job-{self.number}-{self.turn}"
        lines = self.chance.randint(1, 400)
        script = f"echo x >> ~/{key}; i=0; while [ $i -lt {lines} ]; do echo line $i; i=$((i+1)); done; sleep 0.0{self.chance.randint(0, 9)}; wc -l < ~/{key}"
        job = self.client.json("POST", f"/v1/boxes/{box}/jobs", {"command": script}, key=key)["job"]
        end = self.client.json("GET", f"/v1/boxes/{box}/jobs/{job}/wait")
        assert end["state"] == "ended" and end["result"]["exit"] == 0, end
        status, data = self.client.ask("GET", f"/v1/boxes/{box}/jobs/{job}/logs")
        rows = [json.loads(line) for line in data.splitlines()]
        text = "".join(r.get("data", "") for r in rows if r["event"] == "stdout")
        assert status == 200 and text == "".join(f"line {i}\n" for i in range(lines)) + "1\n", (status, lines, text[-200:])
        self.boxes[box] += 1
        self.count["job"] += 1

    def file(self, box):
        data = self.chance.randbytes(self.chance.choice([10, 1000, 200000]))
        name = f"/tmp/f{self.turn}"
        status, _ = self.client.ask("PUT", f"/v1/boxes/{box}/files?path={name}", data, raw=True)
        assert status == 204, status
        status, back = self.client.ask("GET", f"/v1/boxes/{box}/files?path={name}")
        assert status == 200 and back == data, (status, len(back), len(data))
        self.count["file"] += 1

    def remove(self, box):
        """An answer that was lost leaves a box that is gone."""
        status, data = self.client.ask("DELETE", f"/v1/boxes/{box}")
        assert status in (204, 404), (status, data)
        status, data = self.client.ask("GET", f"/v1/boxes/{box}")
        assert status == 404, (box, status, data)
        del self.boxes[box]
        self.count["remove"] += 1


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
            return f.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


class Killer:
    def __init__(self, pale, path, chance):
        self.pale, self.path, self.chance = pale, path, chance
        self.again_ms, self.kinds = [], {"paled": 0, "steward": 0, "both": 0}

    def status(self):
        return json.loads(self.pale.run("serve", "--json").text)

    def kill(self):
        now = self.status()
        kind = self.chance.choices(["paled", "steward", "both"], [8, 1, 1])[0]
        began = time.monotonic()
        for pid in {"paled": ["pid"], "steward": ["steward_pid"], "both": ["steward_pid", "pid"]}[kind]:
            try:
                os.kill(now[pid], signal.SIGKILL)
            except ProcessLookupError:
                return  # it was being started again just then
        while kind != "paled" and alive(now["steward_pid"]):
            time.sleep(0.0005)
        if kind != "paled":
            self.pale.ok("serve")
        self.kinds[kind] += 1
        while True:
            try:
                wire = Wire(self.path)
                wire.request("GET", "/v1/health")
                if wire.getresponse().status == 200:
                    break
            except (OSError, http.client.HTTPException):
                time.sleep(0.001)
            assert time.monotonic() - began < 20, f"no daemon 20 s after {kind} was killed"
        self.again_ms.append((time.monotonic() - began) * 1000)


def percentile(values, p):
    values = sorted(values)
    return round(values[min(len(values) - 1, int(len(values) * p))], 1) if values else None


def check_rest(pale, path, idle, keepers):
    """What is there now is what was there before: the idle boxes, with the keepers they had."""
    listed = Client(path).json("GET", "/v1/boxes")["items"]
    names = sorted(b["name"] for b in listed)
    assert names == sorted(idle), (names, idle)
    for pid in keepers:
        assert alive(pid), f"keeper {pid} has died"
    left = [p.name for p in (pale.root / "state" / "pale" / "boxes").iterdir()]
    assert len(left) == len(idle), left


def run(kills, clients, boxes, seed, root):
    pale = Pale(root)
    chance = random.Random(seed)
    path = str(pathlib.Path(pale.env["XDG_RUNTIME_DIR"]).resolve() / "pale" / "paled.sock")
    pale.env["XDG_RUNTIME_DIR"] = str(pathlib.Path(pale.env["XDG_RUNTIME_DIR"]).resolve())
    pale.ok("serve")
    idle = [f"idle-{i}" for i in range(boxes)]
    keepers, workers = [], []
    stop = threading.Event()
    try:
        for at in range(0, boxes, 200):
            pale.ok("create", *idle[at:at + 200], timeout=120)
        keepers = [pale.json("inspect", "--json", name)["keeper_pid"] for name in idle[:50]]
        workers = [Worker(i, path, stop, chance.random()) for i in range(clients)]
        for w in workers:
            w.start()
        killer = Killer(pale, path, chance)
        began = time.monotonic()
        while sum(killer.kinds.values()) < kills and not any(w.trouble for w in workers):
            time.sleep(chance.uniform(0, 0.08))
            killer.kill()
            if sys.stderr.isatty() or sum(killer.kinds.values()) % 100 == 0:
                print(f"{sum(killer.kinds.values())} of {kills} kills, {time.monotonic() - began:.0f} s", end="\r" if sys.stderr.isatty() else "\n",
                      file=sys.stderr, flush=True)
        took = time.monotonic() - began
        stop.set()
        for w in workers:
            w.join(3 * PATIENCE)
        troubles = [w.trouble or ("client %d hangs" % w.number if w.is_alive() else None) for w in workers]
        troubles = [t for t in troubles if t]
        if not troubles:
            check_rest(pale, path, idle, keepers)
        return {"seed": seed, "kills": sum(killer.kinds.values()), **killer.kinds, "clients": clients, "boxes": boxes, "seconds": round(took, 1),
                "done": {k: sum(w.count[k] for w in workers) for k in workers[0].count}, "asked_again": sum(w.client.again for w in workers),
                "serves_again_ms": {"p50": percentile(killer.again_ms, 0.5), "p99": percentile(killer.again_ms, 0.99),
                                    "max": percentile(killer.again_ms, 1)},
                "troubles": troubles[:10]}
    finally:
        stop.set()
        for w in workers:
            w.join(PATIENCE)
        listed = [b["name"] for b in json.loads(pale.run("ls", "--json").text or "[]")]
        for at in range(0, len(listed), 200):
            pale.run("rm", "-f", *listed[at:at + 200], timeout=300)
        pale.run("serve", "--stop")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--kills", type=int, default=2000)
    p.add_argument("--clients", type=int, default=50)
    p.add_argument("--boxes", type=int, default=0)
    p.add_argument("--seed", type=int, default=int(time.time()))
    o = p.parse_args()
    root = tempfile.mkdtemp(prefix="plk-")
    try:
        found = run(o.kills, o.clients, o.boxes, o.seed, root)
    finally:
        remove_root(root)
        shutil.rmtree(root, ignore_errors=True)
    print(json.dumps(found, indent=1))
    return 1 if found["troubles"] else 0


if __name__ == "__main__":
    sys.exit(main())
