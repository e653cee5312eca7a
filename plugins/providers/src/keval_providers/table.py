"""The table of providers: where each is reached, by which variables, and which protocols it speaks.

Names and variables are those of LiteLLM, so that a model has one name in both; addresses and protocols are those that
each vendor documents. A protocol stands here only if the vendor takes its key as that protocol sends it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import attrs

from keval.plugin import Endpoint, PreflightError, Wire
from keval_providers.azure import AzureProvider
from keval_providers.clouds import BedrockProvider, FoundryProvider, VertexProvider
from keval_providers.hosted import HostedProvider, Way

_CHAT: Mapping[Wire, str] = {"openai-chat": ""}
_OPENAI: Mapping[Wire, str] = {"openai-chat": "", "openai-responses": ""}
_OPENAI_AND_ANTHROPIC_APART: Mapping[Wire, str] = {
    "openai-chat": "/openai/v1",
    "openai-responses": "/openai/v1",
    "anthropic": "/anthropic",
}
_OPENAI_AND_ANTHROPIC: Mapping[Wire, str] = {"openai-chat": "/v1", "openai-responses": "/v1", "anthropic": ""}

_TAKE_MAX_TOKENS = (
    *("cerebras", "codestral", "deepinfra", "featherless_ai", "fireworks_ai", "friendliai", "github", "hyperbolic"),
    *("mistral", "moonshot", "nebius", "nvidia_nim", "sambanova", "wandb", "xai"),
)
_PROXIED = (
    *("ai21", "cloudflare", "cohere", "cohere_chat", "databricks", "gigachat", "litellm", "nlp_cloud", "oci"),
    *("predibase", "replicate", "sagemaker", "sagemaker_chat", "snowflake", "watsonx"),
)
_PROXY_URL, _PROXY_KEY = "LITELLM_PROXY_API_BASE", "LITELLM_PROXY_API_KEY"
_SEEDS = {"codestral": "random_seed", "mistral": "random_seed"}
"""What vendors call fields of Chat Completions, where they refuse OpenAI's name or overlook it, as LiteLLM knows."""

_ENTRA = Way("azure-identity", "keval_providers.entra:sign_in", "sign in, as by `az login`", "azure")


def _hosted(
    vendor: str,
    url: str | None,
    keys: str = "",
    bases: str = "",
    wires: Mapping[Wire, str] = _CHAT,
    *,
    kind: type[HostedProvider] = HostedProvider,
    **rest: Any,
) -> type[HostedProvider]:
    """Return a provider; where no variables are named, they are those that are called after it."""
    named = {
        "vendor": vendor,
        "key_variables": tuple((keys or f"{vendor.upper()}_API_KEY").split()),
        "url_variables": tuple((bases or f"{vendor.upper()}_API_BASE").split()),
        "default_url": url,
        "wires": wires,
        "renamed": {
            **({"max_completion_tokens": "max_tokens"} if vendor in _TAKE_MAX_TOKENS else {}),
            **({"seed": _SEEDS[vendor]} if vendor in _SEEDS else {}),
        },
    }
    return type(vendor, (kind,), {"__doc__": kind.__doc__, "__module__": __name__, **named, **rest})


def _github(opens: str, extra: str = "") -> Way:
    return Way("GitHub's identity", opens, "", extra)


class ProxiedProvider(HostedProvider):
    """A vendor with a protocol of its own, which LiteLLM's proxy speaks; the proxy has the credentials."""

    @asynccontextmanager
    async def open(self, names: Sequence[str], seed: int) -> AsyncIterator[Mapping[str, Endpoint]]:
        """Yield an endpoint per model name; raises PreflightError if nothing says where the proxy is."""
        if not self.urls:
            told = f"{self.vendor}/ models are reached through LiteLLM's proxy: start it, and export {_PROXY_URL}"
            raise PreflightError(f"{told}, such as http://localhost:4000")
        async with super().open(names, seed) as endpoints:
            # `litellm/PROVIDER/NAME` has the vendor in the name.
            vendor = "" if self.vendor == "litellm" else f"{self.vendor}/"
            yield {name: attrs.evolve(endpoint, model=f"{vendor}{name}") for name, endpoint in endpoints.items()}


