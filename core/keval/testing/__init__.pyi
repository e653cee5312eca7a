"""What the plugins of keval must pass, for anyone's plugins: a check for each seam, and what tests need besides."""

from keval.testing.agent_kit import check_agent as check_agent
from keval.testing.agent_rules import AGENT_RULES as AGENT_RULES, broken_by as broken_by
from keval.testing.agent_stage import AgentStage as AgentStage
from keval.testing.broken_rules import BrokenRule as BrokenRule, BrokenRulesError as BrokenRulesError
from keval.testing.context_kit import check_context as check_context
from keval.testing.dataset_kit import check_dataset as check_dataset
from keval.testing.echo import Echo as Echo, Words as Words
from keval.testing.executor_kit import check_executor as check_executor
from keval.testing.exporter_kit import check_exporter as check_exporter
from keval.testing.judge_kit import OTHER_ANSWER as OTHER_ANSWER, check_judge as check_judge
from keval.testing.metric_kit import check_metric as check_metric
from keval.testing.odd_trials import failed_trials as failed_trials, odd_trials as odd_trials
from keval.testing.project import CommandOutcome as CommandOutcome, Project as Project
from keval.testing.scripted_model import (
    ScriptedModel as ScriptedModel,
    calls_tools as calls_tools,
    refuses as refuses,
    says as says,
)
from keval.testing.stub_server import stub_server as stub_server
