"""Whether the trials of a condition share a server, and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from keval.plugin import ServerSpec, Sharing

__all__ = ["sharing_of"]

_NAMED = 3
"""How many tools are named that may change something."""


def sharing_of(server: ServerSpec, tools: Iterable[Mapping[str, Any]] | None = None) -> Sharing | None:
    """Return whether trials share a server; `None` if that depends on `tools` and they are not known yet.

    `tools` are the definitions that agents are offered, as `tools/list` returns them. One is read-only if it says so in
    its annotations (`readOnlyHint` of the MCP specification, server/tools); without the hint it may change something.
    """
    # keval sees that a process is another one. Whether a remote server keeps sessions apart, only its author knows.
    sees = server.transport == "stdio"
    changing = None if tools is None else [str(tool["name"]) for tool in tools if not _is_read_only(tool)]
    if not server.tap:
        return Sharing(False, "agents connect to it themselves (tap: false)", verified=sees)
    if server.isolation == "trial":
        return Sharing(False, "isolation: trial", verified=sees)
    if server.isolation == "condition":
        return Sharing(True, "isolation: condition", verified=server.keeps_trials_apart or changing == [])
    if server.folder is not None:
        return Sharing(False, "each trial has a folder of its own")
    if server.keeps_trials_apart:
        return Sharing(True, "it keeps trials apart by itself")
    if changing is None:
        return None
    if not changing:
        return Sharing(True, "every tool is read-only")
    return Sharing(False, f"not read-only: {_listed(changing)}", verified=sees)


def _is_read_only(tool: Mapping[str, Any]) -> bool:
    annotations = tool.get("annotations")
    return isinstance(annotations, Mapping) and annotations.get("readOnlyHint") is True


def _listed(names: list[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")
