"""What is one job below a folder, and whether its logs have changed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from logtriage.fleet.fingerprint import fingerprint
from logtriage.fleet.listing import jobs_below

LAYOUTS = [
    pytest.param(
        ["4812/rank0.log", "4813/rank0.log"], {"4812": ["4812"], "4813": ["4813"]}, id="a folder a job"
    ),
    pytest.param(
        ["ann/gpt-4812/logs/rank0.log", "ann/gpt-4813/logs/rank0.log", "bo/x/attempt_0/0/stdout.log"],
        {"ann/gpt-4812": ["ann/gpt-4812"], "ann/gpt-4813": ["ann/gpt-4813"], "bo/x": ["bo/x"]},
        id="users, and folders inside a job",
    ),
    pytest.param(
        ["slurm-4812.out", "slurm-4812.err", "slurm-4813.out", "README.md"],
        {"4812": ["slurm-4812.err", "slurm-4812.out"], "4813": ["slurm-4813.out"]},
        id="files of Slurm jobs",
    ),
    pytest.param(
        ["slurm-12_1.out", "slurm-12_2.out"],
        {"12_1": ["slurm-12_1.out"], "12_2": ["slurm-12_2.out"]},
        id="an array",
    ),
    pytest.param(
        ["log-gpt_800209_0.out", "log-gpt_800209_1.out", "log-gpt_800210_0.out", "slurm-800209.out"],
        {"800209": ["log-gpt_800209_0.out", "log-gpt_800209_1.out", "slurm-800209.out"],
         "800210": ["log-gpt_800210_0.out"]},
        id="a file a task",
    ),
    pytest.param(["rank0.log", "rank1.log"], {"root": [""]}, id="the folder is one job"),
    pytest.param(["node-a/rank0.log", "node-b/rank1.log"], {"root": [""]}, id="one job of two nodes"),
    pytest.param(
        [f"logs/job-{job}/n12{node}/rank{node}.log" for job in (1, 2) for node in (1, 2)],
        {"logs/job-1": ["logs/job-1"], "logs/job-2": ["logs/job-2"]},
        id="a folder of logs, machines inside jobs",
    ),
    pytest.param(
        ["job1/torchrun.log", "job1/none_x1y2/attempt_0/0/stdout.log", "cron.log", "job2/out.txt"],
        {"job1": ["job1"], "job2": ["job2"]},
        id="a stray log beside jobs",
    ),
    pytest.param(
        ["2026-11-28/a/train.log", "2026-11-29/b/out.txt"],
        {"2026-11-28/a": ["2026-11-28/a"], "2026-11-29/b": ["2026-11-29/b"]},
        id="a folder a day",
    ),
    pytest.param(
        ["job-1/worker_12345.log", "job-1/worker_12346.log", "job-1/model.pt", "job-2/model.pt"],
        {"job-1": ["job-1"]},
        id="process numbers are no jobs, a folder without logs is none",
    ),
    pytest.param(
        ["exp/slurm-100.out", "exp/slurm-101.out", "exp/logs/rank0.log"],
        {"exp": ["exp"]},
        id="a folder whose job was queued twice",
    ),
    pytest.param(
        ["ann/notes.txt", "ann/config.json", "ann/a-4812/rank0.log", "ann/b-4813/rank0.log"],
        {"ann/a-4812": ["ann/a-4812"], "ann/b-4813": ["ann/b-4813"]},
        id="notes beside jobs",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("files", "expected"), LAYOUTS)
def test_jobs_are_told_apart(tmp_path: Path, files: list[str], expected: dict[str, list[str]]) -> None:
    root = tmp_path / "root"
    for name in files:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x\n")
    found = jobs_below(root)
    assert {job.id: [path[len(str(root)) + 1 :] for path in job.paths] for job in found.jobs} == expected


def test_a_link_to_another_job_is_no_job(tmp_path: Path) -> None:
    (tmp_path / "job-1").mkdir()
    (tmp_path / "job-1" / "rank0.log").write_text("x")
    (tmp_path / "latest").symlink_to("job-1")
    (tmp_path / "job-1" / "loop").symlink_to("..")
    assert [job.id for job in jobs_below(tmp_path).jobs] == ["job-1"]


def test_names_that_are_no_text_are_shown_and_still_found(tmp_path: Path) -> None:
    folder = os.fsencode(tmp_path) + b"/job-\xff\xfe"
    os.mkdir(folder)  # noqa: PTH102 - pathlib takes no bytes
    Path(os.fsdecode(folder), "rank0.log").write_text("x")
    (job,) = jobs_below(tmp_path).jobs
    assert job.id == "job-\\xff\\xfe"
    assert Path(job.paths[0]).is_dir()


def test_a_fingerprint_sees_what_changes(tmp_path: Path) -> None:
    log = tmp_path / "job" / "rank0.log"
    log.parent.mkdir()
    log.write_bytes(b"a" * 100_000)
    paths = (str(log.parent),)
    first = fingerprint(paths)
    assert fingerprint(paths) == first
    assert (first.files, first.bytes) == (1, 100_000)
    seen = {first.digest}
    old = log.stat()

    def changed() -> None:
        told = fingerprint(paths).digest
        assert told not in seen
        seen.add(told)

    with log.open("ab") as file:
        file.write(b"more\n")
    changed()
    with log.open("r+b") as file:  # same size, same time, another head
        file.write(b"b")
    os.utime(log, ns=(old.st_atime_ns, old.st_mtime_ns))
    changed()
    (log.parent / "rank1.log").write_text("")
    changed()
    (log.parent / "rank1.log").rename(log.parent / "rank2.log")
    changed()
    assert fingerprint(paths, "FAILED").digest not in seen


def test_a_pipe_in_a_job_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "rank0.log")
    assert fingerprint((str(tmp_path),)).bytes == 0
