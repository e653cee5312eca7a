"""keval measures what a context does for an AI agent.

What a plugin author needs is importable from here: `from keval import Score, Trial` writes a metric.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from keval.contexts import CallLog, Context, McpServer, ToolOffer
    from keval.errors import (
        ConfigError,
        KevalError,
        ModelError,
        PluginError,
        PreflightError,
        Problem,
        ServerLostError,
        ToolsMissingError,
        TrialError,
    )
    from keval.hookspecs import hookimpl
    from keval.interfaces import (
        Agent,
        Closable,
        ContextProvider,
        ContextSource,
        Judge,
        Limited,
        Metric,
        ModelProvider,
        Preparable,
        Recording,
    )
    from keval.judging import JudgementRecorder, Judging
    from keval.models import Endpoint, Model, Wire
    from keval.recorder import Recorder
    from keval.records import Characteristics, Failure, Message, Sample, ToolCall, Transcript, Trial, Usage
    from keval.retry_after import retry_after_seconds
    from keval.rubrics import read_rubric
    from keval.scores import Judgement, Rubric, Scale, Score, ScoreLine

__all__ = [
    "Agent",
    "CallLog",
    "Characteristics",
    "Closable",
    "ConfigError",
    "Context",
    "ContextProvider",
    "ContextSource",
    "Endpoint",
    "Failure",
    "Judge",
    "Judgement",
    "JudgementRecorder",
    "Judging",
    "KevalError",
    "Limited",
    "McpServer",
    "Message",
    "Metric",
    "Model",
    "ModelError",
    "ModelProvider",
    "PluginError",
    "PreflightError",
    "Preparable",
    "Problem",
    "Recorder",
    "Recording",
    "Rubric",
    "Sample",
    "Scale",
    "Score",
    "ScoreLine",
    "ServerLostError",
    "ToolCall",
    "ToolOffer",
    "ToolsMissingError",
    "Transcript",
    "Trial",
    "TrialError",
    "Usage",
    "Wire",
    "hookimpl",
    "read_rubric",
    "retry_after_seconds",
]

_HOMES = (
    *("records", "errors", "scores", "hookspecs", "recorder", "models", "contexts", "judging", "interfaces"),
    *("retry_after", "rubrics"),
)


def __getattr__(name: str) -> Any:
    # Names are imported when first used: the command line's start must not pay for them.
    if name in __all__:
        for home in _HOMES:
            module = import_module(f"keval.{home}")
            if name in module.__all__:
                globals()[name] = getattr(module, name)
                return globals()[name]
    raise AttributeError(f"module 'keval' has no attribute {name!r}")
