# SPDX-License-Identifier: Apache-2.0
"""All cases of evasion, and what is wrong with the table itself."""
import collections

from evasion import case, cases_direct, cases_flows, cases_inside, cases_names

CLAIM = 36  # of docs/threat-model.md
CASES = [*cases_direct.CASES, *cases_names.CASES, *cases_flows.CASES, *cases_inside.CASES, *cases_names.MANY]


def faults():
    for name, n in collections.Counter(c.name for c in CASES).items():
        if n > 1:
            yield f"{name}: {n} cases have this name"
    for c in CASES:
        if c.judge not in case.JUDGES:
            yield f"{c.name}: nobody judges by {c.judge}"
        if not c.twin:
            yield f"{c.name}: no defence"
