"""An agent's process, the connection to it, and the lines that pass by that."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn, TypeAlias, TypeVar, cast

import acp
import attrs
from acp import schema
from acp.exceptions import RequestError
from pydantic import ValidationError

from keval.plugin import McpServer, ModelError, TrialError, suggestion
from keval_acp.client import Client
from keval_programs import Process

_T = TypeVar("_T")
_Server: TypeAlias = schema.HttpMcpServer | schema.SseMcpServer | schema.AcpMcpServer | schema.McpServerStdio

_WANTS_LOGIN = -32000
"""The protocol's error code for an agent that has to be logged in."""

_GOODBYE = 1.0
"""Seconds for an agent that is gone to have ended, and for one that is cancelled to end its turn."""
_NOISE = 500
"""Characters that are kept of what is no message."""


@attrs.define
class Agent:
    """An agent's process, and the connection to it."""

    process: Process
    client: Client
    lines: Lines = attrs.field(init=False)
    connection: acp.core.ClientSideConnection = attrs.field(init=False)
    _logins: Sequence[str] = attrs.field(default=(), init=False)

    def __attrs_post_init__(self) -> None:
        self.lines = Lines(self.process)
        # The client has what the capabilities say, and no more: no elicitation, for example.
        self.connection = acp.connect_to_agent(cast(acp.Client, self.client), self.lines, use_unstable_protocol=True)

    async def initialize(self) -> schema.AgentCapabilities:
        """Agree on the protocol, and return what the agent can.

        Raises:
            TrialError: it speaks no such protocol.
        """
        about = schema.Implementation(name="keval", title="keval", version="1")
        # An agent uses files itself: over the protocol Gemini CLI writes none that is not there yet. Terminals need
        # /bin/sh.
        capabilities = schema.ClientCapabilities(terminal=os.name == "posix")
        told = await self._answered(self.connection.initialize(acp.PROTOCOL_VERSION, capabilities, about))
        if told.protocol_version != acp.PROTOCOL_VERSION:
            raise TrialError(
                f"{self.process.name} speaks version {told.protocol_version} of the Agent Client Protocol, and keval"
                f" version {acp.PROTOCOL_VERSION}; install another version of the agent",
                kind="protocol",
            )
        self._logins = [method.id for method in told.auth_methods or ()]
        return told.agent_capabilities or schema.AgentCapabilities()

    async def log_in(self, way: str) -> None:
        """Log in by one of the ways that the agent offers. Raises TrialError: it offers no such way, or that fails."""
        self._check_known("login", way, self._logins)
        await self._answered(self.connection.authenticate(method_id=way))

    def server(self, server: McpServer, agreed: schema.AgentCapabilities, *, elsewhere: bool) -> _Server | None:
        """Return how a server is handed over, or `None` if the agent cannot take it, and has it from `elsewhere`.

        Raises:
            TrialError: of kind `servers_unsupported`.
        """
        headers = [schema.HttpHeader(name=name, value=value) for name, value in server.headers.items()]
        can = agreed.mcp_capabilities or schema.McpCapabilities()
        match server.transport:
            case "http" if can.http:
                return schema.HttpMcpServer(type="http", name=server.name, url=server.url or "", headers=headers)
            case "sse" if can.sse:
                return schema.SseMcpServer(type="sse", name=server.name, url=server.url or "", headers=headers)
            case "stdio":
                env = [schema.EnvVariable(name=name, value=value) for name, value in server.env.items()]
                # The protocol has no place for a server's working folder.
                start = [server.cwd or os.getcwd(), server.command or "", *server.args]
                return schema.McpServerStdio(
                    name=server.name, command="/bin/sh", args=["-c", 'cd "$0" && exec "$@"', *start], env=env
                )
        if elsewhere:
            return None
        raise TrialError(
            f"{self.process.name} cannot take MCP server {server.name!r} over {server.transport}, as it says;"
            " write {mcp_config} where it takes a file with its servers, or use a version of it that can",
            kind="servers_unsupported",
        )

    async def open_session(
        self, work: Path, servers: list[_Server], meta: Mapping[str, Any]
    ) -> schema.NewSessionResponse:
        """Open a session with these servers.

        Raises:
            TrialError: the agent wants a login, or fails.
        """
        return await self._answered(self.connection.new_session(str(work), mcp_servers=servers, **meta))

    async def choose(self, session: schema.NewSessionResponse, mode: str | None, settings: Mapping[str, str]) -> None:
        """Choose a mode and settings in a session, by the ids that the agent tells.

        Raises:
            TrialError: of kind `setting_unknown`.
        """
        modes = [each.id for each in session.modes.available_modes] if session.modes else []
        known = [option.id for option in session.config_options or ()]
        for name in settings:
            self._check_known("setting", name, known)
        if mode is not None:
            self._check_known("mode", mode, modes)
            await self._answered(self.connection.set_session_mode(session_id=session.session_id, mode_id=mode))
        for name, value in settings.items():
            setting = self.connection.set_config_option(config_id=name, session_id=session.session_id, value=value)
            await self._answered(setting)

    async def prompt(self, session: str, text: str) -> schema.PromptResponse:
        """Send a message, and return how the turn ended; one that is cancelled is cancelled in the agent, too.

        Raises:
            TrialError: it fails.
        """
        prompting = asyncio.ensure_future(self.connection.prompt(session_id=session, prompt=[acp.text_block(text)]))
        try:
            # Shielded, as the agent may still answer after it was told of the cancellation.
            return await self._answered(asyncio.shield(prompting))
        except asyncio.CancelledError:
            with suppress(TimeoutError):
                async with asyncio.timeout(_GOODBYE):
                    await self.connection.cancel(session_id=session)
                    await asyncio.wait({prompting})
            raise
        finally:
            prompting.cancel()
            await asyncio.gather(prompting, return_exceptions=True)

    def _check_known(self, what: str, name: str, names: Sequence[str]) -> None:
        if name not in names:
            hint = suggestion(name, names, f"{what}s")
            raise TrialError(f"{self.process.name} has no {what} {name!r}{hint}", kind="setting_unknown")

    async def _answered(self, response: Awaitable[_T]) -> _T:
        try:
            return await response
        except ConnectionError as error:
            # Its exit code and last words say more than a connection that broke.
            await self.process.ended(_GOODBYE)
            raise self.process.death(self.lines.noise) from error
        except ValidationError as error:
            problem = f"{self.process.name} answers otherwise than the Agent Client Protocol says: {error}"
            raise TrialError(problem, kind="protocol") from error
        except RequestError as error:
            self._fail(error)

    def _fail(self, error: RequestError) -> NoReturn:
        """Raise the error that an agent's answer stands for."""
        name = self.process.name
        details = f"{error}" if error.data is None else f"{error} ({error.data})"
        if error.code == _WANTS_LOGIN:
            ways = f" (it offers: {', '.join(self._logins)})" if self._logins else ""
            raise TrialError(
                f"{name} wants a login{ways}: {details}; give it a key by `env` or `files`, or choose a way by `login`",
                kind="login",
            ) from error
        if 400 <= error.code < 600:  # some tell the status of the model's endpoint
            raise ModelError(f"{name}: {details}", status=error.code) from error
        raise TrialError(f"{name} answered with error {error.code}: {details}", kind="agent_error") from error


