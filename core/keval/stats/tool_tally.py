"""The tally of tools: how the trials of one arm used each tool, added up as they are read."""

from __future__ import annotations

import attrs

from keval.manifest import ConditionEntry
from keval.records import ToolCall, Trial
from keval.tool_use import ToolUse

__all__ = ["ToolTally"]

_REFUSED = "bad_arguments"
"""The kind of an error of a call whose arguments do not fit the tool's schema."""


@attrs.define
class _Counts:
    server: str | None = None
    offered: int = 0
    called: int = 0
    first: int = 0
    failed: int = 0
    calls: int = 0
    errors: int = 0
    rejected: int = 0


class ToolTally:
    """Counts how the trials of one arm used tools.

    Tools are those that the condition's servers listed before the first trial, then those that were called besides. An
    agent whose answers are `recorded` was offered none of the former.
    """

    def __init__(self, condition: ConditionEntry, *, recorded: bool) -> None:
        servers = {} if recorded else condition.servers
        owners = {tool: label for label, entry in servers.items() for tool in entry.tools}
        self._listed = None if recorded else owners.keys()
        self._tools = {name: _Counts(server) for name, server in owners.items()}
        self._trials = self._unlisted = 0
        self._unknown = False

    def add(self, trial: Trial) -> None:
        """Count a trial by what its last attempt left, if it left anything."""
        if (transcript := trial.transcript) is None:
            return
        self._trials += 1
        self._unlisted += transcript.unlisted_calls != 0
        offered = self._listed if transcript.tools is None else dict.fromkeys(transcript.tools).keys()
        if offered is None:
            self._unknown = True
        for name in offered or ():
            self._tools.setdefault(name, _Counts()).offered += 1
        calls: dict[str, list[ToolCall]] = {}
        for call in transcript.own_calls:
            calls.setdefault(call.name, []).append(call)
        # A call that a lost server did not get was not refused.
        reachable = () if trial.failure and trial.failure.stage == "mcp" else offered or ()
        for position, (name, made) in enumerate(calls.items()):
            self._add_calls(name, made, first=position == 0, reached=name in reachable)

    def _add_calls(self, name: str, made: list[ToolCall], *, first: bool, reached: bool) -> None:
        counts = self._tools.setdefault(name, _Counts())
        counts.server = counts.server or made[0].server
        errors = [call for call in made if call.error is not None]
        counts.called += 1
        counts.first += first
        counts.failed += bool(errors)
        counts.calls += len(made)
        counts.errors += len(errors)
        counts.rejected += sum(
            call.error_kind == _REFUSED or (call.executions == 0 and call.error_kind is None and reached)
            for call in errors
        )

    def total(self, agent: str, condition: str) -> list[ToolUse]:
        """Return what was counted, tool by tool."""
        return [
            ToolUse(
                agent=agent,
                condition=condition,
                tool=name,
                server=counts.server,
                trials=self._trials,
                offered=None if self._unknown else counts.offered,
                called=counts.called,
                first=counts.first,
                failed=counts.failed,
                calls=counts.calls,
                errors=counts.errors,
                rejected=counts.rejected,
                unlisted=self._unlisted,
            )
            for name, counts in self._tools.items()
        ]
