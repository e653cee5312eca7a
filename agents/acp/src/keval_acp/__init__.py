"""keval's adapter for coding agents that speak the Agent Client Protocol."""

from keval_acp.agent import Acp

__all__ = ["Acp"]
