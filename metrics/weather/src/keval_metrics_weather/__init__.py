"""The weather assistant's 14 heuristic metrics, after metrics-assessment.md.

Each is a class whose fields are its options, with the document's values as defaults; `weather/accuracy` in a
configuration is `Accuracy` here.
"""

from keval_metrics_weather.accuracy import Accuracy
from keval_metrics_weather.adaptation import AdaptationQuality
from keval_metrics_weather.ambiguity import AmbiguityHandling
from keval_metrics_weather.completion import TaskCompletion
from keval_metrics_weather.efficiency import ResponseTime, ToolCallCount
from keval_metrics_weather.experience import Debuggability, ImplementationEffort, IntegrationSimplicity
from keval_metrics_weather.planning import ActionPlanning
from keval_metrics_weather.recommendations import RecommendationQuality
from keval_metrics_weather.recovery import ErrorRecovery
from keval_metrics_weather.repeatability import Repeatability
from keval_metrics_weather.retention import ContextRetention

__all__ = [
    "Accuracy",
    "ActionPlanning",
    "AdaptationQuality",
    "AmbiguityHandling",
    "ContextRetention",
    "Debuggability",
    "ErrorRecovery",
    "ImplementationEffort",
    "IntegrationSimplicity",
    "RecommendationQuality",
    "Repeatability",
    "ResponseTime",
    "TaskCompletion",
    "ToolCallCount",
]
