# SPDX-License-Identifier: Apache-2.0
"""File requests beyond whole files: ranges, drafts, names, happenings; as the verbs offer them, and as a keeper's clients ask for them."""
import json
import os
import pathlib
import re
import select
import signal
import struct
import time

import pytest

import wire
from harness import wait_until

STATUS = {name: 64 + i for i, name in enumerate("ok bad-input not-found exists denied busy limit timeout unsupported corrupt protocol gone os".split())}
ENTRY = re.compile(rb"([fdlpscb?]) ([0-7]+) (\d+) (-?\d+) (\d+) (\d+) ([^\0]*)\0([^\0]*)\0")


def keeper(pale, box):
    return wire.Keeper(pathlib.Path(pale.env["XDG_RUNTIME_DIR"]) / "pale" / f"{pale.info(box)['id']}.sock")


def ask(pale, box, *words, content=None, end=True):
    """(stdout, stderr, exit status) of a file request; content: pieces of its input."""
    k = keeper(pale, box)
    k.exec(*words, flags=("EXEC_BUILTIN",) if content is None else ("EXEC_BUILTIN", "EXEC_STDIN"))
    for data in content or []:
        k.ask("ASK_STDIN", data)
    if content is not None and end:
        k.ask("ASK_STDIN_END")
    out, err, _, status = k.all()
    k.close()
    return out, err.decode(errors="replace"), status


def code(pale, *args, **more):
    return pale.json(args[0], "--json", *args[1:], expect=125, **more)["error"]["code"]


# --- ranges ---

@pytest.mark.basic
@pytest.mark.parametrize("offset,length", [(0, 0), (0, 5), (3, 4), (99999, 10), (100000, 1), (200000, 5), (50, None), (65536, 65536)])
def test_ranges(pale, box, offset, length):
    data = bytes(i * 7 % 251 for i in range(100000))
    pale.ok("write", box, "f", input=data)
    end = None if length is None else offset + length
    flags = ["--offset", offset, *([] if length is None else ["--length", length])]
    assert pale.ok("cat", *flags, box, "f").out == data[offset:end]
    out, _, status = ask(pale, box, "open", "/home/agent/f", str(offset), "-" if length is None else str(length))
    head = ENTRY.match(out)
    assert status == 0 and head[1] == b"f" and int(head[3]) == len(data) and head[7] == b"" and out[head.end():] == data[offset:end]


def test_sizes_with_letters_and_ranges_that_are_none(pale, box):
    pale.ok("write", box, "f", input=b"x" * 3000)
    assert len(pale.ok("cat", "--offset", "1K", "--length=1K", box, "f").out) == 1024
    for bad in ("-1", "x", "", "99999999999999999999"):
        assert code(pale, "cat", f"--offset={bad}", box, "f") == "bad-input"
    for words in (["-1", "1"], ["0", ""], ["9223372036854775808", "-"], ["0"]):
        assert ask(pale, box, "read", "/etc/hostname", *words)[2] == STATUS["bad-input"], words


def test_what_is_opened_is_one_file(pale, box):
    """The entry and the bytes belong together, whatever is renamed over the name meanwhile."""
    pale.exec(box, "python3", "-c", "import os, subprocess, sys\nsubprocess.Popen([sys.executable, '-c', '''\nimport os, time\nend = time.time() + 15\ni = 0\n"
              "while time.time() < end:\n  n = i % 7 + 1\n  open('/tmp/new', 'w').write(str(n) * n)\n  os.rename('/tmp/new', '/tmp/f'); i += 1'''], "
              "stdout=-3, stderr=-3)")
    assert wait_until(lambda: pale.run("cat", box, "/tmp/f").code == 0)
    for _ in range(30):
        out, err, status = ask(pale, box, "open", "/tmp/f", "0", "-")
        head = ENTRY.match(out)
        size, body = int(head[3]), out[head.end():]
        assert status == 0 and body == str(size).encode() * size, (out, err)


def test_file_without_a_size_is_read_to_its_end(pale, box):
    out, _, status = ask(pale, box, "open", "/proc/self/status", "0", "-")
    assert status == 0 and b"Seccomp:" in out
    assert ask(pale, box, "open", "/proc/self/status", "0", "4")[0].endswith(b"Name")


