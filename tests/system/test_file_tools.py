# SPDX-License-Identifier: Apache-2.0
"""What a model's tools do with files of a box, over paled's socket: lines, edits, names by pattern, searches, patches."""
import base64
import time

import pytest

from rest import query

pytestmark = pytest.mark.once

HOME = "/home/agent"


@pytest.fixture(scope="module")
def tools(shared_daemon):
    return Tools(shared_daemon[0].rest)


class Tools:
    """A box of its own and the five operations in it."""

    def __init__(self, api):
        self.api = api
        self.box = api.make("tools")["id"]

    def url(self, what, **fields):
        return query(f"/v1/boxes/{self.box}/files/{what}", **fields)

    def get(self, what, **fields):
        return self.api.good("GET", self.url(what, **fields))

    def no(self, code, what, **fields):
        return self.api.bad("GET", self.url(what, **fields), code=code)["detail"]

    def post(self, what, **fields):
        return self.api.good("POST", self.url(what), fields)

    def refused(self, code, what, **fields):
        return self.api.bad("POST", self.url(what), fields, code=code)["detail"]

    def write(self, path, data, **fields):
        self.api.write(self.box, path, data if isinstance(data, bytes) else data.encode(), **fields)

    def read(self, path):
        return self.api.read(self.box, path)

    def sh(self, command):
        return self.api.out(self.box, command)

    def slow(self, command):
        """For what may take longer than a request."""
        job = self.api.start(self.box, command)
        while (j := self.api.wait(self.box, job, timeout="5s"))["state"] != "ended":
            pass
        assert j["result"]["exit"] == 0, j


# --- lines ---

def lines(first, last, total, text, more=False, **other):
    return {"first": first, "last": last, "total": total, "more": more, "binary": False, "cut": False, "text": text, **other}


@pytest.mark.basic
def test_lines_by_number_and_from_the_end(tools):
    text = "".join(f"line {i}\n" for i in range(1, 101))
    tools.write("f", text)  # where commands begin
    get = lambda **fields: tools.get("lines", path="f", **fields)
    about = {"path": "f", "size": len(text)}
    assert get() == {**about, **lines(1, 100, 100, text)}
    assert get(first=99) == {**about, **lines(99, 100, 100, "line 99\nline 100\n")}
    assert get(first=3, count=2) == {**about, **lines(3, 4, 100, "line 3\nline 4\n", more=True)}
    assert get(first=100, count=1)["more"] is False and get(first=99, count=1)["more"] is True
    assert get(first=101) == {**about, **lines(101, 0, 100, "")}
    assert get(first=10 ** 15) == {**about, **lines(10 ** 15, 0, 100, "")}
    assert get(count=0) == {**about, **lines(1, 0, 100, "", more=True)}
    assert get(tail=2) == {**about, **lines(99, 100, 100, "line 99\nline 100\n")}
    assert get(tail=1000) == {**about, **lines(1, 100, 100, text)}
    assert get(tail=0) == {**about, **lines(101, 0, 100, "")}
    assert get(bytes=20) == {**about, **lines(1, 2, 100, "line 1\nline 2\n", more=True)}
    assert get(bytes=21)["last"] == 3
    assert get(tail=5, bytes=20) == {**about, **lines(99, 100, 100, "line 99\nline 100\n")}


@pytest.mark.parametrize("text,count", [("", 0), ("\n", 1), ("a", 1), ("a\n", 1), ("a\n\n", 2), ("a\nb", 2), ("a\r\nb\r\n", 2), ("\n\n\n", 3), ("é\nü", 2)])
def test_what_a_line_is(tools, text, count):
    tools.write("f", text)
    a = tools.get("lines", path=f"{HOME}/f")
    assert (a["total"], a["last"], a["text"], a["more"]) == (count, count, text, False)
    for n in range(1, count + 1):
        want = text.split("\n")[n - 1] + ("\n" if text.count("\n") >= n else "")
        a = tools.get("lines", path=f"{HOME}/f", first=n, count=1)
        assert (a["first"], a["last"], a["text"], a["more"]) == (n, n, want, n < count)
        a = tools.get("lines", path=f"{HOME}/f", tail=count - n + 1, count=5000)
        assert (a["first"], a["last"]) == (n, count)


def test_a_line_that_is_too_long_is_cut(tools):
    tools.write("f", "é" * 1000 + "\nshort\n" + "x" * 3000)
    a = tools.get("lines", path="f", bytes=101)
    assert a["cut"] and a["more"] and (a["first"], a["last"], a["total"]) == (1, 1, 3) and a["text"] == "é" * 50
    a = tools.get("lines", path="f", first=2, bytes=100)
    assert not a["cut"] and (a["last"], a["text"]) == (2, "short\n")
    a = tools.get("lines", path="f", tail=2, bytes=100)
    assert a["cut"] and not a["more"] and (a["first"], a["last"], a["text"]) == (3, 3, "x" * 100)
    tools.write("f", "x" * (1 << 20))
    a = tools.get("lines", path="f", bytes=524288)
    assert a["cut"] and a["text"] == "x" * 524288 and a["total"] == 1 and not a["more"]


