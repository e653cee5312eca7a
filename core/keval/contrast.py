"""Contrasts: conditions that differ from another one only in what the config changes of their contexts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

import attrs

from keval.effects import Effect

__all__ = ["Contrast", "ContrastKind"]

ContrastKind: TypeAlias = Literal["placebo", "ablation", "change"]


@attrs.frozen
class Contrast:
    """A condition held against the one that it was changed from, on the same samples.

    `kind` is `placebo` if only the results of calls are others, `ablation` if exactly one `tool` is left out, and
    `change` otherwise. `added` says that `ablate` added the condition, which is compared with nothing else. `changes`
    are the interventions that `against` lacks, by server, as a config writes them. `effects` are those of `condition`
    against `against`, agent by agent and scorer by scorer; their p is adjusted over all contrasts of one kind in the
    run. `expenses` are the same on what an answer takes.
    """

    kind: ContrastKind
    condition: str
    against: str
    changes: Mapping[str, Sequence[Mapping[str, Any]]] = attrs.field(factory=dict)
    tool: str | None = None
    added: bool = False
    effects: tuple[Effect, ...] = ()
    expenses: tuple[Effect, ...] = ()
