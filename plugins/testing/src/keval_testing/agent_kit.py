"""The check of agent adapters."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import attrs

from keval.errors import suggestion
from keval.records.models import Model
from keval.seams.interfaces import Agent, PrerecordedAgent
from keval_testing.agent_rules import AGENT_RULES, WITHOUT_MODEL, broken_by
from keval_testing.agent_stage import AgentStage
from keval_testing.broken_rules import Checklist
from keval_testing.left_behind import run_to_end
from keval_testing.subject import OPTIONS_RULES, Subject, model_options

_REMEDIES = {
    **OPTIONS_RULES,
    **{name: " ".join((inspect.getdoc(rule) or "").split()) for name, rule in AGENT_RULES.items()},
}


def check_agent(
    agent: str | type | object, *, options: Mapping[str, Any] | None = None, cannot: Mapping[str, str] | None = None
) -> Mapping[str, str]:
    """Check an agent adapter by `AGENT_RULES`; it is a name, as a config has it, a class or an instance.

    It is given a scripted model for each of its options of type `Model`, and an MCP server behind keval's tap.
    `options` are those of a config, for a name or a class. `cannot` names rules that its framework does not allow it to
    keep, each with the reason: they are not checked. Call it where no event loop runs.

    Returns the rules that were not checked, with reasons. An agent without an option of type `Model` is checked by the
    rules that need no script; one that returns recorded answers, by its options.

    Raises:
        BrokenRulesError: it breaks rules; the message names each one, what was seen, and how to mend it.
        PluginError: no such agent is installed, `options` do not construct it, or a package is missing that serves the
            model or connects to the server.
    """
    for rule in (cannot := cannot or {}):
        if rule not in AGENT_RULES:
            raise ValueError(f"agents have no rule {rule!r}{suggestion(rule, AGENT_RULES, 'the rules are')}")
    subject = Subject.of("keval.agents", agent, options)
    models = model_options(subject.target)
    subject = attrs.evolve(subject, options={**dict.fromkeys(models, "scripted/model"), **subject.options})
    checklist = Checklist(subject.told, _REMEDIES)
    skipped = dict(cannot)
    if subject.check_options(checklist):
        skipped = {**_unscripted(subject.new(), bool(models)), **cannot}

        def make(model: Model) -> Agent:
            made: Any = subject.new()
            agent: Agent = attrs.evolve(made, **dict.fromkeys(models, model)) if models else made
            return agent

        async def check() -> None:
            async with AgentStage.open() as stage:
                for rule in (name for name in AGENT_RULES if name not in skipped):
                    for what in await broken_by(rule, stage, make):
                        checklist.broken(rule, what)

        run_to_end(checklist, check())
    checklist.finish()
    return skipped


def _unscripted(agent: Any, has_model: bool) -> dict[str, str]:
    """Return the rules that cannot be checked, as no model of the agent's can be scripted."""
    if isinstance(agent, PrerecordedAgent):
        return dict.fromkeys(AGENT_RULES, "its answers exist already")
    why = "it has no option of type Model, so that nothing it is answered can be scripted"
    return {} if has_model else {name: why for name, rule in AGENT_RULES.items() if rule not in WITHOUT_MODEL}
