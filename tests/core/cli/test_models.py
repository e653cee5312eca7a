"""`keval models` says which providers there are, and whether a model can be used."""

from __future__ import annotations

import socket

import pytest
from importlib_metadata import version

from keval.seams import registry
from keval_clients import sender
from keval_gateway import ChatReply, ChatRequest, ModelFault
from tests.conftest import Project
from tests.end_to_end.servers.model import gateway

KEY = "sk-a-canary-of-a-key"
PROVIDERS = f"keval-providers {version('keval-providers')}"


def test_every_provider_that_can_be_made_is_listed_with_its_package_and_no_key(project: Project) -> None:
    environ = {"GROQ_API_KEY": KEY, "OPENROUTER_API_KEY": None, "OLLAMA_API_BASE": f"http://me:{KEY}@gpu:11434"}

    told = project.keval("models", env=environ)
    outcome = project.keval("models", "--json", env=environ)

    found = {provider["name"]: provider for provider in outcome.data}
    assert found.keys() == {component.name for component in registry.components("keval.models")}
    assert {
        "name": "groq",
        "package": PROVIDERS,
        "wires": ["openai-chat", "openai-responses"],
        "url": "https://api.groq.com/openai/v1",
        "key_variables": ["GROQ_API_KEY"],
        "key_set": "GROQ_API_KEY",
        "key_optional": False,
        "ways": [],
        "prices": True,
    } == found["groq"]
    assert (None, ["OPENROUTER_API_KEY"]) == (found["openrouter"]["key_set"], found["openrouter"]["key_variables"])
    assert ("http://gpu:11434/v1", True, False) == tuple(
        found["ollama"][key] for key in ("url", "key_optional", "prices")
    )
    assert {PROVIDERS, f"keval-simulator {version('keval-simulator')}"} < {*told.stdout.splitlines()}
    assert "GROQ_API_KEY is set " in told.stdout
    assert "OPENROUTER_API_KEY is not set " in told.stdout
    assert KEY not in outcome.stdout + told.stdout


def test_the_name_of_a_provider_lists_that_one(project: Project) -> None:
    (provider,) = project.keval("models", "together_ai", "--json").data

    assert ("together_ai", True) == (provider["name"], provider["prices"])


@pytest.mark.parametrize(
    ("model", "environ", "told"),
    [
        ("openrouter/some/model", {"OPENROUTER_API_KEY": None}, "OPENROUTER_API_KEY is not set; openrouter/some/model"),
        ("openruoter/some/model", {}, "no model provider named 'openruoter' is installed; did you mean 'openrouter'?"),
        ("some-model", {}, "a model is provider/name, such as openai/gpt-4o-mini; got 'some-model'"),
        ("azure/mine", {"AZURE_API_KEY": KEY}, "AZURE_API_BASE or AZURE_OPENAI_ENDPOINT is not set; azure/mine needs"),
        (
            "cohere/large",
            {},
            "cohere/ models are reached through LiteLLM's proxy: start it, and export LITELLM_PROXY_API",
        ),
        ("litellm/acme/large", {}, "litellm/ models are reached through LiteLLM's proxy: start it, and export LITELLM"),
        ("acme/large", {}, "no model provider named 'acme' is installed; installed: "),
    ],
)
def test_a_model_that_cannot_be_used_is_told_with_the_reason(
    project: Project, model: str, environ: dict[str, str | None], told: str
) -> None:
    outcome = project.keval("models", model, env=environ)

    assert 2 == outcome.code
    assert any(line.startswith("FAULT") and told in line for line in outcome.stdout.splitlines())


def test_a_model_that_can_be_used_is_told_with_where_and_what_it_costs(project: Project) -> None:
    outcome = project.keval("models", "gpt-4o", env={"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": None})

    assert 0 == outcome.code
    provider, access, wires, price = outcome.stdout.splitlines()
    assert f"ok     provider  openai comes with {PROVIDERS}" == provider
    assert "ok     access    by the key in OPENAI_API_KEY" == access
    assert "openai-chat at https://api.openai.com/v1, openai-responses at https://api.openai.com/v1" in wires
    assert "$2.5 per million tokens of input, $10 of output (genai-prices " in price


def test_an_unknown_price_is_no_fault(project: Project) -> None:
    outcome = project.keval("models", "hosted_vllm/my-own", "--json")

    price = outcome.data[-1]
    assert (0, "price", None) == (outcome.code, price["about"], price["well"])
    assert "`prices: {hosted_vllm/my-own: {input: …, output: …}}`" in price["remedy"]


