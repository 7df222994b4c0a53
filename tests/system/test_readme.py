# SPDX-License-Identifier: Apache-2.0
"""What README shows is what happens: its tour is typed as it stands, its tables are compared with what pale says of itself."""
import os
import re
import shlex
import shutil
import subprocess

import pytest

import harness

README = (harness.ROOT / "README.md").read_text()


def section(title):
    return re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", README, re.M | re.S).group(1)


def consoles(text):
    """The lines that are typed, each with what it prints."""
    for block in re.findall(r"```console\n(.*?)```", text, re.S):
        for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
            typed, _, printed = part.partition("\n")
            yield typed, printed.strip()


def plain(text):
    """Without what differs each time: times, figures, ids, digests."""
    text = re.sub(r"(time|cpu|peak)=\S+", r"\1=X", text)
    text = re.sub(r"\bid=[0-9a-f]+", "id=X", text)
    text = re.sub(r"\b[0-9a-f]{64}\b", "DIGEST", text)
    text = re.sub(r"\b\d+ attempts, \d+ as", "N attempts, N as", text)
    text = re.sub(r"\bgood: \d+ records", "good: N records", text)
    text = re.sub(r"\b\d+(\.\d+)?(ms|s)\b", "T", text)
    return "\n".join(re.sub(r" +", " ", line).rstrip() for line in text.strip().splitlines())


def is_like(printed, shown):
    pattern = ".*".join(map(re.escape, plain(shown).split("…")))
    return re.fullmatch(pattern, plain(printed), re.S)


@pytest.fixture
def typed(pale, root):
    """Types a line in the home of somebody who has installed pale."""
    bin_dir = root / "bin"
    bin_dir.mkdir()
    (bin_dir / "pale").write_text(f"#!/bin/sh\nexec {pale.program} \"$@\"\n")
    (bin_dir / "pale").chmod(0o755)

    def run(line):
        done = subprocess.run(["bash", "-c", line], env={**pale.env, "PATH": f"{bin_dir}:{pale.env['PATH']}"}, cwd=pale.home,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
        return done.stdout
    return run


def test_the_tour_is_what_happens(typed):
    lines = list(consoles(section("A tour in sixty seconds")))
    assert len(lines) >= 12
    for line, shown in lines:
        if "rm demo" not in line and shown == "":
            assert typed(line) == "", line
            continue
        printed = typed(line)
        assert is_like(printed, shown), f"$ {line}\n{printed}\n--- README says\n{shown}"


def test_the_sample_policy_and_question_are_what_happens(typed, pale):
    text = section("Policies")
    folder = "/var/tmp/build-cache"
    made = not os.path.isdir(folder)
    policy = re.search(r"```yaml\n(.*?)```", text, re.S).group(1)
    assert folder in policy
    own = pale.home / "build-cache"
    own.mkdir()
    (pale.home / "policy.yaml").write_text(policy.replace(folder, str(own)) if made else policy)
    project = pale.home / "project"
    project.mkdir()
    assert typed("cd project && pale run -q --policy ../policy.yaml -- sh -c 'echo $CI'") == "1\n"
    for line, shown in consoles(text):
        assert is_like(typed(line), shown), (line, typed(line))


def test_the_first_calls_of_the_daemon_work(daemon):
    text = (harness.ROOT / "docs" / "daemon.md").read_text()
    block = re.search(r"```sh\n(ask\(\).*?)```", text, re.S).group(1)
    script = block.split("ask -T notes.txt")[0].split('ask -d \'{"command": "make')[0]
    if not shutil.which("curl"):
        pytest.skip("no curl here")
    done = subprocess.run(["bash", "-c", script], env=daemon.pale.env, cwd=daemon.pale.home, stdout=subprocess.PIPE, text=True, timeout=60)
    assert '"name":"demo"' in done.stdout and '"42\\n"' in done.stdout, done.stdout


def verbs_of_readme():
    found = set()
    for row in re.findall(r"^\| (`.*?) \|", section("Verbs"), re.M):
        for code in re.findall(r"`([^`]+)`", row):
            word = shlex.split(code.replace("\\|", " ").replace("[", " "))[0]
            if re.fullmatch("[a-z]+", word):
                found.add(word)
    return found


def test_the_table_of_verbs_has_all_and_no_other(pale):
    told = set(re.findall(r"^  ([a-z]+) {2,}\S", pale.ok("help").text, re.M))
    assert verbs_of_readme() == told


def test_changes_name_every_verb(pale):
    told = set(re.findall(r"^  ([a-z]+) {2,}\S", pale.ok("help").text, re.M))
    manual = (harness.ROOT / "man" / "pale.1").read_text() if (harness.ROOT / "man").is_dir() else None
    if manual is None:
        pytest.skip("the manual is not staged here")
    assert [v for v in sorted(told) if v not in manual] == []


def test_every_decision_has_its_number_and_every_path_is_there():
    folder = harness.ROOT / "docs" / "decisions"
    numbers = sorted(int(p.name[:4]) for p in folder.glob("[0-9]*.md"))
    assert numbers[:45] == list(range(1, 46)) or numbers[:44] == list(range(1, 45)), "a number is missing"
    assert len(numbers) == len(set(numbers))
    for path in re.findall(r"\]\((docs/[^)#]+|[A-Z]+\.md)", README):
        if path.startswith("docs/"):
            assert (harness.ROOT / path).exists(), path


def test_tables_of_the_architecture_are_whole():
    text = (harness.ROOT / "docs" / "architecture.md").read_text()
    assert not re.search(r"^\|.*\|\n\n\|(?!.*\n\|[-| ]+\|)", text, re.M), "a table is cut in two"


def test_documents_say_the_version_of_the_wire():
    text = (harness.ROOT / "docs" / "architecture.md").read_text()
    version = re.search(r"#define WIRE_VERSION (\d+)u", (harness.ROOT / "src" / "wire" / "message.h").read_text()).group(1)
    assert f"`FROM_HELLO` with the version ({version})" in text
