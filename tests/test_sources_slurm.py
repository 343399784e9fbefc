"""Jobs of a real Slurm: as its tools answered when recorded, and anew where REAL_SLURM=1."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import slurm_trial
from hypothesis import given
from hypothesis import strategies as st

from logtriage import triage
from logtriage.sources.accounts import accounts_of_sacct, accounts_of_scontrol, gpu_count
from logtriage.sources.hostlist import MOST_NODES, node_names
from logtriage.sources.job import KnownJob, SourceFault
from logtriage.sources.lookup import collect, find_jobs
from logtriage.sources.slurm import Slurm

REAL = os.environ.get("REAL_SLURM") == "1"


@dataclass(frozen=True)
class Trial:
    source: Slurm
    folder: Path
    began: float

    def one(self, asked: str) -> KnownJob:
        found = self.source.find(asked, 10)
        assert found, f"{asked} was not found"
        return found[0]

    def names(self, job: KnownJob) -> list[str]:
        return sorted(str(Path(path).relative_to(self.folder / "runs")) for path in job.paths)


@pytest.fixture(
    scope="module",
    params=[
        "recorded",
        pytest.param("real", marks=pytest.mark.skipif(not REAL, reason="needs a real Slurm")),
    ],
)
def trial(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trial]:
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "real":
            folder = slurm_trial.FOLDER
            shutil.rmtree(folder, ignore_errors=True)
            subprocess.run([slurm_trial.HERE / "real_slurm.sh", "start", folder], check=True, timeout=200)
            try:
                runs = slurm_trial.run_jobs(folder)
                patch.setenv("SLURM_CONF", f"{folder}/slurm.conf")
                yield Trial(Slurm(roots=(str(runs),)), folder, 0.0)
            finally:
                subprocess.run([slurm_trial.HERE / "real_slurm.sh", "stop", folder], check=True, timeout=60)
        else:
            folder = tmp_path_factory.mktemp("trial")
            runs = slurm_trial.lay(folder)
            for name, text in json.loads(slurm_trial.FILES.read_text()).items():
                (folder / name).write_text(text)
            for name, value in slurm_trial.stand_in(folder, folder / "tools", dict(os.environ)).items():
                patch.setenv(name, value)
            yield Trial(Slurm(roots=(str(runs),)), folder, float(slurm_trial.RECORDED_AT.read_text()) - 3600)


def test_a_failed_job_by_its_id(trial: Trial) -> None:
    job = trial.one("1")
    assert (job.id, job.name, job.user, job.state, job.exit_code) == (
        "1",
        "llama-sft",
        "root",
        "FAILED",
        "7:0",
    )
    assert (job.nodes, job.gpus, job.is_running) == (("node-a",), 2, False)
    assert job.started and job.ended and trial.began < job.started <= job.ended
    assert trial.names(job) == ["llama-sft-1.err", "llama-sft-1.out"]


def test_a_failed_task_in_a_script_that_ended_well(trial: Trial) -> None:
    job = trial.one("2")
    assert (job.state, job.exit_code) == ("COMPLETED", "3:0")
    assert {"two-steps.2/task-0.log", "two-steps.2/task-1.err"} <= set(trial.names(job))


def test_what_only_slurmctld_remembers_is_found_and_collected(trial: Trial, tmp_path: Path) -> None:
    """This release tells sacct nothing of #SBATCH --output; scontrol does."""
    assert "two-steps.2/batch.out" in trial.names(trial.one("2"))
    paths = trial.source.collect(trial.one("2"), tmp_path)
    assert any(path.endswith("two-steps.2/batch.out") for path in paths)


def test_arrays_and_heterogeneous_jobs(trial: Trial) -> None:
    tasks = trial.source.find("12", 10)
    assert sorted(job.id for job in tasks) == ["12_0", "12_1", "12_2", "12_3"]
    assert {job.id: job.state for job in tasks}["12_1"] == "FAILED"
    last = trial.one("12_3")
    (name,) = trial.names(last)
    assert name.startswith("arrays/12/3-")
    assert sorted(job.id for job in trial.source.find("3", 10)) == ["3+0", "3+1"]
    assert [job.id for job in trial.source.find("3+1", 10)] == ["3+1"]


def test_jobs_that_have_not_ended_say_so(trial: Trial) -> None:
    later = trial.one("7")
    assert later.state == "PENDING" and later.ended is None and "waits in the queue" in later.note
    requeued = trial.one("6")
    assert requeued.state in ("PENDING", "RUNNING") and requeued.ended is None


