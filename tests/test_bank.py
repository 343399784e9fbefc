"""The rule bank: every broken file is named with its line, and the shipped rules prove themselves."""

from __future__ import annotations

import textwrap
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from growth import CATASTROPHE
from scenes import copied_bank

from logtriage.pipeline import triage
from logtriage.rulebank.bank import Bank, BankFault, load_bank, read_rule_file
from logtriage.rulebank.check import lint, main, prove, uncovered
from logtriage.rulebank.rule import Fault, Role
from logtriage.taxonomy import taxonomy

GOOD = """\
- id: probe.good
  failure_type: cuda.out_of_memory
  role: cause
  title: "GPU {gpu} is full"
  keywords: ["gizmo is full"]
  pattern: 'gizmo is full on GPU (?P<gpu>\\d+)'
  mitigation: ["Make it smaller."]
  examples:
    - {line: "the gizmo is full on GPU 3", captures: {gpu: "3"}}
  counterexamples: ["the gizmo is full of joy"]
"""


@pytest.fixture(scope="module")
def shipped_bank() -> Iterator[Bank]:
    yield load_bank()


def written(folder: Path, text: str | bytes) -> Path:
    path = folder / "extra.yaml"
    path.write_bytes(text if isinstance(text, bytes) else textwrap.dedent(text).encode())
    return path


def faults_of(folder: Path, text: str | bytes) -> tuple[Fault, ...]:
    with pytest.raises(BankFault) as caught:
        read_rule_file(written(folder, text))
    return caught.value.faults


def with_line(old: str, new: str) -> str:
    assert old in GOOD
    return GOOD.replace(old, new)


# --- files that are broken --------------------------------------------------------------------------


def test_a_good_rule_is_read_whole(tmp_path: Path) -> None:
    (rule,) = read_rule_file(written(tmp_path, GOOD))
    assert (rule.id, rule.failure_type, rule.role) == ("probe.good", "cuda.out_of_memory", Role.CAUSE)
    assert rule.examples[0].captures == (("gpu", "3"),)
    assert (rule.file, rule.line) == ("extra.yaml", 1)
    assert lint([rule]) == []


def test_an_empty_file_holds_no_rule(tmp_path: Path) -> None:
    assert read_rule_file(written(tmp_path, "# nothing yet\n")) == ()


