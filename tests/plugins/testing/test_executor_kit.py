"""The check of executors names the rule that an executor breaks."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence

import attrs
import pytest

from keval import Sample
from keval.plugin import Job
from keval.records.trial import TrialKey
from keval.seams.distribution import PackedScores, WantedScore
from keval_doubles.executors import Alone, Apart
from keval_remote.crew.worker import CrewWorker
from keval_testing import BrokenRulesError
from tests.kits.executor_kit import EXECUTOR_RULES, check_executor

pytestmark = pytest.mark.slow


@attrs.frozen
class OneByOne:
    """Runs one trial after the other."""

    pause: float = 0.0

    async def execute(self, job: Job) -> None:
        for key in job.keys:
            await asyncio.sleep(self.pause)
            await job.outbox.trial(await job.worker.run(key, job.sample(key.sample), job.outbox))


@pytest.mark.parametrize("executor", ["local", OneByOne, Apart])
def test_executors_that_keep_the_rules_pass(executor: str | type) -> None:
    check_executor(executor)


class Given:
    def __init__(self, pause: float) -> None:
        self.pause = pause


class Nothing:
    pass


class Dropping:
    async def execute(self, job: Job) -> None:
        for number, key in enumerate(job.keys):
            trial = await job.worker.run(key, job.sample(key.sample), job.outbox)
            if number != 3:
                await job.outbox.trial(trial)


class Raising:
    async def execute(self, job: Job) -> None:
        raise LookupError("no worker")


class Emptying:
    async def execute(self, job: Job) -> None:
        for key in job.keys:
            trial = await job.worker.run(key, job.sample(key.sample), job.outbox)
            await job.outbox.trial(attrs.evolve(trial, failure=None))


class Crowded:
    async def execute(self, job: Job) -> None:
        async with asyncio.TaskGroup() as group:
            for key in job.keys:
                group.create_task(self.run(job, key))
                await asyncio.sleep(0.01)

    async def run(self, job: Job, key: TrialKey) -> None:
        await job.outbox.trial(await job.worker.run(key, job.sample(key.sample), job.outbox))


class Misread(Alone):
    async def score(
        self, trial: bytes, sample: Sample, wanted: Sequence[WantedScore], against: bytes | None = None
    ) -> PackedScores:
        packed = await self.worker.score(trial, sample, wanted, against)
        return attrs.evolve(packed, lines=tuple(line.replace(b'"value":4.0', b'"value":1.0') for line in packed.lines))


class Wrong(Apart):
    def crew(self, worker: CrewWorker) -> Alone:
        return Misread(worker)


class Endless(OneByOne):
    async def execute(self, job: Job) -> None:
        try:
            await super().execute(job)
        except asyncio.CancelledError:
            await asyncio.sleep(2)


class Littering(OneByOne):
    async def execute(self, job: Job) -> None:
        os.environ["WORKERS"] = str(id(job))
        await super().execute(job)


PLANTED: Mapping[str, list[type]] = {
    "options": [Given],
    "seam": [Nothing],
    "every trial": [Dropping, Raising],
    "same trials": [Emptying],
    "same scores": [Wrong],
    "limits": [Crowded],
    "cancellation": [Endless],
    "nothing left behind": [Littering],
}


@pytest.mark.parametrize(("rule", "executor"), [(rule, each) for rule, planted in PLANTED.items() for each in planted])
def test_an_executor_that_breaks_a_rule_is_told_which(
    monkeypatch: pytest.MonkeyPatch, rule: str, executor: type
) -> None:
    monkeypatch.setattr("tests.kits.executor_kit._PATIENCE", 0.5)

    with pytest.raises(BrokenRulesError) as caught:
        check_executor(executor)

    assert rule == caught.value.rules[0], str(caught.value)
    assert EXECUTOR_RULES[rule] in str(caught.value)


def test_every_rule_is_planted_once() -> None:
    assert set(EXECUTOR_RULES) == set(PLANTED)


def test_a_rule_that_cannot_be_kept_is_not_checked() -> None:
    check_executor(Littering, cannot={"nothing left behind": "its workers are told by a variable"})
    with pytest.raises(ValueError, match="there is no rule 'limit'; did you mean 'limits'"):
        check_executor(Littering, cannot={"limit": "it has none"})