def test_bytes_that_are_no_text(tools):
    tools.write("f", b"\x7fELF\0\1\2\n" * 10)
    a = tools.get("lines", path="f")
    assert a["binary"] and a["last"] == 0 and a["size"] == 80 and "text" not in a and "total" not in a
    assert tools.get("lines", path="f", tail=3)["binary"]
    tools.write("f", b"latin \xe9\nnext\n")
    a = tools.get("lines", path="f", count=1)
    assert "text" not in a and base64.b64decode(a["base64"]) == b"latin \xe9\n" and not a["binary"]
    tools.write("f", b"x\n" * 5000 + b"\0")
    assert not tools.get("lines", path="f")["binary"]


def test_lines_of_what_is_no_file(tools):
    tools.sh("rm -f p loop; mkfifo p; ln -s loop loop; mkdir -p d; echo secret > closed; chmod 0 closed")
    for path, code in (("p", "bad-input"), ("loop", "bad-input"), ("d", "bad-input"), ("/dev/zero", "bad-input"), ("none", "not-found"), ("closed", "denied"),
                       ("d/none", "not-found")):
        tools.no(code, "lines", path=path)
    for bad in ({"first": 0}, {"bytes": 0}, {"first": 1, "tail": 1}, {"bytes": 524289}):
        tools.no("bad-input", "lines", path="f", **bad)
    tools.write("l-target", "through a link\n")
    tools.sh("ln -sf l-target l")
    assert tools.get("lines", path="l")["text"] == "through a link\n"
    a = tools.get("lines", path="/proc/self/status", count=1)
    assert a["text"].startswith("Name:") and a["size"] == 0 and a["total"] > 10 and a["more"]


@pytest.mark.limit(60)
def test_a_file_of_a_gigabyte(tools):
    tools.sh("python3 -c 'f = open(\"big\", \"wb\"); f.write(b\"x\" * 79 + b\"\\n\" * 1); f.write(b\"first\\n\" * 20000); f.truncate(1 << 30)'")
    a = tools.get("lines", path="big", first=2, count=2)
    assert (a["first"], a["last"], a["text"], a["size"], a["more"]) == (2, 3, "first\nfirst\n", 1 << 30, True) and "total" not in a
    a = tools.get("lines", path="big", first=10 ** 9)
    assert a["last"] == 0 and a["total"] == 20002
    a = tools.get("lines", path="big", tail=1, bytes=10)
    assert a["first"] == a["last"] == 20002 and a["cut"]
    tools.sh("rm big")


def test_lines_of_a_file_that_changes_meanwhile(tools):
    job = tools.api.start(tools.box, ["python3", "-c", "import os, time\nend = time.time() + 8\nn = 0\nwhile time.time() < end:\n  n = n % 9 + 1\n"
                                      "  open('changing', 'w').write(f'{n}\\n' * 10000 * n)"])
    for i in range(60):
        a = tools.api.get(tools.url("lines", path="changing", **({"tail": 5} if i % 2 else {"first": 100})))
        assert a.status in (200, 404, 429), a
    tools.api.post(f"/v1/boxes/{tools.box}/jobs/{job}/signal", {})


# --- edits ---

@pytest.mark.basic
def test_an_edit_replaces_what_occurs_once(tools):
    tools.write("e", "one\ntwo\nthree\n", mode="751")
    before = tools.sh("stat -c '%u %g %a' e")
    assert tools.post("edit", path="e", old="two\n", new="2\n2\n") == {"path": "e", "replaced": 1, "line": 2}
    assert tools.read("e") == b"one\n2\n2\nthree\n" and tools.sh("stat -c '%u %g %a' e") == before
    assert tools.post("edit", path="e", old="2", new="é\t\"", all=True) == {"path": "e", "replaced": 2, "line": 2}
    assert tools.read("e").decode() == "one\né\t\"\né\t\"\nthree\n"
    assert tools.post("edit", path=f"{HOME}/e", old="three\n", new="")["line"] == 4
    assert tools.read("e").decode() == "one\né\t\"\né\t\"\n" and tools.sh("ls -A | grep -c pale; true") == "0\n"


def test_an_edit_that_is_wrong_about_the_file_changes_nothing(tools):
    text = b"a\r\nb\r\na\r\n"
    tools.write("e", text)
    assert "occurs 0 times" in tools.refused("bad-input", "edit", path="e", old="x", new="y")
    assert "\\r\\n" in tools.refused("bad-input", "edit", path="e", old="a\nb", new="y").replace("\\\\", "\\")
    why = tools.refused("bad-input", "edit", path="e", old="a", new="y")
    assert "occurs 2 times" in why and "line 1" in why and "all" in why
    assert "same" in tools.refused("bad-input", "edit", path="e", old="b", new="b")
    assert "empty" in tools.refused("bad-input", "edit", path="e", old="", new="b")
    assert tools.read("e") == text
    assert tools.post("edit", path="e", old="a\r\nb", new="c")["replaced"] == 1 and tools.read("e") == b"c\r\na\r\n"


