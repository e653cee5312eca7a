"""Trials by id, read from their file when they are asked for: scores do not come in the order of the trials."""

from __future__ import annotations

from array import array

import orjson

from keval.config.samples import LineFile
from keval.errors import RunError
from keval.records import Trial
from keval.run.lines import read_trial
from keval.run.store import RunDirectory

__all__ = ["TrialIndex"]


class TrialIndex:
    """Knows where in trials.jsonl each trial begins, and keeps no trial in memory.

    The trials come without their agents' characteristics, which are no part of what happened.
    """

    def __init__(self, run: RunDirectory) -> None:
        self._path = run.trials_file
        self._samples = run.samples()
        self._described = dict.fromkeys(run.manifest()["agents"])
        self._positions: dict[str, int] = {}
        starts = array("Q")
        start = 0
        with self._path.open("rb") as lines:
            for line in lines:
                if not line.endswith(b"\n"):  # torn by a power cut, and no trial
                    break
                self._positions[orjson.loads(line)["id"]] = len(starts)
                starts.append(start)
                start += len(line)
        self._lines = LineFile(self._path, starts)

    def __getitem__(self, id: str) -> Trial:
        """Read a trial. Raises RunError when there is none of that id."""
        if id not in self._positions:
            raise RunError(f"{self._path} has no trial {id!r}, which has scores; restore the file")
        return read_trial(self._lines[self._positions[id]], self._samples.named, self._described)
