# SPDX-License-Identifier: Apache-2.0
"""What a box has changed: seen, landed in the user's tree, thrown away."""
import json
import os
import pathlib
import shutil
import subprocess
import time

import pytest


def text(pale, box, command):
    done = pale.sh(box, command)
    assert done.code == 0, done
    return done.text


@pytest.fixture
def project(hostdir):
    """Older than the box by more than the file system's clock can be wrong."""
    (hostdir / "a").write_text("one\ntwo\nthree\n")
    (hostdir / "gone").write_text("gone\n")
    (hostdir / "dir").mkdir()
    (hostdir / "dir" / "old").write_text("old\n")
    (hostdir / "run.sh").write_text("#!/bin/sh\n")
    (hostdir / "bin").write_bytes(bytes(range(256)))
    time.sleep(0.1)
    return hostdir


@pytest.fixture
def review(pale, project):
    return pale.create("r", "--project", "review", cwd=project)


CHANGES = """cd %s
sed -i s/two/TWO/ a
rm gone
rm -r dir
mkdir dir
echo new > dir/new
chmod 755 bin
ln -s a link
printf 'x\\0y' > 'b i n'
"""


def changed(pale, box, *path, **more):
    return {c["path"]: c for c in pale.json("diff", "--json", box, *path, **more) if c.get("is", c.get("was"))["kind"] != "folder"}


@pytest.mark.basic
def test_diff_tells_every_kind(pale, review, project):
    assert changed(pale, review) == {}
    text(pale, review, CHANGES % project)
    c = changed(pale, review)
    assert {p: v["change"] for p, v in c.items()} == {"a": "changed", "gone": "deleted", "dir/old": "deleted", "dir/new": "added", "bin": "mode", "link": "added",
                                                      "b i n": "added"}
    assert c["a"]["added"] == c["a"]["removed"] == 1 and c["b i n"]["binary"] and c["link"]["is"]["kind"] == "link"
    assert sorted(changed(pale, review, "dir", cwd=project)) == ["dir/new", "dir/old"] == sorted(changed(pale, review, project / "dir"))
    assert pale.ok("diff", "--name-only", review).text.splitlines() == ["a", "b i n", "bin", "dir/new", "dir/old", "gone", "link"]
    assert "7 files, 3 lines added, 3 removed" in pale.ok("diff", "--stat", review).text


def test_git_takes_the_patch(pale, review, project, root):
    text(pale, review, CHANGES % project + "rm 'b i n'; printf 'no end' > 'odd \"n\tame'; chmod 755 a\n")
    patch = pale.ok("diff", review).out
    copy = root / "copy"
    shutil.copytree(project, copy, symlinks=True)
    done = subprocess.run(["git", "apply", "-p1"], input=patch, cwd=copy, capture_output=True)
    assert done.returncode == 0, done.stderr
    assert (copy / "a").read_text() == "one\nTWO\nthree\n" and (copy / "a").stat().st_mode & 0o111 and not (copy / "gone").exists()
    assert os.readlink(copy / "link") == "a" and (copy / "odd \"n\tame").read_text() == "no end" and sorted(os.listdir(copy / "dir")) == ["new"]


def test_other_places(pale, review):
    text(pale, review, "echo 1 > ~/f; mkdir ~/d; echo t > /tmp/t")
    assert sorted(changed(pale, review, "/home/agent")) == ["f"] and sorted(changed(pale, review, "/tmp")) == ["t"]
    done = pale.run("diff", review, "/usr")
    assert done.code == 125 and "no place" in done.errors
    done = pale.run("diff", review, "--from", "nothing")
    assert done.code == 125 and "pale snapshots" in done.errors


def test_between_snapshots(pale, review, project):
    text(pale, review, f"echo 1 > {project}/x; echo 1 > {project}/a")
    pale.ok("snapshot", review, "one")
    text(pale, review, f"echo 2 > {project}/y; rm {project}/x; echo 2 > {project}/a")
    pale.ok("snapshot", review, "two")
    text(pale, review, f"echo 3 > {project}/y")
    def told(*flags):
        return {p: c["change"] for p, c in changed(pale, review, *flags).items()}
    assert told() == {"a": "changed", "y": "added"}
    assert told("--to", "one") == {"a": "changed", "x": "added"}
    assert told("--from", "one") == {"a": "changed", "x": "deleted", "y": "added"}
    assert told("--from", "one", "--to", "two") == {"a": "changed", "x": "deleted", "y": "added"}
    assert told("--from", "two", "--to", "one") == {"a": "changed", "x": "added", "y": "deleted"}
    assert told("--from", "two") == {"y": "changed"}


