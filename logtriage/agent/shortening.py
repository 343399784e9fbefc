"""The messages of a vote in fewer tokens: what weighs least is left out of a request that costs too much."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

_HEAD, _FOOT = 1, 2  # lines of the user's message around the evidence: a fence, a fence and the question


def shortened(messages: Sequence[Any], excess: int, count: Callable[[str], int]) -> list[Any]:
    """The messages less at least `excess` tokens, or as far as there is something to leave out.

    The longest of the evidence file (the first message) and the answers of look-ups loses its last line, over
    and over: sections of the file stand in the order of their weight, and so do the lines of an answer.
    """
    lines = {
        index: str(message.text).split("\n")
        for index, message in enumerate(messages)
        if index == 0 or message.type == "tool"
    }
    least = {index: _HEAD + _FOOT if index == 0 else 0 for index in lines}
    while excess > 0:
        left = [index for index in lines if len(lines[index]) > least[index]]
        if not left:
            break
        longest = max(left, key=lambda index: sum(map(len, lines[index])))
        line = lines[longest].pop(-1 - _FOOT if longest == 0 else -1)
        excess -= count(line)
    return [
        message.model_copy(update={"content": "\n".join(lines[index]) or "(left out)"})
        if index in lines
        else message
        for index, message in enumerate(messages)
    ]
