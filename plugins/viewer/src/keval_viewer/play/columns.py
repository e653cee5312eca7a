"""A column of a play as it stands in the present conversation, and a question that columns are asked."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Container, Sequence

import attrs

from keval import Sample
from keval_viewer.interactive.interactive_run import InteractiveRun
from keval_viewer.interactive.session import TrialConversation
from keval_viewer.play.records import Column, PlayError, QuestionInput


@attrs.define(eq=False)
class ColumnState:
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


def typed_sample(asked: QuestionInput, present: Sequence[PosedQuestion], taken: Container[str]) -> Sample:
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


def free_id(name: str, taken: Container[str]) -> str:
    """Return an id that is not taken: this one, or else with the first number behind it that makes it another."""
    others = (f"{name}-{number}" for number in itertools.count(2))
    return next(each for each in itertools.chain([name], others) if each not in taken)


def columns_of(run: InteractiveRun) -> dict[str, ColumnState]:
    """Return the columns of a run by their ids, in the order of the config."""
    found = {}
    for agent, about in run.manifest.agents.items():
        remembers = run.is_conversational(agent)
        for condition, entry in run.manifest.conditions.items():
            tools = tuple(tool for server in entry.servers.values() for tool in server.tools)
            column = Column(agent, condition, about.model, about.simulated, tools, remembers=remembers)
            found[column.id] = ColumnState(column)
    return found
