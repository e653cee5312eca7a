"""What every adapter keeps: the same question, tools and model give the same transcript, whatever the framework."""

from __future__ import annotations

import asyncio

import pytest

from keval.testing import AGENT_RULES, AgentStage, broken_by
from tests.agents.stage import ADAPTERS, OTHER_WIRES, OWN_AGENTS, Adapter


@pytest.mark.parametrize("adapter", [*ADAPTERS, *OTHER_WIRES, *OWN_AGENTS], indirect=True)
@pytest.mark.parametrize("rule", AGENT_RULES)
def test_an_adapter_keeps_the_rule(runner: asyncio.Runner, stage: AgentStage, adapter: Adapter, rule: str) -> None:
    if rule in adapter.cannot:
        pytest.skip(adapter.cannot[rule])

    assert [] == runner.run(broken_by(rule, stage, adapter.build))


def test_what_adapters_cannot_keep_are_rules() -> None:
    named = {rule for adapter in (ADAPTERS | OTHER_WIRES | OWN_AGENTS).values() for rule in adapter.cannot}

    assert named <= {*AGENT_RULES}
