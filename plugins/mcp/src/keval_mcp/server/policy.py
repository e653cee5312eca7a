"""The policy: how keval answers what a server asks of its client, where no agent does."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias

import attrs

from keval.plugin import ClientPolicy, PreflightError

__all__ = ["Accept", "Elicitation", "check_roots", "client_policy", "declared", "policy_answer"]


@attrs.frozen
class Accept:
    """Forms that a server sends are filled in with these values, by the names of their fields."""

    accept: Mapping[str, Any]


Elicitation: TypeAlias = Literal["decline", "defaults"] | Accept
"""What becomes of a form: it is declined, or filled in with its schema's defaults, or with values given."""


def client_policy(elicitation: Elicitation, roots: tuple[Path, ...]) -> ClientPolicy:
    """Return the policy that the options of a context say."""
    answer = elicitation.accept if isinstance(elicitation, Accept) else elicitation
    return ClientPolicy(answer, tuple(str(root.absolute()) for root in roots))


def check_roots(label: str, roots: tuple[Path, ...]) -> None:
    """Raise PreflightError when a root of the server `label` is no folder."""
    for root in roots:
        if not root.is_dir():
            raise PreflightError(f"server '{label}': the root '{root}' is not a folder; correct it or leave it out")


def declared(policy: ClientPolicy) -> dict[str, Any]:
    """Return the capabilities that a client with this policy declares: none for what it would only refuse."""
    capabilities: dict[str, Any] = {}
    if policy.elicitation != "decline":
        capabilities["elicitation"] = {}
    if policy.roots:
        capabilities["roots"] = {}
    return capabilities


def policy_answer(policy: ClientPolicy, method: str, params: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the result of a server's request; `None` for one that the policy has no answer to, as sampling."""
    match method:
        case "elicitation/create":
            content = _filled(policy, params)
            return {"action": "decline"} if content is None else {"action": "accept", "content": content}
        case "roots/list":
            return {"roots": [{"uri": Path(root).as_uri(), "name": Path(root).name} for root in policy.roots]}
    return None


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
