"""What stands before a log record's own words: who wrote it, when, and how grave it is.

A writer's rank is believed only at the fixed places where launchers and loggers put it: a prefix, a
bracketed or barred column, a named field. "Rank 1 is running collective" inside a sentence speaks of
another rank as often as of the writer.
"""

from __future__ import annotations

from logtriage.intake.exports import exported, row_of
from logtriage.intake.labels import NCCL, Columns, Head, read_labels, read_nccl
from logtriage.intake.levels import LETTERS, SYSLOG_LEVELS, level_named
from logtriage.intake.times import inner_time, time_at
from logtriage.regex import regex

_WORDS = "DEBUG|INFO|NOTICE|SUCCESS|WARNING|WARN|ERROR|CRITICAL|FATAL|SEVERE|TRACE|Info|Warning|Error"
_LOWER_LEVEL = regex(r"\]? (error|fatal|warning|info|debug)\d?: ")
_COMPOSER = regex(r":? ?rank(\d{1,6})\[(\d{1,10})\](?:\[[^\]]{0,60}\])?:? ?")
# Shippers put the node and the container ahead.
_CRI = regex(r"(?: ([\w.-]{1,100}) [\w.-]{1,100})? std(?:out|err) [FP] ?")
_GLOG_END = regex(r" +(?:(\d{1,20}) +)?(?=[\w./<>-]{1,200}:\d+\])")
_C10 = regex(r"\[([IWEF]) (?=[\w./-]{1,200}\.(?:cpp|cc|h|hpp|cu|cuh):\d+\])")
_PG = regex(
    r"\[(?:PG (?:ID )?0\b[^\]\[]{0,200}? |PG [^\]\[]{0,200}?default_pg[^\]\[]{0,60}? )?Rank (\d{1,6})\]"
)
_LOCATION = regex(r"[\w./<>-]{1,200}:\d+\] ?")
_RAY_END = regex(r" ([IWEFCDV]) (\d{1,10})(?: \d{1,10})?\] ?")
_TF_END = regex(r":? ([IWEF]) (?=\S{1,200}:\d+\])")
# Determined's trial logs: `[time] container [rank=3] || …`; its master's lines have spaces before the bars.
_DETERMINED = regex(r"\]? {1,12}(?:[0-9a-f-]{6,36} )?(?:\[rank=(\d{1,6})\] )? {0,12}\|\|(?= )")
# torch_xla's xla_dist: time, address of the machine and its number: `2026-01-31 08:00:00 10.0.0.7 [1] …`.
_XLA_DIST = regex(r" {1,12}((?:\d{1,3}\.){3}\d{1,3}) \[\d{0,4}\] ")
_NEMO = regex(r"\[NeMo ([IWEDC]) (?=\d)")
_SYSLOG_HOST = regex(r" ([\w.:-]{1,100}) (?=[\w./@()-]{1,100}(?:\[\d{1,10}\])?: )")
BARE_HOST = regex(
    r"Z? ((?=[\w.-]{0,99}\d)(?=[\w.-]{0,99}[.-])[A-Za-z][\w.-]{1,99}) (?=[A-Za-z][\w./@-]{1,60} )"
)
_PROGRAM_PID = regex(r"[\w./@()-]{1,100}\[(\d{1,10})\]: ")
_KERNEL = regex(r"kernel: ?(?:\[ *(\d{1,9}\.\d{4,9})\] ?)?")
_CALLER = regex(r"\[ *[TC]\d{1,9}\] ?")
_LEVEL_AHEAD = regex(
    r"[ \t]{0,12}[\[|(<-]?[ \t]{0,12}(" + _WORDS + r"|(?<=\[)(?:info|notice|warn|warning|error|debug"
    r"|critical|fatal))(?=[\s\]|,:)>-]|$)"
)
_LEVEL_NEAR = regex(r"(?:(?<=[\s\[|,(<:-]))(" + _WORDS.split("|Info")[0] + r")(?=[\s\]|,:)>-]|$)")
_LEVEL_END = regex(r"[\])>|,:]{0,4}[ \t]{0,20}(?:[-|:>]{1,2}[ \t]{1,20})?")
_RANK_NEXT = regex(
    r"[\s|,:-]{0,4}(?:\[(?i:rank)[ _:=-]{0,2}(\d{1,6})(?:/\d{1,6}|-restart\d+)?\]"
    r"|\((?i:rank)[ _:=-]{0,2}(\d{1,6})\)"
    r"|(?<=\| )(?i:rank)[ _:=-]{0,2}(\d{1,6}) *(?=\|)|\|(?i:rank)[ _:=-]{0,2}(\d{1,6}) *(?=\|)"
    r"|rank=(\d{1,6})(?=[\s,|;\]])|RANK[ =:](\d{1,6})(?=[\s:|,\]])|(?i:rank)[ _:=-]{0,2}(\d{1,6})(?= - ))"
    r"[\s|:,-]{0,4}"
)
RANK_WORD = regex(r"(?i:rank)[ _:=-]{0,2}(\d{1,6})(?:\]|:|,| -)?(?: |$)")
_RANK_WORDS = regex(r"(?i:rank)[ _=]{0,2}(\d{1,6})")
RANK_NAME = regex(r"(\d{1,5}):([\w<>.]{1,100}:\d+ - )")
_LOGGER_BRACKETS = regex(r"(?:\[[^\[\]\n]{1,100}\] ?){1,2}(?=\[(?i:rank)[ _:=-]{0,2}\d)")
_NAME = regex(r"\[[A-Za-z][^\[\]\n]{0,60}\] (?=[\d\[])")
_SUBMITIT = regex(r"submitit ([A-Z]{4,8}) \((?=\d)")
_SUBMITIT_JOB = regex(r"JobEnvironment\(.{0,100}?hostname=([\w.-]{1,100}),.{0,200}?\bglobal_rank=(\d{1,6})")
_RICH = regex(r" {9,24}(DEBUG|INFO|WARNING|ERROR|CRITICAL) {1,5}(?=\S)")
_LOGFMT = regex(r"(?:time|ts|level|t|lvl)=")
_LOGFMT_LEVEL = regex(r"\b(?:level|lvl|severity)=\"?([A-Za-z]+)")
_LOGFMT_RANK = regex(r"\b(?:global_)?rank=\"?(\d{1,6})\b")
_LOGFMT_HOST = regex(r"\b(?:host|hostname|node)=\"?([\w.-]+)")
# OLMo's logs: time, host and local rank, module and line, level, with tabs between them.
_HOST_AND_LOCAL = regex(r"\t([A-Za-z][\w.-]{1,100}):(\d{1,6})(?=\t)")
_SEPARATOR = regex(r"[\])>]{0,4}(?:(?:[ \t]{0,12}[-|:,][ \t]{1,12})|:(?=\S))?")


