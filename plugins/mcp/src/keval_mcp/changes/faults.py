"""Faults: which calls of a trial fail on purpose."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

import attrs

from keval.plugin import Faults, TrialInfo

__all__ = ["FAULT", "FaultDraw"]

FAULT = "The tool failed: an error inside the server. Calling it again may succeed."
"""What the agent gets in place of a result."""


@attrs.define
class FaultDraw:
    """Draws whether each call of one trial fails.

    That depends on the seed, the sample, the repetition, the call and how often the trial has made the same call, and
    not on when it arrives: calls that a model makes at once arrive in any order. Trials of all arms draw alike.
    """

    faults: Faults
    trial: TrialInfo | None
    _made: Counter[str] = attrs.field(factory=Counter, init=False)

    def fails(self, tool: str, arguments: Mapping[str, Any]) -> bool:
        """Return whether the next call with these arguments fails."""
        call = json.dumps([tool, arguments], sort_keys=True, default=str)
        self._made[call] += 1
        of = (self.trial.sample.id, self.trial.repetition) if self.trial else ("", 1)
        text = json.dumps([self.faults.seed, *of, call, self._made[call]])
        drawn = int.from_bytes(hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).digest(), "big")
        return drawn / 2**64 < self.faults.error
