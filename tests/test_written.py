"""Files are written in one step: whole, or as they were."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from logtriage import cache
from logtriage.apps.cli import main
from logtriage.written import write


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """From now on a file can be made, but holds nothing."""
    opened = os.fdopen

    class Full:
        def __init__(self, descriptor: int) -> None:
            self.file = opened(descriptor, "wb")

        def __enter__(self) -> Full:
            return self

        def __exit__(self, *_: object) -> None:
            self.file.close()

        def write(self, _: bytes) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr("logtriage.written.os.fdopen", lambda descriptor, _: Full(descriptor))
        yield


@pytest.mark.usefixtures("full_disk")
def test_on_a_full_disk_what_was_there_stays_and_nothing_else_comes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logs, out = tmp_path / "logs", tmp_path / "out"
    logs.mkdir()
    out.mkdir()
    (logs / "rank0.log").write_text("ValueError: x\n")
    for name in ("v.json", "m.prom", "d.jsonl"):
        (out / name).write_text("before")
    for command in (
        ["triage", "--offline", "--no-history", "--quiet", "--json", str(out / "v.json"), str(logs)],
        ["metrics", "--output", str(out / "m.prom")],
        ["memory", "export", str(out / "d.jsonl")],
        ["schema", str(out / "new.json")],
    ):
        assert main(command) == 1
        assert "/out/" in (said := capsys.readouterr().err) and "No space left on device" in said
    assert sorted(path.name for path in out.iterdir()) == ["d.jsonl", "m.prom", "v.json"]
    assert {path.read_text() for path in out.iterdir()} == {"before"}


@pytest.mark.usefixtures("full_disk")
def test_a_cache_on_a_full_disk_holds_no_parts(tmp_path: Path) -> None:
    cache.keep(tmp_path / "bank-1.pickle", b"content")
    assert not list(tmp_path.iterdir())


def test_a_file_keeps_its_mode_and_a_link_its_target(tmp_path: Path) -> None:
    file, link, new = tmp_path / "file", tmp_path / "link", tmp_path / "new"
    file.write_text("before")
    file.chmod(0o640)
    link.symlink_to(file)
    write(link, "after")
    write(new, b"content")
    assert link.is_symlink() and file.read_text() == "after" and file.stat().st_mode & 0o777 == 0o640
    plain = tmp_path / "plain"
    plain.write_text("")
    assert new.stat().st_mode == plain.stat().st_mode
    write(new, b"content", 0o600)
    assert new.stat().st_mode & 0o777 == 0o600


def test_a_pipe_is_written_to_and_stays_one(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writing = threading.Thread(target=write, args=(pipe, "text"))
    writing.start()
    assert pipe.read_text() == "text"
    writing.join()
    assert pipe.is_fifo() and [path.name for path in tmp_path.iterdir()] == ["pipe"]


def test_a_file_in_a_folder_that_takes_no_others_is_written_as_it_lies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def closed(**_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", "/part")

    monkeypatch.setattr("logtriage.written.tempfile.mkstemp", closed)
    write(tmp_path / "file", "text")
    assert (tmp_path / "file").read_text() == "text"
    with pytest.raises(OSError, match="file/below"):
        write(tmp_path / "file" / "below", "text")
