"""What the plugins of keval must pass, for anyone's plugins: a check for each seam, and what tests need besides."""

from keval.testing.broken_rules import BrokenRule as BrokenRule, BrokenRulesError as BrokenRulesError
from keval.testing.metric_kit import check_metric as check_metric
