"""How the columns of a play stand: means with intervals, and how each differs from one of them."""

from __future__ import annotations

from keval.play.records import Column, Standings
from keval.records.effects import Arm
from keval.records.summary import ScorerScale
from keval.run.interactive import InteractiveRun


def standings_of(run: InteractiveRun, questions: int, against: Column | None) -> Standings:
    """Return how the columns stand after so many questions, and how the others differ from the column `against`.

    Columns that were asked nothing are left out of the differences.
    """
    manifest, found = run.manifest, ((), ())
    if against is not None:
        found = run.differences(Arm(against.agent, against.condition, manifest.run))
    return Standings(
        questions,
        None if against is None else against.id,
        tuple(ScorerScale(entry.metric, entry.judge, entry.scale) for entry in manifest.scorers),
        run.arm_scores(),
        run.arm_trials(),
        *found,
    )
