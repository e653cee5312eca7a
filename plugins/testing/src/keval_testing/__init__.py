"""What plugins must pass, for anyone's plugins, and what their tests need besides."""

from keval import lazily

__getattr__, __dir__, __all__ = lazily(
    __name__,
    {
        "keval_testing.agent_kit": "check_agent",
        "keval_testing.subject": "BrokenRulesError",
        "keval_testing.context_kit": "check_context",
        "keval_testing.echo": "Echo",
        "keval_testing.judge_kit": "check_judge",
        "keval_testing.metric_kit": "check_metric",
        "keval_testing.project": "Project",
        "keval_testing.scripted_model": "ScriptedModel calls_tools refuses says",
        "keval_testing.stubs": "stub_server",
        "keval_testing.unusual_trials": "odd_trials",
    },
)
