"""Verdicts: what gates came to, and the answers that were not as expected."""

from __future__ import annotations

from typing import Literal, TypeAlias

import attrs

__all__ = ["GateResult", "GateVerdict", "UnmetExpectation"]

GateVerdict: TypeAlias = Literal["held", "failed", "undecided"]


@attrs.frozen
class GateResult:
    """A gate's verdict on one arm: what was found, on what it decided, and why it could not, if it could not.

    `gate` is the gate with the arm that it is about, and `written` the gate as written. `decided_on` is what was
    compared with the `threshold`, such as `mean` or `low`. `kind` says what the gate is about: scores, what trials use
    or how they end (a resource), an effect against the baseline, the expectations of samples, or the run `against`.
    `ci_low` and `ci_high` are the 95 % interval of `value`. `reason` also tells the counts behind a share.
    """

    gate: str
    verdict: GateVerdict
    value: float | None
    ci_low: float | None
    ci_high: float | None
    decided_on: str
    reason: str
    kind: Literal["score", "resource", "effect", "expect", "regression"] = "score"
    agent: str | None = None
    condition: str | None = None
    metric: str | None = None
    judge: str | None = None
    op: Literal[">=", "<=", ">", "<"] | None = None
    threshold: float | None = None
    written: str | None = None
    against: str | None = None


@attrs.frozen
class UnmetExpectation:
    """An expectation of a sample that one answer did not meet: what was expected, and what was answered, in short."""

    sample: str
    agent: str
    condition: str
    repetition: int
    expected: str
    answered: str
