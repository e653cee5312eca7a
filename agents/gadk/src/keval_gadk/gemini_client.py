"""Gemini through ADK's `Gemini` model class and one shared google-genai client."""

from __future__ import annotations

import json
from collections.abc import Mapping

import httpx
from google.adk.models import BaseLlm, Gemini
from google.adk.models.llm_response import LlmResponse
from google.genai import Client
from google.genai.errors import APIError
from google.genai.types import HttpOptions

from keval.plugin import Endpoint, ModelError, report_request
from keval_clients import Network, refused
from keval_gadk.failure import unreachable
from keval_gadk.toolset import ResultForm


class GeminiClient:
    """Headers and seed of a trial travel in its generation settings, which ADK's `Gemini` sends per request."""

    errors: tuple[type[Exception], ...] = (APIError, httpx.TransportError)
    """What a failed model request raises out of ADK."""
    output_includes_thoughts = False
    """Whether ADK counts thinking within `candidates_token_count` for this wire, instead of beside it."""
    result_form = ResultForm(frozenset({"image/jpeg", "image/png", "image/webp", "application/pdf"}))

    def __init__(self, url: str, endpoint: Endpoint) -> None:
        self._model = endpoint.model
        network = Network.to(url).client
        # A client of our own keeps google-genai off aiohttp, where it retries broken connections by itself.
        self._http = httpx.AsyncClient(
            timeout=None,  # noqa: S113 -- the trial's timeout bounds it
            event_hooks={"request": [report_request]},
            **network,
        )
        self._client = Client(
            api_key=endpoint.api_key,
            enterprise=False,
            http_options=HttpOptions(base_url=url, httpx_async_client=self._http, client_args=network),
        )

    def llm(self, headers: Mapping[str, str], seed: int) -> BaseLlm:
        """Return ADK's model object for one trial; `headers` and `seed` go with each of its requests."""
        return Gemini(model=self._model, client=self._client)

    def is_whole(self, response: LlmResponse) -> bool:
        """Return whether a streamed reply came to its end; ADK takes the end of a stream for that."""
        return response.finish_reason is not None or response.error_code is not None

    def failure(self, error: Exception) -> ModelError:
        """Return what one of `errors` means."""
        if isinstance(error, APIError):
            response = error.response
            headers = response.headers if isinstance(response, httpx.Response) else {}
            return refused(error.code, headers, json.dumps(error.details).encode())
        return unreachable(error)

    async def aclose(self) -> None:
        """Close the HTTP client."""
        await self._http.aclose()
        self._client.close()
