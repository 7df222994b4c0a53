# SPDX-License-Identifier: Apache-2.0
"""What a box has changed: seen, landed in the user's tree, thrown away."""
import json
import os
import pathlib
import shutil
import subprocess
import time

import harness
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


@pytest.mark.basic
@pytest.mark.parametrize("where", [".gitattributes", ".git/info/attributes", "user"])
def test_a_blob_that_a_filter_made_is_no_base(pale, hostdir, where):
    """Of the same size as what the file held: the size does not tell them apart."""
    file = filtered_project(pale, hostdir, where)
    assert pale.run("apply", "r").code == 1
    assert file.read_text() == "AA\nBB\nCC\n"


def test_twin_that_takes_what_a_filter_made_for_the_base(pale, hostdir):
    file = filtered_project(pale, hostdir, ".gitattributes")
    assert pale.weakened("review-filter").run("apply", "r").code == 0
    assert file.read_text() == "xx\nbb\ncc\n"


def filtered_project(pale, hostdir, where):
    """The user writes what the filter makes of his file, while a box changes it."""
    git = ["git", "-C", str(hostdir), "-c", "user.name=t", "-c", "user.email=t@example.org"]
    file, rules = hostdir / "f", hostdir / where
    if where == "user":
        rules = pale.home / ".config" / "git" / "attributes"
    subprocess.run([*git, "init", "-q"], check=True, capture_output=True)
    rules.parent.mkdir(parents=True, exist_ok=True)
    rules.write_text("f filter=x\n")
    file.write_text("aa\nbb\ncc\n")
    for words in (["config", "filter.x.clean", "tr a-z A-Z"], ["config", "filter.x.smudge", "tr A-Z a-z"], ["add", "."], ["commit", "-qm", "one"]):
        subprocess.run([*git, *words], check=True, capture_output=True, env={**pale.env, "GIT_CONFIG_NOSYSTEM": "1"})
    os.utime(file, (1, 1))  # older than git's list of files, so that it is known by that
    subprocess.run([*git, "add", "."], check=True, capture_output=True, env=pale.env)
    time.sleep(0.1)
    pale.create("r", "--project", "review", cwd=hostdir)
    text(pale, "r", f"sed -i s/aa/xx/ {file}")
    file.write_text("AA\nBB\nCC\n")
    return file


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


# --- what the box began with ---

GIT = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_AUTHOR_NAME": "n", "GIT_AUTHOR_EMAIL": "e@example.org", "GIT_COMMITTER_NAME": "n",
       "GIT_COMMITTER_EMAIL": "e@example.org", "PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/"}
LINES = [f"line {i}\n" for i in range(1, 10)]


def git(folder, *words):
    subprocess.run(["git", "-c", "init.defaultBranch=main", *words], cwd=folder, env=GIT, check=True, capture_output=True)


def commit_all(folder):
    if not (folder / ".git").exists():
        git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "all")


def with_line(number, text, lines=None):
    lines = list(lines or LINES)
    lines[number - 1] = text + "\n"
    return "".join(lines)


def results(pale, box, *flags, **more):
    done = pale.run("apply", "--json", *flags, box, **more)
    rows = done.json()
    found = {r["path"]: r["result"] for r in rows}
    assert len(found) == len(rows), rows
    assert done.code == (1 if set(found.values()) & {"conflict", "held", "refused", "failed"} else 0), done
    return found


def twins(*switches):
    """The case as it is, and the same with a defence switched off: then it must be seen to fail."""
    sides = [None, *switches] if os.access(harness.WEAK / "pale", os.X_OK) else [None]
    return pytest.mark.parametrize("switch", sides, ids=["held"] + ["weak-" + s for s in sides[1:]])


def judge(pale, switch, case, *args):
    """case says True if the promise holds."""
    if not switch:
        assert case(pale, *args)
        return
    twin = pale.weakened(switch)
    try:
        assert not case(twin, *args), f"the case does not notice that {switch} is off"
    finally:
        trouble = twin.end()
    assert not trouble, trouble


