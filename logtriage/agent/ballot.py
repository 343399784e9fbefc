"""One vote: an agent with the evidence file, a few look-ups, and a limit on all that it may cost."""

from __future__ import annotations

import json
import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

import httpx2
import openai
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain.agents.structured_output import ProviderStrategy, StructuredOutputError, ToolStrategy
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import StructuredTool
from langgraph.errors import GraphRecursionError

from logtriage.agent.answer import Answer, json_schema, read_answer
from logtriage.agent.bodies import NoJson, no_json
from logtriage.agent.recorded import NOT_RECORDED
from logtriage.agent.shortening import shortened
from logtriage.agent.tokens import PER_MESSAGE
from logtriage.agent.tools import ANSWER

ANSWER_TOKENS = 600  # room for an answer, where there is so much
FAIR_ANSWER = 320  # with less room the answer may be cut: the request is shortened, as far as it can be
LEAST_ANSWER = 160  # with less than that it is not sent
CALL_TOKENS = 60  # a tool call as the model writes it
MOST_CALLS = 8  # at once; those beyond are not answered
FEWER, MORE = 20, 4  # times our count that an endpoint may say a request had, or be short of
FORMS = ("schema", "tools", "text")  # how the answer is asked for, from the strictest down


class OverBudget(Exception):
    """The next request of a vote would cost more tokens than the vote has left."""


@dataclass(slots=True)
class Dialect:
    """What the endpoint was found to understand; all votes learn from the refusals of one."""

    form: int = 0  # of FORMS
    temperature: bool = True
    shrink: float = 1.0  # of the evidence file, where the model's context is short
    is_counted: bool = True  # the endpoint reports how many tokens a request had


@dataclass(slots=True)
class Spent:
    """Tokens of one vote, over all its requests, as the endpoint counts them, else as we do."""

    limit: int
    sent: int = 0
    received: int = 0
    requests: int = 0
    calls: int = 0
    ratio: float = 1.0  # what the endpoint counted for a token of ours, in the latest request

    @property
    def room(self) -> int:
        return self.limit - self.sent - self.received


@dataclass(slots=True)
class Paper:
    """What is handed to the model for one vote."""

    system: str
    user: str
    tools: Sequence[StructuredTool]
    tools_cost: int
    count: Callable[[str], int]
    tool_calls: int
    extra_limit: bool  # send `max_tokens` besides `max_completion_tokens`
    spent: Spent
    dialect: Dialect
    form: str = FORMS[0]


def structured(tools: Sequence[Callable[..., str]]) -> list[StructuredTool]:
    """Plain functions as tools, with a schema from their signatures."""
    return [StructuredTool.from_function(tool) for tool in tools]


def cost_of_tools(tools: Sequence[StructuredTool], count: Callable[[str], int]) -> int:
    told = ({"name": each.name, "description": each.description, "parameters": each.args} for each in tools)
    return sum(count(json.dumps(each)) for each in told)


def cost_of_form(form: str, count: Callable[[str], int]) -> int:
    return count(json.dumps(json_schema())) if form != "text" else 0


