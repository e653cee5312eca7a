"""Whether the trials of a condition share a server, and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from keval.plugin import ServerSpec, Sharing

__all__ = ["planned_sharing", "sharing_of"]

_NAMED = 3
"""How many tools are named that may change something."""


def planned_sharing(server: ServerSpec) -> Sharing | None:
    """Return whether trials share a server, and why; `None` if that depends on its tools."""
    if not server.tap:
        return Sharing(False, "agents connect to it themselves (tap: false)", verified=_is_seen(server))
    if server.isolation == "trial":
        return Sharing(False, "isolation: trial", verified=_is_seen(server))
    if server.isolation == "condition":
        return Sharing(True, "isolation: condition", verified=server.keeps_trials_apart)
    if server.folder is not None:
        return Sharing(False, "each trial has a folder of its own")
    if server.keeps_trials_apart:
        return Sharing(True, "it keeps trials apart by itself")
    return None


def sharing_of(server: ServerSpec, tools: Iterable[Mapping[str, Any]]) -> Sharing:
    """Return whether trials share a server that offers these `tools`, which are as `tools/list` returns them.

    A tool is read-only if its annotations say so (`readOnlyHint` of the MCP specification, server/tools). Without the
    hint it may change something that another trial sees.
    """
    planned = planned_sharing(server)
    changing = [str(tool["name"]) for tool in tools if not _is_read_only(tool)]
    if planned is not None:
        # The author's word needs no proof where there is nothing to keep apart.
        return attrs.evolve(planned, verified=planned.verified or (planned.shared and not changing))
    if not changing:
        return Sharing(True, "every tool is read-only")
    return Sharing(False, f"not read-only: {_listed(changing)}", verified=_is_seen(server))


def _is_seen(server: ServerSpec) -> bool:
    """Return whether keval itself keeps trials apart: it starts processes; whether sessions are apart it cannot see."""
    return server.transport == "stdio"


def _is_read_only(tool: Mapping[str, Any]) -> bool:
    annotations = tool.get("annotations")
    return isinstance(annotations, Mapping) and annotations.get("readOnlyHint") is True


def _listed(names: list[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")
