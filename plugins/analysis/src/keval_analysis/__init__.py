"""From scores to findings: statistics, effects, comparisons, gates, power. Imported when asked for."""

from keval import lazily

__getattr__, __dir__, __all__ = lazily(__name__, {"keval_analysis.findings.summary": "ArmScore ArmTrials GateResult"})
