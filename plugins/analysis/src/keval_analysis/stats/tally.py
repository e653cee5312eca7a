"""Tallies: counts and totals of an arm's trials, judgements and tool calls, added up as they are read."""

from __future__ import annotations

from collections import Counter
from typing import Any

import attrs

from keval.records.manifest import ConditionEntry, Rates
from keval.records.models import cost_of
from keval.records.scores import Judgement
from keval.records.transcript import ContentKind, ModelUsage, ToolCall
from keval.records.trial import Trial
from keval_analysis.failure_tally import FailureTally
from keval_analysis.findings.summary import (
    ArmTrials,
    Compliance,
    Cost,
    GivenUp,
    JudgingTotal,
    Sampling,
    ToolUse,
    UsageTotal,
)
from keval_analysis.stats.cost_effectiveness import Expenses
from keval_analysis.stats.intervals import quantile

_REFUSED = "bad_arguments"
"""The kind of an error of a call whose arguments do not fit the tool's schema."""


class ToolTally:
    """Counts how the trials of one arm used tools.

    Tools are those that the condition's servers listed before the first trial, then those that were called besides. An
    agent whose answers are `recorded` was offered none of the former.
    """

    def __init__(self, condition: ConditionEntry, *, recorded: bool) -> None:
        servers = {} if recorded else condition.servers
        self._owners = {tool: label for label, entry in servers.items() for tool in entry.tools}
        self._tools = {name: Counter[str]() for name in self._owners}
        self._listed = None if recorded else tuple(self._tools)
        self._trials = self._unlisted = 0
        self._unknown = False

    def add(self, trial: Trial) -> None:
        """Count a trial by what its last attempt left, if it left anything."""
        if (transcript := trial.transcript) is None:
            return
        self._trials += 1
        # `None` counts as well: there may have been further calls.
        self._unlisted += transcript.unlisted_calls != 0
        offered = self._listed if transcript.tools is None else tuple(dict.fromkeys(transcript.tools))
        if offered is None:
            self._unknown = True
        for name in offered or ():
            self._tools.setdefault(name, Counter())["offered"] += 1
        calls: dict[str, list[ToolCall]] = {}
        for call in transcript.own_calls:
            calls.setdefault(call.name, []).append(call)
        # A call that a lost server did not get was not refused.
        reachable = () if trial.failure and trial.failure.stage == "mcp" else offered or ()
        for position, (name, made) in enumerate(calls.items()):
            self._add_calls(name, made, first=position == 0, reached=name in reachable)

    def _add_calls(self, name: str, made: list[ToolCall], *, first: bool, reached: bool) -> None:
        if made[0].server is not None:
            self._owners.setdefault(name, made[0].server)
        errors = [call for call in made if call.error is not None]
        refused = [
            # A framework that refuses a call by itself gives the error no kind.
            call.error_kind == _REFUSED or (call.executions == 0 and call.error_kind is None and reached)
            for call in errors
        ]
        self._tools.setdefault(name, Counter()).update(
            called=1,
            first=int(first),
            failed=int(bool(errors)),
            calls=len(made),
            errors=len(errors),
            rejected=sum(refused),
        )

    def total(self, agent: str, condition: str) -> list[ToolUse]:
        """Return what was counted, tool by tool."""
        known = dict[str, Any](agent=agent, condition=condition, trials=self._trials, unlisted=self._unlisted)
        return [
            ToolUse(
                tool=name,
                server=self._owners.get(name),
                **known,
                **dict[str, Any](counts, offered=None if self._unknown else counts["offered"]),
            )
            for name, counts in self._tools.items()
        ]


_SHORTFALLS = ("no_tool_use", "no_tool_success")
"""The kinds of failure of an answer that was discarded because it did not use tools as required."""


@attrs.define
class JudgingTally:
    """Counts and totals of one judge's judgements of one arm."""

    judgements: int = 0
    told: int = 0
    flagged: int = 0
    rejected: int = 0
    retried: int = 0
    model_calls: int | None = None
    usage: UsageTotal = UsageTotal()
    cost: Cost = Cost()

    def add(self, judgement: Judgement, usd: float | None) -> None:
        """Count a judgement that cost so many US dollars (`None`: unknown), unless the judge was not asked."""
        if judgement.model_calls == 0:
            return
        self.judgements += 1
        self.told += judgement.unverified_claims is not None
        self.flagged += bool(judgement.unverified_claims)
        self.rejected += len(judgement.rejected)
        self.retried += bool(judgement.attempts)
        if judgement.model_calls is not None:
            self.model_calls = (self.model_calls or 0) + judgement.model_calls
        self.usage = self.usage.plus(judgement.usage)
        self.cost = self.cost.plus(usd, by_provider=judgement.usage.cost is not None)

    def total(self, agent: str, condition: str, judge: str) -> JudgingTotal:
        """Return the counts and totals."""
        return JudgingTotal(agent, condition, judge, **attrs.asdict(self, recurse=False))


_AS_COUNTED = ("trials", "failed", "retried", "tool_calls", "model_calls", "usage", "given_up", "cost", "truncated")
"""What the total of an arm has of its tally as it is."""


