"""The plan: plugins constructed, samples loaded, trials enumerated. The same input gives the same trial ids."""

from __future__ import annotations

import hashlib
import itertools
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import attrs

from keval.config.evaluation import Condition, Evaluation
from keval.config.source import KeyPath
from keval.dataset.read import Dataset
from keval.dataset.samples import Samples
from keval.errors import Problem
from keval.records.interventions import Intervention
from keval.records.manifest import Manifest
from keval.records.models import Asker, Model
from keval.records.scores import Rubric, RubricKind, Scale, Scorer
from keval.records.servers import Sharing
from keval.records.trial import Sample, TrialKey
from keval.seams import registry
from keval.seams.interfaces import PlansSharing, PrerecordedAgent
from keval.seams.registry import Component

if TYPE_CHECKING:  # few plans have any
    from keval.seams.workspaces import Tasks


@attrs.frozen
class ResolvedPlugin:
    """A plugin under its label, constructed with its options.

    `place` is its place in the config, and `path` its path there, empty where a vendor's name selects it.
    `characteristics` is what an agent's plugin and the config say about the agent. `interventions` are what the config
    changes about a context, first to last, each from the entry at its path in `changed_at`. `origin` is the label of
    the context that it derives from in the end.
    """

    label: str
    component: Component
    plugin: Any
    place: str = ""
    path: KeyPath = ()
    characteristics: Mapping[str, Any] = attrs.field(factory=dict)
    interventions: tuple[Intervention, ...] = ()
    changed_at: tuple[KeyPath, ...] = ()
    origin: str | None = None

    @property
    def models(self) -> Mapping[str, Model]:
        """The plugin's fields that name a model."""
        return models_of(self.plugin)

    @property
    def asker(self) -> Asker:
        """Who it is in the requests of its models."""
        roles: Mapping[str, Literal["judge", "context"]] = {"keval.judges": "judge", "keval.contexts": "context"}
        return Asker(roles.get(self.component.group, "agent"), self.label)

    @property
    def unserved(self) -> Mapping[str, Model]:
        """The models whose endpoint a provider has to find. A plugin may set the endpoint itself."""
        return {name: model for name, model in self.models.items() if model.endpoint is None}

    @property
    def model_names(self) -> tuple[str, ...]:
        """The models' `provider/name`; for recorded answers, that of the model which gave them, if it is known."""
        told = getattr(self.plugin, "model", None) if self.prerecorded else None
        return (told,) if isinstance(told, str) else tuple(map(str, self.models.values()))

    @property
    def model_name(self) -> str | None:
        """The first of `model_names`."""
        return next(iter(self.model_names), None)

    @property
    def played(self) -> bool:
        """Whether a context's servers are not there, as all their answers are recorded ones."""
        found = [change.recorded for change in self.interventions if change.recorded is not None]
        # A miss that is asked live needs the server after all.
        return any(each.misses != "live" for each in found)

    @property
    def prerecorded(self) -> PrerecordedAgent | None:
        """The plugin, if it is an agent whose answers exist already."""
        return self.plugin if isinstance(self.plugin, PrerecordedAgent) else None


@attrs.frozen
class Arm:
    """A condition ready to run: its label, what the config says of it, and its system prompt if that is a template."""

    label: str
    condition: Condition
    template: Callable[[Sample], str] | None = attrs.field(default=None, eq=False, repr=False)

    @property
    def contexts(self) -> tuple[str, ...]:
        """The labels of its contexts."""
        return self.condition.contexts

    def system_prompt(self, sample: Sample) -> str:
        """Return the prompt for a sample. Raises ValueError: an undefined name, or a template that fails."""
        return self.template(sample) if self.template else self.condition.system_prompt


@attrs.frozen
class Scorers:
    """All scorers, in the order of the config; `shipped` are the plugins that ship rubrics."""

    metrics: tuple[ResolvedPlugin, ...] = ()
    judges: tuple[ResolvedPlugin, ...] = ()
    rubrics: tuple[Rubric, ...] = ()
    shipped: tuple[Component, ...] = ()

    def scales(self) -> dict[Scorer, Scale]:
        """Return the scale of every scorer: a metric alone, or a rubric with its judge."""
        scales: dict[Scorer, Scale] = {}
        scales.update(((item.label, None), getattr(item.plugin, "scale", Scale())) for item in self.metrics)
        scales.update(
            ((rubric.name, item.label), rubric.scale) for item in self.judges for rubric in self.graded_by(item)
        )
        return scales

    def graded_by(self, judge: ResolvedPlugin) -> list[Rubric]:
        """Return the rubrics that a judge grades by: those of its kinds."""
        kinds = kinds_of(judge.plugin)
        return [rubric for rubric in self.rubrics if rubric.kind in kinds]

    def repetitions(self, of_judges: int, before: Manifest | None = None) -> dict[Scorer, int]:
        """Return how often each scorer grades an answer: a metric once, a judge as `before`, or else `of_judges`."""
        known = {entry.scorer: entry.repetitions for entry in before.scorers} if before else {}
        return {scorer: 1 if scorer[1] is None else known.get(scorer, of_judges) for scorer in self.scales()}

    def components(self) -> list[Component]:
        """Return the plugins that score, and those that ship rubrics."""
        return [*(item.component for item in (*self.metrics, *self.judges)), *self.shipped]


