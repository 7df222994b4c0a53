# SPDX-License-Identifier: Apache-2.0
"""Tools as people use them, in a box whose network is filtered: each works unchanged, with no proxy variable, and is told readably what it may not have."""
import os
import pathlib
import re
import shutil
import tempfile

import harness
import pytest
from internet import internet, places, registry

PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin:/usr/local/go/bin"
EVIL4 = places.v4(places.EVIL)
CA = "/etc/ssl/certs/ca-certificates.crt"
JAVA = """import java.net.*; import java.net.http.*;
public class Fetch { public static void main(String[] a) throws Exception {
  System.out.print(HttpClient.newHttpClient().send(HttpRequest.newBuilder(URI.create(a[0])).build(), HttpResponse.BodyHandlers.ofString()).body()); } }
"""
APT = ("d=$(mktemp -d); mkdir -p $d/lists/partial $d/archives/partial; touch $d/status; echo 'deb [trusted=yes] https://{host}/apt ./' >$d/list; "
       "apt() {{ command $1 -o Dir::State=$d -o Dir::State::lists=$d/lists -o Dir::State::status=$d/status -o Dir::Cache=$d -o Dir::Etc::sourcelist=$d/list "
       "-o Dir::Etc::sourceparts=- -o APT::Sandbox::User= -o Acquire::AllowInsecureRepositories=true -o Acquire::Retries=0 $2 $3; }}; apt apt-get update && apt apt-cache policy demo")
SSH = "cp {dir}/user_key ~/k; chmod 600 ~/k; export GIT_SSH_COMMAND='ssh -i ~/k -o StrictHostKeyChecking=accept-new -o BatchMode=yes'; "

# The tool that must be there, what it does, what it then says; the same at a place that no rule allows, and what it says of that.
TOOLS = {
    "curl": ("curl", "curl -sS https://good.test/pub/hello.txt", registry.HELLO, "curl -sS https://evil.test/", r"Could not resolve host: evil\.test"),
    "curl-plain": ("curl", "curl -sS http://good.test/pub/hello.txt", registry.HELLO, f"curl -sS http://{EVIL4}/",
                   r"pale: http://192\.175\.48\.66:80 was refused: .*no rule allows"),
    "curl-upload": ("curl", "curl -sS -d 'a body' http://good.test/echo", "a body", f"curl -sS -d x http://{EVIL4}/", "was refused"),
    "getent": ("getent", "getent ahostsv4 good.test", "STREAM good.test", "getent ahostsv4 evil.test; echo ended $?", "ended 2"),
    "wget": ("wget", "wget -nv -O- https://good.test/pub/hello.txt", registry.HELLO, "wget -nv -O- https://evil.test/", "unable to resolve host address"),
    "wget-plain": ("wget", "wget -nv -O- http://good.test/pub/hello.txt", registry.HELLO, f"wget -nv -O- http://{EVIL4}/", "ERROR 403"),
    "git-https": ("git", "git clone -q https://good.test/git/demo.git ~/c && cat ~/c/README", registry.HELLO, "git ls-remote https://evil.test/git/demo.git",
                  r"Could not resolve host: evil\.test"),
    "git-ssh": ("sshd", SSH + "git clone -q ssh://{login}@ssh.test{site}/git/demo.git ~/s && cat ~/s/README", registry.HELLO,
                "git ls-remote ssh://x@evil.test/demo.git", r"Could not resolve hostname evil\.test"),
    "pip": ("pip3", "pip3 download -q --no-cache-dir --disable-pip-version-check -d ~/p -i https://good.test/simple/ demo && ls ~/p", "demo-1.0-py3-none-any.whl",
            "pip3 download --no-cache-dir --disable-pip-version-check --retries 1 -d ~/p -i https://evil.test/simple/ demo", "Name or service not known|NameResolutionError|Failed to establish a new connection"),
    "npm": ("npm",
            f"mkdir -p ~/n && cd ~/n && NODE_EXTRA_CA_CERTS={CA} npm install --no-audit --no-fund --cache ~/nc --registry https://good.test/npm/ demo && cat node_modules/demo/package.json", '"demo"',
            "cd ~ && npm view --cache ~/nc --fetch-retries 0 --registry https://evil.test/npm/ demo", r"ENOTFOUND.*evil\.test"),
    "apt": ("apt-get", APT.format(host="good.test"), "Candidate: 1.0", APT.format(host="evil.test"), r"Could not resolve 'evil\.test'"),
    "node": ("node", f"NODE_EXTRA_CA_CERTS={CA} node -e 'fetch(\"https://good.test/pub/hello.txt\").then(r => r.text()).then(console.log)'", registry.HELLO,
             "node -e 'fetch(\"https://evil.test/\").catch(e => console.log(e.cause))'", r"ENOTFOUND evil\.test"),
    "java": ("java", "java -Djavax.net.ssl.trustStore={dir}/trust -Djavax.net.ssl.trustStorePassword=changeit {dir}/Fetch.java https://good.test/pub/hello.txt",
             registry.HELLO,
             "java {dir}/Fetch.java https://evil.test/", "ConnectException|UnresolvedAddressException|UnknownHostException"),
    "go": ("go",
           "mkdir -p ~/g && cd ~/g && printf 'module x\\n' >go.mod && GOPROXY=https://good.test/go GONOSUMDB=* GOFLAGS=-mod=mod GOTOOLCHAIN=local go mod download -json good.test/demo@v1.0.0", '"Version": "v1.0.0"',
           "cd ~/g && GOPROXY=https://evil.test/go GONOSUMDB=* GOTOOLCHAIN=local go mod download good.test/demo@v1.0.1", r"lookup evil\.test.*no such host"),
    "requests": ("python3", "python3 -c 'import requests; print(requests.get(\"https://good.test/pub/hello.txt\").text)'", registry.HELLO,
                 "python3 -c 'import requests; requests.get(\"https://evil.test/\")'", "Name or service not known|Failed to resolve"),
    "urllib": ("python3", "python3 -c 'import urllib.request as u; print(u.urlopen(\"https://good.test/pub/hello.txt\").read().decode())'", registry.HELLO,
               f"python3 -c 'import urllib.request as u; u.urlopen(\"http://{EVIL4}/\")'", "HTTP Error 403"),
    "openssl": ("openssl",
                "printf 'GET /pub/hello.txt HTTP/1.0\\r\\nHost: good.test\\r\\n\\r\\n' | openssl s_client -quiet -verify_quiet -connect good.test:443 -servername good.test; true", registry.HELLO,
                f"openssl s_client -connect {EVIL4}:443 -servername evil.test </dev/null", "alert access denied"),
    "ssh": ("sshd", SSH + "ssh -i ~/k -o StrictHostKeyChecking=accept-new -o BatchMode=yes {login}@ssh.test echo let in", "let in",
            f"ssh -o BatchMode=yes -o ConnectTimeout=5 x@{EVIL4}", "reset|closed|refused"),
}


