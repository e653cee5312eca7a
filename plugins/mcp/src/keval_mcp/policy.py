"""The policy: how keval answers what a server asks of its client, where no agent does."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mcp import MCPError
from mcp.types import METHOD_NOT_FOUND

from keval.plugin import ClientPolicy

__all__ = ["declared", "policy_answer"]


def declared(policy: ClientPolicy) -> dict[str, Any]:
    """Return the capabilities that a client with this policy declares: none for what it would only refuse."""
    capabilities: dict[str, Any] = {}
    if policy.elicitation != "decline":
        capabilities["elicitation"] = {}
    if policy.roots:
        capabilities["roots"] = {}
    return capabilities


def policy_answer(policy: ClientPolicy, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the result of a server's request.

    Raises:
        MCPError: the policy has no answer, as none to sampling.
    """
    match method:
        case "elicitation/create":
            content = _filled(policy, params)
            return {"action": "decline"} if content is None else {"action": "accept", "content": content}
        case "roots/list":
            return {"roots": [{"uri": Path(root).as_uri(), "name": Path(root).name} for root in policy.roots]}
    raise MCPError(METHOD_NOT_FOUND, f"no client here answers {method}")


def _filled(policy: ClientPolicy, params: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the form that a server sent, filled in; `None` if it is declined.

    A form that requires what the policy does not have is declined, and so is a URL to visit, as there is no user.
    """
    schema = params.get("requestedSchema")
    if policy.elicitation == "decline" or not isinstance(schema, dict):
        return None
    given = policy.elicitation if isinstance(policy.elicitation, Mapping) else {}
    content: dict[str, Any] = {}
    for name, field in (schema.get("properties") or {}).items():
        if name in given:
            content[name] = given[name]
        elif isinstance(field, dict) and "default" in field:
            content[name] = field["default"]
    return content if set(schema.get("required") or ()) <= set(content) else None
