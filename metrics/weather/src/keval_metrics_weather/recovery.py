"""Error recovery: how gracefully errors are met (metrics-assessment.md, Functional Performance 9)."""

from __future__ import annotations

from typing import ClassVar

import attrs

from keval import Scale, Score, Trial
from keval_metrics_weather.calls import last_calls
from keval_metrics_weather.clarification import clarifying, unclear
from keval_metrics_weather.options import not_negative, share
from keval_metrics_weather.reading.asking import alternatives_offered
from keval_metrics_weather.reading.failures import failures
from keval_metrics_weather.reading.measurements import weather_data
from keval_metrics_weather.reading.phrases import affirmed
from keval_metrics_weather.reading.words import read
from keval_metrics_weather.scale import SCALE
from keval_metrics_weather.tally import neutral, tally
from keval_metrics_weather.wording import ALTERNATIVES, CLARIFYING, ERRORS, FALLBACKS, MISSING

__all__ = ["ErrorRecovery"]


@attrs.frozen
class ErrorRecovery:
    """Adds points for what an answer offers when something failed, is missing or is unclear.

    A message of fewer than `brief` characters without an alternative is penalised, as is passing over a failed tool
    call. Neutral when nothing failed, is missing or is unclear.
    """

    scale: ClassVar[Scale] = SCALE

    base: float = share(0.5)
    handled_points: float = not_negative(0.3)
    acknowledged_points: float = not_negative(0.2)
    despite_missing_points: float = not_negative(0.3)
    clarification_points: float = not_negative(0.2)
    fallback_points: float = not_negative(0.2)
    brief: int = not_negative(60)
    brief_penalty: float = not_negative(0.2)
    unmentioned_penalty: float = not_negative(0.2)
    error_words: tuple[str, ...] = ERRORS
    missing_words: tuple[str, ...] = MISSING
    alternative_words: tuple[str, ...] = ALTERNATIVES
    fallback_words: tuple[str, ...] = FALLBACKS
    clarifying_phrases: tuple[str, ...] = CLARIFYING

    def score(self, trial: Trial) -> Score:
        """Score how the answer deals with an error, with missing data or with an unclear question."""
        answer = read(trial.output)
        calls = last_calls(trial)
        failed = tuple(dict.fromkeys([call.name for call in calls.listed if call.error is not None]))
        informed = bool(failed) and weather_data(answer).start is not None
        retried = informed and bool(calls.made_good or calls.only_counted)
        failing = failures(answer, self.error_words, self.missing_words)
        errors, missing = failing.errors, failing.missing
        open_points = unclear(trial)
        details = {
            "errors": list(map(str, (*errors, *missing))),
            "failed_tools": list(failed),
            "unclear": list(open_points),
        }
        if not (errors or missing or failed or open_points):
            return neutral("nothing failed, is missing or is unclear", **details)
        told = failing.told
        alternatives = affirmed(answer, self.alternative_words) or (alternatives_offered(answer) if told else ())
        fallbacks = affirmed(answer, self.fallback_words)
        asked = clarifying(answer, self.clarifying_phrases)
        brief = told and not (alternatives or fallbacks or asked) and len(answer.original.strip()) < self.brief
        perhaps_retried = informed and calls.only_counted is None
        passed_over = failed and not (told or retried or perhaps_retried or asked)
        handled = (told or failed) and alternatives
        return tally(
            self.base,
            (
                ("error handled with alternatives", self.handled_points, handled),
                ("recovered with another call", self.handled_points, retried and not handled),
                ("missing data acknowledged", self.acknowledged_points, missing),
                ("alternatives despite missing data", self.despite_missing_points, missing and alternatives),
                ("clarification requested", self.clarification_points, asked),
                ("fallback offered", self.fallback_points, told and fallbacks),
                ("brief error without an alternative", -self.brief_penalty, told if brief else ()),
                ("failed tool passed over", -self.unmentioned_penalty, failed if passed_over else ()),
            ),
            answer,
            **details,
        )
