"""One trial at a time of the coder, with options of the adapter and of the coder itself."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import attrs
import pytest

from keval import Sample
from keval_gateway import ChatReply, ChatRequest
from tests.agents.stage import OWN_AGENTS, QUESTION, Adapter, Outcome, Script, Stage


def coder(*flags: str, **options: Any) -> Adapter:
    """Return the adapter `acp` with these options, and these flags of the coder."""
    adapter = OWN_AGENTS["acp"]
    given = {**adapter.options, **options}
    return attrs.evolve(adapter, options={**given, "command": (*given["command"], *flags)})


@pytest.fixture
def play(runner: asyncio.Runner, stage: Stage) -> Callable[..., Outcome]:
    """Run a trial: `play(reply, ..., flags=("--own",), permissions="deny", sample=...)`."""

    def run(*replies: Script, flags: tuple[str, ...] = (), sample: Sample = QUESTION, **options: Any) -> Outcome:
        left = iter(replies)

        def script(request: ChatRequest) -> ChatReply | Awaitable[ChatReply]:
            return next(left)(request)

        return runner.run(asyncio.wait_for(stage.play(coder(*flags, **options), script, sample), 30))

    return run
