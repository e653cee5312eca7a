"""Instruction files, skills and plugins of coding agents as keval contexts.

`instructions`, `skill` and `plugin` are the context providers. `skill_folder` and `plugin_folder` read and check what
is on disk, `changes` makes the texts that a config asks for, `placing` writes into workspaces, `text_log` finds texts
in model requests, and `server` is the MCP server of the tool `read_skill`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from keval_skills.instructions import Instructions
    from keval_skills.plugin import Plugin
    from keval_skills.skill import Skill

__all__ = ["Instructions", "Plugin", "Skill"]


def __getattr__(name: str) -> Any:
    # Imported when first used: the server's process has no use for the contexts.
    if name not in __all__:
        raise AttributeError(f"module 'keval_skills' has no attribute {name!r}")
    from importlib import import_module

    found = globals()[name] = getattr(import_module(f"keval_skills.{name.lower()}"), name)
    return found
