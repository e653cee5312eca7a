"""The judge `openai`: its options, and its requests over OpenAI's Chat Completions and what is compatible with them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar

import attrs
from attrs.validators import ge, optional

from keval.plugin import Endpoint, JudgeContext, Model, Wire
from keval_clients import check_key, completions_usage, no_reply, read_failure, text_in
from keval_judges.grader import ENDED_EARLY, REFUSED, Api, Reply
from keval_judges.judge import LlmJudge
from keval_judges.prompt import Sheet, Structured

_NO_KEY = "none"
"""What is sent as the key to a server that wants none, as a request has one."""


def _web_address(judge: OpenAI, attribute: attrs.Attribute[str], value: str) -> None:
    if not value.startswith(("http://", "https://")):
        raise ValueError(f"'base_url' must begin with http:// or https://, such as http://localhost:8000/v1: {value!r}")


def _beside_base_url(judge: OpenAI, attribute: attrs.Attribute[str], value: str) -> None:
    if judge.base_url is None:
        raise ValueError("'api_key' must stand beside base_url; without it, the key is the model provider's own")


@attrs.define
class OpenAI(LlmJudge):
    """Grades over Chat Completions, at OpenAI or any endpoint that is compatible.

    `seed` says whether a seed is sent. `structured` is how the verdict's form is asked for. With `base_url` the model
    is asked there instead, and its provider's key is not sent: `api_key` is, if there is one.
    """

    providers: ClassVar[tuple[str, ...]] = ("*",)
    client_module: ClassVar[str] = "keval_clients.openai"

    model: Model = attrs.field(metadata={"provider": "openai"})
    temperature: float | None = 0.0
    max_tokens: int | None = attrs.field(default=None, validator=optional(ge(1)))
    seed: bool = True
    structured: Structured = "json_schema"
    base_url: str | None = attrs.field(default=None, validator=optional(_web_address))
    api_key: str | None = attrs.field(default=None, repr=False, validator=[optional(_beside_base_url), check_key])

    def __attrs_post_init__(self) -> None:
        if self.base_url is not None and self.model.provider == "simulated":
            raise ValueError("a simulated model is not behind a base_url; leave base_url out to have it simulated")
        if self.structured == "prompt" and self.model.provider == "simulated":
            raise ValueError("a simulated model gives no verdict when asked in words alone; leave structured out")
        if self.base_url is not None:
            exchange = self.model.endpoint.exchange if self.model.endpoint else None
            urls: Mapping[Wire, str] = {"openai-chat": self.base_url}
            # The key of the model's provider must not reach another server.
            own = Endpoint(self.model.name, urls, self.api_key or _NO_KEY, exchange=exchange)
            self.model = attrs.evolve(self.model, endpoint=own)
        elif self.model.endpoint is not None:
            # The core adds the endpoint before the first trial: the moment to find that it speaks another protocol.
            self.model.reach("openai-chat")

    def _connect(self) -> Api:
        from keval_clients import openai_client

        _, url, endpoint = self.model.reach("openai-chat")
        settings = {"temperature": self.temperature, "max_completion_tokens": self.max_tokens}
        given = {name: value for name, value in settings.items() if value is not None}
        return Completions(openai_client(url, endpoint), self.structured, given, seeded=self.seed)


@attrs.define(eq=False)
class Completions(Api):
    """Chat Completions; requests have a seed, if `seeded`."""

    seeded: bool

    async def ask(self, sheet: Sheet, message: str, context: JudgeContext) -> Reply:
        body = {
            "model": self.client.model,
            "messages": [{"role": "system", "content": sheet.instructions}, {"role": "user", "content": message}],
            **({"seed": context.seed} if self.seeded else {}),
            **self.settings,
            **self._form(sheet),
        }
        data, refused = await self.post(
            "/chat/completions",
            body,
            instead={"temperature": {}},
            headers=context.model_headers,
        )
        return attrs.evolve(_reply(data), refused=refused)

    def _form(self, sheet: Sheet) -> dict[str, Any]:
        match self.structured:
            case "json_schema":
                form = {"name": "verdict", "strict": True, "schema": sheet.schema}
                return {"response_format": {"type": "json_schema", "json_schema": form}}
            case "tool":
                tool = {"name": sheet.tool, "description": "Gives your verdict.", "parameters": sheet.schema}
                return {
                    "tools": [{"type": "function", "function": tool}],
                    "tool_choice": {"type": "function", "function": {"name": sheet.tool}},
                }
            case "prompt":
                return {}


def _reply(data: dict[str, Any]) -> Reply:
    """Read a chat.completion; servers that only resemble OpenAI leave much of it out, or give it another form."""
    try:
        choice = data["choices"][0]
        message = choice["message"]
        refusal = message.get("refusal")
        fault = ENDED_EARLY.get(choice.get("finish_reason"))
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise no_reply(data) from error
    if choice.get("finish_reason") == "error":  # an upstream provider of OpenRouter's failed while it wrote
        raise read_failure(choice.get("error"))
    usage = completions_usage(data.get("usage"))
    if refusal:
        return Reply(str(refusal), usage, REFUSED)
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
    return text_in(message.get("content"))