def test_stat_of_a_link_and_of_what_it_leads_to(pale, box):
    pale.sh(box, "echo hello > f; ln -s f l; ln -s /none dangling; mkdir d; ln -s d e")
    home = "/home/agent/"
    assert ENTRY.fullmatch(ask(pale, box, "stat", home + "l")[0]).group(1, 8) == (b"l", b"f")
    assert ENTRY.fullmatch(ask(pale, box, "stat", home + "l", "follow")[0]).group(1, 3, 8) == (b"f", b"6", b"")
    assert ENTRY.fullmatch(ask(pale, box, "stat", home + "e", "follow")[0])[1] == b"d"
    assert ask(pale, box, "stat", home + "dangling", "follow")[2] == STATUS["not-found"]


# --- statuses ---

def test_status_by_meaning(pale, box):
    pale.sh(box, "mkdir d; echo x > d/f; mkfifo p; ln -s loop loop; echo secret > closed; chmod 0 closed")
    h = "/home/agent/"
    for words, name in [(("read", "/none"), "not-found"), (("read", h + "d/f/x"), "not-found"), (("read", h + "d"), "bad-input"), (("read", h + "p"), "bad-input"),
                        (("read", h + "loop"), "bad-input"), (("read", h + "closed"), "denied"), (("list", "/none"), "not-found"),
                        (("stat", "/none"), "not-found"), (("mkdir", h + "d"), "exists"), (("mkdir", "/usr/x"), "denied"),
                        (("mkdir", "/none/x"), "not-found"), (("mkdir", h + "d/f", "parents"), "exists"), (("move", h + "none", h + "x"), "not-found"),
                        (("move", h + "d/f", "/tmp/f"), "bad-input"), (("move", h + "d/none", "/tmp/f"), "not-found"), (("move", h + "p", h + "d/f", "new"), "exists"), (("remove", h + "d"), "exists"),
                        (("remove", h + "none", "tree"), "not-found"), (("remove", "/usr/bin/env"), "denied"), (("remove", "/", "tree"), "busy"),
                        (("remove", h + "d/.", "tree"), "bad-input"), (("remove", h + "d/..", "tree"), "bad-input"), (("watch", "/none"), "not-found"),
                        (("stat", h, "other"), "bad-input"), (("write", h + "x", "9", "over"), "bad-input"), (("write", h + "x", "644", "maybe"), "bad-input"),
                        (("write", h + "d", "-", "over"), "bad-input"), (("write", h + "p", "-", "over"), "bad-input"), (("write", h + "d/f", "-", "new"), "exists"),
                        (("write", "/usr/x", "-", "over"), "denied"), (("write", "/none/x", "-", "over"), "not-found"), (("read", "x" * 300), "bad-input"),
                        (("pack", "/none"), "not-found"), (("pack", h + "p"), "bad-input")]:
        out, err, status = ask(pale, box, *words, content=[] if words[0] == "write" else None)
        assert status == STATUS[name] and err.strip(), (words, name, err, status)
    assert pale.sh(box, "ls d").text == "f\n"
    assert ask(pale, box, "format", "/")[2] == 125


def test_a_full_disk_is_a_limit(pale):
    box = pale.create("b", "--scratch", "memory", "--disk", "1M")
    assert code(pale, "write", box, "/tmp/f", input=b"x" * (4 << 20)) == "limit"
    assert pale.sh(box, "ls -A /tmp").text == ""


# --- drafts ---

@pytest.mark.basic
def test_mode_is_kept_or_given(pale, box):
    pale.ok("write", box, "f", input=b"1")
    assert pale.exec(box, "stat", "-c", "%a", "f").text == "644\n"
    pale.sh(box, "chmod 751 f")
    pale.ok("write", box, "f", input=b"2")
    assert pale.sh(box, "stat -c %a f; cat f").text == "751\n2"
    pale.ok("write", "--mode", "600", box, "f", input=b"3")
    assert pale.exec(box, "stat", "-c", "%a", "f").text == "600\n"


@pytest.mark.basic
def test_only_if_it_is_new(pale, box):
    pale.ok("write", "--new", box, "f", input=b"1")
    assert code(pale, "write", "--new", box, "f", input=b"2") == "exists"
    pale.sh(box, "ln -s nowhere l")
    assert code(pale, "write", "--new", box, "l", input=b"2") == "exists"
    assert pale.ok("cat", box, "f").text == "1"