def read_head(text: str, columns: Columns, year: int | None = None) -> Head:
    """Read the prefixes of one line without terminal escapes, from the left, as far as they go."""
    head = Head()
    position = read_labels(text, 0, columns, head)
    if position == 0 and (inner := exported(text)) is not None:
        head.stamp = time_at(text, int(text[0] == '"'), year=year)
        if columns.host_value is not None and len(row := row_of(text)) > columns.host_value:
            head.host = row[columns.host_value] or None
        _adopt(head, read_head(inner, columns, year))
        return head
    if head.stamp is None and text[position : position + 1] in (" ", "\t"):
        # An indented line is a body line unless a time follows, as in " [2026-01-02 03:04:05] iteration".
        ahead = position
        while ahead < len(text) and text[ahead] in " \t":
            ahead += 1
        if match := _RICH.match(text, position):
            # rich leaves the time out where it is that of the record before.
            head.level = level_named(match[1])
            position = match.end()
        elif ahead < len(text) and (text[ahead] == "[" or text[ahead].isdigit()):
            position = _time(text, ahead, position, columns, year, head)
    else:
        position = _time(text, position, position, columns, year, head)
    head.message = text[position:] if not head.message else head.message + text[position:]
    return head


def _time(text: str, position: int, fallback: int, columns: Columns, year: int | None, head: Head) -> int:
    """Read the time, level and rank columns from `position`; `fallback` where there are none."""
    if match := _C10.match(text, position):
        head.level = LETTERS[match[1]]
        return _process_group(text, match.end(), head)
    if match := _NEMO.match(text, position):
        head.level = LETTERS[match[1]]
        position = match.end()
    stamp = time_at(text, position, year=year)
    if stamp is None:
        return _untimed(text, position, fallback, columns, year, head)
    head.stamp = stamp
    end = stamp.end
    if stamp.kind == "glog":
        head.level = LETTERS.get(text[stamp.start])
        if match := _GLOG_END.match(text, end):
            if match[1] and len(match[1]) < 11:
                head.pid = int(match[1])
            return _process_group(text, match.end(), head)
    elif stamp.kind == "monotonic":
        if text[stamp.start].isdigit():
            head.level = SYSLOG_LEVELS[int(text[stamp.start : text.index(",", stamp.start)]) & 7]
        elif match := _CALLER.match(text, end):
            end = match.end()
        return end + 1 if text[end : end + 1] == " " else end
    elif stamp.has_zone and (match := _CRI.match(text, end)):
        # What a container wrote has its own prefixes behind the runtime's.
        inner = read_head(text[match.end() :], columns, year)
        head.host = match[1]
        _adopt(head, inner)
        return len(text)
    is_syslog = stamp.kind == "syslog" or columns.syslog_host or text.find(" kernel: ", end, end + 110) > 0
    bare = BARE_HOST.match(text, end) if columns.bare_hosts and stamp.kind == "syslog" else None
    if bare is not None and bare[1] in columns.bare_hosts:
        head.host = bare[1]
        end = bare.end()
    elif is_syslog and (match := _SYSLOG_HOST.match(text, end)):
        head.host = match[1]
        head.styles += ("syslog",)
        end = match.end()
        if kernel := _KERNEL.match(text, end):
            if kernel[1]:
                head.uptime = float(kernel[1])
            return kernel.end()
        if program := _PROGRAM_PID.match(text, end):
            head.pid, end = int(program[1]), program.end()
            # What a service wrote has its own prefixes behind the journal's.
            if text[end : end + 1] in ("[", "(") and "ank" in text[end : end + 40]:
                _adopt(head, read_head(text[end:], columns, year))
                return len(text)
        return end
    if text[end : end + 1] == "[" and "]<std" in text[end : end + 110]:
        # `mpirun --timestamp-output` and horovodrun put the time ahead of the rank: `… 2026[3]<stderr>:`.
        _adopt(head, read_head(text[end:], columns, year))
        return len(text)
    if match := _XLA_DIST.match(text, end):
        head.host = match[1]
        return match.end()
    if text[end : end + 1] == "\t" and (match := _HOST_AND_LOCAL.match(text, end)):
        head.host = match[1]
        if columns.tab_ranks:
            head.rank = int(match[2])
        else:
            head.local = int(match[2])
        head.styles += ("tab number",)
        end = match.end()
    if match := _RAY_END.match(text, end):
        head.level, head.pid = LETTERS[match[1]], int(match[2])
        return match.end()
    if " NCCL " in text and (match := NCCL.match(text, end + 2 if text[end : end + 2] == "] " else end + 1)):
        read_nccl(text, match, head)
        return match.end()
    if "||" in text[end : end + 72] and (match := _DETERMINED.match(text, end)):
        head.rank = int(match[1]) if match[1] else head.rank
        end = match.end()
    if match := _TF_END.match(text, end):
        head.level = LETTERS[match[1]]
        return match.end()
    return _level(text, end, columns, head)


