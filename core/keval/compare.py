"""Comparing runs: what else differs between them, the effects, and the samples that got better or worse."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import attrs

from keval.effects import Arm, Effect
from keval.errors import RunError
from keval.manifest import AgentEntry, JudgeEntry, Manifest, ReplayEntry, ScorerEntry
from keval.scores import Scale
from keval.stats.summarise import Summariser
from keval.store.run import Run
from keval.summary import ArmScore, ScorerScale

if TYPE_CHECKING:
    from keval.stats.findings import Findings

__all__ = ["Comparison", "Difference", "RunArms", "SampleChange", "compare_runs", "spans", "what_differs"]

_SHOWN = 12
"""Characters of a digest that are told."""


@attrs.frozen
class Difference:
    """Something else than its answers in which a run differs from another: what, and how it is in each."""

    what: str
    now: str
    before: str


@attrs.frozen
class SampleChange:
    """How the mean score of one sample changed from one run to another, in the units of the metric's scale."""

    sample: str
    agent: str
    condition: str
    metric: str
    judge: str | None
    before: float
    now: float

    @property
    def difference(self) -> float:
        """By how much the mean rose."""
        return self.now - self.before


@attrs.frozen
class RunArms:
    """The arms of one run, as far as they are compared."""

    run: str
    evaluation: str
    simulated: tuple[str, ...]
    replay: ReplayEntry | None
    arms: tuple[ArmScore, ...]


@attrs.frozen
class Comparison:
    """A run held against another: `runs` has the run and then that other one.

    `changes` are the samples whose mean differs in an arm, the largest loss for the metric's scale first and the
    largest gain last.
    """

    runs: tuple[RunArms, RunArms]
    scorers: tuple[ScorerScale, ...]
    differences: tuple[Difference, ...]
    effects: tuple[Effect, ...]
    changes: tuple[SampleChange, ...]


def compare_runs(run: Run, against: Run) -> Comparison:
    """Compare every arm and scorer that two runs share, on the samples that both have.

    Raises RunError: they share no arm, no scorer or no sample with a score; or one of them cannot be read.
    """
    from keval.stats.effects import adjust, changed, effect  # NumPy takes a tenth of a second to import

    numbers: dict[str, int] = {}
    now, before = (
        Summariser(each.manifest, numbers).read(each.trials(), each.scores()).findings() for each in (run, against)
    )
    names = list(numbers)
    known = {entry.scorer: entry for entry in against.manifest.scorers}
    entries = [
        entry for entry in run.manifest.scorers if entry.scorer in known and spans(entry) == spans(known[entry.scorer])
    ]
    arms = [arm for arm in _arms(run.manifest) if arm in _arms(against.manifest)]
    _check_shared(run, against, arms, entries)
    effects, changes = [], []
    for agent, condition in arms:
        for entry in entries:
            ours = now.values(Arm(agent, condition, run.manifest.run), entry.scorer)
            theirs = before.values(Arm(agent, condition, against.manifest.run), entry.scorer)
            effects.append(effect("run", now.measure(entry), ours, theirs))
            for sample, old, new in changed(ours, theirs):
                changes.append(SampleChange(names[sample], agent, condition, *entry.scorer, old, new))
    if not any(found.n for found in effects):
        raise RunError(
            f"{run.path} and {against.path} have no sample in common that both have a score for; compare runs of one"
            " dataset, and see `keval report RUN` for what failed"
        )
    scales = {entry.scorer: entry.scale for entry in entries}
    return Comparison(
        runs=(_run(run.manifest, now), _run(against.manifest, before)),
        scorers=tuple(ScorerScale(entry.metric, entry.judge, entry.scale) for entry in entries),
        differences=(*what_differs(run.manifest, against.manifest), *_unanswered(now, before)),
        effects=tuple(adjust(effects, scales)),
        changes=tuple(sorted(changes, key=lambda change: _gain(change, scales[change.metric, change.judge]))),
    )


def _run(manifest: Manifest, found: Findings) -> RunArms:
    return RunArms(manifest.run, manifest.evaluation, manifest.simulated, manifest.replay, found.arms())


def _gain(change: SampleChange, scale: Scale) -> float:
    """Return how much better a sample got, as a share of its metric's scale where that has an end."""
    gain = change.difference if scale.better == "higher" else -change.difference
    return gain if math.isinf(scale.high) else gain / (scale.high - scale.low)