def test_of_many_writers_of_a_new_file_one_wins(pale, box):
    writers = [pale.start("write", "--new", box, "f", stdin=-1) for _ in range(6)]
    for i, p in enumerate(writers):
        p.stdin.write(str(i).encode() * 1000)
    for p in writers:
        p.stdin.close()
    ended = [p.wait(20) for p in writers]
    assert sorted(ended) == [0] + [125] * 5
    assert pale.ok("cat", box, "f").text == str(ended.index(0)) * 1000


def test_a_link_is_replaced_and_not_followed(pale, box):
    pale.sh(box, "echo old > target; ln -s target l")
    pale.ok("write", box, "l", input=b"new")
    assert pale.sh(box, "cat target; test -L l || cat l").text == "old\nnew"


@pytest.mark.parametrize("pieces", [[], [b"\1\0"], [wire.piece(b"half")], [struct.pack("<I", 100) + b"half"]])
def test_content_that_only_stops_changes_nothing(pale, box, pieces):
    pale.ok("write", box, "f", input=b"old")
    out, err, status = ask(pale, box, "write", "/home/agent/f", "-", "over", content=pieces)
    assert status == STATUS["gone"] and "ended early" in err
    assert pale.sh(box, "cat f; ls -A").text == "oldf\n"


def test_content_in_any_pieces(pale, box):
    data = wire.piece(b"ab") + wire.piece(b"c") + wire.piece(b"")
    assert ask(pale, box, "write", "/home/agent/f", "640", "over", content=[data[i:i + 1] for i in range(len(data))])[2] == 0
    assert pale.sh(box, "cat f; stat -c %a f").text == "abc640\n"


@pytest.mark.parametrize("end", ["client", "box"])
def test_a_writer_that_is_killed_changes_nothing_and_leaves_nothing(pale, box, end):
    pale.ok("write", box, "f", input=b"old")
    p = pale.start("write", box, "f", stdin=-1)
    p.stdin.write(b"new" * 100000)
    p.stdin.flush()
    time.sleep(0.3)
    if end == "client":
        p.kill()
        p.wait()
    else:
        pale.ok("stop", box)
    assert wait_until(lambda: pale.sh(box, "ls -A").text == "f\n") and pale.ok("cat", box, "f").text == "old"


# --- names ---

@pytest.mark.basic
def test_folders(pale, box):
    pale.ok("mkdir", box, "a", "b")
    assert code(pale, "mkdir", box, "a") == "exists" and code(pale, "mkdir", box, "c/d") == "not-found"
    pale.ok("mkdir", "-p", box, "c/d//e/", "/home/agent/c", "/tmp/x/y")
    assert pale.sh(box, "ls -d a b c/d/e /tmp/x/y; stat -c %a c/d").text.split() == ["/tmp/x/y", "a", "b", "c/d/e", "755"]


@pytest.mark.basic
def test_moving(pale, box):
    pale.sh(box, "echo 1 > f; echo 2 > g; mkdir d")
    pale.ok("mv", box, "f", "h")
    pale.ok("mv", box, "h", "d")
    assert code(pale, "mv", "--new", box, "g", "d/h") == "exists"
    pale.ok("mv", box, "g", "d/h")
    pale.ok("mv", "--new", box, "d", "e")
    assert pale.sh(box, "cat e/h; ls").text == "2\ne\n"
    done = pale.run("mv", box, "e/h", "/tmp/h")
    assert done.code == 125 and "different mounts" in done.errors and "copy" in done.errors


@pytest.mark.basic
def test_removing(pale, box):
    pale.sh(box, "mkdir -p d/e k t/u; echo x > d/e/f; echo x > keep; ln -s ../../keep d/e/l; ln -s ../k d/m; echo y > k/y; ln -s k s; echo x > g; mkdir -m 0 d/closed")
    assert code(pale, "del", box, "d") == "exists" and code(pale, "del", box, "none") == "not-found"
    pale.ok("del", box, "g", "s", "t/u", "t")
    pale.ok("del", "--tree", box, "d")
    assert pale.sh(box, "ls; cat keep k/y").text == "k\nkeep\nx\ny\n"
    pale.ok("del", "-r", box, "keep")


def test_removing_a_deep_tree(pale, box):
    pale.py(box, "import os\nos.mkdir('d')\nos.chdir('d')\nfor i in range(300):\n  os.mkdir('n' * 200)\n  os.chdir('n' * 200)")
    pale.ok("del", "--tree", box, "d")
    assert pale.sh(box, "ls -A").text == ""


