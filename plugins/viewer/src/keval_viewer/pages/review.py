"""Reviewing: what to review and as whom, one answer or the answers to a question at a time.

A reviewer who is `blind` is given nothing that tells one arm from another: not in a page, and not in its URL.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote, unquote

import attrs
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from keval import Run, ScoreLine
from keval_analysis.findings.reviews import LONGEST_NAME, LONGEST_NOTE
from keval_analysis.readings import review_findings
from keval_report.words import display_names
from keval_viewer.page import (
    RUN,
    Page,
    form_route,
    position_of,
    rendered,
    run_of,
    run_route,
    run_url,
    viewer_of,
)
from keval_viewer.reviews import AnswerForm, Choice, answer_of, clean_name, draws_of, queue_of, reviews_of, rubrics_of

_COOKIE = "keval-reviewer"
_A_YEAR = 365 * 24 * 3600
_CHANGED = "The run has other answers than when this page was made, so nothing was saved. Go back, and load it again."
_NAMELESS = "Nothing was saved, as nobody knows who you are: go to Review, and say your name."


@attrs.frozen
class _Shown:
    """An answer on the page; in a blind review without its arm and its scores, and without what others said.

    `letter` is what the page calls it, and `arm` its agent and condition.
    """

    letter: str
    answer: AnswerForm
    arm: tuple[str, str] | None
    scores: Sequence[tuple[str, ScoreLine]]
    told: bool


def reviewer_of(request: Request) -> str:
    """Return the name by which this browser's user reviews; an empty text if they did not say."""
    return clean_name(unquote(request.cookies.get(_COOKIE, "")))


def _start(request: Request, run: Run) -> Response:
    return rendered(
        request,
        "review.html",
        run=run,
        reviewer=reviewer_of(request),
        longest_name=LONGEST_NAME,
        choice=Choice(),
        answered=len(queue_of(run, Choice(chosen="all"))),
        found=review_findings(run),
        draws=draws_of(run, reviewer_of(request)),
    )


def _review(request: Request, run: Run) -> Response:
    choice, reviewer = Choice.read(request.query_params), reviewer_of(request)
    if not reviewer:
        return RedirectResponse(run_url(run, "/review"), 303)
    queue = queue_of(run, choice)
    said = run.reviews()
    mine = {review.trial for review in said if review.reviewer == reviewer}
    done = [mine.issuperset(trials) for trials in queue]
    if "at" not in request.query_params:
        return RedirectResponse(_item_url(run, choice, done.index(False) if False in done else len(queue)), 303)
    at = position_of(request)
    shared: dict[str, Any] = {
        "run": run,
        "choice": choice,
        "reviewer": reviewer,
        "total": len(queue),
        "done": sum(done),
        "at": at,
        "item": lambda place: _item_url(run, choice, place),
    }
    if at >= len(queue):
        left = done.index(False) if False in done else None
        return rendered(request, "review_done.html", left=left, **shared)
    # Nothing is revealed before it was judged, whatever the URL says.
    reveal = "reveal" in request.query_params and done[at]
    if reveal:
        viewer_of(request).revealed.update((run.path, reviewer, trial) for trial in queue[at])
    names = display_names(entry.scorer for entry in run.manifest.scorers)
    shown = []
    for place, name in enumerate(queue[at]):
        trial = run.trial(name)
        answer = answer_of(trial, said, reviewer, f"{place}.")
        told = reveal or not choice.blind
        scores = [(names[line.scorer], line) for line in run.scores_of(name)] if told else ()
        arm = (trial.agent, trial.condition) if told else None
        shown.append(_Shown(chr(ord("A") + place % 26), answer, arm, scores, told and not answer.own.is_empty))
    return rendered(
        request,
        "review_item.html",
        **shared,
        sample=run.sample(shown[0].answer.trial.sample.id),
        answers=shown,
        rubrics=rubrics_of(run),
        reviewed=done[at],
        reveal=reveal,
        longest_note=LONGEST_NOTE,
    )


def _save(request: Request, form: Mapping[str, Any]) -> Response:
    """Keep what a form says of the answers that it shows, and go on to the next."""
    run, choice, reviewer = run_of(request), Choice.read(request.query_params), _named(request)
    queue, at = queue_of(run, choice), position_of(request)
    said, reviews = run.reviews(), []
    if at >= len(queue):
        raise HTTPException(409, _CHANGED)
    for place, name in enumerate(queue[at]):
        answer = answer_of(run.trial(name), said, reviewer, f"{place}.")
        if form.get(f"{place}.answer") != answer.digest:
            raise HTTPException(409, _CHANGED)
        # Who was shown the arms is not blind any more, whatever the URL says.
        blind = choice.blind and (run.path, reviewer, name) not in viewer_of(request).revealed
        reviews += reviews_of(answer, run, form, blind=blind, chosen=choice.chosen)
    # After all answers of the page were checked, so that of one form all is kept or nothing.
    if reviews:
        run.reviews_file.append(reviews)
    return RedirectResponse(_item_url(run, choice, at + 1), 303)


def _name(request: Request, form: Mapping[str, Any]) -> Response:
    name = clean_name(str(form.get("name", "")))
    response = RedirectResponse(run_url(run_of(request), "/review"), 303)
    if name:
        response.set_cookie(_COOKIE, quote(name, safe=""), max_age=_A_YEAR, httponly=True, samesite="strict")
    else:
        response.delete_cookie(_COOKIE)
    return response


def _named(request: Request) -> str:
    reviewer = reviewer_of(request)
    if not reviewer:
        raise HTTPException(403, _NAMELESS)
    return reviewer


def _item_url(run: Run, choice: Choice, at: int) -> str:
    return run_url(run, f"/review/answers?{choice.query(at=at)}")


PAGE = Page(
    routes=(
        run_route("/review", _start),
        form_route(f"{RUN}/review/name", _name),
        run_route("/review/answers", _review),
        form_route(f"{RUN}/review/answers", _save),
    ),
    tab="Review",
    place="/review",
)
