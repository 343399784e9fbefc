"""Templates: kinds of lines with counts that add up and places that exist."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logtriage.mining.catalogue import Catalogue, catalogue
from logtriage.mining.scanner import Scanner
from logtriage.mining.templates import TemplateMiner, mine
from logtriage.model import Source, SourceRole
from logtriage.pipeline import templates
from logtriage.rulebank.bank import Bank
from logtriage.rulebank.matcher import Matcher
from logtriage.rulebank.rule import Role, Rule, Strength

STEP = "step {} loss {}.5 lr 1e-4"
SAVE = "saved checkpoint /out/step-{}.pt in {} s"
WARN = "slow read of shard {} took {} ms"
KINDS = (STEP, SAVE, WARN)

LINES = st.lists(
    st.tuples(st.sampled_from(KINDS), st.integers(0, 999), st.integers(0, 99)).map(
        lambda drawn: drawn[0].format(drawn[1], drawn[2])
    ),
    max_size=60,
)


def a_matcher() -> Matcher:
    word = "never-there"
    rule = Rule("probe.never", "code.runtime", Role.CAUSE, Strength.LIKELY, "never", (word,), word)
    return Matcher(Bank((rule,), {}, ""))


def mined(files: dict[str, bytes], role: SourceRole = SourceRole.MERGED) -> Catalogue:
    scanner = Scanner(a_matcher())
    sources = [
        Source(name, len(data), role, rank=rank, host=f"node-{rank}")
        for rank, (name, data) in enumerate(files.items())
    ]
    summaries = [scanner.scan_piece(data, role) for data in files.values()]
    return catalogue(sources, summaries)


def test_each_kind_of_line_is_one_template() -> None:
    lines = [kind.format(number, number % 7) for number in range(50) for kind in KINDS]
    found = mine(lines)
    assert len(set(found)) == 3
    for position, kind in enumerate(KINDS):
        assert {found[index] for index in range(position, len(found), 3)} == {found[position]}
        assert kind.split()[0] in found[position]


def test_a_template_can_grow_more_general_and_earlier_lines_show_it() -> None:
    found = mine(["the worker has joined group alpha again", "the worker has joined group beta again"])
    assert found == ["the worker has joined group <*> again"] * 2


@given(LINES, st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_where_duplicates_stand_makes_no_difference(lines: list[str], random: object) -> None:
    """Drain sees distinct lines in the order of their first sight; later copies change counts alone."""
    again = lines + [lines[index // 2] for index in range(len(lines))]
    first = dict(zip(lines, mine(lines), strict=True))
    for line, template in zip(again, mine(again), strict=True):
        assert template == first[line]


@given(LINES)
@settings(max_examples=60, deadline=None)
def test_counts_add_up(lines: list[str]) -> None:
    miner = TemplateMiner()
    for line in lines:
        miner.add(line)
    assert sum(each.count for each in miner.templates().values()) == len(lines)


def test_a_count_weighs_as_many_lines() -> None:
    one, many = TemplateMiner(), TemplateMiner()
    one.add("step 1 loss 2.0", 5)
    for number in range(5):
        many.add(f"step {number} loss 2.0")
    assert [each.count for each in one.templates().values()] == [5]
    assert [each.count for each in many.templates().values()] == [5]


def test_the_catalogue_counts_every_line_by_file_rank_and_host() -> None:
    a = "".join(STEP.format(number, 1) + "\n" for number in range(40)).encode()
    b = "".join(STEP.format(number, 1) + "\n" for number in range(25)).encode() + b"odd words alone\n"
    found = mined({"a.log": a, "b.log": b})
    step, odd = found.rows
    assert (step.count, step.files) == (65, {"a.log": 40, "b.log": 25})
    assert (step.ranks, step.hosts) == ((0, 1), ("node-0", "node-1"))
    assert (odd.count, odd.ranks, odd.first.line) == (1, (1,), 26)


@given(LINES, LINES)
@settings(max_examples=60, deadline=None)
def test_first_and_last_place_of_a_template_are_real(one: list[str], two: list[str]) -> None:
    files = {
        name: "".join(f"{line}\n" for line in lines).encode()
        for name, lines in (("a.log", one), ("b.log", two))
    }
    found = mined(files)
    assert sum(row.count for row in found.rows) == len(one) + len(two)
    for row in found.rows:
        word = next(token for token in row.template.split() if "<" not in token)
        for place in (row.first, row.last):
            raw = files[place.file]
            assert raw[: place.offset].count(b"\n") == place.line - 1
            assert place.offset == 0 or raw[place.offset - 1 : place.offset] == b"\n"
            assert word.encode() in raw[place.offset :].split(b"\n")[0]
        everywhere = [
            (name, number)
            for name, lines in (("a.log", one), ("b.log", two))
            for number, line in enumerate(lines, 1)
            if line.split()[0] == row.template.split()[0]
        ]
        assert (row.first.file, row.first.line) == everywhere[0]
        assert (row.last.file, row.last.line) == everywhere[-1]


@pytest.mark.parametrize("role", [SourceRole.ENVIRONMENT, SourceRole.METRICS])
def test_configuration_and_number_tables_are_no_templates(role: SourceRole) -> None:
    assert mined({"a.txt": b"lr = 3\nlr = 4\n"}, role).rows == []


def test_a_folder_gives_its_templates_most_frequent_first(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text(
        "".join(STEP.format(number, number % 9) + "\n" for number in range(200)) + "the end\n"
    )
    rows = templates(tmp_path)
    assert [row.count for row in rows] == [200, 1]
    assert rows[0].first.line == 1
    assert rows[0].last.line == 200
    assert rows[1].template == "the end"


def test_empty_and_blank_lines_make_no_template(tmp_path: Path) -> None:
    assert mined({"a.log": b"", "b.log": b"\n\n  \n\t\n"}).rows == []
