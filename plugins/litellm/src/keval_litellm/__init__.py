"""Model providers through LiteLLM: Vertex AI, Bedrock, Cohere and others that speak a protocol of their own."""

from keval_litellm.provider import PROVIDERS, LiteLLMProvider

__all__ = ["PROVIDERS", "LiteLLMProvider"]
