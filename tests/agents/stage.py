"""The adapters that are checked, each with its options and the rules that its framework does not allow it to keep."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import attrs

from keval.plugin import Agent, Model
from keval_command import Session


@attrs.frozen
class Adapter:
    """An adapter with its options, and why it cannot keep rules of `keval_testing.agent_kit.AGENT_RULES`."""

    module: str
    name: str
    options: dict[str, Any] = attrs.field(factory=dict)
    cannot: Mapping[str, str] = attrs.field(factory=dict)

    def build(self, model: Model) -> Agent:
        if self.module == "keval_claude_code":  # which asks models that it knows not to be Claude otherwise
            assert model.endpoint is not None
            model = attrs.evolve(model, endpoint=attrs.evolve(model.endpoint, model="claude-sonnet-5-5"))
        agent: Agent = getattr(import_module(self.module), self.name)(model=model, **self.options)
        return agent


EARLY_END = "it takes what ended early for an error"
CLAUDE_CODE = {
    "retry after": "it does not tell what the endpoint asked for",
    "text that ended early": EARLY_END,
    "truncated": EARLY_END,
    **dict.fromkeys(("bad reply", "odd usage"), "it reads a reply itself, and tells an error in its place"),
}
HIDDEN_ERRORS = {"tool errors told": "the framework tells its model that a call failed, and not why"}
NOT_TOLD = {
    "offered tools": "it does not tell which tools it offers",
    "bad reply": "the user's own code reads the replies",
}
ANSWER_ALONE = {**NOT_TOLD, "texts beside calls": "it tells its answer alone"}
REMOTE = {
    **ANSWER_ALONE,
    **dict.fromkeys(
        ("model headers", "model calls", "model errors", "retry after", "why no answer", "truncated"),
        "nobody sees the model of a remote agent",
    ),
}
"""What agents of the user's cannot keep, from those that tell most to those that tell their answer alone."""

ADAPTERS = {
    "gadk": Adapter("keval_gadk", "Gadk"),
    "ms": Adapter("keval_ms", "Ms", cannot=HIDDEN_ERRORS),
    "openai": Adapter("keval_openai", "OpenAI"),
    "openai responses": Adapter("keval_openai", "OpenAI", {"api": "responses"}),
    "anthropic": Adapter("keval_anthropic", "Anthropic"),
    "claude-code": Adapter("keval_claude_code", "ClaudeCode", cannot=CLAUDE_CODE),
}
OTHER_WIRES = {
    "gadk chat": Adapter("keval_gadk", "Gadk", {"api": "chat"}),
    "gadk responses": Adapter("keval_gadk", "Gadk", {"api": "responses"}),
    "gadk anthropic": Adapter("keval_gadk", "Gadk", {"api": "anthropic"}),
    "ms responses": Adapter("keval_ms", "Ms", {"api": "responses"}, HIDDEN_ERRORS),
}
"""Frameworks over the protocols that they do not choose by themselves."""
LOOP = Path(__file__).parent / "command" / "loop.py"
CODER = Path(__file__).parent / "acp" / "coder.py"

OWN_AGENTS = {
    "command": Adapter(
        "keval_command",
        "Command",
        {
            "command": (
                sys.executable,
                "-S",
                str(LOOP),
                "--model={model}",
                "--system={system_prompt_file}",
                "--history={history_file}",
                "--mcp={mcp_config}",
                "{question}",
            ),
            "session": Session(
                (
                    sys.executable,
                    "-S",
                    str(LOOP),
                    "--model={model}",
                    "--mcp={mcp_config}",
                    "--resume={session}",
                    "{question}",
                ),
                "id",
            ),
            "events": "jsonl",
            "answer": "answer",
            "env": {"OPENAI_BASE_URL": "{model_base_url}", "OPENAI_API_KEY": "{model_key}"},
        },
        ANSWER_ALONE,
    ),
    "acp": Adapter(
        "keval_acp",
        "Acp",
        {
            "command": (sys.executable, "-S", str(CODER), "--model={model}"),
            "env": {"OPENAI_BASE_URL": "{model_base_url}", "OPENAI_API_KEY": "{model_key}"},
            "meta": {"systemPrompt": "{system_prompt}"},
        },
        {**NOT_TOLD, "history": "the protocol has no place for what was said earlier"},
    ),
    "python": Adapter(
        "tests.agents.bookkeeper",
        "python",
        {"function": "answer"},
        {**ANSWER_ALONE, **dict.fromkeys(("turns", "history"), "a function that returns a text answers one question")},
    ),
    "python transcript": Adapter(
        "tests.agents.bookkeeper",
        "python",
        {"function": "report"},
        dict.fromkeys(("bad reply", "odd usage"), NOT_TOLD["bad reply"]),
    ),
    "http": Adapter("tests.agents.bookkeeper", "Served", cannot=REMOTE),
}
"""Agents of the user's, which keval asks and whose model it does not: see tests/agents/bookkeeper.py."""
