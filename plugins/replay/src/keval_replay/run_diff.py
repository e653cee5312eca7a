"""What differs between two runs in canonical form, without what says when and where they were made."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Literal, TypeAlias

import attrs
import orjson

from keval.errors import PluginError, RunError
from keval.records.cassettes import Volatile
from keval.records.manifest import Manifest
from keval.records.scores import ScoreLine
from keval.records.trial import Trial
from keval.seams import registry
from keval.store.run import Run
from keval.store.serialization import dump, sample_line, score_line, to_plain, trial_line
from keval_analysis.composition import used_contexts
from keval_replay.matching import POLLS
from keval_replay.request_comparison import canonical_body, without_volatile

_OF_THE_RUN = (
    *("run", "started", "elapsed", "stopped", "note", "sealed", "changed", "resumed", "config_file", "config_folder"),
    *("recording", "replay", "plugins", "versions", "server_starts", "workers", "protocols"),
)
"""Fields of a manifest that say when, where, how far and by what version a run was made."""
_OF_THE_MACHINE = ("max_concurrent", "max_failures", "grace_seconds", "executor", "rates")
"""Keys of `execution` that say how fast trials are run, and when to stop."""
_TIMES: Mapping[str, tuple[str, ...]] = {
    "": ("started", "duration", "turn_durations", "replies"),
    "tool_calls": ("at", "duration"),
    "exchanges": ("at", "duration"),
    "refusals": ("waited",),
    "texts": ("at",),
}
"""Fields of a transcript, and of the records in it, that are times."""
_LOOPBACK_PORT = re.compile(rb"\b(127\.0\.0\.1|localhost):\d{1,5}\b")


def canonical_manifest(manifest: Manifest) -> dict[str, Any]:
    """Return what a run was made of, without when, where and by what versions; those are `Manifest.versions`."""
    plain = _without(to_plain(manifest), *_OF_THE_RUN)
    config = plain["config"] = _without(plain["config"], "budget")
    # A context that no condition has makes runs no different.
    contexts = config.pop("contexts", None)
    if isinstance(contexts, dict) and (used := used_contexts(manifest)):
        config["contexts"] = used
    if isinstance(execution := config.get("execution"), dict):
        # An option that is not set is the same as one that the version before did not have.
        unset = [name for name, value in execution.items() if value is None]
        config["execution"] = _without(execution, *unset, *_OF_THE_MACHINE)
    for condition in plain["conditions"].values():
        for server in condition["servers"].values():
            server["protocol"] = server["protocol"] or "2025-11-25"  # which earlier versions spoke, and did not tell
        for context in condition["texts"].values():
            del context["texts"]  # which earlier versions did not keep; `sha256` is of all of them
    # The samples are compared one by one, and a file may have others besides.
    plain["dataset"] = _without(plain["dataset"], "path", "sha256")
    # The digest covers versions; what else it covers stands beside it.
    plain["scorers"] = {
        _scorer(entry["metric"], entry["judge"]): _without(entry, "digest") for entry in plain["scorers"]
    }
    return _read(canonical_bytes(plain))


def canonical_trial(trial: Trial, volatile: Sequence[Volatile] = (), *, times: bool = False) -> dict[str, Any]:
    """Return a trial without tracebacks, the ports of loopback, and texts that its agent declares to vary.

    It is without times, too, unless they are asked for. The `request` of a transcript is the SHA-256 of its bytes; two
    that differ are the same if their `canonical_request` is, where both runs keep the requests.
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
    return canonical_body(_LOOPBACK_PORT.sub(rb"\1:*", body), volatile)


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
    return failure and _without(failure, "traceback")


def _transcript(transcript: dict[str, Any] | None, times: bool) -> dict[str, Any] | None:
    if transcript is None or times:
        return transcript
    kept = _without(transcript, *_TIMES[""])
    for part, names in _TIMES.items():
        if part in kept:
            # How often a client asks for the state of a task is a matter of time, too.
            kept[part] = [_without(record, *names) for record in kept[part] if record.get("method") not in POLLS]
    if (end := kept.get("end_state")) is not None:
        # How the workspace was made depends on the machine, and what checks wrote tells of times.
        checks = [_without(check, "duration", "output") for check in end["checks"]]
        kept["end_state"] = {**_without(end, "facts"), "checks": checks}
    return kept


