"""Which scorers of a run are others than those of the run that it replays, and what changed of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from keval.records.manifest import JudgeEntry, Manifest, ScorerEntry
from keval.store.serialization import dump


def scorer_changes(before: Manifest, now: Manifest) -> list[str]:
    """Return which metrics and rubrics changed, are new or are gone, one line each, with what changed of them."""
    told = []
    for entry in now.scorers:
        old = before.scorer(entry.scorer)
        if old is None:
            told.append(f"{_named(entry)}: it is new")
        elif old.digest != entry.digest:
            parts = _parts(old, entry, *(each.judges.get(entry.judge or "") for each in (before, now)))
            told.append(f"{_named(entry)}: {', '.join(parts) or 'its version'} changed, so it scored anew")
    gone = [entry for entry in before.scorers if now.scorer(entry.scorer) is None]
    return [*told, *(f"{_named(entry)}: it does not score any more" for entry in gone)]


def _named(entry: ScorerEntry) -> str:
    return f"metric {entry.metric}" if entry.judge is None else f"rubric {entry.metric} by {entry.judge}"


def _parts(before: ScorerEntry, now: ScorerEntry, was: JudgeEntry | None, judge: JudgeEntry | None) -> Iterator[str]:
    """Yield what changed of a scorer, and of its judge if both runs have it."""
    if before.rubric != now.rubric:
        yield "its text"
    yield from _options({**before.defaults, **before.options}, {**now.defaults, **now.options})
    if was is not None and judge is not None:
        yield from (f"the judge's {name}" for name in ("type", "model") if getattr(was, name) != getattr(judge, name))
        yield from _options({**was.defaults, **was.options}, {**judge.defaults, **judge.options})


def _options(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    for name in dict.fromkeys((*before, *now)):
        # As JSON has them, so that a tuple equals the list that was read.
        if name != "model" and dump(before.get(name)) != dump(now.get(name)):
            yield f"the option {name}"
