"""The levels that judges give, collected answer by answer, and how far judges agree with each other and themselves."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable
from itertools import combinations
from sys import intern
from typing import TYPE_CHECKING

from keval.records.manifest import ScorerEntry
from keval.records.scores import ScoreLine
from keval_analysis.findings.summary import Agreement, JudgePair, JudgeSpread
from keval_analysis.stats.variance import pooled_sd

if TYPE_CHECKING:
    from keval_analysis.stats.agreement import Row


class JudgeAgreement:
    """Collects the levels that judges give, if several judges or repetitions can be compared."""

    def __init__(self, scorers: Iterable[ScorerEntry]) -> None:
        self._rows: dict[tuple[str, str], dict[str, Row]] = {}
        self._row_of: dict[tuple[str, str], Row] = {}
        self._repetitions = 1
        for scorer in scorers:
            if scorer.judge is not None:
                # A rubric with the same name and another content is another rubric.
                rows = self._rows.setdefault((scorer.metric, scorer.rubric or ""), {})
                self._row_of[scorer.metric, scorer.judge] = rows[scorer.judge] = array("d")
                self._repetitions = max(self._repetitions, scorer.repetitions)
        # Where nothing can be compared, no level is kept.
        self._compares = self._repetitions > 1 or any(len(rows) > 1 for rows in self._rows.values())
        self._trials: dict[str, int] = {}

    def add(self, line: ScoreLine) -> None:
        """Take a judge's score, unless the judge was not asked."""
        if not self._compares or line.judge is None or line.judgement is None or line.score.value is None:
            return
        if line.judgement.model_calls == 0:
            return
        # Scorers have the same ids, and a run many of them: interned, each is one string.
        trial = self._trials.setdefault(intern(line.trial), len(self._trials))
        unit = trial * self._repetitions + line.judgement.repetition - 1
        row = self._row_of[line.metric, line.judge]
        if (lacking := unit + 1 - len(row)) > 0:
            row.extend([math.nan] * lacking)
        row[unit] = line.score.value

    def summary(self) -> tuple[Agreement, ...]:
        """Return the agreement on each rubric that can be compared."""
        if not self._compares:
            return ()
        return tuple(self._agreement(metric, rows) for (metric, _), rows in self._rows.items())

    def _agreement(self, metric: str, rows: dict[str, Row]) -> Agreement:
        from keval_analysis.stats.agreement import pair_kappa, panel_alpha  # NumPy takes a tenth of a second to import

        return Agreement(
            metric,
            tuple(rows),
            *panel_alpha(list(rows.values()), self._repetitions),
            pairs=tuple(
                JudgePair((first, second), *pair_kappa(rows[first], rows[second], self._repetitions))
                for first, second in combinations(rows, 2)
            ),
            spread=tuple(JudgeSpread(judge, *self._spread(row)) for judge, row in rows.items())
            if self._repetitions > 1
            else (),
        )

    def _spread(self, row: Row) -> tuple[int, float | None, str | None]:
        """Return the pooled within-answer standard deviation: each answer's own mean is subtracted first."""
        answers = (row[start : start + self._repetitions] for start in range(0, len(row), self._repetitions))
        known = ([level for level in answer if not math.isnan(level)] for answer in answers)
        graded = [levels for levels in known if len(levels) > 1]
        if not graded:
            return 0, None, "no answer was graded twice"
        means = [math.fsum(levels) / len(levels) for levels in graded]
        squares = [
            math.fsum((level - mean) ** 2 for level in levels) for levels, mean in zip(graded, means, strict=True)
        ]
        return len(graded), pooled_sd([*map(len, graded)], squares), None
