"""How a verdict is put into words: the phrases that the terminal and the page share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from logtriage.regex import regex
from logtriage.report.document import CitedLine, Job, Mitigation, Verdict, VerdictBody, seconds_of
from logtriage.report.visible import prose, visible

_FAILURE_WORDS = regex(
    r"(?i)\b(?:[\w.]{0,60}(?:Error|Exception|Fault|Exit)\b(?: ?:)?|S?Xid\b(?: \([^)]{1,40}\))?[: ]+\d{1,5}"
    r"|out[ -]of[ -]memory|oom[-\w]*|killed(?: process \d{1,10})?|time[ds]?[ -]?out|time limit"
    r"|fail(?:ed|ure|s)?\b|fatal|panic|abort\w*|segfault|segmentation fault|core dumped|SIG[A-Z]{2,6}"
    r"|exit ?code\b[ :=]{0,3}-?\d{1,5}|return(?:ed)? code\b[ :=]{0,3}-?\d{1,5}|signal \d{1,2}"
    r"|no space left on device|no such file or directory|not found|permission denied|(?:access )?denied"
    r"|(?:connection )?(?:refused|reset by peer|closed by peer|lost)|unreachable|unauthorized|forbidden"
    r"|fallen off the bus|uncorrectable|corrupt\w*|truncated|mismatch\w*|invalid|illegal|misaligned"
    r"|cancelled|preempt\w*|evicted|drain\w*|not responding|read-only|stale|quota exceeded|nan|inf)\b"
)

_LONG_PATH = regex(r"(?:/[\w.+@=-]{1,100}){3,30}(/[\w.+@=-]{1,100})")

_GROUPS = {
    "gpu": "GPU", "cuda": "CUDA", "collective": "Collective", "network": "Network", "host": "Host",
    "process": "Process", "storage": "Storage", "checkpoint": "Checkpoint", "data": "Data",
    "numerics": "Numerics", "scheduler": "Scheduler", "auth": "Access", "code": "Program", "slow": "Slow job",
    "hang": "Hang",
}  # fmt: skip
_NAMES = {
    "none.completed": "The job ended well",
    "none.running": "Nothing failed so far",
    "unknown": "The evidence does not decide",
    "gpu.ecc_uncorrectable": "GPU: uncorrectable memory error (ECC)",
    "gpu.fell_off_bus": "GPU: fell off the bus",
    "gpu.nvlink": "GPU: NVLink fault",
    "gpu.thermal_power": "GPU: thermal or power fault",
    "collective.init": "Collective: could not be set up",
    "network.infiniband": "Network: InfiniBand, RoCE or EFA fault",
    "network.connection": "Network: connection to an outside service failed",
    "host.out_of_memory": "Host: out of memory (RAM)",
    "host.shared_memory": "Host: shared memory full",
    "storage.filesystem": "Storage: file system fault",
    "storage.object_store": "Storage: object store fault",
    "data.loader_worker": "Data: loader worker died",
    "numerics.nan": "Numerics: NaN or Inf",
    "scheduler.launch": "Scheduler: the job never ran its program",
    "code.os_error": "Program: OSError",
    "code.runtime": "Program: runtime error",
    "code.config": "Program: inconsistent configuration",
    "code.argument": "Program: command line rejected",
    "code.compile": "Program: compilation failed",
    "code.shape": "Program: shape, dtype or device mismatch",
    "code.subprocess": "Program: a subprocess failed",
    "code.file_not_found": "Program: file not found",
    "code.permission": "Program: permission denied",
    "slow.straggler": "Slow job: stragglers",
    "slow.data": "Slow job: waiting for data",
    "hang.silent": "Hang: progress stopped with no error",
}
_EXCEPTIONS = {"import", "syntax", "name", "type", "attribute", "key", "index", "value", "assertion",
               "zero_division"}  # fmt: skip

_ACTIONS = {
    "restart": "Restart from the last checkpoint; the same nodes may be used again.",
    "restart_excluding_node": "Take {node} out, then restart from the last checkpoint.",
    "fix_code": "Fix the program first; a restart alone would fail again.",
    "fix_config": "Change the configuration first; a restart alone would fail again.",
    "fix_data": "Repair or skip the data first; a restart alone would fail again.",
    "fix_environment": "Repair the environment first; a restart alone would fail again.",
    "wait_and_restart": "Wait until the shared service has recovered, then restart.",
    "none": "Nothing to repair.",
}

_DECIDED_BY = {
    "rules": "by rules",
    "localisation": "by comparing ranks and times",
    "memory": "by a confirmed earlier case",
    "llm": "by a language model, checked against the logs",
}


def telling_spans(text: str) -> list[tuple[int, int]]:
    """Where the words of failure stand in a line, at most eight, left to right."""
    spans: list[tuple[int, int]] = []
    for match in _FAILURE_WORDS.finditer(text):
        spans.append(match.span())
        if len(spans) == 8:
            break
    return spans


def shortened(text: str, width: int) -> tuple[str, list[tuple[int, int]]]:
    """A harmless line of at most `width` characters around its telling words, and where these stand in it.

    Given up first are the heads of long paths, then what stands before the telling words.
    """
    width = max(width, 8)
    start = 0
    if len(text) > 8 * width:
        first = next(iter(telling_spans(text[:16_000])), (0, 0))
        start = max(0, first[0] - width)
    shown = visible(text[start : start + 8 * width])
    more_before, more_after = start > 0, len(text) > start + 8 * width
    if len(shown) + more_before + more_after > width:
        shown = _LONG_PATH.sub(r"…\1", shown)
    begin, end = 0, len(shown)
    if len(shown) + more_before + more_after > width:
        first = next(iter(telling_spans(shown)), (0, 0))
        begin = max(0, first[0] - width // 5) if first[1] > width - 2 else 0
        end = min(len(shown), begin + width - 2)
        begin = max(0, min(begin, end - width + 2))
    head = "…" if begin > 0 or more_before else ""
    tail = "…" if end < len(shown) or more_after else ""
    window = head + shown[begin:end] + tail
    return window, telling_spans(window)


def type_name(failure_type: str) -> str:
    """A failure type as a person would say it: `cuda.out_of_memory` → `CUDA: out of memory`."""
    if failure_type in _NAMES:
        return _NAMES[failure_type]
    group, _, rest = failure_type.partition(".")
    if group == "code" and rest in _EXCEPTIONS:
        return "Program: " + "".join(part.capitalize() for part in rest.split("_")) + "Error"
    name = _GROUPS.get(group, group.replace("_", " ").capitalize())
    return visible(f"{name}: {rest.replace('_', ' ').replace('.', ' ')}" if rest else name)


_ORDINARY_WORD = regex(r"[a-z]+(?:-[a-z]+)*,?(?:\s|$)")


def sentence(text: str) -> str:
    """A text with a capital letter at its beginning, unless that is a name: `orbit.RingLost: no leader`."""
    text = text.strip()
    return text[:1].upper() + text[1:] if _ORDINARY_WORD.match(text) else text


def confidence_words(confidence: float) -> str:
    for least, words in ((0.95, "almost certain"), (0.8, "very likely"), (0.6, "likely"), (0.4, "possible")):
        if confidence >= least:
            return words
    return "uncertain"


def percent(confidence: float) -> str:
    """Whole per cent; never 100 % for less than certainty nor 0 % for more than nothing."""
    whole = round(confidence * 100)
    whole = min(whole, 99) if confidence < 1 else whole
    return f"{max(whole, 1) if confidence > 0 else whole} %"


def decided_by(verdict: VerdictBody) -> str:
    words = _DECIDED_BY[verdict.decided_by]
    if verdict.votes and verdict.votes.asked:
        won = verdict.votes.votes_for.get(verdict.failure_type, 0)
        words += f" ({won} of {verdict.votes.asked} votes)"
    return words


def model_words(verdict: Verdict) -> str:
    """What a model was asked, what came of it and what it cost; empty where none was wanted."""
    use = verdict.model
    if use is None or not use.wanted:
        return ""
    if not use.asked:
        return f"No model was asked: {prose(use.why)}"
    name = prose(use.model or "a model")
    told = f"{name} was asked ({prose(use.why)}): {prose(use.result)}"
    votes = verdict.verdict.votes
    if votes is not None and votes.valid < votes.asked:
        reasons = ", ".join(f"{prose(reason)} ({count})" for reason, count in use.voids.items())
        told += f"; {votes.asked - votes.valid} of {votes.asked} votes void: {reasons}"
    if use.spent is not None and use.budget is not None and use.spent.tokens:
        told += f". {use.spent.tokens:,} of {use.budget.tokens:,} tokens in {use.spent.seconds:.1f} s"
    if use.redacted:
        hidden = ", ".join(counted(count, prose(kind)) for kind, count in use.redacted.items())
        told += f"; hidden from it: {hidden}"
    return told


def action_words(verdict: VerdictBody) -> str:
    if verdict.failure_type == "unknown":
        return "The logs alone do not say what to repair; collect what is named below before a restart."
    nodes = verdict.restart.exclude_hosts or verdict.culprits.hosts
    phrase = _ACTIONS.get(verdict.action, verdict.action.replace("_", " "))
    ranks = verdict.culprits.ranks
    unnamed = f"the node of {places(ranks, ())}" if ranks else "the failing node"
    return prose(phrase.replace("{node}", listed(nodes, 4) if nodes else unnamed))


def restart_words(verdict: VerdictBody) -> str:
    """What :func:`action_words` leaves open about a restart; empty where it says all."""
    restart = verdict.restart
    general = {mitigation.text for mitigation in verdict.mitigations if mitigation.source == "taxonomy"}
    reason = "" if restart.reason in general else prose(restart.reason)
    if verdict.failure_type.startswith("none.") and not restart.advised:
        return ""
    implied = restart.advised == ("restart" in verdict.action)
    named = not restart.exclude_hosts or verdict.action == "restart_excluding_node"
    if implied and named and not reason:
        return ""
    words = "Restart: yes" if restart.advised else "Restart: not yet"
    if restart.exclude_hosts:
        words += f", without {listed(restart.exclude_hosts, 6)}"
    return words + (f". {reason[0].upper()}{reason[1:].rstrip('.')}." if reason else ".")


def mitigations(verdict: VerdictBody) -> list[Mitigation]:
    """Those that say more than :func:`action_words`, which is the taxonomy's own advice."""
    return [mitigation for mitigation in verdict.mitigations if mitigation.source != "taxonomy"]


