"""Reviewing: what to review and as whom, one answer or the answers to a question at a time, and a form for one answer.

A reviewer who is `blind` is given nothing that tells one arm from another: not in a page, and not in its URL.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote, unquote

import attrs
from markupsafe import Markup
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from keval import Run, ScoreLine, Trial
from keval_analysis.findings.reviews import LONGEST_NAME, LONGEST_NOTE, answer_digest
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
    trial_url,
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


def answer_form(request: Request, run: Run, trial: Trial) -> Markup:
    """Render a form in which a person reviews one answer, for a page that shows it with all that is known of it.

    The page needs `review.css`. There is no form for a trial that failed. Raises RunError.
    """
    reviewer = reviewer_of(request)
    answer = answer_of(trial, run.reviews(), reviewer, "")
    template = viewer_of(request).environment.get_template("review_one.html")
    return Markup(  # noqa: S704 - the template escapes every value
        template.render(
            run=run,
            trial=trial,
            answer=answer,
            reviewer=reviewer,
            rubrics=rubrics_of(run),
            longest_note=LONGEST_NOTE,
            longest_name=LONGEST_NAME,
            action=run_url(run, f"/review/trials/{quote(trial.id.encode('utf-8', 'replace'), safe='')}"),
            back=trial_url(run, trial.id),
        )
    )


def _start(request: Request, run: Run) -> Response:
    names = display_names(entry.scorer for entry in run.manifest.scorers)
    judges = [entry for entry in run.manifest.scorers if entry.judge is not None]
    return rendered(
        request,
        "review.html",
        run=run,
        reviewer=reviewer_of(request),
        longest_name=LONGEST_NAME,
        choice=Choice(),
        metrics={metric: name for (metric, _), name in names.items()},
        disagree=len(judges) > len({entry.rubric for entry in judges}) or any(e.repetitions > 1 for e in judges),
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


def _one(request: Request, run: Run) -> Response:
    return HTMLResponse(answer_form(request, run, run.trial(request.path_params["trial"])))


def _save_one(request: Request, form: Mapping[str, Any]) -> Response:
    """Keep what a form says of the one answer that it is about, and go back to it."""
    run = run_of(request)
    trial = run.trial(request.path_params["trial"])
    if trial.failure is not None or form.get("answer") != answer_digest(trial):
        raise HTTPException(409, _CHANGED)
    answer = answer_of(trial, run.reviews(), _named(request), "")
    reviews = reviews_of(answer, run, form, blind=False, chosen="one")
    if reviews:
        run.reviews_file.append(reviews)
    return RedirectResponse(f"{trial_url(run, trial.id)}#review", 303)


def _name(request: Request, form: Mapping[str, Any]) -> Response:
    run = run_of(request)
    back, name = str(form.get("back", "")), clean_name(str(form.get("name", "")))
    # Nobody is led elsewhere, whatever a form says.
    onward = back if back.startswith(run_url(run, "/")) else run_url(run, "/review")
    response = RedirectResponse(onward, 303)
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
        run_route("/review/trials/{trial:path}", _one),
        form_route(f"{RUN}/review/trials/{{trial:path}}", _save_one),
    ),
    tab="Review",
    place="/review",
)
