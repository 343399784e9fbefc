"""A look that shows a job where it was hours before: dates of any language, bare rows, idle GPUs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path

import pytest
from scenes import bank_read_once, judged, steps

from logtriage.localize.local_dates import local_dates


@pytest.fixture(scope="module", autouse=True)
def _bank_is_read_once() -> Iterator[None]:
    with bank_read_once():
        yield


@pytest.mark.parametrize(
    "text",
    [
        "Sa 31. Jan 13:42:27 CET 2026",
        "sam. 31 janv. 2026 13:42:27 CET",
        "sáb 31 ene 2026 13:42:27 CET",
        "sab 31 gen 2026, 13:42:27, CET",
        "Сб 31 янв 2026 13:42:27 MSK",
        "2026年 01月 31日 星期六 13:42:27 CST",
        "2026年  1月 31日 土曜日 13:42:27 JST",
        "2026. 01. 31. (토) 13:42:27 KST",
    ],
)
def test_what_date_prints_in_other_languages_is_a_time(text: str) -> None:
    assert list(local_dates(text)) == [datetime(2026, 1, 31, 13, 42, 27)]


@pytest.mark.parametrize(
    "text", ["", "31 files 13:42:27 x 2026", "99. Jan 13:42:27 CET 2026", "a" * 80, "1 " * 40, "::" * 1000]
)
def test_what_is_no_date_is_none(text: str) -> None:
    assert list(local_dates(text)) == []


RUN = steps(60, every=10.0)  # 08:00:00 to 08:09:50 on 2026-01-31
STANDS: dict[str, dict[str, str]] = {
    "the seconds of the last line, and a pod that runs": {
        "out.log": RUN,
        "look.txt": "$ date -u\nSat Jan 31 13:17:02 UTC 2026\n$ kubectl get pod\nsft-0 1/1 Running 0 6h2m\n"
        "$ kubectl logs sft-0 --tail=1 --timestamps | cut -c1-20\n2026-01-31T08:09:50.\n",
    },
    "columns of ps without their heading": {
        "out.log": RUN,
        "look.txt": "[ann@cn-4 run]$ ps -u ann -o pid,etime,stat,cmd --no-headers\n"
        "   7001    05:12:40 Rl python train.py\n",
    },
    "a list that tells no day": {
        "run/out.log": RUN,
        "look.txt": "Sa 31. Jan 13:17:02 CET 2026\n-rw-r--r-- 1 ann lab 9120 08:09:50 run/out.log\n",
    },
}
RUNS: dict[str, dict[str, str]] = {
    "seconds of a log that ended, where nothing is there any more": {
        "out.log": RUN,
        "look.txt": "$ date -u\nSat Jan 31 13:17:02 UTC 2026\n$ tail -n1 out.log | cut -c1-19\n"
        "2026-01-31 08:09:50\n",
    },
    "another zone": {
        "out.log": RUN,
        "look.txt": "Sa 31. Jan 13:09:55 CET 2026\nsft-0  1/1  Running  0  32m\n2026-01-31 08:09:50\n",
    },
    "a clock behind the rows of ps": {
        "out.log": RUN,
        "look.txt": "[ann@cn-4 run]$ ps -u ann -o pid,etime,stat,cmd --no-headers\n"
        "   7001       12:40 Rl python train.py\n[ann@cn-4 run]$ uptime\n up 08:22:01 now\n",
    },
}  # fmt: skip


@pytest.mark.parametrize("files", STANDS.values(), ids=STANDS)
def test_a_look_hours_later_shows_that_the_job_stands(tmp_path: Path, files: Mapping[str, str]) -> None:
    assert judged(tmp_path, files).verdict.failure_type == "hang.silent"


@pytest.mark.parametrize("files", RUNS.values(), ids=RUNS)
def test_a_look_that_shows_no_such_thing(tmp_path: Path, files: Mapping[str, str]) -> None:
    assert judged(tmp_path, files).verdict.failure_type == "none.running"


def bar(done: int, seconds: int) -> str:
    minutes, left = divmod(seconds, 60)
    clocks = f"{minutes:02d}:{left:02d}<11:00,  1.21 shards/s"
    return f"Packing shards (workers=8):  {done // 9}%|███   | {done}/900 [{clocks}]\n"


@pytest.mark.parametrize(("elapsed", "is_hung"), [("05:40:10", True), ("04:20", False)])
def test_a_bar_of_no_steps_stands_if_its_process_is_there_for_hours(
    tmp_path: Path, elapsed: str, is_hung: bool
) -> None:
    files = {
        "prepare.log": "".join(bar(12 * number, 10 * number) for number in range(1, 25)),
        "ps.txt": f"  PID     ELAPSED STAT CMD\n  411    {elapsed} S    python pack.py\n",
    }
    assert (judged(tmp_path, files).verdict.failure_type == "hang.silent") == is_hung


def devices(idle: int | None, *, count: int = 4) -> str:
    return "".join(
        f"{index}, {0 if index == idle else 100} %, {60 if index == idle else 95}.25 W, 41022 MiB\n"
        for index in range(count)
    )


@pytest.mark.parametrize(("idle", "ranks"), [(2, [2]), (None, [])])
def test_the_rank_whose_gpu_alone_is_idle_never_came_where_its_peers_spin(
    tmp_path: Path, idle: int | None, ranks: list[int]
) -> None:
    # And whoever cancels a job that he saw standing ends what had ended before.
    files = {
        "slurm-91.out": RUN + "slurmstepd: error: *** JOB 91 ON cn-4 CANCELLED AT 2026-01-31T14:10:00 ***\n",
        "look.txt": "Sat Jan 31 14:08:31 UTC 2026\n-rw-r--r-- 1 ann lab 9120 Jan 31 08:09 slurm-91.out\n"
        + devices(idle),
    }
    verdict = judged(tmp_path, files).verdict
    assert verdict.failure_type == "hang.silent"
    assert list(verdict.culprits.ranks) == ranks


def of_device(number: int, *, is_short: bool) -> str:
    text = f"device_id: {number}, rank_size: 4, samples: 900\n" + "".join(
        f"epoch: {epoch} step: 225, loss is 2.{epoch}\nepoch time: 90.{epoch} s\n" for epoch in range(1, 20)
    )
    return text.rsplit("epoch time", 1)[0] if is_short else text


@pytest.mark.parametrize("short", [None, 3])
def test_devices_of_one_machine_that_all_tell_how_many_they_are_are_ranks(
    tmp_path: Path, short: int | None
) -> None:
    files = {f"device{n}/train.log": of_device(n, is_short=n == short) for n in range(4)}
    rows = "".join(f"-rw-r----- 1 root root 900 08:30:0{n} device{n}/train.log\n" for n in range(4))
    files["look.txt"] = f"Sat Jan 31 14:08:31 CST 2026\n{rows}"
    files["device0/train.log"] = "[INFO] 2026-01-31 08:00:00 start\n" + files["device0/train.log"]
    verdict = judged(tmp_path, files).verdict
    assert verdict.failure_type == "hang.silent"
    assert list(verdict.culprits.ranks) == ([] if short is None else [short])
