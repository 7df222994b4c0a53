# SPDX-License-Identifier: Apache-2.0
"""Just enough C for the checks: source without comments and literals, and where functions begin and end."""
import pathlib
import re

BLANK = re.compile(r"[^\n]")


def strip(text):
    """The text with comments, strings and characters blanked out; lines and columns stay."""
    pattern = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)

    def blank(m):
        t = m.group(0)
        if t[0] in "\"'":
            return t[0] + BLANK.sub(" ", t[1:-1]) + t[0]
        return BLANK.sub(" ", t)

    return pattern.sub(blank, text)


def sources(root, suffixes=(".c", ".h")):
    return sorted(p for p in pathlib.Path(root).rglob("*") if p.suffix in suffixes)


def functions(text):
    """(name, first line, last line, body) of each function; text must be stripped. A function's brace stands in column 1."""
    lines = text.split("\n")
    i = 0
    while i < len(lines):
        if lines[i].startswith("{"):
            start = i
            while start > 0 and lines[start - 1].strip() and not lines[start - 1].rstrip().endswith((";", "}")) and not lines[start - 1].startswith("#"):
                start -= 1
            header = " ".join(lines[start:i])
            m = re.search(r"(\w+)\s*\([^{]*$", re.sub(r"__attribute__\s*\(\(.*?\)\)", "", header))
            end = i
            while end < len(lines) and not lines[end].startswith("}"):
                end += 1
            if m and "=" not in header.split("(")[0]:
                name = re.search(r"(\w+)\s*\(", re.sub(r"\b(PRINTF_LIKE|__attribute__)\s*\([^()]*(\([^()]*\))?[^()]*\)", "", header))
                yield (name or m).group(1), start + 1, end + 1, "\n".join(lines[i:end + 1])
            i = end
        i += 1
