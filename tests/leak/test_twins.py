# SPDX-License-Identifier: Apache-2.0
"""Cases with a twin that take more than one command, in boxes of every kind. The others are in the battery's table."""
import contextlib
import json
import os
import subprocess

import attacks
import mcp_client
import pytest
import rest
from harness import wait_until


def status(pale, *args):
    done = pale.run(*args, "--", "cat", "/proc/self/status")
    return dict(line.split(":\t", 1) for line in done.text.splitlines() if ":\t" in line), done


LIMIT = attacks.SYSCALL + """
import struct
old = ctypes.create_string_buffer(16)
for pid in (1, os.getppid()):
    r, e = call(302 if X86 else 261, pid, 7, struct.pack('QQ', 9, 9), old)
    print('CHANGED' if r == 0 else 'refused', pid, e, flush=True)
"""


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


SHARES = """
import ctypes, os, resource
libc = ctypes.CDLL(None)
def count(most, take):
    n = 0
    try:
        while n < most and take(): n += 1
    except OSError: pass
    return n
class Event(ctypes.Structure):
    _fields_ = [('value', ctypes.c_void_p), ('signo', ctypes.c_int), ('notify', ctypes.c_int), ('pad', ctypes.c_char * 48)]
ids = (ctypes.c_void_p * 1)()
event = Event(notify=1)
print('timers', count(6000, lambda: libc.timer_create(1, ctypes.byref(event), ids) == 0))
print('terminals', count(400, lambda: os.openpty()))
for name, what in (('queues', 12), ('locked', 8), ('nice', 13), ('realtime', 14)):
    print(name, resource.getrlimit(what)[1] % (1 << 64))
"""


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
@pytest.mark.weaken("seccomp")
def test_c13_limits_of_init_and_runners_stay(wall):
    """Where a command has the id of pale-init, as in a box with one id or as the box's root, the kernel would let it."""
    box = wall.pale.create("b")
    root = wall.pale.exec(box, "true", flags=["--user", "root"]).code == 0
    done = wall.pale.exec(box, "python3", "-c", LIMIT, flags=["--user", "root"] if root else [])
    wall.judge("CHANGED" in done.text, done)
    if not wall.weakened:
        assert done.text.count("refused") == 2 and wall.pale.exec(box, "sh", "-c", "ulimit -n 16 && ulimit -n").text == "16\n"


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


@pytest.mark.basic
@pytest.mark.weaken("env")
def test_c07_no_variable_of_the_host(wall, canary):
    p = wall.pale
    box = p.create("b", env={"PALE_TEST_SECRET": canary, "AWS_SECRET_ACCESS_KEY": canary})
    out = ""
    for args in (["run", "-q"], ["exec", "-q", box]):
        out += p.run(*args, "--", "sh", "-c", "env; cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n'", env={"PALE_TEST_SECRET": canary}).text
    wall.judge(canary in out, out[-500:])


@pytest.mark.basic
@pytest.mark.weaken("dumpable,inner-userns,caps")
def test_c08_init_is_closed(wall):
    box = wall.pale.create("b")
    done = wall.pale.py(box, INIT)
    wall.judge(any(w in done.text for w in ("READ", "LINK", "TRACED")), done)
    assert wall.pale.exec(box, "echo", "alive").text == "alive\n"


@pytest.mark.basic
@pytest.mark.weaken("limits")
def test_c16_what_the_kernel_counts_per_user(wall):
    """A box with one id draws on the quotas of the user who runs it, and of all the user's boxes."""
    done = wall.pale.run("run", "-q", "--", "python3", "-c", SHARES)
    got = {k: int(v) for k, v in (line.split() for line in done.text.splitlines())}
    most = {"timers": 4096, "terminals": 256, "queues": 96 << 10, "locked": 1 << 20, "nice": 0, "realtime": 0}
    assert got.keys() == most.keys(), done
    over = {k for k in most if got[k] > most[k]}
    wall.judge({"timers", "terminals", "queues"} <= over if wall.weakened else over, got)


@pytest.mark.basic
@pytest.mark.weaken("limits")
def test_c16_cpu_time_of_a_tree(wall):
    r = wall.pale.run("run", "--json", "--cpu", "1", "--timeout", "4s", "--", "sh", "-c", "for i in 1 2; do setsid sh -c 'while :; do :; done' & done; wait").json()
    wall.judge(r["timed_out"] and not r["cpu_limit"], r)


@pytest.mark.basic
@pytest.mark.weaken("seccomp", "netns", "readonly,landlock", "proc-mask", "fds", "caps", "nnp,seccomp", "root")
def test_c26_the_receipt_tells_the_truth(wall):
    box = wall.pale.create("b")
    done = wall.pale.run("prove", "--json", box)
    r = json.loads(done.out)
    wall.judge(done.code != 0, [row for row in r.get("attempts", r) if not isinstance(row, dict) or not row.get("good", True)][:4])


