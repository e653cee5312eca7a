"""Changes: a server as its interventions make it for agents. The server is told nothing of them."""

from keval_mcp.changes.changes import CallOutcome, Changes, Send, TrialChanges

__all__ = ["CallOutcome", "Changes", "Send", "TrialChanges"]
