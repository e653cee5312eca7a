"""The table of runs."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from keval_viewer.app import Serving
from tests import hostile, viewing
from tests.viewing import client_of, needs_chromium


def test_runs_are_listed_with_what_they_are(served: Serving) -> None:
    with client_of(served) as client:
        page = client.get("/").text

    assert "hostile" in page
    assert "<img src=x" not in page


@pytest.mark.slow
@needs_chromium
def test_a_run_is_opened_by_keyboard_and_is_shown_as_text(served: Serving, visit: Callable[..., Page]) -> None:
    page = visit(served)

    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.locator("#list > tr")).to_have_count(6)

    assert page.evaluate("window.injected === undefined")
    assert hostile.LABEL in page.locator("body").inner_text()


def test_runs_are_filtered_and_sorted_by_the_url(served: Serving, hostile_results: Path) -> None:
    (run,) = hostile_results.glob("*/*")
    queries = ["?q=hostile", "?q=hostile+nothing", "?evaluation=hostile", "?state=done", "?state=running", "?sort=-x"]

    with client_of(served) as client:
        shown = {query: run.name in client.get(f"/table{query}").text for query in queries}
        by_cost = client.get("/?sort=cost").text

    assert ["?q=hostile+nothing", "?state=running"] == [query for query, is_shown in shown.items() if not is_shown]
    assert 'aria-sort="ascending"' in by_cost
    assert ["1 run; not all prices of 1 run are known"] == re.findall(r'id="found" role="status">(.*?)</p>', by_cost)


def test_a_run_that_cannot_be_read_is_listed_with_what_is_wrong(tmp_path: Path) -> None:
    folder = tmp_path / "results" / "broken" / "20260101-000000-aaaa"
    folder.mkdir(parents=True)
    (folder / "manifest.json").write_text('{"format": 1}', encoding="utf-8")

    with viewing.served(tmp_path / "results") as running, client_of(running) as client:
        listed, page = client.get("/"), client.get("/runs/broken/20260101-000000-aaaa")

    assert "has format 1" in listed.text
    assert (500, True) == (page.status_code, "has format 1" in page.text)


@pytest.mark.slow
@needs_chromium
def test_runs_that_are_ticked_are_compared(visit: Callable[..., Page], copied: Path) -> None:
    other = copied.with_name("20260101-000000-aaaa")
    with viewing.served(copied.parents[1]) as running:
        page = visit(running)
        boxes = page.get_by_role("checkbox")
        boxes.first.check()
        compare = page.get_by_role("button", name="compare")
        expect(compare).to_be_disabled()
        shutil.copytree(copied, other)
        expect(boxes).to_have_count(2)  # a new run appears by itself
        expect(boxes.first).to_be_checked()
        page.locator("tbody tr").nth(1).get_by_role("link").focus()
        page.keyboard.press("x")
        compare.click()
        page.wait_for_url(re.compile("/compare"))

        assert {copied.name, other.name} == {*re.findall(r"hostile%2F(\d+-\d+-\w+)", page.url)}
