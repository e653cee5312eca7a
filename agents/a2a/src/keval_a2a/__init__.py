"""Remote agents that speak A2A."""

from keval_a2a.agent import A2A

__all__ = ["A2A"]
