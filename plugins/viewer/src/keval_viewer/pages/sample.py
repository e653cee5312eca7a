"""The page of a sample: the answers of all arms side by side, what they came to, and how their words differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias
from urllib.parse import urlencode

import attrs
from starlette.datastructures import QueryParams
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from keval import Run, Trial
from keval_viewer.addresses import sample_url
from keval_viewer.neighbours import repetitions_of, trials_of
from keval_viewer.page import Page, rendered, run_of, run_route, viewer_of
from keval_viewer.ranking import Choice, Ranked, choices_of, ranked
from keval_viewer.scored import Claim, Shown, shown_scores, told_of
from keval_viewer.tracks import seconds_told
from keval_viewer.wording import Wording, differing

__all__ = ["PAGE"]

Arm: TypeAlias = tuple[str, str]


@attrs.frozen
class _Answer:
    """An answer as it is shown; `wording` is how it differs from the chosen arm's, if that is asked for."""

    trial: Trial
    effort: str
    scores: Mapping[str, Shown]
    claims: Sequence[Claim]
    wording: Sequence[Wording] | None = None
    is_reference: bool = False


@attrs.frozen
class _Round:
    """A repetition: the answers of all arms, `None` where there is none, and the metrics that any of them has."""

    repetition: int
    answers: Sequence[_Answer | None]
    metrics: Mapping[str, str]


def _sample(request: Request) -> Response:
    run, name = run_of(request), request.path_params["sample"]
    keys = trials_of(run, name)
    if not keys:
        raise HTTPException(404)
    arms: list[Arm] = [*dict.fromkeys((key.agent, key.condition) for key in keys)]
    against = _against(request.query_params, arms)
    rounds = [
        _round(run, repetition, [run.trial(found[arm].id) if arm in found else None for arm in arms], against)
        for repetition, found in repetitions_of(keys).items()
    ]
    order, compared, metrics = _order(request, run, name)
    return rendered(
        request,
        "sample.html",
        run=run,
        sample=run.sample(name),
        arms=arms,
        rounds=rounds,
        against=against,
        order=order,
        compared=compared,
        metrics=metrics,
        url=lambda to: f"{sample_url(run, to)}{_query(order.choice, against)}",
    )


def _against(asked: QueryParams, arms: Sequence[Arm]) -> int | None:
    """Return the arm whose words the others are compared with, by its place; `None` if there is none."""
    given = asked.get("against", "")
    return int(given) if given.isdecimal() and int(given) < len(arms) else None


def _order(request: Request, run: Run, sample: str) -> tuple[Ranked, Sequence[str], Sequence[str]]:
    """Return where the sample stands, and by what samples can be ranked.

    While a run is written to, what is ranked changes with every answer, so the order is that of the dataset.
    """
    if run.is_locked:
        asked = {key.sample for key in run.known_trials}
        names = [name for name in run.samples.ids if name in asked]
        place = names.index(sample)
        previous, following = (names[at] if 0 <= at < len(names) else None for at in (place - 1, place + 1))
        return Ranked(Choice(), previous, following, place + 1, len(names)), (), ()
    report = viewer_of(request).runs.report(run)
    compared, metrics = choices_of(report)
    given, metric = request.query_params.get("by", "0"), request.query_params.get("metric", "")
    by = int(given) if given.isdecimal() and int(given) < len(compared) else None
    choice = Choice(by, metric if metric in metrics and by is not None else "")
    try:
        return ranked(report, sample, choice), compared, metrics
    except ValueError as error:  # it was asked after the report was made
        raise HTTPException(404) from error


def _query(choice: Choice, against: int | None) -> str:
    """Return the query by which another sample's page is shown in the same way."""
    given = {"by": "order" if choice.comparison is None else str(choice.comparison)}
    given |= {"metric": choice.metric} if choice.metric else {}
    given |= {} if against is None else {"against": str(against)}
    return f"?{urlencode(given)}"


def _round(run: Run, repetition: int, trials: Sequence[Trial | None], against: int | None) -> _Round:
    reference = trials[against] if against is not None else None
    answers = [
        None if trial is None else _answer(run, trial, reference, is_reference=place == against)
        for place, trial in enumerate(trials)
    ]
    metrics: dict[str, str] = {}
    for answer in answers:
        metrics |= {key: shown.name for key, shown in answer.scores.items()} if answer is not None else {}
    return _Round(repetition, answers, metrics)


def _answer(run: Run, trial: Trial, reference: Trial | None, *, is_reference: bool) -> _Answer:
    lines = run.scores_of(trial.id)
    compared = reference is not None and not is_reference and trial.output and reference.output
    return _Answer(
        trial,
        " · ".join(_effort(trial)),
        {shown.key: shown for shown in shown_scores(run, lines, trial.output)},
        told_of(lines).claims,
        differing(trial.output, reference.output) if reference is not None and compared else None,
        is_reference,
    )


def _effort(trial: Trial) -> Iterator[str]:
    transcript = trial.transcript
    if transcript is None:
        return
    if transcript.duration is not None:
        yield seconds_told(transcript.duration)
    if transcript.model_calls is not None:
        yield f"{transcript.model_calls:,} model call{'' if transcript.model_calls == 1 else 's'}"
    if transcript.tool_calls:
        yield ", ".join(dict.fromkeys(call.name for call in transcript.tool_calls))
    if trial.attempts:
        yield f"{len(trial.attempts)} discarded"


PAGE = Page(routes=(run_route("/samples/{sample:path}", _sample),))
