# SPDX-License-Identifier: Apache-2.0
"""An official TypeScript client at the other end of client.mjs."""
import json
import pathlib
import queue
import threading

SECONDS = 30
HERE = pathlib.Path(__file__).resolve().parent


class Peer:
    def __init__(self, node, sdk, era, target, env=None):
        self.p = node.start(HERE / "client.mjs", node.modules, sdk, era, json.dumps(target), env=env)
        self.lines, self.n = queue.Queue(), 0
        self.progress, self.asked, self.answers = {}, [], {}
        threading.Thread(target=self.read, daemon=True).start()
        self.hello = self.take()
        assert self.hello and "ready" in self.hello, (self.hello, self.p.stderr.read() if self.hello is None else "")

    def read(self):
        for line in self.p.stdout:
            self.lines.put(json.loads(line))
        self.lines.put(None)

    def take(self):
        """The next line, sorted to where it belongs."""
        m = self.lines.get(timeout=SECONDS)
        if m is None:
            return None
        if "progress" in m:
            self.progress.setdefault(m["n"], []).append(m["progress"])
        elif "asked" in m:
            self.asked.append(m["asked"])
        elif "n" in m:
            self.answers[m["n"]] = m
        return m

    def begin(self, do, **fields):
        self.n += 1
        self.p.stdin.write(json.dumps({"n": self.n, "do": do, **fields}) + "\n")
        self.p.stdin.flush()
        return self.n

    def wait(self, n):
        while n not in self.answers:
            assert self.take() is not None, "the client has ended"
        return self.answers[n]

    def do(self, do, **fields):
        return self.wait(self.begin(do, **fields))

    def call(self, name, **arguments):
        """(text, is_error) of a tool's answer."""
        m = self.do("call", name=name, arguments=arguments)
        assert "result" in m, m
        return "".join(c["text"] for c in m["result"]["content"]), m["result"].get("isError", False)

    def kill(self):
        """It is gone, without a word."""
        self.p.kill()
        self.p.wait()

    def close(self):
        """It ends as clients do."""
        if self.p.poll() is None:
            self.p.stdin.close()
            self.p.wait(SECONDS)
        for f in (self.p.stdin, self.p.stdout, self.p.stderr):
            f.close()
