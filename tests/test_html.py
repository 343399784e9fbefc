from __future__ import annotations

import base64
import hashlib
from html.parser import HTMLParser
from pathlib import Path

import pytest
from browser import opened
from hypothesis import given, settings
from hypothesis import strategies as st
from verdicts import OOM, a_body, a_verdict

from logtriage.report.document import (
    Alternative,
    ChainStep,
    CitedLine,
    CulpritsOut,
    Indication,
    Job,
    Mining,
    Mitigation,
    Restart,
    Symptom,
    TimelineEntry,
    UnreadableFile,
    Verdict,
)
from logtriage.report.html import MOST_ROWS, page

# Elements and attributes that a page of ours has; whatever else appears was smuggled in.
ELEMENTS = {
    "html", "head", "meta", "title", "style", "body", "main", "header", "section", "footer", "h1", "h2", "p",
    "span", "code", "ol", "ul", "li", "a", "pre", "mark", "br", "table", "thead", "tbody", "tr", "th", "td",
    "details", "summary",
}  # fmt: skip
ATTRIBUTES = {"lang", "charset", "http-equiv", "content", "name", "class", "href", "rel"}


class Parsed(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.style = ""
        self._inside: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._inside.append(tag)

    def handle_endtag(self, tag: str) -> None:
        while self._inside and self._inside.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if self._inside and self._inside[-1] == "style":
            self.style += data
        else:
            self.text += data


def everywhere(text: str) -> Verdict:
    """A verdict with the text wherever a text can stand."""
    cited = CitedLine(file=text, line=1, text=text, why=text, host=text, rule=text)
    return a_verdict(
        id=text,
        job=Job(name=text, hosts=(text,), frameworks=(text,), paths=(text,)),
        verdict=a_body(
            failure_type=text, failure_class=text, title=text, summary=text, action=text, evidence=(cited,),
            culprits=CulpritsOut(hosts=(text,), gpus=(text,)),
            restart=Restart(advised=True, exclude_hosts=(text,), reason=text),
            mitigations=tuple(Mitigation(text=text, reference=start + text) for start in ("", "data:")),
            alternatives=(Alternative(failure_type=text, confidence=0.1, evidence=(cited,)),),
            chain=(ChainStep(step=0, failure_type=text, text=text, file=text, line=1, follows_by=text),) * 2,
            collect_next=(text,),
        ),
        symptoms=(
            Symptom(failure_type=text, text=text, file=text, line=1, hosts=(text,), follows_from=text),
        ),
        indications=(Indication(file=text, line=1, role="cause", failure_type=text),),
        timeline=(TimelineEntry(kind=text, text=text, file=text, line=1, host=text),),
        unreadable=(UnreadableFile(file=text, reason=text),),
        mining=Mining(left_out=(text,)),
    )  # fmt: skip


def assert_inert(html: str) -> Parsed:
    parsed = Parsed(html)
    assert {tag for tag, _ in parsed.elements} <= ELEMENTS
    for tag, attributes in parsed.elements:
        assert set(attributes) <= ATTRIBUTES, tag
        if "href" in attributes:
            assert (attributes["href"] or "").startswith(("https://", "http://"))
    return parsed


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "</pre></style><script src=//evil.example/x.js></script>",
        "\"><img src=x onerror=alert(1)>",
        "' onmouseover='alert(1)",
        "{{ 7 * 7 }}{% include '/etc/passwd' %}",
        "<!--",
        "]]><svg/onload=alert(1)>",
        "&lt;script&gt;",
        "Error <b>failed</b> failed<i>",
    ],
)  # fmt: skip
def test_log_text_is_inert_and_readable_wherever_it_stands(text: str) -> None:
    parsed = assert_inert(page(everywhere(text)))
    assert parsed.text.count(text) >= 20


def test_escapes_and_bidi_overrides_are_shown() -> None:
    html = page(everywhere("\x1b[31mred\u202egnp\x00\x9b failed"))
    for character in "\x1b\u202e\x00\x9b":
        assert character not in html
    assert "\\x1b[31mred\\u202egnp\\x00" in html


@given(st.text(alphabet=st.characters(codec=None, exclude_categories=()), max_size=40))
@settings(max_examples=60, deadline=None)
def test_no_text_can_add_an_element_or_an_attribute(text: str) -> None:
    html = page(everywhere(text))
    html.encode("utf-8")
    plain = page(everywhere("x"))
    count = len([tag for tag, _ in assert_inert(html).elements if tag not in ("mark", "span", "p")])
    assert count <= len([tag for tag, _ in Parsed(plain).elements if tag not in ("mark", "span", "p")])


def test_the_page_loads_nothing_and_its_policy_allows_its_own_style_alone() -> None:
    html = page(a_verdict())
    parsed = assert_inert(html)
    policy = next(
        a["content"] for tag, a in parsed.elements if a.get("http-equiv") == "Content-Security-Policy"
    )
    digest = base64.b64encode(hashlib.sha256(parsed.style.encode()).digest()).decode()
    assert policy == (f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'")
    assert "url(" not in parsed.style and "@import" not in parsed.style
    assert "prefers-color-scheme: dark" in parsed.style and "@media print" in parsed.style
    assert any(attributes.get("name") == "viewport" for _, attributes in parsed.elements)


def test_the_page_says_all_that_the_verdict_says() -> None:
    shown = " ".join(Parsed(page(a_verdict())).text.split())
    for expected in (
        "GPU 3 ran out of memory allocating 23.44 GiB",
        "very likely (93 %)",
        "rank 11 · host node-b · GPU 3",
        "node-b/rank11.log:88213",
        OOM,
        "rule cuda.oom.torch",
        "15 ranks timed out in ALLREDUCE",
        "Collective: timeout on ranks 0-10 (11) follows from cuda.out_of_memory",
        "2026-01-31 08:13:02",
        "first sign",
        "Reduce the micro batch size.",
        "The rendezvous timed out",
        "last checkpoint at step 12,000 (345 steps lost)",
        "Not read: node-a/core.gz",
        "To collect next time: the kernel log of node-b",
    ):
        assert expected in shown


def test_a_page_about_very_many_lines_stays_small() -> None:
    many = tuple(Indication(file="a.log", line=n + 1, role="symptom") for n in range(10_000))
    html = page(a_verdict(indications=many, indications_total=123_456))
    assert len(html) < 200_000
    assert f"… and {123_456 - MOST_ROWS:,} more lines" in html


def test_a_verdict_that_knows_little_has_no_empty_sections() -> None:
    body = a_body(
        evidence=(), mitigations=(), alternatives=(), chain=(), collect_next=(), culprits=CulpritsOut()
    )
    html = page(Verdict(id="x", tool=a_verdict().tool, job=Job(name="j"), verdict=body))
    for absent in ("Evidence", "Timeline", "Attempts", "Worth knowing", "None", "It could also be"):
        assert absent not in Parsed(html).text


def test_a_browser_draws_the_page_without_complaint(tmp_path: Path) -> None:
    file = tmp_path / "verdict.html"
    file.write_text(page(everywhere("<script>document.title='owned'</script> failed")), encoding="utf-8")
    done = opened(file, tmp_path / "profile")
    assert "<title>owned" not in done.stdout and "&lt;script&gt;" in done.stdout
    assert "Content Security Policy" not in done.stderr


def test_the_reference_of_several_pieces_of_advice_is_given_once() -> None:
    address = "https://docs.example/xid"
    advice = tuple(Mitigation(text=text, reference=address) for text in ("Take it out.", "Reseat it."))
    assert page(a_verdict(verdict=a_body(mitigations=advice))).count(f'href="{address}"') == 1
