"""Digests of scorers: what changes when anything changes that may change a score."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from keval.config.load import SECRET_OPTION
from keval.interfaces import Judge
from keval.models import Model
from keval.registry import Component
from keval.run.lines import dump
from keval.run.plan import Scorers
from keval.scores import Rubric, Scorer

__all__ = ["rubric_digest", "scorer_digests"]


def scorer_digests(scorers: Scorers, judges: Mapping[str, Judge], seed: int) -> dict[Scorer, str]:
    """Return a digest per scorer, of its package's version, its options as they are and what their files say, and for
    a judge of its endpoint, its rubric and the seed. `judges` are the plan's, with their models resolved.
    """
    metrics: dict[Scorer, str] = {
        (item.label, None): _digest(_described(item.component, item.plugin)) for item in scorers.metrics
    }
    graded: dict[Scorer, str] = {
        (rubric.name, item.label): _digest(
            [_described(item.component, judges[item.label]), rubric_digest(rubric), seed]
        )
        for item in scorers.judges
        for rubric in scorers.rubrics
    }
    return {**metrics, **graded}


def rubric_digest(rubric: Rubric) -> str:
    """Return the digest of what a rubric says, whatever it is called."""
    return _digest([rubric.instructions, sorted(rubric.levels.items()), rubric.needs_answer])


def _described(component: Component, plugin: Any) -> list[Any]:
    fields = attrs.fields(type(plugin)) if attrs.has(type(plugin)) else ()
    options = {field.name: _value(getattr(plugin, field.name)) for field in fields if field.init}
    # Whoever pays may change without the scores.
    kept = {name: value for name, value in options.items() if not SECRET_OPTION.fullmatch(name)}
    return [component.target, component.distribution, component.version, kept]


def _value(value: Any) -> Any:
    if isinstance(value, Path) and value.is_file():
        return hashlib.sha256(value.read_bytes()).hexdigest()  # what it says, wherever it is
    if not isinstance(value, Model):
        return value
    # A simulated model is served at another port in every run.
    urls = value.endpoint.urls if value.endpoint and not value.endpoint.simulated else {}
    return [str(value), dict(urls)]


def _digest(data: Any) -> str:
    return hashlib.sha256(dump(data)).hexdigest()[:12]