def ranges(numbers: Iterable[int], most: int = 8) -> str:
    """`0-3, 7` for 0, 1, 2, 3, 7; at most `most` ranges, then `…`."""
    spans: list[list[int]] = []
    for number in sorted(set(numbers)):
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    shown = [f"{first}-{last}" if last > first else str(first) for first, last in spans[:most]]
    return ", ".join(shown) + (", …" if len(spans) > most else "")


def listed(names: Sequence[str], most: int = 8) -> str:
    """`a, b and 3 more`."""
    shown = ", ".join(visible(name, 80) for name in names[:most])
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")


def counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def places(ranks: Sequence[int], hosts: Sequence[str], gpus: Sequence[str] = ()) -> str:
    """`rank 3 · host node-7 · GPU 2`; empty where nothing is named."""
    parts = []
    if ranks:
        several = f" ({len(set(ranks))})" if len(set(ranks)) > 3 else ""
        parts.append(f"rank{'s' if len(set(ranks)) > 1 else ''} {ranges(ranks)}{several}")
    if hosts:
        parts.append(f"host{'s' if len(hosts) > 1 else ''} {listed(hosts)}")
    if gpus:
        parts.append(f"GPU{'s' if len(gpus) > 1 else ''} {listed(gpus)}")
    return " · ".join(parts)


