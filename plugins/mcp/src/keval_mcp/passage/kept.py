"""The link to a server whose traffic is kept, for a run that is recorded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from keval.plugin import ServerKeeper, ServerLostError
from keval_mcp.passage.link import Asking, Heard, Link
from keval_mcp.passage.marks import unmarked
from keval_mcp.passage.outcomes import FAILURES, kept_error
from keval_mcp.server.audience import PROGRESS, Audience, Member

__all__ = ["KeptLink"]


@attrs.frozen(eq=False)
class KeptLink:
    """Passes everything on to `link`, and keeps each request with what came of it; see `Link`.

    What is cancelled has no end. What the server says and asks by itself is kept where it is heard.
    """

    link: Link
    keep: ServerKeeper

    @property
    def name(self) -> str:
        return self.link.name

    @property
    def own(self) -> bool:
        return self.link.own

    @property
    def audience(self) -> Audience:
        return self.link.audience

    @property
    def bystander(self) -> bool:
        return self.link.bystander

    def join(self, member: Member) -> None:
        self.link.join(member)

    async def declare(self, capabilities: Mapping[str, Any]) -> None:
        await self.link.declare(capabilities)

    async def ask(self, asking: Asking, params: Mapping[str, Any], heard: Heard | None) -> dict[str, Any]:
        number = self.keep.begin(asking.kind, asking.method, unmarked(params))

        def keep_heard(progress: Mapping[str, Any]) -> None:
            if heard is not None:
                self.keep.end(self.keep.begin("told", PROGRESS, progress, during=number))
                heard(progress)

        try:
            result = await self.link.ask(asking, params, keep_heard if heard is not None else None)
        except FAILURES as error:
            self.keep.end(number, error=kept_error(error, sent=asking.sent, bystander=self.bystander))
            raise
        self.keep.end(number, result)
        return result

    async def notify(self, method: str, params: Mapping[str, Any]) -> None:
        number = self.keep.begin("notified", method, unmarked(params))
        try:
            await self.link.notify(method, params)
        except ServerLostError as error:
            self.keep.end(number, error=kept_error(error, bystander=self.bystander))
            raise
        self.keep.end(number)

    async def close(self, *, well: bool) -> None:
        number = self.keep.begin("closed")
        await self.link.close(well=well)
        self.keep.end(number)
