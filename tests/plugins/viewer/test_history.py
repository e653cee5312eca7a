"""The page of an evaluation's runs over time."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests import hostile, viewing
from tests.conftest import Project
from tests.histories import edit, rated
from tests.viewing import client_of, needs_chromium


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four runs: the second with higher ratings, the third of other questions, the last of another evaluation."""
    project = Project(tmp_path_factory.mktemp("rated"))
    rated(project, 1, 0.2)
    rated(project, 2, 0.8)
    rated(project, 3, 0.8, questions=4)
    other = rated(project, 4, name="other")
    edit(other / "summary.json", unfinished=True)
    return project.root / "results"


@pytest.fixture
def results(made: Path, tmp_path: Path) -> Path:
    """A copy of these runs."""
    return Path(shutil.copytree(made, tmp_path / "results"))


def test_each_run_has_its_points_and_what_it_changed(results: Path) -> None:
    with viewing.served(results) as running, client_of(running) as client:
        linked = 'href="/history"' in client.get("/").text
        page = client.get("/history").text

    runs = re.findall(r'<tbody id="([^"]+)">(.*?)</tbody>', page, re.DOTALL)
    text = {run: " ".join(re.sub(r"<[^>]+>", " ", row).split()) for run, row in runs}
    assert linked
    assert ["20260103-120000-aaaa", "20260102-120000-aaaa", "20260101-120000-aaaa"] == [*text]
    assert (
        "20260101-120000-aaaa 12 × 1 0.22 [0.21, 0.23] 0.22 [0.21, 0.23] the first run" == text["20260101-120000-aaaa"]
    )
    higher = "20260102-120000-aaaa 12 × 1 0.82 [0.81, 0.83] higher 0.82 [0.81, 0.83] higher"
    assert f"{higher} answers of agent one against 20260101-120000-aaaa compare" == text["20260102-120000-aaaa"]
    assert "against 20260102-120000-aaaa , which asked other questions compare" in text["20260103-120000-aaaa"]


def test_points_are_drawn_with_their_intervals_and_lead_to_their_runs(results: Path) -> None:
    with viewing.served(results) as running, client_of(running) as client:
        page = client.get("/history").text
        found = re.findall(
            r'<a href="(/runs/[^"]+)" aria-label="([^"]+)"><g class="([^"]*)">(.*?)</g>', page, re.DOTALL
        )
        codes = {client.get(url).status_code for url, *_ in found}
        compared = {
            client.get(url.replace("&amp;", "&")).status_code for url in re.findall(r'"(/compare\?[^"]+)"', page)
        }

    told = [(url.rpartition("/")[2], name, classes) for url, name, classes, _ in found[:3]]
    assert [
        ("20260101-120000-aaaa", "20260101-120000-aaaa: 0.22 [0.21, 0.23]", ""),
        ("20260102-120000-aaaa", "20260102-120000-aaaa: 0.82 [0.81, 0.83], higher than before", "better"),
        ("20260103-120000-aaaa", "20260103-120000-aaaa: 0.81 [0.79, 0.84]", " other"),
    ] == told
    heights = [float(match[1]) for *_, drawn in found[:2] if (match := re.search(r'cy="([\d.]+)"', drawn))]
    assert [pytest.approx(150 * (1 - mean), abs=0.1) for mean in (0.2175, 0.8175)] == heights
    assert all("whisker" in drawn for *_, drawn in found)
    assert ({200}, {200}) == (codes, compared)


def test_what_is_followed_is_in_the_url(results: Path) -> None:
    queries = ["?metric=characters", "?evaluation=nothing", "?metric=nothing"]

    with viewing.served(results) as running, client_of(running) as client:
        pages = {query: client.get(f"/history{query}") for query in queries}

    assert [200, 404, 404] == [page.status_code for page in pages.values()]
    assert "characters, less is better</option>" in pages["?metric=characters"].text
    assert "There is no finished run of &#39;nothing&#39;; there are: rated." in pages["?evaluation=nothing"].text
    assert "there is no metric &#39;nothing&#39;" in pages["?metric=nothing"].text
    assert "left out (unfinished): other/20260104-120000-aaaa" in pages["?metric=characters"].text


def test_an_evaluation_without_the_metric_shows_its_own(results: Path) -> None:
    shutil.copytree(Path(__file__).parents[2] / "runs" / "0.1.0", results / "old")

    with viewing.served(results) as running, client_of(running) as client:
        page = client.get("/history?evaluation=support&metric=number/rating")

    assert (200, True) == (page.status_code, "History of <bdi>support</bdi>" in page.text)


def test_without_finished_runs_there_is_nothing_to_show(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()

    with viewing.served(tmp_path / "results") as running, client_of(running) as client:
        page = client.get("/history")

    assert (200, True) == (page.status_code, "No finished runs under" in page.text)


# `made` runs evaluations in this process, which cannot be done when the browser's event loop is there.
@pytest.mark.slow
@pytest.mark.usefixtures("made")
@needs_chromium
def test_text_of_others_is_shown_as_text(copied: Path, visit: Callable[..., Page]) -> None:
    text = (copied / "summary.json").read_text(encoding="utf-8")
    (copied / "summary.json").write_text(
        text.replace('"agent-label"', json.dumps(f"agent {hostile.LABEL}")), encoding="utf-8"
    )

    with viewing.served(copied.parents[1]) as running:
        page = visit(running, "/history")
        expect(page.locator(".trend a").first).to_be_visible()

        assert page.evaluate("window.injected === undefined")
        assert f"agent {hostile.LABEL}" in page.locator("main").inner_text()


@needs_chromium
def test_the_id_of_a_run_keeps_to_one_line(results: Path, visit: Callable[..., Page]) -> None:
    with viewing.served(results) as running:
        page = visit(running, "/history", viewport={"width": 390, "height": 900})
        lines = page.locator(".history a").evaluate_all("links => links.map(link => link.getClientRects().length)")

    assert {1} == set(lines)


@pytest.mark.slow
@needs_chromium
def test_a_dot_leads_to_its_run_and_a_triangle_to_what_it_changed(results: Path, visit: Callable[..., Page]) -> None:
    with viewing.served(results) as running:
        page = visit(running, "/history", expected=["net::ERR", "dynamically imported module"])
        page.get_by_label("metric").select_option("double/characters")
        expect(page.get_by_text("characters, less is better").first).to_be_attached()
        page.locator(".trend .triangle").first.click()
        expect(page).to_have_url(re.compile("#20260102-120000-aaaa$"))
        page.locator(".trend a").first.focus()
        page.keyboard.press("Enter")
        expect(page).to_have_url(re.compile("/runs/rated/20260101-120000-aaaa$"))
