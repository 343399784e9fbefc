"""Of a notebook's file the lines that its cells printed are read, and cited as they stand there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from logtriage.intake.notebooks import learn_notebook
from logtriage.intake.overlays import learn_overlays, lifted
from logtriage.pipeline import triage

PRINTED = [
    "2026-03-04 10:00:00 step 10/400 loss 2.31\n",
    '2026-03-04 10:00:10 step 20/400 loss 2.25 "best"\n',
    "Traceback (most recent call last):\n",
    '  File "/content/run.py", line 31, in <module>\n',
    "    main()\n",
    "KeyError: 'labels'\n",
]
RAISED = [
    "\x1b[0;31m-----------------------------\x1b[0m",
    "\x1b[0;31mKeyError\x1b[0m                Traceback (most recent call last)",
    "\x1b[0;32m<ipython-input-4>\x1b[0m in \x1b[0;36m<cell line: 1>\x1b[0;34m()\x1b[0m\n----> 1 train()\n",
    "\x1b[0;31mKeyError\x1b[0m: 'labels'",
]


def notebook(outputs: list[dict[str, object]], indent: int = 1) -> str:
    source = ["# raise RuntimeError('CUDA out of memory. Tried to allocate 2.00 GiB')\n", "!python run.py"]
    cell = {"cell_type": "code", "execution_count": 4, "metadata": {}, "outputs": outputs, "source": source}
    said = {
        "cell_type": "markdown",
        "metadata": {},
        "source": ["OSError: [Errno 28] No space left on device"],
    }
    return json.dumps(
        {"cells": [said, cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=indent
    )


@pytest.mark.parametrize(
    "output",
    [
        {"name": "stdout", "output_type": "stream", "text": PRINTED},
        {"name": "stdout", "output_type": "stream", "text": "".join(PRINTED)},
        {"ename": "KeyError", "evalue": "'labels'", "output_type": "error", "traceback": RAISED},
    ],
)
@pytest.mark.parametrize("indent", [1, 2])
def test_what_a_cell_printed_is_what_the_job_died_of(
    tmp_path: Path, output: dict[str, object], indent: int
) -> None:
    text = notebook([output], indent)
    (tmp_path / "train.ipynb").write_text(text)
    found = triage(tmp_path, offline=True, workers=1).verdict
    assert found.failure_type == "code.key"
    cited = found.evidence[0]
    assert cited.file == "train.ipynb"
    assert "KeyError" in text.splitlines()[cited.line - 1]


def test_the_lines_are_those_that_were_printed() -> None:
    data = notebook([{"name": "stdout", "output_type": "stream", "text": PRINTED}]).encode()
    overlays = learn_overlays(data, is_cut=False)
    text, places = lifted(data, overlays)
    assert text.decode().splitlines(keepends=True)[: len(PRINTED) - 1] == PRINTED[:-1]
    lines = data.decode().splitlines()
    assert [json.loads(lines[place].strip().rstrip(",")) for place in places] == PRINTED


@pytest.mark.parametrize("text", ["", "{", '{\n "level": "info"\n}', "step 1\n", '[\n "cells": [\n'])
def test_other_texts_are_no_notebooks(text: str) -> None:
    assert learn_notebook(text.split("\n")) is None


@pytest.mark.parametrize(
    ("frames", "place"),
    [
        (
            [
                "Cell In[7], line 2",
                "      1 feed = Shards('/data')",
                "----> 2 fit(model, feed)",
                "",
                "File /home/eva/sft/loop.py:41, in fit(model, feed, *rest)",
                "     40 for row in feed:",
                "---> 41     loss = model(row['labels'])",
                "",
                "File /opt/conda/lib/python3.11/site-packages/rows/row.py:88, in Row.__getitem__(self, key)",
                "     87     if isinstance(key, str):",
                "---> 88         return self.fields[key]",
                "     89     return self.at(key)",
            ],
            "/home/eva/sft/loop.py:41 in fit",
        ),
        (["Cell In [7], line 2, in fit(feed)", "----> 2     row['labels']"], "Cell In [7]:2 in fit"),
        (
            [
                "<ipython-input-7-0fa3> in <module>",
                "      1 feed = Shards('/data')",
                "----> 2 fit(model, feed)",
                "~/sft/loop.py in fit(model, feed)",
                "     40     for row in feed:",
                "---> 41         loss = model(row['labels'])",
                "/usr/lib/python3.8/collections/__init__.py in __getitem__(self, key)",
                "---> 1010             raise KeyError(key)",
            ],
            "~/sft/loop.py:41 in fit",
        ),
    ],
)
def test_where_a_cell_raised_it_is_told_by_its_own_frames(
    tmp_path: Path, frames: list[str], place: str
) -> None:
    head = "KeyError                                  Traceback (most recent call last)"
    (tmp_path / "cell.txt").write_text(
        "\n".join([*PRINTED[:2], "-" * 75, head, *frames, "", "KeyError: 'labels'\n"])
    )
    found = triage(tmp_path, offline=True, workers=1).verdict
    assert (found.failure_type, found.evidence[0].raised_at) == ("code.key", place)
