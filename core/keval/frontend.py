"""What another front end than the command line needs: runs, and the parts of pages that show them.

The names of `keval` and `keval.plugin` are public; these may change in any version, as the layout of pages may.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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
    from keval.report.names import display_names
    from keval.report.page import FRAGMENTS, Report, answers, lines_of
    from keval.report.page.document import resource
    from keval.report.page.rendering import anchor, embedded, environment
    from keval.report.runs import Headline, ListedRun
    from keval.report.time_spans import time_span
    from keval.report.totals import total_cost
    from keval.store.run import find_run, list_runs
    from keval.store.watched import LiveState, Pace, TrialInFlight, Trouble, read_live, watch
    from keval.timeline import Lane, Step, Timeline, timelines

_HOMES = {
    "errors": ("PlayError",),
    "follow": ("ArmProgress", "Follower", "RunProgress"),
    "marks": ("Mark", "marks_of"),
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
    "report.names": ("display_names",),
    "report.page": ("FRAGMENTS", "Report", "answers", "lines_of"),
    "report.page.document": ("resource",),
    "report.page.rendering": ("anchor", "embedded", "environment"),
    "report.runs": ("Headline", "ListedRun"),
    "report.time_spans": ("time_span",),
    "report.totals": ("total_cost",),
    "store.run": ("find_run", "list_runs"),
    "store.watched": ("LiveState", "Pace", "TrialInFlight", "Trouble", "read_live", "watch"),
    "timeline": ("Lane", "Step", "Timeline", "timelines"),
}
"""The names by the module that has them."""

__all__ = [
    "FRAGMENTS",
    "Answer",
    "ArmProgress",
    "Asked",
    "Column",
    "Edit",
    "EditableCondition",
    "EditableTool",
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
    "RunProgress",
    "Standings",
    "Step",
    "Timeline",
    "TrialInFlight",
    "Trouble",
    "anchor",
    "answers",
    "display_names",
    "dollars",
    "embedded",
    "environment",
    "find_run",
    "lines_of",
    "list_runs",
    "marks_of",
    "read_live",
    "resource",
    "time_span",
    "timelines",
    "total_cost",
    "traffic_of",
    "watch",
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
