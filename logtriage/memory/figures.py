"""Numbers that say more than that there is one: `3 of 3 failed`, `0 bytes free`, 100 %, and bounds."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from logtriage.memory.atoms import COUNT_AFTER, COUNTED, Atom, Kind
from logtriage.memory.words import INDEXED
from logtriage.rulebank.rule import Ratio

PART, WHOLE = "part", "whole"  # the groups that a rule's ratio is about
_BETWEEN = re.compile(r"(?i) ?/ ?| (?:out )?of (?:(?:the|all|its) )?")
_NAMED = re.compile(r"([A-Za-z]+)[-_ =:#\[(]{0,3}$")
_FAULTY = re.compile(rf"(?i)\b{COUNTED}\b")
# What there is to be some of: none of it tells of a fault.
_WANTED = (
    r"(?:free|left|remaining|available|alive|live|ready|healthy|active|answer(?:ed|ing)|ack(?:ed|nowledged)"
    r"|respond(?:ed|ing)|online|usable|reachable|reporting|connected|heard|present|survivors?|quorum)"
)
_WANTED_BEFORE = re.compile(rf"(?i)(?:\b|_){_WANTED}[ =:]{{1,3}}$")
_WANTED_AFTER = re.compile(rf"(?i)^ ?(?:\w+ ){{0,2}}{_WANTED}\b")
_ZERO = re.compile(r"0+(?:[.,]0+)?( ?[A-Za-z/]{1,8}| ?%)?")
_ALL_PERCENT = re.compile(r"100(?:[.,]0+)? ?%?")
_UNIT = r"(?: ?[A-Za-z]{1,6}(?:/s)?)?"


def with_figures(atoms: Sequence[Atom]) -> list[Atom]:
    """The atoms, with a ratio's numbers captured, and none or all held where that tells of the fault."""
    atoms = [part for atom in atoms for part in _without_unit(atom)]
    found = [_held(atom, *_around(atoms, at)) for at, atom in enumerate(atoms)]
    for at, part in enumerate(found):
        end = next((at + 1 + n for n, each in enumerate(found[at + 1 :]) if each.kind is not Kind.TEXT), None)
        if end is None or not (_is_whole(part) and _is_whole(found[end])):
            continue
        before, after = _around(found, at)[0], _around(found, end)[1]
        named = _NAMED.search(before)
        between = "".join(" " if each.text.isspace() else each.text for each in found[at + 1 : end])
        if not _BETWEEN.fullmatch(between) or (named is not None and named[1].lower() in INDEXED):
            continue
        few, all_ = int(part.text), int(found[end].text)
        if not few:
            found[at] = replace(part, pattern="0+", is_telling=True)
        elif few == all_ or (few < all_ and not _FAULTY.search(after[:40]) and not _FAULTY.search(before)):
            found[at] = replace(part, pattern=r"0*[1-9]\d*", group=PART, is_telling=True)
            found[end] = replace(found[end], pattern=r"0*[1-9]\d*", group=WHOLE)
            break
    return found


def ratio_of(atoms: Sequence[Atom]) -> Ratio | None:
    """How the numbers of the ratio stood to each other, where these atoms hold one."""
    values = {each.group: each.text for each in atoms if each.kind is not Kind.TEXT}
    if PART not in values or WHOLE not in values:
        return None
    return Ratio.COMPLETE if int(values[PART]) == int(values[WHOLE]) else Ratio.INCOMPLETE


def _without_unit(atom: Atom) -> list[Atom]:
    """A number of bytes as its number and its unit: of a ratio, the former counts."""
    whole = re.fullmatch(r"(\d{1,9})( ?)(bytes?)", atom.text)
    if atom.kind is Kind.TEXT or atom.group != "size" or whole is None:
        return [atom]
    unit = [Atom(Kind.TEXT, each) for each in (whole[2], whole[3]) if each]
    return [replace(atom, text=whole[1], pattern=r"\d+", group="", is_telling=True), *unit]


def leads(atoms: Sequence[Atom], at: int) -> bool:
    """Whether a number before a line's first word tells of the fault: none, all, or a count of faults."""
    atom = atoms[at]
    if atom.kind is Kind.TEXT or not atom.is_telling:
        return False
    return atom.pattern.startswith(("0", "100")) or COUNT_AFTER.match(_around(atoms, at)[1]) is not None


def _around(atoms: Sequence[Atom], at: int) -> tuple[str, str]:
    before = "".join(each.text for each in atoms[max(0, at - 8) : at])
    return before, "".join(each.text for each in atoms[at + 1 : at + 9])


def _is_whole(atom: Atom) -> bool:
    return atom.kind is not Kind.TEXT and not atom.group and re.fullmatch(r"\d{1,9}", atom.text) is not None


def _held(atom: Atom, before: str, after: str) -> Atom:
    if atom.kind is Kind.TEXT or atom.group not in ("", "size"):
        return atom
    is_share = atom.text.endswith("%") or after.lstrip().startswith("%")
    if _ZERO.fullmatch(atom.text) and (
        is_share or _WANTED_BEFORE.search(before) or _WANTED_AFTER.search(after)
    ):
        return replace(atom, pattern=rf"0+(?:[.,]0+)?(?: ?%)?{_UNIT}", is_telling=True)
    if is_share and _ALL_PERCENT.fullmatch(atom.text):
        return replace(atom, pattern=r"100(?:[.,]0+)?(?: ?%)?", is_telling=True)
    if atom.group == "size" and re.search(r"[1-9]", atom.text):
        return replace(atom, pattern=rf"(?:0*[1-9][\d.,]*|0*[.,]0*[1-9]\d*){_UNIT}")
    return atom


def beyond(own: int, others: Sequence[int]) -> str | None:
    """A pattern for whole numbers on the side of `own` on which none of `others` lies; None without one."""
    if not others or min(others) <= own <= max(others):
        return None
    return _at_most(min(others) - 1) if own < min(others) else _at_least(max(others) + 1)


def _at_least(number: int) -> str:
    digits = str(number)
    longer = rf"[1-9]\d{{{len(digits)},}}"
    ways = [longer, digits]
    for at, digit in enumerate(digits):
        if digit != "9":
            ways.append(f"{digits[:at]}[{int(digit) + 1}-9]" + _any(len(digits) - at - 1))
    return rf"0*(?:{'|'.join(ways)})"


def _at_most(number: int) -> str:
    digits = str(number)
    ways = [digits]
    if len(digits) > 1:
        ways.append(rf"\d{{1,{len(digits) - 1}}}")
    for at, digit in enumerate(digits):
        least = "1" if at == 0 and len(digits) > 1 else "0"
        if digit > least:
            ways.append(f"{digits[:at]}[{least}-{int(digit) - 1}]" + _any(len(digits) - at - 1))
    return rf"0*(?:{'|'.join(ways)})"


def _any(count: int) -> str:
    return rf"\d{{{count}}}" if count else ""
