# SPDX-License-Identifier: Apache-2.0
"""A command's terminal over a WebSocket: full-screen programs, sizes, signals, much output, connections that are cut, hostile frames."""
import hashlib
import os
import struct
import subprocess
import time

import pytest

from harness import has_tool, wait_until
from rest import BINARY, CLOSE, CONTINUE, PING, PONG, TEXT, Socket, alive, check_problem, exchange, frame, output_of, query, request_bytes

pytestmark = pytest.mark.once

SHELL = ["bash", "--norc", "--noprofile", "-i"]


@pytest.fixture
def b(api):
    api.make("b")
    return "b"


def attach(api, job, offset=None, **more):
    return Socket(api.where, query(f"/v1/boxes/b/jobs/{job}/attach", offset=offset), **more)


def shell(api, **fields):
    job = api.start("b", SHELL, tty=True, env={"PS1": "ready> "}, **fields)
    t = attach(api, job)
    assert t.is_open, t.answer
    t.expect("ready> ")
    return job, t


@pytest.mark.basic
def test_a_shell_on_a_terminal(api, b):
    job, t = shell(api, rows=33, cols=99)
    assert t.event("started")["job"] == job
    t.send("tty; stty size; echo $((6*7))\n")
    t.expect(r"/dev/pts/\d+\r\n33 99\r\n42\r\n")
    t.send("exit 3\n")
    t.to_the_end()
    assert t.event("exit")["exit"] == 3 and t.closed[0] == 1000


@pytest.mark.skipif(not has_tool("vim"), reason="vim is not installed")
def test_vim_opens_edits_and_saves(api, b):
    api.write(b, "/home/agent/text", b"first line\nsecond line\n")
    job = api.start(b, ["vim", "-u", "NONE", "-N", "-n", "/home/agent/text"], tty=True, rows=24, cols=80, env={"TERM": "xterm"})
    t = attach(api, job)
    t.expect("first line.*second line")
    at = len(t.out)
    t.send("ggOa new ")
    t.expect("a new", at)
    t.send("line\x1b")
    time.sleep(0.2)  # an escape by itself, not the beginning of a key
    t.send("Gdd:wq\r")
    t.to_the_end()
    assert t.event("exit")["exit"] == 0
    assert api.read(b, "/home/agent/text") == b"a new line\nfirst line\n"


def test_resize_is_seen_by_the_command(api, b):
    _, t = shell(api)
    t.send("stty size\n")
    at = t.expect(r"24 80\r\n.*ready> ")
    t.say(resize=[50, 132])
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        t.send("stty size\n")
        at = t.expect(r"\d+ \d+\r\n.*ready> ", at)
        if b"50 132" in t.out:
            break
    t.expect("50 132")
    t.cut()


def test_ctrl_c_interrupts_what_runs(api, b):
    _, t = shell(api)
    t.send("sleep 1000\n")
    assert wait_until(lambda: api.exec(b, "pgrep -x sleep")["exit"] == 0)
    at = len(t.out)
    t.send(b"\x03")
    at = t.expect("ready> ", at)
    t.send("echo status $?\n")
    t.expect("status 130", at)
    t.cut()


def test_a_signal_by_message(api, b):
    job = api.start(b, "trap 'echo caught; exit 7' USR1; echo up; while :; do sleep 0.05; done")
    t = attach(api, job)
    t.expect("up")
    t.say(signal=10)
    t.to_the_end()
    assert t.event("exit")["exit"] == 7 and b"caught" in t.out


def test_a_command_without_a_terminal(api, b):
    """Bytes in, bytes out, with an end of the input."""
    data = os.urandom(300000)
    job = api.start(b, "sha256sum; echo err >&2", input=True)
    t = attach(api, job)
    for i in range(0, len(data), 50000):
        t.send(data[i:i + 50000])
    t.say(end=True)
    t.to_the_end()
    assert hashlib.sha256(data).hexdigest().encode() in t.out and b"err" in t.out
    assert api.wait(b, job)["input_bytes"] == len(data)


def test_a_message_in_pieces_and_one_as_large_as_may_be(api, b):
    data = os.urandom(1 << 20)
    job = api.start(b, "sleep 0.3; sha256sum", input=True)
    t = attach(api, job)
    t.event("started")
    t.w.send(frame(BINARY, data))
    t.w.send(frame(BINARY, b"one", fin=False) + frame(PING, b"between") + frame(CONTINUE, b"two", fin=False) + frame(CONTINUE, b"three"))
    t.say(end=True)
    t.to_the_end()
    assert t.closed and t.closed[0] == 1000, t.closed
    assert hashlib.sha256(data + b"onetwothree").hexdigest().encode() in t.out


def test_a_ping_is_answered(api, b):
    _, t = shell(api)
    t.w.send(frame(PING, b"are you there"))
    while (f := t.receive())[0] != PONG:
        pass
    assert f[1] == b"are you there"
    t.cut()


