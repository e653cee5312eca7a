"""The state of one column of a play: what it was asked in the present conversation, and what asks it just now."""

from __future__ import annotations

import asyncio

import attrs

from keval.play.records import Column
from keval.run.interactive import InteractiveRun
from keval.run.trial_conversation import TrialConversation


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


def column_states(run: InteractiveRun) -> dict[str, ColumnState]:
    """Return the state of every agent under every condition of a run, by column."""
    manifest, found = run.manifest, dict[str, ColumnState]()
    for agent, about in manifest.agents.items():
        remembers = run.is_conversational(agent)
        for condition, entry in manifest.conditions.items():
            tools = tuple(tool for server in entry.servers.values() for tool in server.tools)
            column = Column(agent, condition, about.model, about.simulated, tools, remembers=remembers)
            found[column.id] = ColumnState(column)
    return found
