"""What somebody counted or weighed twice beside a job, and found grown: whoever writes it is at work.

`ls out | wc -l`, `du -sh /scratch`, `wc -l part.jsonl`, `ls -l`: the same question, asked a while later.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from logtriage.localize.frozen import told_now
from logtriage.model import Line
from logtriage.regex import regex

PROMPT = regex(
    r"^(?:(?:\([\w.-]{1,40}\) ?)?[\w.-]{1,40}@[\w.-]{1,80}[^$#\n]{0,80}|\[[^\]\n]{3,100}\])?[$#] ?"
    r"(?P<asked>[a-z].*)$"
)
# A bare number, or one with a unit, and what it is of: `426G  /scratch/shards`, `  98112 part.jsonl`.
_AMOUNT = regex(
    r"^\s*(?P<amount>\d{1,15}(?:\.\d{1,3})?)(?P<unit>[KMGTP])?(?:i?B)?(?:\s+(?P<of>[\w./~-]{1,300}))?\s*$"
)
_LISTED = regex(
    r"^-[rwxsStT-]{9}\S? +\d+ +\S+ +\S+ +(?P<amount>\d{1,15})(?P<unit>[KMGTP]?) .{1,60} (?P<of>\S{1,300})\s*$"
)
_SILENT = regex(r"^(?:(?:sleep|cd|export|source|set|date)\b|#)")
_WEIGHS = regex(r"(?:^|[ /|(])(?:wc|du|stat|find|df|ls)\b")
_PARTS = regex(r"\s*(?:;|&&)\s*")
_UNITS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5}


def grown(look: Sequence[Line]) -> Line | None:
    """The line of a look that tells more of something than the same question did before."""
    return _weighed_more(look) or _ends_otherwise(look)


def _ends_otherwise(look: Sequence[Line]) -> Line | None:
    """The line with which a log ended when its end was shown once more, and had not ended before."""
    told: dict[str, str] = {}
    asked, answered = "", False
    for line in look:
        text = line.text[:400]
        if (prompt := PROMPT.match(text)) is not None:
            ends = [part for part in _PARTS.split(prompt["asked"]) if _TAILS.match(part) is not None]
            asked, answered = ends[0] if len(ends) == 1 else "", False
        elif asked and not answered and text.strip() and not any(True for _ in told_now(line)):
            if told.get(asked, text) != text:
                return line
            told[asked], answered = text, True
    return None


_TAILS = regex(r"(?:kubectl|docker) logs .{0,200}--tail[ =]1\b|tail (?:-n ?)?-?1 \S")


def _weighed_more(look: Sequence[Line]) -> Line | None:
    told: dict[str, float] = {}
    shrunk: set[str] = set()
    found: Line | None = None
    for of, amount, line in _amounts(look):
        if amount > told.get(of, amount):
            found = line
        elif amount < told.get(of, amount):
            shrunk.add(of)
        told[of] = amount
    return found if not shrunk else None


def _amounts(look: Sequence[Line]) -> Iterator[tuple[str, float, Line]]:
    """What each question was about, and the number that answered it."""
    asked: list[str] = []
    for line in look:
        text = line.text[:400]
        if (prompt := PROMPT.match(text)) is not None:
            parts = [part.strip() for part in _PARTS.split(prompt["asked"])]
            asked = [part for part in parts if part and _SILENT.match(part) is None]
        elif (row := _LISTED.match(text)) is not None:
            yield row["of"], _number(row["amount"], row["unit"]), line
        elif asked and (row := _AMOUNT.match(text)) is not None and _WEIGHS.search(about := asked.pop(0)):
            yield about, _number(row["amount"], row["unit"] or ""), line


def _number(amount: str, unit: str) -> float:
    return float(amount) * 1024.0 ** _UNITS[unit]
