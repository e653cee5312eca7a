"""Traffic as lines of JSON, without secrets, and back."""

from __future__ import annotations

import base64
import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple, TypeAlias

import attrs
import orjson

from keval.records.cassettes import ModelTraffic, ServerTraffic, Traffic, TrafficError
from keval.records.models import Asker, ModelRequest, Wire
from keval.redaction import MARK, Redactor
from keval.store.serialization import dump, fields_of, read_record

_DATA = b"data:"
_INDEXES = ("index", "output_index", "content_index", "item_id")
"""Keys by which events say which of several texts they go on with, in the four wire protocols."""

_Text: TypeAlias = tuple[Hashable, ...]
"""Which text of a stream: the keys that lead to its pieces, and the indexes beside them."""


class _Piece(NamedTuple):
    """A piece of a text, where it stands: in the data of a line of the stream, under a key of a mapping or list."""

    line: int
    holder: Any
    key: Any
    start: int
    """Where it begins in its text."""

    @property
    def text(self) -> str:
        return str(self.holder[self.key])


def without_split_secrets(stream: bytes, redact: Redactor) -> bytes:
    """Return a stream of events without the secrets that strings at the same place of its events spell together.

    The stream itself is returned where there are none. What is no JSON is left as it is.
    """
    if not redact.knows_any:
        return stream
    lines = stream.splitlines(keepends=True)
    data: dict[int, Any] = {}
    texts: dict[_Text, list[_Piece]] = {}
    for number, line in enumerate(lines):
        if not line.startswith(_DATA):
            continue
        try:
            data[number] = orjson.loads(line[len(_DATA) :])
        except orjson.JSONDecodeError:
            continue
        for which, holder, key in _strings(data[number], ()):
            pieces = texts.setdefault(which, [])
            start = pieces[-1].start + len(pieces[-1].text) if pieces else 0
            pieces.append(_Piece(number, holder, key, start))
    changed = set[int]()
    for pieces in texts.values():
        # From the end, so that what stands before keeps its place.
        for begin, end in reversed(redact.places("".join(piece.text for piece in pieces))):
            changed |= _replaced(pieces, begin, end)
    for number in changed:
        ending = lines[number][len(lines[number].rstrip(b"\r\n")) :]
        lines[number] = b"".join([_DATA, b" ", dump(data[number]), ending])
    return b"".join(lines) if changed else stream


def _strings(value: Any, path: _Text) -> Iterator[tuple[_Text, Any, Any]]:
    """Yield every string of an event: which text it is a piece of, what holds it, and under which key."""
    items: Iterable[tuple[Any, Any]] = ()
    if isinstance(value, dict):
        path = (*path, *(value.get(name) for name in _INDEXES if isinstance(value.get(name), int | str)))
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    for key, item in items:
        if isinstance(item, str):
            yield (*path, key), value, key
        else:
            yield from _strings(item, (*path, key))


def _replaced(pieces: list[_Piece], begin: int, end: int) -> set[int]:
    """Put the mark in place of a part of a text, into the piece where that begins; returns the lines that changed."""
    changed = set[int]()
    mark = MARK
    for piece in pieces:
        text = piece.text
        first, last = max(begin - piece.start, 0), min(end - piece.start, len(text))
        if first < last:
            piece.holder[piece.key] = text[:first] + mark + text[last:]
            mark = ""
            changed.add(piece.line)
    return changed


# An event ends with an empty line; some servers send line feeds alone, and others carriage returns with them.
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


def traffic_line(traffic: Traffic, redact: Redactor) -> bytes:
    """Write an exchange with its secrets replaced. Bodies are texts, or base64 where they are not UTF-8."""
    if isinstance(traffic, ModelTraffic) and traffic.headers.get("content-type", "").startswith("text/event-stream"):
        stream = b"".join(traffic.chunks)
        told = without_split_secrets(stream, redact)
        traffic = traffic if told is stream else attrs.evolve(traffic, chunks=_events(told))
    line = dump(_plain(traffic))
    # Most lines have no secret, and are written once. In base64 a secret cannot be seen in the line.
    if redact.finds_in_json(line) or b'"base64":' in line:
        return dump(_plain(_scrubbed(traffic, redact)))
    return line


def read_traffic(line: bytes) -> Traffic:
    """Read a line of a trial, a judgement or a server. Raises LookupError, TypeError or ValueError."""
    data = orjson.loads(line)
    if data["of"] == "server":
        return read_record(ServerTraffic, data)
    asker = read_record(Asker, data["asker"])
    asked = {**data["request"]}
    body = _read_body(asked)
    # Headers of a request are not recorded: they have the keys, and requests are compared without them.
    request = read_record(ModelRequest, {**asked, "headers": {}, "body": body, "asker": asker})
    answered = _read_body(data)
    chunks = _parts(answered, data.get("chunks", [len(answered)] if answered else []))
    return read_record(ModelTraffic, {**data, "asker": asker, "request": request, "chunks": chunks})


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
    # The sizes of the chunks no longer hold for a body that has changed.
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
