# SPDX-License-Identifier: Apache-2.0
"""The life of the daemon: starting, stopping, dying, who may reach it, and what it does with a registry it cannot read."""
import contextlib
import json
import os
import pathlib
import signal
import socket
import sqlite3
import stat
import subprocess
import sys
import time

import pytest

from harness import REAL_ROOT, wait_until
from rest import Rest, Socket, Wire, alive, check_problem, data_of, exchange, output_of, query, request_bytes

TESTS = pathlib.Path(__file__).resolve().parent.parent


def new_paled(daemon, old):
    """The pid of the paled that came after old."""
    def look():
        done = daemon.pale.run("serve", "--status", "--json")
        told = done.json() if done.code == 0 else {}
        return told.get("pid") not in (None, old) and told["pid"]
    pid = wait_until(look, 10)
    assert pid, daemon.text_of_log()
    daemon.pids.add(pid)
    return pid


@pytest.mark.basic
def test_serve_starts_tells_and_stops(idle_daemon, pale):
    d = idle_daemon
    assert pale.run("serve", "--status").code == 1
    assert pale.run("serve", "--status", "--json").json() == {"running": False, "socket": d.socket}
    first = pale.ok("serve")
    assert d.socket in first.text
    told = d.status()
    assert told["running"] and told["socket"] == d.socket and told["boxes"] == 0 and alive(told["pid"]) and alive(told["steward_pid"])
    pale.ok("serve")
    assert d.status() == told, "a second one was started"
    d.stop()
    assert not alive(told["pid"]) and not alive(told["steward_pid"]) and not os.path.exists(d.socket)
    d.stop()


def test_of_many_starters_one_wins(idle_daemon, pale):
    procs = [pale.start("serve", "--json") for _ in range(100)]
    told = [p.communicate(timeout=60) for p in procs]
    assert [p.returncode for p in procs] == [0] * 100, [t for p, t in zip(procs, told) if p.returncode]
    pids = {(s["steward_pid"], s["pid"]) for s in (json.loads(out) for out, _ in told)}
    assert pids == {idle_daemon.pid_pair()}
    idle_daemon.pids |= set(idle_daemon.pid_pair())


def test_verbs_that_need_it_start_it(idle_daemon, pale):
    secret = pale.ok("token", "create").text.strip()
    assert idle_daemon.rest.by(secret).good("GET", "/v1/health")["status"] == "ok"


def test_stop_leaves_boxes_and_their_commands(daemon, api, pale):
    api.make("b")
    job = api.start("b", "sleep 2; echo done")
    daemon.stop()
    assert pale.sh("b", "pgrep -c sleep").text == "1\n"
    daemon.serve()
    assert api.wait("b", job)["result"]["exit"] == 0 and output_of(api.logs("b", job)) == b"done\n"


def test_stop_while_a_stream_is_open(daemon, api):
    api.make("b")
    events = api.stream("GET", "/v1/events")
    command = api.stream("POST", "/v1/boxes/b/exec", {"command": "echo up; sleep 1000"}, headers={"Idempotency-Key": "k"})
    command.until("stdout")
    began = time.monotonic()
    daemon.stop()
    assert time.monotonic() - began < 15
    daemon.serve()
    assert [j["state"] for j in api.good("GET", "/v1/boxes/b/jobs")["items"]] == ["running"]
    events.close()
    command.close()


# --- death ---


def test_a_killed_paled_is_started_again(daemon, api):
    api.make("b")
    job = api.start("b", "for i in 1 2 3 4 5 6; do echo $i; sleep 0.2; done")
    steward, paled = daemon.pid_pair()
    daemon.kill(paled)
    pid = new_paled(daemon, paled)
    assert daemon.pid_pair() == (steward, pid)
    assert api.wait("b", job)["result"]["exit"] == 0
    assert output_of(api.logs("b", job)) == b"1\n2\n3\n4\n5\n6\n"


