# SPDX-License-Identifier: Apache-2.0
"""Real work in a box: compilers, version control, package managers, multiplexers, debuggers."""
import os
import pathlib
import shutil
import tempfile
import textwrap

import pytest


def need(pale, box, *tools):
    for tool in tools:
        if pale.sh(box, f"command -v {tool}").code:
            pytest.skip(f"{tool} is not visible in the box")


def work(pale, box, script, timeout=90, **more):
    done = pale.exec(box, "bash", "-euo", "pipefail", "-c", textwrap.dedent(script), timeout=timeout, **more)
    assert done.code == 0, done
    return done.text


def test_gcc_and_make(pale, box):
    need(pale, box, "gcc", "make")
    out = work(pale, box, r"""
        mkdir p; cd p
        printf '#include <stdio.h>\nint twice(int);\nint main(void){printf("%%d\\n", twice(21));return 0;}\n' > main.c
        printf 'int twice(int a){return 2*a;}\n' > twice.c
        printf 'prog: main.o twice.o\n\t$(CC) -o $@ $^\n' > Makefile
        make -j4 -s CC=gcc && ./prog""")
    assert out == "42\n"


def test_git(pale, box):
    need(pale, box, "git")
    out = work(pale, box, """
        git config --global user.email a@b.c; git config --global user.name agent; git config --global init.defaultBranch main
        mkdir r; cd r; git init -q; for i in $(seq 50); do echo $i > f$i; done; git add -A; git commit -qm one
        git checkout -qb side; echo more >> f1; git commit -qam two; git checkout -q main; git merge -q side
        git gc -q; git fsck --strict; cd ..; git clone -q r s; cd s; git log --oneline | wc -l; git worktree add -q ../w; git status --short""")
    assert out.strip() == "2"


@pytest.mark.once
def test_python_venv_and_pip_offline(pale, box):
    need(pale, box, "python3")
    if pale.py(box, "import venv, ensurepip").code:
        pytest.skip("python3-venv is not installed")
    # A wheel by hand: a zip with one module and its records.
    out = work(pale, box, """
        python3 - <<'E'
        import zipfile
        with zipfile.ZipFile("tiny-1.0-py3-none-any.whl", "w") as z:
            z.writestr("tiny.py", "answer = 42\\n")
            z.writestr("tiny-1.0.dist-info/METADATA", "Metadata-Version: 2.1\\nName: tiny\\nVersion: 1.0\\n")
            z.writestr("tiny-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\\nGenerator: hand\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
            z.writestr("tiny-1.0.dist-info/RECORD", "tiny.py,,\\ntiny-1.0.dist-info/METADATA,,\\ntiny-1.0.dist-info/WHEEL,,\\ntiny-1.0.dist-info/RECORD,,\\n")
        E
        python3 -m venv v; . v/bin/activate
        pip install -q --no-index --disable-pip-version-check ./tiny-1.0-py3-none-any.whl
        python -c 'import tiny, sys; print(tiny.answer, sys.prefix)'""".replace("\n        ", "\n"))
    assert out == "42 /home/agent/v\n"


def test_node(pale, box):
    need(pale, box, "node")
    out = work(pale, box, """
        cat > m.js <<'E'
const { Worker, isMainThread, parentPort } = require('worker_threads'), fs = require('fs'), cp = require('child_process');
if (isMainThread) { new Worker(__filename).on('message', m => { fs.writeFileSync('o', String(m)); console.log(cp.execSync('cat o').toString()); }); }
else parentPort.postMessage(6 * 7);
E
        node m.js""".replace("\n        ", "\n"))
    assert out.strip() == "42"


def test_npm_script(pale, box):
    need(pale, box, "node", "npm")
    out = work(pale, box, """
        mkdir n; cd n; printf '{"name":"x","version":"1.0.0","scripts":{"hi":"node -p 6*7"}}' > package.json
        npm --offline --no-audit --no-fund --no-update-notifier run -s hi; npm --offline pack -s""")
    assert out.split() == ["42", "x-1.0.0.tgz"]


def test_cargo(pale, box):
    host = shutil.which("cargo") or shutil.which("cargo", path=os.path.expanduser("~/.cargo/bin"))
    if pale.sh(box, "command -v cargo").code:
        pytest.skip("cargo is not visible in the box" + (" (it lies in a home folder)" if host else ""))
    out = work(pale, box, "cargo init -q --vcs none c; cd c; cargo run -q --offline", timeout=120)
    assert out == "Hello, world!\n"


@pytest.mark.once
def test_go(pale, box):
    out = pale.sh(box, "PATH=$PATH:/usr/local/go/bin command -v go")
    if out.code:
        pytest.skip("go is not visible in the box")
    out = work(pale, box, r"""
        export PATH=$PATH:/usr/local/go/bin GOFLAGS=-mod=mod GOTOOLCHAIN=local
        mkdir g; cd g; go mod init x 2>/dev/null
        printf 'package main\nfunc main() { c := make(chan int); go func() { c <- 42 }(); println(<-c) }\n' > main.go
        go build -o prog && ./prog 2>&1""", timeout=170)
    assert out == "42\n"


