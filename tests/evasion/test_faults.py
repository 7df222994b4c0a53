# SPDX-License-Identifier: Apache-2.0
"""When something on the way out breaks: nothing goes out, it comes back by itself, and other boxes notice nothing."""
import os
import pathlib
import signal
import tempfile
import time

import harness
import pytest
from internet import internet, places

MEMORY_MOST = 64 << 20
GOOD = "curl -sS -m 5 http://good.test/"
# Connections that say nothing, as many as there are descriptors for, let go all at once, until there were enough.
FLOOD = """
import resource, socket, struct, sys
to, total = (sys.argv[1], int(sys.argv[2])), int(sys.argv[3])
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
most = min(resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 50, 5000)
made = refused = 0
while made + refused < total:
    held = []
    for _ in range(most):
        s = socket.socket()
        s.setblocking(False)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # else their ports are kept for a minute
        try:
            s.connect(to)
        except BlockingIOError:
            pass
        except OSError:
            refused += 1
            s.close()
            continue
        held.append(s)
        made += 1
    for s in held:
        s.close()
print(made + refused)
"""


class Two:
    """Two boxes in one fake internet."""

    def __init__(self, net, pale):
        self.net, self.pale = net, pale
        pale.wrap = net.wrap
        for name in "ab":
            pale.ok("create", name, "--policy", net.policy(pale.root / "policy.json"))

    def sh(self, box, script, **more):
        return self.pale.sh(box, script, flags=["-q"], **more)

    def below(self, parent):
        return next((pid for pid in harness.pids() if (st := harness.stat_of(pid)) and st[0] == "pale-gateway" and st[2] == parent and st[1] != "Z"), None)

    def warder(self, box):
        """The process that holds the box's sockets, and starts who serves them again."""
        keeper = next(pid for pid, (name, words) in harness.processes_of(self.pale.root).items() if name == "pale-keeper" and f" {box} " in f" {words.decode()} ")
        return self.below(keeper)

    def gateway(self, box):
        """The process that serves."""
        return harness.wait_until(lambda: self.below(self.warder(box)))

    def works(self, box):
        return self.net.canary in self.sh(box, GOOD).text

    def audit(self, box):
        return (self.pale.root / "state" / "pale" / "boxes" / self.pale.box_id(box) / "audit").read_text()


@pytest.fixture(scope="module")
def two(session_root, pale_at):
    root = pathlib.Path(tempfile.mkdtemp(dir=session_root, prefix=""))
    try:
        with internet() as net, pale_at(root) as p:
            yield Two(net, p)
    finally:
        harness.remove_root(root)


@pytest.fixture
def unharmed(two):
    """The other box works before, after, and its gateway is the same process."""
    assert two.works("b")
    before = two.gateway("b")
    yield
    assert two.works("b") and two.gateway("b") == before


def private_bytes(pid):
    return next(int(line.split()[1]) << 10 for line in open(f"/proc/{pid}/status") if line.startswith("RssAnon:"))


def test_a_gateway_that_is_killed_is_started_again(two, unharmed):
    assert two.works("a")
    for n in range(3):
        old = two.gateway("a")
        os.kill(old, signal.SIGKILL)
        assert harness.wait_until(lambda: two.works("a"), seconds=10), two.audit("a")[-1000:]
        assert two.gateway("a") != old
    assert '"event":"net.restarted"' in two.audit("a")


def test_nothing_goes_out_while_a_gateway_stands_still(two, unharmed):
    pid = two.gateway("a")
    os.kill(pid, signal.SIGSTOP)
    try:
        mark = two.net.mark()
        done = two.sh("a", "curl -sS -m 1 http://good.test/; curl -sS -m 1 http://192.175.48.66/; curl -sS -m 1 http://169.254.169.254/")
        assert done.code and two.net.is_silent(mark), two.net.events(mark)
        assert two.works("b")
    finally:
        os.kill(pid, signal.SIGCONT)
    assert harness.wait_until(lambda: two.works("a"), seconds=10)


