# SPDX-License-Identifier: Apache-2.0
"""The model of boxes and their files sees what it is there for: with a mend taken out it finds a difference; and it can tell it in few steps."""
import os
import random
import subprocess
import sys

import harness
import pytest
from model import weak
from model.shrink import shrink
from model.tree import FILE, FOLDER, Node, Review, Tree
from model.world import Difference, dump, load

RUN = harness.ROOT / "tests" / "model" / "run"
# Each takes up to two minutes: a run has one of them, another each time. Those of reviews only with PALE_WHOLE: what lands is judged by rounds of
# its own (test_review_rounds).
OFTEN = [w for w in weak.WORDS if not w.startswith("review-")]
CHOSEN = list(weak.WORDS) if os.environ.get("PALE_WHOLE") else [random.Random(os.environ.get("PALE_TEST_TAG", "")).choice(OFTEN)]


def play(*words, root, **env):
    return subprocess.run([sys.executable, RUN, "--output", root / "script", *words], env={**os.environ, **env}, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=300, check=False)


@pytest.mark.once
@pytest.mark.limit(300)
@pytest.mark.parametrize("word", weak.WORDS)
def test_a_mend_that_is_taken_out_is_missed(word, root):
    if not os.access(harness.WEAK / "pale", os.X_OK) or not weak.exists(word, harness.WEAK):
        pytest.skip(f"the weakened build has no switch {word}")
    if word not in CHOSEN:
        pytest.skip(f"of the twins of the model this run has {CHOSEN[0]}; PALE_WHOLE=1 for all")
    done = play("--strict", "--weak", f"{word},receipt", "--kinds", weak.WORDS[word], "--seconds", str(weak.SECONDS), "--shrink-seconds", "0", root=root)
    assert done.returncode == 1, done.stdout[-2000:] + done.stderr[-2000:]


@pytest.mark.once
def test_a_script_is_played_again(root):
    steps = [{"do": "create", "key": "u/one", "mode": "review", "project": 1}, {"do": "write", "key": "u/one", "ops": [["append", "project", "a"], ["mkdir", "home", "d"]]},
             {"do": "snapshot", "key": "u/one", "name": "s"}, {"do": "fork", "key": "u/one", "name": "two"}, {"do": "rm", "key": "u/one"},
             {"do": "stop", "key": "u/one"}]
    (root / "steps").write_text(dump(steps, 5, "why"))
    assert load((root / "steps").read_text()) == steps
    done = play("--replay", root / "steps", root=root)
    assert done.returncode == 0 and done.stdout.startswith("5 of 6 steps\nno difference"), (done.stdout, done.stderr)


@pytest.mark.once
def test_a_failing_sequence_is_shortened():
    steps = [{"do": "write", "key": f"u/{i % 5}", "n": i, "ops": [["a"], ["b"], ["c"]]} for i in range(60)]
    count = 0

    def bad(some):
        nonlocal count
        count += 1
        at = {s["n"]: s for s in some}
        return list(some), "u/1: it is so" if 17 in at and 42 in at and ["b"] in at[42]["ops"] else None

    small, why = shrink(steps, bad, "u/1: it is so", 60)
    assert [(s["n"], len(s["ops"])) for s in small] == [(17, 1), (42, 1)] and why == "u/1: it is so" and count < 200


@pytest.mark.once
def test_a_review_is_what_the_box_made_over_what_the_project_has():
    class Project:
        tree = Tree({b"a": Node(FILE, data=b"1"), b"d": Node(FOLDER), b"d/e": Node(FILE, data=b"2")})

    r = Review(Project)
    r.drop(b"d")
    assert sorted(r.view()) == [b"a"]
    r.put(b"d", Node(FOLDER))
    assert sorted(r.view()) == [b"a", b"d"], "a folder made anew hides what lay there"
    r.put(b"a", Node(FILE, data=b"x"))
    kept = r.copy()
    r.upper.clear()
    assert sorted(r.view()) == [b"a", b"d", b"d/e"] and kept.view()[b"a"].data == b"x"
    assert issubclass(Difference, Exception)
