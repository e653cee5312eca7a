"""One conversation, with a Claude Code of its own."""

from __future__ import annotations

import logging
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, closing
from pathlib import Path
from typing import cast

import attrs
from claude_agent_sdk import AssistantMessage, ClaudeSDKClient, Message, ResultMessage, SystemMessage, TextBlock

from keval.plugin import MAX_OUTPUT_TOKENS, Context, Model, ModelError, TrialError
from keval_claude_code.connection import connected
from keval_claude_code.home import variables, write_session
from keval_claude_code.servers import LAUNCHER, Servers
from keval_claude_code.watch import Watch
from keval_programs import Process, TrialFolder, confinement, environment, inside, open_folder

# The SDK would write of a process that ended to the terminal where nobody configured logging; the trial's failure says
# it all.
logging.getLogger("claude_agent_sdk").addHandler(logging.NullHandler())


STANDARD_TOOLS = ("Bash", "Edit", "Glob", "Grep", "NotebookEdit", "Read", "Skill", "Write")
"""Claude Code's tools for work in a folder; others ask the web or the user, or start agents and tasks of their own."""


@attrs.frozen
class Setup:
    """What all trials share: the program, the model, the bound on its calls, and own tools."""

    program: str
    model: Model
    max_turns: int
    tools: tuple[str, ...] | None


@asynccontextmanager
async def open_conversation(setup: Setup, context: Context) -> AsyncIterator[ClaudeConversation]:
    """Start a Claude Code and open a session that begins with the context's history.

    Raises:
        TrialError: the process does not start, or ends too early.
    """
    context = inside(context)
    async with open_folder(context) as folder:
        standard = STANDARD_TOOLS if context.workspace is not None else ()
        tools = standard if setup.tools is None else setup.tools
        servers = Servers(context.servers, folder, frozenset(tools))
        access = setup.model.access("anthropic", context.model_headers)
        patience = max((server.timeout for server in context.servers), default=60.0)
        with closing(servers):
            needs = (Path(setup.program), Path(sys.executable), LAUNCHER)
            process = Process(
                name="Claude Code's process",
                command=_command(setup, access.name, context, servers, tools),
                env=environment(folder.home, variables(folder, access, patience=patience)),
                cwd=folder.work,
                confinement=confinement(context, folder, access.base_url, needs),
            )
            async with connected(process, context.builder) as client:
                yield ClaudeConversation(client, Watch(context.builder, servers, context.streams), setup.max_turns)


@attrs.frozen
class ClaudeConversation:
    """A session with one Claude Code."""

    _client: ClaudeSDKClient
    _watch: Watch
    _max_turns: int

    async def ask(self, text: str) -> None:
        """Send one message of the user, reporting to the watch's builder.

        Raises:
            TrialError: a server does not come up or is lost, the model fails or never answers, or the process ends.
        """
        with self._watch.builder.turn(text):
            try:
                await self._client.query(text)
                await _follow(self._client, self._watch, self._max_turns)
            finally:
                self._watch.end_turn()


async def _follow(client: ClaudeSDKClient, watch: Watch, max_turns: int) -> None:
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
    """Raise unless every server is connected, and offered is what the condition has, beside Claude Code's own tools."""
    watch.builder.offered(watch.servers.own_name(tool) for tool in tools if tool not in watch.servers.own_tools)
    if any(status["status"] != "connected" for status in statuses):
        # Only the answer to this question says why.
        watch.servers.check_up((await client.get_mcp_status())["mcpServers"])
    watch.servers.check_up(statuses)
    watch.servers.check_offered(tools)


