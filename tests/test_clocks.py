"""Clocks of different files against each other, and the kernel's against the calendar."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logtriage.intake.clocks import Sighting, boot_anchor, estimate_offsets

START = 1_795_968_000.0


def both(offset: float, moments: list[float], *, lag: float = 0.0) -> list[Sighting]:
    """The same events seen by `a` and, by a clock that is `offset` behind and `lag` later, by `b`."""
    return [
        Sighting(file, START + moment + shift, f"event {index}")
        for index, moment in enumerate(moments)
        for file, shift in (("a", 0.0), ("b", lag - offset))
    ]


@pytest.mark.parametrize("hours", [-8, -5.5, 1, 5.75, 9])
def test_one_common_event_shows_a_time_zone(hours: float) -> None:
    (offset,) = estimate_offsets(both(hours * 3600, [10.0], lag=20.0), "a")
    assert (offset.file, offset.seconds) == ("b", hours * 3600)
    assert offset.reason


def test_a_single_late_event_is_no_skew() -> None:
    assert estimate_offsets(both(0.0, [10.0], lag=20.0), "a") == []
    assert estimate_offsets(both(30.0, [10.0, 20.0]), "a") == []


def test_three_agreeing_events_show_a_skew() -> None:
    (offset,) = estimate_offsets(both(7.5, [1.0, 50.0, 90.0]), "a")
    assert offset.seconds == pytest.approx(7.5)
    (offset,) = estimate_offsets(both(3600 + 7.5, [1.0, 50.0, 90.0]), "a")
    assert offset.seconds == pytest.approx(3607.5)


def test_events_that_do_not_agree_show_nothing() -> None:
    scattered = [Sighting("a", START, key) for key in "xyz"]
    scattered += [
        Sighting("b", START + late, key) for key, late in zip("xyz", (200.0, 400.0, 1300.0), strict=True)
    ]
    assert estimate_offsets(scattered, "a") == []


def test_a_file_is_reached_through_another_one() -> None:
    sightings = both(3600.0, [1.0, 2.0])
    sightings += [Sighting("b", START, "other"), Sighting("c", START + 3600, "other")]
    sightings += [Sighting("alone", START, "nobody's")]
    offsets = {offset.file: offset.seconds for offset in estimate_offsets(sightings, "a")}
    assert offsets == {"b": 3600.0}  # c differs from b as b does from a, the other way round
    sightings += [Sighting("d", START + 1800, "third"), Sighting("b", START, "third")]
    offsets = {offset.file: offset.seconds for offset in estimate_offsets(sightings, "a")}
    assert offsets == {"b": 3600.0, "d": 1800.0}
    assert estimate_offsets(sightings, "unknown") == []


@given(
    st.integers(-12 * 4, 12 * 4).filter(bool),
    st.lists(st.floats(0, 5000), min_size=1, max_size=6, unique=True),
    st.randoms(),
)
@settings(deadline=None)
def test_the_order_of_sightings_does_not_matter(quarters: int, moments: list[float], random: object) -> None:
    sightings = both(quarters * 900.0, moments)
    shuffled = list(sightings)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert estimate_offsets(shuffled, "a") == estimate_offsets(sightings, "a")
    (offset,) = estimate_offsets(sightings, "a")
    assert offset.seconds == pytest.approx(quarters * 900.0, abs=1e-3)


def test_boot_is_found_from_syslog_and_monotonic_time() -> None:
    lines = [f"Nov 29 16:00:{second:02} gpu-a kernel: [{500 + second}.250000] usb" for second in range(9)]
    anchor = boot_anchor(lines, year=2026)
    assert anchor == pytest.approx(START - 500.25, abs=1.0)
    assert boot_anchor(lines) is None  # no year, no date


def test_an_audit_record_is_exact_and_the_last_boot_counts() -> None:
    lines = [
        "[  900.000000] audit: type=1400 audit(1600000900.000:5): old boot",
        "[    3.500000] audit: type=1400 audit(1700000003.500:5): new boot",
        "Nov 29 16:00:00 gpu-a kernel: [    9.000000] usb",
    ]
    assert boot_anchor(lines, year=2026) == pytest.approx(1_700_000_000.0)
    assert boot_anchor(["[ 1.000000] usb", "no clock"], year=2026) is None
