"""One conversation, with an agent of its own."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn, TypeAlias, TypeVar, cast

import acp
import attrs
from acp.exceptions import RequestError
from acp.schema import (
    AcpMcpServer,
    AgentCapabilities,
    ClientCapabilities,
    EnvVariable,
    FileSystemCapabilities,
    HttpHeader,
    HttpMcpServer,
    Implementation,
    McpCapabilities,
    McpServerStdio,
    NewSessionResponse,
    PromptResponse,
    SseMcpServer,
)
from pydantic import ValidationError

from keval.plugin import (
    MAX_OUTPUT_TOKENS,
    REFUSAL,
    Context,
    McpServer,
    Model,
    ModelError,
    PreflightError,
    TrialError,
    Wire,
    suggestion,
)
from keval_acp.client import Client
from keval_acp.lines import Lines
from keval_acp.permissions import Permissions
from keval_acp.terminals import Terminals
from keval_acp.tool_use import ToolUses
from keval_programs import (
    Placeholders,
    Process,
    TextTemplate,
    environment,
    find_program,
    open_folder,
    running,
    whole_path,
)

_T = TypeVar("_T")
_Server: TypeAlias = HttpMcpServer | SseMcpServer | AcpMcpServer | McpServerStdio

_WANTS_LOGIN = -32000
"""The protocol's error code for an agent that has to be logged in."""

_PATIENCE = 60.0
"""Seconds in which an agent that is tried out opens a session."""

_GOODBYE = 1.0
"""Seconds for an agent that is gone to have ended, and for one that is cancelled to end its turn."""

_CAPABILITIES = ClientCapabilities(
    fs=FileSystemCapabilities(read_text_file=True, write_text_file=True), terminal=os.name == "posix"
)


@attrs.frozen
class Setup:
    """What all trials share: the options of `Acp`, and the names of the placeholders in all of them."""

    command: Sequence[str]
    model: Model | None
    wire: Wire
    env: Mapping[str, str]
    files: Mapping[str, TextTemplate]
    permissions: Permissions
    mode: str | None
    settings: Mapping[str, str]
    meta: Mapping[str, Any]
    folder: Path
    used: frozenset[str]


async def try_out(setup: Setup) -> None:
    """Start an agent and open a session without servers.

    Raises:
        PreflightError: that does not work.
    """
    find_program(whole_path(setup.command[0], setup.folder), setup.folder)
    context = Context(instructions="You are tried out.")  # not every agent takes an empty system prompt
    try:
        async with asyncio.timeout(_PATIENCE), open_conversation(setup, context):
            return
    except TrialError as error:
        raise PreflightError(str(error)) from error
    except TimeoutError as error:
        name = Path(setup.command[0]).name
        raise PreflightError(
            f"{name} opens no session within {_PATIENCE:g} s; does it speak the Agent Client Protocol when started"
            " by this command?"
        ) from error


@asynccontextmanager
async def open_conversation(setup: Setup, context: Context) -> AsyncIterator[Conversation]:
    """Start an agent and open a session.

    Raises:
        TrialError: that fails, or the agent cannot be given what the trial has.
    """
    if context.history and not setup.used & {"history", "history_file"}:
        raise TrialError(
            "the sample has earlier messages, and the Agent Client Protocol has no place for them; write {history_file}"
            " where the agent takes a file with them",
            kind="history_unsupported",
        )
    with open_folder() as folder:
        access = None if setup.model is None else setup.model.access(setup.wire, context.model_headers)
        placeholders = Placeholders(folder, context, access, setup.folder, setup.used)
        placeholders.write_files(setup.files)
        env = environment(folder.home, {name: placeholders.fill(text) for name, text in setup.env.items()})
        command = [placeholders.fill(whole_path(text, setup.folder)) for text in setup.command]
        process = Process(Path(command[0]).name, command, env, folder.work, folder.stderr)
        context.builder.leave_calls_to_tap(context.servers)
        async with running(process, context.builder), AsyncExitStack() as stack:
            terminals = Terminals(folder.root, env)
            uses = ToolUses(context.builder, context.servers, terminals.output)
            agent = Agent(process, Client(context, folder, terminals, setup.permissions, uses))
            stack.push_async_callback(agent.connection.close)
            stack.push_async_callback(terminals.close)
            agreed = await agent.initialize()
            servers = [
                each
                for server in context.servers
                if (each := agent.server(server, agreed, elsewhere=bool(setup.used & {"mcp_config", "servers"})))
            ]
            session = await agent.open_session(folder.work, servers, _filled(setup.meta, placeholders))
            await agent.choose(session, setup.mode, setup.settings)
            yield Conversation(agent, session.session_id, placeholders)


