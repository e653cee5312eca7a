"""The page of a sample: the answers of all arms side by side, what they came to, and how their words differ."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Literal, TypeAlias
from urllib.parse import urlencode

import attrs
from starlette.background import BackgroundTask
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from keval import Run, RunError, Trial
from keval.records.trial import TrialKey
from keval_analysis.neighbours import asked_samples, trials_of
from keval_analysis.question_comparisons import Tile
from keval_report.report import Report
from keval_report.words import show_command
from keval_viewer.page import Page, number_of, rendered, run_route, sample_url, viewer_of
from keval_viewer.report_page.arms import pieces_between
from keval_viewer.scores import Claim, Shown, judge_remarks, shown_scores

Arm: TypeAlias = tuple[str, str]
_ROUNDS = 20
"""Repetitions that are shown at a time."""
_MOST_RANKED = 2_000
"""Trials of a run of which samples are ranked before the first page is shown."""
MOST_WORDS = 3_000
"""Of longer answers, the differences are not looked for: that may take a time that grows with the square."""
Difference: TypeAlias = Literal["same", "more", "less"]
_DIFFERENCES: Mapping[str, Difference] = {" ": "same", "+": "more", "-": "less"}
_WORD = re.compile(r"\s*\S+")


@attrs.frozen
class _Answer:
    """An answer as it is shown; `wording` is how it differs from the chosen arm's, if that is asked for."""

    trial: Trial
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


def _sample(request: Request, run: Run) -> Response:
    name = request.path_params["sample"]
    keys = by_arm(run, name)
    if not keys:
        raise HTTPException(404)
    arms: list[Arm] = [*dict.fromkeys((key.agent, key.condition) for key in keys)]
    # The arm whose words the others are compared with, by its place.
    given = number_of(request, "against")
    against = given if given is not None and given < len(arms) else None
    repetitions = repetitions_of(keys)
    # Any repetition leads to the page that shows it.
    start = bisect_left([*repetitions], number_of(request, "from") or 0) // _ROUNDS * _ROUNDS
    rounds = [
        _round(run, repetition, [run.trial(found[arm].id) if arm in found else None for arm in arms], against)
        for repetition, found in islice(repetitions.items(), start, start + _ROUNDS)
    ]
    order, compared, metrics = _order(request, run, name)
    page = rendered(
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
        show_command=show_command,
        url=lambda to: f"{sample_url(run, to)}{_query(order.choice, against)}",
        repeated=len(repetitions) > 1,
        pages=[each for at, each in enumerate(repetitions) if at % _ROUNDS == 0 and at != start],
    )
    page.background = BackgroundTask(_rank_ahead, request, run)
    return page


def _rank_ahead(request: Request, run: Run) -> None:
    """Read what ranks the samples of a run, so that it is known when the next page is asked for."""
    # Who asks for that page is told. An error here would close a connection on which the next request is under way.
    with suppress(RunError, OSError):
        if not run.is_locked:
            _ = viewer_of(request).runs.report(run).outline


def _order(request: Request, run: Run, sample: str) -> tuple[Ranked, Sequence[str], Sequence[str]]:
    """Return where the sample stands, and by what samples can be ranked.

    While a run is written to, what is ranked changes with every answer, so the order is that of the dataset. It is so,
    too, until the whole of a large run was read, unless another one is asked for.
    """
    runs = viewer_of(request).runs
    is_usual = request.query_params.get("by", "order") == "order"
    if run.is_locked or (is_usual and len(run.known_trials) > _MOST_RANKED and not runs.is_outlined(run)):
        return in_order(asked_samples(run), sample, Choice()), (), ()
    report = runs.report(run)
    compared, metrics = choices_of(report)
    metric = request.query_params.get("metric", "")
    by = number_of(request, "by") if "by" in request.query_params else 0
    if by is None or by >= len(compared):
        by, metric = None, ""
    choice = Choice(by, metric if metric in metrics else "")
    try:
        return ranked(report, sample, choice), compared, metrics
    except ValueError as error:  # it was asked after the report was made
        raise HTTPException(404) from error


def _query(choice: Choice, against: int | None) -> str:
    """Return the query by which another sample's page is shown in the same way."""
    by = "order" if choice.comparison is None else choice.comparison
    given: Mapping[str, object] = {"by": by, "metric": choice.metric, "against": against}
    return f"?{urlencode({name: value for name, value in given.items() if value not in ('', None)})}"


def _round(run: Run, repetition: int, trials: Sequence[Trial | None], against: int | None) -> _Round:
    reference = trials[against] if against is not None else None
    answers = [
        None if trial is None else _answer(run, trial, reference, is_reference=place == against)
        for place, trial in enumerate(trials)
    ]
    metrics = {key: shown.name for answer in answers if answer for key, shown in answer.scores.items()}
    return _Round(repetition, answers, metrics)


