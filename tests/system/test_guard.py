# SPDX-License-Identifier: Apache-2.0
"""The guard of a live project: what the host would run or obey is neither changed nor planted, at any depth, and nothing is left there."""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time

import pytest

import harness
from harness import wait_until

NAMES = re.findall(r'^    "([^"]+)",$', (harness.ROOT / "src/policy/guard.c").read_text(), re.M)
FOLDERS = ("", "one", "one/two/three/four/five")
GIT = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_AUTHOR_NAME": "n", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "n", "GIT_COMMITTER_EMAIL": "a@b"}
OWN = "the host's own\n"

assert len(NAMES) > 45 and ".git/hooks" in NAMES


def live(pale, project, script, *flags, expect=0, **more):
    return pale.run("run", "-q", "--project", "live", "--project-path", project, *flags, "--", "python3", "-c", script, expect=expect, cwd=project, **more)


def made(pale, project, *flags):
    return pale.create("b", "--project", "live", "--project-path", project, *flags)


def state(pale):
    return pale.root / "state" / "pale"


def quarantined(pale):
    """Number file -> the path it had, of every box."""
    return {p.with_suffix(""): p.read_text(errors="replace") for p in state(pale).rglob("quarantine/**/*.path")}


def events(pale, *kinds):
    lines = [line for f in [state(pale) / "runs.audit", *state(pale).glob("boxes/*/audit")] if f.exists() for line in f.read_text().splitlines()]
    return [r for r in map(json.loads, lines) if r["event"] in kinds]


def tree(project):
    """All that is in it, but git's own business, with content and mode."""
    found = {}
    for p in sorted(project.rglob("*")):
        st = p.lstat()
        found[str(p.relative_to(project))] = (st.st_mode, os.readlink(p) if p.is_symlink() else p.read_bytes() if p.is_file() else None)
    return found


def git(project, *args):
    return subprocess.run(["git", "-C", str(project), *args], check=True, capture_output=True, text=True, env=GIT).stdout


def wardens(project):
    return [p for p in harness.pids() if harness.cmdline(p)[:2] == [b"pale-warden", str(project).encode()]]


# --- what is not there yet ---

PLANT = """
import os, sys
names, folders, how = %r, %r, %r
def put(path):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    if how == "create": open(path, "w").write("evil")
    elif how == "folder": os.mkdir(path)
    elif how == "rename": open(path + ".new", "w").write("evil"); os.rename(path + ".new", path)
    elif how == "link": open(path + ".new", "w").write("evil"); os.link(path + ".new", path)
    elif how == "symlink": os.symlink("/tmp", path)
    elif how == "fifo": os.mkfifo(path)
def arrive(top, name):
    first, _, rest = name.partition("/")
    os.makedirs(os.path.join("prepared", rest)); open(os.path.join("prepared", rest, "f"), "w").write("evil")
    os.rename("prepared", os.path.join(top, first))
for i, name in enumerate(names):
    for folder in folders:
        top = os.path.join("n%%d" %% i, folder) if folder else "n%%d" %% i
        os.makedirs(top, exist_ok=True)
        arrive(top, name) if how == "arrive" else put(os.path.join(top, name))
"""


@pytest.mark.parametrize("how", ["create", "folder", "rename", "link", "symlink", "fifo", "arrive", "case"])
def test_every_name_that_appears_is_taken_at_every_depth(pale, hostdir, how):
    names = [n.swapcase() for n in NAMES] if how == "case" else NAMES
    live(pale, hostdir, PLANT % (names, FOLDERS, "create" if how == "case" else how))
    wanted = {os.path.normpath(os.path.join(f"n{i}", f, n)) for i, n in enumerate(names) for f in FOLDERS}
    assert not [w for w in wanted if os.path.lexists(hostdir / w)]
    taken = set(quarantined(pale).values())
    assert wanted <= taken, sorted(wanted - taken)[:5]
    told = events(pale, "guard.quarantine", "guard.flood")
    assert {r["path"] for r in told if "path" in r} <= wanted
    assert sum(r.get("taken", 1) if r["event"] == "guard.flood" else 1 for r in told) >= len(wanted)
    assert not [p for p in hostdir.rglob("*") if p.name.startswith("pale")], "litter"


