"""What a server offers to the agents of a condition, and whether their trials share it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from keval.errors import FieldError

__all__ = ["Sharing", "ToolOffer"]


@attrs.frozen
class Sharing:
    """Whether the trials of a condition share a server, and why.

    `verified` is false where keval cannot know that it keeps trials apart.
    """

    shared: bool
    why: str
    verified: bool = True


@attrs.frozen
class ToolOffer:
    """What a server offers: the names of its tools, and a SHA-256 of their definitions if keval read them.

    `definitions` are the tools as agents get them and `instructions` what they are told of the server, both after
    interventions. `original_digest` is the SHA-256 before these, and `original` and `original_instructions` what the
    server said then; all are `None` if nothing was changed. `unmatched` are the names in interventions that no tool of
    this server has, as an `InterventionError` would tell of them: another server of the context may have them.
    """

    server: str
    tools: tuple[str, ...]
    digest: str | None = None
    definitions: tuple[Mapping[str, Any], ...] = ()
    instructions: str | None = None
    original: tuple[Mapping[str, Any], ...] | None = None
    original_digest: str | None = None
    original_instructions: str | None = None
    unmatched: tuple[FieldError, ...] = ()
    sharing: Sharing | None = None