def overwritten_by(pale, project, way):
    pale.create("pa", "--project", "review", cwd=project)
    text(pale, "pa", f"echo BOX >> {project}/a")
    pale.ok("stop", "pa")
    time.sleep(0.05)
    (project / "a").write_text("USER WORK\n")
    if way == "fork":
        pale.ok("fork", "pa", "pb")
    elif way == "fork of fork":
        pale.ok("fork", "pa", "px")
        pale.ok("fork", "px", "pb")
    elif way == "snapshot":
        pale.ok("snapshot", "pa", "s")
        pale.ok("fork", "--at", "s", "pa", "pb")
    elif way == "import":
        pale.ok("export", "--plain", "-o", pale.root / "x.tar", "pa", cwd=project)
        pale.ok("import", "--project-path", project, pale.root / "x.tar", "pb")
        (pale.root / "x.tar").unlink()
    else:
        pale.ok("snapshot", "pa", "s")
        text(pale, "pa", f"echo 2 > {project}/new")
        pale.ok("restore", "pa", "s")
    box = "pa" if way == "restore" else "pb"
    time.sleep(0.05)
    assert results(pale, box).get("a") in ("conflict", "landed")
    return (project / "a").read_text() == "USER WORK\n" and results(pale, box)["a"] == "conflict"


@pytest.mark.parametrize("way", ["fork", "fork of fork", "snapshot", "restore", "import"])
@twins("review-start", "review-guess")
def test_work_since_the_first_box_is_never_overwritten(pale, project, way, switch):
    if way == "import" and switch == "review-start":
        pytest.skip("what an import began with is told by its digests, or not known")
    judge(pale, switch, overwritten_by, project, way)


def merged_with_commits(pale, project, how):
    (project / "f").write_text("".join(LINES))
    commit_all(project)
    time.sleep(0.05)
    pale.create("m", "--project", "review", cwd=project)
    text(pale, "m", f"cd {project}; sed -i '1s/.*/BOX/' f")
    time.sleep(0.05)
    if how == "pull":
        git(project, "checkout", "-qb", "up")
    (project / "f").write_text(with_line(7, "USER"))
    git(project, "commit", "-qam", "mine")
    if how == "pull":
        git(project, "checkout", "-q", "main")
        git(project, "merge", "-q", "--no-edit", "up")
    if how == "rebase":
        git(project, "commit", "-q", "--amend", "-m", "other words")
        git(project, "reflog", "expire", "--expire=now", "--all")
    if how == "revert":
        git(project, "revert", "--no-edit", "HEAD")
    found = results(pale, "m")
    want = with_line(1, "BOX") if how == "revert" else with_line(1, "BOX", with_line(7, "USER").splitlines(True))
    return found["f"] == ("landed" if how == "revert" else "merged") and (project / "f").read_text() == want


@pytest.mark.parametrize("how", ["commit", "pull", "rebase"])
@twins("review-guess")
def test_what_is_committed_meanwhile_is_merged(pale, project, how, switch):
    judge(pale, switch, merged_with_commits, project, how)


def test_what_was_committed_and_reverted_is_as_it_was(pale, project):
    assert merged_with_commits(pale, project, "revert")


def dirty_at_birth(pale, project):
    """What the user had not committed when the box began, and has taken back since, is the user's change, though the file is the commit's."""
    (project / "f").write_text("".join(LINES))
    commit_all(project)
    (project / "f").write_text(with_line(5, "LINE 5"))  # as long as it was
    time.sleep(0.05)
    pale.create("m", "--project", "review", cwd=project)
    text(pale, "m", f"cd {project}; sed -i '1s/.*/BOX/' f")
    time.sleep(0.05)
    git(project, "checkout", "-q", "f")
    return results(pale, "m")["f"] == "conflict" and (project / "f").read_text() == "".join(LINES)


