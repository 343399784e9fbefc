"""An exception that only the rules for any exception know, judged by what its message is most like."""

from __future__ import annotations

from dataclasses import replace

from logtriage.diagnose.decision import Decision
from logtriage.localize.candidates import Candidate
from logtriage.rulebank.matcher import Matcher
from logtriage.rulebank.vocabulary import is_general

_UNRAISED = ("hang.", "slow.", "none.", "scheduler.")  # shown by what did not happen, or told from outside
ALTERNATIVE = 0.3  # that it is the program's after all, as 8 of 26 such messages of labelled jobs were


def likened(decision: Decision, matcher: Matcher) -> Decision:
    """The decision, with the type of the messages that the root's is like, if no rule tells its own."""
    root = decision.root
    if root is None or root.rule is None or decision.failure_type != root.rule.failure_type:
        return decision
    if not is_general(root.rule):
        return decision
    message = _message(root)
    failure_type = matcher.vocabulary.likened(message) if message else None
    if failure_type is None or failure_type == decision.failure_type or failure_type.startswith(_UNRAISED):
        return decision
    why = f"no rule knows it; its words are most like those of messages of {failure_type}"
    return replace(
        decision,
        failure_type=failure_type,
        evidence=(replace(decision.evidence[0], why=why), *decision.evidence[1:]),
        why="; ".join(filter(None, (why, decision.why))),
        alternatives=((decision.failure_type, ALTERNATIVE, decision.evidence[:1]), *decision.alternatives),
    )


def _message(root: Candidate) -> str:
    """The class of the exception and its whole message; empty where it has none."""
    raised = root.record.raised if root.record is not None else ()
    whole = next((each for each in raised if each.at.number == root.line.number), None)
    if whole is None:
        return root.line.message
    return f"{whole.type}: {whole.message}" if whole.message.strip() else ""