def test_a_killed_paled_has_forgotten_nothing(daemon, api):
    api.make("b", ttl="1h", idle="1h", start=False)
    token = api.token_for(scope="tenant", tenant="t1")["token"]
    made = api.good("POST", "/v1/boxes", {"name": "k", "start": False}, headers={"Idempotency-Key": "k"})
    before = api.good("GET", "/v1/boxes")
    daemon.kill(daemon.pid_pair()[1])
    wait_until(lambda: daemon.is_there(), 10)
    assert api.good("GET", "/v1/boxes") == before
    assert api.by(token).good("GET", "/v1/token")["tenant"] == "t1"
    assert api.good("POST", "/v1/boxes", {"name": "k", "start": False}, headers={"Idempotency-Key": "k"}) == made


def test_a_killed_steward_takes_paled_along_and_the_next_adopts(daemon, api):
    """Both gone without a word: commands run on, and the next daemon has them, their output and their terminals."""
    api.make("b")
    counting = api.start("b", "i=0; while [ $i -lt 30 ]; do echo $i; i=$((i+1)); sleep 0.1; done")
    shell = api.start("b", ["bash", "--norc", "-i"], tty=True, env={"PS1": "ready> "})
    keyed = api.stream("POST", "/v1/boxes/b/exec", {"command": "sleep 2; echo kept"}, headers={"Idempotency-Key": "k"})
    keyed.until("started")
    t = Socket(daemon.socket, f"/v1/boxes/b/jobs/{shell}/attach")
    t.expect(r"ready> ")
    t.send("x=before; echo $x\n")
    seen = t.expect(r"before\r\n.*ready> ")
    pids = daemon.pid_pair()
    for pid in pids:
        daemon.kill(pid)
    assert wait_until(lambda: not any(map(alive, pids)))
    daemon.serve()
    assert api.good("GET", "/v1/boxes/b")["jobs"] == 3
    assert api.wait("b", counting)["result"]["exit"] == 0
    assert output_of(api.logs("b", counting)) == b"".join(b"%d\n" % i for i in range(30))
    again = Socket(daemon.socket, query(f"/v1/boxes/b/jobs/{shell}/attach", offset=len(t.out)))
    again.send("echo $x-after\n")
    again.expect("before-after")
    assert b"x=before" not in again.out and seen <= len(t.out)
    done = api.exec("b", "sleep 2; echo kept", key="k")
    assert data_of(done["stdout"]) == b"kept\n"
    again.cut()
    t.cut()
    keyed.close()


def test_a_killed_steward_alone_ends_paled_even_while_streams_are_open(daemon, api):
    events = api.stream("GET", "/v1/events")
    steward, paled = daemon.pid_pair()
    daemon.kill(steward)
    assert wait_until(lambda: not alive(paled), 15), "paled serves on without a steward"
    daemon.serve()
    api.make("b", start=False)
    events.close()


def test_a_paled_that_dies_again_and_again_is_given_up_clearly(daemon, pale):
    """It must not be tried for ever, and what is left must not be in the way of the next."""
    for _ in range(40):
        done = pale.run("serve", "--status", "--json")
        if done.code:
            break
        daemon.kill(done.json()["pid"])
        time.sleep(0.02)
    daemon.may_die = True
    wait_until(lambda: not daemon.is_there(), 2)
    daemon.serve()
    assert daemon.rest.good("GET", "/v1/health")["status"] == "ok"


# --- who may reach it ---


def test_the_socket_is_the_users_alone(daemon):
    s, folder, lock = os.lstat(daemon.socket), os.lstat(daemon.folder), os.lstat(daemon.folder / "paled.lock")
    assert stat.S_ISSOCK(s.st_mode) and stat.S_IMODE(s.st_mode) == 0o600 and s.st_uid == os.geteuid()
    assert stat.S_IMODE(folder.st_mode) == 0o700 and stat.S_IMODE(lock.st_mode) == 0o600
    assert all(stat.S_IMODE(p.stat().st_mode) & 0o077 == 0 for p in daemon.registry.parent.iterdir() if p.is_file() and p.name != "host.pub")


