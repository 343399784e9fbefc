"""How much of a job's files is read closely."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from logtriage.intake import reading
from logtriage.intake.reading import Extent, read_closely
from logtriage.model import Source, SourceRole

XID = b"[  812.000000] NVRM: Xid (PCI:0000:3a:00): 79, GPU has fallen off the bus.\n"


def kernel_log(folder: Path, host: str) -> tuple[Source, Extent]:
    lines = [b"[  %d.000000] usb 1-1: device %d answered\n" % (at, at) for at in range(100, 220)]
    above = b"".join(lines[:60])
    data = above + XID + b"".join(lines[60:])
    (folder / f"{host}.dmesg").write_bytes(data)
    source = Source(f"{host}.dmesg", len(data), SourceRole.KERNEL, host=host)
    return source, Extent(len(data), 121, ((61, len(above)),))


def rank_log(folder: Path, rank: int) -> tuple[Source, Extent]:
    data = b"".join(b"2026-01-05 10:00:00 step %d loss 2.5\n" % step for step in range(300))
    (folder / f"rank{rank}.log").write_bytes(data)
    return Source(f"rank{rank}.log", len(data), SourceRole.WORKER, rank=rank), Extent(len(data), 300, ())


@pytest.mark.parametrize(("ranks", "whole"), [(10, True), (80, False)])
def test_among_many_ranks_logs_of_hosts_are_read_where_something_was_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ranks: int, whole: bool
) -> None:
    monkeypatch.setattr(reading, "WHOLE_BYTES", 8 << 10)
    monkeypatch.setattr(reading, "JOB_BYTES", 80 << 10)
    monkeypatch.setattr(reading, "WINDOWS_BYTES", 64 << 10)
    monkeypatch.setattr(reading, "LEAST_WINDOWS", 2 << 10)
    files = [rank_log(tmp_path, rank) for rank in range(ranks)]
    files += [kernel_log(tmp_path, f"cn-{host}") for host in range(8)]
    found = read_closely(tmp_path, [source for source, _ in files], [extent for _, extent in files])
    of_hosts = [each for each in found if each.source.role is SourceRole.KERNEL]
    assert {each.whole for each in of_hosts} == {whole}
    assert all(any("fallen off" in line.text for line in each.lines) for each in of_hosts)
    assert not any(each.whole for each in found if each.source.role is SourceRole.WORKER)


@pytest.mark.parametrize(("ranks", "is_less"), [(4, False), (30, True)])
def test_among_many_ranks_older_parts_of_rotated_logs_are_read_less_closely(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ranks: int, is_less: bool
) -> None:
    monkeypatch.setattr(reading, "WHOLE_BYTES", 4 << 10)
    files = []
    for rank in range(ranks):
        for part in (3, 2, 1, 0):
            source, extent = rank_log(tmp_path, rank * 10 + part)
            family = f"train{rank}.log"
            places = ((150, 37 * 150),) if part == 2 else ()
            source = replace(source, family=family, part=-part, rank=rank)
            files.append((source, replace(extent, places=places)))
    monkeypatch.setattr(reading, "LEAST_WINDOWS", 8 << 10)
    monkeypatch.setattr(reading, "WINDOWS_BYTES", 0)
    found = read_closely(tmp_path, [source for source, _ in files], [extent for _, extent in files])
    first, middle, other, last = found[:4]
    assert last.lines[-1].number == 300 and first.lines[0].number == 1
    assert len(last.lines) > len(first.lines) > len(other.lines) if is_less else True
    assert (len(other.lines) * 3 < len(last.lines)) is is_less
    assert any(line.number == 150 for line in middle.lines)


def test_of_very_many_files_less_of_each_is_read_but_never_next_to_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "WHOLE_BYTES", 4 << 10)
    monkeypatch.setattr(reading, "LEASTS_BYTES", 160 << 10)
    monkeypatch.setattr(reading, "WINDOWS_BYTES", 0)
    files = [rank_log(tmp_path, rank) for rank in range(120)]

    def bytes_each(count: int) -> float:
        some = files[:count]
        made = reading.chosen(tmp_path, [source for source, _ in some], [extent for _, extent in some])
        return sum(each.size for each in made) / count

    few, more, many = map(bytes_each, (20, 32, 120))
    assert few > more > many > reading.LEAST_OF_ALL / 3
