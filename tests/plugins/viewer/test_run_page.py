"""The page of a run in a browser: its figures are those of the summary, its links lead somewhere, and it fits."""

from __future__ import annotations

import shutil
import statistics
from collections.abc import Callable, Iterator
from urllib.parse import unquote

import pytest
from playwright.sync_api import Page, expect

from keval import Run
from keval.records.formats import interval, number, signed
from keval_viewer.app import Serving
from keval_viewer.page import run_url
from tests import viewing
from tests.plugins.viewer import odd_run
from tests.viewing import needs_chromium, open_all, too_wide

pytestmark = [pytest.mark.slow, needs_chromium]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A copy of a recorded run, summarised by this version of keval."""
    folder = tmp_path_factory.mktemp("run") / "context-ab" / "20261122-000000-abcd"
    shutil.copytree(odd_run.RECORDED, folder, ignore=shutil.ignore_patterns("summary.json"))
    return Run(folder)


@pytest.fixture(scope="module")
def served(run: Run) -> Iterator[Serving]:
    with viewing.served(run.path.parents[1]) as running:
        yield running


def opened(page: Page) -> Page:
    """The page with all of its parts, and all that can be opened on it open."""
    open_all(page)
    expect(page.locator("#list article")).to_have_count(6)
    return page


def rows(page: Page, table: str) -> list[list[str]]:
    """The texts of the cells of a table's body."""
    found: list[list[str]] = page.locator(f"{table} tbody tr").evaluate_all(
        "rows => rows.map((row) => [...row.children].map((cell) => cell.innerText.trim()))"
    )
    return found


def test_its_figures_are_those_of_the_summary(served: Serving, run: Run, visit: Callable[..., Page]) -> None:
    page = opened(visit(served, run_url(run)))
    summary = run.summary()
    scores = [line for line in run.scores() if line.score.value is not None]

    effects = rows(page, "#effects table.forest")
    expected = {
        (
            number(e.against_mean),
            number(e.mean),
            signed(e.difference),
            interval(e.ci_low, e.ci_high, signs=True),
            e.n,
        )
        for e in summary.effects
    }
    assert expected == {(*cells[1].split(" → "), cells[2], cells[3], int(cells[4].split()[0])) for cells in effects}
    trials = [[f"{arm.agent} {arm.condition}", str(arm.trials), str(arm.failed)] for arm in summary.trials]
    assert trials == [cells[:3] for cells in rows(page, "#trials table")]
    for arm in summary.arms:
        values = [
            line.score.value or 0.0 for line in scores if (line.condition, line.metric) == (arm.condition, arm.metric)
        ]
        metric = page.locator("#distributions .metric").filter(has_text=arm.metric.replace("_", " "))
        told = metric.locator(".spread").filter(has_text=arm.condition).locator("strong")
        assert number(statistics.mean(values)) == told.text_content()


@pytest.mark.parametrize("width", [1280, 400])
def test_it_fits_and_every_link_leads_somewhere(
    served: Serving, run: Run, visit: Callable[..., Page], width: int
) -> None:
    page = visit(served, run_url(run), viewport={"width": width, "height": 900})
    expect(page.locator("#list > tr").first).to_be_visible()
    assert 0 < page.locator(".part").count()  # each section is fetched when it is opened
    assert not too_wide(page)
    opened(page)
    links = {str(each.get_attribute("href")) for each in page.locator("a[href]").all()}

    ids = {*page.locator("[id]").evaluate_all("all => all.map((each) => each.id)")}
    within = {link[1:] for link in links if link.startswith("#")}
    others = {link for link in links if link.startswith("/")}
    assert links == {f"#{name}" for name in within} | others
    assert [] == [name for name in within if not {name, unquote(name)} & ids]
    assert {200} == {page.request.get(f"{served.base}{link}").status for link in others}
    assert not too_wide(page)
