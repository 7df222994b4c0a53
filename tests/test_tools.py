# SPDX-License-Identifier: Apache-2.0
"""The checks of the sources, each fed with what it must refuse."""
import pathlib
import subprocess

import pytest

TOOLS = pathlib.Path(__file__).resolve().parent.parent / "tools"
HEAD = "/* SPDX-License-Identifier: Apache-2.0 */\n"


def tree(root, files):
    (root / "src").mkdir(exist_ok=True)
    for name, text in files.items():
        f = root / "src" / name
        f.parent.mkdir(parents=True, exist_ok=True)
        f.write_text(text)
    return root


def check(root, tool, *args):
    done = subprocess.run([TOOLS / tool, *args, root], capture_output=True, text=True, timeout=60)
    assert done.returncode in (0, 1), done
    return done.stdout.strip() if done.returncode else ""


LAYERS = "# lowest first\nbase    things\nleft right   two\ntop  above\n"


def layered(root, place, include):
    files = {"LAYERS": LAYERS, "base/b.h": "", "left/l.h": "", "right/r.h": "", "top/t.h": ""}
    files[place] = include + "\n"
    return check(tree(root, files), "check-layers")


@pytest.mark.parametrize("place,include", [("left/x.c", '#include "base/b.h"'), ("top/x.c", '#include "left/l.h"'), ("left/x.c", '#include "left/l.h"'),
                                           ("base/x.c", "#include <stdio.h>"), ("base/x.c", '#include "made.inc"')])
def test_layers_let_pass(tmp_path, place, include):
    assert layered(tmp_path, place, include) == ""


@pytest.mark.parametrize("place,include,says", [
    ("base/x.c", '#include "left/l.h"', "base must not know left"), ("left/x.c", '#include "right/r.h"', "left must not know right"),
    ("left/x.h", '  #  include "top/t.h"', "left must not know top"), ("left/x.c", '#include "l.h"', "without its folder"),
    ("left/x.c", '#include "../base/b.h"', "relative path"), ("left/x.c", '#include "nowhere/n.h"', "of no layer"),
    ("extra/x.c", "", "not in src/LAYERS"),
])
def test_layers_refuse(tmp_path, place, include, says):
    assert says in layered(tmp_path, place, include)


def function(lines=1, branches=0):
    return HEAD + "int f(int a)\n{\n" + "    a++;\n" * (lines - 3) + "    if (a)\n        a++;\n" * branches + "}\n"


def test_size_lets_the_limits_pass(tmp_path):
    assert check(tree(tmp_path, {"base/a.c": function(100), "base/b.c": function(3, 24), "base/c.c": HEAD + "\n" * 999}), "check-size") == ""


@pytest.mark.parametrize("text,says", [(function(101), "f has 101 lines"), (function(3, 25), "f has complexity 26"), (HEAD + "\n" * 1000, "1001 lines"),
                                       (HEAD + "static int\ng(void)\n{\n" + "    x();\n" * 100 + "}\n", "g has")])
def test_size_refuses(tmp_path, text, says):
    assert says in check(tree(tmp_path, {"base/a.c": text}), "check-size")


def test_size_does_not_count_text(tmp_path):
    body = '    puts("if for while && || ?");\n    /* if if if && */\n' * 40
    assert check(tree(tmp_path, {"base/a.c": HEAD + "int f(void)\n{\n" + body + "}\n"}), "check-size") == ""


@pytest.mark.parametrize("name", ["strcpy", "strcat", "sprintf", "gets", "strtok", "atoi", "strtol", "sscanf", "alloca", "system", "popen", "mktemp", "rand"])
def test_banned_functions_are_found(tmp_path, name):
    assert f"{name} is banned" in check(tree(tmp_path, {"base/a.c": HEAD + f"int x = {name} (y);\n"}), "check-text", "banned")


def test_banned_names_inside_others_pass(tmp_path):
    text = HEAD + '/* strcpy(a, b) */\nint my_system(int);\nint y = s->system(1) + x.rand(2);\nchar *s = "system(1)";\nint z = filesystem(1);\n'
    assert check(tree(tmp_path, {"base/a.c": text}), "check-text", "banned") == ""


def test_missing_licence_is_found(tmp_path):
    root = tree(tmp_path, {"base/a.c": "int x;\n", "base/b.c": HEAD})
    found = check(root, "check-text", "spdx")
    assert "base/a.c" in found and "b.c" not in found


def test_unfinished_business_is_found(tmp_path):
    assert "TODO" in check(tree(tmp_path, {"base/a.c": HEAD + "/* TODO: later */\n"}), "check-text", "unfinished")


def test_one_name_twice_is_found(tmp_path):
    root = tree(tmp_path, {"base/a.c": HEAD, "left/a.c": HEAD, "base/main.c": HEAD, "left/main.c": HEAD})
    found = check(root, "check-text", "names")
    assert "a.c" in found and "main.c" not in found


def test_every_count_is_in_the_last_line_of_lint():
    done = subprocess.run([TOOLS / "lint"], capture_output=True, text=True, timeout=120)
    marks = [line.split()[0] for line in done.stdout.splitlines() if line[:3] in ("ok ", "FAI", "ski")]
    want = f"{marks.count('ok')} passed, {marks.count('FAILED')} failed, {marks.count('skipped')} skipped"
    assert done.stdout.splitlines()[-1] == want
