"""What `tail *.log` printed into one file is read as the files that it was, and cited as it stands."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logtriage.apps.cli import main
from logtriage.intake.folder import discover
from logtriage.intake.sections import begins_with_section, lines_of_ranges, sections
from logtriage.pipeline import triage

FIXTURE = Path(__file__).parent.parent / "fixtures" / "torchrun-short-shard" / "logs"
KEY = "KeyError: 'tokens'"


HEADINGS = [
    "==> {} <==", "::::::::::::::\n{}\n::::::::::::::", "----- {} -----", "=== {} ===", "##### {}", "## `{}`",
    "$ cat {}", "lea@login1:~/run7$ tail -n 200 {}",
]  # fmt: skip


def shown(folder: Path, heading: str) -> str:
    """The files of a folder one after the other, each below its heading."""
    parts = []
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        parts.append(heading.format(path.relative_to(folder)) + "\n" + path.read_text())
    return "\n".join(parts)


@pytest.mark.parametrize("heading", HEADINGS)
def test_the_verdict_is_that_of_the_files(tmp_path: Path, heading: str) -> None:
    whole = triage(FIXTURE, offline=True, workers=1).verdict
    text = shown(FIXTURE, heading)
    (tmp_path / "tail.txt").write_text(text)
    found = triage(tmp_path, offline=True, workers=1).verdict
    assert (found.failure_type, found.culprits.ranks) == (whole.failure_type, whole.culprits.ranks)
    assert [each.text for each in found.evidence] == [each.text for each in whole.evidence]
    lines = text.splitlines()
    for each in found.evidence:
        assert each.file == "tail.txt"
        assert lines[each.line - 1].strip() == each.text.strip()
        assert text.encode()[each.offset :].startswith(lines[each.line - 1].encode())


def test_a_file_that_goes_on_under_a_further_heading_is_one_file(tmp_path: Path) -> None:
    """As `tail -f` prints."""
    text = (
        "==> rank_0.log <==\n2026-05-06 10:00:00 step 1 loss 2.0\n\n==> rank_1.log <==\n"
        "2026-05-06 10:00:01 step 1 loss 2.0\n\n==> rank_0.log <==\n2026-05-06 10:00:10 step 2 loss 1.9\n\n"
        '==> rank_1.log <==\nTraceback (most recent call last):\n  File "/srv/t.py", line 3, in <module>\n'
        f"    run()\n{KEY}\n"
    )
    (tmp_path / "follow.txt").write_text(text)
    assert [source.rank for source in discover(tmp_path).sources] == [0, 1]
    found = triage(tmp_path, offline=True, workers=1).verdict
    assert (found.failure_type, found.culprits.ranks) == ("code.key", (1,))
    assert text.splitlines()[found.evidence[0].line - 1] == KEY


def test_names_lead_nowhere(tmp_path: Path) -> None:
    names = ["/var/log/a.log", "../../etc/passwd", "./.hidden/b.log", "..", "c\x1b[31m.log", ""]
    (tmp_path / "t.txt").write_text(
        "".join(f"==> {name} <==\nstep 1 loss {at}\n\n" for at, name in enumerate(names))
    )
    files = [source.file for source in discover(tmp_path).sources]
    assert all(file.startswith("t.txt") and ".." not in file.split("/") for file in files)
    assert {"t.txt/var/log/a.log", "t.txt/etc/passwd.log", "t.txt/hidden/b.log"} < set(files)
    assert triage(tmp_path, offline=True, workers=1).verdict.failure_type.startswith("none")


def test_a_log_that_holds_a_heading_somewhere_is_a_log(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("2026-05-06 10:00:00 step 1 loss 2.0\n==> b.log <==\n" * 5)
    assert [source.file for source in discover(tmp_path).sources] == ["a.log"]
    assert not begins_with_section(b"step 1\n==> b.log <==\n")


@pytest.mark.parametrize("head", ["=== rank 0 ===", "----- step 1 -----", "$ cat notes", "# run"])
def test_banners_of_a_program_begin_no_sections(tmp_path: Path, head: str) -> None:
    text = (
        f"{head}\n2026-05-06 10:00:00 step 1 loss 2.0\n=== rank 1 ===\n2026-05-06 10:00:09 step 2 loss 2.0\n"
    )
    (tmp_path / "a.log").write_text(text)
    assert [source.file for source in discover(tmp_path).sources] == ["a.log"]


def test_what_is_confirmed_of_it_is_learned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LOGTRIAGE_DATA_DIR", str(tmp_path / "data"))
    text = shown(FIXTURE, "==> {} <==")
    (tmp_path / "tail.txt").write_text(text)
    assert main(["triage", "--offline", "--json", "-", str(tmp_path / "tail.txt")]) == 0
    kept = json.loads(capsys.readouterr().out)
    line = next(number for number, each in enumerate(text.splitlines(), 1) if each.startswith("reader: "))
    assert (
        main(["correct", kept["id"], "--type", "storage.filesystem", "--evidence", f"tail.txt:{line}"]) == 0
    )
    assert f"tail.txt:{line}" in capsys.readouterr().out
    assert main(["correct", kept["id"], "--type", "storage.filesystem", "--evidence", "tail.txt:1"]) == 2
    assert "tail.txt:1 is no line of a log" in capsys.readouterr().err
    assert main(["triage", "--offline", "--json", "-", str(tmp_path / "tail.txt")]) == 0
    assert json.loads(capsys.readouterr().out)["verdict"]["failure_type"] == "storage.filesystem"


bodies = st.lists(st.text("ab=<> \n", max_size=40), min_size=1, max_size=5)


@given(bodies, st.integers(1, 3))
def test_each_line_of_a_section_is_one_of_the_file(texts: list[str], names: int) -> None:
    data = "\n".join(f"==> f{at % names} <==\n{text}" for at, text in enumerate(texts)).encode()
    lines = data.split(b"\n")
    offsets = [0, *itertools.accumulate(len(line) + 1 for line in lines)]
    seen: list[int] = []
    for ranges in sections(data).values():
        places = lines_of_ranges(offsets, ranges)
        stream = [line for start, end in ranges for line in data[start:end].splitlines()]
        assert [lines[place] for place in places] == stream
        seen += places
    assert len(seen) == len(set(seen))