def test_a_close_is_answered_and_the_command_goes_on(api, b):
    job, t = shell(api)
    t.w.send(frame(CLOSE, struct.pack(">H", 1000)))
    t.to_the_end()
    assert t.closed[0] == 1000 and t.w.ended()
    assert api.good("GET", f"/v1/boxes/b/jobs/{job}")["state"] == "running"


def test_an_ended_command_can_still_be_read(api, b):
    job = api.start(b, "echo late", tty=True)
    api.wait(b, job)
    t = attach(api, job).to_the_end()
    assert bytes(t.out) == b"late\r\n" and t.event("exit")["exit"] == 0


def test_a_second_client_takes_over_and_the_first_is_told(api, b):
    job, one = shell(api)
    two = attach(api, job)
    two.send("echo taken-$((40+2))\n")
    two.expect("taken-42")
    one.to_the_end()
    assert one.closed and "somebody else" in one.closed[1]
    two.cut()


def test_handshakes_that_are_none(api, b):
    job, t = shell(api)
    path = f"/v1/boxes/b/jobs/{job}/attach"
    key = "AAAAAAAAAAAAAAAAAAAAAA=="
    good = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": key}
    for broken in ({}, {**good, "Upgrade": "h2c"}, {**good, "Connection": "close"}, {**good, "Sec-WebSocket-Version": "8"}, {**good, "Sec-WebSocket-Key": "short"},
                   {**good, "Sec-WebSocket-Key": "!" * 24}, {k: v for k, v in good.items() if k != "Sec-WebSocket-Key"}):
        a = exchange(api.where, request_bytes("GET", path, headers=broken.items()))
        check_problem(a, 426)
        assert a.header("upgrade") == "websocket"
    check_problem(attach(api, 4711).answer, 404, "not-found")
    t.cut()


# --- much output ---

LINES = (1000000000, 1009532508)  # eleven bytes each: 100 MiB


@pytest.fixture(scope="module")
def expected():
    return subprocess.check_output(["seq", *map(str, LINES)])


def test_100_mib_arrive_whole_and_in_order(api, b, expected):
    """With a reader that stops for a while. The command waits now and then, so that nothing can be left behind."""
    step = 2400000
    script = f"i={LINES[0]}; while [ $i -le {LINES[1]} ]; do j=$((i + {step} - 1)); [ $j -gt {LINES[1]} ] && j={LINES[1]}; seq $i $j; i=$((j+1)); read x; done"
    job = api.start(b, script, input=True)
    t = attach(api, job)
    block, done = step * 11, 0
    while done < len(expected):
        done = min(done + block, len(expected))
        if done == 3 * block:
            time.sleep(1)
        while len(t.out) < done:
            assert t.pump(), t.closed
        t.send("\n")
    t.to_the_end()
    assert t.event("exit")["exit"] == 0 and not [e for e in t.events if e["event"] == "missed"]
    assert len(t.out) == len(expected) and hashlib.sha256(t.out).digest() == hashlib.sha256(expected).digest()


def test_a_reader_that_is_too_slow_is_told_of_the_gap(api, b, expected):
    job = api.start(b, ["seq", *map(str, LINES)])
    t = attach(api, job, buffer=65536)
    time.sleep(1.5)
    pieces, gaps = [[0, bytearray()]], 0
    while (f := t.receive()):
        op, data = f
        if op == BINARY:
            pieces[-1][1] += data
        elif op == TEXT and b'"missed"' in data:
            n = int(data.split(b'"bytes":')[1].rstrip(b"}"))
            gaps += n
            pieces.append([pieces[-1][0] + len(pieces[-1][1]) + n, bytearray()])
        elif op == CLOSE:
            break
    assert sum(len(p) for _, p in pieces) + gaps == len(expected), (gaps, [(o, len(p)) for o, p in pieces])
    for offset, p in pieces:
        assert expected[offset:offset + len(p)] == p


# --- coming back ---

NUMBERS = "i=0; while [ $i -lt 400 ]; do echo line $i; i=$((i+1)); [ $((i % 10)) = 0 ] && sleep 0.05; done; true"


def whole():
    return b"".join(b"line %d\r\n" % i for i in range(400))


def test_who_was_cut_off_comes_back_and_misses_nothing(api, b):
    job = api.start(b, NUMBERS, tty=True)
    seen = bytearray()
    for _ in range(6):
        t = attach(api, job, offset=len(seen))
        assert t.event("offset")["bytes"] == len(seen)
        for _ in range(20):
            if not t.pump():
                break
        t.cut()
        seen += t.out
    t = attach(api, job, offset=len(seen)).to_the_end()
    assert bytes(seen + t.out) == whole() and t.event("exit")["exit"] == 0


