"""Faults whose own line says that the program lives with them: it skips, or does without."""

from __future__ import annotations

from logtriage.localize.candidates import Candidate
from logtriage.model import Level, SourceRole
from logtriage.regex import regex

# Of these a program can go on without what failed: a sample, a file, a request, one batch.
_OF_PARTS = (
    "data.", "storage.", "network.connection", "code.", "checkpoint.", "auth.", "cuda.out_of_memory",
    "unknown",
)  # fmt: skip
_LIVES_WITH_IT = regex(
    r"(?i)\b(?:ignor(?:ing|ed)|skip(?:ping|ped)|continuing|will be (?:ignored|skipped)|will continue"
    r"|skip (?:this|that|it|the|to)|(?:falling|fell) back|substitut(?:ing|ed)|replac(?:ing|ed) (?:it|by|with)"
    r"|using (?:a |an |the )?(?:previous|next|other|another|zeros?|blank|dummy|random|empty|default"
    r"|fallback)|doing without|moving on|not fatal|non-fatal)\b"
)
_DOES_NOT = regex(
    r"(?i)\b(?:too many|exceed(?:s|ed)?|abort\w*|giving up|gave up|stop(?:s|ping|ped)?|exit(?:s|ing|ed)?"
    r"|fatal|cannot continue|not skipping|without (?:skip|ignor)\w+|retries left)\b"
)
_GRAVE = (Level.ERROR, Level.CRITICAL)


def is_tolerated(candidate: Candidate) -> bool:
    """Whether a line, no traceback and no error by its level, says that its writer goes on without a part."""
    line = candidate.line
    if candidate.record is not None or line.level in _GRAVE:
        return False
    if candidate.source_role not in (SourceRole.WORKER, SourceRole.MERGED):
        return False
    text = line.message[:2000].replace("non-fatal", "").replace("not fatal", "")
    return (
        candidate.failure_type.startswith(_OF_PARTS)
        and _LIVES_WITH_IT.search(line.message[:2000]) is not None
        and _DOES_NOT.search(text) is None
    )