def test_folders_that_are_not_the_users_alone_are_not_used(idle_daemon, pale):
    os.makedirs(idle_daemon.folder, exist_ok=True)
    for mode in (0o777, 0o770, 0o755):
        os.chmod(idle_daemon.folder, mode)
        done = pale.run("serve", "--status")
        assert done.code == 125 and str(idle_daemon.folder) in done.errors, done
    os.chmod(idle_daemon.folder, 0o700)
    state = pale.root / "state" / "pale"
    os.makedirs(state, exist_ok=True)
    os.chmod(state, 0o777)
    done = pale.run("serve")
    assert done.code == 125 and str(state) in done.errors, done
    os.chmod(state, 0o700)


@pytest.mark.parametrize("kind", ["symlink", "file", "folder"])
def test_something_else_in_place_of_the_socket(idle_daemon, pale, kind):
    os.makedirs(idle_daemon.folder, mode=0o700, exist_ok=True)
    os.chmod(idle_daemon.folder, 0o700)
    place, aim = pathlib.Path(idle_daemon.socket), pale.root / "aim"
    aim.write_text("precious")
    place.symlink_to(aim) if kind == "symlink" else place.write_text("precious") if kind == "file" else place.mkdir()
    done = pale.run("serve")
    assert done.code == 125 and idle_daemon.socket in done.errors, done
    assert aim.read_text() == "precious" and os.path.lexists(place)
    place.rmdir() if kind == "folder" else place.unlink()


def test_a_socket_that_a_dead_daemon_left_is_replaced(idle_daemon):
    os.makedirs(idle_daemon.folder, mode=0o700, exist_ok=True)
    os.chmod(idle_daemon.folder, 0o700)
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(idle_daemon.socket)
    os.chmod(idle_daemon.socket, 0o600)
    idle_daemon.serve()


AS_ANOTHER = """
import os, socket, sys
os.setgroups([]); os.setgid(65534); os.setuid(65534)
s = socket.socket(socket.AF_UNIX); s.settimeout(10)
try:
    s.connect(sys.argv[1])
    s.sendall(b"GET /v1/health HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n")
    print("got", s.recv(100))
except OSError as e:
    print(type(e).__name__)
"""


@pytest.mark.skipif(not REAL_ROOT, reason="only root can be somebody else")
def test_another_user_cannot_connect(daemon, pale):
    def attempt():
        return subprocess.run([sys.executable, "-c", AS_ANOTHER, daemon.socket], capture_output=True, text=True, timeout=30).stdout.strip()
    assert attempt() == "PermissionError"
    # Even if every door on the way were open.
    way = [pathlib.Path(daemon.socket).resolve(), *pathlib.Path(daemon.socket).resolve().parents, *pathlib.Path(daemon.socket).parents]
    modes = {p: stat.S_IMODE(p.stat().st_mode) for p in way if str(p) not in ("/", "/tmp", "/dev", "/dev/shm")}
    try:
        for p in modes:
            os.chmod(p, 0o777)
        assert attempt() in ("got b''", "BrokenPipeError", "ConnectionResetError")
    finally:
        for p, mode in modes.items():
            os.chmod(p, mode)


# --- as systemd has it ---


ACTIVATED = """
import os, sys
os.dup2(int(sys.argv[1]), 3, inheritable=True)
os.environ["LISTEN_PID"] = str(os.getpid())
os.execv(sys.argv[2], ["pale-steward"])
"""


