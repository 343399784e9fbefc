"""The modal behind `Wrong…`: what it really was, the line that shows it, what helped."""

from __future__ import annotations

import json
import re
from itertools import groupby
from typing import Any

from logtriage.apps.slack.incoming import Press, one_line
from logtriage.report import words
from logtriage.report.document import CitedLine, Verdict
from logtriage.report.slack_blocks import LABEL, Block, section, told
from logtriage.report.visible import visible
from logtriage.taxonomy import taxonomy

CALLBACK = "logtriage_correction"
_TYPE, _LINE, _OTHER_LINE, _HELPED = "type", "line", "other_line", "helped"
_PLACE = re.compile(r"\S.{0,500}:\d{1,12}")
_CLASSES = {
    "infrastructure": "Infrastructure",
    "framework": "Framework",
    "script": "The user's program",
    "operations": "Operations, or no failure",
}
MOST_LINES = 20


def correction_view(verdict: Verdict, press: Press) -> dict[str, Any]:
    """The modal for a verdict, which was redacted; the press is who opened it, and where."""
    said = words.type_name(verdict.verdict.failure_type)
    blocks: list[Block] = [
        section(f"The verdict says *{told(said, 200)}*."),
        _input(_TYPE, "What was it really?", _types(), is_needed=True),
    ]
    lines = cited(verdict)
    if lines:
        options = [_option(_shown(each), str(number)) for number, each in enumerate(lines)]
        blocks.append(_input(_LINE, "The line that shows it", _select(_LINE, "Cited lines", options=options)))
    place = {"type": "plain_text_input", "action_id": _OTHER_LINE, "max_length": 500,
             "placeholder": {"type": "plain_text", "text": "node-1/rank0.log:311"}}  # fmt: skip
    blocks.append(_input(_OTHER_LINE, "Or another line, as FILE:LINE", place))
    helped = {"type": "plain_text_input", "action_id": _HELPED, "max_length": 1000, "multiline": True}
    blocks.append(_input(_HELPED, "What helped?", helped))
    where = {
        "verdict": press.verdict,
        "channel": press.channel,
        "thread": press.thread,
        "url": press.reply_url,
    }
    return {
        "type": "modal",
        "callback_id": CALLBACK,
        "private_metadata": json.dumps(where),
        "title": {"type": "plain_text", "text": "Correct a verdict"},
        "submit": {"type": "plain_text", "text": "Correct"},
        "close": {"type": "plain_text", "text": "Cancel"},
        "blocks": blocks,
    }


def cited(verdict: Verdict) -> list[CitedLine]:
    """The lines that can be picked, in an order that is the same whenever it is asked for."""
    body = verdict.verdict
    lines = [*body.evidence, *(each for other in body.alternatives for each in other.evidence)]
    return list({(each.file, each.line): each for each in lines}.values())[:MOST_LINES]


def verdict_id(body: dict[str, Any]) -> str:
    """Which verdict the modal that was sent is about."""
    return str(_origin(body).get("verdict") or "")


def _origin(body: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((body.get("view") or {}).get("private_metadata") or "{}")
    return found


def correction(body: dict[str, Any], verdict: Verdict | None) -> Press | dict[str, str]:
    """What was sent, or what is wrong with it: a text for each field. `verdict` is not redacted."""
    view = body.get("view") or {}
    values = {
        name: value
        for fields in ((view.get("state") or {}).get("values") or {}).values()
        for name, value in fields.items()
    }
    failure_type = _picked(values.get(_TYPE))
    if failure_type not in taxonomy():
        return {_TYPE: "Pick a type."}
    place = one_line(str((values.get(_OTHER_LINE) or {}).get("value") or ""))
    if place and not _PLACE.fullmatch(place):
        return {_OTHER_LINE: "FILE:LINE is wanted, with FILE as the verdict names it: node-1/rank0.log:311"}
    picked = _picked(values.get(_LINE))
    if not place and picked and verdict is not None:
        lines = cited(verdict)
        if picked.isdigit() and int(picked) < len(lines):
            place = f"{lines[int(picked)].file}:{lines[int(picked)].line}"
    user = body.get("user") or {}
    where = _origin(body)
    channel = str(where.get("channel") or "")
    return Press(
        channel=channel,
        user=str(user.get("id") or ""),
        name=str(user.get("username") or user.get("name") or "")[:80],
        verdict=str(where.get("verdict") or ""),
        thread=str(where.get("thread") or ""),
        is_direct=channel.startswith("D"),
        failure_type=failure_type,
        evidence=place,
        mitigation=one_line(str((values.get(_HELPED) or {}).get("value") or ""))[:1000],
        reply_url=str(where.get("url") or ""),
    )


def _picked(value: dict[str, Any] | None) -> str:
    return str(((value or {}).get("selected_option") or {}).get("value") or "")


def _types() -> Block:
    kinds = sorted(
        taxonomy().types.values(), key=lambda kind: (list(_CLASSES).index(kind.failure_class), kind.id)
    )
    groups = [
        {
            "label": {"type": "plain_text", "text": _CLASSES[name]},
            "options": [_option(f"{kind.id}: {_means(kind.id)}", kind.id) for kind in members],
        }
        for name, members in groupby(kinds, lambda kind: kind.failure_class)
    ]
    return _select(_TYPE, "A failure type", option_groups=groups)


def _means(failure_type: str) -> str:
    return words.type_name(failure_type).rpartition(": ")[2]


def _shown(line: CitedLine) -> str:
    place = f"{visible(line.file.rpartition('/')[2], 24)}:{line.line}"
    return f"{place} {words.shortened(line.text.strip(), LABEL)[0]}"


def _option(text: str, value: str) -> Block:
    cut = text if len(text) <= LABEL else text[: LABEL - 1] + "…"
    return {"text": {"type": "plain_text", "text": cut, "emoji": False}, "value": value}


def _select(action: str, placeholder: str, **choices: Any) -> Block:
    return {
        "type": "static_select",
        "action_id": action,
        "placeholder": {"type": "plain_text", "text": placeholder},
        **choices,
    }


def _input(name: str, label: str, element: Block, *, is_needed: bool = False) -> Block:
    return {
        "type": "input",
        "block_id": name,
        "optional": not is_needed,
        "label": {"type": "plain_text", "text": label},
        "element": element,
    }
