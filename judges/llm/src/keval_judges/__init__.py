"""keval's judges: a language model grades answers by rubrics, over OpenAI's or Anthropic's API."""

from keval_judges.anthropic_judge import Anthropic
from keval_judges.attack import Attack, attacks
from keval_judges.openai_judge import OpenAI

__all__ = ["Anthropic", "Attack", "OpenAI", "attacks"]
