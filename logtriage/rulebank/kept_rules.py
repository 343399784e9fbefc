"""The shipped rules as they were parsed and checked once, kept as JSON under the user's cache folder."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import astuple, fields
from pathlib import Path
from typing import Any

from logtriage.cache import cache_folder, keep, kept
from logtriage.model import SourceRole
from logtriage.rulebank.rule import Example, Mark, Mitigation, Role, Rule, Strength


def kept_rules(version: str) -> tuple[tuple[Rule, ...], dict[str, frozenset[str]]] | None:
    """The rules of a version, and what explains what; None where they are not kept, or not soundly."""
    try:
        document = json.loads(kept(_file(version)))
        rules = tuple(_rule_of_row(*row) for row in document["rules"])
        return rules, {cause: frozenset(effects) for cause, effects in document["explains"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def keep_rules(version: str, rules: Sequence[Rule], explains: Mapping[str, frozenset[str]]) -> None:
    """Write what :func:`kept_rules` reads."""
    names = [field.name for field in fields(Rule)]
    document = {
        "rules": [[getattr(rule, name) for name in names] for rule in rules],
        "explains": {cause: sorted(effects) for cause, effects in explains.items()},
    }
    keep(_file(version), json.dumps(document, ensure_ascii=True, default=astuple).encode())


def _file(version: str) -> Path:
    return cache_folder() / f"bank-{version}.json"


_ROLES = {each.value: each for each in Role}
_STRENGTHS = {each.value: each for each in Strength}
_MARKS = {each.value: each for each in Mark}
_SOURCES = {each.value: each for each in SourceRole}


def _rule_of_row(
    id: str,
    failure_type: str | None,
    role: str,
    strength: str,
    title: str,
    keywords: list[str],
    pattern: str,
    where: list[str],
    explains: list[str],
    mitigation: list[list[str]],
    references: list[str],
    examples: list[tuple[str, list[list[str]]]],
    counterexamples: list[str],
    marks: str | None,
    *rest: Any,
) -> Rule:
    """A rule whose fields stand in their order, as :func:`keep_rules` wrote them.

    By place, since a thousand rules are made before any line of a small job is read.
    """
    return Rule(
        id,
        failure_type,
        _ROLES[role],
        _STRENGTHS[strength],
        title,
        tuple(keywords),
        pattern,
        tuple(_SOURCES[each] for each in where) if where else (),
        tuple(explains),
        tuple(Mitigation(*each) for each in mitigation),
        tuple(references),
        tuple(Example(line, tuple((k, v) for k, v in captures)) for line, captures in examples),
        tuple(counterexamples),
        _MARKS[marks] if marks else None,
        *(*rest[:-1], tuple((name, value) for name, value in rest[-1])),
    )
