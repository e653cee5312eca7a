"""LiteLLM's process, which reads replies by clients of its own: they are bounded, and lead to no other origin."""

from __future__ import annotations

import json

import pytest

from tests.conftest import Project
from tests.hostile_http import hostile

pytest.importorskip("keval_litellm", reason="keval-litellm is not installed")


@pytest.mark.parametrize(
    ("model", "way", "told"),
    [
        ("litellm/openai/m", "redirect-307", "which is not asked, as it would see the request"),
        ("litellm/openai/m", "events", "has more than 20,000,000 bytes"),
        ("cohere_chat/command-r", "gzip", "has more than 20,000,000 bytes"),
    ],
)
@pytest.mark.slow
def test_what_litellm_reads_is_bounded_and_comes_from_where_it_was_asked(
    project: Project, model: str, way: str, told: str
) -> None:
    retry = {"max_attempts": 1, "max_request_attempts": 1}
    config = {
        "dataset": {"path": "q.jsonl"},
        "agents": {"a": {"type": "openai", "model": model}},
        "metrics": ["basic/turns"],
        "execution": {"retry": retry},
    }
    project.write(eval_yaml=json.dumps(config), q_jsonl='{"id": "a", "question": "Why?"}\n')

    with hostile() as there, hostile() as here:
        here.location = there.url("body")
        bases = {"OPENAI_API_BASE": f"{here.url(way)}/v1", "COHERE_API_BASE": f"{here.url(way)}/chat"}
        environ = {**bases, "OPENAI_API_KEY": "sk-abcdefgh", "COHERE_API_KEY": "sk-abcdefgh"}
        outcome = project.keval("run", "eval.yaml", env=environ)

    failures = [trial["failure"] for trial in project.lines("trials.jsonl")]
    assert (3, 1, []) == (outcome.code, len(here.asked), there.asked)
    assert told in outcome.stderr + str(failures)
    assert here.sent < 60_000_000
