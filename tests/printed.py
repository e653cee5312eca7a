"""All that a command prints, to stdout and stderr, as a user's terminal gets it."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping
from typing import Any

from click.testing import CliRunner

from keval.cli import main

__all__ = ["printed"]


def printed(*args: str, env: Mapping[str, str] | None = None) -> tuple[int, str]:
    """Run a command; its exit code and output. Warnings are printed, and click takes nothing out for a pipe."""

    def show(*about: Any, **_: Any) -> None:
        sys.stderr.write(warnings.formatwarning(*about[:4]))

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = show  # pytest has put its own there
        result = CliRunner().invoke(
            main, args, env={"COLUMNS": None, **(env or {})}, color=True
        )  # pytest-xdist sets it
    return result.exit_code, result.output