def test_what_is_taken_is_kept_with_its_content_and_its_path(pale, hostdir):
    live(pale, hostdir, "import os; os.makedirs('x/.claude'); os.makedirs('y'); open('y/set', 'w').write('more'); os.rename('y', '.vscode')")
    found = {path: at for at, path in quarantined(pale).items()}
    assert set(found) == {"x/.claude", ".vscode"} and (found[".vscode"] / "set").read_text() == "more"
    told = {r["path"]: r for r in events(pale, "guard.quarantine")}
    assert told[".vscode"]["kind"] == "folder" and told[".vscode"]["to"] == str(found[".vscode"])
    assert tree(hostdir) == {"x": (tree(hostdir)["x"][0], None)}


def test_a_path_in_the_audit_is_quoted(pale, hostdir):
    live(pale, hostdir, r"import os; os.makedirs(b'a\x1b[31m\xff\n'); open(b'a\x1b[31m\xff\n/.envrc', 'w').write('x')")
    assert [r["path"] for r in events(pale, "guard.quarantine")] == [r"a\x1b[31m\xff\n/.envrc"]


def test_git_folders_under_any_name_are_git_folders(pale, hostdir):
    """An embedded bare repository, one that borrows another's objects, and a .git that is a file or a link."""
    live(pale, hostdir, """
import os
def repo(d, first=()):
    for n in (*first, 'objects', 'refs'): os.makedirs(d + '/' + n, exist_ok=True)
    open(d + '/config', 'w').write('[core]\\n fsmonitor = evil\\n'); os.makedirs(d + '/hooks'); open(d + '/HEAD', 'w').write('ref: refs/heads/main\\n')
repo('sub/bare'); repo('s'); os.rename('s', 'deep'); os.makedirs('w'); open('w/commondir', 'w').write('../s2'); open('w/HEAD', 'w').write('ref: x')
os.makedirs('g1'); open('g1/.git', 'w').write('gitdir: /tmp/x'); os.makedirs('g2'); os.symlink('/tmp/x', 'g2/.git'); os.makedirs('g3'); os.symlink('../sub', 'g3/.github')
""")
    taken = set(quarantined(pale).values())
    # s may be caught before or after it is renamed.
    assert {"sub/bare/config", "sub/bare/hooks", "w/commondir", "g1/.git", "g2/.git", "g3/.github"} <= taken
    assert {p.rpartition("/")[2] for p in taken if p.startswith(("s/", "deep/"))} == {"config", "hooks"}
    assert not [p for p in hostdir.rglob("*") if p.name in ("config", "hooks", "commondir", ".git", ".github")]
    subprocess.run(["git", "-C", str(hostdir / "sub/bare"), "status"], capture_output=True, env=GIT, check=False)


def test_folders_that_are_closed_hide_nothing(pale, hostdir):
    live(pale, hostdir, """
import os, time
for i, mode in enumerate((0, 0o300, 0o100, 0o600)):
    d = 'd%d' % i; os.mkdir(d); os.chmod(d, mode); time.sleep(0.01); os.chmod(d, 0o700)
    os.makedirs(d + '/e', exist_ok=True); open(d + '/e/.envrc', 'w').write('x'); os.chmod(d, mode)
    os.makedirs('c%d/.claude' % i); os.path.isdir('c%d/.claude' % i) and os.chmod('c%d/.claude' % i, mode); os.chmod('c%d' % i, 0o500)
""")
    for d in hostdir.iterdir():
        d.chmod(0o700)
    assert not [p for p in hostdir.rglob("*") if p.name in (".envrc", ".claude")]
    assert len(quarantined(pale)) == 8


def test_a_folder_that_could_not_be_entered_hides_nothing(pale, hostdir):
    """Readable, so that its names are seen, but closed when they are looked at."""
    box = made(pale, hostdir)
    flags = ("--cwd", str(hostdir))
    pale.sh(box, "true")
    warden = min(wardens(hostdir))
    os.kill(warden, signal.SIGSTOP)
    try:
        assert pale.sh(box, "mkdir -p p/sub q; echo > q/.mcp.json; chmod 0600 p; chmod 0400 q", flags=flags).code == 0
    finally:
        os.kill(warden, signal.SIGCONT)
    time.sleep(0.2)
    pale.sh(box, "chmod 0700 p q; echo > p/sub/.envrc; ls -a q", flags=flags)
    assert wait_until(lambda: sorted(quarantined(pale).values()) == ["p/sub/.envrc", "q/.mcp.json"]), quarantined(pale)
    assert not events(pale, "box.died")


