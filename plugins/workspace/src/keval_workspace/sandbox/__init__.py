"""Sandboxes, which shut the program of an agent in its workspace, its home, and the way to keval."""

from __future__ import annotations

from typing import Literal

from keval_workspace.sandbox.bubblewrap import Bubblewrap, BubblewrapOptions
from keval_workspace.sandbox.prefix import CommandSandbox, Prefix

__all__ = ["BubblewrapOptions", "CommandSandbox", "sandbox_of"]


def sandbox_of(
    option: Literal["none", "bubblewrap"] | CommandSandbox | BubblewrapOptions,
) -> Bubblewrap | Prefix | None:
    """Return the sandbox that a config asks for, or `None` for `none`."""
    match option:
        case "none":
            return None
        case "bubblewrap":
            return Bubblewrap()
        case BubblewrapOptions(bubblewrap=bubblewrap):
            return bubblewrap
        case CommandSandbox(command=words):
            return Prefix(words)