def where_words(verdict: Verdict) -> str:
    culprits = verdict.verdict.culprits
    named = places(culprits.ranks, culprits.hosts, culprits.gpus)
    if named or verdict.verdict.failure_type.startswith(("none.", "unknown")):
        return named
    job = verdict.job
    if not (job.ranks or job.hosts):
        return "the logs name no rank or host"
    return "no single rank or host stands out"


def place(file: str | None, line: int | None) -> str:
    """`file:line`, or the file alone; empty for neither."""
    if not file:
        return ""
    return visible(file, 300) + (f":{line}" if line else "")


def origin(cited: CitedLine, job: Job) -> str:
    """The rank, host and time of a cited line, as far as known; with the date where the job saw several."""
    parts = [f"rank {cited.rank}"] if cited.rank is not None else []
    parts += [visible(cited.host, 80)] if cited.host else []
    one_day = job.started and job.ended and job.started[:10] == job.ended[:10]
    parts += [clock(cited.time, beside=job.ended if one_day else None)] if cited.time else []
    return " · ".join(parts)


def reason(cited: CitedLine, verdict: VerdictBody) -> str:
    """Why a line is cited, unless the title of the verdict says it already."""
    why = prose(cited.why)
    return "" if why.casefold() == prose(verdict.title).casefold() else why


def clock(time: str | None, beside: str | None = None) -> str:
    """`2026-01-31 08:15:30` of an ISO 8601 time; the time alone on the day of `beside`."""
    if not time:
        return ""
    return time[11:19] if beside and beside[:10] == time[:10] else time[:19].replace("T", " ")


def zone(job: Job) -> str:
    """What stands behind the job's times: ` UTC`, or nothing where its logs name no zone."""
    return f" {job.zone}" if job.zone else ""


