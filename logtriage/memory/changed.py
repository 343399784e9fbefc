"""Whether the logs are still those that a verdict was given on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from logtriage.intake.folder import Inventory, NothingReadable, discover
from logtriage.intake.lines import plain
from logtriage.intake.streams import StreamFault, pieces
from logtriage.memory.evidence import EvidenceFault
from logtriage.memory.verdicts import KeptVerdict
from logtriage.model import Source, SourceRole
from logtriage.report.document import CitedLine

COMPARED = 200  # characters of a cited line


@dataclass(frozen=True, slots=True)
class LogsNow:
    """The logs of a verdict as they lie there now; `changed` names those that were written to since, as
    verdicts name them. `inventory` is None where they are gone, or on another machine.
    """

    kept: KeptVerdict
    inventory: Inventory | None
    changed: tuple[str, ...] = ()

    def hold(self, place: str) -> None:
        """Raises EvidenceFault where a line that the verdict cites, or the one that it rests on (no place
        is named), reads otherwise now.
        """
        body = self.kept.verdict.verdict
        cited = [*body.evidence, *(each for other in body.alternatives for each in other.evidence)]
        wanted = [each for each in cited if f"{each.file}:{each.line}" == place] if place else cited[:1]
        for each in wanted:
            if self.inventory is not None and not _reads_alike(each, self.inventory):
                raise EvidenceFault(
                    f"the folder changed since the verdict: {each.file}:{each.line} is not the line any more "
                    "that it cited; triage it again"
                )


def logs_now(kept: KeptVerdict) -> LogsNow:
    if any("://" in path or path == "-" for path in kept.paths):
        return LogsNow(kept, None)
    try:
        inventory = discover(list(kept.paths))
    except (NothingReadable, OSError):
        return LogsNow(kept, None)
    changed = [each.file for each in inventory.sources if _time(inventory.root / each.file) > kept.at]
    return LogsNow(kept, inventory, tuple(changed))


def _time(path: Path) -> float:
    """When a file, or the archive that holds it, was last written to; 0 where nothing tells."""
    for each in (path, *path.parents):
        try:
            if each.is_file():
                return each.stat().st_mtime
        except OSError:
            continue
    return 0.0


def _reads_alike(cited: CitedLine, inventory: Inventory) -> bool:
    source = next((each for each in inventory.sources if each.file == cited.file), None)
    if source is None and any(
        each.is_section and each.file.startswith(f"{cited.file}/") for each in inventory.sources
    ):
        source = Source(cited.file, 0, SourceRole.MERGED)  # it is made of sections, each a source
    if source is None:
        return False
    try:
        for piece in pieces(inventory.root, source.as_stored):
            inside = cited.line - piece.first_line
            if 0 <= inside <= piece.data.count(b"\n"):
                text = plain(piece.data.split(b"\n", inside + 1)[inside])
                if text.strip() or inside < piece.data.count(b"\n"):
                    return _start(text) == _start(plain(cited.text.encode("utf-8", "surrogatepass")))
    except StreamFault:
        pass
    return False


def _start(text: str) -> str:
    return " ".join(text.split())[:COMPARED]
