"""Sandboxes, which shut the program of an agent in its workspace, its home, and the way to keval."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from keval.errors import PreflightError
from keval_workspace.sandbox.bubblewrap import Bubblewrap, BubblewrapOptions
from keval_workspace.sandbox.prefix import CommandSandbox, Prefix, docker_problem

__all__ = ["BubblewrapOptions", "CommandSandbox", "sandbox_of", "tried_out"]


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


async def tried_out() -> Mapping[str, str | None]:
    """Return the sandboxes that this machine may have, each with what keeps it from working, or `None`."""
    bubblewrap = None
    try:
        await Bubblewrap().prepare()
    except PreflightError as error:
        bubblewrap = str(error)
    return {"bubblewrap": bubblewrap, "docker": await docker_problem()}