def test_folders_of_the_boxs_root_hide_nothing(pale, hostdir):
    """Where a box has a range of ids, its root is neither the host's nor the host user's."""
    box = made(pale, hostdir)
    flags = ("--cwd", str(hostdir), "--user", "root")
    hostdir.chmod(0o755)
    pale.sh(box, "mkdir w; chmod 777 w", flags=flags[:2])
    if pale.sh(box, "touch w/try", flags=flags).code:
        pytest.skip("the box's root can write nothing here")
    pale.sh(box, "cd w; mkdir -m 755 .claude; mkdir x; echo > x/.envrc; mkdir -m 700 y; echo > y/.envrc; chmod 755 y", flags=flags)
    assert wait_until(lambda: {"w/.claude", "w/x/.envrc"} <= set(quarantined(pale).values())), quarantined(pale)
    assert not [p for p in hostdir.rglob("*") if p.name in (".claude", ".envrc")]
    pale.ok("stop", box)
    assert not [p for p in hostdir.rglob("*") if p.name in (".claude", ".envrc")]


def test_the_policys_own_names_are_guarded_and_those_it_takes_out_are_not(pale, hostdir):
    (hostdir / "tools").mkdir()
    (hostdir / "tools/autorun").write_text(OWN)
    flags = ("--policy", hostdir.parent / (hostdir.name + ".yaml"))
    flags[1].write_text("guard: [-.vscode, tools/autorun]\n")
    try:
        live(pale, hostdir, "import os\ntry: open('tools/autorun', 'w')\nexcept OSError as e: print(e.strerror)\n"
                            "os.makedirs('.vscode'); open('.vscode/s', 'w').write('x'); os.makedirs('x/tools'); open('x/tools/autorun', 'w').write('x')", *flags)
    finally:
        flags[1].unlink()
    assert (hostdir / "tools/autorun").read_text() == OWN and (hostdir / ".vscode/s").read_text() == "x"
    assert list(quarantined(pale).values()) == ["x/tools/autorun"]


def test_another_file_system_is_no_hindrance(pale, hostdir):
    if os.stat("/dev/shm").st_dev == os.stat(hostdir).st_dev or shutil.disk_usage("/dev/shm").free < 64 << 20:
        pytest.skip("there is no second file system here")
    elsewhere = pathlib.Path(tempfile.mkdtemp(prefix="plt-guard-", dir="/dev/shm"))
    try:
        live(pale, hostdir, "import os\nos.makedirs('d/e'); open('d/e/f', 'w').write('evil'); os.symlink('/etc', 'd/l'); os.rename('d', '.claude')\n"
                            "open('y', 'w').write('evil'); os.rename('y', '.envrc'); os.mkfifo('.mcp.json'); f = open('x', 'w'); f.truncate(1 << 30); os.rename('x', '.exrc')",
             env={"XDG_STATE_HOME": str(elsewhere)})
        assert tree(hostdir) == {}
        kept = {p.read_text(): p.with_suffix(".bundle") for p in elsewhere.rglob("*.path")}
        assert b"evil" in kept[".claude"].read_bytes() and b"evil" in kept[".envrc"].read_bytes() and ".exrc" not in kept
    finally:
        shutil.rmtree(elsewhere)