def test_a_mount_is_not_emptied(pale, box):
    pale.sh(box, "echo x > f; echo x > /tmp/f")
    for path in ("/home/agent", "/tmp", "/"):
        assert pale.run("del", "--tree", box, path).code == 125
    assert pale.sh(box, "cat f /tmp/f").text == "x\nx\n"


SWAPPER = """
import os, time
for n in ("a", "b"):
    os.makedirs(f"/tmp/t/{n}", exist_ok=True)
end = time.time() + 20
while time.time() < end:
    for n in ("a", "b"):
        for step in (lambda: os.rename(f"/tmp/t/{n}", "/tmp/aside"), lambda: os.symlink("/home/agent/keep", f"/tmp/t/{n}"), lambda: os.unlink(f"/tmp/t/{n}"),
                     lambda: os.rename("/tmp/aside", f"/tmp/t/{n}"), lambda: os.makedirs(f"/tmp/t/{n}/x/y"), lambda: open(f"/tmp/t/{n}/f", "w").close(),
                     lambda: os.mkfifo(f"/tmp/t/{n}/p")):
            try:
                step()
            except OSError:
                pass
"""


def test_who_swaps_folders_for_links_meanwhile_gains_nothing(pale, box):
    pale.sh(box, "mkdir -p keep/sub; echo precious > keep/f; echo precious > keep/sub/f")
    pale.ok("exec", "-d", box, "--", "python3", "-c", SWAPPER)
    watch = pale.start("watch", "--json", "--tree", box, "/tmp")
    assert wait_until(lambda: pale.run("files", box, "/tmp/t").code == 0)
    for _ in range(40):
        assert pale.run("del", "--tree", box, "/tmp/t", timeout=20).code in (0, 125)
        pale.run("mkdir", "-p", box, "/tmp/t/a", timeout=20)
        pale.run("files", box, "/tmp/t/a", timeout=20)
    assert watch.poll() is None
    watch.send_signal(signal.SIGINT)
    out, err = watch.communicate(timeout=20)
    told = [json.loads(line) for line in out.splitlines()]
    assert watch.returncode == 130, (out[-300:], err)
    assert told[0] == {"event": "ready", "folder": False, "name": ""} and len(told) > 40
    assert not [t for t in told if "keep" in t["name"]]
    assert pale.sh(box, "cat keep/f keep/sub/f").text == "precious\nprecious\n"


# --- happenings ---

class Watch:
    """`pale watch --json` beside the test."""

    def __init__(self, pale, *args):
        self.p = pale.start("watch", "--json", *args)
        self.rest = b""
        assert self.next() == ("ready", "")

    def next(self, seconds=15):
        while b"\n" not in self.rest:
            ready, _, _ = select.select([self.p.stdout], [], [], seconds)
            data = os.read(self.p.stdout.fileno(), 65536) if ready else b""
            if not data:
                return None
            self.rest += data
        line, self.rest = self.rest.split(b"\n", 1)
        told = json.loads(line)
        return told["event"], told["name"] + ("/" if told["folder"] and told["name"] else "")

    def until(self, last):
        found = []
        while not found or found[-1] != last:
            one = self.next()
            assert one, f"{last} did not come after {found}"
            found.append(one)
        return found


@pytest.mark.basic
def test_happenings_in_a_folder(pale, box):
    w = Watch(pale, box)
    pale.sh(box, "echo x > f; chmod 600 f; mkdir d; echo y > d/untold; mv f g; rm g; touch 'new\nline'")
    seen = w.until(("changed", "new\nline"))
    assert [e for i, e in enumerate(seen) if i == 0 or e != seen[i - 1]] == [("created", "f"), ("changed", "f"), ("created", "d/"), ("moved-from", "f"), ("moved-to", "g"), ("removed", "g"),
                    ("created", "new\nline"), ("changed", "new\nline")]
    w.p.send_signal(signal.SIGINT)
    assert w.p.wait(10) == 130


