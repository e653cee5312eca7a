"""Two arms side by side, of one run or of two: effects, all questions as lines, what changed, what differs."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import lru_cache
from typing import Any
from urllib.parse import urlencode

from markupsafe import Markup
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from keval import Run
from keval.errors import typed
from keval_analysis.comparison import ArmComparison, Comparison, RunArm, arms_of, compare_arms, compare_runs
from keval_report.terminal.comparison import arm_block, comparison_block
from keval_report.words import display_names, run_name, run_title
from keval_viewer.page import Page, rendered, run_route, run_url, viewer_of
from keval_viewer.report_page.arms import arm_differences
from keval_viewer.report_page.effects import arm_name, forest, paired_scores
from keval_viewer.report_page.rendering import embedded
from keval_viewer.runs import written

_KEPT = 8
"""Comparisons that are kept, as all of a run is read for each."""


def _of_one_run(request: Request, run: Run) -> Response:
    arms = arms_of(run)
    names = _names(arms)
    asked = request.query_params
    baseline = next(name for name, arm in names.items() if arm.condition == run.manifest.baseline)
    against = asked.get("against", baseline)
    arm = asked.get("arm", next((name for name in names if name != against), against))
    pair = _pair(request, _chosen(names, arm), _chosen(names, against)) if arm != against else None
    choice = {"names": names, "others": names, "arm": arm, "against": against, "runs": ()}
    return rendered(request, "compare.html", run=run, pair=pair, choice=choice)


def _of_runs(request: Request) -> Response:
    named = (name.rpartition("/") for name in request.query_params.getlist("run"))
    runs = [viewer_of(request).runs.find(evaluation, run) for evaluation, _, run in named]
    if len(runs) < 2 or len({run.path for run in runs}) < len(runs):
        raise HTTPException(400, "Choose two different runs or more in the table of all runs to compare them.")
    # The oldest is what the others are held against.
    first, *others = sorted(runs, key=lambda run: run.id)
    arm = request.query_params.get("arm")
    if arm is None or len(others) > 1:
        return rendered(request, "compare_runs.html", compared=[_runs_compared(run, first) for run in others])
    here, there = _names(arms_of(others[0])), _names(arms_of(first))
    against = request.query_params.get("against", arm)
    pair = _pair(request, _chosen(here, arm), _chosen(there, against))
    # An arm is held against itself in the other run, unless the two have other arms.
    held = there if [*here] != [*there] else ()
    choice = {"names": here, "others": held, "arm": arm, "against": against, "runs": (first, others[0])}
    return rendered(request, "compare.html", run=others[0], pair=pair, choice=choice)


def _runs_compared(run: Run, first: Run) -> tuple[Comparison, Markup, Sequence[tuple[str, str]], Sequence[str], str]:
    """Return a run's comparison with the first: effects, arms of both with their pages, both titles, and a command."""
    found = _compared_runs(run, first, (written(run.path), written(first.path)))
    arms = [
        (_name(agent, condition), _pair_url(first, run, _name(agent, condition), _name(other, condition)))
        for agent, other in found.agents.items()
        for condition in run.manifest.conditions
        if condition in first.manifest.conditions
    ]
    titles = [run_title(run.manifest), run_title(first.manifest, run.manifest)]
    command = typed("compare", run_name(first.path), run_name(run.path))
    return found, forest(comparison_block(found, against=titles[1]), found.effects), arms, titles, command


def _pair(request: Request, arm: RunArm, against: RunArm) -> dict[str, Any]:
    """Return all that the page shows of two arms, by one scorer."""
    found = _compared(arm, against, (written(arm.run.path), written(against.run.path)))
    names = {name: scorer for scorer, name in display_names(entry.scorer for entry in found.scorers).items()}
    verdicts = {effect.scorer: effect.verdict for effect in found.effects}
    decided = (name for name, scorer in names.items() if verdicts[scorer] in ("better", "worse"))
    by = request.query_params.get("by", next(decided, next(iter(names))))
    if by not in names:
        raise HTTPException(404, f"There is no metric {by!r} that both arms have.")
    alike = f"{arm.agent} {arm.condition}: " if (arm.agent, arm.condition) == (against.agent, against.condition) else ""
    return {
        "title": f"{alike}{arm_name(arm, against)} against {arm_name(against, arm)}",
        "effects": forest(arm_block(found), found.effects),
        "metrics": [(name, verdicts[scorer]) for name, scorer in names.items()],
        "by": by,
        "pairs": embedded(
            {
                **paired_scores(found, names[by]),
                "samples": run_url(arm.run, "/samples/"),
                "answers": [(run_url(each.run, "/answers/"), arms_of(each.run).index(each)) for each in (against, arm)],
            }
        ),
        "differences": arm_differences(found),
    }


def _names(arms: Sequence[RunArm]) -> dict[str, RunArm]:
    """Return arms by what a URL calls them."""
    return {_name(arm.agent, arm.condition): arm for arm in arms}


def _name(agent: str, condition: str) -> str:
    return f"{agent} / {condition}"


def _chosen(names: dict[str, RunArm], name: str) -> RunArm:
    if name not in names:
        raise HTTPException(404, f"There is no arm {name!r}; there are: {', '.join(names)}.")
    return names[name]


def _pair_url(first: Run, run: Run, arm: str, against: str) -> str:
    """Return the page of an arm of a run and the one of the first that it is held against."""
    query = [("run", f"{each.path.parent.name}/{each.id}") for each in (first, run)]
    query += [("arm", arm), *([("against", against)] if against != arm else [])]
    return f"/compare?{urlencode(query)}"


# `versions` makes the cache read runs again that were written to.
@lru_cache(_KEPT)
def _compared(arm: RunArm, against: RunArm, versions: Hashable) -> ArmComparison:
    return compare_arms(arm, against)


@lru_cache(_KEPT)
def _compared_runs(run: Run, first: Run, versions: Hashable) -> Comparison:
    return compare_runs(run, first)


PAGE = Page(routes=(run_route("/compare", _of_one_run),), tab="Compare", place="/compare")
RUNS_PAGE = Page(routes=(Route("/compare", _of_runs),))