def test_occurrences_do_not_overlap(tools):
    tools.write("e", "aaaaa")
    assert tools.post("edit", path="e", old="aa", new="b", all=True)["replaced"] == 2 and tools.read("e") == b"bba"


def test_an_edit_follows_links_and_keeps_them(tools):
    tools.sh("rm -rf t; mkdir -p t/sub; echo deep > t/sub/f; ln -s sub/f t/l; ln -s l t/m")
    assert tools.post("edit", path="t/m", old="deep", new="deeper")["replaced"] == 1
    assert tools.sh("readlink t/l t/m; cat t/sub/f") == "sub/f\nl\ndeeper\n"


def test_edits_of_what_is_no_file_or_not_ours(tools):
    tools.sh("rm -f p loop ro; mkfifo p; ln -s loop loop; mkdir -p d; echo secret > ro; chmod 444 ro; truncate -s 17M huge; ln -sf none dangling")
    for path, code in (("p", "bad-input"), ("loop", "bad-input"), ("d", "bad-input"), ("/dev/null", "bad-input"), ("none", "not-found"), ("ro", "denied"),
                       ("/etc/hostname", "denied"), ("huge", "limit"), ("dangling", "not-found")):
        tools.refused(code, "edit", path=path, old="\n" if path == "/etc/hostname" else "secret", new="x")
    assert tools.read("ro") == b"secret\n"
    tools.sh("rm huge")


def test_large_edits(tools):
    big = "x" * (1 << 19)
    tools.write("e", "begin " + big + " end")
    assert tools.post("edit", path="e", old=big, new="small")["replaced"] == 1 and tools.read("e") == b"begin small end"
    assert tools.post("edit", path="e", old="small", new=big)["replaced"] == 1 and len(tools.read("e")) == (1 << 19) + 10
    tools.write("e", "a" * 100000)
    tools.refused("limit", "edit", path="e", old="a", new="b" * 1000, all=True)
    tools.write("e", "ab" * (4 << 20))
    assert tools.post("edit", path="e", old="a", new="", all=True)["replaced"] == 4 << 20


def test_an_edit_while_somebody_else_writes(tools):
    """Each edit is of a file that was whole; none is lost without a word, none leaves half of anything."""
    tools.write("race", "0\n")
    job = tools.api.start(tools.box, ["sh", "-c", "i=0; while [ $i -lt 400 ]; do i=$((i+1)); echo $i > new; mv new race; done"])
    for _ in range(40):
        a = tools.api.post(tools.url("edit"), {"path": "race", "old": "\n", "new": " edited\n"})
        assert a.status in (200, 400, 429), a
        assert tools.read("race").decode().replace(" edited", "").strip().isdigit()
    tools.api.wait(tools.box, job)
    assert tools.sh("ls -A | grep -c '^.pale'; true") == "0\n"


# --- names by pattern ---

def found(tools, pattern, **fields):
    return [i["path"] for i in tools.get("glob", pattern=pattern, **fields)["items"]]


@pytest.fixture(scope="module")
def tree(tools):
    tools.sh("""mkdir -p g/src/deep/er g/lib g/.git/x g/.cache g/.github/w && cd g && touch -d @1 src/a.c && touch -d @2 src/a.h && touch -d @3 src/deep/er/b.c &&
        touch -d @4 lib/c.c && touch -d @5 top.c && touch -d @6 .git/x/d.c && touch -d @7 .cache/e.c && touch -d @8 .github/w/f.yml && touch -d @9 .dot.c &&
        ln -s src link && ln -s loop loop && ln -s ../.. lib/up && mkfifo lib/p.c && touch -d @10 lib/p.c && printf x > 'lib/odd name é' && chmod 0 lib/c.c &&
        mkdir closed && touch closed/z.c && chmod 0 closed""")
    return "g"


@pytest.mark.basic
def test_names_by_pattern(tools, tree):
    assert found(tools, "*.c", path=tree) == ["g/.dot.c", "g/top.c"]
    assert found(tools, "g/**/*.c") == ["g/lib/p.c", "g/.dot.c", "g/top.c", "g/lib/c.c", "g/src/deep/er/b.c", "g/src/a.c"]
    assert found(tools, "**/*.c", path=f"{HOME}/g/src/") == [f"{HOME}/g/src/deep/er/b.c", f"{HOME}/g/src/a.c"]
    assert found(tools, f"{HOME}/g/src/*") == found(tools, f"{HOME}/g/src/*", path="/nowhere") != []
    assert found(tools, f"{HOME}/g/src/*.[ch]") == [f"{HOME}/g/src/a.h", f"{HOME}/g/src/a.c"]
    assert found(tools, "src/*.{c,h}", path=tree) == ["g/src/a.h", "g/src/a.c"]
    assert found(tools, "l?b", path=tree) == ["g/lib"] and found(tools, "top.c", path=tree) == ["g/top.c"]
    assert found(tools, "lib/odd name ?", path=tree) == ["g/lib/odd name é"]
    assert found(tools, "none*", path=tree) == []
    a = tools.get("glob", pattern="src/*.c", path=tree)
    assert a["items"] == [{"path": "g/src/a.c", "type": "file", "size": 0, "mtime": 1}] and a["more"] is False and a["seen"] > 3


