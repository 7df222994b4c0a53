# SPDX-License-Identifier: Apache-2.0
"""C9 to C14: the kernel's own files, devices, privilege, ids, the wall itself, system calls."""
import os
import re
import stat
import subprocess

import attacks
import pytest

from harness import wait_until


@pytest.mark.basic
@pytest.mark.weaken("proc-mask,landlock")
def test_c09_kernel_settings_are_read_only(wall):
    """Some files below /proc/sys belong to the box's own namespaces: those its ids could write if the mount let them."""
    script = """import os
for d, _, fs in os.walk('/proc/sys'):
    for f in fs:
        try: fd = os.open(d + '/' + f, os.O_WRONLY); print('OPEN', d + '/' + f); os.close(fd)
        except OSError: pass
for f in ('/proc/sysrq-trigger', '/proc/irq/default_smp_affinity', '/proc/mtrr', '/proc/timer_list', '/proc/kmsg', '/proc/kcore'):
    try: fd = os.open(f, os.O_WRONLY); st = os.fstat(fd); print('OPEN', f) if st.st_rdev != os.makedev(1, 3) else 0; os.close(fd)
    except OSError: pass
try: os.stat('/proc/sys/kernel/core_pattern'); w = os.access('/proc/sys/kernel', os.F_OK); m = [l for l in open('/proc/self/mountinfo') if ' /proc/sys ' in l]; print('WRITABLE' if not m or ' ro' not in m[-1].split(' - ')[0] else 'ro')
except OSError as e: print(e)"""
    done = wall.pale.run("run", "-q", "--", "python3", "-c", script)
    wall.judge("OPEN" in done.text or "WRITABLE" in done.text, done)


@pytest.mark.basic
@pytest.mark.weaken("proc-mask")
def test_c09_masked_files_say_nothing(wall):
    script = """import os
for f in ('keys', 'timer_list', 'sched_debug', 'interrupts', 'modules', 'kallsyms', 'slabinfo', 'vmallocinfo', 'iomem', 'ioports', 'kcore', 'config.gz', 'key-users', 'latency_stats', 'mdstat', 'pagetypeinfo', 'locks', 'swaps', 'crypto', 'devices', 'misc', 'consoles'):
    try:
        if open('/proc/' + f, 'rb').read(16): print('SHOWN', f)
    except OSError: pass
for d in ('acpi', 'asound', 'scsi', 'bus', 'fs', 'irq', 'driver'):
    try:
        if os.listdir('/proc/' + d): print('SHOWN', d)
    except OSError: pass
print(os.path.exists('/sys/kernel') and 'SHOWN sys')"""
    done = wall.pale.run("run", "-q", "--", "python3", "-c", script)
    wall.judge("SHOWN" in done.text, done)


@pytest.mark.basic
@pytest.mark.weaken("proc-mask")
def test_c09_the_host_is_not_known_by_its_boot(wall):
    host = open("/proc/sys/kernel/random/boot_id").read()
    done = wall.pale.run("run", "-q", "--", "cat", "/proc/sys/kernel/random/boot_id")
    assert len(done.text.strip()) >= 32, done
    wall.judge(done.text == host, done)


@pytest.mark.basic
def test_c09_cgroups_begin_at_the_box(pale, box):
    for args in (["run", "-q"], ["exec", "-q", box]):
        paths = {line.split(":", 2)[2] for line in pale.run(*args, "--", "cat", "/proc/self/cgroup").text.splitlines()}
        assert paths <= {"/"}, paths


@pytest.mark.basic
def test_c10_six_devices(pale, box):
    names = pale.py(box, """import os, stat
for d, _, fs in os.walk('/dev'):
    for f in fs:
        m = os.lstat(d + '/' + f).st_mode
        if stat.S_ISCHR(m) or stat.S_ISBLK(m): print(d + '/' + f)""").text.split()
    assert {n for n in names if not n.startswith("/dev/pts")} == {f"/dev/{n}" for n in ("null", "zero", "full", "random", "urandom", "tty")}


@pytest.mark.basic
@pytest.mark.weaken("seccomp,caps,inner-userns")
def test_c10_no_device_can_be_made(wall):
    """Even with every lock of ours off, the kernel itself refuses a device in a user namespace; what opens is the call."""
    script = attacks.SYSCALL + """
r, e = call(259 if X86 else 33, -100, b'/tmp/dev', 0o20666, os.makedev(1, 3))
try: print('OPEN' if r == 0 else 'refused', e, os.stat('/tmp/dev'))
except OSError: print('none', e)"""
    done = wall.pale.run("run", "-q", "--", "python3", "-c", script)
    if wall.weakened and "OPEN" not in done.text:
        pytest.skip("the kernel refuses devices in user namespaces whatever we do; there is no leak to see")
    wall.judge("OPEN" in done.text, done)


def status(pale, *args):
    done = pale.run(*args, "--", "cat", "/proc/self/status")
    return dict(line.split(":\t", 1) for line in done.text.splitlines() if ":\t" in line), done


