"""Equality: is the answer the expected text."""

from __future__ import annotations

import attrs

from keval import Score, Trial
from keval_metrics_basic.evidence import NO_TRANSCRIPT, excerpt, quoted
from keval_metrics_basic.normalisation import Normalisation
from keval_metrics_basic.references import is_place, no_reference, texts_at

__all__ = ["Equals"]


@attrs.frozen
class Equals:
    """Scores 1 if the answer is the expected text, or any of several; a full stop at the very end does not count."""

    expected: str | tuple[str, ...] | None = attrs.field(default=None)
    reference: str = attrs.field(default="answer", validator=is_place)
    ignore_case: bool = True
    ignore_whitespace: bool = True
    ignore_punctuation: bool = False

    @expected.validator
    def _check(self, attribute: attrs.Attribute[object], value: object) -> None:
        if value == ():
            raise ValueError("'expected' must hold at least one text")

    def score(self, trial: Trial) -> Score:
        """Compare the whole answer."""
        if trial.transcript is None:
            return NO_TRANSCRIPT
        if self.expected is None:
            expected = texts_at(trial.sample, self.reference)
        else:
            expected = (self.expected,) if isinstance(self.expected, str) else self.expected
        if not expected:
            return no_reference(trial.sample, self.reference, "a text or a list of texts", "`expected`")
        normal = Normalisation(self.ignore_case, self.ignore_whitespace, self.ignore_punctuation)
        answer = normal.phrase(trial.output)
        matched = next((text for text in expected if normal.phrase(text) == answer), None)
        details = {
            "answer": excerpt(trial.output, 500),
            "expected": [excerpt(text, 500) for text in expected[:20]],
            "matched": None if matched is None else excerpt(matched, 500),
        }
        said = f"said '{excerpt(trial.output)}'"
        if matched is not None:
            return Score(1.0, f"{said}, as expected", details=details)
        which = "any of " if len(expected) > 1 else ""
        return Score(0.0, f"{said}, expected {which}{quoted(expected)}", details=details)
