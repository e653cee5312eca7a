"""One conversation, with a Claude Code of its own."""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import cast

import attrs
from claude_agent_sdk import ClaudeSDKClient, Message, ResultMessage, SystemMessage

from keval.plugin import Context, Endpoint, TrialError
from keval_claude_code.client import connected
from keval_claude_code.environment import build_environment
from keval_claude_code.faults import turn_fault
from keval_claude_code.history import write_session
from keval_claude_code.home import open_home
from keval_claude_code.process import Process
from keval_claude_code.servers import Servers
from keval_claude_code.watch import Watch

__all__ = ["Conversation", "Setup", "open_conversation"]

# The SDK would write of a process that ended to the terminal where nobody configured logging; the trial's failure says
# it all.
logging.getLogger("claude_agent_sdk").addHandler(logging.NullHandler())


@attrs.frozen
class Setup:
    """What all trials share: the program, the model's base URL and endpoint, and the bound on its calls."""

    program: str
    url: str
    endpoint: Endpoint
    max_turns: int


@asynccontextmanager
async def open_conversation(setup: Setup, context: Context) -> AsyncIterator[Conversation]:
    """Start a Claude Code and open a session that begins with the context's history.

    Raises:
        TrialError: the process does not start, or ends too early.
    """
    with open_home() as home:
        servers = Servers(context.servers, home)
        process = Process(
            command=_command(setup, context, servers),
            env=build_environment(
                os.environ,
                home,
                url=setup.url,
                key=setup.endpoint.api_key,
                headers=context.model_headers,
                patience=max((server.timeout for server in context.servers), default=60.0),
            ),
            cwd=home.work,
            stderr=home.stderr,
        )
        async with connected(process) as client:
            yield Conversation(client, Watch(context.recorder, servers, context.streams), setup.max_turns)


@attrs.frozen
class Conversation:
    """A session with one Claude Code."""

    _client: ClaudeSDKClient
    _watch: Watch
    _max_turns: int

    async def ask(self, text: str) -> None:
        """Send one message of the user, reporting to the watch's recorder.

        Raises:
            TrialError: a server does not come up or is lost, the model fails or never answers, or the process ends.
        """
        with self._watch.recorder.turn(text):
            await self._client.query(text)
            await _follow(self._client, self._watch, self._max_turns)


async def _follow(client: ClaudeSDKClient, watch: Watch, max_turns: int) -> None:
    """Report a turn to its end."""
    # Left open, it would be closed in a task of its own, after the trial.
    response = cast(AsyncGenerator[Message, None], client.receive_response())
    async with aclosing(response) as messages:
        async for message in messages:
            match message:
                case SystemMessage(subtype="init", data=data):
                    await _check(client, watch, data["tools"], data["mcp_servers"])
                case ResultMessage():
                    if fault := turn_fault(message, watch.stand_in, max_turns):
                        raise fault
                    watch.check_ended()
                    return
                case _:
                    watch.see(message)
    raise TrialError("Claude Code ended before it answered", kind="process", retryable=True)


async def _check(client: ClaudeSDKClient, watch: Watch, tools: list[str], statuses: list[dict[str, str]]) -> None:
    """Raise unless every server is connected and exactly the condition's tools are offered."""
    watch.recorder.offered(map(watch.servers.own_name, tools))
    if any(status["status"] != "connected" for status in statuses):
        # Only the answer to this question says why.
        watch.servers.check_up((await client.get_mcp_status())["mcpServers"])
    watch.servers.check_up(statuses)
    watch.servers.check_offered(tools)


def _command(setup: Setup, context: Context, servers: Servers) -> list[str]:
    """Return the command line; what is long or secret stands in files."""
    home = servers.home
    command = [
        setup.program,
        # Neither the user's settings and memory nor reminders of Claude Code's own about its surroundings.
        "--bare",
        "--setting-sources=",
        "--tools=",
        f"--system-prompt-file={home.write('instructions.txt', context.instructions)}",
        f"--mcp-config={home.write_json('servers.json', servers.config())}",
        "--strict-mcp-config",
        "--permission-mode=dontAsk",
        f"--model={setup.endpoint.model}",
        f"--max-turns={setup.max_turns}",
        "--input-format=stream-json",
        "--output-format=stream-json",
        "--include-partial-messages",
        "--verbose",
    ]
    if servers.aliases:
        command.append(f"--allowedTools={','.join(f'mcp__{alias}' for alias in servers.aliases)}")
    session = write_session(context.history, home, setup.endpoint.model)
    return command if session is None else [*command, f"--resume={session}"]
