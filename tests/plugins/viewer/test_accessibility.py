"""What axe-core says of every page, wide and light, and narrow and dark; none scrolls sideways."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, expect

from keval import Run
from keval_viewer.app import Serving
from keval_viewer.page import run_url, trial_url
from tests import viewing
from tests.plugins.viewer import odd_run
from tests.reviewing import level, review
from tests.viewing import needs_chromium, open_all, serious, too_wide

pytestmark = [
    pytest.mark.slow,
    needs_chromium,
    pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 360)]),
]


def options(scheme: str, width: int) -> dict[str, object]:
    return {"color_scheme": scheme, "viewport": {"width": width, "height": 800}, "bypass_csp": True}


def checked(page: Page) -> list[tuple[str, str]]:
    """What is serious on a page, with all that can be opened on it open, and with its help."""
    open_all(page)
    assert not too_wide(page), page.url
    found = serious(page)
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    return found + serious(page)


def test_trials_and_samples(odd: Serving, visit: Callable[..., Page], scheme: str, width: int) -> None:
    trials = (odd_run.LONG, odd_run.REPEATED, odd_run.FAILED)
    samples = [f"{odd_run.PLACE}/samples/{place}" for place in ("prune-default?against=0", "tape")]
    paths = [f"{odd_run.url(odd_run.READ)}?read=completeness+judge", *map(odd_run.url, trials), *samples]

    assert [] == [each for path in paths for each in checked(visit(odd, path, **options(scheme, width)))]


def test_runs_and_comparisons(
    hostile_results: Path, tmp_path: Path, visit: Callable[..., Page], scheme: str, width: int
) -> None:
    (first,) = hostile_results.glob("hostile/*")
    for name in ("20260101-000000-aaaa", "20260102-000000-bbbb"):
        shutil.copytree(first, tmp_path / "hostile" / name)
    run = Run(tmp_path / "hostile" / "20260101-000000-aaaa")
    agent, (_, condition) = next(iter(run.manifest.agents)), run.manifest.conditions
    two = [("run", "hostile/20260102-000000-bbbb"), ("run", "hostile/20260101-000000-aaaa")]
    one_arm = urlencode([*two, ("arm", f"{agent} / {condition}")])
    places = [run_url(run), run_url(run, "/trials"), run_url(run, "/compare")]
    paths = ["/", "/runs/nowhere/nothing", *places, f"/compare?{urlencode(two)}", f"/compare?{one_arm}"]

    with viewing.served(tmp_path) as served:
        pages = (visit(served, path, expected=["404", "net::ERR"], **options(scheme, width)) for path in paths)
        found = [each for page in pages for each in checked(page)]

    assert [] == found


def test_reviews(copied: Path, visit: Callable[..., Page], scheme: str, width: int) -> None:
    run = Run(copied)
    trial = next(iter(run.trial_ids(failed=False)))
    queries = ("chosen=all&seed=3&blind=1&at=0", "chosen=all&seed=3&at=0", "chosen=all&seed=3&side=1&blind=1&at=1")
    answers = [run_url(run, f"/review/answers?{query}") for query in (*queries, "chosen=all&seed=3&at=20")]

    with viewing.served(copied.parents[1]) as served:
        page = visit(served, run_url(run, "/review"), **options(scheme, width))
        page.get_by_label("Your name").fill("Ann")
        page.get_by_role("button", name="go on").click()
        run.reviews_file.append(
            [level(run, trial, 3, "Ann"), level(run, trial, 4, "Ben"), review(run, trial, note="hm")]
        )
        found = []
        for place in (run_url(run, "/review"), *answers, run_url(run), trial_url(run, trial)):
            page.goto(f"{served.base}{place}")
            found += checked(page)

    assert [] == found
