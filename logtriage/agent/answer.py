"""The answer that a model is asked for, and how one is read out of whatever came back."""

from __future__ import annotations

import json
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

MOST_CITATIONS = 4
MOST_MITIGATIONS = 4


def _few(most: int) -> BeforeValidator:
    return BeforeValidator(lambda value: value[:most] if isinstance(value, list) else value)


class Citation(BaseModel):
    """A line as the model points at it."""

    model_config = ConfigDict(extra="forbid")

    place: str = Field(description="like F2:38")
    quote: str = Field(description="words copied from that line")


class Answer(BaseModel):
    """Why the job ended, in the model's words; nothing of it is believed before it was checked."""

    model_config = ConfigDict(extra="forbid")

    failure_type: str
    culprit_ranks: Annotated[list[int], _few(64)]
    culprit_hosts: Annotated[list[str], _few(16)]
    citations: Annotated[list[Citation], _few(MOST_CITATIONS)]
    cause: str
    mitigations: Annotated[list[str], _few(MOST_MITIGATIONS)]


def json_schema() -> dict[str, Any]:
    """The schema as providers take it: every key required, no reference, as few tokens as possible."""
    texts = {"type": "array", "items": {"type": "string"}}
    citation = {
        "type": "object",
        "properties": {"place": {"type": "string"}, "quote": {"type": "string"}},
        "required": ["place", "quote"],
        "additionalProperties": False,
    }
    fields: dict[str, Any] = {
        "failure_type": {"type": "string"},
        "culprit_ranks": {"type": "array", "items": {"type": "integer"}},
        "culprit_hosts": texts,
        "citations": {"type": "array", "items": citation},
        "cause": {"type": "string"},
        "mitigations": texts,
    }
    return {
        "title": "verdict",
        "description": "the verdict",
        "type": "object",
        "properties": fields,
        "required": list(fields),
        "additionalProperties": False,
    }


def read_answer(text: str) -> Answer:
    """The first JSON object of a text that is an answer. Raises ValueError where there is none."""
    decoder = json.JSONDecoder()
    fault: ValueError = ValueError("no JSON object")
    start = text.find("{")
    tries = 0
    while start >= 0 and tries < 20:
        try:
            found, _ = decoder.raw_decode(text, start)
            return Answer.model_validate(found)
        except RecursionError:
            raise ValueError("JSON is nested too deeply") from None
        except ValueError as error:  # of pydantic as well
            fault = error
        start = text.find("{", start + 1)
        tries += 1
    raise fault
