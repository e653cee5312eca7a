"""The summary: what a run found, derived from its trials and scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

import attrs

from keval.records.manifest import Entry, JudgeEntry, LookingEntry, ReplayEntry, ServerStartsEntry
from keval.records.scores import Scale, Scored
from keval.records.servers import Sharing
from keval.records.transcript import ContentKind
from keval.records.usage import Usage
from keval.run.conclusion import Outcome
from keval_analysis.findings.anchors import AnchorFindings
from keval_analysis.findings.effects import (
    AgentProperty,
    Contrast,
    Effect,
    FamilyPower,
    Interaction,
    OfArm,
    OfScorer,
    Repetitions,
    VarianceComponents,
    WinRate,
)
from keval_analysis.findings.reviews import ReviewFindings
from keval_analysis.findings.routing import Routing

GateVerdict: TypeAlias = Literal["held", "failed", "undecided"]


@attrs.frozen
class GateResult:
    """A gate's verdict on one arm: what was found, on what it decided, and why it could not, if it could not.

    `gate` is the gate with the arm that it is about, and `written` the gate as written. `decided_on` is what was
    compared with the `threshold`, such as `mean` or `low`. `kind` says what the gate is about: scores, what trials use
    or how they end (a resource), an effect against the baseline, the expectations of samples, the run `against`, or how
    far a judge drifted from that run. `ci_low` and `ci_high` are the interval of `value` at this `level`. `reason` also
    tells the counts behind a share. A gate is `exploratory` if its metric is not primary.
    """

    gate: str
    verdict: GateVerdict
    value: float | None
    ci_low: float | None
    ci_high: float | None
    decided_on: str
    reason: str
    kind: Literal["score", "resource", "effect", "expect", "regression", "drift"] = "score"
    agent: str | None = None
    condition: str | None = None
    metric: str | None = None
    judge: str | None = None
    op: Literal[">=", "<=", ">", "<"] | None = None
    threshold: float | None = None
    written: str | None = None
    against: str | None = None
    level: float = 0.95
    exploratory: bool = False


@attrs.frozen
class UnmetExpectation:
    """An expectation of a sample that one answer did not meet: what was expected, and what was answered, in short."""

    sample: str
    agent: str
    condition: str
    repetition: int
    expected: str
    answered: str


@attrs.frozen
class ToolUse(OfArm):
    """How the trials of one arm used one tool, by the name that the agent has for it.

    Of `trials` with a transcript, the model was `offered` the tool in so many (`None`: unknown), `called` it, called it
    `first`, before any other, and had a call of it that `failed`. `calls` counts its calls, `errors` those that came
    back as an error, and `rejected` those of them whose arguments did not fit or were refused before they reached a
    server. `unlisted` trials may have made further calls, whose tools nobody reported.
    """

    tool: str
    server: str | None = None
    trials: int = 0
    offered: int | None = None
    called: int = 0
    first: int = 0
    failed: int = 0
    calls: int = 0
    errors: int = 0
    rejected: int = 0
    unlisted: int = 0

    @property
    def never_called(self) -> bool:
        """Whether the tool was offered, and it is known that no trial called it."""
        return bool(self.offered) and not self.called and not self.unlisted


@attrs.frozen
class UnlikeCalls:
    """How many calls of a tool gave another result than an equal call in another trial that shared its server.

    They are `unlike` of the `compared`, which are the calls that another trial of the condition had made before.
    """

    server: str
    tool: str
    unlike: int
    compared: int


@attrs.frozen
class Activation(OfArm):
    """In how many trials of one arm the model saw a text that a context gave, such as a skill.

    `kind` and `way` are as `keval.plugin.GivenText` has them. Of the answered `trials` that were given it, it is
    `unknown` of some whether they read it, as keval did not see their model requests. `rate` is the share of the others
    that `read` it, over `n` samples, with its 95 % interval. `model_call` is the median number of the first model call
    that had it, and `tools` counts the trials in which a call of each tool returned it.
    """

    text: str
    kind: str
    way: str
    trials: int
    unknown: int
    read: int
    n: int
    rate: float | None
    ci_low: float | None
    ci_high: float | None
    model_call: float | None
    tools: Mapping[str, int] = attrs.field(factory=dict)


@attrs.frozen
class Cost:
    """US dollars that trials or judgements cost, as far as prices and tokens are known.

    `unknown` counts those whose price or tokens are unknown, and `usd` leaves them out; it is `None` if none is known.
    A simulated model costs 0. `by_provider` counts those whose cost the provider told.
    """

    usd: float | None = None
    unknown: int = 0
    by_provider: int = attrs.field(default=0, metadata={"sparse": True})

    def plus(self, usd: float | None, *, by_provider: bool = False) -> Cost:
        """Return the cost with one more."""
        return self + Cost(usd, usd is None, by_provider)

    def __add__(self, other: Cost) -> Cost:
        known = [usd for usd in (self.usd, other.usd) if usd is not None]
        by_provider = self.by_provider + other.by_provider
        return Cost(sum(known) if known else None, self.unknown + other.unknown, by_provider)


@attrs.frozen
class UsageTotal:
    """Tokens of several trials or judgements, as far as they are known.

    `unknown` counts those that reported no input or no output tokens; the sums leave them out. A sum is `None` if none
    reported that kind of token. `impossible` is the first that was told and cannot be a count, and `estimated` is the
    sum of what is estimated beyond what they told; see `Usage`.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None
    unknown: int = 0
    impossible: str | None = attrs.field(default=None, metadata={"sparse": True})
    estimated: int = attrs.field(default=0, metadata={"sparse": True})

    def plus(self, usage: Usage) -> UsageTotal:
        """Return the total with one more."""

        def add(total: int | None, value: int | None) -> int | None:
            return total if value is None else (total or 0) + value

        lacking = usage.input_tokens is None or usage.output_tokens is None
        return UsageTotal(
            add(self.input_tokens, usage.input_tokens),
            add(self.output_tokens, usage.output_tokens),
            add(self.cached_tokens, usage.cached_tokens),
            add(self.reasoning_tokens, usage.reasoning_tokens),
            self.unknown + lacking,
            # The first one is told, as an example.
            self.impossible or usage.impossible,
            self.estimated + usage.least - (usage.input_tokens or 0) - (usage.output_tokens or 0),
        )


