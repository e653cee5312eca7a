"""Equal calls of servers that trials share: where they gave different results, one trial may have changed another."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from typing import Any

import attrs
import orjson

from keval.records.manifest import Manifest
from keval.records.servers import KEEPS_TRIALS_APART
from keval.records.transcript import given_arguments
from keval.records.trial import Trial
from keval_analysis.findings.summary import UnlikeCalls


@attrs.define
class SharedCallTally:
    """Compares the calls of each trial with equal ones of the first trial of its condition that made them.

    Of calls that a trial repeats, the first is compared with the first, the second with the second, and so on.
    `servers` are the names of each condition's shared servers.
    """

    servers: Mapping[str, frozenset[str]]
    _results: dict[bytes, bytes] = attrs.field(factory=dict, init=False)
    _compared: Counter[tuple[str, str]] = attrs.field(factory=Counter, init=False)
    _unlike: Counter[tuple[str, str]] = attrs.field(factory=Counter, init=False)

    @classmethod
    def of(cls, manifest: Manifest) -> SharedCallTally | None:
        """Return a tally; `None` if trials share no server but such as keep them apart, for which nothing is kept."""
        shared = {
            condition: frozenset(
                name for name, server in entry.servers.items() if server.shared and server.sharing != KEEPS_TRIALS_APART
            )
            for condition, entry in manifest.conditions.items()
        }
        return cls(shared) if any(shared.values()) else None

    def add_trial(self, trial: Trial) -> None:
        """Add a trial's calls, but for errors and for results that an intervention changed."""
        if trial.transcript is None or not (servers := self.servers[trial.condition]):
            return
        made: Counter[bytes] = Counter()
        for call in trial.transcript.tool_calls:
            if call.server is None or call.server not in servers or call.error is not None or call.changed is not None:
                continue
            tool = call.server, call.tool or call.name
            asked = _digest(trial.condition, tool, given_arguments(call.arguments))
            made[asked] += 1
            result, key = _digest(call.result, repr(call.content)), asked + made[asked].to_bytes(4)
            if (first := self._results.setdefault(key, result)) is not result:
                self._compared[tool] += 1
                self._unlike[tool] += first != result

    def unlike(self) -> tuple[UnlikeCalls, ...]:
        """Return the tools whose equal calls gave different results."""
        return tuple(
            UnlikeCalls(*tool, unlike, self._compared[tool]) for tool, unlike in self._unlike.items() if unlike
        )


def _digest(*parts: Any) -> bytes:
    return hashlib.blake2b(orjson.dumps(parts, option=orjson.OPT_SORT_KEYS), digest_size=12).digest()
