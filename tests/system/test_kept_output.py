# SPDX-License-Identifier: Apache-2.0
"""What commands have printed is kept within a bound of the box's, and let go once the one who can ask for it has it."""
import pathlib

import pytest

from harness import wait_until
from rest import data_of, output_of

MIB = 1 << 20
BOUND = 256 * MIB


def kept(pale, box):
    state = pathlib.Path(pale.info(box)["state_dir"])
    return {int(p.name[4:-4]): p.stat().st_blocks * 512 for p in state.glob("job-*.log")}


def printer(mib):
    return ["sh", "-c", f"head -c {mib * MIB} /dev/zero"]


@pytest.mark.limit(300)
def test_logs_of_many_commands_at_once_stay_within_the_bound(pale, box):
    """64 MiB each of six at once are more than a box may have; none of them is held up, and each ends well."""
    jobs = [int(pale.ok("exec", "-d", box, "--", *printer(70)).text) for _ in range(6)]
    peak = 0

    def ended():
        nonlocal peak
        peak = max(peak, sum(kept(pale, box).values()))
        return all(j["state"] == "ended" for j in pale.json("ps", "--json", box))

    assert wait_until(ended, 120)
    assert peak <= BOUND + MIB
    assert sum(kept(pale, box).values()) <= BOUND + MIB
    for j in jobs:
        assert pale.run("wait", box, str(j)).code == 0
    # What is left is whole frames, to its end; the rest is told.
    assert all(len(pale.ok("logs", box, str(j)).out) <= 64 * MIB for j in jobs)


@pytest.mark.limit(300)
def test_the_oldest_that_ended_goes_first(pale, box):
    first = pale.ok("exec", "-d", box, "--", *printer(60)).text.strip()
    pale.ok("wait", box, first)
    others = []
    for _ in range(4):
        others.append(pale.ok("exec", "-d", box, "--", *printer(60)).text.strip())
        pale.ok("wait", box, others[-1])
    assert len(pale.ok("logs", box, first).out) < MIB
    assert len(pale.ok("logs", box, others[-1]).out) == 60 * MIB
    assert pale.exec(box, "echo", "fine").text == "fine\n"


def test_what_was_answered_is_let_go(api, pale):
    """… and what has a key waits for who asks again."""
    api.make("b")
    for _ in range(3):
        done = api.exec("b", f"head -c {MIB} /dev/zero")
        assert len(data_of(done["stdout"])) == MIB and done["cut_bytes"] == 0
        stream = api.stream("POST", "/v1/boxes/b/exec", {"command": f"head -c {4 * MIB} /dev/zero"})
        assert list(stream.lines())
        stream.close()
    assert wait_until(lambda: sum(kept(pale, "b").values()) == 0)
    # Of this the answer has the beginning.
    done = api.exec("b", f"head -c {4 * MIB} /dev/zero")
    assert len(output_of(api.logs("b", done["job"]))) == 4 * MIB
    done = api.exec("b", f"head -c {4 * MIB} /dev/zero", key="k")
    assert sum(kept(pale, "b").values()) >= 4 * MIB
    again = api.exec("b", f"head -c {4 * MIB} /dev/zero", key="k")
    assert again["stdout"] == done["stdout"]


def test_what_is_kept_for_whoever_comes_back_stays(pale, box):
    job = pale.start("exec", "--keep", box, "--", *printer(3))
    assert len(job.communicate(timeout=60)[0]) == 3 * MIB
    assert sum(kept(pale, box).values()) >= 3 * MIB
