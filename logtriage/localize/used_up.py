"""Requests whose tries were used up: what the program lacked then is what it could not fetch."""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import replace

from logtriage.localize.candidates import Candidate
from logtriage.localize.scene import Scene
from logtriage.model import Line
from logtriage.regex import regex
from logtriage.rulebank.rule import Role, Strength

# `Retrying in 8s [Retry 5/5].`, `attempt 3 of 3`
_LAST_TRY = regex(r"(?i)\b(?:re-?)?(?:try|tries|trying|attempt)\b[^\n]{0,30}?\b(\d{1,3}) ?(?:/|of) ?\1\b")
_FETCHED = regex(
    r"\b[a-z][a-z0-9+]{1,11}://[^\s'\"<>]{3,1000}?(?P<name>[^\s'\"<>/?#]{4,200})(?=[\s'\"<>?#]|$)"
)
_LACKED = ("data.missing", "code.file_not_found", "code.os_error", "data.corrupt")
NEAR_LINES = 40


def with_used_up(candidates: Sequence[Candidate], scene: Scene) -> list[Candidate]:
    """The candidates; a request that failed to its last try, and whose file was lacked then, is sure."""
    lacked = [each for each in candidates if each.record is not None and each.failure_type in _LACKED]
    return [
        replace(each, strength=Strength.DEFINITE, recovered=False)
        if any(_is_of(each, end, scene.lines(each.line.file)) for end in lacked)
        else each
        for each in candidates
    ]


def _is_of(request: Candidate, end: Candidate, lines: Sequence[Line]) -> bool:
    """Whether the request was for what the exception lacks, and was tried to the last in between."""
    if (request.failure_type, request.role) != ("network.connection", Role.CAUSE):
        return False
    if request.line.file != end.line.file or not 0 < end.line.number - request.line.number <= NEAR_LINES:
        return False
    named = {found["name"] for found in _FETCHED.finditer(request.line.text[:4000])}
    if not any(name in end.line.text[:4000] for name in named):
        return False
    first = bisect.bisect_left(lines, request.line.number, key=lambda line: line.number)
    last = bisect.bisect_left(lines, end.line.number, key=lambda line: line.number)
    return any(_LAST_TRY.search(line.text[:2000]) is not None for line in lines[first:last])
