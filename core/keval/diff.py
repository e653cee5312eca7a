"""What differs between two runs in canonical form: of what they were made of, and sample by sample, trial by trial."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Literal

import attrs

from keval.canonical import (
    canonical_bytes,
    canonical_manifest,
    canonical_request,
    canonical_sample,
    canonical_score,
    canonical_trial,
    volatile_of,
)
from keval.errors import RunError
from keval.manifest import Manifest
from keval.store.run import Run
from keval.tapes import Volatile

__all__ = ["Change", "DifferentItem", "RunDiff", "Tally", "diff_runs"]


@attrs.frozen
class Change:
    """A value that differs: where it is, and what it was and is, as plain data.

    `only_in` says which of the two has it, if the other one has no such key or item; its value there is `None`.
    """

    path: str
    before: Any
    now: Any
    only_in: Literal["before", "now"] | None = None


@attrs.frozen
class DifferentItem:
    """A sample or trial that differs. `changes` are empty for one that is `only_in` one of the runs.

    The changes of a trial are followed by those of its scores.
    """

    kind: Literal["sample", "trial"]
    id: str
    changes: tuple[Change, ...] = ()
    only_in: Literal["before", "now"] | None = None


@attrs.define
class Tally:
    """How many samples, trials or scores are equal, differ, or are in one of the runs only."""

    equal: int = 0
    different: int = 0
    only_before: int = 0
    only_now: int = 0

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
            raise RunError(f"{run.path} has no trials, so there is nothing to compare; `keval resume` runs them")
    names = [run.manifest.run for run in (before, now)]
    if names[0] == names[1]:  # such as a recording and a part of it
        names = [str(run.path) for run in (before, now)]
    samples, trials, scores = Tally(), Tally(), Tally()
    items: list[DifferentItem] = []
    unlisted = 0
    compared = _trials(before, now, trials, scores, times=times)
    for item in chain(_samples(before, now, samples), compared):
        if limit is None or len(items) < limit:
            items.append(item)
        else:
            unlisted += 1
    return RunDiff(
        before=names[0],
        now=names[1],
        manifest=tuple(_changes("", canonical_manifest(before.manifest), canonical_manifest(now.manifest))),
        versions=tuple(_version_changes(before.manifest, now.manifest)),
        samples=samples,
        trials=trials,
        scores=scores,
        items=tuple(items),
        unlisted=unlisted,
    )


def _version_changes(before: Manifest, now: Manifest) -> Iterator[Change]:
    """Yield the versions that differ of what both runs had."""
    ours, theirs = ({**manifest.versions, **manifest.plugins} for manifest in (before, now))
    yield from (Change(name, ours[name], theirs[name]) for name in ours if theirs.get(name, ours[name]) != ours[name])


def _samples(before: Run, now: Run, tally: Tally) -> Iterator[DifferentItem]:
    ours, theirs = set(before.samples.ids), set(now.samples.ids)
    for name in sorted(ours | theirs):
        if not (name in ours and name in theirs):
            yield _alone("sample", name, tally, now_has=name in theirs)
            continue
        found = _different(canonical_sample(before.sample(name)), canonical_sample(now.sample(name)))
        if _counted(tally, bool(found)):
            yield DifferentItem("sample", name, found)


def _trials(before: Run, now: Run, trials: Tally, scores: Tally, *, times: bool) -> Iterator[DifferentItem]:
    ours, theirs = before.trial_ids(), now.trial_ids()
    volatile = {**volatile_of(before.manifest), **volatile_of(now.manifest)}
    for name in sorted(ours | theirs):
        scored = _scores(before, now, name, scores)
        if not (name in ours and name in theirs):
            yield _alone("trial", name, trials, now_has=name in theirs)
            continue
        found = tuple(_unrepeated(_trial(before, now, name, volatile, times=times)))
        if _counted(trials, bool(found)) or scored:
            yield DifferentItem("trial", name, (*found, *scored))


def _trial(
    before: Run, now: Run, name: str, volatile: Mapping[str, Sequence[Volatile]], *, times: bool
) -> tuple[Change, ...]:
    """Return how a trial that both runs have differs."""
    trials = before.trial(name), now.trial(name)
    declared = volatile[trials[0].agent]
    was, is_now = (canonical_trial(trial, declared, times=times) for trial in trials)
    for one, other in zip((was, *was["attempts"]), (is_now, *is_now["attempts"]), strict=False):
        ours, theirs = one["transcript"], other["transcript"]
        if ours and theirs and ours["request"] and theirs["request"] and ours["request"] != theirs["request"]:
            ours["request"] = canonical_request(before.blob(ours["request"]), declared)
            theirs["request"] = canonical_request(now.blob(theirs["request"]), declared)
    return _different(was, is_now)


def _scores(before: Run, now: Run, trial: str, tally: Tally) -> tuple[Change, ...]:
    """Return how the scores of a trial differ, and count them."""
    ours, theirs = (dict(map(canonical_score, run.scores_of(trial))) for run in (before, now))
    changes: list[Change] = []
    for name in dict.fromkeys((*ours, *theirs)):
        if name not in ours or name not in theirs:
            _count_alone(tally, now_has=name in theirs)
            value, other = (found.get(name, {}).get("value") for found in (ours, theirs))
            changes.append(Change(f"scores.{name}", value, other, "now" if name in theirs else "before"))
            continue
        found = _different(ours[name], theirs[name], f"scores.{name}")
        _counted(tally, bool(found))
        changes += found
    return tuple(changes)


def _unrepeated(changes: tuple[Change, ...]) -> Iterator[Change]:
    """Leave out the message that is the output, where that is told."""
    told = [(change.before, change.now) for change in changes if change.path == "output"]
    for change in changes:
        if not (change.path.startswith("transcript.messages[") and (change.before, change.now) in told):
            yield change


def _alone(kind: Literal["sample", "trial"], name: str, tally: Tally, *, now_has: bool) -> DifferentItem:
    _count_alone(tally, now_has=now_has)
    return DifferentItem(kind, name, only_in="now" if now_has else "before")


def _count_alone(tally: Tally, *, now_has: bool) -> None:
    if now_has:
        tally.only_now += 1
    else:
        tally.only_before += 1


def _counted(tally: Tally, differs: bool) -> bool:
    if differs:
        tally.different += 1
    else:
        tally.equal += 1
    return differs


def _different(before: Mapping[str, Any], now: Mapping[str, Any], path: str = "") -> tuple[Change, ...]:
    """Return what differs in two records; nothing if they are the same bytes."""
    if canonical_bytes(before) == canonical_bytes(now):
        return ()
    return tuple(_changes(path, before, now))


def _changes(path: str, before: Any, now: Any) -> Iterator[Change]:
    """Yield the values that differ, each at its path. Items of lists are compared by their positions."""
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        for key in dict.fromkeys((*before, *now)):
            yield from _at(f"{path}.{key}" if path else str(key), before, now, key)
    elif isinstance(before, list) and isinstance(now, list):
        ours, theirs = dict(enumerate(before)), dict(enumerate(now))
        for position in range(max(len(before), len(now))):
            yield from _at(f"{path}[{position}]", ours, theirs, position)
    elif type(before) is not type(now) or before != now:
        yield Change(path, before, now)


def _at(path: str, before: Mapping[Any, Any], now: Mapping[Any, Any], key: Any) -> Iterator[Change]:
    if key not in now:
        yield Change(path, before[key], None, "before")
    elif key not in before:
        yield Change(path, None, now[key], "now")
    else:
        yield from _changes(path, before[key], now[key])
