"""Of a compressed log, close reading gets what the pass kept, and it is what stands there."""

from __future__ import annotations

import gzip
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logtriage.examination import localise
from logtriage.intake import reading
from logtriage.intake.folder import discover
from logtriage.mining import clippings
from logtriage.mining.clippings import Clipper
from logtriage.mining.summary import Ends, Summary
from logtriage.mining.survey import survey
from logtriage.pipeline import triage
from logtriage.rulebank.bank import load_bank
from logtriage.rulebank.matcher import Matcher

BANK = load_bank()
MATCHER = Matcher(BANK)


def a_log(at: int) -> bytes:
    """Lines that hardly compress; the cause stands at the share `at` of them, in percent."""
    chance = random.Random(at)
    lines = [f"step {step} digest {chance.randbytes(40).hex()}" for step in range(40_000)]
    lines[len(lines) * at // 100] = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
    return "\n".join(lines).encode() + b"\n"


@given(st.data())
@settings(max_examples=100, deadline=None)
def test_what_was_kept_is_what_stands_there(data: st.DataObject) -> None:
    with pytest.MonkeyPatch.context() as patch:
        for name in ("LEAST_BYTES", "MOST_BYTES"):
            patch.setattr(clippings, name, data.draw(st.integers(48, 400)))
        clipper = Clipper(1)
    whole = b""
    for _ in range(data.draw(st.integers(1, 6))):
        block = data.draw(st.binary(min_size=1, max_size=200))
        offsets = data.draw(st.lists(st.integers(0, len(block) - 1), max_size=20).map(sorted))
        found = Summary(hits={("a.rule", ()): Ends(len(offsets), [(1, offset) for offset in offsets], [])})
        clipper.add(block, 0, found)
        whole += block
    kept = clipper.clippings()
    assert kept.size == len(whole)
    for start, stretch in kept.stretches:
        assert whole[start : start + len(stretch)] == stretch
    span = data.draw(st.tuples(st.integers(0, len(whole)), st.integers(0, len(whole) + 9)))
    held = kept.ranges([span])
    assert held is None or held == [whole[span[0] : span[1]]]


def test_bytes_that_were_left_out_of_a_line_are_not_bridged() -> None:
    clipper = Clipper(1)
    clipper.add(b"head" + b"tail\n", 1_000, Summary())
    clipper.add(b"next\n", 0, Summary())
    kept = clipper.clippings()
    assert kept.ranges([(1_009, 1_014)]) == [b"next\n"]
    assert kept.ranges([(0, 9)]) is None and kept.ranges([(1_000, 1_014)]) is None


@pytest.mark.parametrize("at", [2, 55, 100 - 1])
def test_a_compressed_log_that_went_after_the_pass_is_still_read_closely(tmp_path: Path, at: int) -> None:
    path = tmp_path / "rank_0.log.gz"
    path.write_bytes(gzip.compress(a_log(at), 1))
    inventory = discover(tmp_path)
    passed = survey(inventory.root, inventory.sources, MATCHER, workers=1)
    path.unlink()
    (found,) = localise(inventory, passed, BANK, MATCHER).scene.readings
    number = 40_000 * at // 100 + 1
    assert any(line.number == number and "out of memory" in line.text for line in found.lines)
    assert found.lines[0].number == 1 and found.lines[-1].number == 40_000


@pytest.mark.parametrize("at", [2, 55])
def test_the_verdict_is_that_of_the_plain_log(tmp_path: Path, at: int) -> None:
    (tmp_path / "plain").mkdir()
    (tmp_path / "packed").mkdir()
    (tmp_path / "plain" / "rank_0.log").write_bytes(a_log(at))
    (tmp_path / "packed" / "rank_0.log.gz").write_bytes(gzip.compress(a_log(at), 1))
    plain, packed = (triage(tmp_path / name, offline=True, workers=1).verdict for name in ("plain", "packed"))
    assert plain.failure_type == "cuda.out_of_memory"
    assert [(each.line, each.text) for each in plain.evidence] == [
        (each.line, each.text) for each in packed.evidence
    ]
    assert (plain.failure_type, plain.confidence) == (packed.failure_type, packed.confidence)


def test_a_large_compressed_log_is_not_decompressed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many places there are: those that tell most were kept, and are read."""
    lines = a_log(55).decode().splitlines()
    for at in range(150, 39_000, 100):
        lines[at] = f"NCCL WARN Net : Connection closed by remote peer 10.0.0.{at % 7}<4{at:04}>"
    path = tmp_path / "rank_0.log.gz"
    path.write_bytes(gzip.compress("\n".join(lines).encode() + b"\n", 1))
    inventory = discover(tmp_path)
    monkeypatch.setattr(clippings, "MOST_BYTES", 400 << 10)
    passed = survey(inventory.root, inventory.sources, MATCHER, workers=1)
    monkeypatch.setattr(reading, "AGAIN_BYTES", 1 << 20)
    path.unlink()
    (found,) = localise(inventory, passed, BANK, MATCHER).scene.readings
    assert any(line.number == 22_001 and "out of memory" in line.text for line in found.lines)
    assert found.lines[0].number == 1 and found.lines[-1].number == 40_000
    assert sum("NCCL WARN" in line.text for line in found.lines) > 8
