"""Images and other content of tools' results: in the run directory, in the report, and in `keval show`."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from keval_gateway import ChatCall, ChatReply, ChatRequest
from tests.agents.servers.gallery import PDF, PNG, WAV
from tests.conftest import Project
from tests.end_to_end.servers.model import gateway
from tests.stdio_server import ENVIRONMENT

CONFIG = f"""
dataset: {{path: questions.jsonl}}
agents:
  plain: {{type: openai, model: openai/gpt-test, api: responses}}
  ms: {{model: openai/gpt-test}}
contexts:
  gallery: {{type: stdio, command: python, args: [-m, tests.agents.servers.gallery], env: {json.dumps(ENVIRONMENT)}}}
conditions: {{gallery: {{contexts: [gallery]}}}}
metrics: [basic/latency]
"""


def looks(request: ChatRequest) -> ChatReply:
    """Ask for an image and a sound, and over Chat Completions, which `ms` speaks, for a file, too."""
    if any(message.role == "tool" for message in request.messages):
        return ChatReply("I have seen it.")
    file = (ChatCall("resource_pdf"),) if request.wire == "openai-chat" else ()
    return ChatReply(calls=(ChatCall("image"), ChatCall("audio"), *file))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A run of two samples with both agents."""
    project = Project(tmp_path_factory.mktemp("content"))
    project.write(questions_jsonl='{"id": "q1", "question": "What?"}\n{"id": "q2", "question": "Where?"}\n')
    project.write(eval_yaml=CONFIG)
    with gateway(looks) as environ:
        outcome = project.run("eval.yaml", env=environ)
    assert outcome.code == 0, outcome.stderr
    return project


def test_content_is_in_blobs(run: Project) -> None:
    named = {hashlib.sha256(content).hexdigest(): content for content in (PNG, WAV, PDF)}

    assert named == {name: (run.run_directory() / "blobs" / name).read_bytes() for name in named}
    calls = [call for trial in run.lines("trials.jsonl") for call in trial["transcript"]["tool_calls"]]
    assert set(named) == {content["sha256"] for call in calls for content in call["content"]}
    assert all(f"blobs/{content['sha256']}]" in call["result"] for call in calls for content in call["content"])


def test_what_did_not_reach_a_model_is_counted(run: Project) -> None:
    dropped: dict[str, Any] = {arm["agent"]: arm["dropped"] for arm in run.read("summary.json")["trials"]}
    report = run.keval("report", str(run.run_directory())).stdout
    markdown = run.keval("report", str(run.run_directory()), "--markdown", "-").stdout

    assert {"plain": {"audio": 2}, "ms": {"image": 2, "audio": 2, "resource": 2}} == dropped
    sentences = [
        "2 sounds that tools returned did not reach the model (plain).",
        "2 images, 2 sounds and 2 resources that tools returned did not reach the model (ms).",
    ]
    assert [True, True] == [sentence in " ".join(report.split()) for sentence in sentences]
    assert [True, True] == [sentence in markdown for sentence in sentences]


def test_a_trial_shows_what_was_kept_and_dropped(run: Project) -> None:
    shown = run.keval("show", str(run.run_directory()), "--trial", "ms/gallery/q1/1").stdout

    told = " ".join(shown.split())
    assert "image() in" in told
    assert ", image not shown to the model: a dot [image/png blobs/" in told
