"""Checking what gates and expectations name against the whole config, of which a run may be a part only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from keval import registry
from keval.config.evaluation import Evaluation
from keval.dataset.read import Dataset
from keval.errors import PluginError, Problem, suggestion
from keval.gates.expression import Names, read_gates
from keval.manifest import Manifest
from keval.plan.plan import Scorers
from keval.scores import Scale, Scorer

__all__ = ["expectation_problems", "gate_problems"]


def gate_problems(evaluation: Evaluation, scorers: Scorers, manifest: Manifest | None = None) -> list[Problem]:
    """Return what is wrong with the gates of a config and of flags.

    `manifest` is that of a run which is scored again.
    """
    written = [(gate.text, gate.place) for gate in evaluation.gates if not gate.is_checked]
    if not written:
        return []
    names = _names(evaluation, scorers)
    if manifest is not None:
        run = Names.of(manifest)
        names = attrs.evolve(run, scorers=run.scorers | names.scorers)
    return read_gates(written, names)[1]


def expectation_problems(evaluation: Evaluation, dataset: Dataset) -> Iterator[Problem]:
    """Yield the conditions that expectations of samples name and the config does not have."""
    known = _labels(evaluation.source.data, "conditions", evaluation.conditions)
    for label, line in dataset.expected.items():
        if label not in known:
            hint = suggestion(label, known) or f"; conditions: {', '.join(known)}"
            yield Problem(f"{dataset.path}:{line}", f"'expect' names no condition of the config: {label!r}{hint}")


def _names(evaluation: Evaluation, scorers: Scorers) -> Names:
    """Return what the config names, and what flags add to it."""
    data = evaluation.source.data
    conditions = _labels(data, "conditions", evaluation.conditions)
    known: dict[Scorer, Scale | None] = {(metric, None): None for metric in _metrics(data)}
    judges = _labels(data, "judges", {spec.label: spec for spec in evaluation.judges})
    rubrics = scorers.rubrics if judges else ()
    known |= {(rubric.name, judge): rubric.scale for rubric in rubrics for judge in judges}
    return Names(
        agents=_labels(data, "agents", {spec.label: spec for spec in evaluation.agents}),
        conditions=conditions,
        baseline=str(data.get("baseline") or next(iter(conditions), "")),
        scorers={**known, **scorers.scales()},
    )


def _labels(data: Mapping[str, Any], section: str, selected: Mapping[str, Any]) -> tuple[str, ...]:
    written = data.get(section)
    return (*dict.fromkeys([*(written if isinstance(written, dict) else ()), *selected]),)


def _metrics(data: Mapping[str, Any]) -> Iterator[str]:
    """Yield the metrics that a config lists, those of a vendor one by one."""
    listed = data.get("metrics")
    for entry in listed if isinstance(listed, list) else ():
        name = next(iter(entry)) if isinstance(entry, dict) and entry else entry
        try:
            yield from (component.name for component in registry.select("keval.metrics", str(name)))
        except PluginError:  # which is reported where the metric is listed
            yield str(name)
