"""What another front end than the command line needs: runs, and the parts of pages that show them.

The names of `keval` and `keval.plugin` are public; these may change in any version, as the layout of pages may.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from keval.config.evaluation import Evaluation
    from keval.config.load import load
    from keval.config.secrets import learn_config
    from keval.config.select import Selection, select
    from keval.errors import PlayError
    from keval.follow import ArmProgress, Follower, RunProgress
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
    from keval.report.differences import is_flat
    from keval.report.figures import counted, interval_of, number, signed
    from keval.report.names import display_names, with_units
    from keval.report.page import FRAGMENTS, Report, answers, lines_of
    from keval.report.page.document import resource
    from keval.report.page.rendering import anchor, embedded, environment
    from keval.report.runs import ListedRun
    from keval.report.terminal import redactor
    from keval.store.run import find_run, list_runs
    from keval.store.watched import LiveState, Pace, TrialInFlight, Trouble, read_live, watch
    from keval.timeline import Lane, Step, Timeline, timelines

_HOMES = {
    "config.evaluation": ("Evaluation",),
    "config.load": ("load",),
    "config.secrets": ("learn_config",),
    "config.select": ("Selection", "select"),
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
    "prices": ("dollars",),
    "store.run": ("find_run", "list_runs"),
    "report.changes": ("word_diff",),
    "report.differences": ("is_flat",),
    "report.figures": ("counted", "interval_of", "number", "signed"),
    "report.terminal": ("redactor",),
    "recording.recording": ("traffic_of",),
    "timeline": ("Lane", "Step", "Timeline", "timelines"),
    "store.watched": ("LiveState", "Pace", "TrialInFlight", "Trouble", "read_live", "watch"),
    "follow": ("ArmProgress", "Follower", "RunProgress"),
    "report.runs": ("ListedRun",),
    "report.names": ("display_names", "with_units"),
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
    "Evaluation",
    "Follower",
    "KeptSample",
    "Lane",
    "ListedRun",
    "LiveState",
    "Pace",
    "Play",
    "PlayError",
    "Question",
    "Report",
    "RunProgress",
    "Selection",
    "Standings",
    "Step",
    "Timeline",
    "TrialInFlight",
    "Trouble",
    "anchor",
    "answers",
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
    "number",
    "read_live",
    "redactor",
    "resource",
    "select",
    "signed",
    "timelines",
    "traffic_of",
    "watch",
    "with_units",
    "word_diff",
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
