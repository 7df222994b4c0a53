# SPDX-License-Identifier: Apache-2.0
"""Measures of starting: a whole life from nothing to nothing, a box made without a command, and a command in a living box."""
from contextlib import ExitStack

from host import Failed, compare, row
from peers import Held

BASE_COLD, BASE_WARM, BASE_CREATE = "bwrap", "fork+exec (glibc)", "crun"


def in_rounds(who, args, commands, slow, bases):
    """commands: {name: words}. Slow ones take their turns in a round of their own, with fewer runs, beside the bases again, so that
    every ratio is of one round. Returns rows in the order given."""
    slow = slow - set(bases)
    fast = {n: w for n, w in commands.items() if n not in slow}
    rows = {}
    rounds = [(fast, args.runs, args.warmup)]
    late = {n: w for n, w in commands.items() if n in slow}
    if late:
        rounds.append(({**{n: commands[n] for n in bases if n in fast}, **late}, max(10, args.runs // 10), 2))
    for chosen, runs, warmup in rounds:
        names = list(chosen)
        for at in range(0, len(names), 14):
            part = names[at:at + 14]
            times = who.spawn([chosen[n] for n in part], runs, warmup, ["-k"])
            made = [row(n, t) for n, t in zip(part, times)]
            bad = next((r for r in made if r["name"].startswith("pale") and ("skipped" in r or "failed" in r)), None)
            if bad:
                raise Failed(f"{bad['name']}: {bad.get('skipped') or bad['failed']}: runs of ours must not fail")
            compare(made, next((r for r in made if r["name"] == bases[0]), None))
            for r in made:
                rows.setdefault(r["name"], r)
    return [rows[n] for n in commands]


def note_peers(rows, peers):
    notes = {p.name: p.note for p in peers}
    for r in rows:
        if notes.get(r["name"]):
            r["note"] = notes[r["name"]]
    return rows


def cold(who, args, stage, peers):
    """create + exec of a static program + destroy"""
    true = [str(stage.bin / "true-musl")]
    commands = {p.name: p.run(true, read=[stage.bin]) for p in peers}
    slow = {p.name for p in peers if p.slow}
    return note_peers(in_rounds(who, args, commands, slow, [BASE_COLD, "pale"]), peers)


def create(who, args, stage, peers):
    """A box made and ready, nothing of the user's executed in it; its removal is not in the figure."""
    commands = {}
    for p in peers:
        if p.creates and p.name == "pale":
            commands[p.name] = [*p.start("{}"), "+++", *p.stop("{}")]
        elif p.creates:
            commands[p.name] = [*p.create("{}"), "+++", *p.destroy("{}")]
    slow = {p.name for p in peers if p.slow}
    fewer = type(args)(**{**vars(args), "runs": max(20, args.runs // 2)})
    return in_rounds(who, fewer, commands, slow, [BASE_CREATE, "pale"])


def warm(who, args, stage, peers):
    """A static program in a living box, by the peer's own command line, against fork and exec of the same file on the host."""
    commands = {f"fork+exec ({libc})": [str(stage.bin / f"true-{libc}")] for libc in ("glibc", "musl") if (stage.bin / f"true-{libc}").exists()}
    slow, skipped = set(), []
    with ExitStack() as stack:
        for p in peers:
            if not p.box:
                continue
            try:
                stack.enter_context(Held(p, "warm", read=[stage.bin]))
                for libc in ("glibc", "musl") if p.name == "pale" else ("glibc",):
                    words = p.exec("warm", [stage.bin / f"true-{libc}"])
                    who.run("sh", "-c", 'n=0; until "$@"; do n=$((n+1)); [ $n -lt 20 ] || exit 1; sleep 0.1; done', "sh", *words, timeout=30)
                    commands[f"{p.name} exec ({libc})"] = words
                if p.slow:
                    slow.add(f"{p.name} exec (glibc)")
            except Failed as e:
                skipped.append({"name": f"{p.name} exec", "skipped": str(e)[-160:]})
        rows = in_rounds(who, args, commands, slow, [BASE_WARM, "pale exec (glibc)"])
        plain = [n for n in commands if n.startswith("fork")]
        for name, times in zip(plain, who.spawn([commands[n] for n in plain], args.runs, args.warmup, ["-v"])):
            rows.append(row("v" + name, times))
    musl = next((r for r in rows if r["name"] == "fork+exec (musl)"), None)
    for r in rows:
        if r["name"] == "pale exec (musl)" and musl:
            compare([r], musl)
    return rows + skipped
