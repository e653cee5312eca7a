"""Generic metrics, for every agent and domain: text, structure, tool calls, time and tokens.

Each is a class whose fields are its options; `basic/equals` in a configuration is `Equals` here. Text metrics hold the
answer against an option, else against a place in the sample; without either they leave it unscored.
"""

from keval_metrics_basic.answers import Contains as Contains, Equals as Equals, Regex as Regex, Similarity as Similarity
from keval_metrics_basic.calls import ExpectedCall as ExpectedCall
from keval_metrics_basic.json_schema import JsonSchema as JsonSchema, compiled as compiled, time_limit as time_limit
from keval_metrics_basic.resources import Latency as Latency, Tokens as Tokens, Turns as Turns
from keval_metrics_basic.tools import (
    ArgumentMatch as ArgumentMatch,
    NoToolErrors as NoToolErrors,
    ToolCalled as ToolCalled,
    ToolChoice as ToolChoice,
    ToolSequence as ToolSequence,
)
