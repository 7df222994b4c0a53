# SPDX-License-Identifier: Apache-2.0
"""What people run in a box must work under its filter: real tools, under `seccomp-run PROFILE`, with nothing else around.

PALE_SECCOMP_RUN names the seccomp-run program of the build. Each command runs under init's own list with the profile
above it, as in a box. A tool that is not installed is a skip.
"""

import os
import shutil
import subprocess

import pytest

RUN = os.environ.get("PALE_SECCOMP_RUN")


@pytest.fixture(autouse=True)
def runner_is_built():
    if not RUN or not os.access(RUN, os.X_OK):
        pytest.skip("PALE_SECCOMP_RUN does not name the seccomp-run of a build")


def environment(home, **more):
    scratch = home / ".tmp"
    scratch.mkdir(exist_ok=True)
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8", "TMPDIR": str(scratch), "TERM": "xterm"}
    for name in ("RUSTUP_HOME", "CARGO_HOME", "PYENV_ROOT"):
        if name in os.environ:
            env[name] = os.environ[name]
    # Version managers look below the home folder, which is another one here.
    env.setdefault("RUSTUP_HOME", os.path.expanduser("~/.rustup"))
    env.setdefault("CARGO_HOME", os.path.expanduser("~/.cargo"))
    return {**env, **more}


