"""From one line to the pattern of its kind: what varies becomes a typed wildcard, what names it stays.

The masks of the templates say what a value is; the words before a value say what it is called (`rank 3`,
`pid 4711`), and so what a rule captures. How much is left open is a matter of degree: `patterns` yields
the most general pattern first, for the guards to choose from.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

import re2

from logtriage.memory.words import EMPTY, FILE_ENDS, IDENTITIES, INDEXED
from logtriage.mining.masks import mask
from logtriage.mining.templates import TemplateMiner
from logtriage.rulebank.bank import Bank, rule_options

LONGEST = 600  # characters of a line that are looked at
MOST_CONTENT = 14  # words that carry meaning in one pattern; what comes after them varies
ENOUGH_CONTENT = 5  # so many, and a clause's end ends the pattern
LEAST_CONTENT = 2  # fewer say too little …
LEAST_LETTERS = 12  # … and so do fewer letters in them
ALIKE = 0.75  # share of equal words from which two lines are of one kind


class Kind(IntEnum):
    """What part of a line an atom is, in the order in which narrower patterns hold on to it."""

    TEXT = 0  # words and punctuation that name the kind of line
    VALUE = 1  # what a mask found, or a name that only this job has
    QUOTED = 2  # what stands between quotes
    CODE = 3  # a number after `code`, `status` and the like: it may tell faults apart
    NAMED = 4  # the value of `user=`, `bucket=` and the like


@dataclass(frozen=True, slots=True)
class Atom:
    kind: Kind
    text: str  # as it stands in the line; of a value its mask, until `_filled` puts back what stood there
    pattern: str = ""  # of a value: a linear expression for all values of its sort
    group: str = ""  # of a value: what a rule captures it as


@dataclass(frozen=True, slots=True)
class Wording:
    """The pattern of a kind of line, its fast filter, and its title with `{name}` for what is captured."""

    pattern: str
    keyword: str
    title: str
    content: tuple[str, ...]  # the words that carry meaning, in lower case

    @property
    def fault(self) -> str | None:
        """Why this says too little to tell a kind of failure from other lines; None if it does not."""
        told = set(self.content)
        if len(told) < LEAST_CONTENT or sum(map(len, told)) < LEAST_LETTERS:
            shown = ", ".join(sorted(told)) or "none"
            return f"it says too little: words that could tell it from other lines: {shown}"
        return None


# One class for each mask: all that such a value can look like, also where another job writes a name instead.
_VALUES = {
    "TIME": r"[\dA-Za-z:.,+/ -]{4,40}?",
    "URL": r"[A-Za-z][\w+.]*://[^\s'\"<>)\]},;]+",
    "UUID": r"[0-9a-fA-F-]{8,36}",
    "PCI": r"[0-9a-fA-F:.]+",
    "MAC": r"[0-9a-fA-F:]+",
    "IP": r"[\w.:\[\]<>/-]*[\w\]>/]",
    "PATH": r"[^\s'\",;:()<>|]+",
    "HEX": r"(?:0[xX])?[0-9a-fA-F]+",
    "HOST": r"[\w.:-]*\w",
    "SIZE": r"\d[\d.,]* ?[A-Za-z]{0,6}(?:/s)?",
    "NUM": r"[-+]?(?:\d[\d.,_eE+%-]*|nan|inf)",
    "WORD": r"[\w.:+@#%/-]*\w",
    "*": r"\S+",
}
_QUOTED = r"[^'\"`]*"
_NONZERO = r"[-+]?(?:0[xX])?0*[1-9a-fA-F][\w.,]*"

_GROUPS = {
    "PATH": "file", "IP": "address", "URL": "address", "PCI": "pci", "SIZE": "size", "HOST": "host",
}  # fmt: skip
_NAMED_BY = {
    "rank": "rank", "ranks": "", "gpu": "gpu", "device": "gpu", "cuda": "gpu", "pid": "pid", "step": "step",
    "iteration": "step", "exitcode": "exitcode", "signal": "signal", "host": "host", "node": "host",
    "hostname": "host", "nodename": "host", "port": "port", "seq": "seq",
}  # fmt: skip
_OF_ANOTHER = re.compile(r"(?i)\b(?:peer|remote|from|to|with|by|source|src|dest\w*|other)\W+(?:\w+\W+)?$")
_AFTER_HOST = re.compile(r"(?i)\b(?:hosts?|nodes?|hostname|nodename|server|machine|on)[ =:(\"'\[]{0,3}$")
_DIGEST_BEFORE = re.compile(
    r"(?i)(?:checksum|crc\w*|hash|digest|sha\d*|md5|sum|id|token|key|want|got|addr\w*|cookie)[ =:#]{1,3}$"
)
_CODE_BEFORE = re.compile(
    r"(?i)\b(?:code|status|errno|rc|ret|retval|returned|error|err|event|fault|state|reason|result|exit|xid|sxid)"
    r"s?(?:[ =:#(]{1,3})$"
)
_COUNTED = r"(?:errors?|fail\w*|lost|missing|corrupt\w*|bad|mismatch\w*|dropped)"
_COUNT_BEFORE = re.compile(rf"(?i)\b{_COUNTED}[ =:]{{1,3}}$")
_COUNT_AFTER = re.compile(rf"(?i)^ ?(?:\w+ )?{_COUNTED}\b")

_PLACED = ("on", "from", "at", "to", "via")

_SOURCE_FILE = re.compile(r"\.(?:py|pyx|c|cc|cpp|cxx|cu|cuh|h|hpp|so|go|rs|java|sh|js|ts)$")
_DATA_FILE = re.compile(r"[\w+-]\.[A-Za-z][A-Za-z0-9]{0,10}$")
_MASK = re.compile(r"<(TIME|URL|UUID|PCI|MAC|IP|PATH|HEX|HOST|SIZE|NUM|\*)>")
_PIECE = re.compile(
    r"(?P<quoted>(?<!\w)'[^'\n]{0,200}'(?!\w)|\"[^\"\n]{0,200}\"|`[^`\n]{0,200}`)"
    r"|(?P<word>(?:<(?:TIME|URL|UUID|PCI|MAC|IP|PATH|HEX|HOST|SIZE|NUM|\*)>|[^\W_]|[_.@+-](?=[\w<]))+)"
    r"|(?P<space>\s+)|(?P<other>.)"
)
_LEVEL = re.compile(
    r"(?i)^.{0,90}?\b(?:error|err|fatal|critical|crit|warn|warning|info|severe|panic|alert|emerg)\b[\]>):|,]*\s+"
)
_CLASS = re.compile(
    r"\b(?:[A-Za-z_]\w*\.)+(?=[A-Z]\w*(?:Error|Exception|Failure|Fault|Timeout|Interrupt)\b)"
    r"|^(?:[A-Za-z_]\w*\.)+(?=[A-Z][a-z]\w*:)"
)
_CLAUSE_END = re.compile(r"^(?:[.;|]|\(|-{1,2}$|–|—)")


def patterns(
    text: str, *, names: Iterable[str] = (), alike: Sequence[str] = (), known: frozenset[str] = frozenset()
) -> Iterator[Wording]:
    """Wordings of the kind of line that `text` is, the most general first.

    `names` are hosts, users and the like of this job; `alike` are further lines, of which those of the same
    kind show what varies; `known` are the words of the trade (:func:`vocabulary`).
    """
    atoms = _atoms(text[:LONGEST], tuple(names), alike, known)
    seen: set[str] = set()
    for held in ((), (Kind.QUOTED,), (Kind.CODE,), (Kind.QUOTED, Kind.CODE), (Kind.NAMED,), tuple(Kind)[2:]):
        wording = _wording([_held(atom) if atom.kind in held else atom for atom in atoms])
        if wording is not None and wording.pattern not in seen:
            seen.add(wording.pattern)
            yield wording


def _held(atom: Atom) -> Atom:
    return replace(atom, kind=Kind.TEXT)


def vocabulary(bank: Bank) -> frozenset[str]:
    """The lower-case words of the trade: all that the bank's rules, examples and advice are written with."""
    words: set[str] = set()
    for rule in bank.rules:
        texts = [rule.title, *(each.text for each in rule.mitigation), *rule.keywords, *rule.counterexamples]
        for sentence in (*texts, *(example.line for example in rule.examples)):
            words.update(re.findall(r"[a-z]{2,}", sentence.lower()))
    return frozenset(words)


