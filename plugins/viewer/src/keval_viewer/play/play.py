"""A play: columns of agents under conditions that are asked side by side, and scored as they answer."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import attrs

from keval import Run, ScoreLine, Trial
from keval.config.evaluation import DatasetFile, Evaluation
from keval.config.load import load
from keval.dataset.samples import Samples
from keval.errors import suggestion
from keval.records.trial import TrialKey
from keval.seams.live_events import LiveEvent
from keval.seams.results import results_folder
from keval_analysis.findings.effects import Arm
from keval_analysis.findings.summary import ScorerScale
from keval_viewer.feed import Feed
from keval_viewer.interactive.interactive_run import InteractiveRun
from keval_viewer.interactive.session import STOPPED, TrialConversation
from keval_viewer.play.columns import ColumnState, PosedQuestion, columns_of, typed_sample
from keval_viewer.play.edits import condition_yaml, editable_conditions, edited, keep
from keval_viewer.play.records import (
    AnswerState,
    Column,
    Edit,
    EditableCondition,
    KeptSample,
    PlayedAnswer,
    PlayError,
    Question,
    QuestionInput,
    Standings,
)


@attrs.define(eq=False)
class Play:
    """An open comparison of columns. Make one with `Play.open`, and use it from one event loop.

    `feed` has the live events of all trials of the play, and `play_changed` when something else did. `conversation` is
    the number of the present one, from 1. What is asked and answered is in `run`, a run directory like any other.
    """

    _root: Path
    _evaluation: Evaluation
    _written: Evaluation
    feed: Feed = attrs.field(factory=Feed, init=False)
    conversation: int = attrs.field(default=1, init=False)
    _runs: list[Run] = attrs.field(factory=list, init=False)
    _active: InteractiveRun = attrs.field(init=False)
    _closing: AsyncExitStack = attrs.field(init=False)
    _states: dict[str, ColumnState] = attrs.field(factory=dict, init=False)
    _posed: list[PosedQuestion] = attrs.field(factory=list, init=False)
    _answers: dict[str, PlayedAnswer] = attrs.field(factory=dict, init=False)
    _times: Counter[tuple[str, str]] = attrs.field(factory=Counter, init=False)
    _tasks: set[asyncio.Task[None]] = attrs.field(factory=set, init=False)
    _posing: asyncio.Lock = attrs.field(factory=asyncio.Lock, init=False)
    _editing: asyncio.Lock = attrs.field(factory=asyncio.Lock, init=False)
    _idle: asyncio.Event = attrs.field(factory=asyncio.Event, init=False)
    _broken: BaseException | None = attrs.field(default=None, init=False)

    @classmethod
    @asynccontextmanager
    async def open(
        cls, config: str | Path | Evaluation, root: str | Path = "results", *, only: Iterable[str] = ()
    ) -> AsyncIterator[Play]:
        """Bring up agents, servers, metrics and judges, and make a run directory under `root`.

        `only` names the columns that are on at first (`agent/condition`); by default all are. The config's dataset may
        be missing.

        Raises:
            ConfigError: the config is wrong.
            PlayError: there is no such column.
            PreflightError: a model or a server cannot be reached, or the run directory cannot be made.
        """
        chosen = config if isinstance(config, Evaluation) else load(Path(config))
        play = cls(results_folder(root), chosen, chosen)
        await play._begin(chosen, {*only})
        try:
            yield play
        finally:
            async with play._posing:
                await play._end()
            play.feed.close()

    @property
    def evaluation(self) -> Evaluation:
        """What is compared, with all edits so far."""
        return self._evaluation

    @property
    def run(self) -> Run:
        """The run that is being written."""
        return self._active.run

    @property
    def runs(self) -> tuple[Run, ...]:
        """All runs of the play, oldest first: each edit began a new one. One in which nothing was asked is removed."""
        return tuple(run for run in self._runs if run.path.exists())

    @property
    def columns(self) -> tuple[Column, ...]:
        """Every agent under every condition, in the order of the config, as it is now."""
        asked = len(self._present())
        return tuple(state.now(asked) for state in self._states.values())

    @property
    def questions(self) -> tuple[Question, ...]:
        """What was asked in this run so far, oldest first, with the answers as they are now."""
        return tuple(map(self._question, self._posed))

    @property
    def samples(self) -> Samples:
        """The dataset's samples, which can be asked; empty if the config has no dataset."""
        return self._active.dataset

    @property
    def conditions(self) -> tuple[EditableCondition, ...]:
        """What can be edited of each condition."""
        return editable_conditions(self._evaluation, self._active.tools)

    @property
    def is_answering(self) -> bool:
        """Whether any column is answering; the next question waits for that, but not for scores."""
        return self._posing.locked() or any(state.asking for state in self._states.values())

    async def begin(self, asked: QuestionInput) -> Question:
        """Ask all columns that are on and level, at once, and return when they have begun.

        The facts of the question are looked up once, before any column is asked. A question that is no follow-up begins
        a new conversation: the first one, a sample of the dataset, and one after which no column could go on.

        Raises:
            PlayError: columns are still answering, none is on, there is no such sample, or the budget is used up.
            PreflightError: a hook plugin has no facts about the question.
            RunError: the run cannot be written.
        """
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
        return self._question(posed)

    async def ask(self, asked: str | QuestionInput) -> Question:
        """Ask as `begin` does, and return when all answers are there and scored."""
        await self.begin(QuestionInput(asked) if isinstance(asked, str) else asked)
        posed = self._posed[-1]
        await self.settle()
        return self._question(posed)

    async def ask_again(self, column: str) -> None:
        """Ask one column everything of the present conversation, from its first question, in a new conversation.

        Its answers are further repetitions of the same samples. Returns when it has begun. Raises what `begin` does.
        """
        self._check()
        state, present = _of(self._states, column), self._present()
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
        """Wait until all columns have answered and all answers are scored.

        Raises:
            RunError: something could not be written.
        """
        while self._tasks:
            await asyncio.wait(self._tasks)
        self._check()

    async def stop(self, column: str | None = None) -> None:
        """Stop the answers in flight, or that of one column, and return when that is done.

        Each becomes a failure of the kind `stopped`, which keeps what the agent had said. Its column is not level.
        """
        states = [*self._states.values()] if column is None else [_of(self._states, column)]
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

    def switch(self, column: str, *, on: bool) -> None:
        """Switch a column on or off; an answer in flight goes on. Raises PlayError: there is no such column."""
        state = _of(self._states, column)
        state.column = attrs.evolve(state.column, is_on=on)
        self.tell("columns")

    async def edit(self, edit: Edit) -> None:
        """Change what is compared: what is in flight is stopped, the run ends, and a new one begins.

        If the edited config cannot be brought up, the play goes on with the one before.

        Raises:
            ConfigError: the edit is wrong, such as a tool that the condition does not have.
            PreflightError: a model or a server cannot be reached.
        """
        async with self._editing:
            changed = edited(self._evaluation, edit, self._active.tools)
            await self._begin(changed, after=self._active)
        self.tell("edit")

    def standings(self, against: str | None = None) -> Standings:
        """Return how the columns stand, and how each differs from the column `against`, by default the first one on.

        Raises PlayError: there is no such column.
        """
        if against is not None:
            reference: Column | None = _of(self._states, against).column
        else:
            reference = next((column for column in self.columns if column.is_on), None)
        run = self._active
        manifest = run.manifest
        arm = None if reference is None else Arm(reference.agent, reference.condition, manifest.run)
        return Standings(
            len(self.questions),
            None if reference is None else reference.id,
            tuple(ScorerScale(entry.metric, entry.judge, entry.scale) for entry in manifest.scorers),
            run.arm_scores(),
            run.arm_trials(),
            # Columns that were asked nothing are left out of the differences.
            () if arm is None else run.differences(arm),
        )

    def keep_sample(
        self, question: str, path: str | Path | None = None, *, answer: str | None = None, looked_up: bool = False
    ) -> KeptSample:
        """Append a question, by its id, to a dataset: a file of JSON lines, by default the config's.

        It is written with what was asked before it, its golden answer (or `answer`), the facts that it was given, and
        its metadata, under an id that the file does not have yet. Facts that hook plugins `looked_up` are left out
        unless they are asked for, as every run looks them up anew.

        Raises:
            PlayError: there is no such question, or the file is of another format.
            ConfigError: the file is no dataset.
            RunError: the file cannot be written.
        """
        found = next((each for each in self.questions if each.id == question), None)
        if found is None:
            hint = suggestion(question, [each.id for each in self.questions]) or "; ask it first"
            raise PlayError(f"no question {question!r} was asked in this run{hint}")
        file = self._evaluation.dataset
        if path is not None:
            named = Path(path)
            file = DatasetFile(named) if file is None else attrs.evolve(file, path=named, type=None, options={})
        if file is None:
            raise PlayError("the config has no dataset; name a file to keep questions in")
        sample = found.sample
        facts = {name: fact for name, fact in sample.facts.items() if looked_up or name not in sample.withheld}
        return keep(attrs.evolve(sample, facts=facts, answer=sample.answer if answer is None else answer), file)

    def condition_yaml(self, condition: str) -> str:
        """Return a condition as YAML to paste into the config.

        The contexts that it needs and the config does not have are there, too. Raises ConfigError: there is no such
        condition, or the config with it is wrong.
        """
        return condition_yaml(self._evaluation, condition, self._written)

    async def _begin(
        self, evaluation: Evaluation, wanted: Collection[str] = (), after: InteractiveRun | None = None
    ) -> None:
        """Bring up a run, end the one before, and go on with the new one, of whose columns those `wanted` are on."""
        closing = AsyncExitStack()
        try:
            run = await closing.enter_async_context(InteractiveRun.open(evaluation, self._root, self.feed, after))
            states = columns_of(run)
            for column in wanted:
                _of(states, column)
        # The stack outlives this call, so no `with` closes it.
        except BaseException:
            await closing.aclose()
            raise
        async with self._posing:
            try:
                if after is not None:
                    await self._end()
            finally:
                for name, state in states.items():
                    # An edit may have added columns, which are on.
                    before = self._states.get(name, state)
                    is_on = name in wanted if wanted else before.column.is_on
                    state.column = attrs.evolve(state.column, is_on=is_on)
                self._evaluation, self._active, self._closing, self._states = evaluation, run, closing, states
                self._posed, self._answers, self._times, self._broken = [], {}, Counter(), None
                self.conversation = 1
                self._idle.set()
                self._runs.append(run.run)

    async def _end(self) -> None:
        """Stop everything, scoring included, and end the run."""
        await self.stop()
        tasks = [*self._tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, *(state.leave() for state in self._states.values()), return_exceptions=True)
        await self._closing.aclose()

    def _question(self, posed: PosedQuestion) -> Question:
        """Return a question with the answers as they are now."""
        answers = tuple(self._answers[trial] for trial in posed.trials)
        return Question(posed.written, posed.conversation, posed.turn, posed.is_chosen, answers)

    def _present(self) -> list[PosedQuestion]:
        return [posed for posed in self._posed if posed.conversation == self.conversation]

    def _check(self) -> None:
        if self._broken is not None:
            raise self._broken

    def _check_budget(self) -> None:
        if refusal := self._active.budget_refusal():
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
        dataset, is_chosen = self._active.dataset, asked.sample is not None
        if asked.sample is not None:
            if asked.sample not in dataset.ids:
                hint = suggestion(asked.sample, dataset.ids) or f"; the dataset has {len(dataset)} samples"
                raise PlayError(f"no sample has the id {asked.sample!r}{hint}")
            again = next((each for each in self._posed if each.is_chosen and each.given.id == asked.sample), None)
            if again is not None:
                return attrs.evolve(again, conversation=self.conversation, turn=0, trials=[])
            given = dataset.named(asked.sample)
        else:
            given = typed_sample(asked, present, {*dataset.ids, *(each.given.id for each in self._posed)})
        texts = given.asked if is_chosen else (asked.text,)
        prepared = await self._active.prepared(given)
        written = self._active.add_sample(prepared)
        return PosedQuestion(given, prepared, written, texts, self.conversation, len(present), is_chosen)

    def _ask(self, state: ColumnState, posed: Sequence[PosedQuestion]) -> None:
        """Ask a column these questions, one after the other, until one has no answer."""
        key = self._begun(state, posed[0])
        if key is None:
            return
        run = self._active
        talk = state.talk = state.talk or run.converse(key.agent, key.condition)
        # A stop holds for the turn that it stopped.
        talk.is_stopped = False
        self._idle.clear()
        state.asking = self._spawn(self._answer_all, state, talk, posed, key)

    def _begun(self, state: ColumnState, posed: PosedQuestion) -> TrialKey | None:
        """Begin a trial, or leave it out, if the budget does not hold it."""
        column, sample = state.column, posed.asked.id
        repetition = self._times[column.id, sample] + 1
        trial = f"{column.id}/{sample}/{repetition}"
        # A trial that the budget left out has the same id when it is asked later.
        if trial not in posed.trials:
            posed.trials.append(trial)
        if refusal := self._active.budget_refusal(column.agent, column.condition):
            self._answers[trial] = PlayedAnswer(
                column.id, trial, repetition, "left_out", self.feed.count, problem=refusal
            )
            return None
        self._times[column.id, sample] = repetition
        self._answers[trial] = PlayedAnswer(column.id, trial, repetition, "answering", self.feed.count)
        self._active.begin_trial(column.agent, column.condition)
        return TrialKey(trial, column.agent, column.condition, sample, repetition)

    async def _answer_all(
        self, state: ColumnState, talk: TrialConversation, posed: Sequence[PosedQuestion], first: TrialKey
    ) -> None:
        """Ask a column; when it returns, the answers are written."""
        key: TrialKey | None = first
        try:
            for each in posed:
                key = key or self._begun(state, each)
                if key is None:
                    return
                trial = await self._active.write(await talk.ask(key, each.asked, each.texts), each.written)
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
            cost=self._active.cost(trial),
            problem=failure.message if failure else "",
        )
        self.tell("answer")

    async def _score(self, trial: Trial) -> None:
        def keep(lines: list[ScoreLine]) -> None:
            answer = self._answers[trial.id]
            self._answers[trial.id] = attrs.evolve(answer, scores=(*answer.scores, *lines))
            self.tell("answer")

        await self._active.score(trial, keep, self._idle.wait)
        if trial.failure is None:
            answer = self._answers[trial.id]
            self._answers[trial.id] = attrs.evolve(
                answer, state="done", judging_cost=self._active.judging_cost(answer.scores)
            )
            self.tell("answer")

    def _spawn(self, work: Callable[..., Coroutine[Any, Any, None]], *of: Any) -> asyncio.Task[None]:
        task = asyncio.create_task(self._at_work(work, *of))
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    async def _at_work(self, work: Callable[..., Coroutine[Any, Any, None]], *of: Any) -> None:
        with self._active.at_work():
            await work(*of)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._broken = self._broken or error

    def tell(self, what: str) -> None:
        """Tell readers of the feed that something changed."""
        self.feed.publish(LiveEvent("play_changed", "", 0, time.time(), {"what": what}))


def _of(states: dict[str, ColumnState], column: str) -> ColumnState:
    """Return a column by its id. Raises PlayError: there is none."""
    if column not in states:
        hint = suggestion(column, states) or f"; columns: {', '.join(states)}"
        raise PlayError(f"no column {column!r}{hint}")
    return states[column]
