"""Ranks that report no steps: the one whose course breaks off where its peers went on."""

from __future__ import annotations

from pathlib import Path

from scenes import clock, judged


def course(rank: int, batches: int, *, ended: bool) -> str:
    start = "".join(f"{clock(at)} began part {at} of the start\n" for at in range(2))
    named = "".join(
        f"{clock(10)} {word}\n"
        for word in ("read the config", "built the model", "found 900 pages", "sorted them", "scoring pages")
    )
    scored = "".join(f"{clock(20 + 5 * at)} scored {40 * at + rank} pages so far\n" for at in range(batches))
    end = f"{clock(20 + 5 * batches)} wrote the scores of this part\n" if ended else ""
    return f"{clock(0)} Rank of current process: {rank}. World size: 4\n{start}{named}{scored}{end}"


def test_who_says_one_thing_less_often_than_its_peers_is_on_their_course(tmp_path: Path) -> None:
    files = {
        f"log.txt.rank{rank}" if rank else "log.txt": course(rank, 9 + rank, ended=rank != 2)
        for rank in range(4)
    }
    look = "$ date; squeue -j 61\nSat Jan 31 16:11:00 UTC 2026\nJOBID PARTITION NAME USER ST TIME NODES\n"
    first = "".join(f"{clock(12 + at)} step {at} loss 2.5\n" for at in range(5))
    files["log.txt"] = files["log.txt"].replace(f"{clock(20)}", f"{first}{clock(20)}", 1)
    files["look.txt"] = look + " 61 gpu seg kim R 8:11:10 1\n"
    found = judged(tmp_path, files).verdict
    assert (found.failure_type, tuple(found.culprits.ranks)) == ("hang.silent", (2,))