def _atoms(text: str, names: tuple[str, ...], alike: Sequence[str], known: frozenset[str]) -> list[Atom]:
    text = _without_head(text)
    others = [_masked(_without_head(each), names) for each in alike]
    template = _template(_masked(text, names), others)
    found: list[Atom] = []
    before = ""
    for piece in _PIECE.finditer(template):
        word = piece.group()
        if piece.lastgroup == "quoted":
            found += _quoted(word)
        elif piece.lastgroup == "word":
            found += _of_word(word, before, template[piece.end() : piece.end() + 30], known)
        else:
            found.append(Atom(Kind.TEXT, word))
        before = (before + word)[-60:]
    return _filled(found, text, names)


def _filled(atoms: list[Atom], text: str, names: tuple[str, ...]) -> list[Atom]:
    """The atoms with the values that stand in the line; a host is captured where it is known to be one."""
    parts = [
        (r"\s+" if atom.text.isspace() else re.escape(atom.text))
        if atom.kind is Kind.TEXT
        else f"({atom.pattern})"
        for atom in atoms
    ]
    found = re2.fullmatch("".join(parts) + r"\s*", text, rule_options())
    if found is None:
        return atoms
    values = iter(found.groups())
    filled = [atom if atom.kind is Kind.TEXT else replace(atom, text=next(values)) for atom in atoms]
    before = ""
    for index, atom in enumerate(filled):
        if atom.group == "host" and atom.text not in names and not _AFTER_HOST.search(before):
            filled[index] = replace(atom, group="file" if _is_file(atom.text) else "")
        before = (before + atom.text)[-40:]
    return filled


