"""A tool's result as ADK hands it to the model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
from google.genai.types import Part

from keval.plugin import ContentKind, Media, ToolResult

__all__ = ["ResultForm"]


@attrs.frozen
class ResultForm:
    """What ADK can say of a tool's result over one wire: the `media` types that it passes on as such.

    With `texts_only` it passes on the texts of a result and nothing else of its JSON.
    """

    media: frozenset[str] = frozenset()
    texts_only: bool = False

    def shape(self, response: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[ContentKind, ...]]:
        """Return a result with its media as ADK's parts, and the kinds of those that the model is not shown.

        ADK makes a part in a result what the model's API calls the medium, but hands on MCP's own blocks as JSON, with
        their base64 as text.
        """
        blocks = response.get("content")
        if not isinstance(blocks, list):
            return dict(response), ()
        parts = ToolResult(response).parts
        own = [*blocks, *({} for _ in parts[len(blocks) :])] if self.texts_only else blocks
        content = [self._shown(block, part) for block, part in zip(own, parts, strict=False)]
        dropped = tuple(part.kind for part in parts if isinstance(part, Media) and part.essence not in self.media)
        if self.texts_only:
            return {"content": content, **({"isError": True} if response.get("isError") else {})}, dropped
        return {**response, "content": content}, dropped

    def _shown(self, block: Any, part: str | Media) -> Any:
        if isinstance(part, str):
            return _text(part) if self.texts_only else block
        if part.essence in self.media:
            return Part.from_bytes(data=part.content, mime_type=part.essence)
        return _text(part.stand_in)


def _text(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}
