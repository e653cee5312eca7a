"""The servers of a context that is up: what they offer, under which names, with which interventions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import attrs

from keval.config.evaluation import Execution, size
from keval.config.source import Source
from keval.errors import InterventionError, PreflightError
from keval.plan.plan import ResolvedPlugin
from keval.records.interventions import Intervention
from keval.records.manifest import AnswersEntry
from keval.records.models import Model
from keval.records.servers import ToolListing
from keval.seams import registry
from keval.seams.contexts import ServerSpec, ServerUse, TrialInfo
from keval.seams.infrastructure import ConnectedServer, ServerProxy
from keval.seams.interfaces import ContextSource
from keval.seams.traffic import RecordedServers


def server_proxy() -> ServerProxy:
    """Construct what connects to MCP servers. Raises PluginError when it is not installed."""
    proxy: ServerProxy = registry.load(registry.find("keval.proxies", "servers"))()
    return proxy


def aliases_of(
    condition: str, tool_listings: Iterable[ToolListing], tapped: Collection[str]
) -> tuple[dict[str, dict[str, str]], list[str]]:
    """Return the aliases of tools by server and name, and what is wrong where no alias can tell tools apart.

    A tool whose name another server has, too, becomes `server__tool`, as in MCP hosts. A server that is not `tapped`,
    so that agents connect to it themselves, keeps its names.
    """
    tool_listings = list(tool_listings)
    # by sets, as a tool that one server lists twice has one owner
    owners = Counter(tool for listing in tool_listings for tool in {*listing.tools})
    aliases: dict[str, dict[str, str]] = {}
    problems = []
    for listing in tool_listings:
        for tool, count in Counter(listing.tools).items():
            if count > 1:
                problems.append(
                    f"condition {condition!r}: the server {listing.server!r} lists {count} tools named"
                    f" {tool!r}; an agent cannot tell them apart, so the server must name them differently"
                )
            if owners[tool] > 1 and listing.server in tapped:
                aliases.setdefault(listing.server, {})[tool] = f"{listing.server}__{tool}"
    # Once more with the aliases, as one may be the name of another tool.
    owner: dict[str, str] = {}
    for listing in tool_listings:
        for name in dict.fromkeys(renamed(listing, aliases.get(listing.server, {})).tools):
            if name in owner:
                problems.append(
                    f"condition {condition!r}: the servers {owner[name]!r} and {listing.server!r} both offer"
                    f" a tool named {name!r}; put them into separate conditions, or let one of them `rename` it"
                )
            owner.setdefault(name, listing.server)
    return aliases, problems


def renamed(listing: ToolListing, aliases: Mapping[str, str]) -> ToolListing:
    """Return an offer with the names that agents get. Its digest stays that of the server's own names."""
    if not aliases:
        return listing
    return attrs.evolve(
        listing,
        tools=tuple(aliases.get(tool, tool) for tool in listing.tools),
        definitions=tuple({**tool, "name": aliases.get(tool["name"], tool["name"])} for tool in listing.definitions),
    )


@contextmanager
def changes_placed(context: ResolvedPlugin, source: Source) -> Iterator[None]:
    """Report what is wrong with a context's interventions as a PreflightError, each at its place in the config."""
    try:
        yield
    except InterventionError as error:
        problems = []
        for (number, *rest), message, at_key in error.errors:
            place = source.place((*context.changed_at[int(number)], *rest), key=at_key or not rest)
            problems.append(f"{place}: {message}")
        raise PreflightError(problems) from error


@attrs.frozen
class OpenedContext:
    """A context that is up for the trials of one condition, with the servers that keval connected to, by name.

    `tool_listings` are what agents get, and `aliases` the names of tools that are others there, by server. `recorded`
    has the servers' recorded answers, where an intervention gives these to live agents, and `answers` says which run
    they are from, by server. `models` are those that its servers may ask, by the field that names each.
    """

    source: ContextSource
    interventions: tuple[Intervention, ...] = ()
    servers: dict[str, ConnectedServer] = attrs.field(factory=dict)
    tool_listings: list[ToolListing] = attrs.field(factory=list)
    aliases: Mapping[str, Mapping[str, str]] = attrs.field(factory=dict)
    recorded: RecordedServers | None = None
    answers: dict[str, AnswersEntry] = attrs.field(factory=dict)
    models: dict[str, Model] = attrs.field(factory=dict)

    @property
    def tapped(self) -> frozenset[str]:
        """The names of the servers that agents reach through the tap."""
        return frozenset(each.name for each in self.source.servers if isinstance(each, ServerSpec) and each.tap)

    def named(self, aliases: Mapping[str, Mapping[str, str]]) -> OpenedContext:
        """Return the context with the aliases of its condition, by server and name."""
        tool_listings = [renamed(listing, aliases.get(listing.server, {})) for listing in self.tool_listings]
        return attrs.evolve(self, tool_listings=tool_listings, aliases=aliases)

    def given(
        self,
        server: ServerSpec,
        execution: Execution,
        trial: TrialInfo | None = None,
        **of_attempt: Any,
    ) -> ServerUse:
        """Return the use of one of its servers as the proxy gets it, by the run, the trial and its attempt."""
        return ServerUse(
            attrs.evolve(server, max_result_bytes=size(execution.max_result_bytes)),
            interventions=self.interventions,
            aliases=self.aliases.get(server.name, {}),
            seed=execution.seed,
            trial=trial,
            models=self.models,
            **of_attempt,
        )
