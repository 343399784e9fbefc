"""Runs that a tracker or a notebook's server calls ended, though their last lines are steps."""

from __future__ import annotations

from pathlib import Path

import pytest
from scenes import judged, steps

ASKED = ">>> run = api.run('lab/seg/x1')\n>>> run.state, run.summary['_step']\n{}\n"


@pytest.mark.parametrize(
    ("files", "kind"),
    [
        ({"train.log": steps(40), "asked.txt": ASKED.format("('crashed', 40)")}, "unknown"),
        ({"train.log": steps(40), "asked.txt": ASKED.format("('running', 40)")}, "none.running"),
        (
            {"train.log": steps(40) + "The kernel appears to have died. It will restart automatically.\n"},
            "unknown",
        ),
        # it made steps behind what its server said
        (
            {
                "train.log": steps(40)
                + "[W 08:01:12.500 NotebookApp] KernelRestarter: restarting kernel (1/5)\n"
                + steps(60, first=41, at=90.0)
            },
            "none.running",
        ),
    ],
)
def test_what_somebody_knows_to_have_ended_does_not_run(
    tmp_path: Path, files: dict[str, str], kind: str
) -> None:
    assert judged(tmp_path, files).verdict.failure_type == kind
