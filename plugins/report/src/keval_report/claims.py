"""What a report may say, and when: each statement with the condition under which it is printed.

Terminal, Markdown and page say nothing of an effect that is not here or in `keval_report.run_claims`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Generic, Literal, TypeAlias, TypeVar

import attrs

from keval.records.formats import interval, number, percent, short_number, signed
from keval.records.scores import SMALL_SHARE, Scale, named_band
from keval_analysis.findings.effects import SURE, Effect, is_flat
from keval_analysis.findings.formats import decimals
from keval_analysis.findings.reviews import CorrectedEffect

About = TypeVar("About")

Level: TypeAlias = Literal["first", "explained"]
"""How much a report says: what one decides by, or everything, with the sentences that explain it."""


@attrs.frozen
class Statement(Generic[About]):
    """A sentence, or a part of one, with `{}` for what it is about, and the condition under which it may be printed.

    `when` has the condition in words, and `holds` tests it. A short report says it only if its `level` is `first`.
    """

    says: str
    when: str
    holds: Callable[[About], bool]
    level: Level = "explained"

    def at_first(self, says: str) -> Statement[About]:
        """Return what a short report says under the same condition."""
        return attrs.evolve(self, says=says, level="first")

    def of_each(self, says: str, when: str = "") -> Statement[Sequence[About]]:
        """Return a sentence about several of which this holds; `when` tells its condition in words of its own."""
        return Statement(says, when or self.when, lambda several: bool(several) and all(map(self.holds, several)))


@attrs.frozen
class Claim:
    """An effect with all that its row shows: the metric's name, the label of what it is for, and its scale.

    `lost` tells in words which scores of the two arms are lost, `scored` whether any of them has a score. `corrected`
    is the same effect, corrected by people's labels, if there are any, and `primary` says that it is on a primary
    metric, though the run is not to decide it.
    """

    effect: Effect
    name: str
    label: str
    scale: Scale
    lost: str = ""
    scored: bool = True
    corrected: CorrectedEffect | None = None
    primary: bool = False

    @property
    def size(self) -> float:
        """The difference as a share of the scale, or of the larger mean where the scale has no end."""
        effect = self.effect
        if effect.difference is None:
            return 0.0
        if not math.isinf(self.scale.high):
            return abs(effect.difference) / (self.scale.high - self.scale.low)
        largest = max(abs(effect.mean or 0.0), abs(effect.against_mean or 0.0))
        return abs(effect.difference) / largest if largest else 0.0

    @property
    def is_open(self) -> bool:
        """Whether it is neither decided nor an interim figure, and people's labels do not decide it, either."""
        return not _judge_decides(self) and not any(each.holds(self) for each in (BETTER, WORSE, INTERIM))

    @property
    def level(self) -> Level:
        """The level from which on it may have a row: the first, if it is not open, or the run is to decide it."""
        return "explained" if self.is_open and self.effect.family != "primary" else "first"

    @property
    def band(self) -> str | None:
        """The name of the band that the arm's mean is in, if the other arm's is in another one."""
        mean, against = self.effect.mean, self.effect.against_mean
        if mean is None or against is None:
            return None
        now = named_band(self.scale.bands, mean)
        return now if now != named_band(self.scale.bands, against) else None

    @property
    def unit(self) -> str:
        """The unit of the scale, behind a figure."""
        return f" {self.scale.unit}" if self.scale.unit else ""

    @property
    def margin(self) -> str:
        """The smallest difference that matters, in words."""
        if self.scale.margin is None:
            return f"{percent(SMALL_SHARE)} of the scale"
        return f"{short_number(self.scale.margin, 2)}{self.unit}"

    @property
    def neutral_bounds(self) -> str:
        """The effect if every neutral score had been the worst or the best."""
        return self._between(self.effect.neutral_low, self.effect.neutral_high)

    @property
    def notes(self) -> list[str]:
        """What was lost, and what that may hide."""
        effect, found = self.effect, [self.lost] if self.lost else []
        if LOST_BOUNDS.holds(self):
            found.append(LOST_BOUNDS.says.format(self._between(effect.bound_low, effect.bound_high)))
        return found

    @property
    def without_lost(self) -> str:
        """The effect and the verdict without the trials that count as the worst score; empty if none do."""
        found = self.effect.without_lost
        if found is None or found.difference is None:
            return ""
        told = word(attrs.evolve(self, effect=attrs.evolve(self.effect, **attrs.asdict(found))))
        return f"{signed(found.difference, decimals(self.effect))} {self._between(found.ci_low, found.ci_high)} {told}"

    @property
    def correction(self) -> str:
        """The effect as people's labels correct it; empty if there is none."""
        found = self.corrected
        if found is None or not CORRECTED.holds(self):
            return ""
        places = decimals(self.effect)
        ends = interval(found.ci_low, found.ci_high, places, signs=True)
        return f"{CORRECTED.says.format(found.labels)} {signed(found.difference, places)} {ends}"

    def _between(self, low: float | None, high: float | None) -> str:
        return interval(low, high, decimals(self.effect), signs=True)

    @property
    def needed(self) -> tuple[int, int] | None:
        """Between how many and how many questions would decide, more than there are; `None` if that is unknown."""
        needed = self.effect.needed_samples
        return None if needed is None else (max(needed[0], self.effect.n + 1), needed[1])


