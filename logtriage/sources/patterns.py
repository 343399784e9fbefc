"""Where jobs lie in a tree of folders: `/logs/{user}/{name}-{job_id}/`, read against a listing of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import re2

MOST_ENTRIES = 1_000_000  # of all folders that one question lists
_LONGEST = 500  # characters of a pattern
_PLACEHOLDER = re.compile(r"\{(\w*)\}|(\*+)|(\?)|([^{}*?]+)|(.)", re.S)
_NUMBER = r"\d+(?:[_+]\d+)?"  # 4812, 4812_7 of an array, 4812+1 of a heterogeneous job
_WORD = r"[A-Za-z0-9][A-Za-z0-9_+-]*"
_KINDS = {"user": r"(?P<user>[^/]+?)", "name": r"(?P<name>[^/]+)"}


class PatternFault(ValueError):
    """A pattern that cannot be used; the message says why."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One file or folder of a listing; `changed` is in seconds since 1970."""

    name: str
    path: str
    is_folder: bool
    changed: float | None = None


@dataclass(frozen=True, slots=True)
class Match:
    """An entry that a pattern says belongs to a job; what the pattern does not tell is empty."""

    entry: Entry
    job_id: str
    name: str
    user: str


@dataclass(frozen=True, slots=True)
class Level:
    """What a pattern says of the names of one level; `groups` are the facts that it captures."""

    expression: re2._Regexp
    groups: tuple[str, ...]

    def told(self, name: str) -> dict[str, str] | None:
        """The facts in a name, or None where it is another's."""
        found = self.expression.fullmatch(name)
        return None if found is None else {key: value for key in self.groups if (value := found[key])}


@dataclass(frozen=True, slots=True)
class Pattern:
    """`root` is the part without placeholders; `levels` are those of the names below it."""

    root: str
    levels: tuple[Level, ...]
    only_folders: bool

    def match(self, entry: Entry, names: tuple[str, ...]) -> Match | None:
        """What the names of the folders below `root`, the entry's own last, tell of its job."""
        if len(names) != len(self.levels):
            return None
        facts: dict[str, str] = {}
        for level, name in zip(self.levels, names, strict=True):
            if (told := level.told(name)) is None:
                return None
            facts |= told
        return self.owned(entry, facts)

    def owned(self, entry: Entry, facts: dict[str, str]) -> Match | None:
        if self.only_folders and not entry.is_folder:
            return None
        job_id = facts.get("number") or facts.get("word") or facts.get("name", "")
        return Match(entry, job_id, facts.get("name", ""), facts.get("user", ""))


@lru_cache(maxsize=256)
def read_pattern(text: str) -> Pattern:
    """A pattern of `{job_id}`, `{name}`, `{user}`, `*` (any run of a name) and `?`. Raises PatternFault.

    An id is a Slurm-like number with array index, up to the first other character, or else a word.
    """
    if len(text) > _LONGEST or "\0" in text:
        raise PatternFault(f"a pattern has at most {_LONGEST} characters, and no NUL")
    scheme, mark, rest = text.rpartition("://")
    levels = rest.rstrip("/").split("/")
    fixed = next((at for at, level in enumerate(levels) if re.search(r"[{}*?]", level)), len(levels))
    if fixed == len(levels) or not re.search(r"\{(?:job_id|name)\}", text):
        raise PatternFault("the pattern names no {job_id} and no {name}")
    if any(level in ("", ".", "..") for level in levels[1:]):
        raise PatternFault("a pattern has no empty level, no . and no ..")
    root = "/".join(levels[:fixed])
    if not root.strip("/"):
        raise PatternFault("the pattern must begin with a folder of its own, such as /logs/{job_id}")
    seen: set[str] = set()
    return Pattern(
        root=scheme + mark + root,
        levels=tuple(_level(level, seen) for level in levels[fixed:]),
        only_folders=rest.endswith("/"),
    )


def _level(text: str, seen: set[str]) -> Level:
    """The expression of one name; re2, since names are whatever users wrote, and `*` may be many."""
    import re2

    told = ""
    pieces = list(_PLACEHOLDER.finditer(text))
    at = 0
    while at < len(pieces):
        placeholder, star, question, literal, stray = pieces[at].groups()
        at += 1
        if stray:
            raise PatternFault(f"a brace in {text!r} that is no placeholder")
        if star:
            told += "[^/]*"
        elif question:
            told += "[^/]"
        elif literal:
            told += re.escape(literal)
        elif placeholder in seen:
            raise PatternFault(f"{{{placeholder}}} is there twice")
        elif placeholder == "job_id":
            seen.add(placeholder)
            number, word = f"(?P<number>{_NUMBER})", f"(?P<word>{_WORD})"
            if at < len(pieces) and pieces[at][2]:  # `{job_id}*`: the number must end where the id ends
                at += 1
                told += f"(?:{number}(?:[^0-9A-Za-z/][^/]*)?|{word}[^/]*)"
            else:
                told += f"(?:{number}|{word})"
        elif placeholder in _KINDS:
            seen.add(placeholder)
            told += _KINDS[placeholder]
        else:
            raise PatternFault(
                f"{{{placeholder}}} is no placeholder; there are {{job_id}}, {{name}}, {{user}}"
            )
    expression = re2.compile(f"(?s:{told})")
    return Level(expression, tuple(expression.groupindex))


class TooMany(Exception):
    """More entries than one question may list."""


def matches(pattern: Pattern, listed: Callable[[str], Iterable[Entry]]) -> Iterator[Match]:
    """All entries below the pattern's root that it matches; `listed` gives the entries of one folder.

    Raises TooMany after MOST_ENTRIES entries.
    """
    seen = 0
    waiting: list[tuple[str, int, dict[str, str]]] = [(pattern.root, 0, {})]
    while waiting:
        folder, depth, facts = waiting.pop()
        level, is_last = pattern.levels[depth], depth + 1 == len(pattern.levels)
        for entry in listed(folder):
            seen += 1
            if seen > MOST_ENTRIES:
                raise TooMany
            if (is_last or entry.is_folder) and (told := level.told(entry.name)) is not None:
                if not is_last:
                    waiting.append((entry.path, depth + 1, facts | told))
                elif (match := pattern.owned(entry, facts | told)) is not None:
                    yield match
