"""The check of metrics names the rule that a metric breaks, and passes those that break none."""

from __future__ import annotations

import asyncio
import math
import os
import random
import subprocess
import tempfile
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, ClassVar

import attrs
import pytest

from keval import Sample, Scale, Score, Transcript, Trial
from keval.plugin import PluginError
from keval_testing import BrokenRulesError, check_metric
from keval_testing.metric_kit import METRIC_RULES


@attrs.frozen
class Brevity:
    limit: int = 40

    def score(self, trial: Trial) -> Score:
        words = len(trial.output.split())
        return Score(min(1.0, self.limit / max(words, 1)), f"{words} words")


@attrs.frozen
class Waiting(Brevity):
    async def score(self, trial: Trial) -> Score:  # type: ignore[override]
        await asyncio.sleep(0.001)
        return Brevity.score(self, trial)


@attrs.frozen
class Blocking(Brevity):
    blocks: ClassVar[bool] = True


class Brief:
    def score(self, trial: Trial) -> bool:
        return len(trial.output.split()) < 3


@pytest.mark.slow
@pytest.mark.parametrize("metric", [Brevity, Waiting, Blocking, Brevity(3), Brief], ids=repr)
def test_metrics_that_keep_the_rules_pass(metric: object) -> None:
    check_metric(metric)


class Positional:
    def __init__(self, limit: int) -> None:
        self.limit = limit

    score = Brevity.score


@attrs.frozen
class Untyped(Brevity):
    limit: Any = 40


@attrs.frozen
class Lenient(Brevity):
    rest: Mapping[str, Any] = attrs.field(factory=dict, metadata={"unknown_keys": True})


@attrs.frozen
class Unmarked:
    limit: int = 40


@attrs.frozen
class Raising:
    def score(self, trial: Trial) -> Score:
        return Score(1.0 if trial.sample.facts["capital"] in trial.output else 0.5)


@attrs.frozen
class Bare:
    def score(self, trial: Trial) -> str:
        return "1.0"


@attrs.frozen
class Detailed:
    def score(self, trial: Trial) -> Score:
        details: Any = {(0, 8): "seen"}
        return Score(1.0, details=details)


@attrs.frozen
class Marking:
    def score(self, trial: Trial) -> Score:
        return Score(1.0, details={"marks": "Helsinki"})


@attrs.frozen
class Overshooting:
    def score(self, trial: Trial) -> Score:
        return Score(1.0, details={"marks": [{"start": 0, "end": 10**6}]})


@attrs.frozen
class Stars:
    def score(self, trial: Trial) -> Score:
        return Score(5.0)


@attrs.frozen
class NoNumber:
    def score(self, trial: Trial) -> Score:
        return Score(math.nan)


@attrs.frozen
class Ranged(Brevity):
    scale: ClassVar[tuple[int, int]] = (0, 1)


@attrs.frozen
class Silent:
    def score(self, trial: Trial) -> Score:
        return Score(0.5, neutral=not trial.output)


@attrs.frozen
class Blank:
    def score(self, trial: Trial) -> Score:
        return Score(1.0) if trial.output else Score(None, " ")


@attrs.frozen
class Wavering:
    def score(self, trial: Trial) -> Score:
        return Score(float(len(trial.output) < 10), "nothing to judge", neutral=True)


@attrs.frozen
class NeutralWithout:
    def score(self, trial: Trial) -> Score:
        return Score(None, "nothing to judge", neutral=True)


@attrs.frozen
class Zero:
    def score(self, trial: Trial) -> Score:
        answer = trial.sample.answer
        return Score(float(answer is not None and answer in trial.output))


@attrs.frozen
class FewerErrors:
    scale: ClassVar[Scale] = Scale(0, 3, better="lower")

    def score(self, trial: Trial) -> Score:
        return Score(0.0 if trial.sample.facts else 3.0)


@attrs.frozen
class Taking:
    def score(self, trial: Trial) -> Score:
        facts: Any = trial.sample.facts
        facts.pop("capital", None)
        return Score(1.0)


@attrs.frozen
class Random:
    def score(self, trial: Trial) -> Score:
        return Score(random.random())


@attrs.frozen
class Numbered:
    number: int = attrs.field(factory=lambda: random.randrange(10**9), init=False)

    def score(self, trial: Trial) -> Score:
        return Score(1.0, str(self.number))


