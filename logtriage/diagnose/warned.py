"""A job that was only warned: who writes a warning and then a step was not stopped by what it warned of.

Nor was a job that runs to the end of its logs stopped by what a machine complained of without being sure.
"""

from __future__ import annotations

from logtriage.localize.candidates import Candidate
from logtriage.localize.findings import Findings
from logtriage.localize.machine_complaints import LIVED_WITH_SECONDS
from logtriage.localize.unjoined import NEEDED
from logtriage.model import Level, SourceRole
from logtriage.rulebank.rule import Strength

# Who cannot read, write or load something raises an exception or goes on; a machine's fault may work on.
_STOPS_AT_ONCE = (
    "data.corrupt", "data.missing", "checkpoint.", "storage.", "code.", "auth.", "host.disk_full",
    "cuda.out_of_memory",
)  # fmt: skip
_CALM = (Level.DEBUG, Level.INFO, Level.WARNING)


def is_only_warned(findings: Findings) -> bool:
    """Whether the logs end among steps, and all that could have ended the job are warnings before a step."""
    cascade = findings.cascade
    groups = [each for each in (cascade.root, *cascade.rivals, *cascade.followers) if each is not None]
    causes = [each for group in groups for each in group.causes]
    if findings.outcome.kind != "running" or not causes:
        return False
    return all(
        _is_of_machine(each, findings)
        or (_is_warning(each) and findings.progress.new_steps_after(each.line) > 0)
        for each in causes
    )


def _is_of_machine(candidate: Candidate, findings: Findings) -> bool:
    """Whether a machine's log hints, or complains of what nobody steps without, while the job steps."""
    last = findings.progress.last_time
    is_early = last is None or candidate.time is None or candidate.time <= last + LIVED_WITH_SECONDS
    if candidate.source_role is not SourceRole.KERNEL or not is_early:  # a look tells of a state that lasts
        return False
    if candidate.failure_type == "gpu.thermal_power":  # who runs hot steps on, but slower
        return False
    is_needed = candidate.failure_type.startswith(NEEDED) and candidate.strength is not Strength.DEFINITE
    return is_needed or candidate.strength is Strength.HINT


def _is_warning(candidate: Candidate) -> bool:
    """Told as a warning, not raised, of what stops a program at once if it stops it at all."""
    is_calm = candidate.line.level in _CALM and candidate.record is None
    return is_calm and candidate.failure_type.startswith(_STOPS_AT_ONCE)
