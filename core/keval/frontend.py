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
    from keval.recording.recording import traffic_of
    from keval.report.names import display_names
    from keval.report.page import FRAGMENTS, Report, answers, lines_of
    from keval.report.page.document import resource
    from keval.report.page.rendering import anchor, embedded, environment
    from keval.report.runs import ListedRun
    from keval.store.run import find_run, list_runs
    from keval.store.watched import LiveState, Pace, TrialInFlight, Trouble, read_live, watch
    from keval.timeline import Lane, Step, Timeline, timelines

_HOMES = {
    "errors": ("PlayError",),
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
    "store.run": ("find_run", "list_runs"),
    "recording.recording": ("traffic_of",),
    "marks": ("Mark", "marks_of"),
    "timeline": ("Lane", "Step", "Timeline", "timelines"),
    "store.watched": ("LiveState", "Pace", "TrialInFlight", "Trouble", "read_live", "watch"),
    "follow": ("ArmProgress", "Follower", "RunProgress"),
    "report.runs": ("ListedRun",),
    "report.names": ("display_names",),
    "report.page.rendering": ("anchor", "embedded", "environment"),
    "report.page.document": ("resource",),
    "report.page": ("FRAGMENTS", "Report", "answers", "lines_of"),
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
    "embedded",
    "environment",
    "find_run",
    "lines_of",
    "list_runs",
    "marks_of",
    "read_live",
    "resource",
    "timelines",
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
