"""Win rates: how often the answers of an arm were preferred, from the scores of judges that compare."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

import attrs

from keval.findings.effects import Effect, WinRate
from keval.findings.summary import ArmScore
from keval.records.manifest import Manifest
from keval.records.scores import ScoreLine, Scorer


@attrs.define
class Preferences:
    """Counts the comparisons of judges, arm by arm. A trial that no judge was asked about was compared with."""

    _scorers: frozenset[Scorer]
    _against: dict[Scorer, str] = attrs.field(factory=dict, init=False)
    _counts: dict[tuple[str, str, Scorer], Counter[float]] = attrs.field(factory=dict, init=False)

    @classmethod
    def of(cls, manifest: Manifest) -> Preferences:
        """Return an empty count of the comparisons of a run."""
        kinds = {digest: rubric.kind for digest, rubric in manifest.rubrics.items()}
        return cls(frozenset(each.scorer for each in manifest.scorers if kinds.get(each.rubric or "") == "preference"))

    def add(self, line: ScoreLine) -> None:
        """Count a score, if it is a preference."""
        value = line.score.value
        if line.scorer not in self._scorers or value is None or line.judgement is None:
            return
        if line.judgement.model_calls == 0:
            self._against[line.scorer] = line.condition
        else:
            self._counts.setdefault((line.agent, line.condition, line.scorer), Counter())[value] += 1

    def win_rates(self, arms: Iterable[ArmScore], effects: Iterable[Effect]) -> Iterator[WinRate]:
        """Yield the win rate of each arm that was compared.

        Mean and interval are those of the arm's effect, as far as its verdict is about the same two arms.
        """
        decided = {
            (each.agent, each.condition, each.scorer): each
            for each in effects
            if each.kind == "condition" and each.against.condition == self._against.get(each.scorer)
        }
        for arm in arms:
            key = (arm.agent, arm.condition, arm.scorer)
            counts, effect = self._counts.get(key), decided.get(key)
            against, mean = self._against.get(arm.scorer), arm.mean if effect is None else effect.difference
            if counts is None or against is None or mean is None:
                continue
            found = arm if effect is None else effect
            yield WinRate(
                metric=arm.metric,
                judge=arm.judge,
                agent=arm.agent,
                condition=arm.condition,
                against=against,
                n=found.n,
                rate=_rate(mean),
                ci_low=None if found.ci_low is None else _rate(found.ci_low),
                ci_high=None if found.ci_high is None else _rate(found.ci_high),
                wins=counts[1.0],
                ties=counts[0.0],
                losses=counts[-1.0],
            )


def _rate(preference: float) -> float:
    """Return a mean preference as the share of comparisons that are won, ties as halves."""
    return min(1.0, max(0.0, (1 + preference) / 2))