def why_no_ssh():
    if not harness.REAL_ROOT and (os.geteuid() == 0 or "PALE_INTERNET" not in os.environ):
        return "sshd needs more ids than a user namespace of one's own has"
    if not shutil.which("sshd", path=PATH):
        return "there is no sshd here"
    return None


class Shop:
    def __init__(self, net, pale):
        self.pale = pale
        self.fields = {"dir": str(pale.root / "k"), "site": str(net.folder / "site"), "login": ""}
        tools = pathlib.Path(self.fields["dir"])
        tools.mkdir(mode=0o755)
        registry.stock(net)
        if not why_no_ssh():
            self.fields["login"] = registry.for_ssh(net.folder)
            shutil.copy(net.folder / "user_key", tools)
            (tools / "user_key").chmod(0o644)
        (tools / "Fetch.java").write_text(JAVA)
        if shutil.which("keytool", path=PATH):
            registry.run("keytool", "-importcert", "-noprompt", "-alias", "fake", "-file", net.folder / "authority" / "root.pem", "-keystore", tools / "trust",
                         "-storepass", "changeit")
        pale.wrap = net.wrap
        pale.ok("create", "b", "--policy", net.policy(pale.root / "policy.json"), "--read", tools, "-e", f"PATH={PATH}", "-e", "GIT_TERMINAL_PROMPT=0")

    def run(self, command):
        for key, value in self.fields.items():
            command = command.replace("{" + key + "}", value)
        return self.pale.sh("b", command, flags=["-q"], timeout=100)


@pytest.fixture(scope="module")
def shop(session_root, pale_at):
    root = pathlib.Path(tempfile.mkdtemp(dir=session_root, prefix=""))
    made = os.geteuid() == 0 and not os.path.exists("/run/sshd") and not why_no_ssh()
    try:
        if made:
            os.mkdir("/run/sshd")  # sshd of root wants it
        with internet() as net, pale_at(root) as p:
            yield Shop(net, p)
    finally:
        if made:
            os.rmdir("/run/sshd")
        harness.remove_root(root)


def skip_without(tool):
    if tool == "sshd" and why_no_ssh():
        pytest.skip(why_no_ssh())
    if not shutil.which(tool, path=PATH):
        pytest.skip(f"there is no {tool} here")


@pytest.mark.parametrize("name", TOOLS)
def test_it_works_unchanged(shop, name):
    tool, command, wanted, _, _ = TOOLS[name]
    skip_without(tool)
    done = shop.run(command)
    assert done.code == 0 and wanted.strip() in done.text, done


@pytest.mark.parametrize("name", TOOLS)
def test_it_is_refused_readably(shop, name):
    tool, _, _, command, wanted = TOOLS[name]
    skip_without(tool)
    done = shop.run(command)
    assert re.search(wanted, done.text + done.errors, re.S), done


def test_there_is_no_proxy_variable(shop):
    assert "proxy" not in shop.run("env").text.lower()
