"""Writing the recording of a run: frames of traffic, without secrets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import attrs

from keval.recording.frames import FrameFile, FrameKey, encoded_frame, traffic_file
from keval.recording.lines import RecordedEndpoint, endpoint_line, traffic_line
from keval.records.cassettes import Traffic
from keval.records.manifest import Manifest
from keval.records.models import Endpoint
from keval.redaction import Redactor


@attrs.frozen
class RecordingWriter:
    """Writes to the recording of one run."""

    _file: FrameFile
    _redact: Redactor

    @classmethod
    @contextmanager
    def of(cls, manifest: Manifest, run: Path, redact: Redactor) -> Iterator[RecordingWriter | None]:
        """Open the recording of a run in its directory, or begin one; yield `None` if the run is not recorded.

        Raises RunError: it cannot be written, or is damaged.
        """
        if manifest.recording is None:
            yield None
            return
        with FrameFile(traffic_file(run)) as file:
            yield cls(file, redact)

    def frame(self, key: FrameKey, traffic: Iterable[Traffic]) -> bytes:
        """Return traffic as a frame that can be appended."""
        return encoded_frame(key, [traffic_line(each, self._redact) for each in traffic])

    def append(self, frames: bytes) -> None:
        """Append frames and return when they are on disk. Raises RunError."""
        self._file.append(frames)

    def begin(
        self, endpoints: Mapping[str, Endpoint], listings: Mapping[tuple[str, str], Sequence[Traffic]] | None = None
    ) -> None:
        """Write what is known of endpoints, by `provider/name`, and what servers list, by condition and name.

        Raises RunError.
        """
        frames = [
            self.frame(FrameKey("server", condition=condition, server=server), listing)
            for (condition, server), listing in (listings or {}).items()
        ]
        for model, endpoint in endpoints.items():
            urls = {wire: self._redact.text(url) for wire, url in endpoint.urls.items()}
            known = RecordedEndpoint(model, urls, endpoint.simulated, endpoint.wants_trial, endpoint.model)
            frames.append(encoded_frame(FrameKey("endpoint", model=model), [endpoint_line(known)]))
        self.append(b"".join(frames))

    def judgement(self, trial: str, judge: str, repetition: int, traffic: Iterable[Traffic]) -> None:
        """Write what passed in all attempts at a judgement. It is on disk after the next `append`. Raises RunError."""
        key = FrameKey("judge", trial=trial, judge=judge, repetition=repetition)
        self._file.write(self.frame(key, traffic))
