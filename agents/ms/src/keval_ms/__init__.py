"""keval's adapter for the Microsoft Agent Framework."""

from keval_ms.agent import Ms

__all__ = ["Ms"]
