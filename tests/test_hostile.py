"""Logs are hostile input: what they hold may cost a bounded amount of time and memory, and never a crash."""

from __future__ import annotations

import contextlib
import gzip
import io
import itertools
import json
import os
import random
import signal
import string
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from growth import grows_evenly
from hypothesis import given, settings
from hypothesis import strategies as st

from logtriage import triage
from logtriage.apps.cli import main
from logtriage.intake.folder import NothingReadable, discover
from logtriage.intake.reading import Extent, read_closely
from logtriage.intake.streams import Piece, StreamFault, pieces
from logtriage.mining import templates
from logtriage.mining.kinds import Lines
from logtriage.mining.scanner import Scanner
from logtriage.mining.summary import MOST_CAPTURES
from logtriage.mining.templates import OTHER, TemplateMiner
from logtriage.model import Source, SourceRole
from logtriage.report.document import read_verdict
from logtriage.rulebank.bank import BankFault, load_bank, read_rule_file
from logtriage.rulebank.matcher import Matcher


def _unlike_lines(number: int) -> list[str]:
    chosen = random.Random(5)
    return [
        " ".join("".join(chosen.choices(string.ascii_lowercase, k=8)) for _ in "ab") for _ in range(number)
    ]


def test_lines_without_any_likeness_are_counted_but_not_compared_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(templates, "MOST_COMPARED", 1_000_000)
    miner = TemplateMiner()
    for line in _unlike_lines(3000):
        miner.add(line)
    found = miner.templates()
    assert sum(template.count for template in found.values()) == 3000
    assert found[OTHER].count > 1000 and len(found) < 2000


def _tar(path: Path, members: dict[str, bytes]) -> None:
    with tarfile.open(path, "w") as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))


@pytest.mark.parametrize("unit", ["a1", "a-", "node-"])
def test_a_member_with_an_endless_name_is_named_in_short_and_not_studied(tmp_path: Path, unit: str) -> None:
    def made(size: int) -> Path:
        archive = tmp_path / str(size) / "logs.tar"
        archive.parent.mkdir()
        _tar(archive, {unit * size + ".log": b"x\n", "good.log": b"ValueError: x\n"})
        return archive.parent

    assert grows_evenly(made, discover, 5_000)
    inventory = discover(tmp_path / "40000")
    assert [source.file for source in inventory.sources] == ["logs.tar/good.log"]
    (lost,) = inventory.unreadable
    assert "name is too long" in lost.reason and len(lost.file) < 300


def test_errors_that_are_all_different_take_bounded_time_and_memory() -> None:
    lines = [f"[rank{rank}]: ValueError: {words}" for rank, words in enumerate(_unlike_lines(30_000))]
    summary = Scanner(Matcher(load_bank())).scan_piece("\n".join(lines).encode(), SourceRole.WORKER)
    per_rule = Counter(rule for rule, _ in summary.hits)
    assert max(per_rule.values()) <= MOST_CAPTURES + 1
    seen = sum(sightings.count for (rule, _), sightings in summary.hits.items() if "value" in rule)
    assert seen + summary.unmatched >= len(lines) > seen > 0


def test_a_million_empty_lines_are_not_all_read_closely(tmp_path: Path) -> None:
    content = b"ValueError: first\n" + b"\n" * 400_000 + b"ValueError: last\n"
    (tmp_path / "a.log").write_bytes(content)
    inventory = discover(tmp_path)
    extent = Extent(len(content), content.count(b"\n"), ())
    (reading,) = read_closely(tmp_path, inventory.sources, [extent])
    assert len(reading.lines) < 120_000 and not reading.whole
    assert reading.lines[0].text == "ValueError: first" and reading.lines[-1].text == "ValueError: last"
    assert reading.lines[-1].number == 400_002


