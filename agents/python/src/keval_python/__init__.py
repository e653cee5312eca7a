"""Agents that are functions in Python."""

from keval_python.agent import Python

__all__ = ["Python"]
