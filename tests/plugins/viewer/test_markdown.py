"""Answers as their Markdown reads: what is formatted, what is left as text, and that nothing in it acts."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given, strategies as st

from keval_viewer.markdown import _MARKED, _PARSER, _is_plain, formatted
from tests import hostile
from tests.plugins.viewer.test_report_page import Elements

HOSTILE = (
    *hostile.INJECTIONS,
    "[click](javascript:window.injected=true) <javascript:alert(1)> [b](data:text/html,<script>1</script>)",
    "[a](  java\nscript:alert(1)) [b](&#106;avascript:alert(1)) [c]: vbscript:x\n\n[c]",
    "![x](https://example.org/x.png) ![y](data:image/png;base64,AAAA) ![z][r]\n\n[r]: http://example.org/y 'title'",
    "<https://example.org> <a href=https://example.org onclick=1>x</a> <style>*{}</style> <!-- c -->",
    "| a | b |\n|:--|--:|\n| <b onclick=1>1</b> | `<i>` |\n",
    '```html" onclick="1\n<script>1</script>\n```\n\n    <script>2</script>\n',
    "# <img src=x onerror=1>\n\n> - **<svg onload=1>**\n\n***\n1. a\n2. b\n",
    '[x]: javascript:alert(1) "t" \n\n[x] ![x] [**bold** `code`](https://example.org/?a=<b>&c)',
)
ELEMENTS = {
    *("p", "br", "hr", "strong", "em", "s", "code", "pre", "blockquote", "ul", "ol", "li"),
    *("table", "thead", "tbody", "tr", "th", "td", "h4", "h5", "h6"),
}


@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_in_an_answer_acts_loads_or_leads_elsewhere(text: str) -> None:
    html = str(formatted(f"**bold** {text}\n\n{text}"))
    read = Elements(html)

    assert [] == read.wrong
    assert {tag for tag, _ in read.found} <= ELEMENTS
    assert {name for _, given in read.found for name in given} <= {"class", "start"}
    assert {given["class"] for _, given in read.found if "class" in given} <= {'language-html"'}


def test_formatting_is_shown_below_the_headings_of_the_page() -> None:
    text = (
        "# Rain\n\nTake **a coat** and `ls`:\n- one\n- two\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n\n```sh\nls -la\n```\n"
    )

    html = " ".join(str(formatted(text)).split())

    assert html.startswith("<h4>Rain</h4> <p>Take <strong>a coat</strong> and <code>ls</code>:</p> <ul> <li>one</li>")
    assert "<td>1</td> <td>2</td>" in html
    assert html.endswith('<pre><code class="language-sh">ls -la </code></pre>')


def test_addresses_are_told_and_are_no_links() -> None:
    text = "See [the *docs*](https://example.org/a), <https://example.org/b> and ![a map](https://example.org/c.png)."

    shown = Elements(str(formatted(text))).text

    expected = (
        "See the docs (https://example.org/a), https://example.org/b and [image: a map] (https://example.org/c.png)."
    )
    assert expected == shown.strip()


@pytest.mark.parametrize("text", ["It rains.\nTake a coat.  \n\nGoodbye!", "2 < 3 & 5 > 4", "a_b_c (x)", "", " \n"])
def test_text_without_formatting_is_left_as_it_is(text: str) -> None:
    assert formatted(text) is None


@given(st.text("ab1 .)(:;,'\"?/%$^{}@é\n\r\t\x0b\x00\u00a0\u2028", max_size=40))
def test_text_that_is_not_parsed_has_no_formatting(text: str) -> None:
    if _MARKED.search(text) is None:
        assert all(map(_is_plain, _PARSER.parse(text)))


@pytest.mark.parametrize("text", [r"\*not bold\*", "a &amp; b", "line\n===\n", "1. one\n2. two"])
def test_text_that_reads_otherwise_is_formatted(text: str) -> None:
    assert formatted(text) is not None


LONG = (
    *("[" * 20_000, "*a_" * 6_000, "> " * 10_000, "- " * 10_000, "![[]()" * 3_000, "<" * 20_000),
    "|x" * 3_000 + "\n" + "|-" * 3_000,
    "\n".join(["|x" * 999, "|-" * 999, *["|x"] * 9_000]),
    "".join(f"[{number}]: x\n" for number in range(2_000)),
)


@pytest.mark.parametrize("text", LONG)
def test_no_answer_takes_long_or_grows_without_measure(text: str) -> None:
    began = time.process_time()
    html = formatted(text)

    assert 3.0 > time.process_time() - began
    assert html is None or len(html) < 10 * len(text) + 1_000


def test_the_text_of_an_answer_is_kept_in_order() -> None:
    shown = Elements(str(formatted("**a** b\nc\n\n- d\n  1. e\n\n`f`"))).text

    assert "abcdef" == re.sub(r"\s", "", shown)
