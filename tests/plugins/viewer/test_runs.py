"""The table of runs."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from keval_viewer.app import Serving
from tests import hostile
from tests.viewing import client_of, needs_chromium, serious, too_wide


def test_runs_are_listed_with_what_they_are(served: Serving) -> None:
    with client_of(served) as client:
        page = client.get("/").text

    assert "hostile" in page
    assert "<img src=x" not in page


@needs_chromium
def test_a_run_is_opened_by_keyboard_and_is_shown_as_text(served: Serving, visit: Callable[..., Page]) -> None:
    page = visit(served)

    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.locator("#list > li")).to_have_count(6)

    assert page.evaluate("window.injected === undefined")
    assert hostile.LABEL in page.locator("body").inner_text()


@pytest.mark.slow
@needs_chromium
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 360])
def test_axe_finds_nothing_serious(served: Serving, visit: Callable[..., Page], scheme: str, width: int) -> None:
    found = []
    for path in ("/", "/runs/nowhere/nothing"):
        page = visit(
            served,
            path,
            expected=["404"],
            color_scheme=scheme,
            viewport={"width": width, "height": 800},
            bypass_csp=True,
        )
        page.keyboard.press("?")
        assert not too_wide(page)
        found += serious(page)

    assert [] == found
