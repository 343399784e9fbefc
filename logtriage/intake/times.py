"""Times as logs write them.

A naive time counts as UTC; a time without a year takes the year it is told (or `UNKNOWN_YEAR`, a leap
year, so that Feb 29 stays a date); a time of day alone counts from 1970-01-01. Nothing here raises on any
text: a number that is no date is no time.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from functools import lru_cache

from logtriage.regex import regex

UNKNOWN_YEAR = 1972
DAY = 86_400.0

_EPOCH_DAY = date(1970, 1, 1).toordinal()
_MONTHS = {
    name: number
    for number, name in enumerate(
        ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"), start=1
    )
}
# Only names that mean one zone everywhere: CST, IST and BST do not.
_ZONES = {"UTC": 0, "GMT": 0, "Z": 0, "EST": -5, "EDT": -4, "MST": -7, "MDT": -6, "PST": -8, "PDT": -7}
_ZONES |= {"CET": 1, "CEST": 2, "JST": 9, "KST": 9}


@dataclass(frozen=True, slots=True)
class Stamp:
    """A time found in a text, at text[start:end].

    `seconds` is UTC since 1970 (a naive time as if UTC); for kind "monotonic" seconds since boot; without
    a date (`has_date` false) seconds since midnight. `east` are the seconds by which its zone lies so.
    """

    seconds: float
    start: int
    end: int
    kind: str
    has_zone: bool
    has_date: bool
    has_year: bool
    east: float = 0.0


_CLOCK = r"(\d\d):(\d\d):(\d\d)(?:[.,:](\d{1,9}))?"
_ZONE = r"(Z\b|[+-]\d\d:?\d\d(?!\d)| ?(?:UTC|GMT)\b| [+-]\d{4}(?!\d))?"
_MONTH = r"(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}\.?"
_WEEKDAY = r"(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]{0,6},? +)?"

_DATE_AND_CLOCK = (
    r"(\d{4})([-/.])(\d\d?)\2(\d\d?)(?:[T ,_-]{1,2}| \| )(\d\d?)[:.](\d\d)(?:[:.](\d\d)(?:[.,:](\d{1,9}))?)?"
    + _ZONE
)
_ISO = regex(_DATE_AND_CLOCK)
_OF_WEEKDAY = regex(r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]{0,6},? +" + _DATE_AND_CLOCK)  # systemd's tools
_US = regex(
    r"(\d\d?)/(\d\d?)/(\d{4}|\d\d)[ ,T_|-]{1,3}(\d\d?):(\d\d):(\d\d)(?:[.,](\d{1,9}))?(?: ?([AaPp])[Mm]\b)?"
)
_DAY_MONTH = regex(_WEEKDAY + r"(\d\d?)[ /-]" + _MONTH + r"[ /-](\d{4})[: ,]{1,2}" + _CLOCK + _ZONE)
# Neuron's runtime: `2025-Aug-01 16:12:43.0204`.
_MONTH_DAY = regex(_MONTH + r"-(\d\d)-(\d{4}) \| " + _CLOCK)  # ipmi-sel
_YEAR_MONTH = regex(r"(\d{4})-" + _MONTH + r"-(\d\d?)[T ]" + _CLOCK + _ZONE)
_NUMERIC_DAY = regex(r"(\d\d)[-/.](\d\d)[ T]" + _CLOCK)
# `02.12.2025 08:00:00`, `2.12. 8:00:00`: day first, as the points tell.
_POINTED = regex(
    r"(?:(\d\d?)\.(\d\d?)\.(\d{4})?|(\d\d)\.(\d\d)\.(\d\d))(?:,? {1,2}|T| um )"
    r"(\d\d?):(\d\d):(\d\d)(?:[.,](\d{1,9}))?(?!\d)"
)
_COMPACT = regex(r"(\d{4})(\d\d)(\d\d)[-_T ](\d\d):?(\d\d):?(\d\d)(?:[.,:](\d{1,9}))?(Z\b)?(?!\d)")
_EPOCH = regex(r"(\d{9,10}\.\d{1,9}|1\d{12})(?![\w.])")
_TIME = regex(_CLOCK + r"(?![\d:<])(?! ?<)")
# What absl writes before it is set up: the seconds since 1970 in the place of the seconds.
_EARLY_ABSL = regex(r"[IWEF]0000 00:00:(\d{10}\.\d{1,9})")
_GLOG = regex(r"[IWEFDVC](\d{8}|\d{3,4}) +" + _CLOCK)
_SYSLOG = regex(
    _WEEKDAY
    + _MONTH
    + r" +(\d{1,2}),?(?: +(\d{4}),?)? +(\d\d?):(\d\d):(\d\d)(?:[.,](\d{1,9}))?(?: ?([AaPp])[Mm]\b)?"
    + r"(?:(?: +([A-Z]{3,4}))? +((?:19|20)\d\d)(?![\d:.]))?"
)
_UPTIME = regex(r"\[ *(\d{1,9}\.\d{4,9})\]")
_KMSG = regex(r"\d{1,3},\d{1,12},(\d{1,16}),[-+c](?:,[^;\n]{0,100})?;")

_CORE = regex(r"\d[:.]\d\d[:.]\d\d")
_DATED = regex(
    r"(?<![\w.-])(?:\d{4}[-/.]\d\d?[-/.]\d\d?[T ,_-]|\d{4}-[A-Z][a-z]{2}-\d\d?[T ]|\d\d?/\d\d?/\d{2,4}[ ,T]"
    r"|\d\d?[/ -][A-Z][a-z]{2,8}[/ -]\d{4}[: ,]"
    r"|[A-Z][a-z]{2} +\d{1,2},? (?:\d{4},? )?\d\d?:|[IWEFDVC]\d{3,4} \d\d:|\d\d[-/]\d\d[ T]\d\d:"
    r"|\d\d?\.\d\d?\.(?:20\d\d)? )"
    r"|[A-Z][a-z]{2}-\d\d-\d{4} \|"
    r"|(?<=/s\])\d{4}-\d\d-\d\d[T ]|(?<=/it\])\d{4}-\d\d-\d\d[T ]"
)


@lru_cache(maxsize=4096)
def _midnight(year: int, month: int, day: int) -> float | None:
    """Seconds from 1970 to the start of a day, or None where there is no such day."""
    if not 1970 <= year < 2100:
        return None
    try:
        return (date(year, month, day).toordinal() - _EPOCH_DAY) * DAY
    except ValueError:
        return None


def _of_day(hour: str, minute: str, second: str | None, fraction: str | None) -> float | None:
    """Seconds since midnight; second 60 is a leap second."""
    hours, minutes, seconds = int(hour), int(minute), int(second or 0)
    if hours > 23 or minutes > 59 or seconds > 60:
        return None
    total = float(hours * 3600 + minutes * 60 + seconds)
    return total + int(fraction) / 10 ** len(fraction) if fraction else total


def _zone(text: str | None) -> float | None:
    """Seconds east of Greenwich, or None for a text that names no zone."""
    if not text:
        return None
    name = text.strip()
    if name in _ZONES:
        return _ZONES[name] * 3600.0
    if name[0] not in "+-":
        return None
    digits = name[1:].replace(":", "")
    hours, minutes = int(digits[:2]), int(digits[2:])
    if hours > 14 or minutes > 59:
        return None
    return (hours * 3600.0 + minutes * 60.0) * (-1 if name[0] == "-" else 1)


def _half_day(clock: float | None, half: str | None) -> float | None:
    """A time of day by the twelve-hour clock where `half` is a or p."""
    if clock is None or not half:
        return clock
    hours, rest = divmod(clock, 3600)
    return (hours % 12 + (12 if half in "pP" else 0)) * 3600 + rest


def _stamp(
    match: re.Match[str],
    kind: str,
    day: float | None,
    clock: float | None,
    zone: float | None = None,
    has_year: bool = True,
) -> Stamp | None:
    if day is None or clock is None:
        return None
    seconds = day + clock - (zone or 0.0)
    return Stamp(seconds, match.start(), match.end(), kind, zone is not None, True, has_year, zone or 0.0)


def _read_iso(match: re.Match[str], year: int | None) -> Stamp | None:
    years, _, month, day, hour, minute, second, fraction, zone = match.groups()
    if second is None and match.group(2) == ".":
        return None
    midnight = _midnight(int(years), int(month), int(day))
    return _stamp(match, "iso", midnight, _of_day(hour, minute, second, fraction), _zone(zone))


def _read_us(match: re.Match[str], year: int | None) -> Stamp | None:
    first, second, third = int(match[1]), int(match[2]), int(match[3])
    clock = _half_day(_of_day(match[4], match[5], match[6], match[7]), match[8])
    if len(match[3]) == 4:
        # Month first as in the United States, unless that is no month.
        month, day = (first, second) if first <= 12 else (second, first)
        return _stamp(match, "us", _midnight(third, month, day), clock)
    if first > 12:  # yy/MM/dd as log4j writes it
        return _stamp(match, "log4j", _midnight(2000 + first, second, third), clock)
    return _stamp(match, "us", _midnight(2000 + third, first, second), clock)


def _read_day_month(match: re.Match[str], year: int | None) -> Stamp | None:
    day = _midnight(int(match[3]), _MONTHS[match[2].lower()], int(match[1]))
    return _stamp(match, "clf", day, _of_day(match[4], match[5], match[6], match[7]), _zone(match[8]))


def _read_month_day(match: re.Match[str], year: int | None) -> Stamp | None:
    day = _midnight(int(match[3]), _MONTHS[match[1].lower()], int(match[2]))
    return _stamp(match, "ctime", day, _of_day(match[4], match[5], match[6], match[7]))


def _read_year_month(match: re.Match[str], year: int | None) -> Stamp | None:
    day = _midnight(int(match[1]), _MONTHS[match[2].lower()], int(match[3]))
    return _stamp(match, "iso", day, _of_day(match[4], match[5], match[6], match[7]), _zone(match[8]))


def _read_numeric_day(match: re.Match[str], year: int | None) -> Stamp | None:
    day = _midnight(year or UNKNOWN_YEAR, int(match[1]), int(match[2]))
    return _stamp(match, "month-day", day, _of_day(*match.groups()[2:6]), has_year=False)


def _read_pointed(match: re.Match[str], year: int | None) -> Stamp | None:
    day, month, years = (match[at] or match[at + 3] for at in (1, 2, 3))
    known = int(years) + (2000 if len(years) == 2 else 0) if years else year or UNKNOWN_YEAR
    midnight = _midnight(known, int(month), int(day))
    clock = _of_day(match[7], match[8], match[9], match[10])
    return _stamp(match, "day-month", midnight, clock, has_year=bool(years))


def _read_compact(match: re.Match[str], year: int | None) -> Stamp | None:
    day = _midnight(int(match[1]), int(match[2]), int(match[3]))
    return _stamp(match, "compact", day, _of_day(*match.groups()[3:7]), _zone(match[8]))


def _read_epoch(match: re.Match[str], year: int | None) -> Stamp | None:
    seconds = epoch_seconds(float(match[1]))
    return None if seconds is None else Stamp(seconds, match.start(), match.end(), "epoch", True, True, True)


def _read_time(match: re.Match[str], year: int | None) -> Stamp | None:
    clock = _of_day(*match.groups())
    return None if clock is None else Stamp(clock, match.start(), match.end(), "time", False, False, False)


def _read_glog(match: re.Match[str], year: int | None) -> Stamp | None:
    digits, hour, minute, second, fraction = match.groups()
    has_year = len(digits) == 8
    years = int(digits[:4]) if has_year else year or UNKNOWN_YEAR
    # The month is not padded: E227 is February 27.
    day = _midnight(years, int(digits[4:6] if has_year else digits[:-2]), int(digits[-2:]))
    return _stamp(match, "glog", day, _of_day(hour, minute, second, fraction), has_year=has_year)


def _read_early_absl(match: re.Match[str], year: int | None) -> Stamp | None:
    seconds = epoch_seconds(float(match[1]))
    return None if seconds is None else Stamp(seconds, match.start(), match.end(), "glog", True, True, True)


def _read_syslog(match: re.Match[str], year: int | None) -> Stamp | None:
    month, day, early, hour, minute, second, fraction, half, zone, late = match.groups()
    years = early or late
    midnight = _midnight(int(years) if years else year or UNKNOWN_YEAR, _MONTHS[month.lower()], int(day))
    clock = _half_day(_of_day(hour, minute, second, fraction), half)
    kind = "ctime" if late else "syslog"
    return _stamp(match, kind, midnight, clock, _zone(zone) if zone in _ZONES else None, years is not None)


def _read_uptime(match: re.Match[str], year: int | None) -> Stamp | None:
    return Stamp(float(match[1]), match.start(), match.end(), "monotonic", False, False, False)


def _read_kmsg(match: re.Match[str], year: int | None) -> Stamp | None:
    return Stamp(int(match[1]) / 1e6, match.start(), match.end(), "monotonic", False, False, False)


_Reading = tuple[re.Pattern[str], Callable[[re.Match[str], int | None], Stamp | None]]
_FROM_DIGIT: tuple[_Reading, ...] = (
    (_ISO, _read_iso),
    (_TIME, _read_time),
    (_US, _read_us),
    (_NUMERIC_DAY, _read_numeric_day),
    (_POINTED, _read_pointed),
    (_DAY_MONTH, _read_day_month),
    (_YEAR_MONTH, _read_year_month),
    (_COMPACT, _read_compact),
    (_EPOCH, _read_epoch),
    (_KMSG, _read_kmsg),
)
_FROM_GLOG: tuple[_Reading, ...] = ((_GLOG, _read_glog), (_EARLY_ABSL, _read_early_absl))
_FROM_LETTER: tuple[_Reading, ...] = (
    (_SYSLOG, _read_syslog), (_DAY_MONTH, _read_day_month), (_MONTH_DAY, _read_month_day),
    (_OF_WEEKDAY, _read_iso),
)  # fmt: skip


def time_at(text: str, position: int, *, year: int | None = None) -> Stamp | None:
    """The time that begins at `position`, behind one opening bracket at most.

    The bracket does not belong to the stamp, save for the kernel's `[12345.678901]`.
    """
    size = len(text)
    if position >= size:
        return None
    first = text[position]
    if first == "[":
        match = _UPTIME.match(text, position)
        if match:
            return _read_uptime(match, year)
    if first in "[(<":
        position += 1
        while position < size and text[position] == " ":
            position += 1
        if position >= size:
            return None
        first = text[position]
    if "0" <= first <= "9":
        readings = _FROM_DIGIT
    elif first in "IWEFDVC" and position + 1 < size and text[position + 1].isdigit():
        readings = _FROM_GLOG
    elif first in "JFMASONDTW":
        readings = _FROM_LETTER
    else:
        return None
    for pattern, read in readings:
        match = pattern.match(text, position)
        if match:
            stamp = read(match, year)
            if stamp is not None:
                return stamp
    return None


def find_time(text: str, *, year: int | None = None) -> Stamp | None:
    """The time of a line: the one at its start, else the first full date inside it.

    A time of day alone counts only at the start, since inside a line it may be a duration.
    """
    position = 0
    size = len(text)
    while position < size and text[position] in " \t":
        position += 1
    stamp = time_at(text, position, year=year)
    return stamp if stamp is not None else inner_time(text, position, year=year)


def inner_time(text: str, position: int = 0, *, year: int | None = None) -> Stamp | None:
    """The first full date with a time at or after `position`."""
    cores = 0
    core = _CORE.search(text, position)
    while core is not None and cores < 6:
        match = _DATED.search(text, max(position, core.start() - 34), core.end())
        while match:
            stamp = time_at(text, match.start(), year=year)
            if stamp is not None and stamp.has_date:
                return stamp
            match = _DATED.search(text, match.end(), core.end())
        cores += 1
        core = _CORE.search(text, core.end())
    return None


def epoch_seconds(number: float) -> float | None:
    """Seconds since 1970 of a count of s, ms, µs or ns between 2001 and 2100; None for other numbers."""
    for unit in (1.0, 1e3, 1e6, 1e9):
        if 978_307_200.0 <= number / unit < 4_102_444_800.0:
            return number / unit
    return None
