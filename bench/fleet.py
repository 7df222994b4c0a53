# SPDX-License-Identifier: Apache-2.0
"""Measures of many boxes: what an idle one costs in memory, ours and the kernel's, and a thousand that live at once."""
import json
import os
import resource
import subprocess
import time

from host import Failed, children, descendants, end, meminfo, processes_naming, quantile, settle, smaps_kib
from peers import Held

KERNEL = ("Slab", "KernelStack", "PageTables", "Percpu")
PARTS = (*KERNEL, "SUnreclaim", "AnonPages", "Shmem")
PROCESSES_EACH = 5
KIB_EACH = 2048
REST_SECONDS = 4  # a box that has nothing to do lets its spare process go after three


def read_number(path):
    try:
        with open(path, encoding="ascii") as f:
            return int(f.read().split()[0])
    except (OSError, ValueError, IndexError):
        return None


def no_room(who, boxes):
    """Why this host cannot hold so many boxes; None if it can. Looked at before, so that nothing is half filled."""
    need = boxes * PROCESSES_EACH
    running = sum(1 for e in os.listdir("/proc") if e.isdigit())
    for path in ("/proc/sys/kernel/pid_max", "/proc/sys/kernel/threads-max"):
        limit = read_number(path)
        if limit and limit < running + need + 500:
            return f"{path} is {limit}: {boxes} boxes need {need} processes beside the {running} that run"
    most = resource.getrlimit(resource.RLIMIT_NPROC)[1]
    if not who.is_root and most != resource.RLIM_INFINITY and most < need + 100:
        return f"RLIMIT_NPROC is {most}: {boxes} boxes of one user need {need} processes"
    for kind in ("user", "mnt", "pid", "net", "ipc", "uts"):
        limit = read_number(f"/proc/sys/user/max_{kind}_namespaces")
        if limit is not None and limit < boxes * (2 if kind == "user" else 1) + 50:
            return f"/proc/sys/user/max_{kind}_namespaces is {limit}"
    limit = read_number("/proc/sys/fs/file-max")
    if limit and limit < boxes * 64:
        return f"/proc/sys/fs/file-max is {limit}: {boxes} boxes hold up to {boxes * 64} files open"
    free = meminfo()["MemAvailable"]
    if free < boxes * KIB_EACH + (512 << 10):
        return f"{free >> 10} MiB of memory are free; to be safe {boxes} boxes should have {(boxes * KIB_EACH >> 10) + 512}"
    return None


def per_box(before, after, boxes):
    """all: what MemAvailable lost, which whatever else runs on the host disturbs; kernel: what is the kernel's own of it."""
    parts = {k: round((after[k] - before[k]) / boxes, 1) for k in PARTS}
    return {"all_kib": round((before["MemAvailable"] - after["MemAvailable"]) / boxes, 1),
            "kernel_kib": round(sum(parts[k] for k in KERNEL), 1), "parts_kib": parts}


def box_processes(who, name):
    """The processes of one idle box of pale, by what they are."""
    info = json.loads(who.run(who.pale, "inspect", "--json", name))
    spare = children(info["init_pid"])
    return {"keeper": [info["keeper_pid"]], "init": [info["init_pid"]], "spare runner": spare,
            "spare command": [c for s in spare for c in children(s)]}


def own_memory(pids):
    parts = {k: sum(smaps_kib(p, "Private_") for p in v) for k, v in pids.items()}
    every = [p for v in pids.values() for p in v]
    return {"private_kib": parts, "total_kib": sum(parts.values()), "processes": len(every),
            "pss_kib": sum(smaps_kib(p, "Pss:") for p in every), "pss_anon_kib": sum(smaps_kib(p, "Pss_Anon:") for p in every)}


