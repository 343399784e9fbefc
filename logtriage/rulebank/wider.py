"""A wider expression for a rule, which matches wherever the rule does and is cheap to look for.

Hyperscan looks for literals first and runs an automaton where one stands. What costs it time are short
literals before a gap (`tar: .*No space left`), far repeats, and many alternatives. Of a pattern's parts
between gaps the one that says most is therefore enough: whoever matches it may match the pattern.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Sequence

from logtriage.regex import regex
from logtriage.rulebank.blur import blurred
from logtriage.rulebank.rule import Rule, literal

# Keywords that are all so long say hardly less than their rule's pattern, and compile in half the time. A
# short pattern is cheap and tells `nan iterations: 0` from `nan iterations: 3`, which on a blur are the same.
LONG_KEYWORD = 10
SHORT_PATTERN = 100
# A part between gaps stands for its branch from so many letters in a row on. 6 doubles the speed of the whole
# bank over logs of a healthy job and adds some hundred lines a gigabyte that are matched in vain; with 5 and
# less common words such as `found` are looked for.
TELLING = 6
# A repeat with a far bound multiplies the states of the automaton: `x{1,200}` is read as `x+`. Bounds up to
# this one are kept, for they tell things apart, as in `\d{1,3}`.
_NEAR_BOUND = 3

_TOKEN = regex(
    r"\\x\{[0-9a-fA-F]+\}|\\x[0-9a-fA-F]{2}|\\[pP](?:\{\^?\w+\}|\w)"
    r"|\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?(?:P<\w+>|[a-zA-Z-]*:|[a-zA-Z-]+\))|[*+?]\??|\{\d*,?\d*\}\??|[()|.]|.",
    re.DOTALL,
)
_REPEAT = regex(r"[*+?]\??|\{(\d*)(,?)(\d*)\}\??")
_ANYTHING = (".", r"[^\n]")


def wider(rule: Rule, *, on_blurs: bool = False, by_keywords: bool = False) -> str:
    """The expression, in the syntax that Hyperscan and google-re2 share; for lines, or for their blurs.

    With `by_keywords` it matches wherever one of the rule's keywords stands.
    """
    keywords = [literal(keyword) for keyword in rule.keywords]
    is_long = on_blurs or len(rule.pattern) > SHORT_PATTERN
    if by_keywords or (is_long and all(len(keyword) >= LONG_KEYWORD for keyword in keywords)):
        tokens = _TOKEN.findall("(?i)" + "|".join(map(re.escape, keywords)))
    else:
        tokens = _TOKEN.findall(rule.pattern)
    if on_blurs:
        tokens = blurred(tokens)
    flags = tokens.pop(0) if tokens and re.fullmatch(r"\(\?[a-zA-Z-]+\)", tokens[0]) else ""
    return flags + "|".join(map(_narrowest, _branches(tokens)))


@functools.cache
def blurred_pattern(pattern: str) -> str:
    """A pattern that matches the blur of every line that `pattern` matches."""
    return "".join(blurred(_TOKEN.findall(pattern)))


def _branches(tokens: Sequence[str]) -> list[list[str]]:
    """The alternatives of an expression, those inside of groups aside."""
    branches: list[list[str]] = [[]]
    depth = 0
    for token in tokens:
        depth += _opens(token) - (token == ")")
        if token == "|" and depth == 0:
            branches.append([])
        else:
            branches[-1].append(token)
    return branches


def _narrowest(branch: Sequence[str]) -> str:
    """The part between gaps that says most, or all parts where none says enough."""
    parts: list[list[str]] = [[]]
    depth = 0
    for token, after in itertools.zip_longest(branch, branch[1:], fillvalue=""):
        depth += _opens(token) - (token == ")")
        if depth == 0 and token in _ANYTHING and _is_far(after):
            parts.append([])
        else:
            parts[-1].append(token)
    # The repeat of a gap is still the first token of the part behind it.
    parts = [part[1:] if place else part for place, part in enumerate(parts)]
    telling = [_strength(part, 0)[0] for part in parts]
    chosen = parts[telling.index(max(telling))] if max(telling) >= TELLING else branch
    return "".join(map(_widened, chosen))


def _strength(tokens: Sequence[str], place: int) -> tuple[int, int]:
    """The letters in a row that every match holds, and where the group that begins at `place` ends."""
    weakest: int | None = None
    best = run = 0
    while place < len(tokens):
        token = tokens[place]
        place += 1
        if token == ")":
            break
        if token == "|":
            weakest = best if weakest is None else min(weakest, best)
            best = run = 0
            continue
        said = 0
        if _opens(token):
            said, place = _strength(tokens, place)
            run = 0
        elif _is_literal(token):
            run += 1
            said = run
        elif not token.startswith(r"\b"):
            run = 0
        if place < len(tokens) and (repeat := _REPEAT.fullmatch(tokens[place])):
            if repeat[0][0] in "?*" or (repeat[1] in ("", "0") and repeat[0][0] == "{"):
                said = max(0, run - 1) if not _opens(token) else 0
            run = 0
        best = max(best, said)
    return best if weakest is None else min(weakest, best), place


def _opens(token: str) -> bool:
    return token.startswith("(") and not token.endswith(")")


def _is_literal(token: str) -> bool:
    if len(token) == 2 and token[0] == "\\":
        return not token[1].isalnum()
    return len(token) == 1 and token not in ".^$*+?|()[]{}0"  # a 0 stands for any digit, on a blur


def _is_far(token: str) -> bool:
    repeat = _REPEAT.fullmatch(token) if token else None
    if repeat is None:
        return False
    return repeat[0][0] in "*+" or (repeat[0][0] == "{" and (not repeat[3] or int(repeat[3]) > _NEAR_BOUND))


def _widened(token: str) -> str:
    repeat = _REPEAT.fullmatch(token)
    if repeat is None or not repeat[2] or not repeat[3] or int(repeat[3]) <= _NEAR_BOUND:
        return token
    least = int(repeat[1] or 0)
    return {0: "*", 1: "+"}.get(least, f"{{{least},}}")
