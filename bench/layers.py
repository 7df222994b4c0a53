# SPDX-License-Identifier: Apache-2.0
"""Measures of layers: snapshot, restore and fork at two sizes, the pause of a box that works, a long chain, a review; beside cp, tar and runsc."""
import json
import shutil
import time

from daemon import row
from host import ROOT, Failed
from inside import COMPILE

BOX = "bench-layers"
CHAIN = 400


def timed(who, *argv):
    """Microseconds of the command alone, without our own way to become the user."""
    return who.spawn([[str(a) for a in argv]], 1, 0)[0][0]


def text_of(done):
    return done.stdout if hasattr(done, "stdout") else done


def sh(who, command, box=BOX):
    who.run(who.pale, "exec", "-q", box, "--", "sh", "-c", command)


def remove(who, *names):
    who.run(who.pale, "rm", "-f", *names, check=False)


def at_size(who, mib, runs):
    """One box with so much in its home; every measure by turns."""
    forks = [f"bench-fork-{i}" for i in range(runs)]
    found = {"snapshot": [], "restore": [], "fork": [], "stop and start": []}
    who.run(who.pale, "create", "--no-autosave", BOX)
    try:
        sh(who, f"dd if=/dev/urandom of=$HOME/big bs=1M count={mib} 2>/dev/null; sync")
        who.run(who.pale, "snapshot", BOX, "base")
        for i in range(runs):
            sh(who, f"echo {i} > ~/small")
            found["snapshot"].append(timed(who, who.pale, "snapshot", BOX, f"s{i}"))
            sh(who, f"echo {i}{i} > ~/small")
            found["restore"].append(timed(who, who.pale, "restore", BOX, "base"))
            found["fork"].append(timed(who, who.pale, "fork", "--at", "base", BOX, forks[i]))
            found["stop and start"].append(timed(who, "/bin/sh", "-c", f"{who.pale} stop {BOX} && exec {who.pale} exec -q {BOX} -- true"))
        fifty = timed(who, who.pale, "fork", "--at", "base", "-n", "50", BOX, "bench-many")
        return {"mib": mib, **{k: row(v) for k, v in found.items()}, "fifty_forks_ms": round(fifty / 1000, 1)}
    finally:
        remove(who, BOX, *forks, *[f"bench-many-{i + 1}" for i in range(50)])


def busy(who, mib=100):
    """A box that has just written so much and goes on."""
    who.run(who.pale, "create", "--no-autosave", BOX)
    try:
        sh(who, f"dd if=/dev/urandom of=$HOME/fresh bs=1M count={mib} 2>/dev/null")
        who.run(who.pale, "exec", "-d", BOX, "--", "sh", "-c", "while :; do date >> ~/log; sleep 0.01; done")
        pauses = []
        for i in range(5):
            sh(who, f"dd if=/dev/urandom of=$HOME/fresh{i} bs=1M count={mib // 5} 2>/dev/null")
            pauses.append(json.loads(text_of(who.run(who.pale, "snapshot", "--json", BOX, f"b{i}")))["pause_us"])
        return {"mib": mib, "pause": row(pauses)}
    finally:
        remove(who, BOX)


def chain(who, length):
    """Snapshots one on another; then reading what the first wrote, and starting."""
    who.run(who.pale, "create", "--no-autosave", BOX)
    try:
        sh(who, "mkdir ~/d; for i in $(seq 1000); do echo $i > ~/d/$i; done")
        read = "cat ~/d/* > /dev/null"
        short = [timed(who, who.pale, "exec", "-q", BOX, "--", "sh", "-c", read) for _ in range(7)]
        for i in range(length):
            sh(who, f"echo {i} > ~/f{i}")
            who.run(who.pale, "snapshot", BOX, f"s{i}")
        who.run(who.pale, "gc")
        who.run(who.pale, "stop", BOX)
        start = timed(who, who.pale, "exec", "-q", BOX, "--", "true")
        long = [timed(who, who.pale, "exec", "-q", BOX, "--", "sh", "-c", read) for _ in range(7)]
        return {"snapshots": length, "start_ms": round(start / 1000, 2), "read_short": row(short), "read_long": row(long),
                "ratio_p50": round(sorted(long)[3] / sorted(short)[3], 3)}
    finally:
        remove(who, BOX)


