"""Judges without a model that grade soundly but for the defect that is planted in them by an option."""

import random
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import ClassVar

import attrs

from keval import Rubric, Score, Trial
from keval.plugin import JudgeContext, TrialError

_FACT = re.compile(r"\d+(?:[.,:]\d+)*|\b[A-Z]\w+|\b(?:not|no|never)\b")


@attrs.frozen
class Planted:
    """Grades by what the response has of the golden answer's numbers, names and negations, and adds to them.

    `lenient` adds so many levels, `always` is the level of every response, `long` adds so many levels to a response
    that is 1.5 times as long as the golden answer, `likes` is a text for which a response gets a level more, and
    `listed` adds so many levels to one with bullets. A share `chance` of the judgements gets any level. A `strict` one
    gives the lowest level to every response that is not the golden answer, letter by letter.
    """

    lenient: int = 0
    always: int | None = None
    long: int = 0
    likes: str = ""
    listed: int = 0
    chance: float = 0.0
    strict: bool = False

    async def grade(
        self, trial: Trial, rubrics: Sequence[Rubric], context: JudgeContext
    ) -> Mapping[str, Score | TrialError]:
        return {rubric.name: self._score(trial, rubric, context.seed) for rubric in rubrics}

    def _score(self, trial: Trial, rubric: Rubric, seed: int) -> Score:
        levels, response, golden = sorted(rubric.levels), trial.output, trial.sample.answer or ""
        dice = random.Random(f"{seed} {rubric.name} {response}")
        if dice.random() < self.chance:
            return Score(float(dice.choice(levels)), "by chance")
        if self.always is not None:
            return Score(float(self.always), "as always")
        if self.strict:
            return Score(float(levels[-1] if response == golden else levels[0]), "letter by letter")
        place = len(levels) - 1 - _mistakes(golden, response) + self.lenient
        place += self.long * (len(response.split()) >= 1.5 * len(golden.split()))
        place += bool(self.likes) and self.likes in response
        place += self.listed * bool(re.search(r"^\s*[-*] ", response, re.MULTILINE))
        return Score(float(levels[max(0, min(place, len(levels) - 1))]), "by its facts")


def _mistakes(golden: str, response: str) -> int:
    """Count the facts of the golden answer that a response lacks, and the numbers and negations that it adds."""
    if not response.strip():
        return 100
    spelled = (re.sub(r"n[’']t\b|(?<=\bcan)not\b", " not", text) for text in (golden, response))
    wanted, found = (Counter(_FACT.findall(text)) for text in spelled)
    if not wanted:
        return sum(word.lower() not in response.lower() for word in golden.split())
    added = sum(count for fact, count in (found - wanted).items() if not fact[0].isupper())
    return (wanted - found).total() + added


@attrs.frozen
class First:
    """Compares in both orders, and prefers the response that stands first, or with `longer` the longer one."""

    kinds: ClassVar[tuple[str, ...]] = ("preference",)

    against: str = "baseline"
    longer: bool = False

    async def grade(
        self, trial: Trial, rubrics: Sequence[Rubric], context: JudgeContext
    ) -> Mapping[str, Score | TrialError]:
        assert context.against is not None
        by = len(trial.output) - len(context.against.output)
        places = ["first", "first"]
        if self.longer:
            places = ["first", "second"] if by > 0 else ["second", "first"] if by else ["tie", "tie"]
        value = {("first", "second"): 1.0, ("second", "first"): -1.0}.get((places[0], places[1]), 0.0)
        return {rubric.name: Score(value, "compared", details={"orders": places}) for rubric in rubrics}
