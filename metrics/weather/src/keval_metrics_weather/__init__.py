"""The weather assistant's 14 heuristic metrics, after metrics-assessment.md.

Each is a class whose fields are its options, with the document's values as defaults; `weather/accuracy` in a
configuration is `Accuracy` here.
"""

from keval import lazily

__getattr__, __dir__, __all__ = lazily(
    __name__,
    {
        "keval_metrics_weather.accuracy": "Accuracy",
        "keval_metrics_weather.behaviour": "AmbiguityHandling Repeatability",
        "keval_metrics_weather.experience": "Debuggability ImplementationEffort IntegrationSimplicity",
        "keval_metrics_weather.helpfulness": "AdaptationQuality RecommendationQuality TaskCompletion",
        "keval_metrics_weather.preferences": "KEYS preferences_of",
        "keval_metrics_weather.reading.places": "places_in_answer places_in_question",
        "keval_metrics_weather.retention": "ContextRetention",
        "keval_metrics_weather.tool_use": "ActionPlanning ErrorRecovery ResponseTime ToolCallCount",
    },
)
