"""Developer experience: what a framework asks of its developer (metrics-assessment.md, 10 to 12)."""

from __future__ import annotations

from typing import ClassVar

import attrs

from keval import Characteristics, Scale, Score, Trial
from keval_metrics_weather.options import not_negative, share
from keval_metrics_weather.phrases import affirmed
from keval_metrics_weather.scale import SCALE
from keval_metrics_weather.tally import neutral, tally
from keval_metrics_weather.wording import ERRORS
from keval_metrics_weather.words import read

__all__ = ["Debuggability", "ImplementationEffort", "IntegrationSimplicity"]

_UNKNOWN = Characteristics()


@attrs.frozen
class ImplementationEffort:
    """Scores how easy a framework makes the use case, from its files, setup and code; 1 is easiest.

    Up to `few_files` files lower the effort and more raise it, by `files_points`; a low complexity lowers it, a medium
    one raises it and a high one raises it twice, by `setup_points` and `code_points`. Neutral for an unknown framework.
    """

    scale: ClassVar[Scale] = SCALE

    base: float = share(0.5)
    few_files: int = not_negative(4)
    files_points: float = not_negative(0.2)
    setup_points: float = not_negative(0.15)
    code_points: float = not_negative(0.15)

    def score(self, trial: Trial) -> Score:
        """Score the agent's characteristics."""
        known = trial.characteristics or _UNKNOWN
        if known.files is None and known.setup is None and known.code is None:
            return neutral("the framework's characteristics are not known")
        steps = {"low": -1, "medium": 1, "high": 2}
        effort = self.base
        parts = []
        if known.files is not None:
            effort += self.files_points if known.files > self.few_files else -self.files_points
            parts.append(f"{known.files} files")
        if known.setup is not None:
            effort += steps[known.setup] * self.setup_points
            parts.append(f"{known.setup} setup")
        if known.code is not None:
            effort += steps[known.code] * self.code_points
            parts.append(f"{known.code} code complexity")
        effort = round(min(1.0, max(0.0, effort)), 6)
        facts = {"files": known.files, "setup": known.setup, "code": known.code, "learning": known.learning}
        return Score(
            round(1.0 - effort, 6), f"{', '.join(parts)}: effort {effort:g}", details={"effort": effort, **facts}
        )


@attrs.frozen
class IntegrationSimplicity:
    """Scores how easily tools and memory are connected. Neutral for an unknown framework."""

    scale: ClassVar[Scale] = SCALE

    base: float = share(0.5)
    one_file_points: float = not_negative(0.3)
    two_files_points: float = not_negative(0.1)
    built_in_memory_points: float = not_negative(0.2)
    manual_memory_penalty: float = not_negative(0.1)

    def score(self, trial: Trial) -> Score:
        """Score the agent's characteristics."""
        known = trial.characteristics or _UNKNOWN
        if known.tool_files is None and known.memory is None:
            return neutral("the framework's characteristics are not known")
        one_file = known.tool_files is not None and known.tool_files <= 1
        return tally(
            self.base,
            (
                ("one file to add a tool", self.one_file_points, one_file),
                ("two files to add a tool", self.two_files_points, known.tool_files == 2),
                ("built-in memory", self.built_in_memory_points, known.memory == "built-in"),
                ("manual memory", -self.manual_memory_penalty, known.memory == "manual"),
            ),
            tool_files=known.tool_files,
            memory=known.memory,
        )


@attrs.frozen
class Debuggability:
    """Scores how clear errors, logs and documentation are. Neutral for an unknown framework.

    An error message in the answer is descriptive from `descriptive` characters on.
    """

    scale: ClassVar[Scale] = SCALE

    base: float = share(0.5)
    framework_errors_points: float = not_negative(0.2)
    framework_logging_points: float = not_negative(0.2)
    comprehensive_docs_points: float = not_negative(0.1)
    moderate_docs_points: float = not_negative(0.05)
    descriptive_message_points: float = not_negative(0.1)
    manual_errors_penalty: float = not_negative(0.1)
    basic_logging_penalty: float = not_negative(0.1)
    descriptive: int = not_negative(40)
    error_words: tuple[str, ...] = ERRORS

    def score(self, trial: Trial) -> Score:
        """Score the agent's characteristics, and the clarity of an error message if the answer is one."""
        known = trial.characteristics or _UNKNOWN
        if known.errors is None and known.logging is None and known.documentation is None:
            return neutral("the framework's characteristics are not known")
        answer = read(trial.output)
        said = affirmed(answer, self.error_words) if len(answer.original.strip()) >= self.descriptive else ()
        return tally(
            self.base,
            (
                ("framework-managed errors", self.framework_errors_points, known.errors == "framework"),
                ("manual error handling", -self.manual_errors_penalty, known.errors == "manual"),
                ("framework-provided logging", self.framework_logging_points, known.logging == "framework"),
                ("basic logging", -self.basic_logging_penalty, known.logging == "basic"),
                ("comprehensive documentation", self.comprehensive_docs_points, known.documentation == "comprehensive"),
                ("moderate documentation", self.moderate_docs_points, known.documentation == "moderate"),
                ("descriptive error message", self.descriptive_message_points, said),
            ),
            errors=known.errors,
            logging=known.logging,
            documentation=known.documentation,
        )
