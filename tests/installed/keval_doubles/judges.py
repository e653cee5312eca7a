"""A judge without a model, and the rubric it grades by."""

from collections.abc import Mapping, Sequence

import attrs

from keval import ModelError, PreflightError, Rubric, Score, Trial, TrialError

BREVITY = Rubric("double/brevity", "Is it short?", {1: "long", 2: "fair", 3: "short"})


@attrs.frozen
class Strict:
    """Gives every answer the same level; `down` makes it unreachable, `busy` so many times at first."""

    level: int = 2
    down: bool = False
    busy: int = 0
    odd: str = ""
    refuses: str = ""
    _asked: list[str] = attrs.field(factory=list, init=False)

    async def prepare(self) -> None:
        if self.refuses:
            raise PreflightError(self.refuses)

    async def grade(self, trial: Trial, rubrics: Sequence[Rubric]) -> Mapping[str, Score]:
        if self.down:
            raise TrialError("the judge cannot be reached", kind="down")
        self._asked.append(trial.id)
        if len(self._asked) <= self.busy:
            raise ModelError("too many requests", status=429)
        if self.odd == "nothing":
            return None  # type: ignore[return-value]
        if self.odd == "text":
            return {rubric.name: Score("4") for rubric in rubrics}  # type: ignore[arg-type]
        return {rubric.name: Score(float(self.level), self.odd or "as always") for rubric in rubrics}
