"""Logs as consoles export them beside a time of their own are read like the logs themselves."""

from __future__ import annotations

import csv
import io
import json
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logtriage.intake.exports import exported
from logtriage.intake.layout import Layout
from logtriage.intake.lines import LineReader, segments
from logtriage.mining import scanner
from logtriage.mining.survey import survey
from logtriage.model import Source, SourceRole
from logtriage.pipeline import triage
from logtriage.rulebank.bank import load_bank
from logtriage.rulebank.database import databases, is_loud
from logtriage.rulebank.matcher import Matcher

LOG = [
    *(f"step {step}/4000 | loss 2.{900 - step} | 812 tokens/s" for step in range(0, 600, 10)),
    "[rank3]: Traceback (most recent call last):",
    '[rank3]:   File "/opt/run/main.py", line 12, in <module>',
    '[rank3]:     table["shard"]',
    "[rank3]: KeyError: 'shard', which \"nobody\" has",
    "exit code 1",
]


def rows(*columns: str, quoting: int = csv.QUOTE_MINIMAL, form: str = "%Y-%m-%d %H:%M:%S.000") -> str:
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n", quoting=quoting)  # type: ignore[arg-type]
    writer.writerow(["time", *columns, "message"])
    for at, line in enumerate(LOG):
        time = (datetime(2026, 4, 1, 9) + timedelta(seconds=at)).strftime(form)
        writer.writerow([time, *("gpu-7" for _ in columns), line])
    return written.getvalue()


def behind_tabs(stream: str = "") -> str:
    started = datetime(2026, 4, 1, 9)
    return "".join(f"{started + timedelta(seconds=at)}.000\t{stream}{line}\n" for at, line in enumerate(LOG))


FORMS = {
    "behind a tab": behind_tabs(),
    "behind the stream of a job": behind_tabs("sft-7/algo-2-1732079000\t"),
    "behind the stream of a container": behind_tabs("ecs/trainer/0f3a9c21\t"),
    "quoted where it must be": rows(),
    "quoted throughout": rows("host", "service", quoting=csv.QUOTE_ALL, form="%Y-%m-%dT%H:%M:%S.000Z"),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_log_beside_the_time_of_its_export_is_judged_like_the_log(tmp_path: Path, form: str) -> None:
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "x.log").write_text("\n".join(LOG))
    (tmp_path / "exported").mkdir()
    (tmp_path / "exported" / "x.csv").write_text(FORMS[form])
    plain, other = (triage(tmp_path / each, offline=True) for each in ("plain", "exported"))
    assert plain.verdict.failure_type == "code.key"
    assert other.verdict.failure_type == plain.verdict.failure_type
    assert other.verdict.culprits.ranks == plain.verdict.culprits.ranks == (3,)
    assert other.job.last_step == plain.job.last_step == 590
    stands = FORMS[form].split("\n")
    assert all(stands[each.line - 1] == each.text for each in other.verdict.evidence)
    assert other.verdict.evidence[0].time is not None


def test_a_rule_for_whole_lines_sees_the_line_and_not_the_row() -> None:
    row = '"2026-04-01T09:00:01.000Z","gpu-7","train","exit code 1"'
    assert segments(row) == ["exit code 1"]
    reader = LineReader(Source("x", 0, SourceRole.MERGED), Layout())
    line = reader.read(b'2026-04-01 09:00:01.000\t  File "x.py", line 3', 1, 0)
    assert line.message == '  File "x.py", line 3' and line.time is not None


@pytest.mark.parametrize(
    "line",
    [
        "2026-04-01 09:00:01,123 INFO step 1",
        "2026-04-01 09:00:01 a,b,c",
        "2026-04-01 09:00:01.123\tcn-7:3\ttrain.loop\tINFO\tstep 1",
        '{"time": "2026-04-01 09:00:01", "message": "x"}',
        "[2026-04-01 09:00:01] step",
        "",
    ],
)
def test_other_lines_are_no_exports(line: str) -> None:
    assert exported(line) is None


