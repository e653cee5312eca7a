"""The page of a sample: the answers of all arms side by side, what they came to, and how their words differ."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import TypeAlias
from urllib.parse import urlencode

import attrs
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from keval import Run, Trial
from keval.records.trial import TrialKey
from keval_analysis.neighbours import beside, trials_of
from keval_report.words import show_command
from keval_viewer.page import Page, number_of, rendered, run_route, sample_url
from keval_viewer.report_page.arms import pieces_between
from keval_viewer.scores import Claim, Shown, judge_remarks, shown_scores

Arm: TypeAlias = tuple[str, str]
_ROUNDS = 20
"""Repetitions that are shown at a time."""
MOST_WORDS = 3_000
"""Of longer answers, the differences are not looked for: that may take a time that grows with the square."""
_WORD = re.compile(r"\s*\S+")


@attrs.frozen
class _Answer:
    """An answer as it is shown; `wording` is how it differs from the chosen arm's, if that is asked for."""

    trial: Trial
    scores: Mapping[str, Shown]
    claims: Sequence[Claim]
    wording: Sequence[tuple[str, str]] | None = None
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
    chosen = "" if against is None else f"?{urlencode({'against': against})}"
    return rendered(
        request,
        "sample.html",
        run=run,
        sample=run.sample(name),
        arms=arms,
        rounds=rounds,
        against=against,
        beside=beside(run, keys[0]),
        show_command=show_command,
        url=lambda to: f"{sample_url(run, to)}{chosen}",
        repeated=len(repetitions) > 1,
        pages=[each for at, each in enumerate(repetitions) if at % _ROUNDS == 0 and at != start],
    )


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


def differing(answer: str, other: str) -> list[tuple[str, str]] | None:
    """Return an answer in pieces: ` ` both have, `+` it has more, `-` it has less; `None` if one is too long.

    All but what it has less joins to the answer, with its white space.
    """
    new, old = _words(answer), _words(other)
    if max(len(new), len(old)) > MOST_WORDS:
        return None
    return [(mark, "".join(words)) for mark, words in pieces_between(old, new)]


def _words(text: str) -> list[str]:
    """Return the words of a text, each with the white space before it; the last one has that after it, too."""
    words = _WORD.findall(text)
    rest = text[sum(map(len, words)) :]
    return [*words[:-1], words[-1] + rest] if words else []


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


PAGE = Page(routes=(run_route("/samples/{sample:path}", _sample),))
