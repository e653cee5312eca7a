"""How far the metrics agree with labels of answers in the manner of many assistants, given by the document alone.

`shared`, `a`, `b`, `d` and `f` are the answers that the reading was tuned on; `c` and `e` were held back from it, and
only their figures were looked at. `g` and `h` have answers of eight kinds that were once read wrongly, and `h` was
held back from mending them. A metric that a label calls unsure is not counted.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from keval import Message, Sample, Score, Transcript, Trial
from keval.seams import registry

ANSWERS = Path(__file__).parent / "answers"
METRICS = {
    each.name.removeprefix("weather/"): registry.load(each)() for each in registry.select("keval.metrics", "weather")
}
LEAST = {"shared": 0.99, "a": 0.99, "b": 0.99, "c": 0.97, "d": 0.97, "e": 0.96, "f": 0.97, "g": 0.98, "h": 0.97}
LEAST_OF_A_METRIC = {
    "shared": 0.98,
    "a": 0.97,
    "b": 0.97,
    "c": 0.95,
    "d": 0.94,
    "e": 0.88,
    "f": 0.92,
    "g": 0.97,
    "h": 0.95,
}
FEWEST_LABELS = 25
"""A metric with fewer labels in a set is held to the set's share only."""


def trial_of(case: dict[str, Any]) -> Trial:
    spoken: list[Message] = []
    for said in case["history"] or ():
        if "role" in said:
            spoken.append(Message(said["role"], said["content"]))
        else:
            spoken += [Message("user", said["user"]), Message("assistant", said["assistant"])]
    sample = Sample(case["id"], case["question"], history=tuple(spoken), facts=case["facts"] or {})
    seconds = case.get("response_time")
    durations = () if seconds is None else (seconds,)
    messages = (Message("assistant", case["response"]),)
    transcript = Transcript(messages=messages, duration=seconds, turn_durations=durations, unlisted_calls=None)
    return Trial("t", sample, case["agent"], "only", 1, transcript)


def agrees(label: float | str, score: Score) -> bool:
    if isinstance(label, str):
        return score.neutral == (label == "neutral")
    return score.value is not None and abs(score.value - label) <= 0.011


def counted(cases: list[dict[str, Any]]) -> tuple[Counter[str], Counter[str]]:
    """Return how many labels each metric has and with how many of them it agrees."""
    labels, agreed = Counter[str](), Counter[str]()
    for case in cases:
        trial = trial_of(case)
        for name, label in case["expect"].items():
            if name not in case.get("unsure", {}):
                labels[name] += 1
                agreed[name] += agrees(label, METRICS[name].score(trial))
    return labels, agreed


@pytest.mark.parametrize("name", sorted(LEAST))
def test_the_metrics_agree_with_the_labels(name: str) -> None:
    labels, agreed = counted(json.loads((ANSWERS / f"{name}.json").read_text(encoding="utf-8")))

    shares = {metric: agreed[metric] / count for metric, count in labels.items() if count >= FEWEST_LABELS}
    assert labels.total() > 130
    assert agreed.total() / labels.total() >= LEAST[name]
    assert {} == {metric: share for metric, share in shares.items() if share < LEAST_OF_A_METRIC[name]}


@pytest.mark.parametrize("name", ["g", "h"])
def test_the_metrics_agree_with_the_labels_of_each_kind(name: str) -> None:
    by_kind: dict[str, list[dict[str, Any]]] = {}
    for case in json.loads((ANSWERS / f"{name}.json").read_text(encoding="utf-8")):
        by_kind.setdefault(case["kind"], []).append(case)

    found = {kind: counted(cases) for kind, cases in by_kind.items()}

    assert ["action", "degree", "need", "now", "span", "statement", "task", "vague"] == sorted(found)
    assert {} == {kind: agreed for kind, (labels, agreed) in found.items() if agreed.total() < labels.total() - 1}


@pytest.mark.parametrize("name", sorted(LEAST))
def test_what_was_read_stands_where_it_is_said_to(name: str) -> None:
    cases = json.loads((ANSWERS / f"{name}.json").read_text(encoding="utf-8"))

    read = [
        (case["response"], statement)
        for case in cases
        for statement in METRICS["accuracy"].score(trial_of(case)).details.get("read", ())
    ]

    assert len(read) > len(cases) / 2
    assert [] == [statement for response, statement in read if not stands(response, statement)]


def stands(response: str, statement: dict[str, Any]) -> bool:
    """Whether the offsets are those of the words: of a temperature exactly, of a condition as it is inflected."""
    begin, end = statement["at"]
    quoted = " ".join(response[begin:end].replace("*", "").split())
    if statement["kind"] != "condition":
        return bool(quoted == statement["said"])
    whole = not response[end : end + 1].isalnum() and not response[begin - 1 : begin].isalnum()
    return bool(whole and quoted[:3].lower() == statement["said"][:3].lower())
