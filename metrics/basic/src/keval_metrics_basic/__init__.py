"""Generic metrics, for every agent and domain: text, structure, tool calls, time and tokens.

Each is a class whose fields are its options; `basic/equals` in a configuration is `Equals` here. Text metrics hold the
answer against an option, else against a place in the sample; without either they leave it unscored.
"""

from keval_metrics_basic.answers import Contains, Equals, Regex, Similarity
from keval_metrics_basic.calls import ExpectedCall
from keval_metrics_basic.json_schema import JsonSchema
from keval_metrics_basic.resources import Latency, Tokens, Turns
from keval_metrics_basic.tools import ArgumentMatch, NoToolErrors, ToolCalled, ToolChoice, ToolSequence

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