@pytest.mark.basic
def test_apply_lands_everything(pale, review, project):
    text(pale, review, CHANGES % project)
    before = {p: (project / p).read_bytes() for p in ("a", "gone", "run.sh")}
    done = pale.run("apply", "--dry-run", review)
    assert done.code == 1 and "would land" in done.text and {p: (project / p).read_bytes() for p in before} == before
    done = pale.run("apply", "--json", review)
    results = {r["path"]: r["result"] for r in done.json()}
    assert done.code == 1 and results["bin"] == "held", "a file that can be run now"
    assert {results[p] for p in ("a", "gone", "dir/old", "dir/new", "link", "b i n")} == {"landed"}
    assert (project / "a").read_text() == "one\nTWO\nthree\n" and not (project / "gone").exists() and os.listdir(project / "dir") == ["new"]
    assert pale.ok("apply", "--include-guarded", review).text.endswith("1 landed\n") and (project / "bin").stat().st_mode & 0o111
    assert changed(pale, review) == {} and pale.ok("apply", review).text == "0 landed\n"
    assert not [p for p in os.listdir(project) if p.startswith(".pale")]


def test_apply_of_some(pale, review, project):
    text(pale, review, CHANGES % project)
    pale.ok("apply", review, "dir", "a", cwd=project)
    assert (project / "a").read_text() == "one\nTWO\nthree\n" and (project / "gone").exists() and os.listdir(project / "dir") == ["new"]
    assert pale.run("apply", review, "/home/agent/f").code == 125


def test_what_the_user_changed_is_not_overwritten(pale, review, project):
    text(pale, review, f"cd {project}; echo box > a; echo box > new; rm gone; echo box > dir/old; echo same > same")
    (project / "a").write_text("mine\n")
    (project / "new").write_text("mine\n")
    (project / "gone").write_text("mine\n")
    (project / "same").write_text("same\n")
    done = pale.run("apply", "--json", review)
    results = {r["path"]: r["result"] for r in done.json()}
    assert done.code == 1 and {p: results[p] for p in ("a", "new", "gone")} == {"a": "conflict", "new": "conflict", "gone": "conflict"}
    assert results["dir/old"] == "landed" and results.get("same", "same") == "same"
    assert (project / "a").read_text() == (project / "new").read_text() == (project / "gone").read_text() == "mine\n"


def test_what_both_changed_is_merged_from_the_last_commit(pale, hostdir):
    lines = [f"line {i}\n" for i in range(20)]
    for name in ("both", "clash", "sub/both", "odd name"):
        (hostdir / name).parent.mkdir(exist_ok=True)
        (hostdir / name).write_text("".join(lines))
    for command in (["init", "-q"], ["add", "-A"], ["-c", "user.name=x", "-c", "user.email=x@example.org", "commit", "-qm", "x"]):
        subprocess.run(["git", *command], cwd=hostdir, check=True, env={"PATH": os.environ["PATH"], "HOME": str(hostdir)})
    (hostdir / "new").write_text("mine\n")
    time.sleep(0.1)
    box = pale.create("r", "--project", "review", cwd=hostdir)
    for name in ("both", "clash", "sub/both", "odd name"):
        text(pale, box, f"sed -i 's/line 2$/box 2/' '{hostdir}/{name}'")
        at = 15 if name != "clash" else 2
        (hostdir / name).write_text("".join(f"mine {at}\n" if i == at else line for i, line in enumerate(lines)))
    text(pale, box, f"echo box > {hostdir}/new")
    (hostdir / "new").write_text("mine again\n")
    done = pale.run("apply", "--json", box)
    results = {r["path"]: r["result"] for r in done.json()}
    assert done.code == 1 and results == {"both": "merged", "clash": "conflict", "sub/both": "merged", "odd name": "merged", "new": "conflict"}
    for name in ("both", "sub/both", "odd name"):
        assert (hostdir / name).read_text() == "".join("box 2\n" if i == 2 else "mine 15\n" if i == 15 else line for i, line in enumerate(lines))
    assert "mine 2\n" in (hostdir / "clash").read_text() and (hostdir / "new").read_text() == "mine again\n"
    again = pale.run("apply", box)
    assert again.code == 1 and "2 conflict" in again.text, again


