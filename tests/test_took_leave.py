"""Programs in words that no rule knows: what they count came to its number, and they took leave."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from scenes import bank_read_once, clock, judged, reading, scene, steps

from logtriage.localize.promised import all_done
from logtriage.localize.shells import back_at_the_shell


@pytest.fixture(scope="module", autouse=True)
def _bank_is_read_once() -> Iterator[None]:
    with bank_read_once():
        yield


def counted(form: str, whole: int, *, done: int | None = None, every: float = 30.0) -> str:
    return "".join(
        f"{clock(every * at)} {form.format(at=at, whole=whole, share=100 * at // whole)}\n"
        for at in range(1, (done or whole) + 1)
    )


def end(*words: str, at: float = 1000.0) -> str:
    return "".join(f"{clock(at + number)} {word}\n" for number, word in enumerate(words))


@pytest.mark.parametrize(
    ("log", "kind"),
    [
        (counted("tile {at}/{whole} upscaled", 30) + end("closing the tile writers"), "none.completed"),
        (counted("tile {at}/{whole} upscaled", 30) + end("mosaic lies in /out/area.zarr"), "none.completed"),
        (counted("tur {at} av {whole}, feil 0.4", 30) + end("adeus"), "none.completed"),
        (counted("pass {at} de {whole}", 30) + end("30 passes in 900.2 s"), "none.completed"),
        (counted("mixing done: {share} %", 30) + end("session closed"), "none.completed"),
        # nobody took leave, or not all is done
        (
            counted("tile {at}/{whole} upscaled", 30, done=29) + end("closing the tile writers"),
            "none.running",
        ),
        (counted("chapter 2/5 page {at}/{whole}", 30) + end("pages written to /out/c2.json"), "unknown"),
        (counted("loading row group {at}/{whole}", 30) + end("client closed"), "unknown"),
        (counted("attempt {at}/{whole} to reach the store", 30) + end("client closed"), "unknown"),
        (counted("tile {at}/{whole} upscaled", 30) + end("saving /out/area.zarr"), "none.running"),
        (
            counted("tile {at}/{whole} upscaled", 30) + end("tile writers closed", "upload of area failed"),
            "none.running",
        ),
    ],
)
def test_who_counted_all_of_all_and_took_leave_has_ended_well(tmp_path: Path, log: str, kind: str) -> None:
    verdict = judged(tmp_path, {"work.txt": log}).verdict
    if kind == "none.completed":
        assert verdict.failure_type == kind
    else:
        assert verdict.failure_type != "none.completed"


def test_an_end_of_one_rank_alone_ends_no_job(tmp_path: Path) -> None:
    whole = counted("move {at}/{whole} played", 40) + end("weights lie in /out/w.npz", "bye", at=1300)
    part = counted("move {at}/{whole} played", 40, done=22)
    assert judged(tmp_path / "a", {"rank0.log": whole, "rank1.log": whole}).verdict.failure_type == (
        "none.completed"
    )
    assert judged(tmp_path / "b", {"rank0.log": whole, "rank1.log": part}).verdict.failure_type != (
        "none.completed"
    )


@pytest.mark.parametrize(
    ("told", "kind"),
    [
        ("options: updates=90 save-every=30\n", "none.completed"),
        ("options: updates=180 save-every=90\n", "none.running"),
        ("options: save-steps=90\n", "none.running"),
    ],
)
def test_a_last_step_of_the_promised_number(tmp_path: Path, told: str, kind: str) -> None:
    log = told + steps(90) + end("policy lies in /out/policy.onnx", "viewer closed", at=200)
    assert judged(tmp_path, {"ppo.txt": log}).verdict.failure_type == kind


@pytest.mark.parametrize(
    ("log", "line"),
    [
        ("$ ./merge a b\nmerged\n$ \n", 3),
        (">>> fit(m)\n12 rounds\n>>> \n", 3),
        ("kim@box:~$ ./fit\nok\nkim@box:~$ ls out\nm.bin\nkim@box:~$ \n", 5),
        ("kim@box:~$ tail -f fit.log\nok\nkim@box:~$ ls out\nm.bin\nkim@box:~$ \n", None),
        ("x\n\nreal\t12m3.100s\nuser\t1m2.000s\nsys\t0m1.000s\n", 3),
        ("+ ./fit --n 3\nok\n+ ls -l out\nm.bin\n", 3),
        ("+ date\nMon\n+ ./fit --n 3\nok\n", None),
        ("+ ls in\na.bin\n", None),
        ("$ ./merge a b\nmerged\n", None),
    ],
)
def test_a_shell_that_speaks_again_waited_for_its_program(log: str, line: int | None) -> None:
    lines = scene(reading("term.txt", log)).lines("term.txt")
    back = back_at_the_shell(lines)
    assert (back.number if back is not None else None) == line


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("merges 8000\nwriting merges to de.merges\nwriting vocabulary to de.vocab\n", "none.completed"),
        ("merges 8000\nKilled\n", "unknown"),
        ("merges 8000\n", "unknown"),
    ],
)
def test_what_a_program_saved_last_before_its_script_went_on(tmp_path: Path, words: str, kind: str) -> None:
    log = f"+ ./learn_bpe de.txt\nreading de.txt\n{words}+ ls -l\ntotal 2\n"
    verdict = judged(tmp_path, {"bpe.log": log}).verdict
    assert (verdict.failure_type == "none.completed") == (kind == "none.completed")


@pytest.mark.parametrize(
    ("unit", "kind"), [("distil.service", "none.completed"), ("fstrim.service", "none.running")]
)
def test_a_unit_that_was_deactivated_is_the_jobs_own(tmp_path: Path, unit: str, kind: str) -> None:
    log = f"{clock(0)} Started distil.service - Distillation.\n" + steps(60, at=1)
    log += end(f"{unit}: Deactivated successfully.", at=130)
    assert judged(tmp_path, {"unit.log": log}).verdict.failure_type == kind


@pytest.mark.parametrize("text", ["", "7/7\n", "a 1/0 b 3 of 2 100 % %%\n" * 9, "9" * 50 + "/9\n"])
def test_no_text_breaks_the_counts(text: str) -> None:
    all_done(scene(reading("a.txt", text)).lines("a.txt"), ())
