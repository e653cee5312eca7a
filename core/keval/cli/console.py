"""The consoles: one for data, one for messages, and a function that makes text of others safe for both."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator
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
_LEAST = 60
_PIPED = 100


def data_console() -> Console:
    """Return the console for results: stdout, without spaces at the ends of lines.

    It is as wide as the terminal or `COLUMNS` says, at least 60 columns. What is no terminal has 100 at least, unless
    `COLUMNS` says less.
    """
    console = _console(trimmed=True)
    told = os.environ.get("COLUMNS", "").isdecimal()
    return _console(trimmed=True, width=max(console.width, _LEAST if told or console.is_terminal else _PIPED))


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


def print_sections(sections: Iterable[Iterable[Text]], console: Console) -> None:
    """Print lines that fit already, with an empty line between the sections that have any."""
    begun = False
    for section in sections:
        for position, line in enumerate(section):
            if position == 0 and begun:
                console.print()
            console.print(line, soft_wrap=True)
            begun = True


def message_console(*, quiet: bool = False) -> Console:
    """Return the console for progress and messages: stderr, a line of JSON for each line if the command logs so."""
    if logs_json():
        return _console(file=JsonMessages(), width=_ENDLESS, quiet=quiet, no_color=True, force_terminal=False)
    return _console(stderr=True, quiet=quiet)


def safe(text: str, style: str = "") -> Text:
    """Return text of others for a console: as `foreign` makes it, and without markup."""
    return Text(foreign(text), style)


def _console(*, trimmed: bool = False, **options: Any) -> Console:
    console = Console(highlight=False, **options)
    console.push_render_hook(_Guard(trimmed))
    return console


@attrs.frozen
class _Guard(RenderHook):
    """Keeps control characters from a console, whoever forgot `safe`, and spaces from the ends of lines."""

    _trimmed: bool

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        return [_Guarded(renderable, self._trimmed) for renderable in renderables]


@attrs.frozen
class _Guarded:
    _renderable: ConsoleRenderable
    _trimmed: bool

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        segments = (
            Segment(text if control else visible(text), style, control)
            for text, style, control in console.render(self._renderable, options)
        )
        return _without_trailing_spaces(segments) if self._trimmed else segments


def _without_trailing_spaces(segments: Iterable[Segment]) -> Iterator[Segment]:
    held: list[Segment] = []
    for text, style, control in segments:
        if control:
            yield Segment(text, style, control)
            continue
        for part in text.splitlines(keepends=True):
            kept = part.rstrip(" \n")
            if kept:
                yield from held
                yield Segment(kept, style)
            if part.endswith("\n"):
                held = []
                yield Segment.line()
            elif lacking := len(part) - len(kept):
                held = [*([] if kept else held), Segment(" " * lacking, style)]
            elif kept:
                held = []
    yield from held