def _excludes_0(effect: Effect) -> bool:
    return effect.ci_low is not None and not _includes_0(effect.ci_low, effect.ci_high)


def _is_sure(claim: Claim) -> bool:
    return claim.effect.verdict in ("better", "worse")


def _is_undecided(claim: Claim) -> bool:
    return claim.effect.verdict == "unclear" and not is_flat(claim.effect)


def _hangs_on_lost(claim: Claim) -> bool:
    p = claim.effect.p_adjusted
    return _is_undecided(claim) and p is not None and p <= SURE


def _cannot_tell(claim: Claim) -> bool:
    return _is_undecided(claim) and not _hangs_on_lost(claim)


def _lacks_interval(claim: Claim) -> bool:
    effect = claim.effect
    return effect.verdict == "unknown" and effect.difference is not None and not _changed_nothing(claim)


def _changed_nothing(claim: Claim) -> bool:
    return is_flat(claim.effect) or (claim.effect.n == 1 and claim.effect.difference == 0)


def _judge_decides(claim: Claim) -> bool:
    found = claim.corrected
    # A judge that may be as kind to one arm as to the other decides nothing.
    if found is None or _includes_0(found.bias_low, found.bias_high) or found.ci_low is None or found.ci_high is None:
        return False
    if _is_sure(claim):
        return found.ci_low <= 0 if (claim.effect.difference or 0.0) > 0 else found.ci_high >= 0
    return (_is_undecided(claim) or NO_DIFFERENCE.holds(claim)) and not _includes_0(found.ci_low, found.ci_high)


def _is_small(claim: Claim) -> bool:
    if math.isinf(claim.scale.least):
        return claim.size < SMALL_SHARE
    return abs(claim.effect.difference or 0.0) < claim.scale.least


def _includes_0(low: float | None, high: float | None) -> bool:
    return low is not None and high is not None and low <= 0 <= high


def _none_is_sure(claims: Sequence[Claim]) -> bool:
    return not any(map(_is_sure, claims))


FEW = 10
"""Questions below which their number stands beside a figure, and nothing is said of how many would decide."""
_SURE_WORDS = (
    f"the p that is adjusted in its family is at most {SURE:g}, also if every lost or neutral score had been the worst"
    " for the effect, and the run is finished"
)
_MARGIN_WORDS = (
    f"the 95 % interval lies within the metric's margin ({percent(SMALL_SHARE)} of the scale if the config names none)"
    " around 0, also if a question that nobody asked could change by the whole scale, and the run is finished"
)

