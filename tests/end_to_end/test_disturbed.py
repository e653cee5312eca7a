"""Runs over an endpoint with faults of every kind end as they would have without."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import attrs
import pytest
import yaml

from keval_doubles.disturb import Disturb, Fault
from keval_gateway import ChatReply, ChatRequest
from tests.conftest import Project
from tests.end_to_end.servers.model import gateway

EVERY_KIND: list[dict[str, Any]] = [
    {"status": 429, "retry_after": 0, "share": 0.06},
    {"status": 529, "retry_after": "in a while", "share": 0.03},
    {"status": 503, "retry_after": "Wed, 21 Oct 2015 07:28:00 GMT", "share": 0.03},
    {"drop": "before", "share": 0.03},
    {"drop": "midway", "share": 0.03},
    {"stall_seconds": 0.05, "share": 0.03},
    {"content_type": "text/html", "share": 0.03},
    {"truncate": True, "share": 0.03},
]
SEED = 1
"""One with which each of them hits at least one of 60 trials."""
REFUSALS: list[dict[str, Any]] = [{"status": 429, "share": 0.05}, {"status": 500, "share": 0.02}]
IN_PROCESS = {"openai": {"model": "openai/gpt-test"}}
BOTH = {**IN_PROCESS, "gadk": {"model": "openai/gpt-test", "api": "chat"}}


def respond(request: ChatRequest) -> ChatReply:
    """Answer every other question rightly."""
    number = int(request.messages[0].text)
    return ChatReply(f"It is {number - number % 2}.")


@attrs.frozen
class Found:
    """What a run has of each trial, and the faults that its endpoint made."""

    scores: dict[str, float]
    refusals: Counter[int | None]
    attempts: int
    made: Counter[Fault]


def evaluate(
    project: Project, name: str, samples: int, agents: Any, *, draw: Disturb | None = None, middleware: Any = ()
) -> Found:
    config = {
        "name": name,
        "dataset": {"path": "questions.jsonl"},
        "agents": agents,
        "metrics": ["basic/equals"],
        "middleware": [*middleware],
        "execution": {"max_concurrent": 16, "retry": {"initial_backoff_seconds": 0.02}},
    }
    asked = [{"id": f"q{n}", "question": f"{n}", "answer": f"It is {n}."} for n in range(samples)]
    project.write(eval_yaml=yaml.safe_dump(config), questions_jsonl="".join(json.dumps(each) + "\n" for each in asked))
    made = Counter[Fault]()
    with gateway(respond, draw, made) as environ:
        outcome = project.keval("run", "eval.yaml", env=environ)
    assert 0 == outcome.code, outcome.stderr
    trials, scores = (lines(project.root, name, file) for file in ("trials", "scores"))
    return Found(
        {score["trial"]: score["value"] for score in scores},
        Counter(refusal["status"] for trial in trials for refusal in trial["transcript"]["refusals"]),
        sum(len(trial["attempts"]) for trial in trials),
        made,
    )


def lines(root: Path, name: str, file: str) -> list[dict[str, Any]]:
    (found,) = root.glob(f"results/{name}/*/{file}.jsonl")
    return [json.loads(line) for line in found.read_text(encoding="utf-8").splitlines()]


@pytest.mark.slow
def test_every_kind_of_fault_costs_no_attempt_and_changes_no_score(project: Project) -> None:
    draw = Disturb(tuple(Fault(**each) for each in EVERY_KIND), SEED)

    plain = evaluate(project, "plain", 30, BOTH)
    disturbed = evaluate(project, "disturbed", 30, BOTH, draw=draw)
    within = evaluate(
        project, "within", 30, BOTH, middleware=[{"double/disturb": {"seed": SEED, "faults": EVERY_KIND}}]
    )

    assert (60, {0.0, 1.0}) == (len(plain.scores), {*plain.scores.values()})
    assert [(plain.scores, 0)] * 2 == [(each.scores, each.attempts) for each in (disturbed, within)]
    assert len(EVERY_KIND) == len(disturbed.made)
    told = refusals_of(disturbed.made)
    assert (told, told.keys()) == (disturbed.refusals, within.refusals.keys())


@pytest.mark.slow
def test_five_hundred_trials_at_an_endpoint_that_refuses_one_request_in_fourteen(project: Project) -> None:
    draw = Disturb(tuple(Fault(**each) for each in REFUSALS), SEED)

    plain = evaluate(project, "plain", 500, IN_PROCESS)
    disturbed = evaluate(project, "disturbed", 500, IN_PROCESS, draw=draw)

    assert (500, Counter[int | None]()) == (len(plain.scores), plain.refusals)
    assert (plain.scores, 0) == (disturbed.scores, disturbed.attempts)
    assert refusals_of(disturbed.made) == disturbed.refusals
    assert 20 < disturbed.made.total() < 60


def refusals_of(made: Counter[Fault]) -> Counter[int | None]:
    """The statuses that keval tells for faults; a connection that is closed has none, and a stall is no refusal."""
    found = Counter[int | None]()
    for fault, times in made.items():
        if fault.stall_seconds is None:
            found[None if fault.drop else fault.status or 200] += times
    return found
