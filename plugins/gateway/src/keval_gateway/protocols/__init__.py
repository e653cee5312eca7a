"""The vendors' wire protocols, each translated to and from the neutral records of `keval_gateway.chat`."""

from collections.abc import Mapping

from keval.records.models import Wire
from keval_gateway.protocols.anthropic import AnthropicMessages
from keval_gateway.protocols.gemini import GeminiContent
from keval_gateway.protocols.openai import OpenAIChat, OpenAIResponses
from keval_gateway.protocols.protocol import WireProtocol, complete

__all__ = [
    "PROTOCOLS",
    "AnthropicMessages",
    "GeminiContent",
    "OpenAIChat",
    "OpenAIResponses",
    "WireProtocol",
    "complete",
]

PROTOCOLS: Mapping[Wire, WireProtocol] = {
    "openai-chat": OpenAIChat(),
    "openai-responses": OpenAIResponses(),
    "anthropic": AnthropicMessages(),
    "gemini": GeminiContent(),
}
