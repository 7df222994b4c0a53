# SPDX-License-Identifier: Apache-2.0
"""C4 to C8 and C15: descriptors, terminals, network, environment, processes, other boxes."""
import os
import pathlib
import shutil
import socket
import subprocess
import threading
import time

import pytest

from harness import wait_until

FDS = """import os
for fd in range(3, 1024):
    try: print(fd, os.readlink('/proc/self/fd/%d' % fd))
    except OSError: pass"""


@pytest.mark.basic
@pytest.mark.weaken("fds")
def test_c04_three_descriptors_and_no_more(wall, root):
    """Seen from the program's first instruction on: a shell opens none of its own here."""
    held = open(root / "held", "w")
    os.set_inheritable(held.fileno(), True)
    p = wall.pale
    box = p.create("b")
    out = ""
    for args in (["run", "-q"], ["exec", "-q", box], ["exec", "-q", "-i", box]):
        done = subprocess.run([p.program, *args, "--", "bash", "-c", "for f in /proc/$$/fd/*; do f=${f##*/}; [ $f -gt 2 ] && [ $f != 255 ] && readlink /proc/$$/fd/$f; done"],
                              env=p.env, input=b"", capture_output=True, pass_fds=[held.fileno()], timeout=20, cwd=p.home)
        out += done.stdout.decode()
    held.close()
    wall.judge(out.strip() != "", out)


def test_c04_standard_descriptors_are_the_boxs_own(pale, root):
    """A redirected file or our terminal never goes in: bytes are copied."""
    with open(root / "out", "wb") as f:
        subprocess.run([pale.program, "run", "-q", "--", "readlink", "/proc/self/fd/1"], env=pale.env, stdout=f, stdin=subprocess.DEVNULL, timeout=20)
    assert (root / "out").read_text().startswith("pipe:")


@pytest.mark.basic
@pytest.mark.weaken("seccomp")
def test_c05_no_bytes_into_a_terminals_input(wall):
    import harness
    script = """import fcntl, os
for fd in (0, os.open('/dev/tty', os.O_RDWR)):
    for req in (0x5412, 0x5412 | 1 << 32, 0x541C, 0x5423):
        try: fcntl.ioctl(fd, req & 0xffffffff, b'x'); print('TYPED', hex(req))
        except OSError as e: print('refused', e.errno)"""
    t = harness.Terminal([wall.pale.program, "run", "-it", "--", "python3", "-c", script], wall.pale.env)
    t.wait()
    seen = t.seen
    t.close()
    assert b"refused" in seen or b"TYPED" in seen, seen
    errnos = {int(w) for w in seen.decode().replace("refused", " ").split() if w.isdigit()}
    if wall.weakened and b"TYPED" not in seen and errnos <= {5, 22, 25, 1}:
        pytest.skip("this kernel has no TIOCSTI (dev.tty.legacy_tiocsti is 0), so there is nothing to leak")
    wall.judge(b"TYPED" in seen, seen)


def test_c05_the_boxs_terminal_is_not_ours(pale, terminal):
    t = terminal("run", "-it", "--", "sh", "-c", "tty; stat -c %t:%T:%i $(tty); ls /dev/pts")
    t.wait()
    assert os.ttyname(t.slave).encode() not in t.seen or b"/dev/pts/0" in t.seen


@pytest.fixture
def listener():
    """Sockets of the host that would answer: TCP on loopback and an abstract Unix socket."""
    tcp = socket.create_server(("127.0.0.1", 0))
    unix = socket.socket(socket.AF_UNIX)
    name = "plt-" + os.urandom(6).hex()
    unix.bind("\0" + name)
    unix.listen()
    stop = threading.Event()

    def serve(s):
        s.settimeout(0.2)
        while not stop.is_set():
            try:
                c, _ = s.accept()
                c.sendall(b"HOST")
                c.close()
            except OSError:
                pass

    threads = [threading.Thread(target=serve, args=(s,)) for s in (tcp, unix)]
    for t in threads:
        t.start()
    yield tcp.getsockname()[1], name
    stop.set()
    for t in threads:
        t.join()
    tcp.close()
    unix.close()


