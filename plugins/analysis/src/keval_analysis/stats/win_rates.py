"""Win rates: how often the answers of an arm were preferred, from the scores of judges that compare."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

import attrs

from keval.records.manifest import Manifest
from keval.records.scores import ScoreLine, Scorer
from keval_analysis.findings.effects import Effect, WinRate
from keval_analysis.findings.summary import ArmScore


def compared_with(manifest: Manifest) -> dict[Scorer, str]:
    """Return by scorer the condition that a judge compares the others with, whose own answers get 0 unasked."""
    found: dict[Scorer, str] = {}
    for entry in manifest.scorers:
        if entry.judge is not None and entry.rubric and manifest.rubrics[entry.rubric].kind == "preference":
            judge = manifest.judges[entry.judge]
            label = str(judge.options.get("against", judge.defaults.get("against", manifest.baseline)))
            found[entry.scorer] = label if label in manifest.conditions else manifest.baseline
    return found


@attrs.define
class Preferences:
    """Counts the comparisons of judges, arm by arm; `_against` is as `compared_with` returns it."""

    _against: Mapping[Scorer, str]
    _counts: dict[tuple[str, str, Scorer], Counter[float]] = attrs.field(factory=dict, init=False)

    def add(self, line: ScoreLine) -> None:
        """Count a score, if it is a preference."""
        against, value = self._against.get(line.scorer), line.score.value
        if against not in (None, line.condition) and value is not None:
            self._counts.setdefault((line.agent, line.condition, line.scorer), Counter())[value] += 1

    def win_rates(self, arms: Iterable[ArmScore], effects: Iterable[Effect]) -> Iterator[WinRate]:
        """Yield the win rate of each arm that was compared.

        Mean and interval are those of the arm's effect, as far as its verdict is about the same two arms.
        """
        # A judge may compare with another condition than the baseline, whose effect has the two the other way round.
        decided = {
            (each.agent, each.condition, each.scorer): each
            for effect in effects
            for each in (effect, _mirrored(effect))
            if each.kind == "condition" and each.against.condition == self._against.get(each.scorer)
        }
        for arm in arms:
            key = (arm.agent, arm.condition, arm.scorer)
            counts, effect = self._counts.get(key), decided.get(key)
            mean = arm.mean if effect is None else effect.difference
            if counts is None or mean is None:
                continue
            found = arm if effect is None else effect
            yield WinRate(
                *arm.scorer,
                agent=arm.agent,
                condition=arm.condition,
                against=self._against[arm.scorer],
                n=found.n,
                rate=_rate(mean),
                ci_low=None if found.ci_low is None else _rate(found.ci_low),
                ci_high=None if found.ci_high is None else _rate(found.ci_high),
                wins=counts[1.0],
                ties=counts[0.0],
                losses=counts[-1.0],
            )


def _mirrored(effect: Effect) -> Effect:
    """Return the effect of the other condition, against the one that an effect is of."""
    difference, low, high = (
        None if each is None else -each for each in (effect.difference, effect.ci_high, effect.ci_low)
    )
    against = attrs.evolve(effect.against, condition=effect.condition)
    condition = effect.against.condition
    return attrs.evolve(effect, condition=condition, against=against, difference=difference, ci_low=low, ci_high=high)


def _rate(preference: float) -> float:
    """Return a mean preference as the share of comparisons that are won, ties as halves."""
    return min(1.0, max(0.0, (1 + preference) / 2))
