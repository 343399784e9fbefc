"""The Log Agent: a model proposes which templates are routine; votes and code decide."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Iterable, Sequence

from logtriage.agent.addressed import is_addressed
from logtriage.agent.deadline import answered_until
from logtriage.agent.prompts import load_prompt
from logtriage.agent.routine import LEAST_COUNT, is_error_like
from logtriage.agent.tokens import counter
from logtriage.mining.catalogue import TemplateRow
from logtriage.redaction import Redaction
from logtriage.settings import Settings

PROMPT = "routine_templates"
WIDTH = 160
ANSWER_TOKENS = 400
_SCHEMA = {
    "type": "object",
    "properties": {"routine": {"type": "array", "items": {"type": "integer"}}},
    "required": ["routine"],
    "additionalProperties": False,
}


def candidates(rows: Sequence[TemplateRow]) -> list[TemplateRow]:
    """The templates that may be routine at all, most frequent first."""
    return [
        row
        for row in rows
        if row.count >= LEAST_COUNT and not is_error_like(row.template) and not is_addressed(row.template)
    ]


def routine_templates(
    rows: Sequence[TemplateRow], redaction: Redaction, settings: Settings, *, until: float
) -> frozenset[str]:
    """The masked texts of the templates that more than half of the asked votes call routine.

    Empty where the endpoint does not answer by `until` (of time.monotonic).
    """
    shown, text = _listed(candidates(rows), redaction, settings)
    if not shown:
        return frozenset()
    ballots = answered_until(until, lambda: _ask(text, settings, until))
    return agreed(shown, ballots or (), settings.llm_votes)


def agreed(shown: Sequence[TemplateRow], ballots: Sequence[Iterable[int]], asked: int) -> frozenset[str]:
    """The texts of those templates (numbered from 1) that more than half of all asked votes name."""
    counts = Counter(number for ballot in ballots for number in set(ballot))
    return frozenset(
        text for number, row in enumerate(shown, 1) if counts[number] * 2 > asked for text in row.masked
    )


def _listed(
    rows: Sequence[TemplateRow], redaction: Redaction, settings: Settings
) -> tuple[list[TemplateRow], str]:
    """As many templates as a vote can pay for."""
    count = counter(settings.llm_model)
    prompt = load_prompt(PROMPT)
    room = settings.llm_tokens_per_vote - ANSWER_TOKENS - count(prompt.part("system", templates="")) - 60
    shown: list[TemplateRow] = []
    lines: list[str] = []
    for row in rows:
        words = redaction.redact(row.template.replace("```", "'''"))[:WIDTH]  # a cut key is not known as one
        line = f"{len(lines) + 1}. {row.count} x {words}"
        room -= count(line + "\n")
        if room < 0:
            break
        lines.append(line)
        shown.append(row)
    return shown, "\n".join(lines)


async def _ask(text: str, settings: Settings, until: float) -> list[frozenset[int]]:
    from langchain_core.messages import HumanMessage, SystemMessage
    from langsmith import tracing_context

    from logtriage.agent import endpoint

    prompt = load_prompt(PROMPT)
    messages = [
        SystemMessage(prompt.part("system", templates=text)),
        HumanMessage(prompt.part("user", templates=text)),
    ]
    form = {"type": "json_schema", "json_schema": {"name": "routine", "schema": _SCHEMA, "strict": True}}
    with tracing_context(enabled=False):
        async with endpoint.client(settings, max(0.1, until - time.monotonic())) as http:
            model = endpoint.chat_model(settings, http, temperature=True)

            async def vote() -> frozenset[int]:
                said = await model.ainvoke(messages, response_format=form, max_tokens=ANSWER_TOKENS)
                return read_numbers(str(said.text))

            votes = [asyncio.create_task(vote()) for _ in range(settings.llm_votes)]
            await asyncio.wait(votes, timeout=max(0.0, until - time.monotonic() - 0.1))
            for each in votes:
                each.cancel()
            told = await asyncio.gather(*votes, return_exceptions=True)
    return [each for each in told if isinstance(each, frozenset)]


def read_numbers(text: str) -> frozenset[int]:
    """The numbers of an answer. Raises ValueError where it is none."""
    found = json.loads(text[text.find("{") : text.rfind("}") + 1] or "null")
    numbers = found.get("routine") if isinstance(found, dict) else None
    if not isinstance(numbers, list) or not all(isinstance(each, int) for each in numbers):
        raise ValueError("no list of numbers")
    return frozenset(numbers)
