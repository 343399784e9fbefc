"""A disk that cannot keep up, shown by iostat beside a log with stretches of slow steps."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from scenes import bank_read_once, first, judged, steps


@pytest.fixture(scope="module", autouse=True)
def _bank_is_read_once() -> Iterator[None]:
    with bank_read_once():
        yield


NEW = """avg-cpu:  %user   %nice %system %iowait  %steal   %idle
           3.02    0.00    1.10   {iowait}    0.00   41.00

Device            r/s     rMB/s   rrqm/s  %rrqm r_await rareq-sz     w/s     wMB/s  w_await  aqu-sz  %util
nvme0n1          2.00      0.10     0.00   0.00    0.22    20.40    1.00      0.01     0.10    0.00    0.40
sdc            240.00   {read}     0.00   0.00  402.10   110.40    3.00      0.20     0.90   61.20  {busy}
"""
OLD = """avg-cpu:  %user   %nice %system %iowait  %steal   %idle
           3.02    0.00    1.10   {iowait}    0.00   41.00

Device:         rrqm/s   wrqm/s     r/s     w/s    rkB/s    wkB/s avgrq-sz avgqu-sz   await  svctm  %util
sdc               0.00     1.00  190.00    2.00 {read}    20.00   180.10    40.20  210.00   5.20  {busy}
"""
SLOW = "".join(
    steps(6, first=1 + 12 * number, at=72.0 * number)
    + steps(6, first=7 + 12 * number, at=12 + 72.0 * number, every=10)
    for number in range(6)
)


@pytest.mark.parametrize("form", [NEW, OLD])
def test_steps_that_wait_for_a_disk_are_slow_for_their_data(tmp_path: Path, form: str) -> None:
    shown = form.format(iowait="54.88", read="31.40", busy="99.80")
    verdict = judged(tmp_path, {"train.log": SLOW, "iostat.txt": shown})
    assert verdict.verdict.failure_type == "slow.data"
    assert first(verdict)[1].startswith("sdc ")


@pytest.mark.parametrize(
    ("log", "iowait", "read", "busy"),
    [
        (steps(80), "54.88", "31.40", "99.80"),  # as quick as ever
        (SLOW, " 2.10", "31.40", "99.80"),  # nobody waits
        (SLOW, "54.88", "31.40", "35.00"),  # not this disk
        (SLOW, "54.88", " 0.01", "99.80"),  # it writes
    ],
)
def test_a_busy_disk_alone_slows_nothing(tmp_path: Path, log: str, iowait: str, read: str, busy: str) -> None:
    shown = NEW.format(iowait=iowait, read=read, busy=busy)
    assert judged(tmp_path, {"train.log": log, "iostat.txt": shown}).verdict.failure_type == "none.running"
