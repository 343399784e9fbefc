"""A stream that a thread makes ahead is the same stream, and leaves no thread behind."""

from __future__ import annotations

import gzip
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logtriage.intake.ahead import HELD_CHUNKS, ahead
from logtriage.intake.folder import discover
from logtriage.intake.streams import StreamFault
from logtriage.mining import parts, survey
from logtriage.rulebank.bank import load_bank
from logtriage.rulebank.matcher import Matcher


def threads() -> int:
    return sum(thread.is_alive() for thread in threading.enumerate())


@given(st.lists(st.binary(max_size=9), max_size=40), st.integers(0, 50))
def test_the_chunks_are_the_same_and_an_error_comes_in_its_place(chunks: list[bytes], at: int) -> None:
    def made() -> Iterator[bytes]:
        for number, chunk in enumerate(chunks):
            if number == at:
                raise StreamFault("cut off")
            yield chunk

    before = threads()
    got = []
    fault = ""
    try:
        for chunk in ahead(made()):
            got.append(chunk)
    except StreamFault as error:
        fault = str(error)
    assert got == chunks[:at]
    assert fault == ("cut off" if at < len(chunks) else "")
    assert threads() == before


def test_a_reader_that_goes_early_ends_the_thread_and_no_more_than_some_chunks_are_made() -> None:
    made = []

    def endless() -> Iterator[bytes]:
        while True:
            made.append(None)
            yield b"x"

    before = threads()
    stream = ahead(endless())
    assert next(stream) == b"x"
    time.sleep(0.2)
    assert len(made) <= HELD_CHUNKS + 3
    stream.close()
    assert threads() == before


def test_a_read_that_hangs_is_not_waited_for_once_nobody_wants_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("logtriage.intake.ahead.PATIENCE_SECONDS", 0.1)
    answers = threading.Event()

    def hanging() -> Iterator[bytes]:
        yield b"x"
        answers.wait(30)

    stream = ahead(hanging())
    assert next(stream) == b"x"
    began = time.monotonic()
    stream.close()
    answers.set()
    assert time.monotonic() - began < 10


@pytest.mark.parametrize("cut", [False, True])
def test_a_lone_compressed_log_is_read_ahead_and_found_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cut: bool
) -> None:
    lines = [f"2026-01-05 10:00:00 [rank0] step {at} loss 2.{at % 89}\n" for at in range(60_000)]
    lines[41_000] = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
    packed = gzip.compress("".join(lines).encode(), 1)
    (tmp_path / "rank0.log.gz").write_bytes(packed[: len(packed) * 9 // 10] if cut else packed)
    found = discover(tmp_path)
    matcher = Matcher(load_bank())
    alone = survey.survey(found.root, found.sources, matcher, workers=1)
    threaded = []
    real = parts.blocks

    def spied(*given: object, is_long: bool = False) -> object:
        threaded.append(is_long)
        return real(*given, is_long=is_long)  # type: ignore[arg-type]

    monkeypatch.setattr(parts, "blocks", spied)
    assert survey.survey(found.root, found.sources, matcher, workers=2) == alone
    assert threaded == [True]
    assert bool(alone.unreadable) is cut
