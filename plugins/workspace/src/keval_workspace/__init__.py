"""Workspaces for agents that work in a folder, and sandboxes that shut them in."""