def test_what_begins_with_a_dot(tools, tree):
    assert found(tools, "**/*.c", path=tree, hidden="true") == [f"g/{n}" for n in ("lib/p.c", ".dot.c", ".cache/e.c", "top.c", "lib/c.c", "src/deep/er/b.c", "src/a.c")]
    assert found(tools, ".github/**/*.yml", path=tree) == found(tools, "{a,.github}/w/*", path=tree) == ["g/.github/w/f.yml"]
    assert found(tools, ".git/**", path=tree, hidden="true") == [] and found(tools, "**", path=f"{tree}/.git") == ["g/.git/x", "g/.git/x/d.c"]


def test_links_are_shown_and_not_followed(tools, tree):
    kinds = {i["path"]: i["type"] for i in tools.get("glob", pattern="{*,lib/*}", path=tree)["items"]}
    assert kinds["g/link"] == kinds["g/loop"] == kinds["g/lib/up"] == "symlink" and kinds["g/lib/p.c"] == "fifo" and kinds["g/src"] == "folder"
    assert found(tools, "link/*", path=tree) == [] and found(tools, "*.c", path=f"{tree}/link") == ["g/link/a.c"]


def test_the_newest_are_kept(tools):
    tools.sh("mkdir -p many && cd many && for i in $(seq 1 300); do touch -d @$i f$i; done")
    a = tools.get("glob", pattern="many/*")
    assert [i["mtime"] for i in a["items"]] == list(range(300, 100, -1)) and a["more"] and a["seen"] > 300
    a = tools.get("glob", pattern="many/*", limit=300)
    assert len(a["items"]) == 300 and not a["more"]
    assert tools.get("glob", pattern="many/*", limit=0) == {**tools.get("glob", pattern="many/*", limit=0), "items": [], "more": True}


def test_bad_patterns_and_places(tools, tree):
    for pattern in ("../*", "a/../b", "{a,/b}", "/", "{a,b}" * 7, "/".join("a" * 40)):
        assert tools.no("bad-input", "glob", pattern=pattern)
    for path, code in (("none", "not-found"), (f"{tree}/top.c", "bad-input"), (f"{tree}/closed", "denied"), (f"{tree}/loop", "bad-input"), (f"{tree}/lib/p.c", "bad-input")):
        tools.no(code, "glob", pattern="*", path=path)
    assert tools.get("glob", pattern="closed/*", path=tree)["items"] == []


def test_names_that_are_no_text(tools):
    tools.sh("python3 -c \"import os; os.makedirs(b'odd/d\\xff', exist_ok=True); open(b'odd/d\\xff/f\\xe9\\n', 'w')\"")
    assert sorted(found(tools, "odd/**")) == ["odd/d\ufffd", "odd/d\ufffd/f\ufffd\n"]
    assert found(tools, "odd/d?/*\n") == ["odd/d\ufffd/f\ufffd\n"]


def test_a_tree_that_is_deep(tools):
    tools.sh("python3 -c \"import os\nfor i in range(200): os.mkdir('n'); open('f', 'w'); os.chdir('n')\"")
    a = tools.get("glob", pattern="**/f", limit=1000)
    assert a["more"] and len(a["items"]) > 100
    tools.sh("rm -rf n f")


@pytest.fixture(scope="module")
def crowd(tools):
    """100,000 files in one folder, and 10,000 in a hundred."""
    tools.slow(["python3", "-c", """
import os
def make(path, n):
    f = os.open(path, os.O_CREAT | os.O_WRONLY)
    os.write(f, b"some words of text\\n" * 20 + b"number %d\\n" % n)
    os.close(f)
os.makedirs("crowd/one")
for i in range(100000):
    make(f"crowd/one/name-{i}.txt", i)
for i in range(100):
    os.makedirs(f"crowd/{i % 10}/d{i}")
    for k in range(100):
        make(f"crowd/{i % 10}/d{i}/f{k}.txt", 100000 + i * 100 + k)
"""])
    yield "crowd"
    tools.slow("rm -rf crowd")


def timed(tools, *args, **fields):
    start = time.monotonic()
    a = tools.get(*args, **fields)
    print(f"\n{args} {fields}: {time.monotonic() - start:.2f} s")
    assert time.monotonic() - start < 15
    return a


