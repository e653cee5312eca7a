"""Answers in hostile Markdown: nothing of them is lost, and none takes more work than its length is worth."""

from __future__ import annotations

import html
import json
import re
import sys
from collections.abc import Iterator
from types import FrameType

import pytest

from keval import Run
from keval_viewer.app import Serving
from keval_viewer.markdown import formatted
from keval_viewer.page import run_url, sample_url, trial_url
from tests import viewing
from tests.conftest import Project

LENGTH = 20_000
"""Characters of an answer that the page formats."""
AS_WRITTEN = "Shown as written"


def repeated(unit: str, length: int = LENGTH) -> str:
    return (unit * (length // len(unit) + 1))[:length]


def lists(depth: int) -> str:
    return "".join(f"{'  ' * level}- word{level}\n" for level in range(depth))


def quotes(depth: int) -> str:
    return "".join(f"{'> ' * level}word{level}\n\n" for level in range(1, depth + 1))


UNITS = (
    *("![", "[", "[[]", "![[]()", "[a](", "[a](<", '[a](b "', "[a][", "[x]\n", "](", "[a](b)", "![a](b) ", "!"),
    *("*a_", "*_", "**a ", "*a **b ", "a**b", "_a __b ", "~~a ", "~a~~b", "***", "* a *", "~~*", "_*x"),
    *("`", "`a``b", "<", "<a ", "<a@b.", "<http:", "<!--", "&", "&#", "&amp;", "&#x41;", "&nosuch", "\\", "\\["),
    *("> ", "- ", "1. ", ">", "* * ", "- - - a\n", "> - ", "- > ", "1) - ", "- a\n\n", "#", "# a\n", "a\n===\n"),
    *("    a\n", "\t- ", "```\n", "~~~\n", "---\n", "a  \n", "|", "é\u202e", "\0*", "*\r", "\u2028- "),
)
HOSTILE = (
    *map(repeated, UNITS),
    *(lists(200), quotes(190), "> " * 50 + "a\n" + "b\n" * 9_000, "".join(f"[{n}]: x\n" for n in range(2_000))),
    "".join("`" * n + "a" for n in range(1, 190)),
    "\n".join(["|x" * 200, "|-" * 200, *["|x"] * 6_000]),
    "|x" * 5_000 + "\n" + "|-" * 5_000,
    "[a" * 5_000 + "]" * 5_000 + ": x",
)
HUGE = tuple(repeated(unit, 1_000_000) for unit in ("![", "*a ", "> ", "`a", "|", "x"))


def calls_to_format(text: str) -> int:
    """Format a text, and return how many functions of Python are called for it: its work, whatever the machine does."""
    calls = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        formatted(text)
    finally:
        sys.setprofile(before)
    return calls


@pytest.mark.slow
@pytest.mark.parametrize("text", [*HOSTILE, *HUGE], ids=lambda text: repr(text[:12]))
def test_no_answer_takes_more_work_than_its_length_is_worth(text: str) -> None:
    assert calls_to_format(text) <= 100 * min(len(text), LENGTH) + 100_000


@pytest.mark.parametrize("depth", [10, 20, 40, 100])
@pytest.mark.parametrize("nested", [lists, quotes])
def test_what_is_nested_is_formatted_whole_or_not_at_all(nested: object, depth: int) -> None:
    assert callable(nested)
    text = nested(depth)
    shown = formatted(text)

    assert shown is not None
    words = set(re.findall(r"word\d+", text))
    assert words == set(re.findall(r"word\d+", shown)) or not shown
    assert shown or depth > 10


@pytest.mark.parametrize(
    "text",
    ["See [the source](https://example.org 'its title').", "It rains.\n\n[1]: https://example.org/source\n"],
)
def test_an_address_or_title_is_shown_or_all_is_as_it_was_written(text: str) -> None:
    shown = formatted(text)

    assert not shown or ("its title" in shown and "https://example.org" in shown)


ANSWERS = {"lists": lists(60), "quotes": quotes(60), "images": repeated("!["), "table": HOSTILE[-3][:LENGTH]}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    project = Project(tmp_path_factory.mktemp("hostile"))
    answers = [{"id": "q1", "condition": name, "response": text} for name, text in ANSWERS.items()]
    project.write(
        eval_yaml=f"""
            dataset: {{path: q.jsonl}}
            agents: {{old: {{type: recorded, path: old.jsonl}}}}
            conditions: {{{", ".join(f"{name}: {{}}" for name in ANSWERS)}}}
            metrics: [basic/equals]
        """,
        q_jsonl='{"id": "q1", "question": "How?", "answer": "no"}\n',
        old_jsonl="".join(f"{json.dumps(each)}\n" for each in answers),
    )
    assert 0 == project.run("eval.yaml").code
    return Run(project.run_directory())


@pytest.fixture(scope="module")
def served(run: Run) -> Iterator[Serving]:
    with viewing.served(run.path.parents[1]) as running:
        yield running


def test_pages_show_such_answers_as_they_were_written_and_say_so(run: Run, served: Serving) -> None:
    places = {sample_url(run, "q1"): [*ANSWERS.values()], run_url(run, "/answers/q1"): [*ANSWERS.values()]}
    places |= {trial_url(run, f"old/{name}/q1/1"): [text] for name, text in ANSWERS.items()}
    with viewing.client_of(served) as client:
        pages = {place: client.get(place).raise_for_status().text for place in places}

    for place, texts in places.items():
        written = re.findall(r'<div class="foreign text answer" dir="auto">(.*?)</div>', pages[place], re.DOTALL)
        shown = [html.unescape(re.sub("<[^>]*>", "", each)).strip() for each in written]
        assert sorted(text.strip() for text in texts) == sorted(shown), place
        assert len(texts) == pages[place].count(AS_WRITTEN)
