"""Whom those who complain point at: a rank that they name, a host that all lost, one that fails otherwise."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence, Set

from logtriage.localize.candidates import Candidate
from logtriage.regex import regex

_NUMBERS = regex(r"\d+")
_ADDRESS = regex(r"^\d{1,3}(?:\.\d{1,3}){3}$")
_ACCUSES = regex(
    r"\b[Rr]ank (\d{1,6}) "
    r"(?:has|had|is|was|did|does|got|sent|holds?|report(?:s|ed)|disagree[sd]?|differ(?:s|ed)?)\b"
)


# PyTorch names the odd one out last: `Rank 0 has 9 params, while rank 3 has …`, `…, but Rank 3 is running …`.
_ODD = regex(r"\b(?:while|but) [Rr]ank (\d{1,6}) (?:has|is running) ")


def accused(members: Sequence[Candidate]) -> int | None:
    """The one rank that several others name as the subject of the same complaint, whatever it says itself."""
    odd = {
        (each.rank, int(last[-1]))
        for each in members
        if each.rank is not None
        and (last := _ODD.findall(each.line.message[:4000]))
        and int(last[-1]) != each.rank
    }
    accused = {of for by, of in odd if not any(of_it == by for _, of_it in odd)}
    if len(accused) == 1 and sum(of in accused for _, of in odd) >= 2:
        return accused.pop()
    named = {(told[1] if (told := _ACCUSES.search(each.line.message[:600])) else None) for each in members}
    writers = {each.rank for each in members if each.rank is not None}
    if len(named) != 1 or len(writers) < 2 or (only := named.pop()) is None:
        return None
    return int(only) if int(only) not in writers else None


def lost_peer(members: Sequence[Candidate]) -> str | None:
    """The one host that all lost, by address or name as the complainers go by, and none of them."""
    complaining = {each.host for each in members if each.host is not None}
    peers = {peer.strip("[]").split("<")[0] for each in members if (peer := each.capture("peer"))}
    if len(peers) != 1:
        return None
    peer = peers.pop().rsplit(":", 1)[0].strip("[]")
    if not complaining:  # whoever it is that complains: an address of a network is told for the other side
        return peer if _ADDRESS.match(peer) and not peer.startswith(("127.", "0.")) else None
    if peer in complaining:
        return None
    if not _ADDRESS.match(peer):  # by name, where it is of the same row as the names of the others
        # Some go by a short name and tell of others by their full one, or the other way round.
        names = {host if _ADDRESS.match(host) else host.split(".")[0] for host in complaining}
        name = peer.split(".")[0]
        row = {_NUMBERS.sub("#", each) for each in names}
        if name in names or len(names) < 2 or row != {_NUMBERS.sub("#", name)}:
            return None
        return name if names <= complaining else peer
    return peer if all(_ADDRESS.match(host) for host in complaining) else None


def unreached(members: Sequence[Candidate]) -> int | None:
    """The one rank that all who try to connect name as one that they do not reach, and that says nothing."""
    named: dict[int, set[int]] = defaultdict(set)
    for each in members:
        peer = each.capture("peer") or ""
        if each.rank is not None and peer.isdigit():
            named[each.rank].add(int(peer))
    common = set[int]().union(*named.values()) - named.keys()
    common = {rank for rank in common if all(rank in peers for peers in named.values())}
    return common.pop() if len(common) == 1 else None


_ENDPOINT = regex(r"'([^'\n]{3,200}):\d{2,5}'")


def never_came(members: Sequence[Candidate]) -> str | None:
    """The one host that all still miss who list whom they wait for: the last list of each counts."""
    last: dict[str, Candidate] = {}
    for each in members:
        if each.capture("missing") and each.line.number >= last.get(each.line.file, each).line.number:
            last[each.line.file] = each
    missed = [set(_ENDPOINT.findall(each.capture("missing") or "")) for each in last.values()]
    if not missed or len(last) < len({each.line.file for each in members}):
        return None
    common = set.intersection(*missed)
    host = common.pop() if len(common) == 1 else None
    return None if host is None or host.startswith(("127.", "0.", "localhost")) else host


# What NCCL says of both ends of a queue pair that it could not bring up.
_ENDS = regex(r"\blocal GID (?P<near>[0-9a-f:.]{3,45}), remote GID (?P<far>[0-9a-f:.]{3,45})")


def far_ends(members: Sequence[Candidate]) -> dict[int, str]:
    """By candidate, the host at the other end, where the GIDs of both are told and somebody calls it his."""
    ends = [(each, told) for each in members if (told := _ENDS.search(each.line.text[:1000])) is not None]
    host_of_gid = {told["near"]: each.host for each, told in ends if each.host is not None}
    return {id(each): host for each, told in ends if (host := host_of_gid.get(told["far"])) is not None}


_CANNOT_REACH = ("torch.store.connect_timeout", "torch.store.connect_failed", "torch.store.name")


def cut_off(members: Sequence[Candidate], hosts: Set[str]) -> str | None:
    """The one host of several that cannot reach where all meet: the others got there, and wait or were ended.

    Who waits for clients is the one that is not reached.
    """
    trying = {each.host for each in members if each.rule is not None and each.rule.id in _CANNOT_REACH}
    others = hosts - trying
    return trying.pop() if len(trying) == 1 and len(others) > 1 else None


def fails_otherwise(members: Sequence[Candidate]) -> str | None:
    """The one host of several whose complaints no other makes, where all others complain of the same."""
    said: dict[str, set[str]] = defaultdict(set)
    for each in members:
        if each.host is not None and each.rule is not None:
            said[each.host].add(each.rule.id)
    usual, hosts = Counter(frozenset(rules) for rules in said.values()).most_common(1)[0] if said else ((), 0)
    odd = [host for host, rules in said.items() if rules.isdisjoint(usual)]
    return odd[0] if len(odd) == 1 and 1 < hosts == len(said) - 1 else None