@pytest.mark.limit(180)
def test_names_of_a_crowd(tools, crowd):
    a = timed(tools, "glob", pattern="crowd/**/*.txt", limit=10000)
    assert len(a["items"]) == 10000 and a["more"] and a["seen"] >= 110000
    assert found(tools, "crowd/*/d99/f99.txt") == ["crowd/9/d99/f99.txt"]


@pytest.mark.limit(180)
def test_a_search_through_a_crowd(tools, crowd):
    a = timed(tools, "grep", pattern="number 12345", path="crowd", fixed="true")
    assert a["items"] == [{"path": "crowd/one/name-12345.txt", "line": 21, "text": "number 12345", "kind": "match"}]
    assert (a["files"], a["matches"], a["more"], a["seen"]) == (1, 1, False, 110000)
    for pattern, count in (("number 10\\d99$", 10), ("^[a-z]+ 109[0-9]{2}8$", 100), ("[1][0][9]999$", 1), ("[1][0][9][9][9][7]$", 1), ("NUMBER 9999\\d", 10)):
        a = timed(tools, "grep", pattern=pattern, path="crowd", ignore_case="true" if "NUM" in pattern else "false", mode="count")
        assert len(a["items"]) == count and a["seen"] == 110000, pattern
    a = timed(tools, "grep", pattern="words", path="crowd", mode="files")
    assert len(a["items"]) == 200 and a["more"]


def test_names_while_the_tree_changes(tools):
    tools.sh("mkdir -p busy")
    job = tools.api.start(tools.box, ["python3", "-c", "import os, shutil, time\nend = time.time() + 6\nwhile time.time() < end:\n  for n in ('a', 'b'):\n"
                                      "    shutil.rmtree(f'busy/{n}', ignore_errors=True)\n    os.makedirs(f'busy/{n}/x/y', exist_ok=True)\n    open(f'busy/{n}/x/f', 'w').close()\n"
                                      "    os.rename(f'busy/{n}', 'busy/c'); os.symlink('/', f'busy/{n}'); os.unlink(f'busy/{n}'); os.rename('busy/c', f'busy/{n}')"])
    for _ in range(100):
        for path in found(tools, "busy/**"):
            assert path.startswith("busy/") and "etc" not in path
    tools.api.wait(tools.box, job)


# --- searches ---

def grep(tools, pattern, **fields):
    return tools.get("grep", pattern=pattern, **fields)


def hits(a):
    return [(i["path"], i["line"], i["text"]) for i in a["items"] if i["kind"] == "match"]


@pytest.fixture(scope="module")
def words(tools):
    tools.sh("mkdir -p s/sub s/.git s/.hid")
    for path, text in (("s/a.txt", "alpha\nbeta 12\ngamma\n"), ("s/b.md", "Beta\r\nnaïve café\r\n"), ("s/sub/c.txt", "beta\nbeta beta\nno end"),
                       ("s/.git/d.txt", "beta\n"), ("s/.hid/e.txt", "beta\n"), ("s/bin", "beta\0\n"), ("s/latin", b"caf\xe9 beta\n"), ("s/empty", "")):
        tools.write(path, text)
    tools.sh("ln -s a.txt s/link; ln -s loop s/loop; mkfifo s/p; ln -s / s/root; echo beta > s/closed; chmod 0 s/closed")
    return "s"


@pytest.mark.basic
def test_lines_that_match(tools, words):
    a = grep(tools, "beta", path=words)
    assert hits(a) == [("s/a.txt", 2, "beta 12"), ("s/latin", 1, "caf\ufffd beta"), ("s/sub/c.txt", 1, "beta"), ("s/sub/c.txt", 2, "beta beta")]
    assert (a["files"], a["matches"], a["more"]) == (3, 4, False)
    assert hits(grep(tools, "BETA", path=words, ignore_case="true", glob="*.{md,txt}")) == [
        ("s/a.txt", 2, "beta 12"), ("s/b.md", 1, "Beta"), ("s/sub/c.txt", 1, "beta"), ("s/sub/c.txt", 2, "beta beta")]
    assert grep(tools, "beta", path=words, mode="files")["items"] == [{"path": p} for p in ("s/a.txt", "s/latin", "s/sub/c.txt")]
    a = grep(tools, "beta", path=words, mode="count")
    assert a["items"] == [{"path": p, "count": n} for p, n in (("s/a.txt", 1), ("s/latin", 1), ("s/sub/c.txt", 2))] and a["matches"] == 4
    assert hits(grep(tools, "beta", path=f"{HOME}/s", glob="sub/*")) == [(f"{HOME}/s/sub/c.txt", 1, "beta"), (f"{HOME}/s/sub/c.txt", 2, "beta beta")]
    assert hits(grep(tools, "beta", path="s/a.txt")) == hits(grep(tools, "beta 12", path="s", glob="a*")) == [("s/a.txt", 2, "beta 12")]
    assert hits(grep(tools, "beta", path="s/link")) == [("s/link", 2, "beta 12")]
    assert ("s/.hid/e.txt", 1, "beta") in hits(grep(tools, "beta", path=words, hidden="true"))
    assert grep(tools, "none of it", path=words)["items"] == []


