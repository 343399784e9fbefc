"""Counters of adapters, logs of management controllers, lists of schedulers beside a job that timed out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from scenes import bank_read_once, clock, judged, steps
from state_jobs import HOSTS, NOBODY, console, of_hosts, triaged

from logtriage.intake.times import find_time


@pytest.fixture(scope="module", autouse=True)
def _bank_is_read_once() -> Iterator[None]:
    with bank_read_once():
        yield


def ports(state: str, physical: str) -> str:
    """Two adapters of `ibstat`; nobody plugged the second one in."""
    return (
        f"CA 'mlx5_4'\n\tCA type: MT4123\n\tPort 1:\n\t\tState: {state}\n\t\tPhysical state: {physical}\n"
        "CA 'mlx5_5'\n\tCA type: MT4125\n\tPort 1:\n\t\tState: Down\n\t\tPhysical state: Disabled\n"
    )


def test_the_port_that_is_down_on_one_host_alone_counts(tmp_path: Path) -> None:
    reports = of_hosts("ibstat/{host}.txt", ports("Active", "LinkUp"), ports("Down", "Polling"))
    assert triaged(tmp_path, reports)[::2] == ("network.infiniband", ("cn-12",))


def test_a_port_that_is_down_everywhere_is_usual(tmp_path: Path) -> None:
    healthy = ports("Active", "LinkUp")
    assert triaged(tmp_path, of_hosts("ibstat/{host}.txt", healthy, healthy)) == NOBODY


def counted(late: int, again: int = 0) -> str:
    return (
        f"link mlx5_2/1 rx_write_requests 88123 out_of_sequence {again} packet_seq_err 0 "
        f"local_ack_timeout_err {late} req_cqe_error 0 np_cnp_sent 0 \n"
    )


@pytest.mark.parametrize(
    ("late", "kind"), [((0, 3100, 0), "network.infiniband"), ((0, 4, 0), ""), ((901, 0, 870), "")]
)
def test_transfers_that_were_sent_again_count_where_one_host_stands_out(
    tmp_path: Path, late: tuple[int, ...], kind: str
) -> None:
    """Few are usual; and peers of a host that is gone count what it left unanswered."""
    reports = {f"rdma/{host}.txt": counted(each) for host, each in zip(HOSTS, late, strict=True)}
    told = triaged(tmp_path, reports)
    assert told == NOBODY if not kind else told[::2] == (kind, ("cn-12",))


def test_errors_of_a_link_by_ethtool(tmp_path: Path) -> None:
    healthy = (
        "NIC statistics:\n     rx_packets: 51\n     rx_crc_errors_phy: 0\n     link_down_events_phy: 1\n"
    )
    bad = healthy.replace("errors_phy: 0", "errors_phy: 60012").replace("events_phy: 1", "events_phy: 31")
    told = triaged(tmp_path, of_hosts("ethtool/{host}.txt", healthy, bad))
    assert told == ("network.infiniband", (), ("cn-12",), "ethtool/cn-12.txt")


def test_ibqueryerrors_names_the_host_of_the_port(tmp_path: Path) -> None:
    text = 'Errors for "cn-12 HCA-3"\n   GUID 0x9c port 1: [LinkDownedCounter == 41] [PortXmitWait == 7]\n'
    assert triaged(tmp_path, {"ibqueryerrors.txt": text})[::2] == ("network.infiniband", ("cn-12",))


def test_a_port_that_only_waited_is_well(tmp_path: Path) -> None:
    text = 'Errors for "cn-12 HCA-3"\n   GUID 0x9c port 1: [PortXmitWait == 70000]\n'
    assert triaged(tmp_path, {"ibqueryerrors.txt": text}) == NOBODY


SEL = "   1 | 11/02/2025 | 07:00:01 | Event Logging Disabled SEL | Log area reset/cleared | Asserted\n"


def test_an_event_of_the_controllers_log_bears_its_own_date(tmp_path: Path) -> None:
    bad = SEL + "   2 | 01/31/2026 | 08:01:12 | Memory DIMM_B2 | Uncorrectable ECC | Asserted\n"
    told = triaged(tmp_path, of_hosts("sel/{host}.txt", SEL, bad))
    assert told == ("host.node_lost", (), ("cn-12",), "sel/cn-12.txt")


def test_an_event_of_the_controllers_log_of_months_ago_is_none_of_the_job(tmp_path: Path) -> None:
    bad = SEL + "   2 | 12/01/2025 | 08:01:12 | Power Supply PS1 | Power Supply AC lost | Asserted\n"
    assert triaged(tmp_path, of_hosts("sel/{host}.txt", SEL, bad)) == NOBODY


@pytest.mark.parametrize(
    "text",
    [
        "7 | 01/31/2026 | 08:01:12 | Memory",
        "7 | Jan-31-2026 | 08:01:12 | Memory",
        "Sat 2026-01-31 08:01:12 UTC 4412 1000 1000 SIGSEGV present /usr/bin/python3",
    ],
)
def test_dates_of_machines_tools(text: str) -> None:
    found = find_time(text)
    assert found is not None
    assert found.seconds == 1_769_846_472.0


CORES = "TIME                          PID  UID  GID SIG     COREFILE EXE              SIZE\n"


def test_a_core_dump_of_months_ago_is_none_of_the_job(tmp_path: Path) -> None:
    bad = CORES + "Mon 2025-11-03 04:02:11 UTC  991 1000 1000 SIGSEGV missing  /usr/bin/Xorg      n/a\n"
    assert triaged(tmp_path, of_hosts("coredumps/{host}.txt", "No coredumps found.\n", bad)) == NOBODY


LISTED = "GPU 0: NVIDIA A100 (UUID: GPU-1)\n"


def test_a_host_that_lists_fewer_gpus_than_its_peers_lost_one(tmp_path: Path) -> None:
    both = LISTED + "GPU 1: NVIDIA A100 (UUID: GPU-2)\n"
    told = triaged(tmp_path, of_hosts("{host}.nvidia-smi-L.txt", both, LISTED))
    assert told[::2] == ("gpu.fell_off_bus", ("cn-12",))


def test_a_host_that_has_as_many_gpus_as_ranks_lacks_none(tmp_path: Path) -> None:
    both = LISTED + "GPU 1: NVIDIA A100 (UUID: GPU-2)\n"
    more = both + "GPU 2: NVIDIA A100 (UUID: GPU-3)\n"
    assert triaged(tmp_path, of_hosts("{host}.nvidia-smi-L.txt", more, both)) == NOBODY


def test_lspci_shows_a_gpu_that_does_not_answer(tmp_path: Path) -> None:
    healthy = "2a:00.0 3D controller: NVIDIA Corporation GA100 (rev a1)\n"
    other = "c7:00.0 3D controller: NVIDIA Corporation GA100 (rev a1)\n"
    gone = healthy + "c7:00.0 3D controller: NVIDIA Corporation GA100 (rev ff) (prog-if ff)\n"
    told = triaged(tmp_path, of_hosts("lspci/{host}.txt", healthy + other, gone))
    assert told[:3] == ("gpu.fell_off_bus", (3,), ("cn-12",))


REASONS = "REASON               USER      TIMESTAMP           NODELIST\n"


@pytest.mark.parametrize(
    ("row", "kind"),
    [
        ("Not responding       slurm     2026-01-31T08:06:01 cn-12\n", "host.node_lost"),
        ("gpu 1 ECC errors     root      2026-01-31T08:06:01 cn-12\n", "gpu.ecc_uncorrectable"),
        ("Xid 79               root      2026-01-31T08:06:01 cn-12\n", "gpu.fell_off_bus"),
        ("gpu 1 ECC errors     root      2025-11-30T08:06:01 cn-12\n", ""),
        ("disk swap            root      2026-01-31T08:06:01 cn-12\n", ""),
    ],
)
def test_the_reason_for_which_a_node_is_down(tmp_path: Path, row: str, kind: str) -> None:
    told = triaged(tmp_path, {"sinfo-R.txt": REASONS + row})
    assert told == NOBODY if not kind else told[::2] == (kind, ("cn-12",))


def test_a_node_that_slurm_shows_to_be_down(tmp_path: Path) -> None:
    shown = (
        "NodeName=cn-11 Arch=x86_64 CoresPerSocket=32\n   State=MIXED ThreadsPerCore=1\n"
        "NodeName=cn-12 Arch=x86_64 CoresPerSocket=32\n   State=DOWN+NOT_RESPONDING ThreadsPerCore=1\n"
    )
    assert triaged(tmp_path, {"scontrol_nodes.txt": shown})[::2] == ("host.node_lost", ("cn-12",))


def test_slurms_record_in_json_says_how_the_job_ended(tmp_path: Path) -> None:
    job = {"job_id": 71, "name": "sft", "state": {"current": ["TIMEOUT"], "reason": "None"}}
    record = json.dumps({"jobs": [job]}, indent=1)
    verdict = judged(tmp_path, {"train.out": steps(40), "sacct.json": record})
    assert verdict.verdict.failure_type == "scheduler.time_limit"


def nodes(bad: str) -> str:
    """`kubectl get nodes -o json`, with the conditions that a problem detector sets."""
    items = [
        {
            "kind": "Node",
            "metadata": {"name": host},
            "status": {
                "conditions": [
                    {"type": "GpuUnhealthy", "status": str(host == bad), "reason": "Xid79", "message": GONE},
                    {
                        "type": "Ready",
                        "status": "True",
                        "reason": "KubeletReady",
                        "message": "kubelet is ready",
                    },
                ]
            },
        }
        for host in HOSTS
    ]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items}, indent=2)


GONE = "GPU 1 has fallen off the bus"


@pytest.mark.parametrize("bad", ["cn-12", ""])
def test_a_condition_of_a_node_counts_where_it_holds(tmp_path: Path, bad: str) -> None:
    told = triaged(tmp_path, {"nodes.json": nodes(bad)})
    assert told[::2] == (("gpu.fell_off_bus", ("cn-12",)) if bad else ("collective.timeout", ()))


def exported(host: str, errors: int) -> str:
    labels = f'gpu="1",UUID="GPU-9",Hostname="{host}"'
    return (
        "# TYPE DCGM_FI_DEV_ECC_DBE_VOL_TOTAL counter\n"
        f"DCGM_FI_DEV_ECC_DBE_VOL_TOTAL{{{labels}}} {errors}\nDCGM_FI_DEV_GPU_TEMP{{{labels}}} 41\n"
    )


def test_a_monitors_count_of_memory_errors_names_the_gpu(tmp_path: Path) -> None:
    reports = {f"metrics/{host}.prom": exported(host, 3 * (host == "cn-12")) for host in HOSTS}
    assert triaged(tmp_path, reports)[:3] == ("gpu.ecc_uncorrectable", (3,), ("cn-12",))


def test_rays_head_names_the_node_that_it_lost(tmp_path: Path) -> None:
    said = (
        "[2026-01-31 08:01:25,110 I 9 9] (gcs_server) gcs_node_manager.cc:262: Removing node, node id = 5c, "
        "node name = cn-12, death reason = UNEXPECTED_TERMINATION, death message = health check failed\n"
    )
    assert triaged(tmp_path, {"logs/gcs_server.out": said})[::2] == ("host.node_lost", ("cn-12",))


def test_a_job_without_reports_blames_nobody(tmp_path: Path) -> None:
    assert "NCCL INFO" in console()
    assert triaged(tmp_path, {}) == NOBODY


BROKEN = '[rank1]: Traceback (most recent call last):\n[rank1]:   File "/app/sft.py", line 4, in main\n'
COUNTS = (
    "GPU 00000000:2A:00.0\n    ECC Errors\n        Volatile\n            DRAM Uncorrectable : 0\n"
    "GPU 00000000:C7:00.0\n    ECC Errors\n        Volatile\n            DRAM Uncorrectable : {}\n"
)
HEAD = "==============NVSMI LOG==============\n\nTimestamp : 2026-01-31 08:20:00\n"


@pytest.mark.parametrize(
    ("raised", "kind"),
    [
        ("KeyError: 'labels'", "code.key"),
        ("RuntimeError: CUDA error: unspecified launch failure", "gpu.ecc_uncorrectable"),
    ],
)
def test_what_a_rank_raised_stands_above_a_state_that_does_not_bring_it_about(
    tmp_path: Path, raised: str, kind: str
) -> None:
    reports = of_hosts("smi/{host}.txt", HEAD + COUNTS.format(0), HEAD + COUNTS.format(1))
    log = (
        console().split("ERROR [Rank")[0].rsplit("\n", 1)[0]
        + f"\n{BROKEN}[rank1]:     run()\n[rank1]: {raised}\n"
    )
    assert judged(tmp_path, {"train.out": log, **reports}).verdict.failure_type == kind


def test_a_job_that_ended_well_did_so_on_a_gpu_with_errors(tmp_path: Path) -> None:
    reports = of_hosts("smi/{host}.txt", HEAD + COUNTS.format(0), HEAD + COUNTS.format(1))
    log = steps(40) + f"{clock(90)} INFO Training completed. Do not forget to share your model\n"
    assert judged(tmp_path, {"train.out": log, **reports}).verdict.failure_type == "none.completed"


def test_a_job_that_may_run_on_lives_with_a_gpu_that_had_an_error(tmp_path: Path) -> None:
    soon = HEAD.replace("08:20:00", "08:01:25")
    reports = of_hosts("smi/{host}.txt", soon + COUNTS.format(0), soon + COUNTS.format(1))
    log = console().split(" ERROR [Rank", 1)[0].rsplit("\n", 1)[0] + "\n"
    assert judged(tmp_path, {"train.out": log, **reports}).verdict.failure_type == "none.running"


def test_what_most_hosts_show_alike_is_usual(tmp_path: Path) -> None:
    same = HEAD + COUNTS.format(1)
    assert triaged(tmp_path, of_hosts("smi/{host}.txt", same, same)) == NOBODY


def test_an_event_that_a_kernel_dates_stands_above_a_look(tmp_path: Path) -> None:
    reports = of_hosts("smi/{host}.txt", HEAD + COUNTS.format(0), HEAD + COUNTS.format(1), "cn-11")
    down = "2026-01-31T08:01:19,000001+00:00 mlx5_core 0000:18:00.0 ib0: Link down\n"
    told = triaged(tmp_path, {**reports, "dmesg/cn-13.log": down})
    assert told[::2] == ("network.infiniband", ("cn-13",))


@pytest.mark.parametrize("name", ["sinfo-R.txt", "smi/cn-77.txt", "scontrol_nodes.txt"])
def test_a_machine_on_which_no_rank_ran_is_none_of_the_job(tmp_path: Path, name: str) -> None:
    texts = {
        "sinfo-R.txt": REASONS + "Not responding       slurm     2026-01-31T08:06:01 cn-77\n",
        "smi/cn-77.txt": HEAD + COUNTS.format(5),
        "scontrol_nodes.txt": "NodeName=cn-77 Arch=x86_64\n   State=DOWN* ThreadsPerCore=1\n",
    }
    reports = of_hosts("smi/{host}.txt", HEAD + COUNTS.format(0), HEAD + COUNTS.format(0))
    assert triaged(tmp_path, {**reports, name: texts[name]}) == NOBODY


@pytest.mark.parametrize(
    ("text", "rank"),
    [
        (
            json.dumps(
                {"module": "fr_analyzer", "result": {"hanging_ranks": "hanging ranks: [3]"}}, indent=1
            ),
            3,
        ),
        ("PGID | Process Group Desc | Missing Ranks\n0 | dp | 3\nhanging ranks: [3]\n", 3),
        ("PGID | Process Group Desc | Missing Ranks\nhanging ranks: []\n", None),
        ("hanging ranks: [" + "9" * 5000 + "]\n", None),
    ],
)
def test_an_analysis_of_recordings_that_are_not_here_names_the_rank(
    tmp_path: Path, text: str, rank: int | None
) -> None:
    told = triaged(tmp_path, {"fr_attribution.txt": text})
    assert told[:3] == ("collective.timeout", (rank,), ("cn-12",)) if rank is not None else told == NOBODY


def test_what_makes_a_device_unusable_is_lived_with_by_no_job(tmp_path: Path) -> None:
    log = 'Traceback (most recent call last):\n  File "/app/sft.py", line 4, in main\n    assert usable()\n'
    log += "AssertionError: this recipe needs a GPU\n"
    look = "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 560.35\n"
    for ran, kind in (("", "gpu.unavailable"), (steps(40), "code.assertion")):
        files = {"cn-12.log": ran + log, "cn-12.nvidia-smi.txt": look}
        assert judged(tmp_path / kind, files).verdict.failure_type == kind


def test_a_job_of_which_no_step_is_seen_is_not_seen_to_live_with_anything(tmp_path: Path) -> None:
    hot = HEAD + "GPU 00000000:2A:00.0\n    Clocks Event Reasons\n        HW Thermal Slowdown : Active\n"
    files = {"train.out": "preparing the scene\nall cameras are there\n", "smi/cn-12.txt": hot}
    assert judged(tmp_path, files).verdict.failure_type == "gpu.thermal_power"
