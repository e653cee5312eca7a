"""keval's plain agent over the Anthropic SDK: a tool loop and nothing else."""

from keval_anthropic.agent import Anthropic

__all__ = ["Anthropic"]
