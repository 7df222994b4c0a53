# SPDX-License-Identifier: Apache-2.0
"""Every case of the battery, by theme."""
import collections
import re

import cases_files
import cases_host
import cases_kernel
import cases_life

CASES = [*cases_kernel.CASES, *cases_host.CASES, *cases_life.CASES, *cases_files.CASES]


def faults():
    """What is wrong with the table itself."""
    names = collections.Counter(c.name for c in CASES)
    yield from (f"{n}: {k} cases of one name" for n, k in names.items() if k > 1)
    for c in CASES:
        if not re.fullmatch("[a-z0-9]+(-[a-z0-9]+)*", c.name):
            yield f"{c.name}: no name"
        if not c.twin or not c.twin - c.off:
            yield f"{c.name}: no twin"
        if not re.fullmatch("[A-G][0-9]{1,2}", c.threat):
            yield f"{c.name}: threat {c.threat}"
        if not c.scene and not c.attack:
            yield f"{c.name}: no attack"
