"""An exception that no rule knows has the type of the messages whose words it shares."""

from __future__ import annotations

from pathlib import Path

import pytest

from logtriage.pipeline import triage
from logtriage.report.document import Verdict


def judged(tmp_path: Path, error: str, *, rules: tuple[Path, ...] = ()) -> Verdict:
    (tmp_path / "logs").mkdir(exist_ok=True)
    (tmp_path / "logs" / "train.log").write_text(
        "2026-03-01 10:00:00 step 3 loss 1.91\n"
        "Traceback (most recent call last):\n"
        '  File "/srv/app/fit.py", line 31, in <module>\n'
        "    fit(model)\n"
        f"{error}\n"
    )
    return triage(tmp_path / "logs", offline=True, workers=1, rules=rules)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (
            "RuntimeError: grouped_gemm: cuBLAS handle is bad, cublasGemmGroupedBatchedEx gave an error",
            "cuda.library",
        ),
        (
            "tessera.StoreFault: GET s3://lake/part-7 gave ServiceUnavailable, the bucket asks to slow down",
            "storage.object_store",
        ),
        ("RuntimeError: plan of cudnnFrontend was finalized with CUDNN_STATUS_ODD_SHAPE", "cuda.library"),
    ],
)
def test_its_words_tell_what_it_is_about(tmp_path: Path, error: str, expected: str) -> None:
    found = judged(tmp_path, error).verdict
    assert (found.failure_type, found.evidence[0].text) == (expected, error)
    assert found.confidence < 0.7 and found.alternatives[0].failure_type == "code.runtime"
    assert expected in found.evidence[0].why


@pytest.mark.parametrize(
    "error",
    [
        "RuntimeError: the ladder has no rung left",
        "RuntimeError: Could not infer dtype of NoneType",
        "sluice.errors.OrderFault: rewards came before their prompts",
        "RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn",  # known
        "StopIteration",
    ],
)
def test_what_is_like_no_message_stays_an_error_of_the_program(tmp_path: Path, error: str) -> None:
    assert judged(tmp_path, error).verdict.failure_type == "code.runtime"


RULE = """\
- id: own.sluice.{name}
  failure_type: data.corrupt
  role: cause
  strength: definite
  title: "The sluice found a shard whose weir is broken"
  keywords: ["weir {name}"]
  pattern: 'weir {name} of shard \\d+ is broken'
  examples:
    - line: "SluiceFault: weir {name} of shard 7 is broken, its flume leaks"
  counterexamples:
    - "weir {name} was opened"
"""


def test_rules_that_people_add_lend_their_words(tmp_path: Path) -> None:
    error = "RuntimeError: sluice: the flume at weir delta leaks, shard 9 dropped"
    assert judged(tmp_path, error).verdict.failure_type == "code.runtime"
    file = tmp_path / "own.yaml"
    file.write_text("".join(RULE.format(name=name) for name in ("alpha", "beta")))
    assert judged(tmp_path, error, rules=(file,)).verdict.failure_type == "data.corrupt"
