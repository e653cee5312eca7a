"""keval's judges: a language model grades answers by rubrics, or compares them, over OpenAI's or Anthropic's API."""

from keval_judges.anthropic_judge import Anthropic
from keval_judges.attack import Attack, attacks
from keval_judges.grader import read_object
from keval_judges.openai_judge import OpenAI
from keval_judges.prompt import fence, fence_code, shown

__all__ = ["Anthropic", "Attack", "OpenAI", "attacks", "fence", "fence_code", "read_object", "shown"]