def idle(who, args, stage, peers):
    """One idle box after two commands: the private memory of its processes, which only root may read; and boxes together: what the
    machine lost per box, all in."""
    rows = []
    pale = next(p for p in peers if p.name == "pale")
    with Held(pale, "idle"):
        who.run(*pale.exec("idle", ["true"]))
        who.run(*pale.exec("idle", ["sleep", "0.2"]))
        ours = own_memory(box_processes(who, "bidle")) if os.geteuid() == 0 else {"skipped": "only root may read the maps of processes that hide theirs"}
    boxes = max(20, args.boxes // 5)
    for p in peers:
        if p.name in ("pale", "crun", "bwrap", "runc", "firejail"):
            try:
                rows.append(together(p, boxes, stage))
            except Failed as e:
                rows.append({"name": p.name, "skipped": str(e)[-160:]})
    return {"one": ours, "boxes": boxes, "rows": rows}


def together(p, boxes, stage):
    """Starts boxes that do nothing, looks at the host's memory before and after. Of slow ones fewer are enough."""
    boxes = min(boxes, 40) if p.slow else boxes
    before, held, listed, own = settle(), [], [], None
    try:
        if p.box and not p.holds:
            p.who.spawn_parallel(p.start("{}"), boxes, 2)
            if p.name == "pale":
                p.who.run(*p.exec("0", ["true"]))
                listed = [x for v in box_processes(p.who, "b0").values() for x in v]
            else:
                listed = processes_naming(str(stage.bin / "calls"))[:1]
        else:
            words = p.start if p.box else lambda n: p.run([stage.bin / "calls", "pause"], read=[stage.bin])
            held = [p.who.start(*words(i), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for i in range(boxes)]
            time.sleep(1)
            listed = descendants(held[0].pid)
        after = settle()
        if listed and os.geteuid() == 0:
            own = sum(smaps_kib(pid, "Pss:") for pid in listed)
    finally:
        end(*held)
        if not held:
            p.who.spawn_parallel(p.stop("{}"), boxes, 2, check=False)
    used = per_box(before, after, boxes)
    return {"name": p.name, "boxes": boxes, "processes": len(listed), "pss_kib": own, "sum_kib": own and round(used["kernel_kib"] + own, 1), **used}


class Fleet:
    """A thousand boxes of one peer, and the certainty that they are gone afterwards."""

    def __init__(self, peer, args):
        self.p, self.who, self.args, self.boxes = peer, peer.who, args, args.boxes
        self.watch = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.watch:
            end(self.watch)
        self.empty(check=False)
        self.who.sweep()

    def exec_words(self, number):
        return self.p.exec(number, ["/usr/bin/true"])

    def fill(self):
        """Seconds, and how: by one command for all where there is one, else by creators at once. A first box was there before."""
        self.who.run(*self.p.start("w"))
        self.who.run(*self.exec_words("w"))
        words = self.p.start_all(self.boxes)
        if not words:
            return self.who.spawn_parallel(self.p.start("{}"), self.boxes, self.args.creators)[0], f"by {self.args.creators} creators"
        start = time.monotonic()
        self.who.run(*words)
        return time.monotonic() - start, "by one command"

    def more(self):
        """Creators at once make some more, while somebody else sends commands into one box that was there before."""
        extra = max(20, self.boxes // 10)
        self.watch = self.who.start(self.who.spawn_program, "-k", "-n", 100000, "--", *self.exec_words("w"), stdout=subprocess.PIPE,
                                    stderr=subprocess.DEVNULL)
        try:
            _, each = self.who.spawn_parallel(self.p.start("x{}"), extra, self.args.creators)
        finally:
            self.watch.terminate()
            out, _ = self.watch.communicate(timeout=30)
            self.who.spawn_parallel(self.p.stop("x{}"), extra, self.args.creators, check=False)
        meanwhile = [float(x) for x in out.split()]
        if any(x < 0 for x in meanwhile):
            raise Failed(f"{sum(x < 0 for x in meanwhile)} of {len(meanwhile)} commands failed while the boxes were made")
        return each, meanwhile

    def empty(self, check=True):
        seconds, _ = self.who.spawn_parallel(self.p.stop("{}"), self.boxes, self.args.creators, check=check)
        self.who.run(*self.p.stop("w"), check=False)
        return seconds


def quantiles(values):
    return {"p50_us": round(quantile(values, 0.5), 1), "p99_us": round(quantile(values, 0.99), 1), "runs": len(values)} if values else None


def cpu_idle_ticks():
    with open("/proc/stat", encoding="ascii") as f:
        words = f.readline().split()[1:]
    return int(words[3]) + int(words[4]), sum(map(int, words[:8]))


def fleet_of(p, args):
    reason = no_room(p.who, args.boxes)
    if reason:
        return {"name": p.name, "skipped": reason}
    before = settle()
    with Fleet(p, args) as fleet:
        seconds, by = fleet.fill()
        time.sleep(REST_SECONDS)
        after = settle()
        idle0, all0 = cpu_idle_ticks()
        time.sleep(2)
        idle1, all1 = cpu_idle_ticks()
        busy = 1 - (idle1 - idle0) / max(1, all1 - all0)
        used = per_box(before, after, args.boxes)
        if p.name == "pale" and os.geteuid() == 0:
            own = [x for n in range(5) for v in box_processes(p.who, f"b{n}").values() for x in v]
            used["pss_kib"] = round(sum(smaps_kib(x, "Pss:") for x in own) / 5, 1)
            used["sum_kib"] = round(used["kernel_kib"] + used["pss_kib"], 1)
        runs = max(200, args.runs * 2)
        (then,) = p.who.spawn([fleet.exec_words("{}")], runs, 20, ["-r", args.boxes])
        plain = p.who.spawn([["/usr/bin/true"]], runs, 20)[0]
        each, meanwhile = fleet.more()
        emptied = fleet.empty()
    return {"name": p.name, "boxes": args.boxes, "creators": args.creators, "fill_s": round(seconds, 3), "filled_by": by, "create": quantiles(each),
            "exec_meanwhile": quantiles(meanwhile), "exec_after": quantiles(then), "fork_exec_after": quantiles(plain),
            "busy_idle_boxes": round(busy, 3), "empty_s": round(emptied, 3), **used}


def fleet(who, args, stage, peers):
    """A thousand boxes at once; pale, and crun for comparison."""
    rows = []
    for p in peers:
        if p.name in ("pale", "crun"):
            try:
                rows.append(fleet_of(p, args))
            except Failed as e:
                rows.append({"name": p.name, "skipped": str(e)[-200:]})
    return rows