@attrs.define
class Lines:
    """JSON-RPC messages over a process's standard input and output, a line each.

    What an agent may tell and the SDK cannot read is left out: lines that are no message, which `noise` has the
    beginning of, and notifications of later protocols or of the agent's own. The SDK would write each of them to the
    terminal.
    """

    process: Process
    noise: str = ""

    async def send(self, message: dict[str, Any]) -> None:
        """Write a message. An agent that is gone does not read it; the SDK learns that from `receive`."""
        try:
            await self.process.write(json.dumps(message) + "\n")
        except TrialError:
            return

    async def receive(self) -> dict[str, Any] | None:
        """Return the next message, or `None` when the agent has closed its output, or wrote too much."""
        while line := await self.process.readline():
            message = _message(line)
            if message is None:
                self.noise = (self.noise + line.decode("utf-8", "replace"))[:_NOISE]
            elif _is_readable(message):
                return message
        return None

    async def close(self) -> None:
        """Do nothing: who started the process ends it."""


def _message(line: bytes) -> dict[str, Any] | None:
    try:
        message = json.loads(line)
    except ValueError:
        return None
    return message if isinstance(message, dict) and ("method" in message or "id" in message) else None


def _is_readable(message: dict[str, Any]) -> bool:
    """Return whether it is a request, a response, or an update of the session that the SDK knows."""
    if "id" in message:
        return True
    try:
        schema.SessionNotification.model_validate(message.get("params"))
    except ValidationError:
        return False
    return bool(message["method"] == "session/update")
