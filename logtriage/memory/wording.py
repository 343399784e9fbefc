"""From one line to the pattern of its kind: what varies becomes a typed wildcard, what names it stays.

How much is left open is a matter of degree: `patterns` yields the most general pattern first, for the guards
to choose from.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import log1p
from types import MappingProxyType

from logtriage.memory.atoms import Atom, Kind, atoms_of
from logtriage.memory.figures import beyond, leads, ratio_of, with_figures
from logtriage.memory.words import EMPTY, NOISE, UNSPACED
from logtriage.rulebank.bank import Bank, pattern_of
from logtriage.rulebank.rule import Ratio

LONGEST = 600  # characters of a line that are looked at
MOST_CONTENT = 14  # words that carry meaning in one pattern; what comes after them varies
ENOUGH_CONTENT = 5  # so many, and a clause's end ends the pattern
# How much the words of a pattern must tell: a word that no rule of the bank has weighs 1, one that a thousand
# have weighs 0. Set by what the bank's own examples and the lines of labelled jobs need (docs/learning.md).
LEAST_WEIGHT = 1.2
LEAST_HEAVIEST = 0.65  # of the rarest word: many common ones do not make up for it
LEAST_LETTERS = 10
COMMON = 1000
NO_WORDS: Mapping[str, int] = MappingProxyType({})
_WORD = re.compile(rf"[^\W\d_]{{3,}}|[{UNSPACED}]{{2,}}")
_CLAUSE_END = re.compile(r"^(?:[.;|]|\(|-{1,2}$|–|—)")


@dataclass(frozen=True, slots=True)
class Wording:
    """The pattern of a kind of line, its fast filter, and its title with `{name}` for what is captured."""

    pattern: str
    keyword: str
    title: str
    content: tuple[str, ...]  # the words that carry meaning, in lower case
    weights: tuple[tuple[str, float], ...]  # of all its words, each once
    atoms: tuple[Atom, ...] = ()  # of which the pattern was made
    ratio: Ratio | None = None  # how its groups `part` and `whole` stand to each other

    @property
    def fault(self) -> str | None:
        """Why this says too little to tell a kind of failure from other lines; None if it does not."""
        weights = [weight for _, weight in self.weights]
        letters = sum(len(word) for word, weight in self.weights if weight > 0)
        if sum(weights) < LEAST_WEIGHT or max(weights, default=0) < LEAST_HEAVIEST or letters < LEAST_LETTERS:
            told = ", ".join(word for word, weight in self.weights if weight > 0)
            return f"it says too little: words that could tell it from other lines: {told or 'none'}"
        return None


def patterns(
    text: str, *, names: Iterable[str] = (), alike: Sequence[str] = (), known: Mapping[str, int] = NO_WORDS
) -> Iterator[Wording]:
    """Wordings of the kind of line that `text` is, the most general first.

    `names` are hosts, users and the like of this job; `alike` are further lines, of which those of the same
    kind show what varies; `known` counts the words of the trade (:func:`vocabulary`).
    """
    atoms = with_figures(atoms_of(text[:LONGEST], tuple(names), alike, known))
    seen: set[str] = set()
    for held in ((), (Kind.QUOTED,), (Kind.CODE,), (Kind.QUOTED, Kind.CODE), (Kind.NAMED,), tuple(Kind)[2:]):
        narrower = [replace(atom, kind=Kind.TEXT) if atom.kind in held else atom for atom in atoms]
        bare = _wording(_without_class(narrower), known, text)
        whole = _wording(narrower, known, text)
        for wording in (bare if bare is not None and bare.fault is None else None, whole):
            if wording is not None and wording.pattern not in seen:
                seen.add(wording.pattern)
                yield wording
    # The whole line, with all that stands behind what says enough.
    wording = _wording(atoms, known, text, is_whole=True)
    if wording is not None and wording.pattern not in seen:
        yield wording


def bounded(
    wording: Wording, others: Sequence[str], line: str, known: Mapping[str, int]
) -> Iterator[Wording]:
    """The same wording with a bound on one of its counts, beyond which none of the other lines lies."""
    values = [at for at, atom in enumerate(wording.atoms) if atom.kind is not Kind.TEXT]
    form = pattern_of(_pattern(wording.atoms, lambda atom: f"({atom.pattern})"))
    found = [match.groups() for each in others if (match := form.search(each)) is not None]
    for place, at in enumerate(values):
        own, theirs = wording.atoms[at].text, [groups[place] for groups in found]
        if not all(_COUNT.fullmatch(each or "") for each in (own, *theirs)):
            continue
        numbers = [int(each) for each in theirs]
        if len(numbers) > FEW and all(one < next_ for one, next_ in pairwise(numbers)):
            continue  # it only counts on
        pattern = beyond(int(own), numbers)
        if pattern is not None:
            atom = replace(wording.atoms[at], pattern=pattern)
            atoms = (*wording.atoms[:at], atom, *wording.atoms[at + 1 :])
            narrower = _wording(atoms, known, line, is_whole=True)
            if narrower is not None:
                yield narrower


_COUNT = re.compile(r"\d{1,9}")
FEW = 2  # lines of which nothing tells whether they count something or each other


def _without_class(atoms: list[Atom]) -> list[Atom]:
    """Without an exception's class that Python itself has: the same words may be raised as another one."""
    is_general = len(atoms) > 2 and atoms[0].text.lower() in NOISE and atoms[0].text.endswith("Error")
    return atoms[2:] if is_general and atoms[1].text == ":" else atoms