GUARDED = {".git/hooks/pre-commit": "x", ".git/config": "x", "sub/.git/config": "x", ".claude/settings.json": "{}", ".mcp.json": "{}", ".vscode/tasks.json": "{}",
           ".envrc": "x", ".github/workflows/x.yml": "x", "sub/deep/.envrc": "x", "package.json": "{}", "Makefile": "x", ".gitattributes": "x"}


def test_what_the_host_would_obey_is_held(pale, review, project):
    for path, content in GUARDED.items():
        text(pale, review, f"cd {project}; mkdir -p $(dirname {path}); printf %s '{content}' > {path}")
    text(pale, review, f"cd {project}; ln -s /etc/passwd abs; ln -s ../../x up; ln -s .git/hooks into; printf '#!/bin/sh\\n' > tool; chmod 755 tool; echo fine > fine")
    done = pale.run("apply", "--json", review)
    results = {r["path"]: r for r in done.json()}
    assert done.code == 1 and results["fine"]["result"] == "landed"
    for path in [*GUARDED, "abs", "up", "into", "tool"]:
        assert results[path]["result"] == "held" and results[path]["guarded"], path
        assert not os.path.lexists(project / path), path
    pale.ok("apply", "--include-guarded", review)
    assert all(os.path.lexists(project / p) for p in GUARDED)


def test_strange_things_do_not_land_or_hang(pale, review, project):
    text(pale, review, f"cd {project}; mkfifo fifo; mkdir -p deep/er; rm a; mkfifo a; rm -r dir; ln -s /tmp dir; truncate -s 20G huge; touch $(printf 'n\\033[31m\\nm')")
    done = pale.run("apply", "--json", "--include-guarded", review, timeout=60)
    results = {r["path"]: r["result"] for r in done.json()}
    assert results["fifo"] == "refused" and results["a"] == "refused" and (project / "a").is_file()
    shown = pale.run("diff", "--stat", review).out
    assert b"\x1b[31m" not in shown
    assert (project / "deep" / "er").is_dir()


def test_interactive(pale, review, project):
    text(pale, review, f"cd {project}; echo 1 > x1; echo 2 > x2; echo 3 > x3; echo 4 > x4")
    done = pale.run("apply", "-i", review, input=b"v\ny\nn\n?\ny\nq\n")
    assert done.code in (0, 1) and "see what it would be" in done.text
    assert [(project / f"x{i}").exists() for i in (1, 2, 3, 4)] == [True, False, True, False]


@pytest.mark.basic
def test_discard(pale, review, project):
    assert "nothing" in pale.ok("discard", review).text
    text(pale, review, CHANGES % project + "echo h > ~/h\n")
    pale.ok("snapshot", review, "s")
    text(pale, review, f"echo more > {project}/more")
    kept = pale.json("discard", "--json", review)["kept"]
    assert changed(pale, review) == {} and text(pale, review, f"cat {project}/gone ~/h").split() == ["gone", "h"]
    (project / "a").write_text("later\n")
    assert text(pale, review, f"cat {project}/a") == "later\n"
    text(pale, review, f"echo again > {project}/again")
    assert sorted(changed(pale, review)) == ["again"]
    pale.ok("restore", review, kept)
    assert "more" in changed(pale, review) and "again" not in changed(pale, review)
    pale.ok("restore", review, "s")
    assert "more" not in changed(pale, review) and "gone" in changed(pale, review)


def kinds(pale, box):
    return {c["path"]: c["change"] for c in pale.json("diff", "--json", box)}


def tree(folder):
    """Everything below a folder: kinds, modes, contents, targets."""
    return {str(p.relative_to(folder)): (p.lstat().st_mode, os.readlink(p) if p.is_symlink() else p.read_bytes() if p.is_file() else None)
            for p in pathlib.Path(folder).rglob("*")}


