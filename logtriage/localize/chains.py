"""Of several signs on one line, or in one chained traceback, the one that speaks."""

from __future__ import annotations

import bisect
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from logtriage.localize.exits import SLURM_CANCELLED
from logtriage.localize.scene import Sign
from logtriage.regex import regex
from logtriage.rulebank.rule import Role, Strength


def one_a_line(signs: Sequence[Sign]) -> list[Sign]:
    """Of several rules on one line, the strongest cause, or else the strongest symptom."""
    order = {Strength.DEFINITE: 0, Strength.LIKELY: 1, Strength.HINT: 2}
    best: dict[tuple[str, int], Sign] = {}
    for sign in signs:
        key = (sign.line.file, sign.line.number)
        known = best.get(key)
        if known is None:
            best[key] = sign
        elif _precedence(sign, order) < _precedence(known, order):
            best[key] = _joined(sign, known)
        else:
            best[key] = _joined(known, sign)
    return list(best.values())


def _joined(sign: Sign, other: Sign) -> Sign:
    """A sign with what another rule of the same type read on the same line, such as the host."""
    known = {name for name, _ in sign.hit.captures}
    more = tuple(pair for pair in other.hit.captures if pair[0] not in known)
    if not more or other.rule.failure_type != sign.rule.failure_type:
        return sign
    return replace(sign, hit=replace(sign.hit, captures=(*sign.hit.captures, *more)))


def _precedence(sign: Sign, order: dict[Strength, int]) -> tuple[int, bool, bool]:
    # A symptom rule that is sure of itself beats a general exception rule on the same line.
    return (
        order[sign.rule.strength],
        sign.rule.role is Role.CAUSE and sign.rule.failure_type in GENERAL_TYPES,
        sign.rule.role is not Role.CAUSE,
    )


GENERAL_TYPES = {
    "code.runtime", "code.value", "code.type", "code.key", "code.index", "code.assertion", "code.attribute",
    "code.os_error", "unknown",
}  # fmt: skip


def one_a_record(signs: Sequence[Sign]) -> list[Sign]:
    """Of a chained traceback one sign stays a candidate: the one that says most, the first if equal.

    The first exception is the likelier root: later ones were raised while it was handled. But a
    first link that only says `KeyError` while a later one names a known failure is a failed look-up.
    A name that the handler itself gets wrong says nothing of what it handled.
    """
    chains: dict[int, list[Sign]] = defaultdict(list)
    kept: list[Sign] = []
    cancelled = _first_cancels(signs)
    for sign in signs:
        if _is_unstarted_child(sign) or _ended_with_its_step(sign, cancelled):
            kept.append(_demoted(sign))
        elif sign.raised is not None and sign.record is not None:
            chains[id(sign.record)].append(sign)
        else:
            kept.append(sign)
    for chain in chains.values():
        chain.sort(key=lambda sign: _chain_order(sign))
        said = next((sign for sign in chain[1:] if _explains(sign, chain[0])), chain[0])
        kept.append(said)
        kept += [_demoted(sign) for sign in chain if sign.line.number != said.line.number]
    kept.sort(key=lambda sign: (sign.line.file, sign.line.number))
    plain_causes: dict[str, list[Sign]] = defaultdict(list)
    for sign in kept:
        if sign.raised is None and sign.rule.role is Role.CAUSE and sign.rule.strength is Strength.DEFINITE:
            plain_causes[sign.line.file].append(sign)
    return [_demoted(sign) if _explained_below(sign, plain_causes[sign.line.file]) else sign for sign in kept]


def _explains(sign: Sign, said: Sign) -> bool:
    """Whether a rule says of itself that it explains what the same exception's message says first."""
    return sign.link == said.link and said.rule.failure_type in sign.rule.explains


FRAME_LINES = 4  # a frame is two lines; another process may write between them


