"""What NVIDIA's resiliency extension says of flight recordings that it compared, where they are not here.

Its result, as text or in JSON, lists the ranks that are missing where the others wait:
`"hanging_ranks": "hanging ranks: [3, 7]"`.
"""

from __future__ import annotations

from collections.abc import Iterable

from logtriage.artefacts.comparison import told_ranks
from logtriage.artefacts.ras import Peer, RasFinding
from logtriage.model import Line
from logtriage.regex import regex

MOST_RANKS = 64  # of more it is not said who began
_HANGING = regex(r"hanging ranks: \[(?P<ranks>\d{1,7}(?:, ?\d{1,7}){0,4096})\]")


def read_analysis(lines: Iterable[Line]) -> RasFinding | None:
    """The ranks that the last such list in a file names."""
    found: RasFinding | None = None
    for line in lines:
        for told in _HANGING.finditer(line.text) if "hanging ranks" in line.text else ():
            ranks = sorted({int(rank) for rank in told["ranks"].split(",")})
            if len(ranks) <= MOST_RANKS:
                said = f"an analysis of the flight recordings says that {told_ranks(ranks)} never came"
                peers = tuple(Peer(rank) for rank in ranks)
                found = RasFinding(peers, said, (line,), is_sure=True, by="an analysis of the recordings")
    return found
