"""Ask for votes: side by side, no more than can matter, and never beyond the time that was given."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from logtriage.agent.desk import Desk
from logtriage.agent.evidence_file import EvidenceFile, evidence_file
from logtriage.agent.grounding import Void, Vote, check
from logtriage.agent.prompts import Prompt, load_prompt, types_in_short
from logtriage.agent.tokens import PER_MESSAGE, counter
from logtriage.agent.tools import toolbox
from logtriage.agent.votes import is_settled
from logtriage.rulebank.vocabulary import Vocabulary, vocabulary
from logtriage.settings import Settings

PROMPT = "triage_vote"
# Of a vote's tokens; the rest is for instructions, look-ups and the answer.
EVIDENCE_SHARE = 0.45
LOOK = 0.05  # seconds between looks at whether somebody had enough


@dataclass(slots=True)
class Asked:
    """What came back: votes that passed the check, why others did not, and what all of it cost."""

    prompt: Prompt
    model: str
    limit: int
    votes: list[Vote] = field(default_factory=list)
    voids: Counter[str] = field(default_factory=Counter)
    started: int = 0
    requests: int = 0
    tool_calls: int = 0
    sent: int = 0  # tokens
    received: int = 0
    largest_vote: int = 0  # tokens of the dearest vote
    seconds: float = 0.0
    unkept: str = ""  # why answers could not be recorded
    fault: str = ""  # why no vote came back, if none did
    is_late: bool = False
    is_stopped: bool = False  # somebody had enough before the votes were in

    @property
    def returned(self) -> int:
        return len(self.votes) + sum(self.voids.values())


@dataclass(frozen=True, slots=True)
class _Texts:
    """What a vote is shown, with and without look-ups."""

    system: str
    user: str
    has_tools: bool


def ask(desk: Desk, settings: Settings, *, until: float, enough: threading.Event | None = None) -> Asked:
    """The votes on a job. Whatever the endpoint does, this returns by `until` (of time.monotonic).

    Once `enough` is set it returns at once, and what came back until then is no answer.
    """
    asked = Asked(load_prompt(PROMPT), settings.llm_model, settings.llm_tokens_per_vote)
    began = time.monotonic()
    done = threading.Event()
    snapshot = threading.Lock()
    ballots = _Ballots(desk, settings, asked, until, snapshot)

    def run() -> None:
        try:
            asyncio.run(ballots.collect())
        except asyncio.CancelledError:
            pass  # closed below
        except Exception as fault:
            with snapshot:
                asked.fault = asked.fault or str(fault) or type(fault).__name__
        finally:
            done.set()

    # A thread of its own: a name look-up that hangs cannot be cancelled, only left behind.
    try:
        threading.Thread(target=run, name="votes", daemon=True).start()
    except RuntimeError as fault:  # no more threads
        asked.fault = str(fault)
        done.set()
    while not done.wait(min(LOOK, max(0.0, until - time.monotonic()))):
        asked.is_stopped = enough is not None and enough.is_set()
        if asked.is_stopped or time.monotonic() >= until:
            break
    with snapshot:
        ballots.close()
        asked.seconds = round(time.monotonic() - began, 3)
        asked.is_late = not asked.is_stopped and (not done.is_set() or ballots.is_late)
        if asked.is_stopped:
            asked.fault = "asking was stopped"
        elif not asked.returned and not asked.fault:
            asked.fault = ballots.too_late(until - began)
    return asked


def prompt_shown(desk: Desk, settings: Settings) -> str:
    """The body of the first request of a vote, exactly as it would be sent, as indented JSON."""
    bodies: list[bytes] = []

    class Shown(Exception):
        pass

    def seen(body: bytes) -> None:
        bodies.append(body)
        raise Shown

    asked = Asked(load_prompt(PROMPT), settings.llm_model, settings.llm_tokens_per_vote)
    alone = settings.model_copy(update={"llm_votes": 1, "llm_replay": "", "llm_record": ""})
    ballots = _Ballots(desk, alone, asked, time.monotonic() + 600, threading.Lock(), seen)
    asyncio.run(ballots.collect())
    if not bodies:
        raise RuntimeError(asked.fault or "no request was made")
    return json.dumps(json.loads(bodies[0]), ensure_ascii=False, indent=2) + "\n"


def texts(
    desk: Desk, settings: Settings, tools_cost: int, *, shrink: float = 1.0, is_counted: bool = True
) -> tuple[_Texts, EvidenceFile]:
    """The instructions and the evidence file, with look-ups where a vote can pay for one."""
    from logtriage.agent.ballot import affords_a_look, cost_of_form

    count = counter(settings.llm_model)
    prompt = load_prompt(PROMPT)
    limit = settings.llm_tokens_per_vote
    evidence = evidence_file(desk, int(limit * EVIDENCE_SHARE * shrink), count)
    user = prompt.part("user", evidence=evidence.text)

    def system(tools: bool) -> str:
        return prompt.part("system", types=types_in_short(), tools=tools)

    bare = count(system(True)) + count(user) + 2 * PER_MESSAGE + cost_of_form("schema", count)
    look = settings.llm_tool_calls > 0 and affords_a_look(limit, bare, tools_cost, is_counted=is_counted)
    return _Texts(system(look), user, look), evidence


class _Ballots:
    """The votes under way. Started no faster than they can matter: a majority first, then what it lacks."""

    def __init__(
        self,
        desk: Desk,
        settings: Settings,
        asked: Asked,
        until: float,
        lock: threading.Lock,
        on_request: Callable[[bytes], None] | None = None,
    ) -> None:
        self.desk, self.settings, self.asked, self.until = desk, settings, asked, until
        self.lock, self.on_request = lock, on_request
        self.is_closed = False
        self.is_late = False
        self.under_way: tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]] | None = None
        self.words: Vocabulary | None = None
        self.models: dict[bool, Any] = {}
        self.shown: dict[tuple[float, bool], tuple[_Texts, EvidenceFile]] = {}
        self.http: Any = None
        self.endpoint_faults = 0
        self.began = 0.0  # when the first request could be made
        self.loading = 0.0  # seconds until then
        self.slowest = 0.0  # seconds from the first request to the latest vote that came back

    def close(self) -> None:
        """Count no vote any more, and let go of those under way; from another thread."""
        self.is_closed = True
        if self.under_way is not None:
            loop, task = self.under_way
            with contextlib.suppress(RuntimeError):  # it is over already
                loop.call_soon_threadsafe(task.cancel)

    def too_late(self, budget: float) -> str:
        """Why no vote came back in the seconds that there were."""
        if not self.began:
            return "the time budget was over before the model's client was loaded, so nobody was asked"
        told = "no vote came back within the time budget"
        if self.loading < budget / 4:
            return told
        return f"{told}, of which {self.loading:.1f} of {budget:.1f} s went into loading the model's client"

    async def collect(self) -> None:
        began = time.monotonic()
        task = asyncio.current_task()
        assert task is not None
        self.under_way = (asyncio.get_running_loop(), task)
        # Imported here, in the thread of the votes: it takes seconds, and they count.
        from langsmith import tracing_context

        from logtriage.agent import ballot, endpoint

        # The client's own, of answers in a wrong shape; what comes of those is told as votes that are void.
        warnings.filterwarnings("ignore", message="Pydantic serializer warnings", category=UserWarning)
        self.words = vocabulary(self.desk.bank.rules)
        self.dialect = ballot.Dialect()
        self.tools = ballot.structured(toolbox(self.desk))
        self.tools_cost = ballot.cost_of_tools(self.tools, counter(self.settings.llm_model))
        seconds = max(0.1, self.until - time.monotonic())
        # LangSmith's variables would send prompts and answers to a third party.
        with tracing_context(enabled=False):
            told = self.on_request, self._unkept
            async with endpoint.client(self.settings, seconds, *told) as self.http:
                self._texts()
                self._model(self.dialect.temperature)
                self.began = time.monotonic()
                self.loading = self.began - began
                await self._rounds()

    async def _rounds(self) -> None:
        most = self.settings.llm_votes
        running: set[asyncio.Task[Vote | Void]] = set()
        try:
            while True:
                tally = Counter(vote.failure_type for vote in self.asked.votes)
                outstanding = most - self.asked.returned
                if outstanding <= 0 or is_settled(tally, outstanding):
                    return
                if self.asked.returned and self.endpoint_faults == self.asked.returned and not running:
                    self.asked.fault = next(iter(self.asked.voids))
                    return
                lead = max(tally.values(), default=0)
                lacking = most // 2 + 1 - lead - len(running)
                wanted = max(lacking, 0 if running else 1)
                for _ in range(min(wanted, most - self.asked.started)):
                    self.asked.started += 1
                    running.add(asyncio.create_task(self._vote()))
                left = self.until - time.monotonic()
                spare = self.asked.started < most
                finished, running = await asyncio.wait(
                    running,
                    timeout=max(0.0, min(left, self._patience()) if spare else left),
                    return_when=asyncio.FIRST_COMPLETED,
                )
                if not finished and self.until <= time.monotonic():
                    self.is_late = True
                    return
                if not finished:  # one that is far slower than its like may never come
                    self.asked.started += 1
                    running.add(asyncio.create_task(self._vote()))
                    continue
                self.slowest = max(self.slowest, time.monotonic() - self.began)
                with self.lock:
                    if self.is_closed:
                        return
                    for task in finished:
                        self._count(task.result())
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    def _unkept(self, why: str) -> None:
        self.asked.unkept = why

    def _patience(self) -> float:
        """Seconds to wait for votes that are out before one more is asked in their place."""
        if self.slowest:
            return max(2.0, 2 * self.slowest)
        return max(2.0, (self.until - self.began) / 4)

    def _count(self, result: Vote | Void) -> None:
        if isinstance(result, Vote):
            self.asked.votes.append(result)
        else:
            self.asked.voids[result.reason] += 1

    async def _vote(self) -> Vote | Void:
        from logtriage.agent import ballot

        for _ in range(len(ballot.FORMS) + 4):
            form = ballot.FORMS[self.dialect.form]
            shown, _ = self._texts()
            paper = self._paper(shown, form)
            try:
                answer = await ballot.cast(self._model(self.dialect.temperature), paper, self._repair)
                assert self.words is not None
                return check(answer, self.desk, self.words)
            except asyncio.CancelledError:
                raise
            except Exception as fault:
                if ballot.adapted(fault, self.dialect, form):
                    continue
                if isinstance(fault, ballot.ENDPOINT_FAULTS):
                    self.endpoint_faults += 1
                return Void(ballot.reason(fault))
            finally:
                self._add(paper.spent)
        return Void("the endpoint refused the request")

    def _texts(self) -> tuple[_Texts, EvidenceFile]:
        """The same for all votes until the endpoint is found to want something else."""
        wanted = (self.dialect.shrink, self.dialect.is_counted)
        if wanted not in self.shown:
            self.shown[wanted] = texts(
                self.desk, self.settings, self.tools_cost, shrink=wanted[0], is_counted=wanted[1]
            )
        return self.shown[wanted]

    def _repair(self, fault: str) -> str:
        return self.asked.prompt.part("repair", fault)

    def _paper(self, shown: _Texts, form: str) -> Any:
        from logtriage.agent import ballot, endpoint

        return ballot.Paper(
            system=shown.system,
            user=shown.user,
            tools=self.tools if shown.has_tools and form != "text" else (),
            tools_cost=self.tools_cost,
            count=counter(self.settings.llm_model),
            tool_calls=self.settings.llm_tool_calls,
            extra_limit=not endpoint.is_openai(self.settings),
            spent=ballot.Spent(self.settings.llm_tokens_per_vote),
            dialect=self.dialect,
            form=form,
        )

    def _model(self, temperature: bool) -> Any:
        from logtriage.agent import endpoint

        if temperature not in self.models:
            self.models[temperature] = endpoint.chat_model(self.settings, self.http, temperature=temperature)
        return self.models[temperature]

    def _add(self, spent: Any) -> None:
        with self.lock:
            if self.is_closed:
                return
            self.asked.requests += spent.requests
            self.asked.tool_calls += spent.calls
            self.asked.sent += spent.sent
            self.asked.received += spent.received
            self.asked.largest_vote = max(self.asked.largest_vote, spent.sent + spent.received)
