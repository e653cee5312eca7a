"""Working time: how long a run is worked on, summed over each time that it goes on."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import attrs

from keval.errors import RunError
from keval.store.writer import RunWriter


@attrs.frozen
class WorkingTime:
    """Measures from when it is made; `earlier` are the seconds that the run was worked on before, `None` if unknown."""

    earlier: float | None = 0.0
    _began: float = attrs.field(factory=time.perf_counter)

    def total(self) -> float | None:
        """Return the seconds that the run was worked on until now."""
        return None if self.earlier is None else round(self.earlier + time.perf_counter() - self._began, 3)

    @contextmanager
    def kept(self, writer: RunWriter) -> Iterator[None]:
        """Write the total into the manifest as it stands if the block is interrupted or fails."""
        try:
            yield
        except BaseException:
            with suppress(RunError):  # what ended the work is told, and not that its time could not be kept
                writer.write_manifest(attrs.evolve(writer.run.manifest, elapsed=self.total()))
            raise
