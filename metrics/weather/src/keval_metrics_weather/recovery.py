"""Error recovery: how gracefully errors are met (metrics-assessment.md, Functional Performance 9)."""

from __future__ import annotations

import attrs

from keval import Score, Trial
from keval_metrics_weather.clarification import unclear
from keval_metrics_weather.measurements import weather_data
from keval_metrics_weather.phrases import affirmed
from keval_metrics_weather.tally import Point, neutral, tally
from keval_metrics_weather.wording import ALTERNATIVES, CLARIFYING, ERRORS, FALLBACKS, MISSING
from keval_metrics_weather.words import read

__all__ = ["ErrorRecovery"]


@attrs.frozen
class ErrorRecovery:
    """Adds points for what an answer offers when something failed, is missing or is unclear.

    A message of fewer than `brief` characters without an alternative is penalised, as is passing over a failed tool
    call. Neutral when nothing failed, is missing or is unclear.
    """

    base: float = 0.5
    handled_points: float = 0.3
    acknowledged_points: float = 0.2
    despite_missing_points: float = 0.3
    clarification_points: float = 0.2
    fallback_points: float = 0.2
    brief: int = 60
    brief_penalty: float = 0.2
    unmentioned_penalty: float = 0.2
    error_words: tuple[str, ...] = ERRORS
    missing_words: tuple[str, ...] = MISSING
    alternative_words: tuple[str, ...] = ALTERNATIVES
    fallback_words: tuple[str, ...] = FALLBACKS
    clarifying_phrases: tuple[str, ...] = CLARIFYING

    def score(self, trial: Trial) -> Score:
        """Score how the answer deals with an error, with missing data or with an unclear question."""
        answer = read(trial.output)
        made = trial.transcript.tool_calls if trial.transcript else ()
        calls = [call for call in made if call.turn == len(trial.sample.turns)]
        failed = tuple(dict.fromkeys(call.name for call in calls if call.error is not None))
        retried = bool(failed) and any(call.error is None for call in calls) and weather_data(answer).start is not None
        errors = affirmed(answer, self.error_words)
        missing = affirmed(answer, self.missing_words)
        open_points = unclear(trial)
        details = {"errors": [*errors, *missing], "failed_tools": list(failed), "unclear": list(open_points)}
        if not (errors or missing or failed or open_points):
            return neutral("nothing failed, is missing or is unclear", **details)
        alternatives = affirmed(answer, self.alternative_words)
        fallbacks = affirmed(answer, self.fallback_words)
        clarifying = affirmed(answer, self.clarifying_phrases)
        told = errors or missing
        brief = told and not (alternatives or fallbacks or clarifying) and len(answer.original.strip()) < self.brief
        passed_over = failed and not (told or retried or clarifying)
        handled = (errors or failed) and alternatives
        return tally(
            self.base,
            (
                Point("error handled with alternatives", self.handled_points, alternatives) if handled else None,
                Point("recovered with another call", self.handled_points) if retried and not handled else None,
                Point("missing data acknowledged", self.acknowledged_points, missing) if missing else None,
                Point("alternatives despite missing data", self.despite_missing_points, alternatives)
                if missing and alternatives
                else None,
                Point("clarification requested", self.clarification_points, clarifying) if clarifying else None,
                Point("fallback offered", self.fallback_points, fallbacks) if told and fallbacks else None,
                Point("brief error without an alternative", -self.brief_penalty, told) if brief else None,
                Point("failed tool passed over", -self.unmentioned_penalty, failed) if passed_over else None,
            ),
            **details,
        )
