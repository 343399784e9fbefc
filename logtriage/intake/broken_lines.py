"""Long lines that were broken at the width of a terminal, and copied so."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence

from logtriage.model import Overlay, OverlayKind
from logtriage.regex import regex

WIDTHS = range(40, 501)
_USUAL = frozenset((80, 100, 120, 132, 140, 150, 160, 180, 200, 240))  # of terminals, and of exports
LEAST_BROKEN = 3  # lines, and kinds of lines
LEAST_ENDS = 2  # so many lines end with less than the full width, as hardly any row of a table does
_FEW, _MOST_PARTS = 4, 200  # records that are looked at, and lines of one
_BEGIN = 6  # signs at which the beginnings of lines are told apart
_NEAR = 10  # widths just below, which hardly any line has by chance
_HEAP = 2  # times as many kinds of lines as of any of these have the full width
_CONTINUED = 0.6  # of the kinds of full width so many go on in the next
_INSIDE = 0.3  # of those so many in the middle of a word: text that was set breaks at blanks
_FRAMED = 0.5
_SIGNS = 5  # a line of fewer different signs is a ruler
_GAP, _COLUMNS = regex(r" {2,}(?=[^\s|])"), 4  # so many are between columns, others in bars
_DOTS = ("...", "\N{HORIZONTAL ELLIPSIS}")
_KIND, _NUMBERS = 40, regex(r"\d+")
_DIGITS = str.maketrans("123456789", "0" * 9)
_HEAD = regex(
    r"\[?\d{4}[-/]\d\d[-/]\d\d[T ,]\d|\[?\d\d:\d\d:\d\d[.,\] ]|Traceback \(most recent|[IWEF]\d{4} \d\d:"
    r"|\[rank\d{1,6}\]|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d |(?:INFO|WARNING|ERROR|DEBUG|CRITICAL)\b"
)


def learn_broken(texts: Sequence[str]) -> Overlay | None:
    """At which width lines were broken: many have exactly it, none is longer, and they go on in the next."""
    lengths = [len(text.rstrip("\r")) for text in texts]
    width = max(lengths, default=0)
    full = [at for at, length in enumerate(lengths) if length == width]
    if width not in WIDTHS:
        return None
    if any(_is_record(texts, lengths, at) for at in full[:_FEW] if texts[at].startswith('{"')):
        return Overlay(OverlayKind.BROKEN, width=width)
    # Of nearly all files this tells at once that they are not broken.
    broken = [at for at in full if at + 1 < len(texts) and _HEAD.match(texts[at + 1]) is None]
    if len(broken) < LEAST_BROKEN:
        return None
    begins = _begins(texts, lengths, width)
    broken = [at for at in broken if _goes_on(texts[at + 1], begins)]
    # Of each kind one is counted: of steps a thousand have the same length, and are broken alike.
    kinds, by_kind = _by_kind(texts, broken), _by_kind(texts, full)
    longest = _by_kind(texts, (at for at, length in enumerate(lengths) if width - _NEAR < length < width))
    near = Counter(lengths[at] for at in longest)
    if len(kinds) < max(1, _CONTINUED * len(by_kind), _HEAP * max(near.values(), default=0)):
        return None
    ends = [(texts[at].rstrip("\r"), texts[at + 1]) for at in kinds]
    inside = sum(not one[-1].isspace() and not two[:2].isspace() for one, two in ends)
    # Tables and rulers end with the sign with which they begin; lines that were cut short, with dots.
    framed = sum((one[-1] == two[0] and not one[-1].isalnum()) or one.endswith(_DOTS) for one, two in ends)
    framed += sum(len(_GAP.findall(one)) >= _COLUMNS or len(set(one)) < _SIGNS for one, _ in ends)
    if inside < _INSIDE * len(ends) or framed > _FRAMED * len(ends):
        return None
    # Records of two lines look the same if they are of one kind; of three lines, two have not the same width.
    last = sum(lengths[at + 1] < width for at in broken)
    least = 1 if width in _USUAL else LEAST_BROKEN - (last < len(broken))
    if len(kinds) < least or len(broken) < LEAST_BROKEN or last < LEAST_ENDS:
        return None
    return Overlay(OverlayKind.BROKEN, width=width)


def _is_record(texts: Sequence[str], lengths: Sequence[int], at: int) -> bool:
    """Whether a line is but the beginning of a record in JSON that the lines below it complete."""
    if texts[at].rstrip().endswith("}"):
        return False
    end = at + 1
    while end < min(len(texts) - 1, at + _MOST_PARTS) and lengths[end] == lengths[at]:
        end += 1
    try:
        return isinstance(json.loads("".join(text.rstrip("\r") for text in texts[at : end + 1])), dict)
    except (ValueError, RecursionError):
        return False


def may_be_broken(overlay: Overlay, texts: Sequence[str]) -> bool:
    """Whether one of a few lines has the full width, and goes on in the next, where none is longer."""
    lengths = [len(text.rstrip("\r")) for text in texts]
    if max(lengths, default=0) != overlay.width:
        return False
    begins = _begins(texts, lengths, overlay.width)
    pairs = zip(lengths, texts[1:], strict=False)
    return any(length == overlay.width and _goes_on(text, begins) for length, text in pairs)


def without_breaks(
    overlay: Overlay, texts: Sequence[str], origins: Sequence[int]
) -> tuple[list[str], list[int]]:
    """The lines as they were written, with the place in which each begins."""
    lengths = [len(text.rstrip("\r")) for text in texts]
    begins = _begins(texts, lengths, overlay.width)
    made: list[str] = []
    places: list[int] = []
    is_open = False
    held: list[str] = []
    for text, length, origin in zip(texts, lengths, origins, strict=True):
        if not (is_open and _goes_on(text, begins)):
            if places:
                made.append("".join(held))
            held = []
            places.append(origin)
        is_open = length == overlay.width
        held.append(text.rstrip("\r") if is_open else text)
    if places:
        made.append("".join(held))
    return made, places


def _begins(texts: Sequence[str], lengths: Sequence[int], width: int) -> frozenset[str]:
    """How lines begin that no broken one is before: those behind a line of less than the full width."""
    return frozenset(_begin(text) for at, text in enumerate(texts) if at == 0 or lengths[at - 1] != width)


def _by_kind(texts: Sequence[str], places: Iterable[int]) -> list[int]:
    """The first of each kind of lines."""
    kinds: dict[str, int] = {}
    for at in places:
        kinds.setdefault(_NUMBERS.sub("0", texts[at][:_KIND]), at)
    return list(kinds.values())


def _begin(text: str) -> str:
    return text[:_BEGIN].translate(_DIGITS)


def _goes_on(text: str, begins: frozenset[str]) -> bool:
    """Whether a line continues the one above it: it does not begin as whole lines do."""
    return bool(text) and _begin(text) not in begins and _HEAD.match(text) is None