_server = partial(_hosted, wires=_OPENAI_AND_ANTHROPIC, ending="/v1", key_optional=True)

_PROVIDERS = (
    _hosted(
        "openai",
        "https://api.openai.com/v1",
        bases="OPENAI_BASE_URL",
        wires=_OPENAI,
        families=("gpt-",),
        header_variables={"OPENAI_ORG_ID": "openai-organization", "OPENAI_PROJECT_ID": "openai-project"},
        custom_headers="OPENAI_CUSTOM_HEADERS",
        ways=(_github("keval_providers.github:openai"),),
    ),
    _hosted(
        "anthropic",
        "https://api.anthropic.com",
        bases="ANTHROPIC_BASE_URL",
        wires={"anthropic": ""},
        families=("claude",),
        token_variables=("ANTHROPIC_AUTH_TOKEN",),
        custom_headers="ANTHROPIC_CUSTOM_HEADERS",
        ways=(_github("keval_providers.github:anthropic"),),
    ),
    _hosted(
        "google",
        "https://generativelanguage.googleapis.com",
        "GOOGLE_API_KEY GEMINI_API_KEY",
        "GOOGLE_GEMINI_BASE_URL",
        wires={"gemini": "", "openai-chat": "/v1beta/openai"},
        families=("gemini",),
    ),
    _hosted(
        "azure",
        None,
        "AZURE_API_KEY AZURE_OPENAI_API_KEY",
        "AZURE_API_BASE AZURE_OPENAI_ENDPOINT",
        wires={"openai-chat": "/openai/v1", "openai-responses": "/openai/v1"},
        kind=AzureProvider,
        ending="/openai/v1",
        key_header="api-key",
        token_variables=("AZURE_AD_TOKEN", "AZURE_OPENAI_AD_TOKEN"),
        ways=(_github("keval_providers.entra:from_github", "azure"), _ENTRA),
    ),
    _hosted(
        "azure_ai",
        None,
        "AZURE_AI_API_KEY ANTHROPIC_FOUNDRY_API_KEY",
        "AZURE_AI_API_BASE ANTHROPIC_FOUNDRY_BASE_URL",
        wires=_OPENAI_AND_ANTHROPIC_APART,
        kind=FoundryProvider,
        token_variables=("AZURE_AD_TOKEN",),
        ways=(_github("keval_providers.entra:from_github", "azure"), _ENTRA),
    ),
    _hosted(
        "bedrock",
        "https://bedrock-mantle.{region}.api.aws",
        bases="AWS_BEDROCK_BASE_URL",
        wires=_OPENAI_AND_ANTHROPIC_APART,
        ending="/openai/v1",
        kind=BedrockProvider,
        key_variables=(),
        token_variables=("AWS_BEARER_TOKEN_BEDROCK",),
        ways=(
            _github("keval_providers.aws:from_github", "bedrock"),
            Way(
                "AWS's credentials",
                "keval_providers.aws:default_chain",
                "set up AWS's credentials, as by AWS_PROFILE",
                "bedrock",
            ),
        ),
    ),
    _hosted(
        "vertex_ai",
        "https://{location}-aiplatform.googleapis.com",
        bases="VERTEXAI_API_BASE",
        wires=dict.fromkeys(("gemini", "openai-chat", "openai-responses", "anthropic"), ""),
        ending="/v1",
        kind=VertexProvider,
        key_variables=(),
        ways=(
            _github("keval_providers.google:from_github", "vertex"),
            Way(
                "Google's application default credentials",
                "keval_providers.google:application_default",
                "run `gcloud auth application-default login`",
                "vertex",
            ),
        ),
    ),
    _hosted("baseten", "https://inference.baseten.co/v1"),
    _hosted("cerebras", "https://api.cerebras.ai/v1"),
    _hosted("codestral", "https://codestral.mistral.ai/v1"),
    _hosted("dashscope", "https://dashscope.aliyuncs.com/compatible-mode/v1"),
    _hosted("deepinfra", "https://api.deepinfra.com/v1/openai"),
    _hosted(
        "deepseek", "https://api.deepseek.com", wires={"openai-chat": "/v1", "anthropic": "/anthropic"}, ending="/v1"
    ),
    _hosted(
        "featherless_ai",
        "https://api.featherless.ai/v1",
        "FEATHERLESS_AI_API_KEY FEATHERLESS_API_KEY",
        "FEATHERLESS_AI_API_BASE FEATHERLESS_API_BASE",
    ),
    _hosted(
        "fireworks_ai",
        "https://api.fireworks.ai/inference/v1",
        "FIREWORKS_API_KEY FIREWORKS_AI_API_KEY",
        "FIREWORKS_API_BASE",
        wires=_OPENAI_AND_ANTHROPIC,
        ending="/v1",
    ),
    _hosted(
        "friendliai", "https://api.friendli.ai/serverless/v1", "FRIENDLI_TOKEN FRIENDLIAI_API_KEY", "FRIENDLI_API_BASE"
    ),
    _hosted("github", "https://models.github.ai/inference", "GITHUB_API_KEY GITHUB_TOKEN"),
    _hosted("groq", "https://api.groq.com/openai/v1", wires=_OPENAI),
    _hosted(
        "huggingface",
        "https://router.huggingface.co/v1",
        "HF_TOKEN HUGGINGFACE_API_KEY",
        "HF_API_BASE HUGGINGFACE_API_BASE",
    ),
    _hosted("hyperbolic", "https://api.hyperbolic.xyz/v1"),
    _hosted(
        "minimax", "https://api.minimax.io/v1", wires={"openai-chat": "/v1", "anthropic": "/anthropic"}, ending="/v1"
    ),
    _hosted("mistral", "https://api.mistral.ai/v1"),
    _hosted("moonshot", "https://api.moonshot.ai/v1"),
    _hosted("nebius", "https://api.tokenfactory.nebius.com/v1"),
    _hosted("novita", "https://api.novita.ai/v3/openai"),
    _hosted("nscale", "https://inference.api.nscale.com/v1"),
    _hosted("nvidia_nim", "https://integrate.api.nvidia.com/v1"),
    _hosted("openrouter", "https://openrouter.ai/api/v1", wires=_OPENAI),
    _hosted("perplexity", "https://api.perplexity.ai", "PERPLEXITY_API_KEY PERPLEXITYAI_API_KEY"),
    _hosted("sambanova", "https://api.sambanova.ai/v1"),
    _hosted("together_ai", "https://api.together.ai/v1", "TOGETHER_API_KEY TOGETHERAI_API_KEY TOGETHER_AI_API_KEY"),
    _hosted("vercel_ai_gateway", "https://ai-gateway.vercel.sh/v1", "VERCEL_AI_GATEWAY_API_KEY AI_GATEWAY_API_KEY"),
    _hosted("wandb", "https://api.inference.wandb.ai/v1"),
    _hosted("xai", "https://api.x.ai/v1", wires=_OPENAI),
    _hosted("zai", "https://api.z.ai/api/paas/v4"),
    # Servers of one's own, at the port that each takes by default.
    _server("hosted_vllm", "http://localhost:8000/v1"),
    _server("litellm_proxy", "http://localhost:4000/v1"),
    *(_server(name, None, _PROXY_KEY, _PROXY_URL, kind=ProxiedProvider) for name in _PROXIED),
    _server("llamafile", "http://localhost:8080/v1", wires={"openai-chat": "/v1"}),
    _server("lm_studio", "http://localhost:1234/v1"),
    _server("ollama", "http://localhost:11434/v1"),
)

ALIASES = {
    "fireworks": "fireworks_ai",
    "gemini": "google",
    "lmstudio": "lm_studio",
    "ollama_chat": "ollama",
    "together": "together_ai",
    "vertex_ai_beta": "vertex_ai",
    "vllm": "hosted_vllm",
}
"""Other names that users type, with the provider that each stands for."""

PROVIDERS: Mapping[str, type[HostedProvider]] = {provider.vendor: provider for provider in _PROVIDERS}


def __getattr__(name: str) -> type[HostedProvider]:
    """Return the provider of that name, for the entry points."""
    if name not in PROVIDERS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return PROVIDERS[name]
