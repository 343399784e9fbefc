"""Lines that no rule knows, told by when and by whom they were written."""

from __future__ import annotations

import gzip
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scenes import clock, job, judged, steps, traceback

from logtriage.intake import reading as intake_reading
from logtriage.localize.rarity import lines_of_kinds
from logtriage.mining.kinds import shape_of
from logtriage.mining.survey import survey
from logtriage.model import Source, SourceRole
from logtriage.pipeline import triage
from logtriage.report.document import Verdict
from logtriage.rulebank.bank import load_bank
from logtriage.rulebank.blur import blur
from logtriage.rulebank.matcher import Matcher

OOM = traceback("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.")
ODD = "WARN tokens: sum at document {} is 0x7f31 and should be 0x11aa, leaving"


def indicated(verdict: Verdict, folder: Path) -> set[str]:
    return {(folder / each.file).read_text().split("\n")[each.line - 1] for each in verdict.indications}


def pool(at: float) -> str:
    return f"{clock(at)} INFO pool: page {int(at)} moved\n"


def test_what_came_only_behind_the_last_step_is_indicated_and_what_was_usual_is_not(tmp_path: Path) -> None:
    usual = f"{clock(20)} INFO prefetch: queue is short\n"
    again = f"{clock(60.5)} INFO prefetch: queue is short\n"
    novel = f"{clock(61)} INFO rollback: taking up the last good state\n"
    files = {
        f"rank{rank}.log": steps(10)
        + usual
        + steps(20, first=11, at=21)
        + again
        + novel
        + (OOM if rank == 1 else "")
        for rank in range(2)
    }
    lines = indicated(judged(tmp_path, files), tmp_path)
    assert novel.strip() in lines
    assert again.strip() not in lines and usual.strip() not in lines


def test_of_a_lost_host_the_lines_that_it_alone_wrote_are_indicated(tmp_path: Path) -> None:
    lost = "srun: error: Node failure on node-3\n"
    files = {
        f"node-{host}/rank{2 * host + local}.log": steps(10)
        + (pool(20) + pool(25) if host == 3 else "")
        + steps(20, first=11, at=26)
        for host in range(6)
        for local in range(2)
    }
    verdict = judged(tmp_path, {**files, "slurm-1.out": f"{clock(70)} {lost}"})
    assert verdict.verdict.culprits.hosts == ("node-3",)
    assert {pool(20).strip(), pool(25).strip()} <= indicated(verdict, tmp_path)


def test_where_no_rule_knows_the_failure_what_no_earlier_run_wrote_is_the_evidence(tmp_path: Path) -> None:
    healthy = job(tmp_path / "before", {f"rank{rank}.log": steps(40) for rank in range(4)})
    files = {
        f"rank{rank}.log": steps(30)
        + (f"{clock(60)} {ODD.format(77)}\n" if rank == 2 else "")
        + f"{clock(61)} ERROR step guard raised flag 7\n"
        for rank in range(4)
    }
    now = job(tmp_path / "now", files)
    verdict = triage(now, offline=True, history=[healthy])
    assert verdict.mining.compared_with == "earlier runs"
    assert verdict.verdict.failure_type == "unknown"
    assert "0x7f31" in verdict.verdict.evidence[0].text
    assert verdict.verdict.culprits.ranks == (2,)


def test_a_running_job_that_writes_something_new_and_calm_is_well(tmp_path: Path) -> None:
    healthy = job(tmp_path / "before", {f"rank{rank}.log": steps(40) for rank in range(4)})
    now = job(tmp_path / "now", {f"rank{rank}.log": steps(30) + pool(59.9) for rank in range(4)})
    assert triage(now, offline=True, history=[healthy]).verdict.failure_type == "none.running"


def test_without_earlier_runs_the_verdict_says_what_it_was_held_against(tmp_path: Path) -> None:
    files = {f"rank{rank}.log": steps(30) + (OOM if rank else "") for rank in range(2)}
    assert judged(tmp_path, files).mining.compared_with == "the healthy part of this run"


def test_of_a_hang_the_last_words_of_its_kind_are_cited(tmp_path: Path) -> None:
    said = f"{clock(79.1)} INFO loop: all done here, holding for the others\n"
    files = {
        f"rank{rank}.log": steps(39) + steps(1, first=40, at=79.2 if rank == 2 else 79.0) for rank in range(4)
    }
    files["rank0.log"] = "".join(f"{clock(2.0 * beat)} INFO pool: page moved\n" for beat in range(39)) + said
    files["monitor.log"] = "".join(f"{clock(60.0 * beat)} watch: nodes are up\n" for beat in range(60))
    verdict = judged(tmp_path, files)
    assert verdict.verdict.failure_type == "hang.silent"
    assert said.strip() in [each.text for each in verdict.verdict.evidence[:3]]
    assert indicated(verdict, tmp_path) == {said.strip()}


