"""Printing the traffic of a trial: what passed between it, its judges, their models and its servers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs
import orjson
from rich.console import Console
from rich.text import Text

from keval.errors import RunError
from keval.recording.frames import FrameKey, Frames, traffic_file
from keval.recording.lines import read_traffic
from keval.records.cassettes import ModelTraffic, ServerTrafficKind, Traffic
from keval.report.console import safe
from keval.store.run import Run

_TOLD: Mapping[ServerTrafficKind, str] = {
    "opened": "the way to {server} opens",
    "listed": "{server} lists what it has",
    "call": "{server} is called",
    "request": "{server} is asked",
    "notified": "{server} is told",
    "asked": "{server} asks",
    "told": "{server} tells",
    "closed": "the way to {server} closes",
}


@attrs.frozen
class TrialTraffic:
    """What a recording has of a trial: the frame of its attempts, if there is one, and those of its judgements."""

    trial: str
    frames: Frames
    keys: Sequence[FrameKey]


def traffic_of(run: Run, trial: str) -> TrialTraffic:
    """Find the traffic of a trial and its judgements. Raises RunError: the run has no such trial, or no traffic of it.

    Judgements come by judge and repetition.
    """
    run.trial(trial)  # raises if there is none
    if run.manifest.recording is None:
        raise RunError(f"{run.path} was not recorded; `keval run --record` keeps what passes")
    frames = Frames(traffic_file(run.path))
    found = [key for key in frames.keys if key.trial == trial]
    if not found:
        since = run.manifest.recording.since
        raise RunError(f"the recording of {run.path} has no traffic of {trial!r}; it was begun at {since}")
    return TrialTraffic(trial, frames, sorted(found, key=lambda key: (key.role, key.judge or "", key.repetition or 0)))


def describe_traffic(traffic: TrialTraffic) -> dict[str, Any]:
    """Return the traffic as plain data: the lines of the recording, by who asked."""
    read = traffic.frames.read
    judgements = [key for key in traffic.keys if key.role == "judge"]
    return {
        "trial": traffic.trial,
        "traffic": [line for key in traffic.keys if key.role == "agent" for line in read(key, orjson.loads)],
        "judgements": [
            {"judge": key.judge, "repetition": key.repetition, "traffic": read(key, orjson.loads)} for key in judgements
        ],
    }


def print_traffic(traffic: TrialTraffic, console: Console) -> None:
    """Print the traffic in the order in which it began, with what is new in each request."""
    for key in traffic.keys:
        exchanges = traffic.frames.read(key, read_traffic)
        who = safe(f"{key.judge}, repetition {key.repetition}, of {key.trial}" if key.judge else traffic.trial, "bold")
        console.print(Text.assemble(who, safe(f"  {len(exchanges)} exchanges", "dim")))
        attempt, before = 0, dict[tuple[str, str], Any]()
        for exchange in exchanges:
            if exchange.attempt != attempt:
                attempt, before = exchange.attempt, {}
                console.print(safe(f"attempt {attempt}", "yellow"))
            for line in _lines(exchange, before):
                console.print(line, soft_wrap=True)


def _lines(exchange: Traffic, before: dict[tuple[str, str], Any]) -> Iterator[Text]:
    if isinstance(exchange, ModelTraffic):
        request = exchange.request
        way = (request.model, request.path)
        asked = _parsed(request.body)
        yield _head(exchange, f"{request.model} is asked: {request.method} {request.path} ({request.wire})")
        yield from _told("→", _new(before.get(way), asked))
        before[way] = asked
        if exchange.status is not None:
            headers = ", ".join(f"{name}: {value}" for name, value in exchange.headers.items())
            yield safe(f"  ← {exchange.status}, {headers}")
            yield from _told("←", _parsed(b"".join(exchange.chunks)))
    else:
        told = _TOLD[exchange.kind].format(server=exchange.server)
        yield _head(exchange, f"{told}: {exchange.method}" if exchange.method else told)
        theirs = exchange.kind in ("asked", "told", "listed")
        yield from _told("←" if theirs else "→", exchange.params or None)
        yield from _told("→" if theirs and exchange.kind != "listed" else "←", exchange.result)
    if (error := exchange.error) is not None:
        code = "" if error.code is None else f" ({error.code})"
        yield safe(f"  ✗ {error.kind}{code}{': ' if error.message else ''}{error.message}", "red")


def _head(exchange: Traffic, told: str) -> Text:
    ended = "never ended" if exchange.ended is None else f"ended {exchange.ended}"
    took = "" if exchange.seconds is None else f", {1000 * exchange.seconds:.0f} ms"
    return Text.assemble((f"{exchange.began:>3} ", "bold cyan"), safe(told), (f"  {ended}{took}", "dim"))


def _told(mark: str, data: Any) -> Iterator[Text]:
    """Yield data as indented lines; text that is no JSON as it is."""
    if data is None or data == "":
        return
    text = data if isinstance(data, str) else json.dumps(data, indent=2, ensure_ascii=False)
    for number, line in enumerate(text.splitlines()):
        yield safe(f"  {mark if number == 0 else ' '} {line}")


def _parsed(body: bytes) -> Any:
    """Return the body of a request or response as data, or as text if it is no JSON."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return body.decode("utf-8", "replace")


def _new(before: Any, now: Any) -> Any:
    """Leave out of a request what the one before it had, too."""
    if not (isinstance(before, dict) and isinstance(now, dict)):
        return now
    shown: dict[str, Any] = {}
    same = []
    for name, value in now.items():
        had = before.get(name)
        if name in before and had == value:
            same.append(name)
        elif isinstance(value, list) and isinstance(had, list) and had and value[: len(had)] == had:
            shown[name] = [f"… {len(had)} as before", *value[len(had) :]]
        else:
            shown[name] = value
    return {**shown, **({"…": f"as before: {', '.join(same)}"} if same else {})}
