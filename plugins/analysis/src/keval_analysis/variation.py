"""What conditions differ from the baseline in; an effect of several things at once tells of none what it does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import attrs

from keval.config.evaluation import Evaluation
from keval.errors import Problem

Varied: TypeAlias = Literal["contexts", "system_prompt", "workspace"]
"""What may differ between conditions, by its key in the config. Whether tools must be used goes with the contexts."""

_KEYS: Mapping[Varied, Sequence[str]] = {
    "contexts": ("contexts",),
    "system_prompt": ("system_prompt", "template"),
    "workspace": ("workspace",),
}
# What a key means where it is left out: a default that is written is no difference.
_LEFT_OUT: Mapping[str, Any] = {"contexts": [], "system_prompt": "", "template": True}


@attrs.frozen
class Variation:
    """`varies` is what conditions are meant to differ from the baseline in; any other difference is an error then."""

    varies: tuple[Varied, ...] = ()

    def check_config(self, evaluation: Evaluation) -> Iterator[Problem]:
        """Yield where conditions differ from the baseline in anything else."""
        source = evaluation.source
        written = source.data.get("conditions")
        if not self.varies or not isinstance(written, dict):
            return
        for label, varied in differences(written, evaluation.header.baseline).items():
            for key in varied:
                if key not in self.varies:
                    told = f"{label!r} differs from the baseline in {key}, which `varies` does not name"
                    place = ("conditions", label, key) if key in (written[label] or {}) else ("conditions", label)
                    remedy = "write it as the baseline has it, or name it there"
                    yield source.problem(place, f"{told}; {remedy}", at_key=True)


def differences(conditions: Mapping[str, Any], baseline: str | None) -> dict[str, tuple[Varied, ...]]:
    """Return in what each condition, as written, differs from the baseline, which is the first by default."""
    first = baseline if baseline in conditions else next(iter(conditions), None)
    return {
        label: tuple(_between(written, conditions[first]))
        for label, written in conditions.items()
        if first is not None and label != first
    }


def _between(written: Any, baseline: Any) -> Iterator[Varied]:
    ours, theirs = (each if isinstance(each, Mapping) else {} for each in (written, baseline))
    for varied, keys in _KEYS.items():
        if any(ours.get(key, _LEFT_OUT.get(key)) != theirs.get(key, _LEFT_OUT.get(key)) for key in keys):
            yield varied


def mixed(config: Mapping[str, Any]) -> dict[str, tuple[Varied, ...]]:
    """Return the conditions of a config that differ from the baseline in more than one thing, unless it says so."""
    conditions, declared = config.get("conditions"), config.get("varies")
    if declared or not isinstance(conditions, Mapping):
        return {}
    found = differences(conditions, config.get("baseline"))
    return {label: varied for label, varied in found.items() if len(varied) > 1}


def mixed_words(label: str, baseline: str, varied: Sequence[str]) -> str:
    """Return what a condition's difference in several things means for its effect."""
    told = f"{', '.join(varied[:-1])} and {varied[-1]}"
    return f"{label} differs from {baseline} in {told}; its effect is of all of these together"
