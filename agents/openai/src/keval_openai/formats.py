"""What both OpenAI APIs write alike: tool calls, results, schemas, and failures in a reply with HTTP status 200."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Literal, TypeAlias

from keval.plugin import FinishReason
from keval_clients import quoted, read_json
from keval_mcp import Call, Media, Result, Tool

Input: TypeAlias = Literal["image", "pdf", "audio"]
"""What a model may take beside text."""

_TYPES: Mapping[Input, frozenset[str]] = {
    "image": frozenset({"image/gif", "image/jpeg", "image/png", "image/webp"}),
    "pdf": frozenset({"application/pdf"}),
    "audio": frozenset({"audio/mp3", "audio/mpeg", "audio/wav", "audio/wave", "audio/x-wav"}),
}
"""The media types that the APIs name in their references."""


@cache
def media_types(inputs: tuple[Input, ...]) -> frozenset[str]:
    """Return the media types of what a model takes."""
    return frozenset[str]().union(*(_TYPES[each] for each in inputs))


def read_call(id: str, name: str, arguments: str, cut: FinishReason | None) -> Call:
    """Read a call; no text at all stands for no arguments, unless the reply was `cut` off with this call."""
    try:
        given = read_json(arguments or ("" if cut else "{}"))
    except ValueError:
        given = None
    if isinstance(given, dict):
        return Call(id, name, given)
    return Call(id, name, {}, cut.problem if cut else f"the arguments are not a JSON object: {quoted(arguments)}")


def result_parts(result: Result) -> tuple[str | Media, ...]:
    """Return what the model is shown of a result; the APIs have no other mark for an error than the text."""
    if not result.is_error:
        return result.parts
    first, *others = result.parts or ("",)
    return (f"Error: {first}", *others) if isinstance(first, str) else ("Error:", first, *others)


def file_name(media: Media) -> str:
    """Return a name for a file, which the APIs want; the last part of its URI, if it has one."""
    return (media.uri or "").rpartition("/")[2] or "file.pdf"


def parameters(tool: Tool) -> Mapping[str, Any]:
    """Return a tool's input schema, with the `properties` that the APIs want of a tool without arguments too."""
    return {"type": "object", "properties": {}, **tool.input_schema}
