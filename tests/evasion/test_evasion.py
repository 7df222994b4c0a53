# SPDX-License-Identifier: Apache-2.0
"""Every case of evasion: held by the wall and in the audit, and seen to get through where the defence that holds it is off."""
import os
import random
import shutil
import time

import harness
import pytest
from evasion import cases
from evasion.conftest import PATH

SETTLE_SECONDS = 0.02  # in which a server writes down what has come


def some(variable):
    """Those of the table that this run tries: "all", or one in so many, others each time."""
    step = os.environ.get(variable, "all")
    return cases.CASES if step == "all" else cases.CASES[random.randrange(int(step))::int(step)]


each = pytest.mark.parametrize("case", some("PALE_EVASIONS"), ids=lambda c: c.name)
each_twin = pytest.mark.parametrize("case", some("PALE_TWINS"), ids=lambda c: c.name)


def skip_without_tool(case):
    if case.needs and not shutil.which(case.needs, path=PATH):
        pytest.skip(f"there is no {case.needs} here")


def test_the_table_is_sound():
    assert not list(cases.faults()) and len(cases.CASES) >= 400


@each
def test_it_is_held(field, case):
    skip_without_tool(case)
    tried = field.attempt(case)
    tried.wait()
    if not field.net.is_silent(tried.mark):
        time.sleep(SETTLE_SECONDS)
    assert not tried.leak(), f"leak: {tried.leak()}\n{tried}"
    assert not case.audit or tried.is_audited(), f"not in the audit: {tried}"


@each_twin
def test_its_twin_gets_through(field, case):
    skip_without_tool(case)
    field.net.settle()
    tried = field.attempt(case, case.twin)
    if case.judge in ("open", "counted"):
        tried.wait()
    leak = harness.wait_until(lambda: tried.leak() or tried.process.poll() is not None, seconds=10, every=0.005)
    if leak is True:  # it has ended: what it did may still be on its way
        leak = harness.wait_until(tried.leak, seconds=1, every=0.005)
    tried.end()
    if case.judge == "open" and not leak and "OPEN" not in field.net.run(*field.words(case, "x").split()).stdout:
        pytest.skip("this kernel lets nobody so far: there is nothing to hold")
    assert leak, f"{case.twin} off, yet no leak was seen: this case proves nothing\n{tried}"
