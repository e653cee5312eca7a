"""The outline of a run: what the page needs to know of every question before any answer is shown."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

import attrs

from keval.analysis.stats.score_sums import Cell
from keval.records.manifest import Manifest
from keval.records.scores import ScoreLine, Scorer
from keval.records.transcript import Transcript
from keval.records.trial import Trial
from keval.store.run import Run

Arm: TypeAlias = tuple[str, str]
"""The labels of an agent and a condition."""


@attrs.frozen
class OutlineQuestion:
    """A sample that was asked: its text, what was lost of its trials, and how long its transcripts are.

    `trials` are the ids of its trials. `unscored` counts scores without a value, `claims` the claims that judges could
    not verify. `size` is in characters.
    """

    id: str
    asked: str
    metadata: Mapping[str, Any]
    trials: tuple[str, ...]
    failed: int
    unscored: int
    claims: int
    size: int


@attrs.frozen
class Outline:
    """The questions of a run, in the order of its dataset, and the mean score of each by arm and scorer.

    `values` has for each arm and scorer the mean over repetitions by the question's index, where there is one.
    `spreads` has for each scorer the sample standard deviation over all trials of a question, of every arm, where there
    are two or more.
    """

    questions: tuple[OutlineQuestion, ...]
    values: Mapping[Arm, Mapping[Scorer, Mapping[int, float]]]
    spreads: Mapping[Scorer, Mapping[int, float]] = attrs.field(factory=dict)


@attrs.define
class _Counts:
    asked: str
    metadata: Mapping[str, Any]
    trials: list[str] = attrs.field(factory=list)
    failed: int = 0
    unscored: int = 0
    claims: set[tuple[str, str | None, str]] = attrs.field(factory=set)
    size: int = 0


def read_outline(run: Run) -> Outline:
    """Read the trials and scores of a run once, and keep sums and counts. Raises RunError."""
    counts: dict[str, _Counts] = {}
    for trial in run.trials():
        found = counts.get(trial.sample.id)
        if found is None:
            found = counts[trial.sample.id] = _Counts(trial.sample.question, trial.sample.metadata)
        found.trials.append(trial.id)
        found.failed += trial.failure is not None
        found.size += _size(trial)
    order = [name for name in run.samples.ids if name in counts]
    index = {name: number for number, name in enumerate(order)}
    values, spreads = _values(run.manifest, _counted(run.scores_as_made(), counts), index)
    questions = tuple(
        OutlineQuestion(
            id=name,
            asked=found.asked,
            metadata=found.metadata,
            trials=tuple(found.trials),
            failed=found.failed,
            unscored=found.unscored,
            claims=len(found.claims),
            size=found.size,
        )
        for name, found in ((name, counts[name]) for name in order)
    )
    return Outline(questions, values, spreads)


def _counted(scores: Iterable[ScoreLine], counts: Mapping[str, _Counts]) -> Iterable[ScoreLine]:
    """Pass on the scores of trials that there are, and count what is said of them."""
    last: tuple[str, str | None, int] | None = None
    for line in scores:
        found = counts.get(line.sample)
        if found is None:  # a score outlived its trial
            continue
        found.unscored += line.score.value is None
        found.size += len(line.score.reason)
        if line.judgement is not None:
            # A judgement is repeated by each of its scores, which follow each other; it is counted once.
            judgement = (line.trial, line.judge, line.judgement.repetition)
            if judgement != last:
                claims = line.judgement.unverified_claims or ()
                found.claims |= {(line.trial, line.judge, claim) for claim in claims}
                found.size += sum(map(len, claims))
            last = judgement
        yield line


def _values(
    manifest: Manifest, scores: Iterable[ScoreLine], index: Mapping[str, int]
) -> tuple[dict[Arm, dict[Scorer, dict[int, float]]], dict[Scorer, dict[int, float]]]:
    """Return the mean of each question by arm and scorer, as the summary counts scores, and its spread by scorer."""
    entries = {entry.scorer: entry for entry in manifest.scorers}
    cells: dict[tuple[Arm, Scorer], Cell] = {}
    for line in scores:
        key = ((line.agent, line.condition), line.scorer)
        if key not in cells:
            cells[key] = Cell(entries[line.scorer], count_neutral=manifest.neutral == "count")
        cells[key].add(line, index[line.sample])
    values: dict[Arm, dict[Scorer, dict[int, float]]] = {}
    pooled: dict[Scorer, dict[int, tuple[int, float, float]]] = {}
    for (arm, scorer), cell in cells.items():
        found = cell.values()
        means = dict(zip(found.samples.tolist(), found.means.tolist(), strict=True))
        if means:
            values.setdefault(arm, {})[scorer] = means
        of_arm = zip(means.items(), found.counts.tolist(), found.squares.tolist(), strict=True)
        for (question, mean), count, squares in of_arm:
            sums = pooled.setdefault(scorer, {}).get(question, (0, 0.0, 0.0))
            pooled[scorer][question] = (sums[0] + count, sums[1] + count * mean, sums[2] + squares)
    return values, {scorer: dict(_spreads(sums)) for scorer, sums in pooled.items()}


def _spreads(sums: Mapping[int, tuple[int, float, float]]) -> Iterator[tuple[int, float]]:
    """Yield the sample standard deviation of each question, from the count, sum and sum of squares of its values."""
    for question, (count, total, squares) in sums.items():
        if count > 1:
            yield question, math.sqrt(max(0.0, squares - total**2 / count) / (count - 1))


def _size(trial: Trial) -> int:
    size = sum(map(_length, (trial.transcript, *(attempt.transcript for attempt in trial.attempts))))
    return size + (len(trial.failure.message) if trial.failure else 0)


def _length(transcript: Transcript | None) -> int:
    if transcript is None:
        return 0
    said = sum(len(message.text) for message in transcript.messages)
    calls = transcript.tool_calls
    returned = sum(len(call.result or "") + len(call.error or "") for call in calls)
    return said + returned + sum(len(json.dumps(dict(call.arguments), default=str)) for call in calls)
