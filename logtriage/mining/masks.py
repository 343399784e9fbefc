"""What varies in these logs, named: a value becomes `<NAME>` before Drain3 sees the line.

Order matters: what contains another kind comes first (a time contains numbers, a path may contain
a uuid). Only linear expressions, run on distinct lines.
"""

from __future__ import annotations

from logtriage.regex import regex

# A value may stand after '=' or ':' or a bracket as well as after a space, but not inside a word.
_BEFORE = r"(?<![A-Za-z0-9_.])"
_AFTER = r"(?![A-Za-z0-9_])"

_MASKS: tuple[tuple[str, str], ...] = (
    (
        "TIME",
        r"\d{4}[-/]\d\d[-/]\d\d[T _]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?"
        r"|\b[IWEFC]\d{4} \d\d:\d\d:\d\d\.\d+"
        r"|\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)? ?"
        r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) [ \d]\d \d\d:\d\d:\d\d(?: \d{4})?"
        r"|\b\d\d:\d\d:\d\d(?:[.,]\d+)?(?!:)"
        r"|(?<![\w:.])\d\d:\d\d(?![\w:.])",  # a progress bar's
    ),
    ("URL", r"\b[a-z][a-z0-9+.]{1,9}://[^\s'\"<>)\]},;]+"),
    ("UUID", r"\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b"),
    ("MAC", r"\b(?:[0-9a-fA-F]{2}:){5,}[0-9a-fA-F]{2}\b"),
    ("PCI", r"\b(?:[0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-7])?\b(?=[:)\s,]|$)"),
    ("IP", r"(?<![\w.])/?(?:\d{1,3}\.){3}\d{1,3}(?::\d+)?(?:<\d+>)?(?![\w.]\d)"),
    ("IP", r"\[(?:[0-9a-fA-F]{0,4}:){2,7}(?:(?:\d{1,3}\.){3}\d{1,3}|[0-9a-fA-F]{0,4})\](?::\d+)?"),
    ("PATH", r"(?<![\w.<>/])(?:~|\.{1,2})?/(?:[\w@%+=,.~-]+/)*[\w@%+=,.~-]+/?"),
    (
        "HEX",
        r"\b0[xX][0-9a-fA-F]+\b|" + _BEFORE + r"(?=[0-9a-fA-F]*\d)(?=[0-9]*[a-fA-F])[0-9a-fA-F]{6,}" + _AFTER,
    ),
    # `trainer.py:792` is where a line was written, which tells its kind.
    (
        "HOST",
        r"(?<![\w.-])(?:[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?\.)+[A-Za-z]{2,}"
        r"(?<!\.py)(?<!\.cc)(?<!\.cu)(?<!\.go)(?<!\.rs)(?<!\.cpp|\.hpp|\.cuh)(?<!\.java):\d{1,5}\b",
    ),
    ("HOST", r"(?<![\w.-])[a-z][a-z0-9]*(?:-[a-z0-9]+)*-?\d+(?:\.[a-z][a-z0-9-]*)+\b"),
    ("SIZE", _BEFORE + r"\d+(?:\.\d+)? ?(?:[KMGTP]i?B|[kKMGT]?bytes?|[kMG]b)(?:/s)?\b"),
    ("NUM", _BEFORE + r"[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:[eE][-+]?\d+)?%?" + _AFTER),
    ("NUM", r"(?<=[A-Za-z_=:-])[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?(?=[\s,;:)\]}|\"'>]|$)"),
)  # fmt: skip

_COMPILED = tuple((f"<{name}>", regex(pattern)) for name, pattern in _MASKS)

# A line longer than this is masked by its head only: what names its kind stands there.
LONGEST = 2_000


def mask(text: str) -> str:
    """The line with everything that varies replaced by a named mask, spaces collapsed."""
    text = text[:LONGEST]
    for name, pattern in _COMPILED:
        text = pattern.sub(name, text)
    return " ".join(text.split())
