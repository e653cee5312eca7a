"""keval's judges: a language model grades answers by rubrics, over the OpenAI or the Anthropic SDK."""

from keval_judges.anthropic_judge import Anthropic
from keval_judges.attack import Attack, attacks
from keval_judges.openai_judge import OpenAI

__all__ = ["Anthropic", "Attack", "OpenAI", "attacks"]
