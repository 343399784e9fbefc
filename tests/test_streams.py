"""Streams and pieces: what a reader of a compressed, broken or hostile log gets."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import random
import tarfile
import tempfile
import zipfile
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from logtriage.intake import cuts
from logtriage.intake.compression import compression_of, decompressed, wide_encoding
from logtriage.intake.cuts import KEPT_END, LONGEST_LINE, cut, plain_blocks
from logtriage.intake.streams import (
    Piece,
    StreamFault,
    blocks,
    blocks_between,
    pieces,
    read_ranges,
    stream,
)
from logtriage.model import Source, SourceRole

TEXT = b"".join(b"step %d loss 2.%04d\n" % (step, step % 7919) for step in range(60_000))


def source(file: str) -> Source:
    return Source(file=file, size=0, role=SourceRole.MERGED)


def all_pieces(root: Path, file: str, size: int = 1 << 20) -> tuple[list[Piece], str | None]:
    got: list[Piece] = []
    try:
        for piece in pieces(root, source(file), size=size):
            got.append(piece)
    except StreamFault as fault:
        return got, str(fault)
    return got, None


def joined(got: list[Piece]) -> bytes:
    return b"".join(piece.data for piece in got)


def zstd(data: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(data)


def xz(data: bytes) -> bytes:
    return lzma.compress(data, preset=0)


COMPRESSORS = {"gzip": gzip.compress, "zstd": zstd, "xz": xz, "bzip2": bz2.compress}


@pytest.mark.parametrize("kind", COMPRESSORS)
def test_compressed_log_reads_like_the_plain_one_whatever_its_name(tmp_path: Path, kind: str) -> None:
    (tmp_path / "rank0.log").write_bytes(COMPRESSORS[kind](TEXT))
    got, fault = all_pieces(tmp_path, "rank0.log")
    assert joined(got) == TEXT and fault is None and len(got) > 1


@pytest.mark.parametrize("kind", COMPRESSORS)
def test_streams_written_one_after_the_other_are_one_log(tmp_path: Path, kind: str) -> None:
    packed = COMPRESSORS[kind]
    (tmp_path / "x").write_bytes(packed(b"first\n") + packed(b"second\n") + b"\0" * 300)
    got, fault = all_pieces(tmp_path, "x")
    assert joined(got) == b"first\nsecond\n" and fault is None


@pytest.mark.parametrize("kind", COMPRESSORS)
def test_cut_archive_gives_what_is_there_and_then_says_so(tmp_path: Path, kind: str) -> None:
    noise = os.urandom(300_000).hex().encode() + b"\n"
    packed = COMPRESSORS[kind](TEXT + noise)
    (tmp_path / "x.gz").write_bytes(packed[: len(packed) * 3 // 4])
    got, fault = all_pieces(tmp_path, "x.gz")
    assert fault is not None and "cut off" in fault
    assert (TEXT + noise).startswith(joined(got)[:-1]) and len(joined(got)) > 1000


@pytest.mark.parametrize("kind", COMPRESSORS)
def test_broken_archive_is_a_fault_and_not_a_crash(tmp_path: Path, kind: str) -> None:
    packed = bytearray(COMPRESSORS[kind](TEXT))
    middle = len(packed) // 2
    packed[middle : middle + 64] = os.urandom(64)
    (tmp_path / "x").write_bytes(bytes(packed))
    got, fault = all_pieces(tmp_path, "x")
    assert fault is not None or joined(got) != b""


frames = st.lists(
    st.tuples(
        st.one_of(
            st.binary(max_size=300),
            st.integers(0, 400_000).map(lambda size: b"loss 1.5\n" * (size // 9)),
            st.integers(1, 200_000).map(lambda seed: random.Random(seed).randbytes(seed)),
        ),
        st.booleans(),
        st.booleans(),
        st.booleans(),
    ),
    min_size=1,
    max_size=3,
)


def zstd_frame(data: bytes, has_checksum: bool, has_size: bool, follows_skipped: bool) -> bytes:
    options = {"write_checksum": has_checksum, "write_content_size": has_size}
    if has_size:
        frame = zstandard.ZstdCompressor(**options).compress(data)
    else:
        stream = zstandard.ZstdCompressor(**options).compressobj()
        frame = stream.compress(data) + stream.flush()
    return (b"\x5a\x2a\x4d\x18\x05\0\0\0skips" if follows_skipped else b"") + frame


@settings(max_examples=150, deadline=None)
@given(frames, st.floats(0, 1), st.integers(1, 70_000))
def test_zstd_frames_of_all_kinds_are_read_up_to_where_the_file_is_cut(
    made: list[tuple[bytes, bool, bool, bool]], share: float, feed: int
) -> None:
    stored = b"".join(zstd_frame(*each) for each in made)
    whole = b"".join(data for data, *_ in made)

    def read(part: bytes) -> tuple[bytes, str]:
        got = b""
        try:
            for chunk in decompressed([part[at : at + feed] for at in range(0, len(part), feed)]):
                got += chunk
        except StreamFault as fault:
            return got, str(fault)
        return got, ""

    assert read(stored) == (whole, "")
    cut = stored[: int(len(stored) * share)]
    if compression_of(cut) == "zstd":
        got, fault = read(cut)
        assert whole.startswith(got)
        assert fault == "" or "cut off" in fault
        assert (
            fault
            or got == whole
            or any(got == b"".join(data for data, *_ in made[:number]) for number in range(len(made)))
        )


def test_what_stands_before_a_broken_zstd_block_is_given() -> None:
    noise = random.Random(5).randbytes(3 << 20).hex().encode()
    packed = bytearray(zstandard.ZstdCompressor(write_checksum=True).compress(noise))
    broken = len(packed) * 4 // 5
    packed[broken : broken + 4_000] = bytes(4_000)
    got = b""
    with pytest.raises(StreamFault):
        for chunk in decompressed([bytes(packed)]):
            got += chunk
    assert noise[: 4 << 20] == got[: 4 << 20]


def test_trailing_garbage_after_gzip_is_ignored(tmp_path: Path) -> None:
    (tmp_path / "x.gz").write_bytes(gzip.compress(b"all of it\n") + b"garbage")
    assert all_pieces(tmp_path, "x.gz") == ([Piece(b"all of it\n", 0, 1)], None)


def test_bomb_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("logtriage.intake.compression.GROWTH_FLOOR", 1 << 20)
    bomb = zstd(b"\0" * (256 << 20))
    given = 0
    with pytest.raises(StreamFault, match="times over"):
        for chunk in decompressed([bomb]):
            given += len(chunk)
    assert given < 100 << 20


@pytest.mark.parametrize("codec", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_wide_text_keeps_its_line_numbers(tmp_path: Path, codec: str) -> None:
    text = "".join(f"line {number} – größer\n" for number in range(1, 3000))
    (tmp_path / "x.log").write_bytes(text.encode(codec))
    got, fault = all_pieces(tmp_path, "x.log", size=4096)
    assert fault is None and joined(got).decode() == text
    last = got[-1]
    assert last.data.decode().startswith(f"line {last.first_line} ")


def test_holes_of_nuls_and_broken_utf8_pass_through(tmp_path: Path) -> None:
    data = b"before\n" + b"\0" * 5000 + b"\xff\xfe broken \x80\nafter\n"
    (tmp_path / "x.log").write_bytes(data)
    assert joined(all_pieces(tmp_path, "x.log", size=64)[0]) == data


def test_endless_line_is_given_by_its_ends(tmp_path: Path) -> None:
    longest = b"A" * LONGEST_LINE + b"M" * 700_000 + b"Z" * KEPT_END
    (tmp_path / "x.log").write_bytes(b"one\ntwo\n" + longest + b"\nfour\n")
    got, _ = all_pieces(tmp_path, "x.log", size=16 << 20)
    cut = next(piece for piece in got if piece.elided)
    assert cut.first_line == 3 and cut.offset == 8
    assert cut.data == b"A" * KEPT_END + b"Z" * KEPT_END + b"\n"
    assert len(cut.data) + cut.elided == len(longest) + 1
    after = got[-1]
    assert after.data == b"four\n" and after.first_line == 4 and after.offset == 8 + len(longest) + 1
    assert read_ranges(tmp_path, source("x.log"), [(8 + LONGEST_LINE, 8 + LONGEST_LINE + 3)]) == [b"MMM"]


@pytest.mark.parametrize("excess", [-1, 0, 1])
@pytest.mark.parametrize("end", [b"", b"\n"])
@pytest.mark.parametrize("size", [1, LONGEST_LINE + 1, 16 << 20])
def test_only_lines_beyond_the_limit_are_elided(tmp_path: Path, excess: int, end: bytes, size: int) -> None:
    line = b"x" * (LONGEST_LINE + excess)
    (tmp_path / "x.log").write_bytes(line + end)
    got, _ = all_pieces(tmp_path, "x.log", size=size)
    assert sum(len(piece.data) + piece.elided for piece in got) == len(line + end)
    assert any(piece.elided for piece in got) is (excess > 0)


lines_and_noise = st.lists(
    st.one_of(st.binary(max_size=40), st.just(b"\n"), st.just(b"\r\n"), st.just(b"loss 1.5\n")), max_size=60
).map(b"".join)


def is_plain(data: bytes) -> bool:
    return compression_of(data) is None and wide_encoding(data[:4096]) is None


@settings(max_examples=150, deadline=None)
@given(lines_and_noise.filter(is_plain), st.integers(1, 200), st.sampled_from(["", *COMPRESSORS]))
def test_pieces_are_the_stream_cut_at_line_ends(data: bytes, size: int, kind: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "x").write_bytes(COMPRESSORS[kind](data) if kind else data)
        got, fault = all_pieces(root, "x", size=size)
        assert fault is None and joined(got) == data
        seen = b""
        for number, piece in enumerate(got):
            assert piece.data and not piece.elided
            assert piece.offset == len(seen) and piece.first_line == 1 + seen.count(b"\n")
            assert piece.data.endswith(b"\n") or number == len(got) - 1
            assert len(piece.data) <= size or piece.data.count(b"\n", 0, -1) == 0
            seen += piece.data


@settings(max_examples=150, deadline=None)
@given(
    lines_and_noise.filter(is_plain),
    st.lists(st.tuples(st.integers(0, 900), st.integers(0, 900)), max_size=6),
    st.sampled_from(["", *COMPRESSORS]),
)
def test_ranges_agree_with_the_stream(data: bytes, ranges: list[tuple[int, int]], kind: str) -> None:
    wanted = [(min(pair), max(pair)) for pair in ranges]
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "x").write_bytes(COMPRESSORS[kind](data) if kind else data)
        assert read_ranges(root, source("x"), wanted) == [data[start:end] for start, end in wanted]


@settings(max_examples=200, deadline=None)
@given(
    st.binary(max_size=300),
    st.sampled_from([b"", b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd", b"\xfd7zXZ\x00", b"BZh91AY&SY"]),
)
def test_no_bytes_crash_the_reader(data: bytes, magic: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "x").write_bytes(magic + data)
        all_pieces(Path(folder), "x", size=16)


@settings(max_examples=200, deadline=None)
@given(
    lines=st.lists(st.sampled_from([b"", b"a", b"step 1", b"x" * 40]), max_size=30),
    end=st.sampled_from([b"", b"\n"]),
    size=st.integers(1, 120),
    window=st.integers(1, 60),
    bounds=st.tuples(st.integers(0, 400), st.integers(1, 400)),
)
def test_blocks_read_into_their_place_are_those_cut_from_the_stream(
    lines: list[bytes], end: bytes, size: int, window: int, bounds: tuple[int, int]
) -> None:
    data = b"\n".join(lines) + end
    start, stop = bounds[0], bounds[0] + bounds[1]
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patched:
        root = Path(folder)
        (root / "x").write_bytes(data)
        patched.setattr(cuts, "_WINDOW", window)
        seen: list[int] = []
        assert list(blocks(root, source("x"), size, seen.append)) == list(cut(iter([data]), size))
        assert sum(seen) == len(data)
        between = b"".join(block for block, _ in blocks_between(root, source("x"), start, stop, size))
    begins = [0, *(place + 1 for place, sign in enumerate(data) if sign == 10)]
    inside = [place for place in begins if start <= place < min(stop, len(data))]
    behind = next((place for place in begins if place >= stop), len(data))
    assert between == (data[inside[0] : behind] if inside else b"")


def test_an_ordinary_log_is_read_into_its_place_to_its_end(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    log.write_bytes(TEXT + b"the last line has no end")
    reading = plain_blocks(log, 0, None, 300_000, None)
    got = []
    with pytest.raises(StopIteration) as ended:
        while True:
            got.append(next(reading)[0])
    assert ended.value.value is None and b"".join(got) == log.read_bytes() and len(got) > 3


def test_members_of_archives_are_read_and_sought(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "logs.tar", "w") as tar:
        for name, data in (("a/rank0.log", TEXT), ("a/rank1.log.gz", gzip.compress(TEXT))):
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    with zipfile.ZipFile(tmp_path / "logs.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(tmp_path / "logs.tar", "inner.tar")
        archive.writestr("plain.log", TEXT)
    for file in (
        "logs.tar/a/rank0.log",
        "logs.tar/a/rank1.log.gz",
        "logs.zip/plain.log",
        "logs.zip/inner.tar/a/rank0.log",
    ):
        got, fault = all_pieces(tmp_path, file)
        assert (joined(got), fault) == (TEXT, None)
        assert read_ranges(tmp_path, source(file), [(0, 5), (100_000, 100_050)]) == [
            TEXT[:5],
            TEXT[100_000:100_050],
        ]


@pytest.mark.parametrize(
    "file", ["../outside.log", "nothing.log", "/etc/hostname", "folder", "x.log/member", ""]
)
def test_a_file_that_is_none_is_a_clear_fault(tmp_path: Path, file: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "x.log").write_bytes(b"x\n")
    (tmp_path / "outside.log").write_bytes(b"x\n")
    with pytest.raises(StreamFault):
        list(stream(tmp_path / "folder", source(file)))
