"""Which servers trials share, in words."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from keval.manifest import ServerEntry
from keval.report.console import safe
from keval.servers import Sharing
from keval.summary import Summary

__all__ = ["entry_text", "sharing_lines", "sharing_text"]


def sharing_text(sharing: Sharing | None) -> str:
    """Return whether trials share a server, and why; `None` is what shows when it starts."""
    if sharing is None:
        return "shared if every tool is read-only by its hint, which shows when it starts"
    told = f"{'shared by trials' if sharing.shared else 'one for each trial'} ({sharing.why})"
    return told if sharing.verified else f"{told}; that it keeps trials apart is not verified"


def entry_text(entry: ServerEntry) -> str | None:
    """Return the same of a server of a run; `None` if the run does not say."""
    if entry.shared is None:
        return None
    return sharing_text(Sharing(entry.shared, entry.sharing or "unknown", entry.isolation_verified is not False))


def sharing_lines(summary: Summary) -> Iterator[Text]:
    """Yield a line for each server of a run; one that several conditions have in the same way has one line."""
    told: dict[tuple[str, Sharing], list[str]] = {}
    for condition, servers in summary.servers.items():
        for name, sharing in servers.items():
            told.setdefault((name, sharing), []).append(condition)
    names = [name for name, _ in told]
    for (name, sharing), conditions in told.items():
        where = f" of {', '.join(conditions)}" if names.count(name) > 1 else ""
        yield safe(f"server {name}{where}: {sharing_text(sharing)}", "dim" if sharing.verified else "yellow")
