"""One job examined without a model: what its logs show and the decision on it, as a verdict tells them."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from logtriage.diagnose.course import onset
from logtriage.diagnose.decision import Decision
from logtriage.diagnose.dossier import compose
from logtriage.diagnose.likened import likened
from logtriage.diagnose.novel import Novelty, novelty, with_novel_lines
from logtriage.diagnose.offline import decide
from logtriage.diagnose.quiet import of_part
from logtriage.diagnose.recalled import Recalled, recalled, with_memory
from logtriage.intake.earlier_runs import EarlierRun, earlier_runs, of_the_last
from logtriage.intake.folder import Inventory, discover
from logtriage.intake.reading import Extent, chosen
from logtriage.intake.stored_lines import remade_files
from logtriage.localize.closer import with_companions, with_onset
from logtriage.localize.findings import INHERITED, STORES, Findings, find
from logtriage.localize.habits import Kinds
from logtriage.localize.scene import read_scene
from logtriage.memory.rule_folder import trial_sightings
from logtriage.mining.catalogue import Catalogue, catalogue
from logtriage.mining.joined import Survey
from logtriage.mining.places import odd_captures, places, shares
from logtriage.mining.survey import survey
from logtriage.model import Source, Unreadable
from logtriage.report.document import Verdict, iso_time
from logtriage.report.stored_places import with_stored_places
from logtriage.rulebank.bank import Bank
from logtriage.rulebank.matcher import Matcher
from logtriage.rulebank.rule import Fault
from logtriage.settings import Settings
from logtriage.timing import StageClock

if TYPE_CHECKING:  # what few jobs need is loaded for them alone
    import threading

    from logtriage.agent.consult import Consultation
    from logtriage.agent.routine import Routine
    from logtriage.artefacts.deposits import Deposits


@dataclass(frozen=True, slots=True)
class Surveyed:
    """A job over which the pass went, and what it was looked at with."""

    inventory: Inventory
    passed: Survey
    matcher: Matcher
    rules: Sequence[Path]  # files that its bank has beside the shipped ones
    workers: int | None
    clock: StageClock


@dataclass(frozen=True, slots=True)
class Examined:
    """A job and the verdict on it without a model: all that a model may be asked about, or shown."""

    inventory: Inventory
    passed: Survey
    mined: Catalogue
    bank: Bank
    matcher: Matcher
    findings: Findings
    decision: Decision
    recalls: Sequence[Recalled]
    novelties: Novelty
    routine: Routine | None
    earlier: Sequence[Earlier]
    beside: Sequence[EarlierRun]  # runs in the same folder, which ended before this one began
    unreadable: tuple[Unreadable, ...]
    clock: StageClock

    def consultation(self, settings: Settings, enough: threading.Event | None = None) -> Consultation:
        """What a model says of it, as far as these settings let it be asked."""
        from logtriage.agent.consult import Consultation
        from logtriage.agent.desk import Precedent

        precedents = [
            Precedent(said.failure_type, said.title, each.likeness, said.mitigation, said.verdict_id)
            for each in self.recalls
            for said in (each.diagnosis,)
        ]
        job = (self.findings, self.decision, self.mined, self.inventory, self.bank, self.matcher)
        return Consultation(*job, settings, precedents, self.routine, enough)


def examine(
    job: Surveyed,
    settings: Settings,
    *,
    offline: bool = False,
    history: Sequence[str | Path] = (),
    is_remembered: bool = True,
) -> Examined:
    """The job examined, of several runs in one folder the last.

    `history` names folders of earlier runs. What was confirmed of jobs like it counts unless it is not to be
    `is_remembered`.
    """
    look = partial(_examined, job, settings, offline=offline, history=history, is_remembered=is_remembered)
    seen = look(apart=True)
    if seen.beside and seen.decision.failure_type.startswith(INHERITED):
        # What the last run could not use may be what an earlier one could not store.
        whole = look(apart=False)
        return whole if whole.decision.failure_type.startswith(STORES) else seen
    return seen


def _examined(
    job: Surveyed,
    settings: Settings,
    *,
    offline: bool,
    history: Sequence[str | Path],
    is_remembered: bool,
    apart: bool,
) -> Examined:
    """The job examined; of several runs in one folder the last, if they are to be kept `apart`."""
    inventory, passed, matcher, clock = job.inventory, job.passed, job.matcher, job.clock
    bank = matcher.bank
    extents = extents_of(inventory, passed)
    beside = earlier_runs(inventory.root, inventory.sources, extents) if apart else ()
    if beside:
        last = of_the_last(inventory, beside)
        inventory, passed = last, _of_sources(passed, inventory.sources, last.sources)
    mined = catalogue(inventory.sources, passed.summaries)
    earlier = [_earlier(folder, matcher, job.workers, job.rules) for folder in history]
    healthy = [each for each in earlier if each.is_healthy]
    clock.lap("templates")
    deposits = _deposits(inventory, passed)
    clock.lap("artefacts")
    usual = frozenset[bytes]().union(*(each.kinds for each in healthy)) if healthy else None
    processes = job.workers or os.cpu_count() or 1
    findings = localise(inventory, passed, bank, matcher, deposits, processes, usual or ())
    clock.lap("localisation")
    decision = likened(decide(findings), matcher)
    recalls = recalled(findings, decision, matcher, settings, offline=offline) if is_remembered else ()
    decision = with_memory(decision, recalls)
    began = onset(findings, decision)[1]
    is_slow = decision.failure_type.startswith("slow.")
    findings = with_onset(
        findings,
        began,
        matcher,
        inventory.root,
        inventory.sources,
        list(extents_of(inventory, passed).values()),
        is_slow=is_slow,
    )
    novelties = novelty(findings, decision, inventory.root, inventory.sources, passed.summaries, usual)
    decision = with_novel_lines(findings, decision, novelties)
    clock.lap("decision")
    return Examined(
        inventory=inventory,
        passed=passed,
        mined=mined,
        bank=bank,
        matcher=matcher,
        findings=findings,
        decision=decision,
        recalls=recalls,
        novelties=novelties,
        routine=_routine(findings, mined, healthy, matcher, settings.data_dir),
        earlier=earlier,
        beside=beside,
        unreadable=(
            *(_unused(each) for each in bank.faults),
            *inventory.unreadable,
            *passed.unreadable,
            *(deposits.unreadable if deposits else ()),
        ),
        clock=clock,
    )


def verdict_on(
    seen: Examined,
    settings: Settings,
    consulted: Consultation | None,
    *,
    seconds: float,
) -> Verdict:
    """What is told of an examined job, of which a model was `consulted` or was not, after so many seconds."""
    last_word = seen if consulted is None else consulted
    decision, routine = last_word.decision, last_word.routine
    if seen.passed.unread:
        decision = of_part(decision, seen.findings)
    verdict = compose(
        seen.findings,
        decision,
        inventory=seen.inventory,
        passed=seen.passed,
        unreadable=seen.unreadable,
        catalogue=seen.mined,
        novel=_novel(seen.mined, seen.earlier) if seen.earlier else None,
        novelty=seen.novelties,
        trial=trial_sightings(settings.data_dir, seen.passed.summaries),
        bank=seen.bank,
        seconds=seconds,
        stages=seen.clock.stages,
    )
    verdict = verdict if consulted is None else consulted.told_in(verdict)
    verdict = verdict if routine is None else _with_routine(verdict, routine, seen.mined)
    unfit = [each for each in seen.earlier if not each.is_healthy]
    verdict = _with_left_out(verdict, (*map(_told_of_run, seen.beside), *map(_told_of_unfit, unfit)))
    remade = remade_files(seen.inventory.root, seen.inventory.sources)
    return with_stored_places(verdict, remade) if remade else verdict


def _unused(fault: Fault) -> Unreadable:
    named = f"rule {fault.rule}, " if fault.rule else ""
    return Unreadable(fault.file, f"{named}line {fault.line}: {fault.message}; not used")


def _deposits(inventory: Inventory, passed: Survey) -> Deposits | None:
    if not inventory.artefacts:
        return None
    from logtriage.artefacts.deposits import read_deposits

    return read_deposits(inventory.root, inventory.artefacts, extents_of(inventory, passed))


def _of_sources(passed: Survey, sources: Sequence[Source], chosen: Sequence[Source]) -> Survey:
    """What a pass over sources found in some of them, which are called as they were."""
    at = {source.file: number for number, source in enumerate(sources)}
    order = [at[source.file] for source in chosen]
    return replace(
        passed,
        summaries=tuple(passed.summaries[number] for number in order),
        kept=tuple(passed.kept[number] for number in order),
    )


def extents_of(inventory: Inventory, passed: Survey) -> dict[str, Extent]:
    """What the pass knows of each file, without places."""
    return {
        source.file: Extent(each.bytes, each.lines, (), kept=kept)
        for source, each, kept in zip(inventory.sources, passed.summaries, passed.kept, strict=True)
    }


def localise(
    inventory: Inventory,
    passed: Survey,
    bank: Bank,
    matcher: Matcher,
    deposits: Deposits | None = None,
    processes: int = 1,
    usual: Collection[bytes] = (),
) -> Findings:
    """Close reading, by so many processes, and localisation of what the pass found.

    `usual` are the kinds of lines of earlier good runs.
    """
    by_id = {rule.id: rule for rule in bank.rules}
    odd = odd_captures(passed.summaries)
    extents = [
        Extent(each.bytes, each.lines, places(each, by_id, odd), share, kept)
        for each, share, kept in zip(
            passed.summaries, shares(passed.summaries, by_id), passed.kept, strict=True
        )
    ]
    choices = chosen(inventory.root, inventory.sources, extents, processes=processes)
    files = (source.file for source in inventory.sources)
    kinds = Kinds(dict(zip(files, passed.summaries, strict=True)), usual)
    findings = find(read_scene(choices, matcher, processes, passed.summaries), bank, deposits, kinds)
    return with_companions(findings, inventory.root, inventory.sources, extents)


@dataclass(frozen=True, slots=True)
class Earlier:
    """An earlier run of the job, and how it ended."""

    folder: str
    catalogue: Catalogue
    kinds: frozenset[bytes]  # of its lines
    failure_type: str

    @property
    def is_healthy(self) -> bool:
        """Only such a run shows what is routine: one that failed wrote of its failure too."""
        return self.failure_type.startswith("none.")


def _earlier(folder: str | Path, matcher: Matcher, workers: int | None, rules: Sequence[Path]) -> Earlier:
    processes = workers or os.cpu_count() or 1
    inventory = discover(folder, processes=processes)
    passed = survey(inventory.root, inventory.sources, matcher, workers=processes, rules=rules)
    findings = localise(inventory, passed, matcher.bank, matcher, _deposits(inventory, passed), processes)
    return Earlier(
        folder=str(folder),
        catalogue=catalogue(inventory.sources, passed.summaries),
        kinds=frozenset(key for summary in passed.summaries for key in summary.keys),
        failure_type=decide(findings).failure_type,
    )


def _novel(mined: Catalogue, earlier: Sequence[Earlier]) -> int:
    known = {text for each in earlier for text in each.catalogue.masked}
    return len({row.template for row in mined.rows if not row.masked & known})


def _routine(
    findings: Findings, mined: Catalogue, healthy: Sequence[Earlier], matcher: Matcher, data_dir: Path
) -> Routine | None:
    """What jobs of this kind always write, where earlier runs are given or were learned from."""
    if not healthy and not (data_dir / "families").is_dir():
        return None
    from logtriage.agent.routine import recognised

    return recognised(findings, mined, [each.catalogue for each in healthy], matcher, data_dir)


def _with_routine(verdict: Verdict, routine: Routine, mined: Catalogue) -> Verdict:
    from logtriage.agent.routine import told

    mining = verdict.mining.model_copy(update={"routine": told(routine, mined)})
    return verdict.model_copy(update={"mining": mining})


def _told_of_unfit(each: Earlier) -> str:
    return (
        f"the earlier run {each.folder} did not end well ({each.failure_type}): "
        "what it wrote is not taken for usual"
    )


def _told_of_run(each: EarlierRun) -> str:
    return (
        f"{each.name} is another run, which ended at {iso_time(each.ended)} before the last one began: "
        "triage it by itself"
    )


def _with_left_out(verdict: Verdict, told: Sequence[str]) -> Verdict:
    left_out = (*verdict.mining.left_out, *told)
    return verdict.model_copy(update={"mining": verdict.mining.model_copy(update={"left_out": left_out})})
