"""keval's plain agent over the OpenAI SDK: a tool loop and nothing else."""

from keval_openai.agent import OpenAI

__all__ = ["OpenAI"]
