"""The table of a play: the columns of one run, what they are asked, and what they answer."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Coroutine, Sequence
from typing import Any

import attrs

from keval.errors import PlayError, suggestion
from keval.live import Feed, LiveEvent
from keval.play.posing import Posed, pose
from keval.play.records import Answer, AnswerState, Asked, Column, Question
from keval.play.seat import Seat, seats_of
from keval.play.talk import STOPPED, Talk
from keval.play.writing import PlayRun
from keval.records import Trial, TrialKey
from keval.scores import ScoreLine

__all__ = ["Table"]


@attrs.define(eq=False)
class Table:
    """Asks the columns of one run, and keeps what was asked and answered."""

    run: PlayRun
    feed: Feed
    conversation: int = attrs.field(default=1, init=False)
    _seats: dict[str, Seat] = attrs.field(init=False)
    _posed: list[Posed] = attrs.field(factory=list, init=False)
    _answers: dict[str, Answer] = attrs.field(factory=dict, init=False)
    _times: Counter[tuple[str, str]] = attrs.field(factory=Counter, init=False)
    _tasks: set[asyncio.Task[None]] = attrs.field(factory=set, init=False)
    _posing: asyncio.Lock = attrs.field(factory=asyncio.Lock, init=False)
    _idle: asyncio.Event = attrs.field(factory=asyncio.Event, init=False)
    _broken: BaseException | None = attrs.field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        self._seats = seats_of(self.run)
        self._idle.set()

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns as they are now."""
        asked = len(self._present())
        return tuple(seat.now(asked) for seat in self._seats.values())

    def column(self, column: str) -> Column:
        """Return a column by its id. Raises PlayError: there is none."""
        return self._seat(column).column

    @property
    def questions(self) -> tuple[Question, ...]:
        """What was asked so far, with the answers as they are now."""
        return tuple(map(self.question, self._posed))

    @property
    def is_answering(self) -> bool:
        """Whether a question is being asked."""
        return self._posing.locked() or any(seat.asking for seat in self._seats.values())

    def question(self, posed: Posed) -> Question:
        """Return a question with the answers as they are now."""
        answers = tuple(self._answers[trial] for trial in posed.trials)
        return Question(posed.written, posed.conversation, posed.turn, posed.is_chosen, answers)

    def switch(self, column: str, *, on: bool) -> None:
        """Switch a column on or off. Raises PlayError: there is no such column."""
        seat = self._seat(column)
        seat.column = attrs.evolve(seat.column, is_on=on)
        self.tell("columns")

    async def begin(self, asked: Asked) -> Posed:
        """Ask all columns that are on and level. Raises PlayError, PreflightError, RunError."""
        self._check()
        if self.is_answering:
            raise PlayError("the last question is still being answered; wait, or stop it")
        on = [seat for seat in self._seats.values() if seat.column.is_on]
        if not on:
            raise PlayError("no column is on; switch one on")
        async with self._posing:
            present = self._present()
            asked_now = [seat for seat in on if seat.answered == len(present)]
            if present and (asked.sample is not None or not asked_now):
                await self._forget()
                present, asked_now = [], on
            self._check_budget()
            posed = await pose(asked, present, self._posed, self.run, self.conversation)
            self._posed.append(posed)
            for seat in asked_now:
                self._ask(seat, [posed])
        self.tell("question")
        return posed

    async def ask_again(self, column: str) -> None:
        """Ask a column everything of the present conversation. Raises PlayError, RunError."""
        self._check()
        seat, present = self._seat(column), self._present()
        if seat.asking is not None or self._posing.locked():
            raise PlayError(f"{column} is still answering; wait, or stop it")
        if not present:
            raise PlayError("nothing was asked in this conversation yet")
        self._check_budget()
        async with self._posing:
            await seat.leave()
            self._ask(seat, present)
        self.tell("question")

    async def settle(self) -> None:
        """Wait until everything is answered and scored. Raises what went wrong, such as RunError."""
        while self._tasks:
            await asyncio.wait(self._tasks)
        self._check()

    async def stop(self, column: str | None = None) -> None:
        """Stop the answers in flight, or that of one column. Raises PlayError: there is no such column."""
        seats = [*self._seats.values()] if column is None else [self._seat(column)]
        asking = [seat.asking for seat in seats if seat.asking is not None]
        for seat in seats:
            if seat.asking is not None and seat.talk is not None:
                seat.talk.stop()
        if asking:
            await asyncio.wait(asking)

    async def new_conversation(self) -> None:
        """Stop what is in flight, and let all columns forget what was said."""
        async with self._posing:
            await self.stop()
            await self._forget()
        self.tell("conversation")

    async def close(self) -> None:
        """Stop everything, scoring included."""
        async with self._posing:
            await self.stop()
        tasks = [*self._tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, *(seat.leave() for seat in self._seats.values()), return_exceptions=True)

    def _seat(self, column: str) -> Seat:
        if column not in self._seats:
            hint = suggestion(column, self._seats) or f"; columns: {', '.join(self._seats)}"
            raise PlayError(f"no column {column!r}{hint}")
        return self._seats[column]

    def _present(self) -> list[Posed]:
        return [posed for posed in self._posed if posed.conversation == self.conversation]

    def _check(self) -> None:
        if self._broken is not None:
            raise self._broken

    def _check_budget(self) -> None:
        meter = self.run.meter
        if not meter.admits_trial():
            meter.leave_out_trials()
            raise PlayError(meter.told())

    async def _forget(self) -> None:
        """End the present conversation, if anything was asked in it."""
        await asyncio.gather(*(seat.leave() for seat in self._seats.values()))
        if self._present():
            self.conversation += 1

    def _ask(self, seat: Seat, posed: Sequence[Posed]) -> None:
        """Ask a column these questions, one after the other, until one has no answer."""
        key = self._begun(seat, posed[0])
        if key is None:
            return
        run = self.run
        talk = seat.talk = seat.talk or Talk(run.worker, run.outbox, key.agent, key.condition)
        talk.is_stopped = False
        self._idle.clear()
        seat.asking = self._spawn(self._answer_all(seat, talk, posed, key))

    def _begun(self, seat: Seat, posed: Posed) -> TrialKey | None:
        """Begin a trial, or leave it out, if the budget does not hold it."""
        column, sample, meter = seat.column, posed.asked.id, self.run.meter
        repetition = self._times[column.id, sample] + 1
        trial = f"{column.id}/{sample}/{repetition}"
        if trial not in posed.trials:
            posed.trials.append(trial)
        if not meter.admits_trial():
            meter.leave_out_trials()
            self._answers[trial] = Answer(
                column.id, trial, repetition, "left_out", self.feed.count, problem=meter.told()
            )
            return None
        meter.begin_trial()
        self._times[column.id, sample] = repetition
        self._answers[trial] = Answer(column.id, trial, repetition, "answering", self.feed.count)
        self.run.begin_trial()
        return TrialKey(trial, column.agent, column.condition, sample, repetition)

    async def _answer_all(self, seat: Seat, talk: Talk, posed: Sequence[Posed], first: TrialKey) -> None:
        """Ask a column; when it returns, the answers are written."""
        key: TrialKey | None = first
        try:
            for each in posed:
                key = key or self._begun(seat, each)
                if key is None:
                    return
                trial = await self.run.write(await talk.ask(key, each.asked, each.texts), each.written)
                key = None
                self._note_answer(trial)
                self._spawn(self._score(trial))
                if trial.failure is not None:
                    return
                seat.answered += 1
        except Exception as error:  # which `settle` raises
            if key is not None:
                self._answers[key.id] = attrs.evolve(self._answers[key.id], state="failed", problem=str(error))
            raise
        finally:
            seat.asking = None
            if not any(other.asking for other in self._seats.values()):
                self._idle.set()
            self.tell("answer")

    def _note_answer(self, trial: Trial) -> None:
        failure = trial.failure
        state: AnswerState = "scoring"
        if failure is not None:
            state = "stopped" if failure.kind == STOPPED else "failed"
        self._answers[trial.id] = attrs.evolve(
            self._answers[trial.id],
            state=state,
            record=trial,
            cost=self.run.cost(trial),
            problem=failure.message if failure else "",
        )
        self.tell("answer")

    async def _score(self, trial: Trial) -> None:
        def keep(lines: list[ScoreLine]) -> None:
            answer = self._answers[trial.id]
            self._answers[trial.id] = attrs.evolve(answer, scores=(*answer.scores, *lines))
            self.tell("answer")

        await self.run.score(trial, keep, self._idle.wait)
        if trial.failure is None:
            answer = self._answers[trial.id]
            self._answers[trial.id] = attrs.evolve(
                answer, state="done", judging_cost=self.run.judging_cost(answer.scores)
            )
            self.tell("answer")

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(self._at_work(work))
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    async def _at_work(self, work: Coroutine[Any, Any, None]) -> None:
        with self.run.at_work():
            await work

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._broken = self._broken or error

    def tell(self, what: str) -> None:
        """Tell readers of the feed that something changed."""
        self.feed.publish(LiveEvent("play_changed", "", 0, time.time(), {"what": what}))
