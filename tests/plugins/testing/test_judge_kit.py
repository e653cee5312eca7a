"""The check of judges names the rule that a judge breaks."""

from __future__ import annotations

import asyncio
import json
import re
import threading
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, ClassVar

import attrs
import pytest

from keval import Rubric, Score, Trial
from keval.plugin import JudgeContext, Model, TrialError
from keval_clients import completions_usage, openai_client
from keval_clients.client import Client
from keval_testing import BrokenRulesError, check_judge
from keval_testing.judge_kit import JUDGE_RULES

JUDGEMENT = "Level {level}, as it fits."


@attrs.frozen
class Plain:
    """Asks a model for a level of each rubric."""

    model: Model
    hint: str = "Say `Level N`."

    async def grade(self, trial: Trial, rubrics: Sequence[Rubric], context: JudgeContext) -> Any:
        _, url, endpoint = self.model.reach("openai-chat")
        client = openai_client(url, endpoint)
        try:
            return {rubric.name: await self.one(client, trial, rubric, context) for rubric in rubrics}
        finally:
            await client.aclose()

    async def one(self, client: Client, trial: Trial, rubric: Rubric, context: JudgeContext) -> Any:
        message = f"{rubric.instructions} {self.hint}\n{trial.sample.answer}\n{trial.output}"
        body = {"model": client.model, "messages": [{"role": "user", "content": message}]}
        reply = await client.post("/chat/completions", body, context.model_headers)
        context.builder.model_called(completions_usage(reply.get("usage")))
        return self.read(str(reply["choices"][0]["message"]["content"]), rubric)

    def read(self, text: str, rubric: Rubric) -> Any:
        found = re.match(r"Level (\d+), (.*)", text)
        if found is None or int(found[1]) not in rubric.levels:
            return TrialError(f"no level of {rubric.name}: {text!r}", stage="score", kind="no_verdict")
        return Score(float(found[1]), found[2])


@attrs.frozen
class Counting:
    """A judge without a model."""

    async def grade(self, trial: Trial, rubrics: Sequence[Rubric], context: JudgeContext) -> Any:
        return {rubric.name: self.score(trial) for rubric in rubrics}

    def score(self, trial: Trial) -> Any:
        return Score(3.0 if len(trial.output) > 9 else 1.0, f"{len(trial.output)} characters")


@pytest.mark.slow
def test_judges_that_keep_the_rules_pass() -> None:
    check_judge(Plain, judgement=JUDGEMENT, options={"hint": "Be strict."})
    check_judge(Counting)


class Given:
    def __init__(self, model: str) -> None:
        self.model = model


@attrs.frozen
class Nothing:
    model: Model


class Listing(Plain):
    async def grade(self, *given: Any) -> Any:
        return [*(await super().grade(*given)).values()]


class Misreading(Plain):
    def read(self, text: str, rubric: Rubric) -> Any:
        return Score(1.0, "always")


class Outside(Counting):
    def score(self, trial: Trial) -> Any:
        return Score(4.0, "generous")


class Silent(Counting):
    def score(self, trial: Trial) -> Any:
        return Score(3.0) if trial.output else Score(None, " ")


class Lowest(Plain):
    def read(self, text: str, rubric: Rubric) -> Any:
        found = super().read(text, rubric)
        return Score(1.0, "not readable") if isinstance(found, TrialError) else found


class Crashing(Plain):
    def read(self, text: str, rubric: Rubric) -> Any:
        return super().read(text, rubric) if "Level" in text else json.loads(text)


class Hiding(Plain):
    async def one(self, *given: Any) -> Any:
        try:
            return await super().one(*given)
        except TrialError as error:
            return Score(1.0, str(error))


class NotAgain(Plain):
    async def one(self, *given: Any) -> Any:
        try:
            return await super().one(*given)
        except TrialError as error:
            raise TrialError(str(error), stage="score", kind="down") from error


class Untold(Plain):
    async def grade(self, trial: Trial, rubrics: Sequence[Rubric], context: JudgeContext) -> Any:
        return await super().grade(trial, rubrics, JudgeContext())


class Salted(Plain):
    async def one(self, client: Client, trial: Trial, rubric: Rubric, context: JudgeContext) -> Any:
        salted = attrs.evolve(rubric, instructions=f"{uuid.uuid4()} {rubric.instructions}")
        return attrs.evolve(await super().one(client, trial, salted, context), value=2.0)


@attrs.define
class Keeping:
    """Keeps the trial that it grades in itself."""

    trial: Trial | None = attrs.field(default=None, init=False)

    async def grade(self, trial: Trial, rubrics: Sequence[Rubric], context: JudgeContext) -> Any:
        self.trial = trial
        await asyncio.sleep(0.001)
        return await Counting().grade(self.trial, rubrics, context)


@attrs.define
class InTurn:
    """Grades one trial at a time."""

    model: Model
    _turn: asyncio.Lock = attrs.field(factory=asyncio.Lock, init=False)

    async def grade(self, *given: Any) -> Any:
        async with self._turn:
            return await Plain(self.model).grade(*given)


class Broken(Plain):
    """Has no client any more after a call that was cancelled."""

    cancelled: ClassVar[set[str]] = set()

    async def one(self, *given: Any) -> Any:
        if self.cancelled:
            return TrialError("the client is closed", stage="score")
        try:
            return await super().one(*given)
        except asyncio.CancelledError:
            self.cancelled.add("once")
            raise


class Taking(Counting):
    def score(self, trial: Trial) -> Any:
        facts: Any = trial.sample.facts
        facts["seen"] = True
        return super().score(trial)


class Deaf(Plain):
    async def one(self, *given: Any) -> Any:
        with suppress(asyncio.CancelledError):
            return await super().one(*given)
        return Score(None, "it was cancelled")


class Threading(Counting):
    def score(self, trial: Trial) -> Any:
        threading.Thread(target=threading.Event().wait, args=(5,), daemon=True).start()
        return super().score(trial)


PLANTED: Mapping[str, list[type]] = {
    "options": [Given],
    "seam": [Nothing],
    "grades": [Listing, Misreading, Outside],
    "reasons": [Silent],
    "no judgement": [Lowest, Crashing],
    "failures": [Hiding, NotAgain],
    "model calls": [Untold],
    "determinism": [Salted],
    "concurrency": [Keeping, InTurn],
    "input unchanged": [Taking],
    "cancellation": [Deaf, Broken],
    "nothing left behind": [Threading],
}


@pytest.mark.slow
@pytest.mark.parametrize(("rule", "judge"), [(rule, each) for rule, planted in PLANTED.items() for each in planted])
def test_a_judge_that_breaks_a_rule_is_told_which(monkeypatch: pytest.MonkeyPatch, rule: str, judge: type) -> None:
    monkeypatch.setattr("keval_testing.judge_kit._PATIENCE", 0.5)

    with pytest.raises(BrokenRulesError) as caught:
        check_judge(judge, judgement=JUDGEMENT)

    assert (rule,) == caught.value.rules, str(caught.value)
    assert JUDGE_RULES[rule] in str(caught.value)


def test_every_rule_is_planted_once() -> None:
    assert set(JUDGE_RULES) == set(PLANTED)


def test_a_judge_with_a_model_needs_to_know_what_that_is_to_say() -> None:
    with pytest.raises(TypeError, match="give `judgement`, what the judge's model is to say"):
        check_judge(Plain)
