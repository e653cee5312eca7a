"""Effects: how much one arm differs from another on the same samples, and how sure that is."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias, get_args

import attrs

from keval.records.scores import Scale, Scored

Verdict: TypeAlias = Literal["better", "worse", "same", "unclear", "unknown", "interim"]
Family: TypeAlias = Literal["all", "primary", "exploratory"]

Expense: TypeAlias = Literal["seconds", "tokens", "usd", "tool_calls"]
EXPENSES: Sequence[Expense] = get_args(Expense)
"""What an answer takes: wall time, tokens of input and output, US dollars, and tool calls."""

SURE = 0.05
"""The largest adjusted p of an effect that is called better or worse."""


@attrs.frozen
class OfArm:
    """A record about one arm: an agent under a condition."""

    agent: str
    condition: str


@attrs.frozen
class OfScorer(Scored):
    """A record about a metric, or a rubric and its judge, which are its first fields."""

    metric: str
    judge: str | None


@attrs.frozen
class Arm(OfArm):
    """One agent under one condition of one run, as that which an effect is measured against."""

    run: str | None = None


@attrs.frozen
class PartialEffect:
    """An effect over some of the trials, which are chosen by what happened in them; `n` counts samples.

    It is biased, because that is no random choice.
    """

    n: int
    difference: float | None
    ci_low: float | None
    ci_high: float | None


@attrs.frozen
class Ratio:
    """How many times as much the answers of one arm take as those of another, with its 95 % interval.

    `value` is the geometric mean over the effect's samples of the ratio of the two arms' means. `p` is that of a ratio
    of 1, and `p_adjusted` is adjusted in the family of the effect, which has the ratios as well.
    """

    value: float
    ci_low: float | None
    ci_high: float | None
    p: float | None
    p_adjusted: float | None = None


@attrs.frozen
class WithoutLost(PartialEffect):
    """An effect as it is without the trials that count as the worst score because they have none."""

    verdict: Verdict


@attrs.frozen
class Effect(OfScorer):
    """The mean paired difference of an arm to another, over the `n` samples that both have scores for.

    `kind` says what differs: the condition (against the baseline), the agent (as `agent_pairs` has them), or the run.
    `mean` and `against_mean` are those of the two arms over the `n` samples, and `dropped` counts samples that only one
    of them has a score for. `ci_low` and `ci_high` are the 95 % interval. `worst_case` is what it would be if a
    question that nobody asked could change by the whole scale; `None` for a scale without an end. `d` is Cohen's d for
    paired data. `p` is that of no effect; it is below 0.05 where the interval excludes 0.

    `p_adjusted` is Holm's over the `family_size` effects of this kind that are judged together: those on the metrics
    that the config names as primary, or on the others, or on all if it names none. An effect that is 0 on every
    question is not judged. `family` is `primary` or `all` for what the run is to decide: the effects of conditions, or
    of agents where there is one condition, or of runs, on the primary metrics, or on all if none is named. All other
    effects are `exploratory`: each kind of them holds its level, but the kinds do not hold it together. `ratio` is that
    of an effect on what an answer takes, unless an answer of either arm takes nothing. `without_lost` is there if the
    config counts failed trials or unscored answers as the worst score. `per_protocol` is over the trials that used
    tools as their condition requires, and `where_called`, of an arm that lacks a tool, over the samples in which the
    agent called that tool where it had it.

    `mde` is the smallest difference that this many samples show with 80 % power at the level of the first one in the
    family, and no less than half the interval; `needed_samples` is between how many and how many samples would show a
    difference of the scale's margin, `None` below 10 samples, if all differ by the same, or without a margin.
    `bound_low` and `bound_high` are the effect if every score that is lost had been the worst or the best; `None` where
    none is lost, or the scale has no end. A score without a value is lost where the other arm has one for the sample.
    `neutral_low` and `neutral_high` are the same if every neutral score had been, where the shares of neutral scores in
    the two arms differ by more than 5 points. `p_lost` is the p if all of these had been the worst for the effect; 1 if
    it then is 0 or another way round.

    `verdict` is `interim` in a run that is unfinished. Else it is `better` or `worse` if `p_adjusted` is at most 0.05,
    with `p_lost` in place of `p` as well, `same` if the interval and the worst case lie within the scale's margin
    around 0, else `unclear`; `unknown` without an interval.
    """

    agent: str
    condition: str
    against: Arm
    n: int
    difference: float | None
    stderr: float | None
    kind: Literal["condition", "agent", "run"] = "condition"
    run: str | None = None
    dropped: int = 0
    mean: float | None = None
    against_mean: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    worst_case: tuple[float, float] | None = None
    d: float | None = None
    p: float | None = None
    p_adjusted: float | None = None
    family: Family | None = None
    family_size: int = 0
    mde: float | None = None
    needed_samples: tuple[int, int] | None = None
    bound_low: float | None = None
    bound_high: float | None = None
    neutral_low: float | None = None
    neutral_high: float | None = None
    p_lost: float | None = None
    per_protocol: PartialEffect | None = None
    where_called: PartialEffect | None = None
    ratio: Ratio | None = None
    without_lost: WithoutLost | None = None
    verdict: Verdict = "unknown"

    @property
    def hangs_on_lost(self) -> bool:
        """Whether the effect is sure only if the scores that are lost or neutral are like the others."""
        if self.p_lost is None or self.p is None or self.p_adjusted is None:
            return False
        # Holm's factor for this effect; a p of 0 does not tell it, and the size of the family is the largest.
        together = self.p_adjusted / self.p if self.p else float(self.family_size)
        return self.p_lost * max(1.0, together) > SURE


@attrs.frozen
class WinRate(OfScorer):
    """How often a judge preferred the answers of an arm to those of the same agent under the condition `against`.

    `rate` is the share of comparisons that are won, with ties as halves: the mean over `n` samples, with its 95 %
    interval. `wins`, `ties` and `losses` count comparisons.
    """

    agent: str
    condition: str
    against: str
    n: int
    rate: float
    ci_low: float | None
    ci_high: float | None
    wins: int
    ties: int
    losses: int


@attrs.frozen
class Interaction(OfScorer):
    """How much more a condition does for an agent than for another: the difference of two effects.

    Both effects are against `baseline`, and the interaction is over the `n` samples that all four arms have scores for.
    `effect` and `against_effect` are the two effects over these. Interactions are exploratory.
    """

    condition: str
    baseline: str
    agent: str
    against_agent: str
    n: int
    difference: float | None
    stderr: float | None
    ci_low: float | None
    ci_high: float | None
    p: float | None
    p_adjusted: float | None
    effect: float | None = None
    against_effect: float | None = None


@attrs.frozen
class FamilyPower:
    """What naming a primary metric would bring, where a run names none.

    A difference that one comparison alone would show with a probability of 80 % is seen with `power` among as many
    `comparisons` as are judged together, and with `primary_power` among the `primary_comparisons` of one metric.
    """

    comparisons: int
    power: float
    primary_comparisons: int
    primary_power: float


@attrs.frozen
class AgentProperty(OfScorer):
    """What a metric says of an agent whatever it answers, such as how much work the agent is to build.

    `derivation` says how the metric comes to its value, if it told.
    """

    agent: str
    value: float
    derivation: str | None = None


ContrastKind: TypeAlias = Literal["placebo", "ablation", "change", "revision"]
Part: TypeAlias = Literal["tool", "section", "skill"]


@attrs.frozen
class Contrast:
    """A condition held against the one that it was changed from, on the same samples.

    `kind` is `placebo` if only the results of calls, or texts, are others, `ablation` if exactly one part is left out,
    which is a tool, or the section or skill of that name, `revision` if `--against` added `against`, the condition at
    another commit, and `change` otherwise. `added` says that `ablate` added the condition, which is compared with
    nothing else. `changes` are the interventions that `against` lacks, by server or context of texts, as a config
    writes them; of a revision, `files` say what differs. `effects` are those of `condition` against `against`, agent by
    agent and scorer by scorer; their p is adjusted over all contrasts of one kind in the run. `expenses` are the same
    on what an answer takes.
    """

    kind: ContrastKind
    condition: str
    against: str
    changes: Mapping[str, Sequence[Mapping[str, Any]]] = attrs.field(factory=dict)
    left_out: str | None = None
    part: Part = "tool"
    added: bool = False
    effects: tuple[Effect, ...] = ()
    expenses: tuple[Effect, ...] = ()


@attrs.frozen
class Repetitions:
    """How the repetitions of a sample differ, over the `samples` of one arm that were scored more than once.

    `sd` is the standard deviation about each sample's own mean, pooled. A score passes from `threshold` on, or up to it
    where less is better. `flip_rate` is the probability that one of two repetitions passes and the other does not.
    `pass_at` is by k the probability that at least one of k repetitions passes (pass@k), and `pass_all` that all of
    them do (pass^k); both are means over samples with at least k repetitions.
    """

    samples: int
    sd: float | None
    threshold: float | None = None
    flip_rate: float | None = None
    pass_at: Mapping[str, float] = attrs.field(factory=dict)
    pass_all: Mapping[str, float] = attrs.field(factory=dict)


@attrs.frozen
class VarianceComponents(OfScorer):
    """Where the variance of a metric's scores within an arm comes from, as variances pooled over arms.

    `question` is between samples, `repetition` between the trials of a sample, and `judging` between a judge's gradings
    of one answer; `None` where nothing was repeated. `advice` says what would make the error smaller.
    """

    question: float | None
    repetition: float | None
    judging: float | None
    advice: str


def better_share(difference: float, scale: Scale) -> float | None:
    """Return a difference as a share of its scale, positive for the better; `None` for a scale without an end."""
    if math.isinf(scale.high):
        return None
    share = difference / (scale.high - scale.low)
    return -share if scale.better == "lower" else share


def allowed_drop(scale: Scale, most: float | None) -> float:
    """Return how far a mean may drop: `most`, or else by the scale's margin, which is nothing if it has none."""
    if most is not None:
        return most
    return 0.0 if math.isinf(scale.least) else scale.least


def is_flat(effect: Effect) -> bool:
    """Return whether nothing differs for any question."""
    return effect.difference == 0 and not effect.stderr
