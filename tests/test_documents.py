"""Pages, programs, data and notes beside logs are not what the job died of; alone, a pasted page is a log."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from logtriage.intake.documents import is_document, is_note
from logtriage.intake.folder import discover
from logtriage.model import SourceRole
from logtriage.pipeline import triage

LOG = """2026-04-02 11:20:31 INFO starting
2026-04-02 11:20:41 INFO step 1/200 loss 2.71
2026-04-02 11:20:51 INFO step 2/200 loss 2.65
Traceback (most recent call last):
  File "/srv/run.py", line 40, in <module>
    main()
ZeroDivisionError: division by zero
"""
PAGE = """# Trainer
## When it fails
- `torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.00 GiB`: use smaller batches.
- `NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.`: call the hotline.
  ```
  Traceback (most recent call last):
    File "app.py", line 3, in <module>
  RuntimeError: CUDA error: device-side assert triggered
  ```
  Set CUDA_LAUNCH_BLOCKING=1 and look for the index.
## Licence
Do as you like.
"""
SAID = "I get torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 9.00 GiB. What now?"
DATA = {
    "data/chat.jsonl": {"messages": [{"role": "user", "content": SAID}]},
    "sft.jsonl": {"instruction": SAID, "output": "Take less."},
    "dpo/train.jsonl": {"prompt": SAID, "chosen": "Take less.", "rejected": "Buy more."},
}
PROGRAM = f'import torch\n\nraise RuntimeError("{SAID}")\n'
BESIDE = {
    "README.md": PAGE,
    "docs/operations.rst": PAGE,
    "CHANGELOG": "1.3: no more OSError: [Errno 28] No space left on device when checkpoints are rotated\n",
    "app.py": PROGRAM,
    "job.sbatch": "#!/bin/bash\n# slurmstepd: error: *** JOB 7 CANCELLED DUE TO TIME LIMIT ***\nsrun app\n",
    "conf/a.yaml": "trainer:\n  steps: 10\n  on_failure: 'RuntimeError: NCCL error'\n",
    "notes.txt": "last month node 7 had OSError: [Errno 28] No space left on device\nask them again\n",
    **{name: json.dumps(record) + "\n" for name, record in DATA.items()},
}


def a_project(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(BESIDE[name] * (30 if name.endswith(".jsonl") else 1))


@pytest.mark.parametrize("name", BESIDE)
def test_what_lies_beside_a_log_is_not_what_the_job_died_of(tmp_path: Path, name: str) -> None:
    (tmp_path / "train.log").write_text(LOG)
    a_project(tmp_path, name)
    found = triage(tmp_path, offline=True, workers=1).verdict
    assert found.failure_type == "code.zero_division"
    assert {each.file for each in found.evidence} == {"train.log"}


def test_a_whole_project_is_told_from_its_log(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text(LOG)
    a_project(tmp_path, *BESIDE)
    found = triage(tmp_path, offline=True, workers=1).verdict
    assert (found.failure_type, found.evidence[0].file) == ("code.zero_division", "train.log")


def test_a_page_that_is_alone_is_read(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text(PAGE)
    assert [source.role for source in discover(tmp_path).sources] == [SourceRole.MERGED]


def test_a_log_that_was_pasted_into_a_page_is_a_log_beside_others_too(tmp_path: Path) -> None:
    (tmp_path / "issue.md").write_text("# It dies\nEvery night.\n```\n" + LOG + "```\n")
    (tmp_path / "dmesg.log").write_text(
        "[  812.000000] usb 1-1: new device\n[  813.000000] usb 1-2: new device\n"
    )
    assert triage(tmp_path, offline=True, workers=1).verdict.failure_type == "code.zero_division"


@pytest.mark.parametrize(
    "record",
    [
        {"time": "2026-04-02T11:20:31Z", "level": "ERROR", "text": SAID},
        {"ts": 1775128831.2, "content": SAID},
        {"message": SAID, "source": "rank 3"},
        {"step": 4, "labels": 3, "loss": 2.5},
        {"name": "a", "size": 3},
    ],
)
def test_records_of_a_log_are_no_data_set(record: dict[str, object]) -> None:
    assert not is_document("out.jsonl", (json.dumps(record) + "\n").encode() * 30)


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("notes.txt", True), ("run1/ops-notes.txt", True), ("TODO", True), ("notes_2026-04.txt", True),
        ("footnotes/train.log", False), ("notebook.log", False), ("annotate.out", False),
        ("notes/train.log", False),
    ],
)  # fmt: skip
def test_notes_are_called_so(file: str, expected: bool) -> None:
    assert is_note(file) is expected