@pytest.mark.usefixtures("simulated_here")
def test_a_simulated_model_needs_no_key_and_has_no_price(project: Project) -> None:
    outcome = project.keval("models", "simulated/any", "--json")

    assert (0, ["provider", "access", "wires"]) == (outcome.code, [finding["about"] for finding in outcome.data])


def test_a_name_alone_belongs_to_the_vendor_of_its_family_for_every_agent_and_judge(project: Project) -> None:
    agents = "{ms: {model: gpt-4o}, gadk: {type: gadk, model: claude-sonnet-5-5}, other: {type: gadk, model: openai/m}}"
    prices = "{gpt-5: {input: 1, output: 2}}"
    project.write(
        eval_yaml=f"dataset: {{path: q.jsonl}}\nagents: {agents}\njudge: {{model: gpt-5}}\nprices: {prices}\n",
        q_jsonl='{"id": "q", "question": "Why?", "answer": "So."}\n',
    )

    outcome = project.keval("run", "eval.yaml", "--dry-run", "--json", "--model", "other=gpt-5")

    named = {"ms": "openai/gpt-4o", "gadk": "anthropic/claude-sonnet-5-5", "other": "openai/gpt-5"}
    assert named == {label: agent["model"] for label, agent in outcome.data["agents"].items()}
    assert "openai/gpt-5" == outcome.data["judges"]["judge"]["model"]
    assert "no agent or judge asks" not in outcome.stderr


def lacks(request: ChatRequest) -> ChatReply:
    raise ModelFault(404, "model 'qwen3:4b' not found")


def test_a_server_of_ones_own_that_is_not_there_or_lacks_the_model_is_told_with_what_helps(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    monkeypatch.setitem(sender._STARTS, str(port), sender._STARTS["11434"])
    absent = project.keval("models", "ollama/qwen3:4b", "--ask", env={"OLLAMA_API_BASE": f"http://127.0.0.1:{port}"})
    with gateway(lacks) as environ:
        url = environ["OPENAI_BASE_URL"]
        lacking = project.keval("models", "ollama/qwen3:4b", "--ask", env={"OLLAMA_API_BASE": url})

    assert f"('127.0.0.1', {port})]; `ollama serve` starts Ollama\n" in absent.stdout
    assert "; with Ollama, `ollama pull NAME` gets it; or correct the name of the model" in lacking.stdout


def answers(request: ChatRequest) -> ChatReply:
    return ChatReply(f"Yes, {request.messages[-1].text!r}")


def denies(request: ChatRequest) -> ChatReply:
    raise ModelFault(401, f"Incorrect API key provided: {request.headers}")


@pytest.mark.parametrize("model", ["openai/gpt-x", "anthropic/claude-x"])
def test_a_model_is_asked_for_a_word_and_what_it_says_is_told(project: Project, model: str) -> None:
    keys = {"OPENAI_API_KEY": KEY, "ANTHROPIC_API_KEY": KEY}
    with gateway(answers) as environ:
        well = project.keval("models", model, "--ask", env={**environ, **keys})
    with gateway(denies) as environ:
        ill = project.keval("models", model, "--ask", env={**environ, **keys})

    assert (0, True) == (well.code, "ok     reply     Yes, 'Reply with the one word: yes'\n" in well.stdout)
    (told,) = (line for line in ill.stdout.splitlines() if line.startswith("FAULT"))
    assert (2, True) == (ill.code, "reply     the model's endpoint answered with status 401: Incorrect API key" in told)
    assert (True, False) == ("[secret]" in told, KEY in ill.stdout + ill.stderr)


@pytest.mark.parametrize("args", [(), ("openai",)])
def test_nothing_but_a_model_can_be_asked(project: Project, args: tuple[str, ...]) -> None:
    outcome = project.keval("models", *args, "--ask")

    assert (2, True) == (outcome.code, "--ask needs MODEL, such as openai/gpt-4o-mini" in outcome.stderr)


def test_a_config_with_a_problem_gives_no_options(project: Project) -> None:
    project.write(eval_yaml="providers: {openai: {command: 1}}\n")

    outcome = project.keval("models", "openai/gpt-x", "--config", "eval.yaml")

    assert (2, True) == (outcome.code, "error: eval.yaml:1:31: expected a list, got 1\n" in outcome.stderr)
