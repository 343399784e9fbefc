"""`logtriage doctor`: what is configured, reachable and missing, with the mend for each."""

from __future__ import annotations

from typing import Annotated

import typer

from logtriage.apps.console import answer
from logtriage.report.visible import visible


def doctor(
    json: Annotated[bool, typer.Option("--json", help="A JSON list on standard output.")] = False,
    offline: Annotated[bool, typer.Option("--offline", help="Ask no server and no scheduler.")] = False,
) -> None:
    """What is configured, reachable and missing, and how to mend it.

    Exit status: 0, or 1 where something that is configured does not work.
    """
    from logtriage.apps.checks import checks

    found = []
    for check in checks(offline=offline):
        found.append(check)
        if not json:
            answer(f"{check.state:6}  {visible(check.name, 60):20}  {visible(check.says, 600)}\n")
            if check.mend and check.state != "ok":
                answer(f"{'':6}  {'':20}  → {visible(check.mend, 300)}\n")
    broken = [check for check in found if check.state == "broken"]
    if json:
        from dataclasses import asdict
        from json import dumps

        answer(dumps([asdict(check) for check in found], ensure_ascii=True, indent=2) + "\n")
    if broken:
        raise typer.Exit(1)
