"""The remote agent: its card, its client, and what goes wrong on the way to it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing, contextmanager
from functools import partial
from json import JSONDecodeError

import attrs
import httpx
from a2a.client import Client, ClientConfig, ClientFactory
from a2a.client.card_resolver import parse_agent_card
from a2a.client.errors import A2AClientError, A2AClientTimeoutError
from a2a.types.a2a_pb2 import (
    AgentCard,
    CancelTaskRequest,
    GetTaskRequest,
    Message,
    SendMessageRequest,
    StreamResponse,
    Task,
)
from a2a.utils.constants import AGENT_CARD_WELL_KNOWN_PATH, TransportProtocol
from a2a.utils.errors import A2AError
from google.protobuf.json_format import ParseError

from keval.plugin import PreflightError, TrialError, retry_after_seconds
from keval_clients import HttpClient, Reply, origin

_BINDINGS = [TransportProtocol.JSONRPC, TransportProtocol.HTTP_JSON]
_CARD_SECONDS = 30.0
_CARD_BYTES = 1_000_000
# keval's own client writes these for its own connection.
_OF_THE_CONNECTION = {"accept-encoding", "connection", "content-length", "host", "transfer-encoding"}
# The reply is unpacked already; and cookies of one trial are none of another's.
_UNPACKED = {"content-encoding", "content-length", "set-cookie", "transfer-encoding"}
_SHOWN = 200
"""Characters that are shown of what came in place of a card."""


@attrs.define(eq=False)
class Transport(httpx.AsyncBaseTransport):
    """Has the SDK's requests sent by keval's own client, which bounds replies and follows no redirect elsewhere.

    A reply may have `most` bytes.
    """

    http: HttpClient
    most: int = _CARD_BYTES

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request; raises TrialError."""
        headers = {name: value for name, value in request.headers.items() if name not in _OF_THE_CONNECTION}
        reply = await self.http.ask(request.method, str(request.url), headers, await request.aread(), most=self.most)
        kept = [(name, value) for name, value in reply.headers.items() if name.lower() not in _UNPACKED]
        return httpx.Response(reply.status, headers=kept, stream=_Body(reply))

    async def aclose(self) -> None:
        """Close every connection."""
        await self.http.aclose()


@attrs.frozen(eq=False)
class _Body(httpx.AsyncByteStream):
    _reply: Reply

    async def __aiter__(self) -> AsyncGenerator[bytes, None]:
        async with aclosing(self._reply.pieces()) as pieces:
            async for piece in pieces:
                yield piece

    async def aclose(self) -> None:
        self._reply.close()


@attrs.frozen(eq=False)
class RemoteAgent:
    """An agent that speaks A2A, by its card."""

    _client: Client
    transport: Transport
    _http: httpx.AsyncClient

    @classmethod
    async def connect(cls, url: str, headers: Mapping[str, str]) -> RemoteAgent:
        """Fetch the agent's card. Raises PreflightError: it cannot be fetched, or has no interface for keval."""
        transport = Transport(HttpClient("the agent", "agent", partial(TrialError, kind="connection", retryable=True)))
        transport.http.reach(url)
        http = httpx.AsyncClient(headers=dict(headers), transport=transport, trust_env=False, timeout=None)  # noqa: S113
        try:
            card = await _fetch_card(http, url)
            _keep_near(card, url, named=url.endswith(".json") and not headers)
            config = ClientConfig(httpx_client=http, supported_protocol_bindings=[*_BINDINGS])
            return cls(ClientFactory(config).create(card), transport, http)
        except ValueError as error:
            await http.aclose()
            offered = ", ".join(each.protocol_binding for each in card.supported_interfaces) or "none"
            raise PreflightError(
                f"the agent card of {url} has no interface that keval speaks ({', '.join(_BINDINGS)}); it has {offered}"
            ) from error
        except BaseException:
            await http.aclose()
            raise

    async def send(self, message: Message) -> AsyncGenerator[StreamResponse, None]:
        """Send a message and yield what the agent responds: one response, or more if its card says that it streams.

        Raises TrialError, as all of these methods do.
        """
        with _explained():
            async with aclosing(self._client.send_message(SendMessageRequest(message=message))) as responses:  # type: ignore[type-var]
                async for response in responses:
                    yield response

    async def task(self, name: str) -> Task:
        """Return the task of this id as it is now."""
        with _explained():
            return await self._client.get_task(GetTaskRequest(id=name))

    async def cancel(self, name: str) -> None:
        """Ask the agent to cancel a task."""
        with _explained():
            await self._client.cancel_task(CancelTaskRequest(id=name))

    async def aclose(self) -> None:
        """Close every connection."""
        await self._http.aclose()


