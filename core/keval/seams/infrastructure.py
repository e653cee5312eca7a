"""The seams of a run's infrastructure: models, middleware and prices, proxies, datasets.

Exporters, which read a run that is stored, are in `keval.seams.exporters`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import attrs

from keval.errors import Problem
from keval.records.models import Asker, Endpoint, Exchange, ModelRequest, ModelResponse, Next, Price
from keval.records.servers import McpServer, ServerStarts, ToolListing
from keval.records.transcript import Transcript
from keval.records.usage import Usage
from keval.seams.contexts import Context, ServerUse
from keval.seams.finish_reason import FinishReason

if TYPE_CHECKING:  # it takes a while to import, and not every command has a loop
    import asyncio


@runtime_checkable
class ModelProvider(Protocol):
    """Resolves the names of one provider's models. Group `keval.models`; called without arguments.

    The fields of an attrs class are its options under `providers:` in a config.

    An attribute `families` of prefixes, such as `("gpt-",)`, says which names belong to it where a config gives a name
    without a provider. For `keval models`, `key_variables` and `token_variables` name the environment variables that
    may hold the key or a token, each of `ways` has the `name` of another way of signing in, `key_optional = True` says
    that it may serve without one, and `urls` has the base URL of each protocol, or `wires` the protocols alone.
    """

    def open(self, names: Sequence[str], seed: int) -> AbstractAsyncContextManager[Mapping[str, Endpoint]]:
        """Yield an endpoint per name, for the length of the run.

        Raises:
            PreflightError: a key is not set, or the models cannot be served.
        """
        ...


@runtime_checkable
class Middleware(Protocol):
    """Stands between agents or judges and their models. Group `keval.middleware`.

    A config lists middleware under `middleware:`; the first one is the outermost. It may also be `Preparable` and
    `Closable`.
    """

    async def handle(self, request: ModelRequest, next: Next) -> ModelResponse:
        """Answer one model request, as a rule with what `next(request)` returns.

        It may change the request or the response, call `next` more than once, or not at all. What it raises fails the
        request: the agent or judge gets HTTP status 502.
        """
        ...


@runtime_checkable
class PriceTable(Protocol):
    """Knows what models cost. Group `keval.prices`; called without arguments.

    keval asks every installed table, by name, until one knows the price. It does so when a run begins, for models that
    are not simulated and that the config gives no price of, and keeps the price in the manifest.
    """

    def price(self, model: str) -> Price | None:
        """Return the price of a model, given as `provider/name`; `None` if it is unknown."""
        ...


@attrs.frozen
class AttemptKey:
    """The key of one attempt, with which its programs ask the proxy.

    `denied` is told each request that is not passed on, and why. The tasks in `in_flight` answer requests; they are
    cancelled when the attempt ends, and the key with it. `thoughts` has what the model said, with what it thought
    before it called tools, by the number of messages before each, and `costs` what each reply to a framework cost, as
    the provider tells.
    """

    value: str = attrs.field(repr=False)
    denied: Callable[[str, str], object] = lambda request, reason: None
    in_flight: set[asyncio.Task[None]] = attrs.field(factory=set)
    thoughts: dict[int, list[Any]] = attrs.field(factory=dict)
    costs: list[float | None] = attrs.field(factory=list)


@attrs.frozen
class ProxyRoute:
    """One agent's or judge's way through the proxy: who asks, the endpoint behind it, and the middleware.

    Routes of the same asker are one way with several models. If there is a `meter`, the proxy calls it after each reply
    to a request that asks for one, with its tokens and what ended it before its time. `find_key` returns the attempt
    of a program's key; it counts keys of no attempt that is under way. `attempt_of` returns that of a header of code
    in keval's process.
    """

    asker: Asker
    endpoint: Endpoint
    exchange: Exchange
    meter: Callable[[ModelRequest, Usage, FinishReason | None], object] | None = None
    find_key: Callable[[str], AttemptKey | None] = lambda key: None
    attempt_of: Callable[[str], AttemptKey | None] = lambda asker: None


@runtime_checkable
class ModelProxy(Protocol):
    """Stands in front of model endpoints on loopback. Group `keval.proxies`, under the name `models`."""

    def open(self, routes: Sequence[ProxyRoute]) -> AbstractAsyncContextManager[Sequence[Endpoint]]:
        """Yield an endpoint per route that speaks the same wires, with a placeholder for the key.

        Responses are streamed as they arrive.
        """
        ...


@runtime_checkable
class ConnectedServer(Protocol):
    """An MCP server that keval has connected to, for the trials of one condition."""

    @property
    def tool_listing(self) -> ToolListing:
        """What the server listed when it was first connected to."""
        ...

    @property
    def starts(self) -> ServerStarts:
        """The processes that were started until now; none of a server that runs already, or is played."""
        ...

    def open(self, use: ServerUse) -> AbstractAsyncContextManager[McpServer]:
        """Enter one attempt's way to the server.

        Its server may differ from the first only in what the trial tells it and in `isolation`. A trial that lost a
        shared server gets one of its own. A server that keval does not start can give it no more than a session; if
        that is lost, too, such trials use it `in_turn`.

        Raises:
            ServerLostError: the server does not come up again.
        """
        ...


@runtime_checkable
class ServerProxy(Protocol):
    """Connects to MCP servers and stands between them and the agents. Group `keval.proxies`, under `servers`."""

    def connect(self, use: ServerUse) -> AbstractAsyncContextManager[ConnectedServer]:
        """Start or reach a server, list its tools, and hold it for the length of a run.

        Raises:
            PreflightError: it does not come up, or has nothing for agents.
        """
        ...

    def observed(self, transcript: Transcript, context: Context) -> Transcript:
        """Return the transcript of a trial with what really passed between the agent and the trial's servers."""
        ...

    def check(self, transcript: Transcript, context: Context) -> None:
        """Raise if a completed trial, with what was observed, is not evidence about its condition.

        Raises:
            ServerLostError: a server was lost while the trial ran.
            ToolsMissingError: the model was not offered exactly the condition's tools.
            TrialError: of kind `tools_changed`, if a server changed its tools; or of kind `calls_disagree`, if the
                framework and the tap report different calls.
        """
        ...


