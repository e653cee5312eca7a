"""What a run would take, estimated from assumptions before anything of it was measured."""

from __future__ import annotations

import attrs

from keval.execute.models.prices import looked_up
from keval.plan.plan import Plan

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
    """What a run would take, agents and judges together; `usd` is `None` if the price of a model is unknown.

    Simulated models cost nothing and take no time. If there are no others, the run is `simulated`, and `usd` and
    `seconds` are those of the same run with `STAND_IN`.
    """

    model_calls: int
    judge_calls: int
    tokens: int
    seconds: float
    usd: float | None
    simulated: bool


def estimate(plan: Plan) -> Estimate:
    """Return what a plan would take: a call a turn, and one more where there are tools, and one of each judge."""
    execution = plan.evaluation.execution
    asked = [agent for agent in plan.agents if agent.prerecorded is None]
    turns = sum(len(sample.asked) for sample in plan.samples) * execution.num_repetitions if asked else 0
    judged = plan.trial_count * execution.judge_repetitions
    # The model, its calls, and the tokens that each reads and writes.
    answers = [
        (agent.model_name, turns * (2 if arm.contexts else 1), _PROMPT + _CONTEXT * len(arm.contexts), _ANSWER)
        for agent in asked
        for arm in plan.arms
    ]
    verdicts = [(judge.model_name, judged, _JUDGED, _VERDICT) for judge in plan.scorers.judges]
    uses = [*answers, *verdicts]
    real = [use for use in uses if not (use[0] or "").startswith("simulated/")]
    paid = real or [(STAND_IN, *use[1:]) for use in uses]
    known = plan.evaluation.prices
    prices = {**looked_up([name for name, *_ in paid if name and name not in known]), **known}
    costs = [
        calls * (reads * prices[name].input + writes * prices[name].output) / 1e6
        for name, calls, reads, writes in paid
        if name in prices
    ]
    return Estimate(
        sum(use[1] for use in answers),
        sum(use[1] for use in verdicts),
        sum(calls * (reads + writes) for _, calls, reads, writes in uses),
        sum(use[1] for use in paid) * _SECONDS / execution.max_concurrent,
        sum(costs) if len(costs) == len(paid) else None,
        not real,
    )
