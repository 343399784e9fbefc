"""The matcher: the filter by keywords loses nothing, harmless lines stay quiet, and it is linear."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import replace

import pytest
from growth import grows_evenly
from hypothesis import given, settings
from hypothesis import strategies as st

from logtriage.model import SourceRole
from logtriage.rulebank.bank import Bank, load_bank
from logtriage.rulebank.matcher import MISSES, Hit, Matcher, found_in, without_digits
from logtriage.rulebank.rule import Role, Rule, Strength


@pytest.fixture(scope="module")
def bank() -> Iterator[Bank]:
    yield load_bank()


@pytest.fixture(scope="module")
def matcher(bank: Bank) -> Iterator[Matcher]:
    yield Matcher(bank)


def examples(bank: Bank) -> list[str]:
    """All lines that any rule brings along, those that it must not match too."""
    lines = [example.line for rule in bank.rules for example in rule.examples]
    return lines + [line for rule in bank.rules for line in rule.counterexamples]


def bare(text: str) -> str:
    return re.sub("[0-9]", "", text).lower()


def stands(keyword: str, low: str) -> bool:
    """Whether a keyword is in a bare line; one between word marks not inside another word."""
    if not keyword.startswith(r"\b"):
        return keyword in low
    return re.search(f"(?<![^\\W_]){re.escape(keyword[2:-2])}(?![^\\W_])", low) is not None


def brute(bank: Bank, lines: list[str]) -> Iterator[set[str]]:
    """For each line the ids of all rules of which a keyword stands in it and the pattern matches.

    Of numbers whose ratio a rule asks for, those that have it.
    """
    rules = [(rule, [bare(word) for word in rule.keywords]) for rule in bank.rules]
    for line in lines:
        low = bare(line)
        touched = [rule for rule, words in rules if any(stands(word, low) for word in words)]
        yield {rule.id for rule in touched if found_in(line, rule) is not None}


def quiet(bank: Bank) -> Bank:
    """The same rules, of which none voids another's hits."""
    return Bank(tuple(replace(rule, voids="") for rule in bank.rules), {}, "")


def a_rule(name: str, pattern: str, *, keyword: str = "", role: Role = Role.CAUSE, **more: object) -> Rule:
    fields: dict[str, object] = {
        "id": name,
        "failure_type": "code.runtime",
        "role": role,
        "strength": Strength.LIKELY,
        "title": name,
        "keywords": (keyword or pattern,),
        "pattern": pattern,
    }
    return Rule(**(fields | more))  # type: ignore[arg-type]


def ids(hits: list[Hit]) -> list[str]:
    return [hit.rule.id for hit in hits]


def test_the_filter_by_keywords_loses_no_match_on_any_example(bank: Bank) -> None:
    unvoided = Matcher(quiet(bank))
    lines = examples(bank)
    for line, expected in zip(lines, brute(bank, lines), strict=True):
        assert set(ids(unvoided.match(line))) == expected, line


def test_every_example_is_hit_in_the_files_that_its_rule_is_for(bank: Bank) -> None:
    unvoided = Matcher(quiet(bank))
    for rule in bank.rules:
        where = rule.where[0] if rule.where else SourceRole.MERGED
        for example in rule.examples:
            assert rule.id in ids(unvoided.match(example.line, where)), (rule.id, example.line)


