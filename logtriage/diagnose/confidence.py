"""How sure a verdict is: of the verdicts given 0.8, about 80 % should be right.

The figures follow the share of right types on 146 labelled jobs, some of which rules were mended after: 99 %
for a definite rule, 95 % for a likely one of a specific type, 78 % for a general exception.
"""

from __future__ import annotations

from collections.abc import Sequence

from logtriage.localize.candidates import GENERAL_TYPES
from logtriage.localize.cascade import CONSEQUENCES, Group
from logtriage.localize.outcome import Outcome


def confidence(root: Group, rivals: Sequence[Group], outcome: Outcome) -> float:
    """From the surest rule of the root, how general its type is, and rivals that nothing explains."""
    value = {3: 0.95, 2: 0.86, 1: 0.55}.get(root.sureness, 0.4)
    if root.is_learned:  # a person called this very line the cause, whatever its type mostly is
        value = 0.95
    elif root.failure_type in CONSEQUENCES:
        value -= 0.12
    elif root.failure_type in GENERAL_TYPES:
        value -= 0.08
    equal = [each for each in rivals if each.sureness >= root.sureness]
    value -= 0.12 * min(2, len(equal))
    if outcome.kind == "completed":
        value -= 0.15
    return round(min(0.97, max(0.05, value)), 2)