@pytest.mark.basic
def test_discard_of_some(pale, review, project):
    """Over two layers; the rest stays, lands, and what was thrown away can be had back."""
    text(pale, review, CHANGES % project + "echo h > ~/h; mkdir -p new/deep; echo 1 > new/deep/f; echo 2 > new/deep/g\n")
    pale.ok("snapshot", review, "s")
    text(pale, review, f"cd {project}; echo more >> a; echo more > more; mkdir -p x/y; echo z > x/y/z")
    before, original = kinds(pale, review), tree(project)
    kept = pale.json("discard", "--json", review, "a", "gone", "new/deep/f", "link", "x", cwd=project)["kept"]
    gone = {"a", "gone", "new/deep/f", "link", "x", "x/y", "x/y/z"}
    assert gone <= set(before) and kinds(pale, review) == {p: c for p, c in before.items() if p not in gone}
    assert text(pale, review, f"cd {project}; cat a gone ~/h; ls").split() == "one two three gone h a b i n bin dir gone more new run.sh".split()
    assert tree(project) == original, "the user's files are none of its business"
    pale.ok("apply", "--include-guarded", review)
    assert (project / "a").read_text() == "one\ntwo\nthree\n" and (project / "gone").exists() and os.listdir(project / "dir") == ["new"]
    assert os.listdir(project / "new" / "deep") == ["g"] and (project / "bin").stat().st_mode & 0o111 and kinds(pale, review) == {}
    pale.ok("restore", review, kept)
    assert text(pale, review, f"cat {project}/a {project}/x/y/z") == "one\nTWO\nthree\nmore\nz\n"


def test_discard_where_a_folder_is_gone_or_new(pale, review, project):
    (project / "dir" / "sub").mkdir()
    for p in ("b", "sub/c", "sub/d"):
        (project / "dir" / p).write_text(p)
    (project / "other").mkdir()
    (project / "other" / "f").write_text("f")
    os.symlink("dir", project / "way")
    text(pale, review, f"cd {project}; rm -r other; rm -r dir; mkdir dir; echo new > dir/new; echo changed > dir/b; rm way; mkdir way; echo 1 > way/b")
    before = kinds(pale, review)
    assert before["other/f"] == "deleted" and before["way"] == "type" and before["dir/sub/c"] == "deleted"
    pale.ok("discard", review, "dir/sub/c", "other/f", "dir/old", cwd=project)
    assert kinds(pale, review) == {"dir/b": "changed", "dir/new": "added", "dir/sub/d": "deleted", "way": "type", "way/b": "added"}
    assert text(pale, review, f"cd {project}; cat dir/sub/c other/f dir/b; ls dir dir/sub").split() == "sub/cfchanged dir: b new old sub dir/sub: c".split()
    pale.ok("discard", review, "way/b", cwd=project)
    assert kinds(pale, review)["way"] == "type" and "way/b" not in kinds(pale, review) and (project / "dir" / "b").read_text() == "b"
    pale.ok("discard", review, "dir", "way", cwd=project)
    assert kinds(pale, review) == {} and text(pale, review, f"readlink {project}/way; cat {project}/dir/b") == "dir\nb"


def test_discard_between_files_and_folders(pale, review, project):
    text(pale, review, f"cd {project}; rm -r dir; echo file > dir; rm a; mkdir a; echo in > a/in; ln -sfn /etc run.sh")
    done = pale.run("discard", review, "dir/old", cwd=project)
    assert done.code == 125 and "dir is no folder in the box" in done.errors
    pale.ok("discard", review, "a/in", cwd=project)
    assert kinds(pale, review)["a"] == "type" and "a/in" not in kinds(pale, review)
    pale.ok("discard", review, "a", "dir", cwd=project)
    assert kinds(pale, review) == {"run.sh": "type"} and text(pale, review, f"cd {project}; cat dir/old a").split() == ["old", "one", "two", "three"]
    done = pale.run("discard", review, "run.sh/passwd", cwd=project)
    assert done.code == 125 and "changed nothing at run.sh/passwd" in done.errors