def test_a_killed_daemon_loses_no_byte_of_a_terminal(daemon, api, b):
    job = api.start(b, NUMBERS, tty=True)
    t = attach(api, job)
    seen = bytearray()
    for _ in range(2):
        t.expect(r"line \d+\r\n")
        paled = daemon.pid_pair()[1]
        daemon.kill(paled)
        try:
            t.to_the_end()
        except AssertionError:
            pass  # cut in the middle of a frame
        seen += t.out
        assert wait_until(lambda: not alive(paled) and daemon.is_there(), 10)
        daemon.pids.add(daemon.pid_pair()[1])
        t = attach(api, job, offset=len(seen))
    t.to_the_end()
    assert bytes(seen + t.out) == whole() and t.event("exit")["exit"] == 0


def test_an_offset_beyond_the_output(api, b):
    job, first = shell(api)
    first.cut()
    t = attach(api, job, offset=10 ** 9)
    assert t.is_open or check_problem(t.answer)["code"] == "bad-input"
    t.cut()
    assert api.good("GET", f"/v1/boxes/b/jobs/{job}")["state"] == "running"


# --- hostile frames ---

HOSTILE = {
    "unmasked": frame(BINARY, b"x", masked=False),
    "reserved bits": frame(BINARY, b"x", reserved=4),
    "all reserved bits": frame(BINARY, b"x", reserved=7),
    "an unknown opcode": frame(3, b"x"),
    "an unknown control": frame(11, b"x"),
    "a long control": frame(PING, b"x" * 126),
    "a control in pieces": frame(PING, b"x", fin=False),
    "a continuation of nothing": frame(CONTINUE, b"x"),
    "a message within a message": frame(BINARY, b"x", fin=False) + frame(BINARY, b"y"),
    "a length in too long a form": bytes([0x82, 0xfe, 0, 1]) + b"\0\0\0\0x",
    "a length in the longest form": bytes([0x82, 0xff]) + struct.pack(">Q", 1) + b"\0\0\0\0x",
    "a length with its highest bit": bytes([0x82, 0xff]) + struct.pack(">Q", 1 << 63) + b"\0\0\0\0",
    "text that is no JSON": frame(TEXT, b"hello"),
    "text that is no UTF-8": frame(TEXT, b'{"end":"\xff"}'),
    "JSON that means nothing": frame(TEXT, b'{"resize":[0,0]}'),
    "two things at once": frame(TEXT, b'{"resize":[10,10],"signal":2}'),
    "a signal that is none": frame(TEXT, b'{"signal":65}'),
    "a signal as a text": frame(TEXT, b'{"signal":"KILL"}'),
    "a size that is none": frame(TEXT, b'{"resize":[1,70000]}'),
    "a list": frame(TEXT, b"[]"),
    "a key twice": frame(TEXT, b'{"end":true,"end":true}'),
    "a frame that is too large": bytes([0x82, 0xff]) + struct.pack(">Q", (1 << 20) + 1) + b"\0\0\0\0",
    "an enormous frame": bytes([0x82, 0xff]) + struct.pack(">Q", 1 << 40) + b"\0\0\0\0",
    "a message that is too large": frame(BINARY, b"x" * 600000, fin=False) + frame(CONTINUE, b"x" * 600000),
}
TOO_BIG = {"a frame that is too large", "an enormous frame", "a message that is too large"}


@pytest.mark.parametrize("what", sorted(HOSTILE))
def test_hostile_frames_end_the_connection_and_not_the_command(api, b, what):
    job = api.start(b, ["cat"], tty=True)
    t = attach(api, job)
    t.event("started")
    pid = api.good("GET", "/v1/health")["pid"]
    t.w.send(HOSTILE[what])
    t.to_the_end()
    assert t.closed and t.closed[0] in ((1009, 1002) if what in TOO_BIG else (1002,)), (what, t.closed)
    assert t.w.ended()
    assert api.good("GET", f"/v1/boxes/b/jobs/{job}")["state"] == "running"
    again = attach(api, job, offset=len(t.out))
    again.send("still\n")
    again.expect("still")
    again.cut()
    assert api.good("GET", "/v1/health")["pid"] == pid


def test_a_flood_of_pings_that_nobody_reads_answers_of(api, b):
    job, t = shell(api)
    t.w.s.settimeout(2)
    sent = 0
    try:
        for _ in range(3000):
            t.w.s.sendall(frame(PING, b"x" * 125) * 50)
            sent += 1
    except (TimeoutError, BrokenPipeError, ConnectionResetError):
        pass
    assert api.good("GET", "/v1/health")["status"] == "ok"
    assert api.good("GET", f"/v1/boxes/b/jobs/{job}")["state"] == "running"
    t.cut()


def test_frames_cut_at_every_byte(api, b):
    job = api.start(b, ["cat"], tty=True)
    whole = frame(BINARY, b"hello\n") + frame(TEXT, b'{"resize":[30,90]}')
    for n in range(len(whole)):
        t = attach(api, job)
        t.w.send(whole[:n])
        t.cut()
    t = attach(api, job)
    for i in range(len(whole)):
        t.w.send(whole[i:i + 1])
    t.expect("hello")
    t.cut()
    assert api.good("GET", f"/v1/boxes/b/jobs/{job}")["state"] == "running"
    assert b"hello" in output_of(api.logs(b, job))
