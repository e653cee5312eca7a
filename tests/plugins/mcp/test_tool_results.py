"""How the result of an MCP tool call is read: what a model is to see of it, and what a record keeps."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

import pytest

from keval.records.transcript import Content
from keval_mcp.tool_results import Media, ToolResult

PNG = {"type": "image", "mimeType": "image/png; q=1", "data": "iVBORw=="}
TEXT = {"type": "text", "text": "sunny"}


def resource(**fields: Any) -> dict[str, Any]:
    return {"type": "resource", "resource": fields}


@pytest.mark.parametrize(
    ("block", "shown"),
    [
        (TEXT, "sunny"),
        (resource(uri="file:///a", text="from a file"), "[file:///a]\nfrom a file"),
        (resource(uri="file:///b", blob="AAAA"), Media("resource", "application/octet-stream", "AAAA", "file:///b")),
        ({"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}, Media("audio", "audio/wav", "AAAA")),
        ({"type": "resource_link", "uri": "https://docs.example/a", "name": "a"}, "[a](https://docs.example/a)"),
        (
            {"type": "resource_link", "uri": "x://y", "name": "a", "title": "A page", "description": "All of it."},
            "[A page](x://y): All of it.",
        ),
        ({"type": "hologram", "depth": 3}, '{"type": "hologram", "depth": 3}'),
    ],
)
def test_each_kind_of_block_has_a_form(block: dict[str, Any], shown: str | Media) -> None:
    assert (shown,) == ToolResult({"content": [block]}).parts


@pytest.mark.parametrize(
    ("texts", "structured", "repeats"),
    [
        (['{"a": 1}'], {"a": 1}, True),
        (['{\n  "a": 1\n}', "and more"], {"a": 1}, True),
        (["sunny"], {"result": "sunny"}, True),
        (["3"], {"result": 3}, True),
        (["sunny"], {"content": "sunny"}, True),
        (["sunny"], {"content": [{"type": "text", "text": "sunny"}]}, True),
        (["sunny"], {"content": [{"type": "text", "text": "rain"}]}, False),
        (["a", "2"], {"result": ["a", 2]}, True),
        ([], {"a": 1}, False),
        (["one thing"], {"a": 1}, False),
        (["a"], {"result": ["a", 2]}, False),
        ([], {"result": []}, False),
        (["sunny"], {"result": "sunny", "sure": True}, False),
    ],
)
def test_structured_content_is_shown_unless_a_text_says_the_same(
    texts: list[str], structured: dict[str, Any], repeats: bool
) -> None:
    blocks = [{"type": "text", "text": text} for text in texts]

    result = ToolResult({"content": blocks, "structuredContent": structured})

    assert len(texts) + (not repeats) == len(result.parts)
    assert ([] if repeats else ["structured"]) == [content.kind for content in result.content]


def test_a_record_names_media_by_their_place_and_keeps_their_bytes() -> None:
    result = ToolResult({"content": [TEXT, PNG]})

    content = base64.b64decode(PNG["data"])
    sha256 = hashlib.sha256(content).hexdigest()
    assert f"sunny\n[image/png; q=1 blobs/{sha256}]" == result.text
    assert (Content("image", "image/png; q=1", sha256, len(content)),) == result.content
    assert [(sha256, content)] == [(blob.sha256, blob.content) for blob in result.blobs]


@pytest.mark.parametrize(("data", "content"), [("no!base64", b"no!base64"), ("iVB\nORw==\n", b"\x89PNG")])
def test_the_bytes_of_media_are_kept(data: str, content: bytes) -> None:
    result = ToolResult({"content": [{**PNG, "data": data}]})

    (media,) = result.parts
    assert isinstance(media, Media)
    assert [content] == [blob.content for blob in result.blobs]
    assert f"data:image/png;base64,{data.replace(chr(10), '')}" == media.data_url


def test_what_is_not_taken_has_a_stand_in_and_is_told_once_for_each() -> None:
    archive = resource(uri="docs://a.zip", mimeType="application/zip", blob="AAAA")

    shown, dropped = ToolResult({"content": [PNG, archive, PNG, TEXT]}).shown(lambda media: media.essence == "no/type")

    assert ("image", "resource", "image") == dropped
    assert (
        "[image of type image/png; q=1, which cannot be shown here]",
        "[resource of type application/zip at docs://a.zip, which cannot be shown here]",
        "[image of type image/png; q=1, which cannot be shown here]",
        "sunny",
    ) == shown
    assert (Media("image", "image/png; q=1", "iVBORw=="), "sunny") == ToolResult({"content": [PNG, TEXT]}).shown(
        lambda media: media.essence == "image/png"
    )[0]
