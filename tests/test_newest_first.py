"""Logs as consoles export them, with the newest lines on top, are read from the oldest one on."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from logtriage.apps.cli import app
from logtriage.intake.folder import discover
from logtriage.intake.newest_first import oldest_first, oldest_first_order, stands_newest_first
from logtriage.intake.stored_lines import stored_lines
from logtriage.intake.streams import stream
from logtriage.pipeline import triage

STEPS = [
    f"2026-03-02T08:{minute:02d}:00Z INFO step {minute * 10}/5000 loss 2.{90 - minute}"
    for minute in range(40)
]
RAISED = [
    "2026-03-02T08:40:07Z ERROR training stopped",
    "Traceback (most recent call last):",
    '  File "/srv/train/loop.py", line 88, in <module>',
    "    run(config)",
    '  File "/srv/train/loop.py", line 41, in run',
    "    shard = table[name]",
    "KeyError: 'shard-0031'",
]
SHUTDOWN = [f"2026-03-02T08:4{minute}:30Z INFO exporter flushed, goodbye {minute}" for minute in range(1, 4)]


def by_line(lines: list[str]) -> str:
    """Each line as a record of its own."""
    return "\n".join(reversed(lines)) + "\n"


def by_record(lines: list[str]) -> str:
    """Undated lines stay below the dated one that they belong to."""
    records: list[list[str]] = []
    for line in lines:
        if line.startswith("2026-") or not records:
            records.append([])
        records[-1].append(line)
    return "\n".join(line for record in reversed(records) for line in record) + "\n"


@pytest.mark.parametrize("turned", [by_line, by_record])
@pytest.mark.parametrize("name", ["export.log", "export.log.gz"])
def test_the_error_is_found_where_it_began_and_cited_where_it_stands(
    tmp_path: Path, turned: object, name: str
) -> None:
    text = turned([*STEPS, *RAISED, *SHUTDOWN])  # type: ignore[operator]
    data = text.encode()
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    verdict = triage(tmp_path, offline=True)
    assert verdict.verdict.failure_type == "code.key"
    assert verdict.job.last_step == 390
    for line in verdict.verdict.evidence:
        assert text.split("\n")[line.line - 1] == line.text
        assert data[line.offset : line.offset + len(line.text)].decode() == line.text


def test_a_job_that_ended_well_ends_with_its_newest_line(tmp_path: Path) -> None:
    end = "2026-03-02T08:55:00Z INFO Training completed. Do not forget to share your model"
    (tmp_path / "loki.txt").write_text(by_line([*STEPS, end]))
    assert triage(tmp_path, offline=True).verdict.failure_type == "none.completed"


@pytest.mark.parametrize("form", ["a record a line", "a list over many lines"])
def test_records_of_a_cloud_are_turned_round(tmp_path: Path, form: str) -> None:
    told = [*STEPS, *(line if line.startswith("2026") else f"{RAISED[0][:20]} {line}" for line in RAISED)]
    records = [
        {"insertId": f"x{at}", "textPayload": line[21:] + " " * 150 * (at < 30), "timestamp": line[:20]}
        for at, line in enumerate(told)
    ]
    records.reverse()
    by_lines = "".join(json.dumps(each) + "\n" for each in records)
    text = by_lines if form == "a record a line" else json.dumps(records, indent=2) + "\n"
    (tmp_path / "entries.json").write_text(text)
    (source,) = discover(tmp_path).sources
    assert source.is_newest_first
    verdict = triage(tmp_path, offline=True)
    assert verdict.job.last_step == 390 and verdict.verdict.failure_type == "code.key"
    for cited in verdict.verdict.evidence:
        assert text.split("\n")[cited.line - 1] == cited.text
    read = b"".join(stream(tmp_path, source)).decode()
    assert sorted(read.split("\n")) == sorted(text.split("\n"))
    assert form == "a record a line" or (read.startswith("[\n") and read.endswith("]\n"))


def test_a_line_that_a_person_names_is_that_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOGTRIAGE_DATA_DIR", str(tmp_path / "data"))
    logs = tmp_path / "logs"
    logs.mkdir()
    text = by_line([*STEPS, *RAISED, *SHUTDOWN])
    (logs / "export.log").write_text(text)
    verdict = triage(logs, offline=True)
    number = text.split("\n").index("KeyError: 'shard-0031'") + 1
    assert verdict.verdict.evidence[0].line == number
    told = CliRunner().invoke(app, ["triage", str(logs), "--offline", "--json", str(tmp_path / "v.json")])
    assert told.exit_code == 0
    confirmed = CliRunner().invoke(
        app,
        ["confirm", verdict.id, "--evidence", f"export.log:{number}", "--mitigation", "a shard was renamed"],
    )
    assert confirmed.exit_code == 0, confirmed.output


@pytest.mark.parametrize(
    "lines",
    [
        STEPS,
        [line[:20] + " " + line[20:] for line in STEPS[:4]],
        ["no time at all"] * 30,
        # ranks that are a little late, and one report of the past
        [
            f"2026-03-02T08:00:{second:02d}Z rank {second % 3}"
            for second in (1, 3, 2, 4, 6, 5, 8, 7, 9, 11, 10)
        ],
        [*STEPS, *reversed(STEPS[30:35])],
    ],
)
def test_ordinary_logs_are_read_as_they_stand(lines: list[str]) -> None:
    data = "\n".join(lines).encode()
    assert not stands_newest_first(data) and not stands_newest_first(data, data[-400:])


def test_a_file_of_few_lines_is_read_as_the_others_of_its_export(tmp_path: Path) -> None:
    few = ["2026-03-02T08:00:01Z joined", "2026-03-02T08:44:01Z link down"]
    (tmp_path / "a.log").write_text(by_line(few))
    assert not discover(tmp_path).sources[0].is_newest_first
    (tmp_path / "b.log").write_text(by_line(STEPS))
    assert all(source.is_newest_first for source in discover(tmp_path).sources)
    (tmp_path / "c.log").write_text("\n".join(few))
    assert [source.is_newest_first for source in discover(tmp_path).sources] == [True, True, False]


def test_of_a_broken_export_what_can_be_read_is_turned_round(tmp_path: Path) -> None:
    text = by_line([*STEPS, *RAISED, *SHUTDOWN])
    packed = gzip.compress(text.encode())
    (tmp_path / "export.log.gz").write_bytes(packed[: len(packed) * 2 // 3])
    verdict = triage(tmp_path, offline=True)
    assert verdict.unreadable
    for cited in verdict.verdict.evidence:
        assert text.split("\n")[cited.line - 1].startswith(cited.text[:40])


@given(st.binary(max_size=600), st.binary(max_size=200))
@settings(max_examples=200, deadline=None)
def test_no_bytes_break_the_look_at_their_order(head: bytes, tail: bytes) -> None:
    assert stands_newest_first(head, tail) in (True, False, None)
    stepping_back = b"".join(b"1%d:00:00 %b\n" % (9 - at, head[:20]) for at in range(8))
    assert stands_newest_first(stepping_back, tail) in (True, False, None)
    assert stands_newest_first(b"{" + head, tail) in (True, False, None)


LINES = st.lists(
    st.sampled_from(
        ["2026-03-02T08:00:01Z a", "b", "", "  c", "Traceback (most recent call last):", '  File "x"']
    )
)


@given(LINES, st.booleans())
@settings(max_examples=300, deadline=None)
def test_turned_round_no_line_is_lost_and_none_is_made(lines: list[str], ended: bool) -> None:
    data = "\n".join(lines).encode() + b"\n" * ended
    turned = b"".join(oldest_first([data[:7], data[7:]]))
    assert len(turned) == len(data)
    order = oldest_first_order(data)
    stored = data.removesuffix(b"\n").split(b"\n")
    assert sorted(order) == list(range(len(stored)))
    assert turned == b"\n".join(stored[at] for at in order) + b"\n" * data.endswith(b"\n")


def test_a_stream_and_the_places_in_its_file_agree(tmp_path: Path) -> None:
    text = by_record([*STEPS, *RAISED])
    (tmp_path / "x.log").write_text("time,line\n" + text)
    (source,) = discover(tmp_path).sources
    read = b"".join(stream(tmp_path, source)).split(b"\n")
    assert read[0] == b"time,line" and read[1].endswith(b"step 0/5000 loss 2.90")
    stored = (tmp_path / "x.log").read_bytes()
    kept = stored_lines(tmp_path, source)
    assert kept is not None
    for at, line in enumerate(read[:-1], 1):
        number, offset = kept.place(at) or (0, 0)
        assert stored.split(b"\n")[number - 1] == line
        assert kept.text(at) == line.decode() and kept.line(number) == at
        assert stored[offset : offset + len(line)] == line
