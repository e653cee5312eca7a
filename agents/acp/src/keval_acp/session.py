"""One conversation, with an agent of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

import keval_programs as programs
from keval.plugin import API_WIRES, MAX_OUTPUT_TOKENS, REFUSAL, Context, PreflightError, TrialError
from keval_acp.client import Client, Terminals
from keval_acp.connection import Agent
from keval_acp.tool_use import ToolUses

if TYPE_CHECKING:
    from keval_acp import Acp

_PATIENCE = 60.0
"""Seconds in which an agent that is tried out opens a session."""
_DOUBT = "does it speak the Agent Client Protocol when it is started by this command?"


async def try_out(options: Acp) -> None:
    """Start an agent and open a session without servers.

    Raises:
        PreflightError: that does not work.
    """
    folder = options.folder.absolute()
    programs.find_program(programs.whole_path(options.words[0], folder), folder)
    context = Context(instructions="You are tried out.")  # not every agent takes an empty system prompt
    try:
        async with asyncio.timeout(_PATIENCE), open_conversation(options, context):
            return
    except TrialError as error:
        doubt = f"; {_DOUBT}" if error.kind in {"process", "agent_error"} else ""
        raise PreflightError(f"{error}{doubt}") from error
    except TimeoutError as error:
        name = Path(options.words[0]).name
        raise PreflightError(f"{name} opens no session within {_PATIENCE:g} s; {_DOUBT}") from error


@asynccontextmanager
async def open_conversation(options: Acp, context: Context) -> AsyncIterator[AcpConversation]:
    """Start an agent and open a session.

    Raises:
        TrialError: that fails, or the agent cannot be given what the trial has.
    """
    if context.history and not options.used & {"history", "history_file"}:
        raise TrialError(
            "the sample has earlier messages, and the Agent Client Protocol has no place for them; write {history_file}"
            " where the agent takes a file with them",
            kind="history_unsupported",
        )
    context, own_folder = programs.inside(context), options.folder.absolute()
    async with programs.open_folder(context) as folder:
        access = options.model.access(API_WIRES[options.api], context.model_headers) if options.model else None
        placeholders = programs.Placeholders(folder, context, access, own_folder, options.used)
        await placeholders.write_files(options.templates)
        env = programs.environment(folder.home, {name: placeholders.fill(text) for name, text in options.env.items()})
        command = [placeholders.fill(programs.whole_path(text, own_folder)) for text in options.words]
        url = access.base_url if access is not None else None
        shut_in = programs.confinement(context, folder, url, programs.needed(options.words, own_folder))
        process = programs.Process(Path(command[0]).name, command, env, folder.work, shut_in)
        context.builder.leave_calls_to_tap(context.servers)
        async with programs.running(process, context.builder), AsyncExitStack() as stack:
            terminals = Terminals(env, shut_in)
            uses = ToolUses(context.builder, context.servers, terminals.output)
            agent = Agent(process, Client(context, folder, terminals, options.permissions, uses))
            stack.push_async_callback(agent.connection.close)
            stack.push_async_callback(terminals.close)
            agreed = await agent.initialize()
            if options.login is not None:
                await agent.log_in(options.login)
            servers = [
                each
                for server in context.servers
                if (each := agent.server(server, agreed, elsewhere=bool(options.used & {"mcp_config", "servers"})))
            ]
            session = await agent.open_session(folder.work, servers, _filled(options.meta, placeholders))
            await agent.choose(session, options.mode, options.settings)
            yield AcpConversation(agent, session.session_id, placeholders)


@attrs.define
class AcpConversation:
    """A session with one agent."""

    _agent: Agent
    _session: str
    _placeholders: programs.Placeholders
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
                # What the agent did until then is part of the failed trial's transcript.
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


def _filled(value: Any, placeholders: programs.Placeholders) -> Any:
    """Return a structure with the placeholders in all its texts filled in."""
    if isinstance(value, str):
        return placeholders.fill(value)
    if isinstance(value, Mapping):
        return {name: _filled(item, placeholders) for name, item in value.items()}
    return [_filled(item, placeholders) for item in value] if isinstance(value, list | tuple) else value