def test_a_flood_of_lines_that_are_all_the_same_is_never_made_into_texts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    taken: list[int] = []
    texts = Lines.texts

    def counted(lines: Lines, indices: Sequence[int]) -> list[bytes]:
        taken.append(len(indices))
        return texts(lines, indices)

    monkeypatch.setattr(Lines, "texts", counted)
    scanner = Scanner(Matcher(load_bank()))
    flood = b"\n" * 1_200_000 + b"--\n" * 50_000 + b"7\n" * 150_000
    summary = scanner.scan_piece(flood + b"ValueError: x\n", SourceRole.WORKER)
    assert summary.lines == 1_400_001 and any("value" in rule for rule, _ in summary.hits)
    assert summary.keys[b""].count == 1_350_000 and summary.keys[b"--"].count == 50_000
    assert summary.keys[b""].first == (1, 0) and summary.keys[b""].last[0] == 1_400_000
    # Of the numbers alone, and of them only some at a time where each is told by its text.
    assert sum(taken) < 400_000 and sorted(taken)[-2] <= 1 << 16


def test_a_compressed_file_that_is_one_endless_line_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "a.log.gz", "wb", compresslevel=1) as packed:
        for _ in range(72):
            packed.write(b"x" * (1 << 20))
    (tmp_path / "b.log").write_text("ValueError: x\n")
    verdict = triage(tmp_path, offline=True, workers=1)
    assert verdict.verdict.failure_type == "code.value"
    assert [cited.file for cited in verdict.verdict.evidence] == ["b.log"]


_ENDLESS_READING = """
import sys, time
from logtriage.apps.cli import main
from logtriage.mining import parts, processes, survey
survey.PARALLEL_BYTES = 1
processes.LAST_BLOCK_SECONDS = 1
arguments = ["triage", "--offline", "--json", sys.argv[1] + "/verdict.json", "--workers", "2", sys.argv[1]]
parts.blocks = lambda *given, **named: print("reading", flush=True) or time.sleep(60)
sys.exit(main(arguments))
"""


@pytest.mark.parametrize(
    ("sign", "status", "word"),
    [
        (signal.SIGINT, 130, "interrupted"),
        (signal.SIGTERM, 143, "terminated"),
        (signal.SIGHUP, 129, "terminated"),
    ],
)
def test_a_triage_that_is_stopped_says_so_and_leaves_no_process(
    tmp_path: Path, sign: signal.Signals, status: int, word: str
) -> None:
    for name in "ab":
        (tmp_path / f"{name}.log").write_text("ValueError: x\n")
    command = [sys.executable, "-c", _ENDLESS_READING, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline().startswith(b"reading")
        process.send_signal(sign)
        # The pipes are closed only when every process that holds them is gone.
        _, errors = process.communicate(timeout=20)
    assert process.returncode == status
    assert errors.decode().splitlines()[-1] == f"logtriage: {word}"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.log", "b.log"]


_ENDED_WITH_COPIES = """
import os, signal, sys
from logtriage.apps.cli import run
from logtriage.intake import archives
whole = archives.spooled
def spooled(key, stored):
    found = whole(key, stored)
    os.kill(os.getpid(), signal.SIGHUP)
    return found
archives.spooled = spooled
sys.argv[1:] = ["triage", "--offline", "--no-history", "--quiet", sys.argv[1]]
run()
"""


def test_a_triage_whose_terminal_was_closed_leaves_no_copies_of_what_was_packed(tmp_path: Path) -> None:
    inner = io.BytesIO()
    with tarfile.open(fileobj=inner, mode="w:gz") as packed:
        member = tarfile.TarInfo("rank0.log")
        member.size = 14
        packed.addfile(member, io.BytesIO(b"ValueError: x\n"))
    _tar(tmp_path / "logs.tar", {"inner.tar.gz": inner.getvalue()})
    copies = tmp_path / "copies"
    copies.mkdir()
    command = [sys.executable, "-c", _ENDED_WITH_COPIES, str(tmp_path / "logs.tar")]
    environment = {**os.environ, "TMPDIR": str(copies)}
    process = subprocess.run(command, env=environment, capture_output=True, check=False, timeout=60)
    assert process.returncode == 129, process.stderr
    assert not [path for path in copies.rglob("*") if path.is_file()]


def test_a_signal_that_came_while_a_class_was_made_is_no_internal_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        class Member:
            def __set_name__(self, owner: type, name: str) -> None:
                raise KeyboardInterrupt  # Python 3.11 makes a RuntimeError of it

        type("Owner", (), {"member": Member()})

    monkeypatch.setattr("logtriage.pipeline.triage", interrupted)
    (tmp_path / "a.log").write_text("ValueError: x\n")
    assert main(["triage", "--offline", "--quiet", str(tmp_path)]) == 130
    assert capsys.readouterr().err.splitlines() == ["logtriage: interrupted"]


@pytest.mark.parametrize("closed", ["stdout", "stderr"])
def test_closed_standard_streams_are_no_crash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], closed: str
) -> None:
    (tmp_path / "a.log").write_text("ValueError: x\n")
    monkeypatch.setattr(sys, closed, None)
    assert main(["triage", "--offline", str(tmp_path)]) == 0
    assert "internal error" not in "".join(capsys.readouterr())


