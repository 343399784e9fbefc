"""The one GPU that is idle while its peers spin, of a job of which one rank alone writes."""

from __future__ import annotations

from pathlib import Path

import pytest
from scenes import clock, judged

ROWS = "index, utilization.gpu [%], power.draw [W]\n"


@pytest.mark.parametrize(("labelled", "ranks"), [("[g7:0/4] ", (1,)), ("", (1,)), ("World size 2", ())])
def test_the_rank_whose_gpu_alone_is_idle_is_waited_for(
    tmp_path: Path, labelled: str, ranks: tuple[int, ...]
) -> None:
    log = "".join(
        f"{labelled if '[' in labelled else ''}{clock(20.0 * at)} (trainer:7) INFO: step {at} loss 2.5\n"
        for at in range(1, 30)
    )
    log = f"Rank of current process: 0. World size: 2\n{log}" if "World" in labelled else log
    rows = "".join(f"{gpu}, {0 if gpu == 1 else 100} %, 90.10 W\n" for gpu in range(4))
    look = (
        f"kim@g7:~$ date\nSat Jan 31 16:41:10 UTC 2026\nkim@g7:~$ nvidia-smi\n{ROWS}{rows}"
        f"kim@g7:~$ ps -C python3 -o pid,stat,etime,cmd\n  PID STAT     ELAPSED CMD\n"
        f" 4112 Sl      08:41:21 python3 train.py\n"
    )
    found = judged(tmp_path, {"train.log": log, "look.txt": look}).verdict
    assert (found.failure_type, tuple(found.culprits.ranks)) == ("hang.silent", ranks)
