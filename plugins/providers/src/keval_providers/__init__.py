"""The vendors' hosted models: OpenAI, Anthropic and Google."""

from keval_providers.hosted import HostedProvider, anthropic, google, openai

__all__ = ["HostedProvider", "anthropic", "google", "openai"]