def review(who, files):
    """A repository of so many files of which a tenth was changed."""
    project = who.folder("bench-review")
    make = f"cd {project} && for d in $(seq 100); do mkdir -p $d; done && seq 1 {files} | awk '{{ f = $1 % 100 + 1 \"/\" $1 \".c\"; print \"int x\" $1 \";\" > f; close(f) }}'"
    who.run("sh", "-c", make)
    time.sleep(0.1)
    who.run(who.pale, "create", "--no-autosave", "--project", "review", "--project-path", project, BOX)
    try:
        sh(who, f"cd {project} && seq 1 10 {files} | awk '{{ f = $1 % 100 + 1 \"/\" $1 \".c\"; print \"int y\" $1 \";\" > f; close(f) }}'")
        diff = [timed(who, who.pale, "diff", "--stat", BOX) for _ in range(3)]
        apply = timed(who, who.pale, "apply", BOX)
        return {"files": files, "changes": files // 10, "diff": row(diff), "apply_ms": round(apply / 1000, 1)}
    finally:
        remove(who, BOX)
        shutil.rmtree(project, ignore_errors=True)


def native(who, rounds):
    """git clone and a compile: in the home of a box, which is a layer, and in the user's own, in turns."""
    folder = who.folder("bench-native")
    shutil.copytree(ROOT / "src", folder / "from" / "src", ignore=shutil.ignore_patterns("*_test.c"))
    shutil.copytree(ROOT / "include", folder / "from" / "include")
    for path in [folder, *folder.rglob("*")]:
        shutil.chown(path, who.uid, who.gid)
    who.run("sh", "-c", f"cd {folder}/from && git init -q . && git add -A && git -c user.name=bench -c user.email=bench@localhost commit -qm tree && mkdir {folder}/home")
    work = f"rm -rf to && git -c safe.directory='*' clone -q --no-local {folder}/from to && cd to/src && {COMPILE}"
    who.run(who.pale, "create", "--no-autosave", "--read", folder / "from", BOX)
    try:
        out, inside = who.spawn([["/bin/sh", "-c", f"cd {folder}/home && {work}"],
                                 [str(who.pale), "exec", "-q", BOX, "--", "/bin/sh", "-c", f"cd && {work}"]], rounds, 1)
        return {"outside": row(out), "inside": row(inside), "ratio_p50": round(row(inside)["p50_ms"] / row(out)["p50_ms"], 3)}
    finally:
        remove(who, BOX)
        shutil.rmtree(folder, ignore_errors=True)


def checkpoint(who, peers, mib):
    """What runsc keeps of a container with so much in memory, as milliseconds; or why not."""
    peer = next((p for p in peers if p.name == "runsc"), None)
    if not peer or not peer.box:
        return "not run: " + ("it is not installed" if not peer else "this version has containers only for root")
    folder = who.folder("bench-checkpoint")
    try:
        who.run(*peer.start(0))
        who.run(*peer.exec(0, ["/bin/sh", "-c", f"head -c {mib << 20} /dev/urandom > /tmp/big"]))
        return round(timed(who, *peer.words("checkpoint", "-image-path", folder, "b0")) / 1000, 1)
    except Failed as problem:
        return f"not run: {str(problem)[-200:]}"
    finally:
        who.run(*peer.stop(0), check=False)
        shutil.rmtree(folder, ignore_errors=True)


def peers_of(who, peers, mib):
    """What else copies a tree of that size, or a box."""
    folder = who.folder("bench-copy")
    who.run("sh", "-c", f"mkdir -p {folder}/a && dd if=/dev/urandom of={folder}/a/big bs=1M count={mib} 2>/dev/null")
    found = {}
    try:
        found["cp -a"] = round(timed(who, "/bin/cp", "-a", f"{folder}/a", f"{folder}/b") / 1000, 1)
        found["tar"] = round(timed(who, "/bin/tar", "-C", folder, "-cf", f"{folder}/a.tar", "a") / 1000, 1)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    found["runsc checkpoint"] = checkpoint(who, peers, mib)
    return {"mib": mib, "ms": found}


def layers(who, args, _stage, peers):
    quick = args.runs <= 50
    try:
        return {"sizes": [at_size(who, mib, max(10, args.runs // 10)) for mib in ((1, 64) if quick else (1, 4096))], "busy": busy(who),
                "chain": chain(who, 40 if quick else CHAIN), "review": review(who, 5000 if quick else 50000), "native": native(who, 3 if quick else 11), "peers": peers_of(who, peers, 64 if quick else 1024)}
    except Failed as problem:
        return {"skipped": str(problem)[:300]}


def show(found, title):
    print(f"\nLayers, {title}")
    if "skipped" in found:
        print(f"  not run: {found['skipped']}")
        return
    for size in found["sizes"]:
        print(f"  {size['mib']} MiB written: " + ", ".join(f"{k} p50 {size[k]['p50_ms']} ms p99 {size[k]['p99_ms']} ms" for k in ("snapshot", "restore", "fork", "stop and start"))
              + f"; 50 forks {size['fifty_forks_ms']} ms")
    for name, ms in found["peers"]["ms"].items():
        print(f"  {name} of {found['peers']['mib']} MiB: {ms}" + ("" if isinstance(ms, str) else " ms"))
    b, c, r = found["busy"], found["chain"], found["review"]
    print(f"  a box that works, {b['mib']} MiB fresh: pause p50 {b['pause']['p50_ms']} ms, worst {b['pause']['p99_ms']} ms")
    print(f"  {c['snapshots']} snapshots: start {c['start_ms']} ms, reading 1,000 files {c['ratio_p50']} x what it took before")
    n = found["native"]
    print(f"  git clone and a compile in its home: {n['inside']['p50_ms']} ms, {n['ratio_p50']} x what it takes outside")
    print(f"  review of {r['files']} files, {r['changes']} changed: diff {r['diff']['p50_ms']} ms, apply {r['apply_ms']} ms")