def test_what_was_taken_can_be_seen_and_had_back(pale, hostdir):
    box = made(pale, hostdir)
    pale.sh(box, "mkdir -p a d/e; echo one > a/.envrc; echo two > d/e/f; ln -s /etc d/l; mv d .vscode; ln -s /etc .mcp.json", flags=("--cwd", str(hostdir)))
    assert wait_until(lambda: len(quarantined(pale)) == 3)
    rows = {r["path"]: r for r in pale.json("guard", "--json", box)}
    assert {p: r["kind"] for p, r in rows.items()} == {"a/.envrc": "file", ".vscode": "folder", ".mcp.json": "symlink"}
    assert "a/.envrc" in pale.ok("guard", box).text
    numbers = {p: str(r["number"]) for p, r in rows.items()}
    busy = pale.run("guard", box, "--release", numbers["a/.envrc"])
    assert busy.code == 125 and "pale stop" in busy.errors and not (hostdir / "a/.envrc").exists()
    pale.ok("stop", box)
    (hostdir / "look").mkdir()
    pale.ok("guard", box, "--release", numbers[".vscode"], "--to", hostdir / "look")
    assert (hostdir / "look/.vscode/e/f").read_text() == "two\n" and not os.path.lexists(hostdir / "look/.vscode/l")
    (hostdir / "a/.envrc").write_text(OWN)
    assert "there already" in pale.run("guard", box, "--release", numbers["a/.envrc"], expect=125).errors
    (hostdir / "a/.envrc").unlink()
    pale.ok("guard", box, "--release", numbers["a/.envrc"])
    assert (hostdir / "a/.envrc").read_text() == "one\n"
    assert [r["path"] for r in events(pale, "guard.release")] == [".vscode", "a/.envrc"] and pale.run("audit", "--verify", box).code == 0
    assert "symlink" in pale.run("guard", box, "--release", numbers[".mcp.json"], expect=125).errors
    pale.ok("guard", box, "--drop", numbers[".mcp.json"])
    assert pale.json("guard", "--json", box) == []
    assert pale.run("guard", box, "--drop", "7").code == 125 and pale.run("guard", box, "--drop", "x").code == 125
    assert pale.sh(box, "echo > a/.envrc", flags=("--cwd", str(hostdir))).code != 0, "what was given back is guarded like all that is there"


# --- what is there already ---

ATTACK = """
import os, sys
paths = %r
def tries(*acts):
    for act in acts:
        try: act(); print("did", acts.index(act), p)
        except OSError: pass
open("evil", "w").write("evil")
for p in paths:
    top = p.split("/")[0]
    tries(lambda: open(p, "w").write("evil"), lambda: os.truncate(p, 0), lambda: os.chmod(p, 0o777), lambda: os.unlink(p), lambda: os.rename(p, "moved"),
          lambda: os.rename("evil", p), lambda: os.link(p, "hard"), lambda: os.symlink("/tmp", p), lambda: os.mkdir(p), lambda: os.rename(os.path.dirname(p) or p, "moved"),
          lambda: os.rename(top, "moved"), lambda: open(os.path.join(p, "f"), "w"), lambda: os.rmdir(p))
os.unlink("evil")
"""


def test_every_name_that_is_there_stays_as_it_is_at_every_depth(pale, hostdir):
    paths = [os.path.normpath(os.path.join(f"n{i}", f, n)) for i, n in enumerate(NAMES) for f in FOLDERS]
    paths = [p if i % 2 else p.upper() for i, p in enumerate(paths)]
    for i, p in enumerate(paths):
        path = hostdir / p
        (path if i % 3 else path.parent).mkdir(parents=True, exist_ok=True)
        if i % 3 == 0:
            path.write_text(OWN)
    before = tree(hostdir)
    box = made(pale, hostdir)
    done = pale.py(box, ATTACK % paths, timeout=60, flags=("--cwd", str(hostdir)))
    assert done.code == 0 and "did" not in done.text, done
    assert tree(hostdir) == before and not quarantined(pale)


def test_git_repositories_that_are_there_are_guarded_where_they_are(pale, hostdir):
    git(hostdir.parent, "init", "-q", "--bare", str(hostdir / "a/store"))
    git(hostdir.parent, "init", "-q", str(hostdir / "b/sub"))
    (hostdir / "c").mkdir()
    (hostdir / "c/.git").write_text("gitdir: ../b/sub/.git\n")
    before = tree(hostdir)
    done = live(pale, hostdir, ATTACK % ["a/store/config", "a/store/hooks", "b/sub/.git/config", "b/sub/.git/hooks", "c/.git"])
    assert "did" not in done.text and tree(hostdir) == before, done


def test_a_symlink_that_cannot_be_guarded_is_refused_with_its_remedy(pale, hostdir):
    (hostdir / "sub").mkdir()
    (hostdir / "sub/.claude").symlink_to("/tmp")
    done = live(pale, hostdir, "", expect=125)
    assert "sub/.claude" in done.errors and "symlink" in done.errors and "guard list" in done.errors
    assert events(pale, "box.refused") and not events(pale, "guard.failed", "box.died")


