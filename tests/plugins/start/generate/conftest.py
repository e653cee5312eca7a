"""A project whose context is a library, and a model that says what a test has it say."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import attrs
import pytest

from keval_gateway import ChatReply, ChatRequest
from tests.conftest import Project, serve_here
from tests.stdio_server import ENVIRONMENT

CONFIG = """
dataset: {{path: questions.jsonl}}
agents: {{openai: {{model: simulated/reader}}}}
contexts:
  library:
    type: stdio
    command: "${{PYTHON:-python}}"
    args: [-m, tests.plugins.start.generate.library, "{tools}"]
    env: {{PYTHONPATH: "{path}"}}
conditions:
  baseline: {{}}
  with_library: {{contexts: [library]}}
judge: {{model: simulated/judge}}
"""


@attrs.define
class ScriptedWriter:
    """Answers requests for calls and each kind of questions with what is scripted, the last one for ever."""

    calls: list[Any] = attrs.field(factory=list)
    questions: list[Any] = attrs.field(factory=list)
    unanswerable: list[Any] = attrs.field(factory=list)
    routing: list[Any] = attrs.field(factory=list)
    asked: list[str] = attrs.field(factory=list)

    def __call__(self, request: ChatRequest) -> ChatReply:
        self.asked.append(request.messages[-1].text)
        properties = (request.response_schema or {})["properties"]
        if "calls" in properties:
            return ChatReply(_said("calls", self.calls))
        if "target" in properties["questions"]["items"]["properties"]:
            return ChatReply(_said("questions", self.routing))
        sought = "sought" in properties["questions"]["items"]["properties"]
        return ChatReply(_said("questions", self.unanswerable if sought else self.questions))


def _said(key: str, script: list[Any]) -> str:
    said = (script.pop(0) if len(script) > 1 else script[0]) if script else []
    return said if isinstance(said, str) else json.dumps({key: said})


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    """A call as a model proposes it."""
    return {"tool": tool, "arguments": json.dumps(arguments)}


def draft(question: str, answer: str, calls: list[int], evidence: str) -> dict[str, Any]:
    """A question as a model writes it."""
    return {"question": question, "answer": answer, "calls": calls, "evidence": evidence}


@pytest.fixture
def library(project: Project) -> Callable[..., Project]:
    """Writes a config with a library that has these tools."""

    def write(*tools: str, more: str = "") -> Project:
        project.write(eval_yaml=CONFIG.format(tools=",".join(tools), path=ENVIRONMENT["PYTHONPATH"]) + more)
        return project

    return write


@pytest.fixture
def writer(monkeypatch: pytest.MonkeyPatch) -> ScriptedWriter:
    """The model of the config, in this process."""
    scripted = ScriptedWriter()
    serve_here(monkeypatch, scripted)
    return scripted


def records(project: Project) -> list[dict[str, Any]]:
    """The records of the dataset; none if it is not there."""
    file = project.root / "questions.jsonl"
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []


def dropped(stdout: str) -> dict[str, int]:
    """How many were dropped by which reason, as the summary tells it."""
    return {reason: int(count) for count, reason in re.findall(r"^  (\d+): (.+)$", stdout, re.MULTILINE)}
