"""What a digest says of many verdicts, and that nothing in a log can break or steer it."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import pytest
from browser import opened
from fleet_verdicts import ECC, START, fleet_job
from markdown_it import MarkdownIt

from logtriage.fleet.chat import chat
from logtriage.fleet.digest import Digest, digest, page_name
from logtriage.fleet.incidents import incidents, signature
from logtriage.fleet.jobs import TriagedJob, loss
from logtriage.fleet.publication import json_lines, markdown, publish, without_secrets
from logtriage.fleet.reliability import reliability, trend
from logtriage.fleet.retries import retry_chains
from logtriage.fleet.store import Night, Untriaged
from logtriage.report.document import Lost

FULL = "OSError: [Errno 28] No space left on device: '/scratch/run-{}/step{}.pt'"
NIGHT = Night(2, "scope", START + 86_400 * 3, START + 86_400 * 2, False)


def a_digest(*jobs: TriagedJob, **more: object) -> Digest:
    return digest("/logs", NIGHT, jobs, **more)  # type: ignore[arg-type]


def full(number: int, **more: object) -> TriagedJob:
    text = f"[rank{number}]: " + FULL.format(number, number * 7)
    return fleet_job(number, "host.disk_full", (f"n{number}",), text=text, **more)


def test_jobs_that_died_of_the_same_line_are_one_incident() -> None:
    other = fleet_job(9, "host.disk_full", text="OSError: [Errno 122] Disk quota exceeded: '/home/a'")
    found = incidents([full(1), full(2), full(3), other], night=1)
    assert [[job.key for job in each.jobs] for each in found] == [["job-1", "job-2", "job-3"], ["job-9"]]


def test_faults_of_one_machine_are_one_incident_whatever_the_line() -> None:
    jobs = [
        fleet_job(1, "gpu.ecc_uncorrectable", ("a", "b"), ("a",), text=ECC),
        fleet_job(2, "gpu.ecc_uncorrectable", ("a", "c"), ("a",), text="CUDA error: uncorrectable ECC error"),
        fleet_job(3, "gpu.ecc_uncorrectable", ("b", "c"), ("b",), text=ECC),
    ]
    assert sorted(len(each.jobs) for each in incidents(jobs, night=1)) == [1, 2]


def test_what_is_new_and_what_came_again_are_told_apart() -> None:
    other = fleet_job(3, "code.key", text="KeyError: 'a'", night=2)
    told = a_digest(full(1, night=1), full(2, night=2), other)
    assert [each.signature.failure_type for each in told.new_incidents] == ["code.key"]
    assert [(each.tonight, len(each.jobs)) for each in told.recurring] == [(1, 2)]


def test_lost_hours_say_what_they_count() -> None:
    saved = Lost(since="checkpoint", seconds=1_800)
    jobs = [
        full(1, night=2, lost=saved),
        full(2, night=2),  # no step was reported: all of its hour
        full(3, night=2, ranks=0),
        fleet_job(4, night=2),
    ]
    told = a_digest(*jobs)
    assert told.lost.parts == (("ranks", "checkpoint", 4.0, 1), ("ranks", "start", 8.0, 1))
    assert (told.lost.hours, told.lost.unknown) == (12.0, 1)
    said = markdown(told)
    assert "4.0 h of ranks since the last checkpoint (1 job), 8.0 h of ranks since the start" in said


def test_times_that_cannot_be_true_lose_nothing() -> None:
    assert loss(full(1, hours=24 * 365 * 50)) is None
    assert loss(full(1, hours=-3)) is None


def test_a_job_started_again_and_again_is_a_chain() -> None:
    jobs = [full(number, name=f"llama-8b-{4000 + number}", start_hour=2 * number) for number in range(1, 5)]
    late = full(6, name="llama-8b-5000", start_hour=80)  # begun by somebody who thought about it
    other = full(7, name="gemma-2b-1", start_hour=3)
    (chain,) = retry_chains([*jobs, late, other])
    assert [job.key for job in chain.jobs] == ["job-1", "job-2", "job-3", "job-4"]
    assert chain.hours == 3 * 8


def test_jobs_that_ran_beside_each_other_are_no_retries() -> None:
    sweep = [full(n, name=f"sweep-{n}", hours=0.02, start_hour=1 + n / 1000) for n in range(1, 5)]
    assert retry_chains(sweep) == []
    quick = [full(n, name=f"sweep-{n}", hours=0.02, start_hour=1 + 0.015 * n) for n in range(1, 4)]
    assert [len(chain.jobs) for chain in retry_chains(quick)] == [3]  # its last words came late


def test_jobs_without_a_telling_name_are_kin_by_their_nodes() -> None:
    same = [fleet_job(n, "code.key", ("a", "b"), text="KeyError: 'x'", start_hour=2 * n) for n in (1, 2)]
    elsewhere = fleet_job(3, "code.key", ("c", "d"), text="KeyError: 'x'", start_hour=6)
    assert [len(chain.jobs) for chain in retry_chains([*same, elsewhere])] == [2]


def test_failures_are_counted_against_all_that_ran() -> None:
    bad = fleet_job(0, "gpu.nvlink", ("a", "b"), ("a",), text="Xid 74")
    known = reliability([bad, *(fleet_job(n, hours=10) for n in range(1, 5))])
    assert (known.gpu_hours, known.node_hours, known.failures, known.machine_failures) == (328, 82, 1, 1)
    assert known.gpu_hours_between_failures == 328
    assert known.machine_failures_per_1000_node_days == pytest.approx(24_000 / 82)


def test_a_trend_has_thirty_days_up_to_the_last_job() -> None:
    days = trend([full(1), full(2), fleet_job(30, start_hour=24 * 5)])
    assert len(days) == 30
    assert (days[-1].date, days[-1].jobs, days[-1].failed) == ("2026-03-07", 1, 0)
    assert (days[-6].date, days[-6].failed) == ("2026-03-02", 2)


def test_the_order_of_work_leaves_no_trace(tmp_path: Path) -> None:
    jobs = [full(n, night=1 + n % 2) for n in range(12)]
    for number in range(20, 26):
        jobs.append(fleet_job(number, "gpu.nvlink", ("a", f"n{number}"), ("a",), text="Xid 74", night=2))
    publish(a_digest(*jobs), tmp_path / "one")
    random.Random(1).shuffle(jobs)
    publish(a_digest(*jobs), tmp_path / "two")
    one, two = (
        {path.relative_to(tmp_path / side): path.read_bytes() for path in (tmp_path / side).rglob("*.*")}
        for side in ("one", "two")
    )
    assert one == two
    assert len(one) > 18


HOSTILE = (
    "</pre><script>alert(1)</script> <!channel> <@U1> [x](javascript:alert(1)) | `a` | *b* "
    "\x1b[31m\u202e https://evil.example/x @team ${{ 7*7 }} {{ 7*7 }}"
)


def test_nothing_in_a_log_is_markup(tmp_path: Path) -> None:
    jobs = [
        fleet_job(n, "unknown", (HOSTILE, f"h{n}"), (HOSTILE,), text=HOSTILE, title=HOSTILE, night=2)
        for n in (1, 2)
    ]
    jobs += [
        fleet_job(n, "gpu.nvlink", (HOSTILE, f"h{n}"), (HOSTILE,), text=HOSTILE, title=HOSTILE, night=2,
                  name=HOSTILE)
        for n in (3, 4, 5, 6, 7)
    ]  # fmt: skip
    broken = [Untriaged(HOSTILE, "poisoned", HOSTILE, 2)]
    told = a_digest(*jobs, untriaged=broken, notes=[HOSTILE], running=[HOSTILE])
    publish(told, tmp_path)
    for name in ("index.html", "incidents.html", f"jobs/{page_name(jobs[0])}"):
        page = (tmp_path / name).read_text()
        assert "<script" not in page and "alert(1)" in page
        assert "\x1b" not in page and "\u202e" not in page
        assert "default-src 'none'" in page and "style=" not in page
        assert "{{ 7*7 }}" in page
    text = markdown(told)
    shown = MarkdownIt("commonmark").enable("table").render(text)
    assert not {"<a ", "<script", "<em>", "<img"} & set(re.findall(r"<a |<script|<em>|<img", shown))
    assert "alert(1)" in shown and "https://evil" not in text
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert all(line.replace("\\|", "").count("|") in (5, 6, 7, 12) for line in rows)
    said = chat(told)
    assert "<!channel>" not in said and "<@U1>" not in said and "<" not in said
    assert [json.loads(line)["status"] for line in json_lines(told)].count("poisoned") == 1


def test_secrets_do_not_travel_with_a_digest(tmp_path: Path) -> None:
    secret = "hf_AbCdEfGhIjKlMnOpQrStUvWxYz012345"
    title = f"token={secret} was refused"
    job = fleet_job(1, "auth.denied", text=f"401 for token={secret}", title=title, night=2)
    publish(a_digest(job), tmp_path)
    for path in tmp_path.rglob("*.*"):
        assert secret not in path.read_text()
    clean = without_secrets(a_digest(job))
    assert secret not in markdown(clean)
    assert signature(clean.tonight[0].verdict) == signature(job.verdict)  # it still is of the same incident


def test_what_no_rule_explains_is_put_before_a_person() -> None:
    cheap = fleet_job(1, "unknown", night=2, hours=1)
    dear = fleet_job(2, "unknown", night=2, hours=50)
    unsure = fleet_job(3, "code.value", text="ValueError", confidence=0.3, night=2, hours=2)
    old = fleet_job(4, "unknown", night=1)
    told = a_digest(cheap, dear, unsure, old, untriaged=[Untriaged("bad", "poisoned", "it died", 2)])
    assert [job.key for job in told.unknowns] == ["job-2", "job-3", "job-1"]
    assert "bad: poisoned: it died" in markdown(told)


def test_a_browser_opens_the_site_without_complaint(tmp_path: Path) -> None:
    hostile = fleet_job(1, "unknown", text=HOSTILE, title=HOSTILE, night=2)
    publish(a_digest(hostile, full(2, night=2)), tmp_path / "site")
    for page in ("index.html", "incidents.html"):
        seen = opened(tmp_path / "site" / page, tmp_path / "profile")
        assert "<h1>" in seen.stdout and "Content Security Policy" not in seen.stderr
