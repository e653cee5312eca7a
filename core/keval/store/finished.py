"""The finished trials of a run, in their order: repetition by repetition, however they were run."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from hashlib import blake2b
from typing import Any

import attrs

from keval.records.trial import Trial, TrialKey
from keval.store.index import Index


@attrs.frozen(slots=False)
class Ranking:
    """The order of a run's trials: repetition by repetition, then by sample, condition and agent.

    A rank is a number that rises in this order. What the run does not have comes last.
    """

    samples: Mapping[str, int]
    conditions: Mapping[str, int]
    agents: Mapping[str, int]

    @classmethod
    def of(cls, samples: Mapping[str, int], conditions: Collection[str], agents: Collection[str]) -> Ranking:
        """Return the order of trials with these samples, by their positions, conditions and agents."""
        return cls(samples, *({name: place for place, name in enumerate(each)} for each in (conditions, agents)))

    def rank(self, sample: str, condition: str, agent: str, repetition: int) -> int:
        """Return the rank of a trial."""
        samples, conditions, agents = self._sizes
        rank = repetition * samples + self.samples.get(sample, samples - 1)
        rank = rank * conditions + self.conditions.get(condition, conditions - 1)
        return rank * agents + self.agents.get(agent, agents - 1)

    def of_key(self, key: TrialKey) -> int | None:
        """Return the rank of a trial; `None` if the run cannot have it."""
        if key.sample in self.samples and key.condition in self.conditions and key.agent in self.agents:
            return self.rank(key.sample, key.condition, key.agent, key.repetition)
        return None

    def of_line(self, line: Mapping[str, Any]) -> int:
        """Return the rank of a trial by its line, or by that of a score. Raises LookupError, TypeError, ValueError."""
        return self.rank(line["sample"], line["condition"], line["agent"], int(line["repetition"]))

    def entry(self, trial: Trial) -> int:
        """Return what an index has of a trial: twice its rank, plus 1 if it failed."""
        rank = self.rank(trial.sample.id, trial.condition, trial.agent, trial.repetition)
        return rank << 1 | (trial.failure is not None)

    def key(self, rank: int) -> TrialKey:
        """Return the trial of a rank. Raises IndexError: it is of something that the run does not have."""
        samples, conditions, agents = self._sizes
        rank, agent = divmod(rank, agents)
        rank, condition = divmod(rank, conditions)
        repetition, sample = divmod(rank, samples)
        names = (self._names[0][agent], self._names[1][condition], self._names[2][sample])
        return TrialKey(f"{'/'.join(names)}/{repetition}", *names, repetition)

    def named(self, id: str) -> Iterator[int]:
        """Yield the ranks of trials that have an id; labels may have slashes in them."""
        for agent in self.agents:
            for condition in self.conditions:
                start = f"{agent}/{condition}/"
                sample, _, repetition = id.removeprefix(start).rpartition("/")
                if id.startswith(start) and sample in self.samples and repetition.isdecimal():
                    rank = self.rank(sample, condition, agent, int(repetition))
                    if self.key(rank).id == id:
                        yield rank

    @cached_property
    def digest(self) -> int:
        """What tells this order from that of another run; samples are only ever added at the end."""
        told = repr((len(self.samples), [*self.conditions], [*self.agents]))
        return int.from_bytes(blake2b(told.encode("utf-8", "replace"), digest_size=8).digest(), "big")

    @property
    def arms(self) -> int:
        """How far the ranks of an arm's trials of neighbouring samples are apart."""
        return self._sizes[1] * self._sizes[2]

    @property
    def stride(self) -> int:
        """How far the ranks of a trial and the next repetition of it are apart."""
        return self._sizes[0] * self.arms

    @cached_property
    def _sizes(self) -> tuple[int, int, int]:
        return len(self.samples) + 1, len(self.conditions) + 1, len(self.agents) + 1

    @cached_property
    def _names(self) -> tuple[Sequence[str], ...]:
        return tuple([*each] for each in (self.agents, self.conditions, self.samples))


@attrs.frozen
class Beside:
    """The trials before and after one in the order of the dataset, its place from 0, and how many there are."""

    previous: TrialKey | None
    following: TrialKey | None
    place: int
    of: int


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

    @property
    def samples(self) -> list[str]:
        """The ids of the samples that they are of, in the order of the dataset."""
        arms, samples = self.ranking.arms, [*self.ranking.samples]
        return [samples[at] for at in sorted({rank % self.ranking.stride // arms for rank in self.index.ranks})]

    def __len__(self) -> int:
        return len(self.index) if self.failed else sum(1 for start in self.index.starts if not start & 1)

    def __iter__(self) -> Iterator[TrialKey]:
        for rank, start in zip(self.index.ranks, self.index.starts, strict=True):
            if self.failed or not start & 1:
                yield self.ranking.key(rank)

    def __contains__(self, key: object) -> bool:
        return isinstance(key, TrialKey) and self.place(key) is not None

    def place(self, key: TrialKey) -> int | None:
        """Return the place of a trial in the index, of several of one key the last; `None` if there is no such."""
        rank = self.ranking.of_key(key)
        place = self.index.place(rank) if rank is not None else None
        return place if place is not None and (self.failed or not self.index.starts[place] & 1) else None

    def named(self, id: str) -> TrialKey | None:
        """Return the trial of an id, if there is one."""
        return next((key for key in map(self.ranking.key, self.ranking.named(id)) if key in self), None)

    def of_sample(self, sample: str) -> list[TrialKey]:
        """Return the trials of a sample."""
        ranks, arms = self.index.ranks, self.ranking.arms
        if sample not in self.ranking.samples or not ranks:
            return []
        firsts = range(self.ranking.samples[sample] * arms, ranks[-1] + 1, self.ranking.stride)
        places = (place for first in firsts for place in self.index.between(first, first + arms))
        return [self.ranking.key(ranks[place]) for place in places]

    def beside(self, key: TrialKey) -> Beside:
        """Return what is beside a trial of the run, among those of its arm and repetition."""
        arms, stride, ranks = self.ranking.arms, self.ranking.stride, self.index.ranks
        rank = self.ranking.rank(key.sample, key.condition, key.agent, key.repetition)
        places = self.index.between(key.repetition * stride, (key.repetition + 1) * stride)
        alike = [each for each in map(ranks.__getitem__, places) if each % arms == rank % arms]
        place = alike.index(rank)
        key_of = self.ranking.key
        return Beside(
            previous=key_of(alike[place - 1]) if place else None,
            following=key_of(alike[place + 1]) if place + 1 < len(alike) else None,
            place=place,
            of=len(alike),
        )
