"""Answers as their Markdown reads: formatted, with nothing in them that acts, loads or leads elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from markupsafe import Markup

_MOST_GROWTH = 8
"""How many times as long as its text HTML may be; the cells that a table lacks are made up."""
_MARKED = re.compile(r"[\\`*_~\[\]<>&#!|=+-]|(?:^|[\r\n])(?:[ \t]*\d+[.)]| {0,3}\t| {4})")
"""What a text has that is formatted: a character with a meaning, or a line that begins as a list or as code does."""
_HEADINGS = {"h1": "h4", "h2": "h5", "h3": "h6", "h4": "h6", "h5": "h6"}
"""Headings of an answer stand below those of the page."""


def formatted(text: str) -> Markup | None:
    """Return a text as HTML if it has any formatting, else `None`. HTML in the text is shown as it was written.

    A link or an image becomes its text with its address behind it, which is no link.
    """
    if not _MARKED.search(text):
        return None
    tokens = _PARSER.parse(text)
    if all(map(_is_plain, tokens)):
        return None
    html: str = _PARSER.renderer.render(tokens, _PARSER.options, {})
    # The renderer escapes all text.
    return Markup(html) if len(html) <= _MOST_GROWTH * len(text) + 1_000 else None  # noqa: S704


def _is_plain(token: Token) -> bool:
    """Return whether a block is a paragraph that reads as it was written."""
    if token.type != "inline":
        return token.type in ("paragraph_open", "paragraph_close")
    shown = [" " if child.type in ("softbreak", "hardbreak") else child.content for child in token.children or ()]
    is_text = all(child.type in ("text", "softbreak", "hardbreak") for child in token.children or ())
    return is_text and "".join(shown).split() == token.content.split()


def _tame(state: StateCore) -> None:
    """Take out of parsed text what would act: links, images and styles."""
    for token in state.tokens:
        token.attrs.pop("style", None)  # the alignment of a table's column, which the page's policy refuses
        token.tag = _HEADINGS.get(token.tag, token.tag)
        if token.children:
            token.children = [*_without_addresses(token.children)]


def _without_addresses(tokens: Sequence[Token]) -> Iterator[Token]:
    """Yield the parts of a line, with the addresses of links and images as text."""
    address, shown = "", ""
    for token in tokens:
        if token.type == "link_open":
            address, shown = str(token.attrs.get("href", "")), ""
        elif token.type == "link_close":
            if address != shown:
                yield _text(f" ({address})")
        elif token.type == "image":
            yield _text(f"[image: {token.content}] ({token.attrs.get('src', '')})")
        else:
            shown += token.content
            yield token


def _text(content: str) -> Token:
    return Token("text", "", 0, content=content)


def _parser() -> MarkdownIt:
    # Most answers mean their line breaks, which Markdown itself would join.
    parser = MarkdownIt("commonmark", {"html": False, "breaks": True}).enable(["table", "strikethrough"])
    parser.core.ruler.push("tame", _tame)
    return parser


_PARSER = _parser()
