"""The atoms of a log line: what names its kind, and what varies in it, by sort of value.

The masks of the templates say what a value is; the words before a value say what it is called (`rank 3`,
`pid 4711`), and so what a rule captures.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

import re2

from logtriage.memory.words import FILE_ENDS, IDENTITIES, INDEXED, STATES, UNSPACED
from logtriage.mining.masks import mask
from logtriage.mining.templates import TemplateMiner
from logtriage.rulebank.bank import rule_options

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
    is_telling: bool = False  # a code or a count of faults: what is not 0 here is not 0 in its like


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
    "NUM": r"[-+]?(?:\d+(?:[.,_]\d+)*(?:[eE][-+]?\d+)?%?|nan|inf)",
    "WORD": r"[\w.:+@#%/-]*\w",
    "*": r"\S+",
}
_FOREIGN_WORD = r"[^\s,;:()<>\[\]|]+"  # RE2's \w knows ASCII alone
_QUOTED = r"[^'\"`]*"
_WHOLE = dict.fromkeys(("rank", "local_rank", "gpu", "pid", "step", "port", "seq", "signal", "peer"), r"\d+")
_WHOLE["exitcode"] = r"-?\d+"
_NONZERO = r"[-+]?(?:(?:0[xX])?0*[1-9a-fA-F][\w.,]*|0*[.,]0*[1-9]\w*)(?:[eE][-+]\d+)?%?"

_GROUPS = {
    "PATH": "file", "IP": "address", "URL": "address", "PCI": "pci", "SIZE": "size", "HOST": "host",
}  # fmt: skip
_NAMED_BY = {
    "rank": "rank", "ranks": "", "gpu": "gpu", "device": "gpu", "cuda": "gpu", "pid": "pid", "step": "step",
    "iteration": "step", "exitcode": "exitcode", "signal": "signal", "host": "host", "node": "host",
    "hostname": "host", "nodename": "host", "port": "port", "seq": "seq",
}  # fmt: skip
_OF_ANOTHER = re.compile(r"(?i)\b(?:peer|remote|from|to|with|by|source|src|dest\w*|other)\W+(?:\w+\W+)?$")
_AFTER_NODE = re.compile(r"(?i)\b(?:hosts?|nodes?|hostname|nodename|server|machine)[ =:(\"'\[]{0,3}$")
_AFTER_HOST = re.compile(rf"{_AFTER_NODE.pattern}|\bon $")
_DIGEST_BEFORE = re.compile(
    r"(?i)(?:checksum|crc\w*|hash|digest|sha\d*|md5|sum|id|token|key|want|got|addr\w*|cookie)[ =:#]{1,3}$"
)
_CODE_BEFORE = re.compile(
    r"(?i)\b(?:code|status|errno|rc|ret|retval|returned|error|err|event|fault|state|reason|result|exit|xid|sxid)"
    r"s?(?:[ =:#(]{1,3})$"
)
COUNTED = r"(?:errors?|fail\w*|faults?|lost|missing|corrupt\w*|uncorrect\w*|bad|mismatch\w*|dropped)"
_COUNT_BEFORE = re.compile(rf"(?i)\b{COUNTED}[ =:]{{1,3}}$")
COUNT_AFTER = re.compile(rf"(?i)^ ?(?:\w+ ){{0,3}}{COUNTED}\b")

_PLACE_BEFORE = re.compile(r"(?i)\b(?:in|on|at|of|for|from|to|by|via|with) +[A-Za-z_]+[-_ =:#\[(]{1,3}$")

_PLACED = ("on", "from", "at", "to", "via")

_SOURCE_FILE = re.compile(r"\.(?:py|pyx|c|cc|cpp|cxx|cu|cuh|h|hpp|so|go|rs|java|sh|js|ts)$")
_DATA_FILE = re.compile(r"[\w+-]\.[A-Za-z][A-Za-z0-9]{0,10}$")
_MASK = re.compile(r"<(TIME|URL|UUID|PCI|MAC|IP|PATH|HEX|HOST|SIZE|NUM|\*)>")
_UNSPACED_RUN = re.compile(f"([{UNSPACED}]+)")
_PIECE = re.compile(
    rf"(?P<unspaced>[{UNSPACED}]+)|"
    r"(?P<quoted>(?<!\w)'[^'\n]{0,200}'(?!\w)|\"[^\"\n]{0,200}\"|`[^`\n]{0,200}`)"
    rf"|(?P<word>(?:<(?:TIME|URL|UUID|PCI|MAC|IP|PATH|HEX|HOST|SIZE|NUM|\*)>|(?![{UNSPACED}])[^\W_]"
    r"|[_.@+-](?=[\w<]))+)"
    r"|(?P<space>\s+)|(?P<other>.)"
)
# Quoted, but what the line says and not a name.
_SPOKEN = re.compile(r"(?i)\b(?:msg|message|text|error|err|reason|details?|cause)[=:] ?$")
PROSE_WORDS = 4
_LEVEL = re.compile(
    r"(?i)^.{0,90}?\b(?:error|err|fatal|critical|crit|warn|warning|info|severe|panic|alert|emerg)\b[\]>):|,]*\s+"
)
_LOCATION = re.compile(r"^.{0,100}?[\w/.-]+\.(?:py|cc|cpp|cxx|c|cu|go|rs|h|hpp):\d+(?:[\]:)]| -)+\s*")
_CLASS = re.compile(
    r"\b(?:[A-Za-z_]\w*\.)+(?=_?[A-Z]\w*(?:Error|Exception|Failure|Fault|Timeout|Interrupt)\b)"
    r"|^(?:[A-Za-z_]\w*\.)+(?=[A-Z][a-z]\w*(?::|$))"
)


def atoms_of(text: str, names: tuple[str, ...], alike: Sequence[str], known: Mapping[str, int]) -> list[Atom]:
    """The atoms of a message without its head; see `logtriage.memory.wording.patterns` for the arguments."""
    text = _without_head(text)
    others = [_masked(_without_head(each), names) for each in alike]
    template = _template(_masked(text, names), others)
    return _filled(_read(template, "", known), text, names)


def _read(template: str, before: str, known: Mapping[str, int]) -> list[Atom]:
    """The atoms of a masked text that stands behind `before`."""
    found: list[Atom] = []
    for piece in _PIECE.finditer(template):
        word = piece.group()
        if piece.lastgroup == "quoted" and (_SPOKEN.search(before) or len(word.split()) >= PROSE_WORDS):
            quote = Atom(Kind.TEXT, word[0])
            found += [quote, *_read(word[1:-1], before + word[0], known), quote]
        elif piece.lastgroup == "quoted":
            found += [Atom(Kind.TEXT, word)] if _tells_state(word, before) else _quoted(word)
        elif piece.lastgroup == "word":
            found += _of_word(word, before, template[piece.end() : piece.end() + 30], known)
        else:
            found.append(Atom(Kind.TEXT, word))
        before = (before + word)[-60:]
    return found


def _filled(atoms: list[Atom], text: str, names: tuple[str, ...]) -> list[Atom]:
    """The atoms with the values that stand in the line; a host is captured where it is known to be one."""
    found = _values_in(text, atoms, lambda atom: atom.pattern) or _values_in(text, atoms, lambda _: ".+?")
    if found is None:
        return atoms
    values = iter(found)
    filled = [atom if atom.kind is Kind.TEXT else _with_value(atom, next(values)) for atom in atoms]
    before = ""
    for index, atom in enumerate(filled):
        if atom.group == "host" and atom.text not in names and not _AFTER_NODE.search(before):
            filled[index] = replace(atom, group="file" if _is_file(atom.text) else "")
        elif atom.group in _WHOLE or atom.is_telling:
            filled[index] = _narrowed(atom)
        before = (before + atom.text)[-40:]
    return filled


def _values_in(text: str, atoms: Sequence[Atom], form: Callable[[Atom], str]) -> tuple[str, ...] | None:
    """What stands in a line for each atom that is no text, by patterns of this form for them."""
    parts = [
        (r"\s+" if atom.text.isspace() else re.escape(atom.text))
        if atom.kind is Kind.TEXT
        else f"({form(atom)})"
        for atom in atoms
    ]
    found = re2.fullmatch("".join(parts) + r"\s*", text, rule_options())
    return None if found is None else found.groups()


def _with_value(atom: Atom, value: str) -> Atom:
    """With the value that stands in the line; one that does not look like its class leaves its form open."""
    if re2.fullmatch(atom.pattern, value, rule_options()) is not None:
        return replace(atom, text=value)
    return replace(atom, text=value, pattern=r"\S+" if re.search(r"\s", value) is None else ".+?")


def _narrowed(atom: Atom) -> Atom:
    """A number by its value: what is captured is a whole number, and what tells of a fault is not 0."""
    whole = re.fullmatch(r"-?\d+", atom.text) is not None
    group = atom.group if whole or atom.group not in _WHOLE else ""
    if atom.is_telling and re.search(r"[1-9a-fA-F]", atom.text):
        return replace(atom, group=group, pattern=r"-?0*[1-9]\d*" if group in _WHOLE else _NONZERO)
    return replace(atom, group=group, pattern=_WHOLE.get(group, atom.pattern))


def _without_head(text: str) -> str:
    """Without what stands before the message: times, levels, source places, an exception's module."""
    text = text.strip()
    head = _LEVEL.match(text)
    if (
        head is not None
        and len(re.findall(r"[A-Za-z]{3,}", text[head.end() :])) >= 4
        and re.search(r"\d|^\W*\w+\W*\s+$", head.group())
    ):
        text = text[head.end() :]
    place = _LOCATION.match(text)
    if place is not None and len(re.findall(r"[A-Za-z]{3,}", text[place.end() :])) >= 3:
        text = text[place.end() :]
    module = _CLASS.search(text)
    if module is not None and len(re.findall(r"[A-Za-z]{3,}", text[: module.start()])) < 2:
        text = text[module.end() :]
    return text


