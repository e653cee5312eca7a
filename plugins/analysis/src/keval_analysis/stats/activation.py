"""Activation: in how many trials the model saw a text that a context gave."""

from __future__ import annotations

from collections import Counter
from typing import TypeAlias

import attrs

from keval.records.trial import Trial
from keval_analysis.findings.summary import Activation
from keval_analysis.stats.intervals import Values, mean_intervals, quantile
from keval_analysis.stats.observations import Observations
from keval_analysis.stats.score_sums import Sums

_Key: TypeAlias = tuple[str, str, str, str]
"""Agent, condition, and the name and kind of a text."""


@attrs.define(eq=False)
class _Text:
    """What is counted of one text in one arm."""

    way: str
    trials: int = 0
    unknown: int = 0
    read: Sums = attrs.field(factory=Sums)
    model_calls: Counter[int] = attrs.field(factory=Counter)
    tools: Counter[str] = attrs.field(factory=Counter)
    seen: set[str] = attrs.field(factory=set)
    """The trials that are counted."""


class ActivationTally:
    """Takes the trials of a run that were given texts.

    A text in the system prompt is always read, so that nothing is counted of instructions there. Nothing is known of a
    trial whose model requests keval did not see, and a failed one may have ended before it would have read the text.
    A resource or a prompt of a server is there for each trial, and of those that did not ask for it, none read it.
    """

    def __init__(self, observed: Observations) -> None:
        self._observed = observed
        self._texts: dict[_Key, _Text] = {}
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
            found = self._texts.setdefault(key, _Text(text.way))
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

    def _complete(self) -> None:
        """Count the trials that did not ask for a resource or a prompt that others of their arm asked for."""
        for key, text in self._texts.items():
            if key[3] in ("resource", "prompt"):
                for trial in self._answered[key[:2]].keys() - text.seen:
                    self._count(key, text, trial, read=False)

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
                )
            )
        return tuple(found)
