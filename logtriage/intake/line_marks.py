"""What stands before each line of a log that was handed on: a sign that quotes it, blanks, its number."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from logtriage.model import Overlay, OverlayKind
from logtriage.regex import regex

LEAST_NUMBERED = 4  # lines, one numbered after the other …
LEAST_APART = 8  # … or with gaps, as a search prints what it found
_MOSTLY, _NEARLY_ALL = 0.9, 0.95
_FEW = 12  # lines that tell of most files that nothing stands before them
_EDGE = 5  # lines of a mail's own above and below a block of code
_KINDS = 3  # of lines: what is counted in a table are rows of one kind

_SIGNS = (
    ">|\N{BOX DRAWINGS LIGHT VERTICAL}\N{BOX DRAWINGS HEAVY VERTICAL}\N{BROKEN BAR}\N{LEFT ONE EIGHTH BLOCK}"
)
_BARS = _SIGNS[1:]
_WHAT_FOLLOWS = rf"(\t|[\])]?(?: {{0,4}}[:{re.escape(_BARS)}.)\-\N{{RIGHTWARDS ARROW}}])?)"
_NUMBER = regex(r"([ \t]{0,12})((?:[Ll]ine |[Ll]n? ?|#|\[|\()?)(\d{1,7})" + _WHAT_FOLLOWS)
_OF_FILE = regex(r"()((?:[\w.@+=,~-]{1,100}/){0,12}[\w.@+=,~-]{1,200}:)(\d{1,7})([:-])")
_LOG_NAME = regex(
    r"(?i)(?:.*/)?([\w.@+=,~-]{1,200}?)(?:\.(?:log|out|err|txt|stdout|stderr|jsonl|\d{1,8})){1,3}:$"
)
_NEEDS_BLANK = frozenset(("", ".", ")", "-"))  # which may be part of what is said unless a blank follows
_HEADED = regex(
    r"\[?\d{4}[-/]\d\d[-/]\d\d|\[?\d\d:\d\d:\d\d|Traceback \(most|[IWEF]\d{4} |\[rank\d"
    r"|[A-Z][a-z]{2} [ \d]\d \d\d:"
)


def learn_marks(texts: Sequence[str]) -> Overlay | None:
    """What stands before nearly all of these lines."""
    filled = [text for text in texts if text.strip()]
    few = filled[:_FEW]
    if len(filled) < LEAST_NUMBERED - 1 or not any(_may_be_marked(text) for text in few[len(few) // 2 :]):
        return None
    return _quoted(filled) or _numbered(filled) or _interleaved(filled) or _indented(filled)


def may_have_marks(overlay: Overlay, texts: Sequence[str]) -> bool:
    """Whether this stands before all of a few lines."""
    filled = [text for text in texts if text.strip()]
    if overlay.kind in (OverlayKind.QUOTED, OverlayKind.INDENTED):
        bare = overlay.ahead.rstrip(" ") or overlay.ahead
        return bool(filled) and all(text.startswith(overlay.ahead) or text.strip() == bare for text in filled)
    if overlay.kind is not OverlayKind.NUMBERED or overlay.ahead.endswith(":"):
        return False
    found = [match for text in filled if (match := _NUMBER.match(text)) is not None]
    numbers = [int(match[3]) for match in found if match[2] == overlay.ahead]
    behind = overlay.behind.rstrip(" ")
    is_alike = all(_behind(match) == behind or _is_bare(match) for match in found)
    in_a_row = all(two == one + 1 for one, two in pairwise(numbers))
    return is_alike and in_a_row and 0 < len(numbers) == len(filled) and numbers[0] > 0


def _may_be_marked(text: str) -> bool:
    first = text[0]
    return first.isspace() or first.isdigit() or first in _SIGNS or first in "[(#Ll" or ":" in text


def without_marks(
    overlay: Overlay, texts: Sequence[str], origins: Sequence[int]
) -> tuple[list[str], list[int]]:
    """The lines without what stands before them; those that lack it as they are."""
    if overlay.kind is OverlayKind.INTERLEAVED:
        numbers = _numbers_alone(texts)
        kept = [at for at in range(len(texts)) if at not in numbers]
        return [texts[at] for at in kept], [origins[at] for at in kept]
    if overlay.kind is OverlayKind.NUMBERED:
        return _without_numbers(overlay, texts), list(origins)
    bare = overlay.ahead.rstrip(" ") or overlay.ahead
    return [
        text.removeprefix(overlay.ahead if text.startswith(overlay.ahead) else bare) for text in texts
    ], list(origins)


# --- signs and blanks -------------------------------------------------------------------------------


def _quoted(filled: Sequence[str]) -> Overlay | None:
    sign = Counter(text[0] for text in filled[:_FEW]).most_common(1)[0][0]
    if sign not in _SIGNS:
        return None
    count = sum(text[0] == sign for text in filled)
    if count < (_MOSTLY if sign == ">" else _NEARLY_ALL) * len(filled):
        return None
    rests = [text[1:] for text in filled if text[0] == sign]
    # Rows of a table end with the bar that they begin with.
    if sign in _BARS and 2 * sum(rest.rstrip().endswith(sign) for rest in rests) > len(rests):
        return None
    spaced = all(rest.startswith((" ", sign)) or not rest.strip() for rest in rests)
    spaced = spaced and any(rest.startswith(" ") for rest in rests)
    return Overlay(OverlayKind.QUOTED, ahead=sign + " " * spaced)


def _indented(filled: Sequence[str]) -> Overlay | None:
    if not any(text[0].isspace() for text in filled[:_FEW]):
        return None
    inside = [at for at, text in enumerate(filled) if text[0].isspace()]
    outside = len(filled) - len(inside)
    if not inside or outside > (1 - _MOSTLY) * len(filled):
        return None
    if outside and (inside[0] > _EDGE or len(filled) - 1 - inside[-1] > _EDGE or not _is_run(inside)):
        return None
    body = [filled[at] for at in inside]
    blanks = [text[: len(text) - len(text.lstrip(" \t"))] for text in body]
    ahead = min(blanks, key=len)
    # Some loggers put one blank before each line.
    if ahead in ("", " ") or not all(each.startswith(ahead) for each in blanks):
        return None
    if outside:
        # A traceback's frames are indented too; so much, and lines with heads, are only in a block of code.
        headed = sum(_HEADED.match(text, len(ahead)) is not None for text in body)
        if len(ahead.expandtabs(4)) < 4 or headed < LEAST_NUMBERED - 1:
            return None
    return Overlay(OverlayKind.INDENTED, ahead=ahead)


def _is_run(places: Sequence[int]) -> bool:
    return places[-1] - places[0] == len(places) - 1


# --- numbers ----------------------------------------------------------------------------------------


def _numbered(filled: Sequence[str]) -> Overlay | None:
    are_named = 2 * sum(_OF_FILE.match(text) is not None for text in filled[:_FEW]) > len(filled[:_FEW])
    found = [match for text in filled if (match := _OF_FILE.match(text)) is not None] if are_named else []
    if found and len(found) >= _MOSTLY * len(filled) and all(_LOG_NAME.match(match[2]) for match in found):
        rises = [(one[2], int(one[3])) < (two[2], int(two[3])) for one, two in pairwise(found)]
        names = len({match[2] for match in found})
        if sum(rises) >= len(rises) - names:
            return Overlay(OverlayKind.NUMBERED, ahead=found[0][2] if names == 1 else "*:", behind=":")
    first = [_NUMBER.match(text) for text in filled[:_FEW]]
    told = [int(match[3]) for match in first if match is not None]
    # Of files that begin with dates this is where they are told apart.
    if 2 * len(told) < len(first) or sum(one >= two for one, two in pairwise(told)) > 1:
        return None
    found = [match for text in filled if (match := _NUMBER.match(text)) is not None]
    (ahead, behind), _ = Counter((match[2], _behind(match)) for match in found).most_common(1)[0]
    alike = [match for match in found if match[2] == ahead and (_behind(match) == behind or _is_bare(match))]
    if (
        ahead + behind[:1] in ("(", "[")
        or len(alike) < _NEARLY_ALL * len(filled)
        or len(alike) < LEAST_NUMBERED
    ):
        return None
    numbers = [int(match[3]) for match in alike]
    rests = [match.string[match.end() :] for match in alike]
    # What is said may be indented, but not all of it.
    blanks = min((len(rest) - len(rest.lstrip(" ")) for rest in rests if rest.strip()), default=0)
    if (behind in _NEEDS_BLANK and not blanks) or numbers[0] < 1:
        return None
    steps = Counter(two - one for one, two in pairwise(numbers))
    breaks = sum(count for step, count in steps.items() if step <= 0)
    in_a_row = steps[1] >= _MOSTLY * (len(numbers) - 1)
    apart = behind == ":" and len(numbers) >= LEAST_APART and not breaks
    if not in_a_row and not apart:
        return None
    # `cat -n` sets its numbers right, and a tab behind them; else there must be more than rows of one kind.
    if not (behind == "\t" and numbers[0] == 1 and alike[0][1]) and not _are_of_kinds(rests):
        return None
    return Overlay(OverlayKind.NUMBERED, ahead=ahead, behind=behind + " " * blanks)


def _behind(match: re.Match[str]) -> str:
    return match[4].replace(" ", "")


def _is_bare(match: re.Match[str]) -> bool:
    """Whether a number stands alone: of an empty line, whose blank or tab was cut off."""
    return not match.string[match.end() :].strip()


def _are_of_kinds(rests: Sequence[str]) -> bool:
    kinds = {re.sub(r"\d+", "", rest)[:40] for rest in rests if rest.strip()}
    headed = sum(_HEADED.match(rest.lstrip()) is not None for rest in rests)
    return len(kinds) >= _KINDS or 2 * headed >= len(rests)


def _without_numbers(overlay: Overlay, texts: Sequence[str]) -> list[str]:
    if overlay.ahead.endswith(":"):
        return _without_names(overlay, texts)
    behind = overlay.behind.rstrip(" ")
    blanks = overlay.behind[len(behind) :]
    made = []
    for text in texts:
        match = _NUMBER.match(text)
        if match is None or match[2] != overlay.ahead or (_behind(match) != behind and not _is_bare(match)):
            made.append(text)
            continue
        rest = text[match.end() :]
        made.append(rest.removeprefix(blanks) if rest.strip() else "")
    return made


def _without_names(overlay: Overlay, texts: Sequence[str]) -> list[str]:
    """Of lines that a search found in one file, or in several: of these it stays said whose a line is."""
    made = []
    for text in texts:
        match = _OF_FILE.match(text)
        name = _LOG_NAME.match(match[2]) if match is not None else None
        if match is None or name is None:
            made.append(text)
        elif overlay.ahead == "*:":
            made.append(f"[{name[1]}] {text[match.end() :]}")
        else:
            made.append(text[match.end() :])
    return made


def _interleaved(filled: Sequence[str]) -> Overlay | None:
    if not any(text.strip().isdigit() for text in filled[:_FEW]):
        return None
    alone = _numbers_alone(filled)
    if len(alone) < LEAST_NUMBERED or len(alone) < 0.4 * len(filled) or len(alone) > 0.6 * len(filled):
        return None
    return Overlay(OverlayKind.INTERLEAVED)


def _numbers_alone(texts: Sequence[str]) -> set[int]:
    """Which lines are but a number, one more than that of the last such line."""
    found: set[int] = set()
    last = 0
    for at, text in enumerate(texts):
        word = text.strip()
        if word.isascii() and word.isdigit() and len(word) < 8 and (not found or int(word) == last + 1):
            found.add(at)
            last = int(word)
    return found
