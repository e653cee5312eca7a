"""The weather assistant's 14 heuristic metrics, after metrics-assessment.md.

Each is a class whose fields are its options, with the document's values as defaults; `weather/accuracy` in a
configuration is `Accuracy` here.
"""

from keval_metrics_weather.accuracy import Accuracy
from keval_metrics_weather.behaviour import AmbiguityHandling, Repeatability
from keval_metrics_weather.experience import Debuggability, ImplementationEffort, IntegrationSimplicity
from keval_metrics_weather.helpfulness import AdaptationQuality, RecommendationQuality, TaskCompletion
from keval_metrics_weather.retention import ContextRetention
from keval_metrics_weather.tool_use import ActionPlanning, ErrorRecovery, ResponseTime, ToolCallCount

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
