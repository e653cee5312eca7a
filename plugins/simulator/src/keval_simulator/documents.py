"""Documents: what texts that tools return say on a question.

A text is cut into passages: sentences, list items and table rows, each with its headings and code. Those that share
most with the question are told.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import attrs

from keval_simulator.parameters import FORM
from keval_simulator.words import sentences, shares_stem, stems

_FIELD = r"(?:page|title|path|url|uri|file|document|source|section):[ \t]+"
_ITEM = r"[ \t]*(?:[-*•]|\d+[.)])[ \t]+"
_BLOCK = re.compile(
    rf"""^[ \t]*```[^\n]*\n(?P<code>.*?)(?:^[ \t]*```[^\n]*$|\Z)
    |^(?P<level>\#{{1,6}})[ \t]+(?P<heading>[^\n]*)$
    |^(?:[ \t]*\|[^\n]*\n)?[ \t]*\|?[ \t:|-]+$
    |^[ \t]*(?P<row>\|[^\n]*)$
    |^{_FIELD}(?P<field>\S[^\n]*)$
    |^(?:{_ITEM})?(?P<text>[^\n]*\S(?:[ \t]*\n(?![ \t]*(?:```|\||$)|\#{{1,6}}[ \t]|{_ITEM}|{_FIELD})[^\n]*\S)*)""",
    re.DOTALL | re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)
"""A code block, a heading, a table's rule with its head, a row, a line that names a document, an item, a paragraph."""
_HEADING_WEIGHT = 0.5
_NEIGHBOUR_WEIGHT = 0.5
"""The share of the previous passage's weight that a passage is given, as it may continue the same thought."""
_NEAR = 0.5
"""A passage is told if it has at least this share of the best passage's weight."""
_ABOUT = 0.35
"""No passage is told if the best one has less than this share of the question's weight."""


@attrs.frozen
class Passage:
    """A sentence, list item or table row, with the headings it stands under and the code block that follows it.

    `goes_on` says that it stands in a paragraph, after another sentence.
    """

    text: str
    heading: str = ""
    code: str = ""
    goes_on: bool = False


def passages(text: str) -> list[Passage]:
    """Cut a text, Markdown or plain; what only names a document (`page: x`) becomes the heading of what follows."""
    found: list[Passage] = []
    title = heading = ""
    for block in _BLOCK.finditer(text):
        if (code := block["code"]) is not None:
            code = code.removesuffix("\n")
            found[-1:] = [attrs.evolve(found[-1], code=code)] if found else [Passage("", "", code)]
        elif block["level"]:
            title, heading = (block["heading"], "") if block["level"] == "#" else (title, block["heading"])
        elif block["field"]:
            title, heading = block["field"], ""
        elif block["row"] or block["text"]:
            joined = " ".join(map(str.strip, (block["text"] or "").splitlines()))
            parts = [_row(block["row"])] if block["row"] else sentences(joined)
            under = f"{title} {heading}".strip()
            found += [Passage(part, under, goes_on=at > 0) for at, part in enumerate(parts) if part]
    return found


def _row(line: str) -> str:
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    return f"{cells[0]}: {', '.join(filter(None, cells[1:]))}."


def best_passages(found: Sequence[Passage], question: str, most: int) -> list[Passage]:
    """Return the passages that share most with the question, in their order; rare words count for more.

    None are returned where none has much of what the question is about.
    """
    asked = stems(question) - FORM
    bodies = [stems(f"{each.text} {each.code}") for each in found]
    spread = {word: sum(shares_stem(word, body) for body in bodies) for word in asked}
    weight = {word: math.log(1 + len(found) / (1 + spread[word])) for word in asked}
    own = [_shared(weight, body, each) for body, each in zip(bodies, found, strict=True)]
    if not own or max(own) < _ABOUT * math.fsum(weight.values()):
        return []
    weights = [
        mine + (_NEIGHBOUR_WEIGHT * before if each.goes_on else 0.0)
        for mine, before, each in zip(own, [0.0, *own], found, strict=False)
    ]
    ranked = sorted(range(len(found)), key=lambda at: (-weights[at], at))
    return [found[at] for at in sorted(ranked[:most]) if weights[at] >= _NEAR * max(weights)]


def _shared(weight: dict[str, float], body: set[str], passage: Passage) -> float:
    headed = stems(passage.heading)
    return math.fsum(
        value * (1.0 if shares_stem(word, body) else _HEADING_WEIGHT if shares_stem(word, headed) else 0.0)
        for word, value in weight.items()
    )
