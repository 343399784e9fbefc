"""What an assistant may reach: the jobs below configured folders, and of each what a model may see."""

from __future__ import annotations

import os
import re
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from logtriage import pipeline
from logtriage.agent.addressed import LEFT_OUT, is_addressed
from logtriage.agent.desk import Desk, normal
from logtriage.agent.tools import Measure, toolbox
from logtriage.intake.folder import discover
from logtriage.memory.verdicts import KeptVerdict, kept_verdict, kept_verdicts
from logtriage.report.document import Verdict
from logtriage.report.redacted import redacted
from logtriage.settings import Settings
from logtriage.sources.roots import Refused, below, checked

MEASURE = Measure(answer=6_000, lines=40, width=300, around=12)
LONGEST_TEXT = 400  # characters of one text of a verdict
MOST_DESKS = 4  # jobs whose lines are kept at hand, some 10 MB each

_PLACE = re.compile(r"\bF(\d{1,4}):(?=\d)")


class Reach:
    """The jobs below some folders. Everything that it gives out is without secrets.

    One job is read at a time: reading is bounded for one, not for as many as are asked for at once.
    """

    def __init__(self, roots: Sequence[Path], settings: Settings) -> None:
        self.roots = tuple(os.path.realpath(root) for root in roots)
        self.settings = settings
        self._desks: OrderedDict[tuple[Any, ...], Desk] = OrderedDict()
        self._reading = threading.Lock()

    def path(self, asked: str) -> str:
        """The real path of what was asked for, absolute or relative to a root.

        Raises Refused, in the same words for what is not there and for what may not be seen.
        """
        asked = checked(asked)
        places = [asked] if asked.startswith("/") else [f"{root}/{asked}" for root in self.roots]
        for place in places:
            if (real := below(place, self.roots)) is not None:
                return real
        raise Refused(f"there are no logs at that path below {' or '.join(self.roots)}")

    def name(self, path: str) -> str:
        """A path below a root as it can be asked for: relative to it, so that no home folder is named."""
        real = os.path.realpath(path)
        root = next(root for root in self.roots if below(real, [root]) is not None)
        return os.path.relpath(real, root)

    def verdict(self, path: str) -> Verdict:
        """The verdict on a job, decided without a model: the one that asks is a model already."""
        with self._reading:
            return pipeline.triage(path, offline=True, workers=1, settings=self.settings)

    def told(self, verdict: Verdict, path: str) -> dict[str, Any]:
        """The verdict as an assistant gets it: without secrets, bounded, its texts harmless."""
        redaction = None
        if self.settings.llm_redact_hosts:  # names of files hold those of hosts: all look-ups must hide alike
            with self._reading:
                redaction = self._desk(path).redaction
        return _bounded(redacted(verdict, redaction).to_dict())

    def look(self, path: str, tool: str, *arguments: str) -> str:
        """What one of a model's look-ups answers on a job; places by their files' own names."""
        with self._reading:
            desk = self._desk(path)
            return self._told(desk, tool, arguments)

    def look_at(self, path: str, file: str, line: int) -> str:
        """The lines around one, by a file's name as verdicts have it."""
        with self._reading:
            desk = self._desk(path)
            known = {desk.hidden(each.file): each.file for each in desk.inventory.sources}
            if file not in known and file not in known.values():
                shown = ", ".join(sorted(known)[:20])
                return f"no file of this job has that name; there are {shown}"[: MEASURE.answer]
            return self._told(desk, "read_lines", (desk.place(known.get(file, file), line),))

    def _told(self, desk: Desk, tool: str, arguments: Sequence[str]) -> str:
        known = {each.__name__: each for each in toolbox(desk, MEASURE)}
        told: str = known[tool](*arguments)
        return "\n".join(_named(desk, line) for line in told.split("\n"))

    def _desk(self, path: str) -> Desk:
        # A job that goes on writing has other sizes; one that was rewritten in place is not told apart.
        key = (path, discover(path).sources)
        desk = self._desks.pop(key, None)
        if desk is None:
            desk = pipeline.desk_for(path, settings=self.settings, workers=1)
        self._desks[key] = desk
        while len(self._desks) > MOST_DESKS:
            self._desks.popitem(last=False)
        return desk

    def kept(self, verdict_id: str) -> KeptVerdict:
        """A verdict that was given before. Raises Refused where its job does not lie below the roots."""
        try:
            kept = kept_verdict(verdict_id, self.settings.data_dir)
        except KeyError:
            kept = None
        if kept is None or not self._holds(kept):
            raise Refused("there is no such verdict on a job below the roots; see history")
        return kept

    def history(self) -> Iterator[KeptVerdict]:
        """The verdicts on jobs below the roots, newest first."""
        return (kept for kept in kept_verdicts(self.settings.data_dir) if self._holds(kept))

    def _holds(self, kept: KeptVerdict) -> bool:
        """Logs that are gone lie nowhere: their verdicts are not told either."""
        return bool(kept.paths) and all(below(path, self.roots) is not None for path in kept.paths)


def _named(desk: Desk, line: str) -> str:
    """`F2:38 rank 2 | …` with the file's name, as long as that is no message to the reader itself."""
    head, bar, text = line.partition(" | ")

    def name(match: re.Match[str]) -> str:
        index = int(match[1]) - 1
        if not 0 <= index < len(desk.files):
            return match[0]
        return f"{harmless(desk.hidden(desk.files[index]))}:"

    return _PLACE.sub(name, head, count=1) + bar + text


def harmless(text: str, *, may_name_types: bool = False) -> str:
    """One line that says nothing to its reader, cut to what a text may have."""
    clean = normal(text)
    if is_addressed(clean, may_name_types=may_name_types):
        return LEFT_OUT
    return clean if len(clean) <= LONGEST_TEXT else clean[: LONGEST_TEXT - 1] + "…"


def _bounded(document: dict[str, Any]) -> dict[str, Any]:
    body, job, mining = (document[name] for name in ("verdict", "job", "mining"))
    most = {"evidence": 5, "mitigations": 6, "alternatives": 4, "chain": 8, "collect_next": 6}
    facts = ("name", "started", "ended", "ranks", "attempts", "outcome", "last_step")
    told = {
        "id": document["id"],
        "job": {name: job[name] for name in facts}
        | {"hosts": job["hosts"][:32], "frameworks": job["frameworks"][:8]},
        "verdict": {
            name: value[: most[name]] if name in most else value for name, value in body.items() if value
        },
        "symptoms": [
            {name: each[name] for name in ("failure_type", "text", "file", "line")}
            for each in document["symptoms"][:8]
        ],
        "read": {name: mining[name] for name in ("files", "lines", "templates")}
        | {"left_out": mining["left_out"][:4], "unreadable": document["unreadable"][:4]},
    }
    return dict(_harmless(told))


def _harmless(value: Any, name: str = "") -> Any:
    if isinstance(value, str):  # only a `text` may be a line of a log; a verdict itself names failure types
        return harmless(value, may_name_types=name != "text")
    if isinstance(value, dict):
        return {key: _harmless(each, key) for key, each in value.items()}
    return [_harmless(each, name) for each in value[:64]] if isinstance(value, list | tuple) else value
