"""What plugins must pass, for anyone's plugins, and what their tests need besides."""

from keval_testing.agent_kit import check_agent as check_agent
from keval_testing.context_kit import check_context as check_context
from keval_testing.echo import Echo as Echo
from keval_testing.judge_kit import check_judge as check_judge
from keval_testing.metric_kit import check_metric as check_metric
from keval_testing.project import Project as Project
from keval_testing.scripted_model import (
    ScriptedModel as ScriptedModel,
    calls_tools as calls_tools,
    refuses as refuses,
    says as says,
)
from keval_testing.stubs import stub_server as stub_server
from keval_testing.subject import BrokenRulesError as BrokenRulesError
from keval_testing.unusual_trials import odd_trials as odd_trials
