"""The model client: one HTTP client per adapter, and one ADK model object per trial upon it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from keval.plugin import Endpoint, TrialError, Wire

if TYPE_CHECKING:
    from google.adk.models import BaseLlm
    from google.adk.models.llm_response import LlmResponse

    from keval_gadk.toolset import ResultForm


class ModelClient(Protocol):
    """Reaches one model over one wire protocol, without retries of its own."""

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """What a failed model request raises out of ADK."""
        ...

    @property
    def output_includes_thoughts(self) -> bool:
        """Whether ADK counts thinking within `candidates_token_count` for this wire, instead of beside it."""
        ...

    @property
    def result_form(self) -> ResultForm:
        """What ADK can say of a tool's result over this wire."""
        ...

    def llm(self, headers: Mapping[str, str], seed: int) -> BaseLlm:
        """Return ADK's model object for one trial; `headers` and `seed` go with each of its requests."""
        ...

    def is_whole(self, response: LlmResponse) -> bool:
        """Return whether a streamed reply came to its end; ADK takes the end of a stream for that."""
        ...

    def failure(self, error: Exception) -> TrialError:
        """Return what one of `errors` means."""
        ...

    async def aclose(self) -> None:
        """Close the HTTP client."""
        ...


def connect(wire: Wire, url: str, endpoint: Endpoint) -> ModelClient:
    """Return a client for `wire`; nothing is sent before the first trial's first request."""
    # Each vendor's SDK is imported for its own wire only: together they take two seconds.
    if wire == "gemini":
        from keval_gadk.gemini_client import GeminiClient

        return GeminiClient(url, endpoint)
    if wire == "anthropic":
        from keval_gadk.anthropic_client import AnthropicClient

        return AnthropicClient(url, endpoint)
    from keval_gadk.openai_client import OpenAIClient

    return OpenAIClient(url, endpoint, wire)