def test_a_connection_ends_with_its_gateway(two, unharmed):
    job = two.pale.start("exec", "-q", "a", "--", "curl", "-sS", "-m", "20", "http://drip.ok.test/")
    mark = two.net.mark()
    assert two.net.wait_for(mark, lambda e: e["kind"] == "open") or two.net.events(mark)
    os.kill(two.gateway("a"), signal.SIGKILL)
    assert job.wait(timeout=5) in (18, 52, 56), job.stderr.read()
    assert harness.wait_until(lambda: two.works("a"), seconds=10)


def test_without_a_name_server_names_fail_readably_and_come_back(two, unharmed):
    two.net.stop("names")
    try:
        began = time.monotonic()
        done = two.sh("a", "curl -sS -m 15 http://fresh.ok-zone.test/")
        assert "Could not resolve host" in done.errors and time.monotonic() - began < 15, done
        assert two.works("a")  # what is known already is still known
    finally:
        two.net.start("names")
    assert harness.wait_until(lambda: two.net.canary in two.sh("a", "curl -sS -m 5 http://fresh2.ok-zone.test/").text, seconds=10)


def test_the_hosts_own_files_are_read_again_when_they_change(two, unharmed):
    other, elsewhere = places.v4(places.OTHER), places.v4(54)
    hosts, resolv = (two.net.folder / "hosts").read_text(), (two.net.folder / "resolv.conf").read_text()
    mark = two.net.mark()
    try:
        two.net.write("hosts", hosts + f"{other} later.ok-zone.test\n")
        assert harness.wait_until(lambda: f"this is {other} " in two.sh("a", "curl -sS -m 5 http://later.ok-zone.test/").text, seconds=10)
        two.net.write("resolv.conf", f"nameserver {elsewhere}\n")
        assert harness.wait_until(lambda: two.sh("a", "getent hosts $(date +%N).ok-zone.test") and any(e["to"] == elsewhere for e in two.net.events(mark)), seconds=10)
    finally:
        two.net.write("hosts", hosts)
        two.net.write("resolv.conf", resolv)


LIES = ("silent", "garbage", "wrong-id", "wrong-name", "wrong-type", "servfail", "refused", "pointer-loop", "huge", "alias-loop")


def test_a_name_server_that_lies_is_not_believed(two, unharmed):
    mark = two.net.mark()
    script = f"for n in {' '.join(LIES)}; do (curl -sS -m 12 http://$n.ok.test/; echo $n $?) & done; sleep 0.5; {GOOD}; wait"
    done = two.sh("a", script)
    assert all(f"{name} 6\n" in done.text for name in LIES), done
    assert [e["host"] for e in two.net.events(mark) if e["kind"] == "request"] == ["good.test"]  # which did not have to wait


@pytest.mark.parametrize("name", ["many", "truncated", "late", "alias", "extra"])
def test_a_name_server_that_is_odd_is_understood(two, name):
    assert two.net.canary in two.sh("a", f"curl -sS -m 12 http://{name}.ok.test/").text


@pytest.mark.parametrize("name, codes",
                         [("stall", (28,)), ("mute", (28,)), ("drip", (28,)), ("reset", (56, 52, 22)), ("endless", (28, 56, 22, 100)), ("closed", (0, 22))])
def test_a_hostile_server_holds_up_nobody(two, unharmed, name, codes):
    job = two.pale.start("exec", "-q", "a", "--", "curl", "-sS", "-m", "2", "-o", "/dev/null", f"http://{name}.ok.test/")
    for _ in range(3):
        assert two.works("a")
    assert job.wait(timeout=10) in codes, job.stderr.read()
    assert private_bytes(two.gateway("a")) < MEMORY_MOST


def test_many_connections_to_servers_that_stall_leave_room_for_others(two, unharmed):
    script = "for i in $(seq 100); do curl -s -m 6 http://stall.ok.test/$i & done; sleep 1; curl -sS -m 4 http://good.test/; kill $(jobs -p) 2>/dev/null; true"
    assert two.net.canary in two.sh("a", script).text


def test_a_box_whose_gateway_is_gone_for_good_has_no_network(two, unharmed):
    two.pale.ok("create", "c", "--policy", two.pale.root / "policy.json")
    assert two.works("c")
    os.kill(two.warder("c"), signal.SIGKILL)
    assert harness.wait_until(lambda: '"event":"net.lost"' in two.audit("c")), two.audit("c")[-1000:]
    mark = two.net.mark()
    done = two.sh("c",
                  "for u in http://good.test http://192.175.48.10 http://192.175.48.66 http://169.254.169.254; do curl -sS -m 2 $u && echo CAME; done; echo alive")
    assert "CAME" not in done.text and "alive" in done.text and two.net.is_silent(mark), done
    two.pale.ok("stop", "c")
    assert two.works("c")  # which starts it again, with all it needs
    two.pale.ok("rm", "c")


