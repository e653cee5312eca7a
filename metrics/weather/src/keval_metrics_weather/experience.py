"""Developer experience: scores what a framework asks of its developer (metrics-assessment.md, 10 to 12)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, ClassVar

import attrs

from keval import Scale, Score, Trial
from keval.plugin import FieldError, suggestion
from keval_metrics_weather.reading.failures import failures
from keval_metrics_weather.reading.words import Text, read
from keval_metrics_weather.scores import SCALE, neutral, not_negative, tally
from keval_metrics_weather.wording import ERRORS

_LEVELS = ("low", "medium", "high")
_WORDS: Mapping[str, tuple[str, ...]] = {
    "setup": _LEVELS,
    "code": _LEVELS,
    "learning": _LEVELS,
    "memory": ("built-in", "manual"),
    "errors": ("framework", "manual"),
    "logging": ("framework", "basic"),
    "documentation": ("comprehensive", "moderate", "minimal"),
}
_COUNTS: Mapping[str, int] = {"files": 1, "tool_files": 0}
"""Keys with whole numbers, each with the least one."""


@attrs.frozen
class Characteristics:
    """What the metrics of developer experience read; `None` is unknown.

    `files` is how many files the same use case took; `tool_files` how many must change to add a tool; `setup`, `code`
    and `learning` are complexity levels.
    """

    files: int | None = None
    setup: str | None = None
    code: str | None = None
    learning: str | None = None
    tool_files: int | None = None
    memory: str | None = None
    errors: str | None = None
    logging: str | None = None
    documentation: str | None = None


def check_characteristics(characteristics: Mapping[str, object]) -> Iterator[FieldError]:
    """Yield the keys that these metrics do not know, and the values that they cannot read."""
    known = [field.name for field in attrs.fields(Characteristics)]
    for key, value in characteristics.items():
        if key not in known:
            hint = suggestion(key, known) or f"; known keys: {', '.join(known)}"
            yield FieldError((key,), f"unknown key {key!r}{hint} (the weather metrics)", at_key=True)
        elif value is not None and not _fits(key, value):
            yield FieldError((key,), f"expected {_wanted(key)}, got {value!r} (the weather metrics)")


def read_characteristics(characteristics: Mapping[str, Any]) -> Characteristics:
    """Return the characteristics of an agent. Raises ValueError: a key or value that these metrics do not know."""
    for error in check_characteristics(characteristics):
        raise ValueError(f"characteristics.{error.path[0]}: {error.message}")
    return Characteristics(**characteristics)


def _fits(key: str, value: object) -> bool:
    if key in _WORDS:
        return value in _WORDS[key]
    return isinstance(value, int) and not isinstance(value, bool) and value >= _COUNTS[key]


def _wanted(key: str) -> str:
    if key in _WORDS:
        return " or ".join(_WORDS[key])
    return f"a whole number from {_COUNTS[key]} on"


_UNKNOWN = "the framework's characteristics are not known"


class _OfTheFramework(ABC):
    """What the metrics of developer experience have in common: their scale, and what they read of an agent."""

    __slots__ = ()

    scale: ClassVar[Scale] = SCALE
    category: ClassVar[str] = "Developer experience"

    def check_characteristics(self, characteristics: Mapping[str, object]) -> Iterable[FieldError]:
        """Return what is wrong with the characteristics of an agent; see `keval.plugin.AgentChecker`."""
        return check_characteristics(characteristics)

    def rate_agent(self, characteristics: Mapping[str, Any]) -> Score:
        """Score an agent by its characteristics; see `keval.plugin.AgentRater`. Neutral if they are unknown."""
        return _rating(self, tuple(sorted(characteristics.items())))

    def score(self, trial: Trial) -> Score:
        """Score the agent that answered."""
        return self.rate_agent(trial.characteristics)

    @abstractmethod
    def rate(self, known: Characteristics) -> Score:
        """Score what is known of an agent."""


@lru_cache(maxsize=64)
def _rating(metric: _OfTheFramework, characteristics: Iterable[tuple[str, Any]]) -> Score:
    """Return a metric's score of an agent, which all its trials share."""
    return metric.rate(read_characteristics(dict(characteristics)))


