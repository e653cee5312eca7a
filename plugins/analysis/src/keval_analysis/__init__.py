"""From scores to findings: statistics, effects, comparisons, gates, power. Imported when asked for."""

from keval import lazily

__getattr__, __dir__, __all__ = lazily(
    __name__,
    {
        "keval_analysis.claims": "UnverifiedClaim unverified_claims",
        "keval_analysis.comparison": (
            "ArmComparison Comparison RunArm RunArms SampleChange SampleScores arms_of compare_arms compare_runs"
        ),
        "keval_analysis.composition": "Difference PartChange used_contexts what_differs",
        "keval_analysis.expectations": "ExpectationCheck",
        "keval_analysis.findings.anchors": "ANCHOR_SCORES AnchorFindings JudgeDrift",
        "keval_analysis.findings.cost": "Cost",
        "keval_analysis.findings.draws": "Draw draws_file read_draw",
        "keval_analysis.findings.effects": (
            "SURE Arm ArmAverage AverageDifference Averages Contrast Effect Interaction Ratio Repetitions Verdict "
            "WinRate better_share is_flat"
        ),
        "keval_analysis.findings.formats": (
            "EXPENSE_UNITS aligned chance decimals decimals_of expense expense_interval interval_of percent_interval "
            "times_as_much token_count"
        ),
        "keval_analysis.findings.reviews": (
            "LONGEST_NAME LONGEST_NOTE ArmBias Chosen CorrectedEffect DrawnArm JudgeAgreementWithPeople "
            "PeopleAgreement Review ReviewFindings ThumbScores answer_digest read_review"
        ),
        "keval_analysis.findings.summary": (
            "Activation Agreement ArmScore ArmTrials GateResult GateVerdict JudgeSpread JudgingTotal ScoreByReading "
            "ScorerScale Summary ToolUse UnmetExpectation UsageTotal"
        ),
        "keval_analysis.follow": "Follower RunProgress read_live watch",
        "keval_analysis.gate_language": "SHARES Names read_gates",
        "keval_analysis.gates": "with_gates",
        "keval_analysis.history.database": "key_of open_history",
        "keval_analysis.history.rows": "PLAY UNFINISHED",
        "keval_analysis.history.trends": (
            "Trend TrendChoice TrendPoint TrendRun TrendSeries evaluations_of run_before trend_of"
        ),
        "keval_analysis.label_planning": "CORRELATIONS ExpectedWidth LabelPlan plan_labels",
        "keval_analysis.labels.anchors": "anchors_file is_anchor read_anchor read_anchor_scores",
        "keval_analysis.labels.drawing": "draw_answers",
        "keval_analysis.listings": "ListingChange listing_changes renamed_by",
        "keval_analysis.live_state": "LiveState",
        "keval_analysis.neighbours": "asked_samples beside trials_of",
        "keval_analysis.options": "GateFlags gate_options with_more_gates",
        "keval_analysis.outline": "ArmKey Outline OutlineQuestion read_outline summarise_with_outline",
        "keval_analysis.power": "ASSUMPTIONS Forecast MetricPower Pilot PowerPlan PowerTarget plan_power",
        "keval_analysis.question_comparisons": "QuestionComparison Tile compare",
        "keval_analysis.question_review": "QuestionEntry QuestionFile",
        "keval_analysis.readings": "kept_parts",
        "keval_analysis.reviews": "review_findings",
        "keval_analysis.scorer_names": "named_scorers",
        "keval_analysis.sections": "Wanted",
        "keval_analysis.stats.contrasts": "contrasts_of",
        "keval_analysis.stats.intervals": "Values mean_intervals",
        "keval_analysis.stats.paired": "Differences Rule paired_effects",
        "keval_analysis.stats.pairs": "Kind",
        "keval_analysis.stats.summarise": "Summariser",
        "keval_analysis.timeline": "Lane Step Timeline timelines",
        "keval_analysis.variation": "mixed_words",
    },
)
