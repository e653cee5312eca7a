"""What a person reviews, in which order: a choice of a run's answers, shuffled by a seed."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import attrs

from keval import Run, ScoreLine
from keval.plugin import Chosen, worst_trials

__all__ = ["CHOICES", "Choice", "Item", "queue_of"]

CHOICES: Sequence[Chosen] = ("random", "all", "disagreement", "worst")
_MOST = 10_000
_SEEDS = 2**31


@attrs.frozen
class Choice:
    """Which answers are reviewed and how, as it stands in the URL.

    `count` bounds all choices but `all`. `metric` is that of `worst`. With `side`, the answers to a question are
    reviewed together, else one after the other.
    """

    chosen: Chosen = "random"
    count: int = 20
    metric: str = ""
    seed: int = 1
    blind: bool = True
    side: bool = False

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> Choice:
        """Read a query or a form; what is not there, or makes no sense, is as usual. Without `blind` nothing is."""
        return cls(
            chosen=next((each for each in CHOICES if each == given.get("chosen")), CHOICES[0]),
            count=_whole(given.get("count"), 20, _MOST),
            metric=str(given.get("metric", "")),
            seed=_whole(given.get("seed"), 1, _SEEDS),
            blind=given.get("blind") == "1",
            side=given.get("side") == "1",
        )

    def query(self, **more: Any) -> str:
        """Return the choice as a query, with more in it. It names no answer."""
        told: dict[str, Any] = {"chosen": self.chosen}
        if self.chosen != "all":
            told["count"] = self.count
        if self.chosen == "worst":
            told["metric"] = self.metric
        told |= {"seed": self.seed, "blind": int(self.blind), "side": int(self.side)}
        return urlencode({**told, **more})


@attrs.frozen
class Item:
    """What is reviewed at a time: the ids of one trial, or of those that answered a question in one repetition."""

    trials: tuple[str, ...]


def queue_of(run: Run, choice: Choice) -> Sequence[Item]:
    """Return what is to be reviewed, in its order. Raises RunError.

    What was read of a run is kept until it has other answers or scores.
    """
    return _queue(run.path, _version(run), choice)


def _version(run: Run) -> tuple[tuple[int, int, int] | None, ...]:
    """Return what changes when answers or scores come."""
    found = []
    for path in (run.path / "manifest.json", run.trials_file, run.scores_file.path):
        status = path.stat() if path.exists() else None
        found.append(status and (status.st_ino, status.st_size, status.st_mtime_ns))
    return tuple(found)


@lru_cache(maxsize=16)
def _queue(path: Path, version: object, choice: Choice) -> Sequence[Item]:
    run, answered = Run(path), _answered(path, version)
    chosen = sorted(_chosen(run, answered, choice), key=lambda trial: _place(choice.seed, trial))
    if not choice.side:
        return tuple(Item((trial,)) for trial in chosen)
    together: dict[tuple[str, int], list[str]] = defaultdict(list)
    for trial in sorted(answered, key=lambda trial: _place(choice.seed, trial)):
        together[answered[trial]].append(trial)
    return tuple(Item(tuple(together[of])) for of in dict.fromkeys(answered[trial] for trial in chosen))


@lru_cache(maxsize=2)
def _answered(path: Path, version: object) -> Mapping[str, tuple[str, int]]:
    """Return the sample and the repetition of each trial that was answered."""
    run = Run(path)
    ids = run.trial_ids(failed=False)
    return {key.id: (key.sample, key.repetition) for key in run.known_trials if key.id in ids}


def _chosen(run: Run, answered: Collection[str], choice: Choice) -> Sequence[str]:
    if choice.chosen == "all":
        return [*answered]
    if choice.chosen == "worst":
        ranked = worst_trials(run, choice.metric, choice.count).trials
        return [each.trial for each in ranked if each.trial in answered]
    if choice.chosen == "disagreement":
        apart = {trial: spread for trial, spread in _spreads(run.scores()) if trial in answered and spread > 0}
        return sorted(apart, key=lambda trial: (-apart[trial], _place(choice.seed, trial)))[: choice.count]
    return sorted(answered, key=lambda trial: _place(choice.seed, trial))[: choice.count]


def _spreads(scores: Iterator[ScoreLine]) -> Iterator[tuple[str, float]]:
    """Yield for each trial how far apart judges, or repetitions of one, lie on the rubric that they differ most on."""
    levels: dict[str, dict[str, tuple[float, float]]] = defaultdict(dict)
    for line in scores:
        value = line.score.value
        if line.judge is not None and value is not None:
            low, high = levels[line.trial].get(line.metric, (value, value))
            levels[line.trial][line.metric] = (min(low, value), max(high, value))
    for trial, by_rubric in levels.items():
        yield trial, max(high - low for low, high in by_rubric.values())


def _place(seed: int, trial: str) -> bytes:
    """Return by what a trial is ordered. Trials that come later change no other's place before or after a third."""
    return hashlib.sha256(f"{seed}\0{trial}".encode("utf-8", "replace")).digest()


def _whole(text: object, usual: int, most: int) -> int:
    digits = str(text or "")
    return max(1, min(int(digits), most)) if digits.isdecimal() and len(digits) < 12 else usual
