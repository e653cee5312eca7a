"""The way of a client's requests through the middleware of a run, in process."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable

import attrs
import httpx2

from keval import KevalError
from keval.plugin import (
    Endpoint,
    Exchange,
    ModelError,
    ModelRequest,
    ModelResponse,
    TrialError,
    Wire,
    request_headers,
    response_headers,
)

_OF_THE_BODY = {"host", "content-length", "transfer-encoding"}
"""Headers that are made anew for a request that middleware may have changed."""


def through_middleware(
    client: httpx2.AsyncClient, url: str, endpoint: Endpoint, wire: Callable[[str], Wire]
) -> httpx2.AsyncClient:
    """Return a client that passes its requests through the endpoint's exchange, and then sends them with `client`.

    Without an exchange that is `client` itself. `wire` tells the protocol by the path below the base URL.
    """
    if endpoint.exchange is None:
        return client
    transport = _Exchanging(client, httpx2.URL(url), endpoint.model, endpoint.exchange, wire)
    return httpx2.AsyncClient(transport=transport, timeout=None)


@attrs.define(eq=False)
class _Exchanging(httpx2.AsyncBaseTransport):
    """Makes a `ModelRequest` of a request, and a response of the `ModelResponse`; keeps the key to itself.

    What sends is a whole client, so that redirects are followed beneath the middleware: it sees one request, and the
    response to it.
    """

    _client: httpx2.AsyncClient
    _base: httpx2.URL
    _model: str
    _exchange: Exchange
    _wire: Callable[[str], Wire]

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        root = self._base.raw_path.decode("ascii").partition("?")[0].rstrip("/")
        path = request.url.raw_path.decode("ascii").removeprefix(root)
        headers = request.headers.multi_items()
        asked = ModelRequest(
            self._model, self._wire(path), request.method, path, request_headers(headers), await request.aread()
        )
        # The key, above all.
        unseen = [pair for pair in headers if pair[0] not in {*asked.headers, *_OF_THE_BODY}]
        answers: list[httpx2.Response] = []

        async def send(passed: ModelRequest) -> ModelResponse:
            answer = await self._sent(root, passed, unseen, request)
            answers.append(answer)
            told = response_headers(answer.headers.multi_items())
            return ModelResponse(answer.status_code, told, answer.aiter_bytes())

        try:
            response = await self._exchange(asked, send)
        except ModelError as unreachable:
            raise httpx2.TransportError(str(unreachable.__cause__ or unreachable)) from unreachable
        except TrialError:
            raise
        except Exception as error:  # noqa: BLE001 - the seam to the middleware
            return _failed(error)
        return httpx2.Response(
            response.status, headers=response_headers(response.headers.items()), stream=_Body(response, answers)
        )

    async def _sent(
        self, root: str, passed: ModelRequest, unseen: list[tuple[str, str]], request: httpx2.Request
    ) -> httpx2.Response:
        sent = httpx2.Request(
            passed.method,
            self._base.copy_with(raw_path=f"{root}{passed.path}".encode("ascii")),
            headers=[*request_headers(passed.headers.items()).items(), *unseen],
            content=passed.body or None,
            extensions=request.extensions,
        )
        try:
            return await self._client.send(sent, stream=True)
        except httpx2.RequestError as error:
            raise ModelError(f"the model's endpoint gave no answer: {error}") from error

    async def aclose(self) -> None:
        await self._client.aclose()


@attrs.define(eq=False)
class _Body(httpx2.AsyncByteStream):
    """The body that middleware handed back; to close it closes what was received for it."""

    _response: ModelResponse
    _answers: list[httpx2.Response]

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._response.chunks:
                yield chunk
        except Exception as error:  # the SDKs expect no others than httpx2's
            raise httpx2.TransportError(f"the response broke off: {_told(error)}") from error

    async def aclose(self) -> None:
        for answer in self._answers:
            await answer.aclose()


def _failed(error: Exception) -> httpx2.Response:
    """Return the response for middleware that failed, in a form that the SDKs of all vendors read."""
    body = {"type": "error", "error": {"type": "api_error", "message": _told(error)}}
    return httpx2.Response(502, headers={"content-type": "application/json"}, content=json.dumps(body).encode())


def _told(error: Exception) -> str:
    """Return what failed; an explained error needs no name."""
    return str(error) if isinstance(error, KevalError) else f"{type(error).__name__}: {error}"
