"""Notebooks as they are kept: of their cells' outputs the lines that were printed, without all else.

In the form that Jupyter, Colab and Kaggle write: a string a line (nbformat 4, indented).
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from logtriage.model import Overlay, OverlayKind
from logtriage.regex import regex

_FIRST = 60
_CELLS = regex(r'\s*"cells": \[')
_STRING = r'("(?:[^"\\]|\\.)*")'
_PRINTED = regex(r'\s*"(?:text|text/plain|traceback)": \[\s*$')
_PRINTED_AT_ONCE = regex(rf'\s*"(?:text|text/plain|traceback)": {_STRING},?\s*$')
_ITEM = regex(rf"\s*{_STRING},?\s*$")


def learn_notebook(texts: Sequence[str]) -> Overlay | None:
    """Whether lines are those of a notebook's file."""
    if not texts or texts[0].strip() != "{" or not any(map(_CELLS.match, texts[:_FIRST])):
        return None
    return Overlay(OverlayKind.NOTEBOOK)


def without_notebook(texts: Sequence[str], origins: Sequence[int]) -> tuple[list[str], list[int]]:
    """What the cells printed, with the line of the file in which each of its lines stands."""
    shown: list[str] = []
    places: list[int] = []
    is_printed = False
    for text, origin in zip(texts, origins, strict=True):
        if is_printed and (item := _ITEM.match(text)) is not None:
            printed = item[1]
        elif (whole := _PRINTED_AT_ONCE.match(text)) is not None:
            printed, is_printed = whole[1], False
        else:
            is_printed = _PRINTED.match(text) is not None
            continue
        lines = _decoded(printed).removesuffix("\n").split("\n")
        shown += lines
        places += [origin] * len(lines)
    return shown, places


def _decoded(string: str) -> str:
    try:
        text = json.loads(string)
    except ValueError:
        return string[1:-1]
    return str(text)