@attrs.define
class Sharing:
    """Keeps the trial that it scores in itself, while others are scored."""

    trial: Trial | None = attrs.field(default=None, init=False)

    async def score(self, trial: Trial) -> Score:
        self.trial = trial
        await asyncio.sleep(0.001)
        return Score(float(len(self.trial.output) > 50), self.trial.sample.id)


@attrs.frozen
class Deaf:
    async def score(self, trial: Trial) -> Score:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(0.01)
        return Score(1.0)


@attrs.frozen
class Endless:
    async def score(self, trial: Trial) -> Score:
        cancelled = 0
        for _ in range(10):
            try:
                await asyncio.sleep(0.001)
            except asyncio.CancelledError:
                cancelled = 600
            await asyncio.sleep(cancelled)
        return Score(1.0)


@attrs.frozen
class ByType:
    def score(self, trial: Trial) -> Score:
        return Score(float(isinstance(trial.sample.facts.get("places"), tuple)))


@attrs.frozen
class Littering:
    what: str = "file"

    def score(self, trial: Trial) -> Score:
        match self.what:
            case "file":
                tempfile.mkstemp()
            case "thread":
                threading.Thread(target=threading.Event().wait, args=(10,), daemon=True).start()
            case "variable":
                os.environ["LITTER"] = trial.id
            case "process":
                STARTED.append(subprocess.Popen(["sleep", "20"]))
            case "socket":
                STARTED.append(os.pipe())
        return Score(1.0)


STARTED: list[Any] = []

PLANTED: Mapping[str, list[tuple[object, Mapping[str, Any]]]] = {
    "options": [(Positional, {}), (Untyped, {}), (Lenient, {})],
    "seam": [(Unmarked, {})],
    "answers every trial": [(Raising, {})],
    "a score": [(Bare, {}), (Detailed, {}), (Marking, {}), (Overshooting, {})],
    "scale": [(Stars, {}), (NoNumber, {}), (Ranged, {})],
    "reasons": [(Silent, {}), (Blank, {})],
    "neutral": [(Wavering, {}), (NeutralWithout, {})],
    "unknown is not zero": [(Zero, {}), (FewerErrors, {})],
    "input unchanged": [(Taking, {})],
    "determinism": [(Random, {}), (Numbered, {})],
    "concurrency": [(Sharing, {})],
    "cancellation": [(Deaf, {})],
    "written trials": [(ByType, {})],
    "nothing left behind": [
        (Littering, {"what": what}) for what in ("file", "thread", "variable", "process", "socket")
    ],
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rule", "metric", "options"),
    [(rule, *planted) for rule, all_planted in PLANTED.items() for planted in all_planted],
)
def test_a_metric_that_breaks_a_rule_is_told_which(rule: str, metric: object, options: Mapping[str, Any]) -> None:
    trial = Trial("a/b/c/1", Sample("places", "Where?", facts={"places": ("Oslo", "Rome")}), "a", "b", 1, Transcript())

    with pytest.raises(BrokenRulesError) as caught:
        check_metric(metric, options=options, trials=[trial])

    assert (rule,) == caught.value.rules, str(caught.value)
    assert METRIC_RULES[rule] in str(caught.value)


@pytest.mark.slow
def test_a_call_that_goes_on_after_it_was_cancelled_is_left_behind() -> None:
    with pytest.raises(BrokenRulesError) as caught:
        check_metric(Endless)

    assert ("cancellation", "nothing left behind") == caught.value.rules


def test_every_rule_is_planted_once() -> None:
    assert set(METRIC_RULES) == set(PLANTED)


def test_all_broken_rules_are_told_together() -> None:
    class Both:
        def score(self, trial: Trial) -> Score:
            return Score(2.0) if trial.output else Score(None, " ")

    with pytest.raises(BrokenRulesError) as caught:
        check_metric(Both)

    assert ("scale", "reasons") == caught.value.rules
    assert "for no answer it gave no value () without a reason" in str(caught.value)


def test_what_cannot_be_checked_is_refused_with_its_place() -> None:
    with pytest.raises(PluginError, match="no metric named 'acme/none' is installed"):
        check_metric("acme/none")
    with pytest.raises(PluginError, match="limit: expected a whole number, got 'many'"):
        check_metric(Brevity, options={"limit": "many"})
    with pytest.raises(TypeError, match="options are for a class or a name"):
        check_metric(Brevity(3), options={"limit": 4})
