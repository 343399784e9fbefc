"""How often a message that no rule knows is given its failure type by the words of those that rules know.

    python benchmarks/message_likeness.py > benchmarks/results/message-likeness.md

A twenty-fifth of the rules at a time is left out, and their examples that are exceptions are held against the
vocabulary of the others. This is harder than what jobs bring: what is left out are the messages that most
people meet, with all their siblings.
"""

from __future__ import annotations

import random
import re

from logtriage.rulebank.bank import load_bank
from logtriage.rulebank.rule import Role, Rule
from logtriage.rulebank.vocabulary import LEAST_LEAD, is_general, vocabulary

PARTS, SEED = 25, 3
LEADS = (1.0, 2.0, 3.0, 5.0)
RAISED = re.compile(r"(?:Exception|[a-z]Error): ")
Judged = tuple[float, str, str, bool]  # lead, type given, own type, whether it is a RuntimeError


def judged(rules: list[Rule]) -> list[Judged]:
    """Every exception among the examples, without the rules of its part."""
    told = [rule for rule in rules if rule.role is Role.CAUSE and _is_kind(rule.failure_type)]
    random.Random(SEED).shuffle(told)
    found: list[Judged] = []
    for part in range(PARTS):
        left_out = {rule.id for rule in told[part::PARTS]}
        words = vocabulary([rule for rule in rules if rule.id not in left_out])
        for rule in told[part::PARTS]:
            for example in rule.examples:
                if RAISED.search(example.line):
                    scores = words.scores(example.line)
                    ranked = sorted(
                        ((score, name) for name, score in scores.items() if _is_kind(name)), reverse=True
                    )
                    (score, name), (second, _) = [*ranked, (0.0, ""), (0.0, "")][:2]
                    found.append(
                        (score - second, name, str(rule.failure_type), "RuntimeError" in example.line)
                    )
    return found


def _is_kind(failure_type: str | None) -> bool:
    return failure_type is not None and failure_type != "unknown" and not failure_type.startswith("none.")


def main() -> None:
    rules = [rule for rule in load_bank().rules if not is_general(rule)]
    print("# Messages that no rule knows, likened to those that rules know\n")
    print(
        f"By `benchmarks/message_likeness.py`, which says how; {len(rules):,} rules. "
        f"In force: a lead of {LEAST_LEAD}.\n"
    )
    print("| of | least lead (nats) | likened | of these right | right in class | code.runtime lost |")
    print("| --- | --- | --- | --- | --- | --- |")
    every = judged(rules)
    for name, chosen in (
        ("all exceptions", every),
        ("RuntimeErrors", [each for each in every if each[3]]),
    ):
        own = [each for each in chosen if each[2] == "code.runtime"]
        for lead in LEADS:
            told = [each for each in chosen if each[0] >= lead]
            right = sum(given == kind for _, given, kind, _ in told) / len(told)
            near = sum(given.split(".")[0] == kind.split(".")[0] for _, given, kind, _ in told) / len(told)
            lost = sum(each[0] >= lead and each[1] != each[2] for each in own)
            share = len(told) / len(chosen)
            print(
                f"| {len(chosen)} {name} | {lead:g} | {share:.0%} | {right:.0%} | {near:.0%} "
                f"| {lost} of {len(own)} |"
            )


if __name__ == "__main__":
    main()
