"""The pass over a job finds the same however its files are cut, and in any number of processes."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logtriage import triage
from logtriage.intake.folder import discover
from logtriage.intake.lines import plain, segments
from logtriage.intake.streams import blocks_between
from logtriage.mining import joined, parts, survey
from logtriage.mining.calls import Calls
from logtriage.mining.catalogue import catalogue
from logtriage.mining.kinds import lines_of
from logtriage.mining.scanner import Scanner
from logtriage.mining.summary import Summary
from logtriage.model import Source, SourceRole
from logtriage.rulebank.bank import load_bank
from logtriage.rulebank.blur import blur
from logtriage.rulebank.database import Databases, databases, is_loud
from logtriage.rulebank.matcher import Matcher
from logtriage.rulebank.wider import wider

BANK = load_bank()
MATCHER = Matcher(BANK)
EXAMPLES = [example.line for rule in BANK.rules for example in rule.examples]


@pytest.fixture(scope="module")
def compiled() -> Databases:
    pytest.importorskip("hyperscan")
    found = databases(BANK)
    assert found is not None
    return found


def a_job(folder: Path) -> Path:
    """Two ranks, one of them compressed; step lines, some JSON, and one cause in the middle of each."""
    folder.mkdir()
    for rank in range(2):
        lines = []
        for step in range(3_000):
            lines.append(
                f"2026-01-02 03:{step // 60 % 60:02}:{step % 60:02} step {step}/9000 loss 2.{step % 97}"
            )
            if step % 10 == 0:
                lines.append(f'{{"level": "info", "rank": {rank}, "message": "evaluated {step}"}}')
            if step == 1_500:
                lines.append(f"NVRM: Xid (PCI:0000:{rank:02}:00): 79, pid=7, GPU has fallen off the bus.")
        data = ("\n".join(lines) + "\n").encode()
        path = folder / f"rank_{rank}.log"
        if rank:
            Path(f"{path}.gz").write_bytes(gzip.compress(data))
        else:
            path.write_bytes(data)
    return folder


def passed(folder: Path, workers: int) -> Sequence[Summary]:
    found = discover(folder)
    return survey.survey(found.root, found.sources, MATCHER, workers=workers).summaries


@pytest.mark.parametrize(
    ("block", "part", "workers"), [(1_000, 1 << 30, 1), (9_000, 20_000, 2), (50_000, 7_000, 3)]
)
def test_any_cutting_in_any_number_of_processes_finds_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int, part: int, workers: int
) -> None:
    folder = a_job(tmp_path / "job")
    whole = passed(folder, 1)
    sources = discover(folder).sources
    monkeypatch.setattr(parts, "BLOCK_BYTES", block)
    monkeypatch.setattr(parts, "PART_BYTES", part)
    monkeypatch.setattr(survey, "PARALLEL_BYTES", 0)
    cut = passed(folder, workers)
    assert cut == whole
    assert [list(each.keys) for each in cut] == [list(each.keys) for each in whole]
    assert catalogue(sources, cut).rows == catalogue(sources, whole).rows
    (xid,) = (each for (rule, _), each in whole[0].hits.items() if rule.startswith("nvidia.xid"))
    assert (xid.count, xid.first[0][0]) == (1, 1_653)


@given(st.lists(st.binary(max_size=9), max_size=30), st.integers(1, 40), st.integers(1, 12))
@settings(max_examples=120, deadline=None)
def test_the_parts_of_a_file_are_its_lines_each_once(lines: list[bytes], step: int, size: int) -> None:
    data = b"\n".join(lines)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "x.log").write_bytes(data)
        source = Source("x.log", len(data), SourceRole.MERGED)
        pieces = [
            b"".join(block for block, _ in blocks_between(Path(folder), source, start, start + step, size))
            for start in range(0, source.size, step)
        ]
    assert b"".join(pieces) == data
    begins = 0
    for start, piece in zip(range(0, len(data), step), pieces, strict=True):
        if piece:
            assert start <= begins < start + step
        begins += len(piece)


FIELDS = st.sampled_from(
    [
        '{"level": "error", "message": "%s"}',
        '{"msg":"%s","n":00012}',
        '{"n": 7, "error": "%s"}',
        "%s",
        "[rank3]: %s",
        "\x1b[31m%s\x1b[0m",
        "ü %s",
        "bar\r%s",
    ]
)


@given(st.lists(st.tuples(FIELDS, st.sampled_from(EXAMPLES)), min_size=1, max_size=60), st.integers(1, 90))
@settings(max_examples=25, deadline=None)
def test_patterns_and_keywords_find_the_same(
    compiled: Databases, said: list[tuple[str, str]], times: int
) -> None:
    lines = [form % example for form, example in said for _ in range(times if form != "%s" else 1)]
    data = "\n".join(lines).encode("utf-8", "replace") + b"\n"
    found = [
        scanner.finished(scanner.scan_piece(data, SourceRole.MERGED), SourceRole.MERGED)
        for scanner in (Scanner(MATCHER), Scanner(MATCHER, compiled, in_bulk=True))
    ]
    assert found[0] == found[1]


def test_a_storm_is_looked_through_to_its_end(compiled: Databases) -> None:
    storm = [f"NVRM: Xid (PCI:0000:1b:00): {31 + number % 2 * 48}, pid=7, x" for number in range(60_000)]
    storm[50_000] = "RuntimeError: CUDA error: an illegal memory access was encountered"
    data = "\n".join(storm).encode() + b"\n"
    summary = Scanner(MATCHER, compiled, in_bulk=True).scan_piece(data, SourceRole.MERGED)
    assert any("illegal" in rule for rule, _ in summary.hits)
    assert (
        sum(each.count for (rule, _), each in summary.hits.items() if rule.startswith("nvidia.xid")) >= 59_999
    )


def test_the_wider_form_of_a_rule_matches_wherever_the_rule_does() -> None:
    import re2

    options = re2.Options()
    options.log_errors = False
    for rule in BANK.rules:
        form = re2.compile(wider(rule), options)
        for example in rule.examples:
            assert form.search(example.line), (rule.id, wider(rule))


def test_a_line_is_found_each_time_that_it_stands_there(compiled: Databases) -> None:
    calls = Calls(MATCHER, compiled)
    for rule in BANK.rules:
        for example in rule.examples if is_loud(rule) else ():
            line = example.line.encode() + b"\n"
            found = calls.loud(lines_of(line * 3))
            assert [len(indices) for indices in found.values()] == [3], rule.id


@pytest.mark.parametrize(
    "form", ['{"level": "error", "message": %s, "rank": 3}', '{"n": 7, "error":%s}', "bar\r%s"]
)
def test_no_form_hides_a_line_from_the_patterns(compiled: Databases, form: str) -> None:
    calls = Calls(MATCHER, compiled)
    for rule in BANK.rules:
        for example in rule.examples if is_loud(rule) else ():
            said = json.dumps(example.line) if "{" in form else example.line
            for line in (form % said).encode().split(b"\n"):
                hits = MATCHER.match_segments(segments(plain(line)))
                if any(is_loud(hit.rule) for hit in hits):
                    assert calls.loud(lines_of(line + b"\n")), (rule.id, line)


def test_a_blurred_pattern_matches_the_blur_of_each_line_that_the_rule_matches() -> None:
    import re2

    options = re2.Options()
    options.log_errors = False
    options.encoding = re2.Options.Encoding.LATIN1
    for rule in BANK.rules:
        form = re2.compile(wider(rule, on_blurs=True).encode(), options)
        for example in rule.examples:
            line = "".join(sign if sign.isascii() else "\x7f" for sign in example.line)
            assert form.search(blur(line.encode())), (rule.id, wider(rule, on_blurs=True))


def test_no_rule_calls_many_kinds_of_ordinary_lines(compiled: Databases) -> None:
    """A pattern that is wide on blurs is asked of each line of a job: one made it eight times slower."""
    folder = Path(__file__).parent.parent / "fixtures"
    texts = [path.read_bytes() for path in folder.glob("*/logs/**/*") if path.is_file()]
    kinds = {kind.blur for text in texts for kind in lines_of(text).kinds.values()}
    assert len(kinds) > 150
    for patterns in compiled.loud:
        called: Counter[int] = Counter()
        for each in kinds:
            named: set[int] = set()
            patterns.blurs.compiled.scan(
                each, match_event_handler=lambda rule, *_, named=named: named.add(rule)
            )
            called.update(named)
        assert max(called.values(), default=0) <= len(kinds) // 12, called.most_common(3)


def test_what_was_read_until_it_was_enough_gives_a_verdict_that_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = a_job(tmp_path / "job")
    monkeypatch.setattr(parts, "BLOCK_BYTES", 4_000)
    monkeypatch.setattr(joined, "REPORT_SECONDS", 0.0)
    enough = threading.Event()
    verdict = triage(folder, offline=True, enough=enough, progress=lambda file, done, total: enough.set())
    whole = triage(folder, offline=True)
    assert verdict.mining.lines < whole.mining.lines
    assert any("the reading was stopped" in said for said in verdict.mining.left_out)
    assert verdict.verdict.confidence <= 0.5
    assert "part of the logs" in verdict.verdict.title
    assert verdict.verdict.failure_type == "unknown"  # the cause stands further below, and no end was seen
    assert not any("stopped" in said for said in whole.mining.left_out)


def test_of_a_file_in_parts_what_stands_behind_a_gap_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each process had read a few blocks of its part: only the first part's are in a row."""
    folder = a_job(tmp_path / "job")
    found = discover(folder)
    source = next(place for place, each in enumerate(found.sources) if each.rank == 0)
    monkeypatch.setattr(parts, "PART_BYTES", 30_000)
    monkeypatch.setattr(parts, "BLOCK_BYTES", 4_000)
    cut = parts.parts_of(found.root, found.sources)
    scanner = Scanner(MATCHER)
    together = joined.Joined(scanner, found.sources, cut)
    for part in cut[source][:2]:
        given = scanner, found.root, found.sources[source], part, 1
        together.add(part, parts.scan_part(*given, lambda count: None, lambda: True))
    summary = together.survey(1).summaries[source]
    data = (folder / "rank_0.log").read_bytes()[: summary.bytes]
    assert 0 < summary.bytes <= 4_000
    assert data.endswith(b"\n") and summary.lines == data.count(b"\n")


def test_stopped_before_anything_was_read_there_is_no_verdict(tmp_path: Path) -> None:
    enough = threading.Event()
    enough.set()
    with pytest.raises(KeyboardInterrupt):
        triage(a_job(tmp_path / "job"), offline=True, enough=enough)


def test_a_large_block_is_read_without_loading_pandas() -> None:
    code = (
        "import sys; from logtriage.mining.kinds import lines_of; "
        "assert len(lines_of(b'step 1 of 9\\n' * 200_000)) == 200_000; assert 'pandas' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
