"""The page that compares two arms, and the one that compares runs."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlencode

import attrs
import pytest
from playwright.sync_api import Page, expect

from keval import Run
from keval_report.words import run_title
from keval_viewer.app import Serving
from tests import hostile
from tests.conftest import Project
from tests.ratings import run_of
from tests.viewing import client_of, needs_chromium, serious, served as serving_results

BASE = f"agent-label {hostile.LABEL} / baseline"
OTHER = f"agent-label {hostile.LABEL} / condition-label {hostile.LABEL}"


def the_run(results: Path) -> str:
    (found,) = results.glob("hostile/*")
    return f"{found.parent.name}/{found.name}"


def test_what_cannot_be_compared_is_said(served: Serving, hostile_results: Path) -> None:
    run = the_run(hostile_results)
    with client_of(served) as client:
        same = client.get(f"/runs/{run}/compare?{urlencode({'arm': BASE, 'against': BASE})}")
        unknown = client.get(f"/runs/{run}/compare?{urlencode({'arm': 'nobody', 'against': BASE})}")
        alone = client.get(f"/compare?{urlencode([('run', run), ('run', run)])}")

    assert [(200, True), (404, True), (400, True)] == [
        (same.status_code, "Choose two different arms." in same.text),
        (unknown.status_code, "There is no arm &#39;nobody&#39;" in unknown.text),
        (alone.status_code, "Choose two different runs" in alone.text),
    ]


@pytest.mark.slow
@needs_chromium
def test_two_arms_are_compared_question_by_question(
    served: Serving, hostile_results: Path, visit: Callable[..., Page]
) -> None:
    page = visit(served, f"/runs/{the_run(hostile_results)}/compare", bypass_csp=True)

    expect(page.get_by_role("heading", level=1)).to_have_text(f"condition-label {hostile.LABEL} against baseline")
    expect(page.locator(".slopes svg a")).to_have_count(5)  # the sixth question has an answer that failed
    page.locator("select[name=by]").select_option("equals")
    expect(page.get_by_role("heading", name="Question by question by equals")).to_be_visible()
    assert "by=equals" in page.url
    line = page.locator(".slopes svg a").first
    name = line.get_attribute("aria-label") or ""
    assert name.split(":")[0].endswith(hostile.LABEL)
    assert "/samples/" in (line.get_attribute("href") or "")
    line.press("Enter")
    expect(page.locator(".pair-answers h4")).to_have_text(
        [BASE.replace(" /", ""), OTHER.replace(" /", "")], use_inner_text=True
    )
    assert [] == serious(page)
    assert page.evaluate("window.injected === undefined")


def test_the_only_agents_of_two_runs_are_compared_with_each_other(project: Project) -> None:
    answers = {"a": 0.25, "b": 0.5, "c": 0.75}
    made = [
        run_of(project, "one", answers, agent="gadk"),
        run_of(project, "other", {name: value + 0.25 for name, value in answers.items()}, agent="ms"),
    ]
    # The one that the other is held against is the older, by its id.
    (against, before), (agent, now) = ((next(iter(each.manifest.agents)), each) for each in sorted(made, key=_id))
    query = urlencode([("run", f"{run.path.parent.name}/{run.id}") for run in (before, now)])
    chosen = {"arm": f"{agent} / with_docs", "against": f"{against} / with_docs"}

    with serving_results(project.root / "results") as running, client_of(running) as client:
        runs = client.get(f"/compare?{query}").text
        arms = client.get(f"/compare?{query}&{urlencode(chosen)}").text

    title = run_title(before.manifest, now.manifest)
    assert f"{agent} against {against} of {title}" in runs
    assert run_title(attrs.evolve(before.manifest, note="as it is"), before.manifest) == "“as it is”"
    assert f"<code>keval compare {before.path} {now.path}</code>" in runs
    assert f'href="/compare?{query}&{urlencode(chosen)}"' in html.unescape(runs)
    assert re.search(r"\+0\.25" if agent == "ms" else r"[-\u2212]0\.25", arms)
    assert chosen == {
        name: option
        for name, options in re.findall(r'<select name="(arm|against)">(.*?)</select>', arms)
        for option in re.findall(r"<option selected>(.*?)</option>", options)
    }


def _id(run: Run) -> str:
    return run.id