@given(st.text(st.characters(codec="utf-8", exclude_characters="\n\r\x00/"), max_size=60))
def test_what_was_exported_comes_back(line: str) -> None:
    assert exported(f"2026-04-01T09:00:01Z\t{line}") in (line, None)
    written = io.StringIO()
    csv.writer(written, lineterminator="", quoting=csv.QUOTE_ALL).writerow(["2026-04-01T09:00:01Z", line])
    assert exported(written.getvalue()) == line


@pytest.mark.parametrize("form", FORMS)
def test_the_pass_finds_the_same_by_patterns_and_by_keywords(
    tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "x.csv").write_text(FORMS[form] * 3)
    source = Source("x.csv", len(FORMS[form]) * 3, SourceRole.MERGED)
    bank = load_bank()
    by_keywords = survey(tmp_path, [source], Matcher(bank), workers=1).summaries[0]
    scan = scanner.Scanner(Matcher(bank), databases(bank))
    by_patterns = scan.scan_piece((FORMS[form] * 3).encode(), source.role)
    loud = {
        key: places.count
        for key, places in by_keywords.hits.items()
        if is_loud(next(rule for rule in bank.rules if rule.id == key[0]))
    }
    assert loud == {key: places.count for key, places in by_patterns.hits.items()}
    assert any(rule.startswith("python.") for rule, _ in loud)


@pytest.mark.parametrize(
    ("record", "host"),
    [
        (
            {"kubernetes": {"pod": {"name": "train-3"}, "node": {"name": "gpu-7"}}, "message": "step 1"},
            "gpu-7",
        ),
        ({"kubernetes": {"pod": {"name": "train-3"}}, "message": "step 1"}, "train-3"),
        ({"_source": {"kubernetes": {"pod": {"name": "train-3"}}, "message": "step 1"}}, "train-3"),
        ({"stream": {"pod": "train-3", "instance": "gpu-7"}, "line": "step 1"}, "gpu-7"),
        ({"resource": {"k8s.pod.name": "train-3", "host.name": "gpu-7"}, "body": "step 1"}, "gpu-7"),
        ({"host": {"name": "gpu-7"}, "log": {"level": "error"}, "message": "step 1"}, "gpu-7"),
        ({"log": "step 1", "stream": "stdout"}, None),
    ],
)
def test_records_of_consoles_tell_who_wrote_them(record: dict[str, object], host: str | None) -> None:
    reader = LineReader(Source("x.jsonl", 0, SourceRole.MERGED), Layout())
    line = reader.read(json.dumps(record).encode(), 1, 0)
    assert (line.host, line.message) == (host, "step 1")
    assert line.level == ("error" if "host" in record else None)


def test_of_rows_of_several_pods_each_tells_its_own(tmp_path: Path) -> None:
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(["@timestamp", "kubernetes.pod.name", "level", "message"])
    started = datetime(2026, 4, 1, 9)
    for at in range(40):
        time = (started + timedelta(seconds=at)).strftime("%Y-%m-%dT%H:%M:%S.000Z")
        writer.writerow([time, f"mt-{at % 4}", "info", f"step {at // 4}, loss 2.{900 - at}"])
    for at, line in enumerate(LOG[-5:-1], 40):
        time = (started + timedelta(seconds=at)).strftime("%Y-%m-%dT%H:%M:%S.000Z")
        writer.writerow([time, "mt-2", "error", line.replace("[rank3]: ", "")])
    (tmp_path / "logs-export.csv").write_text(written.getvalue())
    verdict = triage(tmp_path, offline=True)
    assert verdict.verdict.failure_type == "code.key"
    assert verdict.verdict.culprits.hosts == ("mt-2",)


@pytest.mark.parametrize(("host", "rank"), [("algo-1", 0), ("algo-4", 27)])
def test_behind_the_stream_of_a_line_its_writer_stands(host: str, rank: int) -> None:
    told = (
        f"2026-04-01T09:00:01.123Z\tsft-7/{host}-1732079000\t[1,mpirank:{rank},{host}]<stderr>:KeyError: 'x'"
    )
    line = LineReader(Source("x", 0, SourceRole.MERGED), Layout()).read(told.encode(), 1, 0)
    assert (line.host, line.rank, line.message) == (host, rank, "KeyError: 'x'")
