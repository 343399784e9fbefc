"""Blocks that are no Python traceback: stacks of native code, Java and Go, and dumps of the kernel.

A block begins with one pattern, goes on while lines match another, and may have a last line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import re2

from logtriage.intake.frames import Part
from logtriage.model import Line
from logtriage.regex import regex


@dataclass(frozen=True, slots=True)
class Block:
    """How a kind of block looks; `skips` lines that match nothing are taken as another writer's."""

    kind: str
    begin: re.Pattern[str]
    body: re.Pattern[str]
    end: re.Pattern[str] | None = None
    most: int = 2000
    takes_all: bool = False  # everything up to `end`, as in a kernel's log
    is_doubtful: bool = False  # begins with a line that more often stands alone
    blanks: int = 0  # blank lines in a row that a block may hold


_CPP_BODY = regex(
    r"\s*(?:frame #\d+|#\d+:? |@ +0x|PC: @|what\(\):|\*\*\* |=== |={4,}|\d{1,3} +(?:0x)?[0-9a-f]{4,} "
    r"|\d{1,3}: 0x"
    r"|\[ ?\d+\] |Signal(?::| code:)|Failing at address|File \"<unknown>\"|Exception raised from"
    r"|C\+\+ CapturedTraceback"
    r"|\S+\(\+?[\w.:+~]*\) ?\[0x|0x[0-9a-f]{6,}\b|/\S+\.so[.\d]*[(\[+ ]|terminate called|Stack dump"
    r"|libc\+\+abi|Aborted"
    r"|in function|\[address )"
)
_FAULT_BODY = regex(
    r"\s*(?:Current thread|Thread 0x|File \"|<no Python frame>|\.\.\.|Extension modules"
    r"|Python runtime state"
    r"|Current thread's C stack|Binary file |<cannot get|Garbage-collecting|Cannot show)"
)
_JAVA_BODY = regex(r"\s+(?:at [\w.$<>/@]+\(|\.{3} \d+ more|- locked|Suppressed:)|Caused by: ")
_GO_BODY = regex(
    r"goroutine \d+|\t|created by |exit status|\[signal|[\w./*()-]{3,200}\(.{0,300}\)$|main\."
    r"|runtime\.|rax |r\w\w? +0x"
)
_KERNEL_BODY = regex(
    r"\s*(?:Call Trace|</?(?:TASK|IRQ|NMI)>|\??\s*[\w.]+\+0x|RIP: |RSP: |Code: |R[A-Z0-9]{2}: |CPU: "
    r"|Hardware name"
    r"|Modules linked|Workqueue: |FS: |CS: |CR\d: |PKRU|DR\d: |EFLAGS|ORIG_RAX|---\[ end"
    r"|\[<[0-9a-f]+>\]|task:|Tainted"
    r"|\"echo 0 >|Not tainted|Kernel Offset|WARNING: |Oops|PGD |\? )"
)

BLOCKS = (
    Block(
        "kernel_dump",
        regex(r"invoked oom-killer"),
        regex(r""),
        regex(
            r"Killed process \d+|Out of memory(?: and no killable|: Kill(?:ed)? process)|oom_reaper: reaped"
        ),
        takes_all=True,
    ),
    Block(
        "kernel_dump",
        regex(
            r"-+\[ cut here \]|INFO: task .{1,80} blocked for more than|BUG: |watchdog: BUG"
            r"|general protection fault"
            r"|Kernel panic|rcu: INFO: |^ ?Call Trace:|Oops: "
        ),
        _KERNEL_BODY,
        regex(r"---\[ end "),
    ),
    Block(
        "native_stack",
        regex(
            r"Fatal Python error: |(?:Current thread|Thread) 0x[0-9a-f]+.*\(most recent call first\)"
            r"|Timeout \(\d+:\d\d:\d\d"
        ),
        _FAULT_BODY,
        blanks=1,
    ),
    Block("native_stack", regex(r"^panic: |^fatal error: |^goroutine \d+ \["), _GO_BODY, blanks=1),
    Block(
        "native_stack",
        regex(
            r"^terminate called|^Exception raised from|^frame #\d+: |^\*\*\* (?:Aborted at|SIG[A-Z]+"
            r"|Check failure)"
            r"|^\s*@ +0x[0-9a-f]|^#0:? +(?:0x|\S+ ?\()|==== backtrace|Process received signal"
            r"|!{4,} Segfault encountered"
            r"|^Stack dump:|^PLEASE submit a bug report|^C\+\+ CapturedTraceback|Caught signal \d+ \("
        ),
        _CPP_BODY,
        blanks=0,
    ),
    Block("native_stack", regex(r"NCCL WARN "), regex(r"NCCL INFO \S+:\d+ -> -?\d+")),
    Block(
        "native_stack",
        regex(r"^(?:Exception in thread .*|[\w.$]+(?:Exception|Error)(?::.*|$))"),
        _JAVA_BODY,
        is_doubtful=True,
    ),
)
# One search decides for most lines that no block begins; many alternatives are what re2 is quick at.
_ANY = re2.compile(
    rb"oom-killer|cut here|blocked for more|BUG: |protection fault|Kernel panic|rcu: |Call Trace"
    rb"|Oops: |Fatal Python"
    rb"|recent call first|Timeout \(|^panic: |^fatal error|^goroutine|^terminate called|raised from|^frame #"
    rb"|^\*\*\* |^\s*@ +0x|^#0|==== back|received signal|Segfault enc|^Stack dump|^PLEASE sub|CapturedTrace"
    rb"|Caught signal|NCCL WARN|^Exception in thread|^[\w.$]+(?:Exception|Error)(?::|$)"
)


# How the kernel's lines begin, in all the ways that they are printed.
_KERNEL_LINE = regex(
    r"\[ *\d{1,9}\.\d{4,9}\]|kernel:|^kern +:|^<\d{1,3}>|^\d{1,3},\d+,\d+,"
    r"|\[\w{3} \w{3} +\d{1,2} [\d:]{8} \d{4}\]"
)


@dataclass(slots=True)
class OpenBlock:
    """A block that is being read; `is_stamped` if its first line begins as the kernel's lines do."""

    block: Block
    is_stamped: bool = False
    count: int = 1
    blanks: int = 0

    def feed(self, message: str, line: Line) -> Part:
        """Say what the line is to this block."""
        block = self.block
        message = message[:2000]
        if self.count >= block.most:
            return Part.END
        self.count += 1
        if block.takes_all and (
            self.is_stamped != bool(_KERNEL_LINE.search(line.text, 0, 200)) or "Traceback (most" in message
        ):
            return Part.END
        if not message.strip():
            self.blanks += 1
            return Part.PENDING if self.blanks <= block.blanks or block.takes_all else Part.END
        if block.end is not None and block.end.search(message):
            self.count = block.most
            self.blanks = 0
            return Part.OWN
        if block.takes_all or block.body.match(message):
            self.blanks = 0
            return Part.OWN
        if block.kind == "native_stack" and line.level is None and block.begin.search(message):
            # A stack may be announced twice: "terminate called …", then "Exception raised from …".
            self.blanks = 0
            return Part.OWN if block.body is _CPP_BODY or block.body is _FAULT_BODY else Part.END
        return Part.END


def begin_block(message: str, line: Line) -> OpenBlock | None:
    """The block that a line begins, if it does."""
    if _ANY.search(message[:2000].encode("utf-8", "replace")) is None:
        return None
    for block in BLOCKS:
        if block.begin.search(message, 0, 2000):
            return OpenBlock(block, block.takes_all and bool(_KERNEL_LINE.search(line.text, 0, 200)))
    return None