@attrs.frozen
class Compliance:
    """How the trials of an arm used tools, where its condition requires that.

    `answered` trials gave an answer; `complied_first` used tools at the first attempt, `complied` at any. `discarded`
    counts answers that were thrown away because they used no tools.
    """

    answered: int = 0
    complied_first: int = 0
    complied: int = 0
    discarded: int = 0
    on_missing_tool_use: Literal["retry", "keep", "fail"] = "retry"


@attrs.frozen
class GivenUp:
    """The model calls and tokens of attempts that failed and were repeated."""

    model_calls: int = 0
    usage: UsageTotal = UsageTotal()
    cost: Cost = Cost()


@attrs.frozen
class Sampling(GivenUp):
    """The `answers` that servers got of contexts' clients as a model's, and the model calls for these, if any."""

    answers: int = 0


@attrs.frozen
class ArmTrials(OfArm):
    """What happened to the trials of one arm.

    `failures` counts failed trials by `stage: kind`, and `failure_messages` has the first message of each, as one line
    that may be shortened. `tool_calls` and `model_calls` are `None` when nobody reported them. `duration` is the mean
    over samples, in seconds; `duration_median` and `duration_p95` are those of trials that were answered. `cost` is
    that of the trials with all of their attempts; `usage` leaves out failed attempts, whose usage and cost `given_up`
    has. `dropped` counts by kind what tools returned and the adapter could not pass to the model. `truncated` counts
    answers that a limit of length ended. `uncalled` counts the trials that called no tool of the condition's servers
    (`None`: these offer none), and `unserved` those with errors alone, too, of simulated models on unchanged servers.
    """

    trials: int
    failed: int
    retried: int
    failures: Mapping[str, int]
    tool_calls: int | None
    model_calls: int | None
    usage: UsageTotal
    given_up: GivenUp
    duration: float | None
    compliance: Compliance | None
    duration_median: float | None = None
    duration_p95: float | None = None
    cost: Cost = Cost()
    failure_messages: Mapping[str, str] = attrs.field(factory=dict)
    dropped: Mapping[ContentKind, int] = attrs.field(factory=dict)
    truncated: int = 0
    uncalled: int | None = None
    unserved: int | None = attrs.field(default=None, metadata={"sparse": True})
    sampling: Sampling = attrs.field(default=Sampling(), metadata={"sparse": True})