def vocabulary(bank: Bank) -> Counter[str]:
    """In how many rules' titles, advice, examples and counterexamples each lower-case word stands."""
    counts: Counter[str] = Counter()
    for rule in bank.rules:
        lines = (*rule.counterexamples, *(each.line for each in rule.examples))
        advice = (rule.title, *(each.text for each in rule.mitigation), *rule.keywords)
        counts.update(set(re.findall(r"[a-z]{2,}", "\n".join((*lines, *advice)).lower())))
    return counts


def _weights(atoms: Sequence[Atom], known: Mapping[str, int]) -> tuple[tuple[str, float], ...]:
    """Of an identifier of several parts the rarest part counts."""
    found: dict[str, float] = {}
    for atom in atoms:
        if atom.kind is Kind.TEXT:
            for word in re.findall(r"[^\W\d]+", atom.text):
                parts = [part.lower() for part in _WORD.findall(word)]
                weights = [
                    0.0 if part in NOISE else max(0.0, 1 - log1p(known.get(part, 0)) / log1p(COMMON))
                    for part in parts
                ]
                if weights:
                    found["_".join(parts)] = round(max(weights), 3)
    return tuple(found.items())


def _wording(
    atoms: Sequence[Atom], known: Mapping[str, int], line: str, *, is_whole: bool = False
) -> Wording | None:
    """Pattern, keyword and title of atoms of which all but TEXT are left open."""
    atoms = _trimmed(atoms, is_whole=is_whole)
    content = _content(atoms)
    if not any(atom.kind is Kind.TEXT and re.search(r"[^\W\d_]{3}", atom.text) for atom in atoms):
        return None
    used = set[str]()

    def value(atom: Atom) -> str:
        if atom.group and atom.group not in used:
            used.add(atom.group)
            return f"(?P<{atom.group}>{atom.pattern})"
        return f"(?:{atom.pattern})"

    pattern = _pattern(atoms, value)
    if pattern_of(pattern).search(line) is None:  # an underscore that was trimmed is part of a word
        pattern = re.sub(r"^\\b|(?<!\\)\\b$", lambda _: r"(?:\b|_)", pattern)
    title, titled = "", set[str]()
    for atom in atoms:
        if atom.kind is Kind.TEXT:
            title += " " if atom.text.isspace() else atom.text.replace("{", "(").replace("}", ")")
        else:
            title += "{" + atom.group + "}" if atom.group and atom.group not in titled else "…"
            titled.add(atom.group)
    keyword = _keyword(atoms, line)
    if not keyword:
        return None
    weights = _weights(atoms, known)
    return Wording(pattern, keyword, _short(title), content, weights, tuple(atoms), ratio_of(atoms))


