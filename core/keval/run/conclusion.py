"""The conclusion of a run: its summary, of the package that makes one, or else counts and means."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from statistics import fmean
from typing import Any, Literal, Protocol, TypeAlias

import attrs

from keval.records.manifest import Manifest
from keval.records.scores import Scorer
from keval.seams import registry
from keval.store.run import Run

Outcome: TypeAlias = Literal["passed", "gate failed", "incomplete"]


class Summary(Protocol):
    """What was found in a run."""

    def outcome(self, *, strict: bool = False) -> Outcome:
        """Return whether a gate failed, or is undecided and that is `strict`, and else whether the run is complete."""
        ...


@attrs.define
class PlainArm:
    """What became of the trials of one arm, and the values that each scorer gave, without neutral ones."""

    agent: str
    condition: str
    trials: int = 0
    failed: int = 0
    lost: int = 0
    values: dict[Scorer, list[float]] = attrs.field(factory=lambda: defaultdict(list))

    @property
    def means(self) -> Mapping[Scorer, float]:
        """The mean of each scorer that gave a value."""
        return {scorer: fmean(values) for scorer, values in self.values.items() if values}


@attrs.frozen
class PlainSummary:
    """Counts and means of a run, arm by arm."""

    planned: int
    arms: tuple[PlainArm, ...]

    @classmethod
    def of(cls, run: Run) -> PlainSummary:
        """Count the trials and scores of a run. Raises RunError."""
        manifest, neutral = run.manifest, run.manifest.neutral == "count"
        # By the manifest, so that an arm without a single trial is shown, too.
        arms = {(agent, label): PlainArm(agent, label) for agent in manifest.agents for label in manifest.conditions}
        for trial in run.trials():
            arm = arms[trial.agent, trial.condition]
            arm.trials, arm.failed = arm.trials + 1, arm.failed + (trial.failure is not None)
        for line in run.scores():
            arm, score = arms[line.agent, line.condition], line.score
            arm.lost += line.failure is not None
            if score.value is not None and (neutral or not score.neutral):
                arm.values[line.scorer].append(score.value)
        return cls(manifest.trials, tuple(arms.values()))

    def data(self) -> dict[str, Any]:
        """Return counts and means under those keys that a summary has them under."""
        arms = [(arm, {"agent": arm.agent, "condition": arm.condition}) for arm in self.arms]
        means = ((arm, named, scorer) for arm, named in arms for scorer in arm.means)
        return {
            "planned": self.planned,
            "trials": [{**named, "trials": arm.trials, "failed": arm.failed} for arm, named in arms],
            "arms": [
                {**named, "metric": scorer[0], "judge": scorer[1], "mean": arm.means[scorer]}
                for arm, named, scorer in means
            ],
        }

    def outcome(self, *, strict: bool = False) -> Outcome:
        """Return whether the run is complete; there are no gates."""
        made = sum(arm.trials for arm in self.arms) == self.planned
        return "passed" if made and not any(arm.failed or arm.lost for arm in self.arms) else "incomplete"


def conclude(run: Run, parts: Mapping[str, Any], given: Mapping[str, Any]) -> Summary:
    """Summarise a run whose trials are finished; `parts` are those of hook plugins, `given` options of packages.

    Raises RunError.
    """
    summary: Summary = _reading("conclusion", lambda run, *_: PlainSummary.of(run))(run, parts, given)
    return summary


def sealed(run: Run, manifest: Manifest) -> Manifest:
    """Return a manifest with what the files of its run have in them, if a package looks. Raises RunError."""
    found: Manifest = _reading("sealed", lambda _, manifest: manifest)(run, manifest)
    return found


def unsealed(run: Run) -> Manifest:
    """Return the manifest of a run that is about to be written to again: without a seal, with what changed since.

    Raises RunError.
    """
    found: Manifest = _reading("unsealed", lambda run: attrs.evolve(run.manifest, sealed={}))(run)
    return found


def _reading(name: str, otherwise: Callable[..., Any]) -> Callable[..., Any]:
    """Return what reads so of a run, of the package that has it, if that is installed."""
    is_there = registry.has("keval.readings", name)
    return registry.load(registry.find("keval.readings", name)) if is_there else otherwise
