"""The judges' options, as a config gives them."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import pytest

from keval import Score
from keval.plugin import Endpoint, JudgeContext, Model, TrialError
from keval_gateway import ChatRequest, wire_urls
from keval_gateway.app import build_app
from keval_judges.openai_judge import OpenAI
from keval_loopback.serving import serve
from tests.conftest import Project
from tests.judges.llm.conftest import GOOD, GRADED, RUBRICS, TRIAL, said

ELSEWHERE = "http://127.0.0.1:1/v1"
CONFIG = """
agents: {{old: {{type: recorded, path: old.jsonl}}}}
dataset: {{path: questions.jsonl}}
judges: {{strict: {judge}}}
rubrics: [completeness]
"""


def validated(project: Project, judge: str, env: Mapping[str, str | None] | None = None) -> str:
    project.write(
        eval_yaml=CONFIG.format(judge=judge),
        questions_jsonl='{"id": "q", "question": "Why?", "answer": "Because."}\n',
        old_jsonl='{"id": "q", "response": "So."}\n',
    )
    outcome = project.keval("validate", "eval.yaml", env=env)
    return outcome.stdout + outcome.stderr if outcome.code else ""


@pytest.mark.parametrize(
    "judge",
    [
        "{type: openai, model: openai/gpt-4o}",
        "{type: openai, model: openai/gpt-4o, temperature: null, max_tokens: 800, structured: tool}",
        "{type: openai, model: simulated/judge, structured: tool, seed: false}",
        "{type: openai, model: openai/local, base_url: 'http://127.0.0.1:1/v1'}",
        "{type: openai, model: openai/local, base_url: 'https://example.org/v1', api_key: '${ACME_KEY}'}",
        "{type: anthropic, model: anthropic/claude, temperature: 1, max_tokens: 800, structured: tool}",
    ],
)
def test_a_config_that_is_right_is_accepted(project: Project, judge: str) -> None:
    assert "" == validated(project, judge, env={"ACME_KEY": "s3cret-key"})


@pytest.mark.parametrize(
    ("judge", "problem"),
    [
        ("{type: openai}", "the key 'model' is missing"),
        ("{type: openai, model: openai/m, tempreture: 0}", "did you mean 'temperature'?"),
        ("{type: openai, model: openai/m, structured: yaml}", "json_schema"),
        ("{type: openai, model: openai/m, max_tokens: 0}", "'max_tokens' must be >= 1: 0"),
        ("{type: openai, model: openai/m, base_url: 'localhost:8000'}", "must begin with http:// or https://"),
        ("{type: openai, model: openai/m, api_key: '${ACME_KEY}'}", "'api_key' must stand beside base_url"),
        (
            "{type: openai, model: simulated/judge, base_url: 'http://127.0.0.1:1/v1'}",
            "a simulated model is not behind a base_url",
        ),
        (
            "{type: openai, model: simulated/judge, structured: prompt}",
            "a simulated model gives no verdict when asked in",
        ),
        ("{type: anthropic, model: anthropic/m, structured: prompt}", "tool"),
        ("{type: anthropic, model: anthropic/m, max_tokens: 0}", "'max_tokens' must be >= 1: 0"),
        ("{type: anthropic, model: anthropic/m, seed: 1}", "unknown key 'seed'"),
    ],
)
def test_what_is_wrong_is_said_at_its_place(
    project: Project, judge: str, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACME_KEY", "acme-s3cret")
    said = validated(project, judge)

    assert problem in said
    assert "eval.yaml:3:" in said


def test_checking_a_config_imports_no_sdk() -> None:
    code = (
        "import sys\nfrom keval.plugin import Model\nfrom keval_judges import attacks\n"
        "from keval_judges.anthropic_judge import Anthropic\nfrom keval_judges.openai_judge import OpenAI\n"
        "OpenAI(model=Model('a', 'b')), Anthropic(model=Model('a', 'b')), attacks()\n"
        "print([name for name in ('openai', 'anthropic', 'aiohttp', 'httpx2') if name in sys.modules])"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert "[]" == done.stdout.strip()


def test_the_key_is_not_shown() -> None:
    judge = OpenAI(model=Model("openai", "m"), base_url=ELSEWHERE, api_key="s3cret-key")

    assert "s3cret-key" not in repr(judge)
    assert "s3cret-key" not in repr(judge.model.endpoint)


@pytest.mark.parametrize(("options", "key"), [({"api_key": "own-key"}, "own-key"), ({}, "none")])
def test_a_base_url_stands_in_for_the_providers_endpoint_and_its_key(
    runner: asyncio.Runner, options: dict[str, Any], key: str
) -> None:
    reached: dict[str, list[ChatRequest]] = {"provider": [], "own": []}

    async def scenario() -> Mapping[str, Score | TrialError]:
        def app(name: str) -> Any:
            return build_app(lambda request: said(request, GOOD), observe=reached[name].append)

        async with serve(app("provider")) as theirs, serve(app("own")) as mine:
            endpoint = Endpoint("m", wire_urls(theirs), "provider-key", simulated=True, wants_trial=True)
            own = wire_urls(mine)["openai-chat"]
            judge = OpenAI(model=Model("openai", "m", endpoint), base_url=own, **options)
            scores = await judge.grade(TRIAL, RUBRICS, JudgeContext())
            await judge.aclose()
            return scores

    assert GRADED == runner.run(scenario())
    assert [] == reached["provider"]
    (request,) = reached["own"]
    assert f"Bearer {key}" == request.headers["authorization"]
    assert "provider-key" not in str(request.headers)


def test_a_judge_with_a_base_url_has_an_endpoint_that_wants_no_trial() -> None:
    resolved = Endpoint("m", {"anthropic": ELSEWHERE}, "provider-key", wants_trial=True)

    judge = OpenAI(model=Model("openai", "m", resolved), base_url=ELSEWHERE)

    assert Endpoint("m", {"openai-chat": ELSEWHERE}, "none") == judge.model.endpoint
