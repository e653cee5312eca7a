"""A served model: a model that is up without a run, and asked as a judge of the config asks its own."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

import attrs

from keval.config.evaluation import Budget, Evaluation, PluginSpec
from keval.config.sections import implied_judge
from keval.errors import ConfigError, Problem, TrialError
from keval.execute.attempts import RetryPolicy, Stopwatch, run_attempt
from keval.execute.bringup.preflight import preflight
from keval.execute.bringup.resources import ResourceScope
from keval.execute.models.exchange import ModelExchange
from keval.execute.models.gate import RequestScope
from keval.execute.models.prices import find_prices, is_simulated
from keval.plan.construct import Constructor
from keval.plan.plan import Scorers, ScoringPlan, judge_seed
from keval.records.manifest import Rates
from keval.records.models import FREE, Asker
from keval.redaction import Redactor
from keval.seams import registry
from keval.seams.contexts import JudgeContext
from keval.seams.hooks import Hooks
from keval.seams.judgement_builder import JudgementBuilder
from keval.seams.replies import RepliesInJson, StructuredRequest
from keval.seams.use_meter import RunBudget, Unbounded
from keval_analysis.findings.summary import Cost

_LABEL = "model"


@attrs.define(eq=False)
class ServedModel:
    """A model that can be asked, within the budget of its config. Make one with `ServedModel.open`.

    `cost` is what the replies cost so far, and `calls` how many there were.
    """

    name: str
    simulated: bool
    _judge: RepliesInJson
    _exchange: ModelExchange
    _evaluation: Evaluation
    _rates: Rates
    cost: Cost = attrs.field(factory=Cost, init=False)
    calls: int = attrs.field(default=0, init=False)
    _budget: RunBudget = attrs.field(init=False)
    _retry: RetryPolicy = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        execution = self._evaluation.execution
        budget = self._evaluation.budget
        self._budget = Unbounded()
        if budget != Budget():
            self._budget = registry.load(registry.find("keval.meters", "budget"))(budget, self._rates)
        self._retry = RetryPolicy(execution.retry, asyncio.sleep, random.Random(execution.seed))

    @classmethod
    @asynccontextmanager
    async def open(cls, evaluation: Evaluation, name: str | None, redactor: Redactor) -> AsyncIterator[ServedModel]:
        """Bring up a model, `provider/name`, and hold it; by default that of the first judge, or of the first agent.

        `redactor` learns its key. What else an evaluation needs may be missing.

        Raises:
            ConfigError: the config is wrong, or there is no such model.
            PreflightError: the model cannot be reached.
        """
        plan = _plan(evaluation, name)
        (item,) = plan.scorers.judges
        scope = ResourceScope()
        try:
            ready = await preflight(plan, scope, redactor, Hooks.of([]))
            simulated = is_simulated(item, ready.endpoints)
            prices = find_prices(evaluation, [item], ready.endpoints)
            model = item.model_name or item.label
            rates = Rates(judges={item.label: FREE if simulated else prices.get(model)})
            judge = cast(RepliesInJson, ready.judges[item.label])  # `_plan` has checked it
            yield cls(model, simulated, judge, ready.exchange, evaluation, rates)
        finally:
            await scope.close()

    async def ask(self, request: StructuredRequest, key: str) -> str:
        """Ask until a reply comes, as often as the config's `retry` says, and return its text.

        `key` says what is asked for: the same key has the same seed.

        Raises:
            TrialError: no reply came; of kind `budget`, if the budget admits no further request.
        """
        if not await self._budget.begin_judgement(_LABEL):
            raise TrialError(self._budget.told(), kind="budget")
        builder, judgement = JudgementBuilder(), None
        try:
            return await self._attempts(request, key, builder)
        finally:
            # Counted after an error, too: replies that were of no use are paid as well.
            judgement = builder.judgement()
            self.calls += judgement.model_calls or 0
            self.cost = self.cost.plus(self._rates.judgement(_LABEL, judgement))
            self._budget.end_judgement(_LABEL, judgement)

    async def _attempts(self, request: StructuredRequest, key: str, builder: JudgementBuilder) -> str:
        execution = self._evaluation.execution
        seed, seconds, number = judge_seed(execution.seed, key, 1), execution.timeout_seconds, 0
        late = TrialError(f"no reply within {seconds:g} s", stage="model", kind="timeout", retryable=True)
        while True:
            number += 1
            stopwatch = Stopwatch()
            asker = Asker("judge", _LABEL, key, 1, number)
            scope = RequestScope(stopwatch, builder.requests)
            async with self._exchange.request_scope(asker, scope) as headers:
                context = JudgeContext(attempt=number, seed=seed, model_headers=headers, builder=builder)
                outcome = await run_attempt(
                    lambda context=context: self._judge.reply(request, context),  # type: ignore[misc]
                    seconds=seconds,
                    late=late,
                    stopwatch=stopwatch,
                )
            if outcome.value is not None:
                return outcome.value
            outage = self._exchange.outage("judge", _LABEL)
            if outage or not outcome.retryable or self._retry.exhausted(number):
                raise outage or outcome.error or late
            await self._retry.wait(number, outcome.error)


def _plan(evaluation: Evaluation, name: str | None) -> ScoringPlan:
    """Construct the judge through which the model is asked, and the middleware. Raises ConfigError."""
    constructor = Constructor(evaluation, [])
    spec = _spec(evaluation, name)
    judges = constructor.plugins("keval.judges", [attrs.evolve(spec, label=_LABEL)])
    middleware = constructor.plugins("keval.middleware", evaluation.middleware)
    executors = constructor.plugins("keval.executors", [evaluation.executor])
    constructor.check_models(judges)
    constructor.finish()
    (judge,) = judges
    if not isinstance(judge.plugin, RepliesInJson) or not judge.models:
        told = f"the judge {judge.component.name!r} lets its model be asked for nothing but judgements"
        raise ConfigError([Problem(judge.place, f"{told}; name a model with --model provider/name")])
    return ScoringPlan(evaluation, Scorers(judges=judges), executors[0], middleware)


def _spec(evaluation: Evaluation, name: str | None) -> PluginSpec:
    """Return the judge for a model by name, or the first of the config, or that for the model of the first agent."""
    if name is None and evaluation.judges:
        return evaluation.judges[0]
    agents = ((spec.options["model"], (*spec.path, "model")) for spec in evaluation.agents if "model" in spec.options)
    model, path = (name, ()) if name is not None else next(agents, (None, ()))
    if model is None:
        told = "the config names no model; name one with --model provider/name, such as openai/gpt-4o-mini"
        raise ConfigError([evaluation.source.problem((), told)])
    return PluginSpec(_LABEL, implied_judge({"model": model}), {"model": model}, path[:-1])
