"""The console for results, whose lines have no spaces at their ends."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any

import attrs
from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderHook, RenderResult
from rich.segment import Segment
from rich.text import Text

from keval.cli.console import guarded_console

_LEAST = 60
_PIPED = 100


def data_console() -> Console:
    """Return the console for results: stdout, without spaces at the ends of lines.

    It is as wide as the terminal or `COLUMNS` says, at least 60 columns. What is no terminal has 100 at least, unless
    `COLUMNS` says less.
    """
    # The first console only tells how wide Rich takes the output to be.
    console = _trimming()
    told = os.environ.get("COLUMNS", "").isdecimal()
    return _trimming(width=max(console.width, _LEAST if told or console.is_terminal else _PIPED))


def print_sections(sections: Iterable[Iterable[Text]], console: Console) -> None:
    """Print lines that fit already, with an empty line between the sections that have any."""
    begun = False
    for section in sections:
        for position, line in enumerate(section):
            if position == 0 and begun:
                console.print()
            console.print(line, soft_wrap=True)
            begun = True


def _trimming(**options: Any) -> Console:
    console = guarded_console(**options)
    console.push_render_hook(_Trim())
    return console


class _Trim(RenderHook):
    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        return [_Trimmed(renderable) for renderable in renderables]


@attrs.frozen
class _Trimmed:
    _renderable: ConsoleRenderable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        return _without_trailing_spaces(console.render(self._renderable, options))


def _without_trailing_spaces(segments: Iterable[Segment]) -> Iterator[Segment]:
    # Spaces wait here until something follows them on their line.
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
