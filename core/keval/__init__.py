"""keval measures what a context does for an AI agent.

What a plugin author needs is importable from here: `from keval import Score, Trial` writes a metric.
"""

from keval.contexts import CallLog, Context, McpServer, ToolOffer
from keval.errors import (
    ConfigError,
    KevalError,
    ModelError,
    PluginError,
    PreflightError,
    ServerLostError,
    ToolsMissingError,
    TrialError,
)
from keval.hookspecs import hookimpl
from keval.interfaces import Agent, Closable, ContextProvider, ContextSource, Judge, Metric, ModelProvider
from keval.models import Endpoint, Model
from keval.recorder import Recorder
from keval.records import (
    Characteristics,
    Failure,
    Message,
    Rubric,
    Sample,
    Scale,
    Score,
    ToolCall,
    Transcript,
    Trial,
    Usage,
)

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
    "KevalError",
    "McpServer",
    "Message",
    "Metric",
    "Model",
    "ModelError",
    "ModelProvider",
    "PluginError",
    "PreflightError",
    "Recorder",
    "Rubric",
    "Sample",
    "Scale",
    "Score",
    "ServerLostError",
    "ToolCall",
    "ToolOffer",
    "ToolsMissingError",
    "Transcript",
    "Trial",
    "TrialError",
    "Usage",
    "hookimpl",
]
