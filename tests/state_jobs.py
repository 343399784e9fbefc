"""Jobs whose own log knows a consequence only, and what tools reported of their three hosts afterwards."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from scenes import clock, first, judged, steps

HOSTS = ("cn-11", "cn-12", "cn-13")
BUSES = ("0000:2a:00", "0000:c7:00")
ANSWERS = tuple[str, tuple[int, ...], tuple[str, ...], str]


def console() -> str:
    """Two ranks a host, whose GPUs NCCL names; all of them time out alike."""
    told = [
        f"{host}:{50 + at}:{50 + at} [{at % 2}] NCCL INFO ncclCommInitRank comm 0x5{at} rank {at} nranks 6 "
        f"cudaDev {at % 2} nvmlDev {at % 2} busId {('2a000', 'c7000')[at % 2]} commId 0x7 - Init COMPLETE\n"
        for at, host in enumerate(host for host in HOSTS for _ in range(2))
    ]
    late = [
        f"{clock(700 + rank)} ERROR [Rank {rank}] Watchdog caught collective operation timeout: "
        f"WorkNCCL(SeqNum=61, OpType=ALLREDUCE, NumelIn=9, NumelOut=9, Timeout(ms)=600000) ran for 600011 "
        "milliseconds before timing out.\n"
        for rank in range(6)
    ]
    return "".join(told) + steps(40) + "".join(late)


def triaged(folder: Path, reports: Mapping[str, str | bytes]) -> ANSWERS:
    verdict = judged(folder, {"train.out": console(), **reports})
    body = verdict.verdict
    return body.failure_type, body.culprits.ranks, body.culprits.hosts, first(verdict)[0]


NOBODY = ("collective.timeout", (), (), "train.out")


def of_hosts(name: str, healthy: str, bad: str, host: str = "cn-12") -> dict[str, str]:
    return {name.format(host=each): bad if each == host else healthy for each in HOSTS}