def test_socket_activation_and_notification(idle_daemon, pale):
    os.makedirs(idle_daemon.folder, mode=0o700, exist_ok=True)
    os.chmod(idle_daemon.folder, 0o700)
    with contextlib.ExitStack() as stack:
        told, listener, early = (stack.enter_context(socket.socket(socket.AF_UNIX, kind)) for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM, socket.SOCK_STREAM))
        stack.callback(lambda: os.unlink(idle_daemon.socket))
        told.bind(str(pale.root / "notify"))
        told.settimeout(20)
        listener.bind(idle_daemon.socket)
        os.chmod(idle_daemon.socket, 0o600)
        listener.listen(64)
        early.settimeout(20)  # a client that was there before the daemon
        early.connect(idle_daemon.socket)
        early.sendall(request_bytes("GET", "/v1/health"))
        env = {**pale.env, "LISTEN_FDS": "1", "LISTEN_FDNAMES": "x", "NOTIFY_SOCKET": str(pale.root / "notify")}
        p = subprocess.Popen(["python3", "-c", ACTIVATED, str(listener.fileno()), str(pale.build / "pale-steward")], pass_fds=[listener.fileno()], env=env,
                             stderr=subprocess.DEVNULL)
        pale.children.append(p)
        assert told.recv(200) == b"READY=1"
        assert early.recv(4096).startswith(b"HTTP/1.1 200 OK")
        idle_daemon.pids |= set(idle_daemon.pid_pair())
        p.send_signal(signal.SIGTERM)
        assert told.recv(200) == b"STOPPING=1"
        assert p.wait(20) == 0
        assert os.path.exists(idle_daemon.socket), "the socket is systemd's, not ours to remove"


def test_foreground_logs_to_standard_error_and_ends_by_a_signal(idle_daemon, pale):
    p = pale.start("serve", "--foreground")
    assert wait_until(idle_daemon.is_there, 10)
    assert idle_daemon.status()["steward_pid"] == p.pid
    idle_daemon.pids |= set(idle_daemon.pid_pair())
    p.send_signal(signal.SIGINT)
    assert p.wait(20) == 0 and not os.path.exists(idle_daemon.socket)


# --- over TCP ---


def test_tcp_needs_a_token(idle_daemon):
    d = idle_daemon
    port = d.on_port()
    token = d.rest.token_for()["token"]
    outside = Rest(port)
    a = outside.get("/v1/health")
    check_problem(a, 401, "denied")
    assert a.header("www-authenticate")
    assert outside.by(token).good("GET", "/v1/health")["status"] == "ok"
    for bad in ("", "x", token[:-1], token + "0", token.upper()):
        check_problem(exchange(port, request_bytes("GET", "/v1/health", headers=[("Authorization", f"Bearer {bad}")]).replace(b"localhost", b"localhost:%d" % port)), 401)
    for form in (f"Basic {token}", token, f"bearer{token}"):
        check_problem(exchange(port, request_bytes("GET", "/v1/health", headers=[("Authorization", form)]).replace(b"localhost", b"localhost:%d" % port)), 401)
    check_problem(outside.get("/v1/no/such/path"), 401)
    with socket.socket() as s:  # only the loopback interface
        s.bind(("127.0.0.1", 0))
    text = pathlib.Path("/proc/net/tcp").read_text()
    assert f"0100007F:{port:04X}" in text and f"00000000:{port:04X}" not in text


def test_tcp_checks_host_and_origin(idle_daemon):
    d = idle_daemon
    port = d.on_port()
    token = d.rest.token_for()["token"]

    def status(host, *more):
        head = f"GET /v1/health HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n" + "".join(f"{m}\r\n" for m in more) + "\r\n"
        return exchange(port, head.encode()).status
    for host in (f"127.0.0.1:{port}", f"localhost:{port}", f"LOCALHOST:{port}", f"[::1]:{port}"):
        assert status(host) == 200, host
        assert status(host, f"Origin: http://{host}") == 200
    for host in ("evil.example", f"evil.example:{port}", "localhost", f"localhost:{port + 1}", f"localhost:{port}.evil.example", f"127.0.0.1:{port}@evil", "0.0.0.0"):
        assert status(host) == 403, host
    for origin in ("http://evil.example", "null", f"https://localhost:{port}", f"http://localhost:{port + 1}", "http://localhost", f"http://127.0.0.1:{port}"):
        assert status(f"localhost:{port}", f"Origin: {origin}") == 403, origin
    assert status(f"localhost:{port}", f"Origin: http://localhost:{port}", "Origin: http://evil.example") == 400


