# SPDX-License-Identifier: Apache-2.0
"""The numbers we promise: each with its limit, the command that shows it, and how it is found in the figures of a run."""


def find_row(rows, name):
    return next((r for r in rows or [] if r.get("name") == name), None)


def ratio(measure, name, key="ratio_p50"):
    def look(result):
        found = find_row(result.get(measure), name)
        return found.get(key) if found else None
    return look


def fleet(*keys, scale=1.0):
    def look(result):
        value = find_row(result.get("fleet"), "pale")
        if not value or value.get("boxes", 0) < 1000:
            return None
        for k in keys:
            value = (value or {}).get(k)
        return None if value is None else value * scale
    return look


def inside(kind):
    def look(result):
        found = find_row(result.get("inside", {}).get(kind), "pale")
        return found.get("ratio_p50") if found else None
    return look


def idle(result):
    return result.get("idle", {}).get("one", {}).get("total_kib")


def probe(kind):
    def look(result):
        return result.get("receipt", {}).get(kind)
    return look


def daemon(*keys, scale=1.0):
    def look(result):
        value = result.get("daemon")
        for k in keys:
            value = (value or {}).get(k)
        return None if value is None else value * scale
    return look


def layers(what):
    """The median at the size where it is worst: it is to be the same at all."""
    def look(result):
        return max((s[what]["p50_ms"] for s in result.get("layers", {}).get("sizes", [])), default=None)
    return look


def out(*keys, scale=1.0, worst=max):
    """Of several values, as for both directions of a stream, the worst."""
    def look(result):
        found = [result.get("network")]
        for k in keys:
            found = [(f or {}).get(one) for f in found for one in (k if isinstance(k, tuple) else (k,))]
        return None if None in found else worst(found) * scale
    return look


BOTH = ("tls get", "tls put")

# id, what, limit, aim, unit, measures that show it, where to look
PROMISES = (
    ("cold", "whole life of a box, `pale run` of a static true, p50, of bwrap with the same mounts", 1.0, None, "×", "cold", ratio("cold", "pale")),
    ("warm", "`pale exec` of a static true (glibc), p50, of fork+exec of the same file", 2.0, None, "×", "warm", ratio("warm", "pale exec (glibc)")),
    ("fleet-warm", "`pale exec` with 1,000 live boxes, p99", 5.0, None, "ms", "fleet", fleet("exec_after", "p99_us", scale=0.001)),
    ("fleet-fill", "1,000 boxes made and ready", 5.0, 2.0, "s", "fleet", fleet("fill_s")),
    ("fleet-memory", "memory of each of 1,000 boxes, all that the machine lost", 0.7, 0.5, "MB", "fleet", fleet("all_kib", scale=1024 / 1e6)),
    ("idle", "private memory of an idle box's own processes", 600, None, "KiB", "idle", idle),
    ("compile", "a compile inside, p50, of the same outside", 1.03, None, "×", "inside", inside("compile")),
    ("receipt-full", "the full probe of a box", 15.0, None, "ms", "receipt", probe("full_ms")),
    ("rest-exec", "a static true by POST …/exec, p50, of `pale exec` of the same", 1.5, None, "×", "daemon", daemon("exec", "ratio_p50")),
    ("rest-list", "GET /v1/boxes with 1,000 live boxes, p99", 10.0, None, "ms", "daemon", daemon("many", "list", "p99_ms")),
    ("rest-metrics", "GET /v1/metrics with 1,000 live boxes, p99", 10.0, None, "ms", "daemon", daemon("many", "metrics", "p99_ms")),
    ("restart", "from `kill -9` of paled to its next answer with 1,000 live boxes, p99", 200.0, None, "ms", "daemon", daemon("many", "restart", "p99_ms")),
    ("daemon-rest", "memory of an idle daemon", 8.0, None, "MiB", "daemon", daemon("at_rest", "rss_kib", scale=1 / 1024)),
    ("snapshot", "`pale snapshot` of a live box with 1 MiB and 4 GiB in it, p50", 10.0, None, "ms", "layers", layers("snapshot")),
    ("restore", "`pale restore` of the same, p50", 10.0, None, "ms", "layers", layers("restore")),
    ("out-relay", "a stream out of a box, its time, of a plain relay by splice", 1.25, None, "×", "network", out("streams", BOTH, "relay", "pale_takes")),
    ("out-slirp", "… of slirp4netns", 0.71, None, "×", "network", out("streams", BOTH, "slirp4netns", "pale_takes")),
    ("out-srt", "… of srt", 0.33, None, "×", "network", out("streams", BOTH, "srt", "pale_takes")),
    ("out-first", "dialling and the first byte out of a box, p50, beyond the same outside", 0.5, None, "ms", "network", out("first", ("tls", "http"), "more_ms")),
    ("out-failed", "of 2,000 new connections a second and 10,000 at once (or what the host's limit of files allows), failed", 0, None, "", "network",
     out("many", ("failed", "all_failed"))),
    ("out-many", "private memory of the gateway with those open", 64.0, None, "MiB", "network", out("many", "private_kib", scale=1 / 1024)),
    ("out-idle", "private memory of an idle gateway", 400, None, "KiB", "network", out("idle_kib")),
    ("out-making", "a box made with a network, p50, beyond one without", 2.0, None, "ms", "network", out("making", "more_ms")),
    ("receipt-short", "the short probe of a box", 0.3, None, "ms", "receipt", probe("short_ms")),
)


def judge(doc):
    """[(promise, {as: (value, verdict)})]: verdict is PASS, MISS or not measured."""
    found = []
    for promise in PROMISES:
        limit, look = promise[2], promise[6]
        by = {}
        for result in doc["results"]:
            value = look(result)
            by[result["who"]] = (value, "not measured" if value is None else "PASS" if value <= limit else "MISS")
        found.append((promise, by))
    return found


def number(value, unit):
    if value is None:
        return "–"
    text = f"{value:.0f}" if unit == "KiB" else f"{value:.2f}"
    return f"{text} {unit}" if unit != "×" else f"{text} ×"


def print_check(doc):
    """True if nothing missed."""
    good = True
    print(f"\n{'promise':14}  {'at most':>9}  {'aim':>7}  measured")
    for (name, what, limit, aim, unit, _, _), by in judge(doc):
        said = "   ".join(f"{who}: {number(v, unit)} {verdict}" for who, (v, verdict) in by.items())
        print(f"{name:14}  {number(limit, unit):>9}  {number(aim, unit):>7}  {said}")
        print(f"{'':14}  {what}")
        good = good and all(verdict != "MISS" for _, verdict in by.values())
    return good


def markdown(doc):
    """The table of docs/SPECIFICATION.md."""
    people = [r["who"] for r in doc["results"]]
    lines = ["| promise | at most | aim | shown by | " + " | ".join(f"last, as {p}" for p in people) + " |",
             "|---|---|---|---|" + "---|" * len(people)]
    for (_, what, limit, aim, unit, measure, _), by in judge(doc):
        cells = [f"{number(v, unit)}{'' if verdict != 'MISS' else ' **missed**'}" if v is not None else "not measured" for v, verdict in by.values()]
        lines.append(f"| {what} | {number(limit, unit)} | {number(aim, unit) if aim else ''} | `bench/run --check --only {measure}` | {' | '.join(cells)} |")
    return "\n".join(lines)
