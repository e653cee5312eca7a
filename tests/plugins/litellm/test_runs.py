"""Runs with models that LiteLLM reaches: Vertex AI by a service account, Bedrock by signed requests."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

pytest.importorskip("keval_litellm", reason="keval-litellm is not installed")

from tests.canaries import leaks
from tests.conftest import Project
from tests.end_to_end.servers.model import served
from tests.plugins.litellm.standins import AWS, bedrock, private_key, service_account, vertex_ai
from tests.printed import printed
from tests.providers import BusyModel, check_busy_run

KEY = "c4n4ry/of+Cohere~="
HERE = {"PYTHON": sys.executable}


def on_vertex_ai(project: Project, model: str, agent: str) -> BusyModel:
    busy, key = BusyModel(), private_key()
    with served(vertex_ai(busy, key)) as base:
        environ = {
            "GOOGLE_APPLICATION_CREDENTIALS": service_account(project.root, key, base),
            "VERTEXAI_PROJECT": "my-project",
            "VERTEXAI_LOCATION": "europe-west1",
            "VERTEXAI_API_BASE": base,
        }
        check_busy_run(project, model, {**HERE, **environ}, busy.asked, agent=agent)
    return busy


def on_bedrock(project: Project, model: str, agent: str) -> BusyModel:
    busy = BusyModel()
    with served(bedrock(busy)) as base:
        environ = {**AWS, "AWS_BEDROCK_RUNTIME_ENDPOINT": base}
        # LiteLLM takes an internal error of Bedrock for one of a service that is not available.
        check_busy_run(project, model, {**HERE, **environ}, busy.asked, agent=agent, broken=503)
    return busy


@pytest.mark.parametrize(
    ("run", "model", "agent"),
    [
        (on_vertex_ai, "litellm/vertex_ai/gemini-2.5-flash", "openai"),
        (on_vertex_ai, "litellm/vertex_ai/claude-sonnet-4-5", "anthropic"),
        (on_bedrock, "litellm/bedrock/eu.amazon.nova-lite-v1:0", "openai"),
        (on_bedrock, "litellm/bedrock/anthropic.claude-sonnet-4-5-20250929-v1:0", "anthropic"),
        (on_bedrock, "litellm/bedrock/eu.amazon.nova-pro-v1:0", "gadk"),
        (on_vertex_ai, "litellm/vertex_ai/gemini-2.5-pro", "ms"),
        (on_bedrock, "litellm/bedrock/eu.amazon.nova-lite-v1:0", "openai, api: responses"),
    ],
)
def test_a_busy_model_behind_litellm_answers_agents_and_judges(
    project: Project, run: Callable[[Project, str, str], BusyModel], model: str, agent: str
) -> None:
    busy = run(project, model, agent)

    assert {model.rpartition("/")[2]} == {request.model for request in busy.asked}


async def refuses(request: Request) -> JSONResponse:
    key = request.headers["authorization"].partition(" ")[2]
    status = 400 if key == KEY else 401
    return JSONResponse({"message": f"this is refused to {key}"}, status)


def test_a_key_in_a_file_reaches_the_vendor_and_stands_nowhere(project: Project) -> None:
    project.write(
        eval_yaml="dataset: {path: questions.jsonl}\nagents: {openai: {model: cohere/m}}\nmetrics: [double/length]\n",
        questions_jsonl='{"id": "1", "question": "?"}\n',
        key_txt=f"{KEY}\n",
    )
    with served(Starlette(routes=[Route("/{path:path}", refuses, methods=["POST"])])) as base:
        code, said = printed("run", "eval.yaml", env={"COHERE_API_KEY_FILE": "key.txt", "COHERE_API_BASE": base})

    assert 3 == code, said
    (trial,) = project.lines("trials.jsonl")
    assert ("http_400", True) == (trial["failure"]["kind"], "refused to [secret]" in trial["failure"]["message"])
    assert [] == leaks({"key": KEY}, [said], project.root, ["key.txt"])
