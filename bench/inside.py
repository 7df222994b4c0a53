# SPDX-License-Identifier: Apache-2.0
"""Measures of work inside: a compile, git status on a large tree, many small files and bare system calls, in a box and outside,
all on the same folders, which are mounted into the boxes."""
import os
import shutil
import statistics
import subprocess

from host import ROOT, Failed, compare, row
from peers import Held

PEERS = ("pale", "bwrap", "sandlock")
COMPILE = 'for f in base/*.c wire/*.c; do gcc -O1 -std=gnu17 -D_GNU_SOURCE -DPALE_VERSION="x" -I. -I../include -c -o out.o $f || exit 1; done'
# minimal: root's files have another owner inside, and git would read every one again, because the index knows the old owner.
GIT = "git -c safe.directory='*' -c core.checkStat=minimal -c core.fsmonitor=false -c core.untrackedCache=false status --porcelain"
MAKE_TREE = """set -e
i=0
while [ $i -lt $1 ]; do
    d=d$((i / 1000))/e$((i / 100 % 10)); mkdir -p $d
    j=0
    while [ $j -lt 100 ]; do echo "$i $j" >$d/f$j; j=$((j + 1)); done
    i=$((i + 100))
done
git init -q . && git add -A && git -c user.name=bench -c user.email=bench@localhost commit -qm tree
"""


class Place:
    """Somewhere to run a command: the host, a living box of pale, or a one-shot of a peer."""

    def __init__(self, name, words):
        self.name, self.words = name, words


def prepare(who, args):
    folder = who.folder("w")
    shutil.copytree(ROOT / "src", folder / "c" / "src", ignore=shutil.ignore_patterns("*_test.c"))
    shutil.copytree(ROOT / "include", folder / "c" / "include")
    (folder / "git").mkdir()
    if who.name:
        shutil.chown(folder, who.uid, who.gid)
        for path in folder.rglob("*"):
            shutil.chown(path, who.uid, who.gid)
    who.run("sh", "-c", f"cd {folder}/git && {{ {MAKE_TREE} }}", "sh", args.tree)
    return folder


def places(who, stage, peers, folder, small):
    found = [Place("outside", lambda argv: list(map(str, argv)))]
    for p in peers:
        if p.name == "pale":
            found.append(Place("pale", lambda argv, p=p: p.exec("in", argv)))
        elif p.name in PEERS:
            found.append(Place(p.name, lambda argv, p=p: p.run(argv, read=[stage.bin], write=[folder, small])))
    return found


def timed(who, where, script, rounds):
    """The script in each place, in turns."""
    times = who.spawn([p.words(["/bin/sh", "-c", script]) for p in where], rounds, 1, ["-k"])
    return compare_outside([row(p.name, t) for p, t in zip(where, times)])


def compare_outside(rows):
    return compare(rows, rows[0])


def told(who, where, argv, rounds):
    """A program that tells its own times ("name number …"), in turns; {name: rows}."""
    heard = {}
    for _ in range(rounds):
        for p in where:
            words = who.run(*p.words(argv)).split()
            for name, number in zip(words[::2], words[1::2]):
                heard.setdefault(name, {}).setdefault(p.name, []).append(float(number))
    return {name: compare_outside([told_row(n, v) for n, v in by.items()]) for name, by in heard.items()}


def told_row(name, values):
    return {"name": name, "p50_us": round(statistics.median(values), 2), "p99_us": round(max(values), 2), "runs": len(values)}


def inside(who, args, stage, peers):
    pale = next(p for p in peers if p.name == "pale")
    folder = prepare(who, args)
    calls = stage.bin / "calls"
    small = small_folder(who)
    result = {"tree_files": args.tree, "small_files": args.files}
    try:
        with Held(pale, "in", read=[stage.bin], write=[folder, small]):
            every = places(who, stage, peers, folder, small)
            result["left_out"] = {p.name: why for p in every if (why := trouble(who, p, folder, small))}
            where = [p for p in every if p.name not in result["left_out"]]
            if shutil.which("gcc"):
                result["compile"] = timed(who, where, f"cd {folder}/c/src && {COMPILE}", args.rounds)
            if shutil.which("git"):
                result["git"] = timed(who, where, f"cd {folder}/git && GIT_OPTIONAL_LOCKS=0 {GIT} >/dev/null", args.rounds)
            result["files"] = told(who, where, [calls, "files", args.files, small], max(2, args.rounds // 2))
            result["syscalls"] = told(who, where, [calls, "syscalls", args.calls], args.rounds)
    finally:
        if os.path.ismount(small):
            subprocess.run(["umount", "-l", small], check=False, timeout=10)
        for path in (folder, small):
            shutil.rmtree(path, ignore_errors=True)
    return result


def small_folder(who):
    """Small files go to memory where root can mount some: what a disk does with them (ext4 looks for inodes that were not freed just
    now) hides what a box costs. Root's boxes have them on disk before Linux 6.3, where tmpfs cannot be shown with other owners."""
    path = who.folder("f")
    release = tuple(int(x) for x in os.uname().release.split(".")[:2])
    if os.geteuid() == 0 and (not who.is_root or release >= (6, 3)):
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"mode=755,uid={who.uid},gid={who.gid}", "pale-bench", path], check=True, timeout=10)
    return path


def trouble(who, place, folder, small):
    """Why the work cannot be done there; None if it can."""
    try:
        who.run(*place.words(["/bin/sh", "-c", f"cd {folder}/git && ls >/dev/null && : >{small}/x && rm {small}/x"]), timeout=30)
        return None
    except Failed as e:
        return str(e)[-160:]
