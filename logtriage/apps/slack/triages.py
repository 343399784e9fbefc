"""Triages in processes of their own: a few side by side; the others wait, and are told how many are before.

A process that the system ends (out of memory) takes down those that run beside it: each of them is tried once
more, alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import multiprocessing
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from typing import Any, TypeVar

from logtriage.answers.reply import Reply
from logtriage.memory.verdicts import keep
from logtriage.report.document import Verdict
from logtriage.settings import Settings
from logtriage.sources.job import KnownJob

MUCH_TOO_LONG = 120.0  # seconds after which a triage that was told to end is ended
_SPAWN = multiprocessing.get_context("spawn")  # a fork would take over locks that other threads hold

T = TypeVar("T")


class TooMany(Exception):
    """So many jobs wait already that this one is not taken; the message says how many."""


class Lost(Exception):
    """The process of a triage was ended, twice; the message says what to look for."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A verdict that was kept, the paths it stands on, what could not be fetched, and whose job it is."""

    verdict: Verdict
    paths: tuple[str, ...]
    missed: tuple[str, ...]
    user: str


@dataclass(frozen=True, slots=True)
class Ticket:
    """A triage that was ordered: its result to come, and how many were before it when it was ordered."""

    result: asyncio.Task[Judged]
    ahead: int


@dataclass(slots=True)
class Triages:
    """The processes, and who waits for them. Used from one event loop."""

    settings: Settings
    _pool: ProcessPoolExecutor | None = None
    _lessons: ProcessPoolExecutor | None = None
    _running: int = 0
    _waiting: int = 0
    _slots: asyncio.Semaphore = field(default_factory=asyncio.Semaphore)
    _under_way: dict[tuple[str, ...], Ticket] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._slots = asyncio.Semaphore(self.settings.slack_triages)

    def of_job(self, job: KnownJob) -> Ticket:
        """Fetch a job's logs and judge them, without a model. Who asks for it meanwhile shares the result.

        Raises TooMany. The result raises NothingReadable, SourceFault, Lost.
        """
        return self._ordered((job.source, job.id), fetched_and_judged, job, self.settings)

    def with_model(self, first: Judged) -> Ticket:
        """Judge once more, with the model that is configured. Raises as `of_job`."""
        call = functools.partial(judged, offline=False)
        return self._ordered(("", *first.paths), call, first.paths, self.settings, first.missed, first.user)

    def _ordered(self, key: tuple[str, ...], call: Callable[..., Judged], *arguments: Any) -> Ticket:
        known = self._under_way.get(key)
        if known is not None:
            return known
        ahead = max(0, self._running + self._waiting - self.settings.slack_triages + 1)
        self._check_room()
        ticket = Ticket(asyncio.create_task(self._in_turn(call, *arguments)), ahead)
        self._under_way[key] = ticket
        ticket.result.add_done_callback(lambda task: self._ended(key, task))
        return ticket

    def _ended(self, key: tuple[str, ...], task: asyncio.Task[Judged]) -> None:
        self._under_way.pop(key, None)
        if not task.cancelled():
            task.exception()  # told to whoever waits; nobody may wait any more

    async def of_question(self, paths: tuple[str, ...], question: str) -> Reply | None:
        """What a model says to a question about a job; None where nothing that holds. Raises as `of_job`."""
        self._check_room()
        return await self._in_turn(answered_by_model, paths, question, self.settings)

    def _check_room(self) -> None:
        if self._waiting >= self.settings.slack_waiting:
            raise TooMany(f"{self._waiting} jobs wait to be triaged already; ask again in some minutes")

    async def _in_turn(self, call: Callable[..., T], *arguments: Any) -> T:
        self._waiting += 1
        try:
            await self._slots.acquire()
        finally:
            self._waiting -= 1
        self._running += 1
        try:
            return await self._alive(call, *arguments)
        finally:
            self._running -= 1
            self._slots.release()

    def _processes(self) -> ProcessPoolExecutor:
        if self._pool is None:
            self._pool = ProcessPoolExecutor(self.settings.slack_triages, _SPAWN)
        return self._pool

    async def warm(self) -> None:
        """Start the processes and let them load what a triage needs: the first question comes soon enough."""
        loop = asyncio.get_running_loop()
        pool = self._processes()
        starts = [loop.run_in_executor(pool, _warmed) for _ in range(self.settings.slack_triages)]
        with contextlib.suppress(BrokenProcessPool):  # the first triage will say what is wrong
            await asyncio.gather(*starts)

    async def _alive(self, call: Callable[..., T], *arguments: Any) -> T:
        loop = asyncio.get_running_loop()
        limit = self.settings.slack_seconds + MUCH_TOO_LONG + self.settings.llm_seconds
        pool = self._processes()
        try:
            return await asyncio.wait_for(loop.run_in_executor(pool, call, *arguments), limit)
        except BrokenProcessPool:
            self._forget(pool)
        except TimeoutError:
            self._forget(pool)
            raise Lost(f"it did not end within {limit:.0f} s: does its file system hang?") from None
        alone = ProcessPoolExecutor(1, _SPAWN)
        try:
            return await asyncio.wait_for(loop.run_in_executor(alone, call, *arguments), limit)
        except BrokenProcessPool:
            raise Lost("its process was ended, most likely by the system for want of memory") from None
        except TimeoutError:
            raise Lost(f"it did not end within {limit:.0f} s: does its file system hang?") from None
        finally:
            _ended_at_once(alone)

    def _forget(self, pool: ProcessPoolExecutor) -> None:
        if self._pool is pool:
            self._pool = None
        _ended_at_once(pool)

    async def lesson(self, call: Callable[..., T], *arguments: Any) -> T:
        """Learn from a person's word, in a process of its own: it does not wait for triages.

        Raises what `call` raises, and Lost.
        """
        if self._lessons is None:
            self._lessons = ProcessPoolExecutor(1, _SPAWN)
        pool = self._lessons
        work: Awaitable[T] = asyncio.get_running_loop().run_in_executor(pool, call, *arguments)
        try:
            return await work
        except BrokenProcessPool:
            if self._lessons is pool:
                self._lessons = None
            raise Lost("its process was ended; what was said is in the ledger") from None

    def close(self) -> None:
        """End all processes at once."""
        for pool in (self._pool, self._lessons):
            if pool is not None:
                _ended_at_once(pool)


