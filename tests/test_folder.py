"""What is found in a folder: real archives, links, pipes, odd files, many files."""

from __future__ import annotations

import gzip
import io
import os
import pickle
import random
import socket
import subprocess
import sys
import tarfile
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from growth import grows_evenly
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from logtriage.intake.compression import foreign_compression, is_text
from logtriage.intake.folder import Inventory, NothingReadable, discover
from logtriage.intake.streams import StreamFault, stream
from logtriage.model import SourceRole

LOG = b"2025-01-01 10:00:00 step 1 loss 2.5\n2025-01-01 10:00:01 step 2 loss 2.4\n"


def files(inventory: Inventory) -> list[str]:
    return [source.file for source in inventory.sources]


def reasons(inventory: Inventory) -> dict[str, str]:
    return {one.file: one.reason for one in inventory.unreadable}


def write(root: Path, *names: str, data: bytes = LOG) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)


def tar_of(members: dict[str, bytes], mode: str = "w:gz") -> bytes:
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode=mode) as tar:  # type: ignore[call-overload]
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return held.getvalue()


def test_files_come_in_natural_order_without_hidden_ones(tmp_path: Path) -> None:
    write(tmp_path, "rank10.log", "rank2.log", "rank2.log.1", "a/b.log", ".git/config", ".hidden.log")
    assert files(discover(tmp_path)) == ["a/b.log", "rank2.log.1", "rank2.log", "rank10.log"]


def test_one_file_several_paths_and_a_glob(tmp_path: Path) -> None:
    write(tmp_path, "job/a.log", "job/sub/b.log", "job/c.txt")
    assert files(discover(tmp_path / "job" / "a.log")) == ["a.log"]
    several = discover([tmp_path / "job" / "a.log", str(tmp_path / "job" / "sub")])
    assert files(several) == ["a.log", "sub/b.log"] and several.root == tmp_path / "job"
    assert files(discover(str(tmp_path / "job" / "*.log"))) == ["a.log"]
    assert files(discover(str(tmp_path / "job" / "**" / "*.log"))) == ["a.log", "sub/b.log"]


def test_a_path_that_is_missing_beside_one_that_is_there_is_named(tmp_path: Path) -> None:
    write(tmp_path, "a.log")
    found = discover([tmp_path / "a.log", tmp_path / "gone.log"])
    assert files(found) == ["a.log"] and "no such file" in next(iter(reasons(found).values()))


