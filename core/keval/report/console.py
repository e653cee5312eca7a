"""The terminal: a console for data, one for messages, and a function that makes foreign text safe for both."""

from __future__ import annotations

import json

import click
from rich.console import Console
from rich.text import Text

__all__ = ["data_console", "message_console", "print_json", "safe"]


def data_console() -> Console:
    """Return the console for results: stdout, at least 100 columns wide if it is not a terminal."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=max(console.width, 100))


def print_json(data: object) -> None:
    """Print data for machines, without colours."""
    click.echo(json.dumps(data, indent=2))


def message_console(*, quiet: bool = False) -> Console:
    """Return the console for progress and messages: stderr."""
    return Console(stderr=True, quiet=quiet, highlight=False)


def safe(text: str, style: str = "") -> Text:
    """Return foreign text for the terminal: without markup, and with � in place of control characters."""
    shown = (char if char.isprintable() or char in "\n\t" else "\N{REPLACEMENT CHARACTER}" for char in text)
    return Text("".join(shown), style)
