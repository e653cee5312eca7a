"""Two arms side by side, of one run or of two: effects, a scatter of all questions, what changed, what differs."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import lru_cache
from urllib.parse import urlencode

import attrs
from markupsafe import Markup
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from keval import Run, Scale
from keval_analysis.comparison import (
    ArmComparison,
    Comparison,
    RunArm,
    SampleScores,
    arms_of,
    compare_arms,
    compare_runs,
)
from keval_analysis.findings.effects import Effect, better_share
from keval_report.words import display_names
from keval_viewer.page import Page, rendered, run_of, run_route, sample_url, viewer_of
from keval_viewer.report_page.arms import arm_differences
from keval_viewer.report_page.effects import arm_effects, arm_name, ranked_scores, run_effects, scatter
from keval_viewer.runs import written

_MOST = 15
"""Questions that are listed as better, and as worse, until all are asked for."""
_KEPT = 8
"""Comparisons that are kept, as all of a run is read for each."""


@attrs.frozen
class _Change:
    """A question whose score changed, with its text and the page of its answers."""

    scores: SampleScores
    asked: str
    url: str


@attrs.frozen
class _Pair:
    """All that the page shows of two arms, by one scorer."""

    title: str
    arm: RunArm
    against: RunArm
    effects: Markup
    metrics: Sequence[tuple[str, str]]
    by: str
    scatter: Markup
    worse: Sequence[_Change]
    better: Sequence[_Change]
    more_worse: int
    more_better: int
    same: int
    differences: Markup


@attrs.frozen
class _Choice:
    """What can be chosen, and what is: the names of arms, the runs if they are two, and the page that lists it all.

    `others` are the names of what an arm can be held against; none where it is held against itself in another run.
    """

    names: Sequence[str]
    others: Sequence[str]
    arm: str
    against: str
    runs: Sequence[Run]
    every: str


def _of_one_run(request: Request) -> Response:
    run = run_of(request)
    arms = arms_of(run)
    names = _names(arms)
    baseline = next(name for name, arm in names.items() if arm.condition == run.manifest.baseline)
    asked = request.query_params
    against = asked.get("against", baseline)
    arm = asked.get("arm", next((name for name in names if name != against), against))
    pair = _pair(request, _chosen(names, arm), _chosen(names, against)) if arm != against else None
    choice = _Choice([*names], [*names], arm, against, (), _every(request))
    return rendered(request, "compare.html", run=run, pair=pair, choice=choice)


def _of_runs(request: Request) -> Response:
    runs = [_run(request, name) for name in request.query_params.getlist("run")]
    if len(runs) < 2 or len({run.path for run in runs}) < len(runs):
        raise HTTPException(400, "Choose two different runs or more in the table of all runs to compare them.")
    # The oldest is what the others are held against.
    first, *others = sorted(runs, key=lambda run: run.id)
    arm = request.query_params.get("arm")
    if arm is None or len(others) > 1:
        return rendered(
            request,
            "compare_runs.html",
            first=first,
            compared=[_runs_compared(run, first) for run in others],
        )
    here, there = _names(arms_of(others[0])), _names(arms_of(first))
    against = request.query_params.get("against", arm)
    pair = _pair(request, _chosen(here, arm), _chosen(there, against))
    choice = _Choice(
        [*here], [*there] if [*here] != [*there] else (), arm, against, (first, others[0]), _every(request)
    )
    return rendered(request, "compare.html", run=others[0], pair=pair, choice=choice)


def _runs_compared(run: Run, first: Run) -> tuple[Comparison, Markup, Sequence[tuple[str, str]]]:
    """Return a run's comparison with the first, its effects, and the arms of both with their pages."""
    found = _compared_runs(run, first, (written(run.path), written(first.path)))
    arms = [
        (_name(agent, condition), _pair_url(first, run, _name(agent, condition), _name(other, condition)))
        for agent, other in found.agents.items()
        for condition in run.manifest.conditions
        if condition in first.manifest.conditions
    ]
    return found, run_effects(found), arms