def test_an_empty_path_is_wrong_usage_and_not_the_folder_one_stands_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.log").write_text("ValueError: x\n")
    monkeypatch.chdir(tmp_path)
    assert main(["triage", "--offline", ""]) == 2


@pytest.mark.parametrize("path", ["x" * 5000, "~nobody-of-this-name/logs"])
def test_a_path_that_no_system_can_open_holds_nothing_readable(
    path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["triage", "--offline", path]) == 3
    assert capsys.readouterr().err.startswith("logtriage: nothing readable at ")


def test_a_file_that_vanishes_after_the_pass_ends_no_triage(tmp_path: Path) -> None:
    for name in ("gone.log", "kept.log"):
        (tmp_path / name).write_text("2026-01-02 03:04:05 ERROR ValueError: x\n" * 3)
    inventory = discover(tmp_path)
    extents = [Extent(source.size, 3, ()) for source in inventory.sources]
    (tmp_path / "gone.log").unlink()
    gone, kept = read_closely(tmp_path, inventory.sources, extents)
    assert gone.source.file == "gone.log" and not gone.lines and len(kept.lines) == 3


def test_a_full_disk_is_named_with_the_file_that_did_not_fit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    (tmp_path / "a.log").write_text("ValueError: x\n")
    assert main(["triage", "--offline", "--json", "/dev/full", str(tmp_path)]) == 1
    assert capsys.readouterr().err == "logtriage: /dev/full: No space left on device\n"


def test_halves_of_surrogate_pairs_in_json_are_read_as_what_they_are(tmp_path: Path) -> None:
    record = '{"message": "ValueError: half a pair \\ud83d here", "level": "ERROR", "host": "n\\udc00"}\n'
    (tmp_path / "a.jsonl").write_text(record * 3)
    verdict = triage(tmp_path, offline=True)
    assert verdict.verdict.evidence[0].text == record.rstrip()
    assert read_verdict(json.loads(verdict.to_json())) == verdict


_DEEP = "[" * 3_000 + "]" * 3_000
_LOKI = (
    '{\n "data": {\n "result": [\n {\n "stream": {\n "a": %s\n },\n "values": [\n [\n'
    ' "1772614800000000000",\n "ValueError: x"\n ]\n ]\n }\n ]\n }\n}\n'
)


@pytest.mark.parametrize("content", ['{"message": "x", "label": %s}\n' * 9, '{"a": %s', _LOKI])
def test_json_deeper_than_any_stack_ends_no_triage(tmp_path: Path, content: str) -> None:
    for name in ("a.json", "events.json", "a.log"):
        (tmp_path / name).write_text(content.replace("%s", _DEEP))
    (tmp_path / "rank0.log").write_text("KeyError: 'x'\n")
    assert triage(tmp_path, offline=True).verdict.failure_type in ("code.key", "code.value")


