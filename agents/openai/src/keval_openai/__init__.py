"""keval's plain agent over OpenAI's API: a tool loop and nothing else."""

from keval_openai.agent import OpenAI

__all__ = ["OpenAI"]
