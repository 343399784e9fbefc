"""Logs as the source of a page has them: signs as entities, lines in tags."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from logtriage.model import Overlay, OverlayKind
from logtriage.regex import regex

_ENTITY = regex(r"&(?:lt|gt|amp|quot|apos|nbsp|#\d{2,6}|#[xX][0-9a-fA-F]{2,5});")
_QUOTE = regex(r"&(?:quot|#34|#[xX]22);")
# Of the tags of HTML those in which consoles, forges and mails show lines.
_TAG = regex(
    r"</?(?:span|br|div|pre|code|td|tr|th|table|tbody|thead|p|li|ol|ul|a|b|i|u|em|strong|font|samp|html|head|body"
    r"|title|meta|link|section|article|details|summary|button|blockquote|clipboard-copy|time|h[1-6])"
    r"(?:\s[^<>]{0,600})?/?>|<!(?:DOCTYPE|--)[^<>]{0,300}>",
)
_ROW_END = regex(r"<br ?/?>|</(?:div|p|li|tr|pre|h[1-6])>")
_CELLS = regex(r"</t[dh]>\s{0,20}<t[dh](?:\s[^<>]{0,600})?>")
# The number of a line, in an element of its own.
_NUMBER = regex(
    r"(?:<(?!a\b|td\b)[a-z]{1,10}(?:\s[^<>]{0,600})?>\s{0,20}){0,4}<(a|span|td|div|code|button)(?:\s[^<>]{0,600})?>"
    r"\s{0,20}(\d{1,7})\s{0,20}</(?:a|span|td|div|code|button)>"
)
_PAGE = regex(r"\s{0,20}<(?:!DOCTYPE|html|pre)\b")
_MOST_LEAST = 0.1  # signs that should be entities, or tags, and are none: one in so many of those that are
_TAGGED = 0.5  # of the lines so many have tags, unless the page or its block of code begins here
_FIRST = 20
_LEAST_COUNTED, _IN_A_ROW = 3, 0.9  # of the numbers in elements of their own so many count lines


def learn_markup(texts: Sequence[str]) -> Overlay | None:
    """Whether lines are those of a page's source: what would have to be an entity in it nearly always is."""
    # Of nearly all files this tells at once that they are none.
    suspects = [text for text in texts if "&" in text or "</" in text or "<br" in text or "<pre" in text]
    if not suspects:
        return None
    entities = sum(len(_ENTITY.findall(text)) for text in suspects)
    ands = sum(text.count("&") for text in suspects)
    tags = sum(len(_TAG.findall(text)) for text in suspects)
    opened = sum(text.count("<") for text in texts)
    if not entities and not tags:
        return None
    if ands - entities > _MOST_LEAST * entities or opened - tags > _MOST_LEAST * (tags + entities):
        return None
    quotes = sum(text.count('"') for text in texts) if any(map(_QUOTE.search, suspects)) else 0
    if tags:
        filled = [text for text in texts if text.strip()]
        tagged = sum(_TAG.search(text) is not None for text in filled)
        if tagged < _TAGGED * len(filled) and not any(map(_PAGE.match, texts[:_FIRST])):
            return None
    elif quotes > _MOST_LEAST * entities:
        return None  # quotes are entities in all places or in none
    return Overlay(OverlayKind.MARKUP)


def without_markup(texts: Sequence[str], origins: Sequence[int]) -> tuple[list[str], list[int]]:
    """The text that the page shows, with the line in which each of its lines stands."""
    from html import unescape  # few jobs need its tables

    numbers = [match for text in texts if (match := _NUMBER.match(text)) is not None]
    steps = sum(int(two[2]) == int(one[2]) + 1 for one, two in pairwise(numbers))
    are_counted = len(numbers) > _LEAST_COUNTED and steps >= _IN_A_ROW * (len(numbers) - 1)
    shown: list[str] = []
    places: list[int] = []
    for text, origin in zip(texts, origins, strict=True):
        if "<" in text:
            if are_counted and (number := _NUMBER.match(text)) is not None:
                text = text[number.end() :]
            text = _TAG.sub("", _ROW_END.sub("\n", _CELLS.sub("\t", text)))
            if text.endswith(("\n", "\n\r")):
                text = text.rstrip("\n\r")
        if "&" in text:
            text = unescape(text).replace("\N{NO-BREAK SPACE}", " ")
        parts = text.split("\n")
        shown += parts
        places += [origin] * len(parts)
    return shown, places