@pytest.mark.parametrize("name", ["missing", "empty", "only-binary", "missing-*.log"])
def test_nothing_to_read_is_one_clear_line(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    write(tmp_path, "only-binary/model.bin", data=b"\x80\x05" + bytes(range(256)))
    with pytest.raises(NothingReadable) as raised:
        discover(str(tmp_path / name))
    assert "\n" not in str(raised.value) and str(tmp_path / name) in str(raised.value)


def test_empty_files_are_evidence(tmp_path: Path) -> None:
    write(tmp_path, "stderr.log", data=b"")
    assert [(one.file, one.size, one.stream) for one in discover(tmp_path).sources] == [
        ("stderr.log", 0, "stderr")
    ]


def test_standard_input_is_a_source(tmp_path: Path) -> None:
    program = (
        "from logtriage.intake.folder import discover; from logtriage.intake.streams import stream;"
        "found = discover('-'); source = found.sources[0];"
        "print(source.file, len(b''.join(stream(found.root, source))))"
    )
    done = subprocess.run([sys.executable, "-c", program], input=LOG, capture_output=True, check=True)
    assert done.stdout.split() == [b"stdin", str(len(LOG)).encode()]


def test_empty_standard_input_is_nothing_to_read() -> None:
    program = "from logtriage.intake.folder import discover; discover('-')"
    done = subprocess.run([sys.executable, "-c", program], input=b"", capture_output=True)
    assert b"NothingReadable: standard input was empty" in done.stderr


def test_a_store_is_read_through_fsspec() -> None:
    fsspec = pytest.importorskip("fsspec")
    store = fsspec.filesystem("memory")
    for name in ("job/node0/rank0.log", "job/rank1.log", "job/.hidden/x.log"):
        store.pipe_file(f"/{name}", LOG)
    assert files(discover("memory://job")) == ["node0/rank0.log", "rank1.log"]
    assert files(discover("memory://job/rank*.log")) == ["rank1.log"]
    assert files(discover("memory://job/rank1.log")) == ["rank1.log"]
    with pytest.raises(NothingReadable):
        discover("memory://gone")


def test_a_store_without_its_driver_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(NothingReadable, match="pip install fsspec s3fs"):
        discover("s3://bucket/job")


def test_links_out_pipes_and_sockets_are_named_and_never_opened(tmp_path: Path) -> None:
    write(tmp_path, "job/real.log", "secret/password.txt", "job/.data/config.log")
    job = tmp_path / "job"
    (job / "out").symlink_to(tmp_path / "secret")
    (job / "out.txt").symlink_to("../secret/password.txt")
    (job / "loop").symlink_to(job)
    (job / "latest.log").symlink_to("real.log")
    (job / "dead.log").symlink_to("nowhere")
    (job / "mounted.log").symlink_to(".data/config.log")
    os.mkfifo(job / "pipe.log")
    with socket.socket(socket.AF_UNIX) as listener:
        here = Path.cwd()
        os.chdir(job)  # the path of a socket may be 108 bytes long
        try:
            listener.bind("agent.sock")
        finally:
            os.chdir(here)
        found = discover(job)
    assert files(found) == ["mounted.log", "real.log"]
    told = reasons(found)
    assert set(told) == {"out", "out.txt", "dead.log", "pipe.log", "agent.sock"}
    assert (
        "out of the folder" in told["out.txt"]
        and "pipe" in told["pipe.log"]
        and "socket" in told["agent.sock"]
    )


def test_binary_files_are_counted_and_logs_that_are_no_text_are_named(tmp_path: Path) -> None:
    noise = random.Random(1).randbytes(40_000)
    write(tmp_path, "rank0.log")
    write(tmp_path, "rank1.log", "x/trainer.out.1", data=noise)
    write(tmp_path, "weights.bin", "lib.so", data=noise)
    write(tmp_path, "trace.pickle", data=pickle.dumps({"entries": list(range(1000))}))
    with zipfile.ZipFile(tmp_path / "model.pt", "w") as archive:
        archive.writestr("model/data.pkl", pickle.dumps([1]))
        archive.writestr("model/data/0", noise)
    (tmp_path / "torn.pt").write_bytes((tmp_path / "model.pt").read_bytes()[:30_000])
    found = discover(tmp_path)
    assert files(found) == ["rank0.log"] and found.other_files == 5
    assert reasons(found) == {"rank1.log": "not text", "x/trainer.out.1": "not text"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("训练失败：显存不足\n".encode("gb18030") * 50, True),
        ("Größe überschritten\n".encode("latin-1") * 50, True),
        (b"step 1\n" + b"\0" * 4000 + b"step 2\n", True),
        (b"\x1b[31mERROR\x1b[0m \x1b[1mout of memory\x1b[0m\r" * 20, True),
        (b"50%|\x08\x08\x08\x0851%|" * 30, True),
        (random.Random(2).randbytes(5000), False),
        (b"\0" * 3000, False),
        (b"\x7fELF" + b"text " * 100, False),
    ],
)
def test_text_is_told_from_other_bytes(text: bytes, expected: bool) -> None:
    assert is_text(text) is expected


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_archives_are_folders_whatever_their_name(tmp_path: Path, mode: str) -> None:
    packed = gzip.compress(LOG)
    data = tar_of({"job/node0/rank0.log": LOG, "job/rank1.log.gz": packed, "job/w.so": b"\x7fELF\0\0"}, mode)
    write(tmp_path, "bundle", data=data)
    found = discover(tmp_path)
    assert files(found) == ["bundle/job/node0/rank0.log", "bundle/job/rank1.log.gz"]
    assert [b"".join(stream(found.root, one)) for one in found.sources] == [LOG, LOG]
    assert [one.rank for one in found.sources] == [0, 1] and found.other_files == 1


