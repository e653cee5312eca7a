"""The trials of a run as lines, found by their ids; of the trials themselves nothing is kept in memory."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from sys import intern

import attrs
import orjson

from keval.errors import RunError, suggestion
from keval.files import LineFile, read_lines
from keval.records.trial import TrialKey


@attrs.frozen(slots=False)
class TrialsFile:
    """trials.jsonl of a run, as it was when it was first asked for something."""

    path: Path

    @cached_property
    def keys(self) -> tuple[TrialKey, ...]:
        """The finished trials, in the order of the file. Raises RunError."""
        return tuple(read_lines(self.path, _key))

    @cached_property
    def places(self) -> Mapping[str, int]:
        """Which line each trial is, counted from 0. Raises RunError."""
        return {key.id: place for place, key in enumerate(self.keys)}

    def line(self, trial: str) -> tuple[bytes, str]:
        """Return the line of a trial, and where it stands, for messages. Raises RunError: there is no such trial."""
        places = self.places
        if trial not in places:
            example = f"; for example {next(iter(places))!r}" if places else "; it has no trials"
            raise RunError(f"no trial {trial!r} in {self.path.parent}{suggestion(trial, places) or example}")
        return self._lines[places[trial]], f"{self.path}:{places[trial] + 1}"

    @cached_property
    def _lines(self) -> LineFile:
        return LineFile(self.path, array("Q", accumulate(read_lines(self.path, len), initial=0)))


def _key(line: bytes) -> TrialKey:
    data = orjson.loads(line)
    agent, condition, sample = (intern(str(data[name])) for name in ("agent", "condition", "sample"))
    return TrialKey(str(data["id"]), agent, condition, sample, int(data["repetition"]))
