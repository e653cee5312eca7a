"""A judge without a model, and the rubric it grades by."""

from collections.abc import Mapping, Sequence

import attrs

from keval import Rubric, Score, Trial, TrialError

BREVITY = Rubric("double/brevity", "Is it short?", {1: "long", 2: "fair", 3: "short"})


@attrs.frozen
class Strict:
    """Gives every answer the same level; `down` makes it unreachable."""

    level: int = 2
    down: bool = False

    async def grade(self, trial: Trial, rubrics: Sequence[Rubric]) -> Mapping[str, Score]:
        if self.down:
            raise TrialError("the judge cannot be reached", kind="down")
        return {rubric.name: Score(float(self.level), "as always") for rubric in rubrics}