def test_a_port_that_is_taken(idle_daemon, pale):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()
        port = s.getsockname()[1]
        done = pale.run("serve", "--port", port)
        assert done.code == 125 and str(port) in done.errors and pale.run("serve", "--status").code == 1
    assert pale.run("serve", "--port", "0").code == 125 and pale.run("serve", "--port", "65536").code == 125


def test_a_websocket_over_tcp_checks_as_all_do(idle_daemon):
    d = idle_daemon
    port = d.on_port()
    d.rest.make("b")
    job = d.rest.start("b", "cat", tty=True)
    key = [("Upgrade", "websocket"), ("Connection", "Upgrade"), ("Sec-WebSocket-Version", "13"), ("Sec-WebSocket-Key", "AAAAAAAAAAAAAAAAAAAAAA==")]
    path = f"/v1/boxes/b/jobs/{job}/attach"
    local = b"localhost:%d" % port
    check_problem(exchange(port, request_bytes("GET", path, headers=key).replace(b"localhost", local)), 401)
    token = d.rest.token_for()["token"]
    key.append(("Authorization", f"Bearer {token}"))
    check_problem(exchange(port, request_bytes("GET", path, headers=key + [("Origin", "http://evil.example")]).replace(b"localhost", local)), 403)
    with Wire(port) as w:
        w.send(request_bytes("GET", path, headers=key).replace(b"localhost", local))
        assert w.answer().status == 101


# --- the registry ---


def spoil(path, how):
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if how == "garbage":
        path.write_bytes(os.urandom(20000))
    elif how == "newer":
        db = sqlite3.connect(path)
        db.execute("pragma user_version = 9999")
        db.execute("create table box (x)")
        db.commit()
        db.close()
    elif how == "another's":
        db = sqlite3.connect(path)
        db.execute("create table cookies (a, b)")
        db.commit()
        db.close()
    elif how == "folder":
        path.mkdir()
    elif how == "symlink":
        (path.parent / "elsewhere").write_bytes(b"")
        path.symlink_to(path.parent / "elsewhere")


@pytest.mark.parametrize("how", ["garbage", "newer", "another's", "folder", "symlink"])
def test_a_registry_that_cannot_be_read_is_told_and_left_alone(pale, how):
    path = pale.root / "state" / "pale" / "registry.db"
    spoil(path, how)
    os.chmod(path, 0o600) if path.is_file() else None
    before = path.read_bytes() if path.is_file() else None
    done = pale.run("serve")
    assert done.code == 125 and "registry" in done.errors, done
    assert (path.read_bytes() if path.is_file() else None) == before
    assert pale.run("serve", "--status").code == 1
    assert pale.create("b") and pale.sh("b", "echo works").text == "works\n"


def test_a_registry_corrupted_between_two_lives(idle_daemon, pale):
    d = idle_daemon.serve()
    d.may_die = True
    d.rest.token_for()
    d.stop()
    good = d.registry.read_bytes()
    d.registry.write_bytes(b"\xff" * 100 + good[100:])
    done = pale.run("serve")
    assert done.code == 125 and "registry" in done.errors, done
    assert d.registry.read_bytes() == b"\xff" * 100 + good[100:]
    d.registry.write_bytes(good)
    d.serve()
    assert len(d.rest.good("GET", "/v1/tokens")["items"]) == 1


def test_create_with_a_time_to_live_starts_the_daemon_and_is_obeyed(pale):
    """The command makes the box; how long it lives is the daemon's to keep."""
    try:
        pale.ok("create", "--ttl", "1s", "brief")
        pale.ok("create", "--idle", "1s", "lazy")
        assert "brief" in pale.boxes() and "lazy" in pale.boxes()
        assert wait_until(lambda: "brief" not in pale.boxes())
        assert wait_until(lambda: pale.json("inspect", "--json", "lazy")["state"] == "stopped")
        assert pale.run("create", "--ttl", "soon", "never").code == 125 and "never" not in pale.boxes()
    finally:
        pale.run("rm", "-f", "brief", "lazy")
        pale.ok("serve", "--stop")
