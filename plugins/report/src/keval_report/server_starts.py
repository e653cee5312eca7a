"""The starts of servers that each trial has for itself: what they will take, and what they took."""

from __future__ import annotations

from collections.abc import Iterable

from keval.records.formats import counted, time_span
from keval.records.manifest import ServerStartsEntry
from keval_analysis.findings.summary import Summary

LESS = (
    "Trials can share one if it keeps nothing between calls (isolation: condition, or readOnlyHint on its tools); a"
    " Python server starts faster with start_method: fork, and one over HTTP needs only a session for each trial"
)
"""What takes less than to start a server for each trial."""
_NOTABLE_SECONDS = 10.0
_NOTABLE_SHARE = 0.1
"""What starts take of CPU, and of the time of a run, when they are worth a word."""


def start_notice(starts: Iterable[ServerStartsEntry], left: float, cores: int) -> str | None:
    """Return what starting servers will take, and what takes less, if that is much; `left` of the trials are to be run.

    By the clock it is what the cores need for it, at least: models may take longer, and other work needs cores, too.
    """
    own = [entry for entry in starts if entry.planned and entry.expected is not None]
    seconds = left * sum(entry.expected or 0.0 for entry in own)
    if seconds < _NOTABLE_SECONDS:
        return None
    count = round(left * sum(entry.planned for entry in own))
    servers = ", ".join(dict.fromkeys(entry.server for entry in own))
    return (
        f"{count:,} server processes are to be started, one for each trial ({servers}), which takes about"
        f" {time_span(seconds)} of CPU, at least {time_span(seconds / cores)} on {counted(cores, 'core')}. {LESS}"
    )


def start_total(summary: Summary) -> str | None:
    """Return what starting a server for each trial took, if that is a notable part of the run."""
    own = [entry for entry in summary.server_starts if entry.planned]
    known = [entry.cpu_seconds for entry in own if entry.cpu_seconds is not None]
    seconds = sum(known) if len(known) == len(own) else sum(entry.seconds for entry in own)
    if seconds < max(_NOTABLE_SECONDS, _NOTABLE_SHARE * (summary.elapsed or 0.0)):
        return None
    of = " of CPU" if len(known) == len(own) else ""
    return f"{counted(sum(entry.processes for entry in own), 'server start')} ({time_span(seconds)}{of})"
