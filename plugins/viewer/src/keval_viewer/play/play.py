"""A play: columns of agents under conditions that are asked side by side, and scored as they answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import attrs

from keval import Run
from keval.config.evaluation import DatasetFile, Evaluation
from keval.config.load import load
from keval.dataset.samples import Samples
from keval.errors import suggestion
from keval.seams.results import results_folder
from keval_analysis.findings.effects import Arm
from keval_analysis.findings.summary import ScorerScale
from keval_viewer.feed import Feed
from keval_viewer.interactive.interactive_run import InteractiveRun
from keval_viewer.play.columns import Columns
from keval_viewer.play.edits import condition_yaml, editable_conditions, edited, keep
from keval_viewer.play.records import (
    Column,
    Edit,
    EditableCondition,
    KeptSample,
    PlayError,
    Question,
    QuestionInput,
    Standings,
)


@attrs.define(eq=False)
class Play:
    """An open comparison of columns. Make one with `Play.open`, and use it from one event loop.

    `feed` has the live events of all trials of the play, and `play_changed` when something else did. What is asked and
    answered is in `run`, a run directory like any other.
    """

    _root: Path
    _evaluation: Evaluation
    _written: Evaluation
    feed: Feed = attrs.field(factory=Feed, init=False)
    _runs: list[Run] = attrs.field(factory=list, init=False)
    _columns: Columns = attrs.field(init=False)
    _closing: AsyncExitStack = attrs.field(init=False)
    _editing: asyncio.Lock = attrs.field(factory=asyncio.Lock, init=False)

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        config: str | Path | Evaluation,
        root: str | Path = "results",
        *,
        only: Iterable[str] = (),
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
        await play._begin(play._evaluation, wanted=tuple(only))
        try:
            yield play
        finally:
            await _end(play._columns, play._closing)
            play.feed.close()

    @property
    def evaluation(self) -> Evaluation:
        """What is compared, with all edits so far."""
        return self._evaluation

    @property
    def run(self) -> Run:
        """The run that is being written."""
        return self._columns.run.run

    @property
    def runs(self) -> tuple[Run, ...]:
        """All runs of the play, oldest first: each edit began a new one. One in which nothing was asked is removed."""
        return tuple(run for run in self._runs if run.path.exists())

    @property
    def columns(self) -> tuple[Column, ...]:
        """Every agent under every condition, in the order of the config."""
        return self._columns.all

    @property
    def questions(self) -> tuple[Question, ...]:
        """What was asked in this run so far, oldest first, with the answers as they are now."""
        return self._columns.questions

    @property
    def conversation(self) -> int:
        """The number of the present conversation, from 1."""
        return self._columns.conversation

    @property
    def samples(self) -> Samples:
        """The dataset's samples, which can be asked; empty if the config has no dataset."""
        return self._columns.run.dataset

    @property
    def conditions(self) -> tuple[EditableCondition, ...]:
        """What can be edited of each condition."""
        return editable_conditions(self._evaluation, self._columns.run.tools)

    @property
    def is_answering(self) -> bool:
        """Whether any column is answering; the next question waits for that, but not for scores."""
        return self._columns.is_answering

    async def begin(self, asked: QuestionInput) -> Question:
        """Ask all columns that are on and level, at once, and return when they have begun.

        The facts of the question are looked up once, before any column is asked. A question that is no follow-up begins
        a new conversation: the first one, a sample of the dataset, and one after which no column could go on.

        Raises:
            PlayError: columns are still answering, none is on, there is no such sample, or the budget is used up.
            PreflightError: a hook plugin has no facts about the question.
            RunError: the run cannot be written.
        """
        return self._columns.question(await self._columns.begin(asked))

    async def ask(self, asked: str | QuestionInput) -> Question:
        """Ask as `begin` does, and return when all answers are there and scored."""
        posed = await self._columns.begin(QuestionInput(asked) if isinstance(asked, str) else asked)
        await self._columns.settle()
        return self._columns.question(posed)

    async def ask_again(self, column: str) -> None:
        """Ask one column everything of the present conversation, from its first question, in a new conversation.

        Its answers are further repetitions of the same samples. Returns when it has begun. Raises what `begin` does.
        """
        await self._columns.ask_again(column)

    async def settle(self) -> None:
        """Wait until all columns have answered and all answers are scored.

        Raises:
            RunError: something could not be written.
        """
        await self._columns.settle()

    async def stop(self, column: str | None = None) -> None:
        """Stop the answers in flight, or that of one column, and return when that is done.

        Each becomes a failure of the kind `stopped`, which keeps what the agent had said. Its column is not level.
        """
        await self._columns.stop(column)

    async def new_conversation(self) -> None:
        """Stop what is in flight, and let all columns forget what was said."""
        await self._columns.new_conversation()

    def switch(self, column: str, *, on: bool) -> None:
        """Switch a column on or off; an answer in flight goes on. Raises PlayError: there is no such column."""
        self._columns.switch(column, on=on)

    async def edit(self, edit: Edit) -> None:
        """Change what is compared: what is in flight is stopped, the run ends, and a new one begins.

        If the edited config cannot be brought up, the play goes on with the one before.

        Raises:
            ConfigError: the edit is wrong, such as a tool that the condition does not have.
            PreflightError: a model or a server cannot be reached.
        """
        async with self._editing:
            changed = edited(self._evaluation, edit, self._columns.run.tools)
            columns, closing = self._columns, self._closing
            await self._begin(changed, after=columns.run)
            for column in columns.all:
                # An edit may have added columns, which are on.
                self._columns.switch(column.id, on=column.is_on)
            await _end(columns, closing)
        self._columns.tell("edit")

    def standings(self, against: str | None = None) -> Standings:
        """Return how the columns stand, and how each differs from the column `against`, by default the first one on.

        Raises PlayError: there is no such column.
        """
        if against is not None:
            reference: Column | None = self._columns.column(against)
        else:
            reference = next((column for column in self.columns if column.is_on), None)
        run = self._columns.run
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
        """Append a question, by its id, to a dataset: a file of JSON lines or YAML, by default the config's.

        It is written with what was asked before it, its golden answer (or `answer`), the facts that it was given, and
        its metadata, under an id that the file does not have yet. Facts that hook plugins `looked_up` are left out
        unless they are asked for, as every run looks them up anew. Comments of the file stay.

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

    def condition_yaml(self, condition: str, name: str | None = None) -> str:
        """Return a condition, by another `name` if one is given, as YAML to paste into the config.

        The contexts that it needs and the config does not have are there, too. Raises ConfigError: there is no such
        condition, or the config with it is wrong.
        """
        return condition_yaml(self._evaluation, condition, self._written, name)

    async def _begin(
        self, evaluation: Evaluation, wanted: Collection[str] = (), after: InteractiveRun | None = None
    ) -> None:
        closing = AsyncExitStack()
        try:
            run = await closing.enter_async_context(InteractiveRun.open(evaluation, self._root, self.feed, after))
            columns = Columns(run, self.feed)
            # First all names, so that one which no column has is told before anything is switched off.
            for column in wanted:
                columns.switch(column, on=True)
            for each in columns.all if wanted else ():
                columns.switch(each.id, on=each.id in wanted)
        # The stack outlives this call, so no `with` closes it.
        except BaseException:
            await closing.aclose()
            raise
        self._evaluation, self._columns, self._closing = evaluation, columns, closing
        self._runs.append(run.run)


async def _end(columns: Columns, closing: AsyncExitStack) -> None:
    await columns.close()
    await closing.aclose()
