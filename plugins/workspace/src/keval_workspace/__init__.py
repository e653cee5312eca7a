"""Workspaces for agents that work in a folder, and sandboxes that shut them in."""

from keval_workspace.folder import Folder, Git

__all__ = ["Folder", "Git"]