def _adopt(head: Head, inner: Head) -> None:
    """Take from an inner head what the outer one lacks; the outer clock is the better known one."""
    head.rank = inner.rank if head.rank is None else head.rank
    head.local = inner.local if head.local is None else head.local
    head.host = inner.host or head.host
    head.pid = inner.pid if inner.pid is not None else head.pid
    head.level = inner.level or head.level
    head.message = inner.message
    head.styles += inner.styles
    if head.stamp is None:
        head.stamp = inner.stamp


def _process_group(text: str, position: int, head: Head) -> int:
    """The writer's rank of a process group's message, `file.cpp:12] [PG ID 0 … Rank 3] …`.

    Only the default group counts its members as the job does; in others it is the place in that group.
    """
    location = _LOCATION.match(text, position)
    if location and head.rank is None and text.startswith("[", location.end()):
        match = _PG.match(text, location.end())
        if match:
            head.rank = int(match[1])
            head.styles += ("process group",)
    return position


def _level(text: str, end: int, columns: Columns, head: Head) -> int:
    """Read the columns behind a time: level, then rank."""
    rest = text[end : end + 110]
    closing = len(rest) - len(rest.lstrip("])>"))
    if match := _COMPOSER.match(text, end):
        head.rank, head.pid = int(match[1]), int(match[2])
        end = match.end()
    kept = ""
    level = _LEVEL_AHEAD.match(text, end + (closing if not head.pid else 0))
    if level is None and (near := _LEVEL_NEAR.search(text, end, end + 110)):
        between = text[end : near.start()]
        words = between.translate(_PUNCTUATION).split()
        if len(words) <= 2:
            level = near
            if len(words) == 1 and words[0].isdigit() and len(words[0]) < 11:
                head.pid = int(words[0])
            elif rank := _RANK_WORDS.fullmatch(" ".join(words)):
                head.rank = int(rank[1])
                head.styles += ("rank column",)
            elif words:
                kept = between.strip(" \t-|:,[](){}") + " "
    if level is not None:
        head.level = level_named(level[1])
        end_match = _LEVEL_END.match(text, level.end(1))
        end = end_match.end() if end_match else level.end(1)
    else:
        if lower := _LOWER_LEVEL.match(text, end):
            head.level = level_named(lower[1])
        separator = _SEPARATOR.match(text, end)
        end = separator.end() if separator else end
        # One blank parts a time from what follows; more of them belong to an indented body line.
        if text[end : end + 1] == " ":
            end += 1
    head.message = kept
    return _rank_column(text, end, columns, head)


