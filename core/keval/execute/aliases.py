"""Aliases: tools of one name from several servers of a condition get the names that MCP hosts give them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

import attrs

from keval.servers import ToolOffer

__all__ = ["aliases_of", "renamed"]


def aliases_of(
    condition: str, offers: Iterable[ToolOffer], tapped: Collection[str]
) -> tuple[dict[str, dict[str, str]], list[str]]:
    """Return the aliases of tools by server and name, and what is wrong where no alias can tell tools apart.

    A tool whose name another server has, too, becomes `server__tool`, as in MCP hosts. A server that is not `tapped`,
    so that agents connect to it themselves, keeps its names.
    """
    offers = list(offers)
    owners = Counter(tool for offer in offers for tool in {*offer.tools})
    aliases: dict[str, dict[str, str]] = {}
    problems = []
    for offer in offers:
        for tool, count in Counter(offer.tools).items():
            if count > 1:
                problems.append(
                    f"condition {condition!r}: the server {offer.server!r} lists {count} tools named"
                    f" {tool!r}; an agent cannot tell them apart, so the server must name them differently"
                )
            if owners[tool] > 1 and offer.server in tapped:
                aliases.setdefault(offer.server, {})[tool] = f"{offer.server}__{tool}"
    owner: dict[str, str] = {}
    for offer in offers:
        for name in dict.fromkeys(renamed(offer, aliases.get(offer.server, {})).tools):
            if name in owner:
                problems.append(
                    f"condition {condition!r}: the servers {owner[name]!r} and {offer.server!r} both offer a tool"
                    f" named {name!r}; put them into separate conditions, or let one of them `rename` it"
                )
            owner.setdefault(name, offer.server)
    return aliases, problems


def renamed(offer: ToolOffer, aliases: Mapping[str, str]) -> ToolOffer:
    """Return an offer with the names that agents get. Its digest stays that of the server's own names."""
    if not aliases:
        return offer
    return attrs.evolve(
        offer,
        tools=tuple(aliases.get(tool, tool) for tool in offer.tools),
        definitions=tuple({**tool, "name": aliases.get(tool["name"], tool["name"])} for tool in offer.definitions),
    )
