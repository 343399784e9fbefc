"""A time limit that only cleared away a job which had stood still since one of its processes died.

Where nothing ends the step when one task fails, the others wait for it until the scheduler ends them all.
"""

from __future__ import annotations

from logtriage.localize.cascade import CONSEQUENCES, Cascade, Group
from logtriage.localize.progress import Progress
from logtriage.localize.scene import Scene

IDLE_SECONDS = 1800.0  # that the job stood still before its limit: who is told to save is told minutes before
STEPPED_SECONDS = 300.0  # after a process died, in which others may still report a step
_ENDS_NOBODY = ("scheduler.", "slow.", "hang.", "numerics.", "collective.", "network.", "gpu.thermal_power")


def before_the_limit(cascade: Cascade, progress: Progress, scene: Scene) -> Cascade:
    """The cascade, with what had ended the job long before its limit as root."""
    limit = cascade.root
    if limit is None or limit.failure_type != "scheduler.time_limit" or limit.first_time is None:
        return cascade
    # Where nobody reports steps, whatever the job wrote shows that it went on.
    at_limit = limit.first_time - STEPPED_SECONDS
    wrote = max((time for time in scene.job_times() if time < at_limit), default=None)
    lived = progress.last_time if progress.last_time is not None else wrote
    known = [each for each in (*cascade.rivals, *cascade.followers) if _died_of(each, limit, lived)]
    if not known:
        return cascade
    root = min(known, key=lambda each: _began(each) or 0.0)
    return Cascade(
        root,
        tuple(each for each in cascade.rivals if each is not root),
        (limit, *(each for each in cascade.followers if each is not root)),
    )


def _died_of(group: Group, limit: Group, lived: float | None) -> bool:
    """Whether a process was ended by it, no step came after, and the limit far later."""
    if group.sureness < 2 or group.failure_type.startswith(_ENDS_NOBODY):
        return False
    if group.failure_type in CONSEQUENCES:
        return False
    began = _began(group)
    if began is None or limit.first_time is None:
        return False
    stood_still = max(began, lived or began)
    return stood_still <= began + STEPPED_SECONDS and limit.first_time - stood_still >= IDLE_SECONDS


def _began(group: Group) -> float | None:
    return min((each.time for each in group.causes if each.time is not None), default=None)