def test_more_names_than_can_be_held_are_refused_with_a_remedy(pale, hostdir):
    for i in range(2049):
        (hostdir / f"d{i}").mkdir()
        (hostdir / f"d{i}/.envrc").touch()
    done = live(pale, hostdir, "", expect=125)
    assert "2048" in done.errors and "guard: [-NAME]" in done.errors


# --- the host goes on working ---


def test_what_the_host_replaces_is_guarded_again(pale, hostdir):
    git(hostdir, "init", "-q")
    (hostdir / "sub").mkdir()
    (hostdir / "sub/.envrc").write_text(OWN)
    box = made(pale, hostdir)
    p = pale.start("exec", box, "--", "sh", "-c", "echo up; exec sleep 60")
    assert p.stdout.readline() == b"up\n"
    try:
        for i in range(20):
            git(hostdir, "config", "user.name", f"n{i}")
            (hostdir / "sub/new").write_text(f"{OWN}{i}")
            os.rename(hostdir / "sub/new", hostdir / "sub/.envrc")
            held = "import sys\nfor p in ('.git/config', 'sub/.envrc'):\n  try: open(p, 'a').write('evil'); print('OPEN', p)\n  except OSError: pass"
            assert pale.py(box, held, flags=("--cwd", str(hostdir))).text == ""
    finally:
        p.kill()
    assert git(hostdir, "config", "user.name") == "n19\n" and (hostdir / "sub/.envrc").read_text() == f"{OWN}19"
    assert not quarantined(pale) and events(pale, "guard.relaid")


def test_what_the_host_makes_while_nothing_runs_is_the_hosts_and_guarded(pale, hostdir):
    box = made(pale, hostdir)
    assert pale.sh(box, "true").code == 0
    time.sleep(0.2)
    (hostdir / "sub/.vscode").mkdir(parents=True)
    (hostdir / "sub/.vscode/settings.json").write_text(OWN)
    (hostdir / ".mcp.json").write_text(OWN)
    time.sleep(0.2)
    done = pale.sh(box, "echo evil > sub/.vscode/settings.json; echo evil > .mcp.json; rm -rf sub .mcp.json; mv sub x", flags=("--cwd", str(hostdir)))
    assert done.code != 0 and not quarantined(pale)
    assert (hostdir / "sub/.vscode/settings.json").read_text() == OWN == (hostdir / ".mcp.json").read_text()


def test_what_the_host_removes_the_box_cannot_put_back(pale, hostdir):
    (hostdir / ".envrc").write_text(OWN)
    box = made(pale, hostdir)
    p = pale.start("exec", "--cwd", str(hostdir), box, "--", "sh", "-c", "echo up; while [ -e .envrc ]; do :; done; echo evil > .envrc; echo done; exec sleep 60")
    assert p.stdout.readline() == b"up\n"
    (hostdir / ".envrc").unlink()
    assert p.stdout.readline() == b"done\n"
    assert wait_until(lambda: not (hostdir / ".envrc").exists())
    p.kill()
    assert list(quarantined(pale).values()) == [".envrc"]


def test_git_in_the_box_goes_on_working(pale, hostdir):
    git(hostdir, "init", "-q", "-b", "main")
    (hostdir / "f").write_text("1\n")
    git(hostdir, "add", "f")
    git(hostdir, "commit", "-qm", "one")
    box = made(pale, hostdir)
    flags = ("--cwd", str(hostdir), *[w for k, v in GIT.items() if k.startswith("GIT") for w in ("--env", f"{k}={v}")])
    done = pale.sh(box, """set -e
        echo 2 >> f; git commit -qam two; git checkout -qb side; echo s > s; git add s; git commit -qm side; git checkout -q main
        echo 3 > t; git add t; git stash -q; git stash pop -q; git commit -qm three; git merge -q --no-edit side; git tag v1; git branch -d side
        git rebase -q HEAD; git gc -q; git reflog | wc -l; git status --short; git log --oneline | wc -l""", flags=flags)
    assert done.code == 0, done
    assert git(hostdir, "log", "--format=%s", "-1") == "Merge branch 'side'\n" and git(hostdir, "status", "--short") == ""
    assert not quarantined(pale)
    refused = pale.sh(box, "git worktree add ../w 2>&1; git config a.b c", flags=flags)
    assert refused.code != 0 and not (hostdir / ".git/worktrees").exists(), refused
    assert git(hostdir, "config", "--get-all", "core.bare") == "false\n"


