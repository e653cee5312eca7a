"""Judging over OpenAI's Chat Completions, and what is compatible with them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import attrs

from keval.plugin import JudgeContext
from keval_clients import completions_usage, no_reply
from keval_judges.grader import Reply
from keval_judges.refusals import Refusals
from keval_judges.sheet import TOOL, Sheet, Structured

if TYPE_CHECKING:
    from keval_clients.client import Client

__all__ = ["Completions"]

_CUT_SHORT = {
    "length": "it was cut off: the judge reached its limit of tokens",
    "content_filter": "it was cut off by the endpoint's content filter",
}


@attrs.frozen
class Completions:
    """A `keval_judges.grader.Api`; `settings` are the fields that all its requests have, and a seed, if `seeded`."""

    client: Client
    structured: Structured
    settings: Mapping[str, Any]
    seeded: bool
    _refusals: Refusals = attrs.field(factory=Refusals, init=False)

    async def ask(self, sheet: Sheet, message: str, context: JudgeContext) -> Reply:
        body = {
            "model": self.client.model,
            "messages": [{"role": "system", "content": sheet.instructions}, {"role": "user", "content": message}],
            **({"seed": context.seed} if self.seeded else {}),
            **self.settings,
            **self._form(sheet),
        }
        data, refused = await self._refusals.post(
            self.client,
            "/chat/completions",
            body,
            instead={"temperature": {}, "seed": {}},
            headers=context.model_headers,
        )
        return attrs.evolve(_reply(data), refused=refused)

    def _form(self, sheet: Sheet) -> dict[str, Any]:
        match self.structured:
            case "json_schema":
                form = {"name": "verdict", "strict": True, "schema": sheet.schema}
                return {"response_format": {"type": "json_schema", "json_schema": form}}
            case "tool":
                tool = {"name": TOOL, "description": "Gives your verdict.", "parameters": sheet.schema}
                return {
                    "tools": [{"type": "function", "function": tool}],
                    "tool_choice": {"type": "function", "function": {"name": TOOL}},
                }
            case "prompt":
                return {}

    async def aclose(self) -> None:
        await self.client.aclose()


def _reply(data: dict[str, Any]) -> Reply:
    """Read a chat.completion; servers that only resemble OpenAI leave much of it out, or give it another form."""
    try:
        choice = data["choices"][0]
        message = choice["message"]
        refusal = message.get("refusal")
        fault = _CUT_SHORT.get(choice.get("finish_reason"))
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise no_reply(data) from error
    usage = completions_usage(data.get("usage"))
    if refusal:
        return Reply(str(refusal), usage, "the judge refused to grade")
    try:
        text = _text(message)
    except (KeyError, TypeError, AttributeError):
        # The model did answer, and that was paid for.
        return Reply(json.dumps(message, ensure_ascii=False), usage, "it has no text that can be read")
    return Reply(text, usage, fault or (None if text.strip() else "it is empty"))


def _text(message: Mapping[str, Any]) -> str:
    """Return the arguments of a message's calls, or else its text, of which reasoning in a part of its own is none."""
    calls = [call["function"]["arguments"] for call in message.get("tool_calls") or ()]
    if calls:
        # Some servers give the arguments as an object.
        return "\n".join(json.dumps(given, ensure_ascii=False) if isinstance(given, dict) else given for given in calls)
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "".join(part["text"] for part in content if part["type"] == "text")
