"""The check of a model's answer against the logs: a vote with one invented line is no vote."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from logtriage.agent.addressed import is_addressed
from logtriage.agent.answer import Answer, Citation
from logtriage.agent.bearing import Bearing, Vocabulary, bearing
from logtriage.agent.desk import Desk, normal
from logtriage.model import Line
from logtriage.redaction.values import in_latin_letters
from logtriage.taxonomy import taxonomy

SHORTEST_QUOTE = 6  # characters, unless the line itself is shorter
MOST_MITIGATION = 240
# Types that no line states: what matters is what is missing, and the localisation judges that.
_UNSTATED = ("hang.", "slow.", "none.")


@dataclass(frozen=True, slots=True)
class Vote:
    """An answer that passed: every line of it is there and bears what is claimed."""

    failure_type: str
    ranks: tuple[int, ...]
    hosts: tuple[str, ...]
    lines: tuple[Line, ...]
    support: Bearing
    bearing: tuple[Line, ...] = ()  # those of the lines that bear the type
    cause: str = ""  # empty where the model's sentence names what no line shows
    mitigations: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Void:
    """An answer that does not count, and why in a few words."""

    reason: str


def check(answer: Answer, desk: Desk, words: Vocabulary) -> Vote | Void:
    """The vote of an answer, or why it is void."""
    name = answer.failure_type.strip().lower()
    if name not in taxonomy():
        return Void("no such failure type")
    if name == "unknown":
        return Vote(name, (), (), (), Bearing.NOT)
    if name.startswith("none.") and desk.decision.failure_type != name:
        return Void("says that nothing failed, and the logs do not")
    lines = cited_lines(answer.citations, desk)
    if isinstance(lines, Void):
        return lines
    held = {line: bearing(line, name, desk, words) for line in lines}
    support = max(held.values())
    if support is Bearing.NOT and name.startswith(_UNSTATED) and desk.decision.failure_type == name:
        support = Bearing.WORDS
    if support is Bearing.NOT:
        return Void("no cited line bears the failure type")
    lines.sort(key=lambda line: -held[line])
    return Vote(
        name,
        _ranks(answer.culprit_ranks, lines, desk),
        _hosts([desk.redaction.restore(host) for host in answer.culprit_hosts], lines, desk),
        tuple(lines),
        support,
        tuple(line for line in lines if held[line] is not Bearing.NOT),
        sentence(desk.redaction.restore(answer.cause), lines, desk),
        tuple(text for each in answer.mitigations if (text := _mitigation(desk.redaction.restore(each)))),
    )


def cited_lines(citations: Sequence[Citation], desk: Desk) -> list[Line] | Void:
    """The lines that are cited, if each of them is there, says what is quoted, and talks to nobody."""
    if not citations:
        return Void("cites nothing")
    lines: list[Line] = []
    for citation in citations:
        line = desk.found(citation.place)
        if line is None:
            return Void("cites a line that does not exist")
        if is_addressed(normal(line.text)):
            return Void("cites a line that talks to its reader")
        # In the text as it was shown: whoever sees which votes count must not learn a secret from it.
        if not _is_quoted(citation.quote, desk.hidden(normal(line.text))):
            return Void("the cited line does not say that")
        if line not in lines:
            lines.append(line)
    return lines


def _is_quoted(quote: str, text: str) -> bool:
    wanted = normal(quote).replace("```", "'''").strip("… ").removesuffix("...").strip()
    return len(wanted) >= min(SHORTEST_QUOTE, len(text)) and bool(wanted) and wanted in text


def _ranks(claimed: Sequence[int], lines: Sequence[Line], desk: Desk) -> tuple[int, ...]:
    """The claimed ranks that wrote a cited line, are named in one, or that the localisation blames."""
    topology = desk.findings.topology
    writers = {topology.rank(line) for line in lines}
    named = {int(each) for line in lines for each in _RANK.findall(normal(line.text)[:4096])}
    held = writers | named | set(desk.decision.culprits.ranks)
    return tuple(sorted({rank for rank in claimed if rank in held and rank in topology.ranks}))


_RANK = re.compile(r"(?i)\brank[s ]{0,2}[:=#\[(]? ?(\d{1,7})\b")


def _hosts(claimed: Sequence[str], lines: Sequence[Line], desk: Desk) -> tuple[str, ...]:
    topology = desk.findings.topology
    text = " ".join(normal(line.text) for line in lines)
    writers = {topology.host(line, topology.rank(line)) for line in lines}
    held = writers | set(desk.decision.culprits.hosts) | {host for host in topology.hosts if host in text}
    return tuple(sorted({host for host in claimed if host in held and host in topology.hosts}))


# What only a log can tell: numbers, paths, names with signs in them, quoted texts.
_CHECKABLE = re.compile(r"\"[^\"]{2,200}\"|'[^']{2,200}'|`[^`]{1,200}`|[\w./:-]*[\d/][\w./:-]*")


def sentence(said: str, lines: Sequence[Line], desk: Desk) -> str:
    """What the model said, if all that it names stands in the cited lines or in what localisation found."""
    text = normal(said)[:400]
    if not text or is_addressed(text) or _is_dangerous(text):
        return ""
    texts = [*(normal(line.text) for line in lines), *(line.file for line in lines)]
    seen = " ".join([*texts, *desk.findings.topology.hosts]).lower()
    ranks = {str(rank) for rank in desk.findings.topology.ranks}
    for match in _CHECKABLE.findall(text):
        token = match.strip("\"'`.,:;()").lower()
        if token and token not in seen and token not in ranks:
            return ""
    return text


# Advice is not in the logs, so it cannot be checked against them: addresses and commands that fetch or
# destroy are not passed on, in whatever letters.
_DANGEROUS = re.compile(
    r"(?i)\b(?:https?|ftp|javascript):|hxxp|www\.|\]\(|<(?:a|img|script|iframe)\b|"
    r"\b(?!(?:nvidia|amd)\.com/gpu)[\w-]{2,}(?:\.[\w-]{2,})*\.[a-z]{2,10}/\S|"
    r"\b(?:curl|wget|aria2c|ncat|netcat|telnet|scp|sftp|sudo|doas|base64|chmod|chown|mkfs\S*|shred|wipefs|"
    r"fdisk|parted|crontab|nohup|iptables|setenforce|userdel)\b|\beval\s+[\"'$(`]|"
    r"\brm\s+-|\bdd\s+(?:if|of)=|\bfind\b.{0,60}-(?:delete|exec)\b|>\s*/dev/|:\(\)|\bkill\s+-9\s+-1|"
    r"\|\s*[\w/]*(?:sh|python\d?|perl|ruby|node)\b|\b(?:ba|z|da)?sh\s+-c\b|\bpython\d?\s+-c\b|\$\(|"
    r"\b(?:pip3?|pipx|uv|conda|mamba|npm|npx|yarn|apt|apt-get|yum|dnf|brew|gem|cargo)\s+(?:-\S+\s+)*"
    r"(?:pip\s+)?(?:install|add)\b|\bgit\s+(?:clone|pull|reset|push)\b|\bdocker\s+(?:pull|run|exec|rm)\b|"
    r"\bkubectl\s+(?:delete|apply|exec|create|replace)\b|\bscancel\s+(?:-u|--user|-A|--account)|"
    r"--privileged|--no-verify|\bdisabl\w*\b.{0,30}\b(?:firewall|selinux|auth|verif|audit|tls|ssl)"
)


def _is_dangerous(text: str) -> bool:
    """Whether advice would have somebody fetch or destroy something, or leads him elsewhere."""
    shown = unicodedata.normalize("NFKC", text)
    return any(_DANGEROUS.search(each) is not None for each in (shown, in_latin_letters(shown)))


def _mitigation(text: str) -> str:
    advice = normal(text)
    if not advice or len(advice) > MOST_MITIGATION or _is_dangerous(advice) or is_addressed(advice):
        return ""
    return advice
