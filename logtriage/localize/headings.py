"""Headings that name the host of the lines below them, in files that hold what several commands said."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from logtriage.localize.rosters import HOST_WORD, is_host
from logtriage.model import Line
from logtriage.regex import regex

# `=== cn-3 2026-02-09 13:00 ===`, `##### cn-3 #####`; Ansible's `cn-3 | CHANGED | rc=0 >>`; shells:
# `[root@cn-3 ~]# nvidia-smi`, `root@cn-3:~# nvidia-smi`, `me@cn-3 ~ % nvidia-smi`, `$ ssh cn-3 nvidia-smi`.
_HEADING = regex(
    r"^(?:[=#*]{2,80}|-{3,80}|>{2,80}) *(?:(?i:host(?:name)?|node|on)[ :=]{1,2})?"
    rf"({HOST_WORD})(?:[ :,=#*<-]|$)"
    rf"|^({HOST_WORD}) \| (?:CHANGED|SUCCESS|FAILED|UNREACHABLE)\b"
    rf"|^(?:\([\w.-]{{1,40}}\) ?)?\[?[a-z_][\w-]{{0,30}}@({HOST_WORD})(?:[: ][^\]#$%]{{0,80}})?\]?[#$%] "
    rf"|^[+$#] ssh (?:-\S+ ){{0,6}}(?:\w{{1,30}}@)?({HOST_WORD}) "
    # parallel-ssh, above what it gathered: `[2] 15:47:57 [FAILURE] cn-3 Exited with error code 1`.
    rf"|^\[\d{{1,5}}\] \d\d:\d\d:\d\d \[(?:SUCCESS|FAILURE)\] ({HOST_WORD})(?: |$)"
    # A row of what a scheduler says of one task, as `nomad alloc status` does.
    rf"|^(?:Node|Host) ?[Nn]ame {{0,20}}[=:] {{1,20}}({HOST_WORD})$"
    # What was asked before whom: `== nvidia-smi after the crash, cn-3`, `### dmesg -T on cn-3 ###`.
    r"|^(?:[=#*]{2,80}|-{3,80}|>{2,80}) *(?:output of )?(?:sudo )?(?:nvidia-smi|rocm-smi|amd-smi|npu-smi"
    r"|dmesg|journalctl|dcgmi|ibstat|ibstatus|lspci|ipmitool)(?: [^,(@\n]{0,60}?)??"
    rf"(?:, (?:on )?| on | from | at | ?@ ?| \()({HOST_WORD})\)?(?: *[=#*<:-]{{1,80}})?$"
)
# Behind a prompt, tools that tell of the machine on which they run; a launcher's lines can come from others.
_LOOKS_AT_ITSELF = regex(
    r"[#$%] (?:sudo )?(?:nvidia-smi|rocm-smi|amd-smi|npu-smi|dmesg|journalctl|dcgmi|ibstat|ibstatus"
    r"|ibv_devinfo|lspci|ipmitool|rdma|ethtool|ip|df|free|lsblk|smartctl|sensors|uptime|mcelog)(?: |$)"
)
_FIRST = frozenset("=#*->+$[")  # of a heading without a prompt's `@` or Ansible's bar
_ALONE = regex(rf"^({HOST_WORD})$")  # between two rules of dashes, as dshbak and clush -b print it
_DASHES = regex(r"^-{4,80}$")


@dataclass(frozen=True, slots=True)
class Headings:
    """Numbers of a file's headings, going up, and the host that each names; "" ends what is another's."""

    numbers: tuple[int, ...] = ()
    hosts: tuple[str, ...] = ()

    def host(self, line: Line) -> str | None:
        """The host of the heading above a line."""
        at = bisect_right(self.numbers, line.number)
        return (self.hosts[at - 1] or None) if at else None


def headings(lines: Sequence[Line], known: Collection[str], *, of_job: bool) -> Headings:
    """The headings of a file, if all name hosts of one row.

    In the job's own output (`of_job`) they count only where there are several hosts, or known ones, or
    below a prompt at which somebody looked at a machine, or in what a scheduler says of a task.
    """
    found: list[tuple[int, str]] = []
    looked: set[int] = set()
    for at, line in enumerate(lines):
        text = line.text[:200]
        may = text[:1] in _FIRST or "@" in text[:40] or " | " in text[:110] or "ame" in text[:9]
        if may and (heading := _HEADING.match(text)) is not None:
            host = next(group for group in heading.groups() if group is not None)
        elif " " not in text and (alone := _ALONE.match(text)) is not None and _between_dashes(lines, at):
            host = alone[1]
        else:
            continue
        if is_host(host):
            found.append((line.number, host))
            if "ame" in text[:9] or ("@" in text and _LOOKS_AT_ITSELF.search(text) is not None):
                looked.add(line.number)
    hosts = {host for _, host in found}
    if len({re.sub(r"\d+", "#", host) for host in hosts}) != 1:
        return Headings()
    if of_job and len(hosts) < 2 and not hosts <= set(known):
        found = [(number, host if number in looked else "") for number, host in found] if looked else []
    return Headings(tuple(number for number, _ in found), tuple(host for _, host in found))


def _between_dashes(lines: Sequence[Line], at: int) -> bool:
    around = (lines[at - 1], lines[at + 1]) if 0 < at < len(lines) - 1 else ()
    return bool(around) and all(_DASHES.match(each.text[:100]) for each in around)
