"""How the columns of a play stand: means with intervals, and how each differs from one of them."""

from __future__ import annotations

import attrs

from keval.analysis.stats.effects import (
    Kind,  # NumPy and SciPy are imported before anybody is asked, whose time they would take
)
from keval.play.records import Column, Standings
from keval.play.writing import PlayRun
from keval.records.effects import Arm
from keval.records.summary import ScorerScale


def standings_of(run: PlayRun, questions: int, against: Column | None) -> Standings:
    """Return how the columns stand after so many questions, and how the others differ from the column `against`.

    The figures are those of a report: questions are the unit, differences are paired by question, and their p is
    adjusted for how many there are. Columns that were asked nothing are left out.
    """
    summariser, manifest = run.summariser, run.manifest
    findings, trials = summariser.findings(), summariser.trials()
    scorers = tuple(ScorerScale(entry.metric, entry.judge, entry.scale) for entry in manifest.scorers)
    means = Standings(questions, None if against is None else against.id, scorers, findings.arms(), trials)
    if against is None:
        return means
    reference = Arm(against.agent, against.condition, manifest.run)
    asked = [Arm(arm.agent, arm.condition, manifest.run) for arm in trials if arm.trials]
    if reference not in asked:
        return means
    pairs: list[tuple[Kind, Arm, Arm]] = [
        ("condition" if arm.agent == reference.agent else "agent", arm, reference) for arm in asked if arm != reference
    ]
    return attrs.evolve(means, differences=findings.between(pairs), expenses=findings.spent(pairs))
