"""Reports of machines' states, held against each other."""

from __future__ import annotations

from pathlib import Path

import pytest
from scenes import WATCHDOG, judged, steps

from logtriage.report.document import VerdictBody

IBSTAT = (
    "CA 'mlx5_0'\n\tCA type: MT4129\n\tNumber of ports: 1\n\tPort 1:\n\t\tState: Active\n"
    "\t\tPhysical state: LinkUp\n\t\tRate: 400\n\t\tLink layer: InfiniBand\n"
    "CA 'mlx5_1'\n\tCA type: MT4129\n\tNumber of ports: 1\n\tPort 1:\n\t\tState: {state}\n"
    "\t\tPhysical state: {physical}\n\t\tRate: {rate}\n\t\tLink layer: InfiniBand\n"
)
DOWN = IBSTAT.format(state="Down", physical="Polling", rate=10)
UP = IBSTAT.format(state="Active", physical="LinkUp", rate=400)
COUNTERS = (
    "# Port extended counters: Lid 12 port 1 (CapMask: 0x5300)\nPortSelect:......................1\n"
    "SymbolErrorCounter:..............{}\nLinkErrorRecoveryCounter:........{}\n"
)


def of_reports(folder: Path, reports: list[str]) -> VerdictBody:
    """Three nodes with two ranks each, of which all time out alike, and a report of each node."""
    files = {
        f"node-{rank // 2}/rank{rank}.log": steps(30) + WATCHDOG.format(rank=rank, op="ALLREDUCE")
        for rank in range(6)
    }
    return judged(folder, files | {f"node-{n}/state.txt": text for n, text in enumerate(reports)}).verdict


@pytest.mark.parametrize("usual", [DOWN, COUNTERS.format(3, 2)])
def test_what_all_machines_show_alike_is_no_cause(tmp_path: Path, usual: str) -> None:
    body = of_reports(tmp_path, [usual] * 3)
    assert body.failure_type == "collective.timeout"
    assert body.culprits.hosts == ()


@pytest.mark.parametrize(
    ("odd", "others"), [(DOWN, UP), (COUNTERS.format(65535, 212), COUNTERS.format(3, 2))]
)
def test_the_machine_whose_report_differs_is_named(tmp_path: Path, odd: str, others: str) -> None:
    body = of_reports(tmp_path, [others, odd, others])
    assert (body.failure_type, body.culprits.hosts) == ("network.infiniband", ("node-1",))


def test_a_list_of_core_dumps_names_the_crash_that_nothing_else_tells(tmp_path: Path) -> None:
    listed = (
        "TIME                          PID UID GID SIG     COREFILE EXE                  SIZE\n"
        "Sat 2026-01-31 08:01:00 UTC  4242   0   0 SIGSEGV present  /usr/bin/python3.11  1.2G\n"
    )
    files = {f"rank{rank}.log": steps(30) for rank in range(2)}
    body = judged(tmp_path, {**files, "node-1/coredumps.txt": listed}).verdict
    assert body.failure_type == "process.native_crash"
