"""One pass over a file, however it is cut, finds what reading it line by line would find."""

from __future__ import annotations

import copy
import functools
import re
from collections.abc import Iterable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from logtriage.intake.streams import Piece
from logtriage.mining import kinds, slices
from logtriage.mining.kinds import KEY_BYTES
from logtriage.mining.scanner import Scanner
from logtriage.mining.slices import MOST_SLICES, coarser, counts_of, of_counts
from logtriage.mining.summary import KEPT_FIRST, KEPT_LAST, Ends, Summary
from logtriage.model import SourceRole
from logtriage.rulebank.bank import Bank
from logtriage.rulebank.matcher import Matcher
from logtriage.rulebank.rule import Mark, Role, Rule, Strength


def a_rule(name: str, role: Role, keyword: str, pattern: str, **more: object) -> Rule:
    kind = "gpu.fell_off_bus" if role in (Role.CAUSE, Role.SYMPTOM) else None
    return Rule(name, kind, role, Strength.LIKELY, name, (keyword,), pattern, **more)  # type: ignore[arg-type]


RULES = (
    a_rule("probe.xid", Role.CAUSE, "Xid (", r"Xid \([^)]*\): (?P<xid>\d+)"),
    a_rule("probe.exit", Role.SYMPTOM, "exit code", r"rank (?P<rank>\d+) exit code (?P<exitcode>[1-9]\d*)"),
    a_rule("probe.step", Role.PROGRESS, "step", r"step (?P<step>\d+)", marks=Mark.STEP),
    a_rule("probe.kernel", Role.CAUSE, "link down", r"link down", where=(SourceRole.KERNEL,)),
)
MATCHER = Matcher(Bank(RULES, {}, ""))


def scanned(*cut: bytes, where: SourceRole = SourceRole.MERGED, in_bulk: bool = False) -> Summary:
    scanner = Scanner(MATCHER, in_bulk=in_bulk)
    whole = Summary()
    for data in cut:
        whole.append(scanner.scan_piece(data, where, offset=whole.bytes))
    return scanner.finished(whole, where)


# --- the reference: a plain reader, line by line, that shares nothing with the product ---------------

Told = tuple[int, tuple[int, int], tuple[int, int], bytes]


def lines_of(data: bytes) -> Iterable[tuple[int, int, bytes]]:
    offset = 0
    for number, line in enumerate(data.split(b"\n"), 1):
        if line or offset < len(data):
            yield number, offset, line
        offset += len(line) + 1


@functools.cache
def key_of(line: bytes) -> bytes:
    """What kind of line the product takes this one for, when it stands alone."""
    (key,) = scanned(line + b"\n").keys
    return key


def reference_keys(data: bytes) -> dict[bytes, Told]:
    told: dict[bytes, Told] = {}
    for number, offset, line in lines_of(data):
        count, first, _, sample = told.get(key_of(line), (0, (number, offset), (0, 0), line))
        told[key_of(line)] = (count + 1, first, (number, offset), sample)
    return told


def reference_hits(data: bytes) -> dict[tuple[str, tuple[tuple[str, str], ...]], list[tuple[int, int]]]:
    told: dict[tuple[str, tuple[tuple[str, str], ...]], list[tuple[int, int]]] = {}
    for number, offset, line in lines_of(data):
        seen = set()
        for part in line.decode("utf-8", "replace").split("\r"):
            for rule in RULES:
                found = re.search(rule.pattern, part)
                if found is None or rule.where:
                    continue
                captures = tuple(sorted((k, v) for k, v in found.groupdict().items() if v is not None))
                if (rule.id, captures) not in seen:
                    seen.add((rule.id, captures))
                    key = (rule.id, captures if rule.role is not Role.PROGRESS else ())
                    told.setdefault(key, []).append((number, offset))
    return told


