"""Reports of machines' states beside a job whose own log knows a consequence only."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from scenes import bank_read_once, clock
from state_jobs import BUSES, NOBODY, of_hosts, triaged

from logtriage.intake.state_reports import statements
from logtriage.model import Line


@pytest.fixture(scope="module", autouse=True)
def _bank_is_read_once() -> Iterator[None]:
    with bank_read_once():
        yield


def queried(**of_second: str) -> str:
    """`nvidia-smi -q` of two GPUs, made when all was over."""
    text = f"==============NVSMI LOG==============\n\nTimestamp : {clock(800)[:19]}\nAttached GPUs : 2\n"
    for at, bus in enumerate(BUSES):
        told = of_second if at else {}
        text += (
            f"GPU 0000{bus.upper()}.0\n    Product Name : {told.get('name', 'NVIDIA A100')}\n"
            f"    GPU Recovery Action           : {told.get('action', 'None')}\n"
            "    Clocks Event Reasons\n        Idle                      : Active\n"
            f"        HW Slowdown               : {told.get('slow', 'Not Active')}\n"
            f"            HW Thermal Slowdown   : {told.get('slow', 'Not Active')}\n"
            "    ECC Errors\n        Volatile\n            SRAM Uncorrectable    : 0\n"
            f"            DRAM Uncorrectable    : {told.get('volatile', '0')}\n"
            f"        Aggregate\n            DRAM Uncorrectable    : {told.get('ever', '0')}\n"
            "    Remapped Rows\n        Uncorrectable Error       : 0\n"
            f"        Pending                   : {told.get('pending', 'No')}\n"
        )
    return text


@pytest.mark.parametrize(
    ("told", "kind"),
    [
        ({"volatile": "4"}, "gpu.ecc_uncorrectable"),
        ({"pending": "Yes"}, "gpu.ecc_uncorrectable"),
        ({"slow": "Active"}, "gpu.thermal_power"),
        ({"action": "Drain and Reset"}, "gpu.firmware"),
        ({"name": "GPU is lost"}, "gpu.fell_off_bus"),
    ],
)
def test_a_gpu_that_its_report_shows_to_be_bad_is_named(
    tmp_path: Path, told: dict[str, str], kind: str
) -> None:
    reports = of_hosts("smi/{host}.txt", queried(), queried(**told))
    assert triaged(tmp_path, reports) == (kind, (3,), ("cn-12",), "smi/cn-12.txt")


def test_errors_that_a_gpu_counts_since_it_was_made_are_history(tmp_path: Path) -> None:
    assert triaged(tmp_path, of_hosts("smi/{host}.txt", queried(), queried(ever="9"))) == NOBODY


TABLE = """+-------------------------------+----------------------+----------------------+
| NVIDIA-SMI 470.82.01    Driver Version: 470.82.01    CUDA Version: 11.4     |
|-------------------------------+----------------------+----------------------+
| GPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |
| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | GPU-Util  Compute M. |
|===============================+======================+======================|
|   0  NVIDIA A100-SXM...  On   | 00000000:2A:00.0 Off |                    0 |
| N/A   31C    P0    61W / 400W |      0MiB / 81251MiB |      0%      Default |
+-------------------------------+----------------------+----------------------+
|   1  NVIDIA A100-SXM...  On   | 00000000:C7:00.0 Off |                    {ecc} |
| N/A   31C    P0    61W / 400W |      0MiB / 81251MiB |      0%      Default |
+-------------------------------+----------------------+----------------------+
"""


def test_the_column_of_a_table_says_what_is_counted(tmp_path: Path) -> None:
    reports = of_hosts("{host}.nvidia-smi.txt", TABLE.format(ecc=0), TABLE.format(ecc=7))
    assert triaged(tmp_path, reports)[:3] == ("gpu.ecc_uncorrectable", (3,), ("cn-12",))


ROWS = (
    "timestamp, index, clocks_throttle_reasons.hw_slowdown, ecc.errors.uncorrected.volatile.total\n"
    "2026/01/31 08:01:00.000, 0, Not Active, 0\n2026/01/31 08:01:00.000, 1, {before}, 0\n"
    "2026/01/31 08:02:00.000, 0, Not Active, 0\n2026/01/31 08:02:00.000, 1, {last}, {errors}\n"
)


def rows(before: str = "Not Active", last: str = "Not Active", errors: int = 0) -> str:
    return ROWS.format(before=before, last=last, errors=errors)


def test_rows_of_polled_gpus_are_read_by_their_head(tmp_path: Path) -> None:
    reports = of_hosts("gpu-{host}.csv", rows(), rows(errors=2))
    assert triaged(tmp_path, reports)[:3] == ("gpu.ecc_uncorrectable", (3,), ("cn-12",))


def test_of_a_polled_gpu_its_last_row_tells(tmp_path: Path) -> None:
    assert triaged(tmp_path, of_hosts("gpu-{host}.csv", rows(), rows(before="Active"))) == NOBODY


def diagnosed(status: str = "Pass", said: str = "") -> str:
    results: list[dict[str, object]] = [
        {"gpu_id": "0", "status": "Pass"},
        {"gpu_id": "1", "status": status, "warnings": [{"error_id": 2, "warning": said}]},
    ]
    tests = [{"name": "GPU Memory", "results": results}]
    return json.dumps(
        {"DCGM GPU Diagnostic": {"test_categories": [{"category": "Hardware", "tests": tests}]}}, indent=1
    )


def test_a_diagnostic_in_json_names_the_gpu(tmp_path: Path) -> None:
    said = "Detected 3 volatile double-bit ECC errors on GPU 1"
    reports = of_hosts("dcgm/{host}.json", diagnosed(), diagnosed("Fail", said))
    assert triaged(tmp_path, reports) == ("gpu.ecc_uncorrectable", (3,), ("cn-12",), "dcgm/cn-12.json")


def test_what_a_diagnostic_of_all_hosts_passed_blames_nobody(tmp_path: Path) -> None:
    assert triaged(tmp_path, of_hosts("dcgm/{host}.json", diagnosed(), diagnosed())) == NOBODY


AMD = "GPU: 0\n    ECC:\n        TOTAL_CORRECTABLE_COUNT: 8\n        TOTAL_UNCORRECTABLE_COUNT: 0\n"


@pytest.mark.parametrize("counted", [1, 0])
def test_amd_smi_counts_below_the_gpus_number(tmp_path: Path, counted: int) -> None:
    other = AMD.replace("GPU: 0", "GPU: 1")
    bad = AMD + other.replace("UNCORRECTABLE_COUNT: 0", f"UNCORRECTABLE_COUNT: {counted}")
    told = triaged(tmp_path, of_hosts("amd/{host}.txt", AMD + other, bad))
    assert told == (("gpu.ecc_uncorrectable", (3,), ("cn-12",), "amd/cn-12.txt") if counted else NOBODY)


def test_a_recovery_that_the_driver_asks_for_near_the_end_names_the_gpu(tmp_path: Path) -> None:
    kernel = "2026-01-31T08:01:21,000001+00:00 mlx5_core 0000:18:00.0: firmware version: 28.36\n"
    bad = kernel + "2026-01-31T08:01:22,000001+00:00 NVRM: Xid (PCI:0000:c7:00): 154, Node Reboot Required\n"
    reports = of_hosts("dmesg/{host}.log", kernel, bad)
    assert triaged(tmp_path, reports)[:3] == ("gpu.firmware", (3,), ("cn-12",))


@pytest.mark.parametrize(
    "text",
    [
        '{"DCGM Diagnostic":' + '[{"a":' * 3000 + "1" + "}]" * 3000 + "}",
        '{"test_categories": [null, 3, {"name": {"x": []}, "warnings": ["\\ud800", null, [7]]}]}',
        "|===|\n|  1 | x |\n||\n|\n+\n|   2|\n| a | b | c |\n",
        "index,uuid,a.b\n1,2\n,,,\n1,2,3\n" + "1," * 190,
        "".join(" " * depth + f"k{depth}\n" for depth in range(390)) + "\ufeff: : :\n: x\n",
    ],
)
def test_no_report_ends_a_triage(text: str) -> None:
    lines = [Line("state.txt", number, 0, each, each) for number, each in enumerate(text.split("\n"), 1)]
    assert all(statement[0] in lines for statement in statements(lines))
