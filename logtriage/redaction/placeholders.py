"""Secrets become placeholders, and the answer gets them back. A value that was recognised once (`token=…`) is
replaced wherever it stands, also where nothing around it says what it is.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Any
from urllib.parse import unquote

from logtriage.redaction.clauses import is_object, told_in
from logtriage.redaction.commands import COMMANDS
from logtriage.redaction.forms import ADDRESSES, FORMS, SHORTEST_PASSWORD, SHORTEST_SECRET
from logtriage.redaction.nouns import STEMS
from logtriage.redaction.restated import as_commands, as_settings
from logtriage.redaction.spoken import SPOKEN, TOLD, is_name_of_a_secret, values_told
from logtriage.redaction.values import in_plain_letters, is_harmless, is_odd, is_word, random_runs
from logtriage.regex import regex

LEAST_OF_A_BLOCK = 4  # characters of a line of a key block
LONGEST_BLOCK = 16_000  # characters of a key block whose end is not there
MANY = 200  # values, of which looking for one by one takes longer than for all at once
_ENDS_VALUE = re.compile(r"[,;&(){}\[\]\\]")
_KEY_TEXT = regex(r"[A-Za-z0-9+/]{20,}={0,2}")
_ESCAPED_BREAK = regex(r"(?:\\+[nr])+")
PLACEHOLDER = regex(r"<(?:text|secret|email|user|host|ip)-\d+>")


class Redaction:
    """The placeholders of one job's texts. The same value has the same placeholder in all of them."""

    def __init__(self, *, hosts: Iterable[str] = (), addresses: bool = False) -> None:
        """`hosts` are names to hide besides; `addresses` hides IP addresses too."""
        self._placeholders: dict[str, str] = {}
        self._values: dict[str, str] = {}
        self._counts: Counter[str] = Counter()
        self._looked_at: set[str] = set()
        self._used: set[str] = set()
        self._any: Any = None  # finds any of the first `_known` values
        self._known = 0
        self._addresses = addresses
        self._hosts = frozenset(host for host in hosts if len(host) > 2)
        for host in sorted(self._hosts):
            self._learn("host", host)

    @property
    def counts(self) -> dict[str, int]:
        """How many different values of each kind were hidden in texts: {"email": 1, "secret": 2}."""
        kinds = Counter(placeholder[1:].rpartition("-")[0] for placeholder in self._used)
        return {kind: number for kind, number in sorted(kinds.items()) if kind != "text"}

    def learn(self, text: str) -> None:
        """Find the values of a text, so that they are hidden in all later ones wherever they stand."""
        # Half a surrogate pair is nothing that re2 takes; the line is looked at again below.
        self._learn_from(text if text.isascii() else text.encode("utf-8", "replace").decode())
        plain, places = in_plain_letters(text)
        if not plain:
            return
        shown = Redaction(addresses=self._addresses)
        shown._learn_from(plain)
        for value, placeholder in shown._placeholders.items():
            kind = placeholder[1:].rpartition("-")[0]
            self._learn(kind, value)
            start = plain.find(value)
            while start >= 0:
                self._learn(kind, text[places[start] : places[start + len(value)]])
                start = plain.find(value, start + len(value))

    def _learn_from(self, text: str) -> None:
        # Much is learned twice: as it was read, and when it is sent.
        lines = [line for line in dict.fromkeys(text.split("\n")) if line not in self._looked_at]
        self._looked_at.update(lines)
        self._learn_forms(text)
        commands = as_commands("\n".join(lines))
        if commands:
            self._learn_forms("\n".join(commands))
        told = list(_with_a_noun(lines))
        settings = as_settings("\n".join([*told, *_with_a_noun(commands)]))
        for line in (*told, *settings):
            for value in told_in(line):
                self._learn("secret", value)
        for line in lines:
            for value in random_runs(line):
                self._learn("secret", value)

    def _learn_forms(self, text: str) -> None:
        forms, may_match = _compiled(self._addresses)
        # Most forms have words of which none stands in most texts.
        for index in sorted(may_match.Match(text, potential=True) or ()):
            kind, least, form = forms[index]
            for match in form.finditer(text):
                value = next(
                    (match[each] for each in form.groupindex if each != "name" and match[each]), match[0]
                )
                if kind == "block":
                    self._learn_block(value if match[0].endswith("-----") else value[:LONGEST_BLOCK])
                elif kind == "run":
                    if _is_key_text(value):
                        self._learn("secret", value)
                elif kind in TOLD:
                    for each in values_told(kind, least, value):
                        if kind in ("given", "strange") or not is_object(each, _line_of(text, match)):
                            self._learn("secret", each)
                elif kind == "named":
                    if is_name_of_a_secret(match["name"], value):
                        self._learn_open(value, match[0], least)
                elif kind == "open":
                    self._learn_open(value, match[0], least)
                elif not least or (len(value) >= least and not is_harmless(value)):
                    self._learn(kind, value)
                    if kind == "secret" and "%" in value and len(unquote(value)) >= SHORTEST_PASSWORD:
                        self._learn(kind, unquote(value))

    def _learn_block(self, value: str) -> None:
        """A key block: all of it, and each of its lines, behind whatever a logger wrote before it."""
        self._learn("secret", value)
        for line in _ESCAPED_BREAK.sub("\n", value).splitlines():
            if len(line.strip()) >= LEAST_OF_A_BLOCK:
                self._learn("secret", line.strip())
            for run in _KEY_TEXT.findall(line):
                self._learn("secret", run)

    def _learn_open(self, value: str, matched: str, least: int) -> None:
        """What follows `password=` without quotes, up to the next blank, and what a list would take of it."""
        first = _ENDS_VALUE.split(value, maxsplit=1)[0]
        if is_harmless(first) or is_word(first):
            return
        if first[:1] in ("/", ".", "~") and _OWN_FOLDER.match(matched):
            return
        if ": " in matched and not is_odd(first) and _PROSE.match(matched):
            return
        ends = (value.partition(sign)[0] for sign in ";,&")
        for each in dict.fromkeys((value, value.rstrip(",;&)}]\\"), first, *ends)):
            if len(each) >= least:
                self._learn("secret", each)

    def redact(self, text: str) -> str:
        """The text with placeholders. Whatever it holds, `restore` gives exactly it back."""
        self.learn(text)
        return self._replaced(text)

    def redact_lines(self, lines: Sequence[str]) -> list[str]:
        """Each line with placeholders; what one gives away is hidden in all of them."""
        self.learn("\n".join(lines))
        return [self._replaced(line) for line in lines]

    def restore(self, text: str) -> str:
        """The text with the values that stood in the place of placeholders."""
        return PLACEHOLDER.sub(lambda match: self._values.get(match[0], match[0]), text)

    def _learn(self, kind: str, value: str) -> None:
        if not value or value in self._placeholders:
            return
        self._counts[kind] += 1
        placeholder = f"<{kind}-{self._counts[kind]}>"
        self._placeholders[value] = placeholder
        self._values[placeholder] = value

    def _replaced(self, text: str) -> str:
        if len(self._placeholders) > MANY and not self._holds_any(text):
            return text
        present = [value for value in self._placeholders if value in text]
        if not present:
            return text
        # Longest first, and in one pass: what was put in is never looked at again.
        present.sort(key=len, reverse=True)
        parts = [self._pattern(value) for value in present]

        def placeholder(match: re.Match[str]) -> str:
            told = self._placeholders[match[0]]
            self._used.add(told)
            return told

        return re.sub("|".join(parts), placeholder, text)

    def _holds_any(self, text: str) -> bool:
        """Whether one of many values stands in a text, at a cost that does not grow with their number."""
        import ahocorasick_rs

        try:
            if self._known != len(self._placeholders):
                self._any = ahocorasick_rs.AhoCorasick(list(self._placeholders))
                self._known = len(self._placeholders)
            return bool(self._any.find_matches_as_indexes(text))
        except UnicodeEncodeError:  # half a surrogate pair, in the text or in a value
            return True

    def _pattern(self, value: str) -> str:
        """Names and short passwords are replaced as whole words only."""
        if self._placeholders[value].startswith("<user"):
            return rf"{re.escape(value)}(?!\w)"
        if len(value) < SHORTEST_SECRET or self._placeholders[value].startswith("<host"):
            return rf"(?<!\w){re.escape(value)}(?!\w)"
        return re.escape(value)


