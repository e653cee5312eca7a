"""Traffic as lines of JSON, without secrets, and back.

A line may come from a newer or an older version of keval: unknown keys are ignored, and absent ones take their default.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

import attrs
import orjson

from keval.models import Asker, ModelRequest, Wire
from keval.recording.spelled import unspelled
from keval.redaction import Redactor
from keval.store.jsonl import dump
from keval.store.shapes import fields_of, read_record
from keval.tapes import ModelTraffic, ServerTraffic, Traffic, TrafficError

__all__ = ["RecordedEndpoint", "endpoint_line", "read_endpoint", "read_traffic", "traffic_line"]

_AFTER_EVENTS = re.compile(rb"(?<=\n\n)|(?<=\n\r\n)")


@attrs.frozen
class RecordedEndpoint:
    """What is known of the endpoint of a model (`provider/name`), so that a played one is taken for it.

    `name` is what the endpoint calls the model. `urls` are its base URLs by wire, without secrets: scorers are the same
    only if their judge asks the same endpoint.
    """

    model: str
    urls: Mapping[Wire, str] = attrs.field(factory=dict)
    simulated: bool = False
    wants_trial: bool = False
    name: str | None = None

    @property
    def wires(self) -> tuple[Wire, ...]:
        """The wire protocols that it speaks."""
        return tuple(self.urls)


def traffic_line(traffic: Traffic, redact: Redactor) -> bytes:
    """Write an exchange with its secrets replaced. Bodies are texts, or base64 where they are not UTF-8."""
    if isinstance(traffic, ModelTraffic) and traffic.headers.get("content-type", "").startswith("text/event-stream"):
        stream = b"".join(traffic.chunks)
        told = unspelled(stream, redact)
        traffic = traffic if told is stream else attrs.evolve(traffic, chunks=_events(told))
    line = dump(_plain(traffic))
    if redact.finds_in_json(line) or b'"base64":' in line:
        return dump(_plain(_scrubbed(traffic, redact)))
    return line


def read_traffic(line: bytes) -> Traffic:
    """Read a line of a trial, a judgement or a server. Raises LookupError, TypeError or ValueError."""
    data = orjson.loads(line)
    error = data.pop("error", None)
    data["error"] = None if error is None else read_record(TrafficError, error)
    if data["of"] == "server":
        return read_record(ServerTraffic, data)
    asker = read_record(Asker, data["asker"])
    asked = {**data["request"]}
    body = _read_body(asked)
    request = read_record(ModelRequest, {**asked, "headers": {}, "body": body, "asker": asker})
    answered = _read_body(data)
    chunks = _parts(answered, data.get("chunks", [len(answered)] if answered else []))
    return read_record(ModelTraffic, {**data, "asker": asker, "request": request, "chunks": chunks})


def endpoint_line(endpoint: RecordedEndpoint) -> bytes:
    """Write what is known of an endpoint."""
    return dump(fields_of(endpoint))


def read_endpoint(line: bytes) -> RecordedEndpoint:
    """Read the line of a model. Raises LookupError, TypeError or ValueError."""
    return read_record(RecordedEndpoint, orjson.loads(line))


def _plain(traffic: Traffic) -> dict[str, Any]:
    error = traffic.error and _told_of(traffic.error)
    return {
        **(_model(traffic) if isinstance(traffic, ModelTraffic) else _server(traffic)),
        **({"error": error} if error else {}),
        "began": traffic.began,
        "ended": traffic.ended,
        "at": traffic.at,
        "seconds": traffic.seconds,
    }


def _model(traffic: ModelTraffic) -> dict[str, Any]:
    request = traffic.request
    return {
        "of": "model",
        "asker": _told_of(traffic.asker),
        "request": {
            "model": request.model,
            "wire": request.wire,
            "method": request.method,
            "path": request.path,
            **_body(request.body),
        },
        "status": traffic.status,
        "headers": traffic.headers,
        **_body(b"".join(traffic.chunks)),
        **({"chunks": [*map(len, traffic.chunks)]} if len(traffic.chunks) > 1 else {}),
    }


def _server(traffic: ServerTraffic) -> dict[str, Any]:
    return {
        "of": "server",
        "server": traffic.server,
        "kind": traffic.kind,
        **({"method": traffic.method} if traffic.method else {}),
        **({"params": traffic.params} if traffic.params else {}),
        **({} if traffic.result is None else {"result": traffic.result}),
        **({} if traffic.during is None else {"during": traffic.during}),
        "attempt": traffic.attempt,
    }


def _scrubbed(traffic: Traffic, redact: Redactor) -> Traffic:
    """Return an exchange whose secrets are replaced wherever others may have put one."""
    error = traffic.error and attrs.evolve(
        traffic.error,
        message=redact.text(traffic.error.message),
        data=_told(traffic.error.data, redact),
        details=_told(traffic.error.details, redact),
    )
    if isinstance(traffic, ServerTraffic):
        result = None if traffic.result is None else _told(traffic.result, redact)
        return attrs.evolve(traffic, params=_told(traffic.params, redact), result=result, error=error)
    asked = traffic.request
    request = attrs.evolve(asked, path=redact.text(asked.path), body=redact.content(asked.body))
    body = b"".join(traffic.chunks)
    told = redact.content(body)
    chunks = traffic.chunks if told is body else _events(told)
    return attrs.evolve(traffic, request=request, headers=_told(traffic.headers, redact), chunks=chunks, error=error)


def _told(data: Any, redact: Redactor) -> Any:
    """Return plain data without secrets, as it is when it is read again."""
    return redact.data(orjson.loads(dump(data)))


def _told_of(record: Asker | TrafficError) -> dict[str, Any]:
    """Return the fields of a record that say something."""
    return {name: value for name, value in fields_of(record).items() if value is not None and value not in ("", {})}


def _body(body: bytes) -> dict[str, str]:
    try:
        return {"body": body.decode("utf-8")} if body else {}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(body).decode()}


def _read_body(data: dict[str, Any]) -> bytes:
    """Take a body out of the mapping that holds it."""
    text, packed = data.pop("body", ""), data.pop("base64", "")
    return base64.b64decode(packed, validate=True) if packed else str(text).encode("utf-8")


def _events(body: bytes) -> tuple[bytes, ...]:
    """Cut a stream whose secrets were replaced after each of its events."""
    return tuple(event for event in _AFTER_EVENTS.split(body) if event)


def _parts(body: bytes, sizes: Sequence[int]) -> tuple[bytes, ...]:
    ends = [*accumulate(sizes)]
    if (ends[-1] if ends else 0) != len(body):
        raise ValueError(f"chunks of {sum(sizes)} bytes, in a body of {len(body)}")
    return tuple(body[end - size : end] for end, size in zip(ends, sizes, strict=True))
