"""From scores to findings: statistics, effects, comparisons, gates, power. Imported when asked for."""

from keval_analysis.findings.summary import (
    ArmScore as ArmScore,
    ArmTrials as ArmTrials,
    GateResult as GateResult,
)
