"""Models: the `provider/name` of a config, and the endpoint that serves it.

A provider resolves a model once per run, before the first trial. Adapters and judges call the endpoint they are
handed and never build one of their own, so that a gateway can stand in front of any framework.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

import attrs

from keval.errors import PreflightError

__all__ = ["Endpoint", "Model", "Wire", "vendor_of"]

Wire: TypeAlias = Literal["openai-chat", "openai-responses", "anthropic", "gemini"]
"""A wire protocol: OpenAI Chat Completions, OpenAI Responses, Anthropic Messages, Gemini generateContent."""


_FAMILIES = {"claude": "anthropic", "gemini": "google", "gpt-": "openai"}


def vendor_of(name: str) -> str | None:
    """Whose model a name alone means, where that goes without saying: `claude-…`, `gemini-…`, `gpt-…`."""
    return next((vendor for family, vendor in _FAMILIES.items() if name.startswith(family)), None)


@attrs.frozen
class Endpoint:
    """Where a model is reached.

    `urls` has a base URL per wire protocol it speaks, in the form the vendor's own SDK takes. With `wants_trial`,
    requests carry the headers of `Context.model_headers`; only a keval gateway asks for them.
    """

    model: str
    urls: Mapping[Wire, str]
    api_key: str = attrs.field(repr=False)
    simulated: bool = False
    wants_trial: bool = False


@attrs.frozen
class Model:
    """A model by name; a plugin's field annotated `Model` is structured from `provider/name`.

    A plugin that knows the endpoint itself sets it when it is constructed, and no provider is asked.

    Where the field's metadata has a `provider`, as in `attrs.field(metadata={"provider": "openai"})`, a name alone will
    do.
    """

    provider: str
    name: str
    endpoint: Endpoint | None = attrs.field(default=None, eq=False, repr=False)

    @classmethod
    def parse(cls, text: str) -> Model:
        """Split `provider/name`; the name may itself hold slashes. Raises ValueError.

        What LiteLLM calls `gemini` is `google`.
        """
        provider, slash, name = text.partition("/")
        if not (slash and provider and name):
            raise ValueError(f"a model is provider/name, such as openai/gpt-4o-mini; got {text!r}")
        return cls("google" if provider == "gemini" else provider, name)

    def __str__(self) -> str:
        return f"{self.provider}/{self.name}"

    def reach(self, *wires: Wire) -> tuple[Wire, str, Endpoint]:
        """Return the first of `wires` that the endpoint speaks, its base URL and the endpoint.

        Raises PreflightError when it speaks none of them.
        """
        if self.endpoint is None:
            raise PreflightError(f"the model {self} was not resolved before use; run it through keval")
        for wire in wires:
            if wire in self.endpoint.urls:
                return wire, self.endpoint.urls[wire], self.endpoint
        raise PreflightError(
            f"the model {self} speaks {', '.join(self.endpoint.urls)}, and {' or '.join(wires)} is needed here;"
            " choose a model of another provider, or another agent or judge"
        )
