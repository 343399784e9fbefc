"""How a job ended, where the logs tell it in ways of their own: done, taken over, diverged, slow."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scenes import bank_read_once, clock, judged, of_rank, scene, steps, traceback

from logtriage.agent.occasion import UNSURE
from logtriage.diagnose.confidence import RUNNING, confidence
from logtriage.localize.cascade import Group
from logtriage.localize.divergence import LEAST_POINTS, diverged, left
from logtriage.localize.outcome import Outcome
from logtriage.localize.progress import gather
from logtriage.model import Line


@pytest.fixture(scope="module", autouse=True)
def _bank_is_read_once() -> Iterator[None]:
    with bank_read_once():
        yield


def kind(folder: Path, **files: str) -> str:
    return judged(
        folder, {name.replace("__", "."): text for name, text in files.items()}
    ).verdict.failure_type


@pytest.mark.parametrize(
    "end",
    [
        "12:10:00 INFO: somelab.command_utils.train: Done.\n",
        f"{clock(60)} | INFO | recipes.train | Training finished: 20 steps\n",
        "[after training is done] datetime: 2026-01-31 08:10:00 \n"
        " validation loss at step 20 | lm loss value: 2.54 | lm loss PPL: 12.6 |\n"
        " test loss at step 20 | lm loss value: 2.53 | lm loss PPL: 12.5 |\n",
        "Successfully completed.\n",
        "*** Best metric: 81.2 (epoch 29)\n",
        "2026-01-31 08:10:00,101 INFO tune.py:1042 -- Total run time: 71.20 seconds (70.90 seconds for the "
        "tuning loop).\n",
        "(raylet) A worker died or was killed while executing a task by an unexpected system error.\n"
        "Training finished, exit code of main: 0\n",
    ],
)
def test_words_for_the_end(tmp_path: Path, end: str) -> None:
    assert kind(tmp_path, train__log=steps(20) + end) == "none.completed"


def test_a_notice_of_the_end_right_below_an_error_is_no_success(tmp_path: Path) -> None:
    text = (
        f"{clock(1)} INFO preparing images\n{clock(2)} ERROR no training images found, check train_data_dir\n"
        f"{clock(3)} INFO Training finished.\n"
    )
    assert kind(tmp_path, console__txt=text) == "data.missing"


def test_a_total_that_only_some_lines_know_is_reached(tmp_path: Path) -> None:
    text = "".join(
        f"[batch={n}/60]:\n\t Train time/batch: {n - 1}\n\t Train loss/train/total: 2.1\n"
        for n in range(1, 61)
    )
    assert kind(tmp_path, run__log=text) == "none.completed"


def test_a_goal_that_old_lines_named_is_not_reached(tmp_path: Path) -> None:
    text = " iteration 7/ 99 | loss: 2.1 |\n" + steps(200)
    assert kind(tmp_path, run__log=text) == "none.running"


def test_a_run_in_the_next_file_takes_over(tmp_path: Path) -> None:
    first = "".join(f"[batch={n}/90]: Train loss/train/total: 2.1\n" for n in range(1, 50)) + (
        "slurmstepd: error: *** JOB 71 ON c1 CANCELLED AT 2026-01-31T08:00:00 DUE TO PREEMPTION ***\n"
        "srun: error: c2: task 1: Terminated\n"
    )
    second = "".join(f"[batch={n}/90]: Train loss/train/total: 2.1\n" for n in range(46, 91))
    (tmp_path / "whole").mkdir()
    assert kind(tmp_path / "whole", job_71_r0__log=first, job_71_r1__log=second) == "none.completed"
    (tmp_path / "alone").mkdir()
    assert kind(tmp_path / "alone", job_71_r0__log=first) == "scheduler.preempted"


def test_an_attempt_that_a_wrapper_repeated_is_survived_where_only_epochs_are_told(tmp_path: Path) -> None:
    text = (
        "run.sh: attempt 1\n"
        + traceback("RuntimeError: synStatus=8 [Device not found] Device acquire failed.")
        + "run.sh: attempt 2\n"
        + "".join(
            f"{{'loss': 1.4{n:02d}, 'learning_rate': 9e-05, 'epoch': {n / 10}}}\n" for n in range(1, 30)
        )
        + "{'train_runtime': 310.2, 'train_samples_per_second': 55.1, 'train_loss': 1.19, 'epoch': 3.0}\n"
    )
    assert kind(tmp_path, hpu__log=text) == "none.completed"


def bar(step: int, rest: str) -> str:
    return f"Epoch 0:   1%|▎         | {step}/2010 [1:10:00<76:47:54, 14.05s/it, {rest}]\n"


def test_a_running_mean_that_is_not_kept_is_no_nan(tmp_path: Path) -> None:
    shown = "".join(bar(n, f"loss=nan, v_num=3, reduced_train_loss=4.{n}") for n in range(10, 60, 5))
    (tmp_path / "mean").mkdir()
    assert kind(tmp_path / "mean", nemo__log=shown) == "none.running"
    (tmp_path / "nan").mkdir()
    lost = "".join(bar(n, "loss=nan, v_num=3, val_loss=4.2") for n in range(10, 60, 5))
    assert kind(tmp_path / "nan", nemo__log=lost) == "numerics.nan"


def test_a_person_who_notes_that_nothing_more_came(tmp_path: Path) -> None:
    text = f"{clock(0)} INFO building the loaders\n{clock(9)} DEBUG spinning the loaders\n"
    (tmp_path / "noted").mkdir()
    assert kind(tmp_path / "noted", paste__txt=text + "\n(stuck here for three hours)\n") == "hang.silent"
    (tmp_path / "bare").mkdir()
    assert kind(tmp_path / "bare", paste__txt=text) == "unknown"


def curve(losses: list[float]) -> str:
    return "".join(
        f"{clock(2 * n)} INFO step {n} loss {loss:.4f} lr 1e-4\n" for n, loss in enumerate(losses, 1)
    )


FALLING = [9.0 * 0.97**n + 2.0 for n in range(120)]


def test_a_loss_that_left_and_stayed_away(tmp_path: Path) -> None:
    body = judged(tmp_path, {"train.log": curve(FALLING + [8.1, 8.3] * 20)}).verdict
    assert body.failure_type == "numerics.divergence"
    assert "step 121 " in body.evidence[0].text
    assert body.confidence < 0.8


def test_a_loss_that_stands_in_a_block_below_its_step(tmp_path: Path) -> None:
    blocks = "".join(
        f"[step={n}/4000]:\n\t Train time/total: {n * 2}\n\t Train loss/train/total: {loss:.4f}\n"
        "\t Train lr: 0.0002\n"
        for n, loss in enumerate(FALLING + [8.1, 8.3] * 20, 1)
    )
    body = judged(tmp_path, {"train.log": blocks}).verdict
    assert body.failure_type == "numerics.divergence"
    assert "loss/train/total: 8.1000" in body.evidence[0].text
    assert any("checkpoint" in each.text for each in body.mitigations)


def test_a_loss_of_a_run_continued_late_that_doubled_for_good(tmp_path: Path) -> None:
    steady = [2.0 + 0.02 * (n % 5) for n in range(60)]
    assert judged(tmp_path, {"a.log": curve([*steady, *[6.5, 6.6] * 15])}).verdict.failure_type == (
        "numerics.divergence"
    )
    restless = [2.0 + 3.0 * (n % 4 == 0) for n in range(60)]
    assert left(_lines([*restless, *[6.5, 6.6] * 15])) is None


@pytest.mark.parametrize(
    "losses",
    [
        FALLING,
        [*FALLING, 9.0, 8.0, *FALLING[-40:]],  # a spike
        [2.0 + 0.1 * (n % 7) for n in range(160)],  # never learned
        [0.01 + 0.001 * n for n in range(160)],  # nearly nothing
        [-1.0 - 0.1 * n for n in range(120)],  # no loss that means this
    ],
)
def test_other_curves_do_not_diverge(losses: list[float]) -> None:
    assert diverged(gather(read := scene(of_rank(0, curve(losses)))).traces, read) is None


def _lines(losses: list[float]) -> list[tuple[float, Line]]:
    return [(loss, Line("train.log", n, n, str(n), str(n))) for n, loss in enumerate(losses, 1)]


@given(
    st.lists(st.floats(1.0, 1e6), min_size=LEAST_POINTS, max_size=150), st.sampled_from([0.25, 2.0, 1024.0])
)
def test_divergence_does_not_depend_on_the_unit_of_the_loss(losses: list[float], factor: float) -> None:
    one, other = left(_lines(losses)), left(_lines([loss * factor for loss in losses]))
    assert (one and one.lines) == (other and other.lines)


@given(st.lists(st.floats(0.0, 1e6), max_size=150))
def test_a_loss_that_never_rises_does_not_diverge(losses: list[float]) -> None:
    assert left(_lines(sorted(losses, reverse=True))) is None


def test_a_rank_that_its_own_reports_show_to_be_slow(tmp_path: Path) -> None:
    text = steps(30) + "".join(
        f"{clock(60 + n)} | ml-{r} cuda:{r} rank={r} forward={3.1 if r == 2 else 1.0}s "
        f"backward_wait={0.1 if r == 2 else 2.2}s\n"
        for n in range(8)
        for r in range(4)
    )
    body = judged(tmp_path, {"train.log": text}).verdict
    assert (body.failure_type, body.culprits.ranks) == ("slow.straggler", (2,))


def test_a_rank_that_the_detector_of_its_framework_names(tmp_path: Path) -> None:
    text = steps(30) + "".join(
        f"INFO:megatron.core.utils: | MnRtt/Rnk: 3448.69ms/22 | MxRtt/Rnk: 6805.37ms/9 | "
        f"MnEtpt/Rnk: {150 + n}.49TF/9 | MxEtpt/Rnk: 296.97TF/{n}\n"
        for n in range(4)
    )
    body = judged(tmp_path, {"train.log": text}).verdict
    assert (body.failure_type, body.culprits.ranks) == ("slow.straggler", (9,))


def _report(scores: dict[int, float], prefix: str = "") -> str:
    rows = "".join(f"{prefix}  Rank={r} Node=pl-{r // 4} Score={score:.2f}\n" for r, score in scores.items())
    own = "".join(f"{prefix}  Rank={r} Node=pl-{r // 4} Score=0.99\n" for r in scores)
    return f"{prefix}GPU relative performance:\n{rows}{prefix}GPU individual performance:\n{own}"


_SLOW = "STRAGGLER DETECTION WARNING: Some GPUs have worse relative performance. Affected ranks: [5, 6]\n"
_CANCEL = "slurmstepd: error: *** JOB 4711 ON pl-0 CANCELLED AT 2026-01-31T08:10:00 ***\n"


def test_scores_of_a_straggler_detection_name_ranks_and_hosts(tmp_path: Path) -> None:
    well, bad = dict.fromkeys(range(8), 0.98), {**dict.fromkeys(range(8), 0.98), 5: 0.55, 6: 0.6}
    for order, reports in enumerate(([_report(bad), _SLOW], [_SLOW, _report(bad)])):  # of two versions
        text = steps(20) + _report(well) + steps(20, first=21, at=60) + "".join(reports)
        body = judged(tmp_path / str(order), {"slurm-4711.out": text + steps(9, first=41) + _CANCEL}).verdict
        assert (body.failure_type, body.culprits.ranks, body.culprits.hosts) == (
            "slow.straggler",
            (5, 6),
            ("pl-1",),
        )


def test_a_job_whose_stragglers_recovered_is_not_slow(tmp_path: Path) -> None:
    well = dict.fromkeys(range(8), 0.98)
    text = steps(20) + _SLOW + steps(20, first=21, at=60) + _report(well) + steps(20, first=41, at=120)
    text += f"{clock(300)} INFO Training finished.\n"
    assert kind(tmp_path, train__log=text) == "none.completed"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (
            "[mon] straggler detected: rank 5 (rk-1) step 3.2 s, median 1.0 s",
            ("slow.straggler", (5,), ("rk-1",)),
        ),
        ("WARNING rank 5 is a straggler: 3.2 times the median", ("slow.straggler", (5,), ())),
        ("slow ranks: [5, 6] on host rk-1", ("slow.straggler", (5, 6), ("rk-1",))),
        ("slowest rank: 5 1.03 s, mean 1.00 s", ("scheduler.cancelled", (), ())),
    ],
)
def test_ranks_that_a_jobs_own_monitor_calls_slow(
    tmp_path: Path, words: str, expected: tuple[str, tuple[int, ...], tuple[str, ...]]
) -> None:
    text = "".join(steps(4, first=1 + 4 * n, at=20 * n) + words + "\n" for n in range(5))
    body = judged(tmp_path, {"slurm-4711.out": text + _CANCEL}).verdict
    assert (body.failure_type, body.culprits.ranks, body.culprits.hosts) == expected


SEFF = "\nJob ID: 71\nCluster: lab\nUser/Group: me/us\nState: {state} (exit code {code})\nCores: 8\n"


@pytest.mark.parametrize(
    ("state", "code", "expected"),
    [
        ("COMPLETED", 0, "none.completed"),
        ("TIMEOUT", 0, "scheduler.time_limit"),
        ("OUT_OF_MEMORY", 0, "host.out_of_memory"),
        ("CANCELLED", 0, "scheduler.cancelled"),
        ("NODE_FAIL", 0, "host.node_lost"),
    ],
)
def test_the_state_that_seff_tells_is_the_end(tmp_path: Path, state: str, code: int, expected: str) -> None:
    assert kind(tmp_path, slurm_71__out=steps(20) + SEFF.format(state=state, code=code)) == expected


def test_communicators_that_are_torn_down_after_the_save_are_no_failure(tmp_path: Path) -> None:
    end = "".join(
        f"nq-1:{400 + r}:{500 + r} [{r}] NCCL INFO comm 0x55d0c{r} rank {r} nranks 2 cudaDev {r} busId b0000 "
        f"- Abort COMPLETE\nnq-1:{400 + r}:{600 + r} [{r}] NCCL INFO [Service thread] Connection closed by "
        f"localRank {r}\n"
        for r in range(2)
    )
    text = steps(20) + end + "0: Finished training run era5-b, 16 epochs, best validation loss 0.031\n"
    assert kind(tmp_path, slurm_72__out=text) == "none.completed"


def test_who_stops_a_job_of_rays_is_told(tmp_path: Path) -> None:
    text = (
        steps(20)
        + "(raylet, ip=10.4.0.9) The node with node id 7c2d has been marked dead because the detector has "
        "missed too many heartbeats from it. (autoscaler: scale down of an idle node)\n"
        "*** SIGTERM received at time=1769846700 on cpu 3 ***\n"
        "2026-01-31 08:05:00,101 SUCC cli.py:63 -- Job 'sft-nightly' was stopped\n"
    )
    verdict = judged(tmp_path, {"driver.log": text})
    assert verdict.verdict.failure_type == "scheduler.cancelled"
    assert "was stopped" in verdict.verdict.evidence[0].text


def test_waiting_for_the_next_batch_by_another_name(tmp_path: Path) -> None:
    text = "".join(
        f"{clock(60 * n)} (trainer:754) INFO: 2epoch:train:{n}-{n + 9}batch: iter_time=8.3, "
        f"forward_time=0.14, loss=62.9, backward_time=0.30, optim_step_time=0.08, train_time=8.9\n"
        for n in range(1, 60, 10)
    )
    assert kind(tmp_path, train__log=text) == "slow.data"


def test_the_sureness_of_a_verdict_follows_its_grounds() -> None:
    ended = Outcome("unclear", None)
    weak = Group("cuda.out_of_memory", (), frozenset())
    assert confidence(weak, (), ended) < RUNNING < UNSURE  # on unseen jobs, neither was right much more often
    assert confidence(weak, (), Outcome("completed", None)) < confidence(weak, (), ended)


def test_memory_that_ran_out_once_and_was_tried_again_ended_nothing(tmp_path: Path) -> None:
    oom = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total\n"
    loss = "{{'loss': 1.5, 'learning_rate': 1e-05, 'epoch': 0.{}}}\n"
    losses = "".join(map(loss.format, range(1, 9)))
    bar = "100%|##########| 57/57 [00:21<00:00,  2.70it/s]\n"
    text = oom + "batch of 16 does not fit, trying 8\n" + losses + bar + traceback("KeyError: 'eval_bleu'")
    assert kind(tmp_path, console__txt=text) == "code.key"


def test_windows_tells_a_crash_by_its_status(tmp_path: Path) -> None:
    bar = "Epoch {}/9: 100%|####| 50/50 [00:09<00:00,  5.1it/s, loss=0.5]\n"
    end = "Process finished with exit code -1073740791 (0xC0000409)\n"
    text = "".join(map(bar.format, range(1, 5))) + end
    assert kind(tmp_path, run__txt=text) == "process.native_crash"


def test_steps_counted_in_thousands(tmp_path: Path) -> None:
    bar = "Progress on:train {}kit/9.00kit rate:1.1s/it remaining:1:00:00 elapsed:0:40:00 postfix:loss=2.1\n"
    text = "".join(bar.format(f"1.{part:02}") for part in range(20))
    verdict = judged(tmp_path, {"console.txt": text})
    assert verdict.verdict.failure_type == "none.running"
    assert "1190" in verdict.verdict.summary


def test_a_container_killed_once_and_restarted_does_not_fail_a_job_that_ended_well(tmp_path: Path) -> None:
    pods = (
        "NAME         READY   STATUS      RESTARTS     AGE\n"
        "det-main-0   0/1     Completed   1 (1h ago)   3h\n\n"
        "    Last State:     Terminated\n      Reason:       OOMKilled\n      Exit Code:    137\n"
    )
    log = (
        steps(30)
        + "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: -9) local_rank: 0 (pid: 9) "
        "of binary: python\n[default] Worker group FAILED. 2/3 attempts left; will restart worker group\n"
        + steps(60)
        + "[default] worker group successfully finished. Waiting 300 seconds for other agents to finish.\n"
    )
    assert kind(tmp_path, pods__txt=pods, worker__log=log) == "none.completed"
    crashed = log[: log.index("[default] worker group successfully")]
    assert kind(tmp_path / "b", pods__txt=pods, worker__log=crashed) == "host.out_of_memory"


@pytest.mark.parametrize(("loss", "told"), [("3.1E+00", "none.running"), ("nan", "numerics.nan")])
def test_a_gradient_norm_that_is_never_filled_in_is_no_nan(tmp_path: Path, loss: str, told: str) -> None:
    line = (
        " iteration {:>6}/ 9000 | elapsed time per iteration (ms): 900.1 | learning rate: 1.0E-04 | "
        f"lm loss: {loss} | loss scale: 1.0 | grad norm: nan | number of nan iterations:   0 |\n"
    )
    text = "".join(line.format(step) for step in range(10, 60))
    assert kind(tmp_path, console__log=text) == told


def test_polls_that_go_on_alone_for_far_longer_than_any_step_show_a_hang(tmp_path: Path) -> None:
    poll = "{} INFO 10.1.1.9:{} - GET /health 200 OK\n"
    work = "".join(f"{clock(300 * n)} INFO trainer step {n} loss 1.{n}\n" for n in range(1, 9))
    alone = "".join(poll.format(clock(2400 + 30 * n), 4000 + n) for n in range(1, 90))
    assert kind(tmp_path, driver__log=work + alone) == "hang.silent"
    assert kind(tmp_path / "b", driver__log=work + "".join(alone.splitlines(True)[:9])) == "none.running"


@pytest.mark.parametrize(("minutes", "told"), [(70, "hang.silent"), (33, "none.running")])
def test_polls_behind_few_steps_show_what_was_done_last(tmp_path: Path, minutes: int, told: str) -> None:
    """Steps of reinforcement learning take minutes each, and grow."""
    text = "".join(f"{clock(600 * n)} INFO learner step {n} reward 0.{n}\n" for n in range(1, 4))
    text += f"{clock(1810)} INFO learner begins to update its policy\n"
    text += "".join(
        f"{clock(1830 + 30 * n)} INFO 10.1.1.9:{4000 + n} GET /metrics 200\n" for n in range(2 * minutes)
    )
    body = judged(tmp_path, {"driver.log": text}).verdict
    assert body.failure_type == told
    assert told != "hang.silent" or any("begins to update" in each.text for each in body.evidence)


@pytest.mark.parametrize(
    ("frame", "told"),
    [("destroy_process_group (torch/distributed/distributed_c10d.py:2041)", "hang.silent"),
     ("_shutdown (/usr/lib/python3.12/threading.py:1624)", "hang.silent"),
     ("forward (model/block.py:88)", "none.completed")],
)  # fmt: skip
def test_a_job_that_was_done_and_never_left_hangs(tmp_path: Path, frame: str, told: str) -> None:
    log = steps(40) + f"{clock(90)} INFO Training completed.\n"
    stacks = (
        "Process 91: python fit.py\nPython v3.12.3 (/usr/bin/python3.12)\n\n"
        f'Thread 91 (idle): "MainThread"\n    {frame}\n    main (fit.py:31)\n'
    )
    body = judged(tmp_path, {"train.log": log, "stacks_rank0.txt": stacks}).verdict
    assert body.failure_type == told
    assert told != "hang.silent" or frame.split()[0] in body.evidence[0].text


def test_stacks_that_somebody_took_show_a_hang(tmp_path: Path) -> None:
    stacks = (
        "$ py-spy dump --pid 77\nProcess 77: python fit.py\nPython v3.11.4 (/usr/bin/python3.11)\n\n"
        'Thread 77 (active): "MainThread"\n    backward (torch/_tensor.py:522)\n    fit (fit.py:31)\n'
        "$ nvidia-smi -L\nGPU 0: NVIDIA A100\n"
    )
    log = "".join(f"08:00:{n:02} it={n * 50} loss=0.9 mem=7G\n" for n in range(1, 30))
    assert kind(tmp_path, out__log=log) == "none.running"
    assert kind(tmp_path / "b", out__log=log, stacks__txt=stacks) == "hang.silent"


def test_a_run_whose_tracker_saw_it_succeed_is_done_whatever_its_counters_count(tmp_path: Path) -> None:
    end = (
        "wandb: Waiting for W&B process to finish... (success).\n"
        "(raylet) node_manager.cc:3041: Workers (tasks / actors) killed due to memory pressure (OOM): 0\n"
    )
    assert kind(tmp_path, driver__log=steps(20) + end) == "none.completed"
    failed = end.replace("success", "failed 1")
    assert kind(tmp_path / "b", driver__log=steps(20) + failed) != "none.completed"


@pytest.mark.parametrize("end", ["+ exit 2\n", "run.sh returned 2, see *.err\n", "  Reason: exit code 2\n"])
def test_a_script_that_only_returned_a_code_is_no_running_job(tmp_path: Path, end: str) -> None:
    assert kind(tmp_path, job__log=steps(20) + end) == "unknown"


def test_a_job_that_somebody_stopped_by_the_clouds_record(tmp_path: Path) -> None:
    record = '{\n "JobName": "a",\n "eventName": "StopTrainingJob",\n "requestParameters": {}\n}\n'
    log = steps(20) + f"{clock(70)} toolkit INFO     Received SIGTERM, forwarding to user script\n"
    assert kind(tmp_path, trail__json=record, stream__log=log) == "scheduler.cancelled"


def test_a_silent_rank_that_its_launcher_saw_killed_was_killed(tmp_path: Path) -> None:
    def launched(host: str, rank: int, code: int, pid: int, name: str) -> str:
        return (
            f"{clock(400 if code == -9 else 1900)} torch.distributed.elastic: [ERROR] failed "
            f"(exitcode: {code}) local_rank: 0 (pid: {pid}) of binary: python\n"
            "=====\nRoot Cause (first observed failure):\n[0]:\n  time      : 2026-01-31_08:40:01\n"
            f"  host      : {host}\n  rank      : {rank} (local_rank: 0)\n  exitcode  : {code} (pid: {pid})\n"
            f"  error_file: <N/A>\n  traceback : Signal {-code} ({name}) received by PID {pid}\n=====\n"
        )

    waited = (
        "[E ProcessGroupNCCL.cpp:828] [Rank {}] Watchdog caught collective operation timeout: "
        "WorkNCCL(SeqNum=8, OpType=ALLREDUCE, Timeout(ms)=1800000) ran for 1800012 milliseconds "
        "before timing out.\n"
    )
    files = {
        f"node_{rank}.out": f"{clock(0)} INFO start\n"
        + waited.format(rank)
        + launched(f"u{rank}", rank, -6, 40, "SIGABRT")
        for rank in (0, 1, 2)
    }
    files["node_0.out"] = steps(20) + files["node_0.out"]
    files["node_3.out"] = f"{clock(0)} INFO start\n" + launched("u3", 3, -9, 44, "SIGKILL")
    body = judged(tmp_path, files).verdict
    assert (body.failure_type, body.culprits.ranks, body.culprits.hosts) == ("process.killed", (3,), ("u3",))
    assert "Signal 9 (SIGKILL)" in body.evidence[0].text


def test_an_error_of_one_rank_explains_why_the_others_waited_for_its_socket(tmp_path: Path) -> None:
    late = (
        "[rank{0}]: EI0006: [PID: 4{0}] 2026-01-31-08:12:0{0} Getting socket times out. Reason: "
        "Remote Rank did not send the data in time.\n"
    )
    text = (
        "".join(f"[rank0]: {line}\n" for line in steps(20).splitlines())
        + "".join(f"[rank2]: {line}\n" for line in traceback("KeyError: 'q-81'").splitlines())
        + "".join(late.format(rank) for rank in (0, 1, 3))
    )
    body = judged(tmp_path, {"npu.log": text}).verdict
    assert (body.failure_type, body.culprits.ranks) == ("code.key", (2,))


def test_a_sweep_whose_trials_all_terminated_is_done(tmp_path: Path) -> None:
    oom = "(objective pid=71) torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
    ends = "".join(f"(objective pid={pid}) accuracy {pid / 99:.2f}\n" for pid in (72, 73))
    assert kind(tmp_path / "a", tune__log=oom + ends + "Trial status: 3 TERMINATED\n") == "none.completed"
    failed = oom + ends + "Trial status: 2 TERMINATED | 1 ERROR\n"
    assert kind(tmp_path / "b", tune__log=failed) == "cuda.out_of_memory"


def test_a_launch_that_failed_before_the_steps_of_a_second_one(tmp_path: Path) -> None:
    refused = "ssh: Could not resolve hostname mpi-1.mpi: Name or service not known\n"
    text = refused + "".join(f"[1,0]<stdout>:step {step} loss 2.0\n" for step in range(1, 40))
    ended = text + "[1,0]<stdout>:INFO:tensorflow:Loss for final step: 2.0.\n"
    assert kind(tmp_path / "a", launcher__log=ended) == "none.completed"
    assert kind(tmp_path / "b", launcher__log=refused) == "scheduler.launch"


@pytest.mark.parametrize(
    "end", ["exit status 3\n", "Job 7 exit code: 1\n", "[entrypoint] script exited with code 2\n"]
)
def test_a_status_alone_leaves_the_cause_open(tmp_path: Path, end: str) -> None:
    assert kind(tmp_path, job__log=steps(30) + end) == "unknown"


def test_the_child_of_a_parent_that_could_not_pickle_its_target_is_no_cause(tmp_path: Path) -> None:
    child = traceback("EOFError: Ran out of input", "_main", "/lib/multiprocessing/spawn.py").splitlines()
    child.insert(-1, "    self = reduction.pickle.load(from_parent)")
    text = (
        traceback("AttributeError: Can't pickle local object 'run.<locals>.scale'") + "\n".join(child) + "\n"
    )
    assert kind(tmp_path, out__txt=text) == "code.attribute"


def test_an_error_beside_records_of_metrics_is_read(tmp_path: Path) -> None:
    records = "".join(f'{{"loss": {2 - step / 9:.2f}, "lr": 0.1, "epoch": 0.{step}}}\n' for step in range(4))
    assert kind(tmp_path, run__log=records + traceback("KeyError: 'x'")) == "code.key"


def test_a_watcher_that_looks_on_after_the_last_bar_shows_a_hang(tmp_path: Path) -> None:
    bars = "".join(
        f" {step}%|#         | {step}/100 [00:{step}<09:00,  6.01s/it]\n" for step in range(10, 30)
    )
    seen = [f"[poll] 2026-01-31 {hour:02}:00:00 8 procs, util 100, power 80W\n" for hour in range(8, 14)]
    assert kind(tmp_path / "a", ft__log=bars + "".join(seen)) == "hang.silent"
    assert kind(tmp_path / "b", ft__log=bars + "".join(seen[:1])) == "none.running"


def test_a_hang_that_a_person_saw_cites_the_log_and_the_clock(tmp_path: Path) -> None:
    log = "".join(f'{{"loss": 2.5, "step": {n}, "time": "2026-01-31T08:{n:02d}:00"}}\n' for n in range(1, 50))
    look = "$ date; tail -1 metrics.jsonl\nSat Jan 31 20:30:00 UTC 2026\n" + log.splitlines()[-1] + "\n"
    look += "$ squeue -u me\n  4711  train  pretrain  me  R  12:31:10  2 gpu[1-2]\n"
    body = judged(tmp_path, {"metrics.jsonl": log, "look.txt": look}).verdict
    assert body.failure_type == "hang.silent"
    cited = [(each.file, each.line) for each in body.evidence]
    assert cited[0] == ("metrics.jsonl", 49) and ("look.txt", 2) in cited


def bars(count: int) -> str:
    """A progress bar without times, at 8 s a step."""
    return "".join(
        f" {n // 9}%|#      | {n}/900 [0:{8 * n // 60:02d}:{8 * n % 60:02d}<3:30:11,  8.02s/it]\n"
        for n in range(1, count)
    )


def table(watts: int, busy: int) -> str:
    return "".join(
        f"|   {n}  NVIDIA H100 80GB HBM3          On  |   00000000:1{n}:00.0 Off |                    0 |\n"
        f"| N/A  41C   P0      {watts}W /  700W |   71233MiB /  81559MiB |    {busy:3d}%      Default |\n"
        for n in range(4)
    )


@pytest.mark.parametrize(
    ("name", "look"),
    [
        ("ps.txt", "    PID STAT     ELAPSED COMMAND\n   4001 Rl      06:12:40 python train.py\n"),
        (
            "squeue.txt",
            "  JOBID PARTITION  NAME  USER ST    TIME  NODES\n   4711  train  sft  me  R 9:15:22  2\n",
        ),
        ("nvidia-smi.txt", table(112, 100)),
    ],
)
def test_a_look_at_the_running_job_tells_that_its_bar_stands_still(
    tmp_path: Path, name: str, look: str
) -> None:
    body = judged(tmp_path, {"nohup.out": bars(240), name: look}).verdict
    assert body.failure_type == "hang.silent"
    assert name in [each.file for each in body.evidence]


@pytest.mark.parametrize(
    ("name", "look"),
    [
        ("ps.txt", "    PID STAT     ELAPSED COMMAND\n   4001 Rl         45:10 python train.py\n"),
        (
            "squeue.txt",
            "  JOBID PARTITION  NAME  USER ST    TIME  NODES\n   4711  train  sft  me PD 0:00  2\n",
        ),
        ("nvidia-smi.txt", table(640, 100)),
        ("nvidia-smi.txt", table(80, 0)),
    ],
)
def test_a_look_at_a_healthy_job_raises_no_alarm(tmp_path: Path, name: str, look: str) -> None:
    assert judged(tmp_path, {"nohup.out": bars(240), name: look}).verdict.failure_type == "none.running"


def detector(epochs: int, of: int | None, *, evaluated: int = 500, cut: int = 0) -> str:
    """An OpenMMLab run of 100 steps an epoch, which says how many epochs there are, or only what is left."""
    lines = [f"{clock(0)[:19]} - mmengine - INFO - Distributed training. nproc 4"]
    if of is not None:
        lines.append(f"train_cfg = dict(max_epochs={of}, type='EpochBasedTrainLoop', val_interval=1)")
    for epoch in range(1, epochs + 1):
        for step in (40, 80):
            at = clock(60.0 * epoch + step / 2)[:19]
            left = f"0:{(8 - epoch):02d}:{10 if epoch == 8 else 40}"
            lines.append(
                f"{at} - mmengine - INFO - Epoch(train) [{epoch}][{step:4d}/100]  lr: 1.0e-04  eta: {left}  "
                "time: 0.5012  data_time: 0.0091  memory: 9124  loss: 1.2"
            )
        saved, seen = clock(60.0 * epoch + 52)[:19], clock(60.0 * epoch + 58)[:19]
        lines.append(f"{saved} - mmengine - INFO - Saving checkpoint at {epoch} epochs")
        done = evaluated if epoch == epochs else 500
        lines.append(f"{seen} - mmengine - INFO - Epoch(val) [{epoch}][{done}/500]  mIoU: 61.2")
    return "\n".join(lines[: len(lines) - cut]) + "\n"


@pytest.mark.parametrize(
    ("text", "failure_type"),
    [
        (detector(8, 8), "none.completed"),
        (detector(8, None), "none.completed"),  # by the time that it says is left
        (detector(5, 8), "none.running"),
        (detector(5, None), "none.running"),
        (detector(8, 20), "none.running"),
        (detector(8, 8, evaluated=250), "none.running"),  # in the midst of the last evaluation
        (detector(8, 8, cut=1), "none.running"),
        (detector(8, 8, cut=2), "none.running"),
        (detector(8, 8) + traceback("KeyError: 'iou'"), "code.key"),
    ],
)
def test_the_last_epoch_was_trained_saved_and_evaluated(tmp_path: Path, text: str, failure_type: str) -> None:
    assert kind(tmp_path, train__log=text) == failure_type


def own_loop(epochs: int, of: int, end: str) -> str:
    return (
        "".join(
            f"{clock(30.0 * epoch + step / 10)} Epoch [{epoch}/{of}], Step [{step}/200], Loss: 0.{step}\n"
            for epoch in range(1, epochs + 1)
            for step in (100, 200)
        )
        + end
    )


@pytest.mark.parametrize(
    ("text", "failure_type"),
    [
        (own_loop(6, 6, f"{clock(210)} saved checkpoint to out/ep6.pt\n"), "none.completed"),
        (own_loop(4, 6, f"{clock(150)} saved checkpoint to out/ep4.pt\n"), "none.running"),
        (own_loop(4, 6, ""), "none.running"),  # all steps, though not of all epochs
    ],
)
def test_the_end_of_an_epoch_is_not_that_of_the_training(
    tmp_path: Path, text: str, failure_type: str
) -> None:
    assert kind(tmp_path, train__log=text) == failure_type


@pytest.mark.parametrize(
    ("then", "failure_type"),
    [
        ("Restored all states from the checkpoint at /w/hpc_ckpt_2.ckpt\n", "none.completed"),
        ("INFO caught SIGTERM, stopping after this epoch\n", "scheduler.preempted"),
    ],
)
def test_a_requeued_run_that_came_to_its_end_in_the_same_log(
    tmp_path: Path, then: str, failure_type: str
) -> None:
    def epochs(first: int, last: int) -> str:
        return "".join(
            f"Epoch {n}: 100%|##########| 800/800 [11:1{n % 10}<00:00,  1.19it/s, loss=2.{n}]\n"
            for n in range(first, last)
        )

    text = (
        epochs(0, 6)
        + "slurmstepd: error: *** JOB 77 ON nd-4 CANCELLED AT 2026-01-31T08:40:00 DUE TO PREEMPTION ***\n"
        + then
        + epochs(6, 9)
        + "`Trainer.fit` stopped: `max_epochs=9` reached.\n"
    )
    assert kind(tmp_path, slurm__out=text) == failure_type


def queried(header: str, row: str) -> str:
    return "$ nvidia-smi --query-gpu=... --format=csv\n" + header + "\n" + "".join(
        row.format(n=n, bus=f"00000000:{n}B:00.0") + "\n" for n in range(4)
    )  # fmt: skip


TIME_AND_NAME = "2026-01-31 09:10:07.250000000 +0100 nohup.out\n"
LISTED = "-rw-rw-r-- 1 me lab 1048576 2026-01-31 09:10:07.250000000 +0100 "
STAT = (
    "  File: runs/nohup.out\n  Size: 1048576   Blocks: 2048   IO Block: 4096   regular file\n"
    "Access: 2026-01-31 20:29:00.000000000 +0100\nModify: 2026-01-31 09:10:07.250000000 +0100\n"
)


@pytest.mark.parametrize(
    ("look", "failure_type"),
    [
        (queried("utilization.gpu [%], index, power.draw [W], memory.used [MiB], power.limit [W]",
                 "99 %, {n}, 131.40 W, 61022 MiB, 700.00 W"), "hang.silent"),
        (queried("pci.bus_id, memory.used [MiB], power.draw.instant [W], utilization.gpu [%]",
                 "{bus}, 38022 MiB, 96.11 W, 100 %"), "hang.silent"),
        # At work; at rest; a small card whose limit nobody told.
        (queried("index, utilization.gpu [%], power.draw [W], power.limit [W]",
                 "{n}, 99 %, 531.40 W, 700.00 W"),
         "none.running"),
        (queried("index, utilization.gpu [%], power.draw [W], power.limit [W]",
                 "{n}, 0 %, 81.40 W, 700.00 W"),
         "none.running"),
        (queried("index, utilization.gpu [%], power.draw [W], memory.used [MiB]",
                 "{n}, 99 %, 131 W, 11022 MiB"),
         "none.running"),
        ("$ date; ls -l\nSat Jan 31 20:30:00 CET 2026\n" + LISTED + "nohup.out\n", "hang.silent"),
        ("$ date\nSat Jan 31 08:30:00 PM CET 2026\n" + LISTED + "nohup.out\n", "hang.silent"),
        (STAT + "$ date -Is\n2026-01-31T20:30:00+01:00\n", "hang.silent"),
        ("$ date; stat -c '%y %n' nohup.out\nSat Jan 31 20:30:00 CET 2026\n" + TIME_AND_NAME, "hang.silent"),
        ("Sat Jan 31 20:30:00 CET 2026\n" + TIME_AND_NAME.replace("nohup", "old"), "none.running"),
        # A minute later; another file; a listing that tells nothing of now.
        ("$ date\nSat Jan 31 09:11:00 CET 2026\n" + LISTED + "nohup.out\n", "none.running"),
        ("$ date\nSat Jan 31 20:30:00 CET 2026\n" + LISTED + "old.out\n", "none.running"),
        (LISTED + "nohup.out\n" + LISTED.replace("09:10", "20:30") + "notes.txt\n" + STAT, "none.running"),
    ],
)  # fmt: skip
def test_a_look_at_gpus_and_at_the_log_file(tmp_path: Path, look: str, failure_type: str) -> None:
    body = judged(tmp_path, {"nohup.out": bars(240), "look.txt": look}).verdict
    assert body.failure_type == failure_type
    assert failure_type == "none.running" or "look.txt" in [each.file for each in body.evidence]


def test_gpus_that_are_sampled_again_and_again_wait_in_all_last_samples(tmp_path: Path) -> None:
    head = "timestamp, index, utilization.gpu [%], power.draw [W], power.limit [W]\n"

    def samples(last: int, before: int = 610) -> str:
        return head + "".join(
            f"2026/01/31 08:{n:02d}:00.000, {gpu}, 100 %, {last if n > 20 else before}.0 W, 700.0 W\n"
            for n in range(24)
            for gpu in range(2)
        )

    assert kind(tmp_path / "stuck", nohup__out=bars(240), smi__csv=samples(120)) == "hang.silent"
    one = samples(610).replace("08:23:00.000, 0, 100 %, 610", "08:23:00.000, 0, 100 %, 110")
    one = one.replace("08:23:00.000, 1, 100 %, 610", "08:23:00.000, 1, 100 %, 110")
    assert kind(tmp_path / "once", nohup__out=bars(240), smi__csv=one) == "none.running"
    assert kind(tmp_path / "small", nohup__out=bars(240), smi__csv=samples(210, 215)) == "none.running"


PULLED = "slurmstepd: error: *** JOB 77 ON nd-4 CANCELLED AT 2026-01-31T08:00:00 DUE TO PREEMPTION ***\n"


@pytest.mark.parametrize(
    ("text", "failure_type"),
    [
        # Nothing was trained before the machines were taken; then a later try trained, without a word for it.
        ("launcher: the TPU went to state PREEMPTED, making another\n" + steps(30), "none.running"),
        (PULLED + "run 2 begins\n" + steps(30, at=60), "none.running"),
        # Steps that were made already are made again.
        (steps(40) + PULLED + steps(30, first=21, at=200), "none.running"),
        # Who knows that he is to end may make a few steps more.
        (steps(40) + PULLED + steps(30, first=41, at=80), "scheduler.preempted"),
        (PULLED + steps(3, at=60), "scheduler.preempted"),
    ],
)
def test_machines_were_taken_from_an_attempt_that_another_followed(
    tmp_path: Path, text: str, failure_type: str
) -> None:
    assert kind(tmp_path, out__log=text) == failure_type


@pytest.mark.parametrize("inner", [12, 16])
def test_a_full_bar_within_each_update_is_not_the_end_of_all(tmp_path: Path, inner: int) -> None:
    updates = "".join(
        f"(Actor pid=40) Train epoch [1/1]: 100%|####| {inner}/{inner} [00:34<00:00,  1.11s/it, loss=0.2]\n"
        f"(Driver pid=31) Global step {number}: {{'kl': 0.01, 'reward': 0.3}}\n"
        for number in range(1, 50)
    )
    assert kind(tmp_path, driver__log=updates + traceback("KeyError: 'verdict'")) == "code.key"
    assert kind(tmp_path / "calm", driver__log=updates) == "none.running"


INTERRUPTED = (
    "ERROR:    Traceback (most recent call last):\n"
    '  File "/usr/lib/python3.11/asyncio/runners.py", line 123, in run\n'
    "    raise KeyboardInterrupt()\n"
    "KeyboardInterrupt\n"
)


def test_an_agent_that_is_interrupted_once_the_work_is_done_takes_nothing_away(tmp_path: Path) -> None:
    done = f"{clock(21)} INFO loop.py:88 training finished, 20 steps\n"
    leaves = f"{clock(30)} [INFO] agent: metrics server closes\n"
    assert kind(tmp_path / "done", train__log=steps(20) + done + leaves + INTERRUPTED) == "none.completed"
    assert kind(tmp_path / "open", train__log=steps(20) + leaves + INTERRUPTED) == "scheduler.cancelled"
    again = steps(20) + done + f"{clock(900)} INFO exporting for the second task\n" + INTERRUPTED
    assert kind(tmp_path / "later", train__log=again) == "scheduler.cancelled"


def test_a_platforms_reason_weighs_more_than_the_programs_own_success(tmp_path: Path) -> None:
    done = f"{clock(21)} sagemaker-training-toolkit INFO     Reporting training SUCCESS\n"
    record = (
        '{\n  "TrainingJobName": "sft-7",\n  "TrainingJobStatus": "Failed",\n'
        '  "FailureReason": "ClientError: Data download failed:Insufficient disk space"\n}\n'
    )
    assert kind(tmp_path, algo__log=steps(20) + done, job__json=record) == "host.disk_full"
    warned = f"{clock(2)} WARNING cache: Insufficient disk space for a second copy, one is kept\n"
    assert kind(tmp_path / "warned", algo__log=warned + steps(20) + done) == "none.completed"
