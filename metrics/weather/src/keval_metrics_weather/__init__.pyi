"""The weather assistant's 14 heuristic metrics, after metrics-assessment.md.

Each is a class whose fields are its options, with the document's values as defaults; `weather/accuracy` in a
configuration is `Accuracy` here.
"""

from keval_metrics_weather.accuracy import Accuracy as Accuracy
from keval_metrics_weather.behaviour import AmbiguityHandling as AmbiguityHandling, Repeatability as Repeatability
from keval_metrics_weather.experience import (
    Debuggability as Debuggability,
    ImplementationEffort as ImplementationEffort,
    IntegrationSimplicity as IntegrationSimplicity,
)
from keval_metrics_weather.helpfulness import (
    AdaptationQuality as AdaptationQuality,
    RecommendationQuality as RecommendationQuality,
    TaskCompletion as TaskCompletion,
)
from keval_metrics_weather.preferences import KEYS as KEYS, preferences_of as preferences_of
from keval_metrics_weather.reading.places import (
    places_in_answer as places_in_answer,
    places_in_question as places_in_question,
)
from keval_metrics_weather.retention import ContextRetention as ContextRetention
from keval_metrics_weather.tool_use import (
    ActionPlanning as ActionPlanning,
    ErrorRecovery as ErrorRecovery,
    ResponseTime as ResponseTime,
    ToolCallCount as ToolCallCount,
)