def test_few_steps_that_were_read_of_many_are_a_history(tmp_path: Path) -> None:
    again = "".join(f"{clock(10_009.5)} INFO state: part {part} taken up anew\n" for part in range(8))
    chatter = "INFO pool: page moved from here to there, and the queue behind it is short " + "and calm " * 9
    files = {
        f"n{host}.log": "".join(
            f"{clock(50.0 * step)} INFO step {step} loss 2.15 lr 1e-4\n"
            + f"{clock(50.0 * step + 1)} {chatter}{step}\n" * 400
            for step in range(1, 201)
        )
        + again
        + (OOM if host == 1 else "")
        for host in range(4)
    }
    lines = indicated(judged(tmp_path, files), tmp_path)
    assert set(again.splitlines()) <= lines


def test_what_began_where_a_large_file_was_not_read_is_indicated_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, size in (("WHOLE_BYTES", 2_000), ("WINDOWS_BYTES", 1), ("LEAST_WINDOWS", 3_000)):
        monkeypatch.setattr(intake_reading, name, size)
    kinds = ("draining the queue", "lost sight of the others", "parting from the group", "closing the feed")
    storm = [f"{clock(61 + 0.1 * number)} INFO out: {kinds[number // 10]} {number}" for number in range(40)]
    text = steps(30) + "".join(f"{line}\n" for line in storm)
    files = {f"rank{rank}.log": text + (OOM if rank == 1 else "") for rank in range(4)}
    verdict = judged(tmp_path, files)
    told = {(each.file, each.line) for each in verdict.indications}
    assert {(file, 31 + number) for file in files for number in range(40)} <= told


def test_of_a_hang_the_last_words_that_no_healthy_step_had_are_indicated(tmp_path: Path) -> None:
    waits = f"{clock(60)} INFO fence: reached, the others are awaited\n"
    usual = f"{clock(20)} INFO prefetch: queue is short\n"
    again = f"{clock(60.5)} INFO prefetch: queue is short\n"
    quiet = "".join(f"{clock(2 * number)} DEBUG prefetch: part {number} read\n" for number in range(30))
    files = {
        "node-0.log": steps(10) + usual + steps(20, first=11, at=21) + waits + again,
        "node-1.log": quiet + usual + waits + again,
        "launcher.log": "".join(f"{clock(60 * number)} [watch] all alive\n" for number in range(60)),
    }
    verdict = judged(tmp_path, files)
    assert verdict.verdict.failure_type == "hang.silent"
    assert indicated(verdict, tmp_path) == {waits.strip()}


