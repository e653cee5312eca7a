"""The material of examinations: runs of the evaluation itself, and of answers that were written for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, TypeAlias

import attrs

if TYPE_CHECKING:  # the command line does not wait for them
    from keval import Run
    from keval.plan.plan import Plan


@attrs.frozen
class WrittenAnswer:
    """An answer to a sample, made in the way that its `condition` names, such as `number-1` or `padded`.

    `note` says what was done to it, such as `21 became 24`. `of` is the id of the trial whose answer it was made of;
    its tool calls are then those of that trial. Several answers to a sample under one condition are its repetitions.
    """

    sample: str
    condition: str
    text: str
    note: str = ""
    of: str | None = None


RunName: TypeAlias = Literal["asked", "damaged", "restyled"]
RUNS: tuple[RunName, ...] = ("asked", "damaged", "restyled")


@attrs.frozen
class Material:
    """Finished runs that examinations read.

    `asked` is a run of the evaluation with its own agents, judges and metrics; its requests are kept. `damaged` has
    golden answers and what was made of them, and `restyled` answers of `asked` and what was made of these, both scored
    by the same scorers: each condition is one way of making answers (see `keval_instrument.damages`), and the baseline
    is the answers as they were. A run is `None` where there is none, and `reasons` says why, by its name.
    `plan` is that of the evaluation as it is configured, with all its samples; `None` where only a run is examined.
    """

    asked: Run | None = None
    damaged: Run | None = None
    restyled: Run | None = None
    plan: Plan | None = None
    reasons: Mapping[str, str] = attrs.field(factory=dict)

    def run(self, name: RunName) -> Run | None:
        """Return a run by its name."""
        found: Run | None = getattr(self, name)
        return found
