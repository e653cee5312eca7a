"""What another front end than the command line needs: runs, and the parts of pages that show them.

The names of `keval` and `keval.plugin` are public; these may change in any version, as the layout of pages may.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from keval.arm_comparison import ArmComparison, RunArm, SampleScores, arms_of, compare_arms
    from keval.cli.options import budget_option, choice_options, results_option
    from keval.compare import Comparison, compare_runs
    from keval.config.evaluation import Evaluation
    from keval.config.load import load
    from keval.config.secrets import learn_config
    from keval.config.select import Selection, select
    from keval.errors import PlayError
    from keval.follow import ArmProgress, Follower, RunProgress
    from keval.marks import Mark, marks_of
    from keval.play import (
        Answer,
        Asked,
        Column,
        Edit,
        EditableCondition,
        EditableTool,
        KeptSample,
        Play,
        Question,
        Standings,
    )
    from keval.prices import dollars
    from keval.recording.recording import traffic_of
    from keval.report.changes import word_diff
    from keval.report.differences import better_share, is_flat
    from keval.report.figures import counted, interval_of, number, signed
    from keval.report.names import display_names, with_units
    from keval.report.page import FRAGMENTS, Report, answers, lines_of
    from keval.report.page.arm_pairs import arm_effects, arm_name, ranked_scores, run_effects, scatter
    from keval.report.page.comparisons import Tile
    from keval.report.page.document import resource
    from keval.report.page.making import arm_differences
    from keval.report.page.rendering import anchor, embedded, environment
    from keval.report.runs import Headline, ListedRun
    from keval.report.terminal import redactor
    from keval.report.time_spans import time_span
    from keval.report.totals import total_cost
    from keval.report.worst import worst_trials
    from keval.reviews import LONGEST_NAME, LONGEST_NOTE, Chosen, Review, answer_digest
    from keval.store.reviewed import review_findings
    from keval.store.run import find_run, list_runs
    from keval.store.watched import LiveState, Pace, TrialInFlight, Trouble, read_live, watch
    from keval.timeline import Lane, Step, Timeline, timelines

_HOMES = {
    "arm_comparison": (
        "ArmComparison",
        "RunArm",
        "SampleScores",
        "arms_of",
        "compare_arms",
    ),
    "cli.options": (
        "budget_option",
        "choice_options",
        "results_option",
    ),
    "compare": (
        "Comparison",
        "compare_runs",
    ),
    "config.evaluation": ("Evaluation",),
    "config.load": ("load",),
    "config.secrets": ("learn_config",),
    "config.select": (
        "Selection",
        "select",
    ),
    "errors": ("PlayError",),
    "follow": (
        "ArmProgress",
        "Follower",
        "RunProgress",
    ),
    "marks": (
        "Mark",
        "marks_of",
    ),
    "play": (
        "Answer",
        "Asked",
        "Column",
        "Edit",
        "EditableCondition",
        "EditableTool",
        "KeptSample",
        "Play",
        "Question",
        "Standings",
    ),
    "prices": ("dollars",),
    "recording.recording": ("traffic_of",),
    "report.changes": ("word_diff",),
    "report.differences": (
        "better_share",
        "is_flat",
    ),
    "report.figures": (
        "counted",
        "interval_of",
        "number",
        "signed",
    ),
    "report.names": (
        "display_names",
        "with_units",
    ),
    "report.page": (
        "FRAGMENTS",
        "Report",
        "answers",
        "lines_of",
    ),
    "report.page.arm_pairs": (
        "arm_effects",
        "arm_name",
        "ranked_scores",
        "run_effects",
        "scatter",
    ),
    "report.page.comparisons": ("Tile",),
    "report.page.document": ("resource",),
    "report.page.making": ("arm_differences",),
    "report.page.rendering": (
        "anchor",
        "embedded",
        "environment",
    ),
    "report.runs": (
        "Headline",
        "ListedRun",
    ),
    "report.terminal": ("redactor",),
    "report.time_spans": ("time_span",),
    "report.totals": ("total_cost",),
    "report.worst": ("worst_trials",),
    "reviews": (
        "Chosen",
        "LONGEST_NAME",
        "LONGEST_NOTE",
        "Review",
        "answer_digest",
    ),
    "store.reviewed": ("review_findings",),
    "store.run": (
        "find_run",
        "list_runs",
    ),
    "store.watched": (
        "LiveState",
        "Pace",
        "TrialInFlight",
        "Trouble",
        "read_live",
        "watch",
    ),
    "timeline": (
        "Lane",
        "Step",
        "Timeline",
        "timelines",
    ),
}
"""The names by the module that has them."""

__all__ = [
    "FRAGMENTS",
    "LONGEST_NAME",
    "LONGEST_NOTE",
    "Answer",
    "ArmComparison",
    "ArmProgress",
    "Asked",
    "Chosen",
    "Column",
    "Comparison",
    "Edit",
    "EditableCondition",
    "EditableTool",
    "Evaluation",
    "Follower",
    "Headline",
    "KeptSample",
    "Lane",
    "ListedRun",
    "LiveState",
    "Mark",
    "Pace",
    "Play",
    "PlayError",
    "Question",
    "Report",
    "Review",
    "RunArm",
    "RunProgress",
    "SampleScores",
    "Selection",
    "Standings",
    "Step",
    "Tile",
    "Timeline",
    "TrialInFlight",
    "Trouble",
    "anchor",
    "answer_digest",
    "answers",
    "arm_differences",
    "arm_effects",
    "arm_name",
    "arms_of",
    "better_share",
    "budget_option",
    "choice_options",
    "compare_arms",
    "compare_runs",
    "counted",
    "display_names",
    "dollars",
    "embedded",
    "environment",
    "find_run",
    "interval_of",
    "is_flat",
    "learn_config",
    "lines_of",
    "list_runs",
    "load",
    "marks_of",
    "number",
    "ranked_scores",
    "read_live",
    "redactor",
    "resource",
    "results_option",
    "review_findings",
    "run_effects",
    "scatter",
    "select",
    "signed",
    "time_span",
    "timelines",
    "total_cost",
    "traffic_of",
    "watch",
    "with_units",
    "word_diff",
    "worst_trials",
]


def __getattr__(name: str) -> Any:
    # Names are imported when first used: a server starts without what draws a page.
    for home, names in _HOMES.items():
        if name in names:
            globals()[name] = getattr(import_module(f"keval.{home}"), name)
            return globals()[name]
    raise AttributeError(f"module 'keval.frontend' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
