"""The plain records that pass between the rooms of the house.

Everything here is frozen and knows nothing but itself. Times are seconds since 1970 in UTC (float);
`line` counts from 1 over b"\\n" alone; `offset` is in bytes of the decompressed file.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum


class SourceRole(StrEnum):
    """What kind of writer a file comes from; a rule's `where` names these."""

    WORKER = "worker"  # one rank's own output
    MERGED = "merged"  # output of several ranks, or of a whole job, in one file
    LAUNCHER = "launcher"  # torchrun agent, deepspeed launcher, supervisor
    KERNEL = "kernel"  # dmesg, kern.log, journal of the kernel
    SCHEDULER = "scheduler"  # sacct, scontrol, slurmctld, jobcomp, prolog and epilog
    KUBERNETES = "kubernetes"  # events, describe, pod status
    HARDWARE = "hardware"  # nvidia-smi, dcgmi, ipmi, ibstat: the state of a machine
    METRICS = "metrics"  # polled numbers (CSV and the like)
    ENVIRONMENT = "environment"  # pip freeze, env, sysctl, configuration: not a log


# Who writes the job's own output; all others tell of machines and controllers.
JOB_ROLES = (SourceRole.WORKER, SourceRole.MERGED, SourceRole.LAUNCHER)


class OverlayKind(StrEnum):
    """What people and their tools do to the lines of a log that is handed on."""

    MARKUP = "markup"  # as a page's source has it: tags, and entities for signs
    QUOTED = "quoted"  # a sign before each line, as mail programs and chats quote
    INDENTED = "indented"  # blanks before each line, as in a block of code
    NUMBERED = "numbered"  # numbers of lines, as `cat -n`, `grep -n` and editors print them
    INTERLEAVED = "interleaved"  # the same, each on a line of its own
    NOTEBOOK = "notebook"  # what the cells of a notebook printed, in its file
    BROKEN = "broken"  # long lines are broken at the width of a terminal


@dataclass(frozen=True, slots=True)
class Overlay:
    """One of these: what stands `ahead` of the text (or of a number), what `behind` a number, the `width`."""

    kind: OverlayKind
    ahead: str = ""
    behind: str = ""
    width: int = 0


class Level(StrEnum):
    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"
    CRITICAL = "critical"


@dataclass(frozen=True, slots=True)
class Source:
    """One readable log of the job.

    `file` is relative to the folder that was asked about, with `/`; a member of an archive is
    `archive.tar.gz/member`. `family` is equal for the rotated parts of one log and `part` orders them
    (oldest first). Unknown facts are None.
    """

    file: str
    size: int
    role: SourceRole
    rank: int | None = None
    local_rank: int | None = None
    node_rank: int | None = None
    host: str | None = None
    attempt: int | None = None
    stream: str | None = None  # stdout | stderr
    family: str = ""
    part: int = 0
    is_newest_first: bool = False  # its newest lines stand on top, but its stream begins with the oldest
    overlays: tuple[Overlay, ...] = ()  # what its stream is without, the outermost first
    is_section: bool = False  # of a file that holds several, read as one of its own

    @property
    def is_remade(self) -> bool:
        """Whether the lines of its stream are others than those of the file, or stand in another order."""
        return self.is_newest_first or bool(self.overlays)

    @property
    def as_stored(self) -> Source:
        """The same, with its lines as they stand in the file."""
        return replace(self, is_newest_first=False, overlays=()) if self.is_remade else self


class ArtefactKind(StrEnum):
    """What a job leaves besides its logs, by the reader that it needs."""

    FLIGHT_RECORDER = "flight recorder dump"
    STACKS = "stack dump"
    RAS = "NCCL RAS report"
    ANALYSIS = "analysis of flight recordings"


@dataclass(frozen=True, slots=True)
class Artefact:
    """A file that a reader of its own understands; where it is text it is among the sources as well."""

    source: Source
    kind: ArtefactKind


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A file that could not be read (whole), and why, in words for a person."""

    file: str
    reason: str


@dataclass(frozen=True, slots=True)
class Line:
    """One physical line with all that is known of it.

    `text` is the line as it stands in the file, decoded (broken bytes replaced), without the line end.
    `message` is what is left for rules and templates: no terminal escapes, no rank, host or stream
    prefix, no time, no level; of a JSON record its message and exception text. Parts that were
    separated by a carriage return, or by line ends inside a JSON string, are separated by "\\n" in it.
    """

    file: str
    number: int
    offset: int
    text: str
    message: str
    rank: int | None = None
    host: str | None = None
    attempt: int | None = None
    time: float | None = None
    level: Level | None = None
    pid: int | None = None

    def __reduce__(self) -> tuple[type[Line], tuple[object, ...]]:  # processes send many: twice as fast
        return Line, (
            self.file, self.number, self.offset, self.text, self.message, self.rank, self.host, self.attempt,
            self.time, self.level, self.pid,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame of a Python traceback."""

    path: str
    line: int
    function: str
    is_user_code: bool  # not in site-packages, dist-packages, the standard library or <frozen …>


@dataclass(frozen=True, slots=True)
class Raised:
    """One exception of a (possibly chained) traceback; `at` is the line that names it."""

    type: str  # dotted as printed: torch.OutOfMemoryError
    message: str
    at: Line
    frames: tuple[Frame, ...] = ()

    @property
    def user_frame(self) -> Frame | None:
        """The innermost frame that belongs to the user's code."""
        return next((frame for frame in reversed(self.frames) if frame.is_user_code), None)


@dataclass(frozen=True, slots=True)
class Record:
    """Lines that belong together: a traceback, a native stack, an OOM dump, or one line alone.

    `raised` is in causal order: the exception that came first, first.
    """

    kind: str  # traceback | native_stack | kernel_dump | line
    lines: tuple[Line, ...]
    raised: tuple[Raised, ...] = ()

    def __reduce__(self) -> tuple[type[Record], tuple[object, ...]]:
        return Record, (self.kind, self.lines, self.raised)


@dataclass(frozen=True, slots=True)
class Evidence:
    """A cited line and why it is cited."""

    line: Line
    why: str
    rule: str | None = None


@dataclass(frozen=True, slots=True)
class Culprits:
    ranks: tuple[int, ...] = ()
    hosts: tuple[str, ...] = ()
    gpus: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ClockOffset:
    """Seconds to add to a source's own clock to reach the job's axis, and how that is known."""

    file: str
    seconds: float
    reason: str = field(default="")
