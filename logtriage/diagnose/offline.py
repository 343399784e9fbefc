"""The offline decision: from what was found to one root cause, its culprits and its lines."""

from __future__ import annotations

from logtriage.diagnose.decision import Decision
from logtriage.diagnose.quiet import undecided, without_error
from logtriage.diagnose.stated import from_group, is_fatal
from logtriage.diagnose.victims import behind_a_consequence, died_first
from logtriage.localize.cascade import CONSEQUENCES
from logtriage.localize.findings import Findings


def decide(findings: Findings) -> Decision:
    """One decision. Where the evidence does not decide, the type is `unknown` and says what to collect."""
    root = findings.cascade.root
    sure = root is not None and root.sureness >= 2
    finished = findings.outcome.kind == "completed" and root is not None and not is_fatal(root)
    if root is None or not sure or finished:
        quiet = without_error(findings, root)
        if quiet is not None:
            return quiet
    if root is None:
        return died_first(findings, ()) or undecided(findings)
    if root.failure_type in CONSEQUENCES or root.failure_type in ("collective.desync", "collective.init"):
        deeper = behind_a_consequence(findings, root)
        if deeper is not None:
            return deeper
    if root.failure_type == "unknown":
        return undecided(findings)
    return from_group(findings, root)


