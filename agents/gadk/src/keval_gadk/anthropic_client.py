"""Anthropic's Messages API through ADK's `AnthropicLlm` model class."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx2
from anthropic import APIConnectionError, APIStatusError, AsyncAnthropic, DefaultAsyncHttpxClient
from google.adk.models import BaseLlm
from google.adk.models.anthropic_llm import AnthropicLlm
from google.adk.models.llm_response import LlmResponse

from keval.plugin import Endpoint, ModelError, report_request
from keval_clients import Network, read_failure, refused
from keval_gadk.failure import unreachable
from keval_gadk.toolset import ResultForm


class AnthropicClient:
    """A light `AsyncAnthropic` per trial, with the trial's headers, upon one connection pool. The API takes no seed."""

    errors = (APIStatusError, APIConnectionError, httpx2.TransportError)
    output_includes_thoughts = False
    result_form = ResultForm(
        frozenset({"image/gif", "image/jpeg", "image/png", "image/webp", "application/pdf"}), texts_only=True
    )

    def __init__(self, url: str, endpoint: Endpoint) -> None:
        self._model = endpoint.model
        self._options: dict[str, Any] = {"api_key": endpoint.api_key, "base_url": url, "max_retries": 0}
        # The trial's timeout bounds a request.
        self._http = DefaultAsyncHttpxClient(
            timeout=None, event_hooks={"request": [report_request]}, **Network.to(url).client
        )

    def llm(self, headers: Mapping[str, str], seed: int) -> BaseLlm:
        client = AsyncAnthropic(default_headers=headers, http_client=self._http, **self._options)
        return AnthropicLlm(model=self._model, client=client)

    def is_whole(self, response: LlmResponse) -> bool:
        return response.finish_reason is not None

    def failure(self, error: Exception) -> ModelError:
        if isinstance(error, APIStatusError) and error.response.is_success:
            return read_failure({"type": error.type, "message": error.api_message})
        if isinstance(error, APIStatusError):
            return refused(error.status_code, error.response.headers, error.response.content)
        return unreachable(error)

    async def aclose(self) -> None:
        await self._http.aclose()
