"""The canonical form of a run: what is left of its lines when times, places and ids of the run are taken out.

Two runs whose models and servers did the same have the same canonical form, byte by byte: a recorded run and its
replay have. docs/replay.md lists what is taken out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from keval import registry
from keval.errors import PluginError
from keval.manifest import Manifest
from keval.recording.volatile import without_volatile
from keval.records import Sample, Trial
from keval.scores import ScoreLine
from keval.store.converter import to_plain
from keval.store.jsonl import dump, sample_line, score_line, trial_line
from keval.tapes import Volatile

__all__ = [
    "canonical_bytes",
    "canonical_manifest",
    "canonical_request",
    "canonical_sample",
    "canonical_score",
    "canonical_trial",
    "volatile_of",
]

_OF_THE_RUN = (
    "run",
    "started",
    "elapsed",
    "stopped",
    "resumed",
    "config_file",
    "config_folder",
    "recording",
    "replay",
    "plugins",
    "versions",
)
"""Fields of a manifest that say when, where, how far and by what version a run was made."""
_OF_THE_MACHINE = ("max_concurrent", "max_failures", "grace_seconds", "executor")
"""Keys of `execution` that say how fast trials are run, and when to stop."""
_TIMES: Mapping[str, tuple[str, ...]] = {
    "": ("started", "duration", "turn_durations", "replies"),
    "tool_calls": ("at", "duration"),
    "exchanges": ("at", "duration"),
    "refusals": ("waited",),
}
"""Fields of a transcript, and of the records in it, that are times."""
_LOOPBACK_PORT = re.compile(rb"\b(127\.0\.0\.1|localhost):\d{1,5}\b")


def canonical_manifest(manifest: Manifest) -> dict[str, Any]:
    """Return what a run was made of, without when, where and by what versions; those are `Manifest.versions`."""
    plain: dict[str, Any] = to_plain(manifest)
    plain = {name: value for name, value in plain.items() if name not in _OF_THE_RUN}
    config = {name: value for name, value in plain["config"].items() if name != "budget"}
    contexts = config.pop("contexts", None)
    if isinstance(contexts, dict) and (used := _used(contexts, manifest)):
        config["contexts"] = used
    execution = config.get("execution")
    if isinstance(execution, dict):
        config["execution"] = {name: value for name, value in execution.items() if name not in _OF_THE_MACHINE}
    plain["config"] = config
    # The samples are compared one by one, and a file may have others besides.
    plain["dataset"] = {name: value for name, value in plain["dataset"].items() if name not in ("path", "sha256")}
    # The digest covers versions; what else it covers stands beside it.
    plain["scorers"] = {
        _scorer(entry["metric"], entry["judge"]): {name: value for name, value in entry.items() if name != "digest"}
        for entry in plain["scorers"]
    }
    return _read(canonical_bytes(plain))


def canonical_sample(sample: Sample) -> dict[str, Any]:
    """Return a sample as it was asked."""
    return _read(sample_line(sample))


def canonical_trial(trial: Trial, volatile: Sequence[Volatile] = (), *, times: bool = False) -> dict[str, Any]:
    """Return a trial without tracebacks, the ports of loopback, and texts that its agent declares to vary.

    It is without times, too, unless they are asked for. The `request` of a transcript is the SHA-256 of its bytes; two
    that differ are the same if their `canonical_request` is.
    """
    plain = without_volatile(_read(trial_line(trial)), [each for each in volatile if each.pattern is not None])
    attempts = [
        {**attempt, "failure": _failure(attempt["failure"]), "transcript": _transcript(attempt["transcript"], times)}
        for attempt in plain["attempts"]
    ]
    told = {"failure": _failure(plain.pop("failure")), "output": plain.pop("output"), **plain}
    return {**told, "transcript": _transcript(plain["transcript"], times), "attempts": attempts}


def canonical_request(body: bytes, volatile: Sequence[Volatile]) -> Any:
    """Return a model request as it was sent, without what its agent declares to vary."""
    try:
        found = _read(body)
    except orjson.JSONDecodeError:
        return without_volatile(body.decode("utf-8", "replace"), volatile)
    return without_volatile(found, volatile)


def volatile_of(manifest: Manifest) -> dict[str, Sequence[Volatile]]:
    """Return what the agents of a run, by their labels, declare to vary; nothing where a plugin is not installed."""
    return {label: _declared(entry.type) for label, entry in manifest.agents.items()}


def canonical_score(line: ScoreLine) -> tuple[str, dict[str, Any]]:
    """Return which of a trial's scores this is, and what it says: value, reason, details, failure and judgement."""
    plain = _read(score_line(line))
    judgement = plain["judgement"]
    name = _scorer(line.metric, line.judge)
    if judgement is not None:
        judgement["attempts"] = [_failure(failure) for failure in judgement["attempts"]]
        if judgement["repetition"] > 1:
            name += f", grading {judgement['repetition']}"
    kept = {key: plain[key] for key in ("value", "neutral", "reason", "details")}
    return name, {**kept, "failure": _failure(plain["failure"]), "judgement": judgement}


def canonical_bytes(plain: Mapping[str, Any]) -> bytes:
    """Return plain data as JSON with its keys sorted: the same bytes for the same data."""
    return orjson.dumps(orjson.loads(dump(plain)), option=orjson.OPT_SORT_KEYS)


def _used(contexts: Mapping[str, Any], manifest: Manifest) -> dict[str, Any]:
    """Return the contexts of the run's conditions, and those that they are made from."""
    left = [label for condition in manifest.conditions.values() for label in condition.contexts]
    used: dict[str, Any] = {}
    while left:
        label = left.pop()
        if label in contexts and label not in used:
            used[label] = contexts[label]
            if isinstance(used[label], dict) and isinstance(base := used[label].get("from"), str):
                left.append(base)
    return used


def _declared(agent: str) -> Sequence[Volatile]:
    try:
        plugin = registry.load(registry.find("keval.agents", agent))
    except PluginError:
        return ()
    declared = getattr(plugin, "volatile", ())
    return declared if isinstance(declared, Sequence) else ()  # one that depends on options is none of the class


def _read(line: bytes) -> dict[str, Any]:
    found: dict[str, Any] = orjson.loads(_LOOPBACK_PORT.sub(rb"\1:*", line))
    return found


def _scorer(metric: str, judge: str | None) -> str:
    return metric if judge is None else f"{metric} by {judge}"


def _failure(failure: dict[str, Any] | None) -> dict[str, Any] | None:
    return failure and {name: value for name, value in failure.items() if name != "traceback"}


def _transcript(transcript: dict[str, Any] | None, times: bool) -> dict[str, Any] | None:
    if transcript is None or times:
        return transcript
    kept = _without(transcript, _TIMES[""])
    for part, names in _TIMES.items():
        if part:
            kept[part] = [_without(record, names) for record in kept[part]]
    return kept


def _without(record: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name not in names}
