"""A context that is up: its servers, and what they offer to agents."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from keval.config.evaluation import Execution
from keval.contexts import ServerSpec, TrialInfo
from keval.execute.aliases import renamed
from keval.execute.donors import TrialResults
from keval.infrastructure import ConnectedServer
from keval.interfaces import ContextSource
from keval.interventions import Intervention
from keval.live import Tell
from keval.manifest import AnswersEntry
from keval.recording.log import TrafficLog
from keval.recording.loose import LooseRecording
from keval.servers import ToolOffer
from keval.tapes import ServerKeeper, ServerTape

__all__ = ["OpenedContext"]


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
