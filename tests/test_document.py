from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from verdicts import a_body, a_verdict

from logtriage.report.document import CitedLine, Job, iso_time, read_verdict, seconds_of
from logtriage.report.schema import schema_text, write_schema

# The contract's names in the contract's order; what was added stands after them.
CONTRACT = {
    "": ["schema", "id", "tool", "job", "verdict", "symptoms", "indications", "timeline", "attempts",
         "mining", "unreadable", "timing"],
    "tool": ["name", "version", "rules", "taxonomy"],
    "job": ["name", "paths", "started", "ended", "ranks", "hosts", "attempts", "frameworks", "outcome"],
    "verdict": ["failure_type", "class", "title", "confidence", "summary", "culprits", "evidence", "action",
                "restart", "mitigations", "alternatives", "decided_by", "votes"],
    "verdict.culprits": ["ranks", "hosts", "gpus"],
    "verdict.evidence.0": ["file", "line", "offset", "text", "time", "rank", "host", "attempt",
                           "rule", "why"],
    "verdict.restart": ["advised", "exclude_hosts", "reason"],
    "verdict.mitigations.0": ["text", "source", "reference"],
    "verdict.alternatives.0": ["failure_type", "confidence", "evidence"],
    "verdict.votes": ["asked", "valid", "for"],
    "symptoms.0": ["failure_type", "text", "file", "line", "time", "ranks", "hosts", "follows_from"],
    "indications.0": ["file", "line", "role", "failure_type"],
    "timeline.0": ["time", "kind", "text", "file", "line", "rank", "host"],
    "mining": ["files", "bytes", "lines", "templates", "novel_templates", "compression"],
    "unreadable.0": ["file", "reason"],
    "timing": ["seconds", "megabytes_per_second", "stages"],
}  # fmt: skip


@pytest.mark.parametrize("place", CONTRACT)
def test_the_document_has_the_names_of_the_contract_in_their_order(place: str) -> None:
    part = json.loads(a_verdict().to_json())
    for step in filter(None, place.split(".")):
        part = part[int(step)] if step.isdigit() else part[step]
    assert [key for key in part if key in CONTRACT[place]] == CONTRACT[place]


def test_a_document_that_was_written_is_read_again() -> None:
    verdict = a_verdict()
    assert read_verdict(json.loads(verdict.to_json())) == verdict
    assert verdict.to_json() == a_verdict().to_json()


@given(st.text(alphabet=st.characters(codec=None, exclude_categories=()), max_size=60))
def test_any_log_text_can_be_written_as_utf_8_and_read_again(text: str) -> None:
    cited = CitedLine(file=text, line=1, text=text, why=text)
    verdict = a_verdict(verdict=a_body(evidence=(cited,), title=text, summary=text), job=Job(name=text))
    written = verdict.to_json().encode("utf-8")
    again = read_verdict(json.loads(written))
    assert again == verdict
    if text.isascii():
        assert again.verdict.evidence[0].text == text


def test_non_ascii_text_stands_in_the_document_as_it_is() -> None:
    assert "Größe 学习率" in a_verdict(job=Job(name="Größe 学习率")).to_json()


@given(st.floats(min_value=-62_135_596_800, max_value=253_402_300_799))
def test_a_time_survives_to_the_millisecond(seconds: float) -> None:
    text = iso_time(seconds)
    assert text is not None and len(text) == 24 and text.endswith("Z")
    again = seconds_of(text)
    assert again is not None and abs(again - seconds) <= 0.001


def test_times_are_utc_with_milliseconds_and_impossible_ones_are_none() -> None:
    assert iso_time(1769847302.1) == "2026-01-31T08:15:02.100Z"
    assert [iso_time(None), iso_time(1e300), iso_time(float("nan")), iso_time(float("inf"))] == [None] * 4


@pytest.mark.parametrize(
    ("part", "change"),
    [
        ("verdict", {"confidence": 1.01}),
        ("verdict", {"confidence": float("nan")}),
        ("verdict", {"decided_by": "guess"}),
        ("verdict", {"invented": 1}),
        ("job", {"started": "yesterday"}),
        ("job", {"outcome": "dead"}),
        ("symptoms.0", {"line": 0}),
        ("mining", {"files": -1}),
        ("", {"schema": "logtriage.verdict/2"}),
        ("", {"invented": 1}),
    ],
)
def test_what_breaks_the_contract_is_refused(part: str, change: dict[str, object]) -> None:
    document = a_verdict().to_dict()
    place = document
    for step in filter(None, part.split(".")):
        place = place[int(step)] if step.isdigit() else place[step]  # type: ignore[index]
    place.update(change)
    with pytest.raises(ValidationError):
        read_verdict(document)


def test_a_verdict_cannot_be_changed() -> None:
    with pytest.raises(ValidationError):
        a_verdict().id = "other"  # type: ignore[misc]


def test_the_schema_in_the_docs_is_current(tmp_path: Path) -> None:
    write_schema(tmp_path / "schema.json")
    assert (tmp_path / "schema.json").read_text(encoding="utf-8") == schema_text()
    shipped = Path(__file__).parent.parent / "docs" / "verdict.schema.json"
    assert shipped.read_text(encoding="utf-8") == schema_text(), "run python -m logtriage.report.schema"


def test_documents_fulfil_the_schema() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    validator = jsonschema.Draft202012Validator(json.loads(schema_text()))
    document = a_verdict().to_dict()
    validator.validate(document)
    document["verdict"]["class"] = None
    assert not validator.is_valid(document)
