"""The console for messages, data for machines, and what makes text of others safe for a console."""

from __future__ import annotations

import json
import re
from typing import Any

import attrs
import click
import orjson
from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderHook, RenderResult
from rich.segment import Segment
from rich.text import Text

from keval.cli.messages import JsonMessages, foreign, logs_json, visible
from keval.store.serialization import dump

_ENDLESS = 100_000
"""Columns of a console that breaks no line."""

_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")


def print_json(data: object) -> None:
    """Print data for machines, without colours."""
    click.echo(json_text(data))


def json_text(data: object) -> str:
    """Return data as JSON in ASCII, which no terminal takes for anything else."""
    # orjson is ten times as fast as json at writing indented text.
    try:
        text = orjson.dumps(data, option=orjson.OPT_INDENT_2).decode()
    except orjson.JSONEncodeError:  # what a model made up, such as half a surrogate pair
        text = orjson.dumps(orjson.loads(dump(data)), option=orjson.OPT_INDENT_2).decode()
    return text if text.isascii() else _NOT_ASCII.sub(lambda found: json.dumps(found[0])[1:-1], text)


def message_console(*, quiet: bool = False) -> Console:
    """Return the console for progress and messages: stderr, a line of JSON for each line if the command logs so."""
    if logs_json():
        return guarded_console(file=JsonMessages(), width=_ENDLESS, quiet=quiet, no_color=True, force_terminal=False)
    return guarded_console(stderr=True, quiet=quiet)


def safe(text: str, style: str = "") -> Text:
    """Return text of others for a console: as `foreign` makes it, and without markup."""
    return Text(foreign(text), style)


def guarded_console(**options: Any) -> Console:
    """Return a console that shows no control characters of others; `options` are those of Rich."""
    console = Console(highlight=False, **options)
    console.push_render_hook(_Guard())
    return console


class _Guard(RenderHook):
    """Keeps control characters from a console, whoever forgot `safe`."""

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        return [_Guarded(renderable) for renderable in renderables]


@attrs.frozen
class _Guarded:
    _renderable: ConsoleRenderable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for text, style, control in console.render(self._renderable, options):
            # What Rich itself makes to move the cursor is marked as control, and text of others never is.
            yield Segment(text if control else visible(text), style, control)
