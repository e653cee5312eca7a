"""Developer experience: what a framework asks of its developer (metrics-assessment.md, 10 to 12)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import ClassVar

import attrs

from keval import Scale, Score, Trial
from keval.plugin import FieldError
from keval_metrics_weather.characteristics import Characteristics, check_characteristics, read_characteristics
from keval_metrics_weather.options import not_negative, share
from keval_metrics_weather.reading.failures import failures
from keval_metrics_weather.reading.words import read
from keval_metrics_weather.scale import SCALE
from keval_metrics_weather.tally import marked, neutral, tally
from keval_metrics_weather.wording import ERRORS

__all__ = ["Debuggability", "ImplementationEffort", "IntegrationSimplicity"]

_DESCRIPTIVE = "descriptive error message"


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

    def check_characteristics(self, characteristics: Mapping[str, object]) -> Iterable[FieldError]:
        """Return what is wrong with the characteristics of an agent; see `keval.plugin.AgentChecker`."""
        return check_characteristics(characteristics)

    def score(self, trial: Trial) -> Score:
        """Score the agent's characteristics."""
        return _effort(self, read_characteristics(trial.characteristics))


@lru_cache(maxsize=64)
def _effort(given: ImplementationEffort, known: Characteristics) -> Score:
    """Score what is the same for all of an agent's answers, once."""
    if known.files is None and known.setup is None and known.code is None:
        return neutral("the framework's characteristics are not known")
    steps = {"low": -1, "medium": 1, "high": 2}
    effort = given.base
    parts = []
    if known.files is not None:
        effort += given.files_points if known.files > given.few_files else -given.files_points
        parts.append(f"{known.files} files")
    if known.setup is not None:
        effort += steps[known.setup] * given.setup_points
        parts.append(f"{known.setup} setup")
    if known.code is not None:
        effort += steps[known.code] * given.code_points
        parts.append(f"{known.code} code complexity")
    effort = round(min(1.0, max(0.0, effort)), 6)
    facts = {"files": known.files, "setup": known.setup, "code": known.code, "learning": known.learning}
    return Score(round(1.0 - effort, 6), f"{', '.join(parts)}: effort {effort:g}", details={"effort": effort, **facts})


@attrs.frozen
class IntegrationSimplicity:
    """Scores how easily tools and memory are connected. Neutral for an unknown framework."""

    scale: ClassVar[Scale] = SCALE

    base: float = share(0.5)
    one_file_points: float = not_negative(0.3)
    two_files_points: float = not_negative(0.1)
    built_in_memory_points: float = not_negative(0.2)
    manual_memory_penalty: float = not_negative(0.1)

    def check_characteristics(self, characteristics: Mapping[str, object]) -> Iterable[FieldError]:
        """Return what is wrong with the characteristics of an agent; see `keval.plugin.AgentChecker`."""
        return check_characteristics(characteristics)

    def score(self, trial: Trial) -> Score:
        """Score the agent's characteristics."""
        return _simplicity(self, read_characteristics(trial.characteristics))


@lru_cache(maxsize=64)
def _simplicity(given: IntegrationSimplicity, known: Characteristics) -> Score:
    """Score what is the same for all of an agent's answers, once."""
    if known.tool_files is None and known.memory is None:
        return neutral("the framework's characteristics are not known")
    one_file = known.tool_files is not None and known.tool_files <= 1
    return tally(
        given.base,
        (
            ("one file to add a tool", given.one_file_points, one_file),
            ("two files to add a tool", given.two_files_points, known.tool_files == 2),
            ("built-in memory", given.built_in_memory_points, known.memory == "built-in"),
            ("manual memory", -given.manual_memory_penalty, known.memory == "manual"),
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

    def check_characteristics(self, characteristics: Mapping[str, object]) -> Iterable[FieldError]:
        """Return what is wrong with the characteristics of an agent; see `keval.plugin.AgentChecker`."""
        return check_characteristics(characteristics)

    def score(self, trial: Trial) -> Score:
        """Score the agent's characteristics, and the clarity of an error message if the answer is one."""
        known = read_characteristics(trial.characteristics)
        if known.errors is None and known.logging is None and known.documentation is None:
            return neutral("the framework's characteristics are not known")
        answer = read(trial.output)
        said = failures(answer, self.error_words).errors if len(answer.original.strip()) >= self.descriptive else ()
        score = _clarity(self, known, tuple(map(str, said)))
        if not said:
            return score
        return attrs.evolve(score, details={**score.details, "marks": marked(answer, said, _DESCRIPTIVE, "good")})


@lru_cache(maxsize=64)
def _clarity(given: Debuggability, known: Characteristics, said: tuple[str, ...]) -> Score:
    """Score what is the same for all of an agent's answers with the same error words, once."""
    return tally(
        given.base,
        (
            ("framework-managed errors", given.framework_errors_points, known.errors == "framework"),
            ("manual error handling", -given.manual_errors_penalty, known.errors == "manual"),
            ("framework-provided logging", given.framework_logging_points, known.logging == "framework"),
            ("basic logging", -given.basic_logging_penalty, known.logging == "basic"),
            ("comprehensive documentation", given.comprehensive_docs_points, known.documentation == "comprehensive"),
            ("moderate documentation", given.moderate_docs_points, known.documentation == "moderate"),
            (_DESCRIPTIVE, given.descriptive_message_points, said),
        ),
        errors=known.errors,
        logging=known.logging,
        documentation=known.documentation,
    )
