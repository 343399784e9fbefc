"""Finding a job in configured folders and stores; and that nothing else is read, whatever is asked."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import pytest
from growth import CATASTROPHE
from hypothesis import given, settings
from hypothesis import strategies as st
from small_s3 import CHANGED, small_s3

from logtriage import triage
from logtriage.settings import Settings, SettingsFault, load_settings
from logtriage.sources import lookup
from logtriage.sources.fetched import COLLECTED, COLLECTED_KEPT, fetched
from logtriage.sources.folders import Folders
from logtriage.sources.job import JobSource, KnownJob, SourceFault
from logtriage.sources.lookup import collect, configured_sources, find_jobs
from logtriage.sources.patterns import Entry, PatternFault, read_pattern
from logtriage.sources.stores import Store

ERROR = "RuntimeError: CUDA error: unspecified launch failure\n"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Two trees of logs, and a secret beside them."""
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "passwd").write_text("root:x:0\n")
    for path in ("logs/4812/rank0.log", "logs/48123/rank0.log", "logs/4812-retry.out", "logs/vit-b.log"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(ERROR)
    for user, run in (("mira", "llama-70b-5001"), ("mira", "llama-70b-5002"), ("noor", "eval-5003")):
        folder = tmp_path / "scratch" / user / run
        folder.mkdir(parents=True)
        (folder / "rank0.log").write_text(ERROR)
    os.utime(tmp_path / "scratch/mira/llama-70b-5001/rank0.log", (1000, 1000))
    os.utime(tmp_path / "scratch/mira/llama-70b-5001", (1000, 1000))
    return tmp_path


def sources_of(site: Path) -> list[JobSource]:
    return [
        Folders(patterns=(f"{site}/logs/{{job_id}}*",)),
        Folders(name="scratch", patterns=(f"{site}/scratch/{{user}}/{{name}}-{{job_id}}/",)),
    ]


def ids(site: Path, asked: str) -> list[str]:
    return [job.id for job in find_jobs(asked, sources_of(site)).jobs]


def test_by_id_name_user_and_path(site: Path) -> None:
    assert ids(site, "4812") == ["4812"]  # not 48123
    (job,) = find_jobs("4812", sources_of(site)).jobs
    assert sorted(Path(path).name for path in job.paths) == ["4812", "4812-retry.out"]
    assert ids(site, "vit-b") == ["vit-b"]
    assert ids(site, "llama-70b") == ["5002", "5001"]  # the newest first
    assert ids(site, "MIRA") == ["5002", "5001"]
    assert ids(site, f"{site}/scratch/noor/eval-5003/rank0.log") == ["5003"]
    assert ids(site, "noor/eval-5003") == ["5003"]


def test_what_was_found_is_triaged(site: Path, tmp_path: Path) -> None:
    sources = sources_of(site)
    (job,) = find_jobs("5003", sources).jobs
    collected = collect(job, sources, tmp_path / "work")
    assert triage(list(collected.paths), offline=True).verdict.failure_type == "cuda.launch_failure"
    assert not collected.missed


def test_a_misspelt_name_is_answered_with_the_near_ones(site: Path) -> None:
    found = find_jobs("lama-70b", sources_of(site))
    assert not found.jobs and found.near[0] == "llama-70b"
    assert "5002" in find_jobs("5020", sources_of(site)).near
    assert find_jobs("nothing-like-it", sources_of(site)).near == ()


HOSTILE = [
    "../../etc/passwd", "logs/../secret/passwd", "/etc/passwd", "/", "~", "~root/.ssh/id_rsa", "*", "48*",
    "[4]812", "{job_id}", "4812\0", "x\ny", "a" * 5_000, "", "   ", "/proc/self/environ", "file:///etc/passwd",
    "s3://other/bucket", "-rf", "--help", "\ud800", "SITE/secret", "SITE/secret/passwd", "SITE", "SITE/logs",
    "SITE/logs/link/passwd", "SITE/logs/4812/out.log", "SITE/logs/../secret/passwd", "SITE/logs2",
]  # fmt: skip


@pytest.mark.parametrize("asked", HOSTILE)
def test_nothing_outside_the_roots_is_found(site: Path, asked: str) -> None:
    (site / "logs" / "link").symlink_to(site / "secret")
    (site / "logs" / "4812" / "out.log").symlink_to(site / "secret" / "passwd")
    (site / "logs2").mkdir()  # begins like a root
    found = find_jobs(asked.replace("SITE", str(site)), sources_of(site))
    assert not found.jobs and found.refused


def test_a_link_that_leads_out_is_no_job(site: Path) -> None:
    (site / "logs" / "6000").symlink_to(site / "secret")
    (site / "logs" / "6001.log").symlink_to(site / "secret" / "passwd")
    (site / "scratch" / "eve").symlink_to(site / "secret")
    assert ids(site, "6000") == ids(site, "6001") == ids(site, "eve") == []
    (site / "logs" / "6002").symlink_to(site / "logs" / "4812")  # inside, it may
    assert ids(site, "6002") == ["6002"]


def test_paths_elsewhere_are_answered_alike_whether_they_exist(site: Path) -> None:
    answers = {
        find_jobs(path, sources_of(site)).refused.replace(path, "PATH")
        for path in (f"{site}/secret/passwd", f"{site}/secret/nothing")
    }
    assert len(answers) == 1


@settings(max_examples=50, deadline=None)
@given(asked=st.text(max_size=60) | st.text(alphabet="./~*ae48\0-", max_size=20))
def test_any_question_is_answered(asked: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    root = tmp_path_factory.getbasetemp() / "asked"
    root.mkdir(exist_ok=True)
    source = Folders(patterns=(f"{root}/{{job_id}}*",))
    assert not find_jobs(asked, [source]).jobs


def test_one_source_that_fails_does_not_silence_the_others(site: Path) -> None:
    gone = Folders(name="gone", patterns=(f"{site}/nowhere/{{job_id}}",))
    found = find_jobs("4812", [gone, *sources_of(site)])
    assert [job.id for job in found.jobs] == ["4812"]
    assert found.unasked == (f"gone: {site}/nowhere cannot be listed: No such file or directory",)


class Scheduler:
    """A source that knows facts and no logs."""

    name = "scheduler"

    def __init__(self, *jobs: KnownJob) -> None:
        self.jobs = jobs

    def find(self, asked: str, limit: int) -> list[KnownJob]:
        return [job for job in self.jobs if asked in (job.id, job.user)]

    def ended(self, since: float) -> Iterator[KnownJob]:
        yield from self.jobs

    def collect(self, job: KnownJob, folder: Path) -> tuple[str, ...]:
        (folder / "sacct.txt").write_text("JobID|State|ExitCode\n5003|FAILED|1:0\n")
        return (str(folder / "sacct.txt"),)


def test_a_job_that_two_sources_know_is_one(site: Path, tmp_path: Path) -> None:
    facts = KnownJob("5003", "scheduler", user="noor", state="FAILED", exit_code="1:0", ended=5.0, gpus=16)
    sources = [*sources_of(site), Scheduler(facts)]
    (job,) = find_jobs("5003", sources).jobs
    assert (job.state, job.gpus, job.name, job.ended) == ("FAILED", 16, "eval", 5.0)
    names = [Path(path).name for path in collect(job, sources, tmp_path / "work").paths]
    assert sorted(names) == ["eval-5003", "sacct.txt"]


def test_the_same_number_of_another_user_is_another_job(site: Path) -> None:
    facts = KnownJob("5003", "scheduler", user="eve", state="FAILED")
    assert len(find_jobs("5003", [*sources_of(site), Scheduler(facts)]).jobs) == 2


def test_jobs_that_ended_since(site: Path) -> None:
    scratch = sources_of(site)[1]
    assert sorted(job.id for job in scratch.ended(time.time() - 3600)) == ["5002", "5003"]
    assert sorted(job.id for job in scratch.ended(0)) == ["5001", "5002", "5003"]


# --- patterns --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "path", "told"),
    [
        ("/l/{job_id}*", "4812", ("4812", "", "")),
        ("/l/{job_id}*", "4812-train.out", ("4812", "", "")),
        ("/l/{job_id}*", "4812_7.err", ("4812_7", "", "")),
        ("/l/{job_id}*", "8a7f20-out", ("8a7f20-out", "", "")),
        ("/l/slurm-{job_id}.out", "slurm-71.out", ("71", "", "")),
        ("/l/{user}/{name}-{job_id}/", "mira/llama-70b-4812", ("4812", "llama-70b", "mira")),
        ("/l/*/{name}", "2026-01-02/run7", ("run7", "run7", "")),
        ("/l/{name}/{job_id}?log", "a/12.log", ("12", "a", "")),
    ],
)
def test_what_a_pattern_tells(pattern: str, path: str, told: tuple[str, str, str]) -> None:
    match = read_pattern(pattern).match(Entry("", "", True), tuple(path.split("/")))
    assert match is not None and (match.job_id, match.name, match.user) == told


@pytest.mark.parametrize(
    "pattern",
    [
        "/logs",
        "/{job_id}",
        "/logs/{jobid}",
        "/logs/{job_id}/../x",
        "/logs/{job_id",
        "/l/{name}{name}",
        "/l//{name}",
    ],
)
def test_a_pattern_that_cannot_be_used_is_refused(pattern: str) -> None:
    with pytest.raises(PatternFault):
        read_pattern(pattern)


def test_a_pattern_of_many_stars_is_matched_at_once() -> None:
    pattern = read_pattern("/l/" + "*a" * 40 + "{job_id}*")
    began = time.process_time()
    pattern.match(Entry("", "", True), ("a" * 250 + "!" * 5,))
    assert time.process_time() - began < CATASTROPHE


# --- settings --------------------------------------------------------------------------------------


def of_toml(tmp_path: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> Settings:
    file = tmp_path / "site.toml"
    file.write_text(text)
    monkeypatch.setenv("LOGTRIAGE_CONFIG", str(file))
    return load_settings()


def test_tables_become_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (
        '[[sources]]\nkind = "folders"\npatterns = ["/srv/{job_id}*"]\n'
        '[[sources]]\nkind = "slurm"\nroots = ["/srv"]\n'
        '[[sources]]\nkind = "slurm"\nroots = ["/srv"]\ncluster = "b"\n'
        '[[sources]]\nkind = "kubernetes"\nnamespace = "train"\n'
        '[[sources]]\nkind = "store"\nname = "bucket"\npatterns = ["s3://b/{job_id}/"]\n'
    )
    names = [source.name for source in configured_sources(of_toml(tmp_path, text, monkeypatch))]
    assert names == ["folders", "slurm", "slurm-2", "kubernetes", "bucket"]


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ('kind = "folder"', "kind: there is no source 'folder'; there are folders, kubernetes"),
        ("patterns = []", "kind: there is no source ''"),
        ('kind = "folders"', "patterns: Field required"),
        ('kind = "folders"\npatterns = ["/srv/x"]', "patterns.0: the pattern names no {job_id}"),
        ('kind = "folders"\npatterns = ["srv/{name}"]', "patterns.0: the pattern must begin with /"),
        ('kind = "folders"\npatterns = ["/s/{name}"]\nroot = "/"', "root: a source of the kind 'folders'"),
        ('kind = "slurm"\nroots = ["/"]', "roots.0: a root is an absolute path"),
        ('kind = "slurm"\nroots = ["/s"]\nzone = "Mars/One"', "zone: there is no time zone 'Mars/One'"),
        ('kind = "kubernetes"\nnamespace = "--all"', "namespace: String should match"),
        (
            'kind = "store"\npatterns = ["file:///etc/{name}"]',
            "patterns.0: folders of this machine are of kind",
        ),
    ],
)
def test_a_broken_table_is_named_with_file_and_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: str, said: str
) -> None:
    text = f'[[sources]]\nkind = "kubernetes"\n[[sources]]\n{table}\n'
    with pytest.raises(SettingsFault) as fault:
        configured_sources(of_toml(tmp_path, text, monkeypatch))
    assert str(fault.value).startswith(f"{tmp_path / 'site.toml'}: [[sources]] number 2: {said}")


