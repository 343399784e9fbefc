"""What votes can make of a verdict: a model that always tells the truth, and one that lies as well as it can.

    python benchmarks/truth_and_lies.py CASES [CASES…] > benchmarks/results/truth-and-lies.md

CASES holds labelled cases (`logtriage eval`). Each is judged as it is, and without the rules that decide it,
as if its failure were new; of each the verdicts are taken about which a model is asked (`--llm auto`). All
votes agree, and they pass the same check and are weighed by the same code as those of a real model.

- The truthful model names the label's type and cites a line of the label.
- The liar knows the rules and the label. It tries the last lines of each file, its errors and exceptions, and
  all candidates, each alone and beside the line on which the offline verdict rests, with every type that is
  not right, and takes what turns the verdict.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

os.environ["LOGTRIAGE_DATA_DIR"] = tempfile.mkdtemp()

from reliability import Job, jobs

from logtriage.agent.answer import Answer, Citation
from logtriage.agent.ask import PROMPT, Asked
from logtriage.agent.bearing import WORDS_SCORE
from logtriage.agent.counsel import weigh
from logtriage.agent.desk import Desk, normal
from logtriage.agent.grounding import Vote, check
from logtriage.agent.occasion import occasion
from logtriage.agent.prompts import load_prompt
from logtriage.evaluation.case import labelled_cases
from logtriage.evaluation.lines import JobLines
from logtriage.intake.lines import segments
from logtriage.model import Level, Line
from logtriage.rulebank.vocabulary import Vocabulary, vocabulary
from logtriage.settings import load_settings

LAST, ERRORS = 60, 80  # lines of a file that the liar tries
VOTES = 3


def voted(desk: Desk, name: str, lines: Sequence[Line], words: Vocabulary) -> str:
    """The failure type of the verdict after unanimous votes for this one, citing these lines."""
    cited = [Citation(place=desk.place(each.file, each.number), quote=desk.shown(each, 80)) for each in lines]
    answer = Answer(
        failure_type=name, culprit_ranks=[], culprit_hosts=[], citations=cited, cause="", mitigations=[]
    )
    vote = check(answer, desk, words)
    asked = Asked(load_prompt(PROMPT), "simulated", 4000, started=VOTES)
    if not isinstance(vote, Vote):
        return desk.decision.failure_type
    asked.votes = [vote] * VOTES
    return weigh(desk, asked, load_settings(), "simulated").decision.failure_type


def told_truly(job: Job, words: Vocabulary) -> bool:
    """Whether the verdict is right after the truthful model's votes, whichever line of the label it cites."""
    places = [place for label in job.case.evidence for place in JobLines(job.case.paths).labelled(label)]
    lines = [line for place in places if (line := job.desk.line(*place)) is not None]
    told = [voted(job.desk, job.case.failure_type, [line], words) for line in lines]
    return any(name in job.case.accepted for name in told or [job.desk.decision.failure_type])


def lies(job: Job, words: Vocabulary) -> Iterator[tuple[str, tuple[Line, ...]]]:
    """Types that are not right, with lines that a rule or the words of such a type may speak for."""
    desk = job.desk
    tried: dict[tuple[str, int], Line] = {}
    for reading in desk.findings.scene.readings:
        loud = [line for line in reading.lines if line.level in (Level.ERROR, Level.CRITICAL)]
        records = desk.findings.scene.records.get(reading.source.file, ())
        raised = [each.at for record in records for each in record.raised]
        for line in (*reading.lines[-LAST:], *loud[:ERRORS], *loud[-ERRORS:], *raised):
            tried[line.file, line.number] = line
    for each in desk.findings.candidates:
        tried[each.line.file, each.line.number] = each.line
    own = [each.line for each in desk.decision.evidence[:1]]
    for line in tried.values():
        text = normal(line.text)
        hits = [hit.rule.failure_type for part in segments(text) for hit in desk.matcher.match(part)]
        names = {name for name, score in words.scores(text).items() if score >= WORDS_SCORE}
        names |= {name for name in hits if name}
        names |= {each.failure_type for each in desk.findings.candidates if each.line == line}
        for name in sorted(names - job.case.accepted):
            yield name, (line,)
            if own and own[0] != line:
                yield name, (line, *own)


def main(arguments: Sequence[str]) -> int:
    counts: Counter[tuple[bool, str]] = Counter()
    turned: list[str] = []
    for job in jobs([case for folder in arguments for case in labelled_cases(Path(folder))]):
        decision = job.desk.decision
        right = decision.failure_type in job.case.accepted
        counts[job.is_new, "verdicts"] += 1
        rivals = (value for _, value, _ in decision.alternatives)
        if not occasion(decision.failure_type, decision.confidence, rivals):
            continue
        words = vocabulary(job.desk.bank.rules)
        counts[job.is_new, "a model is asked about"] += 1
        counts[job.is_new, "right offline"] += right
        counts[job.is_new, "right after the truthful model's votes"] += told_truly(job, words)
        found = next((lie for lie in lies(job, words) if right and _turns(job, *lie, words)), None)
        counts[job.is_new, "right, and turned by the liar"] += found is not None
        if found is not None:
            name, lines = found
            turned.append(f"{job.case.name}: {decision.failure_type} to {name} by {lines[0].file}")
    print("# What a truthful model and a liar can make of a verdict\n")
    print("By `benchmarks/truth_and_lies.py`, which says how.\n")
    print("| | as it is | as if new |\n| --- | --- | --- |")
    for told in dict.fromkeys(name for _, name in counts):
        print(f"| {told} | {counts[False, told]} | {counts[True, told]} |")
    for each in turned:
        print(each, file=sys.stderr)
    return 0


def _turns(job: Job, name: str, lines: tuple[Line, ...], words: Vocabulary) -> bool:
    return voted(job.desk, name, lines, words) not in job.case.accepted


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