async def _fetch_card(http: httpx.AsyncClient, url: str) -> AgentCard:
    card_url = url if url.endswith(".json") else url.rstrip("/") + AGENT_CARD_WELL_KNOWN_PATH
    try:
        async with asyncio.timeout(_CARD_SECONDS):
            response = await http.get(card_url)
    except (TrialError, TimeoutError) as error:
        told = str(error) or f"it takes more than {_CARD_SECONDS:g} s"
        if getattr(error, "kind", "") == "reply_too_large":
            told = f"it has more than {_CARD_BYTES:,} bytes"
        raise PreflightError(
            f"the agent card {card_url} cannot be fetched: {told}; start the agent, or correct `url`"
        ) from error
    came = f"status {response.status_code}, {' '.join(response.text.split())[:_SHOWN]!r}"
    if response.is_error:
        raise PreflightError(f"the agent card {card_url} cannot be fetched: {came}; correct `url`, or give `headers`")
    try:
        return parse_agent_card(response.json())
    except (JSONDecodeError, UnicodeDecodeError, RecursionError, ParseError) as error:
        told = " ".join(str(error).split())
        raise PreflightError(f"{card_url} is no agent card: {told}; it is {came}; correct `url`") from error


def _keep_near(card: AgentCard, url: str, *, named: bool) -> None:
    """Leave out the interfaces at another origin than the card, which would see the questions and the `headers`.

    They stay if the card alone was `named`, and no headers. Raises PreflightError: there is no other one.
    """
    spoken = [each for each in card.supported_interfaces if each.protocol_binding in _BINDINGS]
    near = [each for each in spoken if named or origin(each.url) == origin(url)]
    far = [each.url for each in spoken if each not in near]
    if far and not near:
        raise PreflightError(
            f"the agent card of {url} leads to {far[0][:_SHOWN]!r}, which is not asked, as it would see the questions"
            " and `headers`; if that is right, make it the `url`"
        )
    if far:
        # A repeated field of Protobuf cannot be assigned.
        del card.supported_interfaces[:]
        card.supported_interfaces.extend(near)


@contextmanager
def _explained() -> Iterator[None]:
    """Raise the errors of the SDK as TrialError."""
    try:
        yield
    except A2AError as error:
        raise _trial_error(error) from error
    # The SDK's ways to fail on a result that is a number, a list or nothing, or is nested too deeply.
    except (ParseError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        problem = f"the agent answered with something that is no response of A2A: {error}"
        raise TrialError(problem, kind="bad_reply", retryable=True) from error


def _trial_error(error: A2AError) -> TrialError:
    cause = error.__cause__
    if isinstance(cause, httpx.HTTPStatusError):
        status = cause.response.status_code
        return TrialError(
            f"the agent refused with status {status}",
            kind="rate_limit" if status == 429 else f"http_{status}",
            retryable=status in {408, 409, 425, 429} or status >= 500,
            retry_after=retry_after_seconds(cause.response.headers.get("retry-after")),
        )
    if isinstance(error, A2AClientTimeoutError) or isinstance(cause, httpx.RequestError):
        return TrialError(f"the agent gave no answer: {error}", kind="connection", retryable=True)
    if isinstance(error, A2AClientError):
        return TrialError(f"the agent answered with an error: {error}", kind="bad_reply", retryable=True)
    return TrialError(f"the agent refused: {type(error).__name__}: {error}", kind="a2a_error")