def spans(entry: ScorerEntry) -> tuple[float, float, str]:
    """Return what the scales of two scorers must share for their scores to be compared."""
    return entry.scale.low, entry.scale.high, entry.scale.better


def _arms(manifest: Manifest) -> list[tuple[str, str]]:
    return [(agent, condition) for agent in manifest.agents for condition in manifest.conditions]


def _check_shared(run: Run, against: Run, arms: Sequence[tuple[str, str]], entries: Sequence[ScorerEntry]) -> None:
    if not arms:
        told = "; ".join(
            f"{each.path} has {', '.join(' '.join(arm) for arm in _arms(each.manifest))}" for each in (run, against)
        )
        raise RunError(f"the runs have no agent and condition in common, by their labels: {told}")
    if not entries:
        raise RunError(
            f"{run.path} and {against.path} have no metric in common on the same scale;"
            " `keval score RUN --metric NAME` scores a run again"
        )


def what_differs(now: Manifest, before: Manifest) -> Iterator[Difference]:
    """Yield what else differs between two runs, the most important first."""
    yield from _changed("evaluation", now.evaluation, before.evaluation)
    yield from _changed("dataset", _digest(now.dataset.sha256), _digest(before.dataset.sha256))
    yield from _changed("samples", now.dataset.samples, before.dataset.samples)
    yield from _each("model of agent", _models(now.agents), _models(before.agents))
    yield from _each(
        "answers of agent", *({k: _digest(v.recording) for k, v in m.agents.items()} for m in (now, before))
    )
    yield from _each("condition", *(dict.fromkeys(m.conditions, "there") for m in (now, before)))
    yield from _each("prompt of", _written(now, "system_prompt"), _written(before, "system_prompt"))
    yield from _each(
        "contexts of", *({k: ", ".join(v.contexts) for k, v in m.conditions.items()} for m in (now, before))
    )
    yield from _each("tools of", _tools(now), _tools(before))
    yield from _each("model of judge", _models(now.judges), _models(before.judges))
    yield from _each("version of scorer", _scorers(now), _scorers(before))
    yield from _changed("neutral scores", now.neutral, before.neutral)
    yield from _changed("seed", now.seed, before.seed)
    yield from _each("execution", *({**m.config.get("execution", {})} for m in (now, before)))
    yield from _each("version of", now.versions, before.versions)


def _unanswered(now: Findings, before: Findings) -> Iterator[Difference]:
    """Yield how many trials were answered, if a run has others: they failed, or were not run, or not yet."""
    told = [(found.answered, found.manifest.trials) for found in (now, before)]
    if any(answered < planned for answered, planned in told):
        yield Difference("trials answered", *(f"{answered:,} of {planned:,}" for answered, planned in told))


def _changed(what: str, now: object, before: object) -> Iterator[Difference]:
    if now != before:
        yield Difference(what, _told(now), _told(before))


def _each(what: str, now: Mapping[str, object], before: Mapping[str, object]) -> Iterator[Difference]:
    for name in dict.fromkeys((*now, *before)):
        yield from _changed(f"{what} {name}", now.get(name), before.get(name))


def _told(value: object) -> str:
    return "none" if value is None or value == "" else str(value)


def _digest(sha256: str | None) -> str | None:
    return sha256[:_SHOWN] if sha256 else None


def _models(entries: Mapping[str, AgentEntry] | Mapping[str, JudgeEntry]) -> dict[str, object]:
    return {label: entry.model for label, entry in entries.items()}


def _written(manifest: Manifest, key: str) -> dict[str, object]:
    """Return what the config says under a key of each condition."""
    conditions = manifest.config.get("conditions") or {}
    return {label: (conditions.get(label) or {}).get(key) for label in manifest.conditions}


def _tools(manifest: Manifest) -> dict[str, object]:
    return {
        f"{name} under {label}": f"{', '.join(server.tools)} ({_digest(server.sha256)})"
        for label, condition in manifest.conditions.items()
        for name, server in condition.servers.items()
    }


def _scorers(manifest: Manifest) -> dict[str, object]:
    return {
        f"{entry.metric} by {entry.judge}" if entry.judge else entry.metric: entry.digest for entry in manifest.scorers
    }
