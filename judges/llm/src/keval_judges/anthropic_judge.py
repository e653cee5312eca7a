"""The judge `anthropic`: its options, and its requests over Anthropic's Messages."""

from __future__ import annotations

import json
from typing import Any, ClassVar, Literal

import attrs
from attrs.validators import ge

from keval.plugin import JudgeContext, Model
from keval_clients import messages_usage, no_reply
from keval_judges.grader import ENDED_EARLY, Api, Reply
from keval_judges.judge import LlmJudge
from keval_judges.prompt import Sheet


@attrs.define
class Anthropic(LlmJudge):
    """Grades over Anthropic's Messages, which take no seed.

    `structured` is how the verdict's form is asked for; a model that refuses `json_schema` is made to call a tool.
    """

    providers: ClassVar[tuple[str, ...]] = ("anthropic",)
    client_module: ClassVar[str] = "keval_clients.anthropic"

    model: Model = attrs.field(metadata={"provider": "anthropic"})
    temperature: float | None = 0.0
    max_tokens: int = attrs.field(default=4096, validator=ge(1))
    structured: Literal["json_schema", "tool"] = "json_schema"

    def __attrs_post_init__(self) -> None:
        # The core adds the endpoint before the first trial: the moment to find that it speaks another protocol.
        if self.model.endpoint is not None:
            self.model.reach("anthropic")

    def _connect(self) -> Api:
        from keval_clients import anthropic_client

        _, url, endpoint = self.model.reach("anthropic")
        settings: dict[str, Any] = {"max_tokens": self.max_tokens}
        if self.temperature is not None:
            settings["temperature"] = self.temperature
        return Messages(anthropic_client(url, endpoint), self.structured, settings)


@attrs.define(eq=False)
class Messages(Api):
    """Anthropic's Messages."""

    async def ask(self, sheet: Sheet, message: str, context: JudgeContext) -> Reply:
        body = {
            "model": self.client.model,
            "system": sheet.instructions,
            "messages": [{"role": "user", "content": message}],
            **self.settings,
        }
        tool = {
            "tools": [{"name": sheet.tool, "description": "Gives your verdict.", "input_schema": sheet.schema}],
            "tool_choice": {"type": "tool", "name": sheet.tool, "disable_parallel_tool_use": True},
        }
        form = {"output_config": {"format": {"type": "json_schema", "schema": sheet.schema}}}
        data, refused = await self.post(
            "/v1/messages",
            {**body, **(form if self.structured == "json_schema" else tool)},
            instead={"temperature": {}, "output_config": tool},
            headers=context.model_headers,
        )
        return attrs.evolve(_reply(data), refused=refused)


def _reply(data: dict[str, Any]) -> Reply:
    """Read a message: the arguments of the one tool call, or, if there is none, its text."""
    try:
        blocks = data["content"]
        calls = [json.dumps(block["input"], ensure_ascii=False) for block in blocks if block["type"] == "tool_use"]
        text = "\n".join(calls or [block["text"] for block in blocks if block["type"] == "text"])
        fault = ENDED_EARLY.get(data.get("stop_reason", ""))
    except (KeyError, TypeError, AttributeError) as error:
        raise no_reply(data) from error
    return Reply(text, messages_usage(data.get("usage")), fault or (None if text.strip() else "it is empty"))