BETTER = Statement[Claim]("better", _SURE_WORDS, lambda claim: claim.effect.verdict == "better", "first")
WORSE = Statement[Claim]("worse", _SURE_WORDS, lambda claim: claim.effect.verdict == "worse", "first")
NO_DIFFERENCE = Statement[Claim](
    "no difference as large as {}",
    _MARGIN_WORDS,
    lambda claim: claim.effect.verdict == "same" and not _changed_nothing(claim),
    "first",
)
CANNOT_TELL = Statement[Claim]("cannot tell", "there is an interval, and none of the above holds", _is_undecided)
INTERIM = Statement[Claim](
    "interim",
    "trials or scores are yet to be made, or a person asks",
    lambda claim: claim.effect.verdict == "interim" and not _changed_nothing(claim),
    "first",
)
ONE_QUESTION = Statement[Claim](
    "one question", "a single question is compared", lambda claim: _lacks_interval(claim) and claim.effect.n == 1
)
NO_INTERVAL = Statement[Claim](
    "no interval",
    "several questions are compared, of a single source",
    lambda claim: _lacks_interval(claim) and claim.effect.n > 1 and claim.effect.stderr is None,
)
TOO_EARLY = Statement[Claim](
    "no interval so early",
    "the run was looked at before its end, and there are too few questions for an interval that holds at every look",
    lambda claim: _lacks_interval(claim) and claim.effect.stderr is not None,
)
UNCHANGED = Statement[Claim](
    "equal on {questions}", "every question has the same score in both arms", _changed_nothing, "first"
)
NOTHING_SHARED = Statement[Claim](
    "no question has a score in both arms",
    "the two arms share no scored question",
    lambda claim: claim.effect.difference is None,
)
ADJUSTED = Statement[Claim](
    "adjusted p {}",
    "the interval excludes 0, but the adjusted p is larger",
    lambda claim: _cannot_tell(claim) and _excludes_0(claim.effect) and claim.effect.p_adjusted is not None,
)
NEEDED = Statement[Claim](
    "{:,} to {:,} questions would show {margin}",
    "it cannot tell, from 10 questions on; the ends are those of the interval of the standard deviation",
    lambda claim: (
        _cannot_tell(claim)
        and claim.effect.needed_samples is not None
        and claim.effect.needed_samples[1] > claim.effect.n
    ),
)
COULD_SEE = Statement[Claim](
    "cannot tell; 80 of 100 such runs would see",
    "it cannot tell, and the difference is below the metric's margin; at the level of the family",
    lambda claim: _cannot_tell(claim) and claim.effect.mde is not None and _is_small(claim),
)
NOT_SHARED = NOTHING_SHARED.at_first("nothing to compare")
HANGS_ON_LOST = Statement[Claim](
    "cannot tell, as lost scores could decide",
    f"the p that is adjusted in its family is at most {SURE:g}, but not if every lost or neutral score had been the"
    " worst for the effect",
    _hangs_on_lost,
    "first",
)
SMALLER = COULD_SEE.at_first("cannot tell differences of less than")
AMONG_MANY = ADJUSTED.at_first("cannot tell among so many comparisons")
MORE_QUESTIONS = NEEDED.at_first("cannot tell; questions needed to see {margin}")
FEW_QUESTIONS = Statement[Claim](
    "cannot tell from so few questions",
    f"it cannot tell, and fewer than {FEW} questions are compared, or too few for an interval that holds at every look",
    lambda claim: (
        ONE_QUESTION.holds(claim) or TOO_EARLY.holds(claim) or (_is_undecided(claim) and claim.effect.n < FEW)
    ),
    "first",
)
ONE_SOURCE = NO_INTERVAL.at_first("cannot tell from questions of a single source")
RESTS_ON_OTHERS = Statement[Claim](
    "sure only if no other question changes by more than these do",
    f"the verdict is sure, of no more than {2 * FEW} questions, and one that changed by the whole scale could undo it",
    lambda claim: (
        _is_sure(claim) and claim.effect.n <= 2 * FEW and _includes_0(*(claim.effect.worst_case or (None, None)))
    ),
)
EXPLORATORY = Statement[Claim](
    "exploratory",
    "the config names primary metrics, and this is none",
    lambda claim: claim.effect.family == "exploratory",
)
WITHOUT_LOST = Statement[Claim](
    "without the trials that count as the worst score, as they have none",
    "the config says `failed: worst` or `unscored: worst`, and there are such trials",
    lambda claim: claim.effect.without_lost is not None,
    "first",
)
DROPPED = Statement[Claim](
    "questions left out, because only one arm has a score for them",
    "an arm has scores for questions that the other has none for",
    lambda claim: claim.effect.dropped > 0,
)
LOST_BOUNDS = Statement[Claim](
    "{} if every lost score had been the worst or the best",
    "scores are lost, and the scale has an end",
    lambda claim: claim.effect.bound_low is not None,
)
UNLIKE_QUESTIONS = Statement[Claim](
    "{metrics}: judged on far fewer answers of one arm than of the other, which could decide",
    "the adjusted p would make the verdict sure, the shares of neutral scores differ by more than 5 points between the"
    " arms, and it would not if all of them had been the worst for the effect",
    lambda claim: _hangs_on_lost(claim) and claim.effect.neutral_low is not None,
    "first",
)
LOST_COULD_DECIDE = Statement[Claim](
    "{metrics}: so many scores are lost that they could decide",
    "the adjusted p would make the verdict sure, scores are lost, and it would not if all of these had been the worst"
    " for the effect",
    lambda claim: _hangs_on_lost(claim) and claim.effect.bound_low is not None,
    "first",
)
ONE_COULD_DECIDE = RESTS_ON_OTHERS.at_first("{metrics}: a single question more could change the verdict")
CORRECTED = Statement[Claim](
    "corrected by {} labels",
    "people labelled enough answers of both arms, drawn at random and blind",
    lambda claim: claim.corrected is not None and claim.corrected.difference is not None,
    "first",
)
JUDGE_COULD_DECIDE = Statement[Claim](
    "{metrics}: the judge is kinder to one arm; by people's labels the verdict could be another",
    "the interval of the difference of the judge's bias in the two arms excludes 0, and the corrected interval includes"
    " 0 where the verdict is sure, or excludes it where there is none",
    _judge_decides,
    "first",
)
NEUTRAL_BOUNDS = Statement[Claim](
    "neutral more often in one arm; if every neutral score had been the worst or the best",
    "the shares of neutral scores differ by more than 5 points between the arms, and the scale has an end",
    lambda claim: claim.effect.neutral_low is not None,
)

