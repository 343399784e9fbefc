"""Files of a training's measures, tables or JSON, in which the losses turn NaN for good.

Keras' CSVLogger, Ultralytics' results.csv, Lightning's metrics.csv, DeePMD's lcurve.out, trainer_state.json:
the console beside them shows steps only, and says at the end that it is done.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from logtriage.localize.scene import Scene
from logtriage.model import JOB_ROLES, Line, SourceRole
from logtriage.regex import regex

_NUMBERS_STEPS = regex(
    r"(?i)^(?:global[_ /-]?)?(?:step|epoch|iter(?:ation)?|batch|update)s?(?:[_ ]?(?:no|num))?$"
)
_MEASURE = regex(r"(?i)(?:^|[_/ .-])(?:(?:\w{0,12})loss|rmse|mse|mae|nll|ppl|perplexity)(?:$|[_/ .(-])")
_OF_OTHER_DATA = regex(r"(?i)(?:^|[_/ .-])(?:val|valid|validation|eval|test|dev)(?:$|[_/ .-])")
_WORDS = ("loss", "Loss", "LOSS", "mse", "MSE", "mae", "MAE", "nll", "NLL", "ppl", "perplexity")
_LOST = frozenset(("nan", "-nan", "inf", "-inf", "infinity", "-infinity"))
_PAIR = regex(
    r"\"(?P<name>[\w/. -]{1,60})\": ?"
    r"(?:(?P<value>-?(?:NaN|nan|Infinity|\d[\d.eE+-]{0,24}))|\[(?P<values>[-\d.eE+, NaInfity]{1,60000})\])"
)
FINITE_ROWS = 5  # which every measure has at first
LOST_ROWS = 3  # up to the end, of which none is finite any more
MOST_COLUMNS = 200


@dataclass(frozen=True, slots=True)
class Ruined:
    """The first row in which no measure of the training is a number any more, and the last one."""

    first: Line
    last: Line
    names: tuple[str, ...]


def ruined(scene: Scene) -> Ruined | None:
    """Where all losses of a file were numbers, and are none from some row to the end."""
    for reading in scene.readings:
        if reading.source.role not in (*JOB_ROLES, SourceRole.METRICS, SourceRole.ENVIRONMENT):
            continue
        courses = _told(reading.lines) if _JSON.search(reading.source.file) else _tabled(reading.lines)
        for course in courses:
            if (found := _lost(course)) is not None:
                return found
    return None


Course = Mapping[str, Sequence[tuple[Line, str]]]  # by the name of a measure its values in turn
_JSON = regex(r"(?i)\.jsonl?$")


def _told(lines: Sequence[Line]) -> Iterator[Course]:
    """Of JSON the values of each measure, one a record or all in a list."""
    course: dict[str, list[tuple[Line, str]]] = defaultdict(list)
    is_counted = False
    for line in lines:
        for told in _PAIR.finditer(line.text[:65_536]):
            is_counted |= told["value"] is None or _NUMBERS_STEPS.match(told["name"]) is not None
            if _is_measure(told["name"]):
                values = (told["value"] or told["values"]).split(",")
                course[told["name"]] += [(line, value.strip().lower()) for value in values]
    if is_counted:
        yield course


def _tabled(lines: Sequence[Line]) -> Iterator[Course]:
    for names, rows in _tables(lines):
        yield {
            name: [(line, cells[at].lower()) for line, cells in rows if cells[at]]
            for at, name in enumerate(names)
            if _is_measure(name)
        }


def _tables(lines: Sequence[Line]) -> Iterator[tuple[list[str], list[tuple[Line, list[str]]]]]:
    """Headings that name a step and a measure, each with the rows of as many cells right below it."""
    names: list[str] = []
    rows: list[tuple[Line, list[str]]] = []
    comma = False
    for line in lines:
        text = line.text[:4000]
        if names:
            cells = _cells(text, comma=comma)
            if len(cells) == len(names) and all(map(_is_number, cells)):
                rows.append((line, cells))
                continue
            if not text.strip() or text.lstrip().startswith("#"):
                continue  # remarks below the heading
            yield names, rows
            names, rows = [], []
        if any(word in text for word in _WORDS):
            comma = "," in text
            told = _cells(text.lstrip("# \t\ufeff"), comma=comma)
            if 2 < len(told) <= MOST_COLUMNS and _is_heading(told):
                names = told
    if names:
        yield names, rows


def _cells(text: str, *, comma: bool) -> list[str]:
    return [cell.strip().strip('"') for cell in text.split(",")] if comma else text.split()


def _is_heading(names: Sequence[str]) -> bool:
    return (
        len(set(names)) == len(names)
        and any(_NUMBERS_STEPS.match(name) for name in names)
        and any(map(_is_measure, names))
        and not any(map(_is_number, filter(None, names)))
    )


def _is_measure(name: str) -> bool:
    return _MEASURE.search(name) is not None and _OF_OTHER_DATA.search(name) is None


def _is_number(cell: str) -> bool:
    """Whether a cell holds a number, NaN, or nothing: not all measures are taken at every step."""
    if not cell:
        return True
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _lost(course: Course) -> Ruined | None:
    """Where NaN came into all losses: what is NaN in one measure alone does not reach the weights."""
    firsts: list[Line] = []
    lasts: list[Line] = []
    lost: list[str] = []
    for name, values in course.items():
        behind = next(
            (back for back, (_, value) in enumerate(reversed(values)) if value not in _LOST), len(values)
        )
        finite = sum(value not in _LOST for _, value in values)
        if finite == 0:
            continue  # it was never measured
        if behind < LOST_ROWS or finite < FINITE_ROWS:
            return None
        firsts.append(values[-behind][0])
        lasts.append(values[-1][0])
        lost.append(name)
    if not lost:
        return None
    first = max(firsts, key=lambda line: line.number)
    return Ruined(first, max(lasts, key=lambda line: line.number), tuple(lost))