@pytest.mark.parametrize(
    ("text", "line", "told"),
    [
        ("- id: a\n  title: [unclosed\n", 3, "YAML"),
        ("- id: a\n\t- b\n", 2, "YAML"),
        (b"- id: \xff\xfe\x00\n", 1, "YAML"),
        (b"\x00\x01\x02", 1, "YAML"),
        ("- &a [*a]\n", 1, "mapping"),
        ("- !!python/object/apply:os.system ['true']\n", 1, "YAML"),
        ("id: not-a-list\n", 1, "list"),
        ("just words\n", 1, "list"),
        ("# head\n- 17\n", 2, "mapping"),
        ("- [1, 2]\n", 1, "mapping"),
        (with_line("  role:", "  sevrity: high\n  role:"), 1, "sevrity"),
        (with_line("id: probe.good", "id: ''"), 1, "'id' is missing"),
        (with_line("  role: cause\n", ""), 1, "role"),
        (with_line('  title: "GPU {gpu} is full"\n', ""), 1, "title"),
        (with_line('  keywords: ["gizmo is full"]\n', ""), 1, "keywords"),
        (with_line("  pattern: 'gizmo is full on GPU (?P<gpu>\\d+)'\n", ""), 1, "pattern"),
        (with_line("role: cause", "role: reason"), 1, "cause, symptom, context, progress"),
        (with_line("  title:", "  strength: strong\n  title:"), 1, "definite, likely, hint"),
        (with_line("  title:", "  where: [basement]\n  title:"), 1, "kernel"),
        (with_line("  title:", "  marks: steps\n  title:"), 1, "checkpoint"),
        (with_line("  title:", "  voids: maybe\n  title:"), 1, "phrase"),
        (with_line("cuda.out_of_memory", "cuda.out_of_memry"), 1, "cuda.out_of_memory"),
        (with_line("  failure_type: cuda.out_of_memory\n", ""), 1, "failure_type"),
        (with_line("'gizmo", "'(?<=x)gizmo"), 1, "linear-time"),
        (with_line("'gizmo", "'(?!x)gizmo"), 1, "linear-time"),
        (with_line("'gizmo", "'(a)\\1gizmo"), 1, "linear-time"),
        (with_line("'gizmo", "'(gizmo"), 1, "linear-time"),
        (with_line("'gizmo", "'a{5000}gizmo"), 1, "linear-time"),
        (with_line('["Make it smaller."]', "[{say: x}]"), 1, "mitigation"),
        (with_line('{gpu: "3"}', "{gpu: 3}"), 1, "quoted"),
        (with_line('["gizmo is full"]', "[17]"), 1, "quote"),
        ("# one\n\n" + with_line("role: cause", "role: reason"), 3, "reason"),
    ],
)  # fmt: skip
def test_a_broken_file_is_named_with_line_and_reason(
    tmp_path: Path, text: str | bytes, line: int, told: str
) -> None:
    fault, *others = faults_of(tmp_path, text)
    assert others == []
    assert (fault.file, fault.line) == ("extra.yaml", line)
    assert told in fault.message
    assert str(fault).startswith(f"extra.yaml:{line}:")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("role: cause", "role: [cause]"),
        ("  role: cause", "  ? [a]\n  : b\n  role: cause"),
        ("  role: cause", "  7: b\n  role: cause"),
        ("type: cuda.out_of_memory", "type: [cuda.out_of_memory]"),
        ("type: cuda.out_of_memory", "type: {a: b}"),
        ('{gpu: "3"}', "[gpu]"),
        ('{gpu: "3"}', "words"),
        ('{gpu: "3"}', '{7: "3", a: "4"}'),
    ],
)
def test_a_value_of_a_wrong_kind_is_a_fault_and_no_crash(tmp_path: Path, old: str, new: str) -> None:
    (fault,) = faults_of(tmp_path, with_line(old, new))
    assert fault.file == "extra.yaml"


def test_a_missing_file_is_a_fault(tmp_path: Path) -> None:
    with pytest.raises(BankFault, match=r"gone\.yaml.*cannot be read"):
        read_rule_file(tmp_path / "gone.yaml")


def test_a_folder_in_place_of_a_file_is_a_fault(tmp_path: Path) -> None:
    (fault,) = load_bank([tmp_path]).faults
    assert "cannot be read" in fault.message


def test_a_device_in_place_of_a_file_is_never_opened() -> None:
    (fault,) = load_bank([Path("/dev/zero")]).faults
    assert "device" in fault.message


def test_all_faults_of_a_file_are_told_at_once(tmp_path: Path) -> None:
    second = GOOD.replace("probe.good", "probe.second").replace("role: cause", "role: reason")
    third = GOOD.replace("probe.good", "probe.third").replace("cuda.out_of_memory", "cuda.oom")
    faults = faults_of(tmp_path, second + GOOD + third)
    assert [(fault.rule, fault.line) for fault in faults] == [("probe.second", 1), ("probe.third", 21)]


def test_all_faults_of_all_extra_files_are_told_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied_bank(tmp_path, monkeypatch)
    one, two = tmp_path / "one.yaml", tmp_path / "two.yaml"
    one.write_text(GOOD.replace("role: cause", "role: reason") + GOOD.replace("probe.good", "probe.sound"))
    two.write_text("nonsense: true\n")
    bank = load_bank([one, two])
    assert [(fault.file, fault.line) for fault in bank.faults] == [("one.yaml", 1), ("two.yaml", 1)]
    ids = {rule.id for rule in bank.rules}
    assert "probe.sound" in ids and "probe.good" not in ids


