"""Activation: in how many trials the model saw a text that a context gave, apart from how these trials were scored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TypeAlias

import attrs

from keval.records.end_state import ALL_CHECKS, CHECK_PREFIX
from keval.records.scores import ScoreLine, Scorer
from keval.records.trial import Trial
from keval_analysis.findings.summary import Activation, ScoreByReading
from keval_analysis.stats.intervals import Values, mean_intervals, quantile
from keval_analysis.stats.observations import Observations
from keval_analysis.stats.score_sums import Cell, Sums

_Key: TypeAlias = tuple[str, str, str, str]
"""Agent, condition, and the name and kind of a text."""


@attrs.define(eq=False)
class _Text:
    """What is counted of one text in one arm; `scores` are of trials that read it (`True`), and of the others."""

    way: str
    scores: Mapping[bool, Mapping[Scorer, Cell]]
    trials: int = 0
    unknown: int = 0
    read: Sums = attrs.field(factory=Sums)
    model_calls: Counter[int] = attrs.field(factory=Counter)
    tools: Counter[str] = attrs.field(factory=Counter)
    seen: set[str] = attrs.field(factory=set)
    """The trials that are counted."""


class ActivationTally:
    """Takes the trials of a run that were given texts, and then their scores.

    A text in the system prompt is always read, so that nothing is counted of instructions there. Nothing is known of a
    trial whose model requests keval did not see, and a failed one may have ended before it would have read the text.
    A resource or a prompt of a server is there for each trial, and of those that did not ask for it, none read it.
    """

    def __init__(self, observed: Observations) -> None:
        self._observed = observed
        manifest = observed.manifest
        chosen = {*manifest.primary, f"{CHECK_PREFIX}{ALL_CHECKS}"}
        self._scorers = {entry.scorer: entry for entry in manifest.scorers if entry.metric in chosen}
        self._texts: dict[_Key, _Text] = {}
        # By trial, as its scores come later.
        self._read: dict[str, dict[_Key, bool]] = {}
        # Of each arm, the samples of its trials, and whether keval saw their model requests.
        self._answered: dict[tuple[str, str], dict[str, tuple[int, bool]]] = {}

    def add_trial(self, trial: Trial) -> None:
        """Count what an answered trial was given."""
        if trial.failure is not None or trial.transcript is None:
            return
        sample, known = self._observed.number(trial.sample.id), trial.transcript.request is not None
        self._answered.setdefault((trial.agent, trial.condition), {})[trial.id] = (sample, known)
        for text in trial.transcript.texts:
            if text.kind == "instructions" and text.way == "system prompt":
                continue
            key = (trial.agent, trial.condition, text.name, text.kind)
            cells = {read: self._observed.cells(self._scorers.values()) for read in (True, False)}
            found = self._texts.setdefault(key, _Text(text.way, cells))
            self._count(key, found, trial.id, read=text.read)
            if not known:
                continue
            if text.model_call is not None:
                found.model_calls[text.model_call] += 1
            if text.by is not None:
                found.tools[text.by] += 1

    def _count(self, key: _Key, text: _Text, trial: str, *, read: bool) -> None:
        sample, known = self._answered[key[:2]][trial]
        text.trials += 1
        text.seen.add(trial)
        if not known:
            text.unknown += 1
            return
        text.read.add(sample, float(read))
        self._read.setdefault(trial, {})[key] = read

    def _complete(self) -> None:
        """Count the trials that did not ask for a resource or a prompt that others of their arm asked for."""
        for key, text in self._texts.items():
            if key[3] in ("resource", "prompt"):
                for trial in self._answered[key[:2]].keys() - text.seen:
                    self._count(key, text, trial, read=False)

    def add_score(self, line: ScoreLine) -> None:
        """Add a score that counts."""
        if line.scorer in self._scorers:
            self._complete()
            for key, read in self._read.get(line.trial, {}).items():
                self._texts[key].scores[read][line.scorer].add(line, self._observed.number(line.sample))

    def activations(self) -> tuple[Activation, ...]:
        """Return how often each text was read in each arm, in the order of the run."""
        self._complete()
        values = [text.read.values() for text in self._texts.values()]
        of = self._observed.clusters
        rows = [
            Values(each.means, None if of is None else [of[sample] for sample in each.samples], 0.0, 1.0)
            for each in values
        ]
        found = []
        for (arm_and_text, text), row, ends in zip(self._texts.items(), rows, mean_intervals(rows), strict=True):
            found.append(
                Activation(
                    *arm_and_text,
                    text.way,
                    trials=text.trials,
                    unknown=text.unknown,
                    # Each trial adds 0.0 or 1.0.
                    read=round(sum(text.read.sums)),
                    n=row.estimate.n,
                    rate=row.estimate.mean,
                    ci_low=ends.low if ends else None,
                    ci_high=ends.high if ends else None,
                    model_call=quantile([*text.model_calls.elements()], 0.5),
                    tools=dict(text.tools.most_common()),
                    scores=tuple(_by_reading(scorer, text.scores) for scorer in self._scorers),
                )
            )
        return tuple(found)


def _by_reading(scorer: Scorer, scores: Mapping[bool, Mapping[Scorer, Cell]]) -> ScoreByReading:
    # Only mean and n are told, so it does not matter which samples share a source.
    read, unread = (Values(scores[each][scorer].values().means, None, 0.0, 1.0).estimate for each in (True, False))
    return ScoreByReading(*scorer, read.n, read.mean, unread.n, unread.mean)