def _ended_at_once(pool: ProcessPoolExecutor) -> None:
    processes = list((pool._processes or {}).values())
    pool.shutdown(wait=False, cancel_futures=True)
    for process in processes:
        with contextlib.suppress(OSError, ValueError):
            process.terminate()


# What follows runs in the processes.


def _warmed() -> None:
    from logtriage import examination, pipeline  # noqa: F401
    from logtriage.rulebank.bank import load_bank

    load_bank()
    time.sleep(0.2)  # so that the next start goes to another process


def fetched_and_judged(job: KnownJob, settings: Settings) -> Judged:
    """Fetch a job's logs from its sources and judge them by rules. Raises SourceFault, NothingReadable."""
    from logtriage.sources.fetched import fetched
    from logtriage.sources.lookup import configured_sources

    found = fetched(job, configured_sources(settings), settings.data_dir)
    return judged(found.paths, settings, found.missed, job.user)


def judged(
    paths: tuple[str, ...],
    settings: Settings,
    missed: tuple[str, ...] = (),
    user: str = "",
    *,
    offline: bool = True,
) -> Judged:
    """Judge what lies at paths, and keep the verdict. Raises NothingReadable."""
    from logtriage import pipeline

    enough = threading.Event()
    timer = threading.Timer(settings.slack_seconds, enough.set)
    timer.daemon = True
    timer.start()
    try:
        verdict = pipeline.triage(list(paths), settings=settings, offline=offline, enough=enough)
    finally:
        timer.cancel()
    keep(verdict, paths, settings.data_dir, user)
    return Judged(verdict, paths, missed, user)


def answered_by_model(paths: tuple[str, ...], question: str, settings: Settings) -> Reply | None:
    """A question that no verdict answers, put to the model. Raises NothingReadable."""
    from logtriage import pipeline
    from logtriage.agent.job_question import ask_about_job

    return ask_about_job(pipeline.desk_for(list(paths), settings=settings), question, settings)
