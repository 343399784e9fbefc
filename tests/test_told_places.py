"""Which rank and which machine a line is of, as labels, launchers' maps and exports of logs tell."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from scenes import bank_read_once, judged, place, steps

ILLEGAL = "RuntimeError: CUDA error: an illegal memory access was encountered"
ECC = "RuntimeError: CUDA error: uncorrectable ECC error encountered"
LOST = "NCCL error: remote process exited or there was a network error, NCCL version 2.20.5"


@pytest.fixture(scope="module", autouse=True)
def _bank_is_read_once() -> Iterator[None]:
    with bank_read_once():
        yield


@pytest.mark.parametrize("label", ["[{host}:r{rank}] ", "[{host} rank {rank}] ", "[{host}/rank-{rank}] "])
def test_a_label_of_few_lines_says_host_and_rank(tmp_path: Path, label: str) -> None:
    text = steps(40)
    text += label.format(host="hx-c4", rank=6) + ILLEGAL + "\n"
    text += label.format(host="hx-c3", rank=1) + LOST + "\n"
    assert place(tmp_path, {"gnn.out": text}) == ((6,), ("hx-c4",))


def test_a_label_that_counts_something_else_names_no_host(tmp_path: Path) -> None:
    text = steps(40) + f"[epoch-7 rank 6] {ILLEGAL}\n[epoch-7 rank 1] {LOST}\n"
    assert place(tmp_path, {"gnn.out": text})[1] == ()


@pytest.mark.parametrize("label", ["[rank{}]: ", "(rank {}) "])
def test_what_a_service_wrote_has_its_own_label_behind_the_journals(tmp_path: Path, label: str) -> None:
    first = "".join(f"Mar 03 05:{at:02d}:00 bx1 llm[300]: step {at} loss 2.1\n" for at in range(40))
    first += f"Mar 03 05:40:20 bx1 llm[300]: {label.format(3)}{LOST}\n"
    second = (
        "Mar 03 05:40:01 bx2 kernel: NVRM: Xid (PCI:0000:3b:00): 94, pid='<unknown>', name=<unknown>, "
        "Contained: SM (0x1). RST: No, D-RST: No\n"
        f"Mar 03 05:40:02 bx2 llm[410]: {label.format(13)}{ECC}\n"
    )
    assert place(tmp_path, {"journal_bx1.txt": first, "journal_bx2.txt": second}) == ((13,), ("bx2",))


@pytest.mark.parametrize("with_raylet", [True, False])
def test_ray_tells_which_node_ran_low_whoever_repeats_it(tmp_path: Path, with_raylet: bool) -> None:
    text = "".join(f"(Main pid=77) step:{at} - loss:2.{at}\n" for at in range(30))
    if with_raylet:
        text += (
            "(raylet, ip=10.7.0.31) [2026-03-03 05:40:01,118 E 18 18] (raylet) node_manager.cc:3193: "
            "1 Workers (tasks / actors) killed due to memory pressure (OOM), 0 Workers crashed due to other "
            "reasons at node (ID: 9f0, IP: 10.7.0.31) over the last time period.\n"
        )
    text += (
        "ray.exceptions.RayTaskError(OutOfMemoryError): ray::Main.run() (pid=77, ip=10.7.0.12)\n"
        '  File "/app/base.py", line 4, in func\n    out = ray.get(out)\n'
        "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.\n"
        "Memory on the node (IP: 10.7.0.31, ID: 9f0) where the task (actor ID: 1c, name=Roll, pid=5, memory "
        "used=80.00GB) was running was 480.1GB / 500.0GB (0.96), which exceeds the memory usage threshold\n"
    )
    assert place(tmp_path, {"driver.log": text}) == ((), ("10.7.0.31",))


OPEN_MPI = (
    " Data for node: fx-2\tNum slots: 2\tMax slots: 0\tNum procs: 2\n"
    " \tProcess {jobid}: [77,1] App: 0 Process rank: 0 Bound: N/A\n"
    " \tProcess {jobid}: [77,1] App: 0 Process rank: 1 Bound: N/A\n\n"
    " Data for node: fx-9\tNum slots: 2\tMax slots: 0\tNum procs: 2\n"
    " \tProcess {jobid}: [77,1] App: 0 Process rank: 2 Bound: N/A\n"
    " \tProcess {jobid}: [77,1] App: 0 Process rank: 3 Bound: N/A\n"
)
INTEL = (
    "[0] MPI startup(): Rank    Pid      Node name  Pin cpu\n"
    "[0] MPI startup(): 0       2101     fx-2       {0,1}\n"
    "[0] MPI startup(): 1       2102     fx-2       {2,3}\n"
    "[0] MPI startup(): 2       3101     fx-9       {0,1}\n"
    "[0] MPI startup(): 3       3102     fx-9       {2,3}\n"
)


@pytest.mark.parametrize(
    ("printed", "tag"),
    [
        (OPEN_MPI.format(jobid="OMPI jobid"), "[1,{}]<stderr>:"),
        (OPEN_MPI.format(jobid="jobid"), "[1,{}]<stderr>:"),
        (INTEL, "[{}] "),
    ],
)
def test_a_launchers_map_places_the_ranks(tmp_path: Path, printed: str, tag: str) -> None:
    text = printed + "".join(tag.format(at % 4) + f"step {at} loss 2.1\n" for at in range(60))
    text += tag.format(3) + ILLEGAL + "\n" + tag.format(0) + LOST + "\n"
    assert place(tmp_path, {"mpirun.log": text}) == ((3,), ("fx-9",))


def test_an_agent_on_which_a_rank_was_launched_is_its_host(tmp_path: Path) -> None:
    time = "[2026-03-03T05:{:02d}:00.100000Z] {} "
    text = "".join(
        time.format(0, ("77c0de01", "77c0de02")[rank // 2])
        + f"|| INFO: Launching on agent rk-{rank // 2 + 3} slot {rank % 2} [rank={rank}]\n"
        for rank in range(4)
    )
    text += "".join(time.format(at, "77c0de01") + f"[rank=0] || INFO: step {at}\n" for at in range(1, 30))
    text += time.format(31, "77c0de02") + f"[rank=3] || {ILLEGAL}\n"
    assert place(tmp_path, {"trial_9.txt": text}) == ((3,), ("rk-4",))


@pytest.mark.parametrize(
    "event",
    [
        "  Warning  PodFailed  2m  controller  Pod ocr-w-1 (node: pool-7) failed with exit code 1\n",
        "  Warning  Failed     2m  controller  pod ml/ocr-w-1 on node pool-7 ended with exit code 1\n",
    ],
)
def test_a_controller_says_in_words_on_which_node_a_pod_was(tmp_path: Path, event: str) -> None:
    files = {
        "ocr-w-0.log": steps(40),
        "ocr-w-1.log": f"[rank6]: {ECC}\n",  # whose name is that of the pod alone
        "describe.txt": f"Name:         ocr\nNamespace:    ml\nKind:         Job\nEvents:\n{event}",
    }
    assert place(tmp_path, files)[1] == ("pool-7",)


@pytest.mark.parametrize(
    "task", ["seg.{slot}.0kq81mvx2p", "seg.x9k2pw71zz4m0qn83ha6ybd5t.0kq81mvx2p", "seg.{slot}"]
)
def test_a_swarms_task_is_on_the_node_behind_it(tmp_path: Path, task: str) -> None:
    label = task + "@lab-{slot}    | "
    text = "".join(label.format(slot=1) + f"step {at} loss 2.1\n" for at in range(40))
    text += label.format(slot=3) + f"[rank2]: {ILLEGAL}\n" + label.format(slot=1) + f"[rank0]: {LOST}\n"
    assert place(tmp_path, {"service.log": text}) == ((2,), ("lab-3",))


def test_google_clouds_export_names_the_node_under_a_pod(tmp_path: Path) -> None:
    def entry(at: int, node: str, text: str) -> dict[str, object]:
        return {
            "textPayload": text,
            "timestamp": f"2026-03-03T05:{at:02d}:00Z",
            "resource": {"type": "k8s_container", "labels": {"pod_name": f"llm-{node}"}},
            "labels": {"compute.googleapis.com/resource_name": f"gke-p-{node}"},
        }

    entries = [entry(at, "k4", f"step {at} loss 2.1") for at in range(40)]
    entries += [entry(41, "x0", f"[rank9]: {ECC}"), entry(42, "k4", f"[rank3]: {LOST}")]
    assert place(tmp_path, {"export.json": json.dumps(entries, indent=2)}) == ((9,), ("gke-p-x0",))


@pytest.mark.parametrize("indent", [1, 4])
@pytest.mark.parametrize("as_json", [True, False])
def test_lokis_labels_name_the_writer_of_a_stream(tmp_path: Path, indent: int, as_json: bool) -> None:
    def said(rank: int, text: str) -> str:
        return json.dumps({"rank": rank, "msg": text}) if as_json else f"[rank{rank}]: {text}"

    def stream(node: str, texts: list[str]) -> dict[str, object]:
        pairs = [[str(1_770_000_000_000_000_000 + at * 10**9), text] for at, text in enumerate(texts)]
        return {"stream": {"pod": f"llm-{node}", "node_name": f"pool-{node}"}, "values": pairs}

    streams = [
        stream("7f", [*(said(0, f"step {at} loss 2.1") for at in range(40)), said(0, LOST)]),
        stream("9c", [*(said(9, f"step {at} loss 2.1") for at in range(38)), said(9, ILLEGAL)]),
    ]
    answer = {"status": "success", "data": {"resultType": "streams", "result": streams}}
    assert place(tmp_path, {"loki.json": json.dumps(answer, indent=indent)}) == ((9,), ("pool-9c",))


SPOT = (
    'spot: http://169.254.169.254/latest/meta-data/spot/instance-action {"action": "terminate", '
    '"time": "2026-03-03T05:50:00Z"}\n'
)


@pytest.mark.parametrize(
    ("name", "list_of"),
    [
        (
            "job.json",
            lambda hosts: json.dumps(
                {"nodes": [{"nodeIndex": at, "host": host} for at, host in enumerate(hosts)]}, indent=2
            ),
        ),
        (
            "job.yaml",
            lambda hosts: (
                "nodes:\n"
                + "".join(f"  - hostname: {host}\n    node_rank: {at}\n" for at, host in enumerate(hosts))
            ),
        ),
        ("nodes.txt", lambda hosts: "".join(f"node {at}: {host}\n" for at, host in enumerate(hosts))),
    ],
)
def test_a_list_of_numbered_nodes_says_what_they_are_called(
    tmp_path: Path, name: str, list_of: Callable[[Sequence[str]], str]
) -> None:
    hosts = ("ip-10-8-0-4", "ip-10-8-0-77", "ip-10-8-0-19")
    files = {f"node{at}.log": steps(40) for at in range(3)} | {name: list_of(hosts)}
    files["node1.log"] += SPOT
    assert place(tmp_path, files) == ((), ("ip-10-8-0-77",))


def test_a_list_that_counts_from_another_number_is_not_believed(tmp_path: Path) -> None:
    files = {f"node{at}.log": steps(40) for at in (1, 2)}
    files["node1.log"] += SPOT
    files["nodes.txt"] = "node 0: ip-10-8-0-4\nnode 1: ip-10-8-0-77\n"
    assert place(tmp_path, files)[1] == ("node1",)


def test_a_driver_that_fits_no_library_explains_what_cuda_says_of_it(tmp_path: Path) -> None:
    text = (
        "Failed to initialize NVML: Driver/library version mismatch\n"
        "RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 803: system has unsupported display "
        "driver / cuda driver combination\n"
    )
    assert judged(tmp_path, {"train.log": text}).verdict.failure_type == "gpu.unavailable"


@pytest.mark.parametrize(
    "said",
    [
        "Installed CUDA version 12.1 does not match the version torch was compiled with 12.2 but since the "
        "APIs are compatible, accepting this combination",
        "UserWarning: The detected CUDA version (12.1) has a minor version mismatch with the version that "
        "was used to compile PyTorch (12.2). Most likely this shouldn't be a problem.",
    ],
)
def test_a_toolkit_that_was_accepted_is_not_why_a_library_is_missing(tmp_path: Path, said: str) -> None:
    text = f"{said}\nImportError: /root/ext/fused_adam.so: cannot open shared object file: No such file\n"
    assert judged(tmp_path, {"train.log": text}).verdict.failure_type == "code.import"


def of_pods(end: str) -> str:
    """The output of two pods with four ranks each, and how the second one's launcher ended."""
    text = "".join(f"asr-0 main step {at} loss 2.1\nasr-1 main rss {at} GiB\n" for at in range(40))
    text += "".join(f"asr-1 main {line}\n" for line in end.splitlines())
    return text + f"asr-0 main [rank2]: {LOST}\n"


