"""The lines of a job's files as they stand there, read again to check what a verdict cites."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from logtriage.evaluation.case import LabelledLine
from logtriage.intake.folder import Inventory, discover
from logtriage.intake.lines import plain
from logtriage.intake.streams import StreamFault, pieces

MOST_PLACES = 50  # that are looked up of one labelled line, which may stand in a file again and again

Place = tuple[str, int]  # file and line as a verdict names them


def squeezed(raw: bytes) -> str:
    """Without terminal escapes, all white space as single blanks."""
    return " ".join(plain(raw).split())


def is_same_file(cited: str, named: str) -> bool:
    """Whether a verdict's file is the one that a label names, which may leave out leading folders."""
    cited, named = (text.replace("\\", "/").removeprefix("logs/") for text in (cited, named))
    return cited == named or cited.endswith(f"/{named}")


def shows(label: LabelledLine, place: Place, text: str) -> bool:
    """Whether a place with this squeezed text is the labelled line."""
    if not is_same_file(place[0], label.file):
        return False
    return place[1] == label.line if label.line is not None else _words(label) in text


def _words(label: LabelledLine) -> str:
    return squeezed(label.contains.encode("utf-8", "replace"))


class JobLines:
    """What stands at cited places, and where labelled lines stand; read from the files at each question."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._inventory: Inventory = discover(list(paths))
        self._sources = {each.file: each for each in self._inventory.sources}
        for artefact in self._inventory.artefacts:
            self._sources.setdefault(artefact.source.file, artefact.source)

    def at(self, places: Iterable[Place]) -> dict[Place, str]:
        """The squeezed text of each place that exists."""
        wanted: dict[str, set[int]] = {}
        for file, line in places:
            wanted.setdefault(file, set()).add(line)
        return {
            (file, number): squeezed(raw)
            for file, numbers in wanted.items()
            for number, raw in self._lines(file)
            if number in numbers
        }

    def labelled(self, label: LabelledLine) -> list[Place]:
        """Where a labelled line stands, the first MOST_PLACES of them."""
        found: list[Place] = []
        words = _words(label)
        rarest = max(words.split(), key=len, default="").encode()  # told apart without decoding each line
        for file in self._sources:
            if not is_same_file(file, label.file):
                continue
            if label.line is not None:
                found.append((file, label.line))
                continue
            for number, raw in self._lines(file):
                if rarest in raw and words in squeezed(raw):
                    found.append((file, number))
                if len(found) >= MOST_PLACES:
                    return found
        return found

    def _lines(self, file: str) -> Iterator[tuple[int, bytes]]:
        source = self._sources.get(file)
        if source is None:
            return
        try:
            for piece in pieces(self._inventory.root, source.as_stored):
                yield from enumerate(piece.data.split(b"\n"), piece.first_line)
        except StreamFault:
            return
