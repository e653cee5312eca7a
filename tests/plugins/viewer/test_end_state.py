"""What a trial was given and left, on its page and on the page of a run, where nothing of it does anything."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import Page

from keval_viewer.app import Serving
from tests import endings
from tests.conftest import Project
from tests.viewing import client_of, needs_chromium, served


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = Project(tmp_path_factory.mktemp("ended"))
    endings.make(project)
    return project


@pytest.fixture(scope="module")
def serving(ended: Project, hostile_results: Path) -> Iterator[Serving]:
    with served(ended.root / "results") as running:
        yield running


def place(project: Project, kind: str = "trials", trial: str = endings.TRIAL) -> str:
    run = project.run_directory()
    return f"/runs/{run.parent.name}/{run.name}/{kind}/{quote(trial, safe='')}"


def test_the_page_of_a_trial_shows_texts_checks_diff_and_artifacts(ended: Project, serving: Serving) -> None:
    with client_of(serving) as client:
        page = client.get(place(ended)).text
        (link,) = re.findall(r'<a href="([^"]*)" download>', page)
        artifact = client.get(html.unescape(link))
        strange = client.get(re.sub("sha256=.", "sha256=x", html.unescape(link)))
        other = client.get(place(ended, trial=endings.TRIAL.replace("skilled", "baseline"))).text

    told = html.unescape(re.sub(r"<[^>]*>", "", page))
    assert "given by .claude/skills, read by Read in model call 2" in told
    assert ["passed", "failed", "unscored"] == re.findall(r'<li><strong class="[a-z]+">(\w+)</strong>', page)
    assert "<ins>+line 59</ins>" in page
    assert "<ins>+&lt;script&gt;window.injected = true&lt;/script&gt;</ins>" in page
    assert "1,073,741,824 bytes, not kept: it is larger than max_artifact_bytes" in told
    assert "<h1>&lt;" not in page
    assert "&lt;h1&gt;&lt;script&gt;" in page  # the artifact's text, escaped
    assert (200, endings.PAGE, "application/octet-stream") == (
        artifact.status_code,
        artifact.content,
        artifact.headers["content-type"],
    )
    assert artifact.headers["content-disposition"].startswith(
        "attachment; filename*=utf-8''page%EF%BF%BD%5B2J%EF%BF%BD.html"
    )
    assert "nosniff" == artifact.headers["x-content-type-options"]
    assert 404 == strange.status_code
    assert "What it left" not in other


@pytest.mark.slow
@needs_chromium
def test_nothing_that_an_agent_left_does_anything(
    ended: Project, serving: Serving, visit: Callable[..., Page], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ended.root)
    assert 0 == ended.keval("report", "latest", "--html", "results/page.html").code
    for page in (visit(serving, place(ended)), visit(serving, f"{place(ended).partition('/trials/')[0]}#questions")):
        page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
        assert not page.evaluate("'injected' in window")
    text = (ended.root / "results" / "page.html").read_text(encoding="utf-8")
    assert "What it left" in text
    assert "<script>window.injected" not in text
