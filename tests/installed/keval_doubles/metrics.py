"""Metrics that score, fail, leave their scale, are neutral and read facts."""

import math
import sys
import threading
import time
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import attrs

from keval import Scale, Score, Trial
from keval.plugin import FieldError


@attrs.frozen
class Length:
    """The answer's share of `limit` characters."""

    limit: int = attrs.field(default=100, validator=attrs.validators.ge(1))

    def score(self, trial: Trial) -> Score:
        length = len(trial.output)
        return Score(min(1.0, length / self.limit), f"{length} characters", details={"length": length})


class Broken:
    def score(self, trial: Trial) -> Score:
        raise RuntimeError("the metric is broken")


class Endless:
    def score(self, trial: Trial) -> Score:
        sys.stderr.write("endless\n")
        sys.stderr.flush()
        while True:
            pass


class Beyond:
    def score(self, trial: Trial) -> Score:
        return Score(7.0, "beyond the scale")


class Plain:
    """The answer's length, as a plain number."""

    scale: ClassVar[Scale] = Scale(0, 100)

    def score(self, trial: Trial) -> float:
        return len(trial.output)


class Whether:
    async def score(self, trial: Trial) -> bool:
        return trial.output.startswith("a")


class Neutral:
    async def score(self, trial: Trial) -> Score:
        return Score(0.5, "nothing to judge", neutral=True)


class UsesFact:
    def score(self, trial: Trial) -> Score:
        return Score(float(trial.sample.facts["truth"] in trial.output), "looked for the fact")


class Grade:
    """0.3, or 0.7 for a long answer; neutral for the sample `bb`, unscored for `a`."""

    scale: ClassVar[Scale] = Scale(bands={"low": 0.0, "high": 0.5})

    def score(self, trial: Trial) -> Score:
        if trial.sample.id == "a":
            return Score(None, "cannot say")
        if trial.sample.id == "bb":
            return Score(0.5, "nothing to judge", neutral=True)
        return Score(0.7 if len(trial.output) > 50 else 0.3, "graded")


@attrs.frozen
class Characters:
    """How long the answer is, with as much for each character."""

    each: float = 3.0
    scale: ClassVar[Scale] = Scale(0, math.inf, better="lower", unit="characters")

    def score(self, trial: Trial) -> Score:
        return Score(self.each * len(trial.output), "counted")


class Rating:
    """The number that the answer is; neutral or unscored for an answer that is this word."""

    def score(self, trial: Trial) -> Score:
        if trial.output == "neutral":
            return Score(0.5, "nothing to judge", neutral=True)
        if trial.output == "unscored":
            return Score(None, "cannot say")
        return Score(float(trial.output), "as the answer says")


class Balance(Rating):
    """The number that the answer is, on a scale that is much wider than answers differ."""

    scale: ClassVar[Scale] = Scale(-100, 100)


class Effort:
    """How much work an agent is, by its characteristics; an answer that is this word takes none."""

    def check_characteristics(self, characteristics: Mapping[str, object]) -> Iterable[FieldError]:
        return ()

    def score(self, trial: Trial) -> Score:
        if trial.output == "effortless":
            return Score(0.0, "as the answer says")
        return Score(float(str(trial.characteristics.get("effort", 0.5))), "as its author says")


@attrs.frozen
class Rated:
    """What an agent's characteristics give as its `rating`, which may be anything; answers score 1."""

    category: int = 3

    def rate_agent(self, characteristics: Mapping[str, Any]) -> Score:
        return Score(characteristics["rating"], "as its author says")

    def score(self, trial: Trial) -> Score:
        return Score(1.0)


class Waste:
    """The share of 100 characters that an answer takes; less is better."""

    scale: ClassVar[Scale] = Scale(0, 1, better="lower")

    def score(self, trial: Trial) -> Score:
        return Score(min(1.0, len(trial.output) / 100))


class Meets:
    """Scores 1 once four trials are being scored at the same time."""

    blocks: ClassVar[bool] = True

    def __init__(self) -> None:
        self._together = threading.Barrier(4)

    def score(self, trial: Trial) -> Score:
        self._together.wait(timeout=10)
        return Score(1.0, "met")


class Slow:
    """Holds up the event loop for a while."""

    def score(self, trial: Trial) -> Score:
        time.sleep(0.02)
        return Score(1.0, "late")
