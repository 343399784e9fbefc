"""Logs as people hand them on: quoted, numbered, indented, as a page's source, broken at some width."""

from __future__ import annotations

import gzip
import html
import itertools
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logtriage.intake import folder as discovery
from logtriage.intake.folder import discover
from logtriage.intake.overlays import learn_overlays, lifted
from logtriage.intake.streams import stream
from logtriage.memory.evidence import witness_at
from logtriage.model import OverlayKind
from logtriage.pipeline import triage
from logtriage.rulebank.bank import load_bank
from logtriage.rulebank.matcher import Matcher

STEPS = [
    f"2026-04-07 03:{minute:02d}:11,{minute * 7:03d} INFO [rank{rank}] iteration {minute * 5} of 900:"
    f" loss=3.{70 - minute} grad-norm={minute / 7:.3f} tokens/s/gpu={4100 + 13 * minute + rank}"
    for minute in range(24)
    for rank in range(4)
]
LOST = [
    "[rank2]: Traceback (most recent call last):",
    '[rank2]:   File "/home/kit/prose/run_pretrain.py", line 212, in <module>',
    "[rank2]:     main(parse_command_line(sys.argv[1:], defaults=read_defaults('/home/kit/prose/a.toml')))",
    '[rank2]:   File "/home/kit/prose/lib/mixtures/weighted.py", line 77, in draw_next_document_from_mixture',
    "[rank2]:     share = self.shares[domain] & self.mask if len(self.shares) > 1 and domain < 9 else 0",
    '[rank2]: KeyError: "forum-posts-2019-and-2020-deduplicated-against-the-held-out-set-and-evaluations"',
    *(
        f"W0407 03:24:02.118000 4187 torch/distributed/elastic/multiprocessing/api.py:900] Sending process"
        f" {pid} closing signal SIGTERM"
        for pid in (4190, 4191)
    ),
]
JOB = [*STEPS, "", *LOST]


def each(form: Callable[[int, str], str]) -> Callable[[list[str]], list[str]]:
    return lambda lines: [form(at, line) for at, line in enumerate(lines, 1)]


def framed(*words: str) -> list[str]:
    return ["+------+-------+", *(f"| {word:4} | {len(word):5} |" for word in words), "+------+-------+"]


def broken(width: int) -> Callable[[list[str]], list[str]]:
    return lambda lines: [
        line[at : at + width] for line in lines for at in range(0, max(1, len(line)), width)
    ]


def page(lines: list[str]) -> list[str]:
    rows = [f'<div class="row"><span class="ts"></span>{html.escape(line)}</div>' for line in lines]
    return ["<!DOCTYPE html>", "<html><body>", *rows, "</body></html>"]