def test_tmux_in_the_box(pale, box):
    need(pale, box, "tmux")
    out = work(pale, box, """
        tmux -f /dev/null new-session -d -s s 'echo in-$((40+2)); exec sleep 30'
        for i in $(seq 50); do tmux capture-pane -p -t s | grep -q in-42 && break; sleep 0.1; done
        tmux capture-pane -p -t s | head -1; tmux kill-server""")
    assert out.strip() == "in-42"


GDB = """
    printf 'int f(int a){return a*2;}\\nint main(void){return f(21);}\\n' > d.c; gcc -g -O0 -o d d.c
    gdb -q -batch -ex 'set startup-with-shell off' -ex 'break f' -ex run -ex 'print a' -ex finish ./d 2>&1"""


def test_gdb_under_debug(pale):
    box = pale.create("b", "--seccomp", "debug")
    need(pale, box, "gdb", "gcc")
    out = work(pale, box, GDB)
    assert "$1 = 21" in out and "Value returned is $2 = 42" in out


def test_gdb_is_refused_under_strict(pale, box):
    need(pale, box, "gdb", "gcc")
    assert "$1 = 21" not in pale.exec(box, "bash", "-c", GDB, timeout=60).text


def test_strace_under_debug(pale):
    box = pale.create("b", "--seccomp", "debug")
    need(pale, box, "strace")
    assert "execve(" in pale.exec(box, "strace", "-f", "sh", "-c", "true").errors


def test_project_live_edits_land_on_the_host(pale, hostdir):
    project = hostdir / "proj"
    project.mkdir()
    (project / "in").write_text("from host\n")
    done = pale.ok("run", "--project", "live", "--", "sh", "-c", "pwd; cat in; echo from box > out", cwd=project)
    assert done.text == f"{project}\nfrom host\n" and (project / "out").read_text() == "from box\n"
    assert (project / "out").stat().st_uid == os.geteuid()


def test_project_read_only(pale, hostdir):
    project = hostdir / "proj"
    project.mkdir()
    (project / "in").write_text("x")
    done = pale.run("run", "--project", "ro", "--", "sh", "-c", "cat in; echo y > in", cwd=project)
    assert done.code != 0 and done.text == "x" and "Read-only" in done.errors and (project / "in").read_text() == "x"


def test_volume_and_read(pale, hostdir):
    (hostdir / "v").mkdir()
    (hostdir / "r").mkdir()
    (hostdir / "r" / "f").write_text("read me")
    done = pale.ok("run", "--volume", f"{hostdir}/v:/mnt/v", "--volume", f"{hostdir}/r:/mnt/r:ro", "--read", hostdir / "r", "--",
                   "sh", "-c", f"echo w > /mnt/v/o; cat /mnt/r/f {hostdir}/r/f; echo n > /mnt/r/x || echo refused")
    assert (hostdir / "v" / "o").read_text() == "w\n" and done.text == "read meread merefused\n" and not (hostdir / "r" / "x").exists()


@pytest.mark.parametrize("place", ["/tmp", "/var/tmp"])
def test_project_below_a_scratch_folder(pale, place):
    """A project may lie where the box has a folder of its own."""
    with tempfile.TemporaryDirectory(prefix=f"plt-{os.environ.get('PALE_TEST_TAG', 'x')}-", dir=place) as project:
        done = pale.run("run", "--project", "live", "--", "sh", "-c", "pwd; echo x > out; echo y > ../other", cwd=project)
        assert done.code == 0 and done.text == project + "\n", done
        assert open(project + "/out").read() == "x\n" and not os.path.exists(place + "/other")
        box = pale.create("b", "--project", "live", "--volume", f"{project}:/home/agent/v:ro", "--volume", f"{project}/out:/tmp/a/file:ro", cwd=project)
        for _ in range(2):
            assert pale.sh(box, "cat ~/v/out /tmp/a/file; pwd").text == f"x\nx\n{project}\n"
            pale.ok("stop", box)


def test_a_link_in_the_way_of_a_mount_is_not_followed(pale, hostdir, root):
    """The box swaps the folder it was given a mount in for a link, and is started again."""
    box = pale.create("b", "--volume", f"{hostdir}:/tmp/a/b")
    assert pale.sh(box, "mv /tmp/a /tmp/x || ls /tmp/a").code in (0, 1)
    pale.ok("stop", box)
    data = pale.open_layer(box) / "tmp"
    shutil.rmtree(data / "a", ignore_errors=True)
    (data / "a").symlink_to(root)
    done = pale.exec(box, "ls", "/tmp/a/b")
    assert done.code == 125 and "/tmp/a/b" in done.errors and not (root / "b").exists(), done