def _without(record: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name not in names}


Side: TypeAlias = Literal["before", "now"]


@attrs.frozen
class Change:
    """A value that differs: where it is, and what it was and is, as plain data.

    `only_in` says which of the two has it, if the other one has no such key or item; its value there is `None`.
    """

    path: str
    before: Any
    now: Any
    only_in: Side | None = None


@attrs.frozen
class DifferentItem:
    """A sample or trial that differs. `changes` are empty for one that is `only_in` one of the runs.

    The changes of a trial are followed by those of its scores.
    """

    kind: Literal["sample", "trial"]
    id: str
    changes: tuple[Change, ...] = ()
    only_in: Side | None = None


@attrs.define
class Tally:
    """How many samples, trials or scores are equal, differ, or are in one of the runs only."""

    equal: int = 0
    different: int = 0
    only_before: int = 0
    only_now: int = 0

    def count(self, only_in: Side | None, *, differs: bool) -> None:
        """Count one that is in both runs, or `only_in` one of them."""
        self.only_before += only_in == "before"
        self.only_now += only_in == "now"
        self.different += only_in is None and differs
        self.equal += only_in is None and not differs

    @property
    def all_equal(self) -> bool:
        """Whether both runs have the same."""
        return not (self.different or self.only_before or self.only_now)


@attrs.frozen
class RunDiff:
    """Two runs, by their ids or else their paths, and what differs in canonical form.

    `items` are the samples and trials that differ, by id; `unlisted` counts those beyond the limit. `versions` are
    those of packages and plugins, which make no runs unequal.
    """

    before: str
    now: str
    manifest: tuple[Change, ...]
    versions: tuple[Change, ...]
    samples: Tally
    trials: Tally
    scores: Tally
    items: tuple[DifferentItem, ...]
    unlisted: int = 0

    @property
    def equal(self) -> bool:
        """Whether the runs are the same in canonical form."""
        return not self.manifest and all(tally.all_equal for tally in (self.samples, self.trials, self.scores))


def diff_runs(before: Run, now: Run, *, times: bool = False, limit: int | None = None) -> RunDiff:
    """Compare two runs in canonical form, with the times of trials if asked, and list at most `limit` items.

    One trial of each run is in memory at a time. Raises RunError: one of the runs cannot be read, or has no trial.
    """
    for run in (before, now):
        if not run.trial_ids():
            raise RunError(f"{run.path} has no trials to compare; `keval resume` runs them")
    names = [run.manifest.run for run in (before, now)]
    if names[0] == names[1]:  # such as a recording and a part of it
        names = [str(run.path) for run in (before, now)]
    samples, trials, scores = Tally(), Tally(), Tally()
    items: list[DifferentItem] = []
    unlisted = 0
    compared = _trials(before, now, trials, scores, times=times)
    ours, theirs = ({**run.manifest.versions, **run.manifest.plugins} for run in (before, now))
    versions = {name: (ours[name], theirs[name]) for name in ours if name in theirs}
    for item in chain(_samples(before, now, samples), compared):
        if limit is None or len(items) < limit:
            items.append(item)
        else:
            unlisted += 1
    return RunDiff(
        before=names[0],
        now=names[1],
        manifest=tuple(_changes("", canonical_manifest(before.manifest), canonical_manifest(now.manifest))),
        # Of what both runs had.
        versions=tuple(Change(name, *pair) for name, pair in versions.items() if pair[0] != pair[1]),
        samples=samples,
        trials=trials,
        scores=scores,
        items=tuple(items),
        unlisted=unlisted,
    )


def _samples(before: Run, now: Run, tally: Tally) -> Iterator[DifferentItem]:
    ours, theirs = set(before.samples.ids), set(now.samples.ids)
    for name in sorted(ours | theirs):
        found: tuple[Change, ...] = ()
        if (only_in := _only_in(name, ours, theirs)) is None:
            old, new = (_read(sample_line(run.sample(name))) for run in (before, now))
            found = _different(old, new)
        tally.count(only_in, differs=bool(found))
        if only_in or found:
            yield DifferentItem("sample", name, found, only_in)


