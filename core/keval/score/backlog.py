"""The backlog: trials are scored as they finish, and those that are left in the end from the run's file."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TypeAlias

import attrs

from keval.config.evaluation import Budget
from keval.files import DAMAGE
from keval.plan.plan import ResolvedPlugin
from keval.records.models import Endpoint
from keval.records.scores import ScoreLine
from keval.records.trial import Trial
from keval.score.scoring import ScoredTrial, TrialGrader
from keval.seams.interfaces import ComparingJudge
from keval.seams.live_events import LiveEvent


def score_events(trial: Trial, lines: Sequence[ScoreLine]) -> Iterator[LiveEvent]:
    """Yield the live event of each score of a trial."""
    for line in lines:
        data = {
            "metric": line.metric,
            "judge": line.judge,
            "repetition": line.judgement.repetition if line.judgement else 1,
            "value": line.score.value,
            "neutral": line.score.neutral,
            "reason": line.score.reason,
            "details": line.score.details,
            "failure": line.failure and line.failure.kind,
        }
        yield LiveEvent("scored", trial.id, len(trial.attempts) + 1, time.time(), data)


def late_judges(
    judges: Sequence[ResolvedPlugin],
    agents: Sequence[ResolvedPlugin],
    endpoints: Mapping[str, Endpoint],
    budget: Budget,
) -> set[str]:
    """Return the labels of the judges that must not grade while trials run.

    A judge that compares needs the other trial. One that asks a model of an agent would lengthen that agent's response
    times. A budget of tokens or US dollars is for trials first. `endpoints` are those that model providers found, by
    `provider/name`.
    """
    if budget.tokens is not None or budget.usd is not None:
        return {judge.label for judge in judges}
    measured = {place for agent in agents for place in _asked(agent, endpoints)}
    return {
        each.label for each in judges if isinstance(each.plugin, ComparingJudge) or measured & _asked(each, endpoints)
    }


def _asked(asker: ResolvedPlugin, endpoints: Mapping[str, Endpoint]) -> set[tuple[str, ...]]:
    """Return the models that a plugin asks, each by its name and where it is reached."""
    found = [model.endpoint or endpoints.get(str(model)) for model in asker.models.values()]
    return {each.place for each in found if each is not None}


Submit: TypeAlias = Callable[[str, bytes], None]
"""Takes a trial that has finished, by its id and its line in the run's file, and returns at once."""

SCORED, UNSCORED, PARTLY_SCORED = range(3)
"""What of a trial is scored; a byte each, as a run may have a million."""

_MOST_WAITING = 128
"""Trials that wait in memory to be scored; those that finish when there are more are left to the end."""


@attrs.define(eq=False)
class Backlog:
    """Scores trials, at most `at_once` concurrently, and hands each to `keep`, failed ones included.

    With `all_at_once`, no trial is left to the end, however many wait to be scored.

    `read` reads a trial from its line. Judges that are `late`, by label, grade no trial that is scored as it finishes;
    `note` is told of the scores that such a trial has already, and `keep` whether only those of late judges are new.
    `down` are the judges whose endpoint was lost, which are late from then on; `lost` is told of each, and why.

    `left` has a mark for each trial of the run's file, in the order of the file, which is that in which they are
    submitted: whether it is scored, and if not by all scorers, whether some of its scores are kept.
    """

    grader: TrialGrader
    read: Callable[[bytes], Trial]
    keep: Callable[[ScoredTrial, bool], None]
    note: Callable[[Trial, Sequence[ScoreLine]], None]
    at_once: int
    late: set[str]
    left: bytearray
    all_at_once: bool = False
    lost: Callable[[str, str], object] = lambda judge, why: None
    down: set[str] = attrs.field(factory=set, init=False)
    _waiting: set[asyncio.Task[None]] = attrs.field(factory=set, init=False)

    @asynccontextmanager
    async def as_they_finish(self) -> AsyncIterator[Submit]:
        """Yield what takes trials; the block ends when those that it took are scored."""
        slots, waiting = asyncio.Semaphore(self.at_once), self._waiting

        async def score(place: int, line: bytes) -> None:
            async with slots:
                try:
                    trial = self.read(line)
                except DAMAGE:  # told with its place when the file is read
                    return
                self._keep_early(await self.grader.score(trial, self.late), place)

        def submit(id: str, line: bytes) -> None:
            # Also for a trial that is not taken, as marks are in the order of the file.
            self.left.append(UNSCORED)
            if len(waiting) >= self.at_once + _MOST_WAITING and not self.all_at_once:
                return
            task = group.create_task(score(len(self.left) - 1, line))
            waiting.add(task)
            task.add_done_callback(waiting.discard)

        async with asyncio.TaskGroup() as group:
            yield submit

    def is_behind(self) -> bool:
        """Return whether as many trials wait as are scored concurrently."""
        # `_waiting` has those that are being scored, too.
        return len(self._waiting) >= 2 * self.at_once

    async def catch_up(self) -> None:
        """Wait until fewer trials wait to be scored."""
        while self.is_behind():
            await asyncio.wait(self._waiting, return_when=asyncio.FIRST_COMPLETED)

    async def score_left(self, trials: Iterable[Trial]) -> None:
        """Score by all scorers what is left of the trials of the run's file, given in the order of the file."""
        if any(self.left):
            marked = zip(trials, self.left, strict=True)
            await self._score((trial, mark == PARTLY_SCORED) for trial, mark in marked if mark != SCORED)
            # all zero, which is SCORED
            self.left = bytearray(len(self.left))

    async def score(self, trials: Iterable[Trial]) -> None:
        """Score trials by all scorers."""
        await self._score((trial, False) for trial in trials)

    async def _score(self, trials: Iterable[tuple[Trial, bool]]) -> None:
        """Score trials, each given with whether some of its scores are kept already."""
        slots = asyncio.Semaphore(self.at_once)

        async def score(trial: Trial, begun: bool) -> None:
            try:
                scored = await self.grader.score(trial)
                self._note_lost(scored)
                self.keep(scored, begun)
            finally:
                slots.release()

        async with asyncio.TaskGroup() as group:
            for trial, begun in trials:
                # Before its task is made, so that trials are read only as fast as they are scored.
                await slots.acquire()
                group.create_task(score(trial, begun))

    def _keep_early(self, scored: ScoredTrial, place: int) -> None:
        """Keep the scores of a trial, but for those that failed as an endpoint was lost, which may come back."""
        lost = self._note_lost(scored)
        self.late |= lost
        if lost:
            scored = scored.without(lost)
        # A failed trial is graded by no judge, so none of its scores is left.
        if self.late and scored.trial.failure is None:
            self.left[place] = PARTLY_SCORED
            self.note(scored.trial, scored.lines)
        else:
            self.left[place] = SCORED
        self.keep(scored, False)

    def _note_lost(self, scored: ScoredTrial) -> set[str]:
        """Return the judges that could not grade a trial as their endpoint was lost, and tell of new ones."""
        lost = set()
        for line in scored.lines:
            if line.judge and line.failure and line.failure.kind == "outage":
                lost.add(line.judge)
                if line.judge not in self.down:
                    self.down.add(line.judge)
                    self.lost(line.judge, line.failure.message)
        return lost