def test_happenings_in_a_tree(pale, box):
    pale.sh(box, "mkdir -p old/deep")
    w = Watch(pale, "--tree", box, "/home/agent")
    pale.sh(box, "echo x > old/deep/f")
    assert ("created", "old/deep/f") in w.until(("changed", "old/deep/f"))
    pale.sh(box, "mkdir -p a/b/c; echo x > a/b/c/f")
    seen = set(w.until(("created", "a/b/c/f")))
    assert {("created", "a/"), ("created", "a/b/"), ("created", "a/b/c/")} <= seen
    # What is gone again before the moved folder is looked at was never seen, so it is waited for.
    pale.sh(box, "mv a/b old/b; echo y > old/b/c/g")
    seen = w.until(("created", "old/b/c/g"))
    pale.sh(box, "rm -r old/b; echo > end")
    seen += w.until(("created", "end"))
    told = [s for s in seen if s[0] != "changed"]
    assert [("moved-from", "a/b/"), ("moved-to", "old/b/"), ("created", "old/b/c/g")] == [t for t in told if t[0] in ("moved-from", "moved-to") or t[1].endswith("/g")][:3]
    assert ("removed", "old/b/") in told and ("removed", "old/b/c/") in told


def test_what_the_host_changes_in_a_live_project_is_told(pale, hostdir):
    (hostdir / "sub").mkdir()
    box = pale.create("b", "--project", "live", "--project-path", hostdir)
    w = Watch(pale, "--tree", box, hostdir)
    (hostdir / "sub" / "f").write_text("x")
    assert ("created", "sub/f") in w.until(("changed", "sub/f"))


def test_a_watch_ends_with_what_it_watches(pale, box):
    pale.sh(box, "mkdir d; echo x > f")
    folder, file = Watch(pale, "--tree", box, "d"), Watch(pale, box, "f")
    pale.sh(box, "echo y >> f; rm f; mv d e")
    assert file.until(("removed", ""))[0] == ("changed", "") and file.p.wait(10) == 0
    assert folder.until(("moved-from", "")) and folder.p.wait(10) == 0


def test_a_watch_ends_with_its_input(pale, box):
    k = keeper(pale, box).exec("watch", "/tmp", flags=("EXEC_BUILTIN", "EXEC_STDIN"))
    assert k.until("TELL_STDOUT")[-1][1] == b"ready - \0"
    k.ask("ASK_STDIN", b"anything").ask("ASK_STDIN_END")
    assert k.all()[3] == 0


def test_folders_that_may_not_be_read_are_named(pale, box):
    pale.sh(box, "mkdir d; mkdir -m 0 d/closed")
    k = keeper(pale, box).exec("watch", "/home/agent", "tree", flags=("EXEC_BUILTIN", "EXEC_STDIN")).ask("ASK_STDIN_END")
    assert k.all()[0] == b"unwatched d d/closed\0ready - \0"


def test_too_many_folders(pale, box):
    pale.sh(box, "mkdir many; cd many; i=0; while [ $i -lt 1022 ]; do mkdir $i; i=$((i+1)); done")
    w = Watch(pale, "--tree", box, "many")
    pale.sh(box, "cd many; mkdir one; mkdir two; echo > f")
    assert w.until(("limit", ""))[:2] == [("created", "one/"), ("created", "two/")] and w.p.wait(10) == 125
    out, err, status = ask(pale, box, "watch", "/home/agent/many", "tree")
    assert status == STATUS["limit"] and out == b"limit d \0" and "more than 1024 folders" in err


def test_lost_happenings_are_told(pale, box):
    k = keeper(pale, box).exec("watch", "/tmp", "tree", flags=("EXEC_BUILTIN", "EXEC_STDIN"))
    k.until("TELL_STDOUT")
    pale.py(box, "import os\nfor n in 'ab': open('/tmp/' + n, 'w').close()\nfor i in range(300000): os.utime('/tmp/' + 'ab'[i % 2])", timeout=60)
    seen = b""
    while b"overflow - \0" not in seen:
        seen += k.next()[1]
    pale.sh(box, "mkdir -p /tmp/after; echo > /tmp/after/f")
    while b"created - after/f\0" not in seen:
        seen += k.next()[1]
    k.close()


def test_escapes_in_names_are_shown_and_not_obeyed(pale, box):
    p = pale.start("watch", box)
    assert p.stdout.readline() == b"ready\n"
    pale.py(box, "open('\\x1b[31m\\u202e', 'w')")
    assert p.stdout.readline() == rb"created    \x1b[31m\u{202e}" + b"\n"
