"""The grammar of one Python traceback, fed line by line.

It reads what the interpreter prints (chains, groups, syntax errors, notes), and the same inside other
clothes: rich's boxes, loguru's annotated frames, IPython's cells, an inner traceback that a data loader, a
pool, a spawned process or Ray put into the message of an outer exception.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from enum import Enum

from logtriage.intake.times import find_time
from logtriage.model import Frame, Line, Raised
from logtriage.regex import regex

MESSAGE_LIMIT = 2000
_MOST_FRAMES = 400
_MOST_LINES = 5000
_MOST_CONTINUATION = 200

HEADER = regex(r"Traceback \(most recent call last\)")
_INDENTED = regex(r"( {1,12})Traceback \(most recent call last\)")
_ORIGINAL = regex(r"\s*(?:Original Traceback|-- Process \d+ terminated with the following error|\"\"\"$)")
_FRAME = regex(r"\s*(?:> ?)?File \"([^\"\n]{1,1000})\", line (\d{1,9})(?:, in ([^\n]{1,200}))?")
BARE_FRAME = regex(r"\s+File \"[^\"\n]{1,1000}\", line \d{1,9}$")
_BOX_FRAME = regex(r"[│|] *([^\s:│|][^:│\n]{0,400}):(\d{1,9})(?: in ([\w<>.]{1,200}))?")
# IPython's: `Cell In[4], line 2, in train(model)`, `File /srv/a.py:88, in Loader.next(self)`, and before 8.0
# `<ipython-input-4-0f> in <module>`, `/srv/a.py in next(self)` above an arrow that tells the line.
_CELL_FRAME = regex(
    r"(?P<cell>(?:Cell|Input) In ?\[\d{1,6}\])(?:, line (?P<row>\d{1,9}))?"
    r"(?:, in (?P<by>[^(\n]{1,200}).{0,400})?$"
    r"|File (?P<path>[~/]\S{1,1000}):(?P<number>\d{1,9})(?:, in (?P<caller>[^(\n]{1,200}).{0,400})?$"
    r"|(?P<old><ipython-input-[\w-]{1,80}>|[~/]\S{1,1000}\.py[cx]?) in (?P<function>[^(\n]{1,200})"
    r"(?:\(.{0,400})?$"
)
_ARROW = regex(r"-{2,}> ?(\d{1,9})\b")
_BOX_TOP = regex(r"\s*(?:╭─|\+-{3,} Traceback)")
_BOX_SIDE = regex(r"\s*[│|]")
_BOX_END = regex(r"\s*(?:╰─|\+-{10,}\+?\s*$)")
_EXCEPTION = regex(
    r"([A-Za-z_]\w{0,100}(?:\.[A-Za-z_<]\w{0,100}>?){0,12}(?:\[[^\]\n]{0,80}\])?(?:\(\w{1,80}\))?)"
    r"(?::(?: (.*)|\s*)?)?$",
    re.DOTALL,
)
_SURE = regex(
    r"(?:Error|Exception|Interrupt|Exit|Timeout|Warning|Iteration|Failure|Failed|Fault|Abort|Empty"
    r"|Full|Group"
    r"|Traceback|timeout|error|Cancelled|Overflow|StackTrace)(?:\[.*\])?(?:\(\w+\))?$"
)
_NO_EXCEPTION = regex(
    r"(?:INFO|WARNING|WARN|ERROR|DEBUG|CRITICAL|FATAL|NOTE|Epoch|Step|Loss|Iteration|Training|Loading"
    r"|Saving|Time"
    r"|Train|Eval|Rank|Error|Warning|Killed|Aborted|Failures)$"
)
_CHAIN = regex(
    r"\s*(?:During handling of the above exception|The above exception was the direct cause"
    r"|The stack trace below excludes JAX|The preceding (?:stack trace|is the original exception)|-{20,}$"
    r"|For simplicity, JAX has removed)"
)
_JOINT = regex(r"\s*(?:During handling of the above exception|The above exception was the direct cause)")
_RAY_HEADER = regex(r"ray::[^\s(]{1,200}(?:\(\))? ?\(pid=")
_GROUP_MARGIN = regex(r" *[|+] ?")
_GROUP_PART = regex(r" *\+(?:-\+)?-{4,}(?: \d+ -+| \.\.\. -+)?\s*$")
_RANK_PREFIX = regex(r"\[rank\d+\]:")
_KNOWN_MORE = regex(
    r"CUDA kernel errors might|For debugging consider|Compile with|Device-side assert|Last error:"
    r"|nccl[A-Z]\w+: "
    r"|Exception raised from|frame #\d+|Check your internet|If you |Please |You can |Hint: |Note: "
    r"|Try |See |To "
    r"|Search for|This error |In addition|Parameter indices|Parameters which|Set TORCH|You may "
    r"|[*•-] |\.{3}"
)
_NOT_MORE = regex(
    r"\s*\d{1,3}%\||\s*(?:Epoch|Step|step|iter|iteration)\b|\{['\"]|srun:|slurmstepd|wandb:"
    r"|\S+\.py:\d+: \w*Warning"
    r"|terminate called|Fatal Python|Exception in thread|=={3,}|\*{3}|Killed|Aborted|Segmentation fault"
    r"|\[rank\d|\[?[IWEF]\d{3,4} |Root Cause|Traceback \(most"
)
_LIBRARY = regex(
    r"/(?:site|dist)-packages/|/lib(?:64)?/python\d|/python\d\.\d+/|^<(?!stdin|ipython)|^python/ray/"
    r"|/bin/[^./]+$|/runpy\.py$|\.pyx$|\.pxi$|\\[Ll]ib\\(?:site-packages\\)?"
)


class Part(Enum):
    """What a line is to an open record."""

    OWN = "own"
    PENDING = "pending"  # its own if what comes next is
    FOREIGN = "foreign"  # of another writer; the record goes on
    END = "end"  # the record ended before this line


@dataclass(slots=True)
class _Exception:
    type: str
    message: list[str]
    at: Line
    frames: list[Frame]
    size: int = 0


def is_user_code(path: str) -> bool:
    """Whether a frame's file is neither the standard library, an installed package nor frozen code."""
    return _LIBRARY.search(path) is None


