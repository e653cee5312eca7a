"""Documents: answering out of the texts and records that tools return.

A text is cut into passages: sentences, list items and table rows, each with its headings and code. The answer consists
of the passages that share most with the question.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Any

import attrs

from keval_simulator.conversation import Conversation, Outcome
from keval_simulator.replies import Flaws
from keval_simulator.words import lexicon, sentences, shares_stem, split_identifier, stems

_MOST_PASSAGES = 4
_MOST_ITEMS = 6
_PROSE_WORDS = 6
"""A value of so many words is a text to answer from, and not a label."""
_NUMBER = re.compile(r"(?<![\w.-])\d+(?![\w.])")
_LINE = re.compile(r"^(?:(?P<heading>#{1,6}\s+)|(?P<item>\s*(?:[-*•]|\d+[.)])\s+))?(?P<text>.*?)\s*$")
_FIELD = re.compile(r"^(?:page|title|path|url|uri|file|document|source|section):\s+(?P<value>\S.*)$", re.IGNORECASE)
_RULE = re.compile(r"^\s*\|?[\s:|-]+$")
_FORM = lexicon("long large many much often must may mean happen take way need use work get which one")
"""Words that say how a question is meant, and not what it is about."""
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


def findings(outcomes: Sequence[Outcome], conversation: Conversation, rng: Random, flaws: Flaws) -> str:
    """Answer out of whatever the tools returned: what texts say on the question, and records as they are."""
    texts, records = [], []
    for outcome in outcomes:
        prose = list(_prose(outcome.reading.data))
        texts += prose
        if not prose and (record := _told(outcome.reading.data)):
            records.append(record)
    said = _quoted(texts, conversation.question, rng, flaws)
    if texts and not said and not records:
        return "I could not find an answer to this in what I looked up."
    opening = rng.choice(("", "Here is what I found. ", "Based on what I looked up: "))
    closing = rng.choice(("", " I suggest checking the source for details.", " Let me know if you need more detail."))
    return f"{opening}{' '.join(filter(None, (said, *records))) or 'The lookup returned nothing.'}{closing}"


def _quoted(texts: Sequence[str], question: str, rng: Random, flaws: Flaws) -> str:
    """Tell what texts say on a question, with the flaws of a hasty reader: it may overlook or misread something."""
    # What a search showed is on the page that was opened, too.
    found = {each.text: each for text in texts for each in passages(text)}
    chosen = best_passages([*found.values()], question, _MOST_PASSAGES)
    if not chosen and rng.random() < flaws.clutches:
        chosen = [*found.values()][:2]
    if len(chosen) > 1 and rng.random() < flaws.overlooks:
        chosen.pop(rng.randrange(len(chosen)))
    said = " ".join(f"{each.text}\n\n```\n{each.code}\n```\n\n" if each.code else each.text for each in chosen).strip()
    if rng.random() < flaws.misreads:
        said = _NUMBER.sub(lambda number: str(int(number[0]) + rng.choice((1, 2, 5))), said, count=1)
    return said


def _prose(data: Any) -> Iterator[str]:
    """Yield the texts in a result: itself, or the long values of a record or of those in a list."""
    if isinstance(data, str):
        yield data
    elif isinstance(data, Mapping):
        for value in data.values():
            yield from (text for text in _prose(value) if len(text.split()) >= _PROSE_WORDS)
    elif isinstance(data, list):
        for item in data:
            yield from (text for text in _prose(item) if len(text.split()) >= _PROSE_WORDS)


def _told(data: Any) -> str:
    if isinstance(data, Mapping):
        if len(data) == 1:
            key, value = next(iter(data.items()))
            if isinstance(value, str | int | float) and key in ("result", "answer", "value", "output"):
                return value if isinstance(value, str) else f"The answer is {value:g}."
        return f"{_listed(data)}."
    if isinstance(data, list):
        return "\n" + "\n".join(f"- {_shown(item)}" for item in data[:_MOST_ITEMS]) if data else ""
    return "" if data is None else f"The answer is {data}."


def _listed(data: Mapping[str, Any]) -> str:
    return "; ".join(
        f"{' '.join(split_identifier(key))}: {_shown(value)}" for key, value in data.items() if value != []
    )


def _shown(value: Any) -> str:
    if isinstance(value, Mapping):
        return _listed(value)
    if isinstance(value, list):
        return ", ".join(_shown(item) for item in value[:_MOST_ITEMS])
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "unknown" if value is None else str(value)


def passages(text: str) -> list[Passage]:
    """Cut a text, Markdown or plain; what only names a document (`page: x`) becomes the heading of what follows."""
    found: list[Passage] = []
    title = heading = ""
    for block in _blocks(text):
        first = _LINE.match(block[0])
        if block[0].startswith("```"):
            code = "\n".join(block[1:])
            found[-1:] = [attrs.evolve(found[-1], code=code)] if found else [Passage("", "", code)]
        elif first and first["heading"]:
            top = len(first["heading"].strip()) == 1
            title, heading = (first["text"], "") if top else (title, first["text"])
        elif field := _FIELD.match(block[0]):
            title, heading = field["value"], ""
        else:
            parts = [_row(block[0])] if block[0].startswith("|") else sentences(_joined(block))
            under = f"{title} {heading}".strip()
            found += [Passage(part, under, goes_on=at > 0) for at, part in enumerate(parts) if part]
    return found


def _blocks(text: str) -> Iterator[list[str]]:
    """Yield what belongs together: a code block after its fence, a heading, a field, a row, an item, a paragraph."""
    block: list[str] = []
    lines = [line.rstrip() for line in text.splitlines()]
    coding = False
    for at, line in enumerate(lines):
        fence = line.lstrip().startswith("```")
        match = _LINE.match(line)
        row = line.lstrip().startswith("|")
        alone = fence or row or bool(match and (match["heading"] or match["item"])) or bool(_FIELD.match(line))
        if not coding and (alone or not line.strip()) and block:
            yield block
            block = []
        if fence and coding:
            yield block
            block, coding = [], False
        elif fence:
            block, coding = ["```"], True
        elif coding:
            block.append(line)
        elif row and (_RULE.match(line) or _RULE.match("".join(lines[at + 1 : at + 2]) or "x")):
            continue  # the rule under a table's head, and the head itself
        elif row or (match and match["heading"]) or _FIELD.match(line):
            yield [line.strip()]
        elif line.strip():
            block.append(line)
    if block:
        yield block


def _joined(block: Sequence[str]) -> str:
    return " ".join(match["text"].strip() for line in block if (match := _LINE.match(line)))


def _row(line: str) -> str:
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    return f"{cells[0]}: {', '.join(filter(None, cells[1:]))}."


def best_passages(found: Sequence[Passage], question: str, most: int) -> list[Passage]:
    """Return the passages that share most with the question, in their order; rare words count for more.

    None are returned where none has much of what the question is about.
    """
    asked = stems(question) - _FORM
    bodies = [stems(f"{each.text} {each.code}") for each in found]
    spread = {word: sum(shares_stem(word, body) for body in bodies) for word in asked}
    weight = {word: math.log(1 + len(found) / (1 + spread[word])) for word in asked}
    own = [_shared(weight, body, each) for body, each in zip(bodies, found, strict=True)]
    if not own or max(own) < _ABOUT * sum(weight.values()):
        return []
    weights = [
        mine + (_NEIGHBOUR_WEIGHT * before if each.goes_on else 0.0)
        for mine, before, each in zip(own, [0.0, *own], found, strict=False)
    ]
    ranked = sorted(range(len(found)), key=lambda at: (-weights[at], at))
    return [found[at] for at in sorted(ranked[:most]) if weights[at] >= _NEAR * max(weights)]


def _shared(weight: dict[str, float], body: set[str], passage: Passage) -> float:
    headed = stems(passage.heading)
    return sum(
        value * (1.0 if shares_stem(word, body) else _HEADING_WEIGHT if shares_stem(word, headed) else 0.0)
        for word, value in weight.items()
    )
