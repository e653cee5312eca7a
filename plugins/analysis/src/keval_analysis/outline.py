"""The outline of a run: what the page needs to know of every question before any answer is shown."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any, TypeAlias

import attrs

from keval.records.scores import ScoreLine, Scorer
from keval.records.transcript import Transcript
from keval.records.trial import Trial
from keval.store.run import Run
from keval_analysis.findings import effects
from keval_analysis.findings.summary import Summary
from keval_analysis.stats.findings import Findings
from keval_analysis.stats.observations import Observations, numbered
from keval_analysis.stats.summarise import Summariser
from keval_analysis.stats.variance import apart

ArmKey: TypeAlias = tuple[str, str]
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
    values: Mapping[ArmKey, Mapping[Scorer, Mapping[int, float]]]
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


class QuestionCounts:
    """Counts what there is of each question, as trials and scores are read. A trial comes before its scores."""

    def __init__(self) -> None:
        self._counts: dict[str, _Counts] = {}
        self._last: tuple[str, str | None, int] | None = None

    def add_trial(self, trial: Trial) -> None:
        """Count a trial."""
        found = self._counts.get(trial.sample.id)
        if found is None:
            found = self._counts[trial.sample.id] = _Counts(trial.sample.question, trial.sample.metadata)
        found.trials.append(trial.id)
        found.failed += trial.failure is not None
        found.size += sum(map(_length, (trial.transcript, *(attempt.transcript for attempt in trial.attempts))))
        found.size += len(trial.failure.message) if trial.failure else 0

    def add_score(self, line: ScoreLine) -> None:
        """Count what is said of a score, unless it outlived its trial."""
        found = self._counts.get(line.sample)
        if found is None:
            return
        found.unscored += line.score.value is None
        found.size += len(line.score.reason)
        if line.judgement is not None:
            # A judgement is repeated by each of its scores, which follow each other; it is counted once.
            judgement = (line.trial, line.judge, line.judgement.repetition)
            if judgement != self._last:
                claims = line.judgement.unverified_claims or ()
                found.claims |= {(line.trial, line.judge, claim) for claim in claims}
                found.size += sum(map(len, claims))
            self._last = judgement

    def outline(self, samples: Sequence[str], findings: Findings) -> Outline:
        """Return the outline. `samples` are the ids of all, in the order of the dataset, as `findings` number them."""
        asked = [(number, name) for number, name in enumerate(samples) if name in self._counts]
        values, spreads = _values(findings, {number: index for index, (number, _) in enumerate(asked)})
        counted = attrs.filters.exclude("trials", "claims")
        questions = tuple(
            OutlineQuestion(
                name,
                trials=tuple(found.trials),
                claims=len(found.claims),
                **attrs.asdict(found, recurse=False, filter=counted),
            )
            for name, found in ((name, self._counts[name]) for _, name in asked)
        )
        return Outline(questions, values, spreads)


def read_outline(run: Run) -> Outline:
    """Read the trials and scores of a run once, and keep sums and counts. Raises RunError."""
    observed = Observations(run.manifest, numbered(run.samples.ids))
    return _counted(run, run.trials(), observed).outline(run.samples.ids, Findings(observed))


def summarise_with_outline(run: Run, trials: Iterable[Trial]) -> tuple[Summary, Outline]:
    """Summarise a run as `run.summary(trials)` does, and outline it, reading its scores once. Raises RunError."""
    samples = run.samples.ids
    summariser = Summariser(run.manifest, numbered(samples), labels=run.labels())
    counts = _counted(run, trials, summariser)
    return summariser.summary(), counts.outline(samples, summariser.findings())


def _counted(run: Run, trials: Iterable[Trial], beside: Observations | Summariser) -> QuestionCounts:
    """Count what there is of each question, and hand all that is read to what else takes it."""
    counts = QuestionCounts()
    for trial in trials:
        counts.add_trial(trial)
        beside.add_trial(trial)
    # In the order of the file, in which the scores of one judgement follow each other.
    for line in run.scores_as_made():
        counts.add_score(line)
        beside.add_score(line)
    return counts


def _values(
    findings: Findings, places: Mapping[int, int]
) -> tuple[dict[ArmKey, dict[Scorer, dict[int, float]]], dict[Scorer, dict[int, float]]]:
    """Return the mean of each question by arm and scorer, as the summary counts scores, and its spread by scorer.

    `places` has the index of each question by the number of its sample.
    """
    manifest = findings.manifest
    values: dict[ArmKey, dict[Scorer, dict[int, float]]] = {}
    pooled: dict[Scorer, dict[int, tuple[int, float, float]]] = {}
    for agent, condition in product(manifest.agents, manifest.conditions):
        for entry in manifest.scorers:
            found = findings.values(effects.Arm(agent, condition, manifest.run), entry.scorer).values
            means: dict[int, float] = {}
            sums = pooled.setdefault(entry.scorer, {})
            for sample, mean, count, squares in zip(
                found.samples, found.means, found.counts, found.squares, strict=True
            ):
                if (place := places.get(sample)) is not None:
                    means[place] = mean
                    n, total, square = sums.get(place, (0, 0.0, 0.0))
                    square += squares + (apart(n, total / n, count, mean) if n else 0.0)
                    sums[place] = (n + count, total + count * mean, square)
            if means:
                values.setdefault((agent, condition), {})[entry.scorer] = means
    return values, {
        scorer: {
            question: math.sqrt(squares / (count - 1)) for question, (count, _, squares) in sums.items() if count > 1
        }
        for scorer, sums in pooled.items()
    }


def _length(transcript: Transcript | None) -> int:
    if transcript is None:
        return 0
    said = sum(len(message.text) for message in transcript.messages)
    calls = transcript.tool_calls
    returned = sum(len(call.result or "") + len(call.error or "") for call in calls)
    return said + returned + sum(len(json.dumps(dict(call.arguments), default=str)) for call in calls)