_EDGES = re.compile(r"(?s)\S(?:.*\S)?")  # all but the white space at both ends, which masks would drop
_RELATIVE = re.compile(r"(?<![\w./<>@+-])[\w.@+-]+(?:/[\w.@+=-]+)+")


def _masked(text: str, names: tuple[str, ...]) -> str:
    """The masked line, with this job's names and paths that begin at no slash masked too."""
    for name in sorted({name for name in names if len(name) > 2}, key=len, reverse=True):
        text = re.sub(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", "<HOST>", text)
    # Between words that are written without spaces a value stands by itself all the same.
    return "".join(
        part if at % 2 else _EDGES.sub(lambda inner: mask(_RELATIVE.sub(_path, inner.group())), part)
        for at, part in enumerate(_UNSPACED_RUN.split(text))
    )


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
    merged = miner.templates()[place].text.split()
    if len(merged) != len(words):
        return miner.templates()[place].text
    # A state is no name: where the like lines have another one, it tells them apart.
    return " ".join(
        mine if _STATE.search(mine) or _holds_state(mine, before) else each
        for before, mine, each in zip(("", *words), words, merged, strict=False)
    )


_STATE = re.compile(rf"(?i)^(?:[\w.-]+[=:])?\W?(?:{'|'.join(sorted(STATES))})\W{{0,2}}$")
# One short word between quotes that is the value of a field, or that a verb or a noun of state leads to.
_SHORT_WORD = re.compile(r"['\"`]([a-z]{2,16}|True|False|TRUE|FALSE)['\"`]")
_STATE_BEFORE = re.compile(
    r"(?i)\b(?:now|is|was|are|became|becomes|turned|turns|went|goes|says|state|status|event|mode|phase"
    r"|condition|health|verdict|outcome)(?:[ =:]{1,2}| is )$"
)
_FIELD_BEFORE = re.compile(r"(?<![\w.-])([a-z_][\w.-]*)(?:=|['\"]: ?)$")


def _tells_state(quoted: str, before: str) -> bool:
    """Whether a quoted word is what state something is in, and not somebody's name for it."""
    if _SHORT_WORD.fullmatch(quoted) is None:
        return False
    field = _FIELD_BEFORE.search(before)
    if field is not None:
        return re.split(r"[._-]", field[1])[-1] not in IDENTITIES and field[1] not in IDENTITIES
    return _STATE_BEFORE.search(before) is not None or re.search(r"(?i)\bto $", before) is not None


def _holds_state(word: str, before: str) -> bool:
    """Whether one of a line's words, behind another, is a state or a field with one."""
    quote = re.search(r"['\"`]", word)
    if quote is None:
        return False
    return _tells_state(word[quote.start() :].rstrip(",;.)]}"), f"{before} {word[: quote.start()]}")


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


def _of_word(word: str, before: str, after: str, known: Mapping[str, int]) -> list[Atom]:
    masks = _MASK.findall(word)
    if len(masks) == 1 and word == f"<{masks[0]}>":
        return [_value(masks[0], word, before, after)]
    plain = _MASK.sub("0", word)
    if masks or any(character.isdigit() for character in plain):
        return _of_mixed(word, plain, before, after)
    key = re.search(r"(?<![\w.-])([A-Za-z_]+)(=|: ?| )$", before)
    if key is not None and _AFTER_HOST.search(before) and re.search(r"[a-z][-.][a-z]", word):
        return [Atom(Kind.VALUE, word, _VALUES["HOST"], "host")]
    if key is not None and key[1].lower() in IDENTITIES and word.lower() not in STATES:
        unknown = not _is_known(word, known)
        if key[2] != " " or unknown:
            kind = Kind.NAMED if not unknown else Kind.VALUE
            return [Atom(kind, word, _any_word(word), _NAMED_BY.get(key[1].lower(), ""))]
    if _DATA_FILE.search(word) and not _SOURCE_FILE.search(word) and word.count(".") == 1 and _is_file(word):
        return [Atom(Kind.NAMED, word, _VALUES["PATH"], "file")]
    if _STATE_BEFORE.search(before) and re.fullmatch(r"[a-z]+(?:[-_.][a-z]+)+", word):
        return [Atom(Kind.TEXT, word)]
    if before.strip() and _JOINED.search(word) and not _is_known(word, known):
        is_label = after.startswith((":", "(", "=", "[")) or word.startswith("-")
        placed = re.search(r"([A-Za-z]+) $", before)
        if not is_label or (placed is not None and placed[1].lower() in _PLACED):
            return [Atom(Kind.NAMED, word, _any_word(word))]
    return [Atom(Kind.TEXT, word)]


# Two words in one: a name that somebody gave, unless the trade knows both.
_JOINED = re.compile(r"[A-Za-z][-._@][A-Za-z]")


def _is_file(word: str) -> bool:
    return word.rsplit(".", 1)[-1].lower() in FILE_ENDS


def _any_word(like: str) -> str:
    return _VALUES["WORD"] if like.isascii() else _FOREIGN_WORD


def _is_known(word: str, known: Mapping[str, int]) -> bool:
    parts = re.findall(r"[A-Z]?[a-z]+|[A-Z]+", word)
    return bool(parts) and all(len(part) < 2 or part.lower() in known for part in parts)


def _of_mixed(word: str, plain: str, before: str, after: str) -> list[Atom]:
    """Letters and digits in one word: an index (`rank3`), a source file, or a name (`node-a17`)."""
    if _SOURCE_FILE.search(plain) and not _MASK.search(word):
        return [Atom(Kind.TEXT, word)]
    if _AFTER_HOST.search(before) and not _is_file(plain):
        return [Atom(Kind.VALUE, word, _VALUES["HOST"], "host")]
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
    return [Atom(Kind.VALUE, word, _any_word(word), group if group in ("host", "rank") else "")]


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
    # A host that looks like a number is one of many whose names do not.
    pattern = _VALUES["HOST" if group == "host" else sort]
    if sort in ("NUM", "HEX") and _DIGEST_BEFORE.search(before):
        pattern = _VALUES["WORD"]
    elif sort in ("NUM", "HEX"):
        counts = _COUNT_BEFORE.search(before) or (COUNT_AFTER.match(after) and not group)
        is_last = not after.strip() and re.search(r"\w *[=:] *$", before) is not None
        # What numbers no part of the job or of a run counts or measures something, whatever it is called.
        is_amount = sort == "NUM" and not group and not _PLACE_BEFORE.search(before)
        counts = counts or ((is_last or is_amount) and word not in INDEXED and word not in IDENTITIES)
        if _CODE_BEFORE.search(before):
            return Atom(Kind.CODE, text, pattern, group, is_telling=True)
        if counts:
            return Atom(Kind.VALUE, text, pattern, group, is_telling=True)
    return Atom(Kind.VALUE, text, pattern, group)
