# SPDX-License-Identifier: Apache-2.0
"""The battery and the threat model name each other: no claim without a case, no case without a claim."""
import pathlib
import re

import pytest

HERE = pathlib.Path(__file__).resolve().parent
MODEL = HERE.parent.parent / "docs" / "threat-model.md"


def claims():
    if not MODEL.exists():
        pytest.skip("docs/threat-model.md is not there")
    return {int(n) for n in re.findall(r"^## C(\d+)\.", MODEL.read_text(), re.M)}


def cases():
    return {int(n) for f in HERE.glob("test_*.py") for n in re.findall(r"^def test_c(\d+)_", f.read_text(), re.M)}


def test_every_claim_has_a_case():
    assert not claims() - cases()


def test_every_case_has_a_claim():
    assert not cases() - claims()


def test_numbers_are_not_used_twice():
    if MODEL.exists():
        found = re.findall(r"^## C(\d+)\.", MODEL.read_text(), re.M)
        assert len(found) == len(set(found))