def test_by_name_and_by_user(trial: Trial) -> None:
    found = trial.source.find("llama-sft", 10)
    assert {job.id for job in found} == {"8", "1"}
    assert (found[0].ended or 0) >= (found[1].ended or 0)  # the newest first
    assert {job.user for job in trial.source.find("nobody", 10)} == {"nobody"}
    assert trial.source.find("nosuch", 10) == []


def test_a_misspelt_name_is_answered_with_the_near_ones(trial: Trial) -> None:
    found = find_jobs("lama-sft", [trial.source])
    assert not found.jobs and found.near[0] == "llama-sft"


def test_an_odd_name_cuts_no_row(trial: Trial) -> None:
    job = trial.one("9")
    assert (job.name, job.state) == ("a b|c", "FAILED")


def test_output_elsewhere_is_not_read(trial: Trial, tmp_path: Path) -> None:
    """Whoever submits a job chooses its output file: that must not open any file of the machine."""
    job = trial.one("10")
    assert job.paths == () and "below no root" in job.note
    paths = trial.source.collect(job, tmp_path)
    assert paths and all(Path(path).is_relative_to(tmp_path) for path in paths)


def test_jobs_that_ended(trial: Trial) -> None:
    ended = {job.id: job for job in trial.source.ended(trial.began)}
    assert {"1", "2", "5", "8", "9", "10", "11", "12_0"} <= ended.keys()
    assert not {"6", "7", "3+0"} & ended.keys()
    assert ended["5"].state.startswith("CANCELLED")


def test_a_triage_of_what_was_collected(trial: Trial, tmp_path: Path) -> None:
    found = find_jobs("11", [trial.source])
    assert [job.state for job in found.jobs] == ["TIMEOUT"]
    collected = collect(found.jobs[0], [trial.source], tmp_path)
    verdict = triage(list(collected.paths), offline=True)
    assert verdict.verdict.failure_type == "scheduler.time_limit"
    # The accounting alone says it as well.
    texts = [path for path in collected.paths if Path(path).is_relative_to(tmp_path)]
    assert triage(texts, offline=True).verdict.failure_type == "scheduler.time_limit"


def test_no_question_becomes_an_option(trial: Trial, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = tmp_path / "calls"
    monkeypatch.setenv("RECORDED_CALLS", str(calls))
    for asked in ("--format=ALL", "-S1970-01-01", "1;id", "$(id)", "1,2", "a b", "1 --user=root"):
        assert not find_jobs(asked, [trial.source]).jobs
    noted = calls.read_text() if calls.exists() else ""
    assert "ALL" not in noted and "id)" not in noted and "1,2" not in noted


def test_a_missing_tool_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SourceFault, match="sacct is not on this machine's PATH"):
        Slurm(roots=("/srv/x",)).find("1", 1)
    found = find_jobs("1", [Slurm(roots=("/srv/x",))])
    assert not found.jobs and "slurm: sacct is not" in found.unasked[0]


def test_a_tool_that_hangs_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = tmp_path / "sacct"
    tool.write_text("#!/bin/sh\nexec sleep 60\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    with pytest.raises(SourceFault, match=r"within 0\.3 s"):
        Slurm(roots=("/srv/x",), seconds=0.3).find("1", 1)


def test_without_accounting_what_slurmctld_remembers_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trial: Trial
) -> None:
    tool = tmp_path / "sacct"
    tool.write_text(
        '#!/bin/sh\n[ "$1" = --helpformat ] && echo JobID State && exit\n'
        "echo Slurm accounting storage is disabled >&2\nexit 1\n"
    )
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    source = Slurm(roots=trial.source.roots)
    (job,) = source.find("1", 5)
    assert (job.state, job.name, job.user, job.nodes) == ("FAILED", "llama-sft", "root", ("node-a",))
    assert len(job.paths) == 2


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("gpu[01-03,7],login1", ("gpu01", "gpu02", "gpu03", "gpu7", "login1")),
        ("r[1-2]n[0-1]", ("r1n0", "r1n1", "r2n0", "r2n1")),
        ("tux[8-10]-ib", ("tux8-ib", "tux9-ib", "tux10-ib")),
        ("None assigned", ()),
        ("node-a", ("node-a",)),
        ("broken[1-", ("broken[1-",)),
    ],
)
def test_lists_of_nodes(text: str, names: tuple[str, ...]) -> None:
    assert node_names(text) == names


@given(st.text(alphabet="a1[]-, 0", max_size=60) | st.text(max_size=40))
def test_any_list_of_nodes_is_bounded(text: str) -> None:
    assert len(node_names(text)) <= MOST_NODES


