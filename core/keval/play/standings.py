"""How the columns of a play stand: means with intervals, and how each differs from one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from keval.effects import Arm
from keval.play.records import Column, Standings
from keval.play.writing import PlayRun

if TYPE_CHECKING:
    from keval.stats.effects import Kind  # imports NumPy

__all__ = ["standings_of"]


def standings_of(run: PlayRun, questions: int, against: Column | None) -> Standings:
    """Return how the columns stand after so many questions, and how the others differ from the column `against`.

    The figures are those of a report: questions are the unit, differences are paired by question, and their p is
    adjusted for how many there are. Columns that were asked nothing are left out.
    """
    summary = run.summary()
    if against is None:
        return Standings(questions, None, summary)
    reference = Arm(against.agent, against.condition, run.manifest.run)
    asked = [Arm(arm.agent, arm.condition, reference.run) for arm in summary.trials if arm.trials]
    if reference not in asked:
        return Standings(questions, against.id, summary)
    pairs: list[tuple[Kind, Arm, Arm]] = [
        ("condition" if arm.agent == reference.agent else "agent", arm, reference) for arm in asked if arm != reference
    ]
    findings = run.summariser.findings()
    return Standings(questions, against.id, summary, findings.between(pairs), findings.spent(pairs))
