"""Assertions of other tools: whether what is asserted of an answer holds, where that takes no model.

A sample has them in its metadata as `asserts`: `assert`, a list, and perhaps a `threshold` of the weighted share that
holds. Sources: promptfoo's documentation, Deterministic metrics; the OpenAI API reference, Graders.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Mapping
from json import JSONDecoder
from typing import Any

import attrs
import regex

from keval import Score, Trial
from keval_formats.placeholders import as_text

_SECONDS = 1.0
"""How long a pattern, or a schema, may be looked for in one answer."""


@attrs.frozen
class Asserts:
    """Scores 1 if all assertions of the sample's metadata hold, or their weighted share reaches its `threshold`."""

    def score(self, trial: Trial) -> Score:
        """Check each assertion against the answer."""
        given = trial.sample.metadata.get("asserts")
        if trial.transcript is None or not given:
            return Score(None, "there is no transcript" if given else "the sample has no `asserts` in its metadata")
        failed: list[str] = []
        try:
            holds, share = verdict(given, trial.output, trial.transcript.duration, failed)
        except ValueError as error:
            return Score(None, str(error))
        told = f"not held: {'; '.join(failed)}" if failed else "all assertions hold"
        return Score(float(holds), told, details={"share": round(share, 6), "failed": failed})


def verdict(part: Mapping[str, Any], said: str, seconds: float | None, failed: list[str]) -> tuple[bool, float]:
    """Return whether an assertion, or a set of them, holds, and its share; `failed` gets those that do not.

    Raises ValueError: that cannot be said.
    """
    if "assert" not in part:
        kind = part["type"].removeprefix("not-")
        try:
            holds = CHECKS[kind](said, part.get("value"), {**part, "seconds": seconds}) != (kind != part["type"])
        except (TypeError, KeyError, RecursionError, TimeoutError, MemoryError, regex.error) as error:
            why = f"it has no {error}" if isinstance(error, KeyError) else error
            raise ValueError(f"the assertion {_told(part)} cannot be decided: {why}") from error
        failed += [] if holds else [_told(part)]
        return holds, float(holds)
    held, share, weights = True, 0.0, 0.0
    for each in part["assert"]:
        holds, value = verdict(each, said, seconds, failed)
        weight = each.get("weight", 1)
        # What has no weight is only told.
        held, share, weights = held and (holds or not weight), share + weight * value, weights + weight
    share = share / weights if weights else 0.0
    return (held if part.get("threshold") is None else share >= part["threshold"]), share


def _told(part: Mapping[str, Any]) -> str:
    return str(part.get("metric") or f"{part['type']} {as_text(part.get('value', part.get('threshold')))}"[:200])


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        value = [each.strip() for each in next(csv.reader([value], skipinitialspace=True))]
    if value in ([], [None], [""]):
        raise TypeError("it needs a `value`")
    return [*map(as_text, value)]


def _equals(said: str, value: Any, part: Mapping[str, Any]) -> bool:
    return value in _parsed(said) if isinstance(value, list | dict) else said == as_text(value)


def _parsed(said: str, *, whole: bool = True) -> Iterator[Any]:
    """Yield the text as JSON, or else every object in it; nothing of what is no JSON."""
    at = 0 if whole else said.find("{")
    while at >= 0:
        try:
            data, at = (json.loads(said), -1) if whole else JSONDecoder().raw_decode(said, at)
            yield data
        except ValueError:
            at = -1 if whole else at + 1
        at = said.find("{", at) if at >= 0 else at


def _is_json(said: str, schema: Any, part: Mapping[str, Any]) -> bool:
    found = [*_parsed(said, whole="contains" not in part["type"])]
    if schema in (None, ""):
        return bool(found)
    import yaml  # only for a schema

    from keval_metrics_basic import compiled, time_limit  # takes 40 ms

    validator = compiled(yaml.safe_load(schema) if isinstance(schema, str) else schema)
    with time_limit(_SECONDS):
        return any(validator.is_valid(each) for each in found)


def _in_time(said: str, value: Any, part: Mapping[str, Any]) -> bool:
    if part["seconds"] is None:
        raise ValueError("it is not known how long the answer took")
    return bool(part["seconds"] * 1000 <= part["threshold"])


def _is_near(said: str, value: Any, part: Mapping[str, Any]) -> bool:
    from rapidfuzz.distance import Indel, Levenshtein  # takes 30 ms

    if part["type"] == "fuzzy_match":
        return bool(Indel.normalized_similarity(said, as_text(value)) >= part["threshold"])
    return bool(Levenshtein.distance(said, as_text(value)) <= part.get("threshold", 5))


CHECKS: Mapping[str, Callable[[str, Any, Mapping[str, Any]], bool]] = {
    "equals": _equals,
    "contains": lambda said, value, _: _texts([value])[0] in said,
    "icontains": lambda said, value, _: _texts([value])[0].lower() in said.lower(),
    "contains-all": lambda said, value, _: all(text in said for text in _texts(value)),
    "icontains-all": lambda said, value, _: all(text.lower() in said.lower() for text in _texts(value)),
    "contains-any": lambda said, value, _: any(text in said for text in _texts(value)),
    "icontains-any": lambda said, value, _: any(text.lower() in said.lower() for text in _texts(value)),
    "starts-with": lambda said, value, _: said.startswith(_texts([value])[0]),
    "ends-with": lambda said, value, _: said.endswith(_texts([value])[0]),
    "regex": lambda said, value, _: regex.search(_texts([value])[0], said, timeout=_SECONDS) is not None,
    "is-json": _is_json,
    "contains-json": _is_json,
    "latency": _in_time,
    "levenshtein": _is_near,
    "fuzzy_match": _is_near,
}
"""What decides an assertion of each type, without `not-`."""
