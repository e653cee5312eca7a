"""The interventions on one server: what agents are offered in place of its listing, and the way of their calls."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Literal, TypeAlias

import attrs

from keval.errors import FieldError, InterventionError, suggestion
from keval.records.interventions import Faults, FixedResult, Intervention
from keval.seams.contexts import TrialInfo
from keval_mcp.changes.placebo import Placebo, empty, fixed
from keval_mcp.changes.words import Words
from keval_mcp.passage.link import is_input_required
from keval_mcp.server.session import Listing, tool_error

Definition: TypeAlias = Mapping[str, Any]
"""A tool as `tools/list` writes it."""


@attrs.frozen(slots=False)
class Changes:
    """A server's listing as agents get it, and the way back from its names.

    `original` is what the server lists, and `listing` has the definitions and instructions after all interventions and
    under their aliases. `names` maps the name of each tool that is offered to the server's own. `unmatched` are the
    names in interventions that no tool of the server has.
    """

    original: Listing
    listing: Listing
    interventions: tuple[Intervention, ...]
    aliases: Mapping[str, str]
    names: Mapping[str, str]
    unmatched: tuple[FieldError, ...] = ()

    @classmethod
    def of(cls, interventions: Sequence[Intervention], aliases: Mapping[str, str], listing: Listing) -> Changes:
        """Apply interventions, first to last, to what a server lists.

        Raises:
            InterventionError: two tools would have one name.
        """
        named = {tool["name"]: tool for tool in listing.tools}
        offering = _Offering(named, listing.instructions, {name: name for name in named})
        for number, intervention in enumerate(interventions):
            offering.change(intervention, number)
        changed = listing
        if interventions:
            changed = attrs.evolve(listing, tools=tuple(offering.tools.values()), instructions=offering.instructions)
        if aliases:
            tools = ({**tool, "name": aliases.get(tool["name"], tool["name"])} for tool in changed.tools)
            changed = attrs.evolve(changed, tools=tuple(tools))
        names = {aliases.get(name, name): origin for name, origin in offering.origins.items()}
        return cls(listing, changed, tuple(interventions), dict(aliases), names, tuple(offering.unmatched))

    def again(self, tools: tuple[Definition, ...]) -> Changes:
        """Make the same changes to other tools. Raises InterventionError: two tools would have one name."""
        return Changes.of(self.interventions, self.aliases, attrs.evolve(self.original, tools=tools))

    def trial(self, *, seed: int = 0, trial: TrialInfo | None = None) -> TrialChanges:
        """Return the way of one attempt's calls. Chance is drawn by `seed` and `trial`."""
        return TrialChanges(self, seed, trial)