def test_a_huge_list_of_nodes_is_cut() -> None:
    assert len(node_names("n[0-999999999]")) == MOST_NODES
    assert len(node_names("n[0-99999]m[0-99999]")) == MOST_NODES


@given(st.text(max_size=300))
def test_any_answer_of_a_tool_is_survived(text: str) -> None:
    accounts_of_sacct(text)
    accounts_of_sacct("JobID\x1fState\n" + text)
    accounts_of_scontrol("JobId=1 JobName=x\n" + text)


def test_gpus_of_typed_and_untyped_resources() -> None:
    assert gpu_count("billing=8,cpu=64,gres/gpu:a100=8,gres/gpu=8,node=2") == 8
    assert gpu_count("cpu=4,gres/gpu:a100=2,gres/gpu:h100=1") == 3
    assert gpu_count("cpu=4,mem=1G") is None


def test_newer_releases_tell_the_output_themselves(tmp_path: Path) -> None:
    """The fields StdOut and StdErr of Slurm 24.05, unexpanded as sacct gives them."""
    from logtriage.sources.outputs import outputs

    (tmp_path / "vit-alice-41_7-0003.out").write_text("x")
    (tmp_path / "plain%j.out").write_text("x")
    text = (
        "JobID\x1fJobIDRaw\x1fJobName\x1fUser\x1fState\x1fWorkDir\x1fStdOut\x1fStdErr\n"
        f"41_7\x1f3\x1fvit\x1falice\x1fFAILED\x1f{tmp_path}\x1f%x-%u-%A_%a-%4j.out\x1f\\plain%j.out\n"
    )
    found, outside = outputs(accounts_of_sacct(text), [str(tmp_path)])
    assert sorted(Path(path).name for path in found) == ["plain%j.out", "vit-alice-41_7-0003.out"]
    assert not outside


LATER = ("JobID", "JobName", "User", "State", "Submit", "Start", "End", "NodeList", "FailedNode")


def sacct_of_a_later_release(folder: Path, *rows: tuple[str, ...]) -> None:
    """A sacct that knows the field FailedNode (23.02 and later), beside an scontrol that forgot every job."""
    kept = ("JobID|JobName|User|State", *("|".join(row[:4]) for row in rows))
    known = ("\x1f".join(LATER), *("\x1f".join(row) for row in rows))
    for name, lines in (("kept", kept), ("known", known)):
        (folder / name).write_text("".join(f"{line}\n" for line in lines))
    (folder / "sacct").write_text(
        f"#!/bin/sh\ncase \"$*\" in *helpformat*) echo '{' '.join(LATER)}';;"
        f' *FailedNode*) cat "{folder}/known";; *) cat "{folder}/kept";; esac\n'
    )
    (folder / "scontrol").write_text("#!/bin/sh\necho 'Invalid job id specified' >&2\nexit 1\n")
    for name in ("sacct", "scontrol"):
        (folder / name).chmod(0o755)


def test_the_node_that_was_lost_is_known_and_is_the_culprit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sacct_of_a_later_release(
        tmp_path,
        ("7", "sft", "ann", "NODE_FAIL", "100", "100", "200", "gpu-n[05-08]", "gpu-n07"),
        ("7.batch", "batch", "", "CANCELLED", "100", "100", "200", "gpu-n05", ""),
        ("8", "sft", "ann", "NODE_FAIL", "100", "100", "200", "gpu-n[05-06]", "gpu-n06"),
        ("8", "sft", "ann", "COMPLETED", "200", "300", "400", "gpu-n[01-02]", ""),
        ("9", "sft", "ann", "NODE_FAIL", "100", "100", "200", "gpu-n03", ""),
        ("10", "sft", "ann", "NODE_FAIL", "100", "100", "200", "gpu-n[03-04]", ""),
    )
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    source = Slurm(roots=(str(tmp_path),))
    jobs = {job.id: job for job in source.ended(0.0)}
    # Of one that ran again, the node of its first run; of one on a single node, that one.
    assert {key: job.lost_nodes for key, job in jobs.items()} == {
        "7": ("gpu-n07",), "8": ("gpu-n06",), "9": ("gpu-n03",), "10": (),
    }  # fmt: skip
    place = tmp_path / "collected"
    place.mkdir()
    verdict = triage(list(source.collect(jobs["7"], place)), offline=True)
    assert verdict.verdict.failure_type == "host.node_lost"
    assert verdict.verdict.culprits.hosts == ("gpu-n07",)
