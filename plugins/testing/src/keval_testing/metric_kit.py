"""The check of metrics."""

from __future__ import annotations

import asyncio
import copy
import inspect
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from keval import Sample, Scale, Score, ScoreLine, Trial
from keval.score.judging import validate_score
from keval.score.scoring import metric_score, written_score
from keval.seams.blank_text import is_blank
from keval.seams.interfaces import AgentChecker, AgentRater
from keval.store.serialization import dump, read_sample, read_trial, sample_line, to_plain, trial_line
from keval_report.marks import marks_of
from keval_testing.subject import (
    Subject,
    check_cancellation,
    excerpt,
    nothing_left_behind,
    opened,
    rules_of,
    run_to_end,
)
from keval_testing.unusual_trials import odd_trials

METRIC_RULES = rules_of("metric")
"""The rules of metrics, each with how to mend a metric that breaks it."""


def check_metric(
    metric: str | type | object, *, options: Mapping[str, Any] | None = None, trials: Iterable[Trial] = ()
) -> None:
    """Check a metric with odd trials and these `trials`; it is a name, as a config has it, a class or an instance.

    `options` are those of a config, for a name or a class. Call it where no event loop runs.

    Raises:
        BrokenRulesError: it breaks rules; the message names each one, what was seen, and how to mend it.
        PluginError: no such metric is installed, or `options` do not construct it.
    """
    subject = Subject.of("keval.metrics", metric, options, METRIC_RULES)
    if subject.check_options():
        scale = getattr(subject.new(), "scale", Scale())
        if not isinstance(scale, Scale):
            subject.broken("scale", f"its scale is {scale!r}, which is no keval.Scale")
        else:
            check = _Check(subject, [each for each in (*odd_trials(), *trials) if _may_run(subject.new(), each)], scale)
            run_to_end(subject, check.first_trial())  # what is imported or made for good at the first use
            with nothing_left_behind(subject):
                run_to_end(subject, check.run())
    subject.finish()