def _pattern(atoms: Sequence[Atom], value: Callable[[Atom], str]) -> str:
    """The pattern of atoms; `value` gives that of each which is left open."""
    pattern = "".join(
        (r"\s+" if atom.text.isspace() else re.escape(atom.text)) if atom.kind is Kind.TEXT else value(atom)
        for atom in atoms
    )
    first, last = atoms[0], atoms[-1]
    begins = first.kind is not Kind.TEXT or re.match(r"\w", first.text, re.ASCII)
    ends = last.pattern.startswith("0*") or (
        last.kind is Kind.TEXT and re.search(r"\w$", last.text, re.ASCII)
    )
    return (r"\b" if begins else "") + pattern + (r"\b" if ends else "")


def _trimmed(atoms: Sequence[Atom], *, is_whole: bool) -> list[Atom]:
    """Without values and punctuation at either end, and unless all of it is wanted without what follows
    once enough is said.
    """
    first = next(
        (at for at, atom in enumerate(atoms) if _says_something(atom) or leads(atoms, at)), len(atoms)
    )
    kept: list[Atom] = []
    count = 0
    for atom in atoms[first:]:
        if atom.kind is Kind.TEXT:
            if not is_whole and count >= ENOUGH_CONTENT and _CLAUSE_END.match(atom.text):
                break
            count += len(_content([atom]))
        kept.append(atom)
        if not is_whole and count >= MOST_CONTENT:
            break
    while kept and not (_says_something(kept[-1]) or kept[-1].group or kept[-1].is_telling):
        kept.pop()
    return kept or list(atoms[:1])


def _says_something(atom: Atom) -> bool:
    return atom.kind is Kind.TEXT and re.search(r"[^\W\d_]{2}", atom.text) is not None


def _content(atoms: Iterable[Atom]) -> tuple[str, ...]:
    """One entry for each word of the line, however many parts an identifier has."""
    words: list[str] = []
    for atom in atoms:
        if atom.kind is Kind.TEXT:
            parts = [part.lower() for part in _WORD.findall(atom.text)]
            if told := [part for part in parts if part not in EMPTY and len(set(part)) > 1]:
                words.append("-".join(told))
    return tuple(words)


def _keyword(atoms: Sequence[Atom], line: str) -> str:
    """The run of text that says most: in every line of the kind, whatever its values are.

    Atoms stand one space apart, words of the line perhaps more: a run must be in the line as it stands.
    """
    runs: list[list[Atom]] = [[]]
    for atom in atoms:
        if atom.kind is Kind.TEXT and (atom.text == " " or not re.search(r"[\s\d<>]", atom.text)):
            runs[-1].append(atom)
        else:
            runs.append([])
    best, most = "", 0
    for run in runs:
        for start in range(len(run)):
            text = "".join(atom.text for atom in run[start:])[:60]
            if not text or text[0].isspace():
                continue
            if len(text) == 60 and " " in text:
                text = text[: text.rfind(" ")]
            text = text.strip()
            if text.lower() not in line.lower():
                continue
            weight = sum(map(len, _content([Atom(Kind.TEXT, text)])))
            if len(re.findall(r"[^\W\d_]", text)) >= 4 and (weight > most or not best):
                best, most = text, weight
    return best.lower()


def _short(title: str) -> str:
    title = " ".join(title.split())
    if len(title) <= 120:
        return title
    cut = title[:119]
    if cut.count("{") > cut.count("}"):
        cut = cut[: cut.rfind("{")]
    return cut.rsplit(" ", 1)[0] + " …"