_ALIASES = "- &a [x, x]\n" + "".join(f"- &{b} [*{a}, *{a}]\n" for a, b in itertools.pairwise("abcdefgh"))


@pytest.mark.parametrize(
    "content",
    [
        _ALIASES + "- {id: a.b, role: cause, title: t, keywords: [abcd], pattern: *h}\n",
        "- {id: a.b, role: context, title: 2024-99-99, keywords: [abcd], pattern: x}\n",
        "- {id: " + "9" * 5000 + ", role: context, title: t, keywords: [abcd], pattern: x}\n",
        '- {id: a.b, role: context, title: t, keywords: [""], pattern: x}\n',
    ],
    ids=["alias bomb", "no day", "endless number", "empty keyword"],
)
def test_a_hostile_rule_file_is_refused_with_its_place(tmp_path: Path, content: str) -> None:
    (tmp_path / "mine.yaml").write_text(content)
    with pytest.raises(BankFault) as refused:
        read_rule_file(tmp_path / "mine.yaml")
    message = str(refused.value)
    assert load_bank([tmp_path / "mine.yaml"]).faults == refused.value.faults
    assert message.startswith("mine.yaml:") and len(message) < 500


def test_a_rule_file_larger_than_any_bank_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text("- a\n" * 600_000)  # took half a gigabyte, and half a minute
    with pytest.raises(BankFault) as caught:
        read_rule_file(tmp_path / "own.yaml")
    assert [fault.message for fault in caught.value.faults] == ["is larger than 2 MiB"]


_LOG_LIKE = st.sampled_from(
    [
        b"Traceback (most recent call last):\n", b'  File "/app/t.py", line 3, in step\n', b"ValueError: x\n",
        b"[rank3]: RuntimeError: CUDA error: an illegal memory access was encountered\n", b"\r", b"\n", b"\0",
        b"2026-01-02 03:04:05,678 ERROR rank 1 step 7 loss nan\n", b"\x1b[31m", b"\xff\xfe",
        b"\x1f\x8b", b"\xe2\x80\xae",
        b'{"message": "boom", "exc_info": "OSError: [Errno 28] No space left on device"}\n',
        b"exitcode: -9\n",
        b"srun: error: n1: task 3: Killed\n",
        b"NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.\n",
    ]
)  # fmt: skip
_FILES = st.dictionaries(
    st.sampled_from(["a.log", "rank1.log", "n1/dmesg", "x.json", "rank2.err", "b.log.gz"]),
    st.lists(_LOG_LIKE | st.binary(max_size=40), max_size=25).map(b"".join),
    min_size=1,
    max_size=4,
)


@settings(max_examples=40, deadline=None)
@given(_FILES)
def test_any_folder_gives_a_valid_document_that_cites_only_lines_that_are_there(
    files: dict[str, bytes],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for name, content in files.items():
            place = Path(folder, name)
            place.parent.mkdir(exist_ok=True)
            place.write_bytes(content)
        try:
            inventory = discover(folder)
            verdict = triage(folder, offline=True)
        except NothingReadable:
            return
        assert read_verdict(json.loads(verdict.to_json())) == verdict
        assert triage(f"{folder}/", offline=True).id == verdict.id
        sources = {source.file: source for source in inventory.sources}
        for cited in verdict.verdict.evidence:
            whole = b"".join(piece.data for piece in _readable(inventory.root, sources[cited.file]))
            start = sum(len(line) + 1 for line in whole.split(b"\n")[: cited.line - 1])
            line = whole.split(b"\n")[cited.line - 1].decode("utf-8", "replace")
            assert cited.offset == start and line.rstrip("\r").startswith(cited.text.rstrip("\r…"))


def _readable(root: Path, source: Source) -> Iterator[Piece]:
    with contextlib.suppress(StreamFault):
        yield from pieces(root, source)
