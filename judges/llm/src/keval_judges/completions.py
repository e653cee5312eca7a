"""Judging over OpenAI's Chat Completions, and what is compatible with them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import attrs

from keval import Judging
from keval_clients import completions_usage, no_reply
from keval_judges.grader import Reply
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
    """A `keval_judges.grader.Api`; `settings` are the fields that all its requests have."""

    client: Client
    structured: Structured
    settings: Mapping[str, Any]

    async def ask(self, sheet: Sheet, message: str, judging: Judging) -> Reply:
        body = {
            "model": self.client.model,
            "messages": [{"role": "system", "content": sheet.instructions}, {"role": "user", "content": message}],
            "seed": judging.seed,
            **self.settings,
            **self._form(sheet),
        }
        return _reply(await self.client.post("/chat/completions", body, judging.model_headers))

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
    """Read a chat.completion; servers that only resemble OpenAI leave much of it out."""
    try:
        choice = data["choices"][0]
        message = choice["message"]
        calls = [call["function"]["arguments"] for call in message.get("tool_calls") or ()]
        text, refusal = "\n".join(calls) or message.get("content") or "", message.get("refusal")
        fault = _CUT_SHORT.get(choice.get("finish_reason"))
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise no_reply(data) from error
    if not isinstance(text, str):
        raise no_reply(data)
    usage = completions_usage(data.get("usage"))
    if refusal:
        return Reply(str(refusal), usage, "the judge refused to grade")
    return Reply(text, usage, fault or (None if text.strip() else "it is empty"))
