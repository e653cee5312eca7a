"""One trial at a time of the coder, with options of the adapter and of the coder itself."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import attrs
import pytest

from keval import Sample
from keval_testing.agent_stage import QUESTION, AgentStage, Outcome
from keval_testing.scripted_model import Reply
from tests.agents.stage import OWN_AGENTS, Adapter


def coder(*flags: str, **options: Any) -> Adapter:
    """Return the adapter `acp` with these options, and these flags of the coder."""
    adapter = OWN_AGENTS["acp"]
    given = {**adapter.options, **options}
    return attrs.evolve(adapter, options={**given, "command": (*given["command"], *flags)})


@pytest.fixture
def play(runner: asyncio.Runner, stage: AgentStage) -> Callable[..., Outcome]:
    """Run a trial: `play(reply, ..., flags=("--own",), permissions="deny", sample=...)`."""

    def run(*replies: Reply, flags: tuple[str, ...] = (), sample: Sample = QUESTION, **options: Any) -> Outcome:
        playing = stage.play(coder(*flags, **options).build, *replies, sample=sample)
        return runner.run(asyncio.wait_for(playing, 30))

    return run
