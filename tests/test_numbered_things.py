"""Things that a search numbers: they are its steps, begin no run anew, and are summed up at the end."""

from __future__ import annotations

from pathlib import Path

import pytest
from scenes import clock, judged, traceback

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.16 GiB."


def searched(count: int, failed: frozenset[int] = frozenset({4, 11})) -> str:
    rows = [f"{clock(0)} a search of its own: sqlite\n"]
    for at in range(count):
        now = clock(90.0 * (at + 1))
        told = f"scored {0.7 + at % 7 / 100:.4f} rate {3.1e-05 * (1 + at % 5):.4g}"
        if at in failed:
            rows += [f"{now} sample {at} given up\n", traceback(OOM)]
        else:
            rows.append(f"{now} sample {at} {'left early' if at % 6 == 3 else told}\n")
    return "".join(rows)


@pytest.mark.parametrize(
    ("log", "kind"),
    [
        (searched(30) + "30 samples: 23 scored, 5 early, 2 failed\nwrote best.json\n", "none.completed"),
        (
            searched(30) + "30 samples, 23 scored, 5 left early and 2 failed\nwrote best.json\n",
            "none.completed",
        ),
        # what became of all does not sum up, is not of all, or nobody took leave
        (searched(30) + "30 samples: 23 scored, 5 early, 1 failed\nwrote best.json\n", "none.running"),
        (searched(30) + "20 samples: 14 scored, 4 early, 2 failed\nwrote best.json\n", "none.running"),
        (searched(30) + "30 samples: 23 scored, 5 early, 2 failed\n", "none.running"),
    ],
)
def test_a_search_that_sums_up_all_of_its_samples_has_ended_well(tmp_path: Path, log: str, kind: str) -> None:
    assert judged(tmp_path, {"search.log": log}).verdict.failure_type == kind


def test_the_cells_of_a_notebook_are_no_steps(tmp_path: Path) -> None:
    cells = "".join(f"# In [{at}]\nfigure of part {chr(96 + at)} drawn\n\n" for at in range(1, 15))
    assert judged(tmp_path, {"notebook.txt": cells}).verdict.failure_type != "none.running"