@attrs.frozen
class _Check:
    subject: Subject
    trials: Sequence[Trial]
    scale: Scale

    async def first_trial(self) -> None:
        async with opened(self.subject.new()) as metric:
            await _outcome(metric, copy.deepcopy(self.trials[0]))

    async def run(self) -> None:
        async with opened(self.subject.new()) as metric:
            alone: dict[str, Score] = {}
            for trial in self.trials:
                if (score := await self._alone(metric, trial)) is not None:
                    alone[trial.id] = score
            self._check_neutral(alone)
            await self._check_unknown(metric)
            answered = [trial for trial in self.trials if trial.id in alone]
            # In another order, as a metric that remembers an earlier trial gives the same scores in the same one.
            for trial in reversed(answered):
                self._compare("determinism", "scored again", trial, alone[trial.id], await _outcome(metric, trial))
            if not self.subject.found:  # or else what differs would have more than one name
                await self._check_otherwise(metric, answered, alone)
            if answered and inspect.iscoroutinefunction(metric.score):
                await check_cancellation(self.subject, lambda: _call(metric, answered[0]))
            self._check_rating(metric)

    async def _check_otherwise(self, metric: Any, trials: Sequence[Trial], alone: Mapping[str, Score]) -> None:
        """Check that trials get the same scores when they are scored in other ways."""
        together = await asyncio.gather(*(_outcome(metric, trial) for trial in [*trials] * 3))
        for trial, outcome in zip([*trials] * 3, together, strict=True):
            self._compare("concurrency", "scored with others", trial, alone[trial.id], outcome)
        async with opened(self.subject.new()) as another:
            for trial in trials:
                fresh = await _outcome(another, trial)
                self._compare("determinism", "scored by another instance", trial, alone[trial.id], fresh)
                read = await _outcome(another, _read_back(trial))
                self._compare("written trials", "read from its line", trial, fresh, read)

    async def _alone(self, metric: Any, trial: Trial) -> Score | None:
        before = _content(trial)
        outcome = await _outcome(metric, trial)
        if _content(trial) != before:
            self.subject.broken("input unchanged", f"it changed the trial with {trial.sample.id}")
        return self._valid(outcome, f"for {trial.sample.id}", trial.output)

    def _valid(self, outcome: object, where: str, answer: str = "") -> Score | None:
        if isinstance(outcome, BaseException):
            self.subject.broken("answers every trial", f"{where} it raised {excerpt(outcome)}")
            return None
        verdict = validate_score(outcome, self.scale)
        if verdict.failure is not None:
            rule = "scale" if verdict.failure.kind == "out_of_scale" else "a score"
            self.subject.broken(rule, f"{where}: {verdict.failure.message}")
            return None
        score = verdict.score
        line, _ = written_score(ScoreLine("", "", "", "", 1, "", None, score))
        if line.failure is not None:
            self.subject.broken("a score", f"{where}: {line.failure.message}")
            return None
        if (score.value is None or score.neutral) and is_blank(score.reason):
            self.subject.broken("reasons", f"{where} it gave {_shown(score)} without a reason")
        if score.value is None and score.neutral:
            self.subject.broken("neutral", f"{where} the score is neutral and has no value")
        marks = score.details.get("marks", ())
        if not isinstance(marks, list | tuple) or len(marks_of(score, answer)) < len(marks):
            told = f"{where} details['marks'] holds what is no mark, or lies outside the answer: {excerpt(marks)}"
            self.subject.broken("a score", told)
        return score

    def _check_neutral(self, scores: Mapping[str, Score]) -> None:
        values = {score.value for score in scores.values() if score.neutral and score.value is not None}
        if len(values) > 1:
            told = ", ".join(f"{value:g}" for value in sorted(values))
            self.subject.broken("neutral", f"its neutral scores have several values: {told}")

    async def _check_unknown(self, metric: Any) -> None:
        """Check that what the metric reads, and is not there, costs no points."""
        plain = self.trials[0]
        with_all = await _outcome(metric, plain)
        lacks: Mapping[str, Sample] = {
            "answer": attrs.evolve(plain.sample, answer=None),
            "facts": attrs.evolve(plain.sample, facts={}),
        }
        # A metric that does not read a field is not judged by what it gives without it.
        watched = _Watched(**attrs.asdict(plain.sample, recurse=False))
        await _outcome(metric, attrs.evolve(plain, sample=watched))
        worst = self.scale.low if self.scale.better == "higher" else self.scale.high
        for name, sample in lacks.items():
            without = await _outcome(metric, attrs.evolve(plain, sample=sample))
            is_low = isinstance(without, Score) and without.value == worst and not without.neutral
            if name in watched.seen and is_low and isinstance(with_all, Score) and with_all.value not in (None, worst):
                missing = "a golden answer" if name == "answer" else "facts"
                self.subject.broken("unknown is not zero", f"without {missing}, which it reads, it gave {worst:g}")

    def _check_rating(self, metric: Any) -> None:
        if isinstance(metric, AgentRater):
            try:
                outcome = metric_score(metric.rate_agent({}))
            except Exception as error:  # noqa: BLE001 - what a plugin raises is what is looked for
                outcome = error
            self._valid(outcome, "for an agent of which nothing is known")

    def _compare(self, rule: str, how: str, trial: Trial, alone: object, other: object) -> None:
        if other != alone:
            told = f"{trial.sample.id}, {how}, got {_shown(other)} instead of {_shown(alone)}"
            self.subject.broken(rule, told)


class _Watched(Sample):
    """A sample that notes which of its fields are `seen`."""

    def __init__(self, **fields: Any) -> None:
        # By this way, as a sample is frozen.
        object.__setattr__(self, "seen", set())
        super().__init__(**fields)

    def __getattribute__(self, name: str) -> Any:
        object.__getattribute__(self, "seen").add(name)
        return super().__getattribute__(name)


def _may_run(metric: Any, trial: Trial) -> bool:
    """Return whether a run would begin with the agent of a trial."""
    return not (isinstance(metric, AgentChecker) and [*metric.check_characteristics(trial.characteristics)])


async def _call(metric: Any, trial: Trial) -> object:
    """Call a metric as a run does: in the event loop, or in a thread if it blocks."""
    if getattr(metric, "blocks", False) is True:
        return await asyncio.to_thread(metric.score, trial)
    score = metric.score(trial)
    return await score if inspect.isawaitable(score) else score


async def _outcome(metric: Any, trial: Trial) -> object:
    """Return the score of a trial, or what was raised."""
    try:
        return metric_score(await _call(metric, trial))
    except (Exception, SystemExit) as error:  # noqa: BLE001 - what a plugin raises is what is looked for
        return error


def _content(trial: Trial) -> bytes:
    return dump(to_plain(trial))


def _read_back(trial: Trial) -> Trial:
    """Return a trial as a worker elsewhere, or `keval score`, gets it."""
    sample = read_sample(sample_line(trial.sample))
    return read_trial(trial_line(trial), lambda _: sample, lambda _: trial.characteristics)


def _shown(outcome: object) -> str:
    if not isinstance(outcome, Score):
        return excerpt(outcome)
    value = "no value" if outcome.value is None else f"{outcome.value:g}" if math.isfinite(outcome.value) else "nan"
    return f"{'a neutral ' if outcome.neutral else ''}{value} ({excerpt(outcome.reason)})"