@attrs.define
class Conversation:
    """A session with one agent."""

    _agent: Agent
    _session: str
    _placeholders: Placeholders
    _has_begun: bool = attrs.field(default=False, init=False)

    async def ask(self, text: str) -> None:
        """Send one message of the user, and report to its end what the agent does.

        Raises:
            TrialError: the agent fails, refuses, gives up, or is gone.
        """
        client = self._agent.client
        with client.context.builder.turn(text):
            said = text if self._has_begun else self._placeholders.first_message(text)
            self._has_begun = True
            try:
                response = await self._agent.prompt(self._session, said)
            except BaseException:
                client.end_turn()
                raise
            spoken = client.end_turn(truncated=response.stop_reason == "max_tokens")
            match response.stop_reason:
                case "max_tokens" if not spoken:
                    raise MAX_OUTPUT_TOKENS.no_answer()
                case "refusal" if not spoken:
                    raise REFUSAL.no_answer()
                case "refusal":
                    raise TrialError(
                        "the agent refuses to go on, and takes its answer back", stage="model", kind="refused"
                    )
                case "max_turn_requests":
                    raise TrialError(
                        "the agent gave up after as many model calls as it allows itself", kind="max_turns"
                    )
                case "cancelled":
                    raise TrialError("the agent cancelled the turn by itself", kind="cancelled")


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

    async def initialize(self) -> AgentCapabilities:
        """Agree on the protocol, and return what the agent can.

        Raises:
            TrialError: it speaks no such protocol.
        """
        about = Implementation(name="keval", title="keval", version="1")
        told = await self._answered(self.connection.initialize(acp.PROTOCOL_VERSION, _CAPABILITIES, about))
        if told.protocol_version != acp.PROTOCOL_VERSION:
            raise TrialError(
                f"{self.process.name} speaks version {told.protocol_version} of the Agent Client Protocol, and keval"
                f" version {acp.PROTOCOL_VERSION}; install another version of the agent",
                kind="protocol",
            )
        self._logins = [method.name for method in told.auth_methods or ()]
        return told.agent_capabilities or AgentCapabilities()

    def server(self, server: McpServer, agreed: AgentCapabilities, *, elsewhere: bool) -> _Server | None:
        """Return how a server is handed over, or `None` if the agent cannot take it, and has it from `elsewhere`.

        Raises:
            TrialError: of kind `servers_unsupported`.
        """
        headers = [HttpHeader(name=name, value=value) for name, value in server.headers.items()]
        can = agreed.mcp_capabilities or McpCapabilities()
        match server.transport:
            case "http" if can.http:
                return HttpMcpServer(type="http", name=server.name, url=server.url or "", headers=headers)
            case "sse" if can.sse:
                return SseMcpServer(type="sse", name=server.name, url=server.url or "", headers=headers)
            case "stdio":
                env = [EnvVariable(name=name, value=value) for name, value in server.env.items()]
                start = [server.cwd or os.getcwd(), server.command or "", *server.args]
                return McpServerStdio(
                    name=server.name, command="/bin/sh", args=["-c", 'cd "$0" && exec "$@"', *start], env=env
                )
        if elsewhere:
            return None
        raise TrialError(
            f"{self.process.name} cannot take MCP server {server.name!r} over {server.transport}, as it says;"
            " write {mcp_config} where it takes a file with its servers, or use a version of it that can",
            kind="servers_unsupported",
        )

    async def open_session(self, work: Path, servers: list[_Server], meta: Mapping[str, Any]) -> NewSessionResponse:
        """Open a session with these servers.

        Raises:
            TrialError: the agent wants a login, or fails.
        """
        return await self._answered(self.connection.new_session(str(work), mcp_servers=servers, **meta))

    async def choose(self, session: NewSessionResponse, mode: str | None, settings: Mapping[str, str]) -> None:
        """Choose a mode and settings in a session, by the ids that the agent tells.

        Raises:
            TrialError: of kind `setting_unknown`.
        """
        modes = [each.id for each in session.modes.available_modes] if session.modes else []
        known = [option.id for option in session.config_options or ()]
        for what, name, names in (("mode", mode, modes), *(("setting", each, known) for each in settings)):
            if name is not None and name not in names:
                hint = suggestion(name, names, f"{what}s")
                raise TrialError(f"{self.process.name} has no {what} {name!r}{hint}", kind="setting_unknown")
        if mode is not None:
            await self._answered(self.connection.set_session_mode(session_id=session.session_id, mode_id=mode))
        for name, value in settings.items():
            setting = self.connection.set_config_option(config_id=name, session_id=session.session_id, value=value)
            await self._answered(setting)

    async def prompt(self, session: str, text: str) -> PromptResponse:
        """Send a message, and return how the turn ended; one that is cancelled is cancelled in the agent, too.

        Raises:
            TrialError: it fails.
        """
        prompting = asyncio.ensure_future(self.connection.prompt(session_id=session, prompt=[acp.text_block(text)]))
        try:
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

    async def _answered(self, response: Awaitable[_T]) -> _T:
        try:
            return await response
        except ConnectionError as error:
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
                f"{name} wants a login{ways}: {details}; give it a key through `env`, or configure it in `files`",
                kind="login",
            ) from error
        if 400 <= error.code < 600:  # some tell the status of the model's endpoint
            raise ModelError(f"{name}: {details}", status=error.code) from error
        raise TrialError(f"{name} answered with error {error.code}: {details}", kind="agent_error") from error


def _filled(value: Any, placeholders: Placeholders) -> Any:
    """Return a structure with the placeholders in all its texts filled in."""
    if isinstance(value, str):
        return placeholders.fill(value)
    if isinstance(value, Mapping):
        return {name: _filled(item, placeholders) for name, item in value.items()}
    return [_filled(item, placeholders) for item in value] if isinstance(value, list | tuple) else value
