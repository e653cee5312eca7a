"""keval's adapter for Claude Code, through the Claude Agent SDK."""

from keval_claude_code.agent import ClaudeCode

__all__ = ["ClaudeCode"]
