"""A verdict as it may leave the machine: no secret in any of its texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from logtriage.redaction import Redaction
from logtriage.report.document import Verdict, read_verdict

_BETWEEN = "\n\x00\n"


def redacted(verdict: Verdict, redaction: Redaction | None = None) -> Verdict:
    """The verdict with placeholders for secrets, e-mail addresses and user names in paths.

    What one text gives away is hidden in all of them. The id stays. With a `redaction` its placeholders are
    used, and what it hides besides is hidden.
    """
    document = verdict.to_dict()
    redaction = redaction or Redaction()
    # Each text once: most of a document's are file names, said again and again.
    texts = list(dict.fromkeys(_texts(document)))
    hidden: list[str] = []
    if not any("PRIVATE KEY" in text for text in texts):
        # All at once: one by one, hundreds of short texts take fifty times as long. Nothing but an open key
        # block goes on over the marks between them.
        hidden = redaction.redact(_BETWEEN.join(texts)).split(_BETWEEN)
    if len(hidden) != len(texts):
        for text in texts:
            redaction.learn(text)
        hidden = [redaction.redact(text) for text in texts]
    return read_verdict(_hidden(document, dict(zip(texts, hidden, strict=True))))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)


def _hidden(value: Any, shown: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return shown[value]
    if isinstance(value, dict):
        return {key: _hidden(each, shown) for key, each in value.items()}
    return [_hidden(each, shown) for each in value] if isinstance(value, list) else value
