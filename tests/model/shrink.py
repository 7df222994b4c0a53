# SPDX-License-Identifier: Apache-2.0
"""Makes a failing sequence short: leaves out as many steps, and parts of steps, as it can while it still fails in the same way."""
import re
import time


def kind_of(why):
    """Two differences are of one kind if they say the same of other names."""
    if ", and should " in why and not why.startswith(("apply", "pale")):
        return "other files"
    return re.sub(r"b?'[^']*'|b?\"[^\"]*\"|\d+|[u01]/[a-z0-9-]+|\{[^}]*\}|\[[^\]]*\]", "", why)[:40]


def shrink(steps, play, why, seconds):
    """Bounded: (the shortest found, what it says). `play` tells what made sense of the steps until it failed, and how."""
    until, last = time.monotonic() + seconds, why

    def fails(some):
        """What is left of them if they fail in the same way."""
        nonlocal last
        if time.monotonic() > until:
            return None
        played, told = play(some)
        if told and kind_of(told) == kind_of(why):
            last = told
            return played
        return None

    steps = without_boxes(list(steps), fails)
    size = max(1, len(steps) // 2)
    while size >= 1 and time.monotonic() < until:
        at, shorter = max(0, len(steps) - size), False
        while at >= 0 and time.monotonic() < until:  # from the end: what is not needed there is most
            some = steps[:at] + steps[at + size:]
            less = fails(some) if some else None
            if less:
                steps, shorter = less, True
            if at == 0:
                break
            at = max(0, min(at, len(steps)) - size)
        if size == 1 and not shorter:
            break
        size = size if shorter and size == 1 else max(1, size // 2)
    return shorten_writes(steps, fails), last


def without_boxes(steps, fails):
    """All that is done with a box at once, then all of a kind: most have nothing to do with it."""
    for word in ("key", "do"):
        for value in sorted({s[word] for s in steps if word in s}, key=lambda v: -sum(s.get(word) == v for s in steps)):
            less = [s for s in steps if s.get(word) != value]
            steps = less and fails(less) or steps
    return steps


def shorten_writes(steps, fails):
    for i in range(len(steps)):
        j = 0
        while i < len(steps) and len(steps[i].get("ops", ())) > 1 and j < len(steps[i]["ops"]):
            ops = steps[i]["ops"]
            less = steps[:i] + [{**steps[i], "ops": ops[:j] + ops[j + 1:]}] + steps[i + 1:]
            if fails(less):
                steps = less
            else:
                j += 1
    return steps