def test_an_id_that_is_taken_names_both_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copied_bank(tmp_path, monkeypatch)
    taken = load_bank().rules[0]
    extra = written(tmp_path, GOOD + GOOD.replace("probe.good", taken.id) + GOOD)
    faults = load_bank([extra]).faults
    assert [(fault.rule, fault.line) for fault in faults] == [(taken.id, 11), ("probe.good", 21)]
    assert f"{taken.file}:{taken.line}" in faults[0].message
    assert "extra.yaml:1" in faults[1].message


def test_a_graph_that_names_no_failure_type_is_a_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = copied_bank(tmp_path, monkeypatch)
    (rules / "explains.yaml").write_text("gpu.*: [collective.timeuot]\nno.such: [unknown]\n")
    with pytest.raises(BankFault) as caught:
        load_bank()
    told = " | ".join(map(str, caught.value.faults))
    assert "explains.yaml" in told
    assert "collective.timeuot" in told
    assert "no.such" in told


@pytest.mark.parametrize("text", ["- a\n", "gpu.*: 7\n", "a: [b\n", "\tx"])
def test_a_graph_that_is_broken_is_a_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    rules = copied_bank(tmp_path, monkeypatch)
    (rules / "explains.yaml").write_text(text)
    with pytest.raises(BankFault, match=r"explains\.yaml"):
        load_bank()


def test_deep_nesting_is_a_fault_and_no_crash(tmp_path: Path) -> None:
    (fault,) = faults_of(tmp_path, "[" * 5_000 + "]" * 5_000)
    assert "YAML" in fault.message


def test_an_alias_bomb_is_a_fault_and_takes_no_time(tmp_path: Path) -> None:
    levels = [f"l{level}: &l{level} [{', '.join([f'*l{level - 1}'] * 9)}]" for level in range(1, 30)]
    started = time.process_time()
    (fault,) = faults_of(tmp_path, "\n".join(["l0: &l0 [a]", *levels]))
    assert "list" in fault.message
    assert time.process_time() - started < CATASTROPHE


def test_an_alias_bomb_inside_a_rule_is_a_fault_and_takes_no_time(tmp_path: Path) -> None:
    levels = [f"    - &l{level} [{', '.join([f'*l{level - 1}'] * 9)}]" for level in range(1, 12)]
    text = "\n".join(["- id: probe.bomb", "  mitigation:", "    - &l0 [a]", *levels])
    started = time.process_time()
    faults_of(tmp_path, text)
    assert time.process_time() - started < CATASTROPHE


def test_what_a_fault_says_is_short(tmp_path: Path) -> None:
    text = with_line('["Make it smaller."]', f"[[{', '.join(['deep'] * 5_000)}]]")
    (fault,) = faults_of(tmp_path, text)
    assert len(str(fault)) < 2_000


def test_lint_names_what_a_rule_lacks(tmp_path: Path) -> None:
    text = (
        GOOD.replace("probe.good", "Probe")
        .replace("gizmo is full\"]", "12 a\"]")
        .replace("{gpu} is full", "{gpu} of {host}")
        .replace("  mitigation: [\"Make it smaller.\"]\n", "  explains: [no.such]\n  voids: true\n")
        .replace(r"(?P<gpu>\d+)'", r"(?P<gpu>\d+).*'")
        + "- {id: probe.bare, role: progress, marks: step, title: t, keywords: [bare], pattern: bare}\n"
    )  # fmt: skip
    told = " | ".join(fault.message for fault in lint(read_rule_file(written(tmp_path, text))))
    for expected in (
        "lower case",
        "keyword '12 a'",
        "title names {host}",
        "no.such",
        "only a context rule can void",
        "ends in .*",
        "without a mitigation",
        "no example",
        "needs a group step",
    ):
        assert expected in told


