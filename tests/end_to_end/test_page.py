"""A page in a real browser: it opens, filters, is linked to and read by keyboard, and runs no script of others."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests import hostile
from tests.conftest import Project

CHROMIUM = shutil.which("chromium")
EXAMPLE = Path(__file__).parents[2] / "examples" / "context-ab" / "context-ab.yaml"
OPEN_ALL = "selector => { for (const details of document.querySelectorAll(selector)) details.open = true }"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium; Debian's package `chromium` has it"),
]


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a real run: 35 questions, judged, some of whose claims are not verified."""
    project = Project(tmp_path_factory.mktemp("example"))
    assert 0 == project.run(EXAMPLE, "--repetitions", "2").code
    return written(project)


@pytest.fixture(scope="module")
def injected(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a run in which everything is hostile."""
    project = Project(tmp_path_factory.mktemp("hostile"))
    hostile.run(project)
    return written(project)


@pytest.fixture(scope="module")
def browser(example: Path, injected: Path) -> Iterator[Browser]:
    """Chromium. Both runs are made before it is started, as it keeps an event loop in this thread."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


def written(project: Project) -> Path:
    file = project.root / "page.html"
    outcome = project.keval("report", str(project.run_directory()), "--html", str(file))
    assert str(file) in outcome.stderr
    return file


@pytest.fixture
def visit(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Opens a page; at the end of the test, nothing may have been fetched, and no error may be on the console."""
    problems: list[str] = []
    pages: list[Page] = []

    def visit(file: Path, anchor: str = "", **options: Any) -> Page:
        page = browser.new_context(**options).new_page()
        page.on("console", lambda message: problems.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("dialog", lambda dialog: problems.append(f"dialog: {dialog.message}"))
        page.on("request", lambda request: problems.append(request.url) if file.name not in request.url else None)
        page.goto(file.as_uri() + anchor)
        pages.append(page)
        return page

    yield visit

    for page in pages:
        page.context.close()
    assert [] == [problem for problem in problems if problem != "data:,"]


def shown(page: Page) -> list[str]:
    """The ids of the questions that are listed."""
    return page.locator("#list .what b").all_inner_texts()


def show_more(page: Page) -> None:
    """List more than the first few questions: those of these tests are fewer than come at once."""
    page.get_by_role("button", name="show more of").click()


def settle(page: Page, status: str) -> None:
    """Wait until the list says that it has so many questions."""
    expect(page.locator("#found")).to_have_text(status)


def test_a_question_opens_on_the_answers_of_all_arms(visit: Callable[..., Page], example: Path) -> None:
    page = visit(example)

    page.locator("#list summary").filter(has_text="prune-default").first.click()

    answers = page.locator("#sample-prune-default article")
    assert ["openai baseline", "openai with_docs"] == answers.locator("h4").all_inner_texts()
    assert page.url.endswith("#sample-prune-default")
    calls = answers.nth(1).locator("details.tools")
    calls.first.locator("summary").click()
    assert "search_docs" in calls.first.inner_text()


def test_questions_are_searched_and_filtered(visit: Callable[..., Page], example: Path) -> None:
    page = visit(example)
    assert 12 == len(shown(page))
    show_more(page)
    assert 35 == len(shown(page))

    page.get_by_label("search").fill("MOLEHILL pin id")  # of answers that are not open
    expect(page.locator("#list > tr")).not_to_have_count(35)
    found = shown(page)
    assert "prune-default" in found
    page.get_by_role("button", name="clear").click()
    settle(page, "35 questions")
    page.get_by_label("show").select_option("with unverified claims")
    claims = shown(page)
    page.locator("select[data-key=pages]").select_option("retention")
    both = shown(page)

    assert 0 < len(both) < len(claims) < 35
    assert set(both) <= set(claims)
    page.get_by_role("button", name="clear").click()
    settle(page, "35 questions")
    page.get_by_label("show").select_option("worse only")
    settle(page, "1 of 35 questions")
    (effect,) = figures(page, "effect")
    assert effect < 0


def test_the_order_is_that_of_the_dataset_or_the_worst_first(visit: Callable[..., Page], example: Path) -> None:
    page = visit(example)
    show_more(page)
    dataset = shown(page)

    page.get_by_label("order").select_option("worst first")
    worst = shown(page)
    page.get_by_label("order").select_option("as in the dataset")

    assert "prune-default" == dataset[0] != worst[0]
    assert sorted(dataset) == sorted(worst)
    assert dataset == shown(page)


def figures(page: Page, name: str) -> list[float]:
    """The figures of a column, as far as there are any."""
    texts = page.locator(f"#list [data-figure={name}]").all_inner_texts()
    return [float(text) for text in texts if text != "–"]


def test_questions_are_sorted_by_each_column(visit: Callable[..., Page], example: Path) -> None:
    page = visit(example)
    show_more(page)
    dataset = shown(page)
    head = page.locator("table.questions thead")
    found = {}

    for name, column in (("question", "id"), ("score", "score"), ("spread", "spread"), ("effect", "effect")):
        button = head.get_by_role("button", name=name)
        button.focus()
        for key in ("Enter", "Space"):
            button.press(key)
            direction = head.locator("th[aria-sort]").get_attribute("aria-sort")
            found[name, direction] = shown(page) if column == "id" else figures(page, column)
            assert [name] == [text.strip() for text in head.locator("th[aria-sort]").all_inner_texts()]
    ties = shown(page)  # by effect, from the largest on
    tied = [name for name, value in zip(ties, figures(page, "effect"), strict=True) if value == 3.0]
    page.locator("#metric").select_option("completeness")
    completeness = figures(page, "effect")
    page.get_by_role("button", name="clear").click()
    expect(page.locator("#list .what b").nth(1)).to_have_text(dataset[1])

    for (_, direction), values in found.items():
        assert sorted(values, reverse=direction == "descending") == values
        assert 1 < len({*values})
    assert 8 == len(found)
    assert 1 < len(tied)
    assert sorted(tied, key=dataset.index) == tied
    assert sorted(completeness, reverse=True) == completeness != found["effect", "descending"]
    assert (dataset, 0) == (shown(page), head.locator("th[aria-sort]").count())


def test_claims_lead_to_their_questions(visit: Callable[..., Page], example: Path, injected: Path) -> None:
    page = visit(example)
    claims = page.locator("#claims")
    page.get_by_role("navigation").get_by_role("link", name="Unverified claims").click()  # which opens the section

    row = claims.locator("tbody tr").filter(has_text="openai with_docs").last
    row.get_by_role("link").click()

    expect(page.locator(f"#sample-{row.get_by_role('link').inner_text()} article").first).to_be_visible()
    assert "openai with_docs" in row.inner_text().replace("\t", " ")
    other = visit(injected)
    other.locator("#claims summary").click()
    other.locator("#claims tbody a").last.click()
    opened = other.locator("#list details[open]").filter(has=other.locator("article"))
    assert other.locator("#claims tbody th").last.inner_text() == opened.locator(".what b").inner_text()


def test_a_link_opens_its_question(visit: Callable[..., Page], injected: Path) -> None:
    sample = f"3 {hostile.LABEL}"
    page = visit(injected, f"#sample-{quote(sample, safe='')}")

    opened = page.locator("details[open]").filter(has=page.locator("article"))
    assert 1 == opened.count()
    assert sample == opened.locator(".what b").inner_text()
    assert opened.evaluate("details => details.querySelector('summary') === document.activeElement")
    page.get_by_label("show").select_option("failed")
    page.evaluate("hash => { location.hash = hash }", f"sample-{quote(f'1 {hostile.LABEL}', safe='')}")
    settle(page, "6 questions")  # what is linked to is not hidden by a filter
    assert 2 == page.locator("#list > tr > td > details[open]").count()


def test_no_script_of_others_runs_and_all_of_it_shows_as_text(visit: Callable[..., Page], injected: Path) -> None:
    page = visit(injected)

    page.evaluate(OPEN_ALL, "details")
    page.wait_for_selector("article")
    page.evaluate(OPEN_ALL, "details")
    page.get_by_label("search").fill("onerror")
    settle(page, "6 questions")

    assert page.evaluate("window.injected === undefined")
    assert 0 == page.locator("img, iframe, template, object").count()
    text = page.locator("#list").inner_text()
    assert [] == [part for part in hostile.INJECTIONS[:5] if part.strip() not in text]


def test_the_policy_stops_what_would_get_past_the_escaping(browser: Browser, injected: Path) -> None:
    """Had an answer come through as HTML, neither a script nor a handler in it would run, and nothing be fetched."""
    page = browser.new_page()
    page.goto(injected.as_uri())

    page.evaluate("html => document.body.insertAdjacentHTML('beforeend', html)", hostile.INJECTIONS[2])
    page.evaluate(
        """() => {
            const script = document.createElement("script");
            script.textContent = "window.injected = true";
            document.body.append(script);
        }"""
    )
    fetched = page.evaluate("fetch('data:,x').then(() => 'fetched', () => 'refused')")

    assert (True, "refused") == (page.evaluate("window.injected === undefined"), fetched)
    page.close()


def test_it_is_used_by_keyboard_alone(visit: Callable[..., Page], example: Path) -> None:
    page = visit(example)

    page.keyboard.press("Tab")
    assert "To the questions" == page.evaluate("document.activeElement.textContent")
    page.keyboard.press("/")
    page.keyboard.type("prune-default")
    expect(page.locator("#found")).not_to_have_text("35 questions")
    page.locator("#list summary").first.focus()
    page.keyboard.press("Enter")

    page.wait_for_selector("#list details[open] article")


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 400)])
def test_axe_finds_nothing_serious(
    visit: Callable[..., Page], example: Path, injected: Path, scheme: str, width: int
) -> None:
    rules = files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
    found = []
    for file in (example, injected):
        page = visit(file, color_scheme=scheme, viewport={"width": width, "height": 900}, bypass_csp=True)
        page.locator("#list summary").first.click()
        page.wait_for_selector("article")
        page.evaluate(OPEN_ALL, "details:not(#list > tr > td > details)")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.evaluate(rules)
        violations = page.evaluate("axe.run().then((results) => results.violations)")
        found += [
            (violation["id"], node["html"][:200])
            for violation in violations
            if violation["impact"] in ("serious", "critical")
            for node in violation["nodes"][:3]
        ]

    assert [] == found


def test_what_was_lost_is_told_in_another_colour(visit: Callable[..., Page], injected: Path) -> None:
    page = visit(injected)

    told, body = (page.locator(each).first.evaluate("e => getComputedStyle(e).color") for each in (".lost", "body"))
    assert told != body


def test_it_prints_without_its_controls(visit: Callable[..., Page], example: Path) -> None:
    page = visit(example)

    page.emulate_media(media="print")

    assert not page.get_by_role("search").is_visible()
    assert page.locator("#effects table").first.is_visible()
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert 0 == page.locator(".folded:not([open])").count() < page.locator(".folded[open]").count()


def test_verdicts_are_seen_on_a_narrow_screen_without_scrolling(visit: Callable[..., Page], example: Path) -> None:
    page = visit(example, viewport={"width": 400, "height": 900})

    edges = page.locator("#effects h3 ~ .scrolled td.verdict").evaluate_all(
        "cells => cells.map((cell) => cell.getBoundingClientRect().right)"
    )
    assert edges
    assert [] == [edge for edge in edges if edge > 400]


def test_the_questions_of_an_effect_are_lines_that_lead_to_both_answers(
    visit: Callable[..., Page], example: Path
) -> None:
    page = visit(example)
    row = page.locator("#effects tr").filter(has_text="completeness")

    row.get_by_role("button", name=re.compile(r"^\d+ questions$")).press("Enter")
    lines = page.get_by_role("group", name="each question from openai baseline to openai with_docs").get_by_role("link")
    names = [line.get_attribute("aria-label") or "" for line in lines.all()]
    lines.first.press("ArrowDown")
    lines.nth(1).press("Enter")
    answers = page.locator(".pair-answers")
    expect(answers).to_be_focused()
    page.get_by_text("as a table").click()
    table = page.locator(".paired tbody tr")

    assert ["openai baseline", "openai with_docs"] == answers.locator("h4").all_inner_texts()
    assert names[1].startswith(f"{answers.locator('h3').inner_text()}: ")
    changes = [float(name.rpartition("(")[2].rstrip(")")) for name in names]
    assert sorted(changes) == changes  # the worst first
    rows = [dict(zip(("id", "before", "now", "change"), text.split(), strict=True)) for text in table.all_inner_texts()]
    assert names == [f"{each['id']}: {each['before']} → {each['now']} ({each['change']})" for each in rows]
    row.locator("button.pairs").click()
    expect(lines).to_have_count(0)


def test_of_many_questions_those_that_are_alike_share_a_line(visit: Callable[..., Page], example: Path) -> None:
    page = visit(example)
    draw = """count => {
        const pairs = Array.from({ length: count }, (_, place) => [`q${place}`, place % 2, 1]);
        const drawn = globalThis.keval.slopes({ pairs, names: ["a", "b"], low: 0, high: 1, lower: true, link: String });
        return [...drawn.querySelectorAll(".line")].map((line) => [line.classList[1], line.textContent]);
    }"""

    assert ["worse", "worse", "same", "same"] == [kind for kind, _ in page.evaluate(draw, 4)]
    assert [["worse", "250 questions: 0.00 → 1.00"], ["same", "250 questions: 1.00 → 1.00"]] == page.evaluate(draw, 500)
