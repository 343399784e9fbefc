"""Secrets in dumps of arguments, in lists of words, in calls and columns; settings with their words stay."""

from __future__ import annotations

import pytest
from growth import grows_evenly
from lines_of_dumps import DUMPS, KEYS, LATER, LISTS, PLAIN, SETTINGS, SHORT
from lines_of_secrets import assert_hidden

from logtriage.redaction import Redaction


@pytest.mark.parametrize("told", [*DUMPS, *LISTS, *KEYS, *SETTINGS, *SHORT, *LATER])
@pytest.mark.parametrize("around", ["{}", "2026-03-01 09:00:31 ERROR [rank1] {}"])
def test_what_programs_write_of_a_secret_is_hidden(told: str, around: str) -> None:
    assert_hidden(around.format(told))


@pytest.mark.parametrize("line", PLAIN)
def test_settings_with_words_of_secrets_are_sent_as_they_are(line: str) -> None:
    assert Redaction().redact(line) == line


def test_a_whole_dump_of_settings_is_sent_as_it_is() -> None:
    redaction = Redaction()
    assert redaction.redact_lines(PLAIN) == PLAIN and redaction.counts == {}


@pytest.mark.parametrize(
    "unit",
    [
        "hf_token ....",
        "| db_password ",
        "['curl', ",
        "db_password   ",
        '"HF_TOKEN", "',
        "keys: {",
        "key=str(",
    ],
)
def test_hostile_dumps_take_linear_time(unit: str) -> None:
    assert grows_evenly(lambda size: unit * size, lambda text: Redaction().redact(text), 800)
