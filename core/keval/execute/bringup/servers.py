"""The servers of a context that is up: what they offer, under which names, with which interventions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import attrs

from keval.config.evaluation import Execution
from keval.config.source import Source
from keval.errors import FieldError, InterventionError, PreflightError
from keval.execute.trial.result_shuffling import TrialResults
from keval.plan.construct import UNTAPPED
from keval.plan.plan import ResolvedPlugin
from keval.recording.log import TrafficLog
from keval.recording.loose import LooseRecording
from keval.records.cassettes import ServerKeeper, ServerTape
from keval.records.interventions import Intervention
from keval.records.manifest import AnswersEntry
from keval.records.servers import ToolOffer
from keval.seams.contexts import ServerSpec, TrialInfo
from keval.seams.infrastructure import ConnectedServer
from keval.seams.interfaces import ContextSource
from keval.seams.live import Tell


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


def check_changes(context: ResolvedPlugin, offers: Sequence[ToolOffer], tapped: Collection[str]) -> None:
    """Raise InterventionError where a context's interventions change nothing, or leave nothing."""
    if not context.interventions:
        return
    last = len(context.interventions) - 1
    if any(offer.server not in tapped for offer in offers):
        raise InterventionError([FieldError((last,), UNTAPPED)])
    if errors := _unmatched_by_all(offers):
        raise InterventionError(errors)
    if not any(offer.tools for offer in offers):
        told = f"the context {context.label!r} is left without any tool; leave out fewer"
        raise InterventionError([FieldError((last,), told)])


def _unmatched_by_all(offers: Iterable[ToolOffer]) -> list[FieldError]:
    """Return an error for each name that no server of a context has, preferably one with a hint."""
    found: dict[tuple[str | int, ...], list[FieldError]] = {}
    servers = 0
    for offer in offers:
        servers += 1
        for error in offer.unmatched:
            found.setdefault(error.path, []).append(error)
    return [
        next((error for error in errors if "did you mean" in error.message), errors[0])
        for errors in found.values()
        if len(errors) == servers
    ]


@attrs.frozen
class OpenedContext:
    """A context that is up for the trials of one condition, with the servers that keval connected to, by name.

    `offers` are what agents get, and `aliases` the names of tools that are others there, by server. `listed` has what
    each server listed, if the run is recorded. `loose` has the servers' recorded answers, where an intervention gives
    these to live agents, and `answers` says which run they are from, by server.
    """

    source: ContextSource
    interventions: tuple[Intervention, ...] = ()
    servers: dict[str, ConnectedServer] = attrs.field(factory=dict)
    offers: list[ToolOffer] = attrs.field(factory=list)
    aliases: Mapping[str, Mapping[str, str]] = attrs.field(factory=dict)
    listed: dict[str, TrafficLog] = attrs.field(factory=dict)
    loose: LooseRecording | None = None
    answers: dict[str, AnswersEntry] = attrs.field(factory=dict)

    @property
    def tapped(self) -> frozenset[str]:
        """The names of the servers that agents reach through the tap."""
        return frozenset(each.name for each in self.source.servers if isinstance(each, ServerSpec) and each.tap)

    def named(self, aliases: Mapping[str, Mapping[str, str]]) -> OpenedContext:
        """Return the context with the aliases of its condition, by server and name."""
        offers = [renamed(offer, aliases.get(offer.server, {})) for offer in self.offers]
        return attrs.evolve(self, offers=offers, aliases=aliases)

    def keeper(self, server: str) -> ServerKeeper:
        """Return what keeps what a server lists."""
        log = self.listed[server] = TrafficLog()
        return log.server(server)

    def given(
        self,
        server: ServerSpec,
        execution: Execution,
        trial: TrialInfo | None = None,
        others: TrialResults | None = None,
        *,
        keep: ServerKeeper | None = None,
        played: ServerTape | None = None,
        tell: Tell | None = None,
    ) -> ServerSpec:
        """Return the specification of one of its servers as the proxy gets it, completed from the run and the trial.

        `keep` keeps the traffic of the attempt with it, if the run is recorded, `played` plays it in a replay, and
        `tell` takes the live events of the tap.
        """
        return attrs.evolve(
            server,
            max_result_bytes=execution.largest_result,
            interventions=self.interventions,
            aliases=self.aliases.get(server.name, {}),
            seed=execution.seed,
            trial=trial,
            others=others.attempt(server.name) if others else None,
            keep=keep,
            played=played,
            tell=tell,
            asks_live=self.loose is not None and self.loose.misses == "live",
        )