def affords_a_look(room: int, bare: int, tools: int, *, is_counted: bool) -> bool:
    """Whether a look-up fits: a request with tools, and the one after it, without them, that sends all again.

    Our counts are upper bounds. Where the endpoint reports what it counted, a part of them comes back.
    """
    factor = 0.85 if is_counted else 1.0
    return room >= factor * (2 * bare + tools + 2 * CALL_TOKENS + ANSWER // 3) + LEAST_ANSWER


class _Budget(AgentMiddleware[Any, Any]):
    """Counts what a vote spends; leaves the tools away, or ends the vote, before it spends too much."""

    def __init__(self, paper: Paper) -> None:
        super().__init__()
        self.paper = paper
        self.next_request = 0  # tokens of the one after the look-ups that are under way, as we count

    async def awrap_model_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        paper, spent = self.paper, self.paper.spent
        bare = self._cost(request)
        # Never more than our own count, which is an upper bound; the endpoint's own with a tenth to spare.
        factor = min(1.0, 1.1 * spent.ratio)
        cost = bare + (paper.tools_cost if request.tools else 0)
        if request.tools and (
            spent.calls >= paper.tool_calls
            or not affords_a_look(spent.room, bare, paper.tools_cost, is_counted=paper.dialect.is_counted)
        ):
            request, cost = request.override(tools=[]), bare
        if spent.room - factor * cost < FAIR_ANSWER:
            excess = cost - math.floor((spent.room - FAIR_ANSWER) / factor)
            request = request.override(messages=shortened(request.messages, excess, paper.count))
            cost = self._cost(request)
        answer = min(ANSWER_TOKENS, spent.room - math.ceil(factor * cost))
        if answer < LEAST_ANSWER:
            raise OverBudget
        limits: dict[str, Any] = {"max_tokens": answer}
        if paper.extra_limit:
            limits["extra_body"] = {"max_tokens": answer}
        spent.requests += 1
        try:
            response = await handler(request.override(model_settings=limits))
        except StructuredOutputError as fault:
            _charge(spent, getattr(fault, "ai_message", None), cost, answer, paper.count)
            raise
        except Exception as fault:
            spent.sent += 0 if _was_never_sent(fault) else cost
            raise
        said = next((each for each in response.result if isinstance(each, AIMessage)), None)
        paper.dialect.is_counted = _charge(spent, said, cost, answer, paper.count)
        self.next_request = bare
        if said is not None and len(said.tool_calls) > MOST_CALLS:
            said.tool_calls = said.tool_calls[:MOST_CALLS]
        return response

    def _cost(self, request: Any) -> int:
        """Tokens of a request without tools, as we count them."""
        count = self.paper.count
        told = sum(count(_text(message)) + PER_MESSAGE for message in request.messages)
        told += count(request.system_message.text) + PER_MESSAGE if request.system_message else 0
        return told + cost_of_form(self.paper.form, count)

    async def awrap_tool_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        call = request.tool_call
        spent = self.paper.spent
        # A model may ask for several at once, and each answer has to be sent back. With slack on what the
        # endpoint counts, offers that were paid for would be refused; what gets too long is shortened.
        self.next_request += CALL_TOKENS + ANSWER // 3
        needed = min(1.0, spent.ratio) * self.next_request + LEAST_ANSWER
        if spent.calls >= self.paper.tool_calls or spent.room < needed:
            self.next_request -= ANSWER // 3
            return ToolMessage("no more look-ups; answer now", tool_call_id=call["id"], name=call["name"])
        spent.calls += 1
        try:
            return await handler(request)
        except Exception as fault:
            said = f"that look-up failed ({type(fault).__name__})"
            return ToolMessage(said, tool_call_id=call["id"], name=call["name"])


def _charge(spent: Spent, message: Any, cost: int, most: int, count: Callable[[str], int]) -> bool:
    """Add what a request cost; False where the endpoint did not say so and our own count was taken.

    Our counts are from above, but of an answer it was told to write no more than `most`.
    """
    usage = getattr(message, "usage_metadata", None) or {}
    sent, received = (usage.get(name) or 0 for name in ("input_tokens", "output_tokens"))
    # A server may say what it likes; what no vocabulary needs for this text is not believed.
    is_counted = cost / FEWER <= sent <= MORE * cost
    spent.ratio = sent / cost if is_counted else 1.0
    spent.sent += int(sent) if is_counted else cost
    written = min(most, count(_text(message))) if message is not None else 0
    spent.received += int(received) if 0 < received <= MORE * most else written
    return bool(is_counted)


def _text(message: Any) -> str:
    calls = getattr(message, "tool_calls", None) or ()
    return str(message.text) + "".join(json.dumps(call["args"]) + call["name"] for call in calls)


async def cast(model: Any, paper: Paper, repair: Callable[[str], str]) -> Answer:
    """The answer of one vote, after at most one turn of repair.

    Raises OverBudget, GraphRecursionError, ValueError (no valid answer) and what the openai client raises.
    """
    asked: list[Any] = [HumanMessage(paper.user)]
    try:
        return await _turn(model, paper, asked, paper.tools)
    except (ValueError, StructuredOutputError) as fault:
        told = _last_text(fault)
        if told is None:
            raise
        if (answer := _readable(told)) is not None:
            return answer
        again = [*asked, AIMessage(told[:800] or "(nothing)"), HumanMessage(repair(_short(fault)))]
        return await _turn(model, paper, again, ())


async def _turn(model: Any, paper: Paper, messages: list[Any], tools: Sequence[StructuredTool]) -> Answer:
    schema = json_schema()
    formats: dict[str, Any] = {
        "schema": ProviderStrategy(schema, strict=True),
        "tools": ToolStrategy(schema, handle_errors=False),
        "text": None,
    }
    agent: Any = create_agent(
        model,
        tools=list(tools),
        system_prompt=paper.system,
        response_format=formats[paper.form],
        middleware=[_Budget(paper)],
    )
    state = await agent.ainvoke({"messages": messages}, {"recursion_limit": 4 * paper.tool_calls + 12})
    found = state.get("structured_response")
    if found is not None:
        return _validated(found, json.dumps(found, default=str))
    last = state["messages"][-1]
    if getattr(last, "response_metadata", {}).get("finish_reason") == "length":
        raise Cut
    return _validated(None, str(last.text))


class Cut(Exception):
    """The answer ended at its limit of tokens."""


class _NoAnswer(ValueError):
    def __init__(self, text: str, fault: Exception) -> None:
        super().__init__(_short(fault))
        self.text = text


def _validated(found: Any, text: str) -> Answer:
    try:
        return Answer.model_validate(found) if found is not None else read_answer(text)
    except ValueError as fault:
        raise _NoAnswer(text, fault) from None


def _readable(text: str) -> Answer | None:
    try:
        return read_answer(text)
    except ValueError:
        return None


def _last_text(fault: Exception) -> str | None:
    """What the model said instead of a valid answer; None where it refused."""
    if isinstance(fault, _NoAnswer):
        return fault.text
    message = getattr(fault, "ai_message", None)
    if message is None or message.additional_kwargs.get("refusal"):
        return None
    return str(message.text)


def _short(fault: Exception) -> str:
    return " ".join(str(fault).split())[:160]


# How OpenAI, vLLM, SGLang and llama.cpp say that a prompt is longer than the model's context.
_TOO_LONG = (
    "context_length", "context length", "context size", "maximum context", "too many tokens", "too long",
)  # fmt: skip


def adapted(fault: Exception, dialect: Dialect, form: str) -> bool:
    """Learn from a request that the endpoint refused; True if the vote is worth asking again."""
    if not isinstance(fault, openai.BadRequestError | openai.UnprocessableEntityError):
        return False
    said = str(fault).lower()
    if any(words in said for words in _TOO_LONG):
        dialect.shrink *= 0.5
        return dialect.shrink > 0.1
    if "temperature" in said and dialect.temperature:
        dialect.temperature = False
        return True
    at = FORMS.index(form)
    if at + 1 < len(FORMS):
        dialect.form = max(dialect.form, at + 1)
        return True
    return False


def reason(fault: BaseException) -> str:
    """Why a vote is void, in a few words that hold nothing of what the endpoint said."""
    if told := _not_json(fault):
        return told
    if isinstance(fault, openai.NotFoundError) and fault.code == NOT_RECORDED:
        return (
            "the record file holds no answer for this job's prompt; record it anew with LOGTRIAGE_LLM_RECORD"
        )
    if isinstance(fault, openai.InternalServerError):
        return f"the endpoint failed ({fault.status_code})"
    kinds: tuple[tuple[type[BaseException] | tuple[type[BaseException], ...], str], ...] = (
        (OverBudget, "over its token budget"),
        (GraphRecursionError, "went on calling tools"),
        (Cut, "the answer was cut at its limit"),
        (openai.LengthFinishReasonError, "the answer was cut at its limit"),
        (openai.ContentFilterFinishReasonError, "the model refused"),
        (openai.AuthenticationError, "the endpoint does not accept the key"),
        (openai.PermissionDeniedError, "the endpoint does not allow it"),
        (openai.NotFoundError, "the endpoint has no such model"),
        (openai.RateLimitError, "the endpoint has no capacity (429)"),
        (openai.APITimeoutError, "the endpoint did not answer in time"),
        (openai.APIConnectionError, "no connection to the endpoint"),
        (openai.APIStatusError, "the endpoint refused the request"),
        (_NoAnswer, "no valid answer"),
    )
    for kind, told in kinds:
        if isinstance(fault, kind):
            return told
    if isinstance(fault, StructuredOutputError):
        message = getattr(fault, "ai_message", None)
        refused = message is not None and message.additional_kwargs.get("refusal")
        return "the model refused" if refused else "no valid answer"
    return "the model refused" if "refus" in type(fault).__name__.lower() else "no valid answer"


def _was_never_sent(fault: BaseException | None) -> bool:
    """Whether no connection came about, so that nothing was sent or has to be paid for."""
    while fault is not None:
        if isinstance(fault, httpx2.ConnectError | httpx2.ConnectTimeout):
            return True
        fault = fault.__cause__ or fault.__context__
    return False


def _not_json(fault: BaseException) -> str:
    """What the server answered instead of JSON; empty where it did not."""
    cause: BaseException | None = fault
    while cause is not None:
        if isinstance(cause, NoJson):
            return str(cause)
        cause = cause.__cause__ or cause.__context__
    if isinstance(fault, openai.APIStatusError):
        return no_json(fault.status_code, fault.response.content)
    return ""


# With these there is no use in asking once more.
ENDPOINT_FAULTS = (openai.APIError,)
