"""How two lists of tools differ, in words: the tool, the text in it, and the words that changed."""

from __future__ import annotations

import json
import re
from typing import Any

from keval_mcp.server.session import Listing

_TEXTS = 3
"""How many changed texts are shown."""
_CHARACTERS = 80
_HINT = (
    "the same words come in another order, as from a Python server that prints a set, whose order differs per process:"
    ' set PYTHONHASHSEED for it (`env: {PYTHONHASHSEED: "0"}`)'
)


def difference(first: Listing, now: Listing) -> str:
    """Return how two lists of tools differ in what their digest covers."""
    before, after = ({tool["name"]: tool for tool in listing.tools} for listing in (first, now))
    names = {
        "without": [name for name in before if name not in after],
        "with": [name for name in after if name not in before],
    }
    told = [f"{word} {' and '.join(changed)}" for word, changed in names.items() if changed]
    every = [
        (f"{key} of '{name}'", _text(tool.get(key)), _text(after[name].get(key)))
        for name, tool in before.items()
        if name in after
        for key in ("description", "inputSchema")
    ]
    texts = [each for each in every if each[1] != each[2]]
    told += [f"with another {place} ({_changed_words(old, new)})" for place, old, new in texts[:_TEXTS]]
    if len(texts) > _TEXTS:
        told.append(f"and {len(texts) - _TEXTS} more texts")
    said = ", ".join(told) or "with another definition of a tool that is listed twice"
    return f"{said}; {_HINT}" if any(_is_permuted(old, new) for _, old, new in texts) else said


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, ensure_ascii=False)


def _is_permuted(old: str, new: str) -> bool:
    before, after = (re.findall(r"\w+|[^\w\s]", text) for text in (old, new))
    return before != after and sorted(before) == sorted(after)


def _changed_words(old: str, new: str) -> str:
    texts = [old.split(), new.split()]
    if texts[0] == texts[1]:
        return "in white space alone"
    for _ in range(2):  # without the words that both begin with, and then, turned round, those that both end with
        same = next((n for n, (a, b) in enumerate(zip(*texts, strict=False)) if a != b), min(map(len, texts)))
        texts = [text[same:][::-1] for text in texts]
    return " → ".join(map(_shown, texts))


def _shown(words: list[str]) -> str:
    text = " ".join(words)
    return repr(text if len(text) <= _CHARACTERS else f"{text[:_CHARACTERS]}…") if text else "nothing"
