# SPDX-License-Identifier: Apache-2.0
"""What is in a box and what is not: files, devices, privilege, processes, network."""
import os
import pathlib
import re
import secrets
import shutil
import socket
import stat
import subprocess

import attacks
import pytest

from harness import REAL_ROOT, wait_until


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


def status(pale, *args):
    done = pale.run(*args, "--", "cat", "/proc/self/status")
    return dict(line.split(":\t", 1) for line in done.text.splitlines() if ":\t" in line), done


def gives_rights(path):
    """Would this file give its owner's rights to whoever runs it on the host?"""
    return bool(path.lstat().st_mode & (stat.S_ISUID | stat.S_ISGID)) or "security.capability" in os.listxattr(path)


def ids_of(words):
    """User and group ids of the processes with this command line, as the host sees them."""
    seen = []
    for n in filter(str.isdigit, os.listdir("/proc")):
        try:
            if open(f"/proc/{n}/cmdline", "rb").read() == words:
                text = open(f"/proc/{n}/status").read()
                seen.append([int(x) for k in ("Uid", "Gid") for x in re.search(rf"^{k}:\t(.*)$", text, re.M)[1].split()])
        except (OSError, TypeError):
            pass
    return seen


def test_only_the_base_is_in_the_root(pale, box):
    names = set(pale.exec(box, "ls", "-A", "/").text.split())
    assert names <= {"bin", "boot", "dev", "etc", "home", "lib", "lib32", "lib64", "libx32", "proc", "root", "run", "sbin", "tmp", "usr", "var", "mnt"}
    assert pale.exec(box, "ls", "-A", "/home", "/root", "/var", "/run").text.count("\n") < 30
    assert pale.exec(box, "ls", "/home").text == "agent\n"


def test_programs_that_are_chosen_by_links_are_there(pale, box):
    """/etc/alternatives leads to /usr/bin, or to /bin, which is another name for it."""
    links = {p: os.readlink(p) for p in pathlib.Path("/etc/alternatives").glob("*") if p.is_symlink() and p.exists()}
    some = [str(p) for start in ("/bin/", "/sbin/", "/usr/bin/") for p in [p for p, to in links.items() if to.startswith(start)][:3]]
    if not some:
        pytest.skip("no program here is chosen by a link")
    assert pale.sh(box, f"ls -L {' '.join(some)}").code == 0


def test_etc_is_made(pale, box):
    for name in ("shadow", "gshadow", "sudoers", "ssh", "hosts.allow", "subuid", "machine-info", "fstab", "crontab"):
        assert pale.exec(box, "ls", "-d", f"/etc/{name}").code != 0, name
    users = [line.split(":")[0] for line in pale.exec(box, "cat", "/etc/passwd").text.splitlines()]
    assert "agent" in users and len(users) <= 4
    host_id = pathlib.Path("/etc/machine-id")
    if host_id.exists() and host_id.read_text().strip():
        assert pale.exec(box, "cat", "/etc/machine-id").text != host_id.read_text()


def test_control_the_same_program_reads_what_it_was_given(pale, hostdir, canary):
    (hostdir / "f").write_text(canary)
    done = pale.run("run", "-q", "--read", hostdir, "--", "cat", str(hostdir / "f"))
    assert done.text == canary


@pytest.mark.basic
def test_base_cannot_be_written(pale):
    done = pale.run("run", "-q", "--", "python3", "-c", WRITES, "/", "/usr", "/usr/bin", "/usr/local", "/etc", "/bin", "/lib", "/sbin", "/var", "/home", "/proc")
    assert "OPEN" not in done.text, done
    if REAL_ROOT:
        done = pale.run("exec", "--user", "root", pale.create("b"), "--", "python3", "-c", WRITES, "/", "/usr", "/usr/bin", "/usr/local", "/etc", "/bin")
        assert done.code == 0 and "OPEN" not in done.text, done


def test_a_folder_swapped_for_a_link_while_it_is_copied_out(pale, box, root, canary):
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


def test_the_host_is_not_written_through_links_while_a_box_is_removed(pale, box, root):
    victim = root / "victim"
    victim.mkdir()
    (victim / "keep").write_text("x")
    pale.sh(box, f"mkdir -p a/b/c; ln -s {victim} a/b/l; ln -s {victim}/keep a/k")
    pale.ok("rm", box)
    assert (victim / "keep").exists()


def test_git_still_works_in_a_live_project(pale, hostdir):
    subprocess.run(["git", "init", "-q", str(hostdir)], check=True, env={"PATH": os.environ["PATH"], "HOME": str(hostdir)})
    done = pale.run("run", "-q", "--project", "live", "--", "sh", "-c", "echo x > f; git add f; git -c user.email=a@b -c user.name=n commit -qm one && git log --oneline | wc -l",
                    cwd=hostdir)
    assert done.text == "1\n", done