@twins("review-dirty")
def test_a_change_that_was_taken_back_is_a_change(pale, project, switch):
    judge(pale, switch, dirty_at_birth, project)


def loop(pale, project):
    pale.create("m", "--project", "review", cwd=project)
    for turn in range(4):
        text(pale, "m", f"echo {turn} >> {project}/a; echo {turn} > {project}/n{turn}; chmod {'640' if turn % 2 else '600'} {project}/a; ln -sfn t{turn} {project}/l")
        if results(pale, "m") != {"a": "landed", f"n{turn}": "landed", "l": "landed"} | ({} if turn else {}):
            return False
    text(pale, "m", f"cd {project}; printf 'one\\ntwo\\nthree\\n' > a; chmod 644 a; rm n0 l")
    return results(pale, "m") == {"a": "landed", "n0": "landed", "l": "landed"} and (project / "a").read_text() == "one\ntwo\nthree\n" and pale.ok("apply", "m").text == "0 landed\n"


@twins("review-landed")
def test_review_and_apply_go_on_for_ever(pale, project, switch):
    judge(pale, switch, loop, project)


def goes_on_after_a_merge(pale, project, kind):
    (project / "f").write_text("".join(LINES))
    if kind == "git":
        commit_all(project)
    time.sleep(0.05)
    pale.create("m", "--project", "review", cwd=project)
    text(pale, "m", f"cd {project}; sed -i '1s/.*/BOX/' f")
    if results(pale, "m")["f"] != "landed":
        return False
    (project / "f").write_text(with_line(7, "USER", (project / "f").read_text().splitlines(True)))
    text(pale, "m", f"cd {project}; sed -i '3s/.*/BOX/' f")
    if results(pale, "m")["f"] != "merged":
        return False
    text(pale, "m", f"cd {project}; sed -i '5s/.*/BOX/' f")
    pale.ok("snapshot", "m", "s")
    pale.ok("fork", "m", "n")
    text(pale, "n", f"cd {project}; sed -i '9s/.*/FORK/' f")
    first, second = results(pale, "m"), results(pale, "n")
    lines = (project / "f").read_text().splitlines()
    return first["f"] == second["f"] == "merged" and [lines[i - 1] for i in (1, 3, 5, 7, 9)] == ["BOX", "BOX", "BOX", "USER", "FORK"]


@pytest.mark.parametrize("kind", ["git", "no git"])
@twins("review-landed")
def test_what_landed_is_what_both_began_with(pale, project, kind, switch):
    if switch and kind == "git":
        pytest.skip("what the project began with serves as well")
    judge(pale, switch, goes_on_after_a_merge, project, kind)


def test_an_older_snapshot_has_not_had_what_was_landed_later(pale, project):
    pale.create("m", "--project", "review", cwd=project)
    text(pale, "m", f"echo 1 >> {project}/a")
    pale.ok("snapshot", "m", "s")
    text(pale, "m", f"echo 2 >> {project}/a")
    assert results(pale, "m") == {"a": "landed"}
    pale.ok("fork", "--at", "s", "m", "old")
    assert results(pale, "old") == {"a": "conflict"} and (project / "a").read_text().endswith("1\n2\n")
    pale.ok("fork", "m", "new")
    text(pale, "new", f"echo 3 >> {project}/a")
    assert results(pale, "new") == {"a": "landed"}


