"""What a report may say beside effects on scores: of costs, of how agents differ and of the run itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import attrs

from keval.records.formats import counted
from keval_analysis.findings.anchors import JudgeDrift
from keval_analysis.findings.effects import SURE, Effect, Interaction, Ratio
from keval_analysis.findings.summary import Summary
from keval_report import claims
from keval_report.claims import INTERIM, Statement
from keval_report.words import joined


@attrs.frozen
class Difference:
    """How a condition's effect differs between two agents, with the scale that it is on."""

    found: Interaction
    better: Literal["higher", "lower"]
    unfinished: bool = False

    @property
    def is_sure(self) -> bool:
        """Whether the effects surely differ."""
        p = self.found.p_adjusted
        return not self.unfinished and p is not None and p <= SURE

    @property
    def helps_both(self) -> bool:
        """Whether the mean effect is for the better for both agents."""
        sign = -1.0 if self.better == "lower" else 1.0
        effects = (self.found.effect, self.found.against_effect)
        return all(effect is not None and sign * effect > 0 for effect in effects)


def _is_sure_ratio(ratio: Ratio | None) -> bool:
    return ratio is not None and ratio.p_adjusted is not None and ratio.p_adjusted <= SURE


COSTS = Statement[Effect](
    "{who} costs {amounts} more per answer.",
    f"the cost rises, its p that is adjusted among all costs of the kind is at most {SURE:g}, and the run is finished",
    lambda effect: effect.verdict == "worse",
)
SAVES = Statement[Effect](
    "{who} costs {amounts} less per answer.",
    f"the cost falls, its p that is adjusted among all costs of the kind is at most {SURE:g}, and the run is finished",
    lambda effect: effect.verdict == "better",
)
TAKES = Statement[Effect](
    "{who} takes {ratios} per answer.",
    "no answer takes nothing, the p of the ratio that is adjusted among all costs of the kind is at most"
    f" {SURE:g}, and the run is finished",
    lambda effect: effect.verdict != "interim" and _is_sure_ratio(effect.ratio),
)
DOES_MORE = Statement[Difference](
    "{condition} does more for {more} than for {less}",
    "the p of the difference of two agents' effects that is adjusted among all such differences is at most"
    f" {SURE:g}, the run is finished, and the mean effect is for the better for both agents",
    lambda found: found.is_sure and found.helps_both,
)
DIFFERS_BY_AGENT = Statement[Difference](
    "the effect of {condition} differs between agents",
    "the same, but the mean effect is not for the better for both agents",
    lambda found: found.is_sure and not found.helps_both,
)
PRIMARY_WOULD = Statement[Summary](
    "{} comparisons are judged together: a difference that one alone would show in 80 of 100 runs is seen in {}."
    " One metric under `primary:` would see it in {}.",
    "the config names no primary metric, and several metrics are compared",
    lambda summary: summary.family_power is not None,
)
JUDGE_DRIFT = Statement[JudgeDrift](
    "judge drift {drift} on {anchors} since {run}: {rubric} by {judge}{changes}",
    "the 95 % interval over the anchors that both runs have excludes 0",
    lambda drift: drift.is_sure,
    "first",
)
LOOKED_BEFORE = Statement[Summary](
    "looked at before, after {} questions",
    "all trials of the run were there before it was extended",
    lambda summary: summary.looking is not None and bool(summary.looking.before),
    "first",
)
HOLDS = Statement[Summary](
    "intervals hold at every look",
    "the run was looked at before its end, as it may end early, is unfinished or was extended, and no person asks",
    lambda summary: not summary.play and (summary.looking is not None or summary.unfinished),
    "first",
)


STATEMENTS: Mapping[str, Statement[Any]] = {
    name: value for name, value in (*vars(claims).items(), *list(globals().items())) if isinstance(value, Statement)
}
"""Every statement by its name."""


def looks_words(summary: Summary) -> str:
    """Return after how many questions a run was looked at before, and that its intervals hold; empty if it was not."""
    before = summary.looking.before if summary.looking is not None else ()
    looked = LOOKED_BEFORE.says.format(joined(list(map(str, before)))) if LOOKED_BEFORE.holds(summary) else ""
    return "; ".join(filter(None, (looked, HOLDS.says if HOLDS.holds(summary) else "")))


def interim_words(summary: Summary) -> str:
    """Return that a run is unfinished, and how far it has come."""
    done = sum(arm.trials for arm in summary.trials)
    of = f"{done:,} of {counted(summary.planned, 'trial')}" if done < summary.planned else counted(done, "trial")
    return f"{INTERIM.says}, {of}"
