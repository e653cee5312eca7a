"""The terminal: a console for data, one for messages, and text from outside made safe for both."""

from __future__ import annotations

import json

import click
from rich.console import Console
from rich.text import Text

__all__ = ["data_console", "message_console", "print_json", "safe"]


def data_console() -> Console:
    """Return the console for what was asked for: stdout, 100 columns where nothing says how wide it is."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=max(console.width, 100))


def print_json(data: object) -> None:
    """Print data for machines: never coloured."""
    click.echo(json.dumps(data, indent=2))


def message_console(*, quiet: bool = False) -> Console:
    """Return the console for progress and messages: stderr."""
    return Console(stderr=True, quiet=quiet, highlight=False)


def safe(text: str, style: str = "") -> Text:
    """Return text from outside for the terminal: without markup, and with control characters shown and not obeyed."""
    shown = (char if char.isprintable() or char in "\n\t" else "\N{REPLACEMENT CHARACTER}" for char in text)
    return Text("".join(shown), style)