_PUNCTUATION = str.maketrans(dict.fromkeys("[](){}|,:<>-", " "))


def _rank_column(text: str, position: int, columns: Columns, head: Head) -> int:
    """Read a column that names the writer's rank."""
    if head.rank is not None:
        return position
    brackets = _LOGGER_BRACKETS.match(text, position)
    start = brackets.end() if brackets else position
    match = _RANK_NEXT.match(text, start)
    if match is None and start and text[start - 1] in "|[":
        match = _RANK_NEXT.match(text, start - 1)
    if match:
        head.rank = int(next(group for group in match.groups() if group is not None))
        head.styles += ("rank column",)
        if brackets:
            head.message += brackets[0]
        return match.end()
    if columns.rank_name and (match := RANK_NAME.match(text, position)):
        head.rank = int(match[1])
        head.styles += ("rank name",)
        return match.start(2)
    if columns.rank_column and (match := RANK_WORD.match(text, position)):
        head.rank = int(match[1])
        head.styles += ("rank word",)
        return match.end()
    return position


# A row of a management controller's log: `4 | 06/17/2025 | 10:41:13 | `, years behind the row before it.
_NUMBERED_EVENT = regex(r"[0-9a-f]{1,6} +\| +(?=\d|[A-Z][a-z]{2}-\d)")


def _untimed(text: str, position: int, fallback: int, columns: Columns, year: int | None, head: Head) -> int:
    """Read the head of a line that does not begin with a time."""
    first = text[position : position + 1]
    if not first or first in "{'\"#%/":
        return fallback
    if match := _SUBMITIT.match(text, position):
        head.level = level_named(match[1])
        head.stamp = time_at(text, match.end() - 1, year=year)
        if head.stamp is not None:
            environment = _SUBMITIT_JOB.search(text, match.end(), match.end() + 400)
            if environment:
                head.host, head.rank = environment[1], int(environment[2])
            return min(len(text), head.stamp.end + 4)
    if _LOGFMT.match(text, position):
        if match := _LOGFMT_LEVEL.search(text, position, position + 1000):
            head.level = level_named(match[1])
        if match := _LOGFMT_RANK.search(text, position, position + 1000):
            head.rank = int(match[1])
        if match := _LOGFMT_HOST.search(text, position, position + 1000):
            head.host = match[1]
        head.stamp = inner_time(text[: position + 200], position, year=year)
        return fallback
    if first == "[" and (name := _NAME.match(text, position)):
        stamp = time_at(text, name.end(), year=year)
        if stamp is not None:
            head.stamp = stamp
            end = _level(text, stamp.end, columns, head)
            head.message = name[0] + head.message
            return end
    if (event := _NUMBERED_EVENT.match(text, position)) and (
        stamp := time_at(text, event.end(), year=year)
    ) is not None:
        head.stamp = stamp
        return fallback
    level = _LEVEL_AHEAD.match(text, position)
    if level is not None and (level[1].isupper() or first in "[|("):
        head.level = level_named(level[1])
        end_match = _LEVEL_END.match(text, level.end(1))
        end = end_match.end() if end_match else level.end(1)
        stamp = time_at(text, end, year=year)
        if stamp is not None:
            # `INFO 11-29 16:00:01 [file.py:12] …` and `[INFO|file.py:12] 2026-… >> …`
            head.stamp = stamp
            separator = _SEPARATOR.match(text, stamp.end)
            end = separator.end() if separator else stamp.end
            end += text[end : end + 1] == " "
        elif first == "[" and (stamp := inner_time(text[: end + 120], end, year=year)) is not None:
            kept = text[end : stamp.start].strip(" []|")
            head.stamp = stamp
            separator = _SEPARATOR.match(text, stamp.end)
            end = separator.end() if separator else stamp.end
            end += text[end : end + 1] == " "
            head.message = kept + " " if kept else ""
        return _rank_column(text, end, columns, head)
    if columns.rank_column and (match := RANK_WORD.match(text, position)):
        head.rank = int(match[1])
        head.styles += ("rank word",)
        return match.end()
    if first == "|" and (match := _RANK_NEXT.match(text, position)):
        head.rank = int(next(group for group in match.groups() if group is not None))
        head.styles += ("rank column",)
        return match.end()
    return fallback
