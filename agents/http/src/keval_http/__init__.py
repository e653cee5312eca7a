"""Agents that answer over HTTP."""

from keval_http.agent import Http

__all__ = ["Http"]