def run(cwd, *command, profile="strict", timeout=120, env=None):
    if not shutil.which(command[0]):
        pytest.skip(command[0] + " is not installed")
    done = subprocess.run([RUN, "init+" + profile, "--", *command], cwd=cwd, env=environment(cwd, **(env or {})), timeout=timeout,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}: status {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done.stdout


def sh(cwd, script, needs=(), **more):
    for tool in needs:
        if not shutil.which(tool):
            pytest.skip(tool + " is not installed")
    return run(cwd, "bash", "-euo", "pipefail", "-c", script, **more)


def test_shell_pipeline(tmp_path):
    out = sh(tmp_path, """
        seq 1 1000 | grep 7 | sort -rn | head -3 | tr '\\n' ' '
        mkdir -p a/b && touch a/b/c && cp -a a d && mv d e && find e -type f | xargs ls -l >/dev/null
        mkfifo f && (echo through > f &) && cat f
        ln -s a/b/c l && readlink l && df . >/dev/null && stat e >/dev/null && nproc >/dev/null
        sleep 0.01 & wait; date >/dev/null; id >/dev/null; timeout 5 true; nice true; nohup true; env true""")
    assert "997 987 979" in out and "through" in out


def test_compiler_and_make(tmp_path):
    (tmp_path / "hello.c").write_text('#include <stdio.h>\nint main(void) { puts("hello"); return 0; }\n')
    (tmp_path / "Makefile").write_text("all: hello\nhello: hello.o\n\t$(CC) -o $@ $^\n%.o: %.c\n\t$(CC) -c -o $@ $<\n")
    assert sh(tmp_path, "make -j2 >/dev/null && ./hello", needs=("make", "cc")) == "hello\n"


def test_address_sanitizer(tmp_path):
    (tmp_path / "x.c").write_text("#include <stdlib.h>\nint main(void) { free(malloc(9)); return 0; }\n")
    # Leak checking traces its own process, which is what profile debug is for.
    sh(tmp_path, "cc -fsanitize=address,undefined -g x.c -o x && ASAN_OPTIONS=detect_leaks=0 ./x", needs=("cc",))
    sh(tmp_path, "./x", profile="debug")


def test_python(tmp_path):
    (tmp_path / "work.py").write_text("""
import asyncio, concurrent.futures, ctypes, mmap, multiprocessing, os, select, signal, socket, sqlite3, subprocess, sys
import tempfile, threading
from multiprocessing import shared_memory

def square(n):
    return n * n

async def loop():
    server = await asyncio.start_server(lambda r, w: (w.write(b"hi"), w.close()), "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    assert await reader.read() == b"hi"
    process = await asyncio.create_subprocess_exec("echo", "sub", stdout=asyncio.subprocess.PIPE)
    assert (await process.communicate())[0] == b"sub\\n"

if __name__ == "__main__":
    found = []
    threads = [threading.Thread(target=found.append, args=(i,)) for i in range(8)]
    [t.start() for t in threads], [t.join() for t in threads]
    assert len(found) == 8
    with multiprocessing.Pool(2) as pool:
        assert pool.map(square, range(5)) == [0, 1, 4, 9, 16]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(square, range(5))) == 30
    asyncio.run(loop())
    with tempfile.TemporaryDirectory() as d:
        db = sqlite3.connect(d + "/x.db")
        db.execute("pragma journal_mode=wal")
        db.execute("create table t (a)")
        db.executemany("insert into t values (?)", [(i,) for i in range(100)])
        db.commit()
        assert db.execute("select sum(a) from t").fetchone() == (4950,)
    assert subprocess.run(["echo", "x"], capture_output=True).stdout == b"x\\n"
    shm = shared_memory.SharedMemory(create=True, size=4096)
    shm.buf[0] = 1
    shm.close(), shm.unlink()
    os.close(os.memfd_create("x"))
    os.close(os.pidfd_open(os.getpid()))
    a, b = socket.socketpair()
    a.send(b"x")
    assert select.select([b], [], [], 1)[0]
    assert socket.getaddrinfo("127.0.0.1", 80)
    print("done")
""")
    assert run(tmp_path, "python3", "work.py") == "done\n"


def test_python_venv(tmp_path):
    if subprocess.run(["python3", "-c", "import ensurepip"], capture_output=True).returncode:
        pytest.skip("python3 has no ensurepip")
    sh(tmp_path, "python3 -m venv v && v/bin/python -m pip --version", timeout=300)


def test_git(tmp_path):
    out = sh(tmp_path, """
        git init -q r && cd r && git config user.name x && git config user.email x@example.org
        for i in 1 2 3; do echo $i > f && git add f && git commit -qm $i; done
        git gc -q && git fsck --no-progress >/dev/null
        git worktree add -q ../w && git clone -q . ../c && git log --oneline | wc -l""", needs=("git",))
    assert out.strip() == "3"


def test_node(tmp_path):
    (tmp_path / "work.js").write_text("""
const { Worker } = require("worker_threads"), { execSync, fork } = require("child_process"), http = require("http"), fs = require("fs");
if (process.argv[2] === "child") { process.send("child"); process.exit(0); }
const worker = new Worker("require('worker_threads').parentPort.postMessage(42)", { eval: true });
worker.on("message", n => {
    if (n !== 42 || execSync("echo sub").toString() !== "sub\\n") process.exit(3);
    const watcher = fs.watch(".");
    watcher.close();
    fork(__filename, ["child"]).on("message", () => {
        const server = http.createServer((q, s) => s.end("over http")).listen(0, "127.0.0.1", () =>
            http.get({ port: server.address().port, host: "127.0.0.1" }, r =>
                r.on("data", d => { console.log(String(d)); process.exit(0); })));
    });
});
""")
    assert run(tmp_path, "node", "work.js") == "over http\n"


def test_npm_script(tmp_path):
    (tmp_path / "package.json").write_text('{"name": "x", "version": "1.0.0", "scripts": {"go": "node -e \\"console.log(1+1)\\""}}')
    assert "2" in sh(tmp_path, "npm run --silent go", needs=("npm", "node"))


def test_perl(tmp_path):
    script = 'my $p = fork // die; exit 0 unless $p; waitpid $p, 0; print `echo hi`, -d "/" ? "d" : ""'
    assert run(tmp_path, "perl", "-e", script) == "hi\nd"


def test_archives(tmp_path):
    sh(tmp_path, """mkdir d && seq 9999 > d/n && mkfifo d/f && tar czf t.tgz d && rm -r d && tar xzf t.tgz
        gzip -k d/n && gunzip -c d/n.gz | cmp - d/n && [ -p d/f ]""")


def test_tmux(tmp_path):
    sh(tmp_path, """tmux -S s new-session -d 'echo inside > out; sleep 1'
        for i in $(seq 50); do [ -s out ] && break; sleep 0.1; done; grep inside out; tmux -S s kill-server || true""", needs=("tmux",))


def test_terminal(tmp_path):
    assert "tty" in sh(tmp_path, "script -qec 'test -t 0 && echo tty' /dev/null", needs=("script",))


def test_go(tmp_path):
    (tmp_path / "go.mod").write_text("module x\n\ngo 1.18\n")
    (tmp_path / "x.go").write_text("""package main

import ("fmt"; "net"; "net/http"; "os/exec")

func main() {
    l, err := net.Listen("tcp", "127.0.0.1:0")
    if err != nil { panic(err) }
    go http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "go") }))
    r, err := http.Get("http://" + l.Addr().String())
    if err != nil { panic(err) }
    out, err := exec.Command("echo", r.Status).Output()
    if err != nil { panic(err) }
    fmt.Print(string(out))
}
""")
    env = {"GOFLAGS": "-mod=mod", "GOTOOLCHAIN": "local", "GOPROXY": "off"}
    assert sh(tmp_path, "go build -o x . && go vet . && ./x", needs=("go",), timeout=600, env=env) == "200 OK\n"


def test_cargo(tmp_path):
    out = sh(tmp_path, """cargo init -q --name x p && cd p && cargo build -q --offline
        cargo test -q --offline >/dev/null && target/debug/x""", needs=("cargo", "git", "cc"), timeout=600)
    assert out == "Hello, world!\n"


def test_java(tmp_path):
    (tmp_path / "X.java").write_text("""import java.util.stream.*;
public class X { public static void main(String[] a) throws Exception {
    new ProcessBuilder("true").start().waitFor();
    System.out.println(IntStream.range(0, 1000).parallel().sum()); } }
""")
    assert sh(tmp_path, "javac X.java && java X", needs=("java", "javac"), timeout=300) == "499500\n"


def test_package_tools(tmp_path):
    sh(tmp_path, """mkdir -p p/DEBIAN p/opt
        printf '%s: x\\n' Package Maintainer Description > p/DEBIAN/control
        printf 'Version: 1\\nArchitecture: all\\n' >> p/DEBIAN/control
        dpkg-deb -b p x.deb >/dev/null && dpkg-deb -x x.deb out && apt-config dump >/dev/null""", needs=("dpkg-deb", "apt-config"))


def test_image_build_may_chroot(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("only root may chroot outside a user namespace")
    sh(tmp_path, "chroot / true", profile="image-build")
    assert "not permitted" in sh(tmp_path, "chroot / true 2>&1 || true")


def test_crypto_tools(tmp_path):
    sh(tmp_path, "ssh-keygen -q -t ed25519 -N '' -f k && openssl rand -hex 8", needs=("ssh-keygen", "openssl"))


def test_cmake(tmp_path):
    (tmp_path / "CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.10)\nproject(x C)\nadd_executable(x x.c)\n")
    (tmp_path / "x.c").write_text("int main(void) { return 0; }\n")
    sh(tmp_path, "cmake -B b >/dev/null && cmake --build b >/dev/null && b/x", needs=("cmake", "cc"))


def test_valgrind(tmp_path):
    run(tmp_path, "valgrind", "-q", "true")


def test_strace_under_debug(tmp_path):
    sh(tmp_path, "strace -f -o log sh -c 'true; true' && grep -q execve log", needs=("strace",), profile="debug")


def test_gdb_under_debug(tmp_path):
    (tmp_path / "x.c").write_text("int f(int a) { return a + 1; }\nint main(void) { return f(1) - 2; }\n")
    script = "cc -g x.c -o x && gdb -q -batch -ex 'break f' -ex run -ex bt -ex continue ./x"
    out = sh(tmp_path, script, needs=("gdb", "cc"), profile="debug")
    assert "f (a=1)" in out and "exited normally" in out


def test_debuggers_are_refused_under_strict(tmp_path):
    assert "not permitted" in sh(tmp_path, "strace true 2>&1 || true", needs=("strace",))
