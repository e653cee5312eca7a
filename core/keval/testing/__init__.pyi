"""What the plugins of keval must pass, for anyone's plugins: a check for each seam, and what tests need besides."""

from keval.testing.agent_kit import check_agent as check_agent
from keval.testing.agent_rules import AGENT_RULES as AGENT_RULES, broken_by as broken_by
from keval.testing.agent_stage import AgentStage as AgentStage
from keval.testing.broken_rules import BrokenRule as BrokenRule, BrokenRulesError as BrokenRulesError
from keval.testing.scripted_model import (
    ScriptedModel as ScriptedModel,
    calls_tools as calls_tools,
    refuses as refuses,
    says as says,
)
