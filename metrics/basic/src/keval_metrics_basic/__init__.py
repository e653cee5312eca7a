"""Generic metrics, for every agent and domain: text, structure, tool calls, time and tokens.

Each is a class whose fields are its options; `basic/equals` in a configuration is `Equals` here. Text metrics hold the
answer against an option, else against a place in the sample; without either they leave it unscored.
"""

from keval_metrics_basic.argument_match import ArgumentMatch
from keval_metrics_basic.calls import ExpectedCall
from keval_metrics_basic.contains import Contains
from keval_metrics_basic.equals import Equals
from keval_metrics_basic.json_schema import JsonSchema
from keval_metrics_basic.latency import Latency
from keval_metrics_basic.no_tool_errors import NoToolErrors
from keval_metrics_basic.patterns import Regex
from keval_metrics_basic.similarity import Similarity
from keval_metrics_basic.tokens import Tokens
from keval_metrics_basic.tool_called import ToolCalled
from keval_metrics_basic.tool_choice import ToolChoice
from keval_metrics_basic.tool_sequence import ToolSequence
from keval_metrics_basic.turns import Turns

__all__ = [
    "ArgumentMatch",
    "Contains",
    "Equals",
    "ExpectedCall",
    "JsonSchema",
    "Latency",
    "NoToolErrors",
    "Regex",
    "Similarity",
    "Tokens",
    "ToolCalled",
    "ToolChoice",
    "ToolSequence",
    "Turns",
]
