"""Jobs made by hand, for tests of what is found in them: readings in memory and folders on disk."""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest

import logtriage.pipeline as pipeline
import logtriage.rulebank.bank as bank_module
from logtriage.intake.layout import learn_layout
from logtriage.intake.lines import LineReader
from logtriage.intake.reading import Reading
from logtriage.localize.findings import Findings, find
from logtriage.localize.scene import Scene, build_scene
from logtriage.model import Source, SourceRole
from logtriage.report.document import CitedLine, Verdict
from logtriage.rulebank.bank import Bank, load_bank
from logtriage.rulebank.matcher import Matcher
from logtriage.taxonomy import shipped


@cache
def bank() -> Bank:
    return load_bank()


@cache
def matcher() -> Matcher:
    return Matcher(bank())


def reading(
    file: str,
    text: str,
    role: SourceRole = SourceRole.MERGED,
    *,
    rank: int | None = None,
    local_rank: int | None = None,
    host: str | None = None,
    attempt: int | None = None,
) -> Reading:
    """A file that was read whole."""
    data = text.encode()
    source = Source(file, len(data), role, rank, local_rank, host=host, attempt=attempt)
    reader = LineReader(source, learn_layout(source, [data], year=2026))
    return Reading(source, tuple(reader.read_block(data, 1, 0)), True)


def of_rank(rank: int, text: str, *, host: str | None = None, attempt: int | None = None) -> Reading:
    return reading(f"rank{rank}.log", text, SourceRole.WORKER, rank=rank, host=host, attempt=attempt)


def scene(*readings: Reading) -> Scene:
    return build_scene(readings, matcher())


def findings(*readings: Reading) -> Findings:
    return find(scene(*readings), bank())


def clock(seconds: float, start: int = 8 * 3600) -> str:
    """`2026-01-31 08:00:07,000` for 7."""
    whole, milli = divmod(round((start + seconds) * 1000), 1000)
    return f"2026-01-31 {whole // 3600:02d}:{whole // 60 % 60:02d}:{whole % 60:02d},{milli:03d}"


def steps(count: int, *, first: int = 1, at: float = 0.0, every: float = 2.0) -> str:
    """Dated lines of healthy progress."""
    return "".join(
        f"{clock(at + every * number)} INFO step {first + number} loss 2.{number % 10}5 lr 1e-4\n"
        for number in range(count)
    )


def job(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    """A folder of logs."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


WATCHDOG = (
    "[rank{rank}]:[E131 08:30:0{rank}.100000000 ProcessGroupNCCL.cpp:616] [Rank {rank}] Watchdog caught "
    "collective operation timeout: WorkNCCL(SeqNum=9, OpType={op}, NumelIn=4, NumelOut=4, "
    "Timeout(ms)=600000) ran for 600012 milliseconds before timing out.\n"
)
HARMLESS = (
    "[W131 08:00:00.000000000 socket.cpp:755] [c10d] The hostname of the client socket cannot be retrieved. "
    "err=-3\n"
    "UserWarning: The given NumPy array is not writable, and PyTorch does not support non-writable tensors.\n"
    " iteration 7/ 99 | number of skipped iterations:   0 | number of nan iterations:   0 | loss: 2.1 |\n"
    "INFO failed_steps=0 errors=0 timeout=600 fault_tolerance=enabled max_retries=3\n"
    "INFO registering signal handlers for SIGTERM and SIGUSR1\n"
)  # fmt: skip


def behind(label: str, text: str) -> str:
    """Each line of a text behind the label of its writer."""
    return "".join(f"{label}{line}\n" for line in text.splitlines())


def traceback(error: str, function: str = "main", module: str = "/app/train.py") -> str:
    return (
        f'Traceback (most recent call last):\n  File "{module}", line 7, in {function}\n    run(x)\n{error}\n'
    )


@contextmanager
def bank_read_once() -> Iterator[None]:
    """Within this, no triage reads the shipped rules anew."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bank_module, "load_bank", lambda extra=(): bank())
        yield


def judged(folder: Path, files: Mapping[str, str | bytes]) -> Verdict:
    """The verdict on a job with these files, whose every cited line was checked to be there."""
    verdict = pipeline.triage(job(folder, files), offline=True)
    check_cited(verdict, {name: decompressed(name, content) for name, content in files.items()})
    return verdict


def place(folder: Path, files: Mapping[str, str | bytes]) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Who is blamed for what happened to a job with these files: ranks and hosts."""
    culprits = judged(folder, files).verdict.culprits
    return culprits.ranks, culprits.hosts


def decompressed(name: str, content: str | bytes) -> bytes:
    data = content.encode() if isinstance(content, str) else content
    return gzip.decompress(data) if name.endswith(".gz") and not name.endswith(".tar.gz") else data


def cited_lines(verdict: Verdict) -> Iterable[CitedLine]:
    yield from verdict.verdict.evidence
    for each in verdict.verdict.alternatives:
        yield from each.evidence
    for attempt in verdict.attempts:
        yield from attempt.evidence


def check_cited(verdict: Verdict, files: Mapping[str, bytes]) -> None:
    """No cited line is invented: file, line number, offset and text are those of the input."""
    for cited in cited_lines(verdict):
        data = files[cited.file]
        assert data[: cited.offset].count(b"\n") == cited.line - 1
        assert cited.offset == 0 or data[cited.offset - 1 : cited.offset] == b"\n"
        raw = data[cited.offset :].split(b"\n")[0]
        assert raw.rstrip(b"\r\n").decode("utf-8", "replace") == cited.text
    places = [
        *((each.file, each.line) for each in verdict.symptoms),
        *((each.file, each.line) for each in verdict.indications),
        *((each.file, each.line) for each in verdict.timeline),
        *((each.file, each.line) for each in verdict.verdict.chain),
    ]
    for file, line in places:
        if file is not None and line is not None:
            assert 1 <= line <= len(files[file].split(b"\n"))


def first(verdict: Verdict) -> tuple[str, str]:
    evidence = verdict.verdict.evidence[0]
    return evidence.file, evidence.text


def copied_bank(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small bank of its own in a folder, in place of the shipped one."""
    rules = folder / "rules"
    rules.mkdir()
    for name in ("taxonomy.yaml", "explains.yaml", "numerics.yaml"):
        shutil.copy(shipped("rules") / name, rules / name)
    monkeypatch.setattr(bank_module, "shipped", lambda _: rules)
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
    return rules