CONNECT = """import socket, sys
port, name, kind = int(sys.argv[1]), sys.argv[2], sys.argv[3]
try:
    if kind == 'tcp': s = socket.create_connection(('127.0.0.1', port), 3)
    else: s = socket.socket(socket.AF_UNIX); s.settimeout(3); s.connect(chr(0) + name)
    print(s.recv(4))
except OSError as e: print(e)"""


@pytest.mark.basic
@pytest.mark.weaken("netns")
def test_c06_no_tcp_to_the_hosts_loopback(wall, listener):
    port, name = listener
    done = wall.pale.run("run", "-q", "--", "python3", "-c", CONNECT, port, name, "tcp")
    wall.judge("HOST" in done.text, done)


@pytest.mark.basic
@pytest.mark.weaken("netns,landlock")
def test_c06_no_abstract_socket_of_the_host(wall, listener):
    port, name = listener
    done = wall.pale.run("run", "-q", "--", "python3", "-c", CONNECT, port, name, "unix")
    wall.judge("HOST" in done.text, done)


def test_c06_only_loopback_is_there(pale, box):
    names = [line.split(":")[0].strip() for line in pale.exec(box, "cat", "/proc/net/dev").text.splitlines()[2:]]
    assert names == ["lo"]
    assert pale.exec(box, "cat", "/proc/net/route").text.count("\n") <= 1
    assert pale.py(box, "import socket; s=socket.create_server(('127.0.0.1', 0)); c=socket.create_connection(s.getsockname()); print('own loopback works')").code == 0


@pytest.mark.basic
@pytest.mark.weaken("seccomp")
def test_c06_socket_families(wall):
    script = """import socket
for f in list(range(3, 46)):
    if f in (10, 16): continue
    for t in (1, 2, 3, 5):
        try: socket.socket(f, t); print('OPEN', f, t)
        except OSError: pass
for p in list(range(1, 23)):
    try: socket.socket(16, 3, p); print('OPEN netlink', p)
    except OSError: pass"""
    done = wall.pale.run("run", "-q", "--", "python3", "-c", script)
    wall.judge("OPEN" in done.text, done)


@pytest.mark.basic
@pytest.mark.weaken("env")
def test_c07_no_variable_of_the_host(wall, canary):
    p = wall.pale
    box = p.create("b", env={"PALE_TEST_SECRET": canary, "AWS_SECRET_ACCESS_KEY": canary})
    out = ""
    for args in (["run", "-q"], ["exec", "-q", box]):
        out += p.run(*args, "--", "sh", "-c", "env; cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n'", env={"PALE_TEST_SECRET": canary}).text
    wall.judge(canary in out, out[-500:])


def test_c07_a_pattern_passes_no_secret(pale, canary):
    done = pale.run("run", "-q", "--env", "AWS_*", "--", "env", env={"AWS_SECRET_ACCESS_KEY": canary, "AWS_REGION": "here"})
    assert canary not in done.text, done


@pytest.mark.basic
def test_c08_only_the_boxs_processes_are_there(pale, box):
    done = pale.sh(box, "ls /proc | grep -E '^[0-9]+$' | wc -l; cat /proc/1/comm")
    count, one = done.text.split()
    assert int(count) < 12 and one == "pale-init"


@pytest.mark.basic
def test_c08_no_process_of_the_host_is_seen_or_signalled(wall):
    """No twin: without a pid namespace of its own the kernel gives a box no procfs, so there is no such box to attack."""
    victim = subprocess.Popen(["sleep", "600"])
    try:
        script = f"""import os
p = {victim.pid}
try: print('SEEN', open('/proc/%d/cmdline' % p).read() == 'sleep\\0600\\0')
except OSError: pass
try: os.kill(p, 10); print('SENT')
except OSError as e: print(e)"""
        done = wall.pale.run("run", "-q", "--cwd", "/", "--", "python3", "-c", script)
        time.sleep(0.1)
        wall.judge("SEEN True" in done.text or victim.poll() is not None, done)
    finally:
        victim.kill()
        victim.wait()


