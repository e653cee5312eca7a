"""The metric `recorded/NAME`: what a recorded answer was given by others, such as the tool that recorded it."""

from __future__ import annotations

from typing import ClassVar, Literal

import attrs

from keval import Scale, Score, Trial


@attrs.frozen
class RecordedScore:
    """The score `of` this name in recorded answers; unscored where there is none. `low` and `high` end its scale."""

    category: ClassVar[str] = "recorded scores"
    of: str
    low: float = 0.0
    high: float = 1.0
    better: Literal["higher", "lower"] = "higher"

    @property
    def scale(self) -> Scale:
        """The range that the scores are in."""
        return Scale(self.low, self.high, self.better)

    def score(self, trial: Trial) -> Score:
        """Return the score that was recorded with the answer."""
        found = trial.transcript.scores.get(self.of) if trial.transcript else None
        told = found if isinstance(found, dict) else {"value": found}
        value = told.get("value")
        reason = told.get("reason") or ("" if value is not None else f"no score {self.of!r} is recorded")
        return Score(None if value is None else float(value), reason)