@dataclass(slots=True)
class Traceback:
    """An open traceback; `feed` it the lines of one writer in order."""

    state: str = "start"  # start | frames | box | after | joint
    exceptions: list[_Exception] = field(default_factory=list)
    frames: list[Frame] = field(default_factory=list)
    _next: int | None = None  # where the next exception belongs, if not at the end
    _newest: int = 0
    _grouped: bool = False
    _margin: str = ""  # blanks before each line of it, as pip prints what a build wrote
    _levelled: bool = False
    _blanks: int = 0
    _lines: int = 0
    _more: int = 0
    _foreign: int = 0

    def raised(self) -> tuple[Raised, ...]:
        """The exceptions, the one that came first, first."""
        return tuple(
            Raised(each.type, "\n".join(each.message)[:MESSAGE_LIMIT], each.at, tuple(each.frames))
            for each in self.exceptions
        )

    @property
    def is_named(self) -> bool:
        """Whether the traceback has come to the line that names its exception."""
        return self.state == "after"

    def feed(self, message: str, line: Line) -> Part:
        """Say what the line is to this traceback, and take it in if it is its own."""
        self._lines += 1
        if self._lines > _MOST_LINES:
            return Part.END
        if self._grouped:
            if _GROUP_PART.match(message):
                self._nest()
                self.state = "frames"
                return Part.OWN
            margin = _GROUP_MARGIN.match(message)
            message = message[margin.end() :] if margin else message
        if self._lines == 1 and (indented := _INDENTED.match(message)) is not None:
            self._margin = indented[1]
        if self._margin and message.startswith(self._margin):
            message = message[len(self._margin) :]
        part = self._after(message, line) if self.state == "after" else self._inside(message, line)
        if part is Part.FOREIGN:
            self._foreign += 1
            if self._foreign > 20:
                return Part.END
        return part

    def _inside(self, message: str, line: Line) -> Part:
        """A line of the header, the frames or a joint."""
        blank = not message.strip()
        if self.state == "box":
            return self._in_box(message, blank)
        if _BOX_TOP.match(message) and self.state in ("start", "joint"):
            self.state = "box"
            return Part.OWN
        if HEADER.search(message):
            if self.state == "frames" and self.frames:
                return Part.END
            self._grouped = self._grouped or "Exception Group Traceback" in message
            self.state = "frames"
            return Part.OWN
        if self.state == "start" and BARE_FRAME.match(message):
            self.state = "frames"
        if blank:
            return Part.OWN
        if frame := _FRAME.match(message):
            if line.level is not None and not self._levelled:
                if self.frames:
                    return Part.FOREIGN
                self._levelled = True
            self._add_frame(frame)
            self.state = "frames"
            return Part.OWN
        if line.level is not None and not self._levelled:
            return Part.FOREIGN
        if self.state == "joint":
            if _CHAIN.match(message) or _RAY_HEADER.match(message):
                return Part.OWN
            return Part.FOREIGN
        if message[0] in " \t│└>":
            return Part.OWN
        if self.state == "frames" and self._is_of_cells(message):
            return Part.OWN
        if _CHAIN.match(message):
            self._join()
            return Part.OWN
        if _RAY_HEADER.match(message) or _ORIGINAL.match(message):
            return Part.OWN
        named = self._named(message)
        if named is None:
            return Part.FOREIGN
        self._add_exception(named, line)
        return Part.OWN

    def _is_of_cells(self, message: str) -> bool:
        """Take in a frame as IPython writes it, or the arrow that tells its line."""
        if (arrow := _ARROW.match(message)) is not None:
            if self.frames and not self.frames[-1].line:
                self.frames[-1] = replace(self.frames[-1], line=int(arrow[1]))
            return True
        if (found := _CELL_FRAME.match(message)) is None:
            return False
        path = found["cell"] or found["path"] or found["old"]
        function = (found["by"] or found["caller"] or found["function"] or "").strip()
        self._take(path, int(found["row"] or found["number"] or 0), function)
        return True

    def _in_box(self, message: str, blank: bool) -> Part:
        if _BOX_END.match(message):
            self.state = "frames"
        elif _BOX_SIDE.match(message):
            if frame := _BOX_FRAME.match(message.lstrip()):
                self._add_frame(frame)
        elif not blank:
            return Part.FOREIGN
        return Part.OWN

    def _after(self, message: str, line: Line) -> Part:
        """A line behind a naming one: more of its message, a joint, an inner traceback, or the end."""
        if not message.strip():
            self._blanks += 1
            return Part.PENDING if self._blanks <= 3 else Part.END
        newest = self.exceptions[self._newest]
        if _ORIGINAL.match(message):
            if '"""' in message and self._next is not None:
                self._next = None  # the inner traceback's closing quotes
            elif '"""' not in message:
                self._nest()
                self.state = "frames"
            self._blanks = 0
            return Part.OWN
        if HEADER.search(message):
            if newest.message and newest.message[-1].rstrip().endswith(('"""', "error:", "Traceback:")):
                self._nest()
                self.state = "frames"
                return self._inside(message, line)
            return Part.END
        if _CHAIN.match(message):
            self._blanks = 0
            if _JOINT.match(message):
                self._join()
            return Part.OWN
        if frame := _FRAME.match(message):
            if line.level is not None and not self._levelled:
                return Part.END
            self._nest()
            self.state = "frames"
            self._add_frame(frame)
            return Part.OWN
        is_announced = bool(newest.message) and newest.message[-1].rstrip().endswith(":")
        if self._blanks > is_announced or self._more >= _MOST_CONTINUATION:
            return Part.END
        if not self._continues(message, line, newest):
            return Part.END
        self._more += 1
        self._blanks = 0
        if newest.size < MESSAGE_LIMIT:
            newest.message.append(message.rstrip())
            newest.size += len(message)
        return Part.OWN

    def _continues(self, message: str, line: Line, newest: _Exception) -> bool:
        """Whether a line goes on with the message of the exception named before it."""
        if (line.level is not None and not self._levelled) or _NOT_MORE.match(message):
            return False
        if line.number == newest.at.number:
            return True
        stamp = find_time(line.text[:100])
        if stamp is not None and stamp.start < 40 and find_time(newest.at.text[:100]) is None:
            return False
        if message[0] in " \t" or _KNOWN_MORE.match(message):
            return True
        if _RANK_PREFIX.search(line.text, 0, 200):
            return True  # only the hook for uncaught exceptions writes this prefix
        last = newest.message[-1] if newest.message else ""
        return last.rstrip().endswith((":", ",", "(", "[", "{"))

    def _named(self, message: str) -> tuple[str, str] | None:
        """Type and message where the line names an exception."""
        match = _EXCEPTION.match(message)
        if match is None:
            return None
        name, text = match[1], match[2] or ""
        if _SURE.search(name):
            return name, text
        last = name.rsplit(".", 1)[-1]
        if _NO_EXCEPTION.match(name) or not self.frames or self._foreign:
            return None
        return (name, text) if "." in name or last[0].isupper() else None

    def _add_frame(self, match: re.Match[str]) -> None:
        self._take(match[1].strip(), int(match[2]), (match[3] or "").strip())

    def _take(self, path: str, line: int, function: str) -> None:
        if len(self.frames) < _MOST_FRAMES:
            self.frames.append(Frame(path, line, function, is_user_code(path)))

    def _add_exception(self, named: tuple[str, str], line: Line) -> None:
        kind, text = named
        self.state = "after"
        self._blanks = self._more = 0
        if kind.endswith("RemoteTraceback") and self._next is None:
            # Only the text of the exception that follows as the inner one.
            self.frames = []
            self.exceptions.append(_Exception(kind, ['"""'], line, []))
            self._newest = len(self.exceptions) - 1
            return
        new = _Exception(kind, [text] if text else [], line, self.frames, len(text))
        self.frames = []
        self._foreign = 0
        if self._next is None:
            self.exceptions.append(new)
            self._newest = len(self.exceptions) - 1
        else:
            self.exceptions.insert(self._next, new)
            self._newest = self._next
            self._next += 1
            wrapper = self.exceptions[self._next]
            if wrapper.type.endswith("RemoteTraceback"):
                del self.exceptions[self._next]

    def _nest(self) -> None:
        """What follows was raised inside the newest exception's message: it came before that one."""
        if self.exceptions and (not self._grouped or self._next is None):
            self._next = self._newest
        self._blanks = 0

    def _join(self) -> None:
        """What follows is an exception that came after the newest one."""
        if self._next is not None and self._next >= len(self.exceptions):
            self._next = None
        self.state = "joint"
        self.frames = []
