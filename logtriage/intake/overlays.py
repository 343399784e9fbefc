"""Logs as they are handed on: quoted, indented, numbered, as a page's source, broken at a terminal's width.

What was laid over the lines is learned from the first of them and lifted from all, layer by layer, before
anything else reads them (see `streams.stream`); what is told to people names lines as they stand in the file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from logtriage.intake.broken_lines import learn_broken, may_be_broken, without_breaks
from logtriage.intake.held_whole import changed_whole
from logtriage.intake.line_marks import learn_marks, may_have_marks, without_marks
from logtriage.intake.markup import learn_markup, without_markup
from logtriage.intake.notebooks import learn_notebook, without_notebook
from logtriage.model import Overlay, OverlayKind

MOST_BYTES = 16 << 20  # of a file that is held whole meanwhile; people hand on less
_MOST_LAYERS = 5  # a mail that quotes a mail that quotes a numbered page

# The lines, and of each the index of that line of the file in which it begins.
Lines = tuple[list[str], list[int]]

_LEARN: tuple[Callable[[Sequence[str]], Overlay | None], ...] = (
    learn_notebook,
    learn_markup,
    learn_marks,
    learn_broken,
)


def learn_overlays(head: bytes, *, is_cut: bool) -> tuple[Overlay, ...]:
    """What was laid over the lines of a file, by its first ones; `is_cut` where the last is not whole."""
    texts = _texts(head, is_cut=is_cut)
    found: list[Overlay] = []
    while len(found) < _MOST_LAYERS:
        overlay = next((each for learn in _LEARN if (each := learn(texts)) is not None), None)
        if overlay is None:
            break
        found.append(overlay)
        texts, _ = _lifted(overlay, (texts, list(range(len(texts)))))
    return tuple(found)


def overlays_as(likely: Sequence[Overlay], head: bytes, *, is_cut: bool) -> tuple[Overlay, ...]:
    """Which of the overlays of other files of the same job may lie over this one, whose lines are few."""
    texts = _texts(head, is_cut=is_cut)
    found: list[Overlay] = []
    for overlay in likely:
        fits = may_be_broken if overlay.kind is OverlayKind.BROKEN else may_have_marks
        if fits(overlay, texts):
            found.append(overlay)
            texts, _ = _lifted(overlay, (texts, list(range(len(texts)))))
    return tuple(found)


def lifted(data: bytes, overlays: Sequence[Overlay]) -> tuple[bytes, list[int]]:
    """A file without its overlays, and of each line that is left the line of the file, from 0, it begins in.

    One of more than MOST_BYTES as it is.
    """
    if len(data) > MOST_BYTES:
        return data, list(range(data.count(b"\n") + 1))
    texts = _texts(data)
    lines: Lines = texts, list(range(len(texts)))
    for overlay in overlays:
        lines = _lifted(overlay, lines)
    made = "\n".join(lines[0]).encode("utf-8", "surrogateescape")
    return made + b"\n" * data.endswith(b"\n"), lines[1]


def without_overlays(chunks: Iterable[bytes], overlays: Sequence[Overlay]) -> Iterator[bytes]:
    """A stream without these; one of more than MOST_BYTES as it is.

    Raises the StreamFault of the stream behind what was readable.
    """
    return changed_whole(chunks, lambda data: lifted(data, overlays)[0], MOST_BYTES)


def _texts(data: bytes, *, is_cut: bool = False) -> list[str]:
    texts = data.decode("utf-8", "surrogateescape").removesuffix("\n").split("\n")
    return texts[:-1] if is_cut and len(texts) > 1 else texts


def _lifted(overlay: Overlay, lines: Lines) -> Lines:
    texts, origins = lines
    if overlay.kind is OverlayKind.NOTEBOOK:
        return without_notebook(texts, origins)
    if overlay.kind is OverlayKind.MARKUP:
        return without_markup(texts, origins)
    if overlay.kind is OverlayKind.BROKEN:
        return without_breaks(overlay, texts, origins)
    return without_marks(overlay, texts, origins)
