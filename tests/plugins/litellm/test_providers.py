"""The providers of keval-litellm: what is declared of them, and what they need before anything starts."""

from __future__ import annotations

import asyncio
import tomllib
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("keval_litellm", reason="keval-litellm is not installed")

from keval.plugin import PreflightError
from keval.seams import registry
from keval_litellm import PROVIDERS
from keval_providers import PROVIDERS as BY_URL
from tests.conftest import Project

ROOT = Path(__file__).parents[3]


def project_table(folder: str) -> dict[str, Any]:
    table: dict[str, Any] = tomllib.loads((ROOT / folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return table


def test_table_and_entry_points_name_the_same_providers() -> None:
    points = project_table("plugins/litellm")["entry-points"]["keval.models"]

    assert {name: f"keval_litellm.provider:{name}" for name in PROVIDERS} == points
    assert all(PROVIDERS[name] is registry.load(registry.find("keval.models", name))() for name in PROVIDERS)


@pytest.mark.filterwarnings("ignore")  # LiteLLM has warnings of its own
def test_the_providers_have_the_names_and_the_base_urls_that_litellm_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    """But for those whose vendor documents another address since, and LiteLLM's own words for a server's."""
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    import litellm
    from litellm.litellm_core_utils.get_llm_provider_logic import get_llm_provider

    for provider in BY_URL.values():
        for variable in (*provider.url_variables, *provider.key_variables):
            monkeypatch.delenv(variable, raising=False)
    known = {getattr(name, "value", name) for name in litellm.provider_list}
    theirs = {name: get_llm_provider(f"{name}/some-model")[3] for name in BY_URL if name in known}
    ours = {name: next(iter(provider().urls.values()), None) for name, provider in BY_URL.items()}

    assert {"google"} == BY_URL.keys() - known
    assert {"litellm"} == PROVIDERS.keys() - known
    assert {"deepseek", "github", "llamafile", "nebius", "ollama"} == {
        name for name, url in theirs.items() if url is not None and url != ours[name]
    }


@pytest.mark.parametrize(
    ("provider", "name", "problem"),
    [
        ("cohere", "command-a", "COHERE_API_KEY or CO_API_KEY is not set; cohere/command-a needs it: export it"),
        ("litellm", "command-a", "litellm/command-a lacks a provider: litellm/PROVIDER/NAME, with the names that"),
    ],
)
def test_what_a_provider_lacks_is_told_before_its_server_starts(
    monkeypatch: pytest.MonkeyPatch, provider: str, name: str, problem: str
) -> None:
    monkeypatch.delenv("COHERE_API_KEY", raising=False)
    monkeypatch.delenv("CO_API_KEY", raising=False)

    async def opened() -> None:
        async with PROVIDERS[provider].open([name], 0):
            pass

    with pytest.raises(PreflightError) as raised:
        asyncio.run(opened())
    assert raised.value.problems[0].startswith(problem)


def test_a_server_that_does_not_come_up_says_why(project: Project) -> None:
    (project.root / "litellm.py").write_text("raise ImportError('this is no LiteLLM')\n", encoding="utf-8")
    project.environ["PYTHONPATH"] = str(project.root)

    outcome = project.keval("models", "litellm/vertex_ai/gemini-2.5-flash")

    assert 2 == outcome.code
    assert "the server of LiteLLM for litellm/ models did not come up as it should; try `python -m" in outcome.stdout
    assert "ImportError: this is no LiteLLM" in outcome.stdout
