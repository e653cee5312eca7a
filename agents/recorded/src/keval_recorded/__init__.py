"""Answers that already exist, as an agent: they are scored like those of any other, and nobody is asked."""

from keval_recorded.agent import Recorded

__all__ = ["Recorded"]
