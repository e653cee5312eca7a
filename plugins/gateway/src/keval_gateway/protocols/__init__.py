"""The vendors' wire protocols, each translated to and from the neutral records of `keval_gateway.chat`."""

from collections.abc import Mapping
from typing import TypeAlias

from keval.records.models import Wire
from keval_gateway.protocols.anthropic import AnthropicMessages
from keval_gateway.protocols.gemini import GeminiContent
from keval_gateway.protocols.openai import OpenAIChat, OpenAIResponses

WireProtocol: TypeAlias = AnthropicMessages | GeminiContent | OpenAIChat | OpenAIResponses
"""Translates one vendor's JSON to the neutral records and back."""

PROTOCOLS: Mapping[Wire, WireProtocol] = {
    "openai-chat": OpenAIChat(),
    "openai-responses": OpenAIResponses(),
    "anthropic": AnthropicMessages(),
    "gemini": GeminiContent(),
}
