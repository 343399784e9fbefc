"""How much a confidence is worth on labelled cases: without a model, and after votes of a made-up one.

    python benchmarks/reliability.py CASES > benchmarks/results/reliability.md

CASES holds labelled cases (`logtriage eval`). Each is judged twice: as it is, and without the rules that
decide it, as if its failure were new. Then the model of `vote_calibration.py` votes on each: a right vote
cites a line of the label; a wrong one names a type whose words the label's line has as well, or one that
another line of this job speaks for. The votes pass the same check against the logs as real ones, and are
pooled and weighed by the same code. Rules were mended after these cases, so the first offline table flatters.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

os.environ["LOGTRIAGE_DATA_DIR"] = tempfile.mkdtemp()

from vote_calibration import ACCURACIES, FAVOURED, MOST_VOTES, competence, table

from logtriage.agent.answer import Answer, Citation
from logtriage.agent.ask import PROMPT, Asked
from logtriage.agent.consult import Consultation
from logtriage.agent.counsel import weigh
from logtriage.agent.desk import Desk, normal
from logtriage.agent.grounding import Vote, check
from logtriage.agent.prompts import load_prompt
from logtriage.agent.votes import is_settled, pool
from logtriage.artefacts.deposits import read_deposits
from logtriage.diagnose.offline import decide
from logtriage.evaluation.case import Case, labelled_cases
from logtriage.evaluation.lines import JobLines
from logtriage.examination import extents_of, localise
from logtriage.intake.folder import discover
from logtriage.mining.catalogue import catalogue
from logtriage.mining.survey import survey
from logtriage.model import Line
from logtriage.rulebank.bank import Bank, load_bank
from logtriage.rulebank.matcher import Matcher
from logtriage.rulebank.vocabulary import Vocabulary, vocabulary
from logtriage.settings import load_settings

SEEDS = 3


@dataclass(frozen=True)
class Job:
    """One case before the model, with or without its rules; the lines that a vote may cite."""

    case: Case
    is_new: bool
    desk: Desk
    right: Line | None
    wrong: tuple[tuple[str, Line], ...]


@dataclass(frozen=True)
class Outcome:
    """What came of the votes on a job; `offline` is the confidence of a verdict that they confirm, else 0."""

    is_new: bool
    accuracy: float
    offline: float
    told: float  # the confidence of the verdict
    is_right: bool
    is_voted: bool  # the votes confirm the verdict, or replace it


def jobs(cases: Sequence[Case]) -> Iterator[Job]:
    bank = load_bank()
    for case in cases:
        whole = _job(case, bank, is_new=False)
        yield whole
        known = {each.rule for each in whole.desk.decision.evidence if each.rule}
        lines = {(each.line.file, each.line.number) for each in whole.desk.decision.evidence}
        for each in whole.desk.findings.candidates:
            if each.rule is not None and (each.line.file, each.line.number) in lines:
                known.add(each.rule.id)
        if known:
            less = Bank(tuple(rule for rule in bank.rules if rule.id not in known), bank.explains, "less")
            yield _job(case, less, is_new=True)


def _job(case: Case, bank: Bank, *, is_new: bool) -> Job:
    matcher = Matcher(bank)
    inventory = discover(list(case.paths))
    passed = survey(inventory.root, inventory.sources, matcher, workers=1)
    mined = catalogue(inventory.sources, passed.summaries)
    deposits = read_deposits(inventory.root, inventory.artefacts, extents_of(inventory, passed))
    findings = localise(inventory, passed, bank, matcher, deposits)
    unasked = load_settings().model_copy(update={"llm": "never"})
    desk = Consultation(findings, decide(findings), mined, inventory, bank, matcher, unasked).desk()
    places = [place for label in case.evidence for place in JobLines(case.paths).labelled(label)]
    shown = (desk.line(*place) for place in places)
    others = {
        each.failure_type: each.line for each in findings.candidates if each.failure_type not in case.accepted
    }
    errors = [
        line for reading in findings.scene.readings for line in reading.lines[-30:] if line.text.strip()
    ]
    wrong = [*others.items(), *(("code.runtime", line) for line in errors[-3:])]
    right = next((line for line in shown if line is not None), None)
    if right is not None:
        scores = vocabulary(bank.rules).scores(normal(right.text))
        likely = sorted(scores, key=lambda name: (-scores[name], name))
        wrong += [(name, right) for name in [each for each in likely if each not in case.accepted][:3]]
    return Job(case, is_new, desk, right, tuple(wrong))


def cast(job: Job, accuracy: float, random: np.random.Generator, words: Vocabulary) -> Asked:
    """The votes of a made-up model on a job."""
    chance = competence(accuracy, random)
    favourite = int(random.integers(len(job.wrong))) if job.wrong else 0
    asked = Asked(load_prompt(PROMPT), "simulated", 4000)
    while asked.returned < MOST_VOTES:
        tally = Counter(vote.failure_type for vote in asked.votes)
        if asked.returned >= MOST_VOTES // 2 + 1 and is_settled(tally, MOST_VOTES - asked.returned):
            break
        asked.started += 1
        if random.random() < chance and job.right is not None:
            name, line = job.case.failure_type, job.right
        elif job.wrong:
            at = favourite if random.random() < FAVOURED else int(random.integers(len(job.wrong)))
            name, line = job.wrong[at]
        else:
            name, line = "unknown", None
        vote = check(_answer(job, name, line), job.desk, words)
        if isinstance(vote, Vote):
            asked.votes.append(vote)
        else:
            asked.voids[vote.reason] += 1
    return asked


def _answer(job: Job, name: str, line: Line | None) -> Answer:
    cited = []
    if line is not None:
        place = job.desk.place(line.file, line.number)
        cited = [Citation(place=place, quote=job.desk.shown(line, 80))]
    return Answer(
        failure_type=name, culprit_ranks=[], culprit_hosts=[], citations=cited, cause="", mitigations=[]
    )


def outcomes(cases: Sequence[Case]) -> tuple[list[Outcome], list[tuple[bool, float, bool]]]:
    """What votes came to, and (is new, confidence, is right) of the offline verdicts."""
    found: list[Outcome] = []
    offline: list[tuple[bool, float, bool]] = []
    settings = load_settings()
    random = np.random.default_rng(20)
    for job in jobs(cases):
        before = job.desk.decision
        offline.append((job.is_new, before.confidence, before.failure_type in job.case.accepted))
        words = vocabulary(job.desk.bank.rules)
        for accuracy in ACCURACIES:
            for _ in range(SEEDS):
                asked = cast(job, accuracy, random, words)
                pooled = pool(asked.votes, asked.returned)
                after = weigh(job.desk, asked, settings, "simulated").decision
                agreed = pooled.failure_type == before.failure_type
                is_named = pooled.failure_type not in (None, "unknown")
                found.append(
                    Outcome(
                        job.is_new, accuracy, before.confidence if agreed else 0.0, after.confidence,
                        after.failure_type in job.case.accepted,
                        is_named and (agreed or after.decided_by == "llm"),
                    )
                )  # fmt: skip
    return found, offline


def main(arguments: Sequence[str]) -> int:
    found, offline = outcomes(labelled_cases(Path(arguments[0])))
    print("# Confidence: how often verdicts are right\n\nBy `benchmarks/reliability.py`, which says how.")
    for is_new in (False, True):
        told = [(confidence, right) for new, confidence, right in offline if new is is_new]
        table("Offline, rules for it taken away" if is_new else "Offline", told)
    for is_new in (False, True):
        own = [(each.told, each.is_right) for each in found if each.is_voted and each.is_new is is_new]
        table("Votes, rules for it taken away" if is_new else "Votes", own)
    alone = [(each.told, each.is_right) for each in found if each.is_voted and not each.offline]
    table("Votes that decide", alone)
    for accuracy in ACCURACIES:
        own = [each for each in found if each.accuracy == accuracy and each.is_voted]
        table(f"A model of accuracy {accuracy}", [(each.told, each.is_right) for each in own])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