SUMMARY = (
    "=======\ntrain.py FAILED\n-------\nFailures:\n  <NO_OTHER_FAILURES>\n-------\n"
    "Root Cause (first observed failure):\n[0]:\n  time      : 2026-03-03_05:41:00\n  host      : asr-1\n"
    "  rank      : 7 (local_rank: 3)\n  exitcode  : {code} (pid: 41)\n  error_file: <N/A>\n"
    "  traceback : {trace}\n=======\n"
)


def test_a_summary_behind_a_pods_label_says_whose_memory_ran_out(tmp_path: Path) -> None:
    events = (
        "LAST SEEN   TYPE      REASON       OBJECT          MESSAGE\n"
        "9m          Warning   OOMKilling   node/pool-c7    Memory cgroup out of memory: Killed process 9187 "
        "(python3) total-vm:12190kB, anon-rss:6411kB, file-rss:71kB, shmem-rss:10kB, UID:0 pgtables:14kB\n"
        "3h          Normal    Scheduled    pod/asr-0       Successfully assigned ml/asr-0 to pool-c1\n"
        "3h          Normal    Scheduled    pod/asr-1       Successfully assigned ml/asr-1 to pool-c7\n"
    )
    end = SUMMARY.format(code=-9, trace="Signal 9 (SIGKILL) received by PID 41")
    files = {"pods.log": of_pods(end), "events.txt": events}
    assert place(tmp_path, files) == ((7,), ("pool-c7",))


