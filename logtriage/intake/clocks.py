"""Clocks of different files against each other.

Two clocks differ by a zone (a whole number of quarter hours) and by a small skew. Both are estimated from
events that both files must have seen: a connection closed on one side and lost on the other, the end of
one collective, a signal sent and received. Each pair of sightings with the same key gives one difference
reference − file. Files are joined directly where they share keys with the reference, else through the
file that is joined already and shares most keys.

* Zone: differences are rounded to quarter hours; a rounding other than zero is believed from one pair
  on if what remains is below `ZONE_REST` seconds, since few clocks drift so far and zones differ by just
  such amounts. It must hold for more than half of the pairs.
* Skew: the median of what remains is believed only from `SKEW_PAIRS` pairs that agree (their median
  absolute deviation below a quarter of the skew, and below two seconds); a single pair's remainder is
  the way of a message, not of a clock.

A kernel's clock counts from boot; `boot_anchor` finds the moment of boot from lines that show both.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from logtriage.intake.times import find_time
from logtriage.model import ClockOffset
from logtriage.regex import regex

QUARTER = 900.0
ZONE_REST = 90.0
SKEW_PAIRS = 3
_LARGEST_ZONE = 14 * 3600.0 * 2
_LEAST_SKEW = 0.5

_UPTIME = regex(r"\[ *(\d{1,9}\.\d{4,9})\]")
_AUDIT = regex(r"\baudit\((\d{9,10}\.\d{3}):\d+\)")
_MOST_ANCHORS = 2000


@dataclass(frozen=True, slots=True)
class Sighting:
    """An event that a file saw at `time` (seconds, by the file's own clock); equal `key`, same event."""

    file: str
    time: float
    key: str


def estimate_offsets(sightings: Sequence[Sighting], reference: str) -> list[ClockOffset]:
    """What to add to each file's clock to reach the reference's; files that nothing tells of are absent."""
    times: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for sighting in sightings:
        times[sighting.file][sighting.key].append(sighting.time)
    if reference not in times:
        return []
    offsets = {reference: 0.0}
    found: list[ClockOffset] = []
    # Of each file that is left: most keys that it shares with a joined file, and which that is.
    nearest = {file: (0, "") for file in times if file != reference}
    joined = reference
    while nearest:
        for file, best in nearest.items():
            nearest[file] = max(best, (len(times[file].keys() & times[joined].keys()), joined))
        joined = max(nearest, key=lambda file: (nearest[file][0], file))
        shared, base = nearest.pop(joined)
        if not shared:
            break
        step, reason = _offset(_differences(times[joined], times[base]))
        offsets[joined] = offsets[base] + step
        if reason and offsets[joined]:
            through = "" if base == reference else f", through {base}"
            found.append(ClockOffset(joined, offsets[joined], reason + through))
        elif offsets[joined]:
            found.append(ClockOffset(joined, offsets[joined], f"the clock of {base}"))
    return sorted(found, key=lambda offset: offset.file)


def _differences(own: dict[str, list[float]], base: dict[str, list[float]]) -> list[float]:
    """One difference an event, first sighting against first sighting."""
    return sorted(min(base[key]) - min(own[key]) for key in own.keys() & base.keys())


def _offset(differences: Sequence[float]) -> tuple[float, str]:
    """The offset that the differences agree on, and why; 0 and no reason where they tell of none."""
    zones = [round(difference / QUARTER) * QUARTER for difference in differences]
    zone = median(zones)
    agreeing = [
        difference - zone
        for difference in differences
        if abs(difference - zone) < ZONE_REST and abs(zone) <= _LARGEST_ZONE
    ]
    if len(agreeing) * 2 <= len(differences):
        zone, agreeing = 0.0, list(differences)
    skew, reasons = 0.0, []
    if zone:
        reasons.append(f"{_hours(zone)} apart by {_count(len(agreeing))}, as time zones are")
    if len(agreeing) >= SKEW_PAIRS:
        middle = median(agreeing)
        spread = median(abs(rest - middle) for rest in agreeing)
        if abs(middle) >= _LEAST_SKEW and spread < min(2.0, abs(middle) / 4):
            skew = middle
            side = "behind" if skew > 0 else "ahead"
            reasons.append(f"clock {abs(skew):.1f} s {side} by {_count(len(agreeing))}")
    return zone + skew, "; ".join(reasons)


def _hours(seconds: float) -> str:
    hours, minutes = divmod(int(abs(seconds)) // 60, 60)
    return f"{hours} h" if not minutes else f"{hours} h {minutes} min"


def _count(pairs: int) -> str:
    return "one common event" if pairs == 1 else f"{pairs} common events"


def boot_anchor(lines: Iterable[str], *, year: int | None = None) -> float | None:
    """The moment of boot in seconds since 1970, from kernel lines that show the time since boot and another.

    The other is a syslog or journal time before the brackets (rounded to seconds there, so the median over
    the lines is taken) or the `audit(1700000000.123:45)` of an audit record, which is exact and wins. The
    last boot in the file counts, since a smaller time since boot than before begins a new one. None where
    no line shows both.
    """
    exact: list[float] = []
    rounded: list[float] = []
    before = -1.0
    for line in lines:
        match = _UPTIME.search(line, 0, 200)
        if match is None:
            continue
        uptime = float(match[1])
        if uptime < before - 60:
            exact.clear()
            rounded.clear()
        before = uptime
        audit = _AUDIT.search(line, match.end(), match.end() + 200)
        if audit and len(exact) < _MOST_ANCHORS:
            exact.append(float(audit[1]) - uptime)
        elif match.start() > 8 and len(rounded) < _MOST_ANCHORS:
            stamp = find_time(line[: match.start()], year=year)
            if stamp is not None and stamp.has_date and (stamp.has_year or year is not None):
                rounded.append(stamp.seconds - uptime)
    chosen = exact or rounded
    return median(chosen) if chosen else None