def _without_head(text: str) -> str:
    """Without what stands before the message: times, levels, and the module of an exception's class."""
    text = text.strip()
    head = _LEVEL.match(text)
    if (
        head is not None
        and len(re.findall(r"[A-Za-z]{3,}", text[head.end() :])) >= 4
        and re.search(r"\d|^\W*\w+\W*\s+$", head.group())
    ):
        text = text[head.end() :]
    return _CLASS.sub("", text)


_RELATIVE = re.compile(r"(?<![\w./<>])[\w.@+-]+(?:/[\w.@+=-]+)+")


def _masked(text: str, names: tuple[str, ...]) -> str:
    """The masked line, with this job's names and paths that begin at no slash masked too."""
    for name in sorted({name for name in names if len(name) > 2}, key=len, reverse=True):
        text = re.sub(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", "<HOST>", text)
    return mask(_RELATIVE.sub(_path, text))


def _path(found: re.Match[str]) -> str:
    words = found.group()
    has_letters = re.search(r"[A-Za-z]", words) is not None
    if has_letters and (_is_file(words) or (re.search(r"\d", words) and not _SOURCE_FILE.search(words))):
        return "<PATH>"
    return words


def _template(masked: str, others: Sequence[str]) -> str:
    """The Drain3 template of the line among those that are like it; spacing stays as in the line."""
    words = masked.split()
    miner = TemplateMiner()
    place = miner.add(masked)
    near = 0
    for other in dict.fromkeys(others):
        theirs = other.split()
        if len(theirs) == len(words) and other != masked:
            same = sum(mine == their for mine, their in zip(words, theirs, strict=True))
            if same >= ALIKE * len(words):
                near += miner.add(other) == place
    if not near:
        return masked
    return miner.templates()[place].text


def _quoted(word: str) -> list[Atom]:
    inner = word[1:-1]
    if _MASK.search(inner) or inner:
        pattern, literal = _QUOTED, inner
        masks = _MASK.findall(inner)
        group = "file" if masks == ["PATH"] and _MASK.sub("", inner) == "" else ""
        return [
            Atom(Kind.TEXT, word[0]),
            Atom(Kind.VALUE if masks else Kind.QUOTED, literal, pattern, group),
            Atom(Kind.TEXT, word[-1]),
        ]
    return [Atom(Kind.TEXT, word)]


def _of_word(word: str, before: str, after: str, known: frozenset[str]) -> list[Atom]:
    masks = _MASK.findall(word)
    if len(masks) == 1 and word == f"<{masks[0]}>":
        return [_value(masks[0], word, before, after)]
    plain = _MASK.sub("0", word)
    if masks or any(character.isdigit() for character in plain):
        return _of_mixed(word, plain, before, after)
    key = re.search(r"(?<![\w.-])([A-Za-z_]+)(=|: ?| )$", before)
    if key is not None and _AFTER_HOST.search(before) and re.search(r"[a-z][-.][a-z]", word):
        return [Atom(Kind.VALUE, word, _VALUES["HOST"], "host")]
    if key is not None and key[1].lower() in IDENTITIES:
        unknown = not _is_known(word, known)
        if key[2] != " " or unknown:
            kind = Kind.NAMED if not unknown else Kind.VALUE
            return [Atom(kind, word, _VALUES["WORD"], _NAMED_BY.get(key[1].lower(), ""))]
    if _DATA_FILE.search(word) and not _SOURCE_FILE.search(word) and word.count(".") == 1 and _is_file(word):
        return [Atom(Kind.NAMED, word, _VALUES["PATH"], "file")]
    if before.strip() and _JOINED.search(word) and not _is_known(word, known):
        is_label = after.startswith((":", "(", "=", "[")) or word.startswith("-")
        placed = re.search(r"([A-Za-z]+) $", before)
        if not is_label or (placed is not None and placed[1].lower() in _PLACED):
            return [Atom(Kind.NAMED, word, _VALUES["WORD"])]
    return [Atom(Kind.TEXT, word)]


# Two words in one: a name that somebody gave, unless the trade knows both.
_JOINED = re.compile(r"[A-Za-z][-._@][A-Za-z]")


def _is_file(word: str) -> bool:
    return word.rsplit(".", 1)[-1].lower() in FILE_ENDS


def _is_known(word: str, known: frozenset[str]) -> bool:
    parts = re.findall(r"[A-Z]?[a-z]+|[A-Z]+", word)
    return bool(parts) and all(len(part) < 2 or part.lower() in known for part in parts)


def _of_mixed(word: str, plain: str, before: str, after: str) -> list[Atom]:
    """Letters and digits in one word: an index (`rank3`), a source file, or a name (`node-a17`)."""
    if _SOURCE_FILE.search(plain) and not _MASK.search(word):
        return [Atom(Kind.TEXT, word)]
    index = re.fullmatch(r"([A-Za-z]+)([-_.]?)(<(?:NUM|HEX)>|\d+)", word)
    if index is not None and index[1].lower() in INDEXED:
        head = index[1] + index[2]
        mask_ = _MASK.match(index[3])
        sort = mask_[1] if mask_ else "NUM"
        return [Atom(Kind.TEXT, head), _value(sort, index[3], before + head, after)]
    dotted = re.fullmatch(r"((?:[A-Za-z_]+\.)+)(<NUM>|\d+)", word)
    if dotted is not None:  # layers.17
        return [Atom(Kind.TEXT, dotted[1]), _value("NUM", dotted[2], before + dotted[1], after)]
    key = re.search(r"([A-Za-z_]+)(?:=|: ?| )$", before)
    group = _NAMED_BY.get(key[1].lower(), "") if key else ""
    if _is_file(plain):
        return [Atom(Kind.VALUE, word, _VALUES["PATH"], "file")]
    return [Atom(Kind.VALUE, word, _VALUES["WORD"], group if group in ("host", "rank") else "")]


def _value(sort: str, text: str, before: str, after: str) -> Atom:
    named = re.search(r"([A-Za-z]+)[-_ =:#\[(]{0,3}$", before)
    word = named[1].lower() if named else ""
    group = _GROUPS.get(sort, "")
    if sort in ("NUM", "HEX"):
        group = _NAMED_BY.get(word, "")
        if word == "code" and re.search(r"(?i)exit(?:ed with)? code\W*$", before):
            group = "exitcode"
        if re.search(r"(?i)local[_ -]rank\W*$", before):
            group = "local_rank"
        if group == "rank" and _OF_ANOTHER.search(before[: named.start() if named else 0]):
            group = "peer"
    elif group == "address" and _OF_ANOTHER.search(before):
        group = "peer"
    pattern = _VALUES[sort]
    if sort in ("NUM", "HEX") and _DIGEST_BEFORE.search(before):
        pattern = _VALUES["WORD"]
    elif sort in ("NUM", "HEX"):
        counts = _COUNT_BEFORE.search(before) or (_COUNT_AFTER.match(after) and not group)
        if _CODE_BEFORE.search(before):
            return Atom(Kind.CODE, text, _NONZERO if group != "exitcode" else r"-?[1-9]\d*", group)
        if counts:
            pattern = _NONZERO
    return Atom(Kind.VALUE, text, pattern, group)


def _wording(atoms: Sequence[Atom]) -> Wording | None:
    """Pattern, keyword and title of atoms of which all but TEXT are left open."""
    atoms = _trimmed(atoms)
    content = _content(atoms)
    if not any(atom.kind is Kind.TEXT and re.search(r"[A-Za-z]{3}", atom.text) for atom in atoms):
        return None
    pattern, title, used = "", "", set[str]()
    for atom in atoms:
        if atom.kind is Kind.TEXT:
            pattern += r"\s+" if atom.text.isspace() else re.escape(atom.text)
            title += " " if atom.text.isspace() else atom.text.replace("{", "(").replace("}", ")")
        elif atom.group and atom.group not in used:
            used.add(atom.group)
            pattern += f"(?P<{atom.group}>{atom.pattern})"
            title += "{" + atom.group + "}"
        else:
            pattern += f"(?:{atom.pattern})"
            title += "…"
    if re.match(r"\w", atoms[0].text, re.ASCII) and atoms[0].kind is Kind.TEXT:
        pattern = r"\b" + pattern
    if re.search(r"\w$", atoms[-1].text, re.ASCII) and atoms[-1].kind is Kind.TEXT:
        pattern += r"\b"
    keyword = _keyword(atoms)
    return Wording(pattern, keyword, _short(title), content) if keyword else None


def _trimmed(atoms: Sequence[Atom]) -> list[Atom]:
    """Without values and punctuation at either end, and without what follows once enough is said."""
    first = next((index for index, atom in enumerate(atoms) if _says_something(atom)), len(atoms))
    kept: list[Atom] = []
    count = 0
    for atom in atoms[first:]:
        if atom.kind is Kind.TEXT:
            if count >= ENOUGH_CONTENT and _CLAUSE_END.match(atom.text):
                break
            count += len(_content([atom]))
        kept.append(atom)
        if count >= MOST_CONTENT:
            break
    while kept and not _says_something(kept[-1]) and not kept[-1].group:
        kept.pop()
    return kept or list(atoms[:1])


def _says_something(atom: Atom) -> bool:
    return atom.kind is Kind.TEXT and re.search(r"[^\W\d_]{2}", atom.text) is not None


def _content(atoms: Iterable[Atom]) -> tuple[str, ...]:
    words: list[str] = []
    for atom in atoms:
        if atom.kind is Kind.TEXT:
            for word in re.findall(r"[^\W\d_]{3,}", atom.text):
                lower = word.lower()
                if lower not in EMPTY and len(set(lower)) > 1:
                    words.append(lower)
    return tuple(words)


def _keyword(atoms: Sequence[Atom]) -> str:
    """The run of text that says most: in every line of the kind, whatever its values are."""
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
