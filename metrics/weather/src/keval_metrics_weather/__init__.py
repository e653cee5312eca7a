"""The weather assistant's 14 heuristic metrics, after metrics-assessment.md.

Each is a class whose fields are its options, with the document's values as defaults; the entry points of the package
say in which module it is.
"""

from keval import lazily

__getattr__, __dir__, __all__ = lazily(
    __name__,
    {
        "keval_metrics_weather.accuracy": "Accuracy",
        "keval_metrics_weather.preferences": "KEYS preferences_of",
        "keval_metrics_weather.reading.places": "places_in_answer places_in_question",
    },
)
