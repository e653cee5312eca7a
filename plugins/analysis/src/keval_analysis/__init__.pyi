"""From scores to findings: statistics, effects, comparisons, gates, power. Imported when asked for."""

from keval_analysis.claims import UnverifiedClaim as UnverifiedClaim, unverified_claims as unverified_claims
from keval_analysis.comparison import (
    ArmComparison as ArmComparison,
    Comparison as Comparison,
    RunArm as RunArm,
    RunArms as RunArms,
    SampleChange as SampleChange,
    SampleScores as SampleScores,
    arms_of as arms_of,
    compare_arms as compare_arms,
    compare_runs as compare_runs,
)
from keval_analysis.composition import (
    Difference as Difference,
    PartChange as PartChange,
    used_contexts as used_contexts,
    what_differs as what_differs,
)
from keval_analysis.expectations import ExpectationCheck as ExpectationCheck
from keval_analysis.findings.anchors import (
    ANCHOR_SCORES as ANCHOR_SCORES,
    AnchorFindings as AnchorFindings,
    JudgeDrift as JudgeDrift,
)
from keval_analysis.findings.cost import Cost as Cost
from keval_analysis.findings.draws import Draw as Draw, draws_file as draws_file, read_draw as read_draw
from keval_analysis.findings.effects import (
    SURE as SURE,
    Arm as Arm,
    ArmAverage as ArmAverage,
    AverageDifference as AverageDifference,
    Averages as Averages,
    Contrast as Contrast,
    Effect as Effect,
    Interaction as Interaction,
    Ratio as Ratio,
    Repetitions as Repetitions,
    Verdict as Verdict,
    WinRate as WinRate,
    better_share as better_share,
    is_flat as is_flat,
)
from keval_analysis.findings.formats import (
    EXPENSE_UNITS as EXPENSE_UNITS,
    aligned as aligned,
    chance as chance,
    decimals as decimals,
    decimals_of as decimals_of,
    expense as expense,
    expense_interval as expense_interval,
    interval_of as interval_of,
    percent_interval as percent_interval,
    times_as_much as times_as_much,
    token_count as token_count,
)
from keval_analysis.findings.reviews import (
    LONGEST_NAME as LONGEST_NAME,
    LONGEST_NOTE as LONGEST_NOTE,
    ArmBias as ArmBias,
    Chosen as Chosen,
    CorrectedEffect as CorrectedEffect,
    DrawnArm as DrawnArm,
    JudgeAgreementWithPeople as JudgeAgreementWithPeople,
    PeopleAgreement as PeopleAgreement,
    Review as Review,
    ReviewFindings as ReviewFindings,
    ThumbScores as ThumbScores,
    answer_digest as answer_digest,
    read_review as read_review,
)
from keval_analysis.findings.summary import (
    Activation as Activation,
    Agreement as Agreement,
    ArmScore as ArmScore,
    ArmTrials as ArmTrials,
    GateResult as GateResult,
    GateVerdict as GateVerdict,
    JudgeSpread as JudgeSpread,
    JudgingTotal as JudgingTotal,
    ScoreByReading as ScoreByReading,
    ScorerScale as ScorerScale,
    Summary as Summary,
    ToolUse as ToolUse,
    UnmetExpectation as UnmetExpectation,
    UsageTotal as UsageTotal,
)
from keval_analysis.follow import (
    Follower as Follower,
    RunProgress as RunProgress,
    read_live as read_live,
    watch as watch,
)
from keval_analysis.gate_language import SHARES as SHARES, Names as Names, read_gates as read_gates
from keval_analysis.gates import with_gates as with_gates
from keval_analysis.history.database import key_of as key_of, open_history as open_history
from keval_analysis.history.rows import PLAY as PLAY, UNFINISHED as UNFINISHED
from keval_analysis.history.trends import (
    Trend as Trend,
    TrendChoice as TrendChoice,
    TrendPoint as TrendPoint,
    TrendRun as TrendRun,
    TrendSeries as TrendSeries,
    evaluations_of as evaluations_of,
    run_before as run_before,
    trend_of as trend_of,
)
from keval_analysis.label_planning import (
    CORRELATIONS as CORRELATIONS,
    ExpectedWidth as ExpectedWidth,
    LabelPlan as LabelPlan,
    plan_labels as plan_labels,
)
from keval_analysis.labels.anchors import (
    anchors_file as anchors_file,
    is_anchor as is_anchor,
    read_anchor as read_anchor,
    read_anchor_scores as read_anchor_scores,
)
from keval_analysis.labels.drawing import draw_answers as draw_answers
from keval_analysis.listings import (
    ListingChange as ListingChange,
    listing_changes as listing_changes,
    renamed_by as renamed_by,
)
from keval_analysis.live_state import LiveState as LiveState
from keval_analysis.neighbours import asked_samples as asked_samples, beside as beside, trials_of as trials_of
from keval_analysis.options import (
    GateFlags as GateFlags,
    gate_options as gate_options,
    with_more_gates as with_more_gates,
)
from keval_analysis.outline import (
    ArmKey as ArmKey,
    Outline as Outline,
    OutlineQuestion as OutlineQuestion,
    read_outline as read_outline,
    summarise_with_outline as summarise_with_outline,
)
from keval_analysis.power import (
    ASSUMPTIONS as ASSUMPTIONS,
    Forecast as Forecast,
    MetricPower as MetricPower,
    Pilot as Pilot,
    PowerPlan as PowerPlan,
    PowerTarget as PowerTarget,
    plan_power as plan_power,
)
from keval_analysis.question_comparisons import (
    QuestionComparison as QuestionComparison,
    Tile as Tile,
    compare as compare,
)
from keval_analysis.question_review import QuestionEntry as QuestionEntry, QuestionFile as QuestionFile
from keval_analysis.readings import kept_parts as kept_parts
from keval_analysis.reviews import review_findings as review_findings
from keval_analysis.scorer_names import named_scorers as named_scorers
from keval_analysis.sections import Wanted as Wanted
from keval_analysis.stats.contrasts import contrasts_of as contrasts_of
from keval_analysis.stats.intervals import Values as Values, mean_intervals as mean_intervals
from keval_analysis.stats.paired import Differences as Differences, Rule as Rule, paired_effects as paired_effects
from keval_analysis.stats.pairs import Kind as Kind
from keval_analysis.stats.summarise import Summariser as Summariser
from keval_analysis.timeline import Lane as Lane, Step as Step, Timeline as Timeline, timelines as timelines
from keval_analysis.variation import mixed_words as mixed_words
