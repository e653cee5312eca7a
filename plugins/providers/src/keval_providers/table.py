"""The table of providers: where each is reached, by which variables, and which protocols it speaks.

Names and variables are those of LiteLLM, so that a model has one name in both; addresses and protocols are those that
each vendor documents. A protocol stands here only if the vendor takes its key as that protocol sends it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from keval.plugin import Wire
from keval_providers.hosted import HostedProvider

_CHAT: Mapping[Wire, str] = {"openai-chat": ""}
_OPENAI: Mapping[Wire, str] = {"openai-chat": "", "openai-responses": ""}
_OPENAI_AND_ANTHROPIC: Mapping[Wire, str] = {"openai-chat": "/v1", "openai-responses": "/v1", "anthropic": ""}

_HOSTED = partial(HostedProvider, wires=_CHAT)
_SERVER = partial(HostedProvider, wires=_OPENAI_AND_ANTHROPIC, ending="/v1", key_optional=True)

_PROVIDERS = (
    HostedProvider(
        "openai", ("OPENAI_API_KEY",), ("OPENAI_BASE_URL",), "https://api.openai.com/v1", _OPENAI, families=("gpt-",)
    ),
    HostedProvider(
        "anthropic",
        ("ANTHROPIC_API_KEY",),
        ("ANTHROPIC_BASE_URL",),
        "https://api.anthropic.com",
        {"anthropic": ""},
        families=("claude",),
    ),
    HostedProvider(
        "google",
        ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
        ("GOOGLE_GEMINI_BASE_URL",),
        "https://generativelanguage.googleapis.com",
        {"gemini": "", "openai-chat": "/v1beta/openai"},
        families=("gemini",),
    ),
    HostedProvider(
        "azure",
        ("AZURE_API_KEY", "AZURE_OPENAI_API_KEY"),
        ("AZURE_API_BASE", "AZURE_OPENAI_ENDPOINT"),
        None,
        {"openai-chat": "/openai/v1", "openai-responses": "/openai/v1"},
        ending="/openai/v1",
    ),
    _HOSTED("baseten", ("BASETEN_API_KEY",), ("BASETEN_API_BASE",), "https://inference.baseten.co/v1"),
    _HOSTED("cerebras", ("CEREBRAS_API_KEY",), ("CEREBRAS_API_BASE",), "https://api.cerebras.ai/v1"),
    _HOSTED("codestral", ("CODESTRAL_API_KEY",), ("CODESTRAL_API_BASE",), "https://codestral.mistral.ai/v1"),
    _HOSTED(
        "dashscope",
        ("DASHSCOPE_API_KEY",),
        ("DASHSCOPE_API_BASE",),
        "https://dashscope.aliyuncs.com/compatible-mode/v1",
    ),
    _HOSTED("deepinfra", ("DEEPINFRA_API_KEY",), ("DEEPINFRA_API_BASE",), "https://api.deepinfra.com/v1/openai"),
    HostedProvider(
        "deepseek",
        ("DEEPSEEK_API_KEY",),
        ("DEEPSEEK_API_BASE",),
        "https://api.deepseek.com",
        {"openai-chat": "/v1", "anthropic": "/anthropic"},
        ending="/v1",
    ),
    _HOSTED(
        "featherless_ai",
        ("FEATHERLESS_AI_API_KEY", "FEATHERLESS_API_KEY"),
        ("FEATHERLESS_AI_API_BASE", "FEATHERLESS_API_BASE"),
        "https://api.featherless.ai/v1",
    ),
    HostedProvider(
        "fireworks_ai",
        ("FIREWORKS_API_KEY", "FIREWORKS_AI_API_KEY"),
        ("FIREWORKS_API_BASE",),
        "https://api.fireworks.ai/inference/v1",
        _OPENAI_AND_ANTHROPIC,
        ending="/v1",
    ),
    _HOSTED(
        "friendliai",
        ("FRIENDLI_TOKEN", "FRIENDLIAI_API_KEY"),
        ("FRIENDLI_API_BASE",),
        "https://api.friendli.ai/serverless/v1",
    ),
    _HOSTED("github", ("GITHUB_API_KEY", "GITHUB_TOKEN"), ("GITHUB_API_BASE",), "https://models.github.ai/inference"),
    _HOSTED("groq", ("GROQ_API_KEY",), ("GROQ_API_BASE",), "https://api.groq.com/openai/v1", wires=_OPENAI),
    _HOSTED(
        "huggingface",
        ("HF_TOKEN", "HUGGINGFACE_API_KEY"),
        ("HF_API_BASE", "HUGGINGFACE_API_BASE"),
        "https://router.huggingface.co/v1",
    ),
    _HOSTED("hyperbolic", ("HYPERBOLIC_API_KEY",), ("HYPERBOLIC_API_BASE",), "https://api.hyperbolic.xyz/v1"),
    HostedProvider(
        "minimax",
        ("MINIMAX_API_KEY",),
        ("MINIMAX_API_BASE",),
        "https://api.minimax.io/v1",
        {"openai-chat": "/v1", "anthropic": "/anthropic"},
        ending="/v1",
    ),
    _HOSTED("mistral", ("MISTRAL_API_KEY",), ("MISTRAL_API_BASE",), "https://api.mistral.ai/v1"),
    _HOSTED("moonshot", ("MOONSHOT_API_KEY",), ("MOONSHOT_API_BASE",), "https://api.moonshot.ai/v1"),
    _HOSTED("nebius", ("NEBIUS_API_KEY",), ("NEBIUS_API_BASE",), "https://api.tokenfactory.nebius.com/v1"),
    _HOSTED("novita", ("NOVITA_API_KEY",), ("NOVITA_API_BASE",), "https://api.novita.ai/v3/openai"),
    _HOSTED("nscale", ("NSCALE_API_KEY",), ("NSCALE_API_BASE",), "https://inference.api.nscale.com/v1"),
    _HOSTED("nvidia_nim", ("NVIDIA_NIM_API_KEY",), ("NVIDIA_NIM_API_BASE",), "https://integrate.api.nvidia.com/v1"),
    _HOSTED(
        "openrouter", ("OPENROUTER_API_KEY",), ("OPENROUTER_API_BASE",), "https://openrouter.ai/api/v1", wires=_OPENAI
    ),
    _HOSTED(
        "perplexity",
        ("PERPLEXITY_API_KEY", "PERPLEXITYAI_API_KEY"),
        ("PERPLEXITY_API_BASE",),
        "https://api.perplexity.ai",
    ),
    _HOSTED("sambanova", ("SAMBANOVA_API_KEY",), ("SAMBANOVA_API_BASE",), "https://api.sambanova.ai/v1"),
    _HOSTED(
        "together_ai",
        ("TOGETHER_API_KEY", "TOGETHERAI_API_KEY", "TOGETHER_AI_API_KEY"),
        ("TOGETHER_AI_API_BASE",),
        "https://api.together.ai/v1",
    ),
    _HOSTED(
        "vercel_ai_gateway",
        ("VERCEL_AI_GATEWAY_API_KEY", "AI_GATEWAY_API_KEY"),
        ("VERCEL_AI_GATEWAY_API_BASE",),
        "https://ai-gateway.vercel.sh/v1",
    ),
    _HOSTED("wandb", ("WANDB_API_KEY",), ("WANDB_API_BASE",), "https://api.inference.wandb.ai/v1"),
    _HOSTED("xai", ("XAI_API_KEY",), ("XAI_API_BASE",), "https://api.x.ai/v1", wires=_OPENAI),
    _HOSTED("zai", ("ZAI_API_KEY",), ("ZAI_API_BASE",), "https://api.z.ai/api/paas/v4"),
    # Servers of one's own, at the port that each takes by default.
    _SERVER("hosted_vllm", ("HOSTED_VLLM_API_KEY",), ("HOSTED_VLLM_API_BASE",), "http://localhost:8000/v1"),
    _SERVER("litellm_proxy", ("LITELLM_PROXY_API_KEY",), ("LITELLM_PROXY_API_BASE",), "http://localhost:4000/v1"),
    _SERVER(
        "llamafile",
        ("LLAMAFILE_API_KEY",),
        ("LLAMAFILE_API_BASE",),
        "http://localhost:8080/v1",
        wires={"openai-chat": "/v1"},
    ),
    _SERVER("lm_studio", ("LM_STUDIO_API_KEY",), ("LM_STUDIO_API_BASE",), "http://localhost:1234/v1"),
    _SERVER("ollama", ("OLLAMA_API_KEY",), ("OLLAMA_API_BASE",), "http://localhost:11434/v1"),
)

ALIASES = {
    "fireworks": "fireworks_ai",
    "gemini": "google",
    "lmstudio": "lm_studio",
    "ollama_chat": "ollama",
    "together": "together_ai",
    "vllm": "hosted_vllm",
}
"""Other names that users type, with the provider that each stands for."""

PROVIDERS: Mapping[str, HostedProvider] = {provider.vendor: provider for provider in _PROVIDERS}


def __getattr__(name: str) -> Callable[[], HostedProvider]:
    """Return what constructs the provider of that name, for the entry points."""
    if name not in PROVIDERS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return lambda: PROVIDERS[name]
