"""The key `check` of a config: what `keval check` examines an evaluation with."""

from __future__ import annotations

import attrs
from attrs.validators import ge

from keval.config.evaluation import Budget, Evaluation


@attrs.frozen
class CheckSettings:
    """What `keval check` examines an evaluation with, and the bounds that it must keep.

    So many `samples`, drawn at random, are asked `repetitions` times, and each judge grades an answer
    `judge_repetitions` times. `budget` is for all that this takes. Each of `bounds` is written as `FIGURE >= NUMBER` or
    `FIGURE <= NUMBER`.
    """

    samples: int = attrs.field(default=20, validator=ge(1))
    repetitions: int = attrs.field(default=4, validator=ge(1))
    judge_repetitions: int = attrs.field(default=2, validator=ge(1))
    budget: Budget = attrs.field(factory=Budget)
    bounds: tuple[str, ...] = ()


@attrs.frozen
class CheckSection:
    """`check` is for `keval check`."""

    check: CheckSettings | None = None


def settings_of(evaluation: Evaluation) -> CheckSettings:
    """Return what `keval check` does: as given, or by default."""
    return evaluation.section(CheckSection).check or CheckSettings()