@pytest.mark.basic
def test_cgroups_begin_at_the_box(pale, box):
    for args in (["run", "-q"], ["exec", "-q", box]):
        paths = {line.split(":", 2)[2] for line in pale.run(*args, "--", "cat", "/proc/self/cgroup").text.splitlines()}
        assert paths <= {"/"}, paths


@pytest.mark.basic
def test_six_devices(pale, box):
    names = pale.py(box, """import os, stat
for d, _, fs in os.walk('/dev'):
    for f in fs:
        m = os.lstat(d + '/' + f).st_mode
        if stat.S_ISCHR(m) or stat.S_ISBLK(m): print(d + '/' + f)""").text.split()
    assert {n for n in names if not n.startswith("/dev/pts")} == {f"/dev/{n}" for n in ("null", "zero", "full", "random", "urandom", "tty")}


@pytest.mark.basic
def test_setuid_programs_are_powerless(pale, box):
    """A setuid copy that the box's root makes for itself, and those of the host."""
    script = "cp /usr/bin/id /tmp/id && chmod 6755 /tmp/id"
    made = pale.run("exec", "-q", "--user", "root", box, "--", "sh", "-c", script)
    if made.code == 0:
        assert "euid=0" not in pale.exec(box, "/tmp/id").text and "egid=0" not in pale.exec(box, "/tmp/id").text
    for name in ("su", "mount", "passwd", "newuidmap", "sudo"):
        done = pale.sh(box, f"command -v {name} && {name} --version; cat /proc/self/status | grep Uid")
        assert "Uid:\t0" not in done.text
    mounts = pale.exec(box, "cat", "/proc/self/mountinfo").text.splitlines()
    assert all("nosuid" in line for line in mounts), [m for m in mounts if "nosuid" not in m]
    assert all("nodev" in line for line in mounts if " /dev" not in line)


@pytest.mark.basic
def test_tools_that_copy_modes_go_on_without_those_bits(pale, hostdir):
    """In a folder that passes its group on, as shared ones do, new folders have the bit from the kernel."""
    (hostdir / "run").write_text("#!/bin/sh\n")
    (hostdir / "run").chmod(0o4755)
    (hostdir / "shared").mkdir()
    (hostdir / "shared").chmod(0o2755)
    done = pale.run("run", "-q", "--project", "live", "--project-path", hostdir, "--", "sh", "-c", """
        cp run plain && cp -p run exact; echo cp $?; tar -cf a.tar run && mkdir x && tar -C x -xf a.tar; echo tar $?
        cd shared && mkdir -p a/b && tar -xf ../a.tar; cp -r a c && rm -r c && echo fine""", cwd=hostdir)
    assert done.text.endswith("fine\n"), done
    assert not [p for p in hostdir.rglob("*") if p.is_file() and p != hostdir / "run" and gives_rights(p)]


@pytest.mark.basic
def test_root_cannot_be_taken(pale, box):
    done = pale.py(box, "import os\nfor f in (lambda: os.setuid(0), lambda: os.setresuid(0,0,0), lambda: os.setgid(0), lambda: os.setgroups([0])):\n  try: f(); print('OPEN')\n  except OSError: pass")
    assert "OPEN" not in done.text


@pytest.mark.basic
def test_nobody_is_root_on_the_host(pale, box):
    me = os.geteuid()
    users = ["agent"]
    if pale.exec(box, "true", flags=["--user", "root"]).code == 0:
        users.append("root")
    for user in users:
        time = f"61.{secrets.randbelow(10**9):09}"  # which nobody else sleeps for
        p = pale.start("exec", "--user", user, box, "--", "sh", "-c", f"echo up; exec sleep {time}")
        assert p.stdout.readline() == b"up\n"
        words = f"sleep\0{time}\0".encode()
        seen = wait_until(lambda words=words: ids_of(words), 30)
        p.kill()
        p.wait()
        assert seen
        for ids in seen:
            if os.path.exists("/proc/self/uid_map") and open("/proc/self/uid_map").read().split()[2] == "4294967295":
                assert 0 not in ids, (user, ids)
                assert all(i >= 0x40000000 for i in ids) if me == 0 else (ids[:4] == [me] * 4 or all(i > 65535 for i in ids[:4])), (user, ids)


