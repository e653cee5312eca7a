"""The judge `openai`: its options."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, ClassVar

import attrs
from attrs.validators import ge, optional

from keval import Rubric, Score, Trial
from keval.plugin import Endpoint, JudgeContext, Model, TrialError, Wire
from keval_judges.completions import Completions
from keval_judges.grader import Grader
from keval_judges.sheet import Structured

__all__ = ["OpenAI"]

_NO_KEY = "none"
"""What is sent as the key to a server that wants none; the SDK sends something."""


def _web_address(judge: OpenAI, attribute: attrs.Attribute[str], value: str) -> None:
    if not value.startswith(("http://", "https://")):
        raise ValueError(f"'base_url' must begin with http:// or https://, such as http://localhost:8000/v1: {value!r}")


def _beside_base_url(judge: OpenAI, attribute: attrs.Attribute[str], value: str) -> None:
    if judge.base_url is None:
        raise ValueError("'api_key' must stand beside base_url; without it, the key is the model provider's own")


@attrs.define
class OpenAI:
    """Grades over Chat Completions, at OpenAI or any endpoint that is compatible.

    `seed` says whether a seed is sent. `structured` is how the verdict's form is asked for. With `base_url` the model
    is asked there instead, and its provider's key is not sent: `api_key` is, if there is one.
    """

    providers: ClassVar[tuple[str, ...]] = ("*",)
    applies_middleware: ClassVar[bool] = True

    model: Model = attrs.field(metadata={"provider": "openai"})
    temperature: float | None = 0.0
    max_tokens: int | None = attrs.field(default=None, validator=optional(ge(1)))
    seed: bool = True
    structured: Structured = "json_schema"
    base_url: str | None = attrs.field(default=None, validator=optional(_web_address))
    api_key: str | None = attrs.field(default=None, repr=False, validator=optional(_beside_base_url))
    _grader: Grader | None = attrs.field(default=None, init=False, repr=False, eq=False)

    def __attrs_post_init__(self) -> None:
        if self.base_url is not None and self.model.provider == "simulated":
            raise ValueError("a simulated model is not behind a base_url; leave base_url out to have it simulated")
        if self.structured == "prompt" and self.model.provider == "simulated":
            raise ValueError("a simulated model gives no verdict when asked in words alone; leave structured out")
        if self.base_url is not None:
            exchange = self.model.endpoint.exchange if self.model.endpoint else None
            urls: Mapping[Wire, str] = {"openai-chat": self.base_url}
            own = Endpoint(self.model.name, urls, self.api_key or _NO_KEY, exchange=exchange)
            self.model = attrs.evolve(self.model, endpoint=own)
        elif self.model.endpoint is not None:
            # The core adds the endpoint before the first trial: the moment to find that it speaks another protocol.
            self.model.reach("openai-chat")

    async def prepare(self) -> None:
        """Import the SDK, beside the event loop, and build the client."""
        await asyncio.to_thread(import_module, "keval_clients.openai")
        self._ready()

    async def grade(
        self, trial: Trial, rubrics: Sequence[Rubric], context: JudgeContext
    ) -> Mapping[str, Score | TrialError]:
        """Grade by all rubrics in one request; see `keval.plugin.Judge`."""
        return await self._ready().grade(trial, rubrics, context)

    def _ready(self) -> Grader:
        if self._grader is None:
            from keval_clients.openai import build  # the SDK takes half a second to import: checking a config need not

            _, url, endpoint = self.model.reach("openai-chat")
            client = build(url, endpoint)
            self._grader = Grader(Completions(client, self.structured, self._settings(), seeded=self.seed))
        return self._grader

    def _settings(self) -> dict[str, Any]:
        settings = {"temperature": self.temperature, "max_completion_tokens": self.max_tokens}
        return {name: value for name, value in settings.items() if value is not None}

    async def aclose(self) -> None:
        """Close the connections kept for the next trial."""
        grader, self._grader = self._grader, None
        if grader is not None:
            await grader.api.aclose()