# --- a box that will not have it ---


@pytest.mark.limit(180)
def test_a_flood_harms_neither_box_nor_keeper(pale, hostdir):
    box = made(pale, hostdir)
    done = pale.py(box, """
import os
for i in range(10000):
    with open('.envrc' if i % 2 else 'd%d' % (i % 7) + '.mcp.json', 'w') as f: f.write('x')
    try: os.rename('d%d' % (i % 7) + '.mcp.json', '.mcp.json')
    except OSError: pass
print('through')""", flags=("--cwd", str(hostdir)), timeout=120)
    assert done.text == "through\n", done
    assert pale.sh(box, "echo fine").text == "fine\n"
    assert wait_until(lambda: not (hostdir / ".envrc").exists() and not (hostdir / ".mcp.json").exists())
    assert len(events(pale, "guard.quarantine")) < 1000 and len(quarantined(pale)) <= 1000
    assert len(events(pale, "guard.flood")) < 100
    pale.ok("stop", box)
    assert not (hostdir / ".envrc").exists() and not (hostdir / ".mcp.json").exists()
    assert pale.run("audit", "--verify", box).code == 0


@pytest.mark.limit(180)
def test_more_events_than_the_kernel_keeps_hide_nothing(pale, hostdir):
    (hostdir / "d").mkdir()
    (hostdir / "d/.mcp.json").write_text(OWN)
    box = made(pale, hostdir)
    pale.sh(box, "true")
    warden = min(wardens(hostdir))
    os.kill(warden, signal.SIGSTOP)
    try:
        most = int(pathlib.Path("/proc/sys/fs/inotify/max_queued_events").read_text())
        done = pale.py(box, f"import os\nfor i in range({most} + 100): open('f%d' % i, 'w').close(); os.unlink('f%d' % i)\nos.makedirs('x/y/z'); open('x/y/z/.envrc', 'w').close()",
                       flags=("--cwd", str(hostdir)), timeout=60)
        assert done.code == 0 and (hostdir / "x/y/z/.envrc").exists(), done
    finally:
        os.kill(warden, signal.SIGCONT)
    assert wait_until(lambda: not (hostdir / "x/y/z/.envrc").exists())
    assert list(quarantined(pale).values()) == ["x/y/z/.envrc"] and (hostdir / "d/.mcp.json").read_text() == OWN
    assert pale.sh(box, "echo > d/.mcp.json", flags=("--cwd", str(hostdir))).code != 0


@pytest.mark.limit(180)
def test_folders_by_the_thousand_hide_nothing(pale, hostdir):
    live(pale, hostdir, """
import os
for i in range(200):
    for j in range(100):
        os.makedirs('d%d/e%d' % (i, j)); open('d%d/e%d/x' % (i, j), 'w').close()
    os.makedirs('d%d/deep/a/b/c' % i); open('d%d/deep/a/b/c/.envrc' % i, 'w').close()
    os.rename('d%d' % i, 'r%d' % i)
""", timeout=150)
    assert not list(hostdir.rglob(".envrc"))
    assert len(quarantined(pale)) == 200


@pytest.mark.limit(180)
def test_a_folder_that_becomes_a_symlink_leads_nowhere(pale, hostdir, root):
    """The box swaps the folder it plants in for a link to a folder of the host, which it can guess but not see."""
    victim = root / "victim"
    (victim / ".claude").mkdir(parents=True)
    for name in (".envrc", ".mcp.json", ".claude/settings.json"):
        (victim / name).write_text(OWN)
    before = tree(victim)
    live(pale, hostdir, """
import os, time
until = time.time() + 4
os.mkdir('real'); os.symlink(%r, 'link')
n = 0
while time.time() < until:
    for name in ('.envrc', '.mcp.json'):
        try: open('real/' + name, 'w').close()
        except OSError: pass
    try: os.mkdir('real/.claude')
    except OSError: pass
    os.rename('real', 'away'); os.rename('link', 'real'); os.rename('real', 'link'); os.rename('away', 'real')
    n += 1
assert n > 1000
""" % str(victim), timeout=60)
    assert tree(victim) == before
    assert not [p for p in hostdir.rglob("*") if p.name in (".envrc", ".mcp.json", ".claude")]


