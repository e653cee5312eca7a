"""What a run would take, estimated from assumptions before anything of it was measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import attrs

from keval.execute.models.prices import looked_up
from keval.plan.plan import Plan
from keval.records.models import Price

STAND_IN = "openai/gpt-4o-mini"
"""A small model of a vendor, by whose price a run with simulated models is told."""
_PROMPT, _CONTEXT, _ANSWER = 150, 1_500, 200
_JUDGED, _VERDICT = 1_500, 300
_SECONDS = 4
ASSUMED = (
    f"a call reads {_PROMPT} tokens and {_CONTEXT:,} of each context, and writes {_ANSWER}; a judge reads {_JUDGED:,}"
    f" and writes {_VERDICT}; a call takes {_SECONDS} s"
)
"""What is assumed. A context is the descriptions of a server's tools and a result, or instructions."""


@attrs.frozen
class Estimate:
    """What a run would take, agents and judges together.

    `usd` is `None` if the price of a model is unknown, and `unpriced` names these. Of simulated models, calls and
    tokens count, and neither price nor time does; if there are no others, `stand_in_usd` is what the run would cost
    with `STAND_IN`, and `seconds` what it would take.
    """

    model_calls: int
    judge_calls: int
    tokens: int
    usd: float | None
    seconds: float
    unpriced: tuple[str, ...] = ()
    simulated: bool = False
    stand_in_usd: float | None = None


@attrs.frozen
class _Use:
    """So many calls of a model, and the tokens that each reads and writes."""

    model: str
    judges: bool
    calls: int
    reads: int
    writes: int

    @property
    def simulated(self) -> bool:
        return self.model.startswith("simulated/")

    def cost(self, price: Price) -> float:
        return self.calls * (self.reads * price.input + self.writes * price.output) / 1e6


def estimate(plan: Plan) -> Estimate:
    """Return what a plan would take: a call a turn, and one more where there are tools, and one of each judge."""
    uses = [*_uses(plan)]
    paid = [use for use in uses if not use.simulated]
    wanted = {use.model for use in paid} or {STAND_IN}
    known = {name: price for name, price in plan.evaluation.prices.items() if name in wanted}
    prices = {**known, **looked_up(sorted(wanted - known.keys()))}
    unpriced = tuple(sorted({use.model for use in paid} - prices.keys()))
    calls = Counter({role: sum(use.calls for use in uses if use.judges == role) for role in (False, True)})
    stand_in = None if paid else prices.get(STAND_IN)
    return Estimate(
        calls[False],
        calls[True],
        sum(use.calls * (use.reads + use.writes) for use in uses),
        None if unpriced else sum(use.cost(prices[use.model]) for use in paid),
        sum(use.calls for use in paid or uses) * _SECONDS / plan.evaluation.execution.max_concurrent,
        unpriced,
        bool(uses) and not paid,
        None if stand_in is None else sum(use.cost(stand_in) for use in uses),
    )


def _uses(plan: Plan) -> Iterator[_Use]:
    """Yield how often each agent under each condition, and each judge, asks its model."""
    execution = plan.evaluation.execution
    asked = [agent for agent in plan.agents if agent.prerecorded is None]
    turns = sum(len(sample.asked) for sample in plan.samples) * execution.num_repetitions if asked else 0
    for agent in asked:
        model = agent.model_name or f"the agent {agent.label}"
        for arm in plan.arms:
            reads = _PROMPT + _CONTEXT * len(arm.contexts)
            yield _Use(model, False, turns * (2 if arm.contexts else 1), reads, _ANSWER)
    for judge in plan.scorers.judges:
        model = judge.model_name or f"the judge {judge.label}"
        yield _Use(model, True, plan.trial_count * execution.judge_repetitions, _JUDGED, _VERDICT)
