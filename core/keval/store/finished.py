"""The finished trials of a run, in their order: repetition by repetition, however they were run."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any

import attrs

from keval.dataset.samples import Samples
from keval.errors import RunError
from keval.records.trial import Trial, TrialKey
from keval.store.index import Index


@attrs.frozen(slots=False)
class Ranking:
    """The order of a run's trials: repetition by repetition, then by sample, condition and agent.

    A rank is a number that rises in this order. What the run does not have comes last. `trials` is the file that they
    are in; the places of conditions and agents are by their names.
    """

    trials: Path
    samples: Samples
    conditions: Mapping[str, int]
    agents: Mapping[str, int]

    def rank(self, sample: str, condition: str, agent: str, repetition: int) -> int:
        """Return the rank of a trial."""
        samples, conditions, agents = self._sizes
        # The last place of each kind, which `_sizes` adds, is for what the run does not have.
        rank = repetition * samples + self.samples.positions.get(sample, samples - 1)
        rank = rank * conditions + self.conditions.get(condition, conditions - 1)
        return rank * agents + self.agents.get(agent, agents - 1)

    def of_line(self, line: Mapping[str, Any]) -> int:
        """Return the rank of a trial by its line, or by that of a score. Raises LookupError, TypeError, ValueError."""
        return self.rank(line["sample"], line["condition"], line["agent"], int(line["repetition"]))

    def entry(self, trial: Trial) -> int:
        """Return what an index has of a trial: twice its rank, plus 1 if it failed."""
        rank = self.rank(trial.sample.id, trial.condition, trial.agent, trial.repetition)
        return rank << 1 | (trial.failure is not None)

    def key(self, rank: int) -> TrialKey:
        """Return the trial of a rank. Raises RunError: it is of something that the run does not have."""
        samples, conditions, agents = self._sizes
        rank, agent = divmod(rank, agents)
        rank, condition = divmod(rank, conditions)
        repetition, sample = divmod(rank, samples)
        try:
            names = (self._names[0][agent], self._names[1][condition], self.samples.ids[sample])
        except IndexError:
            told = f"{self.trials} has a trial of a sample, an agent or a condition that the run does not have"
            raise RunError(f"{told}; restore samples.jsonl and manifest.json, or remove that line") from None
        return TrialKey(f"{'/'.join(names)}/{repetition}", *names, repetition)

    def named(self, id: str) -> int | None:
        """Return the rank of a trial by its id; `None` if the run cannot have it."""
        agent, _, rest = id.partition("/")
        condition, _, rest = rest.partition("/")  # labels have no slashes, as ids of samples may
        sample, _, repetition = rest.rpartition("/")
        if (
            agent in self.agents
            and condition in self.conditions
            and sample in self.samples.positions
            and repetition.isdecimal()
        ):
            rank = self.rank(sample, condition, agent, int(repetition))
            # `int` also takes `01` and the digits of other scripts, which stand in no id.
            return rank if self.key(rank).id == id else None
        return None

    @cached_property
    def digest(self) -> int:
        """What tells this order from that of another run; samples are only ever added at the end."""
        told = repr((len(self.samples), [*self.conditions], [*self.agents]))
        return int.from_bytes(blake2b(told.encode("utf-8", "replace"), digest_size=8).digest(), "big")

    @cached_property
    def _sizes(self) -> tuple[int, int, int]:
        return len(self.samples) + 1, len(self.conditions) + 1, len(self.agents) + 1

    @cached_property
    def _names(self) -> list[list[str]]:
        return [[*each] for each in (self.agents, self.conditions)]


@attrs.frozen(eq=False)
class FinishedTrials(Collection[TrialKey]):
    """The trials that a run had when it was first asked for them, or only those that were answered.

    No object is kept for any of them, as a run may have a million.
    """

    ranking: Ranking
    index: Index
    failed: bool = True

    @property
    def answered(self) -> FinishedTrials:
        """Those that did not fail."""
        return FinishedTrials(self.ranking, self.index, failed=False)

    def __len__(self) -> int:
        return len(self.index.ranks) if self.failed else sum(not start & 1 for start in self.index.starts)

    def __iter__(self) -> Iterator[TrialKey]:
        for rank, start in zip(self.index.ranks, self.index.starts, strict=True):
            if self.failed or not start & 1:
                yield self.ranking.key(rank)

    def __contains__(self, key: object) -> bool:
        return isinstance(key, TrialKey) and self.place(key) is not None

    def place(self, key: TrialKey) -> int | None:
        """Return the place of a trial in the index, of several of one key the last; `None` if there is no such."""
        rank = self.ranking.rank(key.sample, key.condition, key.agent, key.repetition)
        places = self.index.between(rank, rank + 1)
        return places[-1] if places and (self.failed or not self.index.starts[places[-1]] & 1) else None

    def named(self, id: str) -> TrialKey | None:
        """Return the trial of an id, if there is one."""
        rank = self.ranking.named(id)
        key = None if rank is None else self.ranking.key(rank)
        return key if key in self else None
