# SPDX-License-Identifier: Apache-2.0
"""The ledger of known bugs is complete and strict, keeps its promise, names cases that exist, and its summary is up to date."""
import importlib.machinery
import importlib.util
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
loader = importlib.machinery.SourceFileLoader("ledger", str(ROOT / "tools" / "ledger"))
ledger = importlib.util.module_from_spec(importlib.util.spec_from_loader("ledger", loader))
loader.exec_module(ledger)

ENTRY = {"id": "CVE-2020-0001", "record": "ours", "date": "2020-01", "class": "bpf", "where": "w", "entry": "e", "native": "out-of-reach",
         "because": "b", "case": ["one"], "checked": "c"}


def entries():
    return ledger.read(ledger.LEDGER.read_text())


def test_entries_are_in_order():
    assert list(ledger.problems(entries())) == []


def test_every_case_is_in_the_battery():
    assert ledger.BATTERY.exists(), "tests/leak/cases.py is not there: a ledger without its battery proves nothing"
    names = ledger.battery_names()
    assert names, "tests/leak/cases.py has no table of rows with a name"
    assert list(ledger.missing_cases(entries(), names)) == []


def test_summary_is_up_to_date():
    done = subprocess.run([ROOT / "tools" / "ledger", "--check"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


def test_summary_counts_every_entry_once():
    text = ledger.summary(entries())
    rows = [[int(c.strip() or 0) for c in line.split("|")[2:-1]] for line in text.split("\n") if line.startswith("| ") and not line.startswith("| way")]
    assert all(row[0] == sum(row[1:]) for row in rows)
    assert [sum(column) for column in zip(*rows[:-1])] == rows[-1] and rows[-1][0] == len(entries())


@pytest.mark.parametrize("text,says", [
    ("id: 1", "line 1: neither"), ('  id: "x"', "before the first entry"), ('- id: "x"\n  id: "y"', "line 2: id is there twice"),
    ("- id: x", "not JSON"), ('- id: "x" # why', "not JSON"), ('- id: "x"\n\tcase: []', "line 2: neither"), ('- id:  "x"\n   case: []', "line 2: neither"),
])
def test_reader_refuses(text, says):
    with pytest.raises(ledger.Bad, match=says):
        ledger.read(text)


def test_reader_reads():
    assert ledger.read('# c\n\n- id: "a: b"\n  case: ["x", "y"]\n- id: "c"\n') == [{"id": "a: b", "case": ["x", "y"]}, {"id": "c"}]


@pytest.mark.parametrize("change,says", [
    ({"case": []}, "no case shows it"), ({"case": "one"}, "not a list"), ({"case": ["one", "one"]}, "not a list"), ({"checked": "not found"}, "nothing is known"),
    ({"native": "safe"}, "native: safe is not one of"), ({"class": "other"}, "class: other"), ({"record": "mine"}, "record: mine"), ({"date": "2020"}, "date"),
    ({"date": "2020-13"}, "date"), ({"id": "?"}, "id is neither"), ({"because": ""}, "because is not a text"), ({"where": None}, "where is not a text"),
    ({"extra": "x"}, "extra is no field"), ({"note": ""}, "note is not a text"), ({"native": "open"}, "a case shows it refused"),
])
def test_entry_is_refused(change, says):
    assert any(says in p for p in ledger.entry_problems({**ENTRY, **change}))


@pytest.mark.parametrize("key", ledger.FIELDS)
def test_entry_needs_every_field(key):
    assert f"{key} is missing" in ledger.entry_problems({k: v for k, v in ENTRY.items() if k != key})


def test_a_good_entry_passes():
    assert list(ledger.entry_problems(ENTRY)) == []
    assert list(ledger.entry_problems({**ENTRY, "native": "open", "case": [], "note": "n"})) == []


def test_short_or_doubled_ledgers_are_refused():
    all_of_them = entries()
    assert any("there twice" in p for p in ledger.problems([*all_of_them, all_of_them[0]]))
    assert any("which has 110" in p for p in ledger.problems(all_of_them[1:]))
    weaker = [{**e, "native": "open", "case": []} if e["record"] == "gvisor" and e["class"] in ("netfilter", "traffic-control") else e for e in all_of_them]
    assert any("are promised" in p for p in ledger.problems(weaker))


@pytest.mark.parametrize("table", ['[{"name": "one"}]', '(types.SimpleNamespace(name="one"),)', '{"a": types.SimpleNamespace(name="one")}'])
def test_names_come_from_the_battery(tmp_path, table):
    f = tmp_path / "leak" / "cases.py"
    f.parent.mkdir()
    f.write_text(f"import types\nOTHER = 3\nWORDS = ['two']\nCASES = {table}\n")
    assert ledger.battery_names(f) == {"one"}
    assert list(ledger.missing_cases([ENTRY, {**ENTRY, "id": "x", "case": ["two"]}], {"one"})) == ["x: the battery has no case two"]


def test_page_needs_its_marks():
    with pytest.raises(ledger.Bad):
        ledger.page("no marks", entries())
    old = f"a\n{ledger.BEGIN}\nold\n{ledger.END}\nb\n"
    new = ledger.page(old, entries())
    assert new.startswith(f"a\n{ledger.BEGIN}\nOf the ") and new.endswith(f"{ledger.END}\nb\n") and ledger.page(new, entries()) == new
