"""Secrets are known by the nouns beside them, whatever the form; what only holds such words is sent."""

from __future__ import annotations

import pytest
from growth import grows_evenly
from lines_of_secrets import LATE, ORDINARY, TOLD, assert_hidden

from logtriage.redaction import Redaction


@pytest.mark.parametrize("told", [*TOLD, *LATE])
@pytest.mark.parametrize("around", ["{}", "2026-03-01 09:00:31 ERROR [rank1] {}", "x.py:17: note ({})"])
def test_what_a_noun_gives_away_is_hidden_there_and_wherever_it_stands(told: str, around: str) -> None:
    assert_hidden(around.format(told))


@pytest.mark.parametrize("line", ORDINARY)
def test_ordinary_lines_are_sent_as_they_are(line: str) -> None:
    assert Redaction().redact(line) == line


def test_a_whole_log_of_ordinary_lines_is_sent_as_it_is() -> None:
    redaction = Redaction()
    assert redaction.redact_lines(ORDINARY) == ORDINARY and redaction.counts == {}


@pytest.mark.parametrize(
    "unit",
    [
        "password ",
        "token_",
        "auth=(",
        "secret 'a",
        "api key x7 ",
        "bind_pw",
        "aB3dE5fG7h",
        "AUTH ",
        'send "a',
        "key->",
    ],
)
def test_hostile_texts_take_linear_time(unit: str) -> None:
    assert grows_evenly(lambda size: unit * size, lambda text: Redaction().redact(text), 800)
