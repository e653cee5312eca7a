"""What a tool's result says in text, which is what a model reads and a transcript keeps."""

from __future__ import annotations

import json

from mcp.types import CallToolResult, ContentBlock, EmbeddedResource, ResourceLink, TextContent, TextResourceContents

__all__ = ["result_text"]


def result_text(result: CallToolResult) -> str:
    """Return the text of a result, a line per block.

    Structured content stands as JSON where it comes alone, as by the protocol it otherwise repeats the text. Of a link
    the URI is given, and of an image or a sound its type in brackets.
    """
    if not result.content and result.structured_content is not None:
        return json.dumps(result.structured_content, ensure_ascii=False)
    return "\n".join(map(_block_text, result.content))


def _block_text(block: ContentBlock) -> str:
    match block:
        case TextContent():
            return block.text
        case EmbeddedResource(resource=TextResourceContents() as resource):
            return resource.text
        case EmbeddedResource(resource=resource):
            return f"[{resource.mime_type or 'resource'}]"
        case ResourceLink():
            return block.uri
        case _:
            return f"[{block.mime_type}]"
