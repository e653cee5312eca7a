"""What one run changed against another in full: what it is made of, and what its servers offered."""

from __future__ import annotations

from typing import Any

import attrs
from rich.console import Console
from rich.text import Text

from keval.cli.console import print_sections, safe
from keval.store.run import Run
from keval.store.serialization import to_plain
from keval_analysis.composition import Difference, what_differs
from keval_report.contexts import ServerDifference, print_server_differences, servers_between
from keval_report.terminal.comparison import difference_lines
from keval_report.words import folded, run_name


@attrs.frozen
class RunChanges:
    """What a run differs in from another one: in its parts, and in what the servers of their conditions offered."""

    now: Run
    before: Run
    differences: tuple[Difference, ...]
    servers: tuple[ServerDifference, ...]


def run_changes(now: Run, before: Run) -> RunChanges:
    """Return what a run differs in from another one. Raises RunError: one of them cannot be read."""
    shared = [label for label in now.manifest.conditions if label in before.manifest.conditions]
    found = (each for label in shared for each in servers_between(now, label, before, label))
    servers = tuple(attrs.evolve(each, against=before.id) for each in found)
    return RunChanges(now, before, tuple(what_differs(now.manifest, before.manifest, {})), servers)


def describe_changes(found: RunChanges) -> dict[str, Any]:
    """Describe what a run differs in as plain data."""
    return {
        "run": found.now.id,
        "against": found.before.id,
        "changes": to_plain(found.differences),
        "servers": to_plain(found.servers),
    }


def print_changes(found: RunChanges, console: Console) -> None:
    """Print what a run differs in, with the texts of tools that differ."""
    console.print(safe(f"{found.now.id} against {found.before.id}", "bold"), soft_wrap=True)
    print_sections([difference_lines(found.differences, console.width)], console)
    if found.servers:
        console.print()
        print_server_differences(found.servers, console)
    console.print()
    compare = f"keval compare {run_name(found.before.path)} {run_name(found.now.path)}"
    told = folded(f"question by question: {compare}", console.width)
    print_sections([(Text(line, "dim") for line in told)], console)
