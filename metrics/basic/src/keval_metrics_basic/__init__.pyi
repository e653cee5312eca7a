"""Generic metrics, for every agent and domain: text, structure, tool calls, time and tokens.

Each is a class whose fields are its options; `basic/equals` in a configuration is `Equals` here. Text metrics hold the
answer against an option, else against a place in the sample; without either they leave it unscored.
"""

from keval_metrics_basic.answers import Contains as Contains
from keval_metrics_basic.facts import (
    Fact as Fact,
    comparable as comparable,
    facts_in as facts_in,
    unfenced as unfenced,
)
from keval_metrics_basic.json_schema import compiled as compiled, time_limit as time_limit
