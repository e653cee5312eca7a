"""keval's plain agent over Anthropic's API: a tool loop and nothing else."""

from keval_anthropic.agent import Anthropic

__all__ = ["Anthropic"]
