"""Look-ups and citations tell nothing of a secret: another one in its place gives the same answers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st
from model_jobs import desk, unknown_job

from logtriage.agent.answer import Citation
from logtriage.agent.desk import Desk
from logtriage.agent.grounding import Void, cited_lines
from logtriage.agent.tools import toolbox

ONE, OTHER = "Zx81Qw77Lm20Pq", "!k99Rt55Vb43Gd"  # what `unknown_job` writes, and one that begins with a sign


def _job(folder: Path, secret: str, *, lines_before: int = 0) -> Desk:
    logs = unknown_job(folder)
    log = logs / "rank1.log"
    filler = "".join(
        f"2026-03-01 09:00:00 DEBUG chunk {number} was put aside\n" for number in range(lines_before)
    )
    far = f"2026-03-01 09:00:01 INFO the store was opened with api_key={ONE} at node-7\n" if filler else ""
    log.write_text((filler + far + filler + log.read_text()).replace(ONE, secret))
    return desk(logs)


def _ask(seen: Desk, name: str, *arguments: str) -> str:
    return next(tool for tool in toolbox(seen) if tool.__name__ == name)(*arguments)


@pytest.fixture(scope="module", autouse=True)
def _all_is_searched() -> Iterator[None]:
    """However busy the machine is: which lines are found must not hang on it here."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("logtriage.agent.search.LOOK_SECONDS", 120.0)
        yield


@pytest.fixture(scope="module", params=[0, 22_000], ids=["small", "large"])
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Desk, Desk]:
    folder = tmp_path_factory.mktemp("jobs")
    count = request.param
    return _job(folder / "one", ONE, lines_before=count), _job(folder / "two", OTHER, lines_before=count)


PATTERNS = [
    "api_key=Z", "api_key=.x8", "Zx81", "^.*Zx81Qw77Lm20P[a-z]", "[A-Z]x81", "api_key=(Z|<)",
    "(api_key=Z|opened)", "api_key=[<secret-1>]", "x[<secret-1>]1", "<secret-1>", "api_key=\\b",
    "api_key=\\B", "api_key=$", "=\\w{14}", "api_key=(?-i:Z)", "key=[^!]", "2.3", "\\Q^\\E",
]  # fmt: skip


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_search_does_not_tell_one_secret_from_another(pair: tuple[Desk, Desk], pattern: str) -> None:
    one, other = (_ask(seen, "search_log", pattern) for seen in pair)
    assert one == other
    assert ONE[:4] not in one


_SIGNS = (".", "\\b", "\\B", "^", "$", "|", "(", ")", "[", "]", "*", "\\w")
_PIECES = st.sampled_from([*ONE, *OTHER, ONE, ONE[:5], "api_key=", "<secret-1>", *_SIGNS])


@given(st.lists(_PIECES, min_size=1, max_size=8).map("".join))
@limits(max_examples=20, deadline=None, report_multiple_bugs=False)
def test_no_pattern_tells_one_secret_from_another(pair: tuple[Desk, Desk], pattern: str) -> None:
    for name in ("search_log", "compare_ranks", "job_configuration"):
        assert _ask(pair[0], name, pattern) == _ask(pair[1], name, pattern)


def test_what_is_no_secret_is_found_wherever_it_stands(pair: tuple[Desk, Desk]) -> None:
    assert "api_key=<secret-1>" in _ask(pair[0], "search_log", "api_key=")
    assert "header of the record" in _ask(pair[0], "search_log", "^.*TRUNCATED,? decode")
    if any(not reading.whole for reading in pair[0].findings.scene.readings):
        told = _ask(pair[0], "search_log", r"\bnode-7$")
        assert "the store was opened with api_key=<secret-1> at node-7" in told
        assert "chunk 21999" in _ask(pair[0], "search_log", "chunk 21999")


def test_whether_a_citation_counts_tells_nothing_of_a_secret(pair: tuple[Desk, Desk]) -> None:
    seen = pair[0]
    (line,) = (
        each for each in seen.findings.scene.readings[1].lines if each.text.endswith(f"INFO api_key={ONE}")
    )
    place = seen.place(line.file, line.number)
    assert isinstance(cited_lines([Citation(place=place, quote="api_key=Zx")], seen), Void)
    assert isinstance(cited_lines([Citation(place=place, quote=f"api_key={ONE}")], seen), Void)
    assert cited_lines([Citation(place=place, quote="api_key=<secret-1>")], seen) == [line]
