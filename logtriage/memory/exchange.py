"""Diagnoses as JSON lines, from one memory to another; of what comes from elsewhere is taken what fits."""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Annotated, BinaryIO, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from logtriage.memory.discretion import discreet
from logtriage.memory.ledger import Cited, Diagnosis
from logtriage.taxonomy import taxonomy

FORMAT = "logtriage.diagnoses/1"
LONGEST_RECORD = 256 << 10  # bytes; what `export` writes of one diagnosis has some thousand
_EARLIEST = datetime(2020, 1, 1, tzinfo=UTC)


def _known(name: str) -> str:
    if name not in taxonomy():
        raise ValueError(f"there is no failure type {name[:80]!r}")
    return name


def _moment(text: str) -> str:
    moment = datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    if not _EARLIEST <= moment <= datetime.now(UTC) + timedelta(days=1):
        raise ValueError("is no time at which a diagnosis was made")
    return text


def _bounds(longest: int, shortest: int = 0) -> StringConstraints:
    return StringConstraints(min_length=shortest, max_length=longest, pattern=r"^[^\x00]*$")


_Word = Annotated[str, _bounds(253)]  # the longest name of a host
_Path = Annotated[str, _bounds(4096, 1)]
_Author = Annotated[str, _bounds(200, 1)]
_Text = Annotated[str, _bounds(4096)]
_Name = Annotated[str, StringConstraints(pattern=r"^[a-z_]{1,30}(?:\.[a-z0-9_]{1,30})?$")]
_STRICT = ConfigDict(strict=True, extra="forbid")
_LENIENT = ConfigDict(strict=True, extra="ignore")  # what a later version adds is not taken over


class _Cited(BaseModel):
    model_config = _STRICT

    file: _Path
    line: Annotated[int, Field(ge=1, le=10**12)]
    text: _Text


class _Culprits(BaseModel):
    model_config = _LENIENT

    ranks: Annotated[list[Annotated[int, Field(ge=0, le=10**7)]], Field(max_length=4096)] = []
    hosts: Annotated[list[_Word], Field(max_length=4096)] = []
    gpus: Annotated[list[_Word], Field(max_length=4096)] = []


class _Context(BaseModel):
    model_config = _LENIENT

    job: _Text | None = None
    frameworks: Annotated[list[_Word], Field(max_length=64)] = []
    ranks: Annotated[int, Field(ge=0, le=10**7)] | None = None
    hosts: Annotated[list[_Word], Field(max_length=64)] = []
    symptoms: Annotated[list[_Name], Field(max_length=200)] = []
    culprits: _Culprits = _Culprits()


class _Record(BaseModel):
    model_config = _STRICT

    schema_: Annotated[Literal["logtriage.diagnoses/1"], Field(alias="schema")]
    verdict_id: Annotated[str, StringConstraints(pattern=r"^[\w.:-]{1,64}$")]
    failure_type: Annotated[_Name, AfterValidator(_known)]
    told: _Name
    author: _Author
    at: Annotated[str, AfterValidator(_moment)]
    title: _Text
    evidence: Annotated[list[_Cited], Field(max_length=16)]
    context: _Context
    mitigation: _Text = ""
    id: Annotated[int, Field(ge=0)] = 0


def exported(diagnosis: Diagnosis) -> str:
    """One line, for `records`."""
    return json.dumps({"schema": FORMAT, **asdict(diagnosis)}, ensure_ascii=True) + "\n"


def records(file: BinaryIO) -> Iterator[tuple[int, Diagnosis | str]]:
    """Each record of a file with the number of its line: a diagnosis, or why it is none."""
    number = 0
    while line := file.readline(LONGEST_RECORD + 1):
        number += 1
        if len(line) > LONGEST_RECORD and not line.endswith(b"\n"):
            while (rest := file.readline(1 << 20)) and not rest.endswith(b"\n"):
                pass
            yield number, f"it is longer than {LONGEST_RECORD} bytes"
        elif line.strip():
            yield number, _diagnosis(line.removeprefix(codecs.BOM_UTF8) if number == 1 else line)


def _diagnosis(line: bytes) -> Diagnosis | str:
    try:
        record = _Record.model_validate(json.loads(line.decode()))
    except ValidationError as fault:
        first = fault.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(each) for each in first["loc"][:4])
        return f"{where[:80]}: {first['msg'][:120]}" if where else first["msg"][:120]
    except UnicodeDecodeError:
        return "it is not UTF-8 text"
    except (ValueError, RecursionError) as fault:
        return str(fault)[:120] if isinstance(fault, ValueError) else "it is nested too deeply"
    told = Diagnosis(
        verdict_id=record.verdict_id,
        failure_type=record.failure_type,
        told=record.told,
        author=record.author,
        at=record.at,
        title=record.title,
        evidence=tuple(Cited(each.file, each.line, each.text) for each in record.evidence),
        context=record.context.model_dump(mode="json"),
        mitigation=record.mitigation,
    )
    return discreet(told)