def test_moving_folders_about_hides_nothing(pale, hostdir):
    live(pale, hostdir, """
import os
for i in range(300):
    os.makedirs('a%d/b/c/d/e/f' % i)
    open('a%d/b/c/d/e/f/.envrc' % i, 'w').close()
    os.rename('a%d' % i, 'm%d' % i); os.rename('m%d/b' % i, 'b%d' % i); os.rename('b%d/c' % i, 'm%d/c' % i)
""", timeout=60)
    assert not list(hostdir.rglob(".envrc"))
    assert len(quarantined(pale)) == 300


def few_watches(pale, project, most, script):
    """In a user namespace that may have so many."""
    lower = f"echo {most} > /proc/sys/user/max_inotify_watches && exec \"$@\""
    words = ["unshare", "-Ur", "sh", "-c", lower, "sh", pale.program, "run", "-q", "--project", "live", "--project-path", str(project), "--", "python3", "-c", script]
    return subprocess.run(words, capture_output=True, text=True, env=pale.env, cwd=project, timeout=60)


@pytest.mark.skipif(os.geteuid() == 0, reason="root of the host would map no id but its own")
def test_a_box_that_uses_up_the_watches_gains_nothing(pale, hostdir):
    (hostdir / "d").mkdir()
    (hostdir / "d/.envrc").write_text(OWN)
    script = """
import os, time
for i in range(100): os.makedirs('x/e%d/f' % i)
for i in range(100): open('x/e%d/f/.envrc' % i, 'w').close()
until = time.time() + 20
while any(os.path.exists('x/e%d/f/.envrc' % i) for i in range(100)) and time.time() < until: time.sleep(0.05)
try: open('d/.envrc', 'w'); print('OPEN')
except OSError: print('held')"""
    done = few_watches(pale, hostdir, 60, script)
    assert done.stdout == "held\n", done
    assert (hostdir / "d/.envrc").read_text() == OWN and len(quarantined(pale)) == 100
    assert len(events(pale, "guard.slow")) == 1 and not list(hostdir.glob("x/**/.envrc"))


@pytest.mark.skipif(os.geteuid() == 0, reason="root of the host would map no id but its own")
def test_a_project_that_cannot_be_watched_is_refused_with_a_remedy(pale, hostdir):
    for i in range(70):
        (hostdir / f"d{i}").mkdir()
    done = few_watches(pale, hostdir, 60, "print('OPEN')")
    assert done.returncode == 125 and "fs.inotify.max_user_watches" in done.stderr and "OPEN" not in done.stdout


# --- ends ---


@pytest.mark.parametrize("which", [min, max], ids=["warden", "mantle"])
def test_a_box_without_its_warden_ends(pale, hostdir, which):
    box = made(pale, hostdir)
    p = pale.start("exec", box, "--", "sh", "-c", "echo up; exec sleep 60")
    assert p.stdout.readline() == b"up\n"
    assert len(wardens(hostdir)) == 2
    os.kill(which(wardens(hostdir)), signal.SIGKILL)
    assert p.wait(10) != 0
    assert wait_until(lambda: events(pale, "box.died"))


def test_a_warden_outlives_its_keeper_for_a_last_look(pale, hostdir):
    box = made(pale, hostdir)
    p = pale.start("exec", "--cwd", str(hostdir), box, "--", "sh", "-c", "echo up; while :; do echo > .envrc; done")
    assert p.stdout.readline() == b"up\n"
    assert wait_until(lambda: quarantined(pale))
    os.kill(pale.info(box)["keeper_pid"], signal.SIGKILL)
    assert wait_until(lambda: not wardens(hostdir), 15)
    assert not (hostdir / ".envrc").exists()


def test_nothing_is_left_but_the_quarantine_and_that_goes_with_the_box(pale, hostdir):
    (hostdir / "f").write_text("x")
    before = tree(hostdir)
    box = made(pale, hostdir)
    pale.sh(box, "true")
    pale.ok("stop", box)
    assert tree(hostdir) == before and not list(state(pale).rglob("quarantine"))
    pale.sh(box, "echo > .envrc", flags=("--cwd", str(hostdir)))
    pale.ok("stop", box)
    assert tree(hostdir) == before and list(quarantined(pale).values()) == [".envrc"]
    pale.ok("rm", box)
    assert not list(state(pale).rglob("quarantine")) and wait_until(lambda: not wardens(hostdir))