def test_archive_in_an_archive_is_opened_once(tmp_path: Path) -> None:
    third = tar_of({"deep.log": LOG})
    second = tar_of({"rank0.log": LOG, "third.tgz": third})
    with zipfile.ZipFile(tmp_path / "upload.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("second.tgz", second)
        archive.writestr("top.log", LOG)
    found = discover(tmp_path / "upload.zip")
    assert files(found) == ["upload.zip/second.tgz/rank0.log", "upload.zip/top.log"]
    assert [b"".join(stream(found.root, one)) for one in found.sources] == [LOG, LOG]
    assert "archive in an archive" in reasons(found)["upload.zip/second.tgz/third.tgz"]


def test_hostile_members_are_named_and_the_rest_is_read(tmp_path: Path) -> None:
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w:gz") as tar:
        for name, kind, target in (
            ("../../etc/passwd", tarfile.REGTYPE, ""),
            ("etc.txt", tarfile.SYMTYPE, "/etc/passwd"),
            ("null.log", tarfile.CHRTYPE, ""),
            ("good.log", tarfile.REGTYPE, ""),
        ):
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, target
            info.size = len(LOG) if kind == tarfile.REGTYPE else 0
            tar.addfile(info, io.BytesIO(LOG))
    write(tmp_path, "x.tgz", data=held.getvalue())
    found = discover(tmp_path)
    assert files(found) == ["x.tgz/good.log"]
    assert set(reasons(found)) == {"x.tgz/../../etc/passwd", "x.tgz/etc.txt", "x.tgz/null.log"}


def test_too_many_members_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("logtriage.intake.archives.MOST_MEMBERS", 10)
    write(tmp_path, "many.tar", data=tar_of({f"r{number}.log": LOG for number in range(30)}, "w"))
    found = discover(tmp_path)
    assert len(found.sources) == 10 and "more than 10 members" in reasons(found)["many.tar"]


def test_a_bomb_is_said_and_the_rest_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("logtriage.intake.compression.GROWTH_FLOOR", 1 << 20)
    write(tmp_path, "bomb.tgz", data=tar_of({"first.log": LOG, "zeros.log": b"\0" * (40 << 20)}))
    write(tmp_path, "rank0.log")
    found = discover(tmp_path)
    assert "bomb.tgz/first.log" in files(found) and "rank0.log" in files(found)
    assert "times over" in reasons(found)["bomb.tgz"]


def test_cut_archive_still_gives_its_first_members(tmp_path: Path) -> None:
    noise = os.urandom(200_000).hex().encode()
    data = tar_of({"first.log": LOG, "second.log": noise, "third.log": LOG})
    write(tmp_path, "upload.tar.gz", data=data[: len(data) // 2])
    found = discover(tmp_path)
    assert files(found) == ["upload.tar.gz/first.log", "upload.tar.gz/second.log"]
    assert "cut off" in reasons(found)["upload.tar.gz"]
    with pytest.raises(StreamFault, match="cut off"):
        list(stream(found.root, found.sources[1]))


@pytest.mark.parametrize("name", ["broken.zip", "broken.tar.gz", "rank3.log.gz"])
def test_broken_archive_is_named_and_the_rest_is_read(tmp_path: Path, name: str) -> None:
    magic = b"PK\x03\x04" if name.endswith("zip") else b"\x1f\x8b\x08\x00"
    write(tmp_path, name, data=magic + random.Random(3).randbytes(3000))
    write(tmp_path, "rank0.log")
    found = discover(tmp_path)
    assert files(found) == ["rank0.log"] and name in reasons(found)


def test_a_compression_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    write(tmp_path, "rank0.log.lz4", data=b"\x04\x22\x4d\x18" + random.Random(4).randbytes(1000))
    write(tmp_path, "rank1.log")
    assert "decompress it first" in reasons(discover(tmp_path))["rank0.log.lz4"]
    assert foreign_compression(LOG) is None


def test_names_that_cannot_be_printed_can_be_read(tmp_path: Path) -> None:
    (Path(os.fsdecode(os.fsencode(tmp_path) + b"/n\xff\n\x1b.log"))).write_bytes(LOG)
    found = discover(tmp_path)
    assert files(found) == ["n\\xff\\x0a\\x1b.log"]
    assert b"".join(stream(found.root, found.sources[0])) == LOG


def test_thousands_of_files_cost_no_more_than_their_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def made(nodes: int) -> Path:
        folder = tmp_path / f"of {nodes}"
        for node in range(nodes):
            names = (f"node{node}/rank{node * 100 + local}.log" for local in range(100))
            write(folder, *names, data=LOG * 20)
        return folder

    assert grows_evenly(made, discover, 6)
    calls: Counter[str] = Counter()
    monkeypatch.setattr(Path, "open", _counted(Path.open, "open", calls))
    monkeypatch.setattr(os, "scandir", _counted(os.scandir, "scandir", calls))
    assert [one.rank for one in discover(tmp_path / "of 48").sources] == list(range(4800))
    assert 4800 <= calls["open"] <= 2 * 4800 and calls["scandir"] <= 2 * 49


def _counted(function: Callable[..., Any], name: str, calls: Counter[str]) -> Callable[..., Any]:
    def counting(*arguments: Any, **named: Any) -> Any:
        calls[name] += 1
        return function(*arguments, **named)

    return counting


def test_a_large_archive_of_weights_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("logtriage.intake.archives._LOOK_FIRST", 1000)
    noise = random.Random(5).randbytes(50_000)
    write(tmp_path, "weights.tar.gz", data=tar_of({"a.bin": noise, "b.bin": noise}))
    write(tmp_path, "logs.tar.gz", data=tar_of({"a.bin": noise, "b.log": LOG}))
    found = discover(tmp_path)
    assert files(found) == ["logs.tar.gz/b.log"]
    assert "unpack it" in reasons(found)["weights.tar.gz"]


def test_copies_of_archives_are_gone_afterwards(tmp_path: Path) -> None:
    write(tmp_path, "job/upload.tgz", data=tar_of({"a.log": LOG, "in.tgz": tar_of({"b.log": LOG})}))
    (tmp_path / "tmp").mkdir()
    program = (
        "import sys, tempfile, pathlib; from logtriage.intake.folder import discover;"
        "print(len(discover(sys.argv[1]).sources), len(list(pathlib.Path(tempfile.gettempdir()).rglob('*'))))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "job")],
        env={**os.environ, "TMPDIR": str(tmp_path / "tmp")},
        capture_output=True,
        check=True,
    )
    sources, copies = map(int, done.stdout.split())
    assert sources == 2 and copies > 1
    assert not [path for path in (tmp_path / "tmp").rglob("*") if path.is_file()]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.binary(max_size=600),
    st.sampled_from(["x.log", "x.tar.gz", "x.zip", "x.bin"]),
    st.sampled_from([b"", b"PK\x03\x04", b"PK\x05\x06", b"\x1f\x8b", b"\xfd7zXZ\x00", b"\xff\xfe"]),
)
def test_no_bytes_crash_the_search(tmp_path: Path, data: bytes, name: str, magic: bytes) -> None:
    for old in tmp_path.iterdir():
        old.unlink()
    write(tmp_path, "whole.log")
    write(tmp_path, name, data=magic + data)
    found = discover(tmp_path)
    assert "whole.log" in files(found)
    assert len(found.sources) + len(found.unreadable) + found.other_files >= 2


ARGUMENTS = b"".join(b"  hidden_%d ........... %d\n" % (number, number) for number in range(70))


def test_settings_before_a_long_log_do_not_hide_it(tmp_path: Path) -> None:
    write(tmp_path, "train.log", data=ARGUMENTS * 100 + LOG * 10)
    write(tmp_path, "packed.log", data=gzip.compress(ARGUMENTS * 100 + LOG * 10))
    assert {one.role for one in discover(tmp_path).sources} == {SourceRole.MERGED}
