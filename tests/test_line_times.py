"""When a line was written, where it does not say so itself or says it in its own way."""

from __future__ import annotations

from pathlib import Path

from logtriage.intake.layout import learn_layout
from logtriage.intake.lines import LineReader
from logtriage.model import Line, Source, SourceRole
from logtriage.pipeline import triage


def read(text: str, role: SourceRole = SourceRole.MERGED) -> list[Line]:
    data = text.encode()
    source = Source("a.log", len(data), role)
    return list(LineReader(source, learn_layout(source, [data])).read_block(data, 1, 0))


def both_ways(bare: str) -> list[float]:
    """The seconds since the first line of two loggers that take turns, of which one adds its zone."""
    turns = "".join(
        f"2026-03-02 {bare}:00:{at:02d},100 feed ready\n2026-03-02T14:00:{at:02d}.500-07:00 INFO step {at}\n"
        for at in range(10)
    )
    times = [line.time or 0.0 for line in read(turns, SourceRole.WORKER)]
    return [round(time - times[0], 1) for time in times[:4]]


def test_a_clock_told_with_and_without_its_zone_is_one_clock() -> None:
    assert both_ways("14") == [0.0, 0.4, 1.0, 1.4]


def test_a_bare_clock_of_another_zone_is_another() -> None:
    assert both_ways("21") == [0.0, 0.4, 1.0, 1.4]


def in_a_wrapper(began: str, ended: str, zone: str = "PST") -> float:
    """The seconds from the last step to the end that a script notes with `date`, in a zone of its own."""
    rows = "".join(f"2026-01-31 08:{at:02d}:00,000 INFO step {at}\n" for at in range(1, 20))
    first, last = (f"Sat Jan 31 {told} {zone} 2026\n" for told in (began, ended))
    lines = read(f"== job began, {first}{rows}== job left with 1, {last}")
    return (lines[-1].time or 0.0) - (lines[-2].time or 0.0)


def test_the_clock_of_a_wrapper_that_names_its_zone_is_that_of_the_program() -> None:
    assert in_a_wrapper("08:00:30", "08:19:40") == 40.0
    assert in_a_wrapper("00:00:30", "00:19:40") == 40.0  # the program's own is UTC
    # hours without a word are no other zone
    assert in_a_wrapper("08:00:30", "16:19:40") == 8 * 3600 + 40.0
    assert in_a_wrapper("08:00:30", "16:19:40", zone="CEST") == 8 * 3600 + 40.0


def test_an_undated_traceback_of_a_rank_that_wrote_long_ago_is_as_late_as_the_lines_around() -> None:
    others = "".join(f"[rank{rank}] 2026-03-02 14:2{rank}:00 on\n" for rank in range(3))
    lines = read(f"[rank3] 2026-03-02 14:00:00 up\n{others}[rank3] Traceback (most recent call last):\n")
    assert lines[-1].time == lines[-2].time


TIMED = "".join(f"2026-03-02 14:00:0{at} begin\n" for at in range(4))


def test_a_word_before_the_time_of_a_line_dates_the_bare_ones_below() -> None:
    lines = read(f"{TIMED}(hc) 2026-03-02T14:05:00 n1 fine\n(hc) 2026-03-02T14:06:00 n1 fine\nended\n")
    assert lines[-1].time == lines[-2].time


def test_a_time_that_one_line_mentions_dates_no_other() -> None:
    lines = read(f"{TIMED}deadline 2026-03-03T14:05:00\nended\n")
    assert lines[-1].time == lines[-3].time


def test_behind_a_gap_lines_without_a_time_are_not_as_old_as_those_before_it() -> None:
    early, late = "2026-03-02 14:00:00 begin\n", "loss 2.1\n2026-03-02 15:00:00 on\n"
    source = Source("a.log", 1 << 20, SourceRole.WORKER)
    reader = LineReader(source, learn_layout(source, [(early + late).encode()]))
    first = reader.read_block(early.encode(), 1, 0)
    (bare, dated) = reader.read_block(late.encode(), 900, 90_000)
    assert bare.time == dated.time != first[0].time
    assert reader.read_block(b"loss 2.0\n", 902, 90_100)[0].time == dated.time


def zone_told(tmp_path: Path, *lines: str) -> str | None:
    """The zone of the verdict's times on a job that wrote these lines."""
    (tmp_path / "run.log").write_text("\n".join(lines) + "\n")
    return triage([tmp_path], offline=True).job.zone


NAIVE = "2026-04-02 11:00:{at:02d} INFO step {at} loss 2.1"
ZONED = "2026-04-02T11:00:{at:02d}+02:00 INFO step {at} loss 2.1"


def test_utc_is_said_only_of_times_that_were_given_with_their_zone(tmp_path: Path) -> None:
    assert zone_told(tmp_path, *(ZONED.format(at=at) for at in range(20))) == "UTC"
    assert zone_told(tmp_path, *(NAIVE.format(at=at) for at in range(20))) is None
    mixed = [form.format(at=at) for at in range(20) for form in (NAIVE, ZONED)]
    assert zone_told(tmp_path, *mixed) is None


def test_seconds_since_1970_name_their_zone(tmp_path: Path) -> None:
    assert (
        zone_told(tmp_path, *(f'{{"ts": {1775127600 + at}.5, "msg": "step {at}"}}' for at in range(20)))
        == "UTC"
    )
