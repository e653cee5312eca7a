"""A play that is served: what pages of several tabs share, and what a person did in them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress

import attrs

from keval import KevalError, Run
from keval_viewer.live import Sent
from keval_viewer.play import Column, Edit, Play, PlayedAnswer, PlayError, Question, QuestionInput
from keval_viewer.play.records import EditableCondition
from keval_viewer.play_page.answers import Row, row_of
from keval_viewer.play_page.progress import Progress
from keval_viewer.play_page.standings import Table, table_of


@attrs.frozen
class Past:
    """A run that an edit ended, with its columns and what was asked in it."""

    run: Run
    columns: tuple[Column, ...]
    questions: tuple[Question, ...]


@attrs.frozen
class Axis:
    """An agent or a condition as a switch: it is on if all of its columns are, and `mixed` if only some are."""

    kind: str
    label: str
    is_on: bool
    is_mixed: bool
    models: tuple[str, ...] = ()


@attrs.define(eq=False)
class PlaySession:
    """A play with what its page needs besides. Open it with `PlaySession.of`; all of it is for one event loop.

    `problem` is what went wrong in the background, such as a disk that is full. `past` are the runs that edits ended,
    and `originals` has each condition as it was before all edits; one that an edit added, as that which it was made of.
    """

    play: Play
    progress: Progress = attrs.field(factory=Progress, init=False)
    problem: str = attrs.field(default="", init=False)
    past: list[Past] = attrs.field(factory=list, init=False)
    originals: dict[str, EditableCondition] = attrs.field(init=False)
    _settling: asyncio.Task[None] | None = attrs.field(default=None, init=False)
    # What an edit asks again, each when the question before it is answered.
    _following: list[QuestionInput] = attrs.field(factory=list, init=False)
    _acting: asyncio.Lock = attrs.field(factory=asyncio.Lock, init=False)
    _standings: tuple[object, Table] | None = attrs.field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        self.play.feed.hearers.append(self.progress.hear)
        self.originals = {condition.label: condition for condition in self.play.conditions}

    @classmethod
    @asynccontextmanager
    async def of(cls, play: Play) -> AsyncIterator[PlaySession]:
        """Yield the session of a play; what it does in the background ends with the context."""
        session = cls(play)
        try:
            yield session
        finally:
            if session._settling is not None:
                session._settling.cancel()
                with suppress(asyncio.CancelledError):
                    await session._settling

    # What is shown.

    @property
    def present(self) -> list[Question]:
        """The questions of the present conversation, oldest first."""
        play = self.play
        return [question for question in play.questions if question.conversation == play.conversation]

    @property
    def latest(self) -> Row | None:
        """The question that was asked last in this run."""
        play = self.play
        return row_of(play.questions[-1], play.run, play.columns, self.progress) if play.questions else None

    def found(self, run: int, id: str) -> Row | None:
        """Return a question by the number of its run, from 1, and its id, or `None`."""
        play = self.play
        runs = [*self.past, Past(play.run, play.columns, play.questions)]
        of = runs[run - 1] if 0 < run <= len(runs) else None
        asked = next((each for each in of.questions if each.id == id), None) if of is not None else None
        return None if of is None or asked is None else row_of(asked, of.run, of.columns, self.progress)

    @property
    def axes(self) -> Iterator[Axis]:
        """The agents, then the conditions, as switches."""
        columns = self.play.columns
        for kind in ("agent", "condition"):
            for label in dict.fromkeys(getattr(column, kind) for column in columns):
                of = [column for column in columns if getattr(column, kind) == label]
                on = [column for column in of if column.is_on]
                wanted = [column for column in of if self._is_wanted(column, kind)]
                is_mixed = bool(on) and len(on) < len(wanted)
                models = tuple(dict.fromkeys(column.model or "" for column in of)) if kind == "agent" else ()
                yield Axis(kind, label, bool(on), is_mixed, models)

    def standings(self, against: str | None = None) -> Table:
        """Return how the columns stand. Raises PlayError: there is no such column."""
        play = self.play
        state = (play.run.path, against, play.columns, [(a.trial, len(a.scores), a.state) for a in _answers(play)])
        if self._standings is None or self._standings[0] != state:
            self._standings = (state, table_of(play.standings(against), play.columns))
        return self._standings[1]

    @property
    def answers(self) -> list[PlayedAnswer]:
        """All answers of the session, also those before edits."""
        return [*_answers(self.play), *(a for past in self.past for q in past.questions for a in q.answers)]

    # What a person does.

    async def ask(self, asked: QuestionInput) -> None:
        """Ask all columns that are on. Raises what `Play.begin` does."""
        async with self._acting:
            await self.play.begin(asked)
            self._following = []
            self._settle()

    async def ask_again(self, column: str) -> None:
        """Ask a column everything of the present conversation again. Raises what `Play.ask_again` does."""
        async with self._acting:
            await self.play.ask_again(column)
            self._settle()

    async def stop(self) -> None:
        """Stop the answers in flight and what was to follow."""
        async with self._acting:
            self._following = []
            await self.play.stop()

    async def new_conversation(self) -> None:
        """Stop all, and let all columns forget what was said."""
        async with self._acting:
            self._following = []
            await self.play.new_conversation()

    def switch(self, kind: str, label: str, *, on: bool) -> None:
        """Switch all columns of an agent or a condition on or off. Raises PlayError: there is none."""
        if kind not in ("agent", "condition"):
            raise PlayError(f"there is no switch of the kind {kind!r}")
        of = [column for column in self.play.columns if getattr(column, kind) == label]
        if not of:
            raise PlayError(f"there is no {kind} {label!r}")
        for column in of:
            if not on or self._is_wanted(column, kind):
                self.play.switch(column.id, on=on)

    def _is_wanted(self, column: Column, kind: str) -> bool:
        """Return whether a column is among those that an agent or condition has: the other of the two is on, too."""
        other = "condition" if kind == "agent" else "agent"
        beside = {getattr(each, other) for each in self.play.columns if each.is_on}
        return not beside or getattr(column, other) in beside

    async def edit(self, edit: Edit, *, again: bool = False) -> None:
        """Change what is compared; with `again`, ask the present conversation again. Raises what `Play.edit` does."""
        async with self._acting:
            play = self.play
            asked = [*map(_asked, self.present), *self._following]
            before = Past(play.run, play.columns, ())
            # Before the questions are read, so that answers in flight are kept with what they came to.
            await play.stop()
            ended = attrs.evolve(before, questions=play.questions)
            if edit.condition in self.originals and edit.name:
                self.originals.setdefault(edit.name, self.originals[edit.condition])
            await play.edit(edit)
            if ended.questions:
                self.past.append(ended)
            self._following = []
            if again and asked:
                await play.begin(asked[0])
                self._following = asked[1:]
                self._settle()

    def _settle(self) -> None:
        """Wait in the background until all is answered and scored, for what may go wrong; then ask what follows."""
        if self._settling is not None:
            # This ends the wait alone; columns go on answering.
            self._settling.cancel()
        self._settling = asyncio.create_task(self._settled())

    async def _settled(self) -> None:
        try:
            await self.play.settle()
            while self._following:
                async with self._acting:  # or else a column may be asked again at the same time
                    on = [column.is_level for column in self.play.columns if column.is_on]
                    if on and not any(on):  # what follows would begin a new conversation
                        self._following = []
                    if self._following and not self.play.is_answering:
                        await self.play.begin(self._following.pop(0))
                await self.play.settle()
        except KevalError as error:
            self.problem, self._following = str(error), []

    # What is sent.

    async def events(self, start: int) -> AsyncGenerator[Sent, None]:
        """Yield what pages are to know, from event number `start` of the play's feed on.

        `text` is a piece of what a trial's agent writes. `changed` says that the page is to be fetched again, as
        anything else has happened. An event is sent when a page that is fetched then shows it.
        """
        async for place, event, missed in self.play.feed.read(start):
            number = str(place)
            if missed:
                yield Sent("changed", {"what": "missed"}, number)
            if event.kind == "text_streamed":
                yield Sent("text", {"trial": event.trial, "text": event.data["text"]}, number)
            else:
                yield Sent("changed", {"what": event.data.get("what", event.kind)}, number)


def _answers(play: Play) -> Iterator[PlayedAnswer]:
    return (answer for question in play.questions for answer in question.answers)


def _asked(question: Question) -> QuestionInput:
    """Return what asks a question again."""
    sample = question.sample
    if question.is_chosen:
        return QuestionInput(sample=sample.id)
    withheld = set(sample.withheld)
    facts = {name: value for name, value in sample.facts.items() if name not in withheld}
    if question.turn:  # facts and metadata are of the conversation
        return QuestionInput(question.text, answer=sample.answer)
    return QuestionInput(question.text, answer=sample.answer, facts=facts, metadata=sample.metadata)
