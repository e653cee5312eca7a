"""Answers on pages: formatted, as they were written below a click, and copied by a button."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx2
import pytest
from playwright.sync_api import Locator, Page, expect

from keval import Run
from keval_viewer.app import Serving
from keval_viewer.page import run_url, sample_url, trial_url
from tests import viewing
from tests.conftest import Project
from tests.viewing import client_of, needs_chromium, too_wide

PLAIN = "Run ls, then look.\nThat is all."
MARKDOWN = (
    "## Listing\n\nRun `ls -la`, then **look**:\n\n- one <b>bold</b>\n- [two](javascript:window.injected=true)\n\n"
    "![map](https://example.org/map.png) see [docs](https://example.org/docs)\n\n```sh\nls -la\n```\n"
)
ARMS = {"plain": PLAIN, "docs": MARKDOWN}
SAMPLE = "q's 1"
TRIAL = "old/docs/q's 1/1"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run with an answer that has formatting, of which a metric marked a word."""
    project = Project(tmp_path_factory.mktemp("answers"))
    answers = [{"id": SAMPLE, "condition": name, "response": text} for name, text in ARMS.items()]
    project.write(
        eval_yaml="""
            dataset: {path: questions.jsonl}
            agents: {old: {type: recorded, path: old.jsonl}}
            conditions: {plain: {}, docs: {}}
            metrics: [basic/equals]
        """,
        questions_jsonl=json.dumps({"id": SAMPLE, "question": "How?", "answer": "no"}) + "\n",
        old_jsonl="".join(f"{json.dumps(each)}\n" for each in answers),
    )
    assert 0 == project.run("eval.yaml").code
    folder = project.run_directory()
    lines = [json.loads(line) for line in (folder / "scores.jsonl").read_text(encoding="utf-8").splitlines()]
    start = MARKDOWN.index("look")
    for line in lines:
        if line["trial"] == TRIAL:
            line["details"] = {"marks": [{"start": start, "end": start + 4, "label": "a verb", "kind": "good"}]}
    (folder / "scores.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    return Run(folder)


@pytest.fixture(scope="module")
def served(run: Run) -> Iterator[Serving]:
    with viewing.served(run.path.parents[1]) as running:
        yield running


@pytest.fixture(scope="module")
def client(served: Serving) -> Iterator[httpx2.Client]:
    with client_of(served) as client:
        yield client


def as_written(page: str) -> list[str]:
    """The answers of a page as they were written."""
    found = re.findall(r'<div class="foreign text answer" dir="auto">(.*?)</div>', page, re.DOTALL)
    return [html.unescape(re.sub("<[^>]*>", "", each)) for each in found]


def test_every_page_has_an_answer_formatted_and_as_it_was_written(client: httpx2.Client, run: Run) -> None:
    places = [
        trial_url(run, TRIAL),
        sample_url(run, SAMPLE),
        run_url(run, "/answers/q's%201"),
        run_url(run, "/review/answers?chosen=all&seed=1&at=0"),
        run_url(run, "/review/answers?chosen=all&seed=1&at=1"),
    ]
    client.post(run_url(run, "/review/name"), data={"name": "Ann"}, headers={"sec-fetch-site": "same-origin"})

    pages = [client.get(place).raise_for_status().text for place in places]

    texts = [text for page in pages for text in as_written(page)]
    assert (7, {PLAIN, MARKDOWN}) == (len(texts), {*texts})
    shown = [
        each for page in pages for each in re.findall(r'<div class="foreign markdown answer".*?</div>', page, re.DOTALL)
    ]
    assert texts.count(MARKDOWN) == len(shown)
    assert all("<strong>look</strong>" in each and "one &lt;b&gt;bold&lt;/b&gt;" in each for each in shown)
    assert all("(https://example.org/docs)" in each for each in shown)
    assert [] == [each for each in shown if "<a" in each or "<img" in each]


def test_marks_and_differences_are_shown_in_the_text_as_it_was_written(client: httpx2.Client, run: Run) -> None:
    alone = client.get(trial_url(run, TRIAL)).text
    marked = client.get(f"{trial_url(run, TRIAL)}?read=basic/equals").text
    compared = client.get(f"{sample_url(run, SAMPLE)}?against=0").text

    assert '<details class="as-written">' in alone
    assert '<details class="as-written" open>' in marked
    assert ['<mark class="good" title="a verb">look</mark>'] == re.findall(r"<mark.*?</mark>", marked)
    assert [MARKDOWN] == as_written(marked)
    assert '<details class="as-written" open>' in compared
    (shown,) = [
        each
        for each in re.findall(r'<div class="foreign text answer".*?</div>', compared, re.DOTALL)
        if "<ins>" in each
    ]
    assert [MARKDOWN] == as_written(re.sub(r"<del>.*?</del>", "", shown, flags=re.DOTALL))


def pasted(page: Page) -> str:
    """What was copied last."""
    page.evaluate("document.querySelector('#paste') ?? document.body.append(document.createElement('textarea'))")
    page.evaluate("document.querySelector('body > textarea').id = 'paste'")
    area = page.locator("#paste")
    area.fill("")
    area.press("Control+V")
    return area.input_value()


def copied(page: Page, button: Locator) -> str:
    """What a button copies, pressed by keyboard."""
    pressed = button.element_handle()
    pressed.press("Enter")
    page.wait_for_function("button => button.textContent.startsWith('copied')", arg=pressed)
    return pasted(page)


NO_CLIPBOARD = "Object.defineProperty(Navigator.prototype, 'clipboard', { get: () => undefined })"


@pytest.mark.slow
@needs_chromium
@pytest.mark.parametrize("has_clipboard", [True, False])
def test_buttons_copy_answer_id_command_and_record(
    served: Serving, run: Run, visit: Callable[..., Page], *, has_clipboard: bool
) -> None:
    page = visit(served, trial_url(run, TRIAL))
    if not has_clipboard:
        page.evaluate(NO_CLIPBOARD)
    command = f"keval show {run.path} --trial 'old/docs/q'\"'\"'s 1/1'"

    assert MARKDOWN == copied(page, page.get_by_role("button", name="copy answer"))
    assert TRIAL == copied(page, page.get_by_role("button", name="copy id"))
    assert command == copied(page, page.get_by_role("button", name="copy command"))
    assert TRIAL == json.loads(copied(page, page.get_by_role("button", name="copy as JSON")))["id"]
    page.goto(f"{served.base}{sample_url(run, SAMPLE)}?against=0")
    assert MARKDOWN == copied(page, page.get_by_role("button", name="copy answer").nth(1))


@pytest.mark.slow
@needs_chromium
def test_the_text_as_it_was_written_takes_the_place_of_the_formatted_one(
    served: Serving, run: Run, visit: Callable[..., Page]
) -> None:
    page = visit(served, trial_url(run, TRIAL), viewport={"width": 400, "height": 800})
    formatted, written = page.locator(".markdown.answer"), page.locator(".text.answer")
    expect(formatted).to_be_visible()
    expect(written).to_be_hidden()

    page.get_by_text("as written").press("Enter")

    expect(formatted).to_be_hidden()
    expect(written).to_have_text(MARKDOWN, use_inner_text=True)
    assert not too_wide(page)


@pytest.mark.slow
@needs_chromium
@pytest.mark.parametrize("has_clipboard", [True, False])
def test_a_page_that_is_opened_from_a_file_copies(
    run: Run, tmp_path: Path, visit: Callable[..., Page], served: Serving, *, has_clipboard: bool
) -> None:
    Project(tmp_path).keval("report", str(run.path), "--html", str(tmp_path / "page.html"))
    page = visit(served, expected=["page.html"])
    page.goto((tmp_path / "page.html").as_uri())
    if not has_clipboard:
        page.evaluate(NO_CLIPBOARD)
    page.locator("#list summary").first.click()

    answer = page.locator("#list article").nth(1)
    assert MARKDOWN == copied(page, answer.get_by_role("button", name="copy answer"))
    command = copied(page, answer.get_by_role("button", name="copy command"))
    assert f"keval show {run.path} --trial 'old/docs/q'\"'\"'s 1/1'" == command
    assert page.evaluate("window.injected === undefined")
