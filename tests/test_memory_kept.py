"""What is kept for good: no secret, for nobody else's eyes, nothing odd from elsewhere."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from taught_jobs import steps, text, written

from logtriage import triage
from logtriage.apps.cli import main
from logtriage.memory.exchange import FORMAT, LONGEST_RECORD, records
from logtriage.memory.ledger import Diagnosis, open_ledger
from logtriage.memory.privacy import close_to_others

Captured = pytest.CaptureFixture[str]


pytestmark = pytest.mark.usefixtures("data_dir")


def kept_id(folder: Path) -> str:
    """The id of the verdict on a job that no rule knows."""
    lines = [*steps("2026-03-03", 4, 6), "loomd: shuttle jammed in the reed, password for loom is Winter2024"]
    written(folder, {"rank0.log": text(lines)})
    assert main(["triage", str(folder), "--offline", "--json", "/dev/null"]) == 0
    return triage(folder, offline=True).id


def record(**more: Any) -> dict[str, Any]:
    told: dict[str, Any] = {
        "schema": FORMAT, "verdict_id": "v-1f2e3d", "failure_type": "data.corrupt", "told": "unknown",
        "author": "ann", "at": "2026-03-01T09:00:00Z", "title": "a shard was cut short",
        "evidence": [{"file": "rank0.log", "line": 7, "text": "loomd: shuttle jammed"}],
        "context": {"job": "x", "frameworks": ["torch"], "ranks": 8, "hosts": ["a"], "symptoms": [],
                    "culprits": {"ranks": [1], "hosts": [], "gpus": []}},
        "mitigation": "fetch it again", "id": 3,
    }  # fmt: skip
    return {**told, **more}


def imported(folder: Path, *lines: str | bytes) -> int:
    file = folder / "in.jsonl"
    file.write_bytes(b"".join((each if isinstance(each, bytes) else each.encode()) + b"\n" for each in lines))
    return main(["memory", "import", str(file)])


def test_no_secret_is_kept_of_what_a_person_says(tmp_path: Path, data_dir: Path, capsys: Captured) -> None:
    verdict = kept_id(tmp_path / "job")
    words = [
        "--evidence",
        "rank0.log:7",
        "--mitigation",
        "log in with password=Tr0ub4dor and OPENAI_KEY=abc12",
    ]
    assert main(["correct", verdict, "--type", "storage.filesystem", *words]) == 0
    rule = capsys.readouterr().out
    assert main(["rules", "learned"]) == 0
    (learned,) = [line.split()[-2] for line in capsys.readouterr().out.splitlines() if "+1" in line]
    assert learned in rule
    assert main(["rules", "retire", learned, "--reason", "see password: Tr0ub4dor"]) == 0
    for file in data_dir.rglob("*"):
        if file.is_file() and "verdicts" not in file.parts:  # these are as the logs are, and soon gone
            content = file.read_bytes()
            assert not any(secret in content for secret in (b"Tr0ub4dor", b"abc12", b"Winter2024")), file
    (said,) = open_ledger("", data_dir).diagnoses()
    assert said.mitigation.startswith("log in with password=redacted")
    assert "shuttle jammed in the reed" in said.evidence[0].text


@pytest.mark.parametrize("said", ["a" * 100_000, "\ud800 b", "\0", "\u202e<b>", "'; drop table diagnoses;--"])
def test_whatever_a_person_says_can_be_exported_and_taken_in_again(
    said: str, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    verdict = kept_id(tmp_path / "job")
    words = [
        "--type",
        "storage.filesystem",
        "--evidence",
        "rank0.log:7",
        "--mitigation",
        said,
        "--author",
        said,
    ]
    assert main(["correct", verdict, *words]) == 0
    assert main(["memory", "export", str(tmp_path / "out.jsonl")]) == 0
    monkeypatch.setenv("LOGTRIAGE_DATA_DIR", str(tmp_path / "elsewhere"))
    capsys.readouterr()
    assert main(["memory", "import", str(tmp_path / "out.jsonl")]) == 0
    assert capsys.readouterr().out == "1 of 1 diagnoses were new\n"


BAD: dict[str, dict[str, Any]] = {
    "a line below 1": record(evidence=[{"file": "a", "line": -5, "text": "x"}]),
    "a line that is none": record(evidence=[{"file": "a", "line": True, "text": "x"}]),
    "a line as text": record(evidence=[{"file": "a", "line": "7", "text": "x"}]),
    "no time": record(at="9999999"),
    "a day that is none": record(at="2026-02-31T09:00:00Z"),
    "a time to come": record(at="9998-01-01T00:00:00Z"),
    "long ago": record(at="0001-01-01T00:00:00Z"),
    "an unknown type": record(failure_type="data.eaten"),
    "an id with a path": record(verdict_id="../../etc/passwd"),
    "no author": record(author=""),
    "a long author": record(author="a" * 201),
    "a NUL": record(title="a\0b"),
    "a long title": record(title="a" * 5000),
    "much evidence": record(evidence=[{"file": "a", "line": 1, "text": "x"}] * 100),
    "a context of a wrong kind": record(context={"frameworks": "torch"}),
    "ranks that are none": record(context={"ranks": -1}),
    "another key": record(more=1),
    "another schema": record(schema="logtriage.diagnoses/9"),
}


@pytest.mark.parametrize("name", BAD)
def test_an_odd_record_is_named_and_the_good_ones_are_taken(
    name: str, tmp_path: Path, capsys: Captured
) -> None:
    good = [json.dumps(record(author=author)) for author in ("ann", "ben")]
    assert imported(tmp_path, good[0], json.dumps(BAD[name]), good[1]) == 1
    told = capsys.readouterr()
    assert told.out == "2 of 2 diagnoses were new\n"
    assert "in.jsonl:2 is no diagnosis" in told.err and "records left out: 1" in told.err
    assert imported(tmp_path, json.dumps(BAD[name])) == 2


def test_a_record_of_eleven_megabytes_is_left_out(tmp_path: Path, data_dir: Path, capsys: Captured) -> None:
    huge = json.dumps(record(title="a" * (11 << 20)))
    assert imported(tmp_path, huge, json.dumps(record(author="ben")), "[" * 100_000) == 1
    told = capsys.readouterr()
    assert told.out == "1 of 1 diagnoses were new\n"
    assert f"in.jsonl:1 is no diagnosis: it is longer than {LONGEST_RECORD} bytes" in told.err
    assert [each.author for each in open_ledger("", data_dir).diagnoses()] == ["ben"]


def test_what_is_imported_is_kept_without_secrets(tmp_path: Path, data_dir: Path) -> None:
    assert imported(tmp_path, json.dumps(record(mitigation="password for bob: hunter22x"))) == 0
    (said,) = open_ledger("", data_dir).diagnoses()
    assert said.mitigation == "password for bob: redacted1"


_ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@given(st.lists(st.tuples(st.sampled_from(list(record())), _ANY), max_size=3), st.binary(max_size=40))
@settings(max_examples=60, deadline=None)
def test_no_record_breaks_an_import(
    tmp_path_factory: Any, changes: list[tuple[str, Any]], junk: bytes
) -> None:
    file = tmp_path_factory.mktemp("in") / "x"
    file.write_bytes(json.dumps(record(**dict(changes))).encode() + b"\n" + junk.replace(b"\n", b""))
    with file.open("rb") as reading:
        for _, each in records(reading):
            assert isinstance(each, str | Diagnosis)


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_data_folder_that_others_could_read_is_closed(tmp_path: Path, data_dir: Path) -> None:
    data_dir.mkdir(mode=0o755)
    data_dir.chmod(0o755)
    (data_dir / "ledger.sqlite3").touch()
    (data_dir / "ledger.sqlite3").chmod(0o644)
    kept_id(tmp_path / "job")
    assert (_mode(data_dir), _mode(data_dir / "ledger.sqlite3")) == (0o700, 0o600)


def test_a_folder_of_many_things_stays_open_but_for_the_diagnoses(
    tmp_path: Path, data_dir: Path, capsys: Captured
) -> None:
    data_dir.mkdir()
    data_dir.chmod(0o755)
    (data_dir / "thesis.tex").touch()
    verdict = kept_id(tmp_path / "job")
    assert main(["correct", verdict, "--type", "storage.filesystem", "--evidence", "rank0.log:7"]) == 0
    assert (_mode(data_dir), _mode(data_dir / "ledger.sqlite3")) == (0o755, 0o600)
    assert _mode(data_dir / "verdicts") == 0o700


def test_a_folder_that_a_group_shares_stays_shared(data_dir: Path) -> None:
    data_dir.mkdir()
    (data_dir / "rules").mkdir()
    data_dir.chmod(0o2775)
    close_to_others(data_dir)
    assert _mode(data_dir) & 0o777 == 0o775


def test_the_doctor_tells_of_diagnoses_that_others_can_read(data_dir: Path, capsys: Captured) -> None:
    data_dir.mkdir()
    data_dir.chmod(0o775)
    open_ledger("", data_dir)
    (data_dir / "ledger.sqlite3").chmod(0o664)
    main(["doctor", "--offline", "--json"])
    (told,) = [each for each in json.loads(capsys.readouterr().out) if each["name"] == "data folder"]
    assert told["state"] == "broken" and "others can read" in told["says"]


@pytest.mark.parametrize("content", [b"- id: [", b"\xff\xfe\x00", b"- {id: x}", b"a: &a [*a]", b"[" * 3000])
def test_a_learned_rule_that_is_broken_is_named(content: bytes, data_dir: Path, capsys: Captured) -> None:
    (data_dir / "rules" / "active").mkdir(parents=True)
    (data_dir / "rules" / "active" / "mine.yaml").write_bytes(content)
    assert main(["rules", "learned"]) == 0
    told = capsys.readouterr()
    assert "mine.yaml" in told.err and told.out == "" and "no rule was learned" not in told.err


@pytest.mark.skipif(os.getuid() == 0, reason="nothing is closed to root")
def test_a_learned_rule_that_cannot_be_read_is_named(data_dir: Path, capsys: Captured) -> None:
    (data_dir / "rules" / "active").mkdir(parents=True)
    (data_dir / "rules" / "active" / "mine.yaml").touch(mode=0o000)
    assert main(["rules", "learned"]) == 0
    assert "mine.yaml" in capsys.readouterr().err