@pytest.mark.limit(240)
@pytest.mark.parametrize("to, total", [((places.v4(places.EVIL), 80), 50000), ((places.v4(places.GOOD), 443), 50000)])
def test_half_open_connections_exhaust_nobody(two, unharmed, to, total):
    """10^5 in all: a box that dials and says nothing, to who may not be reached and to who may."""
    mark = two.net.mark()
    pid = two.gateway("a")
    job = two.pale.start("exec", "-q", "a", "--", "python3", "-c", FLOOD, to[0], str(to[1]), str(total))
    slowest = most = 0
    while job.poll() is None:
        began = time.monotonic()
        assert two.works("b")
        slowest = max(slowest, time.monotonic() - began)
        most = max(most, private_bytes(pid))
    assert job.stdout.read().strip() == str(total).encode(), job.stderr.read()
    assert most < MEMORY_MOST and slowest < 5, (most, slowest)
    assert two.gateway("a") == pid, "the gateway did not outlive it"
    assert harness.wait_until(lambda: two.works("a"), seconds=20)
    assert not two.net.strays(mark)


# Connections that all say whom they want before anybody is let through.
BURST = """
import socket, sys
to, count = (sys.argv[1], 80), int(sys.argv[2])
held = [socket.create_connection(to) for _ in range(count)]
for s in held:
    s.sendall(b"GET / HTTP/1.1\\r\\nHost: good.test\\r\\nConnection: close\\r\\n\\r\\n")
    s.settimeout(8)
print("said", flush=True)
def answered(s):
    try:
        return s.recv(12).startswith(b"HTTP/1.1 200")
    except OSError:
        return False
print(sum(map(answered, held)))
"""


def test_of_many_connections_at_once_none_is_forgotten(two):
    """More than there is room for in the talk between gateway and keeper, in one turn."""
    assert two.works("a")
    pid = two.gateway("a")
    os.kill(pid, signal.SIGSTOP)
    try:
        job = two.pale.start("exec", "-q", "a", "--", "python3", "-c", BURST, places.v4(places.GOOD), "400")
        assert job.stdout.readline() == b"said\n", job.stderr.read()
    finally:
        os.kill(pid, signal.SIGCONT)
    assert job.stdout.readline() == b"400\n", job.stderr.read()
    assert job.wait(timeout=10) == 0 and two.gateway("a") == pid


QUIET = """
import socket, time
s = socket.create_connection(("echo.test", 9999))
s.sendall(b"x")
s.recv(1)
print("open", flush=True)
time.sleep(40)
"""


def sleeps(pid):
    return next(int(line.split()[1]) for line in open(f"/proc/{pid}/status") if line.startswith("voluntary"))


def wakes(pid, seconds):
    before = sleeps(pid)
    time.sleep(seconds)
    return sleeps(pid) - before


def test_a_quiet_connection_wakes_nobody(two):
    pid = two.gateway("a")
    job = two.pale.start("exec", "-q", "a", "--", "python3", "-c", QUIET)
    try:
        assert job.stdout.readline() == b"open\n", job.stderr.read()
        # Those before it may linger, or wait for somebody to speak, for some seconds.
        assert harness.wait_until(lambda: wakes(pid, 1) <= 2, 18), "it wakes up for nobody"
    finally:
        job.kill()
        job.wait()


def cpu_ticks(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        fields = f.read().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def test_a_client_that_was_refused_and_has_gone_costs_nothing(two):
    pid = two.gateway("a")
    for _ in range(4):
        two.pale.run("exec", "-q", "a", "--", "sh", "-c", "curl -sk -m 3 --resolve evil.test:443:192.0.2.77 https://evil.test/; curl -s -m 3 http://192.0.2.77/; true")
    before = cpu_ticks(pid)
    time.sleep(1.5)
    assert cpu_ticks(pid) - before < 20, "it looks at the dead for ever"
