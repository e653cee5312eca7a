"""What passes between an agent and an MCP server beside calls and their texts: other content, other requests, blobs."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import attrs

ContentKind: TypeAlias = Literal["image", "audio", "resource_link", "resource", "structured"]


@attrs.frozen
class Content:
    """One piece of a tool's result that is not plain text.

    `sha256` names its bytes in the run's `blobs/`, `size` counts them; both are `None` for a link, which has only its
    `uri`. Structured content is kept as JSON.
    """

    kind: ContentKind
    media_type: str | None = None
    sha256: str | None = None
    size: int | None = None
    uri: str | None = None


@attrs.frozen
class ServerExchange:
    """One request, or notification, between an agent and a server that is no tool call, as the tap saw it.

    `sender` says who sent it. `answered_by` says whose answer `result` or `error` is: the other side's, or that of the
    context's policy where the agent's framework declares no such capability; `None` for a notification. `at` is Unix
    time in seconds, and `duration` is in seconds.
    """

    server: str
    method: str
    sender: Literal["agent", "server"]
    params: Mapping[str, Any] = attrs.field(factory=dict)
    result: Mapping[str, Any] | None = None
    error: str | None = None
    answered_by: Literal["agent", "server", "policy"] | None = None
    at: float | None = attrs.field(default=None, eq=False)
    duration: float | None = attrs.field(default=None, eq=False)


@attrs.frozen
class Blob:
    """Content that is too large or not text, kept beside the trials under its SHA-256."""

    sha256: str
    media_type: str
    content: bytes = attrs.field(repr=False)

    @classmethod
    def of(cls, content: bytes, media_type: str) -> Blob:
        """Return the blob of this content."""
        return cls(hashlib.sha256(content).hexdigest(), media_type, content)