@attrs.define
class Tally:
    """Counts and totals of one arm's trials. Failed attempts that were repeated have totals of their own."""

    _rates: Rates
    trials: int = 0
    failed: int = 0
    retried: int = 0
    truncated: int = 0
    uncalled: int = 0
    unserved: int = 0
    tool_calls: int | None = None
    model_calls: int | None = None
    usage: UsageTotal = UsageTotal()
    given_up: GivenUp = GivenUp()
    cost: Cost = Cost()
    sampling: Sampling = attrs.field(factory=Sampling)
    failures: FailureTally = attrs.field(factory=FailureTally)
    dropped: Counter[ContentKind] = attrs.field(factory=Counter)
    compliance: Counter[str] = attrs.field(factory=Counter)

    def add(self, trial: Trial) -> None:
        """Count a trial."""
        self.trials += 1
        self.retried += bool(trial.attempts)
        shortfalls = sum(attempt.failure.kind in _SHORTFALLS for attempt in trial.attempts)
        self.compliance["discarded"] += shortfalls
        # A trial without an answer neither complies nor fails to comply.
        if shortfalls or trial.complied is not None:
            complied = trial.complied is True
            self.compliance.update(answered=1, complied=complied, complied_first=complied and not shortfalls)
        if trial.failure:
            self.failed += 1
            self.failures.add(f"{trial.failure.stage}: {trial.failure.kind}", trial.failure.message)
        else:
            self.truncated += trial.truncated
        costs: list[float | None] = []
        transcripts = (trial.transcript, *(attempt.transcript for attempt in trial.attempts))
        for each in (each for transcript in transcripts if transcript for each in transcript.exchanges):
            if each.method == "sampling/createMessage" and each.answered_by == "policy" and each.result is not None:
                self._add_sampled(each.sampled)
        for attempt in trial.attempts:
            if attempt.transcript:
                before, usd = self.given_up, self._rates.attempt(trial.agent, attempt.transcript)
                calls = before.model_calls + (attempt.transcript.model_calls or 0)
                self.given_up = GivenUp(calls, before.usage.plus(attempt.transcript.usage), before.cost.plus(usd))
                costs.append(usd)
        if trial.transcript:
            listed, unlisted = len(trial.transcript.own_calls), trial.transcript.unlisted_calls
            served = [call for call in trial.transcript.own_calls if not call.own]
            self.uncalled += unlisted == 0 and not served
            self.unserved += unlisted == 0 and all(call.error is not None for call in served)
            if listed or unlisted is not None:
                self.tool_calls = (self.tool_calls or 0) + listed + (unlisted or 0)
            if trial.transcript.model_calls is not None:
                self.model_calls = (self.model_calls or 0) + trial.transcript.model_calls
            for call in trial.transcript.own_calls:
                self.dropped.update(call.dropped)
            self.usage = self.usage.plus(trial.transcript.usage)
            costs.append(self._rates.attempt(trial.agent, trial.transcript))
        if costs:  # what left no transcript told of no model call
            known = [usd for usd in costs if usd is not None]
            # A trial with an attempt of unknown cost is unknown as a whole: the rest would look like all of it.
            total = sum(known) if len(known) == len(costs) else None
            told = trial.transcript is not None and trial.transcript.usage.cost is not None
            self.cost = self.cost.plus(total, by_provider=told and total is not None)

    def _add_sampled(self, took: ModelUsage | None) -> None:
        self.sampling = before = attrs.evolve(self.sampling, answers=self.sampling.answers + 1)
        if took is not None:
            cost = before.cost.plus(cost_of(self._rates.models.get(took.model), took.usage))
            self.sampling = Sampling(before.model_calls + 1, before.usage.plus(took.usage), cost, before.answers)

    def total(
        self, agent: str, condition: str, entry: ConditionEntry, expenses: Expenses, *, simulated: bool
    ) -> ArmTrials:
        """Return the counts and totals, with the times of what the answers of a `simulated` or real agent took."""
        durations = expenses.durations
        others = {*entry.contexts} - {*entry.texts}  # the server of a changed text has the label of the unchanged one
        servers = [server for name, server in entry.servers.items() if others and name not in entry.texts]
        offers_tools, changed = any(each.tools for each in servers), any(each.interventions for each in servers)
        compliance = dict[str, Any](self.compliance, on_missing_tool_use=entry.on_missing_tool_use)
        return ArmTrials(
            agent,
            condition,
            **{name: getattr(self, name) for name in _AS_COUNTED},
            failures=dict(self.failures.counts),
            failure_messages=dict(self.failures.messages),
            duration=expenses.mean("seconds"),
            compliance=Compliance(**compliance) if entry.requires_tool_use else None,
            duration_median=quantile(durations, 0.5),
            duration_p95=quantile(durations, 0.95),
            dropped=dict(self.dropped),
            uncalled=self.uncalled if offers_tools else None,
            unserved=self.unserved if offers_tools and simulated and not changed else None,
            sampling=self.sampling,
        )
