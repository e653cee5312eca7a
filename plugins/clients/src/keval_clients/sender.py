"""Sends a model request as it is, and returns the response."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs
from yarl import URL

from keval.errors import ModelError
from keval.records.models import ModelRequest, ModelResponse, request_headers, response_headers
from keval_clients.http import HttpClient


def model_client(urls: Iterable[str]) -> HttpClient:
    """Return a client for models at these URLs. Raises PreflightError: the environment's variables cannot be used."""
    client = HttpClient("the model's endpoint", "model", ModelError)
    for url in urls:
        client.reach(url)
    return client


@attrs.frozen(eq=False)
class Sender:
    """Sends requests to one endpoint.

    `secrets` are headers that each request gets and nobody else sees: the key, above all. A longer reply than
    `max_reply_bytes`, unpacked, raises TrialError of kind `reply_too_large` and is read no further.
    """

    _base: str
    _secrets: Mapping[str, str] = attrs.field(repr=False)
    _max_reply_bytes: int | None
    _http: HttpClient

    @classmethod
    def to(
        cls, url: str, secrets: Mapping[str, str], max_reply_bytes: int | None = None, http: HttpClient | None = None
    ) -> Sender:
        """Return a sender to a base URL, which shares `http` with others if that is given.

        Raises PreflightError: the environment's variables cannot be used.
        """
        http = http or model_client([url])
        return cls(str(URL(url).with_query(None)).rstrip("/"), secrets, max_reply_bytes, http)

    async def send(self, request: ModelRequest, *, streams: bool = False) -> ModelResponse:
        """Send a request and read the whole reply; a stream of events, or all if it `streams`, passes as it arrives.

        Raises:
            ModelError: the endpoint cannot be reached, or broke off. A stream raises that when it is read.
            TrialError: kind `reply_too_large`, or `redirected`.
        """
        reply = await self._http.ask(
            request.method,
            self._base + request.path,
            {**request_headers(request.headers.items()), **self._secrets},
            request.body or None,
            most=self._max_reply_bytes,
        )
        headers = response_headers(reply.headers.items())
        if streams or headers.get("content-type", "").lower().startswith("text/event-stream"):
            return ModelResponse(reply.status, headers, reply.pieces())
        return ModelResponse.of(reply.status, headers, await reply.read())

    async def aclose(self) -> None:
        """Close every connection, once or more often."""
        await self._http.aclose()