def _answer(run: Run, trial: Trial, reference: Trial | None, *, is_reference: bool) -> _Answer:
    lines = run.scores_of(trial.id)
    wording = None
    if reference is not None and not is_reference and trial.output and reference.output:
        wording = differing(trial.output, reference.output)
    scores = {shown.key: shown for shown in shown_scores(run, lines)}
    return _Answer(trial, scores, judge_remarks(lines).claims, wording, is_reference)


@attrs.frozen
class Wording:
    """A piece of text that both answers have, that only this one has (`more`), or only the other one (`less`)."""

    text: str
    difference: Difference = "same"

    @property
    def space(self) -> str:
        """The white space that it begins with."""
        return self.text[: len(self.text) - len(self.words)]

    @property
    def words(self) -> str:
        """All else of it."""
        return self.text.lstrip()


def differing(answer: str, other: str) -> list[Wording] | None:
    """Return an answer in pieces, with what the other answer says instead; `None` if one of them is too long.

    What an answer has more keeps its white space, so that all but `less` joins to the answer.
    """
    new, old = _words(answer), _words(other)
    if max(len(new), len(old)) > MOST_WORDS:
        return None
    return [Wording("".join(words), _DIFFERENCES[mark]) for mark, words in pieces_between(old, new)]


def _words(text: str) -> list[str]:
    """Return the words of a text, each with the white space before it; the last one has that after it, too."""
    words = _WORD.findall(text)
    rest = text[sum(map(len, words)) :]
    return [*words[:-1], words[-1] + rest] if words else []


_ANY = ""
"""In place of a metric: of each sample the one that fell most."""


def by_arm(run: Run, sample: str) -> list[TrialKey]:
    """Return the trials of a sample: agent by agent, condition by condition, repetition by repetition."""
    arms = [(agent, condition) for agent in run.manifest.agents for condition in run.manifest.conditions]
    return sorted(trials_of(run, sample), key=lambda each: (arms.index((each.agent, each.condition)), each.repetition))


def repetitions_of(keys: Sequence[TrialKey]) -> Mapping[int, Mapping[Arm, TrialKey]]:
    """Return trials by repetition and arm."""
    found: dict[int, dict[Arm, TrialKey]] = {}
    for key in keys:
        found.setdefault(key.repetition, {})[key.agent, key.condition] = key
    return dict(sorted(found.items()))


@attrs.frozen
class Choice:
    """What samples are ranked by: a comparison by its place in the report, and a metric by its name.

    `comparison` is `None` for the order of the dataset, and `metric` empty for whatever fell most.
    """

    comparison: int | None = None
    metric: str = _ANY


@attrs.frozen
class Ranked:
    """Where a sample stands: its neighbours, its place from 1 `of` how many, and by how much it differs.

    `told` is the metric and the difference, `None` where nothing of this sample can be compared; `share` is positive
    where it is for the better.
    """

    choice: Choice
    previous: str | None
    following: str | None
    place: int
    of: int
    told: tuple[str, float] | None = None
    share: float = 0.0


def choices_of(report: Report) -> tuple[Sequence[str], Sequence[str]]:
    """Return the names of the comparisons and of the metrics by which samples can be ranked."""
    compared = [each.label for each in report.comparisons if each.against is not None]
    return compared, [*report.names.values()]


def ranked(report: Report, sample: str, choice: Choice) -> Ranked:
    """Return where a sample stands by a choice. What cannot be compared comes last, in the order of the dataset.

    Raises ValueError: nobody was asked this sample, as far as the report knows.
    """
    questions = report.outline.questions
    found: dict[int, Tile] = {}
    if choice.comparison is None:
        order = [*range(len(questions))]
    else:
        comparison = [each for each in report.comparisons if each.against is not None][choice.comparison]
        for number in range(len(questions)):
            tiles = comparison.tiles.get(number, ())
            named = [tile for tile in tiles if report.names[tile.scorer] == choice.metric]
            tile = named[0] if named else comparison.worst(number) if choice.metric == _ANY else None
            if tile is not None:
                found[number] = tile
        order = sorted(found, key=lambda number: (found[number].share, number))
        order += [number for number in range(len(questions)) if number not in found]
    placed = in_order([questions[number].id for number in order], sample, choice)
    tile = found.get(order[placed.place - 1])
    if tile is None:
        return placed
    return attrs.evolve(placed, told=(report.names[tile.scorer], tile.value), share=tile.share)


def in_order(names: Sequence[str], sample: str, choice: Choice) -> Ranked:
    """Return where a sample stands in this order. Raises ValueError: it is not there."""
    place = names.index(sample)
    previous, following = (names[at] if 0 <= at < len(names) else None for at in (place - 1, place + 1))
    return Ranked(choice, previous, following, place + 1, len(names))


PAGE = Page(routes=(run_route("/samples/{sample:path}", _sample),))
