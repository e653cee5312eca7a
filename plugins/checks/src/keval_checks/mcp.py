"""The check `mcp`: what a server of the condition returns now."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import attrs
from attrs.validators import gt

from keval.plugin import EndOfTrial, Finding
from keval_checks.expected import Expected, Texts, shown
from keval_checks.left_files import cannot_run
from keval_checks.program import MOST_KEPT


@attrs.frozen
class McpCheck:
    """Passes if the tool `tool` of `server` returns what all the options say, when it is called with `arguments`.

    The call leads past all interventions to the server that the trial had. `contains` and `not_contains` are of the
    text of its result. `equals` is that text, or else the structured content, and `json_schema` one that this fits;
    where a result has none, its text is read as JSON. A call that fails does not pass, unless `is_error` is true.
    """

    needs_workspace: ClassVar[bool] = False

    server: str
    tool: str
    arguments: Mapping[str, Any] = attrs.field(factory=dict)
    contains: Texts = ()
    not_contains: Texts = ()
    equals: Any = None
    json_schema: Mapping[str, Any] | Path | None = None
    is_error: bool = False
    timeout_seconds: float = attrs.field(default=30.0, validator=gt(0))
    _expected: Expected = attrs.field(init=False, repr=False, eq=False)

    @_expected.default
    def _read_expected(self) -> Expected:
        return Expected.of(self.contains, self.not_contains, schema=self.json_schema)

    async def check(self, end: EndOfTrial) -> Finding:
        """Call the tool; see `keval.plugin.Check`. Raises TrialError: the server is not there, or does not answer."""
        channel = end.servers.get(self.server)
        if channel is None:
            known = f"it has {', '.join(end.servers)}" if end.servers else "it has none"
            raise cannot_run(
                f"the condition {end.trial.condition!r} has no server {self.server!r} that keval is connected to"
                f" ({known}); one with `tap: false` is the agent's alone"
            )
        try:
            async with asyncio.timeout(self.timeout_seconds):
                result = await channel.call_tool(self.tool, self.arguments)
        except TimeoutError as late:
            # A server that is late says nothing of what the agent did, so the check neither passes nor fails.
            problem = f"{self.server} did not answer {self.tool!r} within {self.timeout_seconds:g} s"
            raise cannot_run(problem, "timeout") from late
        blocks = result.get("content") or ()
        text = "\n".join(block["text"] for block in blocks if block.get("type") == "text")
        failed = result.get("isError") is True
        if failed is not self.is_error:
            told = f"{self.tool} {'failed' if failed else 'did not fail'}: {shown(text)}"
            return Finding(False, told, text[-MOST_KEPT:])
        fault = await asyncio.to_thread(self._fault, text, result.get("structuredContent"))
        return Finding(fault is None, f"the result of {self.tool} {fault or 'is as expected'}", text[-MOST_KEPT:])

    def _fault(self, text: str, structured: Any) -> str | None:
        value = _value(text) if structured is None else structured
        if isinstance(self.equals, str) and text.strip() != self.equals.strip():
            return f"is {shown(text)}, and not {shown(self.equals)}"
        if self.equals is not None and not isinstance(self.equals, str) and value != self.equals:
            return f"is {_written(value)}, and not {_written(self.equals)}"
        return self._expected.fault(text, self.timeout_seconds, value)


def _value(text: str) -> Any:
    """Return the JSON of a text, or else the text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _written(value: Any) -> str:
    return shown(json.dumps(value, ensure_ascii=False))