def test_a_kind_from_another_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("elsewhere", "logtriage.sources.folders:Folders", lookup.GROUP)
    monkeypatch.setattr(lookup, "entry_points", lambda group: EntryPoints([point]).select(group=group))
    table = {"kind": "folders", "name": "x", "patterns": ["/srv/{job_id}"]}
    assert lookup._maker("elsewhere")(table).name == "x"


# --- stores ----------------------------------------------------------------------------------------


def test_a_store_of_objects(tmp_path: Path) -> None:
    fsspec = pytest.importorskip("fsspec")
    system = fsspec.filesystem("memory")
    for path in ("/bucket-t/runs/vit-7001/rank0.log", "/bucket-t/runs/vit-7002/a/rank0.log"):
        system.pipe(path, ERROR.encode())
    source = Store(patterns=("memory://bucket-t/runs/{name}-{job_id}/",))
    found = find_jobs("7001", [source])
    assert [job.name for job in found.jobs] == ["vit"]
    collected = collect(found.jobs[0], [source], tmp_path / "work")
    assert triage(list(collected.paths), offline=True).verdict.failure_type == "cuda.launch_failure"
    assert sorted(job.id for job in source.ended(time.time() - 60)) == ["7001", "7002"]
    assert list(source.ended(time.time() + 60)) == []
    at = find_jobs("memory://bucket-t/runs/vit-7002/a/rank0.log", [source])
    assert [job.id for job in at.jobs] == ["7002"]
    assert not find_jobs("memory://bucket-u/runs/vit-7002/", [source]).jobs