@attrs.frozen
class ArmScore(OfArm, Scored):
    """The scores of one arm by one metric, or by one rubric and judge.

    `mean` and `stderr` are over `n` samples, `ci_low` and `ci_high` the 95 % interval of the mean, which `method` made;
    `sd` is the sample standard deviation of all answers' values, and `band` the name of the mean's part of the scale.
    The scores count as `scored`, `neutral` or `unscored`; `failed` ones are among the unscored, by kind in `failures`,
    with the first message of each kind in `failure_messages`. `missing` scores were not made because scoring was
    interrupted.

    `per_usd` and `per_1000_tokens` are the mean, counted from the lower end of its scale, for each dollar or 1,000
    tokens that an answer costs; `None` where less is better, or the cost is unknown or 0. `pareto` says that no other
    arm is at least as good for at most as much, and better in one of the two. It goes by tokens if the dollars of any
    arm are unknown or 0, and is `None` where the tokens are unknown, too.
    """

    metric: str
    judge: str | None
    n: int
    mean: float | None
    stderr: float | None
    band: str | None
    scored: int
    neutral: int
    unscored: int
    failed: int
    failures: Mapping[str, int]
    missing: int
    ci_low: float | None = None
    ci_high: float | None = None
    method: str | None = None
    sd: float | None = None
    repetitions: Repetitions | None = None
    per_usd: float | None = None
    per_1000_tokens: float | None = None
    pareto: bool | None = None
    failure_messages: Mapping[str, str] = attrs.field(factory=dict)


@attrs.frozen
class JudgingTotal(OfArm):
    """Counts and totals of one judge's judgements of one arm.

    Of `judgements`, `told` reported on unverified claims, `flagged` had some, and `retried` needed more than one
    attempt. `rejected` counts replies that were not judgements.
    """

    judge: str
    judgements: int
    told: int
    flagged: int
    rejected: int
    retried: int
    model_calls: int | None
    usage: UsageTotal
    cost: Cost = Cost()


@attrs.frozen
class JudgePair:
    """How far two judges agree: Cohen's kappa with quadratic weights over `n` answers, or the reason for none."""

    judges: tuple[str, str]
    n: int
    kappa: float | None
    reason: str | None


@attrs.frozen
class JudgeSpread:
    """The standard deviation of a judge's levels about one answer, pooled over `n` answers, or the reason for none."""

    judge: str
    n: int
    sd: float | None
    reason: str | None


@attrs.frozen
class Agreement:
    """How far the judges of one rubric agree: Krippendorff's alpha over `n` answers, or the reason for none."""

    metric: str
    judges: tuple[str, ...]
    n: int
    alpha: float | None
    reason: str | None
    pairs: tuple[JudgePair, ...]
    spread: tuple[JudgeSpread, ...]


@attrs.frozen
class ScorerScale(OfScorer):
    """The scale that a scorer of the run scores in, and the heading under which tables list it."""

    scale: Scale
    category: str | None = None


@attrs.frozen
class SameVendor:
    """A judge whose model is of the same vendor as those of some agents, by their labels."""

    judge: str
    agents: tuple[str, ...]
    vendor: str


@attrs.frozen
class SpokenRevision:
    """The revision of MCP in which keval spoke with a server, and by label those in which agents did with the tap."""

    condition: str
    server: str
    protocol: str
    agents: Mapping[str, str]


