"""The lines that pass between keval and an agent, as the SDK's transport."""

from __future__ import annotations

import json
from typing import Any

import attrs
from acp.schema import SessionNotification
from pydantic import ValidationError

from keval.plugin import TrialError
from keval_programs import Process

_NOISE = 500
"""Characters that are kept of what is no message."""


@attrs.define
class Lines:
    """JSON-RPC messages over a process's standard input and output, a line each.

    What an agent may tell and the SDK cannot read is left out: lines that are no message, which `noise` has the
    beginning of, and notifications of later protocols or of the agent's own. The SDK would write each of them to the
    terminal.
    """

    process: Process
    noise: str = ""

    async def send(self, message: dict[str, Any]) -> None:
        """Write a message. An agent that is gone does not read it; the SDK learns that from `receive`."""
        try:
            await self.process.write(json.dumps(message) + "\n")
        except TrialError:
            return

    async def receive(self) -> dict[str, Any] | None:
        """Return the next message, or `None` when the agent has closed its output, or wrote too much."""
        while line := await self.process.readline():
            message = _message(line)
            if message is None:
                self.noise = (self.noise + line.decode("utf-8", "replace"))[:_NOISE]
            elif _is_readable(message):
                return message
        return None

    async def close(self) -> None:
        """Do nothing: who started the process ends it."""


def _message(line: bytes) -> dict[str, Any] | None:
    try:
        message = json.loads(line)
    except ValueError:
        return None
    return message if isinstance(message, dict) and ("method" in message or "id" in message) else None


def _is_readable(message: dict[str, Any]) -> bool:
    """Return whether it is a request, a response, or an update of the session that the SDK knows."""
    if "id" in message:
        return True
    try:
        SessionNotification.model_validate(message.get("params"))
    except ValidationError:
        return False
    return bool(message["method"] == "session/update")
