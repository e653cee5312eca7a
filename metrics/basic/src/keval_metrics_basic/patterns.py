"""Patterns: does the answer match a regular expression."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import attrs
import regex

from keval import Score, Trial
from keval_metrics_basic.evidence import NO_TRANSCRIPT, excerpt
from keval_metrics_basic.references import is_place, no_reference, texts_at

__all__ = ["Regex"]

_LONGEST = 10_000
"""Compiling a pattern cannot be interrupted, as matching can."""


class _PatternError(ValueError):
    """A pattern does not compile."""


@attrs.frozen
class Regex:
    """Scores 1 if `pattern`, or else the reference, is found in the answer; with `absent`, if it is not.

    A match that takes more than `timeout` seconds is given up, and the answer unscored.
    """

    pattern: str | None = attrs.field(default=None)
    reference: str = attrs.field(default="answer", validator=is_place)
    full_match: bool = False
    ignore_case: bool = False
    absent: bool = False
    timeout: float = attrs.field(default=1.0, validator=attrs.validators.gt(0))

    @pattern.validator
    def _check(self, attribute: attrs.Attribute[object], value: str | None) -> None:
        if value is not None:
            try:
                _compiled(value, self.ignore_case)
            except _PatternError as error:
                raise ValueError(f"'pattern' must be a regular expression: {error}") from error

    def score(self, trial: Trial) -> Score:
        """Match the answer as it stands; of several reference patterns, the first that matches counts."""
        if trial.transcript is None:
            return NO_TRANSCRIPT
        patterns = texts_at(trial.sample, self.reference) if self.pattern is None else (self.pattern,)
        if not patterns:
            return no_reference(trial.sample, self.reference, "a pattern or a list of patterns", "`pattern`")
        for pattern in patterns:
            try:
                found = self._match(pattern, trial.output)
            except _PatternError as error:
                return Score(None, f"{self.reference} of the sample is no pattern: {error}", details=_evidence(pattern))
            except (TimeoutError, MemoryError):
                remedy = "make its repeats possessive or bounded, or raise `timeout`"
                reason = f"'{excerpt(pattern)}' was not done with the answer in {self.timeout:g} s; {remedy}"
                return Score(None, reason, details=_evidence(pattern))
            if found is not None:
                reason = f"'{excerpt(pattern)}' matches '{excerpt(found.group())}'"
                return Score(0.0 if self.absent else 1.0, reason, details=_evidence(pattern, found))
        what = f"'{excerpt(patterns[0])}'" if len(patterns) == 1 else f"none of {len(patterns)} patterns"
        reason = f"{what} {'does not match' if len(patterns) == 1 else 'matches'} '{excerpt(trial.output)}'"
        return Score(1.0 if self.absent else 0.0, reason, details=_evidence(patterns[0]))

    def _match(self, pattern: str, text: str) -> regex.Match[str] | None:
        compiled = _compiled(pattern, self.ignore_case)
        match = compiled.fullmatch if self.full_match else compiled.search
        return match(text, timeout=self.timeout)


@lru_cache(maxsize=256)
def _compiled(pattern: str, ignore_case: bool) -> regex.Pattern[str]:
    """Compile a pattern. Raises _PatternError."""
    if len(pattern) > _LONGEST:
        raise _PatternError(f"it has {len(pattern)} characters, more than {_LONGEST}")
    try:
        return regex.compile(pattern, regex.IGNORECASE if ignore_case else 0)
    except (regex.error, ValueError, OverflowError, RecursionError) as error:
        raise _PatternError(f"{error} in '{excerpt(pattern)}'") from error


def _evidence(pattern: str, found: regex.Match[str] | None = None) -> dict[str, Any]:
    evidence: dict[str, Any] = {"pattern": excerpt(pattern, 500), "matched": None, "groups": [], "named": {}}
    if found is not None:
        evidence["matched"] = excerpt(found.group(), 500)
        evidence["groups"] = [None if text is None else excerpt(text, 500) for text in found.groups()[:20]]
        evidence["named"] = {
            name: None if text is None else excerpt(text, 500) for name, text in found.groupdict().items()
        }
    return evidence
