"""The weather assistant's 14 heuristic metrics, after metrics-assessment.md.

Each is a class whose fields are its options, with the document's values as defaults; `weather/accuracy` in a
configuration is `Accuracy` here.
"""

from keval_metrics_weather.accuracy import Accuracy as Accuracy
from keval_metrics_weather.preferences import KEYS as KEYS, preferences_of as preferences_of
from keval_metrics_weather.reading.places import (
    places_in_answer as places_in_answer,
    places_in_question as places_in_question,
)