INIT = """import os, ctypes
libc = ctypes.CDLL(None, use_errno=True)
for f in ('environ', 'mem', 'maps', 'auxv', 'syscall', 'stack'):
    try:
        if open('/proc/1/' + f, 'rb').read(1) or f == 'environ': print('READ', f)
    except OSError: pass
for l in ('exe', 'cwd', 'root', 'fd/3', 'fd/4', 'ns/user', 'ns/mnt'):
    try: print('LINK', l, os.readlink('/proc/1/' + l))
    except OSError: pass
if libc.ptrace(16, 1, 0, 0) == 0: print('TRACED')
for s in (9, 15, 19):
    try: os.kill(1, s); print('SIGNALLED')
    except OSError: pass"""


@pytest.mark.basic
@pytest.mark.weaken("dumpable,inner-userns,caps")
def test_c08_init_is_closed(wall):
    box = wall.pale.create("b")
    done = wall.pale.py(box, INIT)
    wall.judge(any(w in done.text for w in ("READ", "LINK", "TRACED")), done)
    assert wall.pale.exec(box, "echo", "alive").text == "alive\n"


# --- two boxes ---

@pytest.fixture
def pair(wall):
    return wall.pale.create("one"), wall.pale.create("two")


@pytest.mark.basic
@pytest.mark.weaken("ipcns,seccomp")
def test_c15_no_shared_memory_between_boxes(wall, pair):
    make = """import ctypes, os, time
l = ctypes.CDLL(None, use_errno=True); l.shmat.restype = ctypes.c_void_p
i = l.shmget(0x706c7401, 4096, 0o1666)
if i >= 0:
    a = l.shmat(i, None, 0); ctypes.memmove(a, b'BOXONE', 6)
print('made', i, flush=True); time.sleep(20)
"""
    look = """import ctypes
l = ctypes.CDLL(None, use_errno=True); l.shmat.restype = ctypes.c_void_p
i = l.shmget(0x706c7401, 0, 0)
print(ctypes.string_at(l.shmat(i, None, 0x1000), 6) if i >= 0 else 'none')"""
    p = wall.pale.start("exec", "one", "--", "python3", "-c", make)
    assert p.stdout.readline().startswith(b"made")
    done = wall.pale.py("two", look)
    p.kill()
    p.wait()
    if wall.weakened:  # in the host's namespace it would stay
        wall.pale.py("two", "import ctypes; l = ctypes.CDLL(None); i = l.shmget(0x706c7401, 0, 0); l.shmctl(i, 0, None)")
    wall.judge("BOXONE" in done.text, done)


@pytest.mark.basic
@pytest.mark.weaken("netns,landlock")
def test_c15_no_abstract_socket_between_boxes(wall, pair):
    name = "plt-" + os.urandom(6).hex()
    p = wall.pale.start("exec", "one", "--", "python3", "-c",
                        f"import socket\ns = socket.socket(socket.AF_UNIX); s.bind(chr(0)+'{name}'); s.listen(); print('up', flush=True); c, _ = s.accept(); c.sendall(b'HOST'); c.close(); s.accept()")
    assert p.stdout.readline() == b"up\n"
    done = wall.pale.py("two", CONNECT.replace("int(sys.argv[1]), sys.argv[2], sys.argv[3]", f"0, '{name}', 'unix'"))
    p.kill()
    p.wait()
    wall.judge("HOST" in done.text, done)


@pytest.mark.basic
def test_c15_no_file_or_process_between_boxes(pale, canary):
    pale.create("one")
    pale.create("two")
    p = pale.start("exec", "one", "--", "sh", "-c", f"echo {canary} > ~/f; echo {canary} > /tmp/f; echo {canary} > /dev/shm/f; echo {canary} > /run/f; echo up; exec sleep 60")
    assert p.stdout.readline() == b"up\n"
    done = pale.sh("two", "cat /home/agent/f /tmp/f /dev/shm/f /run/f /var/tmp/f; ps axww; grep -r canary- /proc/*/cmdline /dev/shm /tmp /run 2>/dev/null")
    assert canary not in done.text and "sleep 60" not in done.text
    p.kill()
    p.wait()
    assert wait_until(lambda: pale.sh("one", "pgrep sleep").code == 1)


def test_c15_host_names_are_their_own(pale):
    pale.create("one")
    pale.create("two")
    assert pale.exec("one", "hostname").text == "one\n" and pale.exec("two", "hostname").text == "two\n"
    assert shutil.which("hostname") is None or pathlib.Path("/proc/sys/kernel/hostname").read_text() not in ("one\n", "two\n")
