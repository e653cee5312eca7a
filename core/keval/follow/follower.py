"""A follower: reads a run that grows as often as it is asked, and anew where that is needed."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

from keval.errors import RunError
from keval.follow.progress import RunProgress
from keval.follow.reading import Reading, ReplacedError
from keval.manifest import Manifest
from keval.store.run import Run
from keval.summary import Summary

__all__ = ["Follower"]

_WINDOW = 60.0
"""Seconds that a rate is taken over."""
_SHORTEST = 3.0
"""Seconds from which on a rate says something."""
_TRIES = 5
"""How often a run is read anew because its files are replaced while they are read."""


class Follower:
    """Reads a run as it grows: each `advance` reads what is new. Memory does not grow with the number of trials.

    A run is read anew when its manifest changes in more than what a run learns at its end, or when trials or scores
    that were read are there no more, as after `keval resume --retry-failed`. `clock` returns seconds; only differences
    between its values are used. Use it in one thread at a time.
    """

    def __init__(self, run: Run | Path, clock: Callable[[], float] = time.monotonic) -> None:
        self.path = run if isinstance(run, Path) else run.path
        self._clock = clock
        self._version = 0
        self._reading: Reading | None = None
        self._told: tuple[int, Summary] | None = None
        self._finished: deque[tuple[float, int]] = deque()

    @property
    def version(self) -> int:
        """A number that rises whenever something new was read."""
        return self._version

    @property
    def manifest(self) -> Manifest:
        """The manifest as it stands. Raises RunError."""
        return self._read.manifest

    def advance(self) -> bool:
        """Read what is new, and return whether anything is.

        Raises RunError: the run cannot be read, is damaged, or was removed.
        """
        for left in reversed(range(_TRIES)):
            is_new = self._reading is None
            try:
                if self._reading is None:
                    self._reading = Reading(self.path)
                found = self._reading.advance() or is_new
            except ReplacedError:
                self._forget()
            except RunError:
                # While a run is resumed, one file may already speak of what another one does not have yet.
                is_torn = left > 0 and self._reading is not None and self._reading.is_outdated()
                self._forget()
                if not is_torn:
                    raise
            else:
                self._version += found
                self._note(self._reading.finished)
                return found
        raise RunError(f"{self.path} cannot be read: its files are replaced again and again; try later")

    def progress(self) -> RunProgress:
        """Return how far the run has come, by what was read; this takes no statistics. Raises RunError."""
        return self._read.progress(self._rate())

    def summary(self) -> Summary:
        """Return the summary of what was read, with effects and their intervals. Raises RunError.

        Gates are not decided, and what people's reviews come to is left out.
        """
        if self._told is None or self._told[0] != self._version:
            summary = self._read.summary()
            self._told = (self._version, summary)
        return self._told[1]

    @property
    def _read(self) -> Reading:
        if self._reading is None:
            self.advance()
        assert self._reading is not None  # noqa: S101 - for mypy: advance() has made it
        return self._reading

    def _forget(self) -> None:
        self._reading = None
        self._finished.clear()

    def _note(self, finished: int) -> None:
        now = self._clock()
        self._finished.append((now, finished))
        while len(self._finished) > 1 and now - self._finished[1][0] > _WINDOW:
            self._finished.popleft()

    def _rate(self) -> float | None:
        if not self._finished:
            return None
        (began, before), (now, finished) = self._finished[0], self._finished[-1]
        return (finished - before) / (now - began) if now - began >= _SHORTEST else None
