"""The table of a run's trials."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from keval import Run
from keval_viewer.app import Serving
from keval_viewer.page import run_url
from keval_viewer.runs import read_ahead
from tests import hostile, viewing
from tests.viewing import client_of, needs_chromium


@pytest.fixture
def path(hostile_results: Path) -> str:
    """The path of the trials of the hostile run."""
    (run,) = hostile_results.glob("*/*")
    return run_url(Run(run), "/trials")


def questions(page: Page) -> list[str]:
    """The ids of the questions of the rows that are shown, without what they have in common."""
    shown = page.locator("#table tbody tr:not(.spacer) th bdi").all_inner_texts()
    return [text.removesuffix(f" {hostile.LABEL}") for text in shown]


def test_the_table_has_every_trial_and_its_scores(served: Serving, path: str) -> None:
    with client_of(served) as client:
        page, table = client.get(path).text, client.get(f"{path}.json").json()

    assert "12 trials" in page
    assert 12 == page.count("data-row")
    assert [f"agent-label {hostile.LABEL}"] == table["agents"]
    assert {12} == {len(column) for column in (*table["trials"].values(), *table["scores"])}
    assert 1 == len([kind for kind in table["trials"]["failure"] if kind])
    equals = table["scores"][[metric["name"] for metric in table["metrics"]].index("equals")]
    assert {0.0, 1.0, None} == {*equals}


def test_without_its_script_the_table_has_pages(served: Serving, path: str) -> None:
    with client_of(served) as client:
        rest, none, nonsense = (client.get(f"{path}?from={start}").text for start in ("10", "12", "-1x"))

    assert (2, 0, 12) == (rest.count("data-row"), none.count("data-row"), nonsense.count("data-row"))


def test_a_run_that_was_written_to_is_read_again(copied: Path) -> None:
    path = run_url(Run(copied), "/trials.json")
    file = copied / "trials.jsonl"

    with viewing.served(copied.parents[1]) as running, client_of(running) as client:
        before = len(client.get(path).json()["trials"]["id"])
        # As keval does: what is reading ahead in the background finds the old file or the new one, and no part of it.
        written = file.with_suffix(".new")
        written.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[:5]))
        written.replace(file)
        after = len(client.get(path).json()["trials"]["id"])
        page = client.get(run_url(Run(copied))).text

    assert (12, 5) == (before, after)
    assert "Interrupted: 5 of 12 trials are there." in page  # its summary tells of more


def test_a_run_may_go_while_it_is_read_ahead(copied: Path) -> None:
    run = Run(copied)
    assert 12 == len(run.known_trials)
    run.trials_file.unlink()

    read_ahead(run)  # does not raise, as the web server would close the connection then, with the next request on it


@pytest.mark.slow
@needs_chromium
def test_trials_are_filtered_sorted_and_opened_by_keyboard(
    served: Serving, visit: Callable[..., Page], path: str
) -> None:
    page = visit(served, path)
    found = page.locator("#found")
    expect(found).to_have_text("12 trials")

    page.get_by_label("outcome").select_option("failed")
    expect(found).to_have_text("1 of 12 trials")
    failed = questions(page)
    page.get_by_role("button", name="clear").click()
    expect(found).to_have_text("12 trials")
    page.get_by_role("button", name="question").click()
    page.get_by_role("button", name="question").click()
    backwards = questions(page)
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    page.keyboard.type("how much is 3")
    expect(found).to_have_text("2 of 12 trials")
    url = page.url
    page.keyboard.press("Tab")
    page.locator("body").focus()
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url("**/trials/*")

    assert ["5"] == failed
    assert [str(number) for number in (5, 4, 3, 2, 1, 0) for _ in range(2)] == backwards
    assert url.endswith("?q=how+much+is+3&sort=-sample")
    assert page.evaluate("window.injected === undefined")
    page.go_back()
    expect(page.locator("#found")).to_have_text("2 of 12 trials")