def test_a_store_without_its_driver_says_what_to_install() -> None:
    found = find_jobs("1", [Store(patterns=("nosuchscheme://b/{job_id}/",))])
    assert not found.jobs and found.unasked


def test_a_store_of_s3(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("s3fs")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "trial")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    objects = {
        "9001/rank0.log": ERROR.encode(),
        "9001/deep/rank1.log": b"step 1",
        "9002/rank0.log": b"step 1",
    }
    with small_s3({"logs-bucket": objects}) as url:
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        source = Store(patterns=("s3://logs-bucket/{job_id}/",))
        (job,) = find_jobs("9001", [source]).jobs
        (folder,) = collect(job, [source], tmp_path / "work").paths
        read = sorted(str(path.relative_to(folder)) for path in Path(folder).rglob("*.log"))
        assert read == ["deep/rank1.log", "rank0.log"]
        assert triage(folder, offline=True).verdict.failure_type == "cuda.launch_failure"
        assert [each.id for each in source.ended(CHANGED - 60)] == ["9001", "9002"]
        assert not list(source.ended(CHANGED + 60))
        with pytest.raises(SourceFault, match="no-such-bucket-x is empty or not there"):
            Store(patterns=("s3://no-such-bucket-x/{job_id}/",)).find("1", 1)


def test_what_was_fetched_again_is_kept_anew(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fsspec = pytest.importorskip("fsspec")
    fsspec.filesystem("memory").pipe("/bucket-f/8001/rank0.log", ERROR.encode())
    tables = (
        {"kind": "store", "patterns": ["memory://bucket-f/{job_id}/"]},
        {"kind": "folders", "patterns": [f"{site}/logs/{{job_id}}*"]},
    )
    chosen = Settings(data_dir=tmp_path / "data", sources=tables)
    sources = configured_sources(chosen)
    (job,) = find_jobs("8001", sources).jobs
    (other,) = find_jobs("4812", sources).jobs
    fetched(job, sources, chosen.data_dir)
    (folder,) = (tmp_path / "data" / COLLECTED).iterdir()
    nearly = time.time() - COLLECTED_KEPT + 3600
    os.utime(folder, (nearly, nearly))
    (path,) = fetched(job, sources, chosen.data_dir).paths
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 2 * 3600)
    fetched(other, sources, chosen.data_dir)
    assert (Path(path) / "rank0.log").exists()
    monkeypatch.setattr(time, "time", lambda: now + COLLECTED_KEPT + 60)
    fetched(other, sources, chosen.data_dir)
    assert not Path(path).exists()
