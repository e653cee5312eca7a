"""Ending in order when a supervisor asks for it."""

from __future__ import annotations

import signal

__all__ = ["end_on_sigterm"]


def end_on_sigterm() -> None:
    """Treat SIGTERM, by which CI and containers end a process, as Ctrl-C: servers and agents are closed."""
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
