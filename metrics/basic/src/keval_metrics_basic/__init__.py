"""Generic metrics, for every agent and domain: text, structure, tool calls, time and tokens.

Each is a class whose fields are its options; `basic/equals` in a configuration is `Equals` here. Text metrics hold the
answer against an option, else against a place in the sample; without either they leave it unscored.
"""

from keval import lazily

__getattr__, __dir__, __all__ = lazily(
    __name__,
    {
        "keval_metrics_basic.answers": "Contains",
        "keval_metrics_basic.facts": "Fact comparable facts_in unfenced",
        "keval_metrics_basic.json_schema": "compiled time_limit",
    },
)
