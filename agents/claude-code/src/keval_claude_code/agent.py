"""The `claude-code` agent: its options, and what its trials share."""

from __future__ import annotations

import asyncio
import os
from contextlib import AbstractAsyncContextManager
from importlib import import_module
from typing import TYPE_CHECKING, ClassVar

import attrs
from attrs.validators import ge

from keval import Sample, Transcript
from keval.plugin import Context, Conventions, Conversation, Model, Volatile, run_conversation
from keval_programs import FOLDER_PATHS, check_models

if TYPE_CHECKING:
    from keval_claude_code.conversation import Setup

_VOLATILE = (
    Volatile(
        "Claude Code tells the results of parallel calls in the order in which it got them",
        order="messages.*.content.*.tool_use_id",
    ),
    Volatile("a mark at the last of them, whichever that is", field="messages.*.content.*.cache_control"),
    Volatile("ids of the device and the session, which every process draws", field="metadata.user_id"),
    Volatile("the day of the trial, which it tells in a workspace", pattern=r"Today's date[^\n]*"),
    FOLDER_PATHS,  # at one of them Claude Code keeps what a tool returned
)


def _processes() -> int:
    return 4 * (os.cpu_count() or 1)


@attrs.define
class ClaudeCode:
    """Runs every trial in a Claude Code of its own, without the settings and the memory of the user.

    `models` are those that it asks beside `model`. `tools` are those of its built-in tools that it offers, by default
    `STANDARD_TOOLS` in a trial with a workspace and none in others; it uses them without asking. `max_turns` bounds the
    model calls per message of the user, and a trial that wants more fails. `max_processes` bounds how many Claude Codes
    run at once: each is a process of some 200 MB.
    """

    requests_by_proxy: ClassVar[bool] = True
    volatile: ClassVar[tuple[Volatile, ...]] = _VOLATILE

    model: Model = attrs.field(metadata={"provider": "anthropic"})
    models: tuple[Model, ...] = ()
    tools: tuple[str, ...] | None = None
    max_turns: int = attrs.field(default=20, validator=ge(1))
    max_processes: int = attrs.field(factory=_processes, validator=ge(1))
    _setup: Setup | None = attrs.field(default=None, init=False, repr=False, eq=False)

    def __attrs_post_init__(self) -> None:
        check_models(self.model, self.models, "anthropic")

    def max_concurrency(self) -> int:
        """How many trials may run at once; see `keval.plugin.ConcurrencyLimited`."""
        return self.max_processes

    def conventions(self) -> Conventions:
        """What Claude Code finds in its folder; see `keval.plugin.WorksInFolder`."""
        return Conventions("CLAUDE.md", ".claude/skills", plugins=True, sandboxed=True)

    async def prepare(self) -> None:
        """Import the SDK, beside the event loop, and find Claude Code's program.

        Raises:
            PreflightError: there is no such program.
        """
        await asyncio.to_thread(import_module, "keval_claude_code.conversation")
        self._ready()

    async def run(self, sample: Sample, context: Context) -> Transcript:
        """Hold one conversation; see `keval.plugin.Agent`."""
        return await run_conversation(self, sample, context)

    def open(self, context: Context) -> AbstractAsyncContextManager[Conversation]:
        """Open a session; see `keval.plugin.ConversationalAgent`."""
        setup = self._ready()
        from keval_claude_code.conversation import open_conversation  # the SDK, as in `_ready`

        return open_conversation(setup, context)

    def _ready(self) -> Setup:
        # Importing the SDK takes half a second, which checking a config need not pay.
        from keval_claude_code.connection import find_claude
        from keval_claude_code.conversation import Setup

        if self._setup is None:
            self._setup = Setup(find_claude(), self.model, self.max_turns, self.tools)
        return self._setup