@attrs.frozen
class ScoringPlan:
    """What scoring a finished run needs: the scorers, middleware and hook plugins.

    What trials need, and only a `Plan` has, is empty: nothing of it is brought up. `tasks` are their workspaces and
    checks, if the config asks for any.
    """

    evaluation: Evaluation
    scorers: Scorers
    executor: ResolvedPlugin
    middleware: tuple[ResolvedPlugin, ...] = ()
    hooks: tuple[ResolvedPlugin, ...] = ()
    agents: tuple[ResolvedPlugin, ...] = ()
    arms: tuple[Arm, ...] = ()
    contexts: Mapping[str, ResolvedPlugin] = attrs.field(factory=dict)
    tasks: Tasks | None = None

    @property
    def askers(self) -> tuple[ResolvedPlugin, ...]:
        """The agents and judges, and the contexts of its arms whose servers may ask a model."""
        contexts = (self.contexts[label] for arm in self.arms for label in arm.contexts)
        asking = {item.label: item for item in contexts if item.models}
        return (*self.agents, *self.scorers.judges, *asking.values())


@attrs.frozen(kw_only=True)
class Plan(ScoringPlan):
    """All that a run will do, before it does anything; `notices` are what a user should know of it."""

    dataset: Dataset
    samples: Samples
    notices: tuple[Problem, ...] = ()

    @property
    def trial_count(self) -> int:
        """How many trials there are."""
        prerecorded = [agent.prerecorded for agent in self.agents]
        cells = ((sample, arm.label) for sample in self.samples.ids for arm in self.arms)
        return sum(self._repetitions(agent, *cell) for cell in cells for agent in prerecorded)

    @property
    def trials_of_arm(self) -> int:
        """How many trials each condition has in which an agent is asked; a plan without samples is for one session."""
        asked = sum(agent.prerecorded is None for agent in self.agents)
        return asked * max(1, len(self.samples)) * self.evaluation.execution.num_repetitions

    def count_left(self, done: Collection[TrialKey]) -> Mapping[str, int]:
        """Return how many trials in which an agent is asked are not `done`, by condition."""
        if not done:
            return dict.fromkeys((arm.label for arm in self.arms), self.trials_of_arm)
        asked = {agent.label for agent in self.agents if agent.prerecorded is None}
        return Counter(key.condition for key in self.trials() if key.agent in asked and key not in done)

    def sharing(self) -> dict[str, tuple[Sharing | None, int]]:
        """Return for each context whether trials will share its server, `None` if that shows when it starts.

        With it comes how many trials there are that otherwise have one of their own.
        """
        used = Counter(label for arm in self.arms for label in arm.contexts if self.trials_of_arm)
        plugins = {label: self.contexts[label].plugin for label in used}
        return {
            label: (plugin.planned_sharing(), used[label] * self.trials_of_arm)
            for label, plugin in plugins.items()
            if isinstance(plugin, PlansSharing)
        }

    def trials(self) -> Iterator[TrialKey]:
        """Enumerate the trials in the order in which they begin, which the seed permutes.

        Each repetition has an order of samples of its own, and each sample in it an order of arms. The trials of a
        sample follow each other, so that time affects all arms alike. In a run that may end early, all repetitions of a
        sample do.
        """
        # A section may want all arms and repetitions of a question asked before the next one.
        if not any(getattr(each, "question_by_question", False) for each in self.evaluation.sections):
            yield from self.trials_of(self.samples.ids)
            return
        for name in itertools.chain.from_iterable(question_order(self.evaluation, self.samples)):
            yield from self.trials_of([name])

    def trials_of(self, samples: Sequence[str]) -> Iterator[TrialKey]:
        """Enumerate the trials of samples, repetition by repetition."""
        seed = self.evaluation.execution.seed
        pairs = itertools.product(self.arms, self.agents)
        arms = {f"{agent.label}/{arm.label}": (agent.label, arm.label, agent.prerecorded) for arm, agent in pairs}
        # Recorded answers may be more of one sample than of another, so there are rounds until no sample has any left.
        for repetition in itertools.count(1):
            more: list[str] = []
            for sample in sample_order(samples, seed, repetition):
                most = 0
                for name in _permuted(arms, seed, repetition, sample):
                    agent, condition, prerecorded = arms[name]
                    repetitions = self._repetitions(prerecorded, sample, condition)
                    if repetition <= repetitions:
                        yield TrialKey(f"{name}/{sample}/{repetition}", agent, condition, sample, repetition)
                    most = max(most, repetitions)
                if repetition < most:
                    more.append(sample)
            if not more:
                return
            samples = more

    def _repetitions(self, prerecorded: PrerecordedAgent | None, sample: str, condition: str) -> int:
        """Return how often a sample is asked under a condition: at least once, unless its answers are `partial`."""
        if prerecorded is None:
            return self.evaluation.execution.num_repetitions
        return max(not getattr(prerecorded, "partial", False), prerecorded.count_answers(sample, condition))

    @property
    def models(self) -> list[Model]:
        """Every model that agents and judges ask, each once."""
        return list({str(model): model for item in self.askers for model in item.models.values()}.values())

    def components(self) -> list[Component]:
        """Return every plugin that the run uses, its model providers included."""
        parts = (*self.agents, *self.contexts.values(), *self.middleware, *self.hooks, self.executor)
        wanted = dict.fromkeys(model.provider for item in self.askers for model in item.unserved.values())
        providers = [registry.find("keval.models", provider) for provider in wanted]
        return [*(item.component for item in parts), *self.scorers.components(), *providers]


