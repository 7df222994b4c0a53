# SPDX-License-Identifier: Apache-2.0
"""C1, C2, C3, C24: files of the host."""
import os
import pathlib
import subprocess

import pytest

from harness import REAL_ROOT


def reads(pale, paths, canary):
    """Tries every road to the files: the path itself, through /proc and through what else shows a root."""
    script = """import os, sys
paths = sys.argv[1:]
roots = [''] + ['/proc/%s/root' % p for p in (['self', '1', 'thread-self'] + os.listdir('/proc')) if p == 'self' or p.isdigit()] + ['/..', '/../../..', '/oldroot', '/old_root', '/host']
for p in paths:
    for r in roots:
        try: print(open(r + p).read())
        except OSError: pass
"""
    done = pale.run("run", "-q", "--cwd", "/", "--", "python3", "-c", script, *paths)
    return canary in done.text, done


@pytest.mark.basic
@pytest.mark.weaken("root")
def test_c01_planted_files_are_not_to_be_read(wall, planted, canary):
    leaked, done = reads(wall.pale, planted, canary)
    wall.judge(leaked, done)


def test_c01_only_the_base_is_in_the_root(pale, box):
    names = set(pale.exec(box, "ls", "-A", "/").text.split())
    assert names <= {"bin", "boot", "dev", "etc", "home", "lib", "lib32", "lib64", "libx32", "proc", "root", "run", "sbin", "tmp", "usr", "var", "mnt"}
    assert pale.exec(box, "ls", "-A", "/home", "/root", "/var", "/run").text.count("\n") < 30
    assert pale.exec(box, "ls", "/home").text == "agent\n"


def test_c01_etc_is_made(pale, box):
    for name in ("shadow", "gshadow", "sudoers", "ssh", "hosts.allow", "subuid", "machine-info", "fstab", "crontab"):
        assert pale.exec(box, "ls", "-d", f"/etc/{name}").code != 0, name
    users = [line.split(":")[0] for line in pale.exec(box, "cat", "/etc/passwd").text.splitlines()]
    assert "agent" in users and len(users) <= 4
    host_id = pathlib.Path("/etc/machine-id")
    if host_id.exists() and host_id.read_text().strip():
        assert pale.exec(box, "cat", "/etc/machine-id").text != host_id.read_text()


def test_c01_control_the_same_program_reads_what_it_was_given(pale, hostdir, canary):
    (hostdir / "f").write_text(canary)
    done = pale.run("run", "-q", "--read", hostdir, "--", "cat", str(hostdir / "f"))
    assert done.text == canary


WRITES = """import os, sys
for p in sys.argv[1:]:
    for how in (lambda: open(p + '/.plt-probe', 'w').close(), lambda: os.mkdir(p + '/.plt-probe-dir'), lambda: os.symlink('x', p + '/.plt-probe-link')):
        try: how(); print('OPEN', p)
        except OSError: pass
    for n in ('.plt-probe', '.plt-probe-link'):
        try: os.unlink(p + '/' + n)
        except OSError: pass
    try: os.rmdir(p + '/.plt-probe-dir')
    except OSError: pass
"""


@pytest.mark.basic
def test_c02_base_cannot_be_written(pale):
    done = pale.run("run", "-q", "--", "python3", "-c", WRITES, "/", "/usr", "/usr/bin", "/usr/local", "/etc", "/bin", "/lib", "/sbin", "/var", "/home", "/proc")
    assert "OPEN" not in done.text, done
    if REAL_ROOT:
        done = pale.run("exec", "--user", "root", pale.create("b"), "--", "python3", "-c", WRITES, "/", "/usr", "/usr/bin", "/usr/local", "/etc", "/bin")
        assert done.code == 0 and "OPEN" not in done.text, done


@pytest.mark.basic
@pytest.mark.weaken("readonly,landlock")
def test_c02_folder_given_read_only_cannot_be_written(wall, hostdir):
    """The folder belongs to the user, so that nothing but the wall stands in the way."""
    wall.pale.run("run", "-q", "--read", hostdir, "--volume", f"{hostdir}:/mnt/v:ro", "--", "python3", "-c",
                  "import sys\nfor p in sys.argv[1:]:\n  try: open(p + '/evil', 'w').write('x')\n  except OSError: pass", hostdir, "/mnt/v")
    wall.judge((hostdir / "evil").exists())


