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
    """Bounded: (the shortest found, what it says)."""
    until, last = time.monotonic() + seconds, why

    def fails(some):
        nonlocal last
        if time.monotonic() > until:
            return False
        told = play(some)
        if told and kind_of(told) == kind_of(why):
            last = told
            return True
        return False

    steps = without_boxes(list(steps), fails)
    size = max(1, len(steps) // 2)
    while size >= 1 and time.monotonic() < until:
        at, shorter = max(0, len(steps) - size), False
        while at >= 0 and time.monotonic() < until:  # from the end: what is not needed there is most
            some = steps[:at] + steps[at + size:]
            if some and fails(some):
                steps, shorter = some, True
            if at == 0:
                break
            at = max(0, at - size)
        if size == 1 and not shorter:
            break
        size = size if shorter and size == 1 else max(1, size // 2)
    return shorten_writes(steps, fails), last


def without_boxes(steps, fails):
    """All that is done with a box at once, then all of a kind: most have nothing to do with it."""
    for word in ("key", "do"):
        for value in sorted({s[word] for s in steps if word in s}, key=lambda v: -sum(s.get(word) == v for s in steps)):
            less = [s for s in steps if s.get(word) != value]
            if less and fails(less):
                steps = less
    return steps


def shorten_writes(steps, fails):
    for i, step in enumerate(steps):
        while step.get("ops") and len(step["ops"]) > 1:
            for j in range(len(step["ops"])):
                less = {**step, "ops": step["ops"][:j] + step["ops"][j + 1:]}
                if fails(steps[:i] + [less] + steps[i + 1:]):
                    step = less
                    steps = steps[:i] + [less] + steps[i + 1:]
                    break
            else:
                break
    return steps