@attrs.define
class _Offering:
    """What agents are offered of a server's tools, by the interventions so far.

    `tools` are the definitions by name, and `origins` the server's own names. `unmatched` are the names in
    interventions that no tool has, as an `InterventionError` tells of them.
    """

    tools: Mapping[str, Definition]
    instructions: str | None
    origins: Mapping[str, str]
    unmatched: list[FieldError] = attrs.field(factory=list)

    def change(self, change: Intervention, number: int) -> None:
        """Make one intervention, which has this number among those of its server.

        Raises:
            InterventionError: two tools would have one name.
        """
        kept = self._kept(change, number)
        described = {name: self._described(name, change, number) for name in kept}
        names = self._names(kept, change, number)
        self.tools = {names[name]: tool for name, tool in described.items()}
        self.origins = {names[name]: self.origins[name] for name in kept}
        if change.server_instructions is not True:
            self.instructions = change.server_instructions or None

    def _kept(self, change: Intervention, number: int) -> list[str]:
        """Return the names that are chosen and not left out."""
        chosen = [*self.tools]
        if change.tools is not None:
            wanted = self._matching((number, "tools"), change.tools)
            chosen = [name for name in chosen if name in wanted]
        out = self._matching((number, "without"), change.without)
        return [name for name in chosen if name not in out]

    def _names(self, kept: Sequence[str], change: Intervention, number: int) -> dict[str, str]:
        """Return the new name of each tool that is kept."""
        names = {name: change.rename.get(name, name) for name in kept}
        for key in ("rename", "describe"):
            for name in getattr(change, key):
                if name not in kept:
                    self._miss((number, key, name), name, kept, at_key=True)
        errors = []
        for name, new in names.items():
            same = next((other for other in kept if other != name and names[other] == new), None)
            if same is not None and name in change.rename:
                told = f"another tool, {same!r}, has the name {new!r}; rename {name!r} otherwise"
                errors.append(FieldError((number, "rename", name), told))
        if errors:
            raise InterventionError(errors)
        return names

    def _described(self, name: str, change: Intervention, number: int) -> Definition:
        """Return a tool's definition under its new name, with its new words, and as its new results are declared."""
        tool: dict[str, Any] = {**self.tools[name], "name": change.rename.get(name, name)}
        words = change.describe.get(name)
        if words is not None:
            if words.description is not None:
                tool["description"] = words.description
            tool["inputSchema"] = self._with_words((number, "describe", name), tool["inputSchema"], words.parameters)
        # Results of these kinds have no structured content, which would break the schema.
        if change.results == "empty" or isinstance(change.results, FixedResult):
            tool.pop("outputSchema", None)
        return tool

    def _with_words(
        self, at: tuple[str | int, ...], schema: Mapping[str, Any], words: Mapping[str, str]
    ) -> Mapping[str, Any]:
        known = schema.get("properties")
        properties = dict(known) if isinstance(known, dict) else {}
        for name, text in words.items():
            if name in properties:
                described = properties[name] if isinstance(properties[name], dict) else {}
                properties[name] = {**described, "description": text}
            else:
                hint = suggestion(name, properties) or f"; it has {', '.join(properties) or 'none'}"
                told = f"the tool {at[-1]!r} has no parameter {name!r}{hint}"
                self.unmatched.append(FieldError((*at, "parameters", name), told, at_key=True))
        return {**schema, "properties": properties} if words else schema

    def _matching(self, at: tuple[str | int, ...], patterns: Sequence[str]) -> set[str]:
        found: set[str] = set()
        for index, pattern in enumerate(patterns):
            matching = [name for name in self.tools if fnmatchcase(name, pattern)]
            if not matching:
                self._miss((*at, index), pattern, self.tools)
            found.update(matching)
        return found

    def _miss(self, path: tuple[str | int, ...], name: str, known: Iterable[str], *, at_key: bool = False) -> None:
        known = list(known)
        if name in self.tools:
            told = f"the tool {name!r} is left out here, so nothing else can be changed about it"
        else:
            hint = suggestion(name, known) or f"; tools: {', '.join(known) or 'none'}"
            told = f"the server has no tool {name!r}{hint}"
        self.unmatched.append(FieldError(path, told, at_key=at_key))


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
    where an intervention made it fail. `changed` says what became of the result: `scrambled`, `empty` or `fixed`.
    """

    result: Result
    tool: str
    sent: bool = True
    error_kind: Literal["injected"] | None = None
    changed: str | None = None


@attrs.define(eq=False)
class TrialChanges:
    """Leads the calls of one attempt by `changes`, to which others may follow; made by `Changes.trial`."""

    changes: Changes
    seed: int
    info: TrialInfo | None
    _faults: dict[int, FaultDraw] = attrs.field(factory=dict, init=False)
    _placebos: dict[int, Placebo] = attrs.field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        for number, change in enumerate(self.changes.interventions):
            if change.faults is not None:
                self._faults[number] = FaultDraw(change.faults, self.info)
            if change.results == "scrambled":
                self._placebos[number] = Placebo(self._words(number))

    def server_name(self, name: str) -> str | None:
        """Return the server's name of a tool that is offered; `None` for a tool that is not."""
        is_changed = self.changes.interventions or self.changes.aliases
        return self.changes.names.get(name) if is_changed else name

    async def call(self, name: str, arguments: Arguments, send: Send) -> CallOutcome:
        """Make a call of the agent, if no fault hits it, and return what the agent gets. `send` may raise anything."""
        tool = self.server_name(name)
        if tool is None:  # left out, or never there: the server does not hear of it
            return CallOutcome(tool_error(f"Unknown tool: {name}"), name, sent=False)
        # A call passes the interventions from the agent's side, the last one first; its result passes them from the
        # first.
        for index in reversed(range(len(self.changes.interventions))):
            if (draw := self._faults.get(index)) is not None:
                failing = draw.fails(tool, arguments or {})
                await asyncio.sleep(draw.faults.delay_seconds)
                if failing:
                    return CallOutcome(tool_error(FAULT), tool, sent=False, error_kind="injected")
            if index in self._placebos and arguments:
                arguments = self._placebos[index].words.restore(arguments)
        is_recorded = any(change.recorded is not None for change in self.changes.interventions)
        outcome = CallOutcome(await send(tool, arguments), tool, sent=not is_recorded)
        if is_input_required(outcome.result):
            return outcome
        for index, change in enumerate(self.changes.interventions):
            if change.results is not None and change.recorded is None:  # what is recorded stands for the server
                outcome = self._changed(outcome, index)
        return outcome

    def _changed(self, outcome: CallOutcome, index: int) -> CallOutcome:
        """Return an outcome with other results; an error stays one, without the server's own words in it."""
        result, change = outcome.result, self.changes.interventions[index].results
        if result.get("isError"):
            return outcome if change != "scrambled" else attrs.evolve(outcome, result=self._hidden(result, index))
        if isinstance(change, FixedResult):
            return attrs.evolve(outcome, result=fixed(result, change.fixed), changed="fixed")
        if change == "empty":
            return attrs.evolve(outcome, result=empty(result), changed="empty")
        schema = {tool["name"]: tool for tool in self.changes.original.tools}[outcome.tool].get("outputSchema")
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
        words.learn(json.dumps(list(self.changes.listing.tools), ensure_ascii=False))
        if self.info is not None:
            sample = self.info.sample
            for said in (*sample.asked, *(message.text for message in sample.history)):
                words.learn(said)
        return words


FAULT = "The tool failed: an error inside the server. Calling it again may succeed."
"""What the agent gets in place of a result."""


@attrs.define
class FaultDraw:
    """Draws whether each call of one trial fails.

    That depends on the seed, the sample, the repetition, the call and how often the trial has made the same call, and
    not on when it arrives: calls that a model makes at once arrive in any order. Trials of all arms draw alike.
    """

    faults: Faults
    trial: TrialInfo | None
    _made: Counter[str] = attrs.field(factory=Counter, init=False)

    def fails(self, tool: str, arguments: Mapping[str, Any]) -> bool:
        """Return whether the next call with these arguments fails."""
        call = json.dumps([tool, arguments], sort_keys=True, default=str)
        self._made[call] += 1
        of = (self.trial.sample.id, self.trial.repetition) if self.trial else ("", 1)
        text = json.dumps([self.faults.seed, *of, call, self._made[call]])
        drawn = int.from_bytes(hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).digest(), "big")
        return drawn / 2**64 < self.faults.error
