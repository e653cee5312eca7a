"""The page of a play in a browser: what comes without a reload, keyboard, tabs, hostile text, narrow and wide."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from keval_viewer.app import Serving
from tests import hostile
from tests.playing import play_served
from tests.viewing import needs_chromium, serious, too_wide

pytestmark = [pytest.mark.slow, needs_chromium]

CONFIG = {
    "name": "hostile",
    "description": hostile.EVERYTHING,
    "dataset": {"path": "questions.jsonl"},
    "agents": {
        "steady": {"type": "double/talker"},
        "weak": {"type": "double/talker", "fails_at": "break", "hangs_at": "hang"},
    },
    "conditions": {"only": {"system_prompt": hostile.EVERYTHING}, "other": {}},
    "metrics": ["double/length", "basic/turns"],
    "judges": {"strict": {"odd": hostile.EVERYTHING}},
    "rubrics": ["double/brevity"],
    "plugins": ["double/facts"],
}
SAMPLE = {"id": hostile.LABEL, "question": f"Is it so? {hostile.EVERYTHING}", "answer": hostile.EVERYTHING}


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Serving]:
    """A play in which everything that others write is hostile."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "questions.jsonl").write_text(f"{json.dumps(SAMPLE)}\n", encoding="utf-8")
    (tmp_path / "eval.yaml").write_text(json.dumps(CONFIG), encoding="utf-8")
    with play_served(tmp_path / "eval.yaml", Path("results")) as running:
        yield running


def ask(page: Page, text: str) -> None:
    """Type a question, send it with Enter, and wait until all is answered and scored."""
    expect(page.locator("#send")).to_be_enabled()
    page.get_by_role("textbox", name="Question").fill(text)
    page.keyboard.press("Enter")
    expect(page.locator("#latest .asked")).to_have_text(text)
    settle(page)


def settle(page: Page) -> None:
    expect(page.locator("#status")).to_contain_text("All answers are there and scored")


def cell(page: Page, column: str) -> str:
    return f"#latest article[data-key='{column}']"


def test_all_text_of_others_is_shown_as_text(served: Serving, visit: Callable[..., Page]) -> None:
    page = visit(served)

    page.keyboard.press("/")  # nothing is focused by it while somebody types
    page.locator("#chooser summary").click()
    page.locator("#samples button").click()
    settle(page)
    ask(page, hostile.EVERYTHING)
    page.locator("#setup > summary").click()
    page.locator("#latest .facts-of summary").click()
    page.evaluate("for (const each of document.querySelectorAll('details.grade')) each.open = true")
    page.locator("#earlier details").first.locator("summary").click()
    expect(page.locator("#earlier .question article")).to_have_count(4)

    assert page.evaluate("window.injected === undefined")
    assert 0 == page.locator("img, iframe, template, object").count()
    text = page.locator("main").inner_text()
    assert [] == [part for part in hostile.INJECTIONS[:5] if part.strip() not in text]


def test_an_answer_that_fails_or_is_stopped_hurts_no_other_column(served: Serving, visit: Callable[..., Page]) -> None:
    page = visit(served)

    ask(page, "break")
    expect(page.locator(cell(page, "weak/only"))).to_contain_text("it broke")
    expect(page.locator(f"{cell(page, 'steady/only')} .grade.scored")).to_have_count(3)
    page.get_by_role("textbox", name="Question").fill("hang")
    page.get_by_role("button", name="New conversation").click()
    expect(page.locator("#play")).to_contain_text("a new conversation begins")
    page.get_by_role("textbox", name="Question").press("Enter")
    expect(page.locator(cell(page, "weak/only"))).to_contain_text("Let me think.")
    expect(page.locator(f"{cell(page, 'steady/only')} .grade.scored")).to_have_count(3)
    page.keyboard.press("Escape")

    expect(page.locator(cell(page, "weak/only"))).to_contain_text("Stopped.")
    expect(page.locator("#status")).to_have_text("All answers are there and scored; no answer of weak/only, weak/other")
    expect(page.locator("#send")).to_be_enabled()


def test_tabs_see_the_same_and_keep_what_is_typed_in_each(served: Serving, visit: Callable[..., Page]) -> None:
    one, two = visit(served), visit(served)

    two.get_by_role("textbox", name="Question").fill("not sent yet")
    two.locator("#setup > summary").click()
    one.get_by_role("button", name="other", exact=True).click()
    ask(one, "one")

    expect(two.locator("#latest .asked")).to_have_text("one")
    settle(two)
    expect(two.locator("#latest article")).to_have_count(2)
    assert "not sent yet" == two.get_by_role("textbox", name="Question").input_value()
    assert two.locator("#setup").evaluate("details => details.open")


