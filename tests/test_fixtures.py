"""Every shipped job is judged as its label says, and what a verdict cites is really there."""

from __future__ import annotations

import gzip
import tarfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
import zstandard

from logtriage import triage
from logtriage.report.document import CitedLine, Verdict
from logtriage.taxonomy import taxonomy

FIXTURES = Path(__file__).parent.parent / "fixtures"
JOBS = sorted(path.parent for path in FIXTURES.glob("*/truth.yaml"))

each_job = pytest.mark.parametrize("job", JOBS, ids=lambda job: job.name)


@cache
def verdict_on(job: Path) -> Verdict:
    return triage(job / "logs", offline=True)


def truth_of(job: Path) -> dict[str, Any]:
    truth: dict[str, Any] = yaml.safe_load((job / "truth.yaml").read_text(encoding="utf-8"))
    return truth


def content(root: Path, file: str) -> bytes:
    """The decompressed bytes of a cited file, read without the product's own reader."""
    path = root / file
    if not path.is_file():  # a member of an archive: ARCHIVE/MEMBER
        archive = next(parent for parent in path.parents if parent.is_file())
        with tarfile.open(archive) as members:
            member = members.extractfile(str(path.relative_to(archive)))
            assert member is not None
            return member.read()
    data = path.read_bytes()
    if data.startswith(b"\x1f\x8b"):
        return gzip.decompress(data)
    if data.startswith(b"\x28\xb5\x2f\xfd"):
        with zstandard.ZstdDecompressor().stream_reader(data) as stream:
            return stream.read()
    return data


def test_jobs_are_shipped() -> None:
    assert JOBS, "no fixtures/*/truth.yaml"


@each_job
def test_the_failure_type_is_the_label(job: Path) -> None:
    truth = truth_of(job)
    body = verdict_on(job).verdict
    assert truth["failure_type"] in taxonomy()
    assert body.failure_type in {truth["failure_type"], *truth.get("also_acceptable", ())}
    assert body.action == taxonomy()[body.failure_type].action


@each_job
def test_a_telling_line_is_among_the_first_three(job: Path) -> None:
    telling = [(each["file"], each["contains"]) for each in truth_of(job)["evidence"]]
    cited = verdict_on(job).verdict.evidence[:3]
    assert any(line.file == file and words in line.text for file, words in telling for line in cited), cited


@each_job
def test_the_culprits_are_those_of_the_label(job: Path) -> None:
    truth = truth_of(job)
    culprits = verdict_on(job).verdict.culprits
    if "culprit_ranks" in truth:
        assert list(culprits.ranks) == truth["culprit_ranks"]
    if "culprit_hosts" in truth:
        assert list(culprits.hosts) == truth["culprit_hosts"]


@each_job
def test_every_cited_line_is_there(job: Path) -> None:
    verdict = verdict_on(job)
    cited: list[CitedLine] = list(verdict.verdict.evidence)
    cited += [line for each in verdict.verdict.alternatives for line in each.evidence]
    cited += [line for each in verdict.attempts for line in each.evidence]
    assert cited
    for line in cited:
        data = content(job / "logs", line.file)
        assert data.split(b"\n")[line.line - 1].decode("utf-8", "replace") == line.text
        assert data[: line.offset].count(b"\n") == line.line - 1
        assert line.offset == 0 or data[line.offset - 1 : line.offset] == b"\n"
    places = [(each.file, each.line) for each in (*verdict.symptoms, *verdict.indications)]
    places += [(each.file, each.line) for each in verdict.timeline if each.file and each.line]
    for file, number in places:
        assert content(job / "logs", file).split(b"\n")[number - 1].strip(), f"{file}:{number} is empty"


@each_job
def test_the_same_job_gives_the_same_verdict(job: Path) -> None:
    again = triage(job / "logs", offline=True, workers=2).to_dict()
    first = verdict_on(job).to_dict()
    assert {**again, "timing": None} == {**first, "timing": None}


def test_logs_that_differ_in_a_number_alone_have_ids_of_their_own(tmp_path: Path) -> None:
    ids = set()
    for xid in (31, 79):
        log = tmp_path / str(xid) / "kern.log"
        log.parent.mkdir()
        log.write_text(f"NVRM: Xid (PCI:0000:c1:00): {xid}, pid=41, name=python, and more\n")
        ids.add(triage(log.parent, offline=True).id)
    assert len(ids) == 2


def test_a_rank_that_its_watchdog_ended_is_not_blamed_for_a_lost_gpu(tmp_path: Path) -> None:
    (tmp_path / "dmesg-node-7.log").write_text(
        "2026-03-14T02:18:32,0+00:00 NVRM: Xid (PCI:0000:c1:00): 79, pid=44, GPU has fallen off the bus\n"
    )
    waiting = "".join(
        f"[rank{rank}]:[E314 02:28:33.000000000 ProcessGroupNCCL.cpp:683] [Rank {rank}] Watchdog caught "
        "collective operation timeout: WorkNCCL(SeqNum=9, OpType=ALLREDUCE, NumelIn=4, NumelOut=4, "
        "Timeout(ms)=600000) ran for 600031 milliseconds before timing out.\n"
        for rank in (0, 1, 3)
    )
    end = (
        "E0314 02:28:35.000000 40 torch/distributed/elastic/multiprocessing/api.py:984] "
        "failed (exitcode: -6) local_rank: 1 (pid: 43) of binary: /usr/bin/python3\n"
    )
    (tmp_path / "job.log").write_text("[rank2]: step 9 of 90\n" + waiting + end)
    verdict = triage(tmp_path, offline=True).verdict
    assert verdict.failure_type == "gpu.fell_off_bus"
    assert verdict.culprits.hosts == ("node-7",)
    assert verdict.culprits.ranks == ()