def test_c02_each_lock_holds_alone(pale, hostdir):
    """Read-only mounts without Landlock, Landlock without read-only mounts."""
    for switch in ("readonly", "landlock"):
        twin = pale.weakened(switch)
        if not os.access(twin.program, os.X_OK):
            pytest.skip("the weakened build is not built")
        done = twin.run("run", "-q", "--read", hostdir, "--", "sh", "-c", f"echo x > {hostdir}/evil")
        assert done.code != 0 and not (hostdir / "evil").exists(), switch


@pytest.mark.basic
def test_c03_links_of_the_box_are_followed_in_the_box(pale, box, planted, canary, root):
    for i, path in enumerate(planted):
        pale.sh(box, f"ln -s {path} link{i}; ln -s {os.path.dirname(path)} dir{i}")
        for args in (["cat", box, f"link{i}"], ["cat", box, f"dir{i}/{os.path.basename(path)}"], ["cp", f"{box}:link{i}", root / f"o{i}"],
                     ["cp", f"{box}:dir{i}", root / f"p{i}"]):
            assert canary not in pale.run(*args).text
    for f in root.rglob("o*"):
        assert f.is_symlink() or canary not in f.read_text(errors="replace")
    for i in range(len(planted)):
        pale.run("write", box, f"link{i}", input=b"overwritten")
        assert open(planted[i]).read() == canary


def test_c03_a_folder_swapped_for_a_link_while_it_is_copied_out(pale, box, root, canary):
    """The box races the copy: a folder becomes a link to the host's folder and back."""
    victim = root / "victim"
    victim.mkdir()
    (victim / "f").write_text(canary)
    pale.sh(box, "mkdir -p t/d; for i in $(seq 200); do echo $i > t/d/f$i; done")
    p = pale.start("exec", box, "--", "python3", "-c", f"""import os
while True:
    try:
        os.rename('t/d', 't/e'); os.symlink('{victim}', 't/d'); os.unlink('t/d'); os.rename('t/e', 't/d')
    except OSError: pass""")
    for i in range(10):
        pale.run("cp", f"{box}:t", root / f"copy{i}")
    p.kill()
    p.wait()
    for f in root.glob("copy*/**/*"):
        assert f.is_symlink() or f.is_dir() or canary not in f.read_text()
    assert sorted(os.listdir(victim)) == ["f"]


def test_c03_the_host_is_not_written_through_links_while_a_box_is_removed(pale, box, root):
    victim = root / "victim"
    victim.mkdir()
    (victim / "keep").write_text("x")
    pale.sh(box, f"mkdir -p a/b/c; ln -s {victim} a/b/l; ln -s {victim}/keep a/k")
    pale.ok("rm", box)
    assert (victim / "keep").exists()


GUARDED = [".git/hooks/pre-commit", ".git/config", ".envrc", ".mcp.json", ".claude/settings.json", ".vscode/tasks.json"]


@pytest.mark.basic
def test_c24_files_the_host_obeys_stay_as_they_are(pale, hostdir):
    for name in GUARDED:
        (hostdir / name).parent.mkdir(parents=True, exist_ok=True)
        (hostdir / name).write_text("the host's own")
    script = """import os, shutil, sys
for p in sys.argv[1:]:
    top = p.split('/')[0]
    for how in (lambda: open(p, 'w').write('evil'), lambda: os.unlink(p), lambda: os.rename(p, 'x'), lambda: os.rename(top, 'moved'), lambda: shutil.rmtree(top),
                lambda: (open('e', 'w').write('evil'), os.rename('e', p)), lambda: os.truncate(p, 0), lambda: os.chmod(p, 0o777), lambda: os.link(p, 'hard') or open('hard', 'w').write('evil')):
        try: how()
        except OSError: pass
open('ordinary', 'w').write('fine')"""
    done = pale.run("run", "-q", "--project", "live", "--", "python3", "-c", script, *GUARDED, cwd=hostdir)
    assert done.code == 0 and (hostdir / "ordinary").read_text() == "fine", done
    for name in GUARDED:
        assert (hostdir / name).read_text() == "the host's own", name
        assert not (hostdir / name).stat().st_mode & 0o022


def test_c24_git_still_works_in_a_live_project(pale, hostdir):
    subprocess.run(["git", "init", "-q", str(hostdir)], check=True, env={"PATH": os.environ["PATH"], "HOME": str(hostdir)})
    done = pale.run("run", "-q", "--project", "live", "--", "sh", "-c", "echo x > f; git add f; git -c user.email=a@b -c user.name=n commit -qm one && git log --oneline | wc -l",
                    cwd=hostdir)
    assert done.text == "1\n", done