def _pair(request: Request, arm: RunArm, against: RunArm) -> _Pair:
    found = _compared(arm, against, (written(arm.run.path), written(against.run.path)))
    names = {name: scorer for scorer, name in display_names(entry.scorer for entry in found.scorers).items()}
    by = request.query_params.get("by", next(name for name, scorer in names.items() if scorer == _telling(found)))
    if by not in names:
        raise HTTPException(404, f"There is no metric {by!r} that both arms have.")
    ranked = ranked_scores(found, names[by])
    most = None if request.query_params.get("all") else _MOST

    def change(scores: SampleScores) -> _Change:
        asked = " ".join(arm.run.sample(scores.sample).question.split())
        return _Change(scores, asked, sample_url(arm.run, scores.sample))

    return _Pair(
        title=f"{arm_name(arm, against)} against {arm_name(against, arm)}",
        arm=arm,
        against=against,
        effects=arm_effects(found),
        metrics=[(name, _told(found, names[name])) for name in names],
        by=by,
        scatter=scatter(found, names[by], lambda sample: sample_url(arm.run, sample)),
        worse=[*map(change, ranked.worse[:most])],
        better=[*map(change, ranked.better[:most])],
        more_worse=len(ranked.worse) - len(ranked.worse[:most]),
        more_better=len(ranked.better) - len(ranked.better[:most]),
        same=ranked.same,
        differences=arm_differences(found),
    )


def _told(found: ArmComparison, scorer: tuple[str, str | None]) -> str:
    """Return the verdict on a metric, for the list in which one is chosen."""
    verdict = next(effect.verdict for effect in found.effects if effect.scorer == scorer)
    return {"better": "better", "worse": "worse"}.get(verdict, "")


def _telling(found: ArmComparison) -> tuple[str, str | None]:
    """Return the scorer with the largest sure effect, or else the largest one."""
    scales = {entry.scorer: entry.scale for entry in found.scorers}

    def size(difference: float | None, scale: Scale) -> float:
        return abs(better_share(difference or 0.0, scale) or 0.0)

    def sure_and_large(each: Effect) -> tuple[bool, float]:
        return each.verdict in ("better", "worse"), size(each.difference, scales[each.scorer])

    return max(found.effects, key=sure_and_large).scorer


def _names(arms: Sequence[RunArm]) -> dict[str, RunArm]:
    """Return arms by what a URL calls them."""
    return {_name(arm.agent, arm.condition): arm for arm in arms}


def _name(agent: str, condition: str) -> str:
    return f"{agent} / {condition}"


def _chosen(names: dict[str, RunArm], name: str) -> RunArm:
    if name not in names:
        raise HTTPException(404, f"There is no arm {name!r}; there are: {', '.join(names)}.")
    return names[name]


def _run(request: Request, name: str) -> Run:
    evaluation, _, run = name.rpartition("/")
    return viewer_of(request).runs.find(evaluation, run)


def _pair_url(first: Run, run: Run, arm: str, against: str) -> str:
    """Return the page of an arm of a run and the one of the first that it is held against."""
    query = [("run", f"{each.path.parent.name}/{each.id}") for each in (first, run)]
    query += [("arm", arm), *([("against", against)] if against != arm else [])]
    return f"/compare?{urlencode(query)}"


def _every(request: Request) -> str:
    """Return the URL of this page with all questions that changed."""
    return str(request.url.include_query_params(all=1).replace(scheme="", netloc=""))


@lru_cache(_KEPT)
def _compared(arm: RunArm, against: RunArm, versions: Hashable) -> ArmComparison:
    return compare_arms(arm, against)


@lru_cache(_KEPT)
def _compared_runs(run: Run, first: Run, versions: Hashable) -> Comparison:
    return compare_runs(run, first)


PAGE = Page(routes=(run_route("/compare", _of_one_run),), tab="Compare", place="/compare")
RUNS_PAGE = Page(routes=(Route("/compare", _of_runs),))