def test_proving_names_a_rule_that_does_not_hold(tmp_path: Path) -> None:
    text = (
        with_line('"the gizmo is full on GPU 3"', '"the gizmo is empty"')
        + with_line("probe.good", "probe.capture").replace('gpu: "3"', 'gpu: "4"')
        + with_line("probe.good", "probe.counter").replace("full of joy", "full on GPU 1")
        + with_line("probe.good", "probe.keyword").replace('["gizmo is full"]', '["gadget"]')
        + with_line("probe.good", "probe.clash").replace("cuda.out_of_memory", "host.out_of_memory")
    )
    rules = read_rule_file(written(tmp_path, text))
    told = Counter(fault.rule for fault in prove(rules, Bank(rules, {}, "")))
    assert set(told) == {"probe.good", "probe.capture", "probe.counter", "probe.keyword", "probe.clash"}


# --- the shipped bank ---------------------------------------------------------------------------------


def test_every_shipped_rule_is_well_formed(shipped_bank: Bank) -> None:
    assert [str(fault) for fault in lint(shipped_bank.rules) if fault.severity == "error"] == []


def test_every_shipped_rule_proves_itself_beside_all_others(shipped_bank: Bank) -> None:
    assert [
        str(fault) for fault in prove(shipped_bank.rules, shipped_bank) if fault.severity == "error"
    ] == []


def test_the_bank_is_broad(shipped_bank: Bank) -> None:
    assert len(shipped_bank.rules) >= 250


def test_every_failure_type_has_two_causes(shipped_bank: Bank) -> None:
    assert uncovered(shipped_bank) == []


def test_a_type_that_only_one_rule_knows_is_named(shipped_bank: Bank) -> None:
    preempted = [rule for rule in shipped_bank.rules if rule.failure_type == "scheduler.preempted"]
    others = [rule for rule in shipped_bank.rules if rule not in preempted]
    assert "scheduler.preempted" in uncovered(Bank((*others, preempted[0]), {}, ""))
    assert "scheduler.preempted" not in uncovered(shipped_bank)


def test_what_explains_what_names_types_alone_and_never_itself(shipped_bank: Bank) -> None:
    for cause, effects in shipped_bank.explains.items():
        assert cause in taxonomy()
        assert all(effect in taxonomy() for effect in effects)
        assert cause not in effects
    assert "collective.timeout" in shipped_bank.explains["gpu.fell_off_bus"]
    assert "gpu.fell_off_bus" not in shipped_bank.explains.get("collective.timeout", ())


def test_extra_rules_are_in_force_and_in_the_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copied_bank(tmp_path, monkeypatch)
    alone = load_bank()
    bank = load_bank([written(tmp_path, GOOD)])
    assert bank.version != alone.version
    assert "probe.good" in {rule.id for rule in bank.rules}
    assert "probe.good" not in {rule.id for rule in load_bank().rules}


def test_a_broken_extra_rule_is_named_and_the_job_still_triaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied_bank(tmp_path, monkeypatch)
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "rank_0.log").write_text("step 1 loss 2.0\nRuntimeError: the gizmo is full on GPU 3\n")
    sound = GOOD.replace("probe.good", "probe.sound")
    broken = GOOD.replace("cuda.out_of_memory", "cuda.oom")
    verdict = triage(logs, rules=[written(tmp_path, broken + sound)])
    (named,) = verdict.unreadable
    assert named.file == "extra.yaml"
    assert "rule probe.good, line 1" in named.reason and "cuda.out_of_memory" in named.reason
    assert verdict.verdict.evidence[0].rule == "probe.sound"


def test_a_title_has_no_empty_brackets_where_a_line_did_not_tell() -> None:
    titles = {rule.id: rule.entitled({}) for rule in load_bank().rules}
    assert not [name for name, title in titles.items() if " ()" in title or "{" in title]
    assert titles["torch.autograd.twice"].startswith("backward() ")  # these are a function's


def test_an_id_that_two_rules_have_is_found_before_the_bank_is_loaded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    again = tmp_path / "again.yaml"
    again.write_text(GOOD)
    assert main([str(written(tmp_path, GOOD)), str(again)]) == 1
    assert "probe.good: id is taken by again.yaml:1" in capsys.readouterr().out
