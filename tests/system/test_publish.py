# SPDX-License-Identifier: Apache-2.0
"""Ports of boxes on the host's loopback."""
import concurrent.futures
import contextlib
import os
import pathlib
import signal
import socket
import time

import pytest
from harness import wait_until

# Answers each connection with the number of bytes that came, once its client has said all.
SERVER = """
import socket, sys, threading
def serve(c):
    n = 0
    while (d := c.recv(65536)):
        n += len(d)
    c.sendall(b"%d" % n + b"x" * 1000000)
    c.close()
s = socket.create_server(("127.0.0.1", 8000), backlog=500)
print("ready", flush=True)
while True:
    threading.Thread(target=serve, args=s.accept()[:1], daemon=True).start()
"""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@pytest.fixture
def port():
    return free_port()


@pytest.fixture
def served(pale, port):
    """A box with a server that is published: its name."""
    pale.ok("create", "b", "--network", "filtered", "-p", f"{port}:8000")
    serve(pale, "b")
    return "b"


def serve(pale, box):
    p = pale.start("exec", "-q", box, "--", "python3", "-c", SERVER)
    assert p.stdout.readline() == b"ready\n", p.stderr.read()


def say(port, data, host="127.0.0.1"):
    with socket.create_connection((host, port), timeout=20) as s:
        s.sendall(data)
        s.shutdown(socket.SHUT_WR)
        got = b""
        while (d := s.recv(1 << 20)):
            got += d
    return got


def is_refused(port):
    """At once, one way or another."""
    try:
        return say(port, b"x") == b""
    except TimeoutError:
        return False
    except OSError:
        return True


def answer(n):
    return b"%d" % n + b"x" * 1000000


def test_bytes_go_in_and_out(pale, served, port):
    for n in (0, 1, 3000000):
        assert say(port, b"y" * n) == answer(n)
    net = pale.json("inspect", "--json", served)["network"]
    host = next(h for h in net["hosts"] if h["host"] == "(published)")
    assert host["port"] == 8000 and host["connections"] == 3 and host["bytes_in"] == 3000001 and host["bytes_out"] > 3000000 and net["open"] == 0
    assert "into port 8000" in pale.ok("audit", served).text and f"network.publish {port}:8000" in pale.ok("audit", served).text


def test_the_box_has_no_other_way_out_by_it(pale, served, port):
    assert pale.run("exec", "-q", served, "--", "python3", "-c", f"import socket; socket.create_connection(('127.0.0.1', {port}), 3)").code != 0


def test_more_at_once_than_there_are_sockets_take_turns(pale, served, port):
    with concurrent.futures.ThreadPoolExecutor(150) as pool:
        assert list(pool.map(lambda n: say(port, b"z" * n), range(300))) == [answer(n) for n in range(300)]
    assert pale.json("inspect", "--json", served)["network"]["open"] == 0


def test_nobody_listens_in_the_box(pale, port):
    pale.ok("create", "b", "--network", "filtered", "-p", f"{port}:9")
    assert is_refused(port)


def test_only_on_loopback_and_only_while_it_runs(pale, served, port):
    listening = [x.split() for x in open("/proc/net/tcp").read().splitlines()[1:]]
    assert [x[1] for x in listening if x[1].endswith(f":{port:04X}") and x[3] == "0A"] == [f"0100007F:{port:04X}"]
    pale.ok("stop", served)
    with pytest.raises(ConnectionRefusedError):
        say(port, b"")
    serve(pale, served)
    assert say(port, b"a") == answer(1)
    pale.ok("rm", served)
    with pytest.raises(ConnectionRefusedError):
        say(port, b"")


def test_a_port_that_is_taken_is_told(pale, port):
    with socket.socket() as s:
        s.bind(("127.0.0.1", port))
        s.listen()
        r = pale.run("create", "b", "--network", "filtered", "-p", f"{port}:8000")
        assert r.code == 125 and f"port {port}" in r.errors and "taken" in r.errors and not pale.json("ls", "--json")


def test_quarantine_cuts_it_and_lift_opens_it(pale, served, port):
    with socket.create_connection(("127.0.0.1", port), timeout=20) as s:
        s.sendall(b"held")
        assert wait_until(lambda: pale.json("inspect", "--json", served)["network"]["open"] == 1)
        pale.ok("quarantine", served)
        with contextlib.suppress(ConnectionError):
            assert s.recv(10) == b""
        assert is_refused(port)
    pale.ok("quarantine", "--lift", served)
    assert say(port, b"x") == answer(1)


def test_a_gateway_that_is_born_again_serves_it(pale, served, port):
    def children(pid):
        return open(f"/proc/{pid}/task/{pid}/children").read().split()
    first = next(p for p in children(pale.json("inspect", "--json", served)["keeper_pid"]) if b"pale-gateway" in pathlib.Path(f"/proc/{p}/cmdline").read_bytes())
    with socket.create_connection(("127.0.0.1", port), timeout=20) as s:
        s.sendall(b"held")
        time.sleep(0.2)
        os.kill(int(children(first)[0]), signal.SIGKILL)
        with contextlib.suppress(ConnectionError):
            assert s.recv(10) == b""
    assert say(port, b"abc") == answer(3)


def test_a_one_shot_box_has_it_too(pale, port):
    p = pale.start("run", "-q", "--network", "filtered", "-p", f"{port}:8000", "--", "python3", "-c", SERVER)
    assert p.stdout.readline() == b"ready\n" and say(port, b"abcd") == answer(4)
    p.terminate()
    p.wait(20)
