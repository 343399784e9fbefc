"""What platforms say before a program runs, and when they end it: small jobs told in their words."""

from __future__ import annotations

import pytest
from scenes import clock, findings, reading, steps, traceback

from logtriage.diagnose.offline import decide

BAR = "".join(f" {n}%|#    | {n * 9}/900 [0{n % 10}:00<1:00:00, 4.1s/it]\n" for n in range(1, 60))
SANDBOX = "Task's current input in-Zk81 hit its timeout of 300s\n"
WHEEL = "ERROR: apex-0.2-cp312-cp312-linux_x86_64.whl is not a supported wheel on this platform.\n"
AGENT = "clearml_agent: ERROR: Could not install task requirements!\nProcess failed, exit code 1\n"
SQUASH = (
    "1: pyxis: importing docker image: registry.lab/t5:3\n"
    "1: slurmstepd: error: pyxis: child 811 failed with error code: 1\n"
    "1: slurmstepd: error: pyxis:     Write failed because No space left on device\n"
    "1: slurmstepd: error: pyxis: couldn't start container\n"
    "srun: error: rk7: task 1: Exited with exit code 1\n"
)
QUOTA = (
    "INFO:google.cloud.aiplatform.jobs:CustomJob projects/1/locations/u/customJobs/7 current state:\n"
    "JobState.JOB_STATE_FAILED\n"
    + traceback("RuntimeError: Job failed with:")
    + 'code: 8\nmessage: "The following quota metrics exceed quota limits: aiplatform.googleapis.com/cpus"\n'
)
NEURON = (
    "...\n2026-01-31T08:02:31Z ERROR 71 [neuronx-cc]:  An Internal Compiler Error has occurred\n"
    + traceback("RuntimeError: Bad StatusOr access: INTERNAL: RunNeuronCCImpl: error condition error != 0")
)
MOUNT = (
    f"{clock(0)} INFO data_capability: mounting input\n"
    f"{clock(9)} ERROR data_capability: Error Code: ScriptExecution.StreamAccess.Authentication\n"
)


@pytest.mark.parametrize(
    ("text", "failure_type"),
    [
        pytest.param(BAR + SANDBOX, "scheduler.time_limit", id="limit-of-the-function"),
        pytest.param(SANDBOX + BAR, "none.running", id="limit-of-a-call-that-was-lived-with"),
        pytest.param(WHEEL + AGENT, "scheduler.launch", id="agent-cannot-build-the-environment"),
        pytest.param(WHEEL, "scheduler.launch", id="wheel-of-another-python"),
        pytest.param(
            WHEEL + steps(1) + traceback("ValueError: bad lr"), "code.value", id="program-ran-nevertheless"
        ),
        pytest.param(SQUASH, "host.disk_full", id="no-room-for-the-image"),
        pytest.param(QUOTA, "scheduler.launch", id="quota-of-machines"),
        pytest.param(NEURON, "code.compile", id="compiler-of-neuron"),
        pytest.param(MOUNT, "auth.denied", id="input-that-may-not-be-read"),
    ],
)
def test_what_a_platform_says(text: str, failure_type: str) -> None:
    assert decide(findings(reading("job.log", text))).failure_type == failure_type


def test_ray_says_that_the_entry_point_ended_well_whatever_was_said_while_it_left() -> None:
    done = "".join(f"{'=' * 25} Step {n}/30 {'=' * 25}\n  * Loss: 0.01\n" for n in range(1, 31))
    left = "(raylet) [2026-01-31 08:39:40,118 E 22 22] (raylet) worker_pool.cc:582: still hanging\n"
    said = "-----\nJob 'raysubmit_Tz7' succeeded\n-----\n"
    for text in (done + left + said, left + said):
        assert decide(findings(reading("job.log", text))).failure_type == "none.completed"
    steps_ = findings(reading("job.log", done)).progress.last_step
    assert steps_ is not None and steps_.step == 30