def test_discard_names_what_it_cannot_throw_away(pale, review, project):
    text(pale, review, f"cd {project}; echo 1 > x; echo 2 > y")
    state = kinds(pale, review), pale.json("snapshots", "--json", review)
    for path, says in ("run.sh", "changed nothing at run.sh"), ("nowhere/at/all", "changed nothing at nowhere/at/all"), ("/home/agent", "not lie in"):
        done = pale.run("discard", review, "x", path, cwd=project)
        assert done.code == 125 and says in done.errors
    assert (kinds(pale, review), pale.json("snapshots", "--json", review)) == state
    pale.ok("exec", "-d", review, "--", "sleep", "60")
    assert pale.run("discard", review, "x", cwd=project).code == 125 and pale.ok("discard", "-f", review, "x", cwd=project)
    assert kinds(pale, review) == {"y": "added"}
    pale.ok("discard", review, ".", cwd=project)
    assert kinds(pale, review) == {}, "the project itself is everything"


def test_after_a_discard_of_some_what_the_user_changed_is_still_a_conflict(pale, review, project):
    text(pale, review, f"cd {project}; echo box > a; echo 1 > x")
    (project / "a").write_text("user\n")
    time.sleep(0.1)
    pale.ok("discard", review, "x", cwd=project)
    done = pale.run("apply", "--json", review)
    assert {r["path"]: r["result"] for r in done.json()} == {"a": "conflict"} and (project / "a").read_text() == "user\n"


@pytest.mark.once
def test_discards_without_end(pale, review, project):
    """Each leaves two layers more; those that were welded are as they were."""
    text(pale, review, f"cd {project}; echo rest > rest; rm gone")
    for i in range(40):
        text(pale, review, f"cd {project}; echo {i} > x; echo {i} > a; echo {i} > ~/{i}")
        pale.ok("discard", review, "x", cwd=project)
        if i % 8 == 7:
            pale.ok("gc")
    assert kinds(pale, review) == {"a": "changed", "gone": "deleted", "rest": "added"}
    assert text(pale, review, f"cd {project}; cat a rest; ls ~ | wc -l").split() == ["39", "rest", "40"]
    pale.ok("discard", review, "a", cwd=project)
    pale.ok("gc")
    assert kinds(pale, review) == {"gone": "deleted", "rest": "added"}


def test_discard_of_what_runs(pale, review, project):
    text(pale, review, f"echo 1 > {project}/x")
    pale.ok("exec", "-d", review, "--", "sleep", "60")
    assert pale.run("discard", review).code == 125 and pale.ok("discard", "-f", review)


def test_a_live_project_has_nothing_to_review(pale, hostdir):
    box = pale.create("l", "--project", "live", cwd=hostdir)
    for verb in ("apply", "discard"):
        done = pale.run(verb, box)
        assert done.code == 125 and "not for review" in done.errors


def test_deeds_are_in_the_log(pale, review, project):
    text(pale, review, f"echo 1 > {project}/x")
    pale.ok("apply", review)
    pale.ok("stop", review)
    text(pale, review, f"echo 2 > {project}/y")
    pale.ok("discard", review)
    text(pale, review, f"echo 3 > {project}/z; echo 3 > {project}/w")
    pale.ok("discard", review, "z", cwd=project)
    events = [json.loads(line) for line in pale.ok("audit", "--json", review).text.splitlines()]
    assert [(e["event"], e["what"]) for e in events if e["event"].startswith("review.")] == [("review.apply", str(project)), ("review.discard", str(project)),
                                                                                                            ("review.discard", f"{project}/z")]


def test_the_box_may_work_meanwhile(pale, review, project):
    """It swaps what it wrote for links, folders and pipes while that is looked at and landed."""
    canary = pathlib.Path(str(project) + ".canary")
    canary.write_text("untouched")
    try:
        p = pale.start("exec", "-q", review, "--", "sh", "-c", f"""cd {project}; mkdir -p t/u; while :; do
            echo x > t/u/f; rm -r t; ln -s .. t; rm t; mkfifo t; rm t; mkdir -p t/u; ln -s {canary} t/u/f 2>/dev/null; rm -f a; ln -s {canary} a; rm a; echo a > a; done""")
        for _ in range(40):
            assert pale.run("diff", "--stat", review, timeout=30).code in (0, 1)
            assert pale.run("apply", "--include-guarded", review, timeout=30).code in (0, 1)
        assert canary.read_text() == "untouched"
        p.kill()
    finally:
        canary.unlink()
