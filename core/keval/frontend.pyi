"""What another front end than the command line needs: runs, and the parts of pages that show them.

The names of `keval` and `keval.plugin` are public; these may change in any version, as the layout of pages may.
"""

from keval.analysis.comparison import (
    ArmComparison as ArmComparison,
    Comparison as Comparison,
    RunArm as RunArm,
    SampleScores as SampleScores,
    arms_of as arms_of,
    compare_arms as compare_arms,
    compare_runs as compare_runs,
)
from keval.analysis.follow import (
    ArmProgress as ArmProgress,
    Follower as Follower,
    RunProgress as RunProgress,
)
from keval.analysis.reviews import review_findings as review_findings
from keval.analysis.timeline import Lane as Lane, Step as Step, Timeline as Timeline, timelines as timelines
from keval.cli.options import (
    budget_option as budget_option,
    choice_options as choice_options,
    results_option as results_option,
)
from keval.recording.recording import traffic_of as traffic_of
from keval.records.prices import dollars as dollars
from keval.records.reviews import (
    LONGEST_NAME as LONGEST_NAME,
    LONGEST_NOTE as LONGEST_NOTE,
    Chosen as Chosen,
    Review as Review,
    answer_digest as answer_digest,
)
from keval.records.scores import Mark as Mark, marks_of as marks_of
from keval.report.contexts import word_diff as word_diff
from keval.report.figures import (
    better_share as better_share,
    counted as counted,
    display_names as display_names,
    interval_of as interval_of,
    is_flat as is_flat,
    number as number,
    signed as signed,
    time_span as time_span,
    with_units as with_units,
)
from keval.report.page import (
    FRAGMENTS as FRAGMENTS,
    Report as Report,
    answers as answers,
    lines_of as lines_of,
)
from keval.report.page.arm_pairs import (
    arm_effects as arm_effects,
    arm_name as arm_name,
    ranked_scores as ranked_scores,
    run_effects as run_effects,
    scatter as scatter,
)
from keval.report.page.comparisons import Tile as Tile
from keval.report.page.document import resource as resource
from keval.report.page.making import arm_differences as arm_differences
from keval.report.page.rendering import anchor as anchor, embedded as embedded, environment as environment
from keval.report.runs import Headline as Headline, ListedRun as ListedRun
from keval.report.terminal import redactor as redactor
from keval.report.totals import total_cost as total_cost
from keval.report.trial_lists import worst_trials as worst_trials
from keval.store.live import (
    LiveState as LiveState,
    Pace as Pace,
    TrialInFlight as TrialInFlight,
    Trouble as Trouble,
    read_live as read_live,
    watch as watch,
)
from keval.store.run import find_run as find_run, list_runs as list_runs
