"""On which host a program could not be started."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from logtriage.localize.candidates import Candidate
from logtriage.localize.exits import Exit
from logtriage.regex import regex

_NUMBERS = regex(r"\d+")


def launched_on(members: Sequence[Candidate], hosts: set[str], exits: Sequence[Exit] = ()) -> str | None:
    """The one host of several where the program could not be started, or the one with a reason of its own.

    Where no line of the failure names a host, as in a file that all nodes' daemons write to, the one whose
    tasks left with a status of their own while those of all others were ended by a signal, or whose tasks
    alone a launcher reports.
    """
    told = {each.host: _NUMBERS.sub("", each.title.replace(each.host, "")) for each in members if each.host}
    counts = Counter(told.values())
    odd = [host for host, reason in told.items() if counts[reason] == 1]
    if len(told) == 1 and (len(hosts) > 1 or any("host" in dict(each.captures) for each in members)):
        return next(iter(told))
    if not told:
        left = {each.host for each in exits if each.code > 0}
        ended = {each.host for each in exits if each.code < 0}
        if len(left) == 1 and None not in left | ended and ended - left:
            return next(iter(left))
    reported = {each.host for each in exits if each.code and each.host}
    if len(reported) == 1 and hosts <= reported and told.keys() <= reported:  # all that is heard of is there
        return next(iter(reported))
    return odd[0] if len(odd) == 1 and len(told) > 2 else None