@pytest.mark.basic
@pytest.mark.weaken("caps")
def test_c11_no_capability_in_any_set(wall):
    box = wall.pale.create("b")
    held = []
    for args in (["run", "-q"], ["exec", "-q", box], ["exec", "-q", "--user", "root", box]):
        st, done = status(wall.pale, *args)
        if not st and done.code == 125:
            continue  # a box with one user has no root to be
        held += [k for k in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb") if int(st[k], 16)]
    wall.judge(bool(held), held)


@pytest.mark.basic
@pytest.mark.weaken("nnp,seccomp")
def test_c11_no_new_privileges(wall):
    st, done = status(wall.pale, "run", "-q")
    wall.judge(st["NoNewPrivs"] == "0", done)


@pytest.mark.basic
def test_c11_setuid_programs_are_powerless(pale, box):
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


def gives_rights(path):
    """Would this file give its owner's rights to whoever runs it on the host?"""
    return bool(path.lstat().st_mode & (stat.S_ISUID | stat.S_ISGID)) or "security.capability" in os.listxattr(path)


@pytest.mark.basic
@pytest.mark.weaken("seccomp")
def test_c11_no_file_that_gives_rights_is_left_in_a_project(wall, hostdir):
    """The host's own mount is not nosuid, and what a box of root writes there belongs to root."""
    for name, flags in (("project", ("--project", "live", "--project-path")), ("write", ("--write",))):
        folder = hostdir / name
        folder.mkdir()
        done = wall.pale.run("run", "-q", *flags, folder, "--", "python3", "-c", attacks.SETID, folder)
        assert done.text == "tried\n" and len(list(folder.iterdir())) > 10, done
        wall.judge(any(gives_rights(f) for f in folder.iterdir()), [f.name for f in folder.iterdir() if gives_rights(f)])


@pytest.mark.basic
def test_c11_tools_that_copy_modes_go_on_without_those_bits(pale, hostdir):
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
def test_c11_root_cannot_be_taken(pale, box):
    done = pale.py(box, "import os\nfor f in (lambda: os.setuid(0), lambda: os.setresuid(0,0,0), lambda: os.setgid(0), lambda: os.setgroups([0])):\n  try: f(); print('OPEN')\n  except OSError: pass")
    assert "OPEN" not in done.text


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


@pytest.mark.basic
def test_c12_nobody_is_root_on_the_host(pale, box):
    me = os.geteuid()
    users = ["agent"]
    if pale.exec(box, "true", flags=["--user", "root"]).code == 0:
        users.append("root")
    for user in users:
        p = pale.start("exec", "--user", user, box, "--", "sh", "-c", "echo up; exec sleep 61")
        assert p.stdout.readline() == b"up\n"
        seen = wait_until(lambda: ids_of(b"sleep\x0061\x00"))
        p.kill()
        p.wait()
        assert seen
        for ids in seen:
            if os.path.exists("/proc/self/uid_map") and open("/proc/self/uid_map").read().split()[2] == "4294967295":
                assert 0 not in ids, (user, ids)
                assert all(i >= 0x40000000 for i in ids) if me == 0 else (ids[:4] == [me] * 4 or all(i > 65535 for i in ids[:4])), (user, ids)


@pytest.mark.basic
def test_c12_no_group_of_the_host_is_kept_where_it_can_be_dropped(pale, box):
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


MOUNTS = [("mount", (b"none", b"/tmp", b"tmpfs", 0, 0)), ("mount", (b"", b"/usr", b"", 0x1020, 0)), ("umount2", (b"/proc", 2)),
          ("pivot_root", (b"/tmp", b"/tmp")), ("chroot", (b"/tmp",)), ("fsopen", (b"tmpfs", 0)), ("open_tree", (-100, b"/usr", 1)),
          ("mount_setattr", (-100, b"/usr", 0, 0, 32)), ("sethostname", (b"evil", 4)), ("settimeofday", (0, 0))]
NAMESPACES = [("unshare", (flag,)) for flag in (0x10000000, 0x20000, 0x20000000, 0x40000000, 0x8000000, 0x4000000, 0x2000000)]


def opened(done):
    return [line for line in done.text.splitlines() if " open " in line]


@pytest.mark.basic
@pytest.mark.weaken("seccomp,inner-userns,caps,landlock,user-max,nnp")
def test_c13_the_wall_cannot_be_changed(wall):
    done = wall.pale.run("run", "-q", "--", "python3", "-c", attacks.tries([m for m in MOUNTS if m[0] != "settimeofday"]))
    wall.judge(bool(opened(done)), done)


@pytest.mark.basic
@pytest.mark.weaken("seccomp,user-max")
def test_c13_no_namespace_can_be_made(wall):
    done = wall.pale.run("run", "-q", "--", "python3", "-c", attacks.tries(NAMESPACES[:1]))
    wall.judge(bool(opened(done)), done)


@pytest.mark.parametrize("off", ["seccomp", "user-max"])
def test_c13_each_lock_on_namespaces_holds_alone(pale, off):
    twin = pale.weakened(off)
    if not os.access(twin.program, os.X_OK):
        pytest.skip("the weakened build is not built")
    done = twin.run("run", "-q", "--", "python3", "-c", attacks.tries(NAMESPACES))
    assert not opened(done) and "unshare refused" in done.text, done


LIMIT = attacks.SYSCALL + """
import struct
old = ctypes.create_string_buffer(16)
for pid in (1, os.getppid()):
    r, e = call(302 if X86 else 261, pid, 7, struct.pack('QQ', 9, 9), old)
    print('CHANGED' if r == 0 else 'refused', pid, e, flush=True)
"""


@pytest.mark.basic
@pytest.mark.weaken("seccomp")
def test_c13_limits_of_init_and_runners_stay(wall):
    """Where a command has the id of pale-init, as in a box with one id or as the box's root, the kernel would let it."""
    box = wall.pale.create("b")
    root = wall.pale.exec(box, "true", flags=["--user", "root"]).code == 0
    done = wall.pale.exec(box, "python3", "-c", LIMIT, flags=["--user", "root"] if root else [])
    wall.judge("CHANGED" in done.text, done)
    if not wall.weakened:
        assert done.text.count("refused") == 2 and wall.pale.exec(box, "sh", "-c", "ulimit -n 16 && ulimit -n").text == "16\n"


def test_c13_no_namespace_can_be_entered(pale, box):
    done = pale.sh(box, "for n in user mnt net pid ipc uts; do nsenter --$n=/proc/1/ns/$n true && echo OPEN $n; nsenter --$n=/proc/self/ns/$n true && echo OPEN own $n; done")
    assert "OPEN" not in done.text, done


FORBIDDEN = [("io_uring_setup", (1, b"\0" * 120)), ("keyctl", (0, -4, 0)), ("add_key", (b"user", b"x", b"y", 1, -4)), ("bpf", (0, b"\0" * 72, 72)),
             ("perf_event_open", (b"\0" * 128, 0, -1, -1, 0)), ("userfaultfd", (1,)), ("ptrace", (0, 0, 0, 0)), ("process_vm_readv", (1, 0, 0, 0, 0, 0)),
             ("open_by_handle_at", (-100, b"\0" * 16, 0)), ("name_to_handle_at", (-100, b"/", b"\0" * 16, 0, 0)), ("syslog", (3, 0, 0)), ("kcmp", (1, 1, 0, 0, 0)),
             ("fanotify_init", (0, 0)), ("vmsplice", (1, 0, 0, 0)), ("splice", (0, 0, 1, 0, 0, 0)), ("tee", (0, 1, 0, 0)), ("acct", (0,)), ("swapon", (b"/x", 0)), ("io_setup", (1, 0))]


@pytest.mark.basic
@pytest.mark.weaken("seccomp")
def test_c14_calls_off_the_list(wall):
    done = wall.pale.run("run", "-q", "--", "python3", "-c", attacks.tries(FORBIDDEN))
    answers = {line.split()[0]: line.split()[1:] for line in done.text.splitlines()}
    assert len(answers) == len({n for n, _ in FORBIDDEN}), done
    got_through = [n for n, (word, errno) in answers.items() if word == "open" or int(errno) not in (1, 38)]
    wall.judge(bool(got_through), got_through)


@pytest.mark.weaken("seccomp")
def test_c14_calls_nobody_knows_are_not_there(wall):
    """Calls of young kernels that are on no list of ours: shadow stacks, mount listings, security modules, file attributes."""
    done = wall.pale.run("run", "-q", "--", "python3", "-c", attacks.SYSCALL + """
for nr in [453, 457, 458, 459, 460, 461, 467, 468, 469, 470] + list(range(471, 600)):
    r, e = call(nr, -1, -1, -1, -1, -1, -1)
    if e != 38: print('KNOWN', nr, e)""")
    wall.judge("KNOWN" in done.text, done)


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="other ABIs are a matter of x86")
def test_c14_another_abi_ends_the_process(pale, box):
    done = pale.py(box, attacks.SYSCALL + "print('before', flush=True); call(0x40000000 + 39); print('after')")
    assert done.text == "before\n" and done.code == 159, done


def test_c14_filter_is_on_in_every_kind_of_command(pale, box):
    for args in (["run", "-q"], ["exec", "-q", box], ["exec", "-q", "-i", box]):
        done = pale.run(*args, "--", "grep", "Seccomp:", "/proc/self/status")
        assert done.text.split() == ["Seccomp:", "2"]
    log = subprocess.run([pale.program, "exec", "-d", box, "--", "grep", "Seccomp:", "/proc/self/status"], env=pale.env, capture_output=True, text=True, timeout=20)
    pale.run("wait", box, log.stdout.strip())
    assert pale.ok("logs", box, log.stdout.strip()).text.split() == ["Seccomp:", "2"]
