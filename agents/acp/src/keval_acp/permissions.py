"""Which calls an agent is allowed, when it asks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import attrs
from acp.schema import AllowedOutcome, DeniedOutcome, PermissionOption, RequestPermissionResponse

from keval_acp.tool_use import ToolUse


@attrs.frozen
class Permissions:
    """The policy of the config: everything, nothing, or calls of these kinds or titles."""

    allowed: Literal["allow", "deny"] | tuple[str, ...]

    def answer(
        self, use: ToolUse, options: Sequence[PermissionOption], *, of_condition: bool
    ) -> RequestPermissionResponse:
        """Choose the option by which a call is allowed or rejected, this time if the agent leaves the choice."""
        verdict = "allow" if of_condition or self._allows(use) else "reject"
        fitting: dict[str, str] = {
            option.kind: option.option_id for option in options if option.kind.startswith(verdict)
        }
        chosen = fitting.get(f"{verdict}_once") or next(iter(fitting.values()), None)
        if chosen is None:
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=chosen))

    def _allows(self, use: ToolUse) -> bool:
        if isinstance(self.allowed, str):
            return self.allowed == "allow"
        return use.kind in self.allowed or use.title in self.allowed
