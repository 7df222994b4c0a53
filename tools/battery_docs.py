# SPDX-License-Identifier: Apache-2.0
"""Writes the battery's results into the docs: docs/security.md between its markers, docs/battery-peers.md whole."""
import collections
import json
import pathlib
import re

BEGIN, END = "<!-- battery begin -->", "<!-- battery end -->"
IDENTITIES = ("root", "user", "plain", "nested")
CLASSES = {"A": "set-up of the box", "B": "the kernel's surface", "C": "files and projects", "D": "processes, terminals, objects", "E": "network", "F": "exhaustion",
           "G": "policy, audit, the host's side"}


def table(head, rows):
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    for r in rows:
        yield "| " + " | ".join(str(c).replace("|", "\\|") for c in r) + " |"


def mark(row):
    if not row or row["wall"] == "skipped":
        return "–"
    return "held" if row["wall"] == "held" and row["twin"] == "caught" else f"**{row['wall']}/{row['twin']}**"


def summary(reports):
    for who in IDENTITIES:
        if who in reports:
            rows = reports[who]["cases"]
            tried = [r for r in rows if r["wall"] != "skipped"]
            yield who, len(tried), sum(r["wall"] == "leaked" for r in tried), f"{sum(r['twin'] == 'caught' for r in tried)} of {len(tried)}", len(rows) - len(tried), f"{reports[who]['seconds']:.0f} s"


def lines_of(reports, claims):
    kernels = ", ".join(sorted({r["kernel"] for r in reports.values()}))
    yield f"Tier native, kernel {kernels}. *held*: the wall held and the twin leaked. A dash is a case that was skipped: it does not apply to that identity, or this kernel lets nobody so far that there"
    yield "would be something to hold; skipped cases are not counted."
    yield ""
    yield from table(("identity", "cases", "leaks", "twins caught", "skipped", "time"), summary(reports))
    by_name = {who: {r["name"]: r for r in rep["cases"]} for who, rep in reports.items()}
    shown = [w for w in IDENTITIES if w in reports]
    every = next(iter(reports.values()))["cases"]
    for claim in sorted({r["claim"] for r in every}):
        yield ""
        yield f"### C{claim}. {claims.get(claim, '')}"
        yield ""
        rows = [(r["name"], r["threat"], ", ".join(r["held_by"]), ", ".join(r["off"]) or "", *(mark(by_name[w].get(r["name"])) for w in shown)) for r in every if r["claim"] == claim]
        yield from table(("case", "threat", "held by (off in the twin)", "off already", *shown), rows)


def replace_between(path, text):
    old = path.read_text()
    if BEGIN not in old or END not in old:
        raise SystemExit(f"{path}: no markers")
    path.write_text(old[:old.index(BEGIN) + len(BEGIN)] + "\n" + text + "\n" + old[old.index(END):])


PEER_HEAD = """# The battery behind other sandboxes

Made by `tools/battery --docs` from the reports of `make battery PEER=…`. The same attempts, judged by the same canaries, behind
other sandboxes, each run in the strictest way that its own documentation gives an ordinary user without a filter or profile written by
hand (the command lines are in `tests/leak/peers.py`, with the reasons). There are no twins here, and cases about pale's own verbs are left out.

How to read it: **held** is held. **open** is surface that pale takes away: the attempt reached code of the host's kernel, a file of the
kernel that tells about the host, the sandbox's own first process; what comes of it is up to the kernel, and none of it is an escape by
itself. **leaked** is a canary of the host (a file, a variable, a process, a socket, an object) that was read, changed or reached. What a peer documents
as given, and what its command line cannot say, is **not applicable**. These programs have other aims than pale: bubblewrap is a tool to
build sandboxes with, podman and runsc run images, srt and codex mean the host to be readable. A row that is open or leaked here is no bug of theirs.
"""


def peer_lines(reports, pale):
    yield PEER_HEAD
    yield from table(("", "version", "date", "identity", "kernel", "held", "open", "leaked", "not applicable", "not run"),
                     [(r["peer"], r["version"], r["date"], r["identity"], r["kernel"], *(sum(c["verdict"] == v for c in r["cases"]) for v in ("held", "open", "leaked", "not applicable", "not run")))
                      for r in reports])
    names = {c["name"] for r in reports for c in r["cases"]}
    if pale:
        own = [c for c in pale["cases"] if c["name"] in names]
        yield ""
        yield (f"pale, the same {len(own)} cases as {pale['identity']}: {sum(c['wall'] == 'held' for c in own)} held, 0 open, {sum(c['wall'] == 'leaked' for c in own)} leaked, "
               f"{sum(c['wall'] == 'skipped' for c in own)} not applicable.")
    yield "\n## By class of threat: held / open / leaked (of those that apply)\n"
    rows = []
    for letter, title in CLASSES.items():
        cells = []
        for r in reports:
            n = collections.Counter(c["verdict"] for c in r["cases"] if c["threat"].startswith(letter))
            cells.append(f"{n['held']} / {n['open']} / {n['leaked']}" if n["held"] + n["open"] + n["leaked"] else "–")
        if any(c != "–" for c in cells):
            rows.append((f"{letter}: {title}", *cells))
    yield from table(("class", *(r["peer"] for r in reports)), rows)
    yield "\n## The rows\n"
    for r in reports:
        yield f"**{r['peer']}**, as `{r['how']}` with the folders of the case\n"
        if r.get("note"):
            yield r["note"] + "\n"
        for verdict in ("leaked", "open", "not run"):
            found = [c["name"] for c in r["cases"] if c["verdict"] == verdict]
            yield f"- {verdict} ({len(found)}): {', '.join(found) or 'none'}"
        reasons = collections.Counter(c["detail"] for c in r["cases"] if c["verdict"] == "not applicable")
        yield f"- not applicable: {'; '.join(f'{why} ({n})' for why, n in sorted(reasons.items())) or 'none'}\n"


def write(root, files):
    files = files or sorted((root / "build" / "battery").glob("*.json"))
    reports, others = {}, []
    for f in files:
        r = json.loads(pathlib.Path(f).read_text())
        if "peer" in r:
            others.append(r)
        else:
            reports[r["identity"]] = r
    if reports:
        claims = {int(n): t for n, t in re.findall(r"^## C(\d+)\. (.*)$", (root / "docs" / "threat-model.md").read_text(), re.M)}
        replace_between(root / "docs" / "security.md", "\n".join(lines_of(reports, claims)))
        print(f"docs/security.md: {', '.join(reports)}")
    if others:
        (root / "docs" / "battery-peers.md").write_text("\n".join(peer_lines(sorted(others, key=lambda r: r["peer"]), reports.get(others[0]["identity"]))).rstrip() + "\n")
        print(f"docs/battery-peers.md: {', '.join(r['peer'] for r in others)}")
    return 0
