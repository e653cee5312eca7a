"""keval measures what a context does for an AI agent.

This module has what the author of a metric needs, and what reads a run: `from keval import Score, Trial`, or
`keval.open_run("latest")`. What other plugins need besides is in `keval.plugin`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from keval.errors import KevalError, RunError
    from keval.manifest import Manifest
    from keval.records import Attempt, Failure, Message, Sample, ToolCall, Transcript, Trial, Usage
    from keval.scores import Judgement, Rubric, Scale, Score, ScoreLine
    from keval.scripting import evaluate
    from keval.session import Session
    from keval.store.run import Run, open_run
    from keval.summary import Summary

    __version__: str

__all__ = [
    "Attempt",
    "Failure",
    "Judgement",
    "KevalError",
    "Manifest",
    "Message",
    "Rubric",
    "Run",
    "RunError",
    "Sample",
    "Scale",
    "Score",
    "ScoreLine",
    "Session",
    "Summary",
    "ToolCall",
    "Transcript",
    "Trial",
    "Usage",
    "__version__",
    "evaluate",
    "open_run",
]

_HOMES = {
    **dict.fromkeys(("Attempt", "Failure", "Message", "Sample", "ToolCall", "Transcript", "Trial", "Usage"), "records"),
    **dict.fromkeys(("Judgement", "Rubric", "Scale", "Score", "ScoreLine"), "scores"),
    **dict.fromkeys(("KevalError", "RunError"), "errors"),
    **dict.fromkeys(("Run", "open_run"), "store.run"),
    "Manifest": "manifest",
    "Session": "session",
    "Summary": "summary",
    "evaluate": "scripting",
}


def __getattr__(name: str) -> Any:
    # Names are imported when first used: the command line's start must not pay for them.
    if name == "__version__":
        from importlib.metadata import version

        return version("keval")
    if name not in _HOMES:
        raise AttributeError(f"module 'keval' has no attribute {name!r}")
    globals()[name] = getattr(import_module(f"keval.{_HOMES[name]}"), name)
    return globals()[name]


def __dir__() -> list[str]:
    return sorted(__all__)