def test_an_edit_shows_its_difference_and_asks_again_and_is_kept(served: Serving, visit: Callable[..., Page]) -> None:
    page = visit(served)

    ask(page, "one")
    page.locator("#setup > summary").click()
    editor = page.locator("form[data-key='condition other']")
    editor.get_by_label("system prompt").fill("Be brief.")
    editor.get_by_label("as a condition of its own").fill("brief")
    editor.get_by_role("button", name="Apply").click()
    expect(page.locator("form[data-key='condition brief'] ins")).to_have_text("Be brief.")
    expect(page.locator(f"{cell(page, 'steady/brief')} .answer")).to_have_text("Be brief. one")
    expect(page.locator(f"{cell(page, 'steady/brief')} h3")).to_contain_text("edited")
    page.locator("form[data-key='condition brief']").get_by_role("link", name="keep as YAML").click()
    expect(page.get_by_role("dialog")).to_contain_text("brief:\n    system_prompt: Be brief.")
    for pressed in ("false", "true"):  # as in another tab; what is open stays so
        page.locator("#switches button").first.evaluate("button => button.click()")
        expect(page.locator("#switches button").first).to_have_attribute("aria-pressed", pressed)
    expect(page.get_by_role("dialog")).to_be_visible()
    page.get_by_role("button", name="close").click()
    settle(page)
    page.locator("#keep summary").click()
    page.get_by_role("button", name="steady/brief", exact=True).click()
    page.get_by_role("button", name="Keep", exact=True).click()
    expect(page.get_by_role("dialog")).to_contain_text("Kept as q1")

    kept = json.loads(Path("questions.jsonl").read_text(encoding="utf-8").splitlines()[-1])
    assert ("one", "Be brief. one") == (kept["question"], kept["answer"])
    assert "before an edit" in page.locator("#earlier").inner_text()


def test_a_problem_is_told_beside_what_it_is_about(served: Serving, visit: Callable[..., Page]) -> None:
    page = visit(served, expected=["409"])

    page.locator("#setup > summary").click()
    editor = page.locator("form[data-key='condition other']")
    editor.get_by_label("system prompt").fill("{% if")
    editor.get_by_role("button", name="Apply").click()

    expect(editor.get_by_role("alert")).to_contain_text("the template is not valid")
    assert "{% if" == editor.get_by_label("system prompt").input_value()


@pytest.fixture
def wide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Serving]:
    """A play of four columns with long names, and many metrics with long names."""
    monkeypatch.chdir(tmp_path)
    agents = {f"{name}-framework-with-tools": {"type": "double/talker"} for name in ("first", "second")}
    conditions = {"baseline_without_context": {}, "with_weather_and_calendar": {"system_prompt": "Be brief."}}
    metrics = ["double/length", "basic/turns", "basic/latency", "basic/tokens"]
    judges = {"a-strict-judge": {"type": "strict"}, "another-strict-judge": {"type": "strict"}}
    config = {"agents": agents, "conditions": conditions, "metrics": metrics, "judges": judges}
    config |= {"dataset": {"path": "questions.jsonl"}, "rubrics": ["double/brevity"]}
    (tmp_path / "questions.jsonl").write_text(f"{json.dumps(SAMPLE)}\n", encoding="utf-8")
    (tmp_path / "eval.yaml").write_text(json.dumps(config), encoding="utf-8")
    with play_served(tmp_path / "eval.yaml", Path("results")) as running:
        yield running


def test_the_standings_of_four_columns_fit(wide: Serving, visit: Callable[..., Page]) -> None:
    page = visit(wide, viewport={"width": 1280, "height": 900})

    for text in ("Is it so?", "And what of a question that is much longer than the one before?"):
        ask(page, text)

    heads = page.locator(".standings thead th").all_inner_texts()
    assert (3, 5) == (heads.count("difference"), len(heads) - heads.count("difference"))
    widths = page.locator(".so-far .scrolled").evaluate("place => [place.scrollWidth, place.clientWidth]")
    assert widths[0] <= widths[1]
    assert not too_wide(page)


@pytest.mark.parametrize(("scheme", "width"), [("light", 1600), ("dark", 800), ("light", 360)])
def test_axe_finds_nothing_serious(served: Serving, visit: Callable[..., Page], scheme: str, width: int) -> None:
    page = visit(served, color_scheme=scheme, viewport={"width": width, "height": 900}, bypass_csp=True)

    found = serious(page)
    ask(page, "one")
    ask(page, "break")
    for place in ("#setup", "#chooser", "#keep"):
        page.locator(f"{place} > summary").click()
    page.evaluate("for (const each of document.querySelectorAll('#latest details')) each.open = true")
    assert not too_wide(page)
    found += serious(page)
    page.goto(f"{served.base}/play/questions/1/q1")
    assert not too_wide(page)
    found += serious(page)

    assert [] == found