@pytest.mark.parametrize("pattern,count", [("^beta$", 1), ("beta$", 3), ("^$", 0), ("\\d+", 1), ("[0-9]{2}", 1), ("[[:digit:]]\\s*$", 1), ("(al|gam)", 2), ("no end$", 1),
                                           ("^.{4} beta$", 2), ("\\bno\\b", 1), ("\\w+\\s\\w+", 3), ("[\\w-]+ [\\d]+", 1), ("n.", 1), ("(?i)BETA", 4), ("(?:b|B)eta", 4),
                                           ("a.*?a", 4), ("x*", 7), ("^", 7), ("", None), ("{", 0), ("beta|none", 4)])
def test_expressions(tools, words, pattern, count):
    if count is None:
        assert "pattern" in tools.no("bad-input", "grep", pattern=pattern, path=words)
        return
    a = grep(tools, pattern, path=words, glob="{*.txt,latin}")
    assert a["matches"] == count, hits(a)


def test_characters_are_not_bytes(tools, words):
    for pattern in ("^na.ve caf.\r?$", "ï", "[äïö]ve", "NAÏVE", "^.{10}\r$", "café"):
        a = grep(tools, pattern, path="s/b.md", ignore_case="true" if pattern.isupper() else "false")
        assert hits(a) == [("s/b.md", 2, "naïve café")], pattern
    assert grep(tools, "^caf. beta$", path="s/latin")["matches"] == 1


def test_lines_around_a_match(tools):
    tools.write("around", "".join(f"{i}{' hit' if i in (5, 7, 20) else ''}\n" for i in range(1, 25)))
    a = grep(tools, "hit", path="around", before=2, after=3)
    assert [(i["line"], i["kind"][0]) for i in a["items"]] == [(n, "m" if n in (5, 7, 20) else "c") for n in (3, 4, 5, 6, 7, 8, 9, 10, 18, 19, 20, 21, 22, 23)]
    assert a["matches"] == 3 and all(i["text"].startswith(str(i["line"])) for i in a["items"])
    a = grep(tools, "^1$|^24$", path="around", before=5, after=1)
    assert [i["line"] for i in a["items"]] == [1, 2, 19, 20, 21, 22, 23, 24]
    a = grep(tools, "hit", path="around", limit=1, after=1)
    assert [i["line"] for i in a["items"]] == [5, 6] and a["more"]
    assert grep(tools, "hit", path="around", limit=3)["more"] is False


def test_bounds_of_a_search(tools):
    tools.write("wide", "x" * 2000 + "needle\n" + "é" * 400 + "\n")
    a = grep(tools, "needle|é", path="wide")
    assert [i["text"] for i in a["items"]] == ["x" * 500, "é" * 250]
    tools.write("wide", ("y" * 600 + "\n") * 5000)
    a = grep(tools, "y", path="wide", limit=5000)
    assert a["more"] and 1500 < len(a["items"]) < 2500
    a = grep(tools, "y", path="wide", mode="count")
    assert a["items"] == [{"path": "wide", "count": 5000}]


@pytest.mark.limit(60)
def test_files_that_are_larger_than_a_page(tools):
    tools.slow(["python3", "-c", "f = open('large', 'w')\nfor i in range(2000000): f.write(f'line {i + 1} of many\\n')"])
    a = grep(tools, "line (1|1000000|2000000) of", path="large", before=1, after=1)
    assert [i["line"] for i in a["items"]] == [1, 2, 999999, 1000000, 1000001, 1999999, 2000000]
    assert all(i["text"] == f"line {i['line']} of many" for i in a["items"])
    assert grep(tools, "[0-4] of many$", path="large", mode="count")["matches"] == 1000000
    a = grep(tools, "of many", path="large", before=3, limit=5000)
    assert [i["line"] for i in a["items"]] == list(range(1, 5001))
    tools.sh("truncate -s 1G large")
    start = time.monotonic()
    assert grep(tools, "line 1999999 ", path="large")["matches"] == 1
    print(f"\na sparse gigabyte: {time.monotonic() - start:.2f} s")
    tools.sh("rm large; head -c 20M /dev/zero | tr '\\0' x > large")
    assert {i["line"] for i in grep(tools, "x{3}$", path="large")["items"]} == {1}  # in parts
    tools.sh("rm large")


