"""Providers that are reached by their base URL alone, with the whole of keval in front of them."""

from __future__ import annotations

import sys

import pytest

from tests.conftest import Project
from tests.end_to_end.servers.model import gateway
from tests.providers import BusyModel, check_busy_run


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "variables"),
    [
        ("ollama/qwen3:4b", {"OLLAMA_API_BASE": "{url}", "OLLAMA_API_KEY": None}),
        ("openrouter/some-lab/some-model", {"OPENROUTER_API_BASE": "{url}", "OPENROUTER_API_KEY": "a-key-of-mine"}),
        ("azure/my-deployment", {"AZURE_API_BASE": "{url}", "AZURE_API_KEY": "a-key-of-mine"}),
    ],
)
def test_a_provider_by_base_url_answers_agents_and_judges(
    project: Project, model: str, variables: dict[str, str | None]
) -> None:
    busy = BusyModel()
    with gateway(busy) as environ:
        url = environ["OPENAI_BASE_URL"]
        led = {name: value and value.format(url=url) for name, value in variables.items()}

        check_busy_run(project, model, {**led, "PYTHON": sys.executable}, busy.asked)

    assert {model.partition("/")[2]} == {request.model for request in busy.asked}
