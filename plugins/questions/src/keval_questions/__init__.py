"""Questions for an evaluation, made from the tools of an MCP server: `keval generate`."""

from keval_questions.command import generate

__all__ = ["generate"]