def reference_slices(data: bytes) -> dict[bytes, list[int]]:
    size = 1
    while len(data) > MOST_SLICES * size:
        size *= 2
    told: dict[bytes, list[int]] = {}
    for _, offset, line in lines_of(data):
        counts = told.setdefault(key_of(line), [])
        counts += [0] * (offset // size + 1 - len(counts))
        counts[offset // size] += 1
    return told


def keys_of(summary: Summary) -> dict[bytes, Told]:
    return {key: (each.count, each.first, each.last, each.sample) for key, each in summary.keys.items()}


LINES = st.one_of(
    st.sampled_from(
        [b"", b" ", b"\r", b"12", b"ok", b"x\x00y", b"\xff\xfe", b"\xc3", b"Xid (", b"Xid (): x"]
    ),
    st.builds(
        b"NVRM: Xid (PCI:0000:%02d): %d, pid=1".__mod__, st.tuples(st.integers(0, 3), st.integers(13, 20))
    ),
    st.builds(b"rank %d exit code %d".__mod__, st.tuples(st.integers(0, 3), st.integers(0, 3))),
    st.builds(b"step %d loss 2.%d".__mod__, st.tuples(st.integers(0, 99), st.integers(0, 9))),
    st.builds(b"step %d\rstep %d\r".__mod__, st.tuples(st.integers(0, 9), st.integers(0, 9))),
    st.just(b"eth0: link down"),
    st.binary(max_size=12).map(lambda raw: raw.replace(b"\n", b"").replace(b"\x1b", b"")),
)
FILES = st.builds(
    lambda lines, end: b"\n".join(lines) + (b"\n" if lines and end else b""),
    st.lists(LINES, max_size=40),
    st.booleans(),
)


def cut_at(data: bytes, places: Iterable[int]) -> list[bytes]:
    """The data cut behind some of its line ends."""
    ends = [index + 1 for index, byte in enumerate(data) if byte == 10]
    chosen = sorted({ends[place % len(ends)] for place in places}) if ends else []
    return [data[start:stop] for start, stop in zip([0, *chosen], [*chosen, len(data)], strict=True)]


@given(FILES, st.lists(st.integers(0, 100), max_size=6))
@settings(max_examples=150, deadline=None)
def test_any_cutting_finds_what_a_plain_reader_finds(data: bytes, places: list[int]) -> None:
    summary = scanned(*cut_at(data, places))
    assert keys_of(summary) == reference_keys(data)
    places_of = {(rule, tuple(sorted(at))): each.kept() for (rule, at), each in summary.hits.items()}
    assert places_of == reference_hits(data)
    assert all(each.count == len(each.kept()) for each in summary.hits.values())
    assert (summary.bytes, summary.lines, summary.left_out) == (len(data), data.count(b"\n"), 0)


def test_a_kind_that_is_told_apart_after_its_later_lines_shows_its_first_line() -> None:
    (summary, again) = (scanned(b"12\n\n"), scanned(b"12\n", b"\n"))
    assert summary.keys[b""].sample == again.keys[b""].sample == b"12"
    assert summary.keys_bytes == again.keys_bytes


@pytest.mark.parametrize("in_bulk", [False, True])
@given(data=FILES, places=st.lists(st.integers(0, 100), max_size=6))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_cutting_counts_by_the_same_slices(
    monkeypatch: pytest.MonkeyPatch, in_bulk: bool, data: bytes, places: list[int]
) -> None:
    monkeypatch.setattr(slices, "LEAST_SHIFT", 0)
    monkeypatch.setattr(kinds, "TALLY_LEAST", 1)
    summary = scanned(*cut_at(data, places), in_bulk=in_bulk)
    assert {key: list(counts_of(each.slices)) for key, each in summary.keys.items()} == reference_slices(data)
    assert all(sum(counts_of(each.slices)) == each.count for each in summary.keys.values())


def test_of_more_kinds_than_are_told_apart_the_commonest_have_their_slices() -> None:
    letters = "ghijklmnopqrstuvwxyz"
    rare = ["".join(letters[number // 20**place % 20] for place in range(4)) for number in range(6_000)]
    often = ["often said", *rare[:3_000], "often said", *rare[3_000:], "often said", "often said"]
    data = ("\n".join(often) + "\n").encode()
    for in_bulk in (False, True):
        key = scanned(data, in_bulk=in_bulk).keys[b"otn si"]
        assert [count for count in counts_of(key.slices) if count] == [2, 2]


@given(st.lists(st.integers(0, 2**31), max_size=32), st.integers(0, 5))
def test_slices_that_are_doubled_lose_no_line(counts: list[int], doublings: int) -> None:
    told = counts_of(coarser(of_counts(counts), doublings))
    for place, count in enumerate(told):
        assert count == min(2**32 - 1, sum(counts[place << doublings : (place + 1) << doublings]))


@given(FILES, FILES, FILES)
@settings(max_examples=60, deadline=None)
def test_joining_is_associative(one: bytes, two: bytes, three: bytes) -> None:
    a, b, c = (scanned(data if data.endswith(b"\n") else data + b"\n") for data in (one, two, three))
    left, right, tail = copy.deepcopy(a), copy.deepcopy(a), copy.deepcopy(b)
    left.append(b)
    left.append(c)
    tail.append(c)
    right.append(tail)
    assert left == right


PLACES = st.lists(st.integers(0, 700), min_size=0, max_size=5)


@given(PLACES)
@settings(max_examples=25, deadline=None)
def test_of_many_places_the_first_and_the_last_are_kept(lengths: list[int]) -> None:
    """However the sightings are cut into neighbours, the same ones stay."""
    line = b"Xid (PCI:0): 79\n"
    summary = scanned(*(line * length for length in lengths))
    total = sum(lengths)
    places = [(number + 1, number * len(line)) for number in range(total)]
    expected = places if total <= KEPT_FIRST + KEPT_LAST else places[:KEPT_FIRST] + places[-KEPT_LAST:]
    seen = summary.hits.get(("probe.xid", (("xid", "79"),)), Ends(0, [], []))
    assert seen.count == total
    assert seen.kept() == expected


@given(LINES, st.text("0123456789", max_size=3))
@settings(max_examples=60, deadline=None)
def test_lines_that_differ_in_digits_alone_are_of_one_kind(line: bytes, digits: str) -> None:
    assert key_of(re.sub(rb"[0-9]+", digits.encode(), line)) == key_of(re.sub(rb"[0-9]+", b"7", line))


def test_lines_that_differ_in_words_are_of_two_kinds() -> None:
    assert key_of(b"rank 3 timed out in ALLREDUCE") != key_of(b"rank 3 timed out in BROADCAST")


def test_an_empty_file_has_nothing() -> None:
    assert scanned(b"") == Summary()


def test_a_last_line_without_its_end_counts_as_seen() -> None:
    summary = scanned(b"step 1\nXid (PCI:0): 79")
    assert summary.hits["probe.xid", (("xid", "79"),)].kept() == [(2, 7)]
    assert summary.lines == 1  # line ends


def test_digits_in_the_middle_of_one_kind_of_line_are_not_merged_away() -> None:
    data = b"".join(b"rank %d exit code %d\n" % (rank, rank % 5 + 1) for rank in range(64))
    summary = scanned(data)
    assert len(summary.keys) == 1
    assert {tuple(sorted(captures)) for _, captures in summary.hits} == {
        (("exitcode", str(rank % 5 + 1)), ("rank", str(rank))) for rank in range(64)
    }


def storm(distinct: int, total: int) -> list[bytes]:
    """Lines of one fault, in which each number comes in runs of different lengths and comes back."""
    return [
        b"Xid (PCI:0000:1b): %d, pid=7" % (13 + (number * number // 997) % distinct)
        for number in range(total)
    ]


@functools.cache
def scanned_storm() -> Summary:
    return scanned(b"\n".join(storm(29, 60_000)) + b"\n")


def test_a_storm_within_the_bound_keeps_every_number_with_its_count() -> None:
    lines = storm(29, 8_000)
    seen = scanned(b"\n".join(lines) + b"\n").hits
    assert len(seen) == 29
    for (_, captures), each in seen.items():
        here = [number for number, line in enumerate(lines, 1) if b": %s," % captures[0][1].encode() in line]
        assert (each.count, each.first[0][0], each.kept()[-1][0]) == (len(here), here[0], here[-1])


def test_a_storm_beyond_the_bound_keeps_every_number_with_its_ends() -> None:
    lines = storm(29, 60_000)
    summary = scanned_storm()
    assert len(summary.hits) == 29
    for (_, captures), each in summary.hits.items():
        here = [number for number, line in enumerate(lines, 1) if b": %s," % captures[0][1].encode() in line]
        assert (each.first[0][0], each.kept()[-1][0]) == (here[0], here[-1])


def test_a_storm_beyond_the_bound_keeps_every_count() -> None:
    assert sum(each.count for each in scanned_storm().hits.values()) == 60_000


def test_a_number_seen_once_amid_a_storm_is_kept() -> None:
    lines = [b"Xid (PCI:0000:1b): 43, pid=7"] * 60_000
    lines[30_001] = b"Xid (PCI:0000:1b): 79, pid=7"
    assert ("probe.xid", (("xid", "79"),)) in scanned(b"\n".join(lines) + b"\n").hits


def test_one_bad_number_amid_good_ones_is_found() -> None:
    lines = [b"rank 3 exit code 0"] * 2_000
    lines[900] = b"rank 3 exit code 9"
    (_, captures), *_ = scanned(b"\n".join(lines) + b"\n").hits
    assert dict(captures) == {"rank": "3", "exitcode": "9"}


def test_of_a_long_run_of_steps_the_first_and_the_last_are_known() -> None:
    data = b"".join(b"step %d loss 2.0\n" % step for step in range(5_000))
    summary = scanned(data)
    places = summary.hits["probe.step", ()].kept()
    assert places[0] == (1, 0)
    assert places[-1] == (5_000, data.rindex(b"step"))
    assert [each.count for each in summary.keys.values()] == [5_000]


def test_a_very_long_line_counts_once_and_its_ends_are_matched() -> None:
    data = b"a\n" + b"Xid (PCI:0): 79 " + b"filler " * 400_000 + b"Xid (PCI:0): 48\nXid (PCI:0): 31\n"
    summary = scanned(data)
    assert summary.lines == 3
    assert {captures[0][1]: each.kept() for (_, captures), each in summary.hits.items()}["79"] == [(2, 2)]
    assert summary.hits["probe.xid", (("xid", "31"),)].kept() == [(3, data.rindex(b"Xid"))]
    assert max(map(len, summary.keys)) <= KEY_BYTES


def test_two_long_lines_that_differ_at_their_ends_are_both_matched() -> None:
    head = b"Xid " + b"x" * 5_000
    data = head + b" Xid (PCI:0): 79\n" + head + b" Xid (PCI:0): 48\n"
    summary = scanned(data)
    assert {captures[0][1] for _, captures in summary.hits} == {"79", "48"}
    assert [each.count for each in summary.keys.values()] == [2]


def test_bytes_left_out_of_an_endless_line_move_what_follows() -> None:
    scanner = Scanner(MATCHER)
    pieces = [Piece(b"head tail\n", 0, 1, elided=7_000_000), Piece(b"Xid (PCI:0): 79\n", 7_000_010, 2)]
    summary = Summary()
    for piece in pieces:
        summary.append(scanner.scan_piece(piece.data, SourceRole.MERGED, elided=piece.elided))
    assert summary.hits["probe.xid", (("xid", "79"),)].kept() == [(2, 7_000_010)]
    assert summary.bytes == 7_000_026


def test_each_state_of_a_progress_bar_is_looked_at() -> None:
    data = b"step 1\rstep 2\rXid (PCI:0): 79, pid\rstep 3\nok\n"
    summary = scanned(data)
    assert summary.hits["probe.xid", (("xid", "79"),)].kept() == [(1, 0)]
    assert summary.lines == 2


def test_a_rule_for_one_kind_of_file_counts_there_alone() -> None:
    assert scanned(b"eth0: link down\n").hits == {}
    assert ("probe.kernel", ()) in scanned(b"eth0: link down\n", where=SourceRole.KERNEL).hits


def test_terminal_colours_do_not_hide_a_line() -> None:
    summary = scanned(b"\x1b[31mXi\x1b[0md (PCI:0): 79\x1b[0m\n")
    assert ("probe.xid", (("xid", "79"),)) in summary.hits
