"""Changes: a server as its interventions make it for agents. The server is told nothing of them."""

from keval_mcp.changes.changes import Changes
from keval_mcp.changes.trial import CallOutcome, Send, TrialChanges

__all__ = ["CallOutcome", "Changes", "Send", "TrialChanges"]