def test_rows_and_sums_are_one(pale, project):
    """One file that is held, one that is merged, one conflict."""
    (project / "f").write_text("".join(LINES))
    commit_all(project)
    time.sleep(0.05)
    pale.create("m", "--project", "review", cwd=project)
    text(pale, "m", f"cd {project}; sed -i '1s/.*/BOX/' f; echo x > .envrc; echo box > a; echo new > n")
    time.sleep(0.05)
    (project / "f").write_text(with_line(7, "USER"))
    (project / "a").write_text("mine\n")
    done = pale.run("apply", "m")
    rows = [x.split()[:2] for x in done.text.splitlines()[:4]]
    assert done.code == 1 and sorted(rows) == [["conflict", "a"], ["held", ".envrc"], ["landed", "n"], ["merged", "f"]], done
    assert "2 landed, 1 conflict, 1 held" in done.text, done
    assert results(pale, "m") == {"a": "conflict", ".envrc": "held", "f": "same"}
    done = pale.run("apply", "--theirs", "m")
    assert done.code == 1 and "1 landed, 1 held" in done.text and (project / "a").read_text() == "box\n"
    text(pale, "m", f"cd {project}; echo more > a")
    (project / "a").write_text("mine again\n")
    assert results(pale, "m", "--ours") == {"a": "same", ".envrc": "held", "f": "same"} and (project / "a").read_text() == "mine again\n"
    assert results(pale, "m") == {"a": "same", ".envrc": "held", "f": "same"}
    done = pale.run("apply", "--theirs", "--ours", "m")
    assert done.code == 125 and "choose one" in done.errors


def folders_are_shown(pale, project):
    os.symlink("a", project / "was-link")
    time.sleep(0.05)
    pale.create("m", "--project", "review", cwd=project)
    text(pale, "m", f"cd {project}; rm a was-link; mkdir a was-link; echo 1 > was-link/in")
    names = pale.ok("diff", "--name-only", "m").text.split()
    stat = pale.ok("diff", "--stat", "m").text
    return names == ["a", "was-link", "was-link/in"] and stat.count("type  ") == 2


@twins("review-type")
def test_a_folder_in_the_place_of_a_file_is_shown(pale, project, switch):
    judge(pale, switch, folders_are_shown, project)


def link_becomes_folder(pale, project):
    os.symlink("dir", project / "l")
    time.sleep(0.05)
    pale.create("m", "--project", "review", cwd=project)
    text(pale, "m", f"cd {project}; rm l; mkdir -p l/deep; echo 1 > l/in; echo 2 > l/deep/in")
    would = pale.run("apply", "--dry-run", "--json", "m").json()
    return {r["result"] for r in would} == set(results(pale, "m").values()) == {"landed"} and (project / "l" / "deep" / "in").read_text() == "2\n"


@twins("review-link")
def test_a_link_becomes_a_folder(pale, project, switch):
    judge(pale, switch, link_becomes_folder, project)


def same_moment(pale, project):
    found = []
    for i in range(6):
        (project / "a").write_text(f"{i}\n")
        pale.create(f"m{i}", "--project", "review", cwd=project)
        text(pale, f"m{i}", f"echo box >> {project}/a")
        found.append(results(pale, f"m{i}")["a"])
        pale.ok("rm", "-f", f"m{i}")
    return set(found) == {"landed"}


@twins("review-tick")
def test_what_was_written_a_moment_before_is_no_conflict(pale, project, switch):
    judge(pale, switch, same_moment, project)


def test_what_is_written_a_moment_after_is_one(pale, project):
    for i in range(20):
        pale.create(f"m{i}", "--project", "review", cwd=project)
        (project / "a").write_text(f"mine {i}\n")
        text(pale, f"m{i}", f"rm {project}/a; echo box > {project}/a")
        assert results(pale, f"m{i}")["a"] == "conflict" and (project / "a").read_text() == f"mine {i}\n"
        pale.ok("rm", "-f", f"m{i}")


def ignored_stays(pale, project):
    (project / ".gitignore").write_text("*.o\nout/\n")
    commit_all(project)
    time.sleep(0.05)
    pale.create("m", "--project", "review", cwd=project)
    text(pale, "m", f"cd {project}; echo 1 > x.o; echo 1 > x.c; mkdir out; echo 1 > out/f")
    found = results(pale, "m")
    return found == {"x.o": "skipped", "x.c": "landed", "out": "skipped", "out/f": "skipped"} and not (project / "out").exists() and \
        set(results(pale, "m", "--ignored").values()) == {"landed"} and (project / "out" / "f").exists()


