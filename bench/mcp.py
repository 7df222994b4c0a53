# SPDX-License-Identifier: Apache-2.0
"""Measures of MCP: a command by a tool beside `pale exec`, many sessions at once, and looking through a large tree."""
import concurrent.futures
import json

from daemon import ROUNDS, Wire, asked, get, row
from host import Failed, quantile

SESSIONS, BOXES, CALLS = 200, 50, 10
LOOKS = (("list", {"path": "tree/0"}), ("glob", {"pattern": "**/*7.c"}), ("grep", {"pattern": "needle[0-9]+"}), ("grep", {"pattern": "nowhere to be found"}))


def message(tool, **arguments):
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}})


def post(wire, box, text):
    wire.request("POST", f"/mcp/{box}", body=text, headers={"Content-Type": "application/json", "Accept": "application/json"})
    answer = json.loads(wire.getresponse().read())
    if "result" not in answer or answer["result"].get("isError"):
        raise Failed(f"MCP: {answer}")
    return answer["result"]["content"][0]["text"]


def exec_beside(who, args, stage, path):
    true = str(stage.bin / "true-glibc")
    who.run(who.pale, "create", "--read", stage.bin, "bench-mcp")
    try:
        words = ["POST", "/mcp/bench-mcp", message("exec", command=[true])]
        tool, straight = [], []
        for _ in range(ROUNDS):
            tool += asked(who, stage, path, words, requests=max(20, args.runs // ROUNDS))[0]
            straight += who.spawn([[who.pale, "exec", "-q", "bench-mcp", "--", true]], max(20, args.runs // ROUNDS), 2)[0]
    finally:
        who.run(who.pale, "rm", "-f", "bench-mcp", check=False)
    return {"tool": row(tool), "pale_exec": row(straight), "ratio_p50": round(quantile(tool, 0.5) / quantile(straight, 0.5), 3)}


def sessions(who, path):
    """So many clients at once, each on a connection of its own."""
    names = [f"bench-m{i}" for i in range(BOXES)]

    def session(n):
        wire = Wire(who, path)
        wire.connect()
        return wire, n

    def work(pair):
        wire, n = pair
        return all(post(wire, names[n % BOXES], message("exec", command=["echo", f"{n} {k}"])) == f"{n} {k}\n" for k in range(CALLS))

    who.run(who.pale, "create", *names)
    try:
        open_ones = [session(n) for n in range(SESSIONS)]  # one after the other: root connects as the user
        with concurrent.futures.ThreadPoolExecutor(SESSIONS) as pool:
            good = sum(pool.map(work, open_ones))
    finally:
        who.run(who.pale, "rm", "-f", *names, check=False)
    return {"sessions": SESSIONS, "boxes": BOXES, "calls": SESSIONS * CALLS, "good": good}


def looks(who, args, stage, path):
    """list, glob and grep on a tree of many files."""
    files = args.files
    make = (f"mkdir tree; cd tree; i=0; while [ $i -lt 100 ]; do mkdir $i; i=$((i+1)); done; "
            f"seq 1 {files} | awk '{{ f = $1 % 100 \"/\" $1 \".c\"; print \"int x\" $1 \"; /* needle\" ($1 % 1000 == 0 ? $1 : \"\") \" */\" > f; close(f) }}'")
    who.run(who.pale, "create", "bench-look")
    try:
        who.run(who.pale, "exec", "-q", "bench-look", "--", "sh", "-c", make)
        found = {}
        for tool, arguments in LOOKS:
            took, _ = asked(who, stage, path, ["POST", "/mcp/bench-look", message(tool, **arguments)], requests=5)
            found[f"{tool} {next(iter(arguments.values()))}"] = row(took)
        return {"files": files, "took": found}
    finally:
        who.run(who.pale, "rm", "-f", "bench-look", check=False)


def mcp(who, args, stage, _peers):
    path = str(who.runtime / "pale" / "paled.sock")
    who.run(who.pale, "serve")
    try:
        get(who, path, "/v1/health")
        return {"exec": exec_beside(who, args, stage, path), "many": sessions(who, path), "looks": looks(who, args, stage, path)}
    finally:
        who.run(who.pale, "serve", "--stop", check=False)
