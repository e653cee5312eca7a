"""The sections of a Markdown text: each from its heading to the next one of its level or a higher one."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from itertools import count

import attrs
from markdown_it import MarkdownIt

from keval_skills.front_matter import head_length

# `str.splitlines` also splits at form feeds and U+2028, where Markdown has no new line.
_LINE_ENDS = re.compile(r"(?<=\n)|(?<=\r)(?!\n)")


@attrs.frozen
class Section:
    """A section: its name, the level of its heading from 1, and its lines from `start` up to `end`, counted from 0.

    The name is the text of the heading. Sections of one heading are numbered: `Examples (1)`, `Examples (2)`.
    """

    name: str
    level: int
    start: int
    end: int


def sections_of(text: str) -> list[Section]:
    """Return the sections of a text in their order. Headings in lists, quotations and code begin none."""
    head = text[: head_length(text)]
    offset = len(_lines(head))
    tokens = MarkdownIt("commonmark").parse(text[len(head) :])
    # The token after that which opens a heading has its text.
    headings = [
        (_heading(tokens[index + 1].children or ()), int(token.tag[1:]), offset + token.map[0])
        for index, token in enumerate(tokens)
        if token.type == "heading_open" and token.level == 0 and token.map
    ]
    last = len(_lines(text))
    times = Counter(title for title, _, _ in headings)
    numbers = {title: count(1) for title in times}
    return [
        Section(
            title if times[title] == 1 else f"{title} ({next(numbers[title])})",
            level,
            start,
            next((begin for _, other, begin in headings[index + 1 :] if other <= level), last),
        )
        for index, (title, level, start) in enumerate(headings)
    ]


def chief_sections(text: str) -> list[Section]:
    """Return the sections of the highest level that has several, or else those of the highest level."""
    sections = sections_of(text)
    levels = Counter(section.level for section in sections)
    several = [level for level, times in levels.items() if times > 1]
    chosen = min(several or levels, default=0)
    return [section for section in sections if section.level == chosen]


def text_without(text: str, left_out: Collection[Section]) -> str:
    """Return a text without sections of it, with all that is in them."""
    gone = {number for section in left_out for number in range(section.start, section.end)}
    return "".join(line for number, line in enumerate(_lines(text)) if number not in gone)


def _lines(text: str) -> list[str]:
    """Split a text where Markdown does, after each line's end, which is kept."""
    return [line for line in _LINE_ENDS.split(text) if line]


def _heading(tokens: Sequence[object]) -> str:
    return "".join(getattr(token, "content", "") for token in tokens).strip()
