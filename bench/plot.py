# SPDX-License-Identifier: Apache-2.0
"""SVG plots of a run: bars for p50, a whisker to p99, on a logarithmic scale; readable on light and dark pages. No dependencies."""
import html
import math

WIDTH, LEFT, RIGHT, BAR, STEP, TOP = 760, 190, 150, 16, 27, 54
STYLE = """<style>
text{font:13px system-ui,-apple-system,"Segoe UI",Helvetica,Arial,sans-serif;fill:#1f2328}
.title{font-weight:600;font-size:15px}.small{font-size:11px;fill:#59636e}.grid{stroke:#d1d9e0;stroke-width:1}
.ours{fill:#1a7f5a}.bar{fill:#8c959f}.whisker{stroke:#1f2328;stroke-width:1.5;fill:none}
@media (prefers-color-scheme:dark){text{fill:#e6edf3}.small{fill:#9198a1}.grid{stroke:#3d444d}.ours{fill:#3fb68b}.bar{fill:#656c76}
.whisker{stroke:#e6edf3}}
</style>"""


def pretty(value):
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def scale_of(values, logarithmic):
    """(function to x, ticks)"""
    room = WIDTH - LEFT - RIGHT
    if not logarithmic:
        top = max(values) * 1.05
        step = 10 ** math.floor(math.log10(top))
        step = step / 2 if top / step < 3 else step
        return (lambda v: LEFT + room * v / top), [i * step for i in range(int(top / step) + 1)]
    low, high = math.floor(math.log10(min(values))), math.log10(max(values) * 1.1)
    low = low if math.log10(min(values)) - low > 0.1 else low - 1
    at = (lambda v: LEFT + room * max(0.0, math.log10(v) - low) / (high - low))
    return at, [10.0 ** e for e in range(low, math.floor(high) + 1)]


def bars(title, unit, rows, subtitle="", logarithmic=True):
    """rows: [(name, p50, p99 or None, is ours)]; the text of an SVG file."""
    height = TOP + STEP * len(rows) + 34
    values = [v for r in rows for v in r[1:3] if v]
    at, ticks = scale_of(values, logarithmic)
    bottom = TOP + STEP * len(rows)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" role="img">',
           f"<title>{html.escape(title)}</title>", STYLE, f'<text class="title" x="10" y="20">{html.escape(title)}</text>',
           f'<text class="small" x="10" y="38">{html.escape(subtitle)}</text>']
    for t in ticks:
        out += [f'<line class="grid" x1="{at(t):.1f}" y1="{TOP - 4}" x2="{at(t):.1f}" y2="{bottom}"/>',
                f'<text class="small" x="{at(t):.1f}" y="{bottom + 15}" text-anchor="middle">{t:g} {unit}</text>']
    for i, (name, p50, p99, ours) in enumerate(rows):
        y = TOP + STEP * i + 4
        middle = y + BAR / 2
        end = at(p50)
        out += [f'<text x="{LEFT - 8}" y="{middle + 4.5}" text-anchor="end">{html.escape(name)}</text>',
                f'<rect class="{"ours" if ours else "bar"}" x="{LEFT}" y="{y}" width="{max(1.0, end - LEFT):.1f}" height="{BAR}" rx="2"/>']
        label = f"{pretty(p50)} {unit}"
        if p99:
            end = max(end, at(p99))
            out.append(f'<path class="whisker" d="M{at(p50):.1f} {middle}H{at(p99):.1f}M{at(p99):.1f} {y + 3}V{y + BAR - 3}"/>')
            label = f"{pretty(p50)} · {pretty(p99)} {unit}"
        out.append(f'<text x="{end + 7:.1f}" y="{middle + 4.5}">{label}</text>')
    return "\n".join([*out, "</svg>", ""])


def times(rows, keep=lambda r: True):
    found = [(r["name"], r["p50_us"] / 1000, r["p99_us"] / 1000, r["name"].startswith("pale")) for r in rows if "p50_us" in r and keep(r)]
    return sorted(found, key=lambda r: r[1])


def inside_rows(result):
    found = []
    files = [(f"files: {name}", rows) for name, rows in result.get("files", {}).items()]
    for title, rows in (("compile", result.get("compile")), ("git status", result.get("git")), *files, *result.get("syscalls", {}).items()):
        for r in rows or []:
            if r["name"] in ("pale", "bwrap") and "ratio_p50" in r:
                found.append((f"{title}, {r['name']}", r["ratio_p50"], None, r["name"] == "pale"))
    return found


def plots(doc):
    """{file name: text} of all plots that the figures allow; the ordinary user's where there are some, else root's."""
    made = {}
    result = next((r for r in doc["results"] if r["who"] == "user"), doc["results"][0])
    where = f"{result['as']}; bar p50, whisker p99, logarithmic; {doc['cpus']} CPUs, Linux {doc['kernel']}, {doc['date'][:10]}"
    if result.get("cold"):
        made["bench-cold.svg"] = bars("Create, execute a static true, destroy", "ms", times(result["cold"]), where)
    if result.get("warm"):
        made["bench-warm.svg"] = bars("Execute a static true in a living box", "ms",
                                      times(result["warm"], lambda r: "glibc" in r["name"] and not r["name"].startswith("vfork")), where)
    memory = [(r["name"], r["sum_kib"], None, r["name"] == "pale") for r in result.get("idle", {}).get("rows", []) if (r.get("sum_kib") or 0) > 0]
    if memory:
        made["bench-memory.svg"] = bars("Memory of an idle box: its processes (PSS) and the kernel's share", "KiB", sorted(memory, key=lambda r: r[1]),
                                        where.replace("bar p50, whisker p99, logarithmic; ", ""), logarithmic=False)
    work = inside_rows(result.get("inside", {}))
    if work:
        made["bench-inside.svg"] = bars("Work inside, as a multiple of outside", "×", work, where.replace("bar p50, whisker p99, logarithmic; ", ""), logarithmic=False)
    return made
