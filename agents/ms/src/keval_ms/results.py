"""A tool's result as the framework's content."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from agent_framework import Content
from mcp.types import CallToolResult

from keval.plugin import ContentKind, Media, ToolResult, Wire

__all__ = ["ParseResult", "dropped_kinds", "result_parser"]

ParseResult: TypeAlias = Callable[[CallToolResult], list[Content]]
"""What the framework calls to read a result."""

_DROPPED = "keval_dropped"

_INPUTS = frozenset({"image/gif", "image/jpeg", "image/png", "image/webp", "application/pdf"})
"""What the Responses API takes in the output of a function: `input_image` and `input_file`."""


def result_parser(wire: Wire) -> ParseResult:
    """Return a function that reads a result as every adapter of keval's does.

    The framework's own reads structured content in place of all else, and hands links and sounds to APIs that refuse
    them. What neither framework nor API has a place for becomes a text that says so, see `dropped_kinds`. On Chat
    Completions that is all media: the framework leaves them out of a tool's message.
    """
    inputs = _INPUTS if wire == "openai-responses" else frozenset()

    def parse(result: CallToolResult) -> list[Content]:
        read = ToolResult(result.model_dump(mode="json", by_alias=True, exclude_none=True))
        return [_content(part, inputs) for part in read.parts] or [Content.from_text("null")]

    return parse


def dropped_kinds(result: object) -> tuple[ContentKind, ...]:
    """Return the kind of each medium in a result that the model is not shown."""
    found = (item.additional_properties.get(_DROPPED) for item in _items(result))
    return tuple(kind for kind in found if kind is not None)


def _items(result: object) -> Iterable[Content]:
    return result if isinstance(result, list) else ()


def _content(part: str | Media, inputs: frozenset[str]) -> Content:
    if isinstance(part, str):
        return Content.from_text(part)
    if part.essence not in inputs:
        return Content.from_text(part.stand_in, additional_properties={_DROPPED: part.kind})
    name = (part.uri or "").rpartition("/")[2] or "file.pdf"  # the API wants one for a file
    return Content.from_uri(part.data_url, media_type=part.essence, name=name)
