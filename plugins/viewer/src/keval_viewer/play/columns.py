"""The columns of one run of a play: what they are asked, and what they answer."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections import Counter
from collections.abc import Callable, Container, Coroutine, Sequence
from typing import Any

import attrs

from keval import Sample, ScoreLine, Trial
from keval.errors import suggestion
from keval.records.trial import TrialKey
from keval.seams.live_events import LiveEvent
from keval_viewer.feed import Feed
from keval_viewer.interactive.interactive_run import InteractiveRun
from keval_viewer.interactive.session import STOPPED, TrialConversation
from keval_viewer.play.records import AnswerState, Column, PlayedAnswer, PlayError, Question, QuestionInput


@attrs.define(eq=False)
class Columns:
    """Asks the columns of one run, and keeps what was asked and answered."""

    run: InteractiveRun
    feed: Feed
    conversation: int = attrs.field(default=1, init=False)
    _states: dict[str, _ColumnState] = attrs.field(init=False)
    _posed: list[PosedQuestion] = attrs.field(factory=list, init=False)
    _answers: dict[str, PlayedAnswer] = attrs.field(factory=dict, init=False)
    _times: Counter[tuple[str, str]] = attrs.field(factory=Counter, init=False)
    _tasks: set[asyncio.Task[None]] = attrs.field(factory=set, init=False)
    _posing: asyncio.Lock = attrs.field(factory=asyncio.Lock, init=False)
    _idle: asyncio.Event = attrs.field(factory=asyncio.Event, init=False)
    _broken: BaseException | None = attrs.field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        self._states, manifest = {}, self.run.manifest
        for agent, about in manifest.agents.items():
            remembers = self.run.is_conversational(agent)
            for condition, entry in manifest.conditions.items():
                tools = tuple(tool for server in entry.servers.values() for tool in server.tools)
                column = Column(agent, condition, about.model, about.simulated, tools, remembers=remembers)
                self._states[column.id] = _ColumnState(column)
        self._idle.set()

    @property
    def all(self) -> tuple[Column, ...]:
        """The columns as they are now."""
        asked = len(self._present())
        return tuple(state.now(asked) for state in self._states.values())

    def column(self, column: str) -> Column:
        """Return a column by its id. Raises PlayError: there is none."""
        return self._state(column).column

    @property
    def questions(self) -> tuple[Question, ...]:
        """What was asked so far, with the answers as they are now."""
        return tuple(map(self.question, self._posed))

    @property
    def is_answering(self) -> bool:
        """Whether a question is being asked."""
        return self._posing.locked() or any(state.asking for state in self._states.values())

    def question(self, posed: PosedQuestion) -> Question:
        """Return a question with the answers as they are now."""
        answers = tuple(self._answers[trial] for trial in posed.trials)
        return Question(posed.written, posed.conversation, posed.turn, posed.is_chosen, answers)

    def switch(self, column: str, *, on: bool) -> None:
        """Switch a column on or off. Raises PlayError: there is no such column."""
        state = self._state(column)
        state.column = attrs.evolve(state.column, is_on=on)
        self.tell("columns")

    async def begin(self, asked: QuestionInput) -> PosedQuestion:
        """Ask all columns that are on and level. Raises PlayError, PreflightError, RunError."""
        self._check()
        if self.is_answering:
            raise PlayError("the last question is still being answered; wait, or stop it")
        on = [state for state in self._states.values() if state.column.is_on]
        if not on:
            raise PlayError("no column is on; switch one on")
        async with self._posing:
            present = self._present()
            asked_now = [state for state in on if state.answered == len(present)]
            if present and (asked.sample is not None or not asked_now):
                await self._forget()
                present, asked_now = [], on
            self._check_budget()
            posed = await self._pose(asked, present)
            self._posed.append(posed)
            for state in asked_now:
                self._ask(state, [posed])
        self.tell("question")
        return posed

    async def ask_again(self, column: str) -> None:
        """Ask a column everything of the present conversation. Raises PlayError, RunError."""
        self._check()
        state, present = self._state(column), self._present()
        if state.asking is not None or self._posing.locked():
            raise PlayError(f"{column} is still answering; wait, or stop it")
        if not present:
            raise PlayError("nothing was asked in this conversation yet")
        self._check_budget()
        async with self._posing:
            await state.leave()
            self._ask(state, present)
        self.tell("question")

    async def settle(self) -> None:
        """Wait until everything is answered and scored. Raises what went wrong, such as RunError."""
        while self._tasks:
            await asyncio.wait(self._tasks)
        self._check()

    async def stop(self, column: str | None = None) -> None:
        """Stop the answers in flight, or that of one column. Raises PlayError: there is no such column."""
        states = [*self._states.values()] if column is None else [self._state(column)]
        asking = [state.asking for state in states if state.asking is not None]
        for state in states:
            if state.asking is not None and state.talk is not None:
                state.talk.stop()
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
        await asyncio.gather(*tasks, *(state.leave() for state in self._states.values()), return_exceptions=True)

    def _state(self, column: str) -> _ColumnState:
        if column not in self._states:
            hint = suggestion(column, self._states) or f"; columns: {', '.join(self._states)}"
            raise PlayError(f"no column {column!r}{hint}")
        return self._states[column]

    def _present(self) -> list[PosedQuestion]:
        return [posed for posed in self._posed if posed.conversation == self.conversation]

    def _check(self) -> None:
        if self._broken is not None:
            raise self._broken

    def _check_budget(self) -> None:
        if refusal := self.run.budget_refusal():
            raise PlayError(refusal)

    async def _forget(self) -> None:
        """End the present conversation, if anything was asked in it."""
        await asyncio.gather(*(state.leave() for state in self._states.values()))
        if self._present():
            self.conversation += 1

    async def _pose(self, asked: QuestionInput, present: Sequence[PosedQuestion]) -> PosedQuestion:
        """Make a sample of what is asked after the questions of the `present` conversation, and write it.

        A sample of the dataset that was asked before keeps the facts that it had.

        Raises:
            PlayError: there is no such sample, or no text.
            PreflightError: a hook plugin has no facts about it.
            RunError: it cannot be written.
        """
        dataset, is_chosen = self.run.dataset, asked.sample is not None
        if asked.sample is not None:
            if asked.sample not in dataset.ids:
                hint = suggestion(asked.sample, dataset.ids) or f"; the dataset has {len(dataset)} samples"
                raise PlayError(f"no sample has the id {asked.sample!r}{hint}")
            again = next((each for each in self._posed if each.is_chosen and each.given.id == asked.sample), None)
            if again is not None:
                return attrs.evolve(again, conversation=self.conversation, turn=0, trials=[])
            given = dataset.named(asked.sample)
        else:
            given = self._typed(asked, present, {*dataset.ids, *(each.given.id for each in self._posed)})
        texts = given.asked if is_chosen else (asked.text,)
        prepared = await self.run.prepared(given)
        written = self.run.add_sample(prepared)
        return PosedQuestion(given, prepared, written, texts, self.conversation, len(present), is_chosen)

    def _typed(self, asked: QuestionInput, present: Sequence[PosedQuestion], taken: Container[str]) -> Sample:
        """Return what a person typed as a sample: a new one, or a follow-up to the present conversation."""
        if not asked.text.strip():
            raise PlayError("there is no question; type one, or choose a sample")
        answer = asked.answer if asked.answer and asked.answer.strip() else None
        if not present:
            first_id = next(name for number in itertools.count(1) if (name := f"q{number}") not in taken)
            return Sample(first_id, asked.text, answer, facts=asked.facts, metadata=asked.metadata)
        first, last = present[0].given, present[-1].given
        return attrs.evolve(
            last,
            # Taken if a sample of the dataset began two conversations.
            id=free_id(f"{first.id}.{len(present) + 1}", taken),
            answer=answer,
            turns=(*last.turns, asked.text),
            facts={**last.facts, **asked.facts},
            metadata={**last.metadata, **asked.metadata},
            expect=(),
        )

    def _ask(self, state: _ColumnState, posed: Sequence[PosedQuestion]) -> None:
        """Ask a column these questions, one after the other, until one has no answer."""
        key = self._begun(state, posed[0])
        if key is None:
            return
        run = self.run
        talk = state.talk = state.talk or run.converse(key.agent, key.condition)
        # A stop holds for the turn that it stopped.
        talk.is_stopped = False
        self._idle.clear()
        state.asking = self._spawn(self._answer_all, state, talk, posed, key)

    def _begun(self, state: _ColumnState, posed: PosedQuestion) -> TrialKey | None:
        """Begin a trial, or leave it out, if the budget does not hold it."""
        column, sample = state.column, posed.asked.id
        repetition = self._times[column.id, sample] + 1
        trial = f"{column.id}/{sample}/{repetition}"
        # A trial that the budget left out has the same id when it is asked later.
        if trial not in posed.trials:
            posed.trials.append(trial)
        if refusal := self.run.budget_refusal(column.agent, column.condition):
            self._answers[trial] = PlayedAnswer(
                column.id, trial, repetition, "left_out", self.feed.count, problem=refusal
            )
            return None
        self._times[column.id, sample] = repetition
        self._answers[trial] = PlayedAnswer(column.id, trial, repetition, "answering", self.feed.count)
        self.run.begin_trial(column.agent, column.condition)
        return TrialKey(trial, column.agent, column.condition, sample, repetition)

    async def _answer_all(
        self, state: _ColumnState, talk: TrialConversation, posed: Sequence[PosedQuestion], first: TrialKey
    ) -> None:
        """Ask a column; when it returns, the answers are written."""
        key: TrialKey | None = first
        try:
            for each in posed:
                key = key or self._begun(state, each)
                if key is None:
                    return
                trial = await self.run.write(await talk.ask(key, each.asked, each.texts), each.written)
                # Written: what goes wrong from here on is not this trial's.
                key = None
                self._note_answer(trial)
                self._spawn(self._score, trial)
                if trial.failure is not None:
                    return
                state.answered += 1
        except Exception as error:  # which `settle` raises
            if key is not None:
                self._answers[key.id] = attrs.evolve(self._answers[key.id], state="failed", problem=str(error))
            raise
        finally:
            state.asking = None
            if not any(other.asking for other in self._states.values()):
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

    def _spawn(self, work: Callable[..., Coroutine[Any, Any, None]], *of: Any) -> asyncio.Task[None]:
        task = asyncio.create_task(self._at_work(work, *of))
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    async def _at_work(self, work: Callable[..., Coroutine[Any, Any, None]], *of: Any) -> None:
        with self.run.at_work():
            await work(*of)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._broken = self._broken or error

    def tell(self, what: str) -> None:
        """Tell readers of the feed that something changed."""
        self.feed.publish(LiveEvent("play_changed", "", 0, time.time(), {"what": what}))


@attrs.define(eq=False)
class _ColumnState:
    """A column: what it was asked in the present conversation, how many questions of it it has answered.

    `asking` is what asks it just now.
    """

    column: Column
    talk: TrialConversation | None = None
    answered: int = 0
    asking: asyncio.Task[None] | None = None

    def now(self, asked: int) -> Column:
        """Return the column as it is after so many questions of the present conversation."""
        is_answering = self.asking is not None
        return attrs.evolve(self.column, is_answering=is_answering, is_level=is_answering or self.answered == asked)

    async def leave(self) -> None:
        """End its side of the conversation."""
        talk, self.talk, self.answered = self.talk, None, 0
        if talk is not None:
            await talk.close()


@attrs.define(eq=False)
class PosedQuestion:
    """A question that is asked.

    `given` is its sample as the person gave it, `asked` has the facts of hook plugins, too, and `written` is that as it
    stands in the run, without secrets. `texts` are what is new in it: the last ones of `asked.asked`. `trials` are the
    ids of its trials.
    """

    given: Sample
    asked: Sample
    written: Sample
    texts: tuple[str, ...]
    conversation: int
    turn: int
    is_chosen: bool = False
    trials: list[str] = attrs.field(factory=list)


def free_id(name: str, taken: Container[str]) -> str:
    """Return an id that is not taken: this one, or else with the first number behind it that makes it another."""
    others = (f"{name}-{number}" for number in itertools.count(2))
    return next(each for each in itertools.chain([name], others) if each not in taken)