def duration(seconds: float) -> str:
    """`42 s`, `3 min 20 s`, `5 h 12 min`, `2 d 3 h`."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    for size, big, small, unit in ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if whole >= size:
            rest = whole % size // small
            return f"{whole // size} {big}" + (f" {rest} {unit}" if rest else "")
    return f"{whole} s"


def size(number: int) -> str:
    """Bytes in decimal units: `1.2 GB`."""
    amount = float(number)
    for unit in ("bytes", "kB", "MB", "GB"):
        if amount < 999.5:
            return f"{amount:.0f} {unit}" if unit == "bytes" or amount >= 99.5 else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} TB"


def job_facts(job: Job) -> list[str]:
    """What is known of the job, one fact each: size, software, times, last step, last checkpoint."""
    facts = []
    if job.ranks:
        on_hosts = f" on {counted(len(job.hosts), 'host')}" if job.hosts else ""
        facts.append(counted(job.ranks, "rank") + on_hosts)
    elif job.hosts:
        facts.append(counted(len(job.hosts), "host"))
    if job.frameworks:
        facts.append(listed(job.frameworks, 6))
    started, ended = seconds_of(job.started), seconds_of(job.ended)
    if started is not None and ended is not None and ended >= started + 0.5:
        until = clock(job.ended, beside=job.started)
        facts.append(f"{duration(ended - started)} ({clock(job.started)} to {until}{zone(job)})")
    elif job.ended or job.started:
        at = f"ended {clock(job.ended)}" if job.ended else f"started {clock(job.started)}"
        facts.append(at + zone(job))
    if job.last_step is not None:
        facts.append(f"last step {job.last_step:,}")
    saved = job.last_checkpoint
    if saved is not None:
        known = f" at step {saved.step:,}" if saved.step is not None else ""
        known += f" ({clock(saved.time)}{zone(job)})" if saved.time and saved.step is None else ""
        lost = job.last_step - saved.step if job.last_step is not None and saved.step is not None else 0
        facts.append(f"last checkpoint{known}" + (f" ({counted(lost, 'step')} lost)" if lost > 0 else ""))
    return facts


def stage_words(verdict: VerdictBody) -> str:
    """`while saving, in or after iteration 1,200`; empty where the stage is not known."""
    stage = verdict.stage
    if stage is None:
        return ""
    words = "during start-up" if stage.name == "start-up" else f"while {stage.name}"
    return words + (f", in or after iteration {stage.iteration:,}" if stage.iteration is not None else "")


MOST_FOLDERS = 3


def code_words(verdict: VerdictBody) -> str:
    """Where in the user's program it was raised: `…/sft/data/shards.py:52 in read`; empty if unknown."""
    place = verdict.evidence[0].raised_at if verdict.evidence else None
    if not place:
        return ""
    path, colon, rest = place.rpartition(":")
    parts = path.split("/")
    short = "…/" + "/".join(parts[-MOST_FOLDERS:]) if len(parts) > MOST_FOLDERS + 1 else path
    return visible(short + colon + rest.removesuffix(" in "), 300)


def lost_words(verdict: VerdictBody) -> str:
    """What must be done again, and how long the job stood idle; empty where nothing is known to be lost."""
    lost = verdict.lost
    if lost is None:
        return ""
    amounts = [counted(lost.iterations, "iteration")] if lost.iterations is not None else []
    amounts.append(duration(lost.seconds))
    gpu_hours = f"{lost.gpu_hours or 0.0:,.1f}"
    amounts += [f"{gpu_hours} GPU hours"] if gpu_hours != "0.0" else []
    since = "since the last checkpoint"
    if lost.since == "start":
        since = "since the start: no checkpoint was seen"
    idle_seconds = lost.idle_seconds or 0.0
    idle = f"; idle for {duration(idle_seconds)} of it" if idle_seconds >= 60 else ""
    return f"{', '.join(amounts)} {since}{idle}"


def mined_words(verdict: Verdict) -> str:
    mining = verdict.mining
    words = f"{counted(mining.files, 'file')}, {size(mining.bytes)}, {counted(mining.lines, 'line')}"
    words += f", {counted(mining.templates, 'template')}"
    if mining.novel_templates is not None:
        words += f" ({mining.novel_templates:,} new against earlier runs)"
    if mining.routine is not None:
        words += f", {percent(mining.routine.share)} routine"
    return words + (f" in {duration(verdict.timing.seconds)}" if verdict.timing.seconds else "")