@twins("review-ignored")
def test_what_git_ignores_lands_when_it_is_asked_for(pale, project, switch):
    judge(pale, switch, ignored_stays, project)


def status_is_no_change(pale, project):
    commit_all(project)
    for p in project.iterdir():
        if p.is_file():
            os.utime(p)
    time.sleep(0.05)
    pale.create("m", "--project", "review", cwd=project)
    text(pale, "m", f"cd {project}; touch -d @1000000000 a run.sh gone; git status; git status --porcelain")
    return changed(pale, "m") == {}


@twins("review-index")
def test_a_look_at_the_state_of_a_repository_changes_nothing(pale, project, switch):
    judge(pale, switch, status_is_no_change, project)


def test_an_export_says_what_its_files_began_with(pale, project):
    pale.create("m", "--project", "review", cwd=project)
    text(pale, "m", f"cd {project}; echo 1 >> a; rm gone; echo n > new; echo 2 >> dir/old")
    pale.ok("export", "--plain", "-o", pale.root / "x.tar", "m", cwd=project)
    (project / "dir" / "old").write_text("mine\n")
    pale.ok("import", "--project-path", project, pale.root / "x.tar", "n")
    (pale.root / "x.tar").unlink()
    assert results(pale, "n") == {"a": "landed", "gone": "landed", "new": "landed", "dir/old": "conflict"}
    text(pale, "n", f"echo 2 >> {project}/a")
    assert results(pale, "n") == {"a": "landed", "dir/old": "conflict"}


def state_of(pale, box):
    return pathlib.Path(pale.env["XDG_STATE_HOME"]) / "pale" / "boxes" / pale.json("inspect", "--json", box)["id"]


@pytest.mark.parametrize("which", ["landed/list", "start"])
def test_a_damaged_list_is_an_error_and_nothing_lands(pale, project, which):
    commit_all(project)
    time.sleep(0.05)
    pale.create("m", "--project", "review", cwd=project)
    text(pale, "m", f"echo 1 >> {project}/a")
    assert results(pale, "m") == {"a": "landed"}
    text(pale, "m", f"echo 2 >> {project}/a")
    path = next(p for p in state_of(pale, "m").iterdir() if p.name.startswith("start-")) if which == "start" else state_of(pale, "m") / which
    good, before = path.read_bytes(), (project / "a").read_text()
    at = len(good) // 2
    path.write_bytes(good[:at] + bytes([good[at] ^ 1]) + good[at + 1:])
    done = pale.run("apply", "m")
    assert done.code == 125 and path.name in done.errors and "conflict" in done.errors and (project / "a").read_text() == before
    path.unlink()
    assert results(pale, "m")["a"] in ("landed", "conflict")
    path.write_bytes(good)
    assert results(pale, "m").get("a", "same") in ("landed", "same", "conflict")


@pytest.mark.parametrize("switch", ["", "review-moved"])
@pytest.mark.parametrize("deep", [False, True])
def test_what_lies_in_a_folder_that_was_moved_is_the_users(pale, project, deep, switch):
    """A file that is moved with its folder keeps its times; it is not what stood there when the box began."""
    p = pale.weakened(switch) if switch else pale
    below = "n/s" if deep else "n"
    (project / "d" / "s").mkdir(parents=True)
    (project / "d" / "e").write_text("USER\n")
    (project / "d" / "s" / "e").write_text("USER\n")
    time.sleep(0.1)
    p.create("m", "--project", "review", cwd=project)
    text(p, "m", f"cd {project}; mkdir -p {below}; echo BOX > {below}/e")
    (project / "d").rename(project / "n")
    done = p.run("apply", "m")
    if switch:
        assert (project / below / "e").read_text() == "BOX\n"
    else:
        assert done.code == 1 and (project / below / "e").read_text() == "USER\n" and "conflict" in done.text
    p.ok("rm", "-f", "m")
