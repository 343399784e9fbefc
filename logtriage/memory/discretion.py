"""What is kept for good holds no secret."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from logtriage.memory.ledger import Diagnosis
from logtriage.redaction import Redaction


def without_secrets(text: str) -> str:
    """The text as it may be shared: for each secret a word with a digit, which a pattern leaves open."""
    return _hidden([text])[0]


def discreet(diagnosis: Diagnosis) -> Diagnosis:
    """The diagnosis as it may be kept: what one of its texts gives away is hidden in all."""
    cited = [each.text for each in diagnosis.evidence]
    title, mitigation, *texts = _hidden([diagnosis.title, diagnosis.mitigation, *cited])
    evidence = tuple(replace(each, text=text) for each, text in zip(diagnosis.evidence, texts, strict=True))
    return replace(diagnosis, title=title, mitigation=mitigation, evidence=evidence)


def _hidden(texts: Sequence[str]) -> list[str]:
    redaction = Redaction()
    for text in texts:
        redaction.learn(text)
    return [_in_words(redaction.redact(text)) for text in texts]


def _in_words(text: str) -> str:
    text = re.sub(r"<user-(\d+)>", r"/home/redacted\1", text)
    return re.sub(r"<(?:secret|email)-(\d+)>", r"redacted\1", text)
