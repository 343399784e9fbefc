"""Which rank, host and attempt a log belongs to by its name, and what a name must not be taken for."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logtriage.intake.identity import Identity, identify, identify_all


@pytest.mark.parametrize(
    ("file", "rank"),
    [
        ("rank_17.log", 17),
        ("rank17.log", 17),
        ("rank-17.txt", 17),
        ("rank_0003.log", 3),
        ("log.17", 17),
        ("workerlog.3", 3),
        ("worker-3.log", 3),
        ("process_1.log", 1),
        ("std_log_process_3.txt", 3),
        ("70_driver_log_5.txt", 5),
        ("rank=6.log", 6),
        ("logs-rank5.txt", 5),
        ("train.rank7.log", 7),
        ("rank.2/stdout", 2),
        ("rank_4/train.log", 4),
        ("task_9.out", 9),
        ("nemo_log_globalrank-11_localrank-3.txt", 11),
        ("608_0_log.out", 0),
        ("608_12_3_log.err", 3),
        ("pretrain-4812-1-9.err", 9),
        ("rank3.log.2.gz", 3),
    ],
)
def test_a_word_makes_a_number_a_rank(file: str, rank: int) -> None:
    assert identify(file).rank == rank
    assert identify_all([file])[file].rank == rank


@pytest.mark.parametrize(
    "file",
    [
        "job_771203.log",
        "slurm-4812.out",
        "slurm-4812_3.out",
        "train-20261129.log",
        "train_2026-11-29_10-30-00.log",
        "20241208_201530.log",
        "pp0.log",
        "run_2.log",
        "fold2.log",
        "train_fold0.log",
        "v2.log",
        "llama2-7b.log",
        "checkpoint-500/trainer.log",
        "gpu_poll.txt",
        "x.log.3",
        "ranking_3_models.log",
        "epoch-10.log",
        "python-core-worker-0123456789abcdef01234567_4411.log",
        "worker-0123456789abcdef0123456789abcdef0123456789abcdef01234567-01000000-4411.out",
        "node_rank_1.log",
        "job-worker-train.log",
        "rag-retrieval-notes.log",
        "scontrol-show-job-3.txt",
        "describe-worker-1.txt",
        "smi-q_trainer.txt",
        "get-pods.txt",
    ],
)
def test_other_numbers_are_no_ranks_and_no_machines(file: str) -> None:
    known = identify_all([file])[file]
    assert (known.rank, known.local_rank, known.host) == (None, None, None)


def test_runs_beside_each_other_are_no_machines() -> None:
    for names in (
        ["describe-worker-1.txt", "describe-worker-2.txt"],
        ["slurm-4812-0.out", "slurm-4812-1.out"],
        ["x-0001.log", "x-0016.log"],
        ["run-10.log", "run-11.log"],
        ["fold0.log", "fold1.log"],
        ["pp0.log", "pp1.log"],
        ["run_a.log", "run_b.log"],
    ):
        assert {one.host for one in identify_all(names).values()} == {None}
        assert {one.rank for one in identify_all(names).values()} == {None}


@pytest.mark.parametrize(
    ("file", "host"),
    [
        ("node-a/agent.log", "node-a"),
        ("node0.log", "node0"),
        ("node0_sft.log", "node0"),
        ("tt-node1.log", "tt-node1"),
        ("node-15_last_stage.out", "node-15"),
        ("dmesg-node-a.log", "node-a"),
        ("dmesg_a100-n07.txt", "a100-n07"),
        ("gpu-e61.dmesg", "gpu-e61"),
        ("gnode4.kern.log", "gnode4"),
        ("b300-01/kern.log", "b300-01"),
        ("ip_addr_node0.txt", "node0"),
        ("smi-q_lab-b200-4.txt", "lab-b200-4"),
        ("amd-smi.r7n3.txt", "r7n3"),
        ("r7n3.nvidia-smi-q.txt", "r7n3"),
        ("ip-addr-r7n3.txt", "r7n3"),
        ("dmesg-T_r7n3.txt", "r7n3"),
        ("journalctl_k_r7n3.log", "r7n3"),
        ("kern.log.r7n3", "r7n3"),
        ("bmc-sel-r7n3.txt", "r7n3"),
        ("ethtool_eth0_r7n3.txt", "r7n3"),
        ("ibdev2netdev_r7n3.txt", "r7n3"),
        ("node_health_r7n3.txt", "r7n3"),
        ("describe_node_r7n3.txt", "r7n3"),
        ("describe-sft-worker-1.txt", "sft-worker-1"),
        ("describe_pod_sft-worker-1.txt", "sft-worker-1"),
        ("sft-worker-1.describe.txt", "sft-worker-1"),
        ("pod-sft-worker-1.yaml", "sft-worker-1"),
        ("algo-1_nvidia-smi.txt", "algo-1"),
        ("algo-1.log", "algo-1"),
        ("job-worker-0.log", "job-worker-0"),
        ("pt-7x-master-0.log", "pt-7x-master-0"),
        ("t1v-n-0a1b2c3d-w-3.log", "t1v-n-0a1b2c3d-w-3"),
        ("mixtral-2-x7k2p.log", "mixtral-2-x7k2p"),
        ("trainer-7d9f8b6c5d-x7k2p.log", "trainer-7d9f8b6c5d-x7k2p"),
        ("ray-x-worker-group-gpu-x7k2p.log", "ray-x-worker-group-gpu-x7k2p"),
        ("algo-2-1700000000.log", "algo-2"),
        ("ip-10-0-3-17.log", "ip-10-0-3-17"),
        ("10.71.4.9.log", "10.71.4.9"),
        ("slurm-4812-gpu07.out", "gpu07"),
        ("train_sft-worker-1_0a1b2c3d-1111-2222-3333-444455556666/main/2.log", "sft-worker-1"),
    ],
)
def test_machines_are_read_from_names(file: str, host: str) -> None:
    assert identify(file).host == host
    assert identify(file).rank is None


def test_machines_are_known_by_their_like() -> None:
    known = identify_all(
        ["gpu-e61.log", "gpu-e61.dmesg", "n121.log", "n122.log", "llama2-7b-0.log", "llama2-7b-17.log"]
    )
    assert [one.host for one in known.values()] == [
        "gpu-e61",
        "gpu-e61",
        "n121",
        "n122",
        "llama2-7b-0",
        "llama2-7b-17",
    ]


def test_machines_that_are_folders_of_rank_files() -> None:
    known = identify_all(["n121/rank0.log", "n121/rank1.log", "n122/rank2.log", "n122/rank3.log"])
    assert [(one.host, one.rank) for one in known.values()] == [
        ("n121", 0),
        ("n121", 1),
        ("n122", 2),
        ("n122", 3),
    ]
    assert {one.host for one in identify_all(["rank-10.log", "rank-11.log", "rank-12/x.log"]).values()} == {
        None
    }


def test_ranks_behind_the_ending_of_a_name_leave_the_bare_name_to_the_first() -> None:
    files = ["out/log.txt", "out/log.txt.rank1", "out/log.txt.rank2", "eval.log", "eval.log.rank0"]
    known = identify_all(files)
    assert [known[file].rank for file in files] == [0, 1, 2, None, 0]


def test_a_kubernetes_folder_tells_the_restart() -> None:
    known = identify("train_sft-worker-1_0a1b2c3d-1111-2222-3333-444455556666/main/2.log")
    assert known.attempt == 2


def tree(run: str, ranks: range, attempt: int = 0) -> list[str]:
    return [
        f"{run}/attempt_{attempt}/{rank}/{stream}.log" for rank in ranks for stream in ("stdout", "stderr")
    ]


def test_a_torchrun_tree_on_one_machine_gives_global_ranks() -> None:
    known = identify_all(tree("none_x1", range(4)) + tree("none_x1", range(4), 1) + ["launcher.log"])
    one = known["none_x1/attempt_1/3/stderr.log"]
    assert (one.rank, one.local_rank, one.attempt, one.stream) == (3, 3, 1, "stderr")
    assert known["launcher.log"] == Identity(family="launcher.log")


@pytest.mark.parametrize(
    ("nodes", "ranks"),
    [
        (["node-a", "node-b"], [0, 8]),
        (["node0", "node1"], [0, 8]),
        (["node1", "node2"], [0, 8]),
        (["gpu-n12", "gpu-n11"], [8, 0]),
        (["job-worker-0", "job-worker-1"], [0, 8]),
        (["job-master-0", "job-worker-0"], [0, 8]),
        (["red.cluster-1", "blue.cluster-7"], [None, None]),
    ],
)
def test_two_machines_give_global_ranks_where_their_order_is_plain(
    nodes: list[str], ranks: list[int | None]
) -> None:
    files = [file for node in nodes for file in tree(f"{node}/none_{hash(node)}", range(8))]
    known = identify_all(files)
    for node, first in zip(nodes, ranks, strict=True):
        one = next(one for file, one in known.items() if file.startswith(node) and "/5/" in file)
        assert one.local_rank == 5
        assert one.rank == (None if first is None else first + 5)


def test_machines_with_unlike_numbers_of_ranks_give_no_global_rank() -> None:
    known = identify_all(tree("node-a/none_x", range(4)) + tree("node-b/none_y", range(2)))
    assert {one.rank for one in known.values()} == {None}
    assert {one.local_rank for one in known.values()} == {0, 1, 2, 3}


def test_the_second_machine_alone_gives_no_global_rank() -> None:
    known = identify_all(tree("node-b/none_y", range(2)))
    assert {(one.rank, one.host) for one in known.values()} == {(None, "node-b")}


def test_trees_of_single_machine_launches_keep_their_ranks() -> None:
    for runs in (
        ["run_1/none_a", "run_2/none_b"],
        [f"{digit * 8}-0000-4000-8000-000000000000_x" for digit in "ab"],
    ):
        known = identify_all([file for run in runs for file in tree(run, range(2))])
        assert {one.rank for one in known.values()} == {0, 1}


def test_two_trees_of_one_run_may_be_two_machines() -> None:
    assert {one.rank for one in identify_all(tree("h1", range(2)) + tree("h2", range(2))).values()} == {None}
    known = identify_all(tree("myjob_abc", range(2)) + tree("myjob_def", range(2)))
    assert {one.rank for one in known.values()} == {None}


def test_same_ranks_on_several_machines_are_local_and_others_are_global() -> None:
    local = identify_all([f"node{node}/rank{rank}.log" for node in range(2) for rank in range(4)])
    assert [one.rank for one in local.values()] == list(range(8))
    assert [one.local_rank for one in local.values()] == [0, 1, 2, 3] * 2
    plain = identify_all([f"node{node}/rank{4 * node + rank}.log" for node in range(2) for rank in range(4)])
    assert [one.rank for one in plain.values()] == list(range(8))


def test_gpu_files_beside_each_other_are_local_ranks() -> None:
    for name in ("gpu{}.log", "gpu-{}.log", "train_gpu_{}.log", "gpu{}/train.log"):
        known = identify_all([name.format(number) for number in range(4)])
        assert [(one.local_rank, one.host) for one in known.values()] == [(rank, None) for rank in range(4)]
    assert identify_all(["gpu3.log"])["gpu3.log"].local_rank is None


def test_out_beside_err_is_standard_output() -> None:
    known = identify_all(["j-77.out", "j-77.err", "slurm-8.out"])
    assert [one.stream for one in known.values()] == ["stdout", "stderr", None]


@pytest.mark.parametrize(
    "oldest_first",
    [
        ["x.log.10.gz", "x.log.2.gz", "x.log.1", "x.log"],
        ["x.log-20240101.gz", "x.log-20240102.gz", "x.log-20240103", "x.log"],
        ["x-20240101.log.gz", "x-20240102.log", "x.log"],
        ["x.2024-01-01_00-00-00_000001.log", "x.2024-01-01_12-00-00_000001.log", "x.log"],
        ["x.log.2024-01-01", "x.log.2024-01-02", "x.log"],
        ["x.log.old", "x.log"],
        ["d/x-previous.log", "d/x.log"],
        ["messages.2", "messages.1", "messages"],
        ["log.2", "log.1", "log"],
    ],
)
def test_rotated_parts_are_one_log_oldest_first(oldest_first: list[str]) -> None:
    known = identify_all(sorted(oldest_first))
    assert {known[file].family for file in oldest_first} == {oldest_first[-1]}
    assert sorted(oldest_first, key=lambda file: known[file].part) == oldest_first
    assert all(known[file].rank is None for file in oldest_first)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.text(alphabet="abnode019-_./rank", min_size=1, max_size=20), max_size=12), st.randoms())
def test_identity_does_not_depend_on_the_order_of_the_files(files: list[str], order: object) -> None:
    shuffled = list(files)
    order.shuffle(shuffled)  # type: ignore[attr-defined]
    assert identify_all(files) == identify_all(shuffled)


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=200))
def test_no_name_crashes(name: str) -> None:
    assert identify_all([name])[name].part == 0
