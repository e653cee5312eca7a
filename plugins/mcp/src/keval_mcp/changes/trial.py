"""The calls of one attempt at a trial, on their way through the interventions to the server and back."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import attrs

from keval.plugin import FixedResult, Intervention, OtherResults, TrialInfo
from keval_mcp.changes.faults import FAULT, FaultDraw
from keval_mcp.changes.offering import Definition
from keval_mcp.changes.placebo import Placebo, empty, fixed
from keval_mcp.changes.words import Words
from keval_mcp.passage.inputs import is_input_required

__all__ = ["CallOutcome", "Send", "TrialChanges"]

Result: TypeAlias = Mapping[str, Any]
"""The result of a call as MCP writes it (`CallToolResult`)."""
Arguments: TypeAlias = Mapping[str, Any] | None
"""The arguments of a call; `None` if it has none."""
Send: TypeAlias = Callable[[str, Arguments], Awaitable[Result]]
"""Calls a tool of the server by its own name, once."""


@attrs.frozen
class CallOutcome:
    """What an agent gets for a call.

    `tool` is the server's name of the tool, and `sent` says whether the server got the call. `error_kind` is `injected`
    where an intervention made it fail. `changed` says what became of the result: `scrambled`, `shuffled`, `empty` or
    `fixed`.
    """

    result: Result
    tool: str
    sent: bool = True
    error_kind: Literal["injected"] | None = None
    changed: str | None = None


@attrs.define(eq=False)
class TrialChanges:
    """Leads the calls of one attempt; made by `Changes.trial`.

    `names` maps what is offered to the server's own names; `None` if nothing is changed. `tools` are the server's
    definitions by name, and `offered` those that agents get.
    """

    interventions: Sequence[Intervention]
    names: Mapping[str, str] | None
    tools: Mapping[str, Definition]
    offered: Sequence[Definition]
    seed: int
    info: TrialInfo | None
    others: OtherResults | None = None
    _faults: dict[int, FaultDraw] = attrs.field(factory=dict, init=False)
    _placebos: dict[int, Placebo] = attrs.field(factory=dict, init=False)
    _made: Counter[str] = attrs.field(factory=Counter, init=False)

    def __attrs_post_init__(self) -> None:
        for number, change in enumerate(self.interventions):
            if change.faults is not None:
                self._faults[number] = FaultDraw(change.faults, self.info)
            if change.results in ("scrambled", "shuffled"):
                self._placebos[number] = Placebo(self._words(number))

    def server_name(self, name: str) -> str | None:
        """Return the server's name of a tool that is offered; `None` for a tool that is not."""
        return name if self.names is None else self.names.get(name)

    async def call(self, name: str, arguments: Arguments, send: Send) -> CallOutcome:
        """Make a call of the agent, if no fault hits it, and return what the agent gets. `send` may raise anything."""
        tool = self.server_name(name)
        if tool is None:  # left out, or never there: the server does not hear of it
            return CallOutcome(_error(f"Unknown tool: {name}"), name, sent=False)
        self._made[tool] += 1
        number = self._made[tool]
        for index in reversed(range(len(self.interventions))):
            if (draw := self._faults.get(index)) is not None:
                failing = draw.fails(tool, arguments or {})
                await asyncio.sleep(draw.faults.delay_seconds)
                if failing:
                    return CallOutcome(_error(FAULT), tool, sent=False, error_kind="injected")
            if index in self._placebos and arguments:
                arguments = self._placebos[index].words.restore(arguments)
        outcome = CallOutcome(await send(tool, arguments), tool)
        if is_input_required(outcome.result):
            return outcome
        for index, change in enumerate(self.interventions):
            if change.results is not None and change.recorded is None:  # what is recorded stands for the server
                outcome = await self._changed(outcome, index, number)
        return outcome

    async def _changed(self, outcome: CallOutcome, index: int, number: int) -> CallOutcome:
        """Return an outcome with other results; an error stays one, without the server's own words in it."""
        result, change = outcome.result, self.interventions[index].results
        if result.get("isError"):
            return outcome if change != "scrambled" else attrs.evolve(outcome, result=self._hidden(result, index))
        if isinstance(change, FixedResult):
            return attrs.evolve(outcome, result=fixed(result, change.fixed), changed="fixed")
        if change == "empty":
            return attrs.evolve(outcome, result=empty(result), changed="empty")
        if change == "shuffled" and self.others is not None:
            key = f"{index} {outcome.tool}"
            self.others.give(key, result)
            other = await self.others.take(key, number)
            if other is not None:
                return attrs.evolve(outcome, result=other, changed="shuffled")
        schema = self.tools[outcome.tool].get("outputSchema")
        made = self._placebos[index].scrambled(result, schema if isinstance(schema, dict) else None)
        return attrs.evolve(outcome, result=made, changed="scrambled")

    def _hidden(self, result: Result, index: int) -> Result:
        words, blocks = self._placebos[index].words, result.get("content")
        if not isinstance(blocks, list):
            return result
        told = [
            {**block, "text": words.hide(str(block.get("text", "")))}
            if isinstance(block, dict) and block.get("type") == "text"
            else block
            for block in blocks
        ]
        return {**result, "content": told}

    def _words(self, index: int) -> Words:
        """Return the words that one intervention is to scramble; those of question and tools are the agent's own."""
        of = (self.info.sample.id, self.info.repetition) if self.info else ("", 1)
        text = json.dumps([self.seed, index, *of])
        words = Words(hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=32).digest())
        words.learn(json.dumps(list(self.offered), ensure_ascii=False))
        if self.info is not None:
            sample = self.info.sample
            for said in (*sample.asked, *(message.text for message in sample.history)):
                words.learn(said)
        return words


def _error(problem: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": problem}], "isError": True}