def test_undated_lines_behind_an_unread_gap_do_not_tell_when_it_began(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, size in (("WHOLE_BYTES", 2_000), ("WINDOWS_BYTES", 1), ("LEAST_WINDOWS", 3_000)):
        monkeypatch.setattr(intake_reading, name, size)
    storm = f"{clock(61)} INFO out: parting from the group\n" + "   held by the fence of the pool\n" * 80
    storm += f"{clock(62)} INFO out: closing the feed\n"
    files = {f"rank{rank}.log": steps(30) + storm + (OOM if rank == 1 else "") for rank in range(4)}
    told = {(each.file, each.line) for each in judged(tmp_path, files).indications}
    assert {(file, 31 + number) for file in files for number in range(82)} <= told


@given(
    st.lists(st.sampled_from(["alpha going on", "beta 7 is odd", "omicron", "delta 12 of 90"]), max_size=40)
)
@settings(max_examples=60, deadline=None)
def test_all_lines_of_a_kind_are_named_each_once(lines: list[str]) -> None:
    data = "".join(f"{line}\n" for line in lines).encode()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name, stored in (("a.log", data), ("b.log.gz", gzip.compress(data))):
            (root / name).write_bytes(stored)
        sources = [
            Source(file=each.name, size=each.stat().st_size, role=SourceRole.MERGED)
            for each in sorted(root.iterdir())
        ]
        passed = survey(root, sources, Matcher(load_bank()))
        kinds = {shape_of(blur(b"beta 7 is odd")), shape_of(blur(b"omicron"))}
        named = list(lines_of_kinds(root, sources, passed.summaries, kinds))
    wanted = [at for at, line in enumerate(lines, 1) if line in ("beta 7 is odd", "omicron")]
    assert sorted(named) == [(source.file, at) for source in sources for at in wanted]


def test_a_compressed_file_is_not_opened_again_for_what_stands_there_once(tmp_path: Path) -> None:
    (tmp_path / "a.log.gz").write_bytes(gzip.compress(b"usual\n" * 50 + b"the odd one\n" + b"usual\n" * 50))
    sources = [Source(file="a.log.gz", size=100, role=SourceRole.MERGED)]
    passed = survey(tmp_path, sources, Matcher(load_bank()))
    (tmp_path / "a.log.gz").unlink()
    kinds = {shape_of(blur(b"the odd one"))}
    assert list(lines_of_kinds(tmp_path, sources, passed.summaries, kinds)) == [("a.log.gz", 51)]


@pytest.mark.parametrize(("writers", "is_shown"), [(range(12, 16), True), (range(13, 14), False)])
def test_what_one_rank_alone_of_a_lost_host_wrote_is_no_sign_of_the_host(
    tmp_path: Path, writers: range, is_shown: bool
) -> None:
    def said(rank: int) -> str:
        odd = "".join(f"{clock(at)} INFO pool: page {at} moved\n" for at in (20, 25, 30) if rank in writers)
        return steps(10) + odd + steps(20, first=11, at=31)

    def node(host: int) -> str:
        ranks = range(4 * host, 4 * host + 4)
        lines = [f"[rank{rank}]: {line}" for rank in ranks for line in said(rank).splitlines()]
        return "\n".join(sorted(lines, key=lambda line: line.split(": ")[1][:23])) + "\n"

    files = {f"node-{host}.log": node(host) for host in range(6)}
    lost = f"{clock(95)} srun: error: Node failure on node-3\n"
    verdict = judged(tmp_path, {**files, "slurm-1.out": lost})
    assert verdict.verdict.culprits.hosts == ("node-3",)
    assert any("page" in line for line in indicated(verdict, tmp_path)) is is_shown


def test_a_label_without_words_is_no_sign(tmp_path: Path) -> None:
    def node(host: int) -> str:
        ended = "" if host else f"{clock(61)} ERROR stopping\n{OOM}\nmore\n\n"
        text = steps(30) + ended
        return "".join(f"trainer-{host} main peer={host} {line}\n" for line in text.split("\n")[:-1])

    files = {f"pod-{host}.log": node(host) for host in range(3)}
    lines = indicated(judged(tmp_path, files), tmp_path)
    assert any("OutOfMemory" in line for line in lines)
    assert not any(line.rstrip().endswith("peer=0") for line in lines)


def test_the_machine_of_the_last_rank_which_reports_for_all_is_no_odd_one(tmp_path: Path) -> None:
    files = {}
    for host in range(6):
        own = [
            f"[rank{4 * host + at}] {clock(10 * step + 2)} INFO arena: block {step}{at} cut afresh\n"
            for step in range(20, 40)
            for at in range(4)
            if host == 2
        ]
        told = [
            f"[rank23] {clock(10 * step + 1)} INFO report {word} of all at {step}: {step}.5\n"
            for step in range(1, 40)
            for word in ("loss", "pace", "norm", "heat", "load")
            if host == 5
        ]
        every = [
            f"[rank{4 * host + at}] {clock(10 * step)} INFO step {step} loss 2.1\n"
            for step in range(1, 40)
            for at in range(4)
        ]
        files[f"m{host}.log"] = "".join(sorted(own + told + every, key=lambda line: line.split("] ", 1)[1]))
    files["slurm-9.out"] = "srun: error: Node failure on m2\n"
    lines = indicated(judged(tmp_path, files), tmp_path)
    assert sum("cut afresh" in line for line in lines) == 80
    assert not any("report loss" in line for line in lines)


def test_the_host_of_the_one_rank_that_complains_is_named_in_a_job_on_one_machine(tmp_path: Path) -> None:
    files = {
        f"rank{rank}.log": "".join(
            f"2026-03-01 08:{step // 60:02d}:{step % 60:02d} tr-04 rank={rank} INFO step {step}/900 loss 2\n"
            for step in range(1, 81)
        )
        for rank in range(4)
    }
    files["rank3.log"] += "2026-03-01 08:01:21 tr-04 rank=3 ERROR tablet 118 was refused its lease\n"
    verdict = judged(tmp_path, files).verdict
    assert verdict.failure_type == "unknown"
    assert (verdict.culprits.ranks, verdict.culprits.hosts) == ((3,), ("tr-04",))