_OWN_FOLDER = regex(r"(?:OLD)?PWD=")
# `credentials: Permission denied` says what went wrong.
_PROSE = regex(r"(?i)(?:credentials?|auth(?:orization)?)\\*[\"']?:")


def _line_of(text: str, match: Any) -> str:
    """The line in which a match begins, as far as a name and what is said of it may be apart."""
    start, end = match.start(), match.end()
    return text[max(text.rfind("\n", 0, start) + 1, start - 200) : end + 100].partition("\n")[0]


def _is_key_text(value: str) -> bool:
    """Whether a long run is base64 of something random: no hash in hexadecimal, no path, no name."""
    kinds = (str.isupper, str.islower, str.isdigit)
    return all(any(kind(each) for each in value) for kind in kinds) and value.count("/") < len(value) // 10


def _options() -> Any:
    import re2

    options = re2.Options()
    options.max_mem = 64 << 20
    options.log_errors = False
    return options


def _with_a_noun(lines: Sequence[str]) -> Iterator[str]:
    return (match[0] for match in _compiled_stems().finditer("\n".join(lines)))


@cache
def _compiled_stems() -> Any:
    import re2

    return re2.compile(rf"(?i)[^\n]*(?:{STEMS})[^\n]*", options=_options())


@cache
def _compiled(addresses: bool) -> tuple[tuple[tuple[str, int, Any], ...], Any]:
    """All forms, and the filter that tells by their words which of them may match a text."""
    import re2

    options = _options()
    forms = (*FORMS, *SPOKEN, *COMMANDS, *(ADDRESSES if addresses else ()))
    may_match = re2.Filter()
    numbers = [may_match.Add(form, options) for _, _, form in forms]
    may_match.Compile()
    made = ((*form[:2], may_match.re(number)) for form, number in zip(forms, numbers, strict=True))
    return tuple(made), may_match