def _is_unstarted_child(sign: Sign) -> bool:
    """Whether a spawned process could not read what its parent was to send: the parent failed at that.

    `multiprocessing.spawn` pickles the target while the child already waits for it at the pipe.
    """
    if sign.raised is None or sign.record is None or "EOFError" not in sign.line.text:
        return False
    return any(
        "pickle.load(from_parent)" in line.text
        for line in sign.record.lines
        if 0 < sign.line.number - line.number <= FRAME_LINES
    )


# Of torchelastic's agents and of processes: by these they meet, before any of the training begins.
_MEETS = regex(
    r"rendezvous\.py\", line \d{1,6}, in (?:next_rendezvous|_create_c10d_store|_create_tcp_store)\s*$"
)


def is_of_meeting(sign: Sign) -> bool:
    """Whether it was raised where the processes of a job meet: whose connection was lost never had a peer."""
    return sign.record is not None and any(
        "rendezvous.py" in line.text and _MEETS.search(line.text[:1000]) is not None
        for line in sign.record.lines
    )


def _first_cancels(signs: Sequence[Sign]) -> dict[str, int]:
    """By file, the line in which Slurm first says that it cancelled the job or the step."""
    first: dict[str, int] = {}
    for sign in signs:
        if "CANCELLED" in sign.line.text and SLURM_CANCELLED.search(sign.line.text[:400]):
            first[sign.line.file] = min(first.get(sign.line.file, sign.line.number), sign.line.number)
    return first


def _ended_with_its_step(sign: Sign, cancelled: dict[str, int]) -> bool:
    """Whether srun tells of a task that Slurm ended with the rest of the step, which says nothing of why."""
    return (
        sign.rule.failure_type == "process.killed"
        and "srun: error:" in sign.line.text
        and sign.line.number > cancelled.get(sign.line.file, sign.line.number)
    )


BELOW_LINES = 10


def _explained_below(sign: Sign, causes: Sequence[Sign]) -> bool:
    """A general exception whose reason is printed right below it, in lines of their own (`causes`).

    That a peer waited in vain is no reason for an exception other than the RuntimeError that tells of it.
    """
    if sign.raised is None or sign.rule.failure_type not in GENERAL_TYPES:
        return False
    first = bisect.bisect_right(causes, sign.line.number, key=lambda cause: cause.line.number)
    return any(
        other.line.number - sign.line.number <= BELOW_LINES
        and other.line.rank in (None, sign.line.rank)
        and other.line.host in (None, sign.line.host)
        and (sign.rule.failure_type == "code.runtime" or not _of_peers(other))
        for other in causes[first : first + BELOW_LINES]
    )


def _of_peers(sign: Sign) -> bool:
    return sign.rule.failure_type is not None and sign.rule.failure_type.startswith("collective.")


_SLIPS = ("code.name", "code.attribute", "code.type")


def _is_slip(sign: Sign) -> bool:
    """Whether a function that met an earlier exception made a mistake of its own in handling it."""
    if sign.rule.failure_type not in _SLIPS or sign.raised is None or sign.record is None:
        return False
    if not sign.link or not sign.raised.frames:
        return False
    where = sign.raised.frames[-1]
    return any(
        (frame.path, frame.function) == (where.path, where.function)
        for earlier in sign.record.raised[: sign.link]
        for frame in earlier.frames
    )


def _chain_order(sign: Sign) -> tuple[bool, bool, int, int, int]:
    strength = {Strength.DEFINITE: 0, Strength.LIKELY: 1, Strength.HINT: 2}[sign.rule.strength]
    general = sign.rule.failure_type in GENERAL_TYPES
    symptom = sign.rule.role is not Role.CAUSE
    return (symptom, _is_slip(sign), strength + general, sign.link, sign.line.number)


def _demoted(sign: Sign) -> Sign:
    rule = replace(sign.rule, role=Role.SYMPTOM)
    return replace(sign, hit=replace(sign.hit, rule=rule))
