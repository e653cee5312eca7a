"""The table of providers, what is declared of it, and what it makes of the environment."""

from __future__ import annotations

import asyncio
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from keval.execute.models.prices import looked_up
from keval.plugin import Endpoint, PreflightError, Wire
from keval.seams import registry
from keval_providers import ALIASES, PROVIDERS, HostedProvider

ROOT = Path(__file__).parents[3]


def project(folder: str) -> dict[str, Any]:
    text = (ROOT / folder / "pyproject.toml").read_text(encoding="utf-8")
    table: dict[str, Any] = tomllib.loads(text)["project"]
    return table


def endpoint(name: str) -> Endpoint:
    async def opened() -> Endpoint:
        async with PROVIDERS[name]().open(["a/model"], 0) as endpoints:
            return endpoints["a/model"]

    return asyncio.run(opened())


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_GCE_CHECK", "true")  # or the libraries look for a machine of their cloud
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for provider in PROVIDERS.values():
        for variable in (*provider.key_variables, *provider.token_variables, *provider.url_variables):
            monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("AZURE_TOKEN_CREDENTIALS", "EnvironmentCredential")  # others ask programs and the network


def test_table_and_entry_points_name_the_same_providers() -> None:
    named = {**{name: name for name in PROVIDERS}, **ALIASES}
    points = project("plugins/providers")["entry-points"]["keval.models"]

    assert {name: f"keval_providers.table:{vendor}" for name, vendor in named.items()} == points


def test_models_that_run_on_this_machine_cost_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    models = ["ollama/qwen3:4b", "lmstudio/qwen3", "ollama/gpt-oss:120b-cloud", "openai/qwen3", "hosted_vllm/qwen3"]

    here = {name: price.input + price.output for name, price in looked_up(models).items()}
    monkeypatch.setenv("OLLAMA_API_BASE", "https://ollama.com")
    elsewhere = looked_up(models)

    assert {"ollama/qwen3:4b": 0.0, "lmstudio/qwen3": 0.0} == here
    assert {"lmstudio/qwen3"} == {*elsewhere}


@pytest.mark.parametrize("name", [*PROVIDERS, *ALIASES])
def test_every_name_leads_to_its_provider(name: str) -> None:
    component = registry.find("keval.models", name)

    assert PROVIDERS[ALIASES.get(name, name)] is registry.load(component)


def test_an_entry_point_of_another_name_is_no_provider() -> None:
    with pytest.raises(ImportError, match="cannot import name 'nobody'"):
        exec("from keval_providers.table import nobody", {})


@pytest.mark.parametrize(
    "provider",
    [each for each in PROVIDERS.values() if not each.key_optional and not each.ways],
    ids=lambda each: each.vendor,
)
def test_a_hosted_provider_names_the_variables_that_are_not_set(provider: type[HostedProvider]) -> None:
    with pytest.raises(PreflightError) as raised:
        endpoint(provider.vendor)

    wanted = " or ".join((*provider.key_variables, *provider.token_variables))
    told = f"{wanted} is not set; {{}} needs it: export it" if wanted else "there is nothing to sign in with; {} needs"
    assert told.format(f"{provider.vendor}/a/model") in raised.value.problems[-1]
    assert all(url.startswith("https://") for url in provider().urls.values())


def test_azure_needs_the_base_url_too() -> None:
    with pytest.raises(PreflightError) as raised:
        endpoint("azure")

    told = "AZURE_API_BASE or AZURE_OPENAI_ENDPOINT is not set; azure/a/model needs the base URL: export it"
    assert [told] == raised.value.problems[:-1]


@pytest.mark.parametrize(
    ("variable", "given", "urls"),
    [
        ("AZURE_API_BASE", "https://mine.openai.azure.com/", {"https://mine.openai.azure.com/openai/v1"}),
        (
            "AZURE_OPENAI_ENDPOINT",
            "https://mine.openai.azure.com/openai/v1/",
            {"https://mine.openai.azure.com/openai/v1"},
        ),
        ("OLLAMA_API_BASE", "http://gpu:11434", {"http://gpu:11434/v1", "http://gpu:11434"}),
        ("OLLAMA_API_BASE", "http://gpu:11434/v1", {"http://gpu:11434/v1", "http://gpu:11434"}),
        ("DEEPSEEK_API_BASE", "https://proxy/v1/", {"https://proxy/v1", "https://proxy/anthropic"}),
        ("FIREWORKS_API_BASE", "https://proxy/in/v1", {"https://proxy/in/v1", "https://proxy/in"}),
        ("OPENAI_BASE_URL", "http://gpu/custom/", {"http://gpu/custom/"}),
        ("GROQ_API_BASE", "http://gpu/custom", {"http://gpu/custom"}),
    ],
)
def test_a_base_url_is_taken_with_and_without_its_ending(
    monkeypatch: pytest.MonkeyPatch, variable: str, given: str, urls: set[str]
) -> None:
    (provider,) = [each for each in PROVIDERS.values() if variable in each.url_variables]
    monkeypatch.setenv(variable, given)
    monkeypatch.setenv(provider.key_variables[-1], "a-key-of-mine")

    assert urls == {*endpoint(provider.vendor).urls.values()}


@pytest.mark.parametrize(("vendor", "model"), [("cohere", "cohere/a/model"), ("litellm", "a/model")])
def test_what_is_behind_a_proxy_of_litellm_is_asked_for_by_the_name_that_the_proxy_knows(
    monkeypatch: pytest.MonkeyPatch, vendor: str, model: str
) -> None:
    monkeypatch.setenv("LITELLM_PROXY_API_BASE", "http://gpu:4000")

    found = endpoint(vendor)

    assert (model, "http://gpu:4000/v1") == (found.model, found.urls["openai-chat"])


