# SPDX-License-Identifier: Apache-2.0
"""What the fake internet has to fetch: a file, a git repository, and one package called demo for each installer."""
import base64
import hashlib
import io
import json
import os
import pathlib
import pwd
import subprocess
import tarfile
import zipfile

HELLO = "hello from the fake internet\n"


def run(*words, **more):
    return subprocess.run([str(w) for w in words], check=True, capture_output=True, timeout=60, **more)


def zipped(files):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as z:
        for name, text in files.items():
            z.writestr(name, text)
    return out.getvalue()


def for_pip(site):
    meta = "Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n"
    wheel = zipped({"demo.py": "WORD = 'demo'\n", "demo-1.0.dist-info/METADATA": meta, "demo-1.0.dist-info/RECORD": "",
                    "demo-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n"})
    folder = site / "simple" / "demo"
    folder.mkdir(parents=True)
    (folder / "demo-1.0-py3-none-any.whl").write_bytes(wheel)
    (folder / "index.html").write_text('<a href="demo-1.0-py3-none-any.whl">demo-1.0-py3-none-any.whl</a>')


def for_npm(site):
    package = json.dumps({"name": "demo", "version": "1.0.0"}).encode()
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as t:
        info = tarfile.TarInfo("package/package.json")
        info.size = len(package)
        t.addfile(info, io.BytesIO(package))
    (site / "npm").mkdir()
    (site / "npm-files").mkdir()
    (site / "npm-files" / "demo.tgz").write_bytes(out.getvalue())
    dist = {"tarball": "https://good.test/npm-files/demo.tgz", "integrity": "sha512-" + base64.b64encode(hashlib.sha512(out.getvalue()).digest()).decode()}
    (site / "npm" / "demo").write_text(json.dumps({"name": "demo", "dist-tags": {"latest": "1.0.0"},
                                                   "versions": {"1.0.0": {"name": "demo", "version": "1.0.0", "dist": dist}}}))


def for_apt(site):
    (site / "apt").mkdir()
    (site / "apt" / "Packages").write_text("Package: demo\nVersion: 1.0\nArchitecture: all\nMaintainer: x <x@good.test>\nFilename: ./demo.deb\nSize: 8\n"
                                           f"SHA256: {hashlib.sha256(b'a package').hexdigest()}\nDescription: demo\n\n")


def for_go(site):
    folder = site / "go" / "good.test" / "demo" / "@v"
    folder.mkdir(parents=True)
    module = "module good.test/demo\n"
    (folder / "list").write_text("v1.0.0\n")
    (folder / "v1.0.0.info").write_text(json.dumps({"Version": "v1.0.0", "Time": "2026-01-01T00:00:00Z"}))
    (folder / "v1.0.0.mod").write_text(module)
    (folder / "v1.0.0.zip").write_bytes(zipped({"good.test/demo@v1.0.0/go.mod": module, "good.test/demo@v1.0.0/demo.go": "package demo\n"}))


def for_git(site):
    env = {"PATH": os.defpath, "HOME": "/nowhere", "GIT_CONFIG_NOSYSTEM": "1",
           **{f"GIT_{w}_{k}": "x@good.test" for w in ("AUTHOR", "COMMITTER") for k in ("NAME", "EMAIL")}}
    repo = site / "git" / "demo.git"
    run("git", "init", "-q", "-b", "main", site / "work", env=env)
    (site / "work" / "README").write_text(HELLO)
    run("git", "-C", site / "work", "add", ".", env=env)
    run("git", "-C", site / "work", "commit", "-q", "-m", "first", env=env)
    run("git", "clone", "-q", "--bare", site / "work", repo, env=env)


def for_ssh(folder):
    """A server's configuration and a key that it lets in, as whoever runs the tests."""
    for name in ("host", "user") if not (folder / "sshd_config").exists() else ():
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / f"{name}_key")
    (folder / "sshd_config").write_text(f"HostKey {folder}/host_key\nAuthorizedKeysFile {folder}/user_key.pub\nUsePAM no\nStrictModes no\nPermitRootLogin yes\n"
                                        "PasswordAuthentication no\nPidFile none\n")
    return pwd.getpwuid(os.geteuid()).pw_name


def stock(net):
    """Fills the site of a fake internet."""
    site = pathlib.Path(net.folder) / "site"
    if (site / "pub").exists():
        return
    (site / "pub").mkdir()
    (site / "pub" / "hello.txt").write_text(HELLO)
    for make in (for_pip, for_npm, for_apt, for_go, for_git):
        make(site)