FORMS: dict[str, Callable[[list[str]], list[str]]] = {
    "a mail's quote": each(lambda at, line: "> " + line),
    "a quote without a blank": each(lambda at, line: ">" + line),
    "a quote of a quote": each(lambda at, line: (">> " + line).rstrip()),
    "quotes set apart": each(lambda at, line: "> > " + line),
    "a bar": each(lambda at, line: "| " + line),
    "a box": each(lambda at, line: "\N{BOX DRAWINGS LIGHT VERTICAL} " + line),
    "a mail around a quote": lambda lines: ["It died:", "", *["> " + line for line in lines], "", "Thanks"],
    "blanks": each(lambda at, line: "    " + line),
    "blanks but for empty lines": each(lambda at, line: ("      " + line).rstrip()),
    "tabs": each(lambda at, line: "\t" + line),
    "a block of code": lambda lines: ["What it said:", "", *["    " + line for line in lines], "", "Ideas?"],
    "cat -n": each(lambda at, line: f"{at:6d}\t{line}"),
    "nl": each(lambda at, line: f"{at:6d}\t{line}" if line else ""),
    "less -N": each(lambda at, line: f"{at:7d} {line}"),
    "an editor": each(lambda at, line: f"{at:4d} {line}".rstrip()),
    "bat": each(lambda at, line: f"{at:4d}   \N{BOX DRAWINGS LIGHT VERTICAL} {line}"),
    "a bar behind numbers": each(lambda at, line: f"{at:5d}| {line}"),
    "numbers in brackets": each(lambda at, line: f"[{at + 310}] {line}"),
    "L": each(lambda at, line: f"L{at}: {line}"),
    "line": each(lambda at, line: f"line {at}: {line}"),
    "a list": each(lambda at, line: f"{at}. {line}"),
    "grep -n": each(lambda at, line: f"{at * 3}:{line}"),
    "grep -n with a blank": each(lambda at, line: f"{at}: {line}"),
    "grep -n in a file": each(lambda at, line: f"out/pretrain.log:{at + at // 5}:{line}"),
    "numbers between": lambda lines: [part for at, line in enumerate(lines, 1) for part in (str(at), line)],
    "numbers in a quote": each(lambda at, line: f"> {at:5d}  {line}"),
    "entities": each(lambda at, line: html.escape(line)),
    "entities of signs": each(
        lambda at, line: line.replace("&", "&#38;").replace("<", "&#x3C;").replace('"', "&quot;")
    ),
    "breaks of lines": each(lambda at, line: html.escape(line, quote=False) + "<br/>"),
    "all in one line": lambda lines: ["<pre>" + "<br>".join(map(html.escape, lines)) + "</pre>"],
    "a page of a build": page,
    "lines that a page numbers": each(
        lambda at, line: (
            f'<div class="l"><a id="L{at}" href="#L{at}">{at}</a><span>{html.escape(line)}</span></div>'
        )
    ),
    "rows of a table": each(
        lambda at, line: f'<tr><td class="ln" data-n="{at}">{at}</td><td>{html.escape(line)}</td></tr>'
    ),
    "92 columns": broken(92),
    "103 columns": broken(103),
    "quoted, then broken": lambda lines: broken(88)(["> " + line for line in lines]),
    "broken, then quoted": lambda lines: ["> " + line for line in broken(97)(lines)],
    "numbered, then broken": lambda lines: broken(101)(FORMS["cat -n"](lines)),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_verdict_is_the_same_and_cites_the_lines_of_the_file(tmp_path: Path, form: str) -> None:
    laid = FORMS[form](JOB)
    for folder, lines in (("plain", JOB), ("laid", laid)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "pretrain.txt").write_text("\n".join(lines) + "\n")
    plain, found = (triage(tmp_path / folder, offline=True) for folder in ("plain", "laid"))
    assert plain.verdict.failure_type == found.verdict.failure_type == "code.key"
    assert plain.verdict.culprits.ranks == found.verdict.culprits.ranks == (2,)
    assert plain.job.last_step == found.job.last_step == 115
    data = (tmp_path / "laid" / "pretrain.txt").read_bytes()
    assert len(plain.verdict.evidence) == len(found.verdict.evidence)
    for was, line in zip(plain.verdict.evidence, found.verdict.evidence, strict=True):
        assert laid[line.line - 1] == line.text
        assert data[line.offset :].startswith(line.text.encode())
        shown = html.unescape(line.text)
        assert was.text[:40] in shown or shown[:40] in was.text
    indicated = {line.line for line in found.verdict.evidence}
    assert all(0 < line <= len(laid) for line in indicated)


@pytest.mark.parametrize("form", ["cat -n", "80 columns", "a mail's quote", "entities"])
def test_a_file_of_few_lines_is_read_as_those_beside_it(tmp_path: Path, form: str) -> None:
    laid = broken(80) if form == "80 columns" else FORMS[form]
    (tmp_path / "pretrain.txt").write_text("\n".join(laid(STEPS)) + "\n")
    few = ["[rank2]: ValueError: could not convert string to float: 'n/a' <row 17 of shares.csv, forum>"]
    (tmp_path / "errors.txt").write_text("\n".join(laid(few)) + "\n")
    for source in discover(tmp_path).sources:
        wanted = STEPS if source.file == "pretrain.txt" else few
        assert b"".join(stream(tmp_path, source)).decode() == "\n".join(wanted) + "\n"


def test_a_compressed_file_is_no_other(tmp_path: Path) -> None:
    laid = FORMS["less -N"](JOB)
    (tmp_path / "job.log.gz").write_bytes(gzip.compress("\n".join(laid).encode()))
    verdict = triage(tmp_path, offline=True).verdict
    assert verdict.failure_type == "code.key"
    assert all(laid[line.line - 1] == line.text for line in verdict.evidence)


def test_newest_first_and_numbered(tmp_path: Path) -> None:
    laid = FORMS["cat -n"]([*reversed(JOB[:-9]), ""])
    (tmp_path / "job.log").write_text("\n".join(laid) + "\n")
    (source,) = discover(tmp_path).sources
    assert source.is_newest_first
    assert triage(tmp_path, offline=True).job.last_step == 115


def test_files_that_a_search_names_stay_told_apart(tmp_path: Path) -> None:
    laid = [
        f"run7/rank{rank}.log:{at}:{line.replace(f'[rank{rank}] ', '')}"
        for rank in range(4)
        for at, line in enumerate((line for line in STEPS if f"[rank{rank}]" in line), 1)
    ]
    laid.append("run7/rank3.log:25:Traceback (most recent call last):")
    laid.append('run7/rank3.log:26:  File "prose.py", line 9, in <module>')
    laid.append("run7/rank3.log:27:ZeroDivisionError: division by zero")
    (tmp_path / "found.txt").write_text("\n".join(laid) + "\n")
    verdict = triage(tmp_path, offline=True).verdict
    assert (verdict.failure_type, verdict.culprits.ranks) == ("code.zero_division", (3,))
    assert all(laid[line.line - 1] == line.text for line in verdict.evidence)


def test_a_line_that_a_person_names_in_a_broken_file_is_found(tmp_path: Path) -> None:
    laid = broken(92)(JOB)
    (tmp_path / "job.log").write_text("\n".join(laid) + "\n")
    begins = next(at for at, line in enumerate(laid, 1) if line.startswith("[rank2]: KeyError"))
    matcher = Matcher(load_bank())
    for named in (begins, begins + 1):  # its first part, and what goes on below
        assert witness_at([str(tmp_path)], f"job.log:{named}", matcher).cited.line == begins


FRAMES = ['  File "a.py", line 3, in f', "    f()"]
WARNED = "UserWarning: the reduction is not what it was and will change"
CUT = [f"2026-01-01 00:00:{at:02d} {'abcdefghi'[at % 9 :] * 30}"[:120] for at in range(40)]
NAMES = ["ada", "bela", "cato", "dora", "eva"]
RECORDS = [
    f'{{"time": "2026-05-05T06:07:{at:02d}Z", "step": {at}, "message": "all well"}}' for at in range(40)
]
RECORDS.append(
    '{"time": "2026-05-05T06:09:00Z", "level": "ERROR", "message": "gone", "exception": "Traceback (most'
    ' recent call last):\\n  File \\"tokens.py\\", line 8, in read\\n    spec = self.mix[name]\\nKeyError:'
    " 'encyclopedia'\"}"
)


@pytest.mark.parametrize("width", [83, 111, 157, 199])
def test_a_single_record_that_is_broken_tells_the_width(tmp_path: Path, width: int) -> None:
    laid = broken(width)(RECORDS)
    (tmp_path / "job.jsonl").write_text("\n".join(laid) + "\n")
    verdict = triage(tmp_path, offline=True).verdict
    assert verdict.failure_type == "code.key"
    assert verdict.evidence[0].text == RECORDS[-1][:width] == laid[verdict.evidence[0].line - 1]


KEPT = {
    "records of JSON, one cut off": [*RECORDS[:-1], RECORDS[-1][:150]],
    "records printed over lines": ["{", *(f'  "a{at}": [{"1, " * 30}],' for at in range(9)), '  "b": 1', "}"],
    "steps": STEPS,
    "a traceback": ["Traceback (most recent call last):", *FRAMES * 20, "E: x"],
    "labels of srun": [f"{rank}: loading shard {rank}" for _ in range(4) for rank in range(8)],
    "one label each": [f"{rank}: ready on cn-{rank // 8} with {'abc'[rank % 3]}" for rank in range(32)],
    "a table of steps": [f"{step}\t{9 / step:.4f}\t{step * 1e-5:.2e}" for step in range(1, 90)],
    "losses by step": [f"{step}: loss {9 / step:.4f}" for step in range(1, 90)],
    "processes": ["  PID TTY   TIME", *(f" {4100 + at} ?  00:0{at}:11 python train.py" for at in range(9))],
    "jobs of a queue": [f"{at * 7 + 5000}   gpu  train  R  1:0{at}  4  cn-[{at}-9]" for at in range(9)],
    "times without dates": [f"{at // 60:02d}:{at % 60:02d}:09 step {at}" for at in range(200)],
    "one blank ahead": [f" [2026-02-02 03:04:{at:02d}] iteration {at}/90 | loss: 1.{at}" for at in range(50)],
    "a framed table": framed(*NAMES * 9),
    "framed tables": [line for at in range(9) for line in (*framed(*NAMES[at % 4 :]), f"round {at}")],
    "a dump of bytes": [
        f"{at:08x}: " + f"{at * 977 % 65536:04x} " * 8 + " .ab..c8.Z" for at in range(0, 900, 16)
    ],
    "bars of progress": [
        f"Epoch {at}: {at:2d}%|{'#' * (at // 3):33}| {at:2d}/99 [00:{at % 60:02d}<01:00, 2.0it/s]"
        for at in range(99)
    ],
    "rulers": [line for at in range(9) for line in ("=" * 100, f"phase {at}", "-" * 100, "* " * 50)],
    "records of one shape": [
        f'{{"step": {step:4d}, "rank": {step % 4}, "loss": 2.{step:03d}, "host": "cn-{step % 9:02d}"}}'
        for step in range(90)
    ],
    "two lines a record": [
        line
        for at in range(50)
        for line in (f"epoch {at:3d} trained, loss 2.{at:02d} at rate 0.000{at:02d}", "kept as best.pt")
    ],
    "a table of bare words": [
        f"{name:12}{at * 3 % 17:9.3f}{at:9d}{'ok' if at % 3 else 'late':>20}"
        for at, name in enumerate(NAMES * 8)
    ],
    "numbers of devices": [
        "# gpu    pwr  gtemp  mtemp     sm    mem  ",
        *(f"{at % 8:5d}    3{at:02d}     4{at % 9}     47     58     22 " for at in range(64)),
    ],
    "lines cut short": [line + "..." for line in CUT],
    "lines cut off": CUT,
    "a warning of all ranks": [
        line
        for at in range(8)
        for line in (f"/opt/venv/lib/site.py:{at + 100}: {WARNED}", "  warnings.warn(")
    ],
    "words in angles": ["<module> at x.py", "a <b>bold</b> word", "a && b", "x < y & z", "&lt; was said"] * 3,
    "settings in tags": ["<property>", "<name>a&amp;b</name>", "<value>3</value>", "</property>"] * 5,
}


@pytest.mark.parametrize("kind", KEPT)
def test_what_lines_have_of_their_own_is_left(kind: str) -> None:
    head = "\n".join(KEPT[kind]).encode() + b"\n"
    assert learn_overlays(head, is_cut=False) == ()


WORD = st.text("abcdefghijklmnopqrstuvwxyz0123456789_./=:", min_size=1, max_size=14)
LINE = st.lists(WORD, min_size=1, max_size=60).map(" ".join)


@settings(max_examples=60, deadline=None)
@given(st.lists(LINE, min_size=12, max_size=40), st.integers(60, 240), st.booleans())
def test_what_was_broken_is_joined_where_it_is_known_to_be(
    lines: list[str], width: int, returns: bool
) -> None:
    lines = [f"2026-05-06 07:08:{at:02d} {line}" for at, line in enumerate(lines)]
    laid = broken(width)(lines)
    end = "\r\n" if returns else "\n"
    head = end.join(laid).encode() + end.encode()
    overlays = learn_overlays(head, is_cut=False)
    # Of lines that differ in numbers alone one is counted.
    longer = len({re.sub(r"[\d ]+", "", line) for line in lines if len(line) > width})
    assert bool(overlays) or longer < 8
    if overlays:
        assert [each.kind for each in overlays] == [OverlayKind.BROKEN] and overlays[0].width == width
        made, places = lifted(head, overlays)
        assert made.decode().replace("\r", "").split("\n")[:-1] == lines
        assert [laid[place] for place in places] == [line[:width] for line in lines]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.one_of(LINE, st.just(""), LINE.map("  ".__add__)), min_size=8, max_size=40),
    st.sampled_from(sorted(FORMS)),
)
def test_no_byte_is_lost_whatever_lies_over_it(lines: list[str], form: str) -> None:
    data = "\n".join(FORMS[form](lines)).encode() + b"\xff\xfe\n"
    made, places = lifted(data, learn_overlays(data, is_cut=False))
    assert made.endswith(b"\xff\xfe\n") or form in (
        "a page of a build",
        "a mail around a quote",
        "all in one line",
    )
    assert len(places) == made.count(b"\n")
    assert all(one <= two for one, two in itertools.pairwise(places))


def test_in_a_folder_of_very_many_files_no_lines_are_taken_for_quoted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for rank in range(4):
        lines = (f"> 2026-03-04 10:00:{at:02d} step {at} loss 2.5\n" for at in range(40))
        (tmp_path / f"rank{rank}.log").write_text("".join(lines))
    assert all(source.overlays for source in discover(tmp_path).sources)
    monkeypatch.setattr(discovery, "MOST_HANDED_ON", 3)
    assert not any(source.overlays for source in discover(tmp_path).sources)
