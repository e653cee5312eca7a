"""The simulated writer of test answers: plain versions of a golden answer, as `keval check` asks a model for them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from keval_gateway import ChatRequest
from keval_simulator.schema import properties_of
from keval_simulator.words import sentences

_GOLDEN = re.compile(r"<golden_answer-(?P<code>[0-9a-f]{8})>\n(?P<text>.*?)\n</golden_answer-(?P=code)>", re.DOTALL)
_WAYS = {"reworded", "left_out", "added", "negation"}
_WRONG = "Nobody has ever asked for anything else."
_VERB = re.compile(r"\b(is|are|was|were|can|will|must)\b(?! not)")


def alterations(request: ChatRequest, schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return versions of a golden answer; `None` if the request is for something else."""
    found = _GOLDEN.search(request.messages[-1].text if request.messages else "")
    if found is None or properties_of(schema).keys() != _WAYS:
        return None
    golden = found["text"]
    *kept, last = sentences(golden)
    denied = _VERB.sub(r"\1 not", golden, count=1)
    return {
        "reworded": {"text": f"As for what was asked: {golden}", "change": "it begins otherwise"},
        "left_out": {"text": " ".join(kept), "change": f"without: {last}"},
        "added": {"text": f"{golden} {_WRONG}", "change": f"added: {_WRONG}"},
        "negation": {"text": denied if denied != golden else f"It is not so: {golden}", "change": "a claim is denied"},
    }