def _command(setup: Setup, model: str, context: Context, servers: Servers, tools: Sequence[str]) -> list[str]:
    """Return the command line; what is long or secret stands in files."""
    folder, works = servers.folder, context.workspace is not None
    command = [
        setup.program,
        # Neither the user's settings and memory nor, without a workspace, what Claude Code finds around it.
        *(
            ("--setting-sources=project", f"--settings={_settings(folder)}")
            if works
            else ("--bare", "--setting-sources=")
        ),
        f"--tools={','.join(tools)}",
        f"--mcp-config={folder.write_json('servers.json', servers.config())}",
        "--strict-mcp-config",
        # What is not allowed below is denied, as nobody is there to be asked.
        "--permission-mode=dontAsk",
        f"--model={model}",
        f"--max-turns={setup.max_turns}",
        "--input-format=stream-json",
        "--output-format=stream-json",
        # Only the events of the stream tell `Watch` where a message ends and how many tokens it took.
        "--include-partial-messages",
        "--verbose",
        *(f"--plugin-dir={plugin}" for plugin in context.plugins),
    ]
    # An empty prompt takes the place of Claude Code's own, which is wanted in a workspace alone.
    if context.instructions or not works:
        command.append(f"--system-prompt-file={folder.write('instructions.txt', context.instructions)}")
    if allowed := (*tools, *(f"mcp__{alias}" for alias in servers.aliases)):
        command.append(f"--allowedTools={','.join(allowed)}")
    session = write_session(context.history, folder, model)
    return command if session is None else [*command, f"--resume={session}"]


def _settings(folder: TrialFolder) -> Path:
    """Write settings by which instructions and skills in the workspace count, and none of the folders that it is in."""
    names = ("CLAUDE.md", "CLAUDE.local.md", ".claude/CLAUDE.md", ".claude/rules/**")
    skills = {found.parent.name for each in folder.work.parents for found in each.glob(".claude/skills/*/SKILL.md")}
    skills -= {found.parent.name for found in folder.work.glob(".claude/skills/*/SKILL.md")}
    return folder.write_json(
        "settings.json",
        {
            "claudeMdExcludes": [str(parent / name) for parent in folder.work.parents for name in names],
            "skillOverrides": dict.fromkeys(sorted(skills), "off"),
        },
    )


_STATUSES: Mapping[str | None, int] = {
    "authentication_failed": 401,
    "billing_error": 402,
    "invalid_request": 400,
    "rate_limit": 429,
}
"""The HTTP status behind a kind of error, where Claude Code found the fault itself and no request shows one."""

_UNREACHED = "server_error"
"""The kind of error, where there is no status either, of a connection that failed or broke off."""


def turn_fault(result: ResultMessage, stand_in: AssistantMessage | None, max_turns: int) -> TrialError | None:
    """Return why a turn has no answer of the model's, or None if it has one.

    `stand_in` is the message in the model's place by which Claude Code tells an error, if that is how the turn ended.
    """
    if denied := sorted({denial["tool_name"] for denial in result.permission_denials or ()}):
        return TrialError(
            f"Claude Code denied calls of {', '.join(denied)}, which the condition allows; settings managed for this"
            " machine may forbid them: allow them there",
            kind="tool_denied",
        )
    if result.subtype == "error_max_turns":
        return TrialError(
            f"{max_turns} model calls brought no answer; raise max_turns if that is too few", kind="max_turns"
        )
    said = "; ".join(result.errors or []) or result.result or result.subtype
    if stand_in is not None:
        said = "\n".join(block.text for block in stand_in.content if isinstance(block, TextBlock))
        if stand_in.stop_reason == "refusal":
            return TrialError(
                f"the model refused to answer; ask another way, or another model: {said}", stage="model", kind="refused"
            )
        if str(stand_in.error) == "max_output_tokens":  # not among the errors that the SDK declares
            return MAX_OUTPUT_TOKENS.no_answer(said)
        status = result.api_error_status or _STATUSES.get(stand_in.error)
        if status is None and stand_in.error != _UNREACHED:
            kind = stand_in.error or "bad_reply"
            return TrialError(f"Claude Code answered in the model's place: {said}", stage="model", kind=kind)
        return ModelError(f"the model call failed: {said}", status=status)
    if result.is_error or result.subtype != "success":
        return TrialError(f"Claude Code gave up the turn: {said}", kind=result.subtype)
    return None
