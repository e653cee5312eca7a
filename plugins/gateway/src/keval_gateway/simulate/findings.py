"""Findings: answering out of whatever tools returned, be it a text, a document or a record."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Any

from keval_gateway.simulate.conversation import Conversation, Outcome
from keval_gateway.simulate.passages import best_passages, passages
from keval_gateway.simulate.weather import Flaws
from keval_gateway.simulate.words import split_identifier

__all__ = ["findings"]

_MOST_PASSAGES = 4
_MOST_ITEMS = 6
_PROSE_WORDS = 6
"""A value of so many words is a text to answer from, and not a label."""
_NUMBER = re.compile(r"(?<![\w.-])\d+(?![\w.])")


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
    """Tell what texts say on a question; as a hasty reader would, now and then overlook or misread something."""
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