@pytest.mark.parametrize(
    "provider",
    [each for each in PROVIDERS.values() if each.key_optional and each.default_url],
    ids=lambda each: each.vendor,
)
def test_a_local_server_needs_no_key(provider: type[HostedProvider]) -> None:
    found = endpoint(provider.vendor)

    assert "none" == found.api_key
    assert all(url.startswith("http://localhost:") for url in found.urls.values())


def test_each_vendor_that_has_other_names_for_fields_is_in_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MISTRAL_API_KEY", "a-key-of-mine")

    first, second = endpoint("mistral"), endpoint("mistral")

    assert {"openai-chat": {"max_completion_tokens": "max_tokens", "seed": "random_seed"}} == first.refused
    first.refused["openai-chat"]["user"] = None  # found out in one run, and not known to the next
    assert first.refused != second.refused


@pytest.mark.parametrize(("vendor", "module"), [("bedrock", "botocore.session"), ("vertex_ai", "google.auth")])
def test_a_cloud_whose_library_is_missing_names_the_line_that_installs_it(
    monkeypatch: pytest.MonkeyPatch, vendor: str, module: str
) -> None:
    for name in [name for name in sys.modules if name in ("keval_providers.aws", "keval_providers.google")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)

    with pytest.raises(PreflightError) as raised:
        endpoint(vendor)

    extra = {"bedrock": "bedrock", "vertex_ai": "vertex"}[vendor]
    assert f" with keval-providers[{extra}]: `uv" in raised.value.problems[-1]


@pytest.mark.parametrize(
    ("model", "urls"),
    [
        ("vertex_ai/claude-sonnet-5-5", {"anthropic": "https://aiplatform.eu.rep.googleapis.com/v1/P"}),
        (
            "vertex_ai/gemini-2.5-flash",
            {
                "gemini": "https://aiplatform.eu.rep.googleapis.com/v1beta1/P",
                "openai-chat": "https://aiplatform.eu.rep.googleapis.com/v1/P/endpoints/openapi",
            },
        ),
        ("vertex_ai/meta/llama-4", {"openai-chat": "https://aiplatform.eu.rep.googleapis.com/v1/P/endpoints/openapi"}),
        ("bedrock/eu.anthropic.claude-5", {"anthropic": "https://bedrock-mantle.eu-west-1.api.aws/anthropic"}),
        (
            "bedrock/openai.gpt-5.5",
            {
                "openai-chat": "https://bedrock-mantle.eu-west-1.api.aws/openai/v1",
                "openai-responses": "https://bedrock-mantle.eu-west-1.api.aws/openai/v1",
            },
        ),
        ("azure_ai/claude-5", {"anthropic": "https://mine.services.ai.azure.com/anthropic"}),
    ],
)
def test_a_model_on_a_cloud_speaks_what_it_has_there(
    monkeypatch: pytest.MonkeyPatch, model: str, urls: dict[str, str]
) -> None:
    vendor, _, name = model.partition("/")
    variables = {
        "VERTEXAI_PROJECT": "my-project",
        "VERTEXAI_LOCATION": "eu",
        "AWS_REGION": "eu-west-1",
        "AWS_BEARER_TOKEN_BEDROCK": "a-key-of-mine",
        "AZURE_AI_API_KEY": "a-key-of-mine",
        "ANTHROPIC_FOUNDRY_RESOURCE": "mine",
    }
    for variable, value in variables.items():
        monkeypatch.setenv(variable, value)

    async def opened() -> Mapping[Wire, str]:
        async with PROVIDERS[vendor](("printf", "a-token")).open([name], 0) as endpoints:
            return endpoints[name].urls

    found = asyncio.run(opened())

    assert {wire: url.replace("/P", "/projects/my-project/locations/eu") for wire, url in urls.items()} == found


@pytest.mark.parametrize(
    ("vendor", "command", "environ", "told"),
    [
        (
            "vertex_ai",
            ("printf", "a-token"),
            {},
            "VERTEXAI_PROJECT or GOOGLE_CLOUD_PROJECT is not set, and the credentials name no project; vertex_ai/a",
        ),
        (
            "vertex_ai",
            (),
            {"GOOGLE_APPLICATION_CREDENTIALS": "nowhere.json"},
            "GOOGLE_APPLICATION_CREDENTIALS cannot be used: File nowhere.json was not found.; correct the variable",
        ),
        (
            "bedrock",
            ("printf", "a-token"),
            {},
            "AWS_REGION_NAME, AWS_REGION or AWS_DEFAULT_REGION is not set, and no profile names a region; bedrock/a",
        ),
        (
            "bedrock",
            (),
            {"AWS_PROFILE": "nobody"},
            "AWS's credentials cannot be used: The config profile (nobody) could not be found; correct AWS_PROFILE",
        ),
    ],
)
def test_what_a_cloud_lacks_is_told(
    monkeypatch: pytest.MonkeyPatch, vendor: str, command: tuple[str, ...], environ: dict[str, str], told: str
) -> None:
    for name, value in environ.items():
        monkeypatch.setenv(name, value)

    async def opened() -> None:
        async with PROVIDERS[vendor](command).open(["a/model"], 0):
            pass

    with pytest.raises(PreflightError) as raised:
        asyncio.run(opened())
    assert raised.value.problems[-1].startswith(told)
