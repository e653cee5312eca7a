"""A run as OpenTelemetry traces and logs, by the conventions for generative AI: in files, or sent to a server."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import attrs
import httpx2
import orjson

from keval import Manifest, Run, RunError
from keval.plugin import Exported, dump, retry_after_seconds
from keval_exports.files import exported_file
from keval_exports.otlp_records import Trace, attributes, score_record

_LARGEST = 1_000_000
"""Bytes from which a request is sent; a server takes 20 MB or more."""
_WORDS = {"traces": ("resourceSpans", "scopeSpans", "spans"), "logs": ("resourceLogs", "scopeLogs", "logRecords")}
"""How the parts of a request are called, from the outside in."""
_HEADERS = "OTEL_EXPORTER_OTLP_HEADERS"
_BUSY = {429, 502, 503, 504}
"""Answers after which a request may be repeated: OTLP specification, "Retryable Response Codes"."""
_ATTEMPTS = 5
_LONGEST_WAIT = 30.0
_TIMEOUT = 30.0
_JSON = {"content-type": "application/json"}


def _web_address(exporter: object, attribute: attrs.Attribute[str], value: str) -> None:
    """Raise ValueError if a URL is not that of an OTLP/HTTP server."""
    try:
        parts = httpx2.URL(value)
        usable = not value or (parts.scheme in ("http", "https") and bool(parts.host))
    except (httpx2.InvalidURL, ValueError):
        usable = False
    if not usable:
        raise ValueError(f"'endpoint' must be the URL of an OTLP/HTTP server, such as http://localhost:4318: {value}")


@attrs.frozen
class Otlp:
    """Writes traces.jsonl and logs.jsonl, or sends them to an OTLP/HTTP server.

    Each trial is a trace, and each score a log record. Requests have the headers of OTEL_EXPORTER_OTLP_HEADERS.
    """

    endpoint: str = attrs.field(
        default="",
        validator=_web_address,
        metadata={"help": "Send to this OTLP/HTTP server, such as http://localhost:4318, in place of writing files."},
    )
    content: bool = attrs.field(
        default=True, metadata={"help": "Include what was said: prompts, messages, arguments, results, reasons."}
    )

    def export(self, run: Run, to: Path) -> Exported:
        """Write or send the run, trial by trial.

        Raises:
            RunError: the run is damaged, the folder cannot be written, or the server cannot be reached or refuses it.
        """
        told = _Told()
        if not self.endpoint:
            traces, logs = to / "traces.jsonl", to / "logs.jsonl"
            with exported_file(traces) as of_traces, exported_file(logs) as of_logs:
                files = {"traces": of_traces, "logs": of_logs}
                for signal, body in self._bodies(run, told, largest=0):
                    # One trial a line, as `largest` is 0: readers of such files take them line by line.
                    files[signal].write(body + b"\n")
            return Exported((traces, logs), tuple(told.left_out()))
        with httpx2.Client(headers=environment_headers()) as client:
            delivery = Delivery(self.endpoint, client)
            for signal, body in self._bodies(run, told, largest=_LARGEST):
                delivery.send(signal, body)
        sent = f"sent {told.trials} traces with {told.spans} spans, and {told.scores} scores, to {delivery.place}"
        return Exported((), (*told.left_out(), *delivery.refused), sent)

    def _bodies(self, run: Run, told: _Told, *, largest: int) -> Iterator[tuple[str, bytes]]:
        """Yield requests with the signal that each is of; one holds whole trials, and more while it is not large."""
        manifest = run.manifest
        spans, records = _Batch(manifest, "traces"), _Batch(manifest, "logs")
        for trial in run.trials():
            trace = Trace(manifest, trial, self.content)
            found = [*trace.spans()]
            scores = [score_record(manifest, trace, line) for line in run.scores_of(trial.id)]
            told.add(trace, len(found), len(scores))
            yield from spans.add(found, largest)
            yield from records.add(scores, largest)
        yield from spans.rest()
        yield from records.rest()


@attrs.define
class _Told:
    """How much was told, and what could not be."""

    trials: int = 0
    spans: int = 0
    scores: int = 0
    timeless: int = 0
    untold: int = 0

    def add(self, trace: Trace, spans: int, scores: int) -> None:
        transcript = trace.trial.transcript
        self.trials += 1
        self.spans += spans
        self.scores += scores
        self.timeless += transcript is None or transcript.started is None
        self.untold += trace.untold()

    def left_out(self) -> Iterator[str]:
        if self.timeless:
            yield f"{self.timeless} of {self.trials} traces begin when the run did: nobody told when their trials began"
        if self.untold:
            yield f"{self.untold} calls of models and tools have no span: nobody told when they were made"


@attrs.define
class _Batch:
    """Records of one signal that wait for a request."""

    manifest: Manifest
    signal: str
    waiting: list[bytes] = attrs.field(factory=list, init=False)
    size: int = attrs.field(default=0, init=False)

    def add(self, records: Sequence[dict[str, Any]], largest: int) -> Iterator[tuple[str, bytes]]:
        """Add the records of a trial, and yield a request if that makes it large enough."""
        written = [dump(record) for record in records]
        self.waiting += written
        self.size += sum(map(len, written))
        if self.size > largest:
            yield from self.rest()

    def rest(self) -> Iterator[tuple[str, bytes]]:
        """Yield a request with what waits, if anything does."""
        if self.waiting:
            yield self.signal, _request(self.manifest, self.signal, self.waiting)
            self.waiting, self.size = [], 0


def _request(manifest: Manifest, signal: str, records: Sequence[bytes]) -> bytes:
    """Return a request of a signal with records that are JSON already."""
    resource = {
        "service.name": "keval",
        "service.version": manifest.versions.get("keval"),
        "keval.run": manifest.run,
        "keval.evaluation": manifest.evaluation,
    }
    scope = {"name": "keval_exports", "version": version("keval-exports")}
    resources, scopes, name = _WORDS[signal]
    scoped = {"scope": scope, name: [orjson.Fragment(record) for record in records]}
    return dump({resources: [{"resource": {"attributes": attributes(resource)}, scopes: [scoped]}]})


def environment_headers() -> dict[str, str]:
    """Return the headers that OTEL_EXPORTER_OTLP_HEADERS has: `name=value` pairs, separated by commas, URL-encoded."""
    pairs = (pair.partition("=") for pair in os.environ.get(_HEADERS, "").split(",") if pair.strip())
    return {unquote(name).strip(): unquote(value).strip() for name, _, value in pairs}


@attrs.define(eq=False)
class Delivery:
    """Sends requests to an OTLP server, whose `endpoint` is the part of the URL before `/v1`.

    `refused` says, in its own words, which records the server did not take.
    """

    endpoint: str
    client: httpx2.Client
    sleep: Callable[[float], object] = time.sleep
    refused: dict[str, None] = attrs.field(factory=dict, init=False)

    @property
    def place(self) -> str:
        """The endpoint without what may be secret in it."""
        parts = urlsplit(self.endpoint)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path.rstrip('/')}"

    def send(self, signal: str, body: bytes) -> None:
        """Send one request for `traces` or `logs`. Raises RunError: the server cannot be reached, or refuses it."""
        url = f"{self.endpoint.rstrip('/')}/v1/{signal}"
        for attempt in range(1, _ATTEMPTS + 1):
            asked: float | None = None
            try:
                answer = self.client.post(url, content=body, headers=_JSON, timeout=_TIMEOUT)
            except httpx2.HTTPError as error:
                problem = f"cannot be reached: {str(error) or type(error).__name__}"
                # Nobody listens there: that is a wrong address, and waiting does not mend it.
                passing = not isinstance(error, httpx2.ConnectError)
            else:
                if answer.is_success:
                    self._note(answer)
                    return
                problem = f"answered {answer.status_code}: {answer.text[:200].strip() or answer.reason_phrase}"
                passing = answer.status_code in _BUSY
                asked = retry_after_seconds(answer.headers.get("retry-after"))
            if not passing or attempt == _ATTEMPTS:
                told = f"{self.place}/v1/{signal} {problem}"
                raise RunError(f"{told}; check --endpoint, and the headers in {_HEADERS}")
            # A server may ask for hours, for which nobody waits at a terminal.
            self.sleep(min(2.0 ** (attempt - 1) if asked is None else asked, _LONGEST_WAIT))

    def _note(self, answer: httpx2.Response) -> None:
        """Keep what the server did not take: OTLP specification, "Partial Success"."""
        try:
            partial = orjson.loads(answer.content or b"{}").get("partialSuccess") or {}
            counts = {name: int(partial.get(name) or 0) for name in ("rejectedSpans", "rejectedLogRecords")}
        except (AttributeError, TypeError, ValueError):
            return  # taken, and answered in something else than JSON
        for name, count in counts.items():
            if count:
                what = "spans" if name == "rejectedSpans" else "scores"
                told = f"{self.place} refused {count} {what}: {partial.get('errorMessage') or 'no reason'}"
                self.refused[told] = None