def test_bad_searches(tools, words):
    for pattern in ("(", "a)" * 2 + "(", "[a", "[[:none:]]", "a{1", "a**", "\\1", "\\p{L}", "a\nb", "(?=a)", "x{2,1}", "a\\"):
        a = tools.api.ask("GET", tools.url("grep", pattern=pattern, path=words))
        assert a.status in (200, 400), (pattern, a)
    assert "no regular expression" in tools.no("bad-input", "grep", pattern="(", path=words)
    for fields in ({"mode": "else"}, {"glob": "../*"}, {"before": 101}, {"limit": 5001}):
        tools.no("bad-input", "grep", pattern="a", **fields)
    for path, code in (("none", "not-found"), ("s/p", "bad-input"), ("/dev/zero", "bad-input"), ("s/closed", "denied"), ("s/loop", "bad-input")):
        tools.no(code, "grep", pattern="a", path=path)
    assert tools.api.ask("GET", tools.url("grep", pattern="((((a{200}){200}){200}){200})", path=words)).status in (400, 413)


def test_a_search_while_files_change(tools):
    tools.sh("mkdir -p live")
    job = tools.api.start(tools.box, ["python3", "-c", "import os, time\nend = time.time() + 6\nwhile time.time() < end:\n  for i in range(20):\n    p = f'live/{i}'\n"
                                      "    open(p, 'w').write('needle\\n' * 3000)\n    os.truncate(p, 10)\n    os.unlink(p); os.mkfifo(p); os.unlink(p); os.symlink('/etc/passwd', p); os.unlink(p)"])
    for _ in range(40):
        for i in grep(tools, "needle|root:", path="live")["items"]:
            assert i["text"] == "needle"
    tools.api.wait(tools.box, job)


# --- patches ---

def envelope(*lines):
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch", ""])


@pytest.fixture
def place(tools):
    """A folder of its own with three files."""
    tools.sh("rm -rf t && mkdir -p t/sub && printf '1\\n2\\n3\\n4\\n5\\n' > t/five && printf 'a\\nb' > t/bare && printf 'x\\r\\ny\\r\\n' > t/sub/crlf && chmod 755 t/five")
    return "t"


def state(tools):
    return tools.sh("cd t; find . -type f -printf '%P %m\\n' -exec cat {} \\; | sort")


@pytest.mark.basic
def test_an_envelope_changes_adds_moves_and_removes(tools, place):
    patch = envelope("*** Update File: five", "@@ 2", "-3", "+three", "*** Add File: new/deep/f", "+one", "+", "*** Update File: bare", "*** Move to: new/bare", " a", "-b", "+c",
                     "*** Delete File: sub/crlf")
    want = {"files": [{"path": "t/five", "action": "changed"}, {"path": "t/new/deep/f", "action": "added"}, {"path": "t/bare", "action": "moved", "to": "t/new/bare"},
                      {"path": "t/sub/crlf", "action": "removed"}]}
    before = state(tools)
    assert tools.post("patch", patch=patch, path=place, check=True) == want and state(tools) == before
    assert tools.post("patch", patch=patch, path=place) == want
    assert tools.read("t/five") == b"1\n2\nthree\n4\n5\n" and tools.read("t/new/deep/f") == b"one\n\n" and tools.read("t/new/bare") == b"a\nc\n"
    assert tools.sh("cd t; stat -c %a five; ls -A . sub new | tr '\\n' ' '") == "755\n.: five new sub  new: bare deep  sub: "


@pytest.mark.basic
def test_what_git_writes_fits(tools, place):
    """A diff of git's own, between two trees with everything in it, makes the one into the other."""
    done = tools.sh("""rm -rf was is && mkdir -p was/d && cd was && seq 1 200 > many && printf 'no end' > bare && printf 'gone\\n' > gone && seq 1 30 > moved && : > empty &&
        printf 'x\\r\\n' > crlf && echo 1 > 'with space' && cd .. && cp -a was is && cd is && sed -i 's/^20$/twenty/; 150d; 77i new' many && printf 'no end\\nend' > bare && rm gone empty &&
        mv moved d/moved && sed -i 's/^7$/seven/' d/moved && printf 'x\\r\\ny\\r\\n' > crlf && mv 'with space' 'd/with space' && : > new-empty && printf '#!/bin/sh\\n' > run && chmod 755 run && cd .. &&
        if command -v git > /dev/null; then git diff --no-index -M --no-prefix was is > patch.txt; diff -ruN was is > plain.txt; echo yes; fi; true""")
    if "yes" not in done:
        pytest.skip("no git in the box")
    # Between folders git puts their names where a/ and b/ stand.
    patch = tools.read("patch.txt").decode().replace("--git was/", "--git a/").replace(" is/", " b/").replace(" was/", " a/")
    tools.post("patch", patch=patch.replace("rename from was/", "rename from ").replace("rename from a/", "rename from ").replace("rename to b/", "rename to "), path="was")
    assert tools.sh("diff -r was is; stat -c %a was/run") == "755\n"


