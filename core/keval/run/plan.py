"""The plan: plugins constructed, samples loaded, the grid known. Pure: same input, same plan, same trial ids."""

from __future__ import annotations

import hashlib
import itertools
from array import array
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from keval import registry
from keval.config.dataset import Dataset
from keval.config.evaluation import Condition, Evaluation
from keval.config.prompt import Prompt
from keval.config.samples import Samples
from keval.errors import Problem
from keval.interfaces import Recording
from keval.models import Model
from keval.records import Characteristics
from keval.registry import Component
from keval.scores import Rubric, Scale, Scorer

__all__ = ["Arm", "Plan", "Planned", "Scorers", "TrialKey", "judge_seed", "models_of", "trial_seed"]


@attrs.frozen
class Planned:
    """A plugin under its label, constructed with its options; `place` is where it stands in the config."""

    label: str
    component: Component
    plugin: Any
    place: str = ""

    @property
    def models(self) -> Mapping[str, Model]:
        """The plugin's fields that name a model."""
        return models_of(self.plugin)

    @property
    def unserved(self) -> Mapping[str, Model]:
        """Those whose endpoint is their provider's to find; a plugin may know one of its own."""
        return {name: model for name, model in self.models.items() if model.endpoint is None}

    @property
    def model(self) -> Model | None:
        """The model it is asked with, if it has one."""
        return next(iter(self.models.values()), None)

    @property
    def characteristics(self) -> Characteristics | None:
        """What its framework asks of a developer, if the adapter says."""
        value = getattr(self.plugin, "characteristics", None)
        return value if isinstance(value, Characteristics) else None

    @property
    def recording(self) -> Recording | None:
        """The plugin, if it is an agent whose answers exist already."""
        return self.plugin if isinstance(self.plugin, Recording) else None


@attrs.frozen
class Arm:
    """A condition ready to run: its prompt, and what its label stands for in the config."""

    label: str
    prompt: Prompt
    condition: Condition

    @property
    def contexts(self) -> tuple[str, ...]:
        """The labels of its contexts."""
        return self.condition.contexts


@attrs.frozen
class TrialKey:
    """One cell of the grid: agent × condition × sample × repetition (from 1)."""

    agent: str
    condition: str
    sample: int
    repetition: int
    id: str


@attrs.frozen
class Scorers:
    """Everything that scores, in the order of the config; `shipped` are the rubrics that packages brought."""

    metrics: tuple[Planned, ...] = ()
    judges: tuple[Planned, ...] = ()
    rubrics: tuple[Rubric, ...] = ()
    shipped: tuple[Component, ...] = ()

    def scales(self) -> dict[Scorer, Scale]:
        """The scale of everything that scores: a metric alone, or a rubric with its judge."""
        scales: dict[Scorer, Scale] = {}
        scales.update(((item.label, None), getattr(item.plugin, "scale", Scale())) for item in self.metrics)
        scales.update(((rubric.name, item.label), rubric.scale) for item in self.judges for rubric in self.rubrics)
        return scales

    def repetitions(self, of_judges: int, earlier: Mapping[Scorer, int] | None = None) -> dict[Scorer, int]:
        """How often each is asked about an answer: a metric once, a judge as often as `earlier`, if it was."""
        known = earlier or {}
        return {scorer: 1 if scorer[1] is None else known.get(scorer, of_judges) for scorer in self.scales()}

    def components(self) -> list[Component]:
        return [*(item.component for item in (*self.metrics, *self.judges)), *self.shipped]


@attrs.frozen
class Plan:
    """All that a run will do, before it does anything; `notices` are what a user should know of it."""

    evaluation: Evaluation
    dataset: Dataset
    samples: Samples
    agents: tuple[Planned, ...]
    arms: tuple[Arm, ...]
    contexts: Mapping[str, Planned]
    hooks: tuple[Planned, ...]
    scorers: Scorers
    notices: tuple[Problem, ...] = ()

    @property
    def trial_count(self) -> int:
        recordings = [agent.recording for agent in self.agents]
        cells = ((sample, arm.label) for sample in self.samples.ids for arm in self.arms)
        return sum(self._repetitions(recording, *cell) for cell in cells for recording in recordings)

    def trials(self) -> Iterator[TrialKey]:
        """Expand the grid, all arms of a sample next to each other, so that time affects them alike."""
        recordings = [agent.recording for agent in self.agents]
        cells: Sequence[int] = range(len(self.samples) * len(self.arms) * len(self.agents))
        for repetition in itertools.count(1):
            more = array("Q")
            for cell in cells:
                row, column = divmod(cell, len(self.agents))
                index, place = divmod(row, len(self.arms))
                sample, agent, arm = self.samples.ids[index], self.agents[column].label, self.arms[place].label
                yield TrialKey(agent, arm, index, repetition, f"{agent}/{arm}/{sample}/{repetition}")
                if repetition < self._repetitions(recordings[column], sample, arm):
                    more.append(cell)
            if not more:
                return
            cells = more

    def _repetitions(self, recording: Recording | None, sample: str, condition: str) -> int:
        """How often a sample is asked under a condition; at least once, be it in vain."""
        if recording is None:
            return self.evaluation.execution.num_repetitions
        return max(1, recording.count_answers(sample, condition))

    @property
    def models(self) -> list[Model]:
        """Every model the run asks, agents and judges alike."""
        planned = (*self.agents, *self.scorers.judges)
        return list({str(model): model for item in planned for model in item.models.values()}.values())

    def components(self) -> list[Component]:
        """Every plugin the run uses, its model providers included."""
        used = [item.component for item in (*self.agents, *self.contexts.values(), *self.hooks)]
        planned = (*self.agents, *self.scorers.judges)
        wanted = dict.fromkeys(model.provider for item in planned for model in item.unserved.values())
        providers = [registry.find("keval.models", provider) for provider in wanted]
        return [*used, *self.scorers.components(), *providers]


def models_of(plugin: Any) -> Mapping[str, Model]:
    """The fields of a plugin that name a model, by name."""
    fields = attrs.fields(type(plugin)) if attrs.has(type(plugin)) else ()
    values = ((field.name, getattr(plugin, field.name)) for field in fields)
    return {name: value for name, value in values if isinstance(value, Model)}


def trial_seed(seed: int, sample: str, repetition: int, roll: int = 0) -> int:
    """The seed of a trial: the same for every arm, another for every repetition and roll; 31 bits, as APIs take it."""
    return _seed(seed, sample, repetition, *([roll] if roll else []))


def judge_seed(seed: int, sample: str, repetition: int) -> int:
    """The seed of a judgement: the same for every arm, another for every repetition of the judge."""
    return _seed(seed, sample, "judge", repetition)


def _seed(*parts: object) -> int:
    text = "\0".join(map(str, parts)).encode("utf-8", "replace")
    return int.from_bytes(hashlib.blake2b(text, digest_size=4).digest(), "big") & 0x7FFF_FFFF
