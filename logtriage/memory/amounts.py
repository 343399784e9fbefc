"""Amounts whose meaning is their size: a calm line has them too, and then the same words tell of nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from logtriage.memory.atoms import Atom, Kind, atoms_of
from logtriage.memory.figures import PART, WHOLE, with_figures
from logtriage.memory.wording import LONGEST

_MEASURED = re.compile(r"[-+].*|\d+[.,]\d+.*|.*[%A-Za-z]")  # signed, with a fraction, a share, with a unit
_UNIT = re.compile(
    r"^ ?(?:%|°|‰|(?:percent|per cent|[munpkKMGTP]?(?:s|sec|Hz|hz|W|V|A|J|B|b|bit|bits|bps|Bps|Pa|iB)|mins?|h"
    r"|hours?|minutes?|seconds?|days?|degrees?|deg|C|F|K|dBm?|rpm|RPM|[kK]?bytes?|ms|us|psi|bar|kWh|FLOPS|TFLOPS"
    r"|tokens|samples|times|x)\b)"
)
# `shuttle 3 is jammed`: the number is part of the subject's name.
_SUBJECT = re.compile(r"^ (?:is|was|are|were|has|had|have|does|did|will|went|got|became|goes)\b")


def amounts(message: str, names: Sequence[str], known: Mapping[str, int]) -> tuple[str, ...]:
    """The amounts of a line that a pattern leaves open in their size: `71.5 C` as `71.5`.

    Not among them: what numbers a part of the job or a place, codes, ratios, and none or all of something,
    which a rule holds. `names` and `known` are those of :func:`logtriage.memory.wording.patterns`.
    """
    atoms = with_figures(atoms_of(message[:LONGEST], tuple(names), (), known))
    return tuple(atom.text for at, atom in enumerate(atoms) if _is_amount(atom, atoms[at + 1 : at + 5]))


def _is_amount(atom: Atom, following: Sequence[Atom]) -> bool:
    if atom.kind is not Kind.VALUE or re.match(r"[-+]?\d", atom.text) is None:
        return False
    if atom.group in (PART, WHOLE) or atom.pattern.startswith(("0+", "100")):
        return False
    after = "".join(each.text for each in following)
    if atom.group == "size" or (not atom.group and re.fullmatch(r"[-+]?[\d.,]+[A-Za-z]{1,5}", atom.text)):
        return True  # `4.1GiB`, `12.5s`
    if atom.group:
        return False
    is_measured = _MEASURED.fullmatch(atom.text) is not None or _UNIT.match(after) is not None
    return is_measured or (atom.is_telling and _SUBJECT.match(after) is None)
