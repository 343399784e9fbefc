"""The order of the rooms: a folder of logs in, a verdict out.

What each part needs is loaded while copies of this process are at work on the part before it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from logtriage.intake.folder import discover
from logtriage.settings import Settings, load_settings
from logtriage.timing import StageClock

if TYPE_CHECKING:
    import threading

    from logtriage.agent.desk import Desk
    from logtriage.examination import Surveyed
    from logtriage.mining.catalogue import TemplateRow
    from logtriage.mining.joined import Report
    from logtriage.mining.survey import Elsewhere
    from logtriage.report.document import Verdict
    from logtriage.rulebank.matcher import Matcher

Paths = str | Path | Sequence[str | Path]


def triage(
    paths: Paths,
    *,
    offline: bool = False,
    history: Sequence[str | Path] = (),
    workers: int | None = None,
    rules: Sequence[Path] = (),
    learned: Sequence[Path] | None = None,
    progress: Report | None = None,
    enough: threading.Event | None = None,
    settings: Settings | None = None,
    elsewhere: Elsewhere | None = None,
) -> Verdict:
    """Why the job whose logs lie in `paths` died, where it began and what to do now.

    `paths` is a folder, a file, a glob, `-`, an fsspec address or several of them: all of one job.
    `history` names folders of earlier runs of the same job, whose templates are then not novel.
    `rules` are extra rule files, `learned` those of learned rules (by default all that have a say).
    `progress` is called with (file, bytes done, bytes in all). Once `enough` is set, the reading ends and
    the verdict stands on what was read so far, which `mining.left_out` then says; a model that is being asked
    is waited for no longer.
    `elsewhere` reads the parts of a large job on other machines.
    `settings` are those in force unless given; with `offline` no model is asked whatever they say.
    A broken rule in them is named under `unreadable` and the rest is used. Raises NothingReadable where
    there is nothing to read.
    """
    started = time.perf_counter()
    settings = settings or load_settings()
    job = _surveyed(
        paths,
        settings,
        workers=workers,
        rules=rules,
        learned=learned,
        progress=progress,
        enough=enough,
        elsewhere=elsewhere,
    )
    from logtriage.examination import examine, verdict_on

    # With rules of the caller's choice it is the rules that are judged, not what was said of the job.
    seen = examine(job, settings, offline=offline, history=history, is_remembered=learned is None)
    consulted = None
    if not offline:
        consulted = seen.consultation(settings, enough)
        seen.clock.lap("model")
    return verdict_on(seen, settings, consulted, seconds=time.perf_counter() - started)


def _surveyed(
    paths: Paths,
    settings: Settings,
    *,
    workers: int | None = None,
    rules: Sequence[Path] = (),
    learned: Sequence[Path] | None = None,
    progress: Report | None = None,
    enough: threading.Event | None = None,
    elsewhere: Elsewhere | None = None,
) -> Surveyed:
    """Find the logs and let the pass go over them."""
    clock = StageClock()
    processes = workers or os.cpu_count() or 1

    @cache
    def in_force() -> tuple[Matcher, Sequence[Path]]:
        """The rules, and the files of those that are not shipped."""
        from logtriage.memory.rule_folder import ACTIVE, files_in_state
        from logtriage.rulebank.bank import load_bank
        from logtriage.rulebank.matcher import Matcher

        further = (*(files_in_state(settings.data_dir, ACTIVE) if learned is None else learned), *rules)
        return Matcher(load_bank(further)), further

    def make_ready(stored: int) -> None:
        from logtriage.mining.survey import prepare

        prepare(in_force()[0], stored, processes)

    inventory = discover(paths, processes=processes, meanwhile=make_ready)
    clock.lap("intake")
    matcher, further = in_force()
    from logtriage.mining.survey import survey

    passed = survey(
        inventory.root,
        inventory.sources,
        matcher,
        workers=workers,
        rules=further,
        progress=progress,
        enough=enough,
        elsewhere=elsewhere,
        meanwhile=_load_the_rest,
    )
    clock.lap("pass")
    from logtriage.examination import Surveyed

    return Surveyed(inventory, passed, matcher, further, workers, clock)


def _load_the_rest() -> None:
    import logtriage.examination  # noqa: F401


def prompt_for(
    paths: Paths,
    *,
    settings: Settings,
    history: Sequence[str | Path] = (),
    workers: int | None = None,
    rules: Sequence[Path] = (),
) -> str:
    """The first request that a vote on this job would send, as indented JSON; nothing is sent.

    `history` and `rules` as for `triage`. Raises NothingReadable where there is nothing to read, ImportError
    without the `llm` extra.
    """
    from logtriage.agent.ask import prompt_shown

    desk = desk_for(paths, settings=settings, history=history, workers=workers, rules=rules)
    return prompt_shown(desk, settings)


def desk_for(
    paths: Paths,
    *,
    settings: Settings,
    history: Sequence[str | Path] = (),
    workers: int | None = None,
    rules: Sequence[Path] = (),
) -> Desk:
    """The job as a model may look at it, without its being asked.

    Raises NothingReadable where there is nothing to read.
    """
    job = _surveyed(paths, settings, workers=workers, rules=rules)
    from logtriage.examination import examine

    seen = examine(job, settings, history=history)
    return seen.consultation(settings.model_copy(update={"llm": "never"})).desk()


def templates(paths: Paths, *, workers: int | None = None) -> list[TemplateRow]:
    """The mined templates of a job's logs, most frequent first."""
    from logtriage.mining.catalogue import catalogue
    from logtriage.mining.survey import survey
    from logtriage.rulebank.bank import load_bank
    from logtriage.rulebank.matcher import Matcher

    inventory = discover(paths)
    passed = survey(inventory.root, inventory.sources, Matcher(load_bank()), workers=workers)
    return catalogue(inventory.sources, passed.summaries).rows
