"""Ending in order when a supervisor asks for it."""

from __future__ import annotations

import signal

__all__ = ["end_on_sigterm"]


def end_on_sigterm() -> None:
    """Treat SIGTERM, by which CI and containers end a process, as Ctrl-C: servers and agents are closed."""
    # A script's shell starts what it puts in the background with SIGINT ignored, and nothing would come of raising it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