IMPROVES = BETTER.of_each("{subject} {metrics}.")
GOT_WORSE = WORSE.of_each("{metric} {changed} by {amounts}.")
NOT_DECIDED = CANNOT_TELL.of_each("This run does not decide {whether} {metrics}.")
EQUIVALENT = NO_DIFFERENCE.of_each("{between}: no difference as large as {margin} in {metrics}.")
NOT_CHANGED = UNCHANGED.of_each("{between}, {metrics} did not change ({questions}).")
TOO_FEW = Statement[Sequence[Claim]](
    "{between}: {metrics}; too few questions for an interval.",
    "questions differ, and there is no interval",
    lambda claims: bool(claims) and all(map(_lacks_interval, claims)),
)
INCOMPARABLE = NOTHING_SHARED.of_each(
    "{between}: no comparison is possible, because no question has a score in both arms.",
    "no metric has a question that is scored in both arms",
)
SO_FAR = INTERIM.of_each("{between}, so far: {metrics}.")
IS_THAN = Statement[Sequence[Claim]](
    "{agent} is {traits} than {against} ({where}).",
    _SURE_WORDS,
    lambda claims: bool(claims) and all(map(_is_sure, claims)),
)
NO_CLEAR_DIFFERENCE = Statement[Sequence[Claim]](
    "No clear difference between {agent} and {against} ({where}).", "no difference is sure", _none_is_sure
)
INFORMATION_HELPS = WORSE.of_each(
    "{metrics}. The information in the {where} helps, beyond the effect of {beside}.",
    "the placebo is surely worse on these metrics",
)
INFORMATION_HARMS = BETTER.of_each(
    "{metrics}. The placebo scores better on these metrics, so the information in the {where} does harm.",
    "the placebo is surely better on these metrics",
)
NO_CLEAR_INFORMATION = attrs.evolve(
    NO_CLEAR_DIFFERENCE, says="{metrics}. This run shows no clear difference between {real} and its placebo{whose}."
)
PARTS_MISSED = WORSE.of_each(
    "Leaving out these {parts} of {of} makes scores worse: {costs}.",
    "scores without the tool, section or skill are surely worse",
)
PARTS_IN_THE_WAY = BETTER.of_each(
    "Leaving out these {parts} of {of} makes scores better: {gains}.",
    "scores without the tool, section or skill are surely better",
)
PARTS_OPEN = Statement[Sequence[Claim]](
    "this run cannot tell what leaving out these {parts} changes",
    "no score without the tool, section or skill is surely worse or better",
    _none_is_sure,
    "first",
)
WHERE_CALLED = Statement[Claim](
    "only the questions in which {of} called the tool (chosen by the data)",
    "an arm lacks a tool that the whole arm called for some questions",
    lambda claim: claim.effect.where_called is not None and claim.effect.where_called.difference is not None,
    "first",
)
PARTS_NOT_MISSED = Statement[Sequence[Claim]](
    "This run cannot tell what leaving out {parts} changes.", PARTS_OPEN.when, PARTS_OPEN.holds
)


def least_seen(claim: Claim) -> str:
    """Return the difference that such a run would see."""
    return f"{number(claim.effect.mde or 0.0)}{claim.unit}"


def word(claim: Claim) -> str:
    """Return the verdict on a claim in a word or two."""
    return next(said(each, claim) for each in _VERDICTS if each.holds(claim))


def said(statement: Statement[Claim], claim: Claim) -> str:
    """Return what a statement says of a claim: its margin, or how many questions there are."""
    every = "the only question" if claim.effect.n == 1 else f"all {claim.effect.n:,} questions"
    least = f"{short_number(claim.scale.least, 2)}{claim.unit}"
    return statement.says.format(least, questions=every, margin=claim.margin)


# The first that holds is said, and one always does: what changed nothing has no other verdict.
_VERDICTS = (
    *(UNCHANGED, BETTER, WORSE, INTERIM, NO_DIFFERENCE, CANNOT_TELL),
    *(ONE_QUESTION, NO_INTERVAL, TOO_EARLY, NOTHING_SHARED),
)
