"""How sure a verdict is: of the verdicts given 0.8, about 80 % should be right.

The figures follow the share of right types in verdicts on 219 labelled jobs that nothing had been mended
after:
98 % for a definite rule of a specific type (99 jobs) and 93 % for a likely one (27), 92 % where the type is
mostly a consequence (25), 91 % for an exception of a general class (12) but 4 of 8 where that is a bare
RuntimeError or the like, 3 of 5 where the program also says that it is done, 5 of 12 for `none.running`.
"""

from __future__ import annotations

from collections.abc import Sequence

from logtriage.localize.candidates import GENERAL_TYPES
from logtriage.localize.cascade import CONSEQUENCES, Group
from logtriage.localize.outcome import Outcome

# Where progress decides and no error (quiet): what was measured, a little nearer to one half.
COMPLETED = 0.88
RUNNING = 0.55
RUNNING_BESIDE_A_HINT = 0.45
UNDECIDED = 0.4
DIVERGED = 0.7  # not measured: no job of the sample was judged so


def confidence(root: Group, rivals: Sequence[Group], outcome: Outcome) -> float:
    """From the surest rule of the root, how general its type is, and rivals that nothing explains."""
    value = {3: 0.95, 2: 0.88, 1: 0.58}.get(root.sureness, 0.4)
    if root.is_learned:  # a person called this very line the cause, whatever its type mostly is
        value = 0.95
    elif root.failure_type in CONSEQUENCES:
        value -= 0.06
    elif root.failure_type == "code.runtime" and root.sureness == 2:
        value -= 0.3
    elif root.failure_type in GENERAL_TYPES:
        value -= 0.09
    equal = [each for each in rivals if each.sureness >= root.sureness]
    value -= 0.1 * min(2, len(equal))
    if outcome.kind == "completed":
        value -= 0.3
    return round(min(0.97, max(0.05, value)), 2)