def test_what_was_sought_in_vain_in_lines_like_it_hides_no_match(
    bank: Bank, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lines alike but for their numbers, of which a rule matches one and not another."""
    chance = random.Random(20)
    originals = chance.sample(examples(bank), 700)
    lines = [
        re.sub(r"\d", lambda found: chance.choice("0137" + found[0]), line)
        for line in originals
        for _ in range(3 * MISSES)
    ]
    lines += originals  # at last, when most is known
    remembering, forgetful = Matcher(bank), Matcher(bank)
    remembered = [remembering.match(line) for line in lines]
    monkeypatch.setattr("logtriage.rulebank.matcher.LONGEST_REMEMBERED", 0)
    for line, hits in zip(lines, remembered, strict=True):
        assert hits == forgetful.match(line), line


def test_lines_of_one_kind_are_searched_in_vain_a_few_times_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    sought: list[str] = []
    monkeypatch.setattr(
        "logtriage.rulebank.matcher.found_in", lambda text, rule: sought.append(text) or found_in(text, rule)
    )
    matcher = Matcher(Bank((a_rule("x.lost", r"device \d+ lost", keyword="device"),), {}, ""))
    for number in range(1_000, 3_000):
        assert matcher.match(f"device {number} found") == []
    assert len(sought) < 50
    assert ids(matcher.match("device 1234 lost")) == ["x.lost"]


def test_a_line_that_no_keyword_touches_is_hit_by_nothing(bank: Bank, matcher: Matcher) -> None:
    """The pass looks at lines without digits; what it calls untouched must be silent with any digits."""
    for line in examples(bank):
        if not matcher.touches(without_digits(line)):
            assert matcher.match(line) == []


PREFIXES = ("", "[rank3]: ", "2026-01-31 08:13:02,100 ERROR ", "(worker pid=7, ip=10.0.0.1) ", "12: ", "\t")


@pytest.mark.parametrize("prefix", PREFIXES)
def test_what_stands_before_a_line_hides_no_cause(bank: Bank, matcher: Matcher, prefix: str) -> None:
    for rule in bank.rules:
        if rule.role is Role.CAUSE and not rule.where and "^" not in rule.pattern:
            for example in rule.examples:
                assert rule.id in ids(matcher.match(prefix + example.line)), (rule.id, example.line)


def test_a_keyword_marked_as_a_word_is_not_seen_inside_another() -> None:
    matcher = Matcher(Bank((a_rule("probe.inf", r"\binf\b", keyword=r"\binf\b"),), {}, ""))
    assert [matcher.touches(text) for text in ("loss: inf", "Inf.", "grad_inf=", "INFO: x", "minf ")] == [
        True,
        True,
        True,
        False,
        False,
    ]
    assert ids(matcher.match("loss: inf, stopping")) == ["probe.inf"]


@given(st.one_of(st.text(), st.text("0123456789[](){}<>=:-. XidErorankNCL", max_size=200)))
@settings(max_examples=150, deadline=None)
def test_any_text_can_be_matched(matcher: Matcher, text: str) -> None:
    assert isinstance(matcher.match(text), list)


def test_the_strongest_comes_first_and_a_rule_only_once() -> None:
    rules = (
        a_rule("a.hint", "boom", strength=Strength.HINT),
        a_rule("b.sure", "boom", strength=Strength.DEFINITE),
        a_rule("c.likely", "boom", keyword="boom"),
    )
    assert ids(Matcher(Bank(rules, {}, "")).match("boom boom")) == ["b.sure", "c.likely", "a.hint"]


def test_keywords_are_found_in_any_case_and_across_digits() -> None:
    matcher = Matcher(Bank((a_rule("a.one", r"ERR\d+X", keyword="err7x"),), {}, ""))
    assert ids(matcher.match("see ERR123X there")) == ["a.one"]
    assert matcher.match("see err123x there") == []


def test_captures_are_the_groups_that_took_part() -> None:
    rule = a_rule("a.one", r"lost (?:gpu (?P<gpu>\d+)|nic (?P<nic>\w+))", keyword="lost")
    (hit,) = Matcher(Bank((rule,), {}, "")).match("lost nic mlx5")
    assert hit.captures == (("nic", "mlx5"),)
    assert hit.capture("gpu") is None


def test_a_harmless_line_keeps_its_context_alone() -> None:
    rules = (
        a_rule("a.bad", "failed"),
        a_rule("a.worse", "failed", role=Role.SYMPTOM),
        a_rule("b.harmless", "as expected", role=Role.CONTEXT, voids="line"),
        a_rule("c.step", r"step \d+", keyword="step", role=Role.PROGRESS),
    )
    matcher = Matcher(Bank(rules, {}, ""))
    assert set(ids(matcher.match("step 7: 3 checks failed as expected"))) == {"b.harmless", "c.step"}
    assert set(ids(matcher.match("step 7: 3 checks failed"))) == {"a.bad", "a.worse", "c.step"}


def test_a_harmless_phrase_takes_only_what_overlaps_it() -> None:
    rules = (
        a_rule("a.refused", "refused"),
        a_rule("a.failed", "failed"),
        a_rule(
            "b.harmless",
            "failed to look up the weather",
            keyword="weather",
            role=Role.CONTEXT,
            voids="phrase",
        ),
    )
    matcher = Matcher(Bank(rules, {}, ""))
    assert set(ids(matcher.match("failed to look up the weather"))) == {"b.harmless"}
    assert set(ids(matcher.match("failed to look up the weather; connection refused"))) == {
        "b.harmless",
        "a.refused",
    }


def test_a_rule_for_a_kind_of_file_is_silent_elsewhere() -> None:
    matcher = Matcher(
        Bank((a_rule("a.kernel", "oops", where=(SourceRole.KERNEL, SourceRole.HARDWARE)),), {}, "")
    )
    assert ids(matcher.match("oops", SourceRole.KERNEL)) == ["a.kernel"]
    assert ids(matcher.match("oops")) == ["a.kernel"]  # of a line alone the file is not known
    assert matcher.match("oops", SourceRole.WORKER) == []


def test_each_part_of_a_line_gives_its_own_hits() -> None:
    matcher = Matcher(Bank((a_rule("a.xid", r"Xid (?P<xid>\d+)", keyword="Xid "),), {}, ""))
    hits = matcher.match_segments(["Xid 79", "ok", "Xid 48", "Xid 79"])
    assert [hit.capture("xid") for hit in hits] == ["79", "48"]


@pytest.mark.parametrize(
    "line",
    [
        "number of skipped iterations:   0 | number of nan iterations:   0 |",
        "[W socket.cpp:464] [c10d] Warning: The hostname of the client socket cannot be retrieved. err=-3",
        "Warning: find_unused_parameters=True was specified in DDP constructor, but did not find any unused",
        "FutureWarning: `torch.cuda.amp.autocast(args...)` is deprecated.",
    ],
)  # fmt: skip
def test_scary_words_of_healthy_logs_are_no_cause(matcher: Matcher, line: str) -> None:
    assert [hit.rule.id for hit in matcher.match(line) if hit.rule.role in (Role.CAUSE, Role.SYMPTOM)] == []


def test_a_line_that_touches_many_keywords_costs_little(bank: Bank, matcher: Matcher) -> None:
    words = " ".join(dict.fromkeys(word for rule in bank.rules for word in rule.keywords))[:7_500]
    assert grows_evenly(lambda times: words * times, matcher.match, 1)


@pytest.mark.parametrize(
    "unit", ["Error: ", "[rank0]: ", "Xid (PCI:", "a.", "1", "NCCL WARN ", "\x1b[0m", "step 1/2 "]
)
def test_a_hostile_line_costs_little(matcher: Matcher, unit: str) -> None:
    assert grows_evenly(lambda size: unit * (size // len(unit)), matcher.match, 7_500)