@pytest.mark.basic
def test_no_group_of_the_host_is_kept_where_it_can_be_dropped(pale, box):
    """Also not by pale-init. Where a box has one id, the kernel keeps them, and the doctor says so."""
    init = pale.info(box)["init_pid"]
    groups = re.search(r"^Groups:\t(.*)$", open(f"/proc/{init}/status").read(), re.M)[1].split()
    inside = pale.exec(box, "grep", "Groups:", "/proc/self/status").text.split()[1:]
    if pale.exec(box, "true", flags=["--user", "root"]).code == 0:
        assert groups == [] and inside == []
    else:
        rows = {r["name"]: r for r in pale.run("doctor", "--json").json()["mechanisms"]}
        others = [g for g in groups if int(g) != os.getegid()]
        assert (rows["supplementary groups"]["state"] == "degraded") == bool(others), (others, rows["supplementary groups"])


def test_no_namespace_can_be_entered(pale, box):
    done = pale.sh(box, "for n in user mnt net pid ipc uts; do nsenter --$n=/proc/1/ns/$n true && echo OPEN $n; nsenter --$n=/proc/self/ns/$n true && echo OPEN own $n; done")
    assert "OPEN" not in done.text, done


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="other ABIs are a matter of x86")
def test_another_abi_ends_the_process(pale, box):
    done = pale.py(box, attacks.SYSCALL + "print('before', flush=True); call(0x40000000 + 39); print('after')")
    assert done.text == "before\n" and done.code == 159, done


def test_filter_is_on_in_every_kind_of_command(pale, box):
    for args in (["run", "-q"], ["exec", "-q", box], ["exec", "-q", "-i", box]):
        done = pale.run(*args, "--", "grep", "Seccomp:", "/proc/self/status")
        assert done.text.split() == ["Seccomp:", "2"]
    log = subprocess.run([pale.program, "exec", "-d", box, "--", "grep", "Seccomp:", "/proc/self/status"], env=pale.env, capture_output=True, text=True, timeout=20)
    pale.run("wait", box, log.stdout.strip())
    assert pale.ok("logs", box, log.stdout.strip()).text.split() == ["Seccomp:", "2"]


def test_standard_descriptors_are_the_boxs_own(pale, root):
    """A redirected file or our terminal never goes in: bytes are copied."""
    with open(root / "out", "wb") as f:
        subprocess.run([pale.program, "run", "-q", "--", "readlink", "/proc/self/fd/1"], env=pale.env, stdout=f, stdin=subprocess.DEVNULL, timeout=20)
    assert (root / "out").read_text().startswith("pipe:")


def test_the_boxs_terminal_is_not_ours(pale, terminal):
    t = terminal("run", "-it", "--", "sh", "-c", "tty; stat -c %t:%T:%i $(tty); ls /dev/pts")
    t.wait()
    assert os.ttyname(t.slave).encode() not in t.seen or b"/dev/pts/0" in t.seen


def test_only_loopback_is_there(pale, box):
    names = [line.split(":")[0].strip() for line in pale.exec(box, "cat", "/proc/net/dev").text.splitlines()[2:]]
    assert names == ["lo"]
    assert pale.exec(box, "cat", "/proc/net/route").text.count("\n") <= 1
    assert pale.py(box, "import socket; s=socket.create_server(('127.0.0.1', 0)); c=socket.create_connection(s.getsockname()); print('own loopback works')").code == 0


def test_a_pattern_passes_no_secret(pale, canary):
    done = pale.run("run", "-q", "--env", "AWS_*", "--", "env", env={"AWS_SECRET_ACCESS_KEY": canary, "AWS_REGION": "here"})
    assert canary not in done.text, done


@pytest.mark.basic
def test_only_the_boxs_processes_are_there(pale, box):
    done = pale.sh(box, "ls /proc | grep -E '^[0-9]+$' | wc -l; cat /proc/1/comm")
    count, one = done.text.split()
    assert int(count) < 12 and one == "pale-init"


@pytest.mark.basic
def test_no_file_or_process_between_boxes(pale, canary):
    pale.create("one")
    pale.create("two")
    p = pale.start("exec", "one", "--", "sh", "-c", f"echo {canary} > ~/f; echo {canary} > /tmp/f; echo {canary} > /dev/shm/f; echo {canary} > /run/f; echo up; exec sleep 60")
    assert p.stdout.readline() == b"up\n"
    done = pale.sh("two", "cat /home/agent/f /tmp/f /dev/shm/f /run/f /var/tmp/f; ps axww; grep -r canary- /proc/*/cmdline /dev/shm /tmp /run 2>/dev/null")
    assert canary not in done.text and "sleep 60" not in done.text
    p.kill()
    p.wait()
    assert wait_until(lambda: pale.sh("one", "pgrep sleep").code == 1)


def test_host_names_are_their_own(pale):
    pale.create("one")
    pale.create("two")
    assert pale.exec("one", "hostname").text == "one\n" and pale.exec("two", "hostname").text == "two\n"
    assert shutil.which("hostname") is None or pathlib.Path("/proc/sys/kernel/hostname").read_text() not in ("one\n", "two\n")
