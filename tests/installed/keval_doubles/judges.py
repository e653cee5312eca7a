"""A judge without a model, and the rubric it grades by."""

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import attrs

from keval import Rubric, Score, Trial, Usage
from keval.plugin import JudgeContext, Model, ModelError, PreflightError, TrialError
from keval_doubles.waiting import until_written

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

    async def grade(self, trial: Trial, rubrics: Sequence[Rubric], context: JudgeContext) -> Mapping[str, Score]:
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


@attrs.frozen
class Reader:
    """Gives the level that the sample's metadata has under `key`, or one per repetition, and reports what it says.

    `journal` gets a line per judgement. The environment says after how many it dies, and on which samples it fails.
    It grades no answer before the run has `after_trials` of them.
    """

    key: str = "level"
    journal: str = ""
    hangs: bool = False
    after_trials: int = 0
    _asked: list[str] = attrs.field(factory=list, init=False)

    async def grade(
        self, trial: Trial, rubrics: Sequence[Rubric], context: JudgeContext
    ) -> Mapping[str, Score | TrialError]:
        assert ("", "", "", None) == (trial.id, trial.agent, trial.condition, trial.model)
        assert trial.transcript is None or trial.transcript.instructions is None
        if len(self._asked) >= int(os.environ.get("READER_DIES_AFTER", "1000000")):
            os.kill(os.getpid(), signal.SIGKILL)
        self._asked.append(trial.sample.id)
        if self.journal:
            asked = ",".join(rubric.name for rubric in rubrics)
            _note(self.journal, f"{trial.sample.id} {context.repetition} {context.attempt} {context.seed} {asked}\n")
        await until_written("trials.jsonl", self.after_trials)
        if self.hangs:
            await asyncio.Event().wait()
        told, builder = trial.sample.metadata, context.builder
        builder.model_called(Usage(10, 2))
        if trial.sample.id in os.environ.get("READER_BREAKS_ON", ""):
            raise TrialError("the judge fell over", kind="fell")
        levels = told[self.key]
        level = levels[(context.repetition - 1) % len(levels)] if isinstance(levels, list) else levels
        builder.unverified(told.get("claims", ()))
        if level is None:
            builder.rejected("five out of five!")
            return {rubric.name: TrialError("no JSON in the reply", kind="bad_reply") for rubric in rubrics}
        return {rubric.name: Score(float(level), f"level {level}") for rubric in rubrics}


def _note(journal: str, line: str) -> None:
    if journal:
        with Path(journal).open("a", encoding="utf-8") as file:
            file.write(line)


@attrs.frozen
class Paid(Reader):
    """One whose model has a price; each judgement takes 10 tokens of input and 2 of output."""

    applies_middleware: ClassVar[bool] = True

    model: Model = attrs.field(kw_only=True)


@attrs.frozen
class Longer:
    """Prefers the longer of two answers; `journal` gets a line for each comparison.

    The environment says after how many it kills its own process.
    """

    kinds: ClassVar[tuple[str, ...]] = ("preference",)

    against: str = "baseline"
    journal: str = ""
    _compared: list[str] = attrs.field(factory=list, init=False)

    async def grade(self, trial: Trial, rubrics: Sequence[Rubric], context: JudgeContext) -> Mapping[str, Score]:
        other = context.against
        assert other is not None
        assert trial.sample == other.sample
        assert ("", "", "", None) * 2 == tuple(
            told for each in (trial, other) for told in (each.id, each.agent, each.condition, each.model)
        )
        if len(self._compared) >= int(os.environ.get("LONGER_DIES_AFTER", "1000000")):
            os.kill(os.getpid(), signal.SIGKILL)
        self._compared.append(trial.sample.id)
        _note(self.journal, f"{trial.sample.id} {context.repetition}: {len(trial.output)} to {len(other.output)}\n")
        ours, theirs = len(trial.output), len(other.output)
        return {rubric.name: Score(float((ours > theirs) - (ours < theirs)), "by length") for rubric in rubrics}


@attrs.frozen
class Digit:
    """Gives the number that an answer begins with as its level, and `shift` more; `journal` gets a line per answer."""

    shift: int = 0
    journal: str = ""

    async def grade(self, trial: Trial, rubrics: Sequence[Rubric], context: JudgeContext) -> Mapping[str, Score]:
        assert ("", "", "") == (trial.id, trial.agent, trial.condition)
        _note(self.journal, f"{trial.sample.id} {trial.output}\n")
        found = int(trial.output[:1]) + self.shift
        return {rubric.name: Score(float(min(max(found, 1), max(rubric.levels)))) for rubric in rubrics}
