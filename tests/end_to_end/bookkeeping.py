"""An evaluation of one agent in which all happens that a recording must hold, and the model that makes it happen.

The model is one of a vendor's, behind a gateway, and the server a process of its own.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections import Counter
from collections.abc import Mapping
from typing import Any

import attrs
import yaml

from keval_gateway import ChatCall, ChatReply, ChatRequest, ModelFault
from keval_simulator.model import SimulatedModel
from tests.agents.servers import gallery
from tests.conftest import Project
from tests.stdio_server import ENVIRONMENT

__all__ = ["AGENTS", "GALLERY", "SAMPLES", "Clerk", "processes", "server", "write"]

AGENTS: Mapping[str, Mapping[str, Any]] = {
    "gadk": {"model": "google/gemini-test"},
    "gadk-chat": {"type": "gadk", "model": "openai/gpt-test", "api": "chat"},
    "gadk-responses": {"type": "gadk", "model": "openai/gpt-test", "api": "responses"},
    "gadk-anthropic": {"type": "gadk", "model": "anthropic/claude-test"},
    "ms": {"model": "openai/gpt-test"},
    "ms-responses": {"type": "ms", "model": "openai/gpt-test", "api": "responses"},
    "openai": {"model": "openai/gpt-test"},
    "openai-responses": {"type": "openai", "model": "openai/gpt-test", "api": "responses"},
    "anthropic": {"model": "anthropic/claude-test"},
    "claude-code": {"model": "anthropic/claude-test"},
}
"""Every adapter, with every wire that it speaks."""
_SECONDS = {"claude-code": 15, "gadk": 4, "ms": 4}
"""How long an attempt may take; one that is kept waiting takes as long."""
JUDGES = {"openai": {"model": "openai/gpt-judge"}, "anthropic": {"model": "anthropic/claude-judge"}}
PROMPT = "Answer like a bookkeeper."
_PROCESSES = "processes.txt"
"""Where each process of the server writes its number."""
GALLERY: Mapping[str, Any] = {
    "type": "stdio",
    "command": sys.executable,
    "args": ["-m", "tests.agents.servers.gallery"],
    "env": ENVIRONMENT,
}
SAMPLES: Mapping[str, Mapping[str, Any]] = {
    "parallel": {"question": "What are 2 + 3 and 40 + 31337?", "answer": "They are 5 and 31377."},
    "content": {"question": "What is in the gallery?", "answer": "A dot, and more."},
    "busy": {"question": "Are you busy?", "answer": "Not any more."},
    "attempts": {"question": "Will you answer in the end?", "answer": "In the end, yes."},
    "mistaken": {"question": "What is 7 divided by 0?", "answer": "Nothing can be divided by zero."},
    "turns": {
        "history": [{"role": "user", "content": "Hello."}, {"role": "assistant", "content": "Good day."}],
        "question": "What is 1 + 1?",
        "turns": ["And what is that plus 1?"],
        "answer": "It is 3.",
    },
    "refused": {"question": "Which question fails?"},
    "silent": {"question": "Can you keep silent?"},
}
"""What is asked, by what happens then."""


@attrs.define
class Clerk:
    """The model: it calls tools, some at once, is busy or down for an attempt, refuses a question, and keeps silent."""

    asked: Counter[str] = attrs.field(factory=Counter)
    _judge: SimulatedModel = attrs.field(factory=lambda: SimulatedModel(0))
    _lock: Any = attrs.field(factory=threading.Lock)

    async def __call__(self, request: ChatRequest) -> ChatReply:
        if request.response_schema or request.forced_tool or request.model.endswith("-judge"):
            return self._judge(request)
        question = [message.text for message in request.messages if message.role == "user"]
        kind = next(name for name, sample in SAMPLES.items() if any(sample["question"] in text for text in question))
        self.asked[kind] += 1
        last = request.messages[-1]
        results = [message.text for message in request.messages if message.role == "tool"]
        offered = {tool.name.rpartition("__")[2]: tool.name for tool in request.tools}

        def calls(*wanted: tuple[str, dict[str, Any]], text: str = "") -> ChatReply:
            return ChatReply(text, tuple(ChatCall(offered[name], arguments) for name, arguments in wanted))

        match kind:
            case "refused":
                raise ModelFault(400, "I will not answer that.")
            case "silent":
                await asyncio.Event().wait()
            case "busy" if self.asked[kind] % 2:
                raise ModelFault(429, "slow down", retry_after=0)
            case "attempts" if (
                self.asked[kind] <= 4
            ):  # of three trials, two requests each: an attempt fails, perhaps two
                raise ModelFault(503, "down for a moment")
            case "parallel" if not results:
                return calls(("add", {"a": 2, "b": 3}), ("add", {"a": 40, "b": 31337}), text="Let me add.")
            case "content" if not results:
                return calls(*((name, {}) for name in gallery.RESULTS))
            case "mistaken" if not results:
                return calls(("divide", {"a": 7, "b": 0}))
            case "turns" if last.role == "user":
                a = 2 if results else 1
                return calls(("add", {"a": a, "b": 1}))
        return ChatReply(SAMPLES[kind]["answer"])


def server(project: Project, **changes: Any) -> dict[str, Any]:
    """Return the context with the server, with options of its own."""
    arguments = ["-m", "tests.end_to_end.servers.desk", str(project.root / _PROCESSES)]
    return {"type": "stdio", "command": sys.executable, "args": arguments, "env": ENVIRONMENT, **changes}


def write(project: Project, *agents: str, **changes: Any) -> None:
    """Write the evaluation of these agents as `eval.yaml`; `changes` are to the top of the config."""
    config = {
        "name": "bookkeeping",
        "dataset": {"path": "questions.yaml"},
        "agents": {name: dict(AGENTS[name]) for name in agents},
        "contexts": {"desk": server(project), "gallery": dict(GALLERY)},
        "conditions": {"with_desk": {"system_prompt": PROMPT, "contexts": ["desk", "gallery"]}},
        "metrics": ["basic/equals", "basic/no_tool_errors"],
        "judges": {name: dict(judge) for name, judge in JUDGES.items()},
        "rubrics": ["completeness"],
        "execution": {
            "num_repetitions": 3,
            "timeout_seconds": max(_SECONDS.get(AGENTS[name].get("type", name), 2) for name in agents),
            "retry": {"max_attempts": 3, "initial_backoff_seconds": 0.01, "max_request_attempts": 2},
        },
        **changes,
    }
    samples = [{"id": name, **sample} for name, sample in SAMPLES.items()]
    project.write(eval_yaml=yaml.safe_dump(config), questions_yaml=yaml.safe_dump(samples))


def processes(project: Project) -> int:
    """Return how many processes of the server there were."""
    return len((project.root / _PROCESSES).read_text(encoding="utf-8").splitlines())