def test_a_summary_behind_a_pods_label_says_who_crashed(tmp_path: Path) -> None:
    end = SUMMARY.format(code=-11, trace="Signal 11 (SIGSEGV) received by PID 41")
    assert place(tmp_path, {"pods.log": of_pods(end)}) == ((7,), ("asr-1",))


@pytest.mark.parametrize("ended", ["", "Process 2 exit with status code 139.\n"])
def test_horovodrun_puts_the_time_before_the_rank(tmp_path: Path, ended: str) -> None:
    head = "Wed Mar 04 09:{:02d}:{:02d} 2026[{}]<std{}>:"
    text = "".join(
        f"{head.format(at // 4, at % 4 * 15, rank, 'out')}step {at} loss 2.{at}\n"
        for at in range(60)
        for rank in range(4)
    )
    text += f"{head.format(15, 2, 2, 'err')}Segmentation fault (core dumped)\n{ended}"
    text += f"{head.format(15, 9, 1, 'err')}Terminated\nProcess 1 exit with status code 143.\n"
    assert place(tmp_path, {"run.log": text}) == ((2,), ())


@pytest.mark.parametrize(
    ("names", "peer", "told"),
    [
        (("ws4", "ws5"), "ws7.lab.example", "ws7"),
        (("ws4.lab.example", "ws5.lab.example"), "ws7", "ws7"),
        (("ws4", "ws5"), "ws5.lab.example", ""),  # one of those who complain
        (("ws4", "ws5"), "store.lab.example", ""),  # none of this row
    ],
)
def test_hosts_go_by_their_short_and_by_their_full_names(
    tmp_path: Path, names: tuple[str, ...], peer: str, told: str
) -> None:
    files = {
        f"{name}.log": steps(30)
        + f"{name}:71{at}:72{at} [0] misc/socket.cc:50 NCCL WARN socketProgress: Connection closed by remote "
        + f"peer {peer}<4{at}010>\nncclRemoteError: A call failed possibly due to a network error or a "
        "remote process exiting prematurely.\n"
        for at, name in enumerate(names)
    }
    assert place(tmp_path, files)[1] == ((told,) if told else ())
