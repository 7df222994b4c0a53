# SPDX-License-Identifier: Apache-2.0
"""The battery and the threat model name each other: no claim without a case, no case without a claim."""
import pathlib
import re

import cases as table
import pytest
from evasion import cases as evasion

HERE = pathlib.Path(__file__).resolve().parent
MODEL = HERE.parent.parent / "docs" / "threat-model.md"


def claims():
    if not MODEL.exists():
        pytest.skip("docs/threat-model.md is not there")
    return {int(n) for n in re.findall(r"^## C(\d+)\.", MODEL.read_text(), re.M)}


def cases():
    """By the names of tests here, by the battery's table, and by that of evasions."""
    named = {int(n) for f in HERE.glob("test_*.py") for n in re.findall(r"^def test_c(\d+)_", f.read_text(), re.M)}
    return named | {c.claim for c in table.CASES} | {evasion.CLAIM}


def test_every_claim_has_a_case():
    assert not claims() - cases()


def test_every_case_has_a_claim():
    assert not cases() - claims()


def test_the_table_of_the_battery_is_sound():
    assert not list(table.faults()) and len(table.CASES) >= 200


def test_the_docs_list_every_case():
    page = MODEL.parent / "security.md"
    if not page.exists():
        pytest.skip("docs/security.md is not there")
    listed = re.findall(r"^\| ([a-z0-9-]+) \| [A-G]\d+ \|", page.read_text(), re.M)
    assert sorted(listed) == sorted(c.name for c in table.CASES), "run tools/battery --docs"


def test_every_test_here_has_a_twin():
    """What has none belongs to tests/system."""
    for f in HERE.glob("test_*.py"):
        for marks, name in re.findall(r"^((?:@[^\n]*\n)*)def (test_c\d+_\w+)", f.read_text(), re.M):
            assert "weaken(" in marks, name


def test_numbers_are_not_used_twice():
    if MODEL.exists():
        found = re.findall(r"^## C(\d+)\.", MODEL.read_text(), re.M)
        assert len(found) == len(set(found))
