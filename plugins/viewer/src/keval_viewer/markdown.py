"""Answers as their Markdown reads: formatted, with nothing in them that acts, loads or leads elsewhere."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.parser_block import ParserBlock
from markdown_it.parser_inline import ParserInline
from markdown_it.rules_block import StateBlock
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markupsafe import Markup

_LONGEST = 25_000
"""Characters of a text that is formatted; the page shows fewer of one text."""
_DEEPEST = 40
"""How deep blocks may be nested; a list counts twice. The parser would drop what lies deeper."""
_MOST_STEPS = 3
"""Steps for each character of a text, beyond the first thousands, that the parser may take; it takes one or two."""
_MOST_GROWTH = 8
"""How many times as long as its text HTML may be; the cells that a table lacks are made up."""
_MARKED = re.compile(r"[\\`*_~\[\]<>&#!|=+-]|(?:^|[\r\n])(?:[ \t]*\d+[.)]| {0,3}\t| {4})")
"""What a text has that is formatted: a character with a meaning, or a line that begins as a list or as code does."""
_HEADINGS = {"h1": "h4", "h2": "h5", "h3": "h6", "h4": "h6", "h5": "h6"}
"""Headings of an answer stand below those of the page."""


class _TooMuchError(Exception):
    """A text is nested too deeply, or would take too long."""


def formatted(text: str) -> Markup | None:
    """Return a text as HTML if it has any formatting, else `None`. HTML in the text is shown as it was written.

    A link or an image becomes its text with its address behind it, which is no link. The HTML is empty if the text is
    to be shown as it was written although it has formatting: it is too long, nested too deeply, or would take too long,
    or something of it would not be shown.
    """
    if not _MARKED.search(text):
        return None
    if len(text) > _LONGEST:
        return Markup()
    env: dict[str, Any] = {"steps": _MOST_STEPS * len(text) + 5_000}
    try:
        # Counted before the parser makes them, which is what takes the time.
        _spend(env, _cells(text))
        tokens = _PARSER.parse(text, env)
    except _TooMuchError:
        return Markup()
    if all(map(_is_plain, tokens)):
        return None
    html: str = _PARSER.renderer.render(tokens, _PARSER.options, {})
    # The definition of a link that is not used would vanish.
    unused = {each["href"] for each in env.get("references", {}).values()} - env.get("addresses", set())
    # The renderer escapes all text.
    return Markup(html) if len(html) <= _MOST_GROWTH * len(text) + 1_000 and not unused else Markup()  # noqa: S704


def _is_plain(token: Token) -> bool:
    """Return whether a block is a paragraph that reads as it was written."""
    if token.type != "inline":
        return token.type in ("paragraph_open", "paragraph_close")
    shown = [" " if child.type in ("softbreak", "hardbreak") else child.content for child in token.children or ()]
    is_text = all(child.type in ("text", "softbreak", "hardbreak") for child in token.children or ())
    return is_text and "".join(shown).split() == token.content.split()


def _cells(text: str) -> int:
    """Return how many cells tables may have at most, as the parser makes up those that their rows lack."""
    lines = text.splitlines()
    return len(lines) * max((line.count("|") for line in lines if not line.strip(" \t>|:-")), default=0)


def _spend(env: Any, steps: int) -> None:
    """Count steps of the parser. Raises _TooMuchError."""
    env["steps"] = env.get("steps", math.inf) - steps
    if env["steps"] < 0:
        raise _TooMuchError


class _Blocks(ParserBlock):
    """Parses blocks, and counts the lines that it looks at, again for each block around them."""

    def tokenize(self, state: StateBlock, startLine: int, endLine: int) -> None:  # noqa: N803 - as it is called
        if state.level >= _DEEPEST:
            raise _TooMuchError
        _spend(state.env, endLine - startLine)
        super().tokenize(state, startLine, endLine)


class _Inline(ParserInline):
    """Parses text, and counts what it looks at in search of the end of a link."""

    def skipToken(self, state: StateInline) -> None:  # noqa: N802 - as it is called
        _spend(state.env, 1)
        super().skipToken(state)


def _tame(state: StateCore) -> None:
    """Take out of parsed text what would act: links, images and styles."""
    addresses = state.env["addresses"] = set[str]()
    for token in state.tokens:
        token.attrs.pop("style", None)  # the alignment of a table's column, which the page's policy refuses
        token.tag = _HEADINGS.get(token.tag, token.tag)
        if token.children:
            token.children = [*_without_addresses(token.children, addresses)]


def _without_addresses(tokens: Sequence[Token], addresses: set[str]) -> Iterator[Token]:
    """Yield the parts of a line, with the addresses of links and images, and their titles, as text."""
    address, title, shown = "", "", ""
    for token in tokens:
        if token.type in ("link_open", "image"):
            address = str(token.attrs.get("href", token.attrs.get("src", "")))
            title = f" {token.attrs['title']}" if token.attrs.get("title") else ""
            addresses.add(address)
        if token.type == "link_open":
            shown = ""
        elif token.type == "link_close":
            if address != shown or title:
                yield _text(f" ({address}{title})")
        elif token.type == "image":
            yield _text(f"[image: {token.content}] ({address}{title})")
        else:
            shown += token.content
            yield token


def _text(content: str) -> Token:
    return Token("text", "", 0, content=content)


def _parser() -> MarkdownIt:
    # Most answers mean their line breaks, which Markdown itself would join.
    parser = MarkdownIt("zero")
    parser.block, parser.inline = _Blocks(), _Inline()
    # One level more than `_Blocks` lets pass, so that nothing is dropped.
    parser.configure("commonmark", {"html": False, "breaks": True, "maxNesting": _DEEPEST + 1})
    parser.enable(["table", "strikethrough"])
    parser.core.ruler.push("tame", _tame)
    return parser


_PARSER = _parser()
