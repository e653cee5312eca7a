"""OpenAI, and what is compatible with it, through ADK's own two OpenAI model classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import openai
from google.adk.integrations.openai import OpenAILlm, OpenAIResponsesLlm
from google.adk.models import BaseLlm
from google.adk.models.llm_response import LlmResponse

from keval.plugin import Endpoint, TrialError, Wire, report_request
from keval_clients import Network, read_failure, refused
from keval_gadk.failure import bad_reply, unreachable
from keval_gadk.toolset import ResultForm

if TYPE_CHECKING:
    from openai._models import FinalRequestOptions


class OpenAIClient:
    """A light `AsyncOpenAI` per trial, with the trial's headers, upon one connection pool."""

    errors = (openai.APIError,)
    output_includes_thoughts = True

    def __init__(self, url: str, endpoint: Endpoint, wire: Wire) -> None:
        self._model = endpoint.model
        self._options: dict[str, Any] = {"api_key": endpoint.api_key, "base_url": url, "max_retries": 0}
        self._wire = wire
        # Over both wires ADK leaves out the media of a tool's result.
        self.result_form = ResultForm(texts_only=wire == "openai-responses")
        # The trial's timeout bounds a request.
        self._http = openai.DefaultAsyncHttpxClient(
            timeout=None, event_hooks={"request": [report_request]}, **Network.to(url).client
        )

    def llm(self, headers: Mapping[str, str], seed: int) -> BaseLlm:
        if self._wire == "openai-chat":
            seeded = _SeededOpenAI(default_headers=headers, http_client=self._http, **self._options)
            seeded.seed = seed
            return OpenAILlm(model=self._model, client=seeded)
        client = openai.AsyncOpenAI(default_headers=headers, http_client=self._http, **self._options)
        return OpenAIResponsesLlm(model=self._model, client=client)

    def is_whole(self, response: LlmResponse) -> bool:
        if self._wire == "openai-responses" and response.error_code is None:
            # ADK names a reason also where the API sent nothing of the whole reply, from which the rest is.
            return response.custom_metadata is not None
        return response.finish_reason is not None

    def failure(self, error: Exception) -> TrialError:
        match error:
            case openai.APIStatusError():
                return refused(error.status_code, error.response.headers, error.response.content)
            case openai.APIConnectionError():
                return unreachable(error)
            case openai.APIResponseValidationError():
                return bad_reply(error)
            case _:
                told = {name: getattr(error, name, None) for name in ("code", "type")}
                return read_failure({**told, "message": error})

    async def aclose(self) -> None:
        await self._http.aclose()


class _SeededOpenAI(openai.AsyncOpenAI):
    """Adds a seed to each request, because ADK's `OpenAILlm` drops the one of its settings."""

    seed: int

    async def _prepare_options(self, options: FinalRequestOptions) -> FinalRequestOptions:
        options.extra_json = {**(options.extra_json or {}), "seed": self.seed}
        return await super()._prepare_options(options)
