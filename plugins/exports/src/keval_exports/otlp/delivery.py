"""Sending OTLP over HTTP, in JSON: requests that a server is too busy for are repeated."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from urllib.parse import unquote, urlsplit

import attrs
import httpx2
import orjson

from keval import RunError
from keval.plugin import retry_after_seconds

__all__ = ["Delivery", "check_endpoint", "environment_headers"]

_HEADERS = "OTEL_EXPORTER_OTLP_HEADERS"
_BUSY = {429, 502, 503, 504}
"""Answers after which a request may be repeated: OTLP specification, "Retryable Response Codes"."""
_ATTEMPTS = 5
_LONGEST_WAIT = 30.0
_TIMEOUT = 30.0


def check_endpoint(url: str) -> None:
    """Raise ValueError if a URL is not that of an OTLP/HTTP server."""
    try:
        parts = httpx2.URL(url)
        usable = parts.scheme in ("http", "https") and bool(parts.host)
    except (httpx2.InvalidURL, ValueError):
        usable = False
    if not usable:
        raise ValueError(f"'endpoint' must be the URL of an OTLP/HTTP server, such as http://localhost:4318: {url}")


def environment_headers() -> dict[str, str]:
    """Return the headers that OTEL_EXPORTER_OTLP_HEADERS has: `name=value` pairs, separated by commas, URL-encoded."""
    pairs = (pair.partition("=") for pair in os.environ.get(_HEADERS, "").split(",") if pair.strip())
    return {unquote(name).strip(): unquote(value).strip() for name, _, value in pairs}


@attrs.frozen
class _Fault:
    """Why a request failed, whether the fault may pass, and for how many seconds the server said to wait."""

    problem: str
    passing: bool
    wait: float | None = None


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
        for attempt in range(1, _ATTEMPTS + 1):
            fault = self._attempt(signal, body)
            if fault is None:
                return
            if not fault.passing or attempt == _ATTEMPTS:
                told = f"{self.place}/v1/{signal} {fault.problem}"
                raise RunError(f"{told}; check --endpoint, and the headers in {_HEADERS}")
            self.sleep(min(2.0 ** (attempt - 1) if fault.wait is None else fault.wait, _LONGEST_WAIT))

    def _attempt(self, signal: str, body: bytes) -> _Fault | None:
        url = f"{self.endpoint.rstrip('/')}/v1/{signal}"
        try:
            answer = self.client.post(url, content=body, headers={"content-type": "application/json"}, timeout=_TIMEOUT)
        except httpx2.HTTPError as error:
            told = f"cannot be reached: {str(error) or type(error).__name__}"
            return _Fault(told, passing=not isinstance(error, httpx2.ConnectError))
        if not answer.is_success:
            told = f"answered {answer.status_code}: {answer.text[:200].strip() or answer.reason_phrase}"
            return _Fault(
                told, passing=answer.status_code in _BUSY, wait=retry_after_seconds(answer.headers.get("retry-after"))
            )
        self._note(answer)
        return None

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
