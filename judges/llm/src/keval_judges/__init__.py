"""keval's judges: a language model grades answers by rubrics, or compares them, over OpenAI's or Anthropic's API."""

from keval_judges.attack import attacks
from keval_judges.grader import read_object
from keval_judges.prompt import fence, fence_code, shown

__all__ = ["attacks", "fence", "fence_code", "read_object", "shown"]
