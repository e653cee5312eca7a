"""Rates: what the agents and judges of a run cost, by their labels."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from keval.records.manifest import AgentEntry, JudgeEntry, Manifest
from keval.records.prices import FREE, Price
from keval.records.scores import Judgement
from keval.records.transcript import Transcript


@attrs.frozen
class Rates:
    """The price of each agent's and judge's model; `None` if it is unknown. Simulated models are free.

    `unpriced` names the models whose price is unknown.
    """

    agents: Mapping[str, Price | None] = attrs.field(factory=dict)
    judges: Mapping[str, Price | None] = attrs.field(factory=dict)
    unpriced: tuple[str, ...] = ()

    @classmethod
    def of(cls, manifest: Manifest) -> Rates:
        """Return the rates by the prices that a run's manifest has; a run of an older version has none."""

        def rate(entry: AgentEntry | JudgeEntry) -> Price | None:
            return FREE if entry.simulated else manifest.prices.get(entry.model or "")

        agents = {label: rate(entry) for label, entry in manifest.agents.items()}
        judges = {label: rate(entry) for label, entry in manifest.judges.items()}
        entries: list[AgentEntry | JudgeEntry] = [*manifest.agents.values(), *manifest.judges.values()]
        unpriced = dict.fromkeys(entry.model for entry in entries if entry.model and rate(entry) is None)
        return cls(agents, judges, tuple(unpriced))

    def attempt(self, agent: str, transcript: Transcript) -> float | None:
        """Return what one attempt at a trial cost in US dollars; `None` if it is unknown."""
        return _cost(self.agents.get(agent), transcript)

    def judgement(self, judge: str, judgement: Judgement) -> float | None:
        """Return what a judgement cost in US dollars; `None` if it is unknown."""
        return _cost(self.judges.get(judge), judgement)


def _cost(price: Price | None, asked: Transcript | Judgement) -> float | None:
    if asked.model_calls == 0:
        return 0.0
    return None if price is None else price.of(asked.usage)
