"""keval's adapter for any program that answers a question on its standard output."""

from keval_command.agent import Command, Session

__all__ = ["Command", "Session"]