@attrs.frozen
class Summary(Entry):
    """What a run found: means per arm, effects, and counts of everything else.

    `planned` is how many trials the run planned. `simulated` names the models that were simulated, and `unpriced` those
    whose price is unknown. `expenses` are effects on what an answer takes (`seconds`, `tokens`, `usd`, `tool_calls`) in
    place of a metric. `gates` are the verdicts, and `unmet` the first thousand expectations of samples that were not
    met. `elapsed` is how long the run was worked on, in seconds: its trials and their scoring, without the time between
    an interruption and `resume`, or that of scoring it again later; `None` while it is, and for a run that was killed.
    `stopped` says why trials or judgements were left out, if a limit of the run did that. `servers` says by condition
    and server whether trials shared it; it lacks those of which nothing is known. `tools` says how each tool was used,
    and `activations` how often each text was read, arm by arm; `routing` how well skills and tools were chosen, where
    samples expect that. `contrasts` are conditions that differ from another one in what the config changes of their
    contexts. `replay` says from which recording a replayed run's answers are, and
    `play` that a person asked. `note` is that of `--note`. `mixed` has the conditions that differ from the baseline in
    more than one thing, and in what, unless the config says that they are meant to. `placeholders` counts the questions
    that `keval init` wrote to be replaced. `reviews` is what people said of answers. `primary` names the metrics that
    the run is to decide, and `properties` are what metrics say of an agent whatever it answers, which is no effect.
    `family_power` is what naming a primary metric would bring. Trials or scores of
    an `unfinished` run are yet to be made. `unlike_histories` and `unlike_facts` count the questions that arms answered
    with unlike histories, or facts, of their own. `server_starts` are the processes of servers that were started, and
    `unlike_calls` the tools of shared servers whose equal calls gave different results. `win_rates` are those of judges
    that compare. `anchors` is what judges gave to the anchors, which is found with the gates, as earlier runs are held
    against it. `same_vendor` are the judges whose model is of the vendor of an agent's. `looking` says how the run was
    looked at before its end, and why it ended early, if it did: its intervals and p-values then hold for that way of
    looking. `parts` are those of hook plugins, by name. `revisions` are there if the config names one for a context, or
    an agent spoke another than its server. `changed` are the files of the run that changed after it had ended. `commit`
    is that of `--against`.
    """

    run: str
    evaluation: str
    baseline: str
    neutral: Literal["omit", "count"]
    planned: int
    simulated: tuple[str, ...] = ()
    scorers: tuple[ScorerScale, ...] = ()
    judges: Mapping[str, JudgeEntry] = attrs.field(factory=dict)
    trials: tuple[ArmTrials, ...] = ()
    arms: tuple[ArmScore, ...] = ()
    effects: tuple[Effect, ...] = ()
    expenses: tuple[Effect, ...] = ()
    interactions: tuple[Interaction, ...] = ()
    variance: tuple[VarianceComponents, ...] = ()
    gates: tuple[GateResult, ...] = ()
    unmet: tuple[UnmetExpectation, ...] = ()
    elapsed: float | None = None
    unpriced: tuple[str, ...] = ()
    judging: tuple[JudgingTotal, ...] = ()
    agreement: tuple[Agreement, ...] = ()
    stopped: str | None = None
    servers: Mapping[str, Mapping[str, Sharing]] = attrs.field(factory=dict)
    tools: tuple[ToolUse, ...] = ()
    activations: tuple[Activation, ...] = ()
    routing: tuple[Routing, ...] = attrs.field(default=(), metadata={"sparse": True})
    contrasts: tuple[Contrast, ...] = ()
    replay: ReplayEntry | None = None
    play: bool = False
    note: str | None = None
    primary: tuple[str, ...] = ()
    properties: tuple[AgentProperty, ...] = ()
    unfinished: bool = False
    family_power: FamilyPower | None = None
    reviews: ReviewFindings | None = None
    unlike_histories: int = 0
    unlike_facts: int = 0
    server_starts: tuple[ServerStartsEntry, ...] = ()
    unlike_calls: tuple[UnlikeCalls, ...] = attrs.field(default=(), metadata={"sparse": True})
    changed: tuple[str, ...] = attrs.field(default=(), metadata={"sparse": True})
    revisions: tuple[SpokenRevision, ...] = attrs.field(default=(), metadata={"sparse": True})
    win_rates: tuple[WinRate, ...] = ()
    anchors: tuple[AnchorFindings, ...] = ()
    mixed: Mapping[str, Sequence[str]] = attrs.field(factory=dict)
    placeholders: int = attrs.field(default=0, metadata={"sparse": True})
    same_vendor: tuple[SameVendor, ...] = ()
    looking: LookingEntry | None = None
    commit: str | None = attrs.field(default=None, metadata={"sparse": True})
    parts: Mapping[str, Any] = attrs.field(factory=dict, metadata={"sparse": True})

    def outcome(self, *, strict: bool = False) -> Outcome:
        """Return whether a gate failed, else whether the run is complete, and, if `strict`, all gates are decided."""
        verdicts = {result.verdict for result in self.gates}
        # What was not measured decides nothing, and is no verdict on what was.
        if not self.were_all_made() and "failed" not in verdicts:
            return "incomplete"
        return "gate failed" if verdicts & {"failed", "undecided" if strict else ""} else "passed"

    def were_all_made(self) -> bool:
        """Return whether every trial was answered and every score made, but for failures that a gate on them allows."""
        allowed = {
            (gate.agent, gate.condition)
            for gate in self.gates
            if (gate.kind, gate.metric, gate.verdict) == ("resource", "failures", "held") and gate.op in ("<=", "<")
        }
        failed = any(arm.failed for arm in self.trials if (arm.agent, arm.condition) not in allowed)
        failed = failed or any(arm.failed for arm in self.arms)
        unfinished = sum(arm.trials for arm in self.trials) < self.planned
        unscored = any(arm.missing for arm in self.arms)
        return not (failed or unfinished or unscored)

    @property
    def ablated(self) -> frozenset[str]:
        """The conditions that `ablate` added: each lacks one part of the condition that it is compared with."""
        return frozenset(contrast.condition for contrast in self.contrasts if contrast.added)