# --- the daemon ---


@contextlib.contextmanager
def served(pale, port=False):
    d = rest.Daemon(pale)
    try:
        yield (d, d.on_port()) if port else d.serve()
    finally:
        trouble = d.end()
        assert not trouble, trouble


@pytest.mark.weaken("tokens")
def test_c27_a_token_reaches_its_box_and_does_what_it_may(wall):
    with served(wall.pale) as d:
        api = d.rest
        api.make("mine"), api.make("other")
        api.out("mine", "echo 1 > ~/f")
        token = api.token_for(scope="box", box="mine", rights=["file.read"])["token"]
        by = api.by(token)
        tried = {"another box": by.ask("GET", "/v1/boxes/other/files/list?path=/").status, "a right": by.ask("POST", "/v1/boxes/mine/exec", {"command": "true"}).status}
        for box in ("other", "mine"):
            message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "write", "arguments": {"path": "/tmp/x", "content": "x"}}}
            a = by.ask("POST", f"/mcp/{box}", message)
            tried[f"a tool in {box}"] = 200 if api.ask("GET", f"/v1/boxes/{box}/files?path=/tmp/x").status == 200 else a.status if a.status != 200 else "refused"
        # A file that it may read, and with it a policy that it may not.
        tried["an export"] = by.ask("GET", "/v1/boxes/mine/export").status
        assert by.ask("GET", "/v1/boxes/mine/files/list?path=/").status == 200
        wall.judge(all(tried[k] == 200 for k in ("another box", "a right", "an export")) if wall.weakened else 200 in tried.values(), tried)
        if not wall.weakened:
            assert tried["another box"] == tried["a tool in other"] == 404 and tried["a right"] == tried["an export"] == 403


@pytest.mark.weaken("widen")
def test_c28_a_box_s_token_cannot_widen(wall):
    with served(wall.pale) as d:
        api = d.rest
        box = api.make("b", set={"limits.wall": "5m"})["id"]
        by = api.by(api.token_for(scope="box", box="b")["token"])
        client = mcp_client.Http(by, box, capabilities={"elicitation": {}})
        wish = {"name": "policy", "arguments": {"set": {"limits.wall": "20m"}, "reason": "more"}}
        was = api.good("GET", "/v1/boxes/b/policy")["digest"]
        first = client.result("tools/call", wish)
        client.ask("tools/call", {**wish, "inputResponses": {"allow": {"action": "accept", "content": {"allow": True}}}, "requestState": first.get("requestState", "")})
        api.good("POST", "/v1/boxes/b/stop")
        by.ask("PUT", "/v1/boxes/b/policy", {"set": {"limits.wall": "20m"}})
        by.ask("POST", "/v1/boxes/b/policy/narrow", {"set": {"limits.wall": "30m"}})
        now = api.good("GET", "/v1/boxes/b/policy")["digest"]
        wall.judge(now != was, first)


@pytest.mark.weaken("widen")
def test_c28_a_box_s_token_answers_no_question(wall):
    """Nor by any other word: the question that is answered is one of its own box."""
    asker = "import socket; s = socket.create_connection(('ask.test', 80)); s.send(b'GET / HTTP/1.1\\r\\nHost: ask.test\\r\\n\\r\\n'); s.recv(9)"
    with served(wall.pale) as d:
        api = d.rest
        box = api.make("b", set={"network": "filtered", "network.egress": "ask.test=ask"})["id"]
        api.start(box, ["python3", "-c", asker])
        [q] = wait_until(lambda: api.good("GET", "/v1/approvals")["items"])
        by = api.by(api.token_for(scope="box", box="b")["token"])
        a = by.ask("POST", f"/v1/approvals/{q['id']}", {"box": q["box"], "host": q["host"], "port": q["port"], "verdict": "allow", "scope": "box"})
        left = api.good("GET", "/v1/approvals")["items"]
        wall.judge(a.status == 204 or not left, (a, left))


@pytest.mark.weaken("origin")
def test_c29_a_page_in_a_browser_cannot_call(wall):
    with served(wall.pale, port=True) as (d, port):
        api = rest.Rest(port, d.rest.token_for()["token"])
        good = api.ask("GET", "/v1/boxes").status
        tried = [api.ask("GET", "/v1/boxes", headers=h).status
                 for h in ({"Origin": "https://evil.example"}, {"Host": "evil.example"}, {"Host": f"evil.example:{port}", "Origin": f"http://evil.example:{port}"},
                           {"Origin": "null"})]
        assert good == 200
        wall.judge(200 in tried, tried)
