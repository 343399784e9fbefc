"""Jobs made by hand, for tests of what is found in them: readings in memory and folders on disk."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from logtriage.diagnose.offline import Findings, find
from logtriage.intake.layout import learn_layout
from logtriage.intake.lines import LineReader
from logtriage.intake.reading import Reading
from logtriage.localize.scene import Scene, build_scene
from logtriage.model import Source, SourceRole
from logtriage.rulebank.bank import Bank, load_bank
from logtriage.rulebank.matcher import Matcher


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