def _trials(before: Run, now: Run, trials: Tally, scores: Tally, *, times: bool) -> Iterator[DifferentItem]:
    ours, theirs = before.trial_ids(), now.trial_ids()
    volatile = {**volatile_of(before.manifest), **volatile_of(now.manifest)}
    for name in sorted(ours | theirs):
        scored, found = _scores(before, now, name, scores), list[Change]()
        if (only_in := _only_in(name, ours, theirs)) is None:
            found = [*_unrepeated(_trial(before, now, name, volatile, times=times))]
        trials.count(only_in, differs=bool(found))
        if only_in:
            yield DifferentItem("trial", name, only_in=only_in)
        elif found or scored:
            yield DifferentItem("trial", name, (*found, *scored))


def _trial(
    before: Run, now: Run, name: str, volatile: Mapping[str, Sequence[Volatile]], *, times: bool
) -> tuple[Change, ...]:
    """Return how a trial that both runs have differs."""
    trials = before.trial(name), now.trial(name)
    declared = volatile[trials[0].agent]
    was, is_now = (canonical_trial(trial, declared, times=times) for trial in trials)
    forms = zip((was, *was["attempts"]), (is_now, *is_now["attempts"]), strict=False)
    attempts = zip(*((trial, *trial.attempts) for trial in trials), strict=False)
    for (one, other), (old, new) in zip(forms, attempts, strict=True):
        ours, theirs = one["transcript"], other["transcript"]
        if not (ours and theirs and ours["request"] and theirs["request"]) or ours["request"] == theirs["request"]:
            continue
        asked, asks = before.kept_request(old.transcript), now.kept_request(new.transcript)
        if asked is not None and asks is not None:
            ours["request"], theirs["request"] = canonical_request(asked, declared), canonical_request(asks, declared)
        elif declared:  # what varies in them cannot be told from what does not
            ours["request"] = theirs["request"] = None
    return _different(was, is_now)


def _scores(before: Run, now: Run, trial: str, tally: Tally) -> tuple[Change, ...]:
    """Return how the scores of a trial differ, and count them."""
    ours, theirs = (dict(map(canonical_score, run.scores_of(trial))) for run in (before, now))
    changes: list[Change] = []
    for name in dict.fromkeys((*ours, *theirs)):
        if only_in := _only_in(name, ours, theirs):
            value, other = (found.get(name, {}).get("value") for found in (ours, theirs))
            found: tuple[Change, ...] = (Change(f"scores.{name}", value, other, only_in),)
        else:
            found = _different(ours[name], theirs[name], f"scores.{name}")
        tally.count(only_in, differs=bool(found))
        changes += found
    return tuple(changes)


def _unrepeated(changes: tuple[Change, ...]) -> Iterator[Change]:
    """Leave out the message that is the output, where that is told."""
    told = [(change.before, change.now) for change in changes if change.path == "output"]
    for change in changes:
        if not (change.path.startswith("transcript.messages[") and (change.before, change.now) in told):
            yield change


def _only_in(name: object, before: Container[object], now: Container[object]) -> Side | None:
    """Return which of the two alone has this; `None` if both do."""
    return "before" if name not in now else "now" if name not in before else None


def _different(before: Mapping[str, Any], now: Mapping[str, Any], path: str = "") -> tuple[Change, ...]:
    """Return what differs in two records; nothing if they are the same bytes."""
    if canonical_bytes(before) == canonical_bytes(now):
        return ()
    return tuple(_changes(path, before, now))


def _changes(path: str, before: Any, now: Any) -> Iterator[Change]:
    """Yield the values that differ, each at its path. Items of lists are compared by their positions."""
    are_lists = isinstance(before, list) and isinstance(now, list)
    if are_lists:
        before, now = dict(enumerate(before)), dict(enumerate(now))
    if not isinstance(before, Mapping) or not isinstance(now, Mapping):
        # Python takes 1, 1.0 and true for equal, and JSON does not.
        if type(before) is not type(now) or before != now:
            yield Change(path, before, now)
        return
    for key in dict.fromkeys((*before, *now)):
        at = f"{path}[{key}]" if are_lists else f"{path}.{key}" if path else str(key)
        if only_in := _only_in(key, before, now):
            yield Change(at, before.get(key), now.get(key), only_in)
        else:
            yield from _changes(at, before[key], now[key])
