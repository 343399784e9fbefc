"""Files of measures beside a log, in which the losses turn NaN though the program says that it is done."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from scenes import bank_read_once, clock, first, judged


@pytest.fixture(scope="module", autouse=True)
def _bank_is_read_once() -> Iterator[None]:
    with bank_read_once():
        yield


LOG = "".join(f"{clock(30.0 * at)} INFO epoch {at}/30 done in 29.8 s\n" for at in range(1, 31))
DONE = f"{LOG}{clock(30.0 * 31)} INFO training finished\n"


def table(heading: str, row: str, *, lost: range, rows: int = 30) -> str:
    """Rows of `n`, `loss` and `other`; NaN are the losses of the rows that are lost."""
    told = [
        row.format(n=n, loss="nan" if n in lost else f"{2 - 0.03 * n:.4f}", other=f"{0.4 + 0.01 * n:.3f}")
        for n in range(1, rows + 1)
    ]
    return "\n".join([heading, *told]) + "\n"


KERAS = ("epoch,accuracy,loss,val_loss", "{n},{other},{loss},nan")
PADDED = (
    "                  epoch,      train/seg_loss,      train/cls_loss,      metrics/mAP50(M)",
    "{n:>23},{loss:>20},{loss:>20},{other:>23}",
)
CURVE = ("#  step    rmse_trn    rmse_f_trn    lr", "{n:>7}  {loss:>10}  {loss:>10}  1.0e-03")
SPARSE = ("step,train_loss,val_loss,lr", "{n},{loss},,{other}")


@pytest.mark.parametrize(("heading", "row"), [KERAS, PADDED, CURVE, SPARSE])
@pytest.mark.parametrize("name", ["metrics.csv", "curve.out"])
def test_losses_that_turn_nan_for_good_ruined_the_run(
    tmp_path: Path, heading: str, row: str, name: str
) -> None:
    files = {"train.log": DONE, name: table(heading, row, lost=range(19, 31))}
    verdict = judged(tmp_path, files)
    assert verdict.verdict.failure_type == "numerics.nan"
    assert first(verdict)[0] == name
    assert verdict.verdict.evidence[0].line == 20  # below the heading


@pytest.mark.parametrize(
    ("heading", "row", "lost"),
    [
        (*KERAS, range(19, 25)),  # it came back
        (*KERAS, range(29, 31)),  # two rows
        (*KERAS, range(1, 31)),  # never measured
        ("epoch,loss,aux_loss", "{n},{other},{loss}", range(19, 31)),  # of one loss alone
        ("epoch,accuracy,val_loss", "{n},{other},{loss}", range(19, 31)),  # of other data
        ("layer,loss,share", "{n},{loss},{other}", range(19, 31)),  # no course
    ],
)
def test_tables_that_tell_of_no_ruin(tmp_path: Path, heading: str, row: str, lost: range) -> None:
    files = {"train.log": DONE, "metrics.csv": table(heading, row, lost=lost)}
    assert judged(tmp_path, files).verdict.failure_type == "none.completed"


def records(lost: range, name: str = "loss") -> list[dict[str, float]]:
    return [
        {"step": n * 10, name: float("nan") if n in lost else 2 - 0.03 * n, "lr": 1e-3} for n in range(30)
    ]


def state(lost: range, name: str = "loss") -> str:
    return json.dumps({"global_step": 290, "log_history": records(lost, name)}, indent=2)


def lines(lost: range, name: str = "loss") -> str:
    return "".join(json.dumps(record) + "\n" for record in records(lost, name))


def lists(lost: range, name: str = "loss") -> str:
    return json.dumps({name: [record[name] for record in records(lost, name)], "accuracy": [0.5] * 30})


@pytest.mark.parametrize(
    ("name", "written"), [("trainer_state.json", state), ("metrics.jsonl", lines), ("history.json", lists)]
)
def test_measures_in_json_tell_it_as_tables_do(
    tmp_path: Path, name: str, written: Callable[..., str]
) -> None:
    def kind(folder: str, text: str) -> str:
        return judged(tmp_path / folder, {"train.log": DONE, name: text}).verdict.failure_type

    assert kind("lost", written(range(18, 30))) == "numerics.nan"
    assert kind("back", written(range(18, 25))) == "none.completed"
    assert kind("other", written(range(18, 30), "val_loss")) == "none.completed"
