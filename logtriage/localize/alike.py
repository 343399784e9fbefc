"""What all machines show alike is no sign of the one that failed.

Reports of a machine's state (`nvidia-smi -q`, `ibstat`, `perfquery`, DCGM) are full of things that look bad
and are usual on a site: a port that nobody plugged in, an error counter that is not zero. Where several hosts
left such a report, a state counts only on hosts that differ from the others, unless it is sure.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from logtriage.localize.candidates import Candidate
from logtriage.localize.progress import median
from logtriage.localize.scene import Scene
from logtriage.model import SourceRole
from logtriage.regex import regex
from logtriage.rulebank.rule import Strength

FAR = 10.0  # so many times the others' median: a counter that stands out although all count something
_CLOCK = regex(r"\d:\d\d")  # what says when it was is an event, unless it is a weak sign
_VALUE = regex(r"(\d+)\D*$")


def without_usual_states(candidates: Sequence[Candidate], scene: Scene) -> list[Candidate]:
    """The candidates, with those marked `recovered` that most reporting hosts show, no one much more.

    Peers of a host that is gone count what it left unanswered, so a fault of its own is of few.
    """
    reporting = {each.host for each in scene.sources if each.role is SourceRole.HARDWARE and each.host}
    if len(reporting) < 2:
        return list(candidates)
    # By rule, device and host the largest number that it showed.
    values: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    for each in candidates:
        if _is_state(each) and each.rule is not None and each.host in reporting:
            of_rule = values[_kind(each)]
            of_rule[each.host] = max(_value(each), of_rule.get(each.host, 0.0))
    usual: set[tuple[tuple[str, str], str | None]] = {
        (rule, host)
        for rule, of_host in values.items()
        if 2 * len(of_host) > len(reporting)
        for host in of_host
        if of_host[host] < FAR * max(1.0, median([of_host[other] for other in of_host if other != host]))
    }
    return [
        replace(each, recovered=True)
        if each.rule is not None and (_kind(each), each.host) in usual and _is_state(each)
        else each
        for each in candidates
    ]


def _is_state(candidate: Candidate) -> bool:
    if candidate.source_role is not SourceRole.HARDWARE or candidate.strength is Strength.DEFINITE:
        return False
    return candidate.strength is Strength.HINT or _CLOCK.search(candidate.line.text[:120]) is None


def _kind(candidate: Candidate) -> tuple[str, str]:
    return (candidate.rule.id if candidate.rule else "", candidate.capture("device") or "")


def _value(candidate: Candidate) -> float:
    found = _VALUE.search(candidate.line.text[:400])
    return float(found[1][:15]) if found is not None else 0.0
