"""What must not become a rule does not, whatever a person says; the diagnosis is kept all the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from taught_jobs import steps, text, written

from logtriage import triage
from logtriage.apps.cli import main
from logtriage.memory.rule_folder import TRIAL, learned_rules
from logtriage.memory.wording import patterns, vocabulary
from logtriage.rulebank.bank import load_bank, pattern_of

DAY = "2026-03-03"


pytestmark = pytest.mark.usefixtures("data_dir")


def judged(job: Path) -> str:
    assert main(["triage", str(job), "--offline", "--json", "/dev/null", "--quiet"]) == 0
    return triage(job, offline=True).id


def correct(verdict: str, failure_type: str, *more: str) -> int:
    return main(["correct", verdict, "--type", failure_type, *more])


def one_line_job(folder: Path, line: str) -> str:
    return judged(written(folder, {"rank0.log": text(steps(DAY, 4, 5), line)}))


SAYS_TOO_LITTLE = (
    "2026-03-03 04:05:06,007 ERROR",
    "ERROR: job 17 failed with exit code 1",
    "RuntimeError: failed",
    "hopper.errors.ShardSealBroken",
    "KeyError: 'web'",
    "Killed",
)


def test_lines_that_say_too_little(
    tmp_path: Path, data_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    verdict = judged(written(tmp_path, {"job/rank0.log": text(*SAYS_TOO_LITTLE)}) / "job")
    for number, _ in enumerate(SAYS_TOO_LITTLE, 1):
        assert correct(verdict, "data.corrupt", "--evidence", f"rank0.log:{number}") == 0
        answer = capsys.readouterr().out
        assert "no rule" in answer and ("says too little" in answer or "says nothing" in answer)
    assert learned_rules(data_dir) == []
    assert main(["memory", "list"]) == 0
    assert "data.corrupt" in capsys.readouterr().out


def test_a_line_that_a_healthy_job_wrote_too(
    tmp_path: Path, data_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = f"{DAY} 04:00:06,007 WARNING quorumd: lease ledger drifted by 3 ticks, resynchronising"
    healthy = written(tmp_path / "healthy", {"rank0.log": text(steps(DAY, 4, 9), line, steps(DAY, 5, 9))})
    assert correct(judged(healthy), "none.running") == 0
    verdict = one_line_job(tmp_path / "job", line.replace("3 ticks", "9 ticks"))
    assert correct(verdict, "host.node_lost", "--evidence", "rank0.log:6") == 0
    assert "a job that ended well" in capsys.readouterr().out
    assert learned_rules(data_dir) == []


def test_a_line_of_the_shipped_healthy_job(tmp_path: Path, data_dir: Path) -> None:
    logs = Path(__file__).parent.parent / "fixtures" / "completed-scary-words" / "logs"
    launcher = next(path for path in logs.rglob("*.log") if path.stat().st_size)
    lines = [line for line in launcher.read_text(encoding="utf-8").splitlines() if len(line.split()) > 5]
    for number, line in enumerate(lines[:3]):
        verdict = one_line_job(tmp_path / str(number), line)
        assert correct(verdict, "auth.denied", "--evidence", "rank0.log:6") == 0
    assert learned_rules(data_dir) == []


@pytest.mark.parametrize(
    "line",
    [
        "NVRM: Xid (PCI:0000:1b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
        "slurmstepd: error: *** JOB 5123 ON node17 CANCELLED AT 2026-01-02T03:04:05 DUE TO TIME LIMIT ***",
    ],
)
def test_a_line_that_belongs_to_a_shipped_rule_of_another_type(
    line: str, tmp_path: Path, data_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    verdict = one_line_job(tmp_path / "job", line)
    assert correct(verdict, "data.corrupt", "--evidence", "rank0.log:6") == 0
    assert "is sure that this line is" in capsys.readouterr().out
    assert learned_rules(data_dir) == []


def test_a_line_that_a_rule_knows_already_needs_no_second_rule(
    tmp_path: Path, data_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = "tarnfs: extent map torn on volume {}, refusing to mount"
    first = one_line_job(tmp_path / "first", line.format("scratch-7"))
    assert correct(first, "storage.filesystem", "--evidence", "rank0.log:6") == 0
    second = one_line_job(tmp_path / "second", line.format("home_b"))
    assert main(["confirm", second]) == 0
    assert "knows this line already" in capsys.readouterr().out
    assert len(learned_rules(data_dir)) == 1


def test_a_source_line_inside_a_traceback_stands_for_its_exception(
    tmp_path: Path, data_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {
        "rank0.log": text(
            steps(DAY, 4, 5),
            "Traceback (most recent call last):",
            '  File "/app/brook.py", line 7, in weave',
            "    raise LoomJammed(shuttle)",
            "brook.LoomJammed: shuttle 4 of loom 'north' is jammed at pick 1877",
        )
    }
    verdict = judged(written(tmp_path / "job", files))
    assert correct(verdict, "code.config", "--evidence", "rank0.log:8") == 0
    assert "rank0.log:9" in capsys.readouterr().out
    (learned,) = learned_rules(data_dir)
    assert learned.rule.provenance is not None and learned.rule.provenance.evidence == "rank0.log:9"


def test_a_place_that_is_not_there_is_wrong_usage(tmp_path: Path, data_dir: Path) -> None:
    verdict = one_line_job(tmp_path / "job", "loom: shuttle jammed")
    for place in ("rank0.log:99", "nowhere.log:1", "rank0.log", "rank0.log:x", ":3"):
        assert correct(verdict, "code.config", "--evidence", place) == 2
    assert learned_rules(data_dir) == []


def test_wrong_ids_and_types_are_wrong_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    verdict = one_line_job(tmp_path / "job", "loom: shuttle jammed")
    for wrong, right in (("data.corupt", "data.corrupt"), ("nan", "numerics.nan"), ("preempt", "preempted")):
        capsys.readouterr()
        assert correct(verdict, wrong) == 2
        said = capsys.readouterr().err
        assert right in said and "taxonomy.yaml" in said and said.count("(see ") == 1
    assert correct("v-0000", "data.corrupt") == 2
    assert main(["confirm", ""]) == 2


def test_of_several_lines_that_could_be_meant_none_is_believed_at_once(
    tmp_path: Path, data_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {
        "rank0.log": text(
            steps(DAY, 4, 5),
            f"{DAY} 04:01:00,000 ERROR loomd: warp beam tension lost on spindle 4",
            f"{DAY} 04:01:01,000 ERROR weaverd: pattern card unreadable in magazine 9",
        )
    }
    verdict = judged(written(tmp_path / "job", files))
    assert correct(verdict, "storage.filesystem") == 0
    assert "on trial" in capsys.readouterr().out
    assert [each.state for each in learned_rules(data_dir)] == [TRIAL]
    body = triage(tmp_path / "job", offline=True).verdict
    assert not any((each.rule or "").startswith("learned.") for each in body.evidence)
    assert body.decided_by == "memory" and body.confidence <= 0.5  # the diagnosis is remembered all the same


BANK = load_bank()
KNOWN = vocabulary(BANK)
EXAMPLES = [
    example.line
    for rule in BANK.rules
    if rule.role == "cause"
    for example in rule.examples
    if len(example.line) < 500
]


# What Python takes for space and RE2 does not (U+001F): a rule of such a line does not hit its evidence, and
# is refused for that when it is proposed.
TEXT = st.text(max_size=300).map(lambda text: "".join(" " if each.isspace() else each for each in text))


@settings(max_examples=40, deadline=None)
@given(st.one_of(TEXT, st.sampled_from(EXAMPLES)))
@example("AAAA_")
def test_a_pattern_matches_the_line_that_it_comes_from(line: str) -> None:
    """For any text: a pattern that is offered runs in linear time and hits its own line, by its keyword."""
    from logtriage.rulebank.matcher import without_digits

    for wording in patterns(line, known=KNOWN):
        assert pattern_of(wording.pattern).search(line) is not None
        assert without_digits(wording.keyword).lower() in without_digits(line).lower()
        names = set(pattern_of(wording.pattern).groupindex)
        assert all("{" + name + "}" in wording.title or "…" in wording.title for name in names)


@pytest.mark.parametrize(
    "line",
    [
        "cannot map shard: /srv/tok/part_17.idx, bytes: 4096",
        "vfsd: read from node 10.7.0.3@tcp1 was refused",
        "decay check failed: rate 6.500000E-06 of group 3 is nan",
        "raise it with `prctl.set('nofile')` before workers start",
    ],
)
def test_values_that_look_unlike_their_class_are_matched_too(line: str) -> None:
    found = list(patterns(line, known=KNOWN))
    assert found
    assert all(pattern_of(wording.pattern).search(line) for wording in found)


NUMBERS = st.integers(min_value=1, max_value=10**9)
HOSTS = st.from_regex(r"[a-z]{2,8}-?[a-z]?[0-9]{1,4}", fullmatch=True)
PATHS = st.from_regex(r"/[a-z]{1,8}(/[a-z0-9_-]{1,12}){1,4}\.(pt|bin|tar)", fullmatch=True)


@settings(max_examples=40, deadline=None)
@example(1, 1, "aa0000", "aa-0", "/a/0.pt", "/a/0.pt")  # a host that looks like a hexadecimal number
@given(NUMBERS, NUMBERS, HOSTS, HOSTS, PATHS, PATHS)
def test_other_numbers_hosts_and_paths_are_of_the_same_kind(
    number: int, other_number: int, host: str, other_host: str, path: str, other_path: str
) -> None:
    line = "loomd[{0}]: shuttle {0} jammed on node {1} while weaving {2} (rank {0}, 0x{0:x})"
    first, second = line.format(number, host, path), line.format(other_number, other_host, other_path)
    wording = next(patterns(first, known=KNOWN))
    assert wording.fault is None
    found = pattern_of(wording.pattern).search(second)
    assert found is not None
    assert found["host"] == other_host
    assert found["file"] == other_path


def test_what_tells_of_a_fault_is_not_matched_where_it_is_zero() -> None:
    wording = next(patterns("fabmond: 3 uncorrectable symbol errors in window 9", known=KNOWN))
    pattern = pattern_of(wording.pattern)
    assert pattern.search("fabmond: 1507 uncorrectable symbol errors in window 0")
    assert not pattern.search("fabmond: 0 uncorrectable symbol errors in window 9")


def test_lines_of_the_same_job_show_what_varies() -> None:
    line = "loomd: shuttle blue parked beside warp rack amber"
    alike = ["loomd: shuttle blue parked beside warp rack violet", "unrelated words entirely"]
    pattern = pattern_of(next(patterns(line, alike=alike, known=KNOWN)).pattern)
    assert pattern.search("loomd: shuttle blue parked beside warp rack teal")
    assert not pattern_of(next(patterns(line, known=KNOWN)).pattern).search(alike[0])


@pytest.mark.parametrize(
    "words",
    [
        "bad stripelets {} in pool alpha",
        "lost stripelets {} in pool alpha",
        "shardlet verification mismatch count={} pool alpha",
        "nan count {} pool alpha of gatherer",
        "crc errors total {} of gatherer alpha",
    ],
)
def test_a_count_of_whatever_is_not_matched_where_it_is_zero(words: str) -> None:
    pattern = pattern_of(next(patterns(f"gatherd: {words.format(7)}", known=KNOWN)).pattern)
    assert pattern.search(f"gatherd: {words.format(12)}")
    assert not pattern.search(f"gatherd: {words.format(0)}")
