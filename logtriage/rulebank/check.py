"""Proving the bank: form of each rule, each rule on its own examples, and on those of all others."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

from logtriage.regex import regex
from logtriage.rulebank.bank import Bank, BankFault, pattern_of, read_rule_file, rule_files
from logtriage.rulebank.matcher import Matcher, found_in, without_digits
from logtriage.rulebank.rule import WORD, Fault, Mark, Role, Rule, Strength, literal
from logtriage.taxonomy import taxonomy

_ID = regex(r"[a-z0-9_]+(\.[a-z0-9_-]+)+")
_NEEDED_GROUP = {Mark.STEP: ("step",), Mark.EXIT: ("exitcode", "signal")}


def lint(rules: Sequence[Rule]) -> list[Fault]:
    """Faults of form: ids, keywords, groups, missing examples, tails that cost time."""
    faults: list[Fault] = []
    for rule in rules:

        def fault(message: str, severity: str = "error", rule: Rule = rule) -> None:
            faults.append(Fault(rule.file, rule.line, rule.id, message, severity))

        if not _ID.fullmatch(rule.id):
            fault("id must be lower case words joined by dots, such as nccl.socket.refused")
        for keyword in rule.keywords:
            if keyword.startswith(WORD) != keyword.endswith(WORD):
                fault(f"keyword {keyword!r} is marked as a word at one end only")
            if len(without_digits(literal(keyword)).strip()) < 3:
                fault(f"keyword {keyword!r} has fewer than three characters that are no digits")
        if not rule.examples:
            fault("no example: a rule proves itself on at least one line that it must match")
        if re.search(r"\.[*+]\)?\$?$", rule.pattern):
            fault("pattern ends in .* or .+: it matches no more and costs time", "warning")
        groups = pattern_of(rule.pattern).groupindex
        if rule.marks in _NEEDED_GROUP and not any(name in groups for name in _NEEDED_GROUP[rule.marks]):
            fault(f"it marks {rule.marks} and needs a group {' or '.join(_NEEDED_GROUP[rule.marks])}")
        for name in re.findall(r"\{(\w+)\}", rule.title):
            if name not in groups:
                fault(f"title names {{{name}}}, which the pattern does not capture")
        for name in rule.explains:
            if name not in taxonomy() and not name.endswith(".*"):
                fault(f"explains {name!r}, which is not in the taxonomy")
        if rule.voids and rule.role is not Role.CONTEXT:
            fault("only a context rule can void a line")
        if rule.role is Role.CAUSE and not rule.mitigation:
            fault("a cause without a mitigation: the taxonomy's general advice is shown", "warning")
    return faults


def prove(rules: Sequence[Rule], bank: Bank) -> list[Fault]:
    """Run `rules` on their examples and counterexamples, and all rules of `bank` on their examples.

    A clash is a definite or likely cause of another failure type on an example of a rule that is not
    stronger itself: the matcher would then name two causes for one line.
    """
    faults: list[Fault] = []
    matcher = Matcher(bank)
    for rule in rules:
        for example in rule.examples:

            def fault(message: str, severity: str = "error", rule: Rule = rule) -> None:
                faults.append(Fault(rule.file, rule.line, rule.id, message, severity))

            shown = example.line[:100]
            match = found_in(example.line, rule)
            if match is None:
                fault(f"does not match its example {shown!r}")
                continue
            got = {name: value for name, value in match.groupdict().items() if value is not None}
            for name, value in example.captures:
                if got.get(name) != value:
                    fault(f"captures {name}={got.get(name)!r}, but its example says {value!r}: {shown!r}")
            lower = without_digits(example.line).lower()
            if not any(without_digits(literal(keyword)).lower() in lower for keyword in rule.keywords):
                fault(f"no keyword stands in its example {shown!r}")
            if rule.role is Role.CAUSE:
                hits = matcher.match(example.line)
                kept = any(hit.rule.id == rule.id for hit in hits)  # what is voided may stand beside it
                for hit in hits:
                    if (
                        hit.rule.role is Role.CAUSE
                        and hit.rule.failure_type != rule.failure_type
                        and hit.rule.strength is rule.strength
                        and rule.strength is not Strength.HINT
                    ):
                        fault(f"{hit.rule.id} ({hit.rule.failure_type}) matches its example too: {shown!r}")
                    if hit.rule.voids and not kept:
                        fault(f"{hit.rule.id} voids its example {shown!r}")
        for line in rule.counterexamples:
            if found_in(line, rule) is not None:
                faults.append(
                    Fault(rule.file, rule.line, rule.id, f"matches its counterexample {line[:100]!r}")
                )
    return faults


def uncovered(bank: Bank) -> list[str]:
    """Failure types that fewer than two cause rules name (slow, hang, none and unknown need none)."""
    count: dict[str, int] = {}
    for rule in bank.rules:
        if rule.role is Role.CAUSE and rule.failure_type:
            count[rule.failure_type] = count.get(rule.failure_type, 0) + 1
    exempt = ("none.", "slow.", "hang.", "unknown")
    return [name for name in taxonomy().types if not name.startswith(exempt) and count.get(name, 0) < 2]


def taken(rules: Sequence[Rule]) -> list[Fault]:
    """Ids that two of these rules have: a bank does not load with them."""
    first: dict[str, Rule] = {}
    faults = []
    for rule in rules:
        if (known := first.setdefault(rule.id, rule)) is not rule:
            faults.append(Fault(rule.file, rule.line, rule.id, f"id is taken by {known.file}:{known.line}"))
    return faults


def main(arguments: Sequence[str]) -> int:
    """Check the named rule files, or the whole bank: `python -m logtriage.rulebank.check [FILE…]`."""
    shipped = {str(path.resolve()) for path in rule_files()}
    named = {str(Path(name).resolve()) for name in arguments} or shipped
    faults: list[Fault] = []
    rules: list[Rule] = []
    others: list[Rule] = []
    for name in sorted(named | shipped):
        wanted = name in named
        try:
            (rules if wanted else others).extend(read_rule_file(Path(name)))
        except BankFault as broken:
            faults += broken.faults if wanted else ()
    bank = Bank((*rules, *others), {}, "")
    faults += taken(rules) + lint(rules) + prove(rules, bank)
    errors = {str(fault) for fault in faults if fault.severity == "error"}
    warnings = {str(fault) for fault in faults} - errors
    print(*sorted(errors | warnings), sep="\n")
    counts = f"{len(rules)} rules, {len(errors)} errors, {len(warnings)} warnings"
    print(f"{counts}; {len(bank.rules)} in the bank")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
