"""How a run ends on the command line: its table, and the exit code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from keval.report.terminal import data_console, message_console, print_json, print_summary
from keval.run.store import RunDirectory

__all__ = ["exit_code", "finish"]


def finish(
    run: RunDirectory, summary: Mapping[str, Any], *, as_json: bool, quiet: bool = False, under_way: bool = False
) -> None:
    """Print a run's summary and exit with its code; `under_way` says that it is still being made."""
    if as_json:
        print_json(summary)
    elif not quiet:
        print_summary(summary, data_console(), run.path, under_way=under_way)
    code = exit_code(summary)
    messages = message_console(quiet=quiet and not code)
    if quiet and code:
        failed = sum(arm["failed"] for arm in summary["trials"])
        scorers = sum(arm["failed"] + arm["missing"] for arm in summary["arms"])
        unrun = summary["planned"] - sum(arm["trials"] for arm in summary["trials"])
        left = f", {unrun} were never run" if unrun else ""
        messages.print(f"{failed} of {summary['planned']} trials failed{left}, {scorers} scores failed or are missing")
    messages.print(str(run.path), markup=False, soft_wrap=True)
    raise SystemExit(code)


def exit_code(summary: Mapping[str, Any]) -> int:
    """0 when every trial was answered and scored, and no scorer failed; else 3."""
    failed = any(arm["failed"] for arm in (*summary["trials"], *summary["arms"]))
    unfinished = sum(arm["trials"] for arm in summary["trials"]) < summary["planned"]
    unscored = any(arm["missing"] for arm in summary["arms"])
    return 3 if failed or unfinished or unscored else 0
