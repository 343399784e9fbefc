"""The global ranks of files whose names tell a local one alone: by their own lines, or by their launcher."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from logtriage.localize.exits import Exit
from logtriage.localize.scene import Scene
from logtriage.model import Source
from logtriage.regex import regex


def ranks_of_files(scene: Scene, exits: Sequence[Exit]) -> dict[str, int]:
    """Rank by file, where one process wrote it; what its own lines say counts most."""
    return _reported(scene.sources, exits) | _said(scene)


_OWN_RANK = regex(r"\[[Rr]ank[ _:=-]?(\d{1,6})\]")


def _said(scene: Scene) -> dict[str, int]:
    """Ranks that the lines of files in a launcher's folders say, where the name tells a local one alone."""
    found: dict[str, int] = {}
    for reading in scene.readings:
        if reading.source.local_rank is None or reading.source.host is not None:
            continue
        heads = [line.text[:120] for line in reading.lines]
        heads = [head for head in heads if "ProcessGroup" not in head]  # such a group counts its own members
        said = [own[1] for head in heads if (own := _OWN_RANK.search(head)) is not None]
        if len(said) >= 3 and len(set(said)) == 1:
            found[reading.source.file] = int(said[0])
    return found


def _reported(sources: Sequence[Source], exits: Sequence[Exit]) -> dict[str, int]:
    """Global ranks of files that only show a local rank, by what that node's launcher reported.

    torchrun's log folders are named by local rank; its failure report gives `rank : 2 (local_rank: 0)`
    and the host, so a whole node's offset follows from one entry.
    """
    host_of_file = {source.file: source.host for source in sources}
    shifts: dict[str, Counter[int]] = defaultdict(Counter)
    for exit_ in exits:
        if exit_.rank is None or exit_.local_rank is None:
            continue
        for node in {exit_.host, host_of_file.get(exit_.line.file), _folder(exit_.line.file)} - {None, ""}:
            shifts[str(node)][exit_.rank - exit_.local_rank] += 1
    found: dict[str, int] = {}
    for source in sources:
        if source.local_rank is None:
            continue
        for node in (source.host, _folder(source.file)):
            if node and node in shifts:
                found[source.file] = source.local_rank + shifts[node].most_common(1)[0][0]
                break
        else:
            if source.rank is not None:
                found[source.file] = source.rank
    return found


def _folder(file: str) -> str:
    return file.split("/", 1)[0] if "/" in file else ""
