"""What every adapter keeps: the same question, tools and model give the same transcript, whatever the framework."""

from __future__ import annotations

import asyncio

import attrs
import pytest

from keval_testing.agent_kit import AGENT_RULES, broken_by
from keval_testing.agent_stage import AgentStage
from keval_testing.subject import OPTIONS_RULES, Subject, model_options
from tests.agents.stage import ADAPTERS, OTHER_WIRES, OWN_AGENTS, Adapter


@pytest.mark.parametrize(
    "adapter",
    [*ADAPTERS, *(pytest.param(wire, marks=pytest.mark.slow) for wire in OTHER_WIRES), *OWN_AGENTS],
    indirect=True,
)
@pytest.mark.parametrize("rule", AGENT_RULES)
def test_an_adapter_keeps_the_rule(runner: asyncio.Runner, stage: AgentStage, adapter: Adapter, rule: str) -> None:
    if rule in adapter.cannot:
        pytest.skip(adapter.cannot[rule])

    assert [] == runner.run(broken_by(rule, stage, adapter.build))


def test_what_adapters_cannot_keep_are_rules() -> None:
    named = {rule for adapter in (ADAPTERS | OTHER_WIRES | OWN_AGENTS).values() for rule in adapter.cannot}

    assert named <= {*AGENT_RULES}


@pytest.mark.parametrize(
    ("name", "options"),
    [
        *((name, {}) for name in ("gadk", "ms", "openai", "anthropic")),
        *((name, {"command": ["program"]}) for name in ("command", "acp")),
        ("http", {"url": "http://127.0.0.1/"}),
        ("python", {"target": f"{__file__}:broken_by"}),
    ],
)
def test_the_options_of_an_adapter_are_strict(name: str, options: dict[str, object]) -> None:
    named = Subject.of("keval.agents", name, options, OPTIONS_RULES)
    models = dict.fromkeys(model_options(named.target), "acme/any")
    subject = attrs.evolve(named, options={**models, **options})

    assert subject.check_options()
    assert [] == subject.found
