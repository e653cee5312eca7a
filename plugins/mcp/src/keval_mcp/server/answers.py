"""The answers that a server gets of a context's client, in one attempt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
from mcp import MCPError
from mcp.types import INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND

from keval.errors import PreflightError, TrialError
from keval.records.servers import CallLog
from keval.records.transcript import ModelUsage
from keval.seams.contexts import ServerUse
from keval_mcp.server.client import Accept, Answer, Client

NEEDED = {"elicitation/create": "elicitation", "roots/list": "roots", "sampling/createMessage": "sampling"}
"""The capability that a client declares to be asked each of these."""


@attrs.define(eq=False)
class ClientAnswers:
    """Answers what a server asks as its `client` says, in one attempt, which `use` tells of and `log` records."""

    client: Client
    use: ServerUse | None = None
    log: CallLog = attrs.field(factory=CallLog)
    _elicited: int = attrs.field(default=0, init=False)

    async def answer(self, method: str, params: Mapping[str, Any], took: list[ModelUsage]) -> dict[str, Any]:
        """Return the result of a server's request; to `took` is added what a model took for it.

        Raises MCPError: there is none. If a model gave no answer, the attempt is no evidence, which its log says.
        """
        match method:
            case "elicitation/create":
                script, self._elicited = self.client.script, self._elicited + 1
                return _elicited(script[min(self._elicited, len(script)) - 1] if script else "decline", params)
            case "roots/list":
                folders = [root.absolute() for root in self.client.roots]
                return {"roots": [{"uri": folder.as_uri(), "name": folder.name} for folder in folders]}
            case "sampling/createMessage" if "sampling" in self.client.capabilities:
                return await self._sampled(params, took)
        raise MCPError(METHOD_NOT_FOUND, f"no client here answers {method}")

    async def _sampled(self, params: Mapping[str, Any], took: list[ModelUsage]) -> dict[str, Any]:
        if "tools" in params or "toolChoice" in params:
            raise MCPError(INVALID_PARAMS, "this client's model calls no tools: it does not declare sampling.tools")
        if (text := self.client.sampling.text) is not None:
            content = {"type": "text", "text": text}
            return {"role": "assistant", "content": content, "model": "fixed", "stopReason": "endTurn"}
        from keval_mcp.server.sampling import ask  # few servers ask for a model's text

        if self.use is None or not self.use.models:
            raise MCPError(INTERNAL_ERROR, "the client's model answers within a trial only, and none has begun")
        (model,) = self.use.models.values()
        try:
            result, usage = await ask(model, params, self.use.model_headers)
        except (TrialError, PreflightError) as error:
            problem = f"a model did not answer server '{self.use.name}': {error}"
            if self.log.lost is None:
                self.log.lost, self.log.kind = problem, getattr(error, "kind", self.log.kind)
            raise MCPError(INTERNAL_ERROR, problem) from error
        took.append(ModelUsage(str(model), usage))
        # To both that tell of the agent's own calls, of whom the one counts who told most.
        for to_proxy in (False, True):
            if self.use.meter is not None:
                self.use.meter.replied(usage, str(model), to_proxy=to_proxy)
        return result


def _elicited(answer: Answer, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return how an elicitation ends; what the answer does not fit, and a form that requires more, is declined."""
    if answer == "cancel":
        return {"action": "cancel"}
    if answer == "visit" and params.get("mode") == "url":
        return {"action": "accept"}
    schema = params.get("requestedSchema")
    if answer in ("decline", "visit") or not isinstance(schema, dict):
        return {"action": "decline"}
    given = answer.accept if isinstance(answer, Accept) else {}
    content: dict[str, Any] = {}
    for name, field in (schema.get("properties") or {}).items():
        if name in given:
            content[name] = given[name]
        elif isinstance(field, dict) and "default" in field:
            content[name] = field["default"]
    complete = set(schema.get("required") or ()) <= set(content)
    return {"action": "accept", "content": content} if complete else {"action": "decline"}
