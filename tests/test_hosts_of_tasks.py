"""Where the tasks of a job run, as `hostname` printed it for each of them."""

from __future__ import annotations

import pytest
from scenes import findings, reading, steps

TASKS = ["0: ox-7", "1: ox-7", "3: ox-9", "2: ox-9"]
TAGGED = [f"[1,{rank}]<stdout>:ox-{7 + rank // 2}.lan" for rank in range(4)]


@pytest.mark.parametrize(
    ("rows", "hosts"),
    [
        (TASKS, {0: "ox-7", 1: "ox-7", 2: "ox-9", 3: "ox-9"}),
        (TAGGED, {0: "ox-7.lan", 1: "ox-7.lan", 2: "ox-8.lan", 3: "ox-8.lan"}),
        # one machine, tasks that are missing, words that are no hosts, a number that came twice
        ([row.replace("9", "7") for row in TASKS], {}),
        (TASKS[:3], {}),
        ([f"{rank}: ready" for rank in range(4)], {}),
        ([f"{rank}: 0.{rank}" for rank in range(4)], {}),
        ([f"{rank}: step_{rank}" for rank in range(4)], {}),
    ],
)
def test_rows_of_hostname_tell_where_each_rank_runs(rows: list[str], hosts: dict[int, str]) -> None:
    told = "\n".join(["+ srun -l hostname", *rows])
    found = findings(reading("job.out", f"{told}\n{steps(5)}")).topology.host_of_rank
    assert dict(found) == hosts
