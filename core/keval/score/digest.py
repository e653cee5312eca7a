"""Digests of scorers, which change with anything that may change a score."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from keval.config.variables import SECRET_OPTION
from keval.files import read_input
from keval.plan.plan import Scorers
from keval.records.models import Endpoint, Model
from keval.records.scores import Rubric, Scorer
from keval.seams.registry import Component
from keval.store.lines import dump


def scorer_digests(scorers: Scorers, endpoints: Mapping[str, Endpoint], seed: int) -> dict[Scorer, str]:
    """Return a digest per scorer.

    It covers the scorer's package and version, its options and the content of their files, and for a judge also its
    endpoint, its rubric and the seed. `endpoints` are those that model providers found, by `provider/name`.
    """
    metrics: dict[Scorer, str] = {
        (item.label, None): _digest(_described(item.component, item.plugin, endpoints)) for item in scorers.metrics
    }
    graded: dict[Scorer, str] = {
        (rubric.name, item.label): _digest(
            [_described(item.component, item.plugin, endpoints), rubric_digest(rubric), seed]
        )
        for item in scorers.judges
        for rubric in scorers.rubrics
    }
    return {**metrics, **graded}


def rubric_digest(rubric: Rubric) -> str:
    """Return the digest of a rubric's content, without its name."""
    return _digest([rubric.instructions, sorted(rubric.levels.items()), rubric.needs_answer])


def _described(component: Component, plugin: Any, endpoints: Mapping[str, Endpoint]) -> list[Any]:
    fields = attrs.fields(type(plugin)) if attrs.has(type(plugin)) else ()
    options = {field.name: _value(getattr(plugin, field.name), endpoints) for field in fields if field.init}
    # A key changes no score.
    kept = {name: value for name, value in options.items() if not SECRET_OPTION.fullmatch(name)}
    return [component.target, component.distribution, component.version, kept]


def _value(value: Any, endpoints: Mapping[str, Endpoint]) -> Any:
    if isinstance(value, Path) and value.is_file():
        return hashlib.sha256(read_input(value)).hexdigest()  # its content counts, and not its path
    if not isinstance(value, Model):
        return value
    # Not a proxy's endpoint, and not that of a simulated model: their ports differ between runs.
    endpoint = value.endpoint or endpoints.get(str(value))
    urls = endpoint.urls if endpoint and not endpoint.simulated else {}
    return [str(value), dict(urls)]


def _digest(data: Any) -> str:
    return hashlib.sha256(dump(data)).hexdigest()[:12]