def models_of(plugin: Any) -> Mapping[str, Model]:
    """Return the models that fields of a plugin name, by field: `model`, or `models.0` in a list."""
    found: dict[str, Model] = {}
    for field in attrs.fields(type(plugin)) if attrs.has(type(plugin)) else ():
        value = getattr(plugin, field.name)
        if not isinstance(value, Model | tuple):
            continue
        if isinstance(value, Model):
            found[field.name] = value
        else:
            found |= {f"{field.name}.{n}": each for n, each in enumerate(value) if isinstance(each, Model)}
    return found


def kinds_of(judge: Any) -> tuple[RubricKind, ...]:
    """Return the kinds of rubrics that a judge grades by; its class attribute `kinds` names them."""
    kinds: tuple[RubricKind, ...] = getattr(judge, "kinds", ("levels",))
    return kinds


def sees_tools(judge: Any) -> bool:
    """Return whether a judge is shown the tool calls of a trial; its class attribute `sees_tool_calls` says so."""
    return bool(getattr(judge, "sees_tool_calls", False))


def trial_seed(seed: int, sample: str, repetition: int, resample: int = 0) -> int:
    """Return the seed of a trial: 31 bits, the same for every arm, another for every repetition and resample."""
    return _seed(seed, sample, repetition, *([resample] if resample else []))


def judge_seed(seed: int, sample: str, repetition: int) -> int:
    """Return the seed of a judgement: the same for every arm, another for every repetition of the judge."""
    return _seed(seed, sample, "judge", repetition)


def sample_order(samples: Iterable[str], seed: int, repetition: int) -> list[str]:
    """Return the ids of samples in the order in which a repetition asks them; a part of them keeps that of all."""
    return _permuted(samples, seed, repetition)


def question_order(evaluation: Evaluation, samples: Samples) -> list[list[str]]:
    """Return the ids of samples in the order in which a run that may end early asks them, which the seed permutes.

    Samples that share a source are in one list: they are one unit of what is looked at.
    """
    seed, dataset = evaluation.execution.seed, evaluation.dataset
    if dataset is None or dataset.cluster_key is None:
        return [[name] for name in sample_order(samples.ids, seed, 1)]
    groups: dict[str, list[str]] = {}
    for name in samples.ids:
        source = samples.named(name).metadata.get(dataset.cluster_key)
        # The words keep a sample apart from a source of the same name.
        groups.setdefault(f"sample {name}" if source is None else f"source {source}", []).append(name)
    return [groups[name] for name in sample_order(groups, seed, 1)]


def _permuted(names: Iterable[str], *of: object) -> list[str]:
    """Return names in the order of their hashes with `of`, which is the same on every machine."""
    # The empty part ends what is common with a separator, after which each copy adds a name.
    start = hashlib.blake2b(_joined(*of, ""), digest_size=8)

    def place(name: str) -> bytes:
        found = start.copy()
        found.update(name.encode("utf-8", "replace"))
        return found.digest()

    return sorted(names, key=place)


def _seed(*parts: object) -> int:
    return int.from_bytes(hashlib.blake2b(_joined(*parts), digest_size=4).digest(), "big") & 0x7FFF_FFFF


def _joined(*parts: object) -> bytes:
    # Parted by a character that no label has, or `a` and `bc` would come to the same as `ab` and `c`.
    return "\0".join(map(str, parts)).encode("utf-8", "replace")