def test_plain_diffs_with_wrong_numbers(tools, place):
    patch = "--- five\n+++ five\n@@ -40,2 +40,3 @@\n 4\n+4.5\n 5\n"
    assert tools.post("patch", patch=patch, path=f"{HOME}/t")["files"] == [{"path": f"{HOME}/t/five", "action": "changed"}]
    assert tools.read("t/five") == b"1\n2\n3\n4\n4.5\n5\n"
    tools.post("patch", patch="--- a/t/bare\n+++ b/t/bare\n@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+B\n\\ No newline at end of file\n")
    assert tools.read("t/bare") == b"a\nB"
    tools.post("patch", patch="--- a/t/bare\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-a\n-B\n\\ No newline at end of file\n")
    assert tools.sh("ls t") == "five\nsub\n"


@pytest.mark.parametrize("code,patch", [
    ("bad-input", envelope("*** Update File: five", "-3", "+three", "*** Update File: bare", "-none", "+x")),
    ("bad-input", envelope("*** Add File: ok", "+x", "*** Update File: sub/crlf", "-x", "+z")),
    ("bad-input", envelope("*** Add File: ../out", "+x")), ("bad-input", envelope("*** Add File: /tmp/out", "+x")), ("bad-input", envelope("*** Delete File: sub")),
    ("exists", envelope("*** Delete File: bare", "*** Add File: five", "+x")), ("exists", envelope("*** Update File: five", "*** Move to: bare", "-3", "+x")),
    ("not-found", envelope("*** Delete File: five", "*** Update File: none", "-3", "+x")), ("not-found", envelope("*** Delete File: none")),
    ("bad-input", envelope("*** Add File: five/below", "+x")), ("bad-input", "nothing of a patch"), ("bad-input", ""),
    ("bad-input", "--- a/five\n+++ b/five\n@@ -1,9 +1,9 @@\n 1\n-2\n+two\n"), ("bad-input", "--- a/bare\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n"),
    ("unsupported", "diff --git a/five b/five\nold mode 100755\nnew mode 100644\n"),
    ("bad-input", "*** Begin Patch\n*** Update File: five\n-3\n"),
])
def test_a_patch_that_does_not_fit_changes_nothing(tools, place, code, patch):
    before = state(tools)
    tools.refused(code, "patch", patch=patch, path=place)
    assert state(tools) == before


def test_a_patch_that_stops_midway_says_what_it_wrote(tools, place):
    tools.sh("mkdir t/closed && echo 1 > t/closed/f && chmod 555 t/closed")
    why = tools.refused("denied", "patch", path=place, patch=envelope("*** Update File: five", "-3", "+three", "*** Update File: closed/f", "-1", "+2", "*** Delete File: bare"))
    assert "1 of 3" in why and "five" in why and tools.read("t/five") == b"1\n2\nthree\n4\n5\n" and tools.sh("ls t/bare; cat t/closed/f") == "t/bare\n1\n"
    why = tools.refused("denied", "patch", path=place, patch=envelope("*** Update File: closed/f", "-1", "+2"))
    assert "nothing was changed" in why
    tools.sh("chmod 755 t/closed")


def test_patches_of_what_is_no_file(tools, place):
    tools.sh("mkfifo t/p; ln -s loop t/loop; ln -s five t/link; ln -s / t/root; truncate -s 17M t/huge; mkdir -p t/d")
    for path, code in (("p", "bad-input"), ("loop", "bad-input"), ("d", "bad-input"), ("root/etc/hostname", None), ("huge", "limit")):
        patch = envelope(f"*** Update File: {path}", "@@", "+x")
        if code:
            tools.refused(code, "patch", patch=patch, path=place)
        else:
            tools.refused("denied", "patch", patch=patch, path=place)  # a link leads there, and the user may not write it
    tools.post("patch", path=place, patch=envelope("*** Update File: link", "-3", "+three"))
    assert tools.sh("cat t/five; readlink t/link").splitlines() == ["1", "2", "three", "4", "5", "five"]
    tools.post("patch", path=place, patch=envelope("*** Delete File: link"))
    assert tools.sh("test -f t/five; ls t/link 2>&1 | wc -l") == "1\n"
    for path, code in (("none", "not-found"), ("t/five", "not-found"), ("t/loop", "bad-input")):
        tools.refused(code, "patch", path=path, patch=envelope("*** Add File: x", "+x"))


def test_a_long_patch(tools, place):
    tools.sh("seq 1 20000 > t/long")
    hunks = "".join(f"@@ -{i} +{i} @@\n-{i}\n+{i} changed\n" for i in range(1, 20001, 5))
    tools.post("patch", path=place, patch="--- a/long\n+++ b/long\n" + hunks)
    assert tools.sh("grep -c changed t/long") == "4000\n"
    tools.post("patch", path=place, patch=envelope(*(line for i in range(500) for line in (f"*** Add File: many/f{i}", f"+{i}"))))
    assert tools.sh("ls t/many | wc -l; cat t/many/f499") == "500\n499\n"