@attrs.frozen
class ImplementationEffort(_OfTheFramework):
    """Scores how easy a framework makes the use case, from its files, setup and code; 1 is easiest.

    Up to `few_files` files lower the effort and more raise it, by 0.2; a low complexity lowers it, a medium one raises
    it and a high one raises it twice, by 0.15. Neutral for an unknown framework.
    """

    few_files: int = not_negative(4)

    def rate(self, known: Characteristics) -> Score:
        """Score an agent by its files, setup and code."""
        if known.files is None and known.setup is None and known.code is None:
            return neutral(_UNKNOWN)
        steps = {"low": -1, "medium": 1, "high": 2}
        effort = 0.5
        parts = []
        if known.files is not None:
            effort += 0.2 if known.files > self.few_files else -0.2
            parts.append(f"{known.files} files")
        if known.setup is not None:
            effort += steps[known.setup] * 0.15
            parts.append(f"{known.setup} setup")
        if known.code is not None:
            effort += steps[known.code] * 0.15
            parts.append(f"{known.code} code complexity")
        effort = round(min(1.0, max(0.0, effort)), 6)
        facts = {"files": known.files, "setup": known.setup, "code": known.code, "learning": known.learning}
        reason = f"{', '.join(parts)}: effort {effort:g}"
        return Score(round(1.0 - effort, 6), reason, details={"effort": effort, **facts})


@attrs.frozen
class IntegrationSimplicity(_OfTheFramework):
    """Scores how easily tools and memory are connected. Neutral for an unknown framework."""

    def rate(self, known: Characteristics) -> Score:
        """Score an agent by how tools and memory are added to it."""
        if known.tool_files is None and known.memory is None:
            return neutral(_UNKNOWN)
        one_file = known.tool_files is not None and known.tool_files <= 1
        return tally(
            (
                ("one file to add a tool", 0.3, one_file),
                ("two files to add a tool", 0.1, known.tool_files == 2),
                ("built-in memory", 0.2, known.memory == "built-in"),
                ("manual memory", -0.1, known.memory == "manual"),
            ),
            tool_files=known.tool_files,
            memory=known.memory,
        )


@attrs.frozen
class Debuggability(_OfTheFramework):
    """Scores how clear errors, logs and documentation are. Neutral for an unknown framework.

    An error message in the answer is descriptive from `descriptive` characters on.
    """

    descriptive: int = not_negative(40)

    def score(self, trial: Trial) -> Score:
        """Score the agent's characteristics, and the clarity of an error message if the answer is one."""
        rating, answer = self.rate_agent(trial.characteristics), read(trial.output)
        if rating.neutral or len(answer.original.strip()) < self.descriptive:
            return rating
        message = failures(answer, ERRORS).errors
        return self.rate(read_characteristics(trial.characteristics), answer, message) if message else rating

    def rate(self, known: Characteristics, answer: Text | None = None, message: tuple[str, ...] = ()) -> Score:
        """Score an agent by its errors, logs and documentation, and by the error message that it answered."""
        if known.errors is None and known.logging is None and known.documentation is None:
            return neutral(_UNKNOWN)
        docs = known.documentation
        return tally(
            (
                ("framework-managed errors", 0.2, known.errors == "framework"),
                ("manual error handling", -0.1, known.errors == "manual"),
                ("framework-provided logging", 0.2, known.logging == "framework"),
                ("basic logging", -0.1, known.logging == "basic"),
                ("comprehensive documentation", 0.1, docs == "comprehensive"),
                ("moderate documentation", 0.05, docs == "moderate"),
                ("descriptive error message", 0.1, message),
            ),
            answer,
            errors=known.errors,
            logging=known.logging,
            documentation=docs,
        )
