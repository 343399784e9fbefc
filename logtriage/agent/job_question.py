"""A question that the verdict does not answer: one answer of a model, kept only if its lines bear it out."""

from __future__ import annotations

import json
import re
import time
from typing import Any

from pydantic import BaseModel, ConfigDict

from logtriage.agent.addressed import is_addressed
from logtriage.agent.answer import Citation
from logtriage.agent.ask import EVIDENCE_SHARE
from logtriage.agent.deadline import answered_until
from logtriage.agent.desk import Desk, normal
from logtriage.agent.evidence_file import evidence_file
from logtriage.agent.grounding import Void, cited_lines, sentence
from logtriage.agent.prompts import load_prompt
from logtriage.agent.tokens import counter
from logtriage.agent.tools import toolbox
from logtriage.answers.reply import Quoted, Reply
from logtriage.report import words
from logtriage.settings import Settings

PROMPT = "job_question"
ANSWER_TOKENS = 400
LONGEST_QUESTION = 500  # characters
MOST_WORDS = 8  # of the question that are searched for
# Words of questions; what is left may be words of the log.
_COMMON = re.compile(
    r"(?:what|which|where|when|were|with|this|that|does|have|there|about|from|they|would|could|.{1,3})"
)


class _Said(BaseModel):
    model_config = ConfigDict(extra="ignore")

    text: str
    citations: list[Citation] = []


def ask_about_job(desk: Desk, question: str, settings: Settings) -> Reply | None:
    """The model's answer with the lines that bear it out, without secrets; None where none came.

    An answer that cites a line that is not there, quotes it wrongly, or names what no cited line holds, is
    none. Raises ImportError without the `llm` extra.
    """
    question = normal(question)[:LONGEST_QUESTION]
    if not question or is_addressed(question):
        return None
    until = time.monotonic() + settings.llm_seconds
    messages = _messages(desk, question, settings)
    said = answered_until(until, lambda: _asked(messages, settings, until))
    return _checked(said, desk) if said is not None else None


def _messages(desk: Desk, question: str, settings: Settings) -> tuple[str, str]:
    count = counter(settings.llm_model)
    budget = int(settings.llm_tokens_per_vote * EVIDENCE_SHARE)
    decided = desk.decision
    prompt = load_prompt(PROMPT)
    values = {
        "verdict": desk.hidden(f"{decided.failure_type}: {normal(decided.title)}"),
        "evidence": evidence_file(desk, budget, count).text,
        "found": _found(desk, question),
        "question": desk.hidden(question),
    }
    return prompt.part("system", **values), prompt.part("user", **values)


def _found(desk: Desk, question: str) -> str:
    """Lines of the logs that hold words of the question."""
    asked = [each for each in re.findall(r"[\w.-]+", question) if not _COMMON.fullmatch(each.lower())]
    if not asked:
        return "none"
    search = next(tool for tool in toolbox(desk) if tool.__name__ == "search_log")
    return search("|".join(re.escape(each)[:40] for each in asked[:MOST_WORDS])[:200].rstrip("\\|"))


async def _asked(messages: tuple[str, str], settings: Settings, until: float) -> _Said:
    import openai
    from langchain_core.messages import HumanMessage, SystemMessage
    from langsmith import tracing_context

    from logtriage.agent import endpoint

    told = [SystemMessage(messages[0]), HumanMessage(messages[1])]
    form = {
        "type": "json_schema",
        "json_schema": {"name": "answer", "schema": _SCHEMA, "strict": True},
    }
    with tracing_context(enabled=False):
        async with endpoint.client(settings, max(0.1, until - time.monotonic())) as http:
            model = endpoint.chat_model(settings, http, temperature=False)
            try:
                answer = await model.ainvoke(told, response_format=form, max_tokens=ANSWER_TOKENS)
            except openai.BadRequestError:  # a server without schemas
                answer = await model.ainvoke(told, max_tokens=ANSWER_TOKENS)
    return _read(str(answer.text))


_TEXT: dict[str, Any] = {"type": "string"}
_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "text": _TEXT,
        "citations": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"place": _TEXT, "quote": _TEXT},
                "required": ["place", "quote"],
                "additionalProperties": False,
            },
        },
    },
    "required": ["text", "citations"],
    "additionalProperties": False,
}


def _read(text: str) -> _Said:
    """Raises ValueError where there is no answer in it."""
    found, _ = json.JSONDecoder().raw_decode(text, max(text.find("{"), 0))
    return _Said.model_validate(found)


def _checked(said: _Said, desk: Desk) -> Reply | None:
    lines = cited_lines(said.citations[:4], desk)
    if isinstance(lines, Void):
        return None
    text = sentence(said.text, lines, desk)
    if not text:
        return None
    topology = desk.findings.topology
    shown = []
    for line in lines:
        rank = topology.rank(line)
        facts = words.places((rank,) if rank is not None else (), ())
        shown.append(Quoted(line.file, line.number, desk.hidden(line.text), facts))
    return Reply(
        f"{desk.hidden(text)} (A language model's answer, checked against these lines.)", tuple(shown)
    )