@attrs.frozen
class DatasetRequest:
    """What a dataset reader is asked for.

    `text_keys` are keys of a record whose values stay texts, for formats that read numbers and booleans. `json_keys`
    are keys whose values are JSON, for formats that have only texts.
    """

    path: Path
    text_keys: Collection[str] = ()
    json_keys: Collection[str] = ()

    def with_json(self, record: dict[str, Any], line: int) -> Iterator[RawRecord | Problem]:
        """Yield a record with the values of its texts that are JSON, or what is wrong with each of these."""
        problems: list[RawRecord | Problem] = []
        for key in self.json_keys:
            if isinstance(record.get(key), str):
                try:
                    record[key] = json.loads(record[key])
                except (ValueError, RecursionError) as error:
                    problems.append(Problem(f"{self.path}:{line}", f"the column {key!r} holds JSON: {error}"))
        yield from problems or [RawRecord(record, line)]


@attrs.frozen
class RawRecord:
    """One record of a dataset, as its file has it.

    `line` is the number of its line or row, from 1. `position` is passed to `read_again`, for readers that have that
    method.
    """

    data: Any
    line: int
    position: int | None = None


@runtime_checkable
class DatasetReader(Protocol):
    """Reads one file format. Group `keval.datasets`, under the file's suffix without its dot (`csv`).

    Its fields are further keys of the section `dataset:`. One that reads several files has their SHA-256 as `digest`,
    once it has read them.
    """

    def read(self, request: DatasetRequest) -> Iterator[RawRecord | Problem]:
        """Yield each record, or what is wrong in its place, in the order of the file.

        Raises:
            ConfigError: the file is not in this format.
            OSError, UnicodeDecodeError: it cannot be read.
        """
        ...


@runtime_checkable
class RereadableDataset(Protocol):
    """A dataset reader that can read a record again, so that a dataset need not fit into memory."""

    def read_again(self, request: DatasetRequest, position: int) -> Any:
        """Return the data of the record at a position. Raises ConfigError when the file has changed since."""
        ...
